"""superarm simulate: run an algorithm on simulated totals."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.output import as_cell, as_csv, as_table
from superarm.cli.question import (
    TRUE_SIGMA,
    Known,
    format_option,
    groups,
    groups_options,
    sureness_options,
    true_noise,
)
from superarm.errors import SettingError

if TYPE_CHECKING:
    from superarm.algorithms import Algorithm
    from superarm.design import Design
    from superarm.simulation import Replications
    from superarm.theory import LowerBound
    from superarm.verdict import Verdict

SUPPORT = "Super-arms to measure: a number, a multiple as 8n, or full (not for cyclic designs)."
BLOCKS = "cyclic designs: number of base blocks.  [default: as many as pay]"
DESIGN = "Where to measure.  [default: cyclic for certified, uniform for others]"


@click.command()
@click.option(
    "--means", "path", required=True, metavar="FILE", help="CSV with the header arm,mean."
)
@groups_options
@sureness_options
@TRUE_SIGMA
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
@click.option("--sigma", help="noise: as the noise model says; paper: kR.")
@click.option("--constants", help="corrected, or paper: as printed.")
@click.option("--alpha", help="saqm: certified, spectral, theorem or a number (a guess).")
@click.option("--oracle", help="saqm: peeling, fpk, swap, multistart, exact or brute-force.")
@click.option("--bound", help="saqm: spectral, shift or sdp; for alpha certified.")
@click.option(
    "--radius",
    help="certified: levels, calibrated or adaptive; focused: levels or calibrated; icb: "
    "independent or ellipsoid.",
)
@click.option("--threshold", type=float, help="sa-foa: share of epsilon at which it stops.")
@click.option("--draws", type=int, help="sa-foa: l; l*n super-arms are drawn at a look.")
@click.option("--certified", is_flag=True, default=None, help="sa-foa: bound every rival.")
@click.option("--accuracy", type=float, help="csar: radius of an arm in the first phase.")
@click.option("--max-pulls", type=int, help="End a run that has not stopped by then.")
@click.option("--replications", default=1, show_default=True, help="Number of runs.")
@click.option("--rng", default=0, show_default=True, help="Seed: the same seed, the same results.")
@click.option("--workers", default=1, show_default=True, help="Processes; they change no number.")
@format_option("A table to read, one JSON object, or a CSV line a run.")
def simulate(
    path: str,
    k: int | None,
    family: str | None,
    epsilon: float,
    delta: float,
    noise: str,
    direction: str,
    true_sigma: float | None,
    algorithm: str | None,
    preset: str,
    max_pulls: int | None,
    replications: int,
    rng: int,
    workers: int,
    form: str,
    **settings: Any,
) -> None:
    """Find the best group of arms with known means, from simulated totals of groups."""
    from superarm._jit import announce_compilation
    from superarm.algorithms import default_algorithm
    from superarm.datasets import read_arms
    from superarm.noise import parse_noise
    from superarm.problem import Problem
    from superarm.simulation import environment, replicate
    from superarm.simulation.engine import MOST_PULLS
    from superarm.theory.lower_bound import bound_of

    table = read_arms(path, "mean")
    law, means = parse_noise(noise), table.numbers("mean")
    truth = true_noise(law, true_sigma)
    problem = Problem(
        table.column("arm"),
        groups(k, family, table),
        law,
        epsilon=epsilon,
        delta=delta,
        direction=direction,  # type: ignore[arg-type]
    )
    if algorithm is None:
        algorithm = default_algorithm(problem).name
    rule = build_algorithm(algorithm, preset, settings)
    world = environment(means, truth)
    announce_compilation()
    with click.progressbar(
        length=replications, label="runs", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        result = replicate(
            problem,
            rule,
            world,
            replications,
            rng=rng,
            workers=workers,
            max_pulls=MOST_PULLS if max_pulls is None else max_pulls,
            progress=lambda: bar.update(1),
        )
    bound = bound_of(problem.with_noise(truth), means)
    click.echo({"json": _json, "csv": _csv, "table": _table}[form](result, bound))


def build_algorithm(name: str, preset: str, settings: dict[str, Any]) -> Algorithm:
    """Return an algorithm from a preset and the settings given as text (None: not given)."""
    from superarm.plugins import load
    from superarm.schedule import parse_schedule

    rule = load("algorithms", name)
    chosen = {key: value for key, value in settings.items() if value is not None}
    if {"support", "design", "blocks"} & set(chosen):
        kind = "cyclic" if "blocks" in chosen else "uniform"
        chosen["design"] = build_design(
            chosen.get("design", kind), chosen.pop("support", None), chosen.pop("blocks", None)
        )
    if "schedule" in chosen:
        chosen["schedule"] = parse_schedule(chosen["schedule"])
    if "alpha" in chosen:
        chosen["alpha"] = _number_or_name(chosen["alpha"])
    for key in chosen:
        if key not in rule.__dataclass_fields__:
            raise SettingError(f"--{key} is not a setting of {name}")
    return rule.preset(preset, **chosen)


def build_design(name: str, support: str | None, blocks: int | None = None) -> Design:
    """Return a design by name, on a support that is given as text (None: its default)."""
    from superarm.plugins import load

    kind = load("designs", name)
    for setting, value in (("support", support), ("blocks", blocks)):
        if value is not None and setting not in getattr(kind, "__dataclass_fields__", {}):
            raise SettingError(f"--{setting} is not a setting of design {name}")
    if blocks is not None:
        return kind(blocks=blocks)
    if support is None:
        return kind()
    text = support.strip()
    number = text.isascii() and text.isdecimal() and len(text) < 19
    return kind(support=int(text) if number else text)


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _rows(result: Replications) -> list[dict[str, Any]]:
    return [
        {
            "pulls": run.pulls,
            "answer": list(run.verdict.answer),
            "regret": run.regret if run.verdict.answer else None,
            "certified": run.verdict.certified,
            "seed": run.seed,
            "digest": run.verdict.design.get("digest"),
            "reason": run.verdict.reason,
            "epsilon_reached": _epsilon_reached(run.verdict),
            "confidence": run.verdict.confidence,
            "seconds": round(run.seconds, 6),
        }
        for run in result.runs
    ]


def _epsilon_reached(verdict: Verdict) -> float | None:
    """The epsilon that is certified, where it may be another than was asked for."""
    if verdict.confidence is None or verdict.certificate is None:
        return None
    return verdict.certificate.epsilon


def _json(result: Replications, bound: LowerBound | None) -> str:
    return json.dumps(
        {
            "algorithm": result.algorithm.name,
            "settings": result.algorithm.settings(),
            "problem": result.problem.to_dict(),
            "design": _design(result),
            "runs": _rows(result),
            "pulls_mean": result.pulls_mean,
            "wrong": result.wrong,
            "bound": None if bound is None else bound.to_dict(),
            "pulls_over_bound": None if bound is None else bound.ratio(result.pulls_mean),
        },
        indent=2,
    )


def _design(result: Replications) -> dict[str, Any]:
    """Return what all runs have in common: a random support has another digest in each."""
    design = dict(result.runs[0].verdict.design)
    design.pop("digest", None)
    return design


def _csv(result: Replications, bound: LowerBound | None) -> str:
    rows = [
        (i, row["pulls"], as_cell(row["answer"]), row["regret"], row["certified"], row["seconds"])
        for i, row in enumerate(_rows(result), 1)
    ]
    return as_csv(("run", "pulls", "answer", "regret", "certified", "seconds"), rows)


def _table(result: Replications, bound: LowerBound | None) -> str:
    from superarm.verdict import digits_up, opposite, percent_down

    rows = []
    for i, row in enumerate(_rows(result), 1):
        certified = "yes" if row["certified"] else f"no: {row['reason']}"
        if row["epsilon_reached"] is not None:
            certified = f"within {digits_up(row['epsilon_reached']):g}"
        answer = ", ".join(row["answer"][:10]) + (" ..." if len(row["answer"]) > 10 else "")
        rows.append(
            (
                i,
                f"{row['pulls']:,}",
                "none" if row["regret"] is None else f"{row['regret']:.3g}",
                f"{row['seconds']:.2f}",
                answer,
                certified,
            )
        )
    problem, design = result.problem, result.runs[0].verdict.design
    where = (
        f"{design['kind']} on {design['support']:,} super-arms" if design else "nothing to measure"
    )
    head = (
        f"{result.algorithm.name}: best {problem.k} of {problem.n}, epsilon {problem.epsilon}, "
        f"delta {problem.delta}, noise {problem.noise}; design: {where}"
    )
    table = as_table(("run", "pulls", "regret", "seconds", "answer", "certified"), rows)
    foot = (
        f"mean pulls {result.pulls_mean:,.0f}; wrong (regret > epsilon): "
        f"{result.wrong} of {len(result.runs)} runs"
    )
    ratio = None if bound is None else bound.ratio(result.pulls_mean)
    if bound is not None and ratio is not None:
        foot += (
            f"\nlower bound on the isotropic design (superarm lower-bound says more): "
            f"{bound.pulls:,.0f} pulls; pulls / bound {ratio:.3g}"
        )
    reached = [_epsilon_reached(run.verdict) for run in result.runs]
    there = [each for each in reached if each is not None]
    if there:
        sure = math.fsum(run.verdict.confidence or 0.0 for run in result.runs) / len(result.runs)
        foot += (
            f"\nbudget: epsilon reached with probability >= {opposite(problem.delta)}: "
            f"{digits_up(math.fsum(there) / len(there)):g} on average; confidence in epsilon "
            f"{problem.epsilon:g}: {percent_down(sure)} on average"
        )
    return f"{head}\n\n{table}\n\n{foot}"
