"""superarm lower-bound: the least pulls that any method needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from superarm.cli.output import as_csv, as_table
from superarm.cli.question import format_option, sureness_options

if TYPE_CHECKING:
    from superarm.theory import LowerBound

KINDS = {
    "exact": "no method that is right with probability 1 - delta takes fewer on average",
    "asymptotic": "no method that is right with probability 1 - delta takes fewer on average, as "
    "delta goes to 0; at this delta a guide",
    "isotropic": "no method that measures all pairs of arms equally often takes fewer "
    "(with epsilon > 0: as delta goes to 0)",
}


@click.command("lower-bound")
@click.option(
    "--means", "path", required=True, metavar="FILE", help="CSV with the header arm,mean."
)
@click.option("--k", type=int, required=True, help="How many arms make a group.")
@sureness_options
@click.option(
    "--design",
    type=click.Choice(["optimised", "isotropic"]),
    help="Over all designs, or for the isotropic one.  [default: optimised up to 200 arms]",
)
@click.option(
    "--tolerance", default=0.01, show_default=True, help="How near to the optimum is near enough."
)
@format_option("A table to read, one JSON object, or a CSV line.")
def lower_bound(
    path: str,
    k: int,
    epsilon: float,
    delta: float,
    noise: str,
    direction: str,
    design: str | None,
    tolerance: float,
    form: str,
) -> None:
    """Say how many pulls any method needs, were the arms' means as stated and the noise Gaussian.

    kl(delta, 1-delta) T*, for Gaussian noise whose standard deviation is the sigma of the noise
    model.
    """
    from superarm._jit import announce_compilation
    from superarm.datasets import read_arms
    from superarm.noise import parse_noise
    from superarm.problem import Problem
    from superarm.theory import lower_bound as bound
    from superarm.theory.least_design import MOST_ARMS

    table = read_arms(path, "mean")
    problem = Problem(
        table.column("arm"),
        k,
        parse_noise(noise),
        epsilon=epsilon,
        delta=delta,
        direction=direction,  # type: ignore[arg-type]
    )
    announce_compilation()
    if design is None:
        design = "optimised" if problem.n <= MOST_ARMS else "isotropic"
    found = bound(problem, table.numbers("mean"), design=design, tolerance=tolerance)  # type: ignore[arg-type]
    if form == "json":
        click.echo(json.dumps(found.to_dict(), indent=2))
    elif form == "csv":
        row = (found.pulls, found.t_star, found.kind, found.design["kind"])
        click.echo(as_csv(("pulls", "t_star", "kind", "design"), [row]))
    else:
        click.echo(_table(found, problem.noise.sigma(problem.k)))


def _table(found: LowerBound, sigma: float) -> str:
    design = dict(found.design)
    words = str(design.pop("kind"))
    if design:
        words += f" ({', '.join(f'{name} {_short(value)}' for name, value in design.items())})"
    rows = [
        ("pulls", f"{found.pulls:,.1f}"),
        ("t_star", f"{found.t_star:,.6g}"),
        ("kind", f"{found.kind}: {KINDS[found.kind]}"),
        ("noise", f"taken as Gaussian, with sigma {sigma:.4g}"),
        ("design", words),
    ]
    return as_table(("what", "value"), rows)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
