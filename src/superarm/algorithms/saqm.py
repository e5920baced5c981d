"""Algorithm 2, SAQM: static allocation with approximate quadratic maximisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from superarm._checks import real
from superarm._jit import njit_fast
from superarm.algorithms.base import (
    GEOMETRIC,
    PAPER,
    Sides,
    Static,
    Vector,
    check_choice,
    check_enumerable,
)
from superarm.confidence import Constants, Radius, ellipsoid
from superarm.errors import SettingError
from superarm.estimate import Information, Matrix, rank_one
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.quadratic import (
    Maximum,
    Oracle,
    quadratic_maximum,
    spectral_bound,
    spectral_ratio,
    theorem_ratio,
)
from superarm.quadratic.densest import peel_from
from superarm.schedule import Every
from superarm.tally import Tally

Alpha = Literal["certified", "spectral", "theorem"] | float


@dataclass(frozen=True, kw_only=True)
class SAQM(Static):
    """Stop when the lower bound of the best set exceeds all others' upper bound, less epsilon.

    The rule::

        theta^(M^) - C_t |M^| >= max_{M != M^} theta^(M) + C_t |M'| / alpha - epsilon

    Norms are in A_t^-1, and M' is the set of great norm that Algorithm 1 finds.

    Parameters
    ----------
    alpha
        How the norm of M' is turned into an upper bound on the norm of every set. "certified":
        sqrt(U), with U a computed bound, takes its place; "spectral": divide by
        sqrt(lambda_min/lambda_max); "theorem": by the square root of Theorem 1's ratio; a number:
        by that, a guess, so that the verdict carries no certificate. Where the maximum is exact
        (k = 1, or oracle "brute-force") it is used as it is, and nothing is guessed.
    constants
        Of Proposition 1: "corrected", or "paper" as printed.
    oracle
        Densest-k-subgraph oracle: "peeling", or "brute-force" for small cases.
    """

    alpha: Alpha = "certified"
    constants: Constants = "corrected"
    oracle: Oracle = "peeling"

    name: ClassVar[str] = "saqm"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "corrected": {},
        "text": {**PAPER, "alpha": "theorem", "schedule": Every()},
        "experiments": {**PAPER, "alpha": 1.0, "schedule": GEOMETRIC},
    }

    def check_settings(self) -> None:
        check_choice("constants", self.constants, ("corrected", "paper"))
        check_choice("oracle", self.oracle, ("peeling", "brute-force"))
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("certified", "spectral", "theorem"))
        elif not 0 < real("alpha", self.alpha, SettingError) <= 1:
            raise SettingError(f"alpha must be in (0, 1] or a name, not {self.alpha!r}")

    def check(self, problem: Problem) -> None:
        if self.oracle == "brute-force":
            check_enumerable(problem)

    def constant(self, problem: Problem, delta: float) -> Radius:
        log_size = problem.decision.log_size
        return ellipsoid(self.scale(problem), log_size, delta, self.constants)

    def sides(
        self, problem: Problem, phase: Phase, look: int, theta: Vector, info: Information, C: float
    ) -> Sides:
        best, second = problem.decision.best_two(theta)
        gap = float(theta[best].sum() - theta[second].sum())
        chi = np.zeros(problem.n)
        chi[best] = 1.0
        radius = C * (info.norm(chi) + math.sqrt(self._greatest(problem, info)))
        return Sides(best, gap, problem.epsilon, radius)

    def _greatest(self, problem: Problem, info: Information) -> float:
        """Return (|M'|/alpha)^2, or the computed bound U in its place."""
        if self.alpha == "certified" and problem.k > 1 and self.oracle == "peeling":
            return _bound(info, problem.k)

        def maximise(W: Matrix) -> Maximum:
            return quadratic_maximum(W, problem.k, self.oracle)

        value: float = info.homogeneous(maximise, (self.oracle, "maximum")).value / info.scale
        return value * self._inflation(problem, info)

    def _inflation(self, problem: Problem, info: Information) -> float:
        """Return 1/alpha^2; 1 where the maximum is exact."""
        if problem.k == 1 or self.alpha == "certified" or self.oracle == "brute-force":
            return 1.0
        if isinstance(self.alpha, str):
            ratio: float = info.homogeneous(spectral_ratio, "spectral_ratio")
            if self.alpha == "theorem":
                ratio = theorem_ratio(problem.n, problem.k, ratio)
            return 1.0 / ratio if ratio > 0 else math.inf
        return 1.0 / self.alpha**2

    def objection(self, problem: Problem) -> str:
        if isinstance(self.alpha, str) or problem.k == 1 or self.oracle == "brute-force":
            return ""
        return f"alpha = {self.alpha:g} is assumed, not proved (heuristic)"

    def skip(self, problem: Problem, phase: Phase, tally: Tally, look: int, totals: Vector) -> int:
        """Go through rounds with rank-one updates while the rule certainly fails.

        Between two looks s < t the counts grow at most by a factor g, so that A_t^-1 >= A_s^-1/g:
        bounds at s, divided by g, hold from below at t.
        """
        ahead = self.ahead(problem, phase, tally, totals) if self.oracle == "peeling" else None
        if ahead is None:
            return 0
        bounded = self.alpha == "certified" and problem.k > 1
        return int(
            _skip(
                ahead.inverse,
                ahead.theta,
                ahead.rows,
                ahead.totals,
                ahead.positions,
                tally.counts,
                problem.k,
                problem.epsilon,
                ahead.constant.scale,
                ahead.constant.offset,
                self._inflation(problem, ahead.info),
                _bound(ahead.info, problem.k) if bounded else 0.0,
                isinstance(self.alpha, str),
            )
        )


def _bound(info: Information, k: int) -> float:
    """U >= max x'A^-1 x over size-k sets."""
    base: float = info.homogeneous(lambda W: spectral_bound(W, k), "spectral_bound")
    return base / info.scale


@njit_fast
def _skip(  # type: ignore[no-untyped-def]
    inverse, theta, rows, totals, index, counts, k, epsilon, scale, offset, inflation, floor, grows
):
    """Count rounds at which gap + epsilon is below the radius for certain (1e-6 to spare)."""
    n = len(theta)
    now = counts.copy()
    t = now.sum()
    growth = 1.0
    work = np.empty(n)
    row_sums = np.empty(n)
    for i in range(n):
        row_sums[i] = inverse[i].sum()
    diagonal = np.empty(n)
    degree = np.empty(n)
    for r in range(rows.shape[0]):
        rank_one(inverse, theta, row_sums, work, rows[r], totals[r])
        t += 1
        M = index[r]
        now[M] += 1
        growth = max(growth, now[M] / counts[M]) if counts[M] > 0 else np.inf
        best, gap, size = leaders(theta, k)
        for i in range(n):
            diagonal[i] = inverse[i, i]
            degree[i] = row_sums[i] - inverse[i, i]
        far = norm2(inverse, peel_from(inverse, diagonal, degree, k)) if k > 1 else diagonal.max()
        shrink = growth if grows else 1.0
        far = max(far * max(inflation / shrink, 1.0), floor / growth)
        C = scale * np.sqrt(max(0.0, 2.0 * np.log(t) + offset))
        radius = C * (np.sqrt(max(0.0, norm2(inverse, best))) + np.sqrt(max(0.0, far)))
        if gap + epsilon + 1e-9 * size >= radius * (1.0 - 1e-6):
            return r
    return rows.shape[0]


@njit_fast
def leaders(theta, k):  # type: ignore[no-untyped-def]
    """Return the k greatest, the gap between the k-th and the one after, and the largest size."""
    n = len(theta)
    best = np.empty(k, np.int64)
    held = np.empty(k)
    filled = 0
    next_best = -np.inf
    size = 0.0
    lowest = np.int64(0)
    for i in range(n):
        x = theta[i]
        size = max(size, abs(x))
        if filled < k:
            best[filled], held[filled] = i, x
            filled += 1
            if filled == k:
                lowest = np.argmin(held)
        elif x > held[lowest]:
            next_best = max(next_best, held[lowest])
            best[lowest], held[lowest] = i, x
            lowest = np.argmin(held)
        else:
            next_best = max(next_best, x)
    return best, held[lowest] - next_best, size


@njit_fast
def norm2(W, members):  # type: ignore[no-untyped-def]
    """x'Wx for the indicator x of some members."""
    total = 0.0
    for i in members:
        for j in members:
            total += W[i, j]
    return total
