"""Great differences of two sets of any decision class: found, never proved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from superarm.decision import Decision
from superarm.estimate import Matrix

Vector = NDArray[np.float64]

_LEADING, _RANDOM = 3, 10  # eigenvectors and random directions to start from
_DRAWS = 30  # random sets


def great_difference(decision: Decision, W: Matrix) -> float:
    """Return x'Wx of a difference x of two sets.

    x'Wx is convex, so that the best set for the gradient at x, less the worst, has no less.
    """
    if not decision.signed:
        drawn = _drawn(decision)
        return max(_square(W, x - y) for x in drawn for y in drawn)
    return max(_climb(decision, W, g) for g in _directions(W))


def great_exchange(decision: Decision, widths: Vector) -> float:
    """Return the sum of widths over M xor M' of two sets, for widths >= 0.

    The best M' for a given M is a linear maximisation: each in turn answers the other.
    """
    drawn = _drawn(decision)
    if not decision.signed:
        return max(float(widths @ np.abs(x - y)) for x in drawn for y in drawn)
    return max(_answers(decision, widths, x) for x in drawn)


def _climb(decision: Decision, W: Matrix, g: Vector) -> float:
    most = 0.0
    while True:
        x = _best(decision, g) - _best(decision, -g)
        value = _square(W, x)
        if value <= most * (1 + 1e-12):
            return most
        most, g = value, W @ x


def _answers(decision: Decision, widths: Vector, x: Vector) -> float:
    most = 0.0
    while True:
        y = _best(decision, widths * (1 - 2 * x))
        value = float(widths @ np.abs(x - y))
        if value <= most * (1 + 1e-12):
            return most
        most, x = value, y


def _directions(W: Matrix) -> Iterator[Vector]:
    yield from np.linalg.eigh(W)[1].T[::-1][:_LEADING]
    # The same numbers each time, so that the result is a function of W.
    yield from np.random.default_rng(0).standard_normal((_RANDOM, len(W)))


def _drawn(decision: Decision) -> list[Vector]:
    rng = np.random.default_rng(0)
    return [_indicator(decision, decision.draw(rng)) for _ in range(_DRAWS)]


def _best(decision: Decision, weights: Vector) -> Vector:
    return _indicator(decision, decision.best(weights))


def _indicator(decision: Decision, members: NDArray[np.int64]) -> Vector:
    x = np.zeros(decision.n)
    x[members] = 1.0
    return x


def _square(W: Matrix, x: Vector) -> float:
    return max(0.0, float(x @ W @ x))
