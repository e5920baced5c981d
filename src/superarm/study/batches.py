"""Batches: many short runs go to a worker at once, so that it works more than it waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from superarm.study.outcome import Batch, Outcome

if TYPE_CHECKING:
    from superarm.study.cells import Study

MOST = 10_000
"""Runs of a batch, however short they are."""


class Batches:
    """What is left to do, cell by cell, cut into batches of about `seconds`.

    A cell's runs go out one by one until the first is back; from then on `learn` has told how long
    they take. What comes out does not depend on it.
    """

    def __init__(self, study: Study, left: Mapping[int, Sequence[int]], seconds: float) -> None:
        self.study, self.left, self.seconds = study, left, seconds
        self._taken: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def __iter__(self) -> Iterator[Batch]:
        for number, replications in self.left.items():
            start = 0
            while start < len(replications):
                stop = start + self._size(number)
                yield self._batch(number, replications[start:stop])
                start = stop

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Take note of how long runs took."""
        for outcome in outcomes:
            runs, seconds = self._taken[outcome.cell]
            self._taken[outcome.cell] = runs + 1, seconds + outcome.seconds

    def _size(self, number: int) -> int:
        runs, seconds = self._taken[number]
        if not runs:
            return 1
        return int(min(MOST, max(1.0, self.seconds * runs / max(seconds, 1e-6))))

    def _batch(self, number: int, replications: Sequence[int]) -> Batch:
        study = self.study
        runs = tuple((r, study.seed(number, r)) for r in replications)
        name, cell = study.names[number - 1], study.cells[number - 1]
        return Batch(number, name, cell, runs, study.max_pulls)
