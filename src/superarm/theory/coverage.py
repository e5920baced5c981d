"""What a plan has measured after t pulls, compared with its proportions.

Lambda_p = sum p_M chi chi' is a plan's information a pull. After t pulls each super-arm has been
measured T_M times; with tau the least T_M/p_M and growth tau the greatest,

    tau Lambda_p <= A_t <= growth tau Lambda_p

in the order of symmetric matrices, so that norms in A_t^-1 are at most those in Lambda_p^-1 divided
by sqrt(tau). Pulls by argmin T_M/p_M keep T_M <= tau p_M + 1, and so tau >= t - size + 1. (The
paper sets A_t = t Lambda_p, which holds at whole cycles only.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from superarm.design.listed import ListedPlan
from superarm.errors import SettingError
from superarm.estimate import Dense, gram, information
from superarm.information import Information
from superarm.plan import Plan, SupportPlan


def design_information(plan: Plan) -> Information:
    """Return Lambda_p: the information of one pull, on average."""
    if plan.cycle is not None:
        return information(plan, plan.counts(plan.cycle)).scaled(1 / plan.cycle)
    rows = plan.members(slice(None))
    return Dense(gram(rows, _proportions(plan), plan.n), plan.basis)


def covered(plan: Plan, t: int) -> tuple[float, float]:
    """Return a lower bound on tau and an upper bound on growth after t pulls."""
    if plan.cycle is not None:
        whole, rest = divmod(t, plan.cycle)
        if rest == 0:
            return float(t), 1.0
        return float(whole * plan.cycle), (whole + 1) / whole if whole else math.inf
    shares = _proportions(plan)
    if isinstance(plan, ListedPlan):  # in any order; and there are no pulls after the last
        relative = plan.counts(t) / shares if t <= len(plan.sequence) else np.zeros(1)
        tau, most = float(relative.min()), float(relative.max())
        return tau, most / tau if tau > 0 else math.inf
    tau = float(t - plan.size + 1)
    if tau <= 0:
        return 0.0, math.inf
    return tau, 1 + 1 / (tau * float(shares.min()))


def _proportions(plan: Plan) -> NDArray[np.float64]:
    """p of a plan that does not go round in a cycle."""
    if isinstance(plan, ListedPlan):
        return plan.counts(len(plan.sequence)) / len(plan.sequence)
    if isinstance(plan, SupportPlan) and plan.proportions is not None:
        return plan.proportions / plan.proportions.sum()
    raise SettingError(f"the proportions of the plan {plan.describe()} are not known")
