"""Densest-k-subgraph oracles: heavy k-vertex subgraphs of a graph with non-negative weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit_fast

Matrix = NDArray[np.float64]


def greedy_peeling(weights: Matrix, k: int) -> NDArray[np.int64]:
    """Remove the vertex of least weighted degree until k are left (Asahiro et al. 2000).

    O(n^2); ties go to the lower index; the diagonal of `weights` is ignored.
    """
    members: NDArray[np.int64] = peel(
        np.ascontiguousarray(weights), np.zeros(len(weights)), max(k, 2)
    )
    return members if k > 1 else members[1:]  # the last two have one edge and one degree


def peeling_guarantee(n: int, k: int) -> float:
    """Return a share of the heaviest weight that greedy peeling never falls below.

    Removing the lightest of m vertices keeps a share 1 - 2/m of the weight, so from the whole
    graph (which is at least as heavy as any subgraph) k(k-1)/(n(n-1)) is left.
    """
    return 1.0 if k == 1 else k * (k - 1) / (n * (n - 1))


@njit_fast
def peel(weights, vertex, k):  # type: ignore[no-untyped-def]
    """Greedy peeling where the edge ij weighs weights[i, j] + vertex[i] + vertex[j]."""
    n = len(vertex)
    degree = np.empty(n)
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += weights[i, j]
        degree[i] = s - weights[i, i]
    return peel_from(weights, vertex, degree, k)


@njit_fast
def peel_from(weights, vertex, degree, k):  # type: ignore[no-untyped-def]
    """Peel, given (and using up) each vertex's sum of weights[i, j] over j != i: O(n (n - k))."""
    n = len(vertex)
    all_vertices = vertex.sum()
    most = 0.0
    for i in range(n):
        degree[i] += (n - 2) * vertex[i] + all_vertices
        most = max(most, abs(degree[i]))
    tie = 1e-10 * most  # rounding must not decide between equals
    for _ in range(n - k):
        least = np.inf
        for i in range(n):
            least = min(least, degree[i])
        v = 0
        while degree[v] > least + tie:
            v += 1
        lost = vertex[v]
        for j in range(n):
            degree[j] -= weights[v, j] + vertex[j] + lost
        degree[v] = np.inf
    members = np.empty(k, np.int64)
    left = 0
    for i in range(n):
        if degree[i] < np.inf:
            members[left] = i
            left += 1
    return members
