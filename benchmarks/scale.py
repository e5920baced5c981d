"""How every step of the default grows from ten arms to a million (k = n/20).

Normal noise, four base blocks: laying out the design, simulating three cycles of pulls, the
estimate, a look (epsilon 0.1), and a whole run to a certified answer (epsilon 0). Every one of them
is to grow about like n, or n log n; a fitted exponent says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from common import Options, Row, clock, exponent, seconds, tell
from growth import last_step, listed

import superarm as sa
from superarm.phase import Phase
from superarm.tally import Tally

BLOCKS, CYCLES = 4, 3
STEEPEST = 1.5
"""Between the two largest sizes; n log n fits exponents of 1.1 or so there."""
REPEATED = 100_000
"""Up to so many arms each step is timed three times."""

STEPS = {
    "design": "design: base blocks found by swaps",
    "pulls": f"simulation: pulls of {CYCLES} cycles, {CYCLES * BLOCKS} n of them",
    "estimate": "estimate, by FFT",
    "look": "look of certified, all levels",
    "run": "simulate: design, pulls, looks, to a certified answer",
}


def rows(options: Options) -> list[Row]:
    sizes = (10, 30) if options.quick else (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    taken: dict[str, list[float]] = {step: [] for step in STEPS}
    for n in sizes:
        tell(f"every step with {n:,} arms")
        repeats = 3 if n <= REPEATED else 1
        for step, call in calls(n).items():
            if n == sizes[0]:
                call()  # compiles
            taken[step].append(min(clock(call) for _ in range(repeats)))
    return [row(STEPS[step], sizes, times, options) for step, times in taken.items()]


def calls(n: int) -> dict[str, Callable[[], object]]:
    k = max(2, n // 20)
    problem = sa.Problem(n, k, sa.gaussian(1.0), epsilon=0.1)
    world = sa.environment(sa.synthetic(n, k, 0.5, rng=1), problem.noise)
    design = sa.Cyclic(BLOCKS)
    rule = sa.Certified(design=design)
    phase = rule.first(problem, 1)
    assert isinstance(phase, Phase)
    tally = Tally(phase.plan.size)
    t = CYCLES * phase.plan.size
    world.add(tally, phase.plan, 0, t, np.random.default_rng(1))
    info = phase.information(t)
    assert info is not None

    def pulls() -> None:
        fresh = Tally(phase.plan.size)
        world.add(fresh, phase.plan, 0, t, np.random.default_rng(1))

    def run() -> None:
        exact = sa.Problem(n, k, sa.gaussian(1.0), epsilon=0.0)
        if not sa.simulate(exact, sa.Certified(design=design), world, rng=1).verdict.certified:
            raise RuntimeError(f"no certified answer for {n:,} arms")

    return {
        "design": lambda: design.plan(problem, np.random.default_rng(1)),
        "pulls": pulls,
        "estimate": partial(info.estimate, phase.plan, tally),
        "look": partial(rule.look, problem, phase, tally, CYCLES),
        "run": run,
    }


def row(what: str, sizes: Sequence[int], taken: Sequence[float], options: Options) -> Row:
    times = ", ".join(map(seconds, taken))
    steepness = exponent(sizes[-2:], taken[-2:])
    met = None if options.quick else steepness <= STEEPEST
    return Row(
        f"{what}; n = {listed(sizes)}",
        f"{times}; n^{exponent(sizes, taken):.2f} ({last_step(sizes, taken)})",
        "" if options.quick else f"<= n^{STEEPEST:g} at the end",
        met=met,
    )
