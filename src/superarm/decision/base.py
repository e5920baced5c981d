"""What a decision class is: the sets of arms that may be chosen, behind one interface."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm.errors import ProblemError

Members = NDArray[np.int64]
Rows = NDArray[np.int64]
Vector = NDArray[np.float64]

LISTABLE = 5_000_000
"""More sets than this are not listed in full."""

_FEW = 20_000  # so many sets are counted, where there is only a bound on their number

NOBODY = -1
"""Fills rows of sets that are smaller than others."""


class Decision(ABC):
    """A family of sets of arms, none of which contains another.

    Sets are ascending arrays of arm indices.
    """

    n: int
    k: int
    """Size of the largest set."""

    @property
    def least_size(self) -> int:
        """Size of the smallest set."""
        return self.k

    @property
    def signed(self) -> bool:
        """Whether the heaviest set is found for weights of any sign."""
        return True

    @property
    def unit(self) -> Vector | None:
        """Weights that add up to 1 on every set, where such are known."""
        return np.full(self.n, 1.0 / self.k) if self.least_size == self.k else None

    @property
    @abstractmethod
    def log_size(self) -> float:
        """Log of the number of sets, or an upper bound on it."""

    def counted(self, bound: float) -> float:
        """Log of the number of sets: the given bound on it, or exactly where that is low."""
        return bound if bound > math.log(_FEW) else math.log(len(self.listed))

    @property
    def size_in_words(self) -> str:
        """Say the number of sets (or the bound on it) for people, however large."""
        power = int(self.log_size / math.log(10))
        if power < 9:
            return f"{round(math.exp(self.log_size)):,}"
        return f"about 10^{power}"

    @abstractmethod
    def best_within(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        """Return the heaviest set with all of `forced` and none of `forbidden`, None without any.

        Ties may go to any of the heaviest, but always to the same one.
        """

    @abstractmethod
    def contains(self, members: Iterable[int]) -> bool:
        """Whether this is one of the sets."""

    @abstractmethod
    def sets(self) -> Iterator[Sequence[int]]:
        """Yield all sets, each once: small cases only."""

    def best(self, weights: Vector) -> Members:
        """Return the set of greatest weight."""
        found = self.best_within(weights, (), ())
        assert found is not None  # a class is not empty: its constructor has looked
        return found

    def best_two(self, weights: Vector) -> tuple[Members, Members | None]:
        """Return the heaviest set and the heaviest of the others, None where there is no other.

        Lawler: another set lacks a first member of the best one, and has those before.
        """
        best = self.best(weights)
        second: Members | None = None
        most = -math.inf
        for place, arm in enumerate(best):
            rival = self.best_within(weights, best[:place].tolist(), (int(arm),))
            if rival is not None and weights[rival].sum() > most:
                second, most = rival, float(weights[rival].sum())
        return best, second

    def best_except(self, weights: Vector, excluded: Members) -> Members | None:
        """Return the set of greatest weight other than `excluded`."""
        first, second = self.best_two(weights)
        return second if np.array_equal(first, excluded) else first

    def draw(self, rng: np.random.Generator) -> Members:
        """Return a random set: the heaviest for random weights (not all are equally likely)."""
        return self.best(rng.standard_normal(self.n))

    def exchanges(self, members: Members) -> Iterator[Members]:
        """Yield sets near to this one, for local search: the best without each of its arms."""
        flat = np.full(self.n, -1.0)
        flat[members] = 0.0  # as few new arms as can be
        for arm in members:
            near = self.best_within(flat, (), (int(arm),))
            if near is not None:
                yield near

    @cached_property
    def listed(self) -> Rows:
        """All sets as `enumerate` returns them, kept."""
        return self.enumerate()

    def enumerate(self) -> Rows:
        """Return all sets, a row each, filled up by `NOBODY`: small cases only."""
        found: list[Sequence[int]] = []
        for members in self.sets():
            found.append(members)
            if len(found) > LISTABLE:
                raise ProblemError(f"more than {LISTABLE:,} sets are too many to list")
        return as_rows(found)


def read_edges(edges: Any) -> tuple[tuple[Hashable, Hashable], ...]:
    """Return a user's edges as pairs of nodes, or raise ProblemError."""
    try:
        pairs = tuple((u, v) for u, v in map(_no_text, edges))
    except (TypeError, ValueError):
        raise ProblemError("edges must be a list of pairs of nodes, (from, to)") from None
    check_hashable("a node", (node for pair in pairs for node in pair))
    return pairs


def _no_text(edge: Any) -> Any:
    """Refuse a text, though "ab" could be unpacked."""
    if isinstance(edge, str | bytes):
        raise TypeError
    return edge


def check_hashable(what: str, values: Iterable[Any]) -> None:
    """Raise ProblemError for values that cannot be told apart by a hash, such as lists."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise ProblemError(f"{what} must be a text or a number, not {value!r}") from None


def as_rows(sets: Sequence[Iterable[int]]) -> Rows:
    """Return sets as rows of ascending arms, the shorter ones filled up by `NOBODY` at the end."""
    ordered = [sorted(members) for members in sets]
    rows = np.full((len(ordered), max(map(len, ordered), default=0)), NOBODY, dtype=np.int64)
    for row, members in zip(rows, ordered, strict=True):
        row[: len(members)] = members
    return rows


def indicators(rows: Rows, n: int) -> NDArray[np.float64]:
    """Return the indicator vectors of rows of arms."""
    chi = np.zeros((len(rows), n + 1))
    np.put_along_axis(chi, np.where(rows < 0, n, rows), 1.0, axis=1)
    return chi[:, :n]


def log_choose(n: int, k: int) -> float:
    """log C(n, k), in O(1)."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
