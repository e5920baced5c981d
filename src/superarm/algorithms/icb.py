"""Algorithm 4, ICB: static allocation with independent confidence bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from superarm._jit import njit_fast
from superarm.algorithms.base import GEOMETRIC, PAPER, TIE, Sides, Static, Vector, check_choice
from superarm.confidence import Constants, Radius, ellipsoid, independent
from superarm.estimate import rank_one
from superarm.information import Information
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.schedule import Every
from superarm.tally import Tally


@dataclass(frozen=True, kw_only=True)
class ICB(Static):
    """Stop when no rival can be ahead by epsilon, with one confidence interval an arm.

    The rule::

        max over M != M^ of theta^(M) + C_t sum_{i in M xor M^} s_i < theta^(M^) + epsilon

    where s_i = sqrt(A_t^-1(i, i)). The maximum (problem P_1) is a linear maximisation.

    Parameters
    ----------
    radius
        Where C_t comes from: "independent" (Lemma 1) or "ellipsoid" (Proposition 1, wider: what
        the paper's Table 2 must have used).
    constants
        "corrected", or "paper" as printed.
    """

    radius: Literal["independent", "ellipsoid"] = "independent"
    constants: Constants = "corrected"

    name: ClassVar[str] = "icb"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "corrected": {},
        "text": {**PAPER, "schedule": Every()},
        "experiments": {**PAPER, "radius": "ellipsoid", "schedule": GEOMETRIC},
    }

    def check_settings(self) -> None:
        check_choice("radius", self.radius, ("independent", "ellipsoid"))
        check_choice("constants", self.constants, ("corrected", "paper"))

    def constant(self, problem: Problem, delta: float) -> Radius:
        sigma = self.scale(problem)
        if self.radius == "ellipsoid":
            return ellipsoid(
                sigma, problem.decision.log_size, delta, self.constants, self.schedule.number
            )
        return independent(sigma, problem.n, delta, self.constants, self.schedule.number)

    def sides(
        self, problem: Problem, phase: Phase, look: int, theta: Vector, info: Information, C: float
    ) -> Sides:
        best = problem.decision.best(theta)
        width = C * np.sqrt(info.diagonal())
        optimistic = theta + width
        optimistic[best] = theta[best] - width[best]
        rival = problem.decision.best_except(optimistic, best)
        assert rival is not None  # a problem with one group needs no look
        out, into = np.setdiff1d(best, rival), np.setdiff1d(rival, best)
        gap = float(theta[out].sum() - theta[into].sum())
        radius = float(width[out].sum() + width[into].sum())
        return Sides(best, gap, problem.epsilon, radius, strict=True)

    def objection(self, problem: Problem) -> str:
        if self.radius == "independent" and self.constants == "paper":
            return "Lemma 1, as printed, does not hold at level delta"
        return ""

    def skip(self, problem: Problem, phase: Phase, tally: Tally, look: int, totals: Vector) -> int:
        ahead = self.ahead(problem, phase, tally, totals)
        if ahead is None:
            return 0
        C = ahead.constant
        return int(
            _skip(
                ahead.inverse,
                ahead.theta,
                ahead.rows,
                ahead.totals,
                ahead.t,
                problem.k,
                problem.epsilon,
                C.scale,
                C.slope,
                C.offset,
            )
        )


@njit_fast
def _skip(inverse, theta, rows, totals, t, k, epsilon, scale, slope, offset):  # type: ignore[no-untyped-def]
    """Count rounds at which some rival exceeds epsilon for certain (1e-6 to spare)."""
    n = len(theta)
    work = np.empty(n)
    row_sums = np.zeros(n)  # of no use here
    for r in range(rows.shape[0]):
        rank_one(inverse, theta, row_sums, work, rows[r], totals[r])
        t += 1
        C = scale * np.sqrt(max(0.0, slope * np.log(t) + offset))
        order = np.argsort(-theta)
        for i in range(n):
            work[i] = C * np.sqrt(inverse[i, i])
        # The best swaps pair the cheapest to lose with the most promising to gain.
        lose = np.sort(np.array([work[i] - theta[i] for i in order[:k]]))[::-1]
        gain = np.sort(np.array([work[j] + theta[j] for j in order[k:]]))[::-1]
        excess = lose[0] + gain[0]
        for d in range(1, min(len(lose), len(gain))):
            if lose[d] + gain[d] <= 0.0:
                break
            excess += lose[d] + gain[d]
        size = 1e-6 * (C + np.abs(theta).max())
        if theta[order[k - 1]] - theta[order[k]] <= TIE * (C + np.abs(theta).max()):
            # Rounding chose the best set. Any such has one of these inside and one outside.
            excess = 2.0 * work.min()
        if excess <= epsilon + size:
            return r
    return rows.shape[0]
