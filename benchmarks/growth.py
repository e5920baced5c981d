"""How the time of a look, and of its parts, grows with the number of arms (k = n/2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from common import Options, Row, exponent, in_turns, seconds, tell
from peeling import random_weights

import superarm as sa
from superarm import reference
from superarm.estimate import Dense, gram
from superarm.quadratic.densest import greedy_peeling
from superarm.tally import Tally

Call = Callable[[], object]


def rows(options: Options) -> list[Row]:
    quick = options.quick
    sizes = (10, 20) if quick else (10, 30, 100, 300)
    few = (8, 10) if quick else (10, 12, 14, 16, 18, 20)
    repeats = 1 if quick else 5
    table = [
        look_row(rule, sizes, repeats, whole=whole)
        for rule in (sa.SAQM(), sa.ICB(), sa.SAFOA())
        for whole in (False, True)
    ]
    table.append(look_row(sa.Exhaustive(), few, repeats, whole=False, sets=True))
    table.append(inverse_row(sizes, repeats))
    table.append(peeling_row(sizes if quick else (*sizes, 1000), repeats))
    return table


def look_row(
    rule: sa.SAQM | sa.ICB | sa.SAFOA | sa.Exhaustive,
    sizes: Sequence[int],
    repeats: int,
    *,
    whole: bool,
    sets: bool = False,
) -> Row:
    """Time Static.look, inside a cycle of the plan or after whole cycles; reference at sizes[0]."""
    where = "after whole cycles (A is known)" if whole else "inside a cycle"
    tell(f"growth of a look of {rule.name}, {where}")
    calls: dict[str, Call] = {}
    for n in sizes:
        problem = sa.Problem(n, n // 2, sa.gaussian(1.0), epsilon=0.1)
        phase, tally = measured(problem, rule, whole)
        calls[str(n)] = partial(rule.look, problem, phase, tally, 1)
        calls.setdefault("reference", look_of_reference(problem, rule, phase, tally))
    times = in_turns(calls, repeats)
    ours = [times[str(n)].least for n in sizes]
    fit = f"n^{exponent(sizes, ours):.1f} ({last_step(sizes, ours)})"
    if sets:
        numbers = [math.comb(n, n // 2) for n in sizes]
        last = exponent(numbers[-2:], ours[-2:])
        fit = f"C(n,k)^{exponent(numbers, ours):.2f} (^{last:.2f} from {sizes[-2]} on)"
    ratio = times["reference"].least / ours[0]
    what = f"growth: a look of {rule.name}, {where}, n = {listed(sizes)}"
    return Row(
        what, f"{', '.join(map(seconds, ours))}; {fit}", ratios=(ratio,), note=f"at n={sizes[0]}"
    )


def measured(problem: sa.Problem, rule: sa.SAQM, whole: bool) -> tuple[object, Tally]:
    """Return the rule's phase, and a tally of 20 cycles of its plan (and part of another)."""
    phase = rule.first(problem, 1)
    world = sa.environment(np.linspace(0.0, 1.0, problem.n), problem.noise)
    tally = Tally(phase.plan.size)
    t = 20 * phase.plan.size + (0 if whole else problem.n // 2)
    world.add(tally, phase.plan, 0, t, np.random.default_rng(1))
    return phase, tally


def look_of_reference(problem: sa.Problem, rule: sa.SAQM, phase: object, tally: Tally) -> Call:
    """Return a look of reference, given how often each super-arm was pulled and its sum."""
    n, k, t, epsilon = problem.n, problem.k, tally.pulls, problem.epsilon
    support = [tuple(map(int, row)) for row in phase.plan.support]
    chis = [reference.indicator(n, members) for members in support]
    draws = [support[i] for i in phase.rng(1).integers(len(support), size=n)]
    counts, totals = tally.counts, tally.totals
    sides = {
        "saqm": partial(reference.saqm_sides, alpha="certified"),
        "icb": reference.icb_sides,
        "sa-foa": partial(reference.sa_foa_sides, draws=draws),
        "exhaustive": reference.exhaustive_sides,
    }[rule.name]

    def look() -> reference.Sides:
        A = sum(c * np.outer(chi, chi) for c, chi in zip(counts, chis, strict=True))
        b = sum(s * chi for s, chi in zip(totals, chis, strict=True))
        inverse = np.linalg.inv(A)
        if rule.name == "icb":
            C = reference.independent_constant(t, 1.0, n, problem.delta)
        else:
            C = reference.ellipsoid_constant(t, 1.0, n, k, problem.delta)
        return sides(np.linalg.solve(A, b), (inverse + inverse.T) / 2, k, epsilon, C)

    return look


def inverse_row(sizes: Sequence[int], repeats: int) -> Row:
    tell("growth of the inverse")
    matrices = {}
    for n in sizes:
        rng = np.random.default_rng(n)
        rows = np.array([np.sort(rng.choice(n, n // 2, replace=False)) for _ in range(8 * n)])
        matrices[n] = gram(rows, np.ones(len(rows), np.int64), n)
    ours = {f"ours {n}": lambda A=A: Dense(A).inverse() for n, A in matrices.items()}
    slow = {f"numpy {n}": lambda A=A: np.linalg.inv(A) for n, A in matrices.items()}
    times = in_turns({**ours, **slow}, repeats)
    taken = [times[f"ours {n}"].least for n in sizes]
    ratios = [times[f"numpy {n}"].least / times[f"ours {n}"].least for n in sizes]
    return Row(
        f"growth: Cholesky factor and inverse, n = {listed(sizes)} (ratios to numpy.linalg.inv)",
        figures(sizes, taken),
        ratios=tuple(ratios),
    )


def peeling_row(sizes: Sequence[int], repeats: int) -> Row:
    tell("growth of peeling")
    matrices = {n: random_weights(n) for n in sizes}
    calls: dict[str, Call] = {
        str(n): partial(greedy_peeling, W, n // 2) for n, W in matrices.items()
    }
    small = sizes[1]
    calls["reference"] = partial(reference.greedy_peeling, matrices[small], small // 2)
    times = in_turns(calls, repeats)
    taken = [times[str(n)].least for n in sizes]
    return Row(
        f"growth: greedy peeling, n = {listed(sizes)}",
        figures(sizes, taken),
        ratios=(times["reference"].least / taken[1],),
        note=f"at n={small}",
    )


def figures(sizes: Sequence[int], taken: Sequence[float]) -> str:
    fit = f"n^{exponent(sizes, taken):.1f} ({last_step(sizes, taken)})"
    return f"{', '.join(map(seconds, taken))}; {fit}"


def last_step(sizes: Sequence[int], taken: Sequence[float]) -> str:
    """The exponent between the two largest sizes, where fixed costs matter least."""
    return f"n^{exponent(sizes[-2:], taken[-2:]):.1f} from {sizes[-2]} on"


def listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))
