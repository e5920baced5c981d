"""The least pulls that any method needs: kl(delta, 1-delta) T*, optimised over designs.

For the best k of n and Gaussian noise of scale sigma on the total,

    T* = min over designs Lambda, max over rivals M'  of  |y_M'|^2 in Lambda^-1,
    y_M' = sqrt(2) sigma (chi_M' - chi_M*) / (theta(M*) - theta(M') + epsilon).

With epsilon = 0 the rivals that differ in one swap suffice, and no delta-correct method stops
before kl(delta, 1-delta) T* pulls on average: kind "exact". With epsilon > 0 there are several
right answers, and the same figure holds as delta -> 0 only: kind "asymptotic". It is then the least
over the answers M within epsilon of the best, each with its own designs and its own losses
theta(M) - theta(M') + epsilon. M* has it: let g exchange, in pairs, what M* has beyond M for what M
has beyond M*. It takes a design for M to one for M*, a rival M' to gM', whose norm is the same, and
whose loss is no smaller, since theta(gM') - theta(M') <= theta(M*) - theta(M). On the isotropic
design, Lambda = aI + bJ with a = k(n-k)/(n(n-1)), the maximum has a closed form: kind "isotropic",
which no method with such a design beats (with epsilon > 0: as delta -> 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from superarm._checks import real, shown, whole
from superarm.algorithms.base import check_topk
from superarm.decision import TopK
from superarm.errors import SettingError
from superarm.problem import Problem
from superarm.theory.gaps import Means, delta_min, stated_means

Vector = NDArray[np.float64]

Kind = Literal["exact", "asymptotic", "isotropic"]


@dataclass(frozen=True)
class LowerBound:
    """Pulls that are needed, T*, and what they are a bound for.

    Parameters
    ----------
    pulls
        kl(delta, 1-delta) times the proved lower bound on T* (isotropic: its value); infinite where
        a tie at rank k leaves no single best group and epsilon is 0.
    t_star
        The value of the design that was found, T* or little above it.
    kind
        "exact", "asymptotic" or "isotropic".
    design
        The design: kind and, where it was optimised, its support, the dual value and the gap.
    """

    pulls: float
    t_star: float
    kind: Kind
    design: dict[str, Any] = field(default_factory=dict)

    def ratio(self, pulls: float) -> float | None:
        """Return pulls / bound, where that says anything."""
        return pulls / self.pulls if 0 < self.pulls < math.inf else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (numbers that are not finite become None)."""
        return {
            "pulls": self.pulls if math.isfinite(self.pulls) else None,
            "t_star": self.t_star if math.isfinite(self.t_star) else None,
            "kind": self.kind,
            "design": self.design,
        }


def kl_opposite(delta: float) -> float:
    """kl(delta, 1-delta) of two coins, (1 - 2 delta) log((1 - delta)/delta)."""
    return (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def isotropic_bound(problem: Problem, means: Means) -> LowerBound:
    """Return the bound on the isotropic design: O(n log n).

    At level d the strongest rival is the d best swaps away, and the squared norm is 2d/a.
    """
    theta = _checked(problem, means)
    n, k = problem.n, problem.k
    if k == n:
        return LowerBound(0.0, 0.0, "isotropic", {"kind": "isotropic"})
    losses = _losses(problem, theta) + problem.epsilon
    d = np.arange(1, len(losses) + 1)
    a = k * (n - k) / (n * (n - 1))
    with np.errstate(divide="ignore", over="ignore"):
        values = 2 * problem.noise.sigma(k) ** 2 * 2 * d / a / losses**2
    if problem.epsilon == 0:
        values = values[:1]
    t_star = float(values.max())
    return LowerBound(_times_kl(problem, t_star), t_star, "isotropic", {"kind": "isotropic"})


def bound_of(problem: Problem, means: Means) -> LowerBound | None:
    """Return the bound that results are shown beside; None where sigma or class have none."""
    if not problem.topk or len(means) != problem.n or not problem.noise.known:
        return None
    return isotropic_bound(problem, means)


def lower_bound(
    problem: Problem,
    means: Means,
    *,
    design: Literal["optimised", "isotropic"] = "optimised",
    tolerance: float = 0.01,
    rounds: int = 60,
) -> LowerBound:
    """Return the least pulls that a delta-correct method needs on average for these means.

    Parameters
    ----------
    design
        "optimised" over all designs, by Frank-Wolfe steps that are fully corrective (small n), or
        "isotropic", by a closed form.
    tolerance
        Ends the optimisation when the value is proved to be within this share of T*.
    rounds
        Limit of steps; the gap that is left then is part of the result.
    """
    if design not in ("optimised", "isotropic"):
        raise SettingError(f"design must be optimised or isotropic, not {shown(design)}")
    tolerance = real("the tolerance", tolerance, SettingError)
    if not 0 < tolerance < 1:
        raise SettingError(f"the tolerance must be a share between 0 and 1, not {tolerance!r}")
    whole("rounds", rounds, SettingError, least=1)
    theta = _checked(problem, means)
    tied = problem.epsilon == 0 and problem.only is None and delta_min(problem, means) == 0
    if design == "isotropic" or problem.only is not None:
        return isotropic_bound(problem, means)
    kind: Kind = "exact" if problem.epsilon == 0 else "asymptotic"
    if tied:
        return LowerBound(math.inf, math.inf, kind, {"kind": "none", "reason": "a tie at rank k"})
    from superarm.theory.least_design import least_design

    found = least_design(problem, theta, tolerance, rounds)
    details = {
        "kind": "optimised",
        "support": found.support,
        "dual": found.dual,
        "gap": found.gap,
        "rounds": found.rounds,
    }
    return LowerBound(_times_kl(problem, found.dual), found.value, kind, details)


def _checked(problem: Problem, means: Means) -> Vector:
    check_topk(problem, "the lower bound")
    return problem.sign * stated_means(problem, means)


def _losses(problem: Problem, theta: Vector) -> Vector:
    """theta(M*) - theta(M') for the best M' at each level."""
    assert isinstance(problem.decision, TopK)
    best = problem.decision.best(theta)
    return np.maximum(0.0, -problem.decision.swap_gains(theta, best))


def _times_kl(problem: Problem, t_star: float) -> float:
    if problem.delta >= 0.5:
        return 0.0  # a coin is right as often
    return kl_opposite(problem.delta) * t_star
