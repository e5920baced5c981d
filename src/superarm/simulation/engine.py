"""The simulation driver: whole blocks of pulls into the tally, one look after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from superarm._checks import shown, whole
from superarm.algorithms import Algorithm
from superarm.algorithms.base import check_algorithm, check_problem
from superarm.errors import SettingError
from superarm.phase import Next, Phase, Stop
from superarm.problem import Problem
from superarm.schedule import LAST
from superarm.seeds import Rng, seed_from
from superarm.simulation.environments import Environment
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict

MOST_PULLS = 10**13
"""A run that has not stopped by then is not going to."""

_TOTALS = 2**31  # tells the stream of simulated totals from those of designs and looks

_CHUNK = 1024, 16384  # least and most pulls that are drawn ahead where every pull is a look

Watcher = Callable[[Verdict], None]


@dataclass(frozen=True)
class Run:
    """One simulated run: its verdict, how far the answer is from the best total, the time taken.

    `pulls` are those of all phases; `tally` is that of the last one.
    """

    verdict: Verdict
    pulls: int
    regret: float
    seconds: float
    seed: int
    tally: Tally | None

    def wrong(self, epsilon: float) -> bool:
        """Whether the answer is not within epsilon of the best."""
        return self.regret > epsilon


def simulate(
    problem: Problem,
    algorithm: Algorithm,
    environment: Environment,
    *,
    rng: Rng = None,
    max_pulls: int = MOST_PULLS,
    watch: Watcher | None = None,
) -> Run:
    """Run an algorithm on simulated totals until it stops, or `max_pulls` are spent.

    Parameters
    ----------
    environment
        Where totals come from; `superarm.environment(means, noise)` for stated means. Its law may
        be another than the problem's noise model says, to see what a false statement does;
        `Recorded` totals must be possible under that model.
    rng
        Seed, generator or None.
    max_pulls
        Ends what cannot stop (ties with epsilon = 0) with an uncertified best answer.
    watch
        Called with the verdict of every look that is taken in full.
    """
    check_problem(problem)
    check_algorithm(algorithm)
    if not isinstance(environment, Environment):
        raise SettingError(
            f"the environment must be one such as superarm.environment(means, noise), "
            f"not {shown(environment)}"
        )
    if watch is not None and not callable(watch):
        raise SettingError(f"watch must be a function of a verdict, not {shown(watch)}")
    max_pulls = whole("max_pulls", max_pulls, SettingError, least=1, most=LAST)
    if len(environment.means) != problem.n:
        raise SettingError(
            f"the environment has {len(environment.means)} arms, the problem {problem.n}"
        )
    if environment.length is not None:
        max_pulls = min(max_pulls, environment.length)
    environment.check(problem)
    started = time.perf_counter()
    seed = seed_from(rng)
    driver = _Driver(problem, algorithm, environment, np.random.default_rng([seed, _TOTALS]), watch)
    state = algorithm.first(problem, seed)
    while isinstance(state, Phase):
        outcome = driver.run_phase(state, max_pulls)
        state = outcome.phase if isinstance(outcome, Next) else outcome
    verdict = state.verdict
    return Run(
        verdict=verdict,
        pulls=driver.pulls,
        regret=_regret(problem, environment.means, verdict),
        seconds=time.perf_counter() - started,
        seed=seed,
        tally=driver.tally,
    )


class _Driver:
    """Fills tallies and asks the algorithm; counts pulls over all phases."""

    def __init__(
        self,
        problem: Problem,
        algorithm: Algorithm,
        environment: Environment,
        rng: np.random.Generator,
        watch: Watcher | None,
    ) -> None:
        self.problem, self.algorithm, self.environment = problem, algorithm, environment
        self.rng, self.watch = rng, watch
        self.pulls = 0
        self.tally: Tally | None = None

    def run_phase(self, phase: Phase, max_pulls: int) -> Next | Stop:
        tally = self.tally = Tally(phase.plan.size)
        source = _Source(self.environment.after(self.pulls), phase, self.rng)
        budget = max_pulls - self.pulls
        look, before = 1, 0
        while (t := phase.looks.time(look)) is not None and t <= budget:
            skipped = self._skip(phase, tally, look, before, t, budget, source)
            if skipped:
                source.add(tally, before, before + skipped)
                look, before = look + skipped, before + skipped
                continue
            source.add(tally, before, t)
            before = t
            outcome = self.algorithm.look(self.problem, phase, tally, look)
            if self.watch is not None:
                self.watch(outcome.verdict)
            if isinstance(outcome, Next | Stop):
                self.pulls += t
                return outcome
            look += 1
        self.pulls += before
        if t is None:  # the last look was taken above, or skipped as certain to say Go
            final = self.algorithm.look(self.problem, phase, tally, look - 1).verdict
            return Stop(final.ended(LAST_LOOK_FAILED))
        return self._at_limit(phase, tally, look, before, budget, source)

    def _skip(
        self,
        phase: Phase,
        tally: Tally,
        look: int,
        before: int,
        t: int,
        budget: int,
        source: _Source,
    ) -> int:
        """Where every pull is a look, return how many of the coming ones need not be taken."""
        if t != before + 1:
            return 0
        ahead = min(max(_CHUNK[0], before), _CHUNK[1], budget - before)
        if phase.looks.time(look + ahead - 1) != before + ahead:
            return 0
        return self.algorithm.skip(
            self.problem, phase, tally, look, source.totals(before, before + ahead)
        )

    def _at_limit(
        self, phase: Phase, tally: Tally, look: int, before: int, budget: int, source: _Source
    ) -> Stop:
        """Spend what is left, and end with the best answer so far, uncertified."""
        if budget < phase.plan.spanning and self.pulls == 0:
            raise SettingError(
                f"max_pulls leaves {budget:,} pulls, and the first look needs "
                f"{phase.plan.spanning:,}"
            )
        if budget > before:
            source.add(tally, before, budget)
        self.pulls += budget - before
        verdict = self.algorithm.look(self.problem, phase, tally, look).verdict
        reason = f"the limit of {self.pulls:,} pulls came before the stop"
        return Stop(replace(verdict, look=look - 1).ended(reason))


class _Source:
    """Totals of one phase: block by block, or from single pulls drawn ahead."""

    def __init__(self, environment: Environment, phase: Phase, rng: np.random.Generator) -> None:
        self.environment, self.plan, self.rng = environment, phase.plan, rng
        self._start = 0
        self._ahead: NDArray[np.float64] = np.empty(0)

    def totals(self, start: int, stop: int) -> NDArray[np.float64]:
        """Totals of single positions; the same ones when asked again."""
        if start >= self._start + len(self._ahead) or start < self._start:
            self._start, self._ahead = start, np.empty(0)
        end = self._start + len(self._ahead)
        if stop > end:
            new = self.environment.pulls(self.plan, end, stop, self.rng)
            self._ahead = np.concatenate([self._ahead[start - self._start :], new])
            self._start = start
        return self._ahead[start - self._start : stop - self._start]

    def add(self, tally: Tally, start: int, stop: int) -> None:
        if self._start <= start and start < self._start + len(self._ahead):
            tally.add(self.plan.order(start, stop), self.totals(start, stop))
        else:
            self.environment.add(tally, self.plan, start, stop, self.rng)


def _regret(problem: Problem, means: NDArray[np.float64], verdict: Verdict) -> float:
    """How far the answer's mean total is from the best one; infinite without an answer."""
    if not verdict.answer:
        return math.inf
    theta = problem.sign * means
    chosen = {problem.index[name] for name in verdict.answer}
    best = set(problem.decision.best(theta).tolist())
    parts = [theta[i] for i in best - chosen] + [-theta[i] for i in chosen - best]
    regret, rounding = math.fsum(parts), 1e-15 * math.fsum(map(abs, parts))
    for clean in (0.0, problem.epsilon):  # means such as 0.9 and 0.6 are not 0.3 apart to the bit
        if abs(regret - clean) <= rounding:
            return clean
    return max(0.0, regret)
