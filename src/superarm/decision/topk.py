"""The decision class of the paper's Section 2: all size-k subsets of n arms."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from superarm._checks import whole
from superarm.decision.base import Decision, Members, Rows, Vector, log_choose
from superarm.errors import ProblemError


@dataclass(frozen=True)
class TopK(Decision):
    """All size-k subsets of n arms; ties go to the lower index."""

    n: int
    k: int

    def __post_init__(self) -> None:
        n = whole("the number of arms", self.n, ProblemError, least=1)
        k = whole("k", self.k, ProblemError)
        if not 1 <= k <= n:
            raise ProblemError(f"k must be between 1 and the number of arms, {n}, not {k}")
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "k", k)

    @property
    def log_size(self) -> float:
        return log_choose(self.n, self.k)

    @property
    def size(self) -> int:
        """K = C(n, k), exactly."""
        return math.comb(self.n, self.k)

    @property
    def size_in_words(self) -> str:
        power = int(self.log_size / math.log(10))
        return f"{self.size:,}" if power < 9 else f"about 10^{power}"

    def best(self, weights: Vector) -> Members:
        """Return the set of greatest weight: O(n)."""
        worst = np.partition(weights, self.n - self.k)[self.n - self.k]
        ahead = np.flatnonzero(weights > worst)
        tied = np.flatnonzero(weights == worst)[: self.k - len(ahead)]
        return np.sort(np.concatenate([ahead, tied]))

    def best_within(
        self, weights: Vector, forced: Collection[int], forbidden: Collection[int]
    ) -> Members | None:
        left = np.array(weights, dtype=np.float64)
        left[list(forbidden)] = -np.inf
        left[list(forced)] = np.inf
        members = self.best(left)
        return None if np.isneginf(left[members]).any() or len(forced) > self.k else members

    def best_two(self, weights: Vector) -> tuple[Members, Members | None]:
        """Return the best set and the best of the others: the cheapest single swap away."""
        order = np.argsort(-weights, kind="stable")
        if self.k == self.n:
            return np.sort(order), None
        others = np.append(order[: self.k - 1], order[self.k])
        return np.sort(order[: self.k]), np.sort(others)

    def contains(self, members: Iterable[int]) -> bool:
        chosen = set(members)
        return len(chosen) == self.k and all(0 <= i < self.n for i in chosen)

    def draw(self, rng: np.random.Generator) -> Members:
        """Return a random set, all of them equally likely."""
        return np.sort(rng.choice(self.n, self.k, replace=False, shuffle=False))

    def exchanges(self, members: Members) -> Iterator[Members]:
        outside = np.setdiff1d(np.arange(self.n), members)
        for place in range(len(members)):
            for arm in outside:
                yield np.sort(np.append(np.delete(members, place), arm))

    def swap_gains(self, weights: Vector, members: Members, levels: int | None = None) -> Vector:
        """Return the most that 1, 2, ..., min(k, n-k) swaps can add to the weight of a set.

        By one sort: d swaps put the d heaviest outside in the place of the d lightest inside.
        """
        inside = np.zeros(self.n, dtype=np.bool_)
        inside[members] = True
        if levels == 1:
            return np.array([weights[~inside].max() - weights[inside].min()])
        levels = min(self.k, self.n - self.k)
        lightest = np.sort(weights[inside])[:levels]
        heaviest = -np.sort(-weights[~inside])[:levels]
        return np.cumsum(heaviest - lightest)

    def sets(self) -> Iterator[Sequence[int]]:
        return combinations(range(self.n), self.k)

    def enumerate(self) -> Rows:
        flat = chain.from_iterable(self.sets())
        return np.fromiter(flat, dtype=np.int64, count=self.size * self.k).reshape(-1, self.k)
