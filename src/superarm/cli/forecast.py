"""superarm forecast: the pulls to expect, before anything is measured."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from superarm.cli.simulate import SUPPORT, build_algorithm
from superarm.errors import ProblemError, SettingError
from superarm.plugins import names as known

if TYPE_CHECKING:
    from superarm.algorithms import Algorithm
    from superarm.decision import Decision
    from superarm.forecasting import Forecast
    from superarm.noise import Noise
    from superarm.problem import Problem

SLOW = 1_000_000
"""With more groups than this, exhaustive search is left out unless it is named."""

MOST_ARMS = 100_000
"""More arms than this are not made up for --gap."""


@click.command()
@click.option("--means", "path", metavar="FILE", help="Stated means: CSV with the header arm,mean.")
@click.option("--gap", type=float, help="In place of means: K of --n arms are better by this much.")
@click.option("--n", type=int, help="Number of arms, with --gap.")
@groups_options
@sureness_options
@TRUE_SIGMA
@click.option(
    "--algorithm",
    "names",
    type=Known("algorithms"),
    multiple=True,
    help="A rule, and again for more of them; all of one phase that serve if not given.",
)
@click.option(
    "--preset",
    type=click.Choice(["text", "experiments", "corrected"]),
    default="corrected",
    show_default=True,
    help="The paper to the letter, as its tables must have been run, or what is true.",
)
@click.option("--design", type=Known("designs"), help="Where to measure.  [default: uniform]")
@click.option("--support", help=SUPPORT)
@click.option(
    "--replications", default=0, show_default=True, help="Simulated runs of each, besides."
)
@click.option("--rng", default=0, show_default=True, help="Seed: the same seed, the same results.")
@click.option("--workers", default=1, show_default=True, help="Processes; they change no number.")
@format_option("A table to read, one JSON object, or a CSV line an algorithm.")
def forecast(
    path: str | None,
    gap: float | None,
    n: int | None,
    k: int | None,
    family: str | None,
    epsilon: float,
    delta: float,
    noise: str,
    direction: str,
    true_sigma: float | None,
    names: tuple[str, ...],
    preset: str,
    design: str | None,
    support: str | None,
    replications: int,
    rng: int,
    workers: int,
    form: str,
) -> None:
    """Say how many pulls each algorithm will take, if the arms' means were as stated.

    "expected" is when it stops if estimates have no error; "sufficient" is when it has stopped with
    probability 1 - delta, by the paper's theorems (mended).
    """
    from superarm._jit import announce_compilation
    from superarm.forecasting import forecast as expect
    from superarm.noise import parse_noise
    from superarm.problem import Problem

    law = parse_noise(noise)
    true_noise(law, true_sigma)  # refuses what does not go together
    arms, choice, means = _stated(path, gap, n, k, family, law, direction)
    problem = Problem(arms, choice, law, epsilon=epsilon, delta=delta, direction=direction)  # type: ignore[arg-type]
    if replications < 0:
        raise SettingError(f"replications must be a whole number >= 0, not {replications}")
    settings = {"design": design, "support": support}
    rules = [build_algorithm(name, preset, settings) for name in names or _one_phase()]
    rules = list(dict.fromkeys(rules)) if names else [r for r in rules if _serves(r, problem)]
    announce_compilation()
    with click.progressbar(
        length=replications * len(rules),
        label="runs",
        file=sys.stderr,
        hidden=not (replications and sys.stderr.isatty()),
    ) as bar:
        found = [
            expect(
                problem,
                rule,
                means,
                true_sigma=true_sigma,
                rng=rng,
                replications=replications,
                workers=workers,
                progress=lambda: bar.update(1),
            )
            for rule in rules
        ]
    click.echo({"json": _json, "csv": _csv, "table": _table}[form](problem, means, found))


def _stated(
    path: str | None,
    gap: float | None,
    n: int | None,
    k: int | None,
    family: str | None,
    noise: Noise,
    direction: str,
) -> tuple[Sequence[str] | int, int | Decision, Sequence[float]]:
    """Return the arms, the groups and the means: from a file, or of two kinds of arms."""
    from superarm.datasets import read_arms

    if (path is None) == (gap is None):
        raise SettingError("state either the arms' means (--means FILE) or a gap (--gap G --n N)")
    if path is not None:
        if n is not None:
            raise SettingError("--n goes with --gap; with --means the file says how many arms")
        table = read_arms(path, "mean")
        return table.column("arm"), groups(k, family, table), table.numbers("mean")
    assert gap is not None
    if n is None or k is None or family is not None:
        raise SettingError("--gap needs the number of arms, --n, and --k (and no --class)")
    if n < 1:
        raise ProblemError(f"there are no arms: give at least one, not {n}")
    if n > MOST_ARMS:
        raise ProblemError(f"--n must not exceed {MOST_ARMS:,}; this was {n:,}")
    if not 1 <= k <= n:
        raise ProblemError(f"k must be between 1 and the number of arms, {n}, not {k}")
    return n, k, _two_kinds(gap, n, k, noise, direction)


def _two_kinds(gap: float, n: int, k: int, noise: Noise, direction: str) -> list[float]:
    """Return k means that are better than the others by the gap."""
    centre, widest = _room(noise, k)
    if not 0 <= gap <= widest or not math.isfinite(gap):
        most = "" if widest == math.inf else f" and at most {widest:g} under noise {noise}"
        raise SettingError(f"gap must be a number >= 0{most}, not {gap!r}")
    better = gap / 2 if direction == "maximize" else -gap / 2
    return [centre + better] * k + [centre - better] * (n - k)


def _room(noise: Noise, k: int) -> tuple[float, float]:
    """Return where two means lie in the middle of what the noise allows, and how far apart."""
    from superarm.noise import Bounded, Labels, Total

    match noise:
        case Labels():
            return 0.5, 1.0
        case Bounded(bound):
            return 0.0, 2 * bound
        case Total(low, high):
            return (low + high) / (2 * k), (high - low) / k
    return 0.0, math.inf


def _one_phase() -> list[str]:
    """Names of the rules that forecasts are about."""
    from superarm.algorithms import Static
    from superarm.plugins import load

    return [name for name in known("algorithms") if issubclass(load("algorithms", name), Static)]


def _serves(rule: Algorithm, problem: Problem) -> bool:
    """Whether a rule that was not named is worth asking; if not, say so."""
    try:
        rule.check(problem)
    except ProblemError as error:
        click.echo(f"{rule.name} is left out: {error}", err=True)
        return False
    slow = rule.name == "exhaustive" and problem.decision.log_size > math.log(SLOW)
    if slow:
        click.echo(
            f"exhaustive is left out: it would go through {problem.decision.size_in_words} groups "
            "at each look. --algorithm exhaustive names it all the same.",
            err=True,
        )
    return not slow


def _json(problem: Problem, means: Sequence[float], found: list[Forecast]) -> str:
    values = {
        "problem": problem.to_dict(),
        "means": dict(zip(problem.arms, means, strict=True)),
        "forecasts": [one.to_dict() for one in found],
    }
    return json.dumps(values, indent=2)


_COLUMNS = ("replications", "mean", "low", "median", "high", "wrong")


def _csv(problem: Problem, means: Sequence[float], found: list[Forecast]) -> str:
    rows = []
    for one in found:
        runs = ["" if one.simulated is None else getattr(one.simulated, c) for c in _COLUMNS]
        numbers = ["" if value is None else value for value in (one.pulls, *_sufficient(one))]
        words = (one.certified, as_cell(one.answer), _note(one, problem.delta))
        rows.append((one.algorithm, *numbers, *words, *runs))
    header = ("algorithm", "pulls", "sufficient", "probability", "certified", "answer", "note")
    return as_csv((*header, *_COLUMNS), rows)


def _table(problem: Problem, means: Sequence[float], found: list[Forecast]) -> str:
    from superarm.theory.gaps import delta_min

    simulated = any(one.simulated is not None for one in found)
    rows = []
    for one in found:
        row = [one.algorithm, _count(one.pulls), _count(_sufficient(one)[0])]
        row += _simulated(one) if simulated else []
        rows.append([*row, "yes" if one.certified else "no", _note(one, problem.delta)])
    gap = delta_min(problem, means)
    ahead = "the only group" if gap == math.inf else f"best group ahead by {gap:.6g}"
    head = (
        f"best {_kind(problem)}, {ahead}, epsilon {problem.epsilon}, "
        f"delta {problem.delta}, noise {problem.noise}"
    )
    titles = ["algorithm", "expected", "sufficient"]
    titles += ["simulated", "90 % of runs"] if simulated else []
    table = as_table([*titles, "certificate", "note"], rows)
    foot = (
        "expected: pulls, if estimates had no error; "
        f"sufficient: with probability at least {1 - problem.delta:.6g}"
    )
    return f"{head}\n\n{table}\n\n{foot}"


def _kind(problem: Problem) -> str:
    if problem.topk:
        return f"{problem.k} of {problem.n}"
    return f"of {type(problem.decision).__name__} ({problem.n} arms)"


def _simulated(one: Forecast) -> list[str]:
    runs = one.simulated
    if runs is None:
        return ["none", "none"]
    return [f"{runs.mean:,.0f}", f"{runs.low:,.0f} .. {runs.high:,.0f}"]


def _sufficient(one: Forecast) -> tuple[int | None, float | None]:
    """Pulls that suffice, and how surely."""
    if one.guarantee is None:
        return (0, 1.0) if one.pulls == 0 else (None, None)
    return one.guarantee.pulls, one.guarantee.probability


def _count(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


def _note(one: Forecast, delta: float) -> str:
    """What a reader has to know besides."""
    if one.reason:
        return f"no forecast: {one.reason}"
    notes = [one.objection] if one.objection else []
    sure = one.guarantee
    if sure is not None and sure.pulls is not None and not sure.norm.exact:
        notes.append(f"sufficient by an upper bound ({sure.norm.how})")
    if sure is not None and sure.probability < 1 - delta:
        notes.append(f"sufficient with probability {sure.probability:.6g} only")
    return "; ".join(notes)
