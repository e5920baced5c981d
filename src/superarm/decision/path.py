"""Paths of a graph from a source to a target; an arm is an edge.

In a directed graph without cycles the heaviest path is found for any weights, and so it is in any
graph whose paths are few enough to be listed. In others it is the cheapest simple path that is
found, for costs that have no negative cycle.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np

from superarm._checks import flag
from superarm.decision.base import (
    Decision,
    Members,
    Rows,
    Vector,
    as_rows,
    check_hashable,
    read_edges,
)
from superarm.decision.vanishing import Graph, Matrix, lowered, vanishing_weights
from superarm.errors import NegativeCycleError, ProblemError

_FEW = 20_000  # so many paths are listed,
_STEPS = 200_000  # if no more steps than this lead to them


@dataclass(frozen=True)
class Paths(Decision):
    """The simple paths from `source` to `target`.

    Parameters
    ----------
    edges
        Pairs (from, to). Several between the same nodes are different arms.
    source, target
        Where paths begin and end.
    directed
        Whether an edge leads one way only. An undirected edge is one arm, used either way.
    """

    edges: tuple[tuple[Hashable, Hashable], ...]
    source: Hashable
    target: Hashable
    directed: bool = True

    def __init__(
        self,
        edges: Iterable[tuple[Hashable, Hashable]],
        source: Hashable,
        target: Hashable,
        *,
        directed: bool = True,
    ) -> None:
        object.__setattr__(self, "edges", read_edges(edges))
        check_hashable("an end of a path", (source, target))
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "directed", flag("directed", directed, ProblemError))
        if source == target:
            raise ProblemError(f"a path needs two ends; source and target are both {source!r}")
        for end in (source, target):
            if end not in self._nodes:
                raise ProblemError(f"no edge touches {end!r}")
        if self._walk(np.zeros(self.n), self._source, frozenset(), frozenset()) is None:
            raise ProblemError(f"no path leads from {source!r} to {target!r}")

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.edges)

    @cached_property
    def _nodes(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(dict.fromkeys(v for e in self.edges for v in e))}

    @cached_property
    def _source(self) -> int:
        return self._nodes[self.source]

    @cached_property
    def _target(self) -> int:
        return self._nodes[self.target]

    @cached_property
    def _out(self) -> list[list[tuple[int, int]]]:
        """Edges that leave each node: (arm, head)."""
        out: list[list[tuple[int, int]]] = [[] for _ in self._nodes]
        for arm, (u, v) in enumerate(self.edges):
            out[self._nodes[u]].append((arm, self._nodes[v]))
            if not self.directed:
                out[self._nodes[v]].append((arm, self._nodes[u]))
        return out

    @cached_property
    def _order(self) -> list[int] | None:
        """Nodes in topological order; None where there are cycles."""
        if not self.directed:
            return None
        sorter: TopologicalSorter[int] = TopologicalSorter({i: () for i in self._nodes.values()})
        for u, v in self.edges:
            sorter.add(self._nodes[v], self._nodes[u])
        try:
            return list(sorter.static_order())
        except CycleError:
            return None

    @property
    def acyclic(self) -> bool:
        """Whether there is no cycle, so that any weights will do."""
        return self._order is not None

    @property
    def signed(self) -> bool:
        return self.acyclic or self._few is not None

    @property
    def unit(self) -> Vector:
        """A path leaves the source by one edge."""
        either = not self.directed
        return np.array(
            [float(u == self.source or (either and v == self.source)) for u, v in self.edges]
        )

    @cached_property
    def _few(self) -> Rows | None:
        """Where there are cycles: all paths, None where they are too many."""
        found: list[Sequence[int]] = []
        for step, path in enumerate(self._steps()):
            if path is not None:
                found.append(path)
            if step == _STEPS or len(found) > _FEW:
                return None
        return as_rows(found)

    @cached_property
    def vanishing(self) -> Matrix:
        """Rows of weights that add up to 0 on every path."""
        tails = np.array([self._nodes[u] for u, _ in self.edges])
        heads = np.array([self._nodes[v] for _, v in self.edges])
        graph = Graph(tails, heads, len(self._nodes), self._source, self._target, not self.directed)
        return vanishing_weights(graph)

    @property
    def most_independent(self) -> int:
        """No more paths than this are independent."""
        return self.n - int(np.linalg.matrix_rank(self.vanishing))

    @cached_property
    def k(self) -> int:  # type: ignore[override]
        """Edges of the longest path (of any simple path at most, where there are cycles)."""
        if self.acyclic:
            return len(self.best(np.ones(self.n)))
        return min(len(self._nodes) - 1, self.n)

    @cached_property
    def least_size(self) -> int:
        return len(self.best(-np.ones(self.n)))

    @cached_property
    def log_size(self) -> float:
        """Exact if listed or without cycles; else a bound: a node is left by one of its edges."""
        if self._order is None and self._few is not None:
            return math.log(len(self._few))
        if self._order is None:
            choices = [len(out) for i, out in enumerate(self._out) if i != self._target]
            return sum(math.log(c) for c in choices if c > 1)
        ways = [0] * len(self._nodes)
        ways[self._target] = 1
        for node in reversed(self._order):
            if node != self._target:
                ways[node] = sum(ways[head] for _, head in self._out[node])
        return math.log(ways[self._source])

    def best_within(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        """Return the heaviest path: forced edges get a bonus that no path without them can beat.

        Where a bonus could make a cycle pay, and paths are too many to be listed, edges cannot be
        forced; `best_two` does without.
        """
        if not self.acyclic and self._few is not None:
            return self._best_listed(weights, forced, forbidden)
        if forced and not self.acyclic:
            raise NotImplementedError("edges of a graph with cycles cannot be forced")
        values = self._without_gain(np.array(weights, dtype=np.float64))
        if forced:
            values[list(forced)] += 1.0 + 2.0 * float(np.abs(values).sum())
        path = self._walk(values, self._source, frozenset(forbidden), frozenset())
        if path is None or not set(forced) <= set(path):
            return None
        return np.sort(np.array(path, dtype=np.int64))

    def _best_listed(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        assert self._few is not None
        values = np.append(weights, 0.0)
        allowed = ~np.isin(self._few, list(forbidden)).any(axis=1)
        for arm in forced:
            allowed &= (self._few == arm).any(axis=1)
        if not allowed.any():
            return None
        row = self._few[np.argmax(np.where(allowed, values[self._few].sum(axis=1), -np.inf))]
        return row[row >= 0]

    def best_two(self, weights: Vector) -> tuple[Members, Members | None]:
        """Yen: another path leaves the best one at some node, by another edge, and is simple."""
        values = np.asarray(weights, dtype=np.float64)
        if not self.acyclic and self._few is not None:
            return self._two_listed(values)
        values = self._without_gain(values)
        best = self._walk(values, self._source, frozenset(), frozenset())
        assert best is not None
        second: list[int] | None = None
        most = -math.inf
        node = self._source
        passed: set[int] = set()
        for place, arm in enumerate(best):
            rest = self._walk(values, node, frozenset((arm,)), frozenset(passed))
            if rest is not None and values[best[:place] + rest].sum() > most:
                second = best[:place] + rest
                most = float(values[second].sum())
            passed.add(node)
            node = next(head for other, head in self._out[node] if other == arm)
        first = np.sort(np.array(best, dtype=np.int64))
        return first, None if second is None else np.sort(np.array(second, dtype=np.int64))

    def _without_gain(self, weights: Vector) -> Vector:
        """Return weights of the same paths' totals for which no cycle pays, if such are found."""
        if self.acyclic:
            return weights
        try:
            self._walk(weights, self._source, frozenset(), frozenset())
        except NegativeCycleError:
            same = lowered(weights, self.vanishing)
            if same is None:
                raise
            return same
        return weights

    def _two_listed(self, weights: Vector) -> tuple[Members, Members | None]:
        assert self._few is not None
        totals = np.append(weights, 0.0)[self._few].sum(axis=1)
        first = int(np.argmax(totals))
        totals[first] = -np.inf
        two = [row[row >= 0] for row in self._few[[first, int(np.argmax(totals))]]]
        return two[0], two[1] if len(totals) > 1 else None

    def contains(self, members: Iterable[int]) -> bool:
        left, node, passed = set(members), self._source, {self._source}
        if not all(0 <= arm < self.n for arm in left):
            return False
        while left and node != self._target:
            step = [(arm, head) for arm, head in self._out[node] if arm in left]
            if len(step) != 1 or step[0][1] in passed:
                return False
            left.remove(step[0][0])
            node = step[0][1]
            passed.add(node)
        return node == self._target and not left

    def draw(self, rng: np.random.Generator) -> Members:
        if self.signed:
            return self.best(rng.standard_normal(self.n))
        return self._wandering(rng)

    def _wandering(self, rng: np.random.Generator) -> Members:
        """Go on at random to nodes not seen before, back where there are none: a winding path."""
        seen = {self._source}
        held: list[tuple[int, int]] = [(-1, self._source)]
        while held[-1][1] != self._target:
            ahead = [step for step in self._out[held[-1][1]] if step[1] not in seen]
            if ahead:
                held.append(ahead[int(rng.integers(len(ahead)))])
                seen.add(held[-1][1])
            else:
                held.pop()
        return np.sort(np.array([arm for arm, _ in held[1:]], dtype=np.int64))

    def sets(self) -> Iterator[Sequence[int]]:
        return (path for path in self._steps() if path is not None)

    def _steps(self) -> Iterator[Sequence[int] | None]:
        """Yield each path, and None for each step on the way to one (or to a dead end)."""
        held: list[int] = []
        passed = {self._source}
        ahead = [(self._source, iter(self._out[self._source]))]
        while ahead:
            arm, head = next(ahead[-1][1], (-1, -1))
            if arm < 0:
                passed.discard(ahead.pop()[0])
                if held:
                    held.pop()
            elif head == self._target:
                yield tuple(sorted([*held, arm]))
            elif head not in passed:
                yield None
                held.append(arm)
                passed.add(head)
                ahead.append((head, iter(self._out[head])))

    def _walk(
        self, weights: Vector, start: int, forbidden: frozenset[int], passed: frozenset[int]
    ) -> list[int] | None:
        """Return the heaviest path from a node to the target, edges in order, avoiding nodes."""
        value = [-math.inf] * len(self._nodes)
        via: list[tuple[int, int]] = [(-1, -1)] * len(self._nodes)
        value[self._target] = 0.0
        if self._order is not None:
            for node in reversed(self._order):
                self._relax(node, weights, value, via, forbidden, passed)
        else:
            self._settle(weights, value, via, forbidden, passed)
        if value[start] == -math.inf:
            return None
        path, node = [], start
        while node != self._target:
            arm, node = via[node]
            path.append(arm)
        return path

    def _settle(
        self,
        weights: Vector,
        value: list[float],
        via: list[tuple[int, int]],
        forbidden: frozenset[int],
        passed: frozenset[int],
    ) -> None:
        """Bellman and Ford: rounds until nothing changes, at most one for each node."""
        for _ in self._nodes:
            changed = False
            for node in range(len(self._nodes)):
                changed |= self._relax(node, weights, value, via, forbidden, passed)
            if not changed:
                return
        raise NegativeCycleError(
            "costs go down round a cycle, so that no path is the cheapest; "
            "costs in a graph with cycles must not be negative"
        )

    def _relax(
        self,
        node: int,
        weights: Vector,
        value: list[float],
        via: list[tuple[int, int]],
        forbidden: frozenset[int],
        passed: frozenset[int],
    ) -> bool:
        """Take the best edge that leaves a node; say whether that made it better."""
        if node == self._target or node in passed:
            return False
        before = value[node]
        for arm, head in self._out[node]:
            if arm in forbidden or head in passed:
                continue
            if weights[arm] + value[head] > value[node]:
                value[node] = weights[arm] + value[head]
                via[node] = (arm, head)
        return value[node] > before
