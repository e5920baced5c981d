"""The radius of a phase on a cyclic plan, levels or calibrated: what our algorithms share."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import count
from typing import Literal

import numpy as np
from scipy.special import ndtri

from superarm.calibration import calibrate, can_calibrate, information
from superarm.circulant import Circulant
from superarm.cyclic_plan import CyclicPlan
from superarm.errors import ProblemError
from superarm.levels import Calibrated, Levels, level_logs
from superarm.noise import Gaussian
from superarm.phase import Phase
from superarm.problem import Problem

MOST_ARMS = 2_000
"""More arms than this are not simulated for a calibration."""

APART = 1.04
"""Calibrated looks: nearer ones are hardly new, and take time to simulate."""

_TAIL = 0.03  # share of delta for looks beyond the calibrated ones
_FAR = 2_000  # cycles up to which looks are calibrated where no stop is certain
_LATER = 1 / 3  # of the effort, in phases that follow: no cache will know them
_EARLY = 0.15  # times the pulls expected, from where looks are calibrated if epsilon > 0


def check_normal(problem: Problem) -> None:
    """Raise ProblemError where a calibrated radius does not hold."""
    if not isinstance(problem.noise, Gaussian):
        raise ProblemError(
            f"a calibrated radius holds for normal noise only, not for {problem.noise}; choose "
            "radius levels"
        )
    if problem.n > MOST_ARMS:
        raise ProblemError(
            f"to calibrate a radius for {problem.n:,} arms takes too long, more than {MOST_ARMS:,} "
            "are too many; choose radius levels"
        )


def few_blocks(pulls: float, n: int) -> int:
    """Return how many blocks pay where a radius is calibrated, for so many pulls to expect.

    Only the mean of the inverse spectrum counts then, of which L uneven blocks lose about a share
    of 0.3/L^2. Longer cycles cost as looks get fewer: T 0.3/L^2 + L n/2 is least near this number.
    """
    return max(1, round((pulls / n) ** (1 / 3)))


def phase_radius(
    kind: Literal["levels", "calibrated"],
    phase: Phase,
    n: int,
    k: int,
    sigma: float,
    epsilon: float,
    aim: float,
    open_ended: bool = False,
) -> Levels | Calibrated:
    """Return the radius for k of n arms, at all whole cycles of the phase's plan.

    Where delta is too small to be calibrated it is the levels radius, whatever `kind` says.

    Parameters
    ----------
    epsilon
        0: then level 1 is enough.
    aim
        Pulls of the phase that are to be expected.
    open_ended
        Whether no stop is certain by then, even with epsilon > 0: sigma is not stated.
    """
    pairs = epsilon == 0
    if kind == "levels" or not can_calibrate((1 - _TAIL) * phase.delta):
        logs = level_logs(n, k, phase.delta, pairs)
        return Levels(sigma, logs, rho=aim / (2 * float(logs.mean()) + 1))
    return _calibrated(phase, n, k, sigma, epsilon, aim, open_ended)


@lru_cache(maxsize=2)  # every look of a phase asks
def _calibrated(
    phase: Phase, n: int, k: int, sigma: float, epsilon: float, aim: float, open_ended: bool
) -> Calibrated:
    pairs, plan, whole = epsilon == 0, phase.plan, phase.whole
    assert isinstance(plan, CyclicPlan)
    assert isinstance(whole, Circulant)
    a_pull = information(whole.eigenvalues, n, plan.size)
    if not (pairs or open_ended):
        span = _EARLY * aim, _certain(n, k, sigma / epsilon, phase.delta, a_pull)
    else:
        span = 0.0, float(_FAR * plan.size)
    times = _times(phase, *span)
    logs = level_logs(n, k, _TAIL * phase.delta, pairs)
    found = calibrate(
        whole.eigenvalues,
        n,
        k,
        [t // plan.size for t in times],
        plan.size,
        len(logs),
        (1 - _TAIL) * phase.delta,
        1.0 if phase.number == 1 else _LATER,
    )
    tail = Levels(sigma, logs, rho=times[-1] / (2 * float(logs.mean()) + 1))
    return Calibrated(sigma, found.b, found.scale, frozenset(times), tail)


def _certain(n: int, k: int, scale: float, delta: float, a_pull: float) -> float:
    """Return about how many pulls make all calibrated radii less than epsilon = sigma/scale.

    By rule of thumb, not from a simulation, on which the choice of looks must not depend: b_d is
    the expectation of level d on a flat design (from normal order statistics, after Blom), and
    sqrt(2 log(1/delta)) and a little more.
    """
    d = np.arange(1, min(k, n - k) + 1)
    sums = sum(np.cumsum(ndtri((m - d + 0.625) / (m + 0.25))) for m in (k, n - k))
    b = sums / np.sqrt(2 * d) + math.sqrt(2 * math.log(1 / delta)) + 0.5
    return float(np.max(2 * d * b * b)) * (scale * scale) / a_pull


def _times(phase: Phase, first: float, end: float) -> list[int]:
    """Return the looks from `first` to the one at or after `end`."""
    times: list[int] = []
    for look in count(1):
        t = phase.looks.time(look)
        if t is None:
            break
        if t >= first:
            times.append(t)
            if t >= end:
                break
    return times
