"""Theorem 3, Corollary 1, Lemma 3 and their like: pulls within which a rule stops, mostly.

Each proof has the same shape (docs/explanation/theory.md has all of them). On the events that the
radius C_t provides, with probability >= 1 - delta, a look at t pulls stops the search once

    C_t^2 c rho <= tau (Delta_min + epsilon)^2,      tau Lambda_p <= A_t,

with sqrt(c rho) = 3 sqrt(rho) + Z for SAQM, where Z/sqrt(tau) bounds its Z_t, and c = 4 for rules
that compare differences. Whether the best set so far is M* does not matter: if it is not, then
Delta_min is less than its own radius, and epsilon alone exceeds what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from superarm.algorithms import ICB, SAFOA, SAQM, Certified, Exhaustive, Static
from superarm.confidence import Radius
from superarm.decision import TopK
from superarm.errors import SettingError
from superarm.phase import Phase
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.quadratic import spectral_bound, spectral_ratio, theorem_ratio
from superarm.quadratic.bounds import greatest_difference
from superarm.quadratic.family import family_bound, family_ratio
from superarm.schedule import Looks
from superarm.theory.coverage import covered, design_information
from superarm.theory.extremes import Extremum, rho, rho_difference, rho_prime
from superarm.theory.gaps import Means, delta_min, stated_means
from superarm.theory.looks import LookTimes, first_look
from superarm.theory.pulls import (
    mended_form,
    printed_corollary1,
    printed_lemma3,
    sufficient_pulls,
)

_ROUNDING = 1 + 1e-8


@dataclass(frozen=True)
class Guarantee:
    """Pulls within which a rule stops with probability at least `probability`.

    Parameters
    ----------
    statement
        Which theorem says so.
    pulls
        The look at which it has stopped, on this plan and schedule; None with a `reason`.
    probability
        1 - delta, where the radius is one that holds at level delta.
    gap, epsilon
        Delta_min, and the epsilon that counts for the stop.
    norm
        rho, rho' or the greatest difference; where it is not exact the bounds use `norm.upper`.
    hardness
        H = norm / (gap + epsilon)^2.
    factor
        c: any look with t >= c C_t^2 H stops, at whole cycles of the plan.
    alpha
        For SAQM, the share of the greatest norm that its rule reckons with (c = (3 + 1/alpha)^2).
    root
        The least t that satisfies t' >= c C_t'^2 H for all t' >= t, a real number (NaN for levels).
    mended
        The paper's closed form with its slips mended: never below `root` (NaN for levels).
    printed
        The same as printed, with the printed constants; None where the paper has none.
    """

    statement: str
    pulls: int | None
    probability: float
    gap: float
    epsilon: float
    norm: Extremum
    hardness: float
    factor: float
    alpha: float | None
    root: float
    mended: float
    printed: float | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (numbers that are not finite become None)."""
        values = {**vars(self), "norm": dict(vars(self.norm), exact=self.norm.exact)}
        return {name: _finite(value) for name, value in values.items()}


def corollary1_bound(problem: Problem, rule: SAQM, plan: Plan, means: Means) -> Guarantee:
    """Corollary 1: SAQM stops once t >= (3 + 1/alpha)^2 C_t^2 H_epsilon.

    alpha is what the rule's setting comes to on this plan: the number itself; 1 where the maximum
    is exact; sqrt(rho/U) for a computed bound U, sqrt(lambda_min/lambda_max) or Theorem 1's.

    Parameters
    ----------
    problem
        The question; any decision class.
    rule
        SAQM with its settings.
    plan
        What is measured.
    means
        The arms' means.
    """
    rule.check(problem)
    greatest = rho(problem, plan)
    far, grows = _far(problem, rule, plan, greatest.upper)
    root_rho = math.sqrt(greatest.upper)
    alpha = root_rho / far if far > 0 else 1.0
    needed = _Needed(3 * root_rho, 0.0, far) if grows else _Needed(3 * root_rho, far, 0.0)
    hardness = _hardness(greatest, delta_min(problem, means), problem.epsilon)
    printed = printed_corollary1(
        hardness, alpha, rule.scale(problem), problem.decision.log_size, problem.delta
    )
    return _guarantee(
        problem, rule, plan, means, "Corollary 1", greatest, needed, printed, alpha=alpha
    )


def theorem3_bound(problem: Problem, rule: SAQM, plan: Plan, means: Means) -> Guarantee:
    """Theorem 3: Corollary 1 for alpha = the root of Theorem 1's ratio, with greedy peeling.

    What the theorem's O hides is said by numbers: 1/alpha^2 = (k - 1) (lambda_max/lambda_min)
    n (n - 1)/(k (k - 1)), where the paper sets lambda_max/lambda_min = O(k) (Lemma 7) and takes a
    better oracle than peeling.
    """
    found = corollary1_bound(problem, replace(rule, alpha="theorem"), plan, means)
    return replace(found, statement="Theorem 3")


def lemma3_bound(problem: Problem, rule: ICB, plan: Plan, means: Means) -> Guarantee:
    """Lemma 3: ICB stops once t > 4 C_t^2 H'_epsilon.

    With Lemma 1's C_t as printed, that is with probability >= 1 - (pi^2/6)^2 delta only.
    """
    exchange = rho_prime(problem, plan)
    short = rule.radius == "independent" and rule.constants == "paper"
    hardness = _hardness(exchange, delta_min(problem, means), problem.epsilon)
    printed = printed_lemma3(hardness, rule.scale(problem), problem.n, problem.delta)
    return _guarantee(
        problem,
        rule,
        plan,
        means,
        "Lemma 3",
        exchange,
        _Needed(2 * math.sqrt(exchange.upper)),
        printed,
        lost=(math.pi**2 / 6) ** 2 if short else 1.0,
    )


def difference_bound(
    problem: Problem, rule: Exhaustive | SAFOA, plan: Plan, means: Means
) -> Guarantee:
    """Ours, for rules that bound differences: they stop once t > 4 C_t^2 D/(Delta_min + epsilon)^2.

    D is the greatest squared norm of a difference of two sets in Lambda_p^-1; for SA-FOA with
    `certified` the bound on it that the rule itself uses. SA-FOA without compares with no more
    rivals than Exhaustive does, so that it stops no later (which says nothing of its answer).
    """
    rule.check(problem)
    epsilon = problem.epsilon
    if isinstance(rule, SAFOA):
        epsilon *= rule.threshold
    if isinstance(rule, SAFOA) and rule.certified:
        unit = greatest_difference(design_information(plan).inverse())
        swapped = 2 * min(problem.k, problem.n - problem.k)
        widest = Extremum(swapped * unit, swapped * unit, "the rule's own bound")
    else:
        widest = rho_difference(problem, plan)
    needed = _Needed(2 * math.sqrt(widest.upper))
    return _guarantee(
        problem, rule, plan, means, "differences", widest, needed, None, epsilon=epsilon
    )


def guarantee(problem: Problem, rule: Static, plan: Plan, means: Means) -> Guarantee:
    """Return the guarantee that there is for a rule, whichever it is."""
    for kind, bound in _BOUNDS:
        if isinstance(rule, kind):
            return bound(problem, rule, plan, means)
    raise SettingError(f"no theorem here says when {rule.name} stops")


def levels_bound(problem: Problem, rule: Certified, plan: Plan, means: Means) -> Guarantee:
    """Pulls within which `Certified` stops.

    On the event that its radii provide, it stops once for every level d ::

        2 r_d <= loss_d + epsilon  and  r_d < loss_d,     or     r_d <= epsilon,

    the same of the two for all levels: loss_d is how far the best d swaps fall behind M*. The first
    says that M* is ahead and that the rule is satisfied; the second suffices whatever is ahead.
    """
    theta = problem.sign * stated_means(problem, means)
    C = rule.constant(problem, problem.delta)
    levels, epsilon, gap = len(C.logs), problem.epsilon, delta_min(problem, means)
    assert isinstance(problem.decision, TopK)
    best = problem.decision.best(theta)
    loss = np.maximum(0.0, -problem.decision.swap_gains(theta, best))[:levels]
    phase = Phase(1, plan, Looks(rule.schedule, plan), problem.delta, 0)

    radius = rule.radius_of(problem, phase)

    def stops(look: int, t: int) -> bool:
        info = phase.information(t)
        if info is None or rule.budget is not None:
            return info is not None
        r = radius.widths(t, look, info, problem.k) * _ROUNDING
        ahead = (r < loss).all() and (2 * r <= loss + epsilon).all()
        return bool(ahead or (r <= epsilon).all())

    tied = gap + epsilon <= 0 and rule.budget is None
    found = None if tied else first_look(LookTimes(rule.schedule, plan), stops)
    squares = phase.whole.differences(problem.k).squares(levels) * phase.plan.size
    with np.errstate(divide="ignore", invalid="ignore"):
        hardness = np.where(loss + epsilon > 0, squares / (loss + epsilon) ** 2, math.inf)
    worst = int(np.argmax(hardness))
    return Guarantee(
        statement="levels",
        pulls=None if found is None else found[1],
        probability=1 - problem.delta,
        gap=gap,
        epsilon=epsilon,
        norm=Extremum(float(squares[worst]), float(squares[worst]), f"level {worst + 1}"),
        hardness=float(hardness[worst]),
        factor=4.0,
        alpha=None,
        root=math.nan,
        mended=math.nan,
        printed=None,
        reason="" if found is not None else TIE if tied else ENDS,
    )


_BOUNDS: tuple[tuple[type[Static], Callable[[Problem, Any, Plan, Means], Guarantee]], ...] = (
    (Certified, levels_bound),
    (SAQM, corollary1_bound),
    (ICB, lemma3_bound),
    (Exhaustive, difference_bound),
    (SAFOA, difference_bound),
)


@dataclass(frozen=True)
class _Needed:
    """sqrt(c rho), in parts: the last grows with the condition number between whole cycles."""

    own: float
    far: float = 0.0
    growing: float = 0.0

    def squared(self, growth: float = 1.0) -> float:
        """Return c rho, where A_t is up to `growth` times the least that it could be."""
        total = self.own + self.far + (self.growing * math.sqrt(growth) if self.growing else 0.0)
        return total * total


def _far(problem: Problem, rule: SAQM, plan: Plan, greatest: float) -> tuple[float, bool]:
    """Return Z: sqrt(tau) Z_t is at most that (times sqrt(growth), if the second says so)."""
    root = math.sqrt(greatest)
    topk = isinstance(problem.decision, TopK)
    if rule.oracle in ("exact", "brute-force") or (topk and problem.k == 1):
        return root, False
    if not isinstance(rule.alpha, str):
        return root / rule.alpha, False
    W = design_information(plan).inverse()
    if rule.alpha == "certified":
        # A maximum over a sphere grows with W. Sharper bounds are taken where they are less.
        bound = (
            spectral_bound(W, problem.k) if topk else family_bound(W, problem.decision, plan.basis)
        )
        return math.sqrt(bound), False
    ratio = spectral_ratio(W) if topk else family_ratio(W, problem.decision, plan.basis)
    if rule.alpha == "theorem":
        ratio = theorem_ratio(problem.n, problem.k, ratio)
    return (root / math.sqrt(ratio) if ratio > 0 else math.inf), True


def _guarantee(
    problem: Problem,
    rule: Static,
    plan: Plan,
    means: Means,
    statement: str,
    norm: Extremum,
    needed: _Needed,
    printed: float | None,
    *,
    alpha: float | None = None,
    epsilon: float | None = None,
    lost: float = 1.0,
) -> Guarantee:
    gap = delta_min(problem, means)
    epsilon = problem.epsilon if epsilon is None else epsilon
    C = rule.constant(problem, problem.delta)
    factor = needed.squared() / norm.upper if norm.upper > 0 else 4.0
    hardness = _hardness(norm, gap, epsilon)
    a = factor * hardness * C.scale * C.scale
    pulls, reason = _by_look(rule, plan, gap + epsilon, needed, C)
    return Guarantee(
        statement=statement,
        pulls=pulls,
        probability=max(0.0, 1 - lost * problem.delta),
        gap=gap,
        epsilon=epsilon,
        norm=norm,
        hardness=hardness,
        factor=factor,
        alpha=alpha,
        root=sufficient_pulls(a, C.offset, C.slope),
        mended=mended_form(a, C.offset, C.slope),
        printed=printed,
        reason=reason,
    )


def _by_look(
    rule: Static, plan: Plan, ahead: float, needed: _Needed, C: Radius
) -> tuple[int | None, str]:
    """Return the pulls at the first look that surely stops, or the reason why there is none."""
    if ahead <= 0:
        return None, TIE
    if ahead == math.inf:
        return 0, ""

    def stops(look: int, t: int) -> bool:
        tau, growth = covered(plan, t)
        if tau <= 0:
            return False
        radius = C.at(t)
        return tau * ahead * ahead > radius * radius * needed.squared(growth) * _ROUNDING

    found = first_look(LookTimes(rule.schedule, plan), stops)
    if found is None:
        return None, ENDS
    return found[1], ""


TIE = "the best sets are tied and epsilon is 0: no number of pulls tells them apart"
ENDS = "no look of the schedule comes late enough"


def _hardness(norm: Extremum, gap: float, epsilon: float) -> float:
    ahead = gap + epsilon
    return norm.upper / ahead / ahead if ahead > 0 else math.inf


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value
