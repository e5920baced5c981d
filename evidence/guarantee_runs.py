"""Certified answers are wrong at most as often as delta says.

Each rule on five kinds of hard instance, and on spanning trees, paths and matchings (certified
SA-FOA on four kinds), with a look after every pull; and, to see that the test can fail, with a
radius deliberately halved: exhaustive and certified SA-FOA at delta = 0.05, and the two wider rules
at delta = 0.0005, where halving shows in them. At least 80 % of the runs must stop. A rule
that errs with probability delta has more errors than "at most" less than once in a million; the
interval is Clopper-Pearson's, 99 %.
"""

from __future__ import annotations

from functools import partial

from guarantees import CLASSES, KINDS, RULES, hunt
from support import most_wrong, with_halved_radius

import superarm as sa

TITLE = "Guarantees"
HEADER = ("rule", "instance", "delta", "runs", "mean pulls", "wrong", "at most", "99 % interval")
RUNS = 2000
SLOW_RUNS = 600  # where looks are slower: of other classes, and all of them in full
LEAST_STOPPED = 0.8  # share of runs: a rule that meets the limit of pulls is not put to the test
SAFOA = "sa-foa, certified"
EVERY_RULE = {**RULES, SAFOA: sa.SAFOA(certified=True)}


def jobs():
    """Name and function of each run; a function returns its row and whether the claim holds."""
    for name in RULES:
        for kind in {**KINDS, **CLASSES}:
            yield f"{name} on {kind}", partial(right, name, kind)
    for kind in ("k=1", "k=n-1", "ties", "uneven"):
        yield f"certified sa-foa on {kind}", partial(right, SAFOA, kind)
    for name, delta, runs, most in (
        ("exhaustive", 0.05, RUNS, 50_000),
        (SAFOA, 0.05, RUNS, 50_000),
        ("saqm", 0.0005, 60_000, 200),
        ("icb", 0.0005, 60_000, 200),
    ):
        yield f"{name}, halved radius", partial(caught, name, delta, runs, most)


def right(name, kind):
    """The rule as it is."""
    runs = RUNS if kind in KINDS and name in RULES else SLOW_RUNS
    found = hunt(EVERY_RULE[name], {**KINDS, **CLASSES}[kind], runs)
    holds = found.holds and found.wrong <= found.delta * found.runs
    return _row(name, kind, found), holds and found.stopped >= LEAST_STOPPED * found.runs


def caught(name, delta, runs, most):
    """The rule with half its radius: the claim is that the test sees it."""
    rule = with_halved_radius(EVERY_RULE[name])
    found = hunt(rule, KINDS["k=1"], runs, delta=delta, max_pulls=most)
    return _row(f"{name}, radius halved", "k=1", found), not found.holds


def _row(name, kind, found):
    low, high = found.interval
    return (
        name,
        kind,
        f"{found.delta:g}",
        f"{found.runs:,}",
        f"{found.pulls:,.0f}",
        str(found.wrong),
        str(most_wrong(found.runs, found.delta)),
        f"{100 * low:.2f} .. {100 * high:.2f} %",
    )
