"""Allocations: proportions of super-arms with a proof of how good they are; D-optimal exchange.

For proportions p the information of a pull is Lambda_p = sum p_M chi_M chi_M'. What a design keeps
small is the greatest y' Lambda_p^-1 y over some directions y: the super-arms themselves (G), or
differences (XY). Where the super-arms span less than R^n all is done on their span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from superarm._checks import real, whole
from superarm._jit import njit
from superarm.decision import as_rows, indicators
from superarm.design.support import independent_rows
from superarm.errors import SettingError, SupportError
from superarm.estimate import Dense, gram

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

MOST_ARMS = 10_000
"""With more arms than this, the information would not fit into most memories."""

ITERATIONS = 1000
"""Limit of iterations where none is given."""

_LEAST = 1e-8  # smallest share of the greatest proportion that is kept (a plan takes 1e-9)
_PAIRS = 20_000  # pairs of an exchange, after which the inverse is worked out anew


@dataclass(frozen=True, eq=False)
class Allocation:
    """Proportions of super-arms, and what is proved of them.

    Parameters
    ----------
    rows
        The super-arms with a proportion above 0: a row of ascending arm indices each, filled up
        by -1 where they differ in size.
    proportions
        Their shares of the pulls; they add up to 1.
    value
        The greatest y' Lambda_p^-1 y over the directions y that count (where these are the sets of
        a class too large to go through: over those that a search found).
    upper
        Proved: the greatest over all directions is not above it. The same as `value` wherever all
        directions are compared.
    bound
        Proved: no proportions have a value below it.
    tolerance
        The gap that was asked for.
    iterations
        How many it took.
    """

    rows: Rows
    proportions: Vector
    value: float
    upper: float
    bound: float
    tolerance: float
    iterations: int

    @property
    def gap(self) -> float:
        """value / bound - 1: no proportions can be better by more than this."""
        return max(0.0, self.value / self.bound - 1)

    @property
    def proved_gap(self) -> float:
        """upper / bound - 1: the same, proved over all directions."""
        return max(0.0, self.upper / self.bound - 1)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance.

        False when the limit of iterations came first, or rounding did. (A gap that rounding alone
        would make counts as none.)
        """
        return self.gap <= self.tolerance * (1 + 1e-9) + 1e-12

    def details(self) -> dict[str, Any]:
        """Return what a reader of the result has to know, as plain data."""
        return {
            "value": self.value,
            "upper": self.upper,
            "bound": self.bound,
            "gap": self.gap,
            "converged": self.converged,
        }

    def __str__(self) -> str:
        state = "" if self.converged else f", not within {self.tolerance:g}"
        return (
            f"{len(self.rows)} super-arms, value {self.value:.6g}, at least {self.bound:.6g} "
            f"(gap {self.gap:.2g}{state})"
        )


@dataclass(frozen=True, eq=False)
class Support:
    """Super-arms that may be measured, a row each, and the span in which all is done.

    `basis` is None when they span all of R^n.
    """

    rows: Rows
    n: int
    basis: Matrix | None

    @property
    def dimension(self) -> int:
        """Dimension of the span."""
        return self.n if self.basis is None else self.basis.shape[1]

    @cached_property
    def vectors(self) -> Matrix:
        """Indicators of the super-arms, in coordinates of the span."""
        return self.coordinates(indicators(self.rows, self.n))

    def coordinates(self, x: Matrix) -> Matrix:
        """Return vectors of the span in its coordinates."""
        return x if self.basis is None else x @ self.basis

    def inverse(self, proportions: Vector) -> Matrix | None:
        """Lambda_p^-1 on the span, None where rounding could reach it."""
        info = Dense(gram(self.rows, proportions, self.n), self.basis)
        return np.ascontiguousarray(info.inverse()) if info.usable else None

    def usable(self, p: Vector, other: Vector, share: float) -> tuple[Vector, Matrix]:
        """Return p and Lambda_p^-1, with a share (or more) of other proportions if need be.

        Where few directions count, the best proportions may leave others undetermined. A share a
        of other ones makes no norm greater than 1 / (1 - a) of what it was.
        """
        while True:
            W = self.inverse(p)
            if W is not None:
                return p, W
            p = (1 - share) * p + share * other
            share = min(1.0, 4 * share)

    def forms(self, W: Matrix) -> Vector:
        """x'Wx of each super-arm."""
        return forms(self.rows, W)

    def only(self, chosen: Any) -> Support:
        """Return the part with these rows (a mask or indices), which must have the same span."""
        return Support(np.ascontiguousarray(self.rows[chosen]), self.n, self.basis)

    def plus(self, rows: Rows) -> Support:
        """Return the support with more rows, of the same span."""
        width = max(self.rows.shape[1], rows.shape[1])
        parts = [
            np.pad(r, ((0, 0), (0, width - r.shape[1])), constant_values=-1)
            for r in (self.rows, rows)
        ]
        return Support(np.ascontiguousarray(np.concatenate(parts)), self.n, self.basis)


def support_of(rows: Rows, n: int) -> Support:
    """Return rows with a basis of what they span."""
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    first = independent_rows(rows, n, n)
    basis = None
    if len(first) < n:
        basis = np.ascontiguousarray(np.linalg.qr(indicators(rows[first], n).T)[0])
    return Support(rows, n, basis)


def read_support(sets: Any, n: int | None) -> Support:
    """Check a user's super-arms (tuples of arm indices, or rows filled up by -1)."""
    if isinstance(sets, str | bytes) or not isinstance(sets, Iterable):
        raise SupportError(f"a support is a list of super-arms, not {sets!r}")
    chosen = [_members(members) for members in sets]
    if not chosen:
        raise SupportError("the support is empty: give at least one super-arm")
    if len(set(chosen)) < len(chosen):
        raise SupportError("the support lists a super-arm twice")
    most = max(max(members) for members in chosen)
    arms = most + 1 if n is None else whole("n", n, SettingError, least=1)
    if max(most + 1, arms) > MOST_ARMS:
        raise SettingError(
            f"{max(most + 1, arms):,} arms are too many for a design; there may be {MOST_ARMS:,}"
        )
    if most >= arms:
        raise SupportError(f"there is no arm of index {most} among {arms} arms")
    return support_of(as_rows(chosen), arms)


def _members(members: Any) -> tuple[int, ...]:
    if isinstance(members, str | bytes) or not isinstance(members, Iterable):
        raise SupportError("a support is a list of super-arms, each a list of arm indices")
    arms = [whole("an arm's index in a support", i, SupportError, least=-1) for i in members]
    held = tuple(sorted(i for i in arms if i >= 0))
    if not held or len(set(held)) < len(held):
        raise SupportError(f"super-arm {tuple(arms)} is not a set of different arm indices")
    return held


def read_directions(directions: Any, support: Support) -> Matrix:
    """Check a user's directions."""
    try:
        vectors = np.array(directions, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError("directions must be rows of numbers, all of one length") from None
    if vectors.ndim != 2 or vectors.shape[1] != support.n or not len(vectors):
        raise SettingError(
            f"directions must be rows of {support.n} numbers, not of shape {vectors.shape}"
        )
    size = np.abs(vectors).max(axis=1)
    if not ((size > 1e-100) & (size < 1e100)).all():
        raise SettingError("each direction must be of finite numbers that are not all 0")
    check_span(vectors, support, "directions")
    return vectors


def check_span(vectors: Matrix, support: Support, what: str) -> None:
    """Raise SupportError for directions that no combination of super-arms gives."""
    if support.basis is None:
        return
    outside = vectors - vectors @ support.basis @ support.basis.T
    lost = np.flatnonzero(np.abs(outside).max(axis=1) > 1e-7 * np.abs(vectors).max(axis=1))
    if len(lost):
        raise SupportError(
            f"{len(lost)} of the {what} cannot be told by these {len(support.rows)} super-arms, "
            f"the first is number {lost[0] + 1}; add super-arms whose combinations give them"
        )


def check_limits(tolerance: Any, iterations: Any) -> tuple[float, int]:
    """Return a tolerance > 0 and a limit of iterations, or raise SettingError."""
    gap = real("tolerance", tolerance, SettingError)
    if not 0 < gap < float("inf"):
        raise SettingError(f"tolerance must be a number > 0, not {tolerance!r}")
    return gap, whole("iterations", iterations, SettingError, least=1)


def trimmed(proportions: Vector, value: Callable[[Vector], float], limit: float) -> Vector:
    """Leave out as many of the smallest proportions as the value, worked out anew, allows.

    The rest is made to add up to 1. By bisection, as if the value grew with each that is left out;
    whatever is returned has been found to be within `limit`, unless nothing is.
    """
    order = np.argsort(proportions, kind="stable")

    def without(count: int) -> Vector:
        kept = proportions.copy()
        kept[order[:count]] = 0.0
        kept[kept > 0] = np.maximum(kept[kept > 0], _LEAST * kept.max())
        return kept / kept.sum()

    low, high = int((proportions <= 0).sum()), len(proportions)
    while high - low > 1:
        middle = (low + high) // 2
        if value(without(middle)) <= limit:
            low = middle
        else:
            high = middle
    return without(low)


class Exchanged(NamedTuple):
    """Proportions, their greatest x' Lambda_p^-1 x over the rows, and the sweeps it took."""

    proportions: Vector
    value: float
    sweeps: int


def d_optimal(support: Support, start: Vector, tolerance: float, sweeps: int) -> Exchanged:
    """Maximise log det Lambda_p, until the greatest x' Lambda_p^-1 x is at most (1 + tolerance) d.

    Each sweep pairs the rows of least with those of greatest x' Lambda_p^-1 x, and moves between
    the two of a pair what raises the determinant most.
    """
    p = np.array(start, dtype=np.float64)
    goal = (1 + tolerance) * support.dimension
    best, least = p, np.inf
    for sweep in range(sweeps + 1):
        W = support.inverse(p)
        if W is None and sweep == 0:
            raise SupportError(
                f"the {len(p)} super-arms of the support hardly tell the arms apart: choose more"
            )
        if W is None:
            break
        norms = support.forms(W)
        if norms.max() < least:
            best, least = p, float(norms.max())
        if least <= goal or sweep == sweeps:
            return Exchanged(best, least, sweep)
        held = np.flatnonzero(p > 0)
        low = held[np.argsort(norms[held], kind="stable")][:_PAIRS]
        high = np.argsort(-norms, kind="stable")[: len(low)]
        p = p.copy()
        _exchange(support.rows, p, W, low[: len(high)], high)
        p /= p.sum()
    return Exchanged(best, least, sweep)


# No `njit_fast` here: how sums are ordered may change when a kernel comes from the cache, and then
# the same seed would give another plan.


@njit
def forms(rows, W):  # type: ignore[no-untyped-def]
    """x'Wx for the indicator x of each row, W symmetric: O(m k^2)."""
    values = np.empty(rows.shape[0])
    for r in range(rows.shape[0]):
        row = rows[r]
        total = 0.0
        for a in range(len(row)):
            i = row[a]
            if i < 0:
                break
            half = 0.0
            for b in range(a):
                half += W[i, row[b]]
            total += W[i, i] + 2.0 * half
        values[r] = total
    return values


@njit
def _exchange(rows, p, W, low, high):  # type: ignore[no-untyped-def]
    """Move weight from row low[q] to row high[q], one pair after the other; W follows.

    Moving a from j to i multiplies the determinant by 1 + a (g_i - g_j) - a^2 (g_i g_j - g_ij^2),
    g_ij = x_i'W x_j, so that a = (g_i - g_j) / (2 (g_i g_j - g_ij^2)) is best.
    """
    work = np.empty(W.shape[0])
    for q in range(len(low)):
        i, j = high[q], low[q]
        if i == j or p[j] <= 0.0:
            continue
        g_i, g_j = _form(W, rows[i], rows[i]), _form(W, rows[j], rows[j])
        g_ij = _form(W, rows[i], rows[j])
        volume = g_i * g_j - g_ij * g_ij
        if volume <= 1e-12 * g_i * g_j:
            continue
        step = min(max((g_i - g_j) / (2.0 * volume), -p[i]), p[j])
        _rank_one(W, rows[i], step, work)
        _rank_one(W, rows[j], -step, work)
        p[i] = 0.0 if step == -p[i] else p[i] + step
        p[j] = 0.0 if step == p[j] else p[j] - step


@njit
def _form(W, first, second):  # type: ignore[no-untyped-def]
    """x'Wy for the indicators of two rows."""
    total = 0.0
    for i in first:
        if i < 0:
            break
        for j in second:
            if j < 0:
                break
            total += W[i, j]
    return total


@njit
def _rank_one(W, row, step, work):  # type: ignore[no-untyped-def]
    """Turn W = A^-1 into (A + step x x')^-1 (Sherman-Morrison): O(n^2)."""
    n = W.shape[0]
    work[:] = 0.0
    along = 0.0
    for i in row:
        if i < 0:
            break
        for c in range(n):
            work[c] += W[i, c]
    for i in row:
        if i < 0:
            break
        along += work[i]
    factor = step / (1.0 + step * along)
    for i in range(n):
        scaled = factor * work[i]
        for c in range(n):
            W[i, c] -= scaled * work[c]
