"""A quadratic form on a sphere: max of 2 g'y + y'By over |y|^2 = r^2, from above.

For every mu above the greatest eigenvalue of B, mu r^2 + g'(mu I - B)^-1 g is an upper bound
(Lagrange), and the least of them is the maximum. B is brought to tridiagonal form once
(Householder, O(n^3)); then each mu costs O(n), and positive pivots prove that it is large enough.
Written out here because LAPACK's threads cost far more than they bring on matrices this small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit, njit_fast

SMALL = 256
"""Up to this size these kernels are used, beyond it LAPACK's eigenvalues."""


def sphere_maximum(
    B: NDArray[np.float64], g: NDArray[np.float64], r2: float
) -> tuple[float, float]:
    """Return the maximum over the sphere of radius sqrt(r2), and its mu, rounding apart: O(n^3)."""
    if len(B) > SMALL:
        values, vectors = np.linalg.eigh(B)
        least, mu = _least_dual(values, np.zeros(len(B) - 1), vectors.T @ g, r2)
    else:
        diagonal, beside, turned = _tridiagonal(B.copy(), g.copy())
        least, mu = _least_dual(diagonal, beside, turned, r2)
    return float(least), float(mu)


def centred(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return PWP, P the projection onto vectors orthogonal to 1."""
    rows = W.mean(axis=1)
    both: NDArray[np.float64] = W - rows[:, None] - rows[None, :] + rows.mean()
    return (both + both.T) / 2


def differences(n: int) -> NDArray[np.float64]:
    """Return an orthonormal basis of the vectors orthogonal to 1, in columns."""
    return orthogonal_to(np.ones(n))


def orthogonal_to(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis of the vectors orthogonal to x, in columns (a reflection's)."""
    v = x / np.linalg.norm(x)
    v[0] += 1.0 if v[0] >= 0 else -1.0
    return (np.eye(len(x)) - np.outer(v, v) * (2 / (v @ v)))[:, 1:]


@njit_fast
def _tridiagonal(B, g):  # type: ignore[no-untyped-def]
    """Turn B (used up) into its diagonal and the entries beside it, and g along with it."""
    n = B.shape[0]
    diagonal = np.empty(n)
    beside = np.zeros(n - 1)
    v = np.empty(n)
    p = np.empty(n)
    for c in range(n - 2):
        diagonal[c] = B[c, c]
        length = np.sqrt((B[c, c + 1 :] ** 2).sum())
        if length == 0.0:
            continue
        beside[c] = -length if B[c, c + 1] > 0 else length
        v[c + 1 :] = B[c, c + 1 :]
        v[c + 1] -= beside[c]
        beta = 2.0 / (v[c + 1 :] ** 2).sum()
        along = 0.0
        for i in range(c + 1, n):
            x = 0.0
            for j in range(c + 1, n):
                x += B[i, j] * v[j]
            p[i] = beta * x
            along += v[i] * p[i]
        turn = 0.0
        for i in range(c + 1, n):
            p[i] -= along * beta / 2 * v[i]
            turn += v[i] * g[i]
        for i in range(c + 1, n):
            g[i] -= beta * turn * v[i]
            for j in range(c + 1, n):
                B[i, j] -= v[i] * p[j] + p[i] * v[j]
    for c in range(max(n - 2, 0), n):
        diagonal[c] = B[c, c]
        if c < n - 1:
            beside[c] = B[c, c + 1]
    return diagonal, beside, g


@njit
def _least_dual(diagonal, beside, g, r2):  # type: ignore[no-untyped-def]
    """Least mu r^2 + g'(mu - T)^-1 g over the mu that bisection on its slope meets, and its mu."""
    n = len(diagonal)
    x = np.empty(n)
    low = diagonal.max()
    high = low
    for i in range(n):  # Gershgorin
        reach = (abs(beside[i - 1]) if i > 0 else 0.0) + (abs(beside[i]) if i < n - 1 else 0.0)
        high = max(high, diagonal[i] + reach)
    high += np.sqrt((g**2).sum() / r2) + 1e-14 * np.abs(diagonal).max() + 1e-100
    least = np.inf
    taken = high
    for _ in range(80):
        mu = high if least == np.inf else (low + high) / 2
        if not _solve(diagonal, beside, g, mu, x):
            if least == np.inf:  # rounding: a little further up
                high += 1e-10 * abs(high)
            low = mu
            continue
        if mu * r2 + (g * x).sum() < least:
            least, taken = mu * r2 + (g * x).sum(), mu
        if (x**2).sum() > r2:
            low = mu
        else:
            high = mu
        if high - low <= 1e-15 * max(abs(high), abs(low)):
            break
    return least, taken


@njit
def _solve(diagonal, beside, g, mu, x):  # type: ignore[no-untyped-def]
    """Solve (mu - T) x = g by LDL'; False unless mu - T is positive definite."""
    n = len(diagonal)
    pivots = np.empty(n)
    for i in range(n):
        pivots[i] = mu - diagonal[i]
        x[i] = g[i]
        if i > 0:
            factor = beside[i - 1] / pivots[i - 1]
            pivots[i] -= factor * beside[i - 1]
            x[i] += factor * x[i - 1]
        if pivots[i] <= 0.0:
            return False
    x[n - 1] /= pivots[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] + beside[i] * x[i + 1]) / pivots[i]
    return True
