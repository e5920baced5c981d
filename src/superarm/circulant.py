"""Least squares on cyclic plans, by FFT: the information of whole shift-cycles is circulant.

With w_l >= 0 whole cycles of block l, A = sum_l w_l X_l'X_l has the eigenvalues
sum_l w_l |F B_l|^2. Where the shifts of a block have unequal counts T_s, w_l = min T_s, and the
estimate is A^-1 sum_l w_l X_l' ybar_l with ybar_s the mean total of super-arm s: it is unbiased,
and its covariance sigma^2 A^-1 X' diag(w^2/T) X A^-1 is at most sigma^2 A^-1, since w <= T. So all
that holds with A for whole cycles holds at any other look too; with equal counts it is least
squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy.fft import irfft, rfft
from scipy.linalg import circulant

from superarm.cyclic_plan import CyclicPlan
from superarm.differences import Differences
from superarm.errors import SettingError
from superarm.information import Estimate, Information, Matrix, Vector
from superarm.plan import Plan
from superarm.tally import Tally

_LARGEST_MATRIX = 5_000
"""Arms of the largest matrix that is written out for a rule that needs all of it."""


class Circulant(Information):
    """The information of w_l cycles of each block l.

    It is that of the places of a plan; where some arms are at none, nothing is said of them (NaN).
    """

    def __init__(self, plan: CyclicPlan, weights: Vector) -> None:
        self.n, self.plan, self.weights = plan.places, plan, weights
        self.scale = 1.0
        self._eigenvalues: Vector = weights @ plan.powers
        self._memo: dict[Any, Any] = {}

    @property
    def eigenvalues(self) -> Vector:
        """Eigenvalues at frequencies 0 .. m//2."""
        return self.scale * self._eigenvalues

    @property
    def reciprocal_condition(self) -> float:
        """Least eigenvalue / greatest."""
        greatest = float(self._eigenvalues.max())
        return float(self._eigenvalues.min()) / greatest if greatest > 0 else 0.0

    @property
    def relative_error(self) -> float:
        rounding = 16 * math.log2(2 * self.n) * float(np.finfo(np.float64).eps)
        return rounding / self.reciprocal_condition

    def scaled(self, factor: float) -> Circulant:
        other = copy(self)
        other.scale = self.scale * factor
        return other

    def solve(self, b: Vector) -> Vector:
        found = np.asarray(irfft(rfft(b[self.plan.arms]) / self._eigenvalues, self.n))
        return self._of_arms(found / self.scale)

    def diagonal(self) -> Vector:
        return self._of_arms(np.full(self.n, self._row[0] / self.scale))

    def inverse(self) -> Matrix:
        return self._inverse / self.scale

    def homogeneous(self, compute: Callable[[Matrix], Any], key: Any) -> Any:
        if key not in self._memo:
            self._memo[key] = compute(self._inverse)
        return self._memo[key]

    def differences(self, k: int) -> Differences:
        if "differences" not in self._memo:
            error, row = self.relative_error, self._row
            margin = 4 * error * float(row[0])
            low, high = float(row[1:].min()), float(row[1:].max())
            self._memo["differences"] = Differences(
                float(self._eigenvalues[1:].min()) * (1 - error),
                float(row[0]) - low + margin,
                high - low + margin,
            )
        return Differences(*self._memo["differences"]).scaled(self.scale)

    def estimate(self, plan: Plan, tally: Tally) -> Estimate:
        """Return theta^, or the weighted estimate where counts are not those of whole cycles."""
        c, sums = tally.centred()
        counts = tally.counts.reshape(len(self.weights), self.n)
        weights = self.scale * self.weights[:, None]
        if (counts != weights).any():
            sums = (sums.reshape(counts.shape) * (weights / np.maximum(counts, 1))).ravel()
        eigenvalues = self.scale * self._eigenvalues
        centred = np.asarray(irfft(self.plan.scatter(sums) / eigenvalues, self.n))
        rounding = self.relative_error * float(np.linalg.norm(centred))
        return Estimate(c / self.plan.k, self._of_arms(centred), rounding)

    @property
    def _row(self) -> Vector:
        """First row of A^-1, unscaled."""
        if "row" not in self._memo:
            self._memo["row"] = np.asarray(irfft(1.0 / self._eigenvalues, self.n))
        return np.asarray(self._memo["row"])

    @property
    def _inverse(self) -> Matrix:
        if self.n > _LARGEST_MATRIX:
            raise SettingError(
                f"this rule needs a matrix of {self.n:,} x {self.n:,} numbers; choose certified"
            )
        row = (self._row + np.roll(self._row[::-1], 1)) / 2  # symmetric to the bit
        place = np.argsort(self.plan.arms)
        return np.ascontiguousarray(circulant(row)[np.ix_(place, place)])

    def _of_arms(self, values: Vector) -> Vector:
        """Return values by place as values by arm."""
        found = np.full(self.plan.n, np.nan)
        found[self.plan.arms] = values
        return found
