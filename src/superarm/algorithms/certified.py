"""Ours: the certified default. Cyclic design, levels radius, and the exact maximum by one sort."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from superarm._checks import whole
from superarm.adaptive import Adaptive
from superarm.algorithms.adapting import adaptive_radius, check_labels, plan_with_pilot
from superarm.algorithms.base import Sides, Static, Vector, check_choice, check_topk
from superarm.algorithms.radii import APART, check_normal, few_blocks, phase_radius
from superarm.decision import TopK
from superarm.design import Cyclic, Design
from superarm.design.cyclic import relabelled
from superarm.errors import SettingError
from superarm.information import Information
from superarm.levels import Calibrated, Levels, Widths, expected_pulls, level_logs
from superarm.phase import Phase
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.schedule import LAST, Cycles, Planned, Schedule
from superarm.sigma import SHARE, Estimated
from superarm.tally import Tally

_LEAST_WIDTH = 1e-300  # in place of 0, to divide by
_LEAST_LOG_DELTA = -600.0


@dataclass(frozen=True, kw_only=True)
class Certified(Static):
    """Stop when no group that differs in d members can be better by more than epsilon, for any d.

    The rule, with the d best swaps and a bound on the norms of level d::

        max over d of  theta^(d best swaps) + sigma b_d max |chi_M - chi_M^|_{A^-1}  <=  epsilon

    The left side is at least the maximum over all C(n, k) groups, and equals it where the design
    is flat; it takes one sort. With epsilon = 0 level 1 is enough.

    Parameters
    ----------
    radius
        "levels": for any noise, by a union bound over all sets; "calibrated": for normal noise, by
        simulation, which needs fewer pulls (arms are then put to places at random); or "adaptive":
        for independent labels, by an estimate of their variance, which needs fewer pulls where many
        arms are nearly sure to succeed or to fail.
    budget
        Look only once, after so many pulls: the answer is then the best found, its certificate
        says which epsilon is reached at 1 - delta, and `Verdict.confidence` how sure the epsilon
        that was asked for is.
    aim
        Number of pulls at which the radius is to be tightest, for looks at whole cycles; None: as
        many as are to be expected.
    """

    design: Design = field(default_factory=Cyclic)
    schedule: Schedule = field(default_factory=Cycles)
    radius: Literal["levels", "calibrated", "adaptive"] = "levels"
    budget: int | None = None
    aim: int | None = None

    name: ClassVar[str] = "certified"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {"corrected": {}}

    def check_settings(self) -> None:
        check_choice("radius", self.radius, ("levels", "calibrated", "adaptive"))
        if self.radius != "levels":
            self._check_cycles()
        if self.aim is not None:
            whole("aim (pulls)", self.aim, SettingError, 1, LAST)
        if self.budget is not None:
            whole("budget (pulls)", self.budget, SettingError, 1, LAST)
            if self.schedule not in (Cycles(), Planned((self.budget,))):
                raise SettingError("a budget means one look, at its end: leave out the schedule")
            object.__setattr__(self, "schedule", Planned((self.budget,)))
        if self.aim is not None and not isinstance(self.schedule, Cycles):
            raise SettingError(
                "aim is for looks at whole cycles: leave it out with a budget or another schedule"
            )

    def _check_cycles(self) -> None:
        if self.budget is not None:
            raise SettingError(f"a budget needs the radius levels: leave out {self.radius}")
        if not (isinstance(self.design, Cyclic) and isinstance(self.schedule, Cycles)):
            article = "a" if self.radius == "calibrated" else "an"
            raise SettingError(
                f"{article} {self.radius} radius needs a cyclic design and looks at cycles"
            )
        if self.radius == "adaptive" and self.sigma == "paper":
            raise SettingError("an adaptive radius estimates the noise: leave out sigma paper")
        if self.radius == "calibrated" and self.schedule == Cycles():
            object.__setattr__(self, "schedule", Cycles(APART))

    def at_once(self, design: Design, pulls: int) -> Self:
        return replace(self, design=design, schedule=Cycles(), budget=pulls, aim=None)

    def check(self, problem: Problem) -> None:
        check_topk(problem, self.name)
        if self.radius == "calibrated":
            check_normal(problem)
        if self.radius == "adaptive":
            check_labels(problem)

    def layout(self, problem: Problem, rng: np.random.Generator) -> Plan:
        design = self.design
        if self.radius == "calibrated" and isinstance(design, Cyclic):
            if design == Cyclic():
                few = few_blocks(expected_pulls(problem), problem.n)
                return relabelled(problem.n, problem.k, few, rng)
            return replace(design, relabel=True).plan(problem, rng)
        if self.radius == "adaptive" and isinstance(design, Cyclic):
            return plan_with_pilot(design, problem, rng)
        if self.budget is not None and design == Cyclic():
            least, also = problem.n, ""
            if not problem.noise.known:
                least, also = least + 1, " and estimate sigma"
            if self.budget < least:
                raise SettingError(
                    f"a budget of {self.budget:,} pulls cannot tell {problem.n:,} arms "
                    f"apart{also}: it takes at least {least:,}"
                )
            design = Cyclic(pulls=self.budget)
        return design.plan(problem, rng)

    def constant(self, problem: Problem, delta: float) -> Levels:  # type: ignore[override]
        n, k, sigma = problem.n, problem.k, self.scale(problem)
        logs = level_logs(n, k, delta, pairs=problem.epsilon == 0 and self.budget is None)
        if not isinstance(self.schedule, Cycles):
            return Levels(sigma, logs, looks=self.schedule.number)
        aim = self.aim or expected_pulls(problem, sigma, delta)
        return Levels(sigma, logs, rho=aim / (2 * float(logs.mean()) + 1))

    def radius_of(self, problem: Problem, phase: Phase) -> Levels | Calibrated | Adaptive:
        if self.radius == "levels":
            return self.constant(problem, phase.delta)
        if self.radius == "adaptive":
            return adaptive_radius(phase, partial(self.constant, problem))
        sigma, epsilon = self.scale(problem), problem.epsilon
        aim = self.aim or expected_pulls(problem, sigma, phase.delta)
        n, k, open_ended = problem.n, problem.k, not problem.noise.known
        return phase_radius("calibrated", phase, n, k, sigma, epsilon, aim, open_ended)

    def at_tally(self, C: Any, tally: Tally, look: int) -> Any:
        return C.at_tally(tally, look) if isinstance(C, Adaptive) else C.at_look(tally.pulls, look)

    def sides(
        self,
        problem: Problem,
        phase: Phase,
        look: int,
        theta: Vector,
        info: Information,
        C: Widths,
    ) -> Sides:
        assert isinstance(problem.decision, TopK)
        best = problem.decision.best(theta)
        widths = C(info, problem.k)
        gains = problem.decision.swap_gains(theta, best, len(widths))
        worst = int(np.argmax(gains + widths))
        radius = float(widths[worst])
        found = Sides(best, -float(gains[worst]), problem.epsilon, radius, swaps=len(widths))
        if self.budget is None:
            return found
        norms = np.sqrt(info.differences(problem.k).squares(len(widths)))
        rounding = info.relative_error * float(np.linalg.norm(theta))
        sure = self._confidence(problem, phase.delta, gains, norms, rounding)
        return replace(found, final=True, confidence=sure)

    def _confidence(
        self, problem: Problem, delta: float, gains: Vector, norms: Vector, rounding: float
    ) -> float:
        """1 - the least delta with which the rule would have stopped at this look.

        `rounding` is how far an estimate may be off by rounding. 1 itself is never returned.
        """
        pairs = problem.epsilon == 0
        events = level_logs(problem.n, problem.k, delta, pairs) + math.log(delta)
        levels = len(events)
        lost = 2 * np.arange(1, levels + 1) * rounding
        room = np.maximum(0.0, problem.epsilon - gains[:levels] - lost)
        noise = problem.noise

        def failing(sigma: float) -> float:
            widths = np.maximum(sigma * norms[:levels], _LEAST_WIDTH)
            with np.errstate(over="ignore"):  # to infinity: then nothing fails
                return float((events - (room / widths) ** 2 / 2).max())

        if isinstance(noise, Estimated):
            log_delta = _least_log_delta(noise, failing)
        else:
            log_delta = min(0.0, failing(self.scale(problem)))
        sure = -math.expm1(log_delta)
        return min(max(0.0, sure), math.nextafter(1.0, 0.0))

    def objection(self, problem: Problem) -> str:
        return ""


def _least_log_delta(noise: Estimated, failing: Callable[[float], float]) -> float:
    """Return log of the least delta that bounds sigma and, with that bound, all differences.

    Both shares of delta grow with it, so that a rule satisfied at one delta is so at all above:
    bisection, never below the truth.
    """

    def satisfied(log_delta: float) -> bool:
        sigma = noise.bound(SHARE * math.exp(log_delta))
        return failing(sigma) <= math.log(1 - SHARE) + log_delta

    low, high = _LEAST_LOG_DELTA, 0.0
    if not satisfied(high):
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if satisfied(middle) else (middle, high)
    return high
