"""Cyclic designs: all n shifts of a few base blocks, flat wherever that is possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from superarm._checks import whole
from superarm.cyclic_plan import TOLD, CyclicPlan
from superarm.decision import TopK
from superarm.design.base import Design
from superarm.design.blocks import flatness, search_blocks
from superarm.design.difference_sets import difference_family
from superarm.errors import ProblemError, SettingError, SupportError
from superarm.levels import expected_pulls
from superarm.plan import Index
from superarm.problem import Problem

MOST_BLOCKS = 64
MOST_SHIFTS = 10_000_000
"""More super-arms than this are not laid out: their tally would not fit well into memory."""

_ENOUGH = 8
"""Blocks that surely tell all arms apart, were one not to (of 2 of 4 arms in a row, say)."""

_SINGULAR = 1e-9  # flatness that is rounding


@dataclass(frozen=True)
class Cyclic(Design):
    """Measure all shifts of base blocks (arms in the order of the problem, round and round).

    Where n and k admit a difference set (Paley, Singer), its shifts are the blocks: they measure
    all pairs of arms equally often. Elsewhere the blocks come from a swap search that makes them
    nearly so, the nearer the more blocks there are; but a whole cycle takes n pulls a block.

    Parameters
    ----------
    blocks
        Their number, or "auto": a difference set, or else as many as pay for a cycle's length, by
        the pulls to be expected.
    pulls
        How many pulls there will be, where that is fixed: then as many blocks are laid out as whole
        ones fit in.
    relabel
        Put the arms to places at random. The blocks are then the same whatever the seed, so that
        what was simulated for them can be kept.
    """

    blocks: Literal["auto"] | int = "auto"
    pulls: int | None = None
    relabel: bool = False

    def __post_init__(self) -> None:
        if self.blocks != "auto":
            number = whole("blocks ('auto' or a number)", self.blocks, SettingError, 1, 4096)
            object.__setattr__(self, "blocks", number)
        if self.pulls is not None:
            whole("pulls", self.pulls, SettingError, least=1)

    def __str__(self) -> str:
        return f"cyclic:{self.blocks}"

    def plan(self, problem: Problem, rng: np.random.Generator) -> CyclicPlan:
        if not isinstance(problem.decision, TopK):
            raise ProblemError("a cyclic design is for the best k of n arms; choose uniform")
        n, k = problem.n, problem.k
        if k == n:
            raise ProblemError("there is only one group of all arms: nothing need be measured")
        arms = None
        if self.relabel:
            arms, rng = rng.permutation(n), np.random.default_rng([n, k])
        if self.blocks == "auto":
            known = difference_family(n, k)
            if known is not None:
                return CyclicPlan(
                    known, n, arms=arms, source="difference set", details={"flatness": 1.0}
                )
        number = self._number(problem) if self.blocks == "auto" else self.blocks
        if number * n > MOST_SHIFTS:
            raise SettingError(
                f"{number} blocks of {n:,} shifts are more than {MOST_SHIFTS:,} super-arms"
            )
        blocks = search_blocks(n, k, number, rng)
        flat = flatness(n, blocks)
        most = min(_ENOUGH, MOST_SHIFTS // n) if self.blocks == "auto" and not self.pulls else 0
        while flat < TOLD and number < most:
            number += 1
            blocks = search_blocks(n, k, number, rng)
            flat = flatness(n, blocks)
        if flat < _SINGULAR:
            raise SupportError(
                f"all shifts of {number} block{'s' if number > 1 else ''}, {number * n:,} pulls, "
                f"do not tell {n:,} arms apart: it takes more blocks, and for each {n:,} pulls"
            )
        details: dict[str, Any] = {"flatness": round(flat, 4)}
        return CyclicPlan(blocks, n, arms=arms, source="swap search", details=details)

    def _number(self, problem: Problem) -> int:
        if self.pulls is None:
            return blocks_that_pay(problem)
        return max(1, min(self.pulls // problem.n, most_blocks(problem)))


def blocks_that_pay(problem: Problem) -> int:
    """Return the number of blocks L at which T (1 + 1/L) + L n/2 is least, for T pulls to expect.

    Uneven blocks cost a share of about 1/L, and the stop comes half a cycle late on average.
    """
    best = math.sqrt(2 * expected_pulls(problem) / problem.n)
    return max(1, min(round(best), most_blocks(problem)))


def most_blocks(problem: Problem) -> int:
    """Return how many blocks serve at most: no more than there are groups for."""
    most = min(MOST_BLOCKS, MOST_SHIFTS // problem.n)
    assert isinstance(problem.decision, TopK)
    if problem.decision.log_size < math.log(most * problem.n):
        most = -(-problem.decision.size // problem.n)
    return most


def cyclic_blocks(
    n: int, k: int, pulls: float, number: int | None = None
) -> tuple[Index, str, float]:
    """Return blocks for so many pulls (always the same), their source, and their flatness.

    `number` is how many are wanted; None: as many as pay.
    """
    known = difference_family(n, k)
    if known is not None:
        return known, "difference set", 1.0
    most = min(
        MOST_BLOCKS, MOST_SHIFTS // n, max(1, math.comb(n, k) // n if n < 60 else MOST_BLOCKS)
    )
    number = max(1, min(number or round(math.sqrt(2 * pulls / n)), most))
    rng = np.random.default_rng([n, k])
    blocks = search_blocks(n, k, number, rng)
    while flatness(n, blocks) < TOLD and number < _ENOUGH:
        number += 1
        blocks = search_blocks(n, k, number, rng)
    return blocks, "swap search", round(flatness(n, blocks), 4)


def relabelled(n: int, k: int, number: int, rng: np.random.Generator) -> CyclicPlan:
    """Return the plan of `number` blocks, or of as many as tell all arms apart, at random places.

    The blocks are the same whatever the seed.
    """
    blocks, source, flat = cyclic_blocks(n, k, 0.0, number)
    arms = rng.permutation(n)
    return CyclicPlan(blocks, n, arms=arms, source=source, details={"flatness": flat})
