"""Pulls to expect before anything is measured, if the means were as stated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm._checks import whole
from superarm.algorithms import Algorithm, Static
from superarm.algorithms.base import check_algorithm
from superarm.errors import NoiseError, SettingError
from superarm.noise import Noise, Total, gaussian
from superarm.phase import Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.seeds import Rng, seed_from
from superarm.simulation.engine import MOST_PULLS
from superarm.simulation.environments import environment
from superarm.simulation.replicate import replicate
from superarm.tally import Tally
from superarm.theory.gaps import Means, delta_min, stated_means
from superarm.theory.guarantees import ENDS, TIE, Guarantee, guarantee
from superarm.theory.looks import LookTimes, first_look
from superarm.verdict import Verdict

Vector = NDArray[np.float64]

FARTHEST = 10**16
"""No forecast goes on beyond so many pulls."""


@dataclass(frozen=True)
class Simulated:
    """Pulls of simulated runs: their mean, and the ends between which 90 % of them lie.

    Each run draws a support of its own, where the design leaves it to chance. `unfinished` runs met
    the limit of pulls, and count with that.
    """

    replications: int
    mean: float
    low: float
    median: float
    high: float
    wrong: int
    unfinished: int


@dataclass(frozen=True)
class Forecast:
    """What to expect of an algorithm, if the means were as stated.

    Parameters
    ----------
    algorithm, settings
        Whose forecast this is.
    pulls, look
        The look at which it would stop if estimates had no error; None with a `reason`.
    answer
        What it would answer.
    guarantee
        Pulls within which it stops with probability at least 1 - delta; None where nothing need be
        measured, and for rules and plans of others.
    certified
        Whether its answer would have a certificate; if not, `objection` says why.
    simulated
        Simulated runs, where they were asked for.
    design
        What would be measured.
    """

    algorithm: str
    settings: Mapping[str, Any]
    pulls: int | None
    look: int | None
    answer: tuple[str, ...]
    guarantee: Guarantee | None
    certified: bool
    objection: str
    simulated: Simulated | None = None
    design: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    def __str__(self) -> str:
        if self.pulls is None:
            return f"{self.algorithm}: no forecast, {self.reason}."
        certificate = "certified" if self.certified else f"not certified: {self.objection}"
        surely = ""
        if self.guarantee is not None and self.guarantee.pulls is not None:
            surely = (
                f"; at most {self.guarantee.pulls:,} with probability >= "
                f"{self.guarantee.probability:.6g}"
            )
        return f"{self.algorithm}: about {self.pulls:,} pulls{surely} ({certificate})."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "pulls": self.pulls,
            "look": self.look,
            "answer": list(self.answer),
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "certified": self.certified,
            "objection": self.objection,
            "simulated": None if self.simulated is None else vars(self.simulated),
            "design": dict(self.design),
            "reason": self.reason,
        }


def forecast(
    problem: Problem,
    algorithm: Algorithm,
    means: Means,
    *,
    true_sigma: float | None = None,
    rng: Rng = None,
    replications: int = 0,
    workers: int = 1,
    progress: Callable[[], Any] | None = None,
) -> Forecast:
    """Say how many pulls `algorithm` takes before it stops, if the means were as stated.

    The forecast is the look at which it stops when every estimate equals the stated mean. Errors of
    estimates move a run's stop to and fro, and the closest of many rivals looks closer than it is:
    runs tend to take more (docs/explanation/theory.md says how much more).

    Parameters
    ----------
    problem
        The question.
    algorithm
        A rule with its settings.
    means
        The arms' means, in the problem's order.
    true_sigma
        With noise `gaussian()`: the standard deviation of totals, which the rule is not told.
    rng
        Decides what the design leaves to chance; with the same whole number `Identification`
        measures the same super-arms.
    replications
        So many runs are simulated besides, in `workers` processes; `progress` is called after each.
    """
    check_algorithm(algorithm)
    if not isinstance(algorithm, Static):
        raise SettingError(
            f"{algorithm.name} has several phases, of which no forecast is known; simulate it"
        )
    whole("replications", replications, SettingError, least=0)
    whole("workers", workers, SettingError, least=1)
    theta = stated_means(problem, means)
    truth = _truth(problem.noise, true_sigma)
    world = environment(theta, truth)  # refuses means that the noise model excludes
    seed = seed_from(rng)
    objection = algorithm.objection(problem)
    state = algorithm.first(problem, seed)
    if isinstance(state, Stop):
        return _known(algorithm, state.verdict)
    sure = _sure(problem, algorithm, state, theta) if problem.noise.known else None
    at, verdict, reason = _expected(problem, algorithm, state, theta, truth)
    simulated = None
    if replications and at is not None:
        result = replicate(
            problem, algorithm, world, replications, rng=seed, workers=workers, progress=progress
        )
        simulated = _summary([run.pulls for run in result.runs], result.wrong)
    return Forecast(
        algorithm=algorithm.name,
        settings=algorithm.settings(),
        pulls=None if at is None else at[1],
        look=None if at is None else at[0],
        answer=verdict.answer if verdict is not None else (),
        guarantee=sure,
        certified=at is not None and not objection,
        objection=objection,
        simulated=simulated,
        design=state.plan.describe(),
        reason=reason,
    )


def _sure(problem: Problem, algorithm: Static, phase: Phase, theta: Vector) -> Guarantee | None:
    """Return the guarantee; None for a rule or a plan of which no theorem speaks."""
    try:
        return guarantee(problem, algorithm, phase.plan, theta)
    except SettingError:
        return None


def _known(algorithm: Static, verdict: Verdict) -> Forecast:
    """There is one group: no pull is needed."""
    settings = algorithm.settings()
    return Forecast(algorithm.name, settings, 0, 0, verdict.answer, None, True, "")


def _expected(
    problem: Problem, algorithm: Static, phase: Phase, theta: Vector, truth: Noise
) -> tuple[tuple[int, int] | None, Verdict | None, str]:
    """Return the look that stops without noise (number, pulls), its verdict; or the reason."""
    if delta_min(problem, theta) + problem.epsilon <= 0:
        return None, None, TIE
    totals = _totals(problem, phase, theta)
    spread = 0.0 if problem.noise.known else truth.sigma(problem.k)

    def outcome(look: int, t: int) -> Outcome | None:
        tally = _noise_free(phase, totals, t, spread)
        if tally.pulls < t:  # the plan ends before
            return None
        return algorithm.look(problem, phase, tally, look)

    def stops(look: int, t: int) -> bool:
        return isinstance(outcome(look, t), Stop)

    at = first_look(LookTimes(algorithm.schedule, phase.plan, FARTHEST), stops)
    if at is None:
        return None, None, ENDS
    last = outcome(*at)
    return at, None if last is None else last.verdict, ""


def _totals(problem: Problem, phase: Phase, theta: Vector) -> Vector:
    """Mean total of each super-arm of the plan."""
    if not isinstance(problem.noise, Total):  # other models bound single arms' means
        return phase.plan.gather(theta)
    rows = phase.plan.members(slice(None))
    totals: Vector = np.where(rows < 0, 0.0, theta[rows]).sum(axis=1)
    low, high = problem.noise.range(problem.k)
    outside = totals[(totals < low) | (totals > high)]
    if len(outside):
        raise NoiseError(
            f"a group's mean total {outside[0]:g} is outside its range {low:g} .. {high:g}"
        )
    return totals


def _noise_free(phase: Phase, totals: Vector, t: int, spread: float) -> Tally:
    """Return the tally of t pulls whose means are exact, with the residuals of that sigma."""
    counts = phase.plan.counts(t)
    tally = Tally(phase.plan.size)
    tally.add_block(counts, counts * totals, counts * totals**2)
    if spread and t > phase.plan.rank:
        each = spread**2 * (t - phase.plan.rank) / t
        tally.add_block(np.zeros_like(counts), np.zeros(len(counts)), counts * each)
    return tally


def _truth(noise: Noise, true_sigma: float | None) -> Noise:
    """Return the noise of totals, where the rule is not told sigma."""
    if noise.known:
        if true_sigma is not None:
            raise NoiseError(f"true_sigma goes with noise gaussian(), not with {noise}")
        return noise
    if true_sigma is None:
        raise NoiseError(
            "with noise gaussian() a forecast needs true_sigma, the standard deviation to expect"
        )
    return gaussian(true_sigma)


def _summary(pulls: list[int], wrong: int) -> Simulated:
    low, median, high = np.quantile(pulls, [0.05, 0.5, 0.95])
    return Simulated(
        replications=len(pulls),
        mean=float(np.mean(pulls)),
        low=float(low),
        median=float(median),
        high=float(high),
        wrong=wrong,
        unfinished=sum(count >= MOST_PULLS for count in pulls),
    )
