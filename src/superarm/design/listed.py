"""Pulls that are listed one by one, as in a plan that people have measured by other means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from superarm.decision import span_basis
from superarm.design.base import Design
from superarm.design.support import independent_rows, span_first
from superarm.design.uniform import given_rows, index_rows
from superarm.errors import SupportError
from superarm.plan import Index, Matrix, Plan
from superarm.problem import Problem


@dataclass(frozen=True)
class Listed(Design):
    """Measure these super-arms in this order, each a tuple of arm indices, and no others.

    A super-arm that is to be measured several times is listed as often.
    """

    pulls: tuple[tuple[int, ...], ...]

    def __init__(self, pulls: Iterable[Iterable[int]]) -> None:
        object.__setattr__(self, "pulls", index_rows(pulls))
        if not self.pulls:
            raise SupportError("the list of pulls is empty: give at least one super-arm")

    def __str__(self) -> str:
        return f"listed:{len(self.pulls)} pulls"

    def plan(self, problem: Problem, rng: np.random.Generator) -> ListedPlan:
        distinct = {frozenset(pull): None for pull in self.pulls}
        numbers = {group: i for i, group in enumerate(distinct)}
        rows = given_rows([sorted(group) for group in distinct], problem.decision)
        order = np.array([numbers[frozenset(pull)] for pull in self.pulls], dtype=np.int64)
        basis = span_basis(problem.decision, rng)
        span_first(rows, problem.arms, basis)  # raises where these do not tell the arms apart
        return ListedPlan(rows, order, problem.n, basis)


class ListedPlan(Plan):
    """A plan with every position written down; it ends with the last."""

    def __init__(self, rows: Index, order: Index, n: int, basis: Matrix | None) -> None:
        self.rows, self.sequence, self.n, self.basis = rows, order, n, basis
        self.k = None if (rows < 0).any() else rows.shape[1]

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def spanning(self) -> int:
        wanted = self.n if self.basis is None else self.basis.shape[1]
        met = np.sort(np.unique(self.sequence, return_index=True)[1])
        last = independent_rows(self.rows[self.sequence[met]], self.n, wanted)[-1]
        return int(met[last]) + 1

    @property
    def cycle(self) -> int | None:
        return None

    @property
    def length(self) -> int | None:
        return len(self.sequence)

    def members(self, index: int | slice | Index) -> Index:
        return self.rows[index]

    def order(self, start: int, stop: int) -> Index:
        return self.sequence[start:stop]

    def counts(self, t: int) -> Index:
        return np.bincount(self.sequence[:t], minlength=self.size)

    def describe(self) -> dict[str, Any]:
        content = self.rows.astype("<i8").tobytes() + self.sequence.astype("<i8").tobytes()
        return {
            "kind": "listed",
            "source": "given",
            "support": self.size,
            "pulls": len(self.sequence),
            "digest": sha256(content).hexdigest()[:16],
        }
