"""The certified default: one look at many arms, its growth, and the maximum over all sets."""

from __future__ import annotations

from functools import partial

import numpy as np
from common import Options, Row, in_turns, seconds, tell, times_faster
from growth import figures, listed

import superarm as sa
from superarm import reference
from superarm.information import Information
from superarm.phase import Phase
from superarm.tally import Tally

LIMIT = 60e-3
BLOCKS = 8


def rows(options: Options) -> list[Row]:
    quick = options.quick
    repeats = 1 if quick else 7
    return [
        look_row(1_000 if quick else 100_000, 100, repeats),
        growth_row((100, 300) if quick else (1_000, 10_000, 100_000, 1_000_000), repeats),
        maximum_row(10 if quick else 20, 8 if quick else 12, repeats),
    ]


def look_row(n: int, k: int, repeats: int) -> Row:
    tell(f"a look of certified, n={n:,}, k={k}, {BLOCKS} blocks")
    small, few = 12, 6
    calls = {
        "large": look_at(n, k),
        "small": look_at(small, few),
        "reference": look_of_reference(small, few),
    }
    times = in_turns(calls, repeats)
    return Row(
        f"a look of certified, n={n:,}, k={k}, {BLOCKS} blocks, epsilon 0",
        str(times["large"]),
        f"<= {seconds(LIMIT)}",
        (times["reference"].least / times["small"].least,),
        f"at n={small}, k={few}",
        times["large"].least <= LIMIT,
    )


def growth_row(sizes: tuple[int, ...], repeats: int) -> Row:
    tell("growth of a look of certified")
    times = in_turns({str(n): look_at(n, n // 20, 0.1) for n in sizes}, min(3, repeats))
    taken = [times[str(n)].least for n in sizes]
    return Row(
        f"growth: a look of certified, {BLOCKS} blocks, k = n/20, all levels, n = {listed(sizes)}",
        figures(sizes, taken),
    )


def maximum_row(n: int, small: int, repeats: int) -> Row:
    """Time the bound on all sets by one sort, beside every set by NumPy, and by reference."""
    tell("the levels maximum and brute force")
    problem, theta, info, radii = maximum_case(n)
    tiny = maximum_case(small)
    A = np.linalg.inv(tiny[2].inverse())
    times = in_turns(
        {
            "ours": partial(sides, problem, theta, info, radii),
            "brute": partial(brute_force, problem, theta, info, radii),
            "small": partial(sides, *tiny),
            "reference": partial(
                reference.certified_sides, tiny[1], A, small // 2, 0.1, tiny[3].tolist()
            ),
        },
        min(3, repeats),
    )
    found = sides(problem, theta, info, radii)
    if found.radius - found.gap < brute_force(problem, theta, info, radii) * (1 - 1e-9):
        raise RuntimeError("a set is beyond the levels maximum")
    ratio = times_faster(times["brute"].least / times["ours"].least)
    return Row(
        f"levels maximum over C({n}, {n // 2}) = {problem.decision.size:,} sets",
        f"{times['ours']}; all sets by NumPy: {seconds(times['brute'].least)}, {ratio}",
        ratios=(times["reference"].least / times["small"].least,),
        note=f"at n={small}",
    )


def look_at(n: int, k: int, epsilon: float = 0.0) -> partial[object]:
    """Return a look after three cycles."""
    problem = sa.Problem(n, k, sa.gaussian(1.0), epsilon=epsilon)
    rule = sa.Certified(design=sa.Cyclic(BLOCKS))
    phase = rule.first(problem, 1)
    assert isinstance(phase, Phase)
    world = sa.environment(np.random.default_rng(1).normal(size=n), problem.noise)
    tally = Tally(phase.plan.size)
    world.add(tally, phase.plan, 0, 3 * phase.plan.size, np.random.default_rng(1))
    return partial(rule.look, problem, phase, tally, 3)


def look_of_reference(n: int, k: int) -> partial[object]:
    """Return the same from single pulls, dense, by enumeration."""
    problem = sa.Problem(n, k, sa.gaussian(1.0))
    plan = sa.Cyclic(BLOCKS).plan(problem, np.random.default_rng(1))
    totals = np.random.default_rng(1).normal(size=3 * plan.size)
    return partial(
        reference.certified_run,
        n,
        [tuple(map(int, block)) for block in plan.blocks],
        [3],
        lambda s: float(totals[s]),
        sigma=1.0,
        epsilon=0.0,
        delta=0.05,
        rho=20.0,
    )


Case = tuple[sa.Problem, np.ndarray, Information, np.ndarray]


def maximum_case(n: int) -> Case:
    problem = sa.Problem(n, n // 2, sa.gaussian(1.0), epsilon=0.1)
    rule = sa.Certified(design=sa.Cyclic(4))
    phase = rule.first(problem, 1)
    assert isinstance(phase, Phase)
    theta = np.random.default_rng(2).normal(size=n)
    t = 10 * phase.plan.size
    return problem, theta, phase.whole.scaled(10.0), rule.constant(problem, 0.05).at(t)


def sides(problem: sa.Problem, theta: np.ndarray, info: Information, radii: np.ndarray) -> object:
    def widths(info: Information, k: int) -> np.ndarray:
        return radii * np.sqrt(info.differences(k).squares(len(radii)))

    return sa.Certified().sides(problem, None, 1, theta, info, widths)


def brute_force(
    problem: sa.Problem, theta: np.ndarray, info: Information, radii: np.ndarray
) -> float:
    """Return the maximum over all sets, each with its own norm."""
    X = np.zeros((problem.decision.size, problem.n))
    np.put_along_axis(X, problem.decision.enumerate(), 1.0, axis=1)
    X[:, problem.decision.best(theta)] -= 1.0
    d = (X > 0).sum(axis=1)
    X, d = X[d > 0], d[d > 0]
    norms = np.sqrt(np.einsum("xi,xi->x", X @ info.inverse(), X))
    return float((X @ theta + radii[d - 1] * norms).max())
