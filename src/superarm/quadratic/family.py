"""max x'Wx over the sets of any decision class, for positive semi-definite W.

All 0/1 vectors lie on the sphere of radius sqrt(n)/2 around the centre of the cube, since
x_i^2 = x_i. What it has in common with the affine hull of a class is a smaller sphere, and the
maximum over that one is an upper bound: for size-k sets it is `spectral_bound`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit
from superarm.decision import Decision
from superarm.quadratic.sphere import orthogonal_to, sphere_maximum

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Members = NDArray[np.int64]

_STARTS = 10
_CLIMBS = 100  # steps of one climb at most; a few are usual
_EXCHANGES = 2_000  # sets that are tried for one better one


class Sphere(NamedTuple):
    """All sets of a class are at centre + directions z, |z|^2 = r2."""

    centre: Vector
    directions: Matrix
    r2: float


def sphere_through(decision: Decision, basis: Matrix | None) -> Sphere:
    """Return the least sphere (in the affine hull) that is known to hold all sets.

    With Q the basis of the span and u the weights that add up to 1 on every set, the hull is
    {Qz : (Q'u)'z = 1}; its point next to the centre of the cube is the sphere's centre.
    """
    n = decision.n
    Q = np.eye(n) if basis is None else basis
    inside = Q.T @ np.full(n, 0.5)
    unit = decision.unit
    if unit is None:
        return Sphere(Q @ inside, Q, float(inside @ inside))
    across = Q.T @ unit
    square = float(across @ across)
    step = across * ((1.0 - float(across @ inside)) / square)
    r2 = float(inside @ inside - step @ step)
    return Sphere(Q @ (inside + step), Q @ orthogonal_to(across), max(r2, 0.0))


def family_bound(W: Matrix, decision: Decision, basis: Matrix | None) -> float:
    """Return the maximum of x'Wx over the sphere through all sets, rounding included: O(n^3).

    With x = c + Dz it is c'Wc + 2 (D'Wc)'z + z'(D'WD)z.
    """
    centre, D, r2 = sphere_through(decision, basis)
    towards = W @ centre
    margin = 1e-14 * len(W) * decision.k * float(np.abs(W).sum(axis=1).max())
    total = float(centre @ towards) + margin
    if D.shape[1] == 0 or r2 == 0.0:
        return total
    B = D.T @ W @ D
    return total + sphere_maximum((B + B.T) / 2, D.T @ towards, r2)[0]


def family_ratio(W: Matrix, decision: Decision, basis: Matrix | None) -> float:
    """Return the least share of the maximum that any set reaches.

    On the span x'Wx lies between lambda_min |x|^2 and lambda_max |x|^2, and |x|^2 is the set's
    size.
    """
    values = np.linalg.eigvalsh(W if basis is None else basis.T @ W @ basis)
    return max(float(values[0]), 0.0) / float(values[-1]) * decision.least_size / decision.k


def family_search(W: Matrix, decision: Decision) -> Members:
    """Return a set of great x'Wx: climbs from several starts, the best of them (a heuristic).

    For positive semi-definite W the next set is the best for the weights W x, since
    y'Wy >= x'Wx + 2 (Wx)'(y - x). Where that leads no further, near sets are tried.
    """
    rng = np.random.default_rng(0)
    found = [_climb(W, decision, decision.draw(rng)) for _ in range(_STARTS)]
    return max(found, key=lambda members: square_of(W, members))


def heaviest_set(W: Matrix, decision: Decision) -> Members:
    """Return the set of greatest x'Wx, by going through all of them."""
    n = len(W)
    nothing = np.zeros(n)
    at = best_row(
        decision.listed, nothing, W, nothing, 0.0, 1.0, False, np.zeros(n, dtype=np.bool_)
    )
    return members_of(decision.listed[at])


def members_of(row: Members) -> Members:
    """Return a row's arms, without what fills it up."""
    return row[row >= 0]


def square_of(W: Matrix, members: Members) -> float:
    """x'Wx."""
    return float(W[np.ix_(members, members)].sum())


def _climb(W: Matrix, decision: Decision, members: Members) -> Members:
    value = square_of(W, members)
    for _ in range(_CLIMBS):
        better = _ahead(W, decision, members, value * (1 + 1e-12))
        if better is None:
            break
        members, value = better, square_of(W, better)
    return members


def _ahead(W: Matrix, decision: Decision, members: Members, value: float) -> Members | None:
    """Return a set of greater value, None where none is seen."""
    if decision.signed:
        ahead = decision.best(W[:, members].sum(axis=1))
        if square_of(W, ahead) > value:
            return ahead
    for count, near in enumerate(decision.exchanges(members)):
        if square_of(W, near) > value:
            return near
        if count == _EXCHANGES:
            break
    return None


@njit
def best_row(rows, theta, W, linear, constant, C, root, excluded):  # type: ignore[no-untyped-def]
    """Index of the set with the greatest theta(M) + C f(x'Wx + linear(M) + constant).

    f is the square root if `root`, else the identity; the set with the arms `excluded` (a 0/1
    mask) is passed over: O(K k^2).
    """
    best = -1
    most = -np.inf
    missed = excluded.sum()
    for r in range(rows.shape[0]):
        value = 0.0
        square = constant
        size = 0
        hits = 0
        for i in rows[r]:
            if i < 0:
                break
            size += 1
            hits += 1 if excluded[i] else 0
            value += theta[i]
            square += linear[i]
            for j in rows[r]:
                if j < 0:
                    break
                square += W[i, j]
        if hits == size and size == missed:
            continue
        value += C * (np.sqrt(max(0.0, square)) if root else square)
        if value > most:
            most, best = value, r
    return best
