"""Figure 2: how near the approximations of SAQM and SA-FOA come, in the first 100,000 rounds.

At some rounds the greatest norm (for SAQM, problem CEM) and the strongest rival (for SA-FOA,
problem (5)) are found by enumeration too, and compared with what the algorithms find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm import plots
from superarm.algorithms import SAFOA, SAQM
from superarm.algorithms.sa_foa import first_order_rival
from superarm.design import Uniform
from superarm.estimate import least_squares
from superarm.experiments.base import (
    Page,
    Row,
    Settings,
    markdown_table,
    mean,
    read_rows,
    select,
    write_rows,
)
from superarm.information import Information
from superarm.noise import gaussian
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.quadratic import brute_force, quadratic_maximum
from superarm.quadratic.exact import best_upper
from superarm.simulation import environment
from superarm.simulation.synthetic import synthetic
from superarm.tally import Tally

N, K = 10, 5
SETS = 252
GAPS = (0.1, 1.0)
ROUNDS = 100_000
DESIGNS = ("all", "2n")
"""All super-arms, in random order (the G-allocation, by symmetry), or 2n random ones."""

RULES = ("saqm", "sa-foa")


def compute(folder: Path, settings: Settings) -> None:
    """Write a row for each design, gap, realisation, round and algorithm."""
    runs, looks = (3, 20) if settings.quick else (10, 60)
    cases = [(design, gap, each) for design in DESIGNS for gap in GAPS for each in range(runs)]
    rows = []
    for done, case in enumerate(cases, 1):
        rows += list(_one(*case, looks, settings.rng))
        settings.report("figure2", done, len(cases))
    write_rows(folder / "figure2.csv", rows)


def _one(design: str, gap: float, each: int, looks: int, rng: int) -> Iterator[dict[str, Any]]:
    """Measure by a design, super-arm by super-arm in turn."""
    seeds = np.random.SeedSequence([rng, 2, round(100 * gap), each]).generate_state(3)
    means = synthetic(N, K, gap, int(seeds[0]))
    problem = Problem(N, K, gaussian(1.0))
    world, draw = environment(means, problem.noise), np.random.default_rng(seeds[1])
    every = draw.permutation(problem.decision.enumerate())
    support = tuple(tuple(int(arm) for arm in row) for row in every)
    saqm = SAQM.preset("experiments", design=Uniform(support if design == "all" else design))
    phase = saqm.first(problem, int(seeds[2]))
    assert isinstance(phase, Phase)
    tally, before = Tally(phase.plan.size), 0
    for look, t in enumerate(_rounds(phase.plan.spanning, looks), 1):
        world.add(tally, phase.plan, before, t, draw)
        before = t
        info = phase.information(t)
        if not isinstance(info, Information):  # not yet invertible
            continue
        theta = least_squares(phase.plan, tally, info).means
        C = saqm.constant(problem, problem.delta).at(t)
        common = {"design": design, "gap": gap, "realisation": each, "round": t}
        yield {**common, "algorithm": "saqm", **_saqm(info, C)}
        yield {**common, "algorithm": "sa-foa", **_sa_foa(phase, look, theta, info, C)}


def _rounds(first: int, looks: int) -> list[int]:
    """Looks evenly over the decades; at first those rounds that are there."""
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
        "error": max(0.0, greatest - found),  # not below 0 by rounding
    }


def plot(folder: Path) -> list[Path]:
    """Draw ratio and additive error of both algorithms, for both gaps, on the G-allocation."""
    rows = read_rows(folder / "figure2.csv")
    with plots.figure(2, rows=2, size=(6.0, 3.9)) as (drawn, axes):
        for i, gap in enumerate(GAPS):
            mine = select(rows, gap=gap, design="all")
            plots.ratio_over_rounds(axes[i], mine, title=f"Approximation ratio, gap {gap:g}")
            axes[i].set_ylim(0, 1.05)
            plots.error_over_rounds(axes[2 + i], mine, title=f"Additive error, gap {gap:g}")
        return plots.save(drawn, folder, "figure2")


def page(folder: Path) -> Page:
    """Say what the figure shows beside what the paper says of its own."""
    rows = read_rows(folder / "figure2.csv")
    table = [
        _line(select(rows, design=design, gap=gap, algorithm=name), design, gap, name)
        for design in DESIGNS
        for gap in GAPS
        for name in RULES
    ]
    header = (
        "measured",
        "gap",
        "algorithm",
        "mean ratio",
        "least",
        "above 0.9",
        "mean ratio from round 252 on",
        "error in its first round",
        f"error in round {ROUNDS:,}",
    )
    whole = select(rows, design="all")
    above = {name: _share(select(whole, algorithm=name)) for name in RULES}
    later = [row for row in whole if row["round"] >= SETS]
    realisations = len({row["realisation"] for row in rows})
    return Page(
        "Figure 2: approximation precision",
        agrees=(
            'The paper: "the approximation ratios of them are almost always greater than 0.9", and '
            "that of SA-FOA with the small gap is around 0.95 and grows. Here, on the "
            f"G-allocation, {above['saqm']:.0%} of SAQM's ratios and {above['sa-foa']:.0%} of "
            f"SA-FOA's are above 0.9, and {_share(later):.0%} of both from round {SETS} on. The "
            "mean of SA-FOA with the small gap is "
            f"{mean(whole, 'ratio', gap=0.1, algorithm='sa-foa'):.3f}. {_errors(whole)}"
        ),
        differs=_differs(rows),
        body=(
            f"n = 10, k = 5, noise N(0, 1) on the total, {realisations} realisations, rounds that "
            "are evenly spread on a logarithmic axis. The G-allocation measures all 252 "
            "super-arms equally often; here in turn, in random order. Lines are means, shaded is "
            "the range of all realisations.\n\n![Figure 2](figure2.png)\n\n"
            f"{markdown_table(header, table)}"
        ),
    )


def _line(rows: Sequence[Row], design: str, gap: float, name: str) -> tuple[str, ...]:
    ratios = [row["ratio"] for row in rows]
    later = [row["ratio"] for row in rows if row["round"] >= SETS]
    start, end = _ends(rows)
    return (
        "all 252 super-arms" if design == "all" else "2n = 20 random ones",
        f"{gap:g}",
        plots.title_of(name),
        f"{np.mean(ratios):.3f}",
        f"{min(ratios):.3f}",
        f"{_share(rows):.0%}",
        f"{np.mean(later):.3f}",
        f"{start:.3g}",
        f"{end:.2g}",
    )


def _share(rows: Sequence[Row]) -> float:
    return float(np.mean([row["ratio"] > 0.9 for row in rows]))


def _ends(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the mean error in the realisations' first and last rounds."""
    runs = {row["realisation"] for row in rows}
    parts = [select(rows, realisation=run) for run in runs]
    start = [min(part, key=lambda row: row["round"])["error"] for part in parts]
    end = [max(part, key=lambda row: row["round"])["error"] for part in parts]
    return float(np.mean(start)), float(np.mean(end))


def _errors(rows: Sequence[Row]) -> str:
    """Say whether errors shrink."""
    ends = [_ends(select(rows, gap=gap, algorithm=name)) for gap in GAPS for name in RULES]
    shrink = sum(end < start for start, end in ends)
    return (
        f"From its first round to the last the mean error shrinks in {shrink} of the {len(ends)} "
        "cases."
    )


def _differs(rows: Sequence[Row]) -> str:
    whole = select(rows, design="all")
    least = min(whole, key=lambda row: row["ratio"])
    few = select(rows, design="2n", algorithm="saqm")
    many = select(rows, design="all", algorithm="saqm")
    below = [row["ratio"] for row in few if row["round"] >= SETS]
    return (
        f"The least ratio on the G-allocation is {least['ratio']:.2f}, of "
        f"{plots.title_of(least['algorithm'])} in round {least['round']:.0f}, while few "
        "super-arms have been measured and the matrix is close to singular. After each whole "
        "cycle of the 252 super-arms all norms are equal, so that every set is the greatest; in "
        "between the matrix is uneven by one pull of some, which matters less and less. (The "
        "paper does not say how its G-allocation was found; a support of fewer super-arms would "
        "explain ratios that stay below 1.) On 2n random super-arms, as Table 2 must have "
        f"had, SAQM's mean ratio from round {SETS} on is {np.mean(below):.2f} (least "
        f"{min(below):.2f}) in place of "
        f"{np.mean([row['ratio'] for row in many if row['round'] >= SETS]):.2f}: a ratio seen on "
        "one design, such as alpha = 0.9, guarantees nothing on another."
    )
