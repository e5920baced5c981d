"""Rules that need fewer pulls: calibrated radii, elimination in phases, CSAR.

Hard instances first, as under "The certified default": the wrong answers among certified ones, and
with a radius deliberately halved, to see that the test can fail (CSAR, whose intervals are wider,
at delta = 0.001). Then the pulls, as the mean of 20 runs at delta = 0.05: the crowds of the paper
under normal noise with sigma = sqrt(10)/2 (k = 10, epsilon = 0.5), and synthetic instances with
that gap at rank k (sigma = 1, epsilon = 0, `synthetic(n, k, gap, rng=0)` to `rng=19`), beside the
bound on isotropic designs, kl(delta, 1-delta) T. What was simulated for a calibrated radius is not
taken from a cache: seconds hold it. With epsilon = 0 the calibrated Focused has the levels radius.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from functools import partial

import numpy as np
from certified_cases import CROWD, HARD, hunt_certified, with_halved_scale
from support import most_wrong

import superarm as sa
from superarm import calibration
from superarm.datasets import crowd as crowd_means
from superarm.theory.lower_bound import isotropic_bound

TITLE = "Fewer pulls"
HEADER = (
    "rule",
    "case",
    "runs",
    "mean pulls",
    "pulls at most",
    "/ bound",
    "wrong",
    "wrong at most",
    "99 % interval",
    "seconds",
)
RUNS, TABLE_RUNS = 2_000, 20
DELTA = 0.05
SHARE = 0.65  # of the pulls that the levels radius may take on the crowds

RULES = {
    "calibrated": sa.Certified(radius="calibrated"),
    "focused": sa.Focused(),
    "focused, calibrated": sa.Focused(radius="calibrated"),
    "csar": sa.CSAR(),
}
GAUSSIAN = [name for name, case in HARD.items() if isinstance(case.noise, sa.noise.Gaussian)]
WITHOUT_MATRIX = ("uneven gaps", "difference set")  # CSAR: none of order 2k = 6
HUNTS = {
    "calibrated": GAUSSIAN,
    "focused": list(HARD),
    "focused, calibrated": GAUSSIAN,
    "csar": [name for name in HARD if name not in WITHOUT_MATRIX],
}
HALVED = {name: (DELTA, RUNS) for name in RULES} | {"csar": (0.001, 15 * RUNS)}

FOCUSED = {(100, 10, 0.1): 58_000, (500, 10, 0.1): 165_000, (200, 20, 0.1): 68_000}
SYNTHETIC = {  # rule and (n, k, gap): most pulls on average
    **{
        ("calibrated", case): most for case, most in {(10, 5, 0.5): 600, (10, 5, 0.1): 13e3}.items()
    },
    **{("focused", case): most for case, most in FOCUSED.items()},
    **{("focused, calibrated", case): 0.7 * most for case, most in FOCUSED.items()},
    ("focused", (100, 10, 0.5)): 3_100,
}


def jobs():
    """Name and function of each run; a function returns its row and whether the claim holds."""
    for rule, names in HUNTS.items():
        for name in names:
            yield f"{rule} on {name}", partial(right, rule, name)
    for rule in RULES:
        yield f"{rule} on k=1, halved radius", partial(caught, rule)
    for quiz in CROWD:
        yield f"calibrated on {quiz}, normal noise", partial(crowd, quiz)
    for rule, case in SYNTHETIC:
        yield f"{rule} on n, k, gap = {case}", partial(synthetic, rule, case)


def right(rule, name):
    """The rule as it is."""
    started = _afresh()
    found = hunt_certified(name, RUNS, rule=RULES[rule])
    holds = found.holds and found.wrong <= found.delta * found.runs
    return _hunted(rule, name, found, started), holds


def caught(rule):
    """The rule with half its radius: the claim is that the test sees it."""
    delta, runs = HALVED[rule]
    started = _afresh()
    found = hunt_certified("k=1", runs, rule=with_halved_scale(RULES[rule]), delta=delta)
    what = f"k=1, radius halved, delta = {delta:g}"
    return _hunted(rule, what, found, started), not found.holds


def crowd(quiz):
    """Mean pulls on a crowd of the paper, were its totals normal."""
    means, noise = crowd_means(quiz), sa.gaussian(math.sqrt(10) / 2)
    problem = sa.Problem(means.arms, 10, noise, epsilon=0.5, delta=DELTA)
    started = _afresh()
    world = sa.environment(means.means, noise)
    found = sa.replicate(problem, RULES["calibrated"], world, TABLE_RUNS, rng=1)
    ratio = isotropic_bound(problem, world.means).ratio(found.pulls_mean)
    what, most = f"{quiz} ({problem.n} workers)", SHARE * CROWD[quiz][0]
    row = _counted("calibrated", what, found.pulls_mean, most, ratio, found.wrong, started)
    return row, found.pulls_mean <= most and found.wrong == 0


def synthetic(rule, case):
    """Mean pulls on instances with a stated gap."""
    n, k, gap = case
    problem = sa.Problem(n, k, sa.gaussian(1.0), delta=DELTA)
    started, pulls, wrong = _afresh(), [], 0
    for seed in range(TABLE_RUNS):
        world = sa.environment(sa.synthetic(n, k, gap, rng=seed), problem.noise)
        run = sa.simulate(problem, RULES[rule], world, rng=seed)
        pulls.append(run.pulls)
        wrong += run.wrong(0.0)
    mean, most = float(np.mean(pulls)), SYNTHETIC[rule, case]
    ratio = isotropic_bound(problem, world.means).ratio(mean)  # the gap alone counts
    what = f"n = {n}, k = {k}, gap {gap}"
    row = _counted(rule, what, mean, most, ratio, wrong, started)
    return row, mean <= most and wrong == 0


def _afresh():
    """Forget what was simulated for other jobs; return the time."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="superarm-evidence-")
    calibration._cached.cache_clear()
    return time.perf_counter()


def _hunted(rule, what, found, started):
    low, high = found.interval
    return (
        rule,
        what,
        f"{found.runs:,}",
        f"{found.pulls:,.0f}",
        "",
        "",
        str(found.wrong),
        str(most_wrong(found.runs, found.delta)),
        f"{100 * low:.2f} .. {100 * high:.2f} %",
        f"{time.perf_counter() - started:.0f}",
    )


def _counted(rule, what, mean, most, ratio, wrong, started):
    runs, seconds = str(TABLE_RUNS), f"{time.perf_counter() - started:.0f}"
    row = (rule, what, runs, f"{mean:,.0f}", f"{most:,.0f}", f"{ratio:.1f}")
    return (*row, str(wrong), "0", "", seconds)
