"""CSAR, after Rejwan and Mansour (ALT 2020): accepts and rejects in phases, Hadamard estimates.

Our reading of "Top-k Combinatorial Bandits with Full-Bandit Feedback"; docs/explanation/rivals.md
says what is theirs and what is ours, and proves the certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from superarm._checks import real
from superarm.algorithms.base import (
    Algorithm,
    Members,
    Sides,
    Sigma,
    Vector,
    check_choice,
    check_topk,
    no_answer,
    only_one,
)
from superarm.design.hadamard import exists, hadamard
from superarm.errors import ProblemError, SettingError
from superarm.hadamard_plan import HadamardPlan
from superarm.phase import Go, Next, Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.schedule import LAST, Looks, Planned
from superarm.tally import Tally
from superarm.verdict import Certificate, Verdict

_SHARE = 6 / math.pi**2  # phase t may spend delta times this / t^2
_SPARE = 1e-9  # so much more is measured, for rounding


@dataclass(frozen=True, eq=False)
class State:
    """What a phase takes over from those before.

    Everything is about the s = min(k, n - k) arms that are sought: the answer, or where k > n/2 the
    arms to leave out.

    Parameters
    ----------
    contested
        Arms that are neither accepted nor rejected, ascending.
    accepted
        Arms that are among the s for certain.
    pulls
        Those of all phases before.
    values
        The latest estimate of each arm's value; None before the first phase.
    verdict
        Of the look before.
    capped
        Whether the accuracy of this phase is the one at which a stop is certain.
    """

    contested: Members
    accepted: Members
    pulls: int = 0
    values: Vector | None = None
    verdict: Verdict | None = None
    capped: bool = False


class Split(NamedTuple):
    """What a look finds among the contested arms: the sides of the stop, and who is decided."""

    sides: Sides
    accepted: Members
    contested: Members


@dataclass(frozen=True, kw_only=True)
class CSAR(Algorithm):
    """Accept and reject arms in phases of halving accuracy, from Hadamard estimates.

    In phase t the contested arms are put into groups of 2k at random (others fill up the last one).
    The rows of a Hadamard matrix of order 2k split each group into pairs of super-arms, measured so
    often that with probability 1 - delta_t, delta_t = 6 delta/(pi^2 t^2), each of m arms has::

        |theta^_i - theta_i| <= r = sigma sqrt(2 v log(m/delta_t)/c) <= accuracy / 2^(t-1)

    (on the one side that matters) with c the times that each super-arm is measured and v = 1/k,
    nearly. With q places left, an arm more than 2r above the (q+1)-th estimate is accepted, and one
    more than 2r below the q-th is rejected. It stops when for each number d of exchanged arms::

        theta^(d best swaps) + 2 d r <= epsilon

    Where k > n/2 the n - k arms to leave out are sought in the same way, from the complements of
    such super-arms. There must be a Hadamard matrix of order 2 min(k, n - k): that number must be
    1 or even.

    Parameters
    ----------
    accuracy
        r of the first phase; None: sigma/sqrt(min(k, n - k)), an arm's own scale.
    sigma
        "noise": the scale that the noise model gives; "paper": kR.
    """

    accuracy: float | None = None
    sigma: Sigma = "noise"

    name: ClassVar[str] = "csar"

    def __post_init__(self) -> None:
        check_choice("sigma", self.sigma, ("noise", "paper"))
        if self.accuracy is not None:
            accuracy = real("accuracy", self.accuracy, SettingError)
            if not 0 < accuracy < math.inf:
                raise SettingError(f"accuracy must be a finite number > 0, not {self.accuracy!r}")
            object.__setattr__(self, "accuracy", accuracy)

    def check(self, problem: Problem) -> None:
        check_topk(problem, self.name)
        if not problem.noise.known:
            raise ProblemError(
                "csar plans the pulls of each phase by sigma, which noise gaussian leaves open; "
                "choose certified or focused, or state sigma, as gaussian:1.0"
            )
        n, k = problem.n, problem.k
        if k < n and not exists(2 * _sought(problem)):
            near = [
                next((j for j in way if exists(2 * min(j, n - j))), None)
                for way in (range(k - 1, 0, -1), range(k + 1, n))
            ]
            works = " and ".join(str(j) for j in near if j is not None)
            raise ProblemError(
                f"csar needs a Hadamard matrix of order 2 min(k, n - k), and none of order "
                f"{2 * _sought(problem)} is known here; with {n} arms the nearest k that work are "
                f"{works}; choose certified for k = {k}"
            )

    def scale(self, problem: Problem) -> float:
        """Sigma of a total."""
        noise = problem.noise
        return noise.sigma(problem.k) if self.sigma == "noise" else noise.paper_sigma(problem.k)

    def radius(self, problem: Problem, arms: int, variance: float, delta: float) -> float:
        """How far one of so many arms may be off, given the variance of its estimate at sigma 1."""
        return self.scale(problem) * math.sqrt(2 * variance * math.log(arms / delta))

    def first(self, problem: Problem, seed: int) -> Phase | Stop:
        if problem.only is not None:
            return Stop(only_one(self.name, problem))
        self.check(problem)
        none = np.zeros(0, dtype=np.int64)
        phase = self._phase(problem, seed, 1, State(np.arange(problem.n), none))
        if phase is None:
            raise SettingError(f"accuracy {self.accuracy!r} takes more than {LAST:.0e} pulls")
        return phase

    def purpose(self, problem: Problem, phase: Phase) -> str:
        contested = len(phase.carry["state"].contested)
        return f"phase {phase.number}: deciding between {contested:,} arms"

    def look(self, problem: Problem, phase: Phase, tally: Tally, look: int) -> Outcome:
        state, plan = phase.carry["state"], phase.plan
        assert isinstance(state, State)
        assert isinstance(plan, HadamardPlan)
        pulls = state.pulls + tally.pulls
        least = int(tally.counts.min())
        if least == 0:  # only where pulls end within a phase
            if state.verdict is not None:
                return Go(replace(state.verdict, pulls=pulls, phase=phase.number, forecast=None))
            reason = "the groups measured so far do not tell the arms apart"
            return Go(no_answer(self.name, problem, phase, pulls, look, reason))
        level, centred = plan.estimate(tally)
        error = 8 * (plan.half + 2) * float(np.finfo(np.float64).eps * np.abs(centred).max())
        arms = len(state.contested)
        radius = error + self.radius(problem, arms, plan.variance / least, phase.delta)
        signed = problem.sign * centred[state.contested]
        places = plan.half - len(state.accepted)
        split = _split(signed, places, radius, problem.epsilon)
        after = State(
            state.contested[split.contested],
            np.concatenate([state.accepted, state.contested[split.accepted]]),
            pulls,
            _merged(state.values, plan, level + centred),
            capped=state.capped,
        )
        found = np.concatenate([state.accepted, state.contested[split.sides.answer]])
        verdict = self._verdict(problem, phase, look, replace(split.sides, answer=found), after)
        if split.sides.stop:
            return Stop(verdict)
        following = self._phase(problem, phase.seed, phase.number + 1, after, verdict)
        if following is None:
            return Stop(verdict.ended(f"the next phase would take more than {LAST:.0e} pulls"))
        ahead = self._forecast(problem, phase.number, after, signed[split.contested])
        verdict = replace(verdict, forecast=ahead)
        return Next(following, verdict)

    def _phase(
        self,
        problem: Problem,
        seed: int,
        number: int,
        state: State,
        verdict: Verdict | None = None,
    ) -> Phase | None:
        """Return a phase; None where it would take more pulls than can be counted."""
        half, n = _sought(problem), problem.n
        signs = hadamard(2 * half)
        assert signs is not None
        groups = _groups(state.contested, 2 * half, n, np.random.default_rng([seed, number]))
        plan = HadamardPlan(signs, groups, n, complement=half < problem.k)
        places = half - len(state.accepted)
        cycles, capped = self._cycles(
            problem, number, len(state.contested), places, state.capped, plan.variance
        )
        if cycles * plan.size > LAST:
            return None
        looks = Looks(Planned((int(cycles) * plan.size,)), plan)
        carry = MappingProxyType({"state": replace(state, verdict=verdict, capped=capped)})
        return Phase(number, plan, looks, _share(problem, number), seed, carry)

    def _cycles(
        self, problem: Problem, number: int, arms: int, places: int, capped: bool, variance: float
    ) -> tuple[float, bool]:
        """How often each super-arm is measured in a phase, and whether a stop is certain then.

        The accuracy is halved from phase to phase, but no finer than what makes a stop certain:
        2 d r <= epsilon for the greatest d.
        """
        start = self.scale(problem) / math.sqrt(_sought(problem))
        target = (self.accuracy or start) / 2.0 ** (number - 1)
        enough = problem.epsilon / (2 * min(places, arms - places))
        last = target <= enough and not capped  # once: rounding might have kept it from stopping
        if last:
            target = enough
        one = self.radius(problem, arms, variance, _share(problem, number))
        needed = (one / target) ** 2 if target > one * 1e-12 else math.inf
        return max(1.0, np.ceil(needed * (1 + _SPARE))), capped or last

    def _verdict(
        self, problem: Problem, phase: Phase, look: int, sides: Sides, state: State
    ) -> Verdict:
        assert state.values is not None
        answer, estimates = np.sort(sides.answer), state.values
        half = _sought(problem)
        if half < problem.k:  # found is whom to leave out, and values are level/half - means
            answer = np.setdiff1d(np.arange(problem.n), answer)
            estimates = float(estimates.mean()) * problem.n / problem.k - estimates
        certificate, reason = None, "the stop is not reached yet"
        if sides.stop:
            reason = ""
            certificate = Certificate(
                epsilon=problem.epsilon,
                delta=problem.delta,
                noise=str(problem.noise),
                sigma=self.scale(problem),
                seed=phase.seed,
                look=look,
                pulls=state.pulls,
                bound=f"intervals of arms, phase {phase.number}",
                design=phase.plan.describe(),
            )
        return Verdict(
            algorithm=self.name,
            answer=problem.names(answer),
            done=sides.stop,
            pulls=state.pulls,
            look=look,
            phase=phase.number,
            gap=sides.gap,
            epsilon=sides.epsilon,
            radius=sides.radius,
            certificate=certificate,
            reason=reason,
            forecast=0 if sides.stop else None,
            design=phase.plan.describe(),
            estimates=estimates,
        )

    def _forecast(self, problem: Problem, number: int, state: State, signed: Vector) -> int | None:
        """Pulls of the phases to come, if each of them found these estimates again."""
        half, pulls, capped = _sought(problem), 0, state.capped
        places, pairs = half - len(state.accepted), 2 * half - 1
        variance = (pairs + 1 / pairs) / (2 * half**2)
        while pulls <= LAST:
            number, arms = number + 1, len(signed)
            cycles, capped = self._cycles(problem, number, arms, places, capped, variance)
            if not cycles < LAST:
                return None
            pulls += int(cycles) * -(-arms // (2 * half)) * 2 * pairs
            radius = self.radius(problem, arms, variance / cycles, _share(problem, number))
            split = _split(signed, places, radius, problem.epsilon)
            if split.sides.stop:
                return pulls
            places -= len(split.accepted)
            signed = signed[split.contested]
        return None


def _sought(problem: Problem) -> int:
    """How many arms are sought: the answer, or those to leave out."""
    return min(problem.k, problem.n - problem.k)


def _share(problem: Problem, number: int) -> float:
    """What a phase may spend of delta: all shares together are delta."""
    return _SHARE * problem.delta / number**2


def _split(signed: Vector, places: int, radius: float, epsilon: float) -> Split:
    """Compare estimates with each other, given how far each may be off.

    A swap counts where it may gain: the d best ones bring at most the sum of their gains + 2 d r.
    """
    order = np.argsort(-signed, kind="stable")
    inside, outside = order[:places], order[places:]
    levels = min(len(inside), len(outside))
    gains = signed[outside[:levels]] - signed[inside[::-1][:levels]]
    d = max(1, int(np.count_nonzero(gains + 2 * radius > 0)))
    sides = Sides(inside, -float(gains[:d].sum()), epsilon, 2 * d * radius)
    accept = signed > signed[outside[0]] + 2 * radius
    reject = signed < signed[inside[-1]] - 2 * radius
    return Split(sides, np.flatnonzero(accept), np.flatnonzero(~(accept | reject)))


def _groups(contested: Members, size: int, n: int, rng: np.random.Generator) -> Members:
    """Put the contested arms into groups, at random; the last is filled up with any others."""
    mixed = rng.permutation(contested)
    missing = -len(mixed) % size
    own = mixed[len(mixed) - (size - missing) :]  # already in the last group
    others = rng.permutation(np.setdiff1d(np.arange(n), own))
    return np.concatenate([mixed, others[:missing]]).reshape(-1, size)


def _merged(before: Vector | None, plan: HadamardPlan, now: Vector) -> Vector:
    """Return the latest value of each arm."""
    if before is None:
        return now
    values = before.copy()
    values[plan.groups] = now[plan.groups]
    return values
