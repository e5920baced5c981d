"""Tallies: all that a phase ever knows of its results."""

from __future__ import annotations

import json
import math
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from superarm.exact_sum import ExactSums

_LEVEL_BITS = 26  # two numbers of so many bits have a product without rounding


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

    def centred(self) -> tuple[float, NDArray[np.float64]]:
        """Return a common level c and each super-arm's sum of (total - c), rounded once.

        c is near the mean total, of few enough digits that c times a count is exact: so a level
        that all totals share costs the differences between them no accuracy.
        """
        if not self.pulls:
            return 0.0, np.zeros(len(self))
        c = float(_short(np.array(self._totals.whole() / self.pulls)))
        sums = self._totals.copy()
        self._add_to_each(sums, -c)
        return c, sums.values()

    def about_means(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return a level c near each super-arm's mean total, its sums of y - c and of (y - c)^2.

        Both are exact before they are rounded, once: a level far above the noise costs no digits.
        """
        c = _short(self.totals / np.maximum(self.counts, 1))
        sums, squares, every = self._totals.copy(), self._squares.copy(), np.arange(len(self))
        self._add_to_each(sums, -c)
        self._add_to_each(squares, *(-part for part in _halves(c * c)))
        rest = sums.copy()
        while (rounded := rest.values()).any():  # (y - c)^2 = y^2 - 2c (y - c) - c^2
            high, low = _halves(rounded)
            squares.add(np.tile(every, 2), np.concatenate([-2 * c * high, -2 * c * low]))
            rest.add(every, -rounded)
        return c, sums.values(), squares.values()

    def _add_to_each(self, sums: ExactSums, *values: float | NDArray[np.float64]) -> None:
        """Add `values`, of few digits, once for each result: a product with a count is exact."""
        high, low = np.divmod(self.counts, 1 << _LEVEL_BITS)
        parts = [value * low for value in values]
        if high.any():
            parts += [value * (high * float(1 << _LEVEL_BITS)) for value in values]
        sums.add(np.tile(np.arange(len(self)), len(parts)), np.concatenate(parts))

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

    def to_bytes(self) -> bytes:
        """Return everything, to be written down: a line that describes three arrays, and them."""
        bases, arrays = [], [self.counts]
        for sums in (self._totals, self._squares):
            base, limbs = sums.to_arrays()
            bases.append(base)
            arrays.append(limbs)
        head = {"tally": 1, "bases": bases, "shapes": [array.shape for array in arrays]}
        parts = [json.dumps(head).encode(), *(a.astype("<i8").tobytes() for a in arrays)]
        return zlib.compress(b"\n".join((parts[0], b"".join(parts[1:]))), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Restore from `to_bytes`."""
        head, _, body = zlib.decompress(data).partition(b"\n")
        found = json.loads(head)
        arrays, start = [], 0
        for shape in found["shapes"]:
            end = start + 8 * math.prod(shape)
            arrays.append(np.frombuffer(body[start:end], dtype="<i8").reshape(shape))
            start = end
        tally = cls(0)
        tally.counts = arrays[0].astype(np.int64)
        tally._totals = ExactSums.from_arrays(found["bases"][0], arrays[1])
        tally._squares = ExactSums.from_arrays(found["bases"][1], arrays[2])
        return tally

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


def _short(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest numbers of so few digits that products of two are exact."""
    mantissa, exponent = np.frexp(values)
    found = np.ldexp(np.rint(np.ldexp(mantissa, _LEVEL_BITS)), exponent - _LEVEL_BITS)
    return np.asarray(found)


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two parts of few digits each; their sum is exact."""
    high = _short(values)
    return high, values - high
