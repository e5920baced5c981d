"""What no path can tell: weights that add up to 0 on every simple path of a graph.

They bound from above how many paths can be independent, which is how `spanning_sets` knows that
it has found enough of them in a graph too large to list its paths. Three facts give them.

- An edge is idle, that is in no path, if some node comes before it on every way to it and after it
  on every way from it.
- What flows into a node flows out of it, and what leaves the source arrives at the target.
- Take away two nodes u and v. A part of the rest without source and target is entered by one of
  the two and left by the other, or not at all: edges from u into it weigh +1, from it to v -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


class Graph(NamedTuple):
    """Edges from tails to heads (usable either way if `both`), nodes 0 .. nodes - 1."""

    tails: Index
    heads: Index
    nodes: int
    source: int
    target: int
    both: bool


def vanishing_weights(graph: Graph) -> Matrix:
    """Return rows of weights that add up to 0 on every simple path: O(nodes^2 (nodes + edges))."""
    idle = _idle(graph)
    rows = np.array([*_flows(graph), *_gates(graph, idle)])
    while True:  # weights of one sign that add up to 0 belong to idle edges
        left = np.where(idle, 0.0, rows)
        one_sign = (left >= 0).all(axis=1) | (left <= 0).all(axis=1)
        more = (left[one_sign] != 0).any(axis=0)
        if not more.any():
            break
        idle |= more
    left = left[(left != 0).any(axis=1)]
    return np.vstack([np.unique(left, axis=0), np.eye(len(idle))[idle]])


def _idle(graph: Graph) -> Mask:
    """Edges after and before the same node; leaving those out may show others."""
    tails, heads, nodes, source, target, both = graph
    idle = np.zeros(len(tails), dtype=np.bool_)
    while True:
        found = idle.copy()
        for node in range(nodes):
            kept = ~idle & (tails != node) & (heads != node)
            ahead = _reached(tails[kept], heads[kept], nodes, source, both) & (node != source)
            back = _reached(heads[kept], tails[kept], nodes, target, both) & (node != target)
            along = ~ahead[tails] & ~back[heads]
            found |= along & ~ahead[heads] & ~back[tails] if both else along
        if np.array_equal(found, idle):
            return idle
        idle = found


def _reached(tails: Index, heads: Index, nodes: int, start: int, both: bool) -> Mask:
    joined = csr_array((np.ones(len(tails)), (tails, heads)), shape=(nodes, nodes))
    found = np.zeros(nodes, dtype=np.bool_)
    order = breadth_first_order(joined, start, directed=not both, return_predecessors=False)
    found[order] = True
    return found


def _flows(graph: Graph) -> Iterator[Vector]:
    tails, heads, nodes, source, target, both = graph
    leaves, arrives = tails == source, heads == target
    if both:
        yield 1.0 * (leaves | (heads == source)) - (arrives | (tails == target))
        return
    yield 1.0 * leaves - arrives
    for node in set(range(nodes)) - {source, target}:
        yield 1.0 * (heads == node) - (tails == node)


def _gates(graph: Graph, idle: Mask) -> Iterator[Vector]:
    tails, heads, nodes, source, target, both = graph
    for u, v in combinations(range(nodes), 2):
        kept = ~(idle | np.isin(tails, (u, v)) | np.isin(heads, (u, v)))
        shape = (nodes, nodes)
        joined = csr_array((np.ones(kept.sum()), (tails[kept], heads[kept])), shape=shape)
        part = connected_components(joined, directed=False)[1]
        part[[u, v]] = -1
        for p in set(part.tolist()) - {-1, part[source], part[target]}:
            from_u, from_v = ((tails == gate) & (part[heads] == p) for gate in (u, v))
            to_u, to_v = ((heads == gate) & (part[tails] == p) for gate in (u, v))
            if both:
                yield 1.0 * (from_u | to_u) - (from_v | to_v)
            else:
                yield 1.0 * from_u - to_v
                yield 1.0 * from_v - to_u


def lowered(weights: Vector, vanishing: Matrix) -> Vector | None:
    """Return weights below 0 that add up to the same on every path; None where there are none.

    Adding any of the vanishing weights changes no path: a linear programme finds how much of each
    keeps the greatest weight lowest.
    """
    mixed = vanishing.T
    found = linprog(
        np.append(np.zeros(mixed.shape[1]), 1.0),
        A_ub=np.column_stack([mixed, -np.ones(len(weights))]),
        b_ub=-weights,
        bounds=[(None, None)] * mixed.shape[1] + [(-float(np.abs(weights).max()), None)],
    )
    if found.x is None or found.x[-1] >= 0:
        return None
    return np.asarray(weights + mixed @ found.x[:-1])
