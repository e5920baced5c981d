"""Figure 3: the time that a round takes, against the number of arms."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

from superarm import plots
from superarm.algorithms import ICB, SAFOA, SAQM, Exhaustive, Static
from superarm.design import Uniform
from superarm.experiments.base import (
    Page,
    Settings,
    listing,
    markdown_table,
    mean,
    read_rows,
    span,
    write_rows,
)
from superarm.noise import gaussian
from superarm.problem import Problem
from superarm.schedule import Every
from superarm.simulation import environment, simulate
from superarm.simulation.synthetic import synthetic

SIZES = tuple(range(10, 25, 2))
GAP = 0.1
RULES: tuple[type[Static], ...] = (SAQM, SAFOA, ICB, Exhaustive)
FAST = tuple(rule.name for rule in RULES if rule is not Exhaustive)
_SETS = 2e7  # super-arms that Exhaustive may go through in one realisation
_ROUNDS = 20, 1000  # least and most rounds of a realisation


def compute(folder: Path, settings: Settings) -> None:
    """Write a row for each size, algorithm and realisation; in this process alone."""
    sizes, runs = (SIZES[:5], 3) if settings.quick else (SIZES, 10)
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
                        "super_arms": math.comb(n, n // 2),
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
    affordable = _SETS / math.comb(n, n // 2) if rule is Exhaustive else most
    return int(min(most, max(least, affordable)))


def _seconds(rule: type[Static], n: int, rng: int, realisation: int, rounds: int) -> float:
    """Return a round's mean time (of this process): measuring, estimating, testing the stop."""
    means = synthetic(n, n // 2, GAP, np.random.default_rng([rng, 3, n, realisation]))
    problem = Problem(n, n // 2, gaussian(1.0))
    algorithm = rule.preset("experiments", design=Uniform("8n"), schedule=Every())
    world = environment(means, problem.noise)
    before = time.process_time()
    simulate(problem, algorithm, world, rng=realisation, max_pulls=n + rounds - 1)
    return (time.process_time() - before) / rounds


def plot(folder: Path) -> list[Path]:
    """Draw time against n."""
    rows = read_rows(folder / "figure3.csv")
    with plots.figure(size=(6.6, 4.6)) as (drawn, axes):
        plots.time_against_n(axes[0], rows, title="Time of a round, k = n/2")
        axes[0].set_ylabel("time of a round")
        axes[0].legend(loc="upper left")
        return plots.save(drawn, folder, "figure3")


def page(folder: Path) -> Page:
    """Say how times grow."""
    rows = read_rows(folder / "figure3.csv")
    sizes = sorted({int(row["n"]) for row in rows})
    names = [rule.name for rule in RULES]
    means = {name: [mean(rows, "seconds", n=n, algorithm=name) for n in sizes] for name in names}
    growth = {name: _growth(sizes, seconds) for name, seconds in means.items()}
    sets = [math.comb(n, n // 2) for n in sizes]
    header = ("algorithm", *(f"n = {n}" for n in sizes), "growth for 2 more arms")
    table = [
        (plots.title_of(name), *(f"{1e6 * s:,.1f} us" for s in means[name]), f"{growth[name]:.2f}")
        for name in names
    ]
    table.append(("super-arms", *(f"{size:,}" for size in sets), f"{_growth(sizes, sets):.2f}"))
    last = {name: means["exhaustive"][-1] / means[name][-1] for name in FAST}
    faster = [plots.title_of(name) for name in FAST if last[name] > 1]
    return Page(
        "Figure 3: time of a round",
        agrees=(
            'The paper (no numbers are given): Exhaustive is "prohibitive", while the others "can '
            f'run fast even if n becomes larger". Here, over the last {len(sizes[-4:])} sizes, two '
            f"more arms make the super-arms {_growth(sizes, sets):.2f} times as many, and a round "
            f"of Exhaustive {growth['exhaustive']:.2f} times as long; a round of the others "
            f"{span(growth[name] for name in FAST)} times as long. At n = {sizes[-1]} with "
            f"{sets[-1]:,} super-arms Exhaustive takes {1000 * means['exhaustive'][-1]:,.2f} ms, "
            f"{span(last.values())} times as long as the others"
            + (f" ({listing(faster)} are faster)." if len(faster) < len(FAST) else ".")
        ),
        differs=(
            "Times themselves are those of the machine at hand. SAQM, ICB and Exhaustive go "
            "through rounds in compiled code with rank-one updates where the stop is certain not "
            "to come. SA-FOA, which draws super-arms at random in each, takes every look in full, "
            "and most of its time does not depend on n."
        ),
        body=(
            f"k = n/2, gap {GAP:g}, noise N(0, 1), 8n random super-arms, a look after every pull. "
            "All that a round takes is counted (the simulated measurement, the estimate, the test "
            "of the stop; setting up is shared by all rounds), in processor time, as a mean of "
            f"{len({row['realisation'] for row in rows})} realisations. Growth is that of a line "
            f"through the logarithms of the last {len(sizes[-4:])} sizes.\n\n"
            f"![Figure 3](figure3.png)\n\n{markdown_table(header, table)}"
        ),
    )


def _growth(sizes: list[int], values: list[float] | list[int]) -> float:
    """Return the factor for two more arms, from a line through the last logarithms."""
    slope = np.polyfit(sizes[-4:], np.log(np.maximum(values[-4:], 1e-12)), 1)[0]
    return math.exp(2 * float(slope))
