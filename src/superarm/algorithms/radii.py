"""The radius of a phase on a cyclic plan, levels or calibrated: what our algorithms share."""

from __future__ import annotations

from itertools import count
from typing import Literal

from superarm.calibration import calibrate, can_calibrate
from superarm.circulant import Circulant
from superarm.cyclic_plan import CyclicPlan
from superarm.errors import ProblemError
from superarm.levels import Calibrated, Levels, level_logs
from superarm.noise import Gaussian
from superarm.phase import Phase
from superarm.problem import Problem

MOST_ARMS = 2_000
"""More arms than this are not simulated for a calibration."""

_TAIL = 0.03  # share of delta for looks beyond the calibrated ones
_FAR = 2_000  # cycles up to which looks are calibrated where no stop is certain


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


def phase_radius(
    kind: Literal["levels", "calibrated"],
    phase: Phase,
    n: int,
    k: int,
    sigma: float,
    pairs: bool,
    aim: float,
    open_ended: bool = False,
) -> Levels | Calibrated:
    """Return the radius for k of n arms, at all whole cycles of the phase's plan.

    Where delta is too small to be calibrated it is the levels radius, whatever `kind` says.

    Parameters
    ----------
    pairs
        Whether level 1 is enough.
    aim
        Pulls of the phase that are to be expected.
    open_ended
        Whether no stop is certain by then, even with epsilon > 0: sigma is not stated.
    """
    if kind == "levels" or not can_calibrate((1 - _TAIL) * phase.delta):
        logs = level_logs(n, k, phase.delta, pairs)
        return Levels(sigma, logs, rho=aim / (2 * float(logs.mean()) + 1))
    plan, whole = phase.plan, phase.whole
    assert isinstance(plan, CyclicPlan)
    assert isinstance(whole, Circulant)
    times = _times(phase, plan.size, None if pairs or open_ended else aim)
    logs = level_logs(n, k, _TAIL * phase.delta, pairs)
    found = calibrate(
        whole.eigenvalues,
        n,
        k,
        [t // plan.size for t in times],
        plan.size,
        len(logs),
        (1 - _TAIL) * phase.delta,
    )
    tail = Levels(sigma, logs, rho=times[-1] / (2 * float(logs.mean()) + 1))
    return Calibrated(sigma, found.b, found.scale, frozenset(times), tail)


def _times(phase: Phase, cycle: int, aim: float | None) -> list[int]:
    """Return the looks that are calibrated: up to where the stop is certain, or far enough."""
    first, end = (0.0, float(_FAR * cycle)) if aim is None else (aim * 6 / 40, aim * 6)
    times: list[int] = []
    for look in count(1):
        t = phase.looks.time(look)
        if t is None or (t > end and times):
            break
        if t >= first:
            times.append(t)
    return times
