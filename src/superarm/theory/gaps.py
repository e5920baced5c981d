"""Delta_min: how far the best set is ahead of the best of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superarm._checks import LARGEST
from superarm.errors import ProblemError
from superarm.problem import Problem

Vector = NDArray[np.float64]
Means = Sequence[float] | Vector

_ROUNDING = 1e-15  # a share of the sizes added up


def delta_min(problem: Problem, means: Means) -> float:
    """Delta_min = min over M != M* of theta(M*) - theta(M): 0 on a tie, infinite without another.

    (The paper prints argmin for min.)

    Parameters
    ----------
    problem
        The question; costs are compared where it asks for the least total.
    means
        The arms' means, in the problem's order.
    """
    theta = problem.sign * stated_means(problem, means)
    best, second = problem.decision.best_two(theta)
    if second is None:
        return math.inf
    # Arms of both sets cancel; the others are added up exactly.
    parts = (
        theta[np.setdiff1d(best, second)].tolist() + (-theta[np.setdiff1d(second, best)]).tolist()
    )
    gap, size = math.fsum(parts), math.fsum(map(abs, parts))
    return gap if gap > _ROUNDING * size else 0.0  # 0.1 + 0.2 ties with 0.3, whatever floats say


def stated_means(problem: Problem, means: Means) -> Vector:
    """Return a mean for each arm as an array, or raise ProblemError."""
    try:
        theta = np.array(means, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError("means must be a list of numbers, one for each arm") from None
    if theta.ndim != 1 or not (np.abs(theta) <= LARGEST).all():
        raise ProblemError(f"means must be a list of finite numbers, at most {LARGEST:g} in size")
    if len(theta) != problem.n:
        raise ProblemError(f"{len(theta)} means are given for {problem.n} arms")
    return theta
