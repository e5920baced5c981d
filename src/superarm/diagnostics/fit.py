"""The additive fit behind all checks: least squares of the totals on the members of their groups.

With N totals y of m different groups, X the m x n matrix of their members, T their counts and w
their weights (1, or 1 / variance), A = X' diag(T w) X; residuals e = y - X A^+ X' W y. What else
might explain the totals, a matrix Z with a row a pull, is compared with e by

    G = Z'WZ - Z'WX A^+ X'WZ,    c = Z'We,

the information on Z when the arms are fitted too, and its score. Nothing here takes longer than
the pulls, but for a factor of A: an n x n matrix where n is moderate, and otherwise none at all
(conjugate gradients).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.sparse import csr_matrix

from superarm._jit import njit
from superarm.errors import SupportError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

_MOST_ARMS = 1_500
_MOST_PRODUCTS = 1_000_000_000
"""Beyond so many arms, or groups times squares of their sizes, no n x n matrix is made."""

_PROBES = 128  # random vectors from which leverages are worked out, where there is no such matrix
_LEAST_CONDITION = 1e-11
_LEAST_SHARE = 1e-8
"""What is left of a column of Z, as a share, for it not to count as explained by the arms."""

_ROUNDING = 1e-24
"""Residuals whose squares are below this share of the squared totals are those of rounding."""


@dataclass(frozen=True)
class Extra:
    """What a matrix Z explains beyond the arms: sum of squares, degrees of freedom, coefficients.

    `inverse` is G^+; `rank` 0 means that Z cannot be told from the arms.
    """

    squares: float
    rank: int
    G: Matrix
    inverse: Matrix
    score: Vector

    @property
    def coefficients(self) -> Vector:
        """G^+ c."""
        return np.asarray(self.inverse @ self.score)


class Fit:
    """Weighted least squares of totals on the members of their groups.

    Parameters
    ----------
    rows
        The arms of each of the m different groups; short rows are filled up by -1.
    group
        The group of each pull, as a row number.
    totals
        The total of each pull.
    n
        Number of arms.
    weights
        A weight for each group; None for equal ones.
    spanned
        What rank the groups have if it is not n, for a fit without a matrix.
    """

    def __init__(
        self,
        rows: Index,
        group: Index,
        totals: Vector,
        n: int,
        weights: Vector | None = None,
        spanned: int | None = None,
    ) -> None:
        m = len(rows)
        self.rows, self.group, self.totals, self.n = rows, group, totals, n
        self.weights = np.ones(m) if weights is None else weights
        self.counts = np.bincount(group, minlength=m)
        inside = rows >= 0
        self.sizes = inside.sum(axis=1)
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        self.X = csr_matrix((np.ones(ends[-1]), rows[inside], ends), shape=(m, n))
        self._w = self.counts * self.weights
        work = m * int(rows.shape[1]) ** 2
        if n <= _MOST_ARMS and work <= _MOST_PRODUCTS:
            self._inverse: Matrix | None
            self._inverse, self.rank = _pseudo_inverse(np.asarray(self._gram().todense()))
        else:
            self._inverse, self.rank = None, n
            self.rank = self._rank(n if spanned is None else spanned)
        # The mean total is taken out where all groups have equal sizes: it is a sum of arms' means.
        level = float(totals.mean()) if (self.sizes == self.sizes[0]).all() else 0.0
        self.means = self._sums(totals - level) / self.counts + level
        theta = self.solve(self.X.T @ (self._w * (self.means - level)))
        self.theta = np.asarray(theta) + level / self.sizes[0]
        self.fitted = np.asarray(self.X @ theta) + level
        self.pull_weights = self.weights[group]
        self.residuals = totals - self.fitted[group]
        smallest = _ROUNDING * float(self.pull_weights @ totals**2)
        self.squares = self._beyond(float(self.pull_weights @ self.residuals**2), smallest)
        within = (totals - level) - (self.means - level)[group]
        self.group_squares = self._sums(within**2)
        self.pure_squares = self._beyond(float(self.weights @ self.group_squares), smallest)
        self.lack_squares = self._beyond(float(self._w @ (self.means - self.fitted) ** 2), smallest)

    @property
    def pulls(self) -> int:
        """Number of totals."""
        return len(self.totals)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.pulls - self.rank

    @property
    def pure_freedom(self) -> int:
        """Degrees of freedom of replicates about their group's mean."""
        return self.pulls - len(self.rows)

    @property
    def lack_freedom(self) -> int:
        """Degrees of freedom of the groups' means about the fit."""
        return len(self.rows) - self.rank

    @property
    def variance(self) -> float:
        """Residual variance (of weight 1)."""
        return self.squares / self.freedom if self.freedom > 0 else 0.0

    @property
    def diagonal(self) -> Vector | None:
        """Diagonal of A^+; None where no matrix is made."""
        return None if self._inverse is None else np.diagonal(self._inverse)

    @cached_property
    def leverages(self) -> Vector:
        """How far each pull's own total moves its fit, w x'A^+x, by group."""
        if self._inverse is not None:
            return np.minimum(1.0, self.weights * quadratics(self.rows, self._inverse))
        # h and 1 - h from the squares of projected random signs, each unbiased.
        rng = np.random.default_rng(0)
        explained, left = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        for _ in range(_PROBES // 16):
            signs = rng.choice([-1.0, 1.0], (len(self.rows), 16)) / np.sqrt(self._w)[:, None]
            fitted = self.X @ self.solve(self.X.T @ (self._w[:, None] * signs))
            explained += (fitted**2).sum(axis=1)
            left += ((signs - fitted) ** 2).sum(axis=1)
        return np.asarray(explained / (explained + left) / self.counts)

    @cached_property
    def standardised(self) -> Vector:
        """Residuals in units of their own standard deviation, s sqrt((1 - h) / w)."""
        scale = np.sqrt(self.variance * np.maximum(0.0, 1 - self.leverages) / self.weights)
        scale = scale[self.group]
        shown = scale > 1e-7 * np.sqrt(self.variance / self.pull_weights)
        return np.where(shown, self.residuals / np.where(shown, scale, 1.0), 0.0)

    @cached_property
    def deleted(self) -> Vector:
        """Residuals by the standard deviation that the other pulls show: t with freedom - 1."""
        r2 = np.minimum(self.standardised**2, self.freedom)
        left = np.maximum(self.freedom - r2, 1e-300)
        return np.asarray(self.standardised * np.sqrt(max(0, self.freedom - 1) / left))

    @property
    def group_residual_squares(self) -> Vector:
        """Sum of squared residuals of each group."""
        return self._sums(self.residuals**2)

    def solve(self, b: Any) -> Any:
        """A^+ b, for a vector or the columns of a matrix."""
        if self._inverse is not None:
            return self._inverse @ b
        return self._iterate(b if b.ndim == 2 else b[:, None]).reshape(b.shape)

    def extra(self, Z: Any, *, centre: bool = True) -> Extra:
        """Return what the columns of Z (dense, or a sparse matrix) explain beyond the arms.

        With `centre`, the columns are first freed of their weighted means.
        """
        weighted = _times(Z, self.pull_weights)
        gram = _dense(Z.T @ weighted)
        mean = np.asarray(weighted.sum(axis=0)).ravel() / float(self.pull_weights.sum())
        sums = _dense(self._by_group() @ weighted)
        score = np.asarray(Z.T @ (self.pull_weights * self.residuals)).ravel()
        if centre:
            whole = float(self.pull_weights.sum())
            gram = gram - whole * np.outer(mean, mean)
            sums = sums - np.outer(self._w, mean)
            score = score - mean * float(self.pull_weights @ self.residuals)
        b = _dense(self.X.T @ sums)
        G = gram - b.T @ self.solve(b)
        scale = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
        values, vectors = eigh((G + G.T) / 2 / np.outer(scale, scale))
        kept = values > _LEAST_SHARE
        half = (vectors[:, kept] / np.sqrt(values[kept])) / scale[:, None]
        explained = float(((half.T @ score) ** 2).sum())
        return Extra(explained, int(kept.sum()), G, half @ half.T, score)

    def beside(self, z: Matrix) -> Vector:
        """One column, freed of its mean and of what the arms explain of it."""
        column = z[:, 0] - float(self.pull_weights @ z[:, 0]) / float(self.pull_weights.sum())
        theta = self.solve(self.X.T @ (self.weights * self._sums(column)))
        return np.asarray(column - (self.X @ theta)[self.group])

    def _by_group(self) -> csr_matrix:
        pulls = np.arange(self.pulls)
        return csr_matrix(
            (np.ones(self.pulls), (self.group, pulls)), shape=(len(self.rows), self.pulls)
        )

    def _sums(self, values: Vector) -> Vector:
        return np.asarray(
            np.bincount(self.group, weights=values, minlength=len(self.rows)), dtype=np.float64
        )

    def _beyond(self, squares: float, smallest: float) -> float:
        return squares if squares > smallest else 0.0

    def _gram(self) -> csr_matrix:
        return self.X.T @ self.X.multiply(self._w[:, None]).tocsr()

    def _rank(self, spanned: int) -> int:
        """n where the groups span everything; else what is known of their span."""
        v = np.random.default_rng(0).standard_normal((self.n, 1))
        image = self.X.T @ (self._w[:, None] * (self.X @ v))
        told = np.abs(self._iterate(image) - v).max() <= 1e-5 * np.abs(v).max()
        if not told and spanned == self.n:
            raise SupportError(
                f"the {len(self.rows):,} measured groups do not tell the {self.n:,} arms apart; "
                "measure others too"
            )
        return self.n if told else spanned

    def _iterate(self, b: Matrix) -> Matrix:
        """Conjugate gradients, all columns at once, scaled by the diagonal of A."""
        scale = 1 / np.maximum(self.X.T @ self._w, 1e-300)[:, None]
        x, r = np.zeros_like(b), b.copy()
        z = scale * r
        p, rz = z.copy(), (r * z).sum(axis=0)
        enough = 1e-24 * rz
        for _ in range(2_000):
            if (rz <= enough).all():
                break
            Ap = self.X.T @ (self._w[:, None] * (self.X @ p))
            step = rz / np.maximum((p * Ap).sum(axis=0), 1e-300)
            step[rz <= enough] = 0.0
            x += step * p
            r -= step * Ap
            z = scale * r
            before, rz = rz, (r * z).sum(axis=0)
            p = z + (rz / np.maximum(before, 1e-300)) * p
        return x


def _pseudo_inverse(A: Matrix) -> tuple[Matrix, int]:
    """Return A^+ and the rank of A."""
    n = len(A)
    scale = 1 / np.sqrt(np.maximum(np.diagonal(A), 1e-300))
    A = A * np.outer(scale, scale)
    try:
        factor = cho_factor(A)
        if np.diagonal(factor[0]).min() ** 2 > 1e-9:
            return cho_solve(factor, np.eye(n)) * np.outer(scale, scale), n
    except LinAlgError:
        pass
    # Unscaled again: the pseudo-inverse of a scaled matrix is not a scaled pseudo-inverse.
    A = A / np.outer(scale, scale)
    values, vectors = eigh(A)
    kept = values > _LEAST_CONDITION * max(1e-300, values[-1])
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, int(kept.sum())


def _times(Z: Any, weights: Vector) -> Any:
    if isinstance(Z, np.ndarray):
        return Z * weights[:, None]
    return Z.multiply(weights[:, None]).tocsr()


def _dense(matrix: Any) -> Matrix:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.todense())


@njit
def quadratics(rows, W):  # type: ignore[no-untyped-def]
    """chi'W chi of every row: O(m k^2)."""
    found = np.zeros(rows.shape[0])
    for r in range(rows.shape[0]):
        for i in rows[r]:
            if i < 0:
                break
            for j in rows[r]:
                if j < 0:
                    break
                found[r] += W[i, j]
    return found
