r"""A bound on an unknown sigma, from residuals: chi-square, at all looks together.

Let nu = t - rank be the degrees of freedom of t pulls, and RSS the sum of squares of their least-
squares residuals. Over a plan that is fixed in advance, RSS grows by the square of one independent
N(0, sigma^2) number with each degree of freedom (recursive residuals), so that S = RSS/sigma^2 is a
sum of nu independent chi-square(1) numbers. With probability >= 1 - delta_sigma

    sigma^2  <=  RSS / q(nu, delta_sigma)

- at J planned looks, for the lower quantile q = chi2.ppf(delta_sigma / J, nu);
- at all looks together, however many, for the q at which the martingale

      L = integral over u > 0 of (1 + u)^(nu/2) exp(-u S/2) exp(-u) du

  has the value 1/delta_sigma (Ville). A quantile at level delta_sigma at every look would fail.

Where sigma is unknown, a look spends the share SHARE of delta on this bound, and then decides as if
sigma were stated to be that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc
from scipy.stats import chi2

from superarm.information import Estimate
from superarm.noise import Noise
from superarm.phase import Phase
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import digits_up

SHARE = 0.1
"""Of delta, for the bound on sigma: near the best share from 60 pulls to many thousands."""

_EPS = float(np.finfo(np.float64).eps)
_SAFE = 1e-9  # of the quantile: far more than its rounding
_LEAST = 1e-250  # squares below it are lost to underflow


@dataclass(frozen=True)
class Estimated(Noise):
    """Normal noise of unknown sigma, as a look knows it: with an upper bound in sigma's place.

    Parameters
    ----------
    squares
        RSS, rounded up.
    freedom
        nu.
    looks
        Number of planned looks; None for any number of them.
    scale
        The bound at the look's own share of delta.
    """

    squares: float
    freedom: int
    looks: int | None
    scale: float

    @property
    def known(self) -> bool:
        return False

    def sigma(self, k: int) -> float:
        return self.scale

    def paper_sigma(self, k: int) -> float:
        return self.scale

    def range(self, k: int) -> tuple[float, float]:
        return (-math.inf, math.inf)

    def bound(self, delta: float) -> float:
        """Return the bound at another share of delta."""
        return upper_sigma(self.squares, self.freedom, delta, self.looks)

    def __str__(self) -> str:
        return f"gaussian (sigma estimated, <= {digits_up(self.scale):g})"


def shares(noise: Noise, delta: float) -> tuple[float, float]:
    """Return what of delta is left for the means, and what is for the bound on sigma."""
    return (delta, 0.0) if noise.known else ((1 - SHARE) * delta, SHARE * delta)


def at_look(problem: Problem, phase: Phase, tally: Tally, estimate: Estimate) -> Problem | str:
    """Return the problem with what a look knows of its noise; or why nothing is known yet."""
    if problem.noise.known:
        return problem
    t, plan = tally.pulls, phase.plan
    freedom = t - plan.rank
    if freedom < 1:
        return (
            f"sigma is to be estimated, and {t:,} pulls leave nothing to do it by: it takes more "
            f"than {plan.rank:,}"
        )
    squares = residual_squares(plan, tally, estimate)
    if squares is None:
        return (
            "sigma is to be estimated, and the totals show no noise at all: state sigma, or "
            "record totals to more digits"
        )
    looks = phase.looks.schedule.number
    scale = upper_sigma(squares, freedom, phase.for_sigma, looks)
    if not math.isfinite(scale):
        return f"{freedom:,} degrees of freedom are too few to bound sigma"
    return problem.with_noise(Estimated(squares, freedom, looks, scale))


def residual_squares(plan: Plan, tally: Tally, estimate: Estimate) -> float | None:
    """Return RSS, never rounded down; None where rounding is all there is: O(size) or one FFT.

    Of each super-arm, about a level of its own: sum (y - mean)^2 + T (mean - fitted)^2. Estimates
    other than those of least squares have a greater RSS, on which a bound is safe too.
    """
    centred = np.nan_to_num(estimate.centred)
    level = estimate.level * (plan.k or 1)
    c, sums, squares = tally.about_means()
    counts, T = tally.counts, np.maximum(tally.counts, 1)
    own = np.maximum(0.0, squares - sums**2 / T)
    apart = np.where(counts > 0, sums / T - (level - c) - plan.gather(centred), 0.0)
    found = float(own.sum() + (counts * apart**2).sum())
    terms = 16 * math.log2(2 * plan.n) + (plan.k or plan.n)
    fitted = terms * math.sqrt(plan.k or plan.n) * float(np.linalg.norm(centred))
    error = _EPS * (fitted + 4 * abs(level) + 4 * float(np.abs(level - c).max(initial=0.0)))
    rounding = 32 * _EPS * float((squares + sums**2 / T + counts * apart**2).sum())
    margin = rounding + tally.pulls * error**2
    if found <= margin + _LEAST:
        return None
    return (math.sqrt(found + rounding) + math.sqrt(tally.pulls) * error) ** 2


def upper_sigma(squares: float, freedom: int, delta: float, looks: int | None = None) -> float:
    """Return the bound on sigma at level delta; infinite where there is none yet."""
    least = lower_chi(freedom, delta, looks)
    return math.sqrt(squares / least) if least > 0 else math.inf


@lru_cache(maxsize=4096)
def lower_chi(freedom: int, delta: float, looks: int | None = None) -> float:
    """Return q: chi-square(nu) exceeds it at `looks` looks, or at all nu, with 1 - delta."""
    if looks is not None:
        return float(chi2.ppf(delta / looks, freedom)) * (1 - _SAFE)
    bet = math.log(1 / delta)
    if log_martingale(0.0, freedom) <= bet:
        return 0.0
    found = brentq(lambda S: log_martingale(S, freedom) - bet, 0.0, float(freedom), xtol=1e-12)
    return float(found) * (1 - _SAFE)


def log_martingale(S: float, freedom: int) -> float:
    """Return log L, or hardly less: L = e^B B^-A Gamma(A, B), A = nu/2 + 1, B = S/2 + 1.

    By Stirling's series, from below: differences of large logarithms would lose their digits.
    """
    A, B = freedom / 2 + 1, S / 2 + 1
    x = (B - A) / A
    stirling = 0.5 * math.log(2 * math.pi / A) + 1 / (12 * A) - 1 / (360 * A**3)
    return A * (x - math.log1p(x)) + stirling + math.log(float(gammaincc(A, B)))
