"""T* by fully corrective Frank-Wolfe: solve for some super-arms and rivals, add what objects.

For weights v on rivals y_r let C = sum v_r y_r y_r' and W be symmetric. By Cauchy and Schwarz no
design has a value below ::

    tr(W C)^2 / max over size-k sets of x'WCWx

(see `xy_optimal`, which takes the maximum over a given support); with a certified upper bound on
the maximum over all C(n, k) sets it holds for all designs. Rivals that are left out only lower it.

Arms of equal means, all in M* or all outside, may change places without changing the instance. The
value is convex in the design, so the mean of a design over all such exchanges is no worse; super-
arms and rivals then count by how many arms of each class they have, which makes the problem small.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from superarm.decision import TopK, indicators
from superarm.design.blocks import search_blocks
from superarm.design.xy_optimal import Interior, Terms, interior
from superarm.errors import SettingError
from superarm.problem import Problem
from superarm.quadratic import maximise, swap_search

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Members = NDArray[np.int64]

MOST_ARMS = 200
"""Designs for more arms are not optimised: each step factors matrices of some 10 n rows."""

_LISTED = 2_000  # so many super-arms are simply all taken
_PROOF = 5.0  # seconds for the proof of a maximum, at the end
_STEPS = 200  # Newton steps for one master problem
_UNUSED = 1e-7  # share of the greatest weight below which a super-arm or rival is dropped
_WIDEST = 1e100  # times the least loss: squares of more would overflow
_NEAR = 0.97  # rivals are added that come so near to the strongest


class Found(NamedTuple):
    """The value of the best design, the proved bound, the share between, and what it took."""

    value: float
    dual: float
    gap: float
    support: int
    rounds: int


class Classes:
    """Arms that may change places, and what is left of vectors and matrices that do not mind.

    The mean of x x' over all exchanges is u u' on the sums of the classes (u_c = sum of x in c /
    sqrt(m_c)), and t_c = scatter of x in c / (m_c - 1) times the identity on differences within c.
    """

    def __init__(self, labels: NDArray[np.int64]) -> None:
        self.labels = labels
        self.sizes = np.bincount(labels).astype(np.float64)
        self.roots = np.sqrt(self.sizes)
        self.free = np.maximum(self.sizes - 1, 1.0)  # dimension of the differences within
        self._to = np.eye(len(self.sizes))[labels]

    def sums(self, x: Matrix) -> Matrix:
        """Return u, a row for each row of x."""
        return np.asarray((x @ self._to) / self.roots)

    def scatters(self, x: Matrix) -> Matrix:
        """Return the sum of squares about the mean within each class, a row for each row of x."""
        found: Matrix = np.maximum(0.0, (x * x) @ self._to - self.sums(x) ** 2)
        return np.where(self.sizes > 1, found, 0.0)

    def whole(self, between: Matrix, within: Vector) -> Matrix:
        """Return the n x n matrix that acts as `between` on sums and as `within` on differences."""
        scaled = between / np.outer(self.roots, self.roots)
        scaled[np.diag_indices(len(scaled))] -= within / self.sizes
        full = scaled[np.ix_(self.labels, self.labels)]
        full[np.diag_indices(len(full))] += within[self.labels]
        return np.ascontiguousarray((full + full.T) / 2)

    def distinct(self, x: Matrix) -> Matrix:
        """Return one row of those that differ by exchanges only."""
        _, first = np.unique(np.round(self.sums(x), 9), axis=0, return_index=True)
        return x[np.sort(first)]


class Master:
    """The problem for some super-arms X and rivals Y, averaged over exchanges."""

    def __init__(self, classes: Classes, X: Matrix, Y: Matrix) -> None:
        self.classes = classes
        self.x, self.t = classes.sums(X), classes.scatters(X) / classes.free
        self.y, self.s = classes.sums(Y), classes.scatters(Y)

    def solve(self, tolerance: float) -> Interior:
        """Return proportions of the super-arms and weights of the rivals."""
        return interior(self.terms, len(self.x), tolerance, _STEPS)

    def inverses(self, p: Vector) -> tuple[Matrix, Vector]:
        """Return Lambda^-1 on sums, and on the differences within each class."""
        V = np.linalg.inv((self.x * p[:, None]).T @ self.x)
        within = p @ self.t
        return (V + V.T) / 2, np.divide(1.0, within, out=np.zeros_like(within), where=within > 0)

    def terms(self, p: Vector) -> Terms:
        """Return what `interior` needs, as `Terms.of_vectors` does, with the parts within."""
        V, w = self.inverses(p)
        xV = self.x @ V
        B, G = xV @ self.y.T, xV @ self.x.T
        c = np.einsum("yi,yi->y", self.y @ V, self.y) + self.s @ w
        J = B * B + (self.t * w**2) @ self.s.T
        return Terms(c, J, partial(self._curvature, B, G, w))

    def _curvature(self, B: Matrix, G: Matrix, w: Vector, v: Vector) -> Matrix:
        within: Matrix = (self.t * (w**3 * (v @ self.s))) @ self.t.T
        return np.asarray(2 * (((B * v) @ B.T) * G + within))

    def prices(self, p: Vector, v: Vector) -> tuple[Matrix, float]:
        """Return WCW as an n x n matrix, and tr(WC)."""
        V, w = self.inverses(p)
        half = self.y @ V
        between = half.T @ (half * v[:, None])
        within = (v @ self.s) * w**2 / self.classes.free
        c = np.einsum("yi,yi->y", half, self.y) + self.s @ w
        return self.classes.whole((between + between.T) / 2, within), float(v @ c)


def least_design(problem: Problem, theta: Vector, tolerance: float, rounds: int) -> Found:
    """Minimise the greatest |y|^2 over designs on all size-k sets."""
    n, k = problem.n, problem.k
    if n > MOST_ARMS:
        raise SettingError(
            f"a design for {n:,} arms is not optimised, only for up to {MOST_ARMS}; "
            "choose design isotropic"
        )
    rivals = Rivals(problem, theta)
    classes = rivals.classes()
    rows, listed = _start(problem)
    X, Y = classes.distinct(indicators(rows, n)), classes.distinct(rivals.start())
    value, dual, support, used = math.inf, 0.0, 0, 0
    rng = np.random.default_rng(0)
    for used in range(1, rounds + 1):  # noqa: B007 - told afterwards
        master = Master(classes, X, Y)
        p, v, _ = master.solve(tolerance / 8)
        worst, fresh = rivals.worst(classes.whole(*master.inverses(p)))
        if worst < value:
            value, support = worst, int((p > _UNUSED * p.max()).sum())
        M, trace = master.prices(p, v)
        sets, most, upper = _objecting(M, X, k, listed, rng)
        near = value <= (1 + tolerance) * trace**2 / most
        if near and value > (1 + tolerance) * trace**2 / upper:  # only the proof is missing
            upper = min(upper, maximise(M, k, "exact", seconds=_PROOF).upper_bound)
        dual = max(dual, trace**2 / upper)
        if value <= (1 + tolerance) * dual or not (len(sets) or len(fresh)):
            break
        X = classes.distinct(np.concatenate([X[(p > _UNUSED * p.max()) | listed], sets]))
        Y = classes.distinct(np.concatenate([Y[v > _UNUSED * v.max()], fresh]))
    square = rivals.unit * rivals.unit  # to infinity, where a power would raise
    return Found(value * square, dual * square, value / dual - 1, support, used)


def _start(problem: Problem) -> tuple[Members, bool]:
    """Return all super-arms where they are few (then True), or shifts of blocks."""
    n, k = problem.n, problem.k
    assert isinstance(problem.decision, TopK)
    if problem.decision.size <= _LISTED:
        return problem.decision.enumerate(), True
    blocks = search_blocks(n, k, max(2, 120 // n), np.random.default_rng(0))
    shifts = (blocks[:, None, :] + np.arange(n)[None, :, None]) % n
    return np.unique(np.sort(shifts.reshape(-1, k), axis=1), axis=0), False


def _objecting(
    M: Matrix, X: Matrix, k: int, listed: bool, rng: np.random.Generator
) -> tuple[Matrix, float, float]:
    """Return sets with more x'Mx than those there are, the most found, and a bound on all sets."""
    n = len(M)
    there = np.einsum("xi,xi->x", X @ M, X)
    if listed:
        most = float(there.max())
        return np.zeros((0, n)), most, most
    best = maximise(M, k, "multistart", "shift")
    starts = [np.array(best.members)]
    starts += [rng.choice(n, k, replace=False) for _ in range(2 * n)]
    starts += [np.flatnonzero(x > 0.5) for x in X[np.argsort(-there)[:n]]]
    found = np.unique(np.array([swap_search(M, s) for s in starts]), axis=0)
    x = indicators(found, n)
    values = np.einsum("xi,xi->x", x @ M, x)
    keep = values > (1 + 1e-7) * there.max()
    order = np.argsort(-values[keep], kind="stable")[: 2 * n]
    return x[keep][order], max(best.value, float(values.max())), best.upper_bound


class Rivals:
    """The directions y_M', asked for those of the greatest norm.

    They are told in a `unit` of their own, that of the nearest single swap: so thresholds mean the
    same whatever the scale of the means.
    """

    def __init__(self, problem: Problem, theta: Vector) -> None:
        assert isinstance(problem.decision, TopK)
        self.problem, self.given = problem, theta
        self.best = problem.decision.best(theta)
        self.outside = np.setdiff1d(np.arange(problem.n), self.best)
        loss = theta[self.best][:, None] - theta[self.outside][None, :] + problem.epsilon
        least = float(loss.min())
        if float(np.ptp(theta)) + problem.epsilon > _WIDEST * least:
            raise SettingError(
                "a design is not optimised where the means are so much further apart than the "
                f"closest rival, by {least:g}; choose design isotropic"
            )
        self.theta, self.epsilon, self.loss = theta / least, problem.epsilon / least, loss / least
        self.unit = math.sqrt(2) * problem.noise.sigma(problem.k) / least

    def classes(self) -> Classes:
        """Return the arms of equal means, those in M* apart from those outside."""
        inside = np.zeros(self.problem.n)
        inside[self.best] = 1.0
        keys = np.column_stack([inside, self.given])
        return Classes(np.unique(keys, axis=0, return_inverse=True)[1].ravel())

    def start(self) -> Matrix:
        """Return the single swaps of least loss, and with epsilon > 0 the best d swaps."""
        order = np.argsort(self.loss, axis=None, kind="stable")[: 4 * self.problem.n]
        chosen = [self._single(*np.divmod(order, self.loss.shape[1]))]
        if self.problem.epsilon > 0:
            chosen.append(self._prefixes())
        return np.concatenate(chosen)

    def worst(self, W: Matrix) -> tuple[float, Matrix]:
        """Return the greatest y'Wy that is found, and directions that come near to it.

        With epsilon = 0 there are no others than the single swaps, and it is the greatest.
        """
        own, i, j = np.diagonal(W), self.best, self.outside
        norms = own[i][:, None] + own[j][None, :] - 2 * W[np.ix_(i, j)]
        values = norms / self.loss**2
        order = np.argsort(-values, axis=None, kind="stable")[: 2 * self.problem.n]
        singles = self._single(*np.divmod(order, values.shape[1]))
        found = singles
        if self.problem.epsilon > 0:
            starts = np.concatenate([singles[:10], self._prefixes()])
            climbed = [self._climb(W, np.sign(y)) for y in starts]
            found = np.concatenate([singles, starts, np.array(climbed)])
        forms = np.einsum("ri,ri->r", found @ W, found)
        return float(forms.max()), found[forms > _NEAR * forms.max()]

    def _single(self, a: Members, b: Members) -> Matrix:
        y = np.zeros((len(a), self.problem.n))
        at = np.arange(len(a))
        y[at, self.outside[b]] = 1.0
        y[at, self.best[a]] = -1.0
        return np.asarray(y / self.loss[a, b][:, None])

    def _prefixes(self) -> Matrix:
        """Return the d best swaps at once, d = 1, 2, ..."""
        out = self.best[np.argsort(self.theta[self.best], kind="stable")]
        into = self.outside[np.argsort(-self.theta[self.outside], kind="stable")]
        levels = min(len(out), len(into))
        y = np.zeros((levels, self.problem.n))
        for d in range(levels):
            y[d:, into[d]], y[d:, out[d]] = 1.0, -1.0
        return np.array([self._scaled(x) for x in y])

    def _scaled(self, x: Vector) -> Vector:
        return np.asarray(x / (float(-self.theta @ x) + self.epsilon))

    def _climb(self, W: Matrix, x: Vector) -> Vector:
        """Exchange an arm of the rival for another one as long as that raises |x|^2 / loss^2."""
        epsilon, own = self.epsilon, np.diagonal(W)
        chi = np.zeros(len(x))
        chi[self.best] = 1.0
        for _ in range(10 * len(self.best)):
            members = np.flatnonzero(chi + x > 0.5)
            others = np.flatnonzero(chi + x < 0.5)
            g, form, loss = W @ x, float(x @ W @ x), float(-self.theta @ x) + epsilon
            norm = (
                form
                + (own[members] - 2 * g[members])[:, None]
                + (own[others] + 2 * g[others])[None, :]
                - 2 * W[np.ix_(members, others)]
            )
            lost = loss + self.theta[members][:, None] - self.theta[others][None, :]
            rival = norm > 1e-12 * form  # not M* itself, where all that is lost is epsilon
            values = np.divide(norm, lost**2, out=np.zeros_like(norm), where=rival)
            at = int(np.argmax(values))
            if values.ravel()[at] <= form / loss**2 * (1 + 1e-10):
                break
            a, b = divmod(at, len(others))
            x[members[a]] -= 1.0
            x[others[b]] += 1.0
        return self._scaled(x)
