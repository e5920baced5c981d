"""Phases and what a look at one decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from superarm.estimate import Dense, information
from superarm.information import Information
from superarm.plan import Plan
from superarm.schedule import Looks
from superarm.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Phase:
    """A plan fixed in advance, when to look at its results, and the share of delta it may spend.

    Parameters
    ----------
    number
        1 for the first phase.
    seed
        Source of the random draws of its looks, each keyed by (seed, phase, look).
    carry
        What it takes over from the phases before.
    for_sigma
        The share of delta for a bound on sigma, beside `delta`; 0 where sigma is stated.
    """

    number: int
    plan: Plan
    looks: Looks
    delta: float
    seed: int
    carry: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    for_sigma: float = 0.0

    def information(self, t: int) -> Information | None:
        """Information of the plan's first t positions; None when it is not safely invertible."""
        whole, rest = divmod(t, self.plan.cycle or t + 1)
        if whole == 0:
            found = information(self.plan, self.plan.counts(t))
        elif rest == 0:
            found = self.whole.scaled(whole)
        elif isinstance(self.whole, Dense):
            more = self.plan.members(self.plan.order(0, rest))
            found = self.whole.scaled(whole).plus(more)
        else:
            found = information(self.plan, self.plan.counts(t))
        return found if found.usable else None

    @cached_property
    def whole(self) -> Information:
        """Information of each super-arm measured once: of a whole cycle, where the plan has one."""
        return information(self.plan, np.ones(self.plan.size, dtype=np.int64))

    def rng(self, look: int) -> np.random.Generator:
        """Return the random numbers of one look."""
        return np.random.default_rng([self.seed, self.number, look])


@dataclass(frozen=True)
class Go:
    """Not decided: measure on, to the next look."""

    verdict: Verdict


@dataclass(frozen=True)
class Next:
    """Measure on, by another phase."""

    phase: Phase
    verdict: Verdict


@dataclass(frozen=True)
class Stop:
    """Decided."""

    verdict: Verdict


Outcome = Go | Next | Stop
