"""Ours: elimination in phases. Arms that are decided fill up the groups; the rest is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from superarm.algorithms.base import (
    Algorithm,
    Members,
    Sigma,
    Vector,
    check_choice,
    check_topk,
    no_answer,
    only_one,
)
from superarm.algorithms.radii import APART, check_normal, few_blocks, phase_radius
from superarm.cyclic_plan import CyclicPlan
from superarm.decision import TopK
from superarm.design.cyclic import cyclic_blocks
from superarm.levels import Calibrated, Levels, expected_pulls, information_of, level_logs
from superarm.phase import Go, Next, Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.schedule import Cycles, Looks
from superarm.sigma import at_look, shares
from superarm.tally import Tally
from superarm.verdict import Certificate, Verdict

_PAYS = 0.75  # a new phase begins when it is to take less than this share of what is left
_FAR = 64  # times the pulls of a phase: as much as that is left where nothing is ahead yet
_AHEAD = 2  # times all pulls so far: a phase is laid out for no more, since others will follow


@dataclass(frozen=True, eq=False)
class State:
    """What a phase takes over from those before.

    Parameters
    ----------
    contested
        Arms that are neither accepted nor rejected, ascending.
    accepted
        Arms that are in the answer for certain.
    pulls
        Those of all phases before.
    aim
        Pulls that the phase is expected to take.
    estimates
        The latest of each arm; None before the first phase.
    """

    contested: Members
    accepted: Members
    pulls: int
    aim: int
    estimates: Vector | None = None


@dataclass(frozen=True, kw_only=True)
class Focused(Algorithm):
    """Measure only arms that are not decided, in groups that decided ones fill up.

    With m contested arms, q of which belong to the answer, a phase measures all shifts of blocks of
    h contested arms, h near m/2, beside a filler of decided ones; the filler's constant drops out
    of differences. An arm that is more than the radius r_1 of a single swap ahead of the
    (q+1)-th is accepted, one more than r_1 behind the q-th is rejected. A new phase on fresh
    results begins when it is expected to pay. Phase i spends delta/(i(i+1)). It stops as
    `Certified` does, on the contested arms.

    Parameters
    ----------
    radius
        "levels", or "calibrated" for normal noise, as for `Certified`. With epsilon = 0 it is the
        levels radius all the same: for single swaps, near the pulls that a phase is to take, no
        simulation finds a smaller one.
    sigma
        "noise": the scale that the noise model gives; "paper": kR.
    """

    radius: Literal["levels", "calibrated"] = "levels"
    sigma: Sigma = "noise"

    name: ClassVar[str] = "focused"

    def __post_init__(self) -> None:
        check_choice("radius", self.radius, ("levels", "calibrated"))
        check_choice("sigma", self.sigma, ("noise", "paper"))

    def check(self, problem: Problem) -> None:
        check_topk(problem, self.name)
        if self.radius == "calibrated":
            check_normal(problem)

    def _kind(self, problem: Problem) -> Literal["levels", "calibrated"]:
        return "levels" if problem.epsilon == 0 else self.radius

    def scale(self, problem: Problem) -> float:
        """Sigma of a total."""
        noise = problem.noise
        return noise.sigma(problem.k) if self.sigma == "noise" else noise.paper_sigma(problem.k)

    def first(self, problem: Problem, seed: int) -> Phase | Stop:
        if problem.only is not None:
            return Stop(only_one(self.name, problem))
        self.check(problem)
        none = np.zeros(0, dtype=np.int64)
        sigma = self.scale(problem) if problem.noise.known else None
        aim = expected_pulls(problem, sigma, problem.delta / 2)
        return self._phase(problem, seed, 1, State(np.arange(problem.n), none, 0, aim))

    def purpose(self, problem: Problem, phase: Phase) -> str:
        contested = len(phase.carry["state"].contested)
        return f"phase {phase.number}: deciding between {contested:,} arms"

    def look(self, problem: Problem, phase: Phase, tally: Tally, look: int) -> Outcome:
        state, plan = phase.carry["state"], phase.plan
        assert isinstance(state, State)
        assert isinstance(plan, CyclicPlan)
        t = tally.pulls
        info = phase.information(t)
        if info is None:
            reason = "the groups measured so far do not tell the arms apart safely"
            return Go(no_answer(self.name, problem, phase, state.pulls + t, look, reason))
        found = info.estimate(plan, tally)
        question = at_look(problem, phase, tally, found)
        if isinstance(question, str):
            return Go(no_answer(self.name, problem, phase, state.pulls + t, look, question))
        problem = question
        theta = problem.sign * found.centred[state.contested]
        m, q = len(theta), problem.k - len(state.accepted)
        radius = self._radius(problem, phase, state)
        widths = radius.widths(t, look, info, q)
        d = np.arange(1, len(widths) + 1)
        widths = widths * (1 + info.relative_error) + 2 * d * found.rounding
        contest = TopK(m, q)
        best = contest.best(theta)
        gains = contest.swap_gains(theta, best, len(widths))
        worst = int(np.argmax(gains + widths))
        estimates = _merged(state, found.means)
        verdict = Verdict(
            algorithm=self.name,
            answer=problem.names(np.sort(np.append(state.accepted, state.contested[best]))),
            done=False,
            pulls=state.pulls + t,
            look=look,
            phase=phase.number,
            gap=-float(gains[worst]),
            epsilon=problem.epsilon,
            radius=float(widths[worst]),
            certificate=None,
            reason="the stop is not reached yet",
            forecast=None,
            design=plan.describe(),
            estimates=estimates,
        )
        if verdict.gap + problem.epsilon >= verdict.radius:
            return Stop(self._certified(problem, phase, verdict, radius.name))
        needed = _needed(verdict, t)
        verdict = replace(verdict, forecast=None if needed is None else needed - t)
        inside, outside = np.sort(theta)[::-1][q - 1 : q + 1]
        rejected = inside - theta > widths[0]
        accepted = theta - outside > widths[0]
        if not (rejected.any() or accepted.any()):
            return Go(verdict)
        left = (needed or _FAR * t) - t
        ahead = self._expected(problem, phase, state, left + t, accepted, rejected)
        if ahead > _PAYS * left:
            return Go(verdict)
        after = State(
            state.contested[~(rejected | accepted)],
            np.sort(np.append(state.accepted, state.contested[accepted])),
            state.pulls + t,
            min(ahead, _AHEAD * (state.pulls + t)),
            estimates,
        )
        return Next(self._phase(problem, phase.seed, phase.number + 1, after), verdict)

    def _expected(
        self,
        problem: Problem,
        phase: Phase,
        state: State,
        needed: int,
        accepted: NDArray[np.bool_],
        rejected: NDArray[np.bool_],
    ) -> int:
        """Pulls of a new phase on fewer arms: as those needed here, by information and radius."""
        m, q = len(state.contested), problem.k - len(state.accepted)
        fewer, places = m - int(accepted.sum() + rejected.sum()), q - int(accepted.sum())
        pairs = problem.epsilon == 0
        now = float(level_logs(m, q, phase.delta, pairs).mean())
        delta, _ = shares(problem.noise, _share(problem, phase.number + 1))
        then = float(level_logs(fewer, places, delta, pairs).mean())
        here, there = (
            information_of(m, _taken(problem, m)),
            information_of(fewer, _taken(problem, fewer)),
        )
        return math.ceil(needed * (then + 2) / (now + 2) * here / there)

    def _phase(self, problem: Problem, seed: int, number: int, state: State) -> Phase:
        m = len(state.contested)
        h = _taken(problem, m)
        decided = np.setdiff1d(np.arange(problem.n), state.contested)
        others = np.setdiff1d(decided, state.accepted)
        filler = np.append(state.accepted, others)[: problem.k - h]
        few = few_blocks(state.aim, m) if self._kind(problem) == "calibrated" else None
        blocks, source, flat = cyclic_blocks(m, h, state.aim, few)
        arms = np.random.default_rng([seed, number]).permutation(state.contested)
        plan = CyclicPlan(
            blocks,
            problem.n,
            arms=arms,
            filler=filler,
            source=source,
            details={"flatness": flat, "contested": m, "accepted": len(state.accepted)},
        )
        apart = Cycles(APART) if self._kind(problem) == "calibrated" else Cycles()
        carry = MappingProxyType({"state": state})
        delta, for_sigma = shares(problem.noise, _share(problem, number))
        return Phase(number, plan, Looks(apart, plan), delta, seed, carry, for_sigma)

    def _radius(self, problem: Problem, phase: Phase, state: State) -> Levels | Calibrated:
        q = problem.k - len(state.accepted)
        m, sigma, open_ended = len(state.contested), self.scale(problem), not problem.noise.known
        kind, epsilon = self._kind(problem), problem.epsilon
        return phase_radius(kind, phase, m, q, sigma, epsilon, state.aim, open_ended)

    def _certified(self, problem: Problem, phase: Phase, verdict: Verdict, bound: str) -> Verdict:
        certificate = Certificate(
            epsilon=problem.epsilon,
            delta=problem.delta,
            noise=str(problem.noise),
            sigma=self.scale(problem),
            seed=phase.seed,
            look=verdict.look,
            pulls=verdict.pulls,
            bound=f"{bound}, on the contested arms of phase {phase.number}",
            design=phase.plan.describe(),
        )
        return replace(verdict, done=True, certificate=certificate, reason="", forecast=0)


def _share(problem: Problem, number: int) -> float:
    return problem.delta / (number * (number + 1))


def _taken(problem: Problem, m: int) -> int:
    """How many contested arms are in a group: near m/2, as far as fillers and k allow."""
    least = max(1, problem.k - (problem.n - m))
    most = min(problem.k, m - 1)
    return int(np.clip(m // 2, least, most))


def _needed(verdict: Verdict, t: int) -> int | None:
    """Pulls of this phase at which it would stop, were the estimates to stay."""
    have = verdict.gap + verdict.epsilon
    if not (have > 0 and math.isfinite(verdict.radius)):
        return None
    total = t * (verdict.radius / have) ** 2
    return math.ceil(total) if total < 1e18 else None


def _merged(state: State, means: Vector) -> Vector:
    """Put new estimates in the place of old ones, on their mean level (fillers shift them)."""
    if state.estimates is None:
        return means
    merged = state.estimates.copy()
    new = means[state.contested]
    merged[state.contested] = new - new.mean() + merged[state.contested].mean()
    return merged
