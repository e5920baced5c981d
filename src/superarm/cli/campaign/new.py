"""superarm campaign new: state a question, and keep it in a store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.campaign.common import store_option
from superarm.cli.output import as_csv, as_table
from superarm.cli.question import Known, format_option, groups, groups_options, sureness_options
from superarm.cli.simulate import BLOCKS, DESIGN, SUPPORT, build_algorithm
from superarm.errors import ProblemError

if TYPE_CHECKING:
    from superarm.campaign import Campaign, Store
    from superarm.tables import Table


@click.command()
@click.argument("name")
@click.option("--arms", "path", metavar="FILE", help="CSV with the header arm, a line an arm.")
@click.option(
    "--arm", "named", multiple=True, metavar="NAME", help="An arm, and again for each other one."
)
@groups_options
@sureness_options
@click.option(
    "--algorithm",
    type=Known("algorithms"),
    help="The rule that decides when to stop.  [default: certified; for a --class, icb]",
)
@click.option(
    "--preset",
    type=click.Choice(["text", "experiments", "corrected"]),
    default="corrected",
    show_default=True,
    help="The paper to the letter, as its tables must have been run, or what is true.",
)
@click.option("--design", type=Known("designs"), help=DESIGN)
@click.option("--support", help=SUPPORT)
@click.option("--blocks", type=int, help=BLOCKS)
@click.option(
    "--schedule", help="When to look: every, geometric:RATIO, cycles[:RATIO] or planned:T1,T2,..."
)
@click.option("--budget", type=int, help="certified: pulls, after which it says how sure it is.")
@click.option("--aim", type=int, help="certified: pulls at which the radius is to be tightest.")
@click.option(
    "--radius", help="certified, focused: levels or calibrated; icb: independent or ellipsoid."
)
@click.option(
    "--seed",
    "--rng",
    type=int,
    help="Repeats what the design leaves to chance.  [default: drawn, and kept]",
)
@store_option
@format_option("A table to read, one JSON object, or CSV.")
def new(
    name: str,
    path: str | None,
    named: tuple[str, ...],
    k: int | None,
    family: str | None,
    epsilon: float,
    delta: float,
    noise: str,
    direction: str,
    algorithm: str | None,
    preset: str,
    seed: int | None,
    store: str | None,
    form: str,
    **settings: Any,
) -> None:
    """Begin a campaign called NAME: which arms, how many of them, how surely.

    Its plan is fixed now, before anything is measured. The question cannot be changed later; begin
    another campaign for another question.
    """
    from superarm._jit import announce_compilation
    from superarm.algorithms import default_algorithm
    from superarm.campaign import Campaign, Store
    from superarm.noise import parse_noise
    from superarm.problem import Problem

    table = _arms(path, named)
    problem = Problem(
        table.column("arm"),
        groups(k, family, table),
        parse_noise(noise),
        epsilon=epsilon,
        delta=delta,
        direction=direction,  # type: ignore[arg-type]
    )
    chosen = default_algorithm(problem).name if algorithm is None else algorithm
    rule = build_algorithm(chosen, preset, settings)
    announce_compilation()
    kept = Store.open(store)
    said = _said(Campaign.create(name, problem, rule, store=kept, rng=seed), kept)
    if form == "json":
        click.echo(json.dumps(said, indent=2))
    elif form == "csv":
        click.echo(as_csv(tuple(said), [tuple(said.values())]))
    else:
        rows = [(key.replace("_", " "), value) for key, value in said.items()]
        click.echo(as_table(("what", "campaign"), rows))


def _arms(path: str | None, named: tuple[str, ...]) -> Table:
    from superarm.datasets import read_arms
    from superarm.tables import Table

    if (path is None) == (not named):
        raise ProblemError(
            "say which arms there are: either --arms FILE, or --arm for each of them"
        )
    if path is not None:
        return read_arms(path)
    return Table("--arm", ("arm",), tuple((arm,) for arm in named), tuple(range(1, len(named) + 1)))


def _said(campaign: Campaign, store: Store) -> dict[str, Any]:
    problem = campaign.problem
    return {
        "name": campaign.name,
        "store": store.name,
        **problem.to_dict(),
        "algorithm": campaign.algorithm.name,
        "seed": campaign.seed,
        "state": str(campaign.verdict),
    }
