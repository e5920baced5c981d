"""Quadratic maximisation against Gurobi, SCIP and HiGHS.

The same matrices for all (the inverse information of 5n random sets), one thread each, and at most
`--limit` seconds. Two things are compared: the time until there is a set as good as the one that
our multistart returns, and the time until it is proved that no set is better. Where that is not
proved in time, the gap is what is left between the best set and the bound on all sets.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Options, Row, in_turns, now, seconds, tell
from mip import SOLVERS, Solved, Solver, missing

from superarm.quadratic import Maximisation, maximise

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from quadratics import information_inverse

CASES = (
    (24, 12),
    (36, 10),
    (50, 10),
    (50, 25),
    (60, 10),
    (111, 10),
    (100, 50),
    (200, 20),
)
SETS = 5
"""Super-arms that W is made of, in multiples of n."""
MOST_REPEATED = 1.0
"""What takes fewer seconds is timed three times, and the least counts."""


def rows(options: Options) -> list[Row]:
    lacking = {name: missing(package) for name, (package, _) in SOLVERS.items()}
    table = [Row(name, why) for name, why in lacking.items() if why]
    there = {name: solver for name, (_, solver) in SOLVERS.items() if not lacking[name]}
    for n, k in ((8, 3),) if options.quick else CASES:
        table += case(n, k, there, options)
    return table


def case(n: int, k: int, there: dict[str, Solver], options: Options) -> list[Row]:
    tell(f"({n}, {k}): exact, multistart")
    W = information_inverse(n, k, SETS, 0)
    maximise(W, k, "exact", seconds=0.1)  # compiles
    ours = repeated(lambda: exact(W, k, options.limit))
    climb = in_turns({"": lambda: maximise(W, k, "multistart", "spectral")}, 3)[""].least
    value = maximise(W, k, "multistart", "spectral").value
    name = f"({n}, {k})"
    left = ours.upper_bound / ours.value - 1
    ending = "proved" if ours.status == "optimal" else f"{left:.1%} left"
    best = ours.value <= value * (1 + 1e-6)
    share = "the best set" if best else f"{1 - value / ours.value:.1%} below exact's"
    found = f"multistart {seconds(climb)}, {share}; exact {ending} after {seconds(ours.seconds)}"
    table = [Row(f"{name}: ours", found)]
    for other, solver in there.items():
        tell(f"{name}: {other}")
        try:
            theirs = repeated(lambda solver=solver: solver(W, k, options.limit))
        except Exception as error:  # a licence that has run out, say: the others go on
            table.append(Row(f"{name}: {other}", f"failed: {error}".splitlines()[0]))
            continue
        check(ours, theirs, f"{other} on {name}")
        what = f"{name}: {other}, value and proof within {options.limit:g} s"
        table.append(compared(what, ours, climb, value, theirs))
    return table


def exact(W: np.ndarray, k: int, limit: float) -> Maximisation:
    """Maximise, and say how long it took in the processor's time, as for the others."""
    started = now()
    found = maximise(W, k, "exact", seconds=limit)
    return replace(found, seconds=now() - started)


def repeated(solve):  # type: ignore[no-untyped-def]
    """Solve once, or if that is quick three times, and return the quickest."""
    runs = [solve()]
    while runs[0].seconds < MOST_REPEATED and len(runs) < 3:
        runs.append(solve())
    return min(runs, key=lambda run: run.seconds)


def check(ours: Maximisation, theirs: Solved, who: str) -> None:
    """Raise where one side's set is above the other's bound on all sets."""
    rounding = 1e-6 * abs(ours.value)
    if theirs.value > ours.upper_bound + rounding or ours.value > theirs.bound + rounding:
        raise RuntimeError(
            f"{who} has {theirs.value} <= {theirs.bound}, superarm {ours.value} "
            f"<= {ours.upper_bound}: one of the bounds is wrong"
        )


def compared(what: str, ours: Maximisation, climb: float, value: float, theirs: Solved) -> Row:
    """Say when the other solver had our value, and its proof or what it left open."""
    at = theirs.reached(value)
    had = f"our value after {seconds(at)}" if at is not None else short(theirs, value)
    ratios = [(theirs.seconds if at is None else at) / climb]
    notes = ["at least" if at is None else ""]
    if theirs.proved:
        ending = f"proved after {seconds(theirs.seconds)}"
    else:
        ending = f"{theirs.gap:.1%} left after {seconds(theirs.seconds)}"
    if theirs.proved or ours.status == "optimal":
        ratios.append(theirs.seconds / ours.seconds)
        notes.append("" if theirs.proved else "at least")
    else:
        ratios.append(theirs.gap / (ours.upper_bound / ours.value - 1))
        notes.append("of gaps")
    note = f"({', '.join(word or 'measured' for word in notes)})" if any(notes) else ""
    return Row(what, f"{had}; {ending}", ratios=tuple(ratios), note=note)


def short(theirs: Solved, value: float) -> str:
    """How far the other solver's best set is below ours."""
    if not np.isfinite(theirs.value):
        return "no set"
    return f"its best set is {1 - theirs.value / value:.1%} below ours"
