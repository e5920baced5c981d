"""Figure 2: how near the approximations of SAQM and SA-FOA come, in the first 100,000 rounds.

At some rounds the greatest norm (for SAQM, problem CEM) and the strongest rival (for SA-FOA,
problem (5)) are found by enumeration too, and compared with what the algorithms find.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from superarm import plots
from superarm.algorithms import SAFOA, SAQM
from superarm.algorithms.sa_foa import first_order_rival
from superarm.design import Uniform
from superarm.estimate import Information, least_squares
from superarm.experiments.base import Settings, markdown_table, read_rows, write_rows
from superarm.noise import gaussian
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.quadratic import brute_force, quadratic_maximum
from superarm.quadratic.exact import best_upper
from superarm.simulation import environment
from superarm.simulation.synthetic import synthetic
from superarm.tally import Tally

N, K = 10, 5
GAPS = (0.1, 1.0)
ROUNDS = 100_000


def compute(folder: Path, settings: Settings) -> None:
    """Write a row for each gap, realisation, round and algorithm."""
    runs, looks = (3, 20) if settings.quick else (10, 60)
    rows = []
    for i, gap in enumerate(GAPS):
        for realisation in range(runs):
            rows += list(_one(gap, realisation, looks, settings.rng))
            settings.report("figure2", i * runs + realisation + 1, len(GAPS) * runs)
    write_rows(folder / "figure2.csv", rows)


def _one(gap: float, realisation: int, looks: int, rng: int) -> Iterator[dict[str, Any]]:
    """Measure all 252 super-arms in turn, in random order: the G-allocation, by symmetry."""
    seeds = np.random.SeedSequence([rng, 2, round(100 * gap), realisation]).generate_state(3)
    means = synthetic(N, K, gap, int(seeds[0]))
    problem = Problem(N, K, gaussian(1.0))
    world, draw = environment(means, problem.noise), np.random.default_rng(seeds[1])
    every = draw.permutation(problem.decision.enumerate())
    support = tuple(tuple(int(arm) for arm in row) for row in every)
    saqm = SAQM.preset("experiments", design=Uniform(support))
    phase = saqm.first(problem, int(seeds[2]))
    assert isinstance(phase, Phase)
    tally, before = Tally(phase.plan.size), 0
    for look, t in enumerate(_rounds(phase.plan.spanning, looks), 1):
        world.add(tally, phase.plan, before, t, draw)
        before = t
        info = phase.information(t)
        if info is None:
            continue
        theta = least_squares(phase.plan, tally, info).means
        C = saqm.constant(problem, problem.delta).at(t)
        common = {"gap": gap, "realisation": realisation, "round": t}
        yield {**common, "algorithm": "saqm", **_saqm(info, C)}
        yield {**common, "algorithm": "sa-foa", **_sa_foa(phase, look, theta, info, C)}


def _rounds(first: int, looks: int) -> list[int]:
    return sorted({round(t) for t in np.geomspace(first, ROUNDS, looks)})


def _saqm(info: Information, C: float) -> dict[str, float]:
    """Z_t = C |M'|, found by greedy peeling, against the greatest."""
    W = info.inverse()
    found = C * np.sqrt(quadratic_maximum(W, K, "peeling").value)
    members = brute_force(W, K)
    greatest = C * np.sqrt(W[np.ix_(members, members)].sum())
    return _compared(float(found), float(greatest))


def _sa_foa(
    phase: Phase, look: int, theta: np.ndarray, info: Information, C: float
) -> dict[str, float]:
    """Z'_t, by first-order approximation with l = 1, against the maximum of problem (5)."""
    problem, W = Problem(N, K, gaussian(1.0)), info.inverse()
    best = problem.decision.best(theta)
    drawn = phase.rng(look).integers(phase.plan.size, size=SAFOA().draws * N)
    rival = first_order_rival(W, theta, best, phase.plan.members(np.unique(drawn)), C)
    if rival is None:
        rival = problem.decision.best_except(theta, best)
    inside = np.zeros(N, dtype=np.bool_)
    inside[best] = True
    towards = W @ inside
    own = float(towards[best].sum())
    strongest = best_upper(theta, W, -2 * towards, own, C, True, K, inside)

    def value(members: np.ndarray) -> float:
        x = inside.astype(np.float64)
        x[members] -= 1.0
        return float(theta[members].sum() + C * info.norm(x))

    assert rival is not None
    return _compared(value(rival), value(strongest))


def _compared(found: float, greatest: float) -> dict[str, float]:
    return {
        "found": found,
        "greatest": greatest,
        "ratio": found / greatest,
        "error": greatest - found,
    }


def plot(folder: Path) -> None:
    """Draw the ratio of SAQM and the additive error of SA-FOA, for both gaps."""
    rows = read_rows(folder / "figure2.csv")
    with plots.figure(2, rows=2) as (drawn, axes):
        for i, gap in enumerate(GAPS):
            mine = [row for row in rows if row["gap"] == gap]
            title = f"gap {gap:g}"
            plots.ratio_over_rounds(axes[i], mine, title=f"Approximation ratio, {title}")
            plots.error_over_rounds(axes[2 + i], mine, title=f"Additive error, {title}")
        plots.save(drawn, folder, "figure2")


def page(folder: Path) -> str:
    """Say what the figure shows beside what the paper says of its own."""
    rows = read_rows(folder / "figure2.csv")
    table = []
    for gap in GAPS:
        for name in ("saqm", "sa-foa"):
            mine = [row for row in rows if row["gap"] == gap and row["algorithm"] == name]
            ratios = np.array([row["ratio"] for row in mine])
            last = [row["error"] for row in mine if row["round"] == ROUNDS]
            first = min(row["round"] for row in mine)
            start = [row["error"] for row in mine if row["round"] == first]
            table.append(
                (
                    name,
                    f"{gap:g}",
                    f"{ratios.mean():.3f}",
                    f"{np.quantile(ratios, 0.05):.3f}",
                    f"{np.mean(ratios > 0.9):.0%}",
                    f"{np.mean(start):.3g}",
                    f"{np.mean(last):.3g}",
                )
            )
    header = (
        "algorithm",
        "gap",
        "mean ratio",
        "5 % quantile",
        "above 0.9",
        "error at first",
        f"error at {ROUNDS:,}",
    )
    least = min(row["ratio"] for row in rows)
    above = np.mean([row["ratio"] > 0.9 for row in rows])
    later = np.mean([row["ratio"] > 0.9 for row in rows if row["round"] >= 252])
    return (
        "## Figure 2: approximation precision\n\n"
        "n = 10, k = 5, noise N(0, 1) on the total, all 252 super-arms measured in turn, in random "
        "order (which is the G-allocation, by symmetry).\n\n![Figure 2](figure2.png)\n\n"
        f"{markdown_table(header, table)}\n\n"
        'The paper: "the approximation ratios are almost always greater than 0.9", and the error '
        f"of SA-FOA shrinks as rounds go by. Here {above:.1%} of all ratios are above 0.9, "
        f"{later:.1%} of those from round 252 on, the least is {least:.3f}, in the first rounds, "
        "and errors shrink likewise. At whole cycles of the 252 super-arms all norms are equal, so "
        "that any set is the greatest; between them the matrix is uneven by one pull of some "
        "super-arms, which matters less and less. On random supports, as the larger experiments "
        "have, ratios are lower: 0.78 and 0.66 were seen for n = 36 and n = 24, which is why "
        "alpha = 0.9 is no guarantee."
    )
