"""Algorithm 5, Exhaustive: the exact confidence bound of every difference, by enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from superarm._jit import njit
from superarm.algorithms.base import (
    GEOMETRIC,
    PAPER,
    TIE,
    Sides,
    Static,
    Vector,
    check_choice,
    check_enumerable,
)
from superarm.confidence import Constants, Radius, ellipsoid
from superarm.estimate import rank_one
from superarm.information import Information
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.quadratic.exact import best_upper
from superarm.quadratic.family import best_row, members_of
from superarm.schedule import Every
from superarm.tally import Tally


@dataclass(frozen=True, kw_only=True)
class Exhaustive(Static):
    """Stop when no rival can be ahead by epsilon, by the exact bound of every difference.

    The rule::

        max over M != M^ of theta^(M) + C_t |M - M^| < theta^(M^) + epsilon

    The cost of a look grows with the number of super-arms, C(n, k) of the k of n.

    Parameters
    ----------
    constants
        Of Proposition 1: "corrected", or "paper" as printed.
    """

    constants: Constants = "corrected"

    name: ClassVar[str] = "exhaustive"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "corrected": {},
        "text": {**PAPER, "schedule": Every()},
        "experiments": {**PAPER, "schedule": GEOMETRIC},
    }

    def check_settings(self) -> None:
        check_choice("constants", self.constants, ("corrected", "paper"))

    def check(self, problem: Problem) -> None:
        check_enumerable(problem)

    def constant(self, problem: Problem, delta: float) -> Radius:
        log_size = problem.decision.log_size
        return ellipsoid(self.scale(problem), log_size, delta, self.constants, self.schedule.number)

    def sides(
        self, problem: Problem, phase: Phase, look: int, theta: Vector, info: Information, C: float
    ) -> Sides:
        best = problem.decision.best(theta)
        inside = np.zeros(problem.n, dtype=np.bool_)
        inside[best] = True
        W = info.inverse()
        towards = W @ inside
        # |M - M^|^2 = chi'W chi - 2 (W chi^)(M) + chi^' W chi^
        own = float(towards[best].sum())
        if problem.topk:
            rival = best_upper(theta, W, -2 * towards, own, C, True, problem.k, inside)
        else:
            rows = problem.decision.listed
            rival = members_of(rows[best_row(rows, theta, W, -2 * towards, own, C, True, inside)])
        x = inside.astype(np.float64)
        x[rival] -= 1.0
        return Sides(best, float(x @ theta), problem.epsilon, C * info.norm(x), strict=True)

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

    def objection(self, problem: Problem) -> str:
        return ""


@njit
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
        best = order[:k]
        size = C + np.abs(theta).max()
        if theta[best[-1]] - theta[order[k]] <= TIE * size:  # rounding chose the best set
            return r
        inside = np.zeros(n, np.bool_)
        inside[best] = True
        towards = np.zeros(n)
        for i in best:
            towards += inverse[i]
        own = towards[best].sum()
        rival = best_upper(theta, inverse, -2 * towards, own, C, True, k, inside)
        square = own
        for i in rival:
            square -= 2 * towards[i]
            for j in rival:
                square += inverse[i, j]
        excess = theta[rival].sum() - theta[best].sum() + C * np.sqrt(max(0.0, square))
        if excess <= epsilon + 1e-6 * size:
            return r
    return rows.shape[0]
