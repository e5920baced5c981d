"""Upper bounds on max x'Wx over size-k sets, for symmetric W."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm.quadratic.sphere import sphere_maximum

Matrix = NDArray[np.float64]


def spectral_bound(W: Matrix, k: int) -> float:
    """Maximum of x'Wx over the sphere through all size-k sets: O(n^3).

    x = (k/n) 1 + y with y orthogonal to 1 and y'y = r^2 = k(n-k)/n; with P the projection onto
    1-perp, x'Wx = (k/n)^2 1'W1 + 2 (k/n) (PW1)'y + y'(PWP)y, whose maximum over that sphere is
    approached from above. A rounding margin is added.
    """
    n = len(W)
    if k == n:
        return float(W.sum()) + _margin(W, k)
    rows = W.sum(axis=1)
    whole = float(rows.sum())
    towards_one = (rows - whole / n) * (k / n)
    on_sphere = sphere_maximum(_centred(W), towards_one, k * (n - k) / n)
    return (k / n) ** 2 * whole + on_sphere + _margin(W, k)


def greatest_difference(W: Matrix) -> float:
    """Greatest y'Wy over unit vectors y orthogonal to 1, rounding margin included: O(n^3).

    A difference of two size-k sets that are d swaps apart has norm at most 2 d times this.
    """
    return sphere_maximum(_centred(W), np.zeros(len(W)), 1.0) + _margin(W, 1)


def _centred(W: Matrix) -> Matrix:
    """Return PWP, P the projection onto vectors orthogonal to 1."""
    rows = W.mean(axis=1)
    centred: Matrix = W - rows[:, None] - rows[None, :] + rows.mean()
    return (centred + centred.T) / 2


def _margin(W: Matrix, k: int) -> float:
    """Rounding: orthogonal transforms move W by a few n eps of its norm, and x'x = k."""
    return 2e-15 * len(W) * k * float(np.abs(W).sum(axis=1).max())
