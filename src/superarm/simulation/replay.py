"""Replay: totals drawn from real answers, with whatever dependence these have."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.errors import DataError
from superarm.plan import Index, Plan
from superarm.simulation.environments import Environment, Vector
from superarm.tally import Tally


class Replay(Environment):
    """Each pull asks the whole crew one question, drawn at random, and counts the right answers.

    Members answer the same question, so that their answers depend on each other as they did in
    truth: `labels(shared=True)` is what is known of such totals for certain. `labels()`, which
    takes the workers for independent, is a statement that may be false here; then a certificate
    that rests on it is worth nothing.

    Parameters
    ----------
    right
        One row a question, one column a worker: whether the answer was right.
    """

    def __init__(self, right: Any) -> None:
        given = np.asarray(right)
        if given.ndim != 2 or 0 in given.shape or not np.isin(given, (0, 1)).all():
            raise DataError("answers must be rows of right (1) or wrong (0), a row a question")
        self.right = given.astype(np.int64)
        self.means: Vector = self.right.mean(axis=0)
        self._known: tuple[Plan, Index] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What other processes get: not what can be computed again."""
        return {**self.__dict__, "_known": None}

    def pulls(self, plan: Plan, start: int, stop: int, rng: np.random.Generator) -> Vector:
        asked = rng.integers(len(self.right), size=stop - start)
        scores = self._scores(plan)[plan.order(start, stop), asked]
        return scores.astype(np.float64)

    def add(
        self, tally: Tally, plan: Plan, start: int, stop: int, rng: np.random.Generator
    ) -> None:
        counts = plan.counts(stop) - plan.counts(start)
        if stop - start <= np.count_nonzero(counts):  # single pulls: no block to gain from
            tally.add(plan.order(start, stop), self.pulls(plan, start, stop, rng))
            return
        scores, questions = self._scores(plan), len(self.right)
        times = rng.multinomial(counts, np.full(questions, 1 / questions))
        tally.add_block(counts, (times * scores).sum(axis=1), (times * scores**2).sum(axis=1))

    def _scores(self, plan: Plan) -> Index:
        """How many members of each super-arm answer each question rightly (kept)."""
        if self._known is None or self._known[0] is not plan:
            rows = plan.members(slice(None))
            beyond = np.column_stack([self.right, np.zeros(len(self.right), dtype=np.int64)])
            self._known = (plan, beyond[:, rows].sum(axis=2).T)  # column -1: nobody, never right
        return self._known[1]
