"""Plans: a sequence of super-arms that is fixed before anything is measured.

A plan lists `size` different super-arms (its support, by plan index) and says which of them is
measured at each position 0, 1, 2, ... It never sees a total, so that order, delay and batches of
results are harmless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class Plan(ABC):
    """A data-independent, lazy sequence of super-arms."""

    n: int
    k: int | None
    """Arms of each super-arm; None where they differ."""
    basis: Matrix | None = None
    """Orthonormal basis of what the decision class can tell; None when that is everything."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of different super-arms."""

    @property
    @abstractmethod
    def spanning(self) -> int:
        """Least number of positions whose super-arms determine all arms' means."""

    @property
    def rank(self) -> int:
        """How many numbers the means of all totals depend on, at most."""
        return self.n if self.basis is None else self.basis.shape[1]

    @property
    @abstractmethod
    def cycle(self) -> int | None:
        """Period of the order, when it has one."""

    @property
    def length(self) -> int | None:
        """Number of positions; None where there is no end of them."""
        return None

    @abstractmethod
    def members(self, index: int | slice | Index) -> Index:
        """Return the arms (ascending) of one plan index, or a row of them for each of several.

        Rows of super-arms that are smaller than others are filled up by -1 at the end.
        """

    @abstractmethod
    def order(self, start: int, stop: int) -> Index:
        """Return the plan indices at positions start .. stop - 1."""

    @abstractmethod
    def counts(self, t: int) -> Index:
        """How often each plan index occurs in the first t positions."""

    def gather(self, means: Vector) -> Vector:
        """Return the sum of the members' means for every super-arm."""
        rows = self.members(slice(None))
        return np.asarray(np.where(rows < 0, 0.0, means[rows]).sum(axis=1))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what a reader of the result has to know of the plan, as plain data."""


class SupportPlan(Plan):
    """A list of super-arms measured by argmin T_M / p_M, ties to the lower plan index (Alg. 2-5).

    Pull number j = 0, 1, ... of a super-arm takes place "at" j / p_M, so any stretch of the order
    is found without going through what is before it. With equal proportions it is a plain cycle.

    Parameters
    ----------
    support
        One row of arms a super-arm; the first `spanning` rows must have full rank.
    proportions
        p_M > 0, or None for equal ones.
    details
        What else a reader of the result has to know of the design, as plain data.
    """

    def __init__(
        self,
        support: Index,
        n: int,
        *,
        spanning: int,
        proportions: NDArray[np.float64] | None = None,
        source: str = "given",
        basis: Matrix | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.support = np.ascontiguousarray(support, dtype=np.int64)
        self.n, self.basis = n, basis
        self.k = None if (self.support < 0).any() else self.support.shape[1]
        self.proportions = proportions
        self.source = source
        self.details = dict(details or {})
        self._spanning = spanning

    @property
    def size(self) -> int:
        return len(self.support)

    @property
    def spanning(self) -> int:
        return self._spanning

    @property
    def cycle(self) -> int | None:
        return self.size if self.proportions is None else None

    def members(self, index: int | slice | Index) -> Index:
        return self.support[index]

    def order(self, start: int, stop: int) -> Index:
        if self.proportions is None:
            return np.arange(start, stop, dtype=np.int64) % self.size
        before = self.counts(start)
        taken = self.counts(stop) - before
        index = np.repeat(np.arange(self.size), taken)
        first = np.repeat(np.cumsum(taken) - taken, taken)
        pull = before[index] + np.arange(len(index)) - first
        return index[np.lexsort((index, pull / self.proportions[index]))]

    def counts(self, t: int) -> Index:
        if self.proportions is None:
            whole, rest = divmod(t, self.size)
            return whole + (np.arange(self.size) < rest).astype(np.int64)
        counts = self._surely_among(t)
        ahead = 4  # how many of the coming pulls of each super-arm are compared
        while (missing := t - int(counts.sum())) > 0:
            times = (counts[:, None] + np.arange(ahead)) / self.proportions[:, None]
            index = np.repeat(np.arange(self.size), ahead)
            first = np.lexsort((index, times.ravel()))[: min(missing, self.size)]
            picked = np.bincount(index[first], minlength=self.size)
            if picked.max() == ahead:  # its later pulls might come in as well
                ahead *= 2
            else:
                counts = counts + picked
        return counts

    def _surely_among(self, t: int) -> Index:
        """Return counts that the first t positions contain for certain.

        T_M = ceil(tau p_M) for a common time tau, and sum T_M = t <= tau + size.
        """
        assert self.proportions is not None
        share = self.proportions / self.proportions.sum()
        return np.floor(np.maximum(t - self.size, 0) * share * (1 - 1e-12)).astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the super-arms and proportions, in plan order."""
        weights = b"" if self.proportions is None else self.proportions.astype("<f8").tobytes()
        return sha256(self.support.astype("<i8").tobytes() + weights).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "uniform" if self.proportions is None else "weighted",
            "source": self.source,
            "support": self.size,
            "digest": self.digest,
            **self.details,
        }
