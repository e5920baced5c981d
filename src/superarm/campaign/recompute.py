"""One look worked out again by the reference, from raw totals, sharing nothing with the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from superarm import reference, reference_certified
from superarm.algorithms import ICB, SAFOA, SAQM, Algorithm, Certified, Exhaustive, Focused
from superarm.campaign.replay import Step
from superarm.cyclic_plan import CyclicPlan
from superarm.levels import Levels
from superarm.phase import Next
from superarm.reference import FloatArray, Sides, SuperArm
from superarm.sigma import SHARE, Estimated

MOST_ARMS = 300
"""With more, dense matrices take too long for a check that is to be plain."""

_MOST_PEELED = 60  # arms, for peeling in plain Python
_MOST_SETS = 20_000  # groups that are gone through one by one
NEAR = 1e-6


class Found(NamedTuple):
    """Both sides as the reference has them; `lines` says what else was worked out."""

    sides: Sides
    reached: float
    """The epsilon at which the rule is satisfied."""
    lines: tuple[str, ...] = ()
    wrong: str = ""


class _Look(NamedTuple):
    """Estimates of one look, on `arms` (their places in theta), greater being better."""

    theta: FloatArray
    A: FloatArray
    arms: list[int]
    every: list[tuple[SuperArm, list[float]]]
    """All totals, less their mean."""

    @property
    def W(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.A))


def recompute(rule: Algorithm, step: Step) -> Found | str:
    """Return both sides of the stop at the last look of a phase; or why the reference cannot."""
    n = step.problem.n
    if n > MOST_ARMS:
        return f"{n:,} arms are more than the {MOST_ARMS} that the slow reference takes"
    if not step.problem.noise.known:
        if not step.problem.topk:
            return "for this class of groups it does not bound an unknown sigma"
        step = _with_sigma(step)
    if type(rule) is Certified and rule.radius == "levels":
        return _certified(rule, step)
    if type(rule) is Focused and rule.radius == "levels":
        return _focused(rule, step)
    if isinstance(rule, Certified | Focused):
        return f"the reference does not have the radius {rule.radius!r}"
    found = _RULES.get(type(rule))
    if found is None:
        return f"the reference does not know the rule {rule.name}"
    return found(rule, step)


def pulled(step: Step, among: Sequence[int] | None = None) -> list[tuple[SuperArm, list[float]]]:
    """Return each super-arm of a plan with all its totals, greater being better.

    Super-arms are those of the export where it has them, otherwise of the plan made again; `among`
    renumbers arms, and leaves out others.
    """
    assert step.phase is not None
    plan, sign = step.phase.plan, step.problem.sign
    listed = step.row.members
    rows = plan.members(slice(None)).tolist() if listed is None else listed
    every = range(step.problem.n) if among is None else among
    place = {arm: i for i, arm in enumerate(every)}
    found: list[tuple[SuperArm, list[float]]] = [
        (tuple(sorted(place[i] for i in row if i in place)), []) for row in rows
    ]
    order = plan.order(0, step.pulls).tolist()
    for index, total in zip(order, step.totals[: step.pulls].tolist(), strict=True):
        found[index][1].append(sign * total)
    return found


def _by_set(found: Sequence[tuple[SuperArm, list[float]]]) -> dict[SuperArm, list[float]]:
    groups: dict[SuperArm, list[float]] = {}
    for members, totals in found:
        if totals:
            groups.setdefault(members, []).extend(totals)
    return groups


def _look(step: Step, among: Sequence[int] | None = None) -> _Look:
    assert step.phase is not None
    plan = step.phase.plan
    arms = list(range(step.problem.n)) if among is None else list(among)
    every = pulled(step, among)
    # All totals less their mean: all estimates move by the same, and lose fewer digits.
    mean = math.fsum(total for _, totals in every for total in totals) / step.pulls
    every = [(members, [total - mean for total in totals]) for members, totals in every]
    if isinstance(plan, CyclicPlan) and step.pulls % plan.size:
        size = plan.places
        blocks = [every[start : start + size] for start in range(0, len(every), size)]
        A, theta = reference_certified.estimate_by_blocks(len(arms), blocks)
    else:
        A, theta = reference_certified.estimate(len(arms), _by_set(every))
    return _Look(theta, A, arms, every)


def _with_sigma(step: Step) -> Step:
    """Return the step with the bound on its unknown sigma that residuals give, in its place."""
    phase, problem = step.phase, step.problem
    assert phase is not None
    state = phase.carry.get("state")
    look = _look(step, None if state is None else state.contested.tolist())
    squares = reference_certified.squares_of_residuals(look.theta, look.every)
    freedom, looks = step.pulls - len(look.arms), phase.looks.schedule.number
    delta = SHARE * _delta(step)
    bound = reference_certified.sigma_bound(squares, freedom, delta, looks)
    return replace(step, problem=problem.with_noise(Estimated(squares, freedom, looks, bound)))


def _delta(step: Step) -> float:
    """Return the share of delta of a phase: of those of `Focused`, phase i has delta/(i(i+1))."""
    assert step.phase is not None
    i = step.phase.number if "state" in step.phase.carry else None
    return step.problem.delta / (1 if i is None else i * (i + 1))


def _for_means(step: Step) -> float:
    """Return what is left of it beside the bound on an unknown sigma."""
    return _delta(step) * (1 if step.problem.noise.known else 1 - SHARE)


def _answer(step: Step, arms: Sequence[int]) -> SuperArm:
    """Return the answer's places among `arms`."""
    chosen = {step.problem.index[name] for name in step.verdict.answer}
    return tuple(i for i, arm in enumerate(arms) if arm in chosen)


def _levels(
    step: Step, C: Levels, delta: float, n: int, k: int, pairs: bool, A: FloatArray
) -> list[float]:
    """Return the radius of each level; rho is fixed before the phase, whatever it is it holds."""
    levels = 1 if pairs else min(k, n - k)
    events = reference.shares_of_levels(n, k, delta, levels)
    norms = reference_certified.norms_of_levels(A, levels)
    constants = [
        reference_certified.level_constant(step.pulls, step.look, event, C.rho, C.looks)
        for event in events
    ]
    return [C.sigma * b * s for b, s in zip(constants, norms, strict=True)]


def _certified(rule: Certified, step: Step) -> Found | str:
    assert step.phase is not None
    problem, look = step.problem, _look(step)
    C = rule.constant(problem, step.phase.delta)
    if C.rho is not None and step.pulls % (step.phase.plan.cycle or step.pulls + 1):
        return "the look is not after whole cycles"
    pairs = problem.epsilon == 0 and rule.budget is None
    radii = _levels(step, C, _for_means(step), problem.n, problem.k, pairs, look.A)
    answer = _answer(step, look.arms)
    sides = reference_certified.level_sides(look.theta, answer, problem.epsilon, radii)
    return Found(sides, max(0.0, sides.radius - sides.gap))


def _focused(rule: Focused, step: Step) -> Found | str:
    """On the contested arms; the filler shifts all their totals alike."""
    phase, problem = step.phase, step.problem
    assert phase is not None
    state = phase.carry["state"]
    arms, q = state.contested.tolist(), problem.k - len(state.accepted)
    C = rule._radius(problem, phase, state)
    assert isinstance(C, Levels)
    look = _look(step, arms)
    pairs = problem.epsilon == 0
    radii = _levels(step, C, _for_means(step), len(arms), q, pairs, look.A)
    sides = reference_certified.level_sides(look.theta, _answer(step, arms), problem.epsilon, radii)
    lines: tuple[str, ...] = ()
    wrong = ""
    if isinstance(step.outcome, Next):
        after = step.outcome.phase.carry["state"]
        accepted, rejected = reference_certified.decided(look.theta, arms, q, radii[0] * (1 - NEAR))
        new = set(after.accepted.tolist()) - set(state.accepted.tolist())
        gone = set(arms) - set(after.contested.tolist()) - new
        if not (new <= accepted and gone <= rejected):
            wrong = f"an arm was decided in phase {phase.number} that the reference does not decide"
        lines = (
            f"It accepts {len(new)} arms at the end of phase {phase.number} and rejects "
            f"{len(gone)}, as was done.",
        )
    return Found(sides, max(0.0, sides.radius - sides.gap), lines, wrong)


def _class(step: Step) -> Any:
    """Return k, or all groups of another class; None where they are too many."""
    problem = step.problem
    if problem.topk:
        return problem.k
    if problem.decision.log_size > math.log(_MOST_SETS):
        return None
    return [tuple(i for i in row if i >= 0) for row in problem.decision.listed.tolist()]


def _constant(rule: Any, step: Step, family: Any, region: str) -> float:
    problem, t, delta = step.problem, step.pulls, _for_means(step)
    n, sigma, looks = problem.n, rule.scale(problem), rule.schedule.number
    if rule.constants == "corrected" and looks is not None:
        log = reference.log_choose(n, family) if region == "ellipsoid" else math.log(n)
        return reference_certified.planned_constant(sigma, log, looks, delta)
    if region == "ellipsoid":
        return reference.ellipsoid_constant(t, sigma, n, family, delta, rule.constants)
    return reference.independent_constant(t, sigma, n, delta, rule.constants)


def _in_class(step: Step, family: Any) -> tuple[FloatArray, FloatArray]:
    """Return theta^ and A^-1, on the span of the class."""
    if isinstance(family, int):
        look = _look(step)
        return look.theta, look.W
    pairs = [(members, total) for members, totals in pulled(step) for total in totals]
    sets, every = [members for members, _ in pairs], [total for _, total in pairs]
    return reference.least_squares(step.problem.n, sets, every, family)


def _too_many(step: Step) -> str:
    return f"there are {step.problem.decision.size_in_words} groups, too many to go through"


def _icb(rule: ICB, step: Step) -> Found | str:
    family = _class(step)
    if family is None:
        return _too_many(step)
    theta, W = _in_class(step, family)
    C = _constant(rule, step, family, rule.radius)
    if isinstance(family, int):
        answer = _answer(step, range(step.problem.n))
        sides = reference_certified.icb_level_sides(theta, W, answer, step.problem.epsilon, C)
    else:
        sides = reference.icb_sides(theta, W, family, step.problem.epsilon, C)
    return Found(sides, max(0.0, sides.radius - sides.gap))


def _exhaustive(rule: Exhaustive, step: Step) -> Found | str:
    family = _class(step)
    if family is None or step.problem.decision.log_size > math.log(_MOST_SETS):
        return _too_many(step)
    theta, W = _in_class(step, family)
    C = _constant(rule, step, family, "ellipsoid")
    sides = reference.exhaustive_sides(theta, W, family, step.problem.epsilon, C)
    return Found(sides, max(0.0, sides.radius - sides.gap))


def _saqm(rule: SAQM, step: Step) -> Found | str:
    family = _class(step)
    if not isinstance(family, int):
        return "for other classes than the best k of n, the reference has SAQM by another bound"
    if rule.oracle != "peeling" or (rule.alpha == "certified" and rule.bound != "spectral"):
        return f"the reference does not have the oracle {rule.oracle!r} or the bound {rule.bound!r}"
    if step.problem.n > _MOST_PEELED:
        return f"peeling {step.problem.n} arms is more than the slow reference takes"
    theta, W = _in_class(step, family)
    C = _constant(rule, step, family, "ellipsoid")
    sides = reference.saqm_sides(theta, W, family, step.problem.epsilon, C, rule.alpha)
    return Found(sides, max(0.0, sides.radius - sides.gap))


def _sa_foa(rule: SAFOA, step: Step) -> Found | str:
    phase, problem = step.phase, step.problem
    assert phase is not None
    theta, W = _in_class(step, problem.k)
    C = _constant(rule, step, problem.k, "ellipsoid")
    epsilon = rule.threshold * problem.epsilon
    if rule.certified:
        levels = min(problem.k, problem.n - problem.k)
        radii = reference_certified.sphere_radii(W, levels, C)
        answer = _answer(step, range(problem.n))
        sides = reference_certified.level_sides(theta, answer, epsilon, radii)
        return Found(sides, max(0.0, sides.radius - sides.gap))
    if problem.n > _MOST_PEELED:
        return f"peeling {problem.n} arms is more than the slow reference takes"
    drawn = phase.rng(step.look).integers(phase.plan.size, size=rule.draws * problem.n)
    rows = phase.plan.members(np.unique(drawn)).tolist()
    draws = [tuple(row) for row in rows]
    sides = reference.sa_foa_sides(theta, W, problem.k, problem.epsilon, C, draws, rule.threshold)
    return Found(sides, max(0.0, sides.radius - sides.gap))


_RULES: dict[type[Algorithm], Callable[[Any, Step], Found | str]] = {
    ICB: _icb,
    Exhaustive: _exhaustive,
    SAQM: _saqm,
    SAFOA: _sa_foa,
}
