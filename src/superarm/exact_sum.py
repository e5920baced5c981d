"""Sums of float64 values without rounding: whatever the order of arrival, the same bits.

A finite float64 is an integer times a power of two, so a wide enough fixed-point number holds a sum
of them exactly; such a sum knows no order, and taking a value away restores what was before.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from superarm._jit import njit

Ints = NDArray[np.int64]

# A limb takes in one digit (below 2^32 in size) per deposit, on top of at most 2^32 left there by
# the last carry: 2^30 deposits stay below 2^63.
CARRY_EVERY = 1 << 30

LIMB_BITS = 32
DIGIT = (1 << LIMB_BITS) - 1
HIDDEN_BIT = 1 << 52
LOWEST_EXPONENT = -1074  # of the last bit of a subnormal
NOT_FINITE = 0x7FF  # the exponent field of inf and nan
SIGN_BIT = -(1 << 63)
HALF_MANTISSA = 27
MAX_EXPONENT = 4096  # squares use -2148 to 2048
NOT_ADDED = "{} cannot be added: values must be finite float64 numbers"
REAL = (float, int, np.floating, np.integer)


class ExactSums:
    """One exact sum for each of `size` places, all zero at first.

    Sum ``s`` is ``sum_i limbs[s, i] * 2^(base + 32 i)``. The window of bits is common to all sums
    and grows, by whole limbs and in either direction, when a value does not fit; integers below
    2^64 never grow it downwards. Carries from limb to limb are put off.

    Parameters
    ----------
    size
        How many sums.
    """

    def __init__(self, size: int) -> None:
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"the number of sums is {size}; it cannot be negative")
        self._limbs: Ints = np.zeros((size, 2), dtype=np.int64)
        self._base = 0
        self._deposits = 0  # since the last carry: no limb has taken more
        self._rounded: NDArray[np.float64] | None = None

    @classmethod
    def from_ints(cls, exponent: int, ints: Sequence[int]) -> ExactSums:
        """Restore from `to_ints`: sum ``s`` is ``ints[s] * 2^exponent``, of any size."""
        numbers = [operator.index(number) for number in ints]
        shift = operator.index(exponent) % LIMB_BITS
        if abs(exponent) > MAX_EXPONENT:
            raise ValueError(f"exponent {exponent} is not one that sums of float64 values have")
        bits = max((number.bit_length() for number in numbers), default=0) + shift
        sums = cls(0)
        sums._base = exponent - shift
        sums._limbs = np.zeros((len(numbers), max(2, bits // LIMB_BITS + 1)), dtype=np.int64)
        rest = np.array(numbers, dtype=object) << shift
        for limb in range(sums._limbs.shape[1] - 1):
            sums._limbs[:, limb] = rest & DIGIT
            rest = rest >> LIMB_BITS
        sums._limbs[:, -1] = rest
        return sums

    def to_ints(self) -> tuple[int, list[int]]:
        """Return ``(exponent, ints)`` with sum ``s`` equal to ``ints[s] * 2^exponent``.

        The exponent is the largest, up to 0, that makes every number an integer: equal sums give
        equal answers whatever their history, and sums of integers appear as themselves.
        """
        self._carry()
        # In two's complement the last bit set in any sum is the last set in the union of all.
        union = _integer(np.bitwise_or.reduce(self._limbs, axis=0))
        exponent = min(0, self._base + _trailing_zeros(union)) if union else 0
        total = np.zeros(len(self), dtype=object)
        for limb in range(self._limbs.shape[1] - 1, -1, -1):
            total = (total << LIMB_BITS) + self._limbs[:, limb]
        shift = self._base - exponent
        return exponent, (total << shift if shift > 0 else total >> -shift).tolist()

    def to_arrays(self) -> tuple[int, Ints]:
        """Return the window's lowest exponent and the limbs, a row a sum, carried."""
        self._carry()
        return self._base, self._limbs

    @classmethod
    def from_arrays(cls, base: int, limbs: Ints) -> ExactSums:
        """Restore from `to_arrays`."""
        sums = cls(0)
        sums._base, sums._limbs = operator.index(base), np.array(limbs, dtype=np.int64)
        return sums

    def add(self, indices: ArrayLike, values: ArrayLike, sign: int = 1) -> None:
        """Add ``sign * values[j]`` to sum ``indices[j]``, for every j.

        Parameters
        ----------
        indices
            One integer, or a one-dimensional array of them; repeats count each time.
        values
            As many finite numbers; what is not float64 is converted to it first.
        sign
            1, or -1 to take the values away.

        Raises
        ------
        ValueError
            If an index is out of range or a value not finite; then no sum has changed.
        """
        self._tell(indices, values, sign, False)

    def add_squares(self, indices: ArrayLike, values: ArrayLike, sign: int = 1) -> None:
        """Add ``sign * values[j]^2``, exactly, to sum ``indices[j]``; otherwise as `add`."""
        self._tell(indices, values, sign, True)

    def values(self) -> NDArray[np.float64]:
        """Return every sum rounded once, half to even (as `math.fsum` does); inf past the range.

        The array is read-only, and later additions leave it as it is.
        """
        if self._rounded is None:
            self._carry()
            bits = np.empty(len(self), dtype=np.int64)
            _round(self._limbs, self._base, bits)
            self._rounded = bits.view(np.float64)
            self._rounded.setflags(write=False)
        return self._rounded

    def whole(self) -> float:
        """Return the sum of all sums, rounded once; inf past the range."""
        self._carry()
        digits = self._limbs.sum(axis=0)  # below 2^63: so many sums fit into no memory
        exact = _integer(digits) * Fraction(2) ** self._base
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    def value(self, index: SupportsIndex) -> float:
        """Return one sum, rounded as by `values`."""
        exact = self.fraction(index)
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    def fraction(self, index: SupportsIndex) -> Fraction:
        """Return one sum, exactly."""
        return _integer(self._limbs[self._place(index)]) * Fraction(2) ** self._base

    def copy(self) -> ExactSums:
        """Return sums of equal value that no longer change with these."""
        twin = ExactSums(0)
        twin._limbs, twin._base = self._limbs.copy(), self._base
        twin._deposits, twin._rounded = self._deposits, self._rounded
        return twin

    def __len__(self) -> int:
        return int(self._limbs.shape[0])

    def __eq__(self, other: object) -> bool:
        """Whether all sums are equal, exactly, whatever was added to reach them."""
        if not isinstance(other, ExactSums):
            return NotImplemented
        if len(self) != len(other):
            return False
        self._carry()
        other._carry()
        if self._base == other._base and self._top == other._top:
            return np.array_equal(self._limbs, other._limbs)
        low, top = min(self._base, other._base), max(self._top, other._top)
        difference = self._padded(low, top) - other._padded(low, top)
        _carry(difference)
        return not difference.any()

    __hash__ = None  # type: ignore[assignment]  # sums change

    @property
    def _top(self) -> int:
        return self._base + LIMB_BITS * int(self._limbs.shape[1])

    def _tell(self, indices: ArrayLike, values: ArrayLike, sign: int, squared: bool) -> None:
        if sign not in (1, -1):
            raise ValueError(f"sign is {sign!r}; it must be 1 (add) or -1 (take away)")
        if isinstance(indices, (int, np.integer)) and isinstance(values, REAL):
            self._tell_one(self._place(indices), values, sign, squared)
        else:
            self._tell_many(*_as_pairs(indices, values), sign, squared)

    def _tell_one(self, index: int, value: SupportsFloat, sign: int, squared: bool) -> None:
        """Add one value in Python's integers, which takes less time than to call a kernel."""
        try:
            numerator, denominator = float(value).as_integer_ratio()
        except (OverflowError, ValueError):
            raise ValueError(NOT_ADDED.format(value)) from None
        if not numerator:
            return
        if numerator < 0:
            numerator, sign = -numerator, sign if squared else -sign
        # Only one of the two is even: value = odd number * 2^low.
        zeros = _trailing_zeros(numerator)
        odd, low = numerator >> zeros, zeros + 1 - denominator.bit_length()
        if squared:
            odd, low = odd * odd, 2 * low
        if low < self._base or low + odd.bit_length() > self._top:
            self._make_room(low, low + odd.bit_length())
        self._count(1)
        limb, shift = divmod(low - self._base, LIMB_BITS)
        odd <<= shift
        limbs = self._limbs[index]
        while odd:
            limbs[limb] += sign * (odd & DIGIT)
            odd >>= LIMB_BITS
            limb += 1

    def _tell_many(
        self, indices: Ints, values: NDArray[np.float64], sign: int, squared: bool
    ) -> None:
        bits = values.view(np.int64)
        scale = 2 if squared else 1
        bad, low, top = _survey(indices, bits, len(self), self._base // scale)
        if bad >= 0:
            self._place(indices[bad])
            raise ValueError(NOT_ADDED.format(values[bad]))
        self._make_room(scale * int(low), scale * int(top))
        each = 2 if squared else 1  # deposits in a limb: h^2 and l^2 are disjoint, 2hl is over both
        step = CARRY_EVERY // each
        for start in range(0, indices.size, step):
            part = slice(start, start + step)
            self._count(each * indices[part].size)
            _add(self._limbs, self._base, indices[part], bits[part], sign, squared)

    def _place(self, index: SupportsIndex) -> int:
        place = operator.index(index)
        if not 0 <= place < len(self):
            raise ValueError(f"index {place} is out of range: there are {len(self)} sums, from 0")
        return place

    def _count(self, deposits: int) -> None:
        self._rounded = None
        if self._deposits + deposits > CARRY_EVERY:
            self._carry()
        self._deposits += deposits

    def _carry(self) -> None:
        """Bring every digit but the signed highest into [0, 2^32): one form for each number."""
        if self._deposits and _carry(self._limbs):
            self._limbs = np.pad(self._limbs, ((0, 0), (0, 1)))
            _carry(self._limbs)
        self._deposits = 0

    def _make_room(self, low: int, top: int) -> None:
        """Widen the window to the bits from `low` up to `top`, that one excluded."""
        if low >= self._base and top <= self._top:
            return
        low -= low % LIMB_BITS
        if self._limbs.any():
            low, top = min(low, self._base), max(top, self._top)
            self._limbs = self._padded(low, top)
        else:  # nothing to keep: the window may move, and stay narrow
            limbs = max(2, -((low - top) // LIMB_BITS))
            self._limbs = np.zeros((len(self), limbs), dtype=np.int64)
        self._base = low

    def _padded(self, low: int, top: int) -> Ints:
        """Return a copy of the limbs in a window that contains the present one."""
        below, above = (self._base - low) // LIMB_BITS, -((self._top - top) // LIMB_BITS)
        return np.pad(self._limbs, ((0, 0), (below, above)))


def _integer(limbs: Ints) -> int:
    return sum(digit << LIMB_BITS * limb for limb, digit in enumerate(limbs.tolist()))


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _as_pairs(indices: ArrayLike, values: ArrayLike) -> tuple[Ints, NDArray[np.float64]]:
    """Check the types and shapes; give both the one layout the kernels are compiled for."""
    places, numbers = np.asarray(indices), np.asarray(values)
    if places.dtype.kind not in "iu" and places.size:
        raise ValueError(f"indices are {places.dtype}; they must be integers")
    if not np.can_cast(numbers.dtype, np.float64):
        raise ValueError(f"values are {numbers.dtype}, which float64 cannot hold; convert them")
    if places.ndim != 1 or places.shape != numbers.shape:
        raise ValueError(
            f"indices have shape {places.shape} and values {numbers.shape}; "
            "give two one-dimensional arrays of equal length, or one index and one value"
        )
    layout: list[Literal["C", "A", "W"]] = ["C", "A", "W"]
    return np.require(places, np.int64, layout), np.require(numbers, np.float64, layout)


# Kernels. Everything in them is int64: numba makes a float64 of an int64 and a uint64.


@njit
def _decode(bits: int) -> tuple[int, int]:
    """Return (mantissa, exponent) of a finite float64: its size is mantissa * 2^exponent."""
    field = (bits >> 52) & NOT_FINITE
    mantissa = bits & (HIDDEN_BIT - 1)
    if field == 0:
        return mantissa, LOWEST_EXPONENT
    return mantissa | HIDDEN_BIT, field - 1 + LOWEST_EXPONENT


@njit
def _survey(indices: Ints, bits: Ints, size: int, low: int) -> tuple[int, int, int]:
    """Return the first bad position or -1, and the bits [low, top) that hold all values."""
    top = low
    for i in range(indices.size):
        if indices[i] < 0 or indices[i] >= size or (bits[i] >> 52) & NOT_FINITE == NOT_FINITE:
            return i, low, top
        mantissa, exponent = _decode(bits[i])
        top = max(top, exponent + 53)
        if exponent < low and mantissa != 0:
            below = low - exponent
            if below > 52 or mantissa & ((1 << below) - 1) != 0:
                while mantissa & 1 == 0:
                    mantissa >>= 1
                    exponent += 1
                low = min(low, exponent)
    return -1, low, top


@njit
def _deposit(limbs: Ints, row: int, shift: int, magnitude: int, sign: int) -> None:
    """Add sign * magnitude * 2^shift, with magnitude below 2^62, as at most three digits."""
    if magnitude == 0:  # its place may lie outside of the window
        return
    limb = shift >> 5
    shift &= 31
    limbs[row, limb] += sign * (((magnitude & DIGIT) << shift) & DIGIT)
    magnitude >>= 32 - shift
    if magnitude != 0:
        limbs[row, limb + 1] += sign * (magnitude & DIGIT)
        magnitude >>= 32
        if magnitude != 0:
            limbs[row, limb + 2] += sign * magnitude


@njit
def _add(limbs: Ints, base: int, indices: Ints, bits: Ints, sign: int, squared: bool) -> None:
    """Add values that fit the window, or their squares: (h 2^27 + l)^2, term by term."""
    origin = base >> 1 if squared else base
    for i in range(indices.size):
        mantissa, exponent = _decode(bits[i])
        shift = exponent - origin
        if shift < 0:  # only zeros fall off: `_survey` has looked
            mantissa >>= min(-shift, 62)
            shift = 0
        if squared:
            high = mantissa >> HALF_MANTISSA
            low = mantissa & ((1 << HALF_MANTISSA) - 1)
            _deposit(limbs, indices[i], 2 * shift, low * low, sign)
            _deposit(limbs, indices[i], 2 * shift + HALF_MANTISSA, 2 * high * low, sign)
            _deposit(limbs, indices[i], 2 * shift + 2 * HALF_MANTISSA, high * high, sign)
        else:
            _deposit(limbs, indices[i], shift, mantissa, -sign if bits[i] < 0 else sign)


@njit
def _carry(limbs: Ints) -> bool:
    """Carry in every row; return whether a highest limb has outgrown a signed digit."""
    last = limbs.shape[1] - 1
    outgrown = False
    for row in range(limbs.shape[0]):
        carry = 0
        for limb in range(last):
            carry += limbs[row, limb]
            limbs[row, limb] = carry & DIGIT
            carry >>= 32
        limbs[row, last] += carry
        outgrown |= limbs[row, last] >> 31 != limbs[row, last] >> 63
    return outgrown


@njit
def _round(limbs: Ints, base: int, out: Ints) -> None:
    """Write the bits of each carried row, rounded to the nearest float64, half to even."""
    count = limbs.shape[1]
    digits = np.zeros(count + 2, dtype=np.int64)  # two zeros below, for `_nearest` to read
    for row in range(limbs.shape[0]):
        negative = limbs[row, count - 1] < 0
        carry = 0
        for limb in range(count):
            carry += -limbs[row, limb] if negative else limbs[row, limb]
            digits[limb + 2] = carry & DIGIT
            carry >>= 32
        bits = _nearest(digits, base - 64)
        out[row] = bits | SIGN_BIT if negative else bits


@njit
def _nearest(digits: Ints, base: int) -> int:
    """Return the bits of the float64 nearest to sum_i digits[i] * 2^(base + 32 i)."""
    highest = digits.size - 1
    while highest > 2 and digits[highest] == 0:
        highest -= 1
    first, second, third = digits[highest], digits[highest - 1], digits[highest - 2]
    if first == 0:
        return 0
    width = math.frexp(float(first))[1]
    # The leading 62 bits; what lies below can only break a tie, and the last bit says so.
    upper = (first << (32 - width)) | (second >> width)
    lower = ((second << (32 - width)) & DIGIT) | (third >> width)
    leading = (upper << 30) | (lower >> 2)
    below = (lower & 3) | (third & ((1 << width) - 1))
    for i in range(2, highest - 2):
        below |= digits[i]
    if below != 0:
        leading |= 1
    last = base + 32 * highest + width - 62  # the exponent of the last of them
    drop = max(62 - 53, LOWEST_EXPONENT - last)
    if last + 62 > 1024:
        return NOT_FINITE << 52
    if drop > 62:  # below half of the least subnormal
        return 0
    mantissa, half = leading >> drop, 1 << (drop - 1)
    rest = leading & (2 * half - 1)
    if rest > half or (rest == half and mantissa & 1 == 1):
        mantissa += 1
    # A mantissa of 53 bits brings its hidden bit, one of 54 the next exponent, or inf.
    bits: int = ((last + drop - LOWEST_EXPONENT) << 52) + mantissa
    return bits
