"""Tallies: all that a phase ever knows of its results."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from superarm.exact_sum import ExactSums


class Tally:
    """By plan index: how often measured, the exact total and the exact sum of squares.

    Sums are exact, so that the order in which results arrive does not matter, to the bit.
    """

    def __init__(self, size: int) -> None:
        self.counts = np.zeros(size, dtype=np.int64)
        self._totals = ExactSums(size)
        self._squares = ExactSums(size)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def pulls(self) -> int:
        """Number of results."""
        return int(self.counts.sum())

    @property
    def totals(self) -> NDArray[np.float64]:
        """Sum of the totals of each super-arm, correctly rounded."""
        return self._totals.values()

    @property
    def squares(self) -> NDArray[np.float64]:
        """Sum of the squared totals of each super-arm, correctly rounded."""
        return self._squares.values()

    def add(self, index: int | NDArray[np.int64], total: float | NDArray[np.float64]) -> None:
        """Add single results: one, or arrays of them (an index may occur several times)."""
        self._totals.add(index, total)
        self._squares.add_squares(index, total)
        np.add.at(self.counts, index, 1)

    def add_block(self, counts: ArrayLike, totals: ArrayLike, squares: ArrayLike) -> None:
        """Add to each super-arm `counts` results at once, given their sum and sum of squares."""
        every = np.arange(len(self))
        self._totals.add(every, np.asarray(totals, dtype=np.float64))
        self._squares.add(every, np.asarray(squares, dtype=np.float64))
        self.counts += np.asarray(counts, dtype=np.int64)

    def copy(self) -> Tally:
        """Return an independent copy."""
        other = Tally(0)
        other.counts = self.counts.copy()
        other._totals = self._totals.copy()
        other._squares = self._squares.copy()
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return (
            np.array_equal(self.counts, other.counts)
            and self._totals == other._totals
            and self._squares == other._squares
        )

    __hash__ = None  # type: ignore[assignment]
