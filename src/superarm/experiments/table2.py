"""Table 2: pulls on the six crowd quizzes, in all three presets, beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from superarm import plots
from superarm.algorithms import ICB, SAFOA, SAQM, Static
from superarm.datasets import QUIZZES, crowd
from superarm.experiments.base import Settings, markdown_table, read_rows
from superarm.noise import labels
from superarm.problem import Problem
from superarm.schedule import Geometric
from superarm.simulation import environment
from superarm.study import Cell, Instance, Study

PAPER = {
    "icb": (46_658, 73_337, 105_214, 20_943, 118_587, 362_558),
    "saqm": (68_328, 86_252, 110_504, 91_423, 131_512, 291_773),
    "sa-foa": (3_421, 3_493, 4_949, 3_050, 9_313, 15_611),
}
"""Thousands of pulls, as the paper prints them."""

RULES: tuple[type[Static], ...] = (ICB, SAQM, SAFOA)
PRESETS = ("experiments", "text", "corrected")


def compute(folder: Path, settings: Settings) -> None:
    """Run each rule in each preset five times on each quiz, each time on another support."""
    runs, presets = (2, PRESETS[:1]) if settings.quick else (5, PRESETS)
    noise = labels()
    instances = []
    for quiz in QUIZZES:
        given = crowd(quiz)
        problem = Problem(given.arms, 10, noise, epsilon=0.5)
        instances.append(Instance(quiz, problem, environment(given.means, noise)))
    cells = [
        Cell(instance, _rule(rule, preset), preset=preset)
        for preset in presets
        for rule in RULES
        for instance in instances
    ]
    study = Study(cells, runs, rng=settings.rng, title="Table 2")
    results = study.run(
        workers=settings.workers,
        progress=lambda done, of: settings.report("table2", done, of),
    )
    results.to_csv(folder / "table2.csv")


def _rule(rule: type[Static], preset: str) -> Static:
    """Looks 2 % apart in every preset: `text` would look after each of 10^12 pulls."""
    return rule.preset(preset, schedule=Geometric(1.02))


def plot(folder: Path) -> None:
    """Draw ours beside the paper's, and how the stopping times of the runs are spread."""
    rows = [row for row in read_rows(folder / "table2.csv") if row["preset"] == "experiments"]
    with plots.figure(2, size=(7.0, 4.6)) as (drawn, (left, right)):
        for name, paper in PAPER.items():
            look = plots.look_of(name)
            ours = [_mean(rows, name, quiz) for quiz in QUIZZES]
            left.plot(QUIZZES, ours, label=f"{name}, ours", linewidth=1.6, **look)
            thousands = [1000 * pulls for pulls in paper]
            left.plot(QUIZZES, thousands, label=f"{name}, paper", linestyle=":", **look)
        plots.dress(left, x="quiz", y="pulls until the stop", title="Table 2", log="y")
        left.legend(ncols=2, fontsize=9)
        plots.survival(right, rows, title="All runs, all quizzes")
        plots.save(drawn, folder, "table2")


def page(folder: Path) -> str:
    """Compare with the paper's numbers, and say what agrees, what does not, and why."""
    rows = read_rows(folder / "table2.csv")
    presets = list(dict.fromkeys(row["preset"] for row in rows))
    tables = "\n\n".join(_table(rows, preset) for preset in presets)
    mine = [row for row in rows if row["preset"] == "experiments"]
    ratios = {
        name: [_mean(mine, name, quiz) / 1000 / PAPER[name][i] for i, quiz in enumerate(QUIZZES)]
        for name in PAPER
    }
    near = {name: max(max(r), 1 / min(r)) for name, r in ratios.items()}
    fewest = sum(
        min(PAPER, key=lambda name: _mean(mine, name, quiz)) == "sa-foa" for quiz in QUIZZES
    )
    wrong = sum(row["wrong"] for row in mine)
    return (
        "## Table 2: number of samples on the crowd quizzes\n\n"
        f"k = 10, epsilon = 0.5, delta = 0.05; means of {_runs(rows)} runs, in thousands. Labels "
        "of independent workers.\n\n![Table 2](table2.png)\n\n"
        f"{tables}\n\n"
        f"**What agrees.** In the preset `experiments`, the reading that fits, ICB is within a "
        f"factor of {near['icb']:.2f} of the paper on all six quizzes, SAQM within "
        f"{near['saqm']:.2f}. SA-FOA takes the fewest pulls of the three on {fewest} of 6. Every "
        f"answer is within epsilon of the best ({wrong} of {len(mine)} wrong).\n\n"
        f"**What does not.** SA-FOA takes {min(ratios['sa-foa']):.2f} to "
        f"{max(ratios['sa-foa']):.2f} times the paper's pulls. {SA_FOA}\n\n"
        "**The other presets.** `text` is the paper to the letter: SAQM with Theorem 1's ratio "
        "needs some 10^12 pulls (a run ends at 10^13), ICB with Lemma 1 five times fewer than the "
        "paper, SA-FOA with epsilon/2 several times more. So this is not what was run. "
        "`corrected` is what is true: independent labels have sigma = sqrt(10)/2 instead of "
        "kR = 10, which alone is a factor of 40, and with a support of 8n in place of 2n it takes "
        "hundreds of times fewer pulls."
    )


SA_FOA = (
    "The factor is explained neither by the number of draws nor by the constants, which are those "
    "that fit the other two."
)


def _table(rows: list[dict[str, Any]], preset: str) -> str:
    mine = [row for row in rows if row["preset"] == preset]
    header = [f"`{preset}`", *(f"{rule.name}, ours / paper = ratio" for rule in RULES), "wrong"]
    lines = []
    for i, quiz in enumerate(QUIZZES):
        cells = []
        for rule in RULES:
            ours, paper = _mean(mine, rule.name, quiz) / 1000, PAPER[rule.name][i]
            cells.append(f"{ours:,.0f} / {paper:,} = {ours / paper:.3g}")
        wrong = sum(row["wrong"] for row in mine if row["instance"] == quiz)
        lines.append((quiz, *cells, wrong))
    return markdown_table(header, lines)


def _mean(rows: list[dict[str, Any]], name: str, quiz: str) -> float:
    pulls = [row["pulls"] for row in rows if row["algorithm"] == name and row["instance"] == quiz]
    return float(np.mean(pulls))


def _runs(rows: list[dict[str, Any]]) -> int:
    return len({row["replication"] for row in rows})
