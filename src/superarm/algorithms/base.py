"""What an algorithm is, and what all algorithms with one static phase share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from superarm._checks import shown
from superarm.confidence import Radius
from superarm.decision.base import LISTABLE
from superarm.design import Design, Uniform
from superarm.errors import NegativeCycleError, ProblemError, SettingError, SupportError
from superarm.estimate import Dense, Matrix, least_squares
from superarm.information import Information
from superarm.phase import Go, Outcome, Phase, Stop
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.schedule import Geometric, Looks, Planned, Schedule
from superarm.sigma import at_look, shares
from superarm.tally import Tally
from superarm.verdict import Certificate, Verdict

Vector = NDArray[np.float64]
Members = NDArray[np.int64]
Sigma = Literal["noise", "paper"]


GEOMETRIC = Geometric(1.02)
"""Looks 2 % apart: about 1 % more pulls than with a look after every pull, at a fixed cost."""


class Algorithm(ABC):
    """A frozen rule: which phase comes first, and what a look at a tally decides.

    It never measures; drivers (`Identification`, `simulate`) do, and never decide.
    """

    name: ClassVar[str]
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {"corrected": {}}

    @classmethod
    def preset(cls, name: str, /, **settings: Any) -> Self:
        """Return the algorithm as in ``text | experiments | corrected``, with changed settings."""
        given: Any = name
        if not isinstance(given, str) or given not in cls.PRESETS:
            raise SettingError(
                f"preset {shown(name)} is not one of those of {cls.name}: {', '.join(cls.PRESETS)}"
            )
        known = tuple(part.name for part in fields(cls))  # type: ignore[arg-type]
        for setting in settings:
            check_choice("a setting", setting, known)
        return cls(**{**cls.PRESETS[name], **settings})

    def settings(self) -> dict[str, Any]:
        """Return every setting as plain data."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        return {
            name: value if isinstance(value, str | int | float) else str(value)
            for name, value in values.items()
        }

    def check(self, problem: Problem) -> None:  # noqa: B027 - most rules serve all problems
        """Raise where this rule cannot serve the problem."""

    @abstractmethod
    def first(self, problem: Problem, seed: int) -> Phase | Stop:
        """Return the first phase, or a verdict where nothing need be measured."""

    @abstractmethod
    def look(self, problem: Problem, phase: Phase, tally: Tally, look: int) -> Outcome:
        """Decide on the tally of exactly the plan's first t_look positions."""

    def purpose(self, problem: Problem, phase: Phase) -> str:
        """Say what the pulls of a phase are for, where that is not plain; for who measures them."""
        return ""

    def skip(self, problem: Problem, phase: Phase, tally: Tally, look: int, totals: Vector) -> int:
        """Return how many looks from `look` on are certain to say Go (0: not known).

        `tally` holds the pulls before `look`, `totals` those of the positions that follow. Only
        asked where every pull is a look; an answer saves as many calls of `look`, nothing else.
        """
        return 0


@dataclass(frozen=True)
class Sides:
    """Both sides of a stop: `answer` stands when gap + epsilon >= radius (> if strict).

    A look of a fixed budget is `final`: it stops whatever they are, with the epsilon `reached`, and
    `confidence` in the one that was asked for. `swaps` is in how many members a rival that was
    compared differs at most, where that is less than any group may.
    """

    answer: Members
    gap: float
    epsilon: float
    radius: float
    strict: bool = False
    final: bool = False
    confidence: float | None = None
    swaps: int | None = None

    @property
    def reached(self) -> float:
        """The epsilon with which the rule is satisfied."""
        return max(0.0, self.radius - self.gap)

    @property
    def stop(self) -> bool:
        """Whether the rule is satisfied, or measuring ends here anyway."""
        if self.final:
            return True
        have = self.gap + self.epsilon
        return bool(have > self.radius if self.strict else have >= self.radius)


ENUMERABLE = 10**9
"""More super-arms than this are not enumerated (of other classes than top-k, `LISTABLE`)."""

TIE = 1e-7
"""Estimates so near to each other may change places by rounding, beside their size and radius."""

_SAFE_TO_UPDATE = 1e-8  # reciprocal condition from which on rank-one updates keep their digits


class Ahead(NamedTuple):
    """The state at t pulls, and the pulls that follow: their super-arms and (signed) totals."""

    t: int
    info: Information
    inverse: Matrix
    theta: Vector
    positions: Members
    rows: Members
    totals: Vector
    constant: Radius


PAPER: dict[str, Any] = {"constants": "paper", "sigma": "paper", "design": Uniform("2n")}
"""What the presets `text` and `experiments` share: 2n random super-arms, sigma = kR, as printed."""


@dataclass(frozen=True, kw_only=True)
class Static(Algorithm):
    """An algorithm of one phase: a design, a schedule, a radius and a rule.

    Parameters
    ----------
    design
        Where to measure.
    schedule
        When to look.
    sigma
        "noise": the scale that the noise model gives; "paper": kR.
    """

    design: Design = field(default_factory=Uniform)
    schedule: Schedule = GEOMETRIC
    sigma: Sigma = "noise"

    def __post_init__(self) -> None:
        check_choice("sigma", self.sigma, ("noise", "paper"))
        if not isinstance(self.design, Design):
            raise SettingError(
                f"design must be one as superarm.Uniform(), not {shown(self.design)}"
            )
        if not isinstance(self.schedule, Schedule):
            raise SettingError(
                f"schedule must be one such as superarm.Geometric(1.02), not {shown(self.schedule)}"
            )
        self.check_settings()

    def check_settings(self) -> None:
        """Raise SettingError for settings of this rule that cannot be."""

    def at_once(self, design: Design, pulls: int) -> Self:
        """Return this rule for pulls that are all there: one look, which may spend all of delta."""
        return replace(self, design=design, schedule=Planned((pulls,)))

    def layout(self, problem: Problem, rng: np.random.Generator) -> Plan:
        """Return the plan to measure by."""
        return self.design.plan(problem, rng)

    @abstractmethod
    def constant(self, problem: Problem, delta: float) -> Radius:
        """Return C_t."""

    def radius_of(self, problem: Problem, phase: Phase) -> Any:
        """Return C_t for a phase, where it depends on more than its share of delta."""
        return self.constant(problem, phase.delta)

    def at_tally(self, C: Any, tally: Tally, look: int) -> Any:
        """Return C_t of a look, where it may depend on what came back."""
        return C.at_look(tally.pulls, look)

    @abstractmethod
    def sides(
        self, problem: Problem, phase: Phase, look: int, theta: Vector, info: Information, C: Any
    ) -> Sides:
        """Both sides of the stop for estimates `theta` (greater is better), C of this look."""

    def ahead(self, problem: Problem, phase: Phase, tally: Tally, totals: Vector) -> Ahead | None:
        """Return what a stretch of rank-one updates starts from; None where it is not safe to."""
        if not (problem.topk and problem.noise.known):
            return None
        t = tally.pulls
        info = phase.information(t) if t >= phase.plan.spanning else None
        if not isinstance(info, Dense) or info.reciprocal_condition < _SAFE_TO_UPDATE:
            return None
        estimate = least_squares(phase.plan, tally, info)
        index = phase.plan.order(t, t + len(totals))
        return Ahead(
            t,
            info,
            info.inverse(),
            problem.sign * estimate.centred,
            index,
            phase.plan.members(index),
            problem.sign * (totals - problem.k * estimate.level),
            self.constant(problem, phase.delta),
        )

    @abstractmethod
    def objection(self, problem: Problem) -> str:
        """Why a stop of this rule is no certificate; empty when it is one."""

    def scale(self, problem: Problem) -> float:
        """Sigma of a total."""
        noise = problem.noise
        return noise.sigma(problem.k) if self.sigma == "noise" else noise.paper_sigma(problem.k)

    def first(self, problem: Problem, seed: int) -> Phase | Stop:
        if problem.only is not None:
            return Stop(only_one(self.name, problem))
        self.check(problem)
        plan = self.layout(problem, np.random.default_rng([seed, 1]))
        delta, for_sigma = shares(problem.noise, problem.delta)
        looks = Looks(self.schedule, plan)
        phase = Phase(1, plan, looks, delta, seed, for_sigma=for_sigma)
        if not phase.whole.usable:
            raise SupportError(
                f"the {plan.size} super-arms of the support hardly tell the arms apart (reciprocal "
                f"condition {phase.whole.reciprocal_condition:.1g}): choose more of them, as 8n"
            )
        return phase

    def look(self, problem: Problem, phase: Phase, tally: Tally, look: int) -> Outcome:
        t = tally.pulls
        info = phase.information(t)
        if info is None:
            reason = "the groups measured so far do not tell the arms apart safely"
            return Go(no_answer(self.name, problem, phase, t, look, reason))
        estimate = least_squares(phase.plan, tally, info)
        question = at_look(problem, phase, tally, estimate)
        if isinstance(question, str):
            return Go(no_answer(self.name, problem, phase, t, look, question))
        problem = question
        C = self.radius_of(problem, phase)
        try:
            signed = problem.sign * estimate.centred
            C_t = self.at_tally(C, tally, look)
            sides = self.sides(problem, phase, look, signed, info, C_t)
        except NegativeCycleError:
            reason = "the estimates do not yet exclude costs below 0 round a cycle"
            return Go(no_answer(self.name, problem, phase, t, look, reason))
        most = min(problem.k, problem.n - problem.k) if problem.topk else problem.k
        swapped = 2 * (most if sides.swaps is None else sides.swaps)
        radius = sides.radius * (1 + info.relative_error) + swapped * estimate.rounding
        sides = replace(sides, radius=radius)
        verdict = self._verdict(problem, phase, t, look, sides, estimate.means, C)
        return Stop(verdict) if sides.stop else Go(verdict)

    def _verdict(
        self,
        problem: Problem,
        phase: Phase,
        t: int,
        look: int,
        sides: Sides,
        estimates: Vector,
        C: Radius,
    ) -> Verdict:
        certificate, reason, forecast = None, "the stop is not reached yet", None
        if sides.stop:
            reason, forecast = self.objection(problem), 0
            if not reason:
                certificate = Certificate(
                    epsilon=sides.reached if sides.final else problem.epsilon,
                    delta=problem.delta,
                    noise=str(problem.noise),
                    sigma=self.scale(problem),
                    seed=phase.seed,
                    look=look,
                    pulls=t,
                    bound=C.name,
                    design=phase.plan.describe(),
                )
        else:
            forecast = _pulls_to_go(sides, C, t, look)
        return Verdict(
            algorithm=self.name,
            answer=problem.names(sides.answer),
            done=sides.stop,
            pulls=t,
            look=look,
            phase=phase.number,
            gap=sides.gap,
            epsilon=sides.epsilon,
            radius=sides.radius,
            certificate=certificate,
            reason=reason,
            forecast=forecast,
            design=phase.plan.describe(),
            estimates=estimates,
            confidence=sides.confidence,
        )


def check_problem(problem: Problem) -> Problem:
    """Return `problem`, or raise ProblemError where it is none."""
    if not isinstance(problem, Problem):
        raise ProblemError(f"the problem must be a superarm.Problem, not {shown(problem)}")
    return problem


def check_algorithm(algorithm: Algorithm) -> Algorithm:
    """Return `algorithm`, or raise SettingError where it is none (its class, say)."""
    if not isinstance(algorithm, Algorithm):
        raise SettingError(f"algorithm must be one such as superarm.SAQM(), not {shown(algorithm)}")
    return algorithm


def check_enumerable(problem: Problem) -> None:
    """Raise ProblemError where going through all super-arms at every look is out of reach."""
    if problem.decision.log_size > math.log(ENUMERABLE if problem.topk else LISTABLE):
        raise ProblemError(
            "exhaustive search goes through all super-arms at every look, and there are "
            f"{problem.decision.size_in_words} of them; choose saqm or icb"
        )


def check_topk(problem: Problem, name: str) -> None:
    """Raise ProblemError where any k of n arms may not be chosen."""
    if not problem.topk:
        raise ProblemError(
            f"{name} is for the best k of n arms; choose icb, saqm or exhaustive for "
            f"{type(problem.decision).__name__}"
        )


def check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise SettingError unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise SettingError(f"{what} must be one of {', '.join(choices)}, not {shown(value)}")


def _pulls_to_go(sides: Sides, C: Radius, t: int, look: int) -> int | None:
    """Pulls until radius * (C_t'/C_t) * sqrt(t/t') falls to gap + epsilon, were both to stay.

    t' = t (radius/have)^2 (C_t'/C_t)^2, by iteration: C_t' grows so slowly that it converges.
    """
    have = sides.gap + sides.epsilon
    now = C.typical(t, look)
    if not (have > 0 and now > 0 and math.isfinite(sides.radius)):
        return None
    ratio = sides.radius / have / now
    alone = t * ratio * ratio  # products overflow to infinity, where powers raise
    total = float(t)
    for _ in range(8):
        following = C.typical(total, look)
        total = max(1.0, alone * following * following)
        if not total < 1e18:
            return None
    return max(1, math.ceil(total) - t)


def only_one(name: str, problem: Problem) -> Verdict:
    """Return the verdict where there is one group, as for k = n, and nothing to measure."""
    assert problem.only is not None
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        noise=str(problem.noise),
        sigma=problem.noise.sigma(problem.k) if problem.noise.known else None,
        seed=0,
        look=0,
        pulls=0,
        bound="the only group",
        design={},
    )
    return Verdict(
        name,
        problem.names(problem.only),
        True,
        0,
        0,
        0,
        math.inf,
        problem.epsilon,
        0.0,
        certificate,
        "",
        0,
    )


def no_answer(name: str, problem: Problem, phase: Phase, t: int, look: int, reason: str) -> Verdict:
    """Return the verdict where nothing can be estimated yet."""
    return Verdict(
        name,
        (),
        False,
        t,
        look,
        phase.number,
        0.0,
        problem.epsilon,
        math.inf,
        None,
        reason,
        None,
        phase.plan.describe(),
    )
