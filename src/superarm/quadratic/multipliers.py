r"""Lagrange multipliers for x'Wx over size-k sets: the dual of the semidefinite relaxation.

Every size-k indicator x has x_i^2 = x_i, x_i x_j >= 0, x_i >= 0 and 1 - x_i >= 0. So for all d, and
for all N, eta, zeta >= 0 (N with a zero diagonal),

    x'Wx <= x'(W + N - Diag(d))x + (d + eta - zeta)'x + 1'zeta,

and a bound on the right-hand side over the sphere through all size-k sets is a bound on x'Wx,
whatever the multipliers are. The best ones solve the dual of

    max <W, X>,  X >= 0 entry by entry,  diag X = x,  1'x = k,  X 1 = k x,  X - xx' psd,

which is solved here by alternating directions (ADMM): X in the cone, X in the polytope, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from superarm.quadratic.sphere import centred, differences

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_PENALTY = 0.3  # of ADMM, in units in which W has entries of size 1; found by trial
_STEP = 1.6  # how far multipliers move; ADMM converges up to (1 + sqrt 5)/2
_DROWNED = 1e3  # entries of W, in units of W on differences, beyond which these are taken apart
_BALANCE = 10  # rounds after which the penalty is weighed anew


@dataclass(frozen=True)
class Relaxed:
    """Upper bounds x'Wx <= x'(quadratic)x + linear'x + constant for all size-k indicators x."""

    quadratic: Matrix
    linear: Vector
    constant: float


def plain(W: Matrix) -> Relaxed:
    """No multipliers: W itself."""
    return Relaxed(W, np.zeros(len(W)), 0.0)


def relaxations(W: Matrix, k: int, every: int, until: float = np.inf) -> Iterator[Relaxed]:
    """Yield ever better multipliers, after each `every` rounds of O(n^3); 1 < k < n.

    It ends when the clock (`perf_counter`) says so, with what it has then.
    """
    n = len(W)
    basis = _basis(n, k)
    cost, scale = _cost(W, k)
    Y, dual, penalty = _centre(n, k), np.zeros((n + 1, n + 1)), _PENALTY
    rounds = 0
    while perf_counter() < until:
        in_cone = _cone(basis, Y + dual / penalty)
        before, Y = Y, _polytope(in_cone - (dual + cost) / penalty, k)
        apart = Y - in_cone
        dual += _STEP * penalty * apart
        rounds += 1
        if rounds % _BALANCE == 0:
            primal = np.linalg.norm(apart) / (1 + np.linalg.norm(Y))
            change = penalty * np.linalg.norm(Y - before) / (1 + np.linalg.norm(dual))
            if max(primal, change) > 5 * min(primal, change):
                penalty *= 1.3 if primal > change else 1 / 1.3
        if rounds % every == 0:
            yield _relaxed(W, scale * (cost + dual), np.diagonal(Y)[1:])
    if rounds % every != 0:
        yield _relaxed(W, scale * (cost + dual), np.diagonal(Y)[1:])


def _cost(W: Matrix, k: int) -> tuple[Matrix, float]:
    """Return the form -x'Wx of (x_0, x) in units of its size on differences, and that unit.

    With m the mean entry, r the row means less m, and C = PWP,
    x'Wx = x'Cx + 2k r'x + m k^2 on sets. Where C is small beside W this is what is
    solved, without m: else C would drown in r and m, and at last in rounding.
    """
    n = len(W)
    C = centred(W)
    scale = float(np.linalg.norm(C)) / np.sqrt(n)
    cost = np.zeros((n + 1, n + 1))
    if 0 < np.abs(W).max() <= _DROWNED * scale:
        cost[1:, 1:] = -W / scale
        return cost, scale
    rows = W.mean(axis=1)
    rows -= rows.mean()
    scale = max(scale, k * float(np.linalg.norm(rows)) / np.sqrt(n)) or 1.0
    cost[1:, 1:] = -C / scale
    cost[0, 1:] = cost[1:, 0] = -k * rows / scale
    return cost, scale


def _basis(n: int, k: int) -> Matrix:
    """Orthonormal basis of the vectors (x_0, x) with 1'x = k x_0: (1, (k/n) 1) and those of 1-perp.

    The first column is that one vector, the others are (0, v) with v orthogonal to 1.
    """
    basis = np.zeros((n + 1, n))
    basis[0, 0] = 1.0
    basis[1:, 0] = k / n
    basis[:, 0] /= np.linalg.norm(basis[:, 0])
    basis[1:, 1:] = differences(n)
    return basis


def _centre(n: int, k: int) -> Matrix:
    """Return the mean of [1 x'; x xx'] over all size-k sets."""
    Y = np.full((n + 1, n + 1), k * (k - 1) / (n * (n - 1)))
    np.fill_diagonal(Y, k / n)
    Y[0, :] = Y[:, 0] = k / n
    Y[0, 0] = 1.0
    return Y


def _cone(basis: Matrix, H: Matrix) -> Matrix:
    """Return the nearest positive semi-definite matrix on the span of `basis`."""
    values, vectors = np.linalg.eigh(basis.T @ H @ basis)
    kept = values > 0
    half = (basis @ vectors[:, kept]) * np.sqrt(values[kept])
    nearest: Matrix = half @ half.T
    return nearest


def _polytope(H: Matrix, k: int) -> Matrix:
    """Return the nearest Y with entries in [0, 1], Y_00 = 1, row 0 = diagonal, and 1'x = k."""
    x = _capped_simplex((2 * H[0, 1:] + np.diagonal(H)[1:]) / 3, k)
    Y = np.clip(H, 0.0, 1.0)
    Y[0, 0] = 1.0
    Y[0, 1:] = Y[1:, 0] = x
    np.fill_diagonal(Y[1:, 1:], x)
    return Y


def _capped_simplex(x: Vector, k: int) -> Vector:
    """Return the nearest point with entries in [0, 1] that add up to k, by bisection."""
    low, high = x.min() - 1.0, x.max()
    for _ in range(50):
        middle = (low + high) / 2
        if np.clip(x - middle, 0.0, 1.0).sum() > k:
            low = middle
        else:
            high = middle
    return np.clip(x - high, 0.0, 1.0)


def _relaxed(W: Matrix, S: Matrix, x: Vector) -> Relaxed:
    """Read the multipliers off cost + dual; they are made non-negative, so that they are valid."""
    N = np.maximum((S[1:, 1:] + S[1:, 1:].T) / 2, 0.0)
    np.fill_diagonal(N, 0.0)
    diagonal = np.diagonal(S)[1:]
    linear = diagonal + 2 * S[0, 1:]
    absent, present = x <= 1e-3, x >= 1 - 1e-3
    # Where 0 < x_i < 1 the linear part is constant: the multiplier of 1'x = k, up to its sign.
    if (~(absent | present)).any():
        linear = linear - np.median(linear[~(absent | present)])
    elif absent.any() and present.any():
        linear = linear - (linear[absent].min() + linear[present].max()) / 2
    eta = np.where(absent, np.maximum(linear, 0.0), 0.0)
    zeta = np.where(present, np.maximum(-linear, 0.0), 0.0)
    quadratic = W + N + np.diag(diagonal)
    return Relaxed(quadratic, eta - zeta - diagonal, float(zeta.sum()))
