"""Environments: where totals come from when they are not measured.

Every law is used in two ways that agree in distribution: the totals of single pulls, and the sum
and sum of squares of a whole block of pulls of one super-arm, drawn at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superarm._checks import LARGEST, shown
from superarm._jit import njit
from superarm.errors import NoiseError, SuperarmError, TotalError
from superarm.noise import Bounded, Gaussian, Labels, Noise, Total
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.tally import Tally

Vector = NDArray[np.float64]
Index = NDArray[np.int64]

_AT_ONCE = 20_000_000
"""Chances of totals that are held at once, some 8 bytes each."""


class Environment(ABC):
    """A source of totals for the positions of a plan."""

    means: Vector
    length: int | None = None
    """How many totals there are, where they are not made without end."""

    def check(self, problem: Problem) -> None:  # noqa: B027 - most sources have nothing to check
        """Raise TotalError for totals that the problem's noise model excludes."""

    def after(self, pulls: int) -> Environment:
        """Return the source for a phase that begins after so many pulls of the phases before."""
        return self

    @abstractmethod
    def pulls(self, plan: Plan, start: int, stop: int, rng: np.random.Generator) -> Vector:
        """Return the totals of positions start .. stop - 1, one by one."""

    def add(
        self, tally: Tally, plan: Plan, start: int, stop: int, rng: np.random.Generator
    ) -> None:
        """Add the results of positions start .. stop - 1 to the tally."""
        tally.add(plan.order(start, stop), self.pulls(plan, start, stop, rng))


class LinearEnvironment(Environment):
    """Totals whose mean is the sum of the members' means, under a noise model.

    - gaussian: the total is normal;
    - labels: each arm is an independent Bernoulli variable; shared: arm i is right when one uniform
      number of the pull is below its mean, which correlates arms as much as can be;
    - bounded: each arm is -R or R at its mean, dependent (as for shared labels) or independent;
    - total: the total is the low or the high end at its mean.
    """

    def __init__(self, means: Sequence[float] | Vector, noise: Noise) -> None:
        self.means = _numbers("means", means, NoiseError)
        if not isinstance(noise, Noise):
            raise NoiseError(
                f"noise must be a noise model such as superarm.labels(), not {shown(noise)}"
            )
        if not noise.known:
            raise NoiseError(
                "simulated totals need the true sigma, which the rule is not told: give the "
                "environment one, as environment(means, gaussian(1.0)) (--true-sigma 1.0)"
            )
        self.noise = noise
        low, high = _mean_range(noise)
        outside = self.means[(self.means < low) | (self.means > high)]
        if len(outside):
            raise NoiseError(
                f"mean {outside[0]:g} is impossible under noise {noise}: "
                f"means must lie in {low:g} .. {high:g}"
            )
        self._known: tuple[Plan, Vector, Vector] | None = None

    def pulls(self, plan: Plan, start: int, stop: int, rng: np.random.Generator) -> Vector:
        index, size = plan.order(start, stop), stop - start
        if isinstance(self.noise, Gaussian) and size >= plan.size:
            means = plan.gather(self.means)[index]
            return means + self.noise.sigma(plan.n) * rng.standard_normal(size)
        rows = plan.members(index)
        means, there = self._of(rows), (rows >= 0).sum(axis=1)
        match self.noise:
            case Gaussian():
                return means.sum(axis=1) + self.noise.sigma(plan.n) * rng.standard_normal(size)
            case Labels(shared):
                right = rng.random((size, 1) if shared else means.shape) < means
                return right.sum(axis=1).astype(np.float64)
            case Bounded(bound, independent):
                high = (
                    rng.random(means.shape if independent else (size, 1)) < (means / bound + 1) / 2
                )
                return bound * (2.0 * (high & (rows >= 0)).sum(axis=1) - there)
            case Total(low, high):
                share = self._share(means.sum(axis=1), low, high)
                return np.where(rng.random(size) < share, high, low)
        raise NoiseError(f"no law is known for noise {self.noise!r}")

    def add(
        self, tally: Tally, plan: Plan, start: int, stop: int, rng: np.random.Generator
    ) -> None:
        counts = plan.counts(stop) - plan.counts(start)
        if stop - start <= np.count_nonzero(counts):  # single pulls: no block to gain from
            super().add(tally, plan, start, stop, rng)
            return
        if isinstance(self.noise, Gaussian):
            totals, squares = self._normal_block(plan, counts, rng)
        else:
            totals, squares = self._discrete_block(plan, counts, rng)
        tally.add_block(counts, totals, squares)

    def _of(self, rows: Index) -> Vector:
        """Means of rows of arms; 0 for what fills up a short one."""
        return np.where(rows < 0, 0.0, self.means[rows])

    def _normal_block(
        self, plan: Plan, counts: Index, rng: np.random.Generator
    ) -> tuple[Vector, Vector]:
        """Sum ~ N(c mu, c s^2), and independently the scatter about the mean, s^2 chi^2_{c-1}."""
        assert isinstance(self.noise, Gaussian)
        scale = self.noise.sigma(plan.n)
        mean = plan.gather(self.means)
        sums = counts * mean + scale * np.sqrt(counts) * rng.standard_normal(len(counts))
        scatter = scale**2 * 2 * rng.standard_gamma(np.maximum(counts - 1, 0) / 2)
        return sums, sums**2 / np.maximum(counts, 1) + scatter

    def _discrete_block(
        self, plan: Plan, counts: Index, rng: np.random.Generator
    ) -> tuple[Vector, Vector]:
        """How often each possible total came, for so many super-arms at a time as fit in memory."""
        totals, squares = np.zeros(plan.size), np.zeros(plan.size)
        step = max(1, _AT_ONCE // plan.members(slice(0, 1)).shape[1])
        for start in range(0, plan.size, step):
            part = slice(start, min(start + step, plan.size))
            if step >= plan.size:
                values, chances = self._outcomes(plan)
            else:
                values, chances = self._law(plan.members(part))
            hits = rng.multinomial(counts[part], chances)
            totals[part], squares[part] = (
                (hits * values).sum(axis=1),
                (hits * values**2).sum(axis=1),
            )
        return totals, squares

    def _outcomes(self, plan: Plan) -> tuple[Vector, Vector]:
        """Possible totals, and the chance of each for each super-arm (kept for the next block)."""
        if self._known is None or self._known[0] is not plan:
            self._known = (plan, *self._law(plan.members(slice(None))))
        return self._known[1], self._known[2]

    def _law(self, rows: Index) -> tuple[Vector, Vector]:
        means, k = self._of(rows), rows.shape[1]
        match self.noise:
            case Labels(shared):
                return np.arange(k + 1.0), _hits(means, shared)
            case Bounded(bound, independent):
                sizes = (rows >= 0).sum(axis=1, keepdims=True)
                values = bound * (2 * np.arange(k + 1.0) - sizes)
                chances = np.where(rows < 0, 0.0, (means / bound + 1) / 2)
                return values, _hits(chances, not independent)
            case Total(low, high):
                share = self._share(means.sum(axis=1), low, high)
                return np.array([low, high]), np.column_stack([1 - share, share])
        raise NoiseError(f"no law is known for noise {self.noise!r}")

    def _share(self, mean: Vector, low: float, high: float) -> Vector:
        outside = mean[(mean < low) | (mean > high)]
        if len(outside):
            raise NoiseError(
                f"a group's mean total {outside[0]:g} is outside its range {low:g} .. {high:g}"
            )
        return (mean - low) / (high - low)


class Recorded(Environment):
    """Totals that are there already: the one of each position of the plan, in order.

    Those of a further phase come after the ones that the phases before have used.
    """

    def __init__(self, totals: Sequence[float] | Vector, means: Sequence[float] | Vector) -> None:
        self.totals = _numbers("totals", totals, TotalError)
        self.means = _numbers("means", means, NoiseError)
        self.length = len(self.totals)

    def check(self, problem: Problem) -> None:
        for total in self.totals.tolist():
            problem.noise.check_total(total, problem.k, problem.decision.least_size)

    def after(self, pulls: int) -> Recorded:
        return Recorded(self.totals[pulls:], self.means)

    def pulls(self, plan: Plan, start: int, stop: int, rng: np.random.Generator) -> Vector:
        return self.totals[start:stop]


def environment(means: Sequence[float] | Vector, noise: Noise) -> LinearEnvironment:
    """Return an environment with these arm means under a noise model."""
    return LinearEnvironment(means, noise)


def _numbers(what: str, values: Sequence[float] | Vector, error: type[SuperarmError]) -> Vector:
    try:
        with np.errstate(over="ignore"):  # to infinity, which is refused below
            numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} must be a list of numbers") from None
    if numbers.ndim != 1:
        raise error(f"{what} must be a list of numbers, not {shown(values)}")
    wrong = numbers[~(np.abs(numbers) <= LARGEST)]
    if len(wrong):
        raise error(
            f"{what} must be finite numbers, at most {LARGEST:g} in size, not {float(wrong[0])!r}"
        )
    return numbers


def _mean_range(noise: Noise) -> tuple[float, float]:
    match noise:
        case Labels():
            return (0.0, 1.0)
        case Bounded(bound):
            return (-bound, bound)
    return (-np.inf, np.inf)


def _hits(chances: Vector, shared: bool) -> Vector:
    """For each row, the chance of 0, 1, ..., k successes: one shared uniform, or independent."""
    if shared:
        falling = -np.sort(-chances, axis=1)
        ends = np.ones(len(chances))[:, None], np.zeros(len(chances))[:, None]
        return -np.diff(np.hstack([ends[0], falling, ends[1]]), axis=1)
    pmf = _poisson_binomial(np.ascontiguousarray(chances))
    return pmf / pmf.sum(axis=1, keepdims=True)


@njit
def _poisson_binomial(chances):  # type: ignore[no-untyped-def]
    """Adding one independent success after the other: O(k^2) a row."""
    rows, k = chances.shape
    pmf = np.zeros((rows, k + 1))
    for r in range(rows):
        pmf[r, 0] = 1.0
        for i in range(k):
            p = chances[r, i]
            for hits in range(i + 1, 0, -1):
                pmf[r, hits] = pmf[r, hits] * (1 - p) + pmf[r, hits - 1] * p
            pmf[r, 0] *= 1 - p
    return pmf
