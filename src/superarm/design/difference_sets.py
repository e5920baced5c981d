"""Difference families: base blocks whose shifts measure all pairs of arms equally often.

Their power spectra add up to a constant off frequency 0, so that the information of a cycle of all
shifts is a multiple of the identity on differences: nothing measures differences better.

- Paley: for a prime n = 3 mod 4 the squares mod n, k = (n-1)/2; for a prime n = 1 mod 4 the
  squares and the others, two blocks.
- Singer: for a power q of a prime p, n = (q^(m+1)-1)/(q-1) and k = (q^m-1)/(q-1): the points of a
  hyperplane of the projective space of dimension m over the field of q elements.
- The complements of blocks are as flat as the blocks: k and n - k change places.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit

Blocks = NDArray[np.int64]

_LARGEST_FIELD = 2_000_000
"""Fields of more elements are not searched for a Singer set: it takes a pass over them."""


def difference_family(n: int, k: int) -> Blocks | None:
    """Return base blocks (a row each) that are perfectly flat together, None where none is known.

    One arm, or all but one, is trivially flat: every arm is measured alone (or left out alone).
    """
    if k in (1, n - 1):
        blocks: Blocks | None = np.zeros((1, 1), dtype=np.int64)
    else:
        blocks = _paley(n, min(k, n - k))
        if blocks is None:
            blocks = _singer(n, min(k, n - k))
    if blocks is None or blocks.shape[1] == k:
        return blocks
    return np.array([np.setdiff1d(np.arange(n), block) for block in blocks])


def _paley(n: int, k: int) -> Blocks | None:
    if n < 7 or k != (n - 1) // 2 or n > _LARGEST_FIELD or not _is_prime(n):
        return None
    numbers = np.arange(1, n, dtype=np.int64)
    squares = np.unique(numbers * numbers % n)
    if n % 4 == 3:
        return squares[None, :]
    return np.array([squares, np.setdiff1d(numbers, squares)])


def _singer(n: int, k: int) -> Blocks | None:
    """Where the trace to the field of q elements vanishes on the powers 0 .. n-1 of a generator.

    The generator's p-ary sequence u_i = Tr(a^i) obeys a linear recurrence; the trace to the larger
    field is 0 where u vanishes at i, i + n, ..., i + (e-1)n, since the powers of a^n span it.
    """
    for p, e, degree in _fields(n, k):
        period = p**degree - 1
        sequence = maximal_sequence(p, degree, period)
        if sequence is None:
            return None
        vanishing = np.all([np.roll(sequence, -j * n)[:n] == 0 for j in range(e)], axis=0)
        return np.flatnonzero(vanishing)[None, :]
    return None


def _fields(n: int, k: int) -> Iterator[tuple[int, int, int]]:
    """Yield (p, e, e(m+1)) with q = p^e such that n and k are those of Singer's sets."""
    m = 2
    while 2 ** (m + 1) - 1 <= n:
        q = 2
        while (q ** (m + 1) - 1) // (q - 1) < n:
            q += 1
        found = (q ** (m + 1) - 1) // (q - 1) == n and (q**m - 1) // (q - 1) == k
        power = prime_power(q)
        if found and power is not None and q ** (m + 1) <= _LARGEST_FIELD:
            yield power[0], power[1], power[1] * (m + 1)
        m += 1


def maximal_sequence(p: int, degree: int, period: int) -> NDArray[np.int64] | None:
    """Return one period of a recurrence mod p whose period is the longest that can be."""
    factors = _prime_factors(period)
    for code in range(1, p**degree):
        taps = np.array([code // p**i % p for i in range(degree)], dtype=np.int64)
        if taps[0] and _has_order(taps, p, period, factors):
            return _sequence(taps, p, period)
    return None


def _has_order(taps: NDArray[np.int64], p: int, period: int, factors: list[int]) -> bool:
    """Whether x has order `period` modulo x^degree - sum taps_i x^i."""
    one = np.zeros(len(taps), dtype=np.int64)
    one[0] = 1
    if not np.array_equal(_power_of_x(taps, p, period), one):
        return False
    return not any(np.array_equal(_power_of_x(taps, p, period // f), one) for f in factors)


def _prime_factors(number: int) -> list[int]:
    found, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            found.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return [*found, number] if number > 1 else found


def _is_prime(number: int) -> bool:
    return number > 1 and _prime_factors(number) == [number]


def prime_power(number: int) -> tuple[int, int] | None:
    """Return the prime and the exponent of which a number is the power, None where it is none."""
    factors = _prime_factors(number)
    if len(factors) != 1:
        return None
    exponent = 0
    while number > 1:
        number //= factors[0]
        exponent += 1
    return factors[0], exponent


@njit
def _power_of_x(taps, p, exponent):  # type: ignore[no-untyped-def]
    """x^exponent mod (x^degree - sum taps_i x^i, p), by squaring."""
    degree = len(taps)
    result = np.zeros(degree, dtype=np.int64)
    result[0] = 1
    base = np.zeros(degree, dtype=np.int64)
    if degree == 1:
        base[0] = taps[0] % p
    else:
        base[1] = 1
    while exponent > 0:
        if exponent & 1:
            result = _times(result, base, taps, p)
        base = _times(base, base, taps, p)
        exponent >>= 1
    return result


@njit
def _times(a, b, taps, p):  # type: ignore[no-untyped-def]
    degree = len(taps)
    product = np.zeros(2 * degree, dtype=np.int64)
    for i in range(degree):
        for j in range(degree):
            product[i + j] = (product[i + j] + a[i] * b[j]) % p
    for i in range(2 * degree - 1, degree - 1, -1):
        lead = product[i]
        if lead:
            product[i] = 0
            for j in range(degree):
                product[i - degree + j] = (product[i - degree + j] + lead * taps[j]) % p
    return product[:degree].copy()


@njit
def _sequence(taps, p, period):  # type: ignore[no-untyped-def]
    """u_{i+degree} = sum taps_j u_{i+j} mod p, from 0, ..., 0, 1."""
    degree = len(taps)
    u = np.zeros(period + degree, dtype=np.int64)
    u[degree - 1] = 1
    for i in range(period):
        total = 0
        for j in range(degree):
            total += taps[j] * u[i + j]
        u[i + degree] = total % p
    return u[:period]
