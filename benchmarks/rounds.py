"""One round of SAQM where every pull is a look: rank-one update, estimate, top-k, peeling, stop."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from common import Options, Row, in_turns, seconds, tell

import superarm as sa
from superarm import reference

CASES = ((24, 12, 4e-6), (111, 10, 30e-6))
LEAST_RATIO = 100


def rows(options: Options) -> list[Row]:
    pulls, repeats = (2_000, 1) if options.quick else (50_000, 7)
    return [
        one_case(n, k, alpha, limit if alpha == 0.9 else None, pulls, repeats)
        for n, k, limit in CASES
        for alpha in (0.9, "certified")
    ]


def one_case(
    n: int, k: int, alpha: float | str, limit: float | None, pulls: int, repeats: int
) -> Row:
    tell(f"SAQM rounds, n={n}, k={k}, alpha={alpha}")
    problem = sa.Problem(n, k, sa.gaussian(1.0), epsilon=0.0)
    # Gaps of 1e-6 / n: no run of any length that is tried here can stop.
    world = sa.environment(np.linspace(0.0, 1e-6, n), problem.noise)
    algorithm = sa.SAQM(alpha=alpha, schedule=sa.Every())

    def run() -> sa.Run:
        return sa.simulate(problem, algorithm, world, rng=1, max_pulls=pulls)

    end = run()
    reference_round = round_of_reference(problem, algorithm, end)
    agree(end, reference_round())
    times = in_turns({"ours": run, "reference": reference_round}, repeats)
    ours = times["ours"].per(pulls)
    ratio = times["reference"].least / ours.least
    target, met = "", None
    if limit is not None:
        target = f"<= {seconds(limit)}, >= {LEAST_RATIO} x"
        met = ours.least <= limit and ratio >= LEAST_RATIO
    what = f"SAQM round, schedule every, n={n}, k={k}, alpha={alpha} ({pulls:,} pulls)"
    return Row(what, str(ours), target, (ratio,), met=met)


def round_of_reference(
    problem: sa.Problem, algorithm: sa.SAQM, run: sa.Run
) -> Callable[[], reference.Sides]:
    """Return the round after the run's last pull but one, given A and b up to then."""
    n, k, t = problem.n, problem.k, run.pulls
    plan = algorithm.first(problem, run.seed).plan
    chis = [reference.indicator(n, row) for row in plan.members(slice(None))]
    last, total = chis[int(plan.order(t - 1, t)[0])], 0.0
    A = sum(c * np.outer(chi, chi) for c, chi in zip(run.tally.counts, chis, strict=True))
    b = sum(s * chi for s, chi in zip(run.tally.totals, chis, strict=True))
    A, b = A - np.outer(last, last), b - total * last

    def one_round() -> reference.Sides:
        # As in reference.least_squares, which would go through all pulls again.
        now = A + np.outer(last, last)
        theta = np.linalg.solve(now, b + total * last)
        inverse = np.linalg.inv(now)
        C = reference.ellipsoid_constant(t, 1.0, n, k, problem.delta)
        W = (inverse + inverse.T) / 2
        return reference.saqm_sides(theta, W, k, problem.epsilon, C, algorithm.alpha)

    return one_round


def agree(run: sa.Run, sides: reference.Sides) -> None:
    """Raise unless both did the same: a run to the end, and the same last look."""
    ours = run.verdict
    same = math.isclose(ours.radius, sides.radius, rel_tol=1e-6) and math.isclose(
        ours.gap, sides.gap, rel_tol=1e-6, abs_tol=1e-12
    )
    if ours.done and not ours.reason.startswith("the limit"):
        raise RuntimeError(f"the run was not to stop: {ours.reason}")
    if not same:
        raise RuntimeError(
            f"superarm has gap {ours.gap} and radius {ours.radius}, "
            f"reference {sides.gap} and {sides.radius}"
        )
