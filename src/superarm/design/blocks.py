"""Base blocks by swap search: their shifts should measure every pair of arms nearly equally often.

The matrix of all n shifts of blocks B_1 .. B_L is circulant; its eigenvalues are the sums of the
blocks' power spectra, and ideal are equal ones, L k(n-k)/(n-1) each. An exchange of one member
changes one spectrum in O(n). Sought is the least mean of (ideal / eigenvalue)^POWER: a high power
cares most for the least eigenvalue, of which the certified norms are made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import rfft

from superarm._jit import njit

Blocks = NDArray[np.int64]
Vector = NDArray[np.float64]

_EFFORT = 100_000_000
"""Frequencies that are looked at in all (a nanosecond or two each)."""

_STARTS = 8
_SMALL = 1_000_000  # n^2 k of a single block that is sought several times

_LEAST = 1e-9  # of the ideal: nearer to 0 an eigenvalue counts as this


def search_blocks(n: int, k: int, number: int, rng: np.random.Generator) -> Blocks:
    """Return `number` base blocks of `k` arms, a row each (ascending), flat also one by one.

    The first block is made as flat as can be on its own, the next one together with it, and so on;
    then each is tried again beside all others, as long as that helps and the effort lasts. A single
    block, which nothing evens out, is the flattest of several where that costs little.
    """
    starts = _STARTS if number == 1 and n * n * k < _SMALL else 1
    found = [_searched(n, k, number, rng) for _ in range(starts)]
    return max(found, key=lambda blocks: flatness(n, blocks)) if starts > 1 else found[0]


def _searched(n: int, k: int, number: int, rng: np.random.Generator) -> Blocks:
    half = n // 2
    angles = 2 * np.pi * np.arange(n) / n
    cos, sin = np.cos(angles), np.sin(angles)
    blocks = np.array([rng.choice(n, k, replace=False, shuffle=False) for _ in range(number)])
    waves = np.array([transform(block, n)[1:] for block in blocks]).reshape(number, half)
    tries = max(1, _EFFORT // max(1, half * number * 2))
    for stage in range(2):
        for i in range(number):
            others = [j for j in range(number) if j != i and (stage or j < i)]
            rest = power(waves[others]).sum(axis=0)
            ideal = (len(others) + 1) * k * (n - k) / (n - 1)
            pairs = _pairs(n, k, tries, rng)
            re, im = waves[i].real.copy(), -waves[i].imag
            _improve(blocks[i], n, re, im, rest, cos, sin, ideal, pairs)
            waves[i] = transform(blocks[i], n)[1:]
    return np.sort(blocks, axis=1)


def transform(block: NDArray[np.int64], n: int) -> NDArray[np.complex128]:
    """Return the DFT of a block's indicator at frequencies 0 .. n//2."""
    indicator = np.zeros(n)
    indicator[block] = 1.0
    return rfft(indicator)


def power(waves: NDArray[np.complex128]) -> Vector:
    """Return |.|^2, entry by entry."""
    return waves.real**2 + waves.imag**2


def flatness(n: int, blocks: Blocks) -> float:
    """Return the least eigenvalue of all shifts of the blocks, as a share of the ideal."""
    k = blocks.shape[1]
    total = sum(power(transform(block, n)[1:]) for block in blocks)
    return float(np.min(total) * (n - 1) / (len(blocks) * k * (n - k)))


def _pairs(n: int, k: int, tries: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return exchanges to try, as (place in the block, arm): every one some times, or so many."""
    every = k * n
    times = min(30, max(1, tries // every))
    if tries < every:
        return np.column_stack([rng.integers(k, size=tries), rng.integers(n, size=tries)])
    orders = [rng.permutation(every) for _ in range(times)]
    return np.column_stack(np.divmod(np.concatenate(orders), n))


@njit
def _badness(power, ideal):  # type: ignore[no-untyped-def]
    """(ideal / power)^8."""
    ratio = ideal / max(power, _LEAST * ideal)
    ratio *= ratio
    ratio *= ratio
    return ratio * ratio


@njit
def _improve(block, n, re, im, rest, cos, sin, ideal, pairs):  # type: ignore[no-untyped-def]
    """Make each exchange in turn that lowers the badness of rest + re^2 + im^2, the block's own."""
    half = len(rest)
    inside = np.zeros(n, dtype=np.bool_)
    for arm in block:
        inside[arm] = True
    now = 0.0
    for w in range(half):
        now += _badness(rest[w] + re[w] * re[w] + im[w] * im[w], ideal)
    idle = 0
    for row in range(pairs.shape[0]):
        place, arm = pairs[row, 0], pairs[row, 1]
        idle += 1
        if inside[arm]:
            continue
        out = block[place]
        new = 0.0
        at, gone = 0, 0
        for w in range(half):
            at += arm
            if at >= n:
                at -= n
            gone += out
            if gone >= n:
                gone -= n
            x = re[w] + cos[at] - cos[gone]
            y = im[w] + sin[at] - sin[gone]
            new += _badness(rest[w] + x * x + y * y, ideal)
            if new >= now:
                break
        if new < now:
            at, gone = 0, 0
            for w in range(half):
                at += arm
                if at >= n:
                    at -= n
                gone += out
                if gone >= n:
                    gone -= n
                re[w] += cos[at] - cos[gone]
                im[w] += sin[at] - sin[gone]
            inside[out], inside[arm] = False, True
            block[place] = arm
            now = new
            idle = 0
        if idle > 2 * n * len(block):
            break
