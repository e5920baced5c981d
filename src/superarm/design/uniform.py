"""Uniform allocation (Section 5) and given proportions, on a full, random or given support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from superarm._checks import real, whole
from superarm.decision import Decision, TopK, as_rows, span_basis
from superarm.design.base import Design
from superarm.design.support import random_support, span_first
from superarm.errors import SettingError, SupportError
from superarm.plan import SupportPlan
from superarm.problem import Problem

FULL_LIMIT = 5_000_000
"""More super-arms than this are not listed in full."""


@dataclass(frozen=True)
class Uniform(Design):
    """Measure each super-arm of a support equally often.

    Parameters
    ----------
    support
        "full": all C(n, k) super-arms; a number m: m different ones at random (all of them when
        there are no more); a text such as "2n"; or the super-arms themselves, each a tuple of arm
        indices.
    """

    support: Literal["full"] | int | str | tuple[tuple[int, ...], ...] = "8n"

    def __post_init__(self) -> None:
        support: Any = self.support
        if isinstance(support, str):
            if support != "full":
                _multiple(support)
        elif isinstance(support, Iterable):
            object.__setattr__(self, "support", index_rows(support))
        else:
            size = whole("support (a number, 'full', '8n', or super-arms)", support, SettingError)
            object.__setattr__(self, "support", size)

    def __str__(self) -> str:
        if isinstance(self.support, tuple):
            return f"uniform:{len(self.support)} given"
        return f"uniform:{self.support}"

    def plan(self, problem: Problem, rng: np.random.Generator) -> SupportPlan:
        decision = problem.decision
        if isinstance(decision, TopK):
            rows, source = self._rows(decision, rng)
        else:
            rows, source = self._rows_of_class(decision, rng)
        basis = span_basis(decision, rng)
        order, spanning = span_first(rows, problem.arms, basis)
        return SupportPlan(rows[order], problem.n, spanning=spanning, source=source, basis=basis)

    def _rows_of_class(
        self, decision: Decision, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], str]:
        if isinstance(self.support, tuple):
            return given_rows(self.support, decision), "given"
        if self.support == "full":
            return decision.enumerate(), "full"
        size = self.support
        if isinstance(size, str):
            size = _multiple(size) * decision.n
        if size > FULL_LIMIT:
            raise SettingError(f"more than {FULL_LIMIT:,} super-arms are too many to list")
        return random_support(decision, size, rng), "random"

    def _rows(self, topk: TopK, rng: np.random.Generator) -> tuple[NDArray[np.int64], str]:
        if isinstance(self.support, tuple):
            return given_rows(self.support, topk), "given"
        if self.support == "full":
            size = min(topk.size, FULL_LIMIT + 1)
        elif isinstance(self.support, str):
            size = _multiple(self.support) * topk.n
        else:
            size = self.support
        if min(size, topk.size) > FULL_LIMIT:
            raise SettingError(
                f"more than {FULL_LIMIT:,} super-arms (of {topk.size_in_words}) are too many to "
                "list; give a smaller number, as support=8n"
            )
        if size >= topk.size:
            return topk.enumerate().astype(np.int64), "full"
        if size < topk.n:
            raise SupportError(
                f"a support of {size} super-arms cannot tell {topk.n} arms apart: "
                f"it takes at least {topk.n}, better 8 times as many"
            )
        return random_support(topk, size, rng), "random"


@dataclass(frozen=True)
class Weighted(Design):
    """Measure the given super-arms in the given proportions, by argmin T_M / p_M."""

    support: tuple[tuple[int, ...], ...]
    proportions: tuple[float, ...]

    def __init__(self, support: Sequence[Sequence[int]], proportions: Sequence[float]) -> None:
        object.__setattr__(self, "support", index_rows(support))
        given: Any = proportions
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise SettingError(f"proportions must be a list of numbers, not {given!r}")
        shares = tuple(real("a proportion", share, SettingError) for share in given)
        object.__setattr__(self, "proportions", shares)
        weights = np.array(self.proportions)
        if len(weights) != len(self.support):
            raise SettingError(
                f"{len(self.support)} super-arms need as many proportions, not {len(weights)}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise SettingError("proportions must be finite, >= 0, and not all 0")
        positive = weights[weights > 0]
        if positive.min() < 1e-9 * positive.max() or not 1e-100 < positive.max() < 1e100:
            raise SettingError(
                "proportions must lie within a factor of 1e9 of each other (or be 0)"
            )

    def __str__(self) -> str:
        return f"weighted:{len(self.support)} given"

    def plan(self, problem: Problem, rng: np.random.Generator) -> SupportPlan:
        weights = np.array(self.proportions)
        rows = given_rows(self.support, problem.decision)[weights > 0]
        basis = span_basis(problem.decision, rng)
        order, spanning = span_first(rows, problem.arms, basis)
        return SupportPlan(
            rows[order],
            problem.n,
            spanning=spanning,
            proportions=weights[weights > 0][order],
            basis=basis,
        )


def given_rows(support: Sequence[Sequence[int]], decision: Decision) -> NDArray[np.int64]:
    """Check a user's super-arms and return them as sorted rows."""
    if not support:
        raise SupportError("the support is empty: give at least one super-arm")
    for row in support:
        if len(set(row)) == len(row) and decision.contains(row):
            continue
        if isinstance(decision, TopK):
            raise SupportError(
                f"super-arm {tuple(row)} is not {decision.k} different arm indices "
                f"between 0 and {decision.n - 1}"
            )
        raise SupportError(f"super-arm {tuple(row)} is none of the decision class")
    rows = as_rows(support)
    if len(np.unique(rows, axis=0)) < len(rows):
        raise SupportError("the support lists a super-arm twice; use proportions to weight it")
    return rows


def index_rows(support: Iterable[Iterable[Any]]) -> tuple[tuple[int, ...], ...]:
    """Return a user's super-arms as tuples of arm indices (names are not indices)."""
    try:
        return tuple(
            tuple(whole("an arm's index in a support", i, SupportError) for i in row)
            for row in support
        )
    except TypeError:
        raise SupportError(
            "a support is a list of super-arms, each a list of arm indices"
        ) from None


def _multiple(text: str) -> int:
    factor = text.removesuffix("n")
    if (
        len(text) > 12
        or not text.endswith("n")
        or not (factor.isascii() and factor.isdecimal())
        or int(factor) < 1
    ):
        raise SettingError(f"support {text!r} is not 'full', a number, or a multiple such as '8n'")
    return int(factor)
