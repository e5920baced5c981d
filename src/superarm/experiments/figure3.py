"""Figure 3: seconds that a round takes, against the number of arms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from superarm import plots
from superarm.algorithms import ICB, SAFOA, SAQM, Exhaustive, Static
from superarm.design import Uniform
from superarm.experiments.base import Settings, markdown_table, read_rows, write_rows
from superarm.noise import gaussian
from superarm.problem import Problem
from superarm.schedule import Every
from superarm.simulation import environment, simulate
from superarm.simulation.synthetic import synthetic

SIZES = tuple(range(10, 25, 2))
GAP = 0.1
RULES: tuple[type[Static], ...] = (SAQM, SAFOA, ICB, Exhaustive)
_SETS = 2e8  # super-arms that Exhaustive may go through in one realisation
_ROUNDS = 20, 400  # least and most rounds of a realisation


def compute(folder: Path, settings: Settings) -> None:
    """Write a row for each size, algorithm and realisation."""
    sizes, runs = (SIZES[:4], 2) if settings.quick else (SIZES, 10)
    rows, of = [], len(sizes) * len(RULES)
    for i, n in enumerate(sizes):
        for j, rule in enumerate(RULES):
            _seconds(rule, n, settings.rng, 0, 2)  # what is compiled or cached once is not counted
            for realisation in range(runs):
                rounds = _rounds(rule, n)
                seconds = _seconds(rule, n, settings.rng, realisation, rounds)
                rows.append(
                    {
                        "n": n,
                        "k": n // 2,
                        "algorithm": rule.name,
                        "realisation": realisation,
                        "rounds": rounds,
                        "seconds": seconds,
                    }
                )
            settings.report("figure3", i * len(RULES) + j + 1, of)
    write_rows(folder / "figure3.csv", rows)


def _rounds(rule: type[Static], n: int) -> int:
    least, most = _ROUNDS
    affordable = _SETS / math.comb(n, n // 2) / 10 if rule is Exhaustive else most
    return int(min(most, max(least, affordable)))


def _seconds(rule: type[Static], n: int, rng: int, realisation: int, rounds: int) -> float:
    """Return the mean time of a round: measuring, updating the estimate, testing the stop."""
    means = synthetic(n, n // 2, GAP, np.random.default_rng([rng, 3, n, realisation]))
    problem = Problem(n, n // 2, gaussian(1.0))
    algorithm = rule.preset("experiments", design=Uniform("8n"), schedule=Every())
    world = environment(means, problem.noise)
    run = simulate(problem, algorithm, world, rng=realisation, max_pulls=n + rounds - 1)
    return run.seconds / rounds


def plot(folder: Path) -> None:
    """Draw time against n."""
    rows = read_rows(folder / "figure3.csv")
    with plots.figure() as (drawn, axes):
        plots.time_against_n(axes[0], rows)
        axes[0].set_title("Run time of a round")
        plots.save(drawn, folder, "figure3")


def page(folder: Path) -> str:
    """Say how times grow."""
    rows = read_rows(folder / "figure3.csv")
    sizes = sorted({int(row["n"]) for row in rows})
    means = {
        rule.name: [
            float(
                np.mean([r["seconds"] for r in rows if r["n"] == n and r["algorithm"] == rule.name])
            )
            for n in sizes
        ]
        for rule in RULES
    }
    header = ("algorithm", *(f"n = {n}" for n in sizes), "growth for 2 more arms")
    table = []
    for name, seconds in means.items():
        growth = math.exp(float(np.polyfit(sizes[-4:], np.log(seconds[-4:]), 1)[0]) * 2)
        table.append((name, *(f"{1e6 * s:,.1f} us" for s in seconds), f"{growth:.2f} times"))
    sets = math.comb(sizes[-1], sizes[-1] // 2)
    return (
        "## Figure 3: run time of a round\n\n"
        "k = n/2, gap 0.1, 8n random super-arms, a look after every pull; everything that a round "
        "takes, the simulated measurement included.\n\n![Figure 3](figure3.png)\n\n"
        f"{markdown_table(header, table)}\n\n"
        "The paper: Exhaustive is prohibitive when there are many super-arms, the others run fast "
        "as n grows. So it is here: the number of super-arms grows nearly fourfold with two more "
        f"arms, to {sets:,} at n = {sizes[-1]}, and the time of Exhaustive with it; the others "
        "stay nearly flat."
    )
