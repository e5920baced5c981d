"""G-optimal designs (Appendix D): the greatest norm of a super-arm, made as small as it can be.

By Kiefer and Wolfowitz the proportions on given super-arms that minimise the greatest
x' Lambda_p^-1 x are those that maximise log det Lambda_p, and the minimum is d, the dimension of
their span. So d is a bound that needs no proof of its own for each case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from superarm.decision import Decision, TopK, as_rows, span_basis, spanning_sets
from superarm.decision.base import Members
from superarm.design.allocation import (
    ITERATIONS,
    Allocation,
    Matrix,
    Rows,
    Support,
    Vector,
    check_limits,
    d_optimal,
    forms,
    read_support,
    support_of,
    trimmed,
)
from superarm.design.base import Design
from superarm.design.support import random_support, span_first
from superarm.design.uniform import Uniform
from superarm.errors import SettingError
from superarm.plan import SupportPlan
from superarm.problem import Problem
from superarm.quadratic import swap_search
from superarm.quadratic.family import family_bound
from superarm.seeds import seed_from

GENERATED = 0.02
"""Tolerance for a whole class, 2 % above d, where none is given."""

GIVEN = 1e-3
"""Tolerance for given super-arms, where none is given."""

_LISTED = math.log(20_000)  # so many sets of a class are gone through instead of searched
_LISTED_TOPK = math.log(2_000_000)  # members of so many sets, which are listed faster
_START = 8  # super-arms for each arm at the start of column generation
_ADDED = 3  # for each arm, at most, in each round
_SEARCHES = 5  # local searches for each arm in each round
_BOLD = 1.5, 1.0, 0.5  # ways to split x'Wx, the boldest first
_POLISHED = 10  # sets of a class, the best of a round, that are improved by exchanges
_NEAR = 2_000  # near sets that are tried for one that is better


@dataclass(frozen=True)
class GOptimal(Design):
    """Measure in the proportions for which the greatest norm of a super-arm is least.

    Parameters
    ----------
    support
        "generated": whatever super-arms of the whole class are needed, found by column generation;
        or, as for `Uniform`: "full", a number of random ones, a text such as "8n", or the
        super-arms themselves. Then only those count, as measured and as compared.
    tolerance
        How far above the least possible, as a share, the greatest norm (squared) may stay: 0.02
        for "generated" and 0.001 for others, if not given.
    iterations
        Limit of sweeps of exchanges. If it comes first, the plan's description says so.
    """

    support: Literal["generated", "full"] | int | str | tuple[tuple[int, ...], ...] = "generated"
    tolerance: float | None = None
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        if self.support != "generated":
            try:
                object.__setattr__(self, "support", Uniform(self.support).support)
            except SettingError as error:
                raise SettingError(f"{error}; here it may be 'generated' too") from None
        tolerance, iterations = check_limits(self._tolerance, self.iterations)
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "iterations", iterations)

    @property
    def _tolerance(self) -> float:
        if self.tolerance is None:
            return GENERATED if self.support == "generated" else GIVEN
        return self.tolerance

    def __str__(self) -> str:
        if isinstance(self.support, tuple):
            return f"g-optimal:{len(self.support)} given"
        return f"g-optimal:{self.support}"

    def plan(self, problem: Problem, rng: np.random.Generator) -> SupportPlan:
        decision = problem.decision
        if self.support == "generated":
            basis = span_basis(decision, rng)
            found = _generated(decision, self._tolerance, self.iterations, rng)
            return allocated_plan(found, problem, basis, "generated", str(self))
        start = Uniform(self.support).plan(problem, rng)
        support = Support(start.support, problem.n, start.basis)
        found = _on_support(support, self._tolerance, self.iterations)
        return allocated_plan(found, problem, start.basis, start.source, str(self))


def g_optimal(
    sets: Any,
    *,
    n: int | None = None,
    tolerance: float | None = None,
    iterations: int = ITERATIONS,
    rng: Any = 0,
) -> Allocation:
    """Minimise the greatest x' Lambda_p^-1 x over super-arms x; the least possible is d.

    Parameters
    ----------
    sets
        Super-arms, each a list of arm indices: they may be measured, and count. Or a decision
        class, all of whose sets do.
    n
        Number of arms, if some are in none of the super-arms given.
    tolerance
        Ends the iterations when the value is proved to be within this share of the least possible;
        if not given, 0.001 for super-arms and 0.02 for a class.
    iterations
        Limit of sweeps of exchanges.
    rng
        For a class: what decides where searches begin.
    """
    whole_class = isinstance(sets, Decision)
    wanted = (GENERATED if whole_class else GIVEN) if tolerance is None else tolerance
    gap, most = check_limits(wanted, iterations)
    if whole_class:
        chance = np.random.default_rng(None if rng is None else seed_from(rng))
        return _generated(sets, gap, most, chance)
    return _on_support(read_support(sets, n), gap, most)


def allocated_plan(
    found: Allocation, problem: Problem, basis: Matrix | None, source: str, design: str
) -> SupportPlan:
    """Return the plan that measures in the proportions found."""
    order, spanning = span_first(found.rows, problem.arms, basis)
    return SupportPlan(
        found.rows[order],
        problem.n,
        spanning=spanning,
        proportions=found.proportions[order],
        source=source,
        basis=basis,
        details={"design": design, **found.details()},
    )


def greatest_norm(support: Support) -> Callable[[Vector], float]:
    """Return the function p -> max x' Lambda_p^-1 x over a support; infinite where singular."""

    def value(proportions: Vector) -> float:
        W = support.inverse(proportions)
        return math.inf if W is None else float(support.forms(W).max())

    return value


def _on_support(support: Support, tolerance: float, iterations: int) -> Allocation:
    """Optimise over given super-arms, then leave out what the tolerance allows to."""
    m, bound = len(support.rows), float(support.dimension)
    found = d_optimal(support, np.full(m, 1 / m), tolerance / 2, iterations)
    value = greatest_norm(support)
    p = trimmed(found.proportions, value, max((1 + tolerance) * bound, found.value))
    top, held = value(p), p > 0
    return Allocation(support.rows[held], p[held], top, top, bound, tolerance, found.sweeps)


def _generated(
    decision: Decision, tolerance: float, iterations: int, rng: np.random.Generator
) -> Allocation:
    """Column generation: optimise, add sets of the class with greater norms, until there are none.

    It ends when no set is above (1 + tolerance) d: proved, or where no proof is near, found.
    """
    support = _start(decision, rng)
    search = _Search(decision, support.basis)
    bound = float(support.dimension)
    goal = (1 + tolerance) * bound
    p = np.full(len(support.rows), 1 / len(support.rows))
    used = 0
    while True:
        found = d_optimal(support, p, tolerance / 4, iterations - used)
        used += max(1, found.sweeps)
        held = found.proportions > 0
        support, p = support.only(held), found.proportions[held]
        seen = search.above(found.value, support, p, rng)
        if seen.value <= goal and not search.proves:  # look twice before it is believed
            seen = search.above(found.value, support, p, rng, effort=4)
        done = (seen.upper if search.proves else seen.value) <= goal
        if done or used >= iterations or not len(seen.rows):
            break
        support = support.plus(seen.rows[: _ADDED * decision.n])
        p = np.concatenate([p, np.zeros(len(support.rows) - len(p))])
    p, seen = _fewer(search, support, p, seen, goal, rng)
    rows = support.rows[p > 0]
    return Allocation(rows, p[p > 0], seen.value, seen.upper, bound, tolerance, used)


class _Seen(NamedTuple):
    """Sets of the class above a norm, greatest first; the greatest found; none is above `upper`."""

    rows: Rows
    value: float
    upper: float


def _fewer(
    search: _Search,
    support: Support,
    p: Vector,
    seen: _Seen,
    goal: float,
    rng: np.random.Generator,
) -> tuple[Vector, _Seen]:
    """Leave out small proportions while what is proved, or else found, stays within the goal."""
    proved = seen.upper <= goal

    def upper(proportions: Vector) -> float:
        W = support.inverse(proportions)
        return math.inf if W is None else search.upper(W)

    norm = upper if proved else greatest_norm(support)
    fewer = trimmed(p, norm, goal if proved else (goal + support.dimension) / 2)
    after = search.above(0.0, support, fewer, rng, effort=1 if proved else 4)
    worse = after.upper > goal if proved else after.value > max(goal, seen.value)
    return (p, seen) if worse else (fewer, after)


def _start(decision: Decision, rng: np.random.Generator) -> Support:
    """Return random sets that span what the class does."""
    support = support_of(random_support(decision, _START * decision.n, rng), decision.n)
    if isinstance(decision, TopK) and support.dimension < decision.n > decision.k:
        support = support.plus(spanning_sets(decision, rng))
        support = support_of(np.unique(support.rows, axis=0), decision.n)
    return support


class _Search:
    """The sets of a class with the greatest x'Wx: all of them compared, or local search."""

    def __init__(self, decision: Decision, basis: Matrix | None) -> None:
        self.decision, self.basis = decision, basis
        topk = isinstance(decision, TopK)
        size = decision.log_size
        listed = size + math.log(decision.k) <= _LISTED_TOPK if topk else size <= _LISTED
        self.rows = decision.listed.astype(np.int64) if listed else None
        self.proves = listed or topk
        """Whether `upper` comes near to the maximum."""

    def above(
        self,
        norm: float,
        support: Support,
        p: Vector,
        rng: np.random.Generator,
        effort: int = 1,
    ) -> _Seen:
        """Return sets above a norm: `effort` times as many searches as usual."""
        W = support.inverse(p)
        if W is None:
            return _Seen(support.rows[:0], math.inf, math.inf)
        rows = self._candidates(W, rng, effort) if self.rows is None else self.rows
        norms = forms(rows, W)
        greater = np.flatnonzero(norms > norm * (1 + 1e-9))
        greater = greater[np.argsort(-norms[greater], kind="stable")]
        value = max(float(norms.max()), float(support.forms(W).max()))
        return _Seen(rows[greater], value, max(value, self.upper(W)))

    def upper(self, W: Matrix) -> float:
        """Return what x'Wx of no set of the class exceeds."""
        if self.rows is not None:
            return float(forms(self.rows, W).max())
        widest = float(np.linalg.eigvalsh(W)[-1]) * self.decision.k * (1 + 1e-10)
        return min(widest, family_bound(W, self.decision, self.basis))

    def _candidates(self, W: Matrix, rng: np.random.Generator, effort: int) -> Rows:
        """Return different sets of great x'Wx."""
        decision, number = self.decision, effort * _SEARCHES * self.decision.n
        if isinstance(decision, TopK):
            found = [swap_search(W, decision.draw(rng)) for _ in range(number)]
        elif decision.signed:
            found = [_ascend(decision, W, start) for start in _starts(decision, W, number, rng)]
            found = sorted(_different(found), key=lambda members: -_square(W, members))
            best = found[: effort * _POLISHED]
            found += [_exchange(decision, W, members) for members in best]
        else:
            found = [decision.draw(rng) for _ in range(4 * number)]
        return as_rows(_different(found))


def _different(sets: list[Members]) -> list[Members]:
    """Return each set once, in an order that does not depend on theirs."""
    return [np.array(members) for members in sorted({tuple(s.tolist()) for s in sets})]


def _starts(
    decision: Decision, W: Matrix, number: int, rng: np.random.Generator
) -> Iterator[Members]:
    """Yield random sets, every other one the heaviest for weights that vary most where W does."""
    for i in range(number):
        yield decision.best(W @ rng.standard_normal(decision.n)) if i % 2 else decision.draw(rng)


def _ascend(decision: Decision, W: Matrix, members: Members) -> Members:
    """Go on to the heaviest set for weights that are the slope of x'Wx, while one leads higher.

    On 0/1 vectors x'Wx = x'(W - sD)x + s D'x, D the diagonal of W: the greater s is, the less the
    slope keeps to the members that there are.
    """
    value, own = _square(W, members), np.diagonal(W)
    while True:
        towards = W[:, members].sum(axis=1)
        for s in _BOLD:
            weights = towards + s / 2 * own
            weights[members] -= s * own[members]
            trial = decision.best(weights)
            reached = _square(W, trial)
            if reached > value * (1 + 1e-12):
                members, value = trial, reached
                break
        else:
            return members


def _exchange(decision: Decision, W: Matrix, members: Members) -> Members:
    """Go on to the first near set that is greater, while there is one."""
    value = _square(W, members)
    while True:
        for near in islice(decision.exchanges(members), _NEAR):
            reached = _square(W, near)
            if reached > value * (1 + 1e-12):
                members, value = near, reached
                break
        else:
            return members


def _square(W: Matrix, members: Members) -> float:
    """x'Wx."""
    return float(W[np.ix_(members, members)].sum())
