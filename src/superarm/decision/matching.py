"""Matchings of a bipartite graph; an arm is an edge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from superarm._checks import whole
from superarm.decision.base import NOBODY, Decision, Members, Vector, read_edges
from superarm.errors import ProblemError


@dataclass(frozen=True)
class Matchings(Decision):
    """Sets of `size` edges of a bipartite graph, no two of which share an end.

    Parameters
    ----------
    edges
        Pairs (left, right): (worker, task), say. No pair twice.
    size
        Number of edges of a matching; as many as one side has nodes (perfect) if not given.
    """

    edges: tuple[tuple[Hashable, Hashable], ...]
    size: int

    def __init__(self, edges: Iterable[tuple[Hashable, Hashable]], size: int | None = None) -> None:
        pairs = read_edges(edges)
        object.__setattr__(self, "edges", pairs)
        twins = [pair for pair, count in Counter(pairs).items() if count > 1]
        if twins:
            raise ProblemError(f"edge {twins[0]!r} is listed twice")
        smaller = min(len(self._left), len(self._right))
        wanted = smaller if size is None else whole("size", size, ProblemError, least=1)
        object.__setattr__(self, "size", wanted)
        if not pairs or wanted > smaller or self.best_within(np.zeros(self.n), (), ()) is None:
            raise ProblemError(f"the graph has no matching of {wanted} edges")

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.edges)

    @property
    def k(self) -> int:  # type: ignore[override]
        """Size of every set."""
        return self.size

    @cached_property
    def _left(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(dict.fromkeys(u for u, _ in self.edges))}

    @cached_property
    def _right(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(dict.fromkeys(v for _, v in self.edges))}

    @cached_property
    def _ends(self) -> tuple[Members, Members]:
        left = np.array([self._left[u] for u, _ in self.edges], dtype=np.int64)
        return left, np.array([self._right[v] for _, v in self.edges], dtype=np.int64)

    @cached_property
    def log_size(self) -> float:
        """Bound: for `size` nodes of one side an edge each; for perfect ones Bregman and Minc."""
        sides = [np.bincount(ends) for ends in self._ends]
        bounds = [_log_elementary(degrees, self.size) for degrees in sides]
        if self.size == len(self._left) == len(self._right):
            bounds += [sum(math.lgamma(d + 1) / d for d in degrees) for degrees in sides]
        return self.counted(min(bounds))

    def best_within(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        """Assignment with nodes that stand for "unmatched" on both sides: O(n^3)."""
        held, (left, right) = list(forced), self._ends
        free = [np.ones(len(side), dtype=np.bool_) for side in (self._left, self._right)]
        free[0][left[held]] = free[1][right[held]] = False
        lefts, rights = (int(np.count_nonzero(side)) for side in free)
        alone = (len(self._left) - lefts, len(self._right) - rights) == (len(held), len(held))
        rest = self.size - len(held)
        if not alone or not 0 <= rest <= min(lefts, rights):
            return None
        usable = free[0][left] & free[1][right]
        usable[list(forbidden)] = False
        chosen = np.flatnonzero(usable)
        places = tuple(
            (np.cumsum(side) - 1)[ends[chosen]]
            for side, ends in zip(free, (left, right), strict=True)
        )
        value = np.full((lefts, rights), -np.inf)
        arm = np.full(value.shape, NOBODY, dtype=np.int64)
        value[places], arm[places] = np.asarray(weights)[chosen], chosen
        members = _assigned(value, arm, rest)
        return None if members is None else np.sort(np.array([*held, *members], dtype=np.int64))

    def contains(self, members: Iterable[int]) -> bool:
        chosen = list(members)
        if len(set(chosen)) != self.size or len(chosen) != self.size:
            return False
        if not all(0 <= i < self.n for i in chosen):
            return False
        return all(len(set(ends[chosen].tolist())) == self.size for ends in self._ends)

    def sets(self) -> Iterator[Sequence[int]]:
        left, right = (ends.tolist() for ends in self._ends)

        def extend(held: list[int], start: int) -> Iterator[Sequence[int]]:
            if len(held) == self.size:
                yield tuple(held)
                return
            for arm in range(start, self.n):
                if all(left[arm] != left[i] and right[arm] != right[i] for i in held):
                    yield from extend([*held, arm], arm + 1)

        return extend([], 0)


def _assigned(value: np.ndarray, arm: np.ndarray, size: int) -> list[int] | None:
    """Return the arms of the heaviest matching of `size` edges.

    Lefts - size further columns take the lefts that stay unmatched, and rights - size further rows
    the rights: a perfect matching of the larger square has `size` edges of the graph.
    """
    lefts, rights = value.shape
    if size == 0:
        return []
    square = np.full((lefts + rights - size, lefts + rights - size), -np.inf)
    square[:lefts, :rights] = value
    square[:lefts, rights:] = 0.0
    square[lefts:, :rights] = 0.0
    try:
        rows, columns = linear_sum_assignment(square, maximize=True)
    except ValueError:  # infeasible
        return None
    inside = (rows < lefts) & (columns < rights)
    return [int(a) for a in arm[rows[inside], columns[inside]]]


def _log_elementary(degrees: np.ndarray, size: int) -> float:
    """Log of the elementary symmetric polynomial: ways to choose nodes and an edge at each."""
    polynomial = [1] + [0] * size
    for degree in degrees.tolist():
        for d in range(size, 0, -1):
            polynomial[d] += int(degree) * polynomial[d - 1]
    return math.log(polynomial[size]) if polynomial[size] else 0.0
