"""Local search on x'Wx over size-k sets: the best swap until none helps, tabu walks, many starts.

Swapping a in for b changes the value by W_aa + 2 g_a + W_bb - 2 g_b - 2 W_ab with g = Wx, so that
all k(n-k) swaps are compared in O(n min(k, n-k)) with long inner loops, and one is made in O(n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm._jit import njit_fast

Matrix = NDArray[np.float64]
Members = NDArray[np.int64]

STARTS = 40
"""Starts of `multistart`: half anew at random, half by shaking the best set so far."""

_QUIET = 100  # tabu moves without a better set, after which a walk ends
_TENURE = 2, 8  # moves for which an arm that was moved stays put: least, and most + 1


def swap_search(W: Matrix, members: Members) -> Members:
    """Return a set that no single swap improves, by steepest ascent from `members`."""
    inside = np.zeros(len(W), dtype=np.bool_)
    inside[members] = True
    _climb(W, np.ascontiguousarray(np.diagonal(W)), inside, W @ inside)
    return np.flatnonzero(inside)


def multistart(W: Matrix, start: Members, starts: int = STARTS, seed: int = 0) -> Members:
    """Return the best set of many climbs, each with a tabu walk after it.

    They begin at `start`, at random sets, and at the best set with some members exchanged. A tabu
    walk takes out the member that is missed least and puts in the arm that adds most, though that
    may lower the value; what was moved stays put for some moves. A move costs O(n), where a look
    at all swaps costs O(n min(k, n-k)).

    Deterministic: the same matrix, starts and seed give the same set.
    """
    inside = np.zeros(len(W), dtype=np.bool_)
    inside[start] = True
    draws = np.random.default_rng(seed).random((starts, len(W)))
    _many(W, np.ascontiguousarray(np.diagonal(W)), inside, draws)
    return np.flatnonzero(inside)


@njit_fast
def _climb(W, diagonal, inside, towards):  # type: ignore[no-untyped-def]
    """Make best swaps while they help; `inside` and towards = W x follow. Return the value."""
    n = len(inside)
    k = inside.sum()
    value = 0.0
    for i in range(n):
        if inside[i]:
            value += towards[i]
    few_inside = 2 * k <= n
    few = np.flatnonzero(inside == few_inside)
    scores = np.empty(n)  # of the many, in the way that a swap counts them; the few are left out
    if len(few) == 0 or len(few) == n:
        return value
    slack = 1e-12 * np.abs(diagonal).max() * n
    while True:
        side = 2.0 if few_inside else -2.0
        for i in range(n):
            many = inside[i] != few_inside
            scores[i] = diagonal[i] + side * towards[i] if many else -np.inf
        best = -np.inf
        place = 0
        for f in range(len(few)):
            i = few[f]
            row = W[i]
            most = -np.inf
            for j in range(n):
                most = max(most, scores[j] - 2.0 * row[j])
            most += diagonal[i] - side * towards[i]
            if most > best:
                best, place = most, f
        if best <= slack:
            return value
        i = few[place]
        other = np.argmax(scores - 2.0 * W[i])
        few[place] = other
        inside[i], inside[other] = not inside[i], not inside[other]
        value += best
        sign = 1.0 if inside[i] else -1.0
        for c in range(n):
            towards[c] += sign * (W[i, c] - W[other, c])


@njit_fast
def _many(W, diagonal, inside, draws):  # type: ignore[no-untyped-def]
    """Climb and walk from `inside`, then from a start for each row of `draws`; keep the best."""
    n = len(inside)
    k = inside.sum()
    highest = _climb(W, diagonal, inside, _towards(W, inside))
    trial = inside.copy()
    for s in range(draws.shape[0]):
        order = np.argsort(draws[s])
        if s % 2 == 1:
            trial[:] = False
            trial[order[:k]] = True
        else:
            trial[:] = inside
            if s > 0:
                _shake(trial, order, 1 + int(draws[s, 0] * min(k, n - k) / 2))
        towards = _towards(W, trial)
        value = _climb(W, diagonal, trial, towards)
        if value > highest:
            highest = value
            inside[:] = trial
        highest = _walk(W, diagonal, trial, towards, value, inside, highest, draws[s])


@njit_fast
def _walk(W, diagonal, trial, towards, value, inside, highest, draws):  # type: ignore[no-untyped-def]
    """Tabu walk from `trial` (used up); sets above `highest` are left in `inside`."""
    n = len(trial)
    until = np.zeros(n, np.int64)
    local = value
    quiet = 0
    move = 0
    least, span = _TENURE[0], _TENURE[1] - _TENURE[0]
    while quiet < _QUIET:
        move += 1
        for into in (False, True):
            sign = 1.0 if into else -1.0
            most, taken = -np.inf, -1
            for i in range(n):
                if trial[i] != into and until[i] < move:
                    x = diagonal[i] + sign * 2.0 * towards[i]
                    if x > most:
                        most, taken = x, i
            if taken < 0:  # all of that side stay put
                return highest
            trial[taken] = into
            value += most
            for c in range(n):
                towards[c] += sign * W[taken, c]
            until[taken] = move + least + int(draws[(7 * move + into) % n] * span)
        quiet += 1
        if value > local + 1e-12 * abs(local):
            local = value
            quiet = 0
            top = trial.copy()
            climbed = _climb(W, diagonal, top, towards.copy())
            if climbed > highest + 1e-12 * abs(highest):
                highest = climbed
                inside[:] = top
    return highest


@njit_fast
def _towards(W, inside):  # type: ignore[no-untyped-def]
    """W x."""
    towards = np.zeros(len(inside))
    for i in range(len(inside)):
        if inside[i]:
            towards += W[i]
    return towards


@njit_fast
def _shake(trial, order, swaps):  # type: ignore[no-untyped-def]
    """Take out the first `swaps` members in this order, and put in the first outside."""
    out = swaps
    into = swaps
    for i in order:
        if trial[i] and out > 0:
            trial[i] = False
            out -= 1
        elif not trial[i] and into > 0:
            trial[i] = True
            into -= 1
