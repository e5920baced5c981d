"""Efficient rounding: from proportions to whole numbers of pulls (Appendix D; Pukelsheim, Rieder).

Seen as a schedule, super-arm i is pulled for the (c+1)-th time "at" c / p_i, and t pulls are the
first t of these. So the counts for t + 1 are those for t and one pull more, and they are those of
the order argmin T_i / p_i by which Algorithms 2-5 measure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm._checks import real, whole
from superarm.errors import SettingError

MOST = 10**15
"""More pulls than this are not rounded."""


def efficient_rounding(proportions: Any, t: int) -> NDArray[np.int64]:
    """Return counts t_i with sum t whose least t_i / p_i no other counts with that sum exceed.

    With s proportions above 0 (that add up to 1 once normalised), t_i = ceil((t - s/2) p_i); then,
    until the sum is t, the least t_i / p_i gets one more, or the greatest (t_i - 1) / p_i one less.
    The result satisfies ::

        max (t_i - 1) / p_i <= min t_i / p_i,    min t_i / (t p_i) >= 1 - (s - 1) / t

    so that no norm in the inverse information grows by more than a factor 1 / (1 - (s - 1)/t).
    All is done in whole numbers, without rounding errors. Of equal ones, the greater proportion
    comes first, then the lower index. With fewer pulls than proportions (t < s) the t greatest
    get one each; the rest go without, and the arms may then not be told apart.

    Parameters
    ----------
    proportions
        Numbers >= 0, not all 0; they need not add up to 1. Where one is 0, so is its count.
    t
        Number of pulls, >= 1.
    """
    shares = _whole_shares(proportions)
    t = whole("t (the number of pulls)", t, SettingError, least=1, most=MOST)
    held = [i for i, share in enumerate(shares) if share > 0]
    total, s = sum(shares), len(held)
    counts = [0] * len(shares)
    for i in held:  # (t - s/2) p_i, rounded up; below 0 for t < s/2
        counts[i] = max(0, -((s - 2 * t) * shares[i] // (2 * total)))
    missing = t - sum(counts)
    if missing > 0:
        coming = [(_turn(counts[i], shares[i]), i) for i in held]
        heapq.heapify(coming)
        for _ in range(missing):
            i = coming[0][1]
            counts[i] += 1
            heapq.heapreplace(coming, (_turn(counts[i], shares[i]), i))
    elif missing < 0:
        made = [_latest(counts[i], shares[i], i) for i in held if counts[i] > 0]
        heapq.heapify(made)
        for _ in range(-missing):
            i = -made[0][2]
            counts[i] -= 1
            if counts[i] > 0:
                heapq.heapreplace(made, _latest(counts[i], shares[i], i))
            else:
                heapq.heappop(made)
    return np.array(counts, dtype=np.int64)


def _turn(count: int, share: int) -> tuple[Fraction, int]:
    """When a super-arm that was pulled `count` times is pulled next; earlier sorts first."""
    return Fraction(count, share), -share


def _latest(count: int, share: int, i: int) -> tuple[Fraction, int, int]:
    """The turn of the last pull that was made; later sorts first."""
    at, rank = _turn(count - 1, share)
    return -at, -rank, -i


def _whole_shares(proportions: Any) -> list[int]:
    """Return whole numbers in exactly these proportions."""
    if isinstance(proportions, str | bytes) or not isinstance(proportions, Iterable):
        raise SettingError(f"proportions must be a list of numbers, not {proportions!r}")
    shares = [real("a proportion", share, SettingError) for share in proportions]
    if not all(0 <= share < float("inf") for share in shares) or not any(shares):
        raise SettingError("proportions must be finite, >= 0, and not all 0")
    exact = [Fraction(share) for share in shares]
    common = max(fraction.denominator for fraction in exact)  # powers of 2: each divides the next
    return [int(fraction * common) for fraction in exact]
