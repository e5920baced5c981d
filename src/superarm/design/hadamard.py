"""Hadamard matrices: entries +-1, rows orthogonal to each other, the first row all ones.

Each other row splits the columns into two halves. The constructions, N the order:

- Paley I: N = q + 1 for a power q of a prime, q = 3 mod 4;
- Paley II: N = 2(q + 1), q = 1 mod 4;
- products: N = N1 N2 (with N1 = 2, Sylvester's doubling).

They give all orders that are possible (1, 2, multiples of 4) below 92, and most beyond it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from superarm.design.difference_sets import maximal_sequence, prime_power

Signs = NDArray[np.int8]


def hadamard(order: int) -> Signs | None:
    """Return a Hadamard matrix whose first row is all ones; None where we know none."""
    if not exists(order):
        return None
    matrix = _build(order)
    return matrix * matrix[0]


@lru_cache(maxsize=4096)
def exists(order: int) -> bool:
    """Whether one of the constructions gives a matrix of this order."""
    if order < 1 or (order > 2 and order % 4):
        return False
    return order <= 2 or _paley_one(order) or _paley_two(order) or _factors(order) is not None


def _paley_one(order: int) -> bool:
    return order % 4 == 0 and prime_power(order - 1) is not None


def _paley_two(order: int) -> bool:
    q = order // 2 - 1
    return order % 4 == 0 and q % 4 == 1 and q > 1 and prime_power(q) is not None


def _factors(order: int) -> tuple[int, int] | None:
    """Two smaller orders whose product it is."""
    for factor in (2, *range(4, int(order**0.5) + 1, 4)):
        if order % factor == 0 and exists(factor) and exists(order // factor):
            return factor, order // factor
    return None


def _build(order: int) -> Signs:
    if order <= 2:
        return np.array([[1, 1], [1, -1]], dtype=np.int8)[:order, :order]
    if _paley_one(order):
        border = _bordered(order - 1, -1)
        return border + np.eye(order, dtype=np.int8)
    if _paley_two(order):
        border = _bordered(order // 2 - 1, 1)
        plus = np.array([[1, 1], [1, -1]], dtype=np.int8)
        minus = np.array([[1, -1], [-1, -1]], dtype=np.int8)
        return np.kron(border, plus) + np.kron(np.eye(len(border), dtype=np.int8), minus)
    factors = _factors(order)
    assert factors is not None
    product: Signs = np.kron(_build(factors[0]), _build(factors[1]))
    return product


def _bordered(q: int, corner: int) -> Signs:
    """Return the quadratic characters of all differences x - y in the field of q elements.

    A row of ones goes on top, a column of `corner` to the left, and 0 where they meet.
    """
    matrix = np.ones((q + 1, q + 1), dtype=np.int8)
    matrix[1:, 0], matrix[0, 0] = corner, 0
    matrix[1:, 1:] = _characters(q)
    return matrix


def _characters(q: int) -> Signs:
    """Character of x - y for all elements x, y of the field of q elements.

    A recurrence mod p of the greatest period maps the powers a^i of a generator to its states
    (u_i, ..., u_{i+e-1}). The map is linear, so that states can be subtracted in place of elements;
    a^i is a square if i is even.
    """
    power = prime_power(q)
    assert power is not None
    p, e = power
    sequence = maximal_sequence(p, e, q - 1)
    assert sequence is not None  # a generator exists
    weights = p ** np.arange(e)
    states = np.stack([np.roll(sequence, -j) for j in range(e)], axis=1)
    character = np.zeros(q, dtype=np.int8)
    character[states @ weights] = np.where(np.arange(q - 1) % 2, -1, 1)
    digits = np.arange(q)[:, None] // weights % p
    codes = np.zeros((q, q), dtype=np.int64)
    for place in range(e):
        codes += (digits[:, None, place] - digits[None, :, place]) % p * weights[place]
    return character[codes]
