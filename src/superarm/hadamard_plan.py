"""Hadamard plans: groups of 2s arms, each split into two halves by the rows of a matrix.

Every row of a Hadamard matrix of order 2s, the first apart, has s entries 1 and s entries -1: two
sets of s arms that are measured one after the other. Where sets have more than half of all n arms
(`complement`), what is measured is all arms but these.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from superarm.design.hadamard import Signs
from superarm.plan import Index, Plan, Vector
from superarm.tally import Tally


class HadamardPlan(Plan):
    """All pairs of halves of each group, group by group, over and over.

    Super-arm (4s - 2) g + 2i is where row i + 1 is 1 in group g, and the next one where it is -1.

    Parameters
    ----------
    signs
        A Hadamard matrix of order 2s, the first row all ones.
    groups
        A row of 2s different arms for each group; an arm may be in several groups.
    complement
        Whether all arms but the s of a half are measured.
    """

    k: int

    def __init__(self, signs: Signs, groups: Index, n: int, complement: bool = False) -> None:
        self.signs, self.groups, self.n = signs, groups, n
        self.complement = complement
        self.half = len(signs) // 2
        self.k = n - self.half if complement else self.half

    @property
    def pairs(self) -> int:
        """Pairs of halves in each group."""
        return len(self.signs) - 1

    @property
    def size(self) -> int:
        return len(self.groups) * 2 * self.pairs

    @property
    def spanning(self) -> int:
        """A whole cycle: the estimate needs every pair."""
        return self.size

    @property
    def cycle(self) -> int:
        return self.size

    @cached_property
    def _places(self) -> Index:
        """Places within a group, a row for each half."""
        first = np.argsort(-self.signs[1:], axis=1, kind="stable")
        return first.reshape(2 * self.pairs, self.half)

    def members(self, index: int | slice | Index) -> Index:
        given = np.arange(self.size)[index]
        group, half = np.divmod(np.atleast_1d(given), 2 * self.pairs)
        rows = np.sort(self.groups[group[:, None], self._places[half]], axis=1)
        if self.complement:
            left = np.ones((len(rows), self.n), dtype=bool)
            np.put_along_axis(left, rows, False, axis=1)
            rows = np.nonzero(left)[1].reshape(len(rows), self.k)
        return rows.reshape(*given.shape, self.k)

    def order(self, start: int, stop: int) -> Index:
        return np.arange(start, stop, dtype=np.int64) % self.size

    def counts(self, t: int) -> Index:
        whole, rest = divmod(t, self.size)
        return whole + (np.arange(self.size) < rest).astype(np.int64)

    def gather(self, means: Vector) -> Vector:
        inside = means[self.groups]
        ones = (self.signs[1:] > 0).astype(np.float64)
        halves = np.stack([inside @ ones.T, inside @ (1 - ones).T], axis=2).reshape(-1)
        total: Vector = means.sum() - halves if self.complement else halves
        return total

    def estimate(self, tally: Tally) -> tuple[float, Vector]:
        """Return a level, and beside it each arm's value (0 for arms in no group).

        H'z/(2s), where z_1 is the mean over all pairs of the sum of their two mean totals, and the
        other z_i are their differences; the mean over its groups, for an arm in several. It is the
        mean of the arm, or with `complement`, (sum of all means)/s minus the mean of the arm.
        """
        c, sums = tally.centred()
        means = (sums / tally.counts).reshape(len(self.groups), self.pairs, 2)
        z = np.column_stack([means.sum(axis=2).mean(axis=1), means[:, :, 0] - means[:, :, 1]])
        found = z @ self.signs / (2 * self.half)
        values, times = np.zeros(self.n), np.zeros(self.n)
        np.add.at(values, self.groups, found)
        np.add.at(times, self.groups, 1.0)
        return c / self.half, values / np.maximum(times, 1.0)

    @property
    def variance(self) -> float:
        """Sum of the squared weights of an arm's estimate, each super-arm measured once."""
        return (self.pairs + 1 / self.pairs) / (2 * self.half**2)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the super-arms, in plan order."""
        parts = (self.signs, self.groups.astype("<i8"), np.array([self.n, self.k], dtype="<i8"))
        return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "hadamard",
            "source": "groups",
            "support": self.size,
            "digest": self.digest,
            "groups": len(self.groups),
            "order": 2 * self.half,
        }
