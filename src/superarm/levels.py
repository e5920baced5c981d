r"""The levels radius: one bound for all sets at once that differ from a best one in d swaps.

Fix a best set M*. The sets M at level d, those that lack d members of M*, number
N_d = C(k, d) C(n-k, d). With probability >= 1 - delta, at all looks and for all of them,

    (theta - theta^)(M*) - (theta - theta^)(M)  <=  sigma b_d |chi_M* - chi_M|_{A^-1}.

Each set at level d may fail with probability alpha_d = delta w_d / N_d, sum_d w_d = 1. What b_d is
then depends on when looks are taken:

- J planned looks: b = sqrt(2 log(J/alpha)); each may fail with alpha/J.
- any number of them, the j-th with 6 alpha/(pi^2 j^2): b = sqrt(2 log(pi^2 j^2 / (6 alpha))).
- after whole cycles of the plan, however often: the error of a difference is then the mean of one
  independent sub-Gaussian term a cycle, and the mixture bound covers all looks together,

      b_t = sqrt(2 (1 + rho/t) log(1/2 + sqrt(1 + t/rho) / (2 alpha))),

  tightest where t is about 2 log(1/alpha) rho. It costs less than a handful of planned looks.

With epsilon = 0 level 1 is enough (w_1 = 1): where each member is ahead of each arm outside, the
answer is best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from superarm.information import Information
from superarm.problem import Problem

Vector = NDArray[np.float64]
Widths = Callable[[Information, int], Vector]


@dataclass(frozen=True, eq=False)
class Levels:
    """sigma b_d at every look, for levels d = 1, 2, ...

    Parameters
    ----------
    sigma
        Scale of a total.
    logs
        log(1/alpha_d) for each level.
    looks
        Number of planned looks; None for any number of them.
    rho
        Of the mixture, in pulls: looks are after whole cycles. None for the other two.
    """

    sigma: float
    logs: Vector
    looks: int | None = None
    rho: float | None = None

    @property
    def name(self) -> str:
        """Which statement it is, for the certificate."""
        if self.rho is not None:
            return "levels, at all whole cycles"
        if self.looks is None:
            return "levels"
        return "levels, one look" if self.looks == 1 else f"levels, {self.looks:,} planned looks"

    def at(self, t: float, look: int = 0) -> Any:
        """Return sigma b_d of all levels at look number `look`, after t pulls."""
        return self.sigma * np.sqrt(self.squares(t, look))

    def at_look(self, t: float, look: int) -> Widths:
        """Return the function from the information of a look to the radii of all levels."""
        return partial(self.widths, t, look)

    def typical(self, t: float, look: int) -> float:
        """Return that of level 1, to show how all of them grow."""
        return float(self.at(t, look)[0])

    def widths(self, t: float, look: int, info: Information, k: int) -> Vector:
        """Return the radii of all levels at a look."""
        norms = np.sqrt(info.differences(k).squares(len(self.logs)))
        return np.asarray(self.at(t, look) * norms)

    def squares(self, t: float, look: int) -> Vector:
        """Return b_d^2."""
        if self.rho is not None:
            return 2 * (1 + self.rho / t) * mixed(self.logs, t / self.rho)
        if self.looks is not None:
            return 2 * (self.logs + math.log(self.looks))
        return 2 * (self.logs + math.log(math.pi**2 / 6 * max(1, look) ** 2))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """sigma b_d sqrt(2d / (lambda t)) at calibrated looks; the levels radius at later ones.

    Parameters
    ----------
    sigma
        Scale of a total.
    b
        b_d for each level, from a calibration for looks at `times`.
    information
        lambda: information a pull.
    times
        Numbers of pulls at the calibrated looks.
    tail
        For looks beyond them, with a share of delta of its own.
    """

    sigma: float
    b: Vector
    information: float
    times: frozenset[int]
    tail: Levels

    name = "calibrated, at all whole cycles"

    def at(self, t: float, look: int = 0) -> Any:
        """Return sigma b_d of all levels."""
        return self.sigma * self.b if t in self.times else self.tail.at(t, look)

    def at_look(self, t: float, look: int) -> Widths:
        """Return the function from the information of a look to the radii of all levels."""
        return partial(self.widths, t, look)

    def typical(self, t: float, look: int) -> float:
        """Return that of level 1."""
        return float(self.sigma * self.b[0])

    def widths(self, t: float, look: int, info: Information, k: int) -> Vector:
        """Return the radii of all levels at a look."""
        if t not in self.times:
            return self.tail.widths(t, look, info, k)
        d = np.arange(1, len(self.b) + 1)
        return np.asarray(self.sigma * self.b * np.sqrt(2 * d / (self.information * t)))


def mixed(logs: Vector, ratio: float) -> Vector:
    """Return log(1/2 + sqrt(1 + ratio)/(2 alpha)), from log(1/alpha)."""
    log_half = math.log(0.5)
    return np.asarray(np.logaddexp(log_half, log_half + 0.5 * math.log1p(ratio) + logs))


def level_logs(n: int, k: int, delta: float, pairs: bool) -> Vector:
    """Return log(1/alpha_d) for all levels with equal weights, or (pairs) for level 1 alone."""
    levels = 1 if pairs else min(k, n - k)
    d = np.arange(1, levels + 1, dtype=np.float64)
    return _log_choose(k, d) + _log_choose(n - k, d) + math.log(levels) - math.log(delta)


def expected_pulls(problem: Problem, sigma: float | None = None, delta: float | None = None) -> int:
    """Return a rough number of pulls to expect, known before anything is measured.

    With epsilon > 0 the stop is certain when all radii are below it, after
    max_d 2 log(1/alpha_d) sigma^2 2d / (lambda epsilon^2) pulls of a flat design, lambda =
    k(n-k)/(n(n-1)) being its information a pull; it comes about 6 times sooner where the means
    differ. With epsilon = 0 that depends on gaps that nobody knows, and where sigma is not stated
    on that: 12 pulls an arm.
    """
    n, k = problem.n, problem.k
    if problem.epsilon == 0 or not problem.noise.known:
        return 12 * n
    sigma = problem.noise.sigma(k) if sigma is None else sigma
    logs = level_logs(n, k, problem.delta if delta is None else delta, pairs=False)
    d = np.arange(1, len(logs) + 1)
    information = information_of(n, k)
    reach = 2 * sigma / problem.epsilon
    certain = float(np.max(logs * d)) * (reach * reach) / information  # a power could raise
    return int(min(1e18, max(n, certain / 6)))


def information_of(n: int, k: int) -> float:
    """Return lambda, the information a pull of k of n arms on a flat design."""
    return k * (n - k) / (n * (n - 1))


def _log_choose(n: int, d: Vector) -> Vector:
    found: Vector = gammaln(n + 1) - gammaln(d + 1) - gammaln(n - d + 1)
    return found
