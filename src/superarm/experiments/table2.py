"""Table 2: pulls on the six crowd quizzes, in all three presets, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm import plots
from superarm.algorithms import ICB, SAFOA, SAQM, Static
from superarm.datasets import QUIZZES, crowd
from superarm.experiments.base import Page, Row, Settings, listing, markdown_table, select, span
from superarm.experiments.table1 import CREDIT
from superarm.noise import labels
from superarm.problem import Problem
from superarm.schedule import Every, Geometric
from superarm.simulation import environment
from superarm.study import Cell, Instance, Results, Study

PAPER = {
    "icb": (46_658, 73_337, 105_214, 20_943, 118_587, 362_558),
    "saqm": (68_328, 86_252, 110_504, 91_423, 131_512, 291_773),
    "sa-foa": (3_421, 3_493, 4_949, 3_050, 9_313, 15_611),
}
"""Thousands of pulls, as the paper prints them, quiz by quiz."""

RULES: tuple[type[Static], ...] = (ICB, SAQM, SAFOA)
PRESETS = ("experiments", "text", "corrected")
NEAR = 1.25
"""What is called near in words: a factor up to this."""


def compute(folder: Path, settings: Settings) -> None:
    """Run each rule in each preset five times on each quiz, each time on another support."""
    runs, presets = (2, PRESETS[:1]) if settings.quick else (5, PRESETS)
    results = study(presets, runs, settings.rng).run(
        workers=settings.workers,
        progress=lambda done, of: settings.report("table2", done, of),
    )
    results.to_csv(folder / "table2.csv")


def study(presets: Sequence[str], runs: int, rng: int) -> Study:
    """Return the study of all rules on all quizzes: k = 10, epsilon = 0.5, delta = 0.05."""
    cells = [
        Cell(instance, rule_of(rule, preset), preset=preset)
        for preset in presets
        for rule in RULES
        for instance in instances()
    ]
    return Study(cells, runs, rng=rng, title="Table 2")


def instances() -> list[Instance]:
    """Return the six quizzes as questions, with labels of independent workers."""
    found, noise = [], labels()
    for quiz in QUIZZES:
        given = crowd(quiz)
        problem = Problem(given.arms, 10, noise, epsilon=0.5, delta=0.05)
        found.append(Instance(quiz, problem, environment(given.means, noise)))
    return found


def rule_of(rule: type[Static], preset: str) -> Static:
    """Return a preset's rule; `text`, which looks after each of up to 10^13 pulls, 5 % apart."""
    chosen = rule.preset(preset)
    return rule.preset(preset, schedule=Geometric(1.05)) if chosen.schedule == Every() else chosen


def plot(folder: Path) -> list[Path]:
    """Draw ours beside the paper's, and how the single runs are spread about the paper's."""
    rows = _read(folder, preset="experiments")
    with plots.figure(2, size=(6.6, 4.6)) as (drawn, (left, right)):
        for place, (name, paper) in enumerate(PAPER.items()):
            color, marker = plots.look_of(name).values()
            at = np.arange(len(QUIZZES)) + 0.2 * (place - 1)
            for x, quiz in zip(at, QUIZZES, strict=True):
                runs = [row["pulls"] for row in select(rows, algorithm=name, instance=quiz)]
                left.plot([x] * len(runs), runs, linestyle="", marker="_", color=color, alpha=0.6)
            style: dict[str, Any] = {"color": color, "marker": marker, "linestyle": ""}
            ours = [_mean(rows, name, quiz) for quiz in QUIZZES]
            title = plots.title_of(name)
            left.plot(at, ours, label=f"{title}, ours", markersize=6, **style)
            thousands = [1000 * pulls for pulls in paper]
            label = f"{title}, the paper"
            left.plot(at, thousands, label=label, markersize=9, fillstyle="none", **style)
        left.set_xticks(range(len(QUIZZES)), QUIZZES)
        y, title = "pulls until the stop", "Means (dashes: single runs)"
        plots.dress(left, x="quiz", y=y, title=title, log="y")
        low, high = left.get_ylim()
        left.set_ylim(low, high * 4)
        left.legend(ncols=3, loc="upper left", fontsize=9, columnspacing=1.0, handletextpad=0.2)
        relative = [{**row, "ratio": _ratio(row)} for row in rows]
        x = "pulls / the paper's mean"
        plots.survival(right, relative, pulls="ratio", x=x, title="Runs on all quizzes")
        right.axvline(1.0, color=plots.INK, linewidth=0.8, linestyle=":")
        _plain_ticks(right, [row["ratio"] for row in relative])
        return plots.save(drawn, folder, "table2")


def _plain_ticks(axes: Any, values: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 10, 20, 50, 100)
    at = [step for step in steps if min(values) / 1.5 <= step <= max(values) * 1.2]
    axes.set_xticks(at, [f"{step:g}" for step in at])
    axes.xaxis.set_minor_locator(NullLocator())


def page(folder: Path) -> Page:
    """Compare with the paper's numbers, and say what agrees, what does not, and why."""
    rows = _read(folder)
    presets = [preset for preset in PRESETS if select(rows, preset=preset)]
    tables = "\n\n".join(_table(rows, preset) for preset in presets)
    mine = select(rows, preset="experiments")
    wrong = sum(row["wrong"] for row in rows)
    return Page(
        "Table 2: number of samples on the crowd quizzes",
        agrees=(
            f"In the preset `experiments`, the reading that comes nearest, {_near(mine, 'icb')}; "
            f"{_near(mine, 'saqm')}. {_fewest(mine)} The paper found an optimal subset always; "
            f"here {wrong or 'none'} of {len(rows)} answers, in all presets, "
            f"{'is' if wrong in (0, 1) else 'are'} more than epsilon from the best."
        ),
        differs=" ".join([_factor(mine), SA_FOA, *(_other(rows, p) for p in presets[1:])]),
        body=(
            "k = 10, epsilon = 0.5, labels of independent workers, uniform proportions on random "
            f"super-arms; means of {_runs(rows)} runs, each with a support of its own, in "
            "thousands of pulls. delta = 0.05 is that of the paper's other experiments; for this "
            f"table it states none.\n\n![Table 2](table2.png)\n\n{tables}\n\n{_key(rows)}{CREDIT}"
        ),
    )


SA_FOA = (
    "What brings the paper's numbers of SA-FOA we do not know. In runs apart from these (five "
    "supports a quiz, seed 1; `make evidence` repeats them) the preset took 1.43 to 2.69 times the "
    "paper's pulls; with one draw a look, as where F is emptied inside the loop, 1.36 to 2.38; "
    "with ten times as many draws 1.43 to 2.71; with a stop at epsilon/2 4.25 to 8.76; on 4n "
    "super-arms 0.82 to 1.52, on 8n 0.77 to 1.44; with the strongest single swap as the only rival "
    "0.66 to 1.59. No constant makes up for it, since the quizzes differ too."
)
"""What was measured once, not now; evidence/table2_runs.py has these and more."""


def _near(rows: Sequence[Row], name: str) -> str:
    """Say how near a rule comes to the paper, and where not near."""
    ratios = _ratios(rows, name)
    far = [quiz for quiz, ratio in ratios.items() if max(ratio, 1 / ratio) > NEAR]
    where = f"on all quizzes but {listing(far)}" if far else "on all six quizzes"
    if len(far) == len(ratios):
        where = "on none of the quizzes"
    return (
        f"{plots.title_of(name)} takes {span(ratios.values())} times the paper's pulls, within "
        f"{NEAR:g} of them {where}"
    )


def _fewest(rows: Sequence[Row]) -> str:
    ours = [min(PAPER, key=lambda name: _mean(rows, name, quiz)) for quiz in QUIZZES]
    return (
        f"SA-FOA takes the fewest pulls of the three on {ours.count('sa-foa')} of 6 quizzes (in "
        "the paper on all)."
    )


def _factor(rows: Sequence[Row]) -> str:
    ratios = _ratios(rows, "sa-foa").values()
    return f"SA-FOA takes {span(ratios)} times the paper's pulls."


def _other(rows: Sequence[Row], preset: str) -> str:
    """Say how far a preset is from the paper, and what sets it apart from `experiments`."""
    mine = select(rows, preset=preset)
    factors = listing(
        [f"{plots.title_of(name)} {span(_ratios(mine, name).values())}" for name in PAPER]
    )
    limited = sum(_unfinished(row) for row in mine)
    why = {
        "text": (
            "It has Theorem 1's ratio in SAQM, Lemma 1's radius in ICB, and half of epsilon in "
            f"SA-FOA. {_fits(mine)}"
        ),
        "corrected": (
            "Independent labels have sigma = sqrt(10)/2 where the paper takes kR = 10, which alone "
            "is a factor of 40; constants are smaller, and 8n super-arms are measured, not 2n."
        ),
    }[preset]
    ended = f" ({limited} runs ended at the limit of pulls.)" if limited else ""
    return (
        f"The preset `{preset}` takes, in multiples of the paper's pulls: {factors}.{ended} {why}"
    )


def _fits(rows: Sequence[Row]) -> str:
    ratios = [ratio for name in PAPER for ratio in _ratios(rows, name).values()]
    near = sum(max(ratio, 1 / ratio) <= NEAR for ratio in ratios)
    so = ": the table cannot come from these." if not near else "."
    return f"{near or 'None'} of the {len(ratios)} numbers is within {NEAR:g} of the paper's{so}"


def _table(rows: Sequence[Row], preset: str) -> str:
    mine = select(rows, preset=preset)
    names = [plots.title_of(name) for name in PAPER]
    header = [f"`{preset}`", *(f"{name}: ours / paper = ratio" for name in names), "wrong"]
    lines = []
    for i, quiz in enumerate(QUIZZES):
        cells = []
        for name in PAPER:
            ours, paper = _mean(mine, name, quiz) / 1000, PAPER[name][i]
            ratio = ours / paper
            short = f"{ratio:.2f}" if 0.1 <= ratio < 100 else f"{ratio:.2g}"
            least = any(map(_unfinished, select(mine, algorithm=name, instance=quiz)))
            cells.append(f"{'>= ' if least else ''}{ours:,.0f} / {paper:,} = {short}")
        wrong = sum(row["wrong"] for row in select(mine, instance=quiz))
        lines.append((quiz, *cells, wrong))
    return markdown_table(header, lines)


def _key(rows: Sequence[Row]) -> str:
    if not any(map(_unfinished, rows)):
        return ""
    return ">=: a run ended at the limit of pulls before it came to its stop.\n\n"


def _unfinished(row: Row) -> bool:
    return bool(row["pulls"] >= row["max_pulls"])


def _read(folder: Path, **where: Any) -> list[Row]:
    return select(Results.read(folder / "table2.csv").rows, **where)


def _mean(rows: Sequence[Row], name: str, quiz: str) -> float:
    return float(np.mean([row["pulls"] for row in select(rows, algorithm=name, instance=quiz)]))


def _ratio(row: Row) -> float:
    return float(row["pulls"] / 1000 / PAPER[row["algorithm"]][QUIZZES.index(row["instance"])])


def _ratios(rows: Sequence[Row], name: str) -> dict[str, float]:
    """Return ours / the paper's of each quiz."""
    return {quiz: _mean(rows, name, quiz) / 1000 / PAPER[name][i] for i, quiz in enumerate(QUIZZES)}


def _runs(rows: Sequence[Row]) -> int:
    return len({row["replication"] for row in rows})
