"""All rules on the same questions: pulls, wrong answers, the least pulls, and seconds.

Not one of the paper's. A rule more is a line in RULES, a question more an entry of `questions`;
where a rule cannot serve a question it is left out, and the page says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import beta, t

from superarm import plots
from superarm.algorithms import CSAR, ICB, SAFOA, SAQM, Algorithm, Certified, Focused
from superarm.datasets import crowd
from superarm.errors import ProblemError
from superarm.experiments.base import Page, Row, Settings, listing, markdown_table, select
from superarm.noise import Noise, gaussian, labels
from superarm.problem import Problem
from superarm.simulation import environment
from superarm.simulation.synthetic import synthetic
from superarm.study import Cell, Instance, Results, Study
from superarm.theory.lower_bound import lower_bound

RULES: dict[str, Algorithm] = {
    "Certified": Certified(),
    "Certified, calibrated": Certified(radius="calibrated"),
    "Certified, adaptive": Certified(radius="adaptive"),
    "Focused": Focused(),
    "Focused, calibrated": Focused(radius="calibrated"),
    "CSAR": CSAR(),
    "ICB": ICB(),
    "SAQM": SAQM(),
    "SA-FOA": SAFOA(),
}
"""By the names that the page has for them."""

DELTA = 0.05
CONFIDENCE = 0.95
_RUNS, _QUICK = 40, 3


@dataclass(frozen=True)
class Question:
    """A problem, its means given a seed, and what people call it."""

    words: str
    problem: Problem
    means: Callable[[int], Sequence[float]]
    truth: Noise | None = None
    """The noise there is, where the rules are not told all of it."""

    def instance(self, name: str, rng: int) -> Instance:
        """Return the instance, with the least pulls that any method needs in its rows."""
        means = self.means(rng)
        asked = self.problem
        told = Problem(
            asked.arms, asked.k, self.truth or asked.noise, epsilon=asked.epsilon, delta=asked.delta
        )
        least = lower_bound(told, means)
        stated = {"least": least.pulls, "least_kind": least.kind}
        world = environment(means, told.noise)
        return Instance(name, self.problem, world, stated)


@cache
def questions() -> dict[str, Question]:
    """Return all questions; `--quick` leaves out every other one."""
    workers = crowd("IT")
    return {
        "8 of 24": Question(
            "8 of 24 arms, noise N(0, 1) on the total, a gap of 0.5 at rank 8, epsilon = 0",
            Problem(24, 8, gaussian(1.0), delta=DELTA),
            lambda rng: tuple(synthetic(24, 8, 0.5, rng).tolist()),
        ),
        "10 of 100": Question(
            "10 of 100 arms, noise N(0, 1) on the total, a gap of 0.2 at rank 10, epsilon = 0",
            Problem(100, 10, gaussian(1.0), delta=DELTA),
            lambda rng: tuple(synthetic(100, 10, 0.2, rng).tolist()),
        ),
        "IT": Question(
            "10 of the 36 workers of the crowd quiz IT, independent labels, epsilon = 0.5",
            Problem(workers.arms, 10, labels(), epsilon=0.5, delta=DELTA),
            lambda rng: workers.means,
        ),
        "IT, normal": Question(
            "The same workers, were the noise of a total normal with sigma = sqrt(10)/2",
            Problem(workers.arms, 10, gaussian(math.sqrt(10) / 2), epsilon=0.5, delta=DELTA),
            lambda rng: workers.means,
        ),
        "IT, unknown": Question(
            "The same, and nobody is told sigma (any method needs at least what it needs where it "
            "is told)",
            Problem(workers.arms, 10, gaussian(), epsilon=0.5, delta=DELTA),
            lambda rng: workers.means,
            gaussian(math.sqrt(10) / 2),
        ),
    }


def refusal(rule: Algorithm, problem: Problem) -> str:
    """Return why a rule cannot serve a problem; empty where it can."""
    try:
        rule.check(problem)
    except ProblemError as error:
        return str(error)
    return ""


def compute(folder: Path, settings: Settings) -> None:
    """Run every rule on every question that it can serve."""
    asked = list(questions().items())
    asked, runs = (asked[::2], _QUICK) if settings.quick else (asked, _RUNS)
    cells = [
        Cell(instance, rule, {"rule": rule_name})
        for instance in (question.instance(name, settings.rng) for name, question in asked)
        for rule_name, rule in RULES.items()
        if not refusal(rule, instance.problem)
    ]
    results = Study(cells, runs, rng=settings.rng, title="All rules").run(
        workers=settings.workers,
        progress=lambda done, of: settings.report("rules", done, of),
    )
    results.to_csv(folder / "rules.csv")


def plot(folder: Path) -> list[Path]:
    """Draw each rule's pulls beside the least that any method needs."""
    rows = Results.read(folder / "rules.csv").rows
    names = list(dict.fromkeys(row["instance"] for row in rows))
    with plots.figure(len(names), size=(5.2, 4.2)) as (drawn, axes):
        for place, name in zip(axes, names, strict=True):
            mine = select(rows, instance=name)
            plots.pulls_by_rule(place, mine, least=mine[0]["least"], title=name)
        return plots.save(drawn, folder, "rules")


def page(folder: Path) -> Page:
    """Return a table for each question, and what they have in common."""
    rows = Results.read(folder / "rules.csv").rows
    names = list(dict.fromkeys(row["instance"] for row in rows))
    tables = "\n\n".join(_table(select(rows, instance=name), name) for name in names)
    doubtful = [
        f"{row['rule']} on {row['instance']}"
        for row in _lines(rows)
        if row["certified"] and row["interval"][0] > DELTA
    ]
    few = [_fewest(select(rows, instance=name)) for name in names]
    return Page(
        "All rules compared",
        agrees=(
            f"With delta = {DELTA:g}, "
            + (
                f"{listing(doubtful)} err more often than they may."
                if doubtful
                else "no rule that certifies errs more often than it may: no interval of its "
                "errors lies above delta."
            )
            + f" {' '.join(few)}"
        ),
        differs=(
            "These questions and rules are not the paper's; its own are in `figure4` and `table2`. "
            "All rules have their corrected settings and look when they do by default. SA-FOA's "
            "answers have no certificate. Seconds are those of the machine at hand, and without "
            "the simulation of a calibrated radius where that was kept from an earlier run."
        ),
        body=(
            f"{len({row['replication'] for row in rows})} runs of each rule; pulls as a mean with "
            f"its {CONFIDENCE:.0%} interval, wrong answers (further than epsilon from the best) "
            f"with Clopper and Pearson's. The last columns: pulls as a multiple of the least that "
            "any method needs for these means and that delta (`superarm lower-bound`), and the "
            f"time of a run.\n\n![All rules](rules.png)\n\n{tables}"
        ),
    )


def _table(rows: Sequence[Row], name: str) -> str:
    """Return the table of one question."""
    header = ("rule", "pulls", "wrong", "certified", "times the least", "seconds")
    lines = [
        (
            line["rule"],
            f"{line['pulls']:,.0f} +- {line['error']:,.0f}",
            f"{line['wrong']} of {line['runs']} "
            f"({100 * line['interval'][0]:.1f} to {100 * line['interval'][1]:.1f} %)",
            "yes" if line["certified"] else "no",
            f"{line['pulls'] / line['least']:.1f}",
            f"{line['seconds']:.3f}",
        )
        for line in _lines(rows)
    ]
    present, question = {line["rule"] for line in _lines(rows)}, questions()[name]
    missing = [
        f"{rule}: {refusal(RULES[rule], question.problem)}."
        for rule in RULES
        if rule not in present
    ]
    least, kind = rows[0]["least"], rows[0]["least_kind"]
    needs = f"Any method needs {least:,.0f} pulls at least" + (
        "." if kind == "exact" else ", as delta goes to 0 (with epsilon > 0 no more is proved)."
    )
    left_out = f"\n\nNot here. {' '.join(missing)}" if missing else ""
    return f"**{question.words}.** {needs}\n\n{markdown_table(header, lines)}{left_out}"


def _lines(rows: Sequence[Row]) -> list[Row]:
    """Return a line for each rule and question."""
    found: list[Row] = []
    for key in dict.fromkeys((row["instance"], row["rule"]) for row in rows):
        mine = select(rows, instance=key[0], rule=key[1])
        pulls = [row["pulls"] for row in mine]
        wrong = sum(row["wrong"] for row in mine)
        found.append(
            {
                **mine[0],
                "runs": len(mine),
                "pulls": float(np.mean(pulls)),
                "error": mean_error(pulls),
                "wrong": wrong,
                "certified": all(row["certified"] for row in mine),
                "interval": interval(wrong, len(mine)),
                "seconds": float(np.mean([row["seconds"] for row in mine])),
            }
        )
    return found


def _fewest(rows: Sequence[Row]) -> str:
    """Say which rule takes the fewest pulls of those that certify, and what the others take."""
    lines = sorted((line for line in _lines(rows) if line["certified"]), key=_pulls)
    if not lines:
        return ""
    best, last = lines[0], lines[-1]
    return (
        f"On {best['instance']} {best['rule']} takes the fewest pulls of those that certify, "
        f"{best['pulls']:,.0f} ({best['pulls'] / best['least']:.1f} times the least), and "
        f"{last['rule']} the most, {last['pulls']:,.0f}."
    )


def _pulls(line: Row) -> float:
    return float(line["pulls"])


def mean_error(pulls: Sequence[float]) -> float:
    """Return half the width of the interval of a mean, by Student's t."""
    runs = len(pulls)
    if runs < 2:
        return math.inf
    factor = float(t.ppf((1 + CONFIDENCE) / 2, runs - 1))
    return factor * float(np.std(pulls, ddof=1)) / math.sqrt(runs)


def interval(wrong: int, runs: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of an error rate."""
    tail = (1 - CONFIDENCE) / 2
    low = float(beta.ppf(tail, wrong, runs - wrong + 1)) if wrong else 0.0
    high = float(beta.ppf(1 - tail, wrong + 1, runs - wrong)) if wrong < runs else 1.0
    return low, high
