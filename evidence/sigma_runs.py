"""Unknown sigma: answers that hold without a stated sigma.

The rule is told that noise is normal, and nothing of its standard deviation, 1 in truth. Hard
instances first: the wrong answers among certified ones (delta = 0.05), for the default, planned
looks, focused elimination and independent intervals. Beside them what must not pass: half the
radius, and the plain estimate of sigma at every look in the place of a bound (delta = 0.01). Then
the bound alone, at level 0.01: in how many runs is sigma beyond it at some look; and beyond a
chi-square quantile whose level is used anew at every look, which must not pass. Last the price, as
mean pulls beside those where sigma is stated.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from guarantees import Hunt
from sigma_cases import APART, HARD, exceeded, hunt_unknown, plugging_in
from support import most_wrong, with_halved_radius

import superarm as sa

TITLE = "Unknown sigma"
HEADER = ("case", "runs", "mean pulls", "wrong", "wrong at most", "99 % interval")
RUNS, PRICE_RUNS = 2_000, 20

RULES = {
    "planned looks": sa.Certified(
        schedule=sa.Planned(tuple(20 * round(1.3**j) for j in range(3, 24)))
    ),
    "focused": sa.Focused(),
    "icb": sa.ICB(schedule=sa.Geometric(1.1)),
}
PRICE = {(10, 5, 0.5): 1.45, (36, 10, 0.5): 1.3, (100, 10, 0.5): 1.25}
"""(n, k, gap): the most that it may cost, as a factor of pulls."""


def jobs():
    """Name and function of each run; a function returns its row and whether the claim holds."""
    for name in HARD:
        yield f"unknown sigma on {name}", partial(right, name)
    for rule in RULES:
        yield f"unknown sigma, {rule}", partial(right, "k=1, n=4", rule)
    yield "unknown sigma, halved radius", halved
    yield "unknown sigma, plain estimate", plain
    yield "bound on sigma", partial(bound, 0)
    yield "bound on sigma, level used anew", partial(bound, 1)
    for case in PRICE:
        yield f"unknown sigma, pulls for n, k, gap = {case}", partial(price, case)


def right(name, rule=None):
    """The rule as it is."""
    found = hunt_unknown(name, RUNS, rule=RULES.get(rule))
    holds = found.holds and found.wrong <= found.delta * found.runs
    return _row(name if rule is None else f"{name}, {rule}", found), holds


def halved():
    """Half the radius: the claim is that the test sees it."""
    found = hunt_unknown(
        "late", RUNS, rule=with_halved_radius(sa.Certified(aim=40, schedule=APART))
    )
    return _row("late, radius halved", found), not found.holds


def plain():
    """An estimate in the place of a bound: the claim is that the test sees it."""
    found = hunt_unknown(
        "k=1", RUNS, rule=plugging_in(sa.Certified(aim=40, schedule=APART)), delta=0.01
    )
    return _row("k=1, plain estimate of sigma, delta 0.01", found), not found.holds


def bound(which):
    """Runs in which sigma is beyond the bound at any of 150 looks; for a level used anew, seen."""
    runs, delta = 20_000, 0.01
    found = Hunt(runs, exceeded(runs, delta)[which], runs, 3_000, delta)
    what = "sigma beyond the bound at some look, level 0.01"
    what += ", used anew at every look" if which else ""
    return _row(what, found), found.holds != bool(which)


def price(case):
    """Mean pulls, and the same with sigma stated."""
    n, k, gap = case
    pulls, wrong = np.zeros(2), 0
    for seed in range(PRICE_RUNS):
        means = sa.synthetic(n, k, gap, rng=seed)
        world = sa.environment(means, sa.gaussian(1.0))
        for i, noise in enumerate((sa.gaussian(), sa.gaussian(1.0))):
            problem = sa.Problem(n, k, noise, delta=0.05)
            found = sa.simulate(problem, sa.Certified(), world, rng=seed)
            pulls[i] += found.pulls / PRICE_RUNS
            wrong += found.wrong(0.0)
    ratio = pulls[0] / pulls[1]
    what = (
        f"n = {n}, k = {k}, gap {gap}: {ratio:.2f} times the {pulls[1]:,.0f} pulls with sigma "
        f"stated (at most {PRICE[case]})"
    )
    row = (what, str(PRICE_RUNS), f"{pulls[0]:,.0f}", str(wrong), "0", "")
    return row, ratio <= PRICE[case] and wrong == 0


def _row(what, found):
    low, high = found.interval
    return (
        what,
        f"{found.runs:,}",
        f"{found.pulls:,.0f}",
        str(found.wrong),
        str(most_wrong(found.runs, found.delta)),
        f"{100 * low:.2f} .. {100 * high:.2f} %",
    )
