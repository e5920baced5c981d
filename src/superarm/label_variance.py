r"""How noisy the totals of independent labels are: an upper bound from the results themselves.

Arm i is right with probability p_i, so that its labels have the variance h_i = p_i (1 - p_i). In
one cycle of a plan, with C = A^-1 and y_s = C chi_s (less its mean), the error of a difference
x'theta^ is the sum over super-arms s of (x'y_s) times the error of a total. Its variance is

    v(x) = sum_s (x'y_s)^2 sum_{i in s} h_i = x' (sum_i h_i W_i) x,   W_i = sum_{s with i} y_s y_s'.

For any u_i whatever, h_i <= u_i^2 + (1 - 2 u_i) p_i. The u_i come from the last quarter or so of
the blocks (the pilot), and p^ from the others, whose errors do not depend on them. The W_i are
positive semi-definite, so that with D_i = 1 - 2 u_i

    sum_i h_i W_i  <=  sum_i (u_i^2 + D_i p^_i) W_i  +  sum_i D_i (p_i - p^_i) W_i.

The first sum is known. The second is a sum of independent errors times known matrices; with
probability >= 1 - delta its greatest eigenvalue is at most (Tropp's master bound)

    sqrt(2 nu (k/4) log((n-1)/delta) / c)   after c cycles,   nu = |sum_ij Q_ij W_i W_j|,

Q = D A_E^-1 D, A_E the information of one cycle of those others. nu is bounded in turn: W_i is the
mean m of all plus R_i, and its part sum_ij Q_ij R_i R_j is at most sum_i D_i^2 R_i^2 / lambda_E.
The plan being cyclic, W_i is W_0 with all places moved on by i: n^3 in all, and n^2 numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from superarm.circulant import Circulant
from superarm.cyclic_plan import TOLD, CyclicPlan
from superarm.tally import Tally

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Waves = NDArray[np.complex128]

_PILOT = 0.25  # share of the blocks that u is from: their results are not in p^
_SPREAD = 0.05  # variance of the p_i that u reckons with; a wrong one costs pulls, nothing else
_ROUNDING = 16


class Bound(NamedTuple):
    """What is known of sum_i h_i W_i at a look: it is at most `matrix` + `room` times 1."""

    matrix: Matrix
    room: float

    def squares(self, levels: int) -> Vector:
        """Return a bound on v(x) for x between sets that differ in d = 1 .. levels swaps."""
        d = np.arange(1, levels + 1, dtype=np.float64)
        off = self.matrix[~np.eye(len(self.matrix), dtype=np.bool_)]
        greatest = float(np.linalg.eigvalsh(self.matrix)[-1])
        diagonal = float(self.matrix.diagonal().max() - off.min())
        spread = float(off.max() - off.min())
        found = 2 * d * (np.minimum(greatest, diagonal + (d - 1) * spread) + self.room)
        return np.asarray(np.maximum(0.0, found))


class LabelVariance:
    """The bound for a cyclic plan without fillers whose `kept` first blocks tell all arms apart."""

    def __init__(self, plan: CyclicPlan) -> None:
        self.plan, self.n, self.k = plan, plan.places, plan.k
        self.kept = kept_blocks(plan)
        eigenvalues = plan.powers.sum(axis=0)
        waves = plan.transforms / eigenvalues
        waves[:, 0] = 0
        self.shifts: Vector = np.asarray(irfft(waves, self.n))
        """y of the first shift of each block, by place."""
        self.noisiest = self.k / 4 / float(eigenvalues[1:].min())
        """At most so much is v(x)/|x|^2, whatever the p_i."""
        first = self._first_weight()
        mean = _circulant_mean(first)
        rest = first - mean
        self._weights, self._rest = _diagonals(first), _diagonals(rest)
        self._rest_squared, self._mean = _diagonals(rest @ rest), mean
        used = (np.arange(len(plan.blocks)) < self.kept).astype(np.float64)
        self._info = Circulant(plan, used)
        self._pilot: Vector = (1 - used) @ plan.powers

    def reach(self, levels: int) -> Vector:
        """Return the greatest |x'y_s| for d = 1 .. levels swaps: what a single label can do."""
        ordered = np.sort(self.shifts, axis=1)
        least, most = np.cumsum(ordered, axis=1), np.cumsum(ordered[:, ::-1], axis=1)
        return np.asarray((most - least).max(axis=0)[:levels])

    def weighted(self, f: Vector) -> Matrix:
        """sum_i f_i W_i, i by place."""
        return _moved(f, self._weights)

    def guess(self, tally: Tally, cycles: int) -> Vector:
        """Return u by place: least squares with a ridge, on the pilot's results alone."""
        totals, cut = tally.totals, self.kept * self.n
        mine = totals[cut:]
        level = float(mine.sum()) / (len(mine) * cycles * self.k)
        alone = np.append(np.zeros(cut), mine - cycles * self.k * level)
        ridge = self.k / 4 / _SPREAD
        about = irfft(self.plan.scatter(alone) / (cycles * self._pilot + ridge), self.n)
        return np.clip(level + np.asarray(about), 0.0, 1.0)

    def bound(self, tally: Tally, delta: float) -> Bound:
        """Return what holds with probability 1 - delta, on the tally of whole cycles."""
        cycles = tally.pulls // self.plan.size
        u = self.guess(tally, cycles)
        slope = 1 - 2 * u
        found = self._info.scaled(cycles).estimate(self.plan, tally)
        known = self.weighted(u * u + slope * found.means[self.plan.arms])
        log = math.log((self.n - 1) / delta)
        room = math.sqrt(2 * self.spread(slope) * (self.k / 4) * log / cycles)
        rounding = _ROUNDING * self._info.relative_error + 4 * found.rounding
        return Bound(known, room + rounding * self.noisiest)

    def spread(self, slope: Vector) -> float:
        """Return a bound on nu."""
        eigenvalues = self._info.eigenvalues
        summed = slope * np.asarray(irfft(rfft(slope) / eigenvalues, self.n))
        cross = _moved(summed, self._rest) @ self._mean
        own = _moved(slope * slope, self._rest_squared) / float(eigenvalues.min())
        total = float(summed.sum()) * self._mean @ self._mean + cross + cross.T + own
        return max(0.0, float(np.linalg.eigvalsh(total)[-1]))

    def _first_weight(self) -> Matrix:
        """W_0: the super-arms with place 0 are each block moved back by one of its own."""
        places, rows = np.arange(self.n), []
        for shift, block in zip(self.shifts, self.plan.blocks, strict=True):
            rows.append(shift[(places + block[:, None]) % self.n])
        y = np.concatenate(rows)
        return np.asarray(y.T @ y)


def kept_blocks(plan: CyclicPlan) -> int:
    """How many blocks p^ is from: about three quarters, so that both parts tell all arms apart.

    A pilot that does not is no mistake, but says little of the variance.
    """
    blocks = len(plan.blocks)
    least = max(1, round(_PILOT * blocks))
    for pilot in range(least, blocks // 2 + 1):
        if _tell(plan.powers[:-pilot]) and _tell(plan.powers[-pilot:]):
            return blocks - pilot
    return blocks - least


def can_divide(plan: CyclicPlan) -> bool:
    """Whether the blocks beside the pilot tell all arms apart on their own: p^ needs that."""
    return _tell(plan.powers[: kept_blocks(plan)])


def divides_well(plan: CyclicPlan) -> bool:
    """Whether the pilot does so too."""
    return can_divide(plan) and _tell(plan.powers[kept_blocks(plan) :])


def _tell(powers: Vector) -> bool:
    """Whether blocks of these spectra tell all arms apart."""
    eigenvalues = powers.sum(axis=0)[1:]
    return len(powers) > 0 and bool(eigenvalues.min() > TOLD * eigenvalues.mean())


def _circulant_mean(first: Matrix) -> Matrix:
    """Return the mean of a matrix with all places moved on by 0 .. n-1."""
    return _moved(np.full(len(first), 1 / len(first)), _diagonals(first))


def _diagonals(first: Matrix) -> Waves:
    """Return the transforms of all diagonals (round and round) of a matrix, a column each."""
    i = np.arange(len(first))
    return np.asarray(rfft(first[i[:, None], (i[:, None] + i) % len(first)], axis=0))


def _moved(f: Vector, diagonals: Waves) -> Matrix:
    """Return the sum of f_i times a matrix with all places moved on by i."""
    n, i = len(f), np.arange(len(f))
    found = np.empty((n, n))
    found[i[:, None], (i[:, None] + i) % n] = irfft(rfft(f)[:, None] * diagonals, n, axis=0)
    return (found + found.T) / 2
