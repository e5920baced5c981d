"""Bases of matroids (Appendix B): the greedy algorithm is exact, with an independence oracle.

An independence test grows a set arm by arm, so that each class answers "may this arm join?" from
what it has noted of those before; the greedy algorithm then costs O(n log n + n g(n)).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from superarm._checks import whole
from superarm.decision.base import (
    Decision,
    Members,
    Vector,
    check_hashable,
    log_choose,
    read_edges,
)
from superarm.errors import ProblemError


class Growing(Protocol):
    """An independent set that can grow."""

    def join(self, arm: int) -> bool:
        """Take the arm in if the set stays independent; say whether it did."""


class Matroid(Decision):
    """The bases of a matroid: its largest independent sets."""

    @abstractmethod
    def empty(self) -> Growing:
        """Return the empty set, to be grown."""

    @cached_property
    def rank(self) -> int:
        """Size of every basis."""
        return len(self._grown(range(self.n)))

    @property
    def k(self) -> int:  # type: ignore[override]
        """Size of every set."""
        return self.rank

    @cached_property
    def log_size(self) -> float:
        return self.counted(log_choose(self.n, self.rank))

    def best_within(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        first, kept = list(forced), set(forced)
        passed = kept | set(forbidden)
        order = [i for i in np.argsort(-weights, kind="stable").tolist() if i not in passed]
        members = self._grown([*first, *order])
        if len(members) < self.rank or not kept <= set(members):
            return None
        return np.sort(np.array(members, dtype=np.int64))

    def contains(self, members: Iterable[int]) -> bool:
        chosen = list(members)
        inside = all(0 <= i < self.n for i in chosen) and len(set(chosen)) == len(chosen)
        return inside and len(chosen) == self.rank and len(self._grown(chosen)) == self.rank

    def exchanges(self, members: Members) -> Iterator[Members]:
        """Yield all bases that differ in one arm."""
        held = members.tolist()
        for place in range(len(held)):
            kept = held[:place] + held[place + 1 :]
            for arm in set(range(self.n)) - set(held):
                if len(self._grown([*kept, arm])) == self.rank:
                    yield np.sort(np.array([*kept, arm], dtype=np.int64))

    def sets(self) -> Iterator[Sequence[int]]:
        def extend(held: list[int], start: int) -> Iterator[Sequence[int]]:
            if len(held) == self.rank:
                yield tuple(held)
                return
            for arm in range(start, self.n - (self.rank - len(held)) + 1):
                if len(self._grown([*held, arm])) == len(held) + 1:
                    yield from extend([*held, arm], arm + 1)

        return extend([], 0)

    def _grown(self, order: Iterable[int]) -> list[int]:
        growing = self.empty()
        return [arm for arm in order if growing.join(arm)]


@dataclass(frozen=True)
class Partition(Matroid):
    """From each group of arms a number of them: (1 of the drivers, 3 of the loaders).

    Parameters
    ----------
    groups
        The group of each arm.
    capacities
        How many arms of each group make a set.
    """

    groups: tuple[Hashable, ...]
    capacities: tuple[tuple[Hashable, int], ...]

    def __init__(self, groups: Iterable[Hashable], capacities: dict[Any, int]) -> None:
        _check_list("groups", "the group of each arm", groups)
        object.__setattr__(self, "groups", tuple(groups))
        check_hashable("a group", self.groups)
        if not isinstance(capacities, Mapping):
            raise ProblemError(
                f"capacities must be a dict such as {{'drivers': 1}}, not {capacities!r}"
            )
        counts = ((g, whole(f"capacity of {g!r}", c, ProblemError)) for g, c in capacities.items())
        object.__setattr__(self, "capacities", tuple(counts))
        for group, capacity in self.capacities:
            there = self.groups.count(group)
            if not 0 <= capacity <= there:
                raise ProblemError(
                    f"group {group!r} has {there} arms, of which {capacity} cannot be chosen"
                )
        missing = set(self.groups) - set(capacities)
        if missing:
            raise ProblemError(f"no capacity is given for group {next(iter(missing))!r}")
        _not_empty(self)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.groups)

    @property
    def log_size(self) -> float:
        return sum(log_choose(self.groups.count(g), c) for g, c in self.capacities)

    def empty(self) -> Growing:
        return _Counted(self.groups, dict(self.capacities))


class _Counted:
    def __init__(self, groups: Sequence[Hashable], left: dict[Hashable, int]) -> None:
        self.groups, self.left = groups, left

    def join(self, arm: int) -> bool:
        group = self.groups[arm]
        if self.left[group] == 0:
            return False
        self.left[group] -= 1
        return True


@dataclass(frozen=True)
class SpanningTrees(Matroid):
    """The spanning trees of a connected graph; an arm is an edge (the graphic matroid)."""

    edges: tuple[tuple[Hashable, Hashable], ...]

    def __init__(self, edges: Iterable[tuple[Hashable, Hashable]]) -> None:
        object.__setattr__(self, "edges", read_edges(edges))
        _not_empty(self)
        if self.rank != len(self._nodes) - 1:
            raise ProblemError("the graph is not connected, so that it has no spanning tree")

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.edges)

    @cached_property
    def _nodes(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(dict.fromkeys(v for e in self.edges for v in e))}

    @cached_property
    def log_size(self) -> float:
        """Kirchhoff: the number of spanning trees is a minor of the graph's Laplacian."""
        size = len(self._nodes)
        laplacian = np.zeros((size, size))
        for u, v in self.edges:
            i, j = self._nodes[u], self._nodes[v]
            if i != j:
                laplacian[[i, j], [i, j]] += 1
                laplacian[[i, j], [j, i]] -= 1
        return float(np.linalg.slogdet(laplacian[1:, 1:])[1]) * (1 + 1e-12) + 1e-9

    def empty(self) -> Growing:
        return _Forest([(self._nodes[u], self._nodes[v]) for u, v in self.edges])


class _Forest:
    """Union-find over the nodes: an edge joins unless its ends hang together already."""

    def __init__(self, edges: Sequence[tuple[int, int]]) -> None:
        self.edges = edges
        self.above = list(range(1 + max((max(edge) for edge in edges), default=0)))

    def join(self, arm: int) -> bool:
        u, v = (self._root(node) for node in self.edges[arm])
        self.above[u] = v
        return u != v

    def _root(self, node: int) -> int:
        while self.above[node] != node:
            self.above[node] = self.above[self.above[node]]
            node = self.above[node]
        return node


@dataclass(frozen=True, eq=False)
class LinearMatroid(Matroid):
    """Bases of the space that some vectors span; an arm is a vector (a row)."""

    vectors: NDArray[np.float64]

    def __init__(self, vectors: Any) -> None:
        try:
            given = np.array(vectors)
            rows = given.astype(np.float64) if given.dtype.kind in "biufO" else np.array(math.nan)
        except (TypeError, ValueError, OverflowError):
            raise ProblemError("vectors must be rows of numbers, all of one length") from None
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise ProblemError("vectors must be rows of finite numbers, all of one length")
        object.__setattr__(self, "vectors", rows)
        _not_empty(self)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.vectors)

    def empty(self) -> Growing:
        return _Echelon(self.vectors)


class _Echelon:
    """Gaussian elimination: a vector joins unless what is left of it is only rounding."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        self.vectors = vectors
        self.rows: list[NDArray[np.float64]] = []
        self.pivots: list[int] = []

    def join(self, arm: int) -> bool:
        x = self.vectors[arm].copy()
        size = float(np.abs(x).max(initial=0.0))
        for row, pivot in zip(self.rows, self.pivots, strict=True):
            x -= x[pivot] * row
        if size == 0 or np.abs(x).max() <= 1e-9 * size:
            return False
        pivot = int(np.argmax(np.abs(x)))
        self.rows.append(x / x[pivot])
        self.pivots.append(pivot)
        return True


@dataclass(frozen=True)
class Transversal(Matroid):
    """Arms that can all be given different posts, as many as can be.

    Parameters
    ----------
    posts
        The posts that each arm can fill.
    """

    posts: tuple[tuple[Hashable, ...], ...]

    def __init__(self, posts: Iterable[Iterable[Hashable]]) -> None:
        _check_list("posts", "the posts that each arm can fill", posts)
        listed = tuple(posts)
        for each in listed:
            _check_list("posts", "a list of posts for each arm", each)
        filled = [tuple(each) for each in listed]
        check_hashable("a post", (post for each in filled for post in each))
        object.__setattr__(self, "posts", tuple(tuple(dict.fromkeys(each)) for each in filled))
        _not_empty(self)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.posts)

    def empty(self) -> Growing:
        return _Matched(self.posts)


_NONE = object()


class _Matched:
    """Augmenting paths: an arm joins when the arms before it can move up for it."""

    def __init__(self, posts: Sequence[Sequence[Hashable]]) -> None:
        self.posts = posts
        self.holder: dict[Hashable, int] = {}

    def join(self, arm: int) -> bool:
        tried: set[Hashable] = set()
        moving = [(arm, iter(self.posts[arm]))]  # who wants a post, and whose post it wants
        wanted: list[Hashable] = []
        while moving:
            post = next((p for p in moving[-1][1] if p not in tried), _NONE)
            if post is _NONE:
                moving.pop()
                if wanted:
                    wanted.pop()
                continue
            tried.add(post)
            wanted.append(post)
            if post not in self.holder:
                for (who, _), place in zip(moving, wanted, strict=True):
                    self.holder[place] = who
                return True
            holder = self.holder[post]
            moving.append((holder, iter(self.posts[holder])))
        return False


@dataclass(frozen=True)
class CustomMatroid(Matroid):
    """A matroid given by an independence oracle of the user's.

    Parameters
    ----------
    n
        Number of arms.
    independent
        Says of a list of arm indices whether it is independent; it must satisfy the axioms
        (a subset of an independent set is independent; of two independent sets the smaller can
        take an arm of the larger).
    """

    n: int
    independent: Callable[[list[int]], bool]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole("n", self.n, ProblemError, least=1))
        if not callable(self.independent):
            raise ProblemError("independent must be a function of a list of arm indices")
        _not_empty(self)

    def empty(self) -> Growing:
        return _Asked(self.independent)


class _Asked:
    def __init__(self, independent: Callable[[list[int]], bool]) -> None:
        self.independent = independent
        self.held: list[int] = []

    def join(self, arm: int) -> bool:
        joins = bool(self.independent([*self.held, arm]))
        if joins:
            self.held.append(arm)
        return joins


def _check_list(what: str, meaning: str, values: Any) -> None:
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise ProblemError(f"{what} must be a list, {meaning}; not {values!r}")


def _not_empty(matroid: Matroid) -> None:
    if matroid.rank == 0:
        raise ProblemError("no set has an arm in it: there is nothing to choose")
