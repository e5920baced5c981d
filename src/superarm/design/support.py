"""Supports: drawing super-arms, and whether they tell the arms apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit
from superarm.decision import TopK
from superarm.errors import SupportError

Rows = NDArray[np.int64]


def random_support(topk: TopK, size: int, rng: np.random.Generator) -> Rows:
    """Draw `size` different super-arms, uniformly; again, should they not span (rare)."""
    for _ in range(20):
        rows = _distinct_rows(topk, size, rng)
        if len(independent_rows(rows, topk.n)) == topk.n:
            break
    return rows  # when still short of rank, `span_first` says which arms suffer


def _distinct_rows(topk: TopK, size: int, rng: np.random.Generator) -> Rows:
    if 2 * size > topk.size:
        return topk.enumerate()[rng.permutation(topk.size)[:size]].astype(np.int64)
    found: dict[bytes, Rows] = {}
    while len(found) < size:
        row = np.sort(rng.choice(topk.n, topk.k, replace=False, shuffle=False))
        found.setdefault(row.tobytes(), row)
    return np.array(list(found.values()), dtype=np.int64)


def span_first(rows: Rows, names: Sequence[str]) -> tuple[Rows, int]:
    """Return an order of a support in which its first rows are a basis, and their number.

    Tracking measures each super-arm once, in plan order, before any a second time: so these are
    the first n pulls of Algorithms 2-5, which make A_t invertible.
    """
    first = independent_rows(rows, len(names))
    if len(first) < len(names):
        raise SupportError(_not_apart(rows, names))
    rest = np.setdiff1d(np.arange(len(rows)), first)
    return np.concatenate([first, rest]), len(first)


def independent_rows(rows: Rows, n: int) -> Rows:
    """Return the indices of rows that are independent of those before them."""
    return _independent_rows(rows, n)


def _not_apart(rows: Rows, names: Sequence[str]) -> str:
    """Name arms whose difference no combination of these super-arms gives."""
    n = len(names)
    x = np.zeros((len(rows), n))
    np.put_along_axis(x, rows, 1.0, axis=1)
    values, vectors = np.linalg.eigh(x.T @ x)
    null = vectors[:, values < 1e-9 * max(1.0, values[-1])]
    loose = np.flatnonzero(np.abs(null).max(axis=1) > 1e-7)
    listed = ", ".join(names[int(i)] for i in loose[:8]) + (" ..." if len(loose) > 8 else "")
    never = [names[int(i)] for i in np.flatnonzero(x.sum(axis=0) == 0)][:3]
    hint = f" ({', '.join(never)}: in none of them)" if never else ""
    return (
        f"the support's {len(rows)} super-arms determine only {n - null.shape[1]} of {n} means; "
        f"these arms cannot be told apart: {listed}{hint}. Add super-arms that separate them"
    )


@njit
def _independent_rows(rows, n):  # type: ignore[no-untyped-def]
    """Gaussian elimination, row by row, until the rank is n: O(rows looked at * n^2)."""
    basis = np.zeros((n, n))
    pivots = np.full(n, -1, np.int64)
    found = np.empty(n, np.int64)
    rank = 0
    for r in range(rows.shape[0]):
        if rank == n:
            break
        x = np.zeros(n)
        for i in rows[r]:
            x[i] = 1.0
        for b in range(rank):
            factor = x[pivots[b]]
            if factor != 0.0:
                for i in range(n):
                    x[i] -= factor * basis[b, i]
        pivot = np.argmax(np.abs(x))
        if abs(x[pivot]) > 1e-8:
            basis[rank] = x / x[pivot]
            pivots[rank] = pivot
            found[rank] = r
            rank += 1
    return found[:rank]
