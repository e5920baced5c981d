"""Exact maximisation by going through all size-k sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


def brute_force(W: Matrix, k: int) -> NDArray[np.int64]:
    """Return the size-k set of greatest x'Wx; the first one in lexicographic order on ties."""
    n = len(W)
    nobody = np.zeros(n, dtype=np.bool_)
    return best_upper(np.zeros(n), W, np.zeros(n), 0.0, 1.0, False, k, nobody)


@njit
def best_upper(theta, W, linear, constant, C, root, k, excluded):  # type: ignore[no-untyped-def]
    """Maximise theta(M) + C f(x'Wx + linear(M) + constant) over M != excluded (a 0/1 mask).

    f is the square root if `root`, else the identity. Depth first in lexicographic order; each
    prefix keeps its sums and W x, so that a set costs O(1) and a prefix O(n).
    """
    n = len(theta)
    chosen = np.empty(k, np.int64)
    best = np.empty(k, np.int64)
    best_value = -np.inf
    reward = np.zeros(k + 1)
    square = np.zeros(k + 1)
    row = np.zeros((k + 1, n))  # row[d] = W x for the first d chosen
    hits = np.zeros(k + 1, np.int64)
    square[0] = constant
    depth = 0
    arm = 0
    while True:
        if arm > n - (k - depth):  # not enough arms left: back to the prefix before
            if depth == 0:
                return best
            depth -= 1
            arm = chosen[depth] + 1
            continue
        chosen[depth] = arm
        r = reward[depth] + theta[arm]
        q = square[depth] + 2.0 * row[depth, arm] + W[arm, arm] + linear[arm]
        h = hits[depth] + (1 if excluded[arm] else 0)
        if depth == k - 1:
            if h < k:
                value = r + C * (np.sqrt(max(0.0, q)) if root else q)
                if value > best_value:
                    best_value = value
                    best[:] = chosen
            arm += 1
            continue
        depth += 1
        reward[depth], square[depth], hits[depth] = r, q, h
        for i in range(arm + 1, n):
            row[depth, i] = row[depth - 1, i] + W[arm, i]
        arm += 1
