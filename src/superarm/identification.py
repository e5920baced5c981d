"""Ask and tell: identification with results that come from anywhere, in any order."""

from __future__ import annotations

from dataclasses import dataclass

from superarm._checks import bounded_real, whole
from superarm.algorithms import Algorithm, default_algorithm
from superarm.algorithms.base import check_algorithm, check_problem, no_answer
from superarm.errors import ConflictError, PullError, SettingError, TotalError
from superarm.phase import Next, Phase, Stop
from superarm.problem import Problem
from superarm.seeds import Rng, seed_from
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict

MOST_AT_ONCE = 1_000_000
"""More pulls than this are not handed out by one call."""


@dataclass(frozen=True)
class Pull:
    """A measurement to make: the total of `members`, to be told under `id`."""

    id: str
    members: tuple[str, ...]
    phase: int
    position: int


class Identification:
    """Find the best k of n by asking for measurements and being told their totals.

    >>> import superarm as sa
    >>> crew = sa.Identification(sa.Problem(["Ann", "Bo", "Cy"], 2, sa.labels()), rng=1)
    >>> pull = crew.ask()[0]
    >>> len(pull.members)
    2
    >>> crew.tell(pull.id, 1.0)

    Totals may be told in any order. Look j takes place once the plan's first t_j positions are all
    told; totals of later positions are kept for later looks. Between looks, `verdict` repeats what
    the last one found.

    Parameters
    ----------
    problem
        The question.
    algorithm
        The rule; by default `Certified` for the best k of n arms, `ICB` for other classes.
    rng
        Seed, generator, or None: decides what the design leaves to chance. With a whole number the
        identification can be repeated exactly.
    """

    def __init__(
        self, problem: Problem, algorithm: Algorithm | None = None, *, rng: Rng = None
    ) -> None:
        self.problem = check_problem(problem)
        self.algorithm = (
            default_algorithm(problem) if algorithm is None else check_algorithm(algorithm)
        )
        self.seed = seed_from(rng)
        self._told: dict[str, float] = {}
        self._asked: dict[int, int] = {}  # by phase: number of positions asked
        outcome = self.algorithm.first(problem, self.seed)
        self._phase: Phase | None = None
        if isinstance(outcome, Stop):
            self._verdict = outcome.verdict
        else:
            self._verdict = waiting(self.algorithm, problem, outcome)
            self._enter(outcome)

    @property
    def verdict(self) -> Verdict:
        """What the last look found."""
        return self._verdict

    @property
    def open(self) -> list[str]:
        """Ids of the pulls asked for and not told yet: the next look may wait for them."""
        if self._phase is None:
            return []
        return [f"{self._phase.number}-{position}" for position in sorted(self._open)]

    def ask(self, size: int = 1) -> list[Pull]:
        """Return the next `size` measurements; fewer, or none, when no more are needed.

        At the end of a phase there are none either until those in `open` have been told.
        """
        size = whole("the number of pulls to ask for", size, SettingError, 1, MOST_AT_ONCE)
        phase = self._phase
        if phase is None:
            return []
        start = self._asked[phase.number]
        if phase.looks.end is not None:
            size = min(size, phase.looks.end - start)
        index = phase.plan.order(start, start + size)
        rows = phase.plan.members(index)
        pulls = [
            Pull(f"{phase.number}-{start + i}", self.problem.names(row), phase.number, start + i)
            for i, row in enumerate(rows)
        ]
        self._order.extend(index.tolist())
        self._open.update(range(start, start + size))
        self._asked[phase.number] = start + size
        return pulls

    def tell(self, id: str, total: float) -> None:
        """Take the total of a pull; telling the same total again changes nothing."""
        number, position = self._find(id)
        value = self._valid(total, number, position)
        if id in self._told:
            if self._told[id] != value:
                raise ConflictError(
                    f"pull {id} has total {self._told[id]:.17g} already; told again as {value:.17g}"
                )
            return
        self._told[id] = value
        if self._phase is None or number != self._phase.number:
            return  # its phase is over: recorded, not used
        self._open.discard(position)
        if position < self._needed:
            self._count(position, value)
        else:
            self._later[position] = value
        self._look_while_complete()

    def _valid(self, total: float, number: int, position: int) -> float:
        value = bounded_real("a total", total, TotalError)
        size, least = self.problem.k, self.problem.decision.least_size
        if least < size and self._phase is not None and number == self._phase.number:
            row = self._phase.plan.members(self._order[position])
            size = least = int((row >= 0).sum())
        self.problem.noise.check_total(value, size, least)
        return value + 0.0  # no -0.0

    def _find(self, id: str) -> tuple[int, int]:
        number, _, position = str(id)[:50].partition("-")
        if number.isdecimal() and position.isdecimal():
            where = int(number), int(position)
            if where[1] < self._asked.get(where[0], 0) and id == f"{where[0]}-{where[1]}":
                return where
        raise PullError(f"pull {str(id)[:50]!r} was never asked for")

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._asked[phase.number] = 0
        self._open: set[int] = set()
        self._order: list[int] = []  # plan index of each position asked for
        self._tally = Tally(phase.plan.size)
        self._later: dict[int, float] = {}
        self._look = 0
        self._needed = 0
        self._missing = 0
        self._next_look()

    def _next_look(self) -> bool:
        """Take in what is there for the next look; False when the schedule has no more."""
        assert self._phase is not None
        time = self._phase.looks.time(self._look + 1)
        if time is None:
            return False
        self._look += 1
        self._missing = time - self._needed
        before, self._needed = self._needed, time
        later = self._later
        # The next look may be far ahead of what is there, or many results ahead of it.
        there = later if len(later) < time - before else range(before, time)
        for position in [position for position in there if position < time and position in later]:
            self._count(position, later.pop(position))
        return True

    def _count(self, position: int, total: float) -> None:
        self._tally.add(self._order[position], total)
        self._missing -= 1

    def _look_while_complete(self) -> None:
        while self._phase is not None and self._missing == 0:
            outcome = self.algorithm.look(self.problem, self._phase, self._tally, self._look)
            self._verdict = outcome.verdict
            if isinstance(outcome, Stop):
                self._phase = None
            elif isinstance(outcome, Next):
                self._enter(outcome.phase)
            elif not self._next_look():
                self._phase = None
                self._verdict = self._verdict.ended(LAST_LOOK_FAILED)


def waiting(algorithm: Algorithm, problem: Problem, phase: Phase) -> Verdict:
    """Return the verdict before the first look of all."""
    reason = f"the first look comes after {phase.looks.time(1):,} pulls"
    return no_answer(algorithm.name, problem, phase, 0, 0, reason)
