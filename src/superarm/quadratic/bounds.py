"""Upper bounds on max x'Wx over size-k sets, for symmetric W; none is ever below the maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from superarm.quadratic.branch import Search, search_bytes
from superarm.quadratic.multipliers import Relaxed, plain, relaxations
from superarm.quadratic.sphere import centred, sphere_maximum
from superarm.quadratic.swap import multistart

Matrix = NDArray[np.float64]
Bound = Literal["spectral", "shift", "sdp"]

SHIFT_ROUNDS = 50
"""After so many rounds the multipliers are near their best."""

NEAR = 0.01
"""`sdp` tries to come so near to the best set found."""

_SEARCH_NODES, _SEARCH_BYTES = 10_000, 1e9
_SDP_ROUNDS = 25, 1000  # between two checks; at most
_SEARCHED = 2  # the check whose multipliers serve the search: later ones are worse for branching
_SETTLED = 1e-4  # the bound has converged when a check improves it by less than this share


def spectral_bound(W: Matrix, k: int) -> float:
    """Maximum of x'Wx over the sphere through all size-k sets: O(n^3).

    x = (k/n) 1 + y with y orthogonal to 1 and y'y = r^2 = k(n-k)/n; with P the projection onto
    1-perp, x'Wx = (k/n)^2 1'W1 + 2 (k/n) (PW1)'y + y'(PWP)y, whose maximum over that sphere is
    approached from above. A rounding margin is added.
    """
    return sphere_bound(plain(W), k)


def shift_bound(W: Matrix, k: int) -> float:
    """Move weight between the diagonal and the linear part, and raise entries, to lower the bound.

    The Lagrange multipliers of x_i^2 = x_i and x_i x_j >= 0 after a fixed number of rounds.
    """
    if k in (1, len(W)):
        return _exact(W, k)
    return min(spectral_bound(W, k), sphere_bound(next(relaxations(W, k, SHIFT_ROUNDS)), k))


def sdp_bound(W: Matrix, k: int) -> float:
    """The same multipliers at their best: the value of the relaxation with X >= 0.

    Where that leaves more than `NEAR` above the best set found, a short search tries to rule out
    all sets above that.
    """
    if k in (1, len(W)):
        return _exact(W, k)
    every, most = _SDP_ROUNDS
    least, settled = spectral_bound(W, k), 0
    search = None
    for rounds, relaxed in enumerate(relaxations(W, k, every), 1):
        bound = sphere_bound(relaxed, k)
        settled = settled + 1 if bound > least - _SETTLED * abs(least) else 0
        least = min(least, bound)
        if rounds == _SEARCHED and search is None:
            search = relaxed
        if settled == 2 or rounds * every >= most:
            break
    return min(least, _ruled_out(W, k, search or relaxed, least))


def _ruled_out(W: Matrix, k: int, relaxed: Relaxed, least: float) -> float:
    """Return NEAR above the best set found, if a short search finds nothing above that."""
    members = multistart(W, np.argsort(-np.diagonal(W))[:k])
    value = float(W[np.ix_(members, members)].sum())
    threshold = value + NEAR * abs(value)
    if least <= threshold or search_bytes(len(W), k) > _SEARCH_BYTES:
        return least
    return Search(W, k, relaxed, members, threshold, 0.0).run(_SEARCH_NODES).bound


BOUNDS: dict[str, Callable[[Matrix, int], float]] = {
    "spectral": spectral_bound,
    "shift": shift_bound,
    "sdp": sdp_bound,
}


def sphere_bound(relaxed: Relaxed, k: int) -> float:
    """Bound x'Mx + l'x + constant on the sphere through all size-k sets, rounding included."""
    M, n = relaxed.quadratic, len(relaxed.quadratic)
    apart = k * float(np.abs(relaxed.linear).max()) + abs(relaxed.constant)
    margin = _margin(M, k) + 2e-15 * n * apart
    rows = M.sum(axis=1)
    centre = (k / n) ** 2 * float(rows.sum()) + (k / n) * float(relaxed.linear.sum())
    total = centre + relaxed.constant + margin
    if k == n:
        return total
    towards = rows * (k / n) + relaxed.linear / 2
    return total + sphere_maximum(centred(M), towards - towards.mean(), k * (n - k) / n)[0]


def greatest_difference(W: Matrix) -> float:
    """Greatest y'Wy over unit vectors y orthogonal to 1, rounding margin included: O(n^3).

    A difference of two size-k sets that are d swaps apart has norm at most 2 d times this.
    """
    return sphere_maximum(centred(W), np.zeros(len(W)), 1.0)[0] + _margin(W, 1)


def _exact(W: Matrix, k: int) -> float:
    """The maximum itself at k = 1 and k = n."""
    return float(np.diagonal(W).max() if k == 1 else W.sum()) + _margin(W, k)


def _margin(W: Matrix, k: int) -> float:
    """Rounding: orthogonal transforms move W by a few n eps of its norm, and x'x = k."""
    return 2e-15 * len(W) * k * float(np.abs(W).sum(axis=1).max())
