"""From a tally to least squares: theta^ = A^-1 b with A = sum T_M chi chi', b = sum S_M chi."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from superarm._jit import njit, njit_fast
from superarm.circulant import Circulant
from superarm.cyclic_plan import CyclicPlan
from superarm.differences import Differences, differences_of
from superarm.information import Estimate, Information
from superarm.plan import Plan
from superarm.tally import Tally

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_SMALL = 256
"""Up to this size our own kernel beats LAPACK, whose threads cost more than they bring."""

_potrf, _potri, _potrs, _pocon = get_lapack_funcs(("potrf", "potri", "potrs", "pocon"), dtype="d")


class Dense(Information):
    """A written out and factored once (Cholesky).

    `scaled` shares the factor: after c whole cycles of a plan, A is c times that of one cycle.
    With a `basis` Q of a span, all is done there: A^-1 is then Q (Q'AQ)^-1 Q', the inverse on it.
    """

    def __init__(self, matrix: Matrix, basis: Matrix | None = None) -> None:
        self.n = len(matrix)
        self.scale = 1.0
        self._matrix, self._basis = matrix, basis
        self._core = _Core(matrix, basis)

    @property
    def reciprocal_condition(self) -> float:
        return self._core.reciprocal_condition

    @property
    def relative_error(self) -> float:
        return 4 * self.n * float(np.finfo(np.float64).eps) / self._core.reciprocal_condition

    def scaled(self, factor: float) -> Dense:
        other = object.__new__(Dense)
        other.n, other._matrix, other._core = self.n, self._matrix, self._core
        other._basis = self._basis
        other.scale = self.scale * factor
        return other

    def plus(self, rows: NDArray[np.int64]) -> Dense:
        """Return the information with one more pull of each of these super-arms."""
        more = gram(rows, np.ones(len(rows), dtype=np.int64), self.n)
        return Dense(self.scale * self._matrix + more, self._basis)

    def solve(self, b: Vector) -> Vector:
        if self._basis is None:
            x, _ = _potrs(self._core.factor, b)
            return np.asarray(x) / self.scale
        x, _ = _potrs(self._core.factor, self._basis.T @ b)
        return (self._basis @ np.asarray(x)) / self.scale

    def diagonal(self) -> Vector:
        return np.diagonal(self._core.inverse) / self.scale

    def inverse(self) -> Matrix:
        return self._core.inverse / self.scale

    def differences(self, k: int) -> Differences:
        key = "differences", k
        if key not in self._core.memo:
            error = self.relative_error
            found = differences_of(self._matrix, self._core.inverse, k)
            margin = 4 * error * float(np.abs(self._core.inverse).max())
            self._core.memo[key] = Differences(
                found.least - error * float(np.trace(self._matrix)),
                found.diagonal + margin,
                found.spread + margin,
            )
        found = self._core.memo[key]
        return Differences(*found).scaled(self.scale)

    def homogeneous(self, compute: Callable[[Matrix], Any], key: Any) -> Any:
        if key not in self._core.memo:
            self._core.memo[key] = compute(self._core.inverse)
        return self._core.memo[key]

    def estimate(self, plan: Plan, tally: Tally) -> Estimate:
        """Return theta^ = A^-1 b.

        A level c/k common to all arms is taken out before the solve (A 1 = k sum T_M chi_M), where
        all super-arms have k arms.
        """
        c, sums = (0.0, tally.totals) if plan.k is None else tally.centred()
        centred = self.solve(scatter(plan.members(slice(None)), sums, plan.n))
        size = float(np.abs(centred).max())
        return Estimate(c / (plan.k or 1), centred, self.relative_error * size)


class _Core:
    """A Cholesky factor and what has been worked out from it."""

    def __init__(self, matrix: Matrix, basis: Matrix | None) -> None:
        self.basis = basis
        if basis is not None:
            matrix = basis.T @ matrix @ basis
        self.factor, failed = _potrf(matrix)
        self.reciprocal_condition = 0.0
        if not failed:
            one_norm = np.abs(matrix).sum(axis=0).max()
            self.reciprocal_condition = float(_pocon(self.factor, one_norm)[0])
        self.memo: dict[Any, Any] = {}

    @cached_property
    def inverse(self) -> Matrix:
        if self.basis is None:
            return self._small
        inverse: Matrix = self.basis @ self._small @ self.basis.T
        return (inverse + inverse.T) / 2

    @property
    def _small(self) -> Matrix:
        if len(self.factor) <= _SMALL:
            return inverse_from_factor(np.ascontiguousarray(self.factor))
        upper = np.triu(_potri(self.factor)[0])
        return np.ascontiguousarray(upper + np.triu(upper, 1).T)


def information(plan: Plan, counts: NDArray[np.int64]) -> Information:
    """Return A = sum T_M chi_M chi_M' for these counts; on a cyclic plan, of whole shift-cycles."""
    if isinstance(plan, CyclicPlan):
        return Circulant(plan, counts.reshape(-1, plan.places).min(axis=1).astype(np.float64))
    return Dense(gram(plan.members(slice(None)), counts, plan.n), plan.basis)


def least_squares(plan: Plan, tally: Tally, info: Information) -> Estimate:
    """Return theta^ from a tally and its information."""
    return info.estimate(plan, tally)


@njit
def gram(rows, counts, n):  # type: ignore[no-untyped-def]
    """A = sum counts[r] chi_r chi_r': O(m k^2), exact (whole numbers)."""
    matrix = np.zeros((n, n))
    for r in range(rows.shape[0]):
        weight = float(counts[r])
        if weight != 0.0:
            for i in rows[r]:
                if i < 0:
                    break
                for j in rows[r]:
                    if j < 0:
                        break
                    matrix[i, j] += weight
    return matrix


@njit
def scatter(rows, totals, n):  # type: ignore[no-untyped-def]
    """b = sum totals[r] chi_r: O(m k)."""
    b = np.zeros(n)
    for r in range(rows.shape[0]):
        for i in rows[r]:
            if i < 0:
                break
            b[i] += totals[r]
    return b


@njit_fast
def inverse_from_factor(U):  # type: ignore[no-untyped-def]
    """A^-1 for A = U'U: X = U'^-1 row by row, then X'X; O(n^3/2), along rows."""
    n = U.shape[0]
    X = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            factor = U[j, i]
            for c in range(j + 1):
                X[i, c] -= factor * X[j, c]
        for c in range(i):
            X[i, c] /= U[i, i]
        X[i, i] = 1.0 / U[i, i]
    inverse = np.zeros((n, n))
    for r in range(n):
        for i in range(r + 1):
            factor = X[r, i]
            for j in range(i + 1):
                inverse[i, j] += factor * X[r, j]
    for i in range(n):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return inverse


@njit_fast
def rank_one(inverse, theta, row_sums, work, members, total):  # type: ignore[no-untyped-def]
    """Add one pull to A^-1 (Sherman-Morrison), theta^ and the row sums of A^-1: O(n^2).

    u = A^-1 chi, s = 1 + chi' u:  A^-1 -= u u'/s,  theta^ += u (total - chi' theta^)/s.
    """
    n = inverse.shape[0]
    for i in range(n):
        work[i] = 0.0
    for m in members:
        for i in range(n):
            work[i] += inverse[m, i]
    s = 1.0
    fitted = 0.0
    for m in members:
        s += work[m]
        fitted += theta[m]
    whole = 0.0
    for i in range(n):
        whole += work[i]
    step = (total - fitted) / s
    for i in range(n):
        factor = work[i] / s
        theta[i] += work[i] * step
        row_sums[i] -= factor * whole
        for j in range(n):
            inverse[i, j] -= factor * work[j]


@njit
def advance(inverse, theta, rows, totals):  # type: ignore[no-untyped-def]
    """Add many pulls one after the other, in place."""
    work = np.empty(len(theta))
    row_sums = inverse.sum(axis=0)
    for r in range(rows.shape[0]):
        rank_one(inverse, theta, row_sums, work, rows[r], totals[r])
