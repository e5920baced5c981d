"""Feige, Peleg and Kortsarz (2001), "The dense k-subgraph problem": the best of its procedures.

Their ratio of O(n^(1/3 - c)) is for graphs without weights; here the procedures take weights as
they are, so that what they find is good in practice and has no proven ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Members = NDArray[np.int64]


def feige_peleg_kortsarz(weights: Matrix, k: int) -> Members:
    """Return the heaviest of what the three procedures find; weights >= 0, diagonal ignored."""
    edges = weights - np.diag(np.diagonal(weights))
    found = [heaviest_edges(edges, k), greedy(edges, k), walks(edges, k)]
    return max(found, key=lambda members: float(edges[np.ix_(members, members)].sum()))


def heaviest_edges(edges: Matrix, k: int) -> Members:
    """Procedure 1: the ends of the heaviest edges, until there are k: O(n^2 log n)."""
    i, j = np.triu_indices(len(edges), 1)
    chosen: dict[int, None] = {}
    for e in np.argsort(-edges[i, j], kind="stable"):
        ends = dict.fromkeys((int(i[e]), int(j[e])))
        if len(chosen | ends) <= k:
            chosen |= ends
        if len(chosen) == k:
            break
    return _filled(np.array(list(chosen), dtype=np.int64), edges.sum(axis=1), k)


def greedy(edges: Matrix, k: int) -> Members:
    """Procedure 2: k/2 vertices of greatest degree, and the k/2 that weigh most towards them."""
    hubs = _heaviest(edges.sum(axis=1), k // 2)
    return _filled(hubs, edges[:, hubs].sum(axis=1), k)


def walks(edges: Matrix, k: int) -> Members:
    """Procedure 3: for each vertex the k/2 best reached by walks of length 2, and their neighbours.

    The neighbours are the k/2 vertices that weigh most towards those. The best of n sets: O(n^3).
    """
    n, half = len(edges), k // 2
    reached = edges @ edges
    np.fill_diagonal(reached, -np.inf)
    ends = np.argsort(-reached, axis=1, kind="stable")[:, :half]
    inside = np.zeros((n, n))
    np.put_along_axis(inside, ends, 1.0, axis=1)
    towards = np.where(inside > 0, np.inf, inside @ edges)
    members = np.argsort(-towards, axis=1, kind="stable")[:, :k]
    chosen = np.zeros((n, n))
    np.put_along_axis(chosen, members, 1.0, axis=1)
    best = int(np.argmax(np.einsum("ij,ij->i", chosen @ edges, chosen)))
    return np.sort(members[best])


def _heaviest(values: NDArray[np.float64], size: int) -> Members:
    return np.argsort(-values, kind="stable")[:size]


def _filled(members: Members, towards: NDArray[np.float64], k: int) -> Members:
    """Add the vertices of greatest `towards` until there are k."""
    rest = towards.copy()
    rest[members] = -np.inf
    return np.sort(np.concatenate([members, _heaviest(rest, k - len(members))]))
