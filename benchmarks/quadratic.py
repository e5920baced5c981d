"""Quadratic maximisation: how good, how near to proved, how fast.

W is the inverse information of a number of random sets, 2n (near-singular) to 5n.
"""

from __future__ import annotations

import sys
from pathlib import Path

from common import Options, Row, clock, in_turns, seconds, tell

from superarm.quadratic import (
    maximise,
    multistart,
    quadratic_maximum,
    sdp_bound,
    shift_bound,
    spectral_bound,
    swap_search,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from peeling import random_weights
from quadratics import information_inverse, value

GOOD = ((24, 12), (50, 10), (50, 25), (100, 50))
GOOD_LIMIT = 10e-3
PROVED = (  # n, k, sets in multiples of n, limit
    (24, 12, 5, 50e-3),
    (24, 12, 2, 50e-3),
    (36, 10, 2, 0.3),
    (50, 10, 5, 1.0),
    (60, 10, 4, 30.0),
    (50, 25, 5, None),
    (111, 10, 5, None),
    (100, 50, 5, None),
)
NEAR = ((24, 10), (36, 10), (60, 10), (100, 10))
SHIFT_LIMIT, SDP_LIMIT = 0.12, 0.02
SWAP_LIMIT = 5e-3


def rows(options: Options) -> list[Row]:
    quick = options.quick
    seeds = range(1) if quick else range(6)
    return [
        *(good(n, k, multiple, seeds, quick) for n, k in GOOD for multiple in (5, 2)),
        *(proved(*case, seeds, quick) for case in PROVED if not (quick and case[1] > 12)),
        *(near(n, k, multiple, seeds) for n, k in NEAR for multiple in (5, 2)),
        large(quick),
    ]


def good(n: int, k: int, multiple: int, seeds: range, quick: bool) -> Row:
    """Multistart against the best value known: of 1,000 starts, or proved where that is quick."""
    tell(f"multistart, ({n}, {k}), {multiple}n sets")
    found, times = 0, []
    for seed in seeds:
        W = information_inverse(n, k, multiple, seed)
        start = quadratic_maximum(W, k).members
        known = max(value(W, multistart(W, start, 100 if quick else 1000, s)) for s in (1, 2))
        if n <= 50:
            known = max(known, quadratic_maximum(W, k, "exact").value)
        quadratic_maximum(W, k, "multistart")
        taken = in_turns({"": lambda W=W: quadratic_maximum(W, k, "multistart")}, 3)[""]
        times.append(taken.least)
        found += quadratic_maximum(W, k, "multistart").value >= known * (1 - 1e-9)
    slowest = max(times)
    return Row(
        f"multistart, ({n}, {k}), {multiple}n sets: slowest; finds the best known value",
        f"{seconds(slowest)}; {found} of {len(seeds)}",
        f"<= {seconds(GOOD_LIMIT)}; all",
        met=slowest <= GOOD_LIMIT and found == len(seeds),
    )


def proved(n: int, k: int, multiple: int, limit: float | None, seeds: range, quick: bool) -> Row:
    tell(f"exact, ({n}, {k}), {multiple}n sets")
    times = []
    for seed in list(seeds)[: 2 if n == 100 else None]:
        W = information_inverse(n, k, multiple, seed)
        if not times:
            maximise(W, k, "exact", seconds=0.1)  # compiles
        runs = [maximise(W, k, "exact") for _ in range(1 if quick or n == 100 else 3)]
        assert all(run.status == "optimal" for run in runs)
        times.append(min(run.seconds for run in runs))
    return Row(
        f"exact, ({n}, {k}), {multiple}n sets: slowest of {len(times)}, proved",
        f"{seconds(max(times))} (fastest {seconds(min(times))})",
        "" if limit is None else f"<= {seconds(limit)}",
        met=None if limit is None else max(times) <= limit,
    )


def near(n: int, k: int, multiple: int, seeds: range) -> Row:
    """How far the bounds are above the maximum."""
    tell(f"bounds, ({n}, {k}), {multiple}n sets")
    above: dict[str, list[float]] = {}
    taken: dict[str, list[float]] = {}
    for seed in seeds:
        W = information_inverse(n, k, multiple, seed)
        maximum = quadratic_maximum(W, k, "exact").value
        for bound in (spectral_bound, shift_bound, sdp_bound):
            if seed == 0:
                bound(W, k)
            above.setdefault(bound.__name__, []).append(bound(W, k) / maximum - 1)
            taken.setdefault(bound.__name__, []).append(clock(lambda b=bound, W=W: b(W, k)))
    worst = {name: max(values) for name, values in above.items()}
    assert min(min(values) for values in above.values()) >= 0
    return Row(
        f"bounds, ({n}, {k}), {multiple}n sets: spectral, shift, sdp; furthest above the maximum",
        ", ".join(f"{worst[name]:.1%} in {seconds(max(taken[name]))}" for name in worst),
        f"any, <= {SHIFT_LIMIT:.0%}, <= {SDP_LIMIT:.0%}",
        met=worst["shift_bound"] <= SHIFT_LIMIT and worst["sdp_bound"] <= SDP_LIMIT,
    )


def large(quick: bool) -> Row:
    n, k = (200, 10) if quick else (1000, 50)
    tell(f"peeling and swaps, n={n}")
    W = random_weights(n)
    times = in_turns(
        {"": lambda: swap_search(W, quadratic_maximum(W, k).members)}, 1 if quick else 9
    )[""]
    return Row(
        f"peeling, then swaps, n={n}, k={k}",
        str(times),
        f"<= {seconds(SWAP_LIMIT)}",
        met=times.least <= SWAP_LIMIT,
    )
