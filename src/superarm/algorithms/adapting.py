"""What a radius that adapts to the variance of labels needs: the noise, a plan, shares of delta."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from superarm.adaptive import Adaptive
from superarm.cyclic_plan import CyclicPlan
from superarm.design import Cyclic
from superarm.design.cyclic import blocks_that_pay
from superarm.errors import ProblemError, SettingError
from superarm.label_variance import LabelVariance, can_divide, divides_well
from superarm.levels import Levels
from superarm.noise import Labels
from superarm.phase import Phase
from superarm.problem import Problem

MOST_ARMS = 1_000
"""With more arms than this, each look would take too long."""

_SHARE = 0.05  # of delta, for the variance
_LEAST_BLOCKS = 4  # where a difference set would be one or two
_MORE_BLOCKS = 8  # to try, until those beside the pilot tell all arms apart


def check_labels(problem: Problem) -> None:
    """Raise ProblemError where an adaptive radius does not hold."""
    if not isinstance(problem.noise, Labels) or problem.noise.shared:
        raise ProblemError(
            f"an adaptive radius holds for independent labels only, not for {problem.noise}; "
            "choose radius levels"
        )
    if problem.n > MOST_ARMS:
        raise ProblemError(
            f"to bound the variance of {problem.n:,} arms takes too long at each look, more than "
            f"{MOST_ARMS:,} are too many; choose radius levels"
        )


def plan_with_pilot(design: Cyclic, problem: Problem, rng: np.random.Generator) -> CyclicPlan:
    """Return a plan with a quarter of its blocks, or a few more, for a pilot.

    The other blocks tell all arms apart; where blocks are not given, the pilot does so too.
    """
    plan = design.plan(problem, rng)
    if design.blocks == "auto":
        least = max(_LEAST_BLOCKS, blocks_that_pay(problem))
        for blocks in range(least, least + _MORE_BLOCKS):
            if divides_well(plan):
                break
            plan = Cyclic(blocks, relabel=design.relabel).plan(problem, rng)
    if can_divide(plan):
        return plan
    raise SettingError(
        "an adaptive radius needs blocks that tell all arms apart without the last quarter of "
        f"them, which these {len(plan.blocks)} do not: choose more blocks, or radius levels"
    )


def adaptive_radius(phase: Phase, levels: Callable[[float], Levels]) -> Adaptive:
    """Return the radius of a phase, from the levels radius for a given delta."""
    plan = phase.plan
    assert isinstance(plan, CyclicPlan)
    base = levels((1 - _SHARE) * phase.delta)
    assert base.rho is not None
    known = phase.whole.homogeneous(lambda _: LabelVariance(plan), "label variance")
    return Adaptive(base.sigma, base.logs, base.rho, known, _SHARE * phase.delta)
