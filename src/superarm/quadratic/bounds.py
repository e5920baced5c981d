"""Upper bounds on max x'Wx over size-k sets, for symmetric W."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def spectral_bound(W: Matrix, k: int) -> float:
    """Maximum of x'Wx over the sphere through all size-k sets: O(n^3).

    x = (k/n) 1 + y with y orthogonal to 1 and |y|^2 = r^2 = k(n-k)/n. With B the form W on
    1-perp (eigenvalues l_i) and g the part of (k/n) W 1 in its eigenbasis,

        x'Wx = (k/n)^2 1'W1 + 2 g'y + y'By <= (k/n)^2 1'W1 + mu r^2 + sum g_i^2 / (mu - l_i)

    for every mu > max l_i (Lagrange): an upper bound wherever the search for the least stops.
    A rounding margin is added.
    """
    n = len(W)
    if k == n:
        return _with_margin(float(W.sum()), W)
    towards_one = W.sum(axis=1)
    whole = float(towards_one.sum())
    values, vectors = np.linalg.eigh(_centred(W))
    g2 = (vectors.T @ (towards_one - whole / n) * (k / n)) ** 2
    r2 = k * (n - k) / n
    return _with_margin((k / n) ** 2 * whole + _dual(values, g2, r2), W)


def greatest_difference(W: Matrix) -> float:
    """Greatest y'Wy over unit vectors y orthogonal to 1, rounding margin included: O(n^3).

    A difference of two size-k sets that are d swaps apart has norm at most 2 d times this.
    """
    values = np.linalg.eigvalsh(_centred(W))
    return _with_margin(float(values[-1]), W)


def _centred(W: Matrix) -> Matrix:
    """Return PWP, P the projection onto vectors orthogonal to 1."""
    rows = W.mean(axis=1)
    centred: Matrix = W - rows[:, None] - rows[None, :] + rows.mean()
    return (centred + centred.T) / 2


def _dual(values: NDArray[np.float64], g2: NDArray[np.float64], r2: float) -> float:
    """Least of mu r^2 + sum g_i^2/(mu - l_i) over mu > max l_i, by bisection on its slope."""
    top = float(values[-1])
    size = max(abs(top), abs(float(values[0])), 1e-100)
    low, high = top + 1e-12 * size, top + 1e-12 * size + math.sqrt(float(g2.sum()) / r2)
    for _ in range(60):
        mu = (low + high) / 2
        if float((g2 / (mu - values) ** 2).sum()) > r2:
            low = mu
        else:
            high = mu
    return high * r2 + float((g2 / (high - values)).sum())


def _with_margin(value: float, W: Matrix) -> float:
    return value + 1e-12 * len(W) * float(np.abs(W).max())
