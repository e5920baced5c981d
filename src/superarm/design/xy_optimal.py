"""XY-optimal designs (Appendix D): the greatest norm of a difference, made as small as it can be.

Minimise over p the greatest y' Lambda_p^-1 y, y in a set of directions (Soare, Lazaric, Munos: the
differences of super-arms). For weights w on directions let C = sum w_y y y', for any p
M = Lambda_p^-1 C Lambda_p^-1. Then no proportions q have a value below ::

    tr(Lambda_p^-1 C)^2 / max_x x'Mx

since by Cauchy and Schwarz tr(Lambda_p^-1 C)^2 <= tr(Lambda_q^-1 C) tr(Lambda_q M), where the first
factor is at most the value of q and the second at most max x'Mx.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from superarm.decision import TopK
from superarm.design.allocation import (
    ITERATIONS,
    Allocation,
    Matrix,
    Support,
    Vector,
    check_limits,
    check_span,
    d_optimal,
    read_directions,
    read_support,
    trimmed,
)
from superarm.design.base import Design
from superarm.design.g_optimal import GIVEN, allocated_plan
from superarm.design.support import independent_rows
from superarm.design.uniform import Uniform
from superarm.errors import SettingError, SupportError
from superarm.plan import SupportPlan
from superarm.problem import Problem

Named = Literal["swaps", "differences"]

_MOST_PAIRED = 20_000  # super-arms all of whose pairs are compared
_BLOCK = 4_000_000  # numbers of a block of pairs
_MASTER = 200, 1000  # super-arms and directions that a master problem starts with, least and most
_PATIENCE = 10  # Newton steps that hardly help, after which rounding is taken to be the reason


@dataclass(frozen=True)
class XYOptimal(Design):
    """Measure in the proportions for which the greatest norm of a difference is least.

    Parameters
    ----------
    support
        As for `Uniform`: "full", a number of random super-arms, a text such as "8n", or the
        super-arms themselves.
    directions
        What counts: "differences" of any two super-arms of the support, or "swaps" (the
        differences of any two arms, for the best k of n; with epsilon = 0 only they decide). If
        not given, "swaps" for the best k of n and "differences" for other classes.
    tolerance
        How far above the least possible, as a share, the greatest norm (squared) may stay.
    iterations
        Limit of iterations (Newton steps). If it comes first, the plan's description says so.
    """

    support: Literal["full"] | int | str | tuple[tuple[int, ...], ...] = "8n"
    directions: Named | None = None
    tolerance: float = GIVEN
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", Uniform(self.support).support)
        if self.directions is not None:
            _check_name(self.directions)
        tolerance, iterations = check_limits(self.tolerance, self.iterations)
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "iterations", iterations)

    def __str__(self) -> str:
        what = f", {self.directions}" if self.directions else ""
        if isinstance(self.support, tuple):
            return f"xy-optimal:{len(self.support)} given{what}"
        return f"xy-optimal:{self.support}{what}"

    def plan(self, problem: Problem, rng: np.random.Generator) -> SupportPlan:
        topk = isinstance(problem.decision, TopK)
        name = self.directions or ("swaps" if topk else "differences")
        if name == "swaps" and not topk:
            raise SettingError(
                "swaps are for the best k of n arms; choose directions='differences' for "
                f"{type(problem.decision).__name__}"
            )
        start = Uniform(self.support).plan(problem, rng)
        if start.size == 1:  # there is no difference to be measured
            return start
        support = Support(start.support, problem.n, start.basis)
        found = _optimise(support, _named(name, support), self.tolerance, self.iterations)
        return allocated_plan(found, problem, start.basis, start.source, str(self))


def xy_optimal(
    sets: Any,
    directions: Any = "differences",
    *,
    n: int | None = None,
    tolerance: float = GIVEN,
    iterations: int = ITERATIONS,
) -> Allocation:
    """Minimise the greatest y' Lambda_p^-1 y over directions y.

    Parameters
    ----------
    sets
        The super-arms that may be measured, each a list of arm indices.
    directions
        "differences" of any two of them; "swaps", the differences of any two arms; or vectors, a
        row each, in the span of the super-arms.
    n
        Number of arms, if some are in none of the super-arms.
    tolerance
        Ends the iterations when the value is proved to be within this share of the least possible.
    iterations
        Limit of iterations (Newton steps).
    """
    gap, most = check_limits(tolerance, iterations)
    support = read_support(sets, n)
    if isinstance(directions, str):
        return _optimise(support, _named(directions, support), gap, most)
    return _optimise(support, _Listed(read_directions(directions, support)), gap, most)


class Directions(Protocol):
    """The directions that count, asked for the greatest."""

    def greatest(self, W: Matrix, most: int) -> tuple[Vector, Matrix]:
        """Return y'Wy of up to `most` directions, greatest first, and these, a row each."""


class _Listed:
    """Directions given as vectors."""

    def __init__(self, vectors: Matrix) -> None:
        self.vectors = vectors

    def greatest(self, W: Matrix, most: int) -> tuple[Vector, Matrix]:
        values = np.einsum("yi,yi->y", self.vectors @ W, self.vectors)
        top = _top(values, most)
        return values[top], self.vectors[top]


class _Swaps:
    """The differences of any two arms."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.first, self.second = np.triu_indices(n, 1)

    def greatest(self, W: Matrix, most: int) -> tuple[Vector, Matrix]:
        own = np.diagonal(W)
        values = own[self.first] + own[self.second] - 2 * W[self.first, self.second]
        top = _top(values, most)
        vectors = np.zeros((len(top), self.n))
        vectors[np.arange(len(top)), self.first[top]] = 1.0
        vectors[np.arange(len(top)), self.second[top]] = -1.0
        return values[top], vectors


class _Differences:
    """The differences of any two super-arms: compared in blocks, never listed."""

    def __init__(self, support: Support) -> None:
        if len(support.rows) > _MOST_PAIRED:
            raise SettingError(
                f"the differences of {len(support.rows):,} super-arms are too many to compare; "
                f"give at most {_MOST_PAIRED:,} super-arms"
            )
        if len(support.rows) < 2:
            raise SupportError("a single super-arm has no differences: give at least two")
        self.x = Support(support.rows, support.n, None).vectors

    def greatest(self, W: Matrix, most: int) -> tuple[Vector, Matrix]:
        xW = self.x @ W
        own = np.einsum("xi,xi->x", xW, self.x)
        values, pairs = np.zeros(0), np.zeros(0, dtype=np.int64)
        m = len(own)
        block = max(1, _BLOCK // m)
        for start in range(0, m, block):
            rows = np.arange(start, min(start + block, m))
            part = own[rows, None] + own[None, :] - 2 * (xW[rows] @ self.x.T)
            part[np.arange(m)[None, :] <= rows[:, None]] = -1.0  # each pair once
            top = _top(part.ravel(), most)
            values = np.concatenate([values, part.ravel()[top]])
            pairs = np.concatenate([pairs, start * m + top])
        top = _top(values, most)
        top = top[values[top] >= 0]
        first, second = np.divmod(pairs[top], m)
        return values[top], self.x[first] - self.x[second]


def _top(values: Vector, most: int) -> Any:
    """Return the indices of the greatest, greatest first; ties to the lower index."""
    if len(values) > 4 * most:
        least = np.partition(values, len(values) - most)[len(values) - most]
        near = np.flatnonzero(values >= least)
        return near[np.argsort(-values[near], kind="stable")[:most]]
    return np.argsort(-values, kind="stable")[:most]


def _check_name(directions: Any) -> None:
    if not isinstance(directions, str) or directions not in ("swaps", "differences"):
        raise SettingError(f"directions must be 'swaps' or 'differences', not {directions!r}")


def _named(name: str, support: Support) -> Directions:
    _check_name(name)
    if name == "differences":
        return _Differences(support)
    if support.n > 1:  # all swaps are sums of these
        check_span(np.eye(support.n)[:-1] - np.eye(support.n)[1:], support, "swaps")
        return _Swaps(support.n)
    raise SupportError("a single arm has no swaps: give at least two")


def _optimise(
    support: Support, directions: Directions, tolerance: float, iterations: int
) -> Allocation:
    """Solve for some super-arms and directions, add those that object, until none does.

    Value and bound are worked out over all super-arms and directions, so that both hold wherever
    the iterations end.
    """
    size = int(np.clip(support.dimension * (support.dimension + 1), *_MASTER))
    start, rows = _first(support, size)
    W = support.inverse(start)
    assert W is not None  # the first step has looked
    norms, vectors = directions.greatest(W, size)
    best, value, fallback, used = start, math.inf, float(norms[0]), 0
    bound = _prices(support, W, vectors, np.full(len(vectors), 1 / len(vectors))).bound
    while used < iterations:
        X, S = support.vectors[rows], support.coordinates(vectors)
        at_p = partial(Terms.of_vectors, X, S)
        found = interior(at_p, len(rows), tolerance / 4, iterations - used)
        used += max(1, found.steps)
        p = np.zeros(len(start))
        p[rows] = found.proportions
        p, W = support.usable(p, start, min(tolerance, 0.1) / 8)
        norms, fresh = directions.greatest(W, size // 2)
        if norms[0] < value:
            best, value = p, float(norms[0])
        at = _prices(support, W, vectors, found.weights)
        bound = max(bound, at.bound)
        fresh = fresh[norms > at.greatest * (1 + 1e-9)]
        dear = np.argsort(-at.prices, kind="stable")[: size // 2]
        dear = dear[at.prices[dear] > at.prices[rows].max() * (1 + 1e-9)]
        if value <= (1 + tolerance / 2) * bound or not (len(fresh) or len(dear)):
            break
        rows, vectors = np.union1d(rows, dear), np.concatenate([vectors, fresh])
    if value > max(fallback, (1 + tolerance) * bound):
        best, value = start, fallback

    def norm(proportions: Vector) -> float:
        W = support.inverse(proportions)
        return math.inf if W is None else float(directions.greatest(W, 1)[0][0])

    p = trimmed(best, norm, max((1 + tolerance) * bound, value))
    top, held = norm(p), p > 0
    return Allocation(support.rows[held], p[held], top, top, bound, tolerance, used)


def _first(support: Support, size: int) -> tuple[Vector, Any]:
    """Return (nearly) G-optimal proportions, and the rows that matter there."""
    m = len(support.rows)
    p = d_optimal(support, np.full(m, 1 / m), 0.1, ITERATIONS).proportions
    basis = independent_rows(support.rows, support.n, support.dimension)
    mixed = np.random.default_rng(0).permutation(m)  # equal ones are often listed by likeness
    return p, np.union1d(basis, mixed[np.argsort(-p[mixed], kind="stable")[:size]])


class _Prices(NamedTuple):
    """x'Mx of each super-arm, the greatest y'Wy of some directions, and the bound they prove."""

    prices: Vector
    greatest: float
    bound: float


def _prices(support: Support, W: Matrix, vectors: Matrix, weights: Vector) -> _Prices:
    """Work out the bound for C = sum w_y y y' and M = WCW.

    It holds for any symmetric W, so that rounding in the inverse does it no harm.
    """
    half = vectors @ W
    values = np.einsum("yi,yi->y", half, vectors)
    M = half.T @ (half * weights[:, None])
    prices = support.forms((M + M.T) / 2)
    return _Prices(prices, float(values.max()), float(weights @ values) ** 2 / float(prices.max()))


class Interior(NamedTuple):
    """Proportions of super-arms, weights of directions, and the Newton steps they took."""

    proportions: Vector
    weights: Vector
    steps: int


def interior(at_p: Callable[[Vector], Terms], size: int, tolerance: float, most: int) -> Interior:
    """Minimise sum p subject to c_y = y' Lambda_p^-1 y <= 1 for all directions y, and p >= 0.

    The scale of p is free here, so that this is the same problem. Primal-dual interior point
    (Mehrotra): with multipliers v of the constraints, slacks z = 1 - c, and s of p >= 0,

        s_x = 1 - sum_y v_y (x' Lambda^-1 y)^2,    p_x s_x = mu,    v_y z_y = mu,    mu -> 0.

    Each time the gap grows, steps become shorter and more cautious: near a singular Lambda_p the
    linear model does not reach far.
    """
    p = np.full(size, 1 / size)
    at = at_p(p)
    wide = 1.5 * float(at.c.max())
    p, z = p * wide, 1 - at.c / wide
    v = p.sum() / (z * ((1 - z) / z).sum())
    s, reach, centre = np.zeros(0), 0.95, 0.1
    best, least, last, since = (p, v), math.inf, math.inf, 0
    for step in range(most + 1):
        try:
            at = at_p(p)
            gap, since = at.gap(p, v), since + 1
            if gap < least:
                best, least, since = (p, v), gap, 0 if gap < 0.9 * least else since
            if least <= tolerance or since > _PATIENCE or step == most:
                break
            if gap > last:
                reach, centre = max(0.5, 0.8 * reach), min(0.4, centre + 0.1)
            s, last = s if len(s) else np.maximum(1 - at.J @ v, 0.1), gap
            dp, dz, dv, ds = at.newton(p, z, v, s, centre)
        except LinAlgError:  # rounding: p is as good as it gets
            break
        ahead = min(1.0, reach * min(_room(p, dp), _room(z, dz)))
        behind = min(1.0, reach * min(_room(v, dv), _room(s, ds)))
        p, z = p + ahead * dp, z + ahead * dz
        v, s = v + behind * dv, s + behind * ds
    p, v = best
    return Interior(p / p.sum(), v / v.sum(), step)


def _room(x: Vector, dx: Vector) -> float:
    """How many steps of dx lead from x > 0 to the first 0."""
    down = dx < 0
    with np.errstate(over="ignore"):
        return float((-x[down] / dx[down]).min(initial=math.inf))


class Terms:
    """What a Newton step needs at p.

    Parameters
    ----------
    c
        y' Lambda_p^-1 y for each direction.
    J
        -dc/dp, a row for each super-arm.
    curvature
        From weights v of directions to the matrix of second derivatives of v'c.
    """

    def __init__(self, c: Vector, J: Matrix, curvature: Callable[[Vector], Matrix]) -> None:
        self.c, self.J, self.curvature = c, J, curvature

    @classmethod
    def of_vectors(cls, X: Matrix, S: Matrix, p: Vector) -> Terms:
        """Return the terms for super-arms X and directions S, a row each."""
        V = np.linalg.inv((X * p[:, None]).T @ X)
        XV = X @ V
        B, G = XV @ S.T, XV @ X.T
        c = np.einsum("yi,yi->y", S @ V, S)
        return cls(c, B * B, lambda v: 2 * ((B * v) @ B.T) * G)

    def gap(self, p: Vector, v: Vector) -> float:
        """Value over bound, less 1, for these super-arms and directions alone."""
        value, most = self.c.max() * p.sum(), (self.J @ v).max()
        return float(value * most * v.sum() / (v @ self.c) ** 2 - 1)

    def newton(
        self, p: Vector, z: Vector, v: Vector, s: Vector, centre: float
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the steps of p, z, v, s: a look ahead (mu = 0), then one that corrects for it."""
        J, price, slope = self.J, s / p, v / z
        hessian = self.curvature(v)
        matrix = hessian + (J * slope) @ J.T
        matrix[np.diag_indices(len(p))] += price
        factor = cho_factor(matrix)
        off, over = 1 - J @ v - s, self.c + z - 1

        def solve(ps: Vector, vz: Vector) -> tuple[Vector, Vector, Vector, Vector]:
            dp = cho_solve(factor, ps / p - off + J @ (vz / z + slope * over))
            dz = dp @ J - over
            dv = vz / z - slope * dz
            return dp, dz, dv, off + hessian @ dp - J @ dv

        dp, dz, dv, ds = solve(-p * s, -v * z)
        ahead = min(1.0, _room(p, dp), _room(z, dz))
        behind = min(1.0, _room(v, dv), _room(s, ds))
        mu = float(p @ s + v @ z)
        after = float((p + ahead * dp) @ (s + behind * ds) + (v + behind * dv) @ (z + ahead * dz))
        target = max((after / mu) ** 3, centre) * mu / (len(p) + len(z))
        return solve(target - p * s - dp * ds, target - v * z - dv * dz)
