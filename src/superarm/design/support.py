"""Supports: drawing super-arms, and whether they tell the arms apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit
from superarm.decision import Decision, TopK, as_rows, indicators, spanning_sets
from superarm.errors import SupportError

Rows = NDArray[np.int64]

_FEW = 20_000  # so many sets are listed, where all of them may be asked for


def random_support(decision: Decision, size: int, rng: np.random.Generator) -> Rows:
    """Draw `size` different super-arms that span what the class does, where there are so many."""
    if not isinstance(decision, TopK):
        return _drawn(decision, size, rng)
    for _ in range(20):
        rows = _distinct_rows(decision, size, rng)
        if len(independent_rows(rows, decision.n, decision.n)) == decision.n:
            break
    return rows  # when still short of rank (rare), `span_first` says which arms suffer


def _distinct_rows(topk: TopK, size: int, rng: np.random.Generator) -> Rows:
    """Draw different subsets, all equally likely."""
    if 2 * size > topk.size:
        return topk.enumerate()[rng.permutation(topk.size)[:size]].astype(np.int64)
    found: dict[bytes, Rows] = {}
    while len(found) < size:
        row = topk.draw(rng)
        found.setdefault(row.tobytes(), row)
    return np.array(list(found.values()), dtype=np.int64)


def _drawn(decision: Decision, size: int, rng: np.random.Generator) -> Rows:
    """Sets that span, and others; fewer than `size` when new ones have become very rare."""
    if decision.log_size <= math.log(_FEW):
        rows = decision.enumerate()
        if len(rows) <= size:
            return rows
    first = spanning_sets(decision, rng)
    found = {tuple(row[row >= 0].tolist()): None for row in first}
    tries = 0
    while len(found) < size and tries < 50 * size:
        found.setdefault(tuple(decision.draw(rng).tolist()))
        tries += 1
    return as_rows(list(found))


def span_first(
    rows: Rows, names: Sequence[str], basis: NDArray[np.float64] | None = None
) -> tuple[Rows, int]:
    """Return an order of a support in which its first rows are a basis, and their number.

    Tracking measures each super-arm once, in plan order, before any a second time: so these are
    the first pulls of Algorithms 2-5, which make A_t invertible (on the span of the class, whose
    `basis` is given where it is not all of R^n).
    """
    wanted = len(names) if basis is None else basis.shape[1]
    first = independent_rows(rows, len(names), wanted)
    if len(first) < wanted:
        raise SupportError(_not_apart(rows, names, basis))
    rest = np.setdiff1d(np.arange(len(rows)), first)
    return np.concatenate([first, rest]), len(first)


def independent_rows(rows: Rows, n: int, wanted: int) -> Rows:
    """Return the indices of rows that are independent of those before them, up to `wanted`."""
    return _independent_rows(rows, n, wanted)


def _not_apart(rows: Rows, names: Sequence[str], basis: NDArray[np.float64] | None) -> str:
    """Name arms whose means these super-arms leave open, though the class determines them."""
    n = len(names)
    x = indicators(rows, n)
    span = np.eye(n) if basis is None else basis
    values, vectors = np.linalg.eigh(span.T @ x.T @ x @ span)
    null = span @ vectors[:, values < 1e-9 * max(1.0, values[-1])]
    loose = np.flatnonzero(np.abs(null).max(axis=1) > 1e-7)
    listed = ", ".join(names[int(i)] for i in loose[:8]) + (" ..." if len(loose) > 8 else "")
    never = [names[int(i)] for i in np.flatnonzero(x.sum(axis=0) == 0) if i in loose][:3]
    hint = f" ({', '.join(never)}: in none of them)" if never else ""
    size = span.shape[1]
    return (
        f"the support's {len(rows)} super-arms determine only {size - null.shape[1]} of {size} "
        f"means; these arms cannot be told apart: {listed}{hint}. Add super-arms that separate them"
    )


@njit
def _independent_rows(rows, n, wanted):  # type: ignore[no-untyped-def]
    """Gaussian elimination, row by row, until the rank is reached: O(rows looked at * n^2)."""
    basis = np.zeros((n, n))
    pivots = np.full(n, -1, np.int64)
    found = np.empty(n, np.int64)
    rank = 0
    for r in range(rows.shape[0]):
        if rank == wanted:
            break
        x = np.zeros(n)
        for i in rows[r]:
            if i < 0:
                break
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
