r"""The adaptive radius: for independent labels, of which sure ones and hopeless ones vary little.

The error of a difference x'theta^ after c cycles is Z_c/c, Z_c the sum of c independent terms. With
v = v(x) the variance of one (`label_variance`), S = |x|^2 after one cycle, and a the most that one
label moves it, log E exp(eta Z_c) <= c psi(eta) for each eta >= 0, where psi is the least of

    v (e^(eta a) - 1 - eta a) / a^2                     (Bennett)
    eta^2 v / 2 + eta^3 a k S / (36 sqrt(3))            (third cumulants are <= 1/(6 sqrt(3)))
    eta^2 k S / 8                                       (Hoeffding, which the levels radius uses)

So sum_j w_j exp(eta_j Z_c - c psi(eta_j)) with weights that add up to 1 is on average at most 1,
and with probability 1 - alpha never reaches 1/alpha, at whatever look. The radius is z/c, with z
the root of log sum_j w_j exp(eta_j z - c psi(eta_j)) = log 1/alpha. With the eta_j spread as a half
normal distribution and psi = eta^2 k S / 8 this would be the mixture bound of `levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from superarm.information import Information
from superarm.label_variance import LabelVariance
from superarm.levels import Levels, Widths
from superarm.tally import Tally

Vector = NDArray[np.float64]

_ETA = 2.0 ** np.arange(-7, 3, 1 / 8)  # in standard deviations of the half normal distribution
_BETWEEN = np.concatenate([[0.0], np.sqrt(_ETA[1:] * _ETA[:-1]), [np.inf]])
_LOG_WEIGHTS = np.log(np.diff(erf(_BETWEEN / math.sqrt(2))))
_THIRD = 1 / (36 * math.sqrt(3))
_STEPS = 5
_LARGEST = 500.0  # eta a from which on Hoeffding's is surely the least
_LEAST = 1e-9  # times the greatest variance: a lower one is not believed


@dataclass(frozen=True, eq=False)
class Adaptive:
    """Radii for all levels at whole cycles, from the labels' variance at a look.

    Parameters
    ----------
    sigma
        sqrt(k)/2, the scale of a total that the variances are never reckoned beyond.
    logs
        log(1/alpha_d) for each level.
    rho
        Of the mixture, in pulls.
    delta
        The share for the variance; look j may fail with delta/(j (j+1)).
    """

    sigma: float
    logs: Vector
    rho: float
    variance: LabelVariance
    delta: float

    name: ClassVar[str] = "levels, adaptive to the labels' variance, at all whole cycles"

    def at_tally(self, tally: Tally, look: int) -> Widths:
        """Return the function from the information of a look to the radii of all levels."""
        bound = self.variance.bound(tally, self.delta / (look * (look + 1)))
        return partial(self._widths, tally.pulls, bound.squares(len(self.logs)))

    def at_look(self, t: float, look: int) -> Widths:
        """Return the same where no results are known: a bound on all that they may be."""
        return partial(self._widths, t, None)

    def widths(self, t: float, look: int, info: Information, k: int) -> Vector:
        """Return the radii of all levels, where no results are known."""
        return self._widths(t, None, info, k)

    def typical(self, t: float, look: int) -> float:
        """Return that of level 1 of the levels radius, which grows alike."""
        return Levels(self.sigma, self.logs, rho=self.rho).typical(t, look)

    @property
    def _precision(self) -> float:
        """Of the mixture, in cycles."""
        return self.rho / self.variance.plan.size

    def _widths(self, t: float, squares: Vector | None, info: Information, k: int) -> Vector:
        levels, cycles = len(self.logs), t / self.variance.plan.size
        norms = info.differences(k).squares(levels) * cycles
        most = self.sigma**2 * norms
        found = most if squares is None else np.clip(squares, _LEAST * most, most)
        reach = self.variance.reach(levels)
        return _roots(self.logs, cycles, self._precision, found, most, reach) / cycles


def _roots(
    logs: Vector, cycles: float, precision: float, variance: Vector, most: Vector, reach: Vector
) -> Vector:
    """Return z for each level: from above, by Newton's method on a convex function.

    Parameters
    ----------
    precision
        Of the half normal distribution of eta, in units of 1/`most`.
    most
        k S / 4, the greatest variance.
    """
    eta = _ETA / np.sqrt(precision * most)[:, None]
    spent = cycles * _exponents(eta, variance[:, None], most[:, None], reach[:, None])
    z = np.asarray(((spent + logs[:, None] - _LOG_WEIGHTS) / eta).min(axis=1))
    for _ in range(_STEPS):  # stopped early, z is too large: that is safe
        terms = eta * z[:, None] - spent + _LOG_WEIGHTS
        most_of_all = terms.max(axis=1)
        parts = np.exp(terms - most_of_all[:, None])
        total = parts.sum(axis=1)
        z = z - (np.log(total) + most_of_all - logs) * total / (parts * eta).sum(axis=1)
    return z


def _exponents(eta: Vector, variance: Vector, most: Vector, reach: Vector) -> Vector:
    """psi(eta), where a, v and k S / 4 are `reach`, `variance` and `most`."""
    moved = np.minimum(eta * reach, _LARGEST)
    bennett = variance * (np.expm1(moved) - moved) / reach**2
    third = eta**2 * variance / 2 + 4 * _THIRD * eta**3 * reach * most
    return np.asarray(np.minimum(np.minimum(bennett, third), eta**2 * most / 2))
