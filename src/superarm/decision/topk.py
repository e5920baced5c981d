"""The decision class of the paper's Section 2: all size-k subsets of n arms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

Members = NDArray[np.intp]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TopK:
    """All size-k subsets of n arms; sets are ascending index arrays, ties go to the lower index."""

    n: int
    k: int

    @property
    def log_size(self) -> float:
        """log K, K = C(n, k)."""
        return log_choose(self.n, self.k)

    @property
    def size(self) -> int:
        """K = C(n, k), exactly."""
        return math.comb(self.n, self.k)

    @property
    def size_in_words(self) -> str:
        """K for people, however large."""
        power = int(self.log_size / math.log(10))
        return f"{self.size:,}" if power < 9 else f"about 10^{power}"

    def best(self, weights: Vector) -> Members:
        """Return the set of greatest weight: O(n log n)."""
        return np.sort(np.argsort(-weights, kind="stable")[: self.k])

    def best_two(self, weights: Vector) -> tuple[Members, Members]:
        """Return the best set and the best of the others (k < n): the cheapest single swap away."""
        order = np.argsort(-weights, kind="stable")
        others = np.append(order[: self.k - 1], order[self.k])
        return np.sort(order[: self.k]), np.sort(others)

    def best_except(self, weights: Vector, excluded: Members) -> Members:
        """Return the set of greatest weight other than `excluded`."""
        first, second = self.best_two(weights)
        return second if np.array_equal(first, excluded) else first

    def swap_gains(self, weights: Vector, members: Members) -> Vector:
        """Return the most that 1, 2, ..., min(k, n-k) swaps can add to the weight of a set.

        By one sort: d swaps put the d heaviest outside in the place of the d lightest inside.
        """
        inside = np.zeros(self.n, dtype=np.bool_)
        inside[members] = True
        levels = min(self.k, self.n - self.k)
        lightest = np.sort(weights[inside])[:levels]
        heaviest = -np.sort(-weights[~inside])[:levels]
        return np.cumsum(heaviest - lightest)

    def enumerate(self) -> Members:
        """Return all K sets, in lexicographic order: small cases only."""
        flat = chain.from_iterable(combinations(range(self.n), self.k))
        return np.fromiter(flat, dtype=np.intp, count=self.size * self.k).reshape(-1, self.k)


def log_choose(n: int, k: int) -> float:
    """log C(n, k), in O(1)."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
