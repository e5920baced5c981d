"""The certified default: answers that hold, few pulls, a million arms.

Hard instances first, under every kind of noise: the wrong answers among certified ones, as under
"Guarantees", with looks at whole cycles, at planned numbers of pulls, and after every pull; and
with a radius deliberately halved, to see that the test can fail. After a fixed budget, an answer is
wrong when it is further from the best than the epsilon reached. Then the pulls, as the mean over
runs at delta = 0.05, beside the bound on isotropic designs, kl(delta, 1-delta) T: the crowds of the
paper (labels, k = 10, epsilon = 0.5), and synthetic instances with that gap at rank k (sigma = 1,
epsilon = 0; each run on an instance of its own). Last a million arms, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import numpy as np
from certified_cases import CROWD, HARD, SYNTHETIC, crowd_case, hunt_certified, synthetic_pulls
from guarantees import DELTA, Hunt
from support import most_wrong, with_halved_radius

import superarm as sa
from superarm.theory.lower_bound import isotropic_bound

TITLE = "The certified default"
HEADER = (
    "case",
    "runs",
    "mean pulls",
    "pulls at most",
    "/ bound",
    "wrong",
    "wrong at most",
    "99 % interval",
)
RUNS, TABLE_RUNS = 2_000, 20
BUDGET = 41
SECONDS, GIBIBYTES = 120, 4

LOOKS = {
    "planned looks": sa.Planned(tuple(20 * round(1.3**j) for j in range(3, 24))),
    "a look after every pull": sa.Every(),
}

LARGE = """
import json, resource, time
import superarm as sa

started = time.perf_counter()
means = sa.synthetic(1_000_000, 1_000, 0.1, rng=1)
problem = sa.Problem(1_000_000, 1_000, sa.gaussian(1.0), delta=0.05)
run = sa.simulate(problem, sa.Certified(), sa.environment(means, problem.noise), rng=1)
print(json.dumps({
    "pulls": run.pulls,
    "wrong": run.regret > 0 or not run.verdict.certified,
    "seconds": time.perf_counter() - started,
    "gibibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


def jobs():
    """Name and function of each run; a function returns its row and whether the claim holds."""
    for name in HARD:
        yield f"certified on {name}", partial(right, name)
    for looks in LOOKS:
        yield f"certified with {looks}", partial(right, "k=1", looks)
    for name in ("k=1", "labels, k=1"):
        yield f"certified on {name}, halved radius", partial(caught, name)
    for name in ("k=1", "uneven gaps", "labels"):
        yield f"a budget on {name}", partial(budget, name)
    for quiz in CROWD:
        yield f"certified on {quiz}", partial(crowd, quiz)
    for case in SYNTHETIC:
        yield f"certified on n, k, gap = {case}", partial(synthetic, case)
    yield "a million arms", million


def right(name, looks=None):
    """The rule as it is."""
    rule = None if looks is None else sa.Certified(schedule=LOOKS[looks])
    found = hunt_certified(name, RUNS, rule=rule)
    what = name if looks is None else f"{name}, {looks}"
    return _hunted(what, found), found.holds and found.wrong <= found.delta * found.runs


def caught(name):
    """The rule with half its radius: the claim is that the test sees it."""
    found = hunt_certified(name, RUNS, rule=with_halved_radius(sa.Certified()))
    return _hunted(f"{name}, radius halved", found), not found.holds


def budget(name):
    """The epsilon reached, after so many pulls."""
    case = HARD[name]
    problem = sa.Problem(len(case.means), case.k, case.noise, epsilon=case.epsilon, delta=DELTA)
    world = sa.environment(case.means, case.noise)
    rule = sa.Certified(budget=BUDGET)
    runs = [sa.simulate(problem, rule, world, rng=seed) for seed in range(RUNS)]
    wrong = sum(run.wrong(run.verdict.certificate.epsilon) for run in runs)
    found = Hunt(RUNS, wrong, RUNS, BUDGET, DELTA)
    return _hunted(f"{name}, a budget of {BUDGET} pulls", found), found.holds


def crowd(quiz):
    """Mean pulls on a crowd of the paper."""
    problem, world = crowd_case(quiz)
    found = sa.replicate(problem, sa.Certified(), world, TABLE_RUNS, rng=1)
    ratio = isotropic_bound(problem, world.means).ratio(found.pulls_mean)
    what, most = f"{quiz} ({problem.n} workers)", CROWD[quiz][0]
    row = _counted(what, found.pulls_mean, most, ratio, found.wrong)
    return row, found.pulls_mean <= most and found.wrong == 0


def synthetic(case):
    """Mean pulls on instances with a stated gap."""
    n, k, gap = case
    pulls, wrong = synthetic_pulls(n, k, gap, runs=TABLE_RUNS)
    problem = sa.Problem(n, k, sa.gaussian(1.0), delta=0.05)
    bound = isotropic_bound(problem, sa.synthetic(n, k, gap, rng=0))  # the gap alone counts
    mean = float(np.mean(pulls))
    row = _counted(f"n = {n}, k = {k}, gap {gap}", mean, SYNTHETIC[case], bound.ratio(mean), wrong)
    return row, mean <= SYNTHETIC[case] and wrong == 0


def million():
    """A certified best group of a million arms."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    what = (
        f"n = 1,000,000, k = 1,000, gap 0.1: {found['seconds']:.0f} s (at most {SECONDS}), "
        f"{found['gibibytes']:.1f} GiB (at most {GIBIBYTES})"
    )
    holds = not found["wrong"] and found["seconds"] <= SECONDS and found["gibibytes"] <= GIBIBYTES
    row = (what, "1", f"{found['pulls']:,}", "", "", str(int(found["wrong"])), "0", "")
    return row, holds


def _hunted(what, found):
    low, high = found.interval
    return (
        what,
        f"{found.runs:,}",
        f"{found.pulls:,.0f}",
        "",
        "",
        str(found.wrong),
        str(most_wrong(found.runs, found.delta)),
        f"{100 * low:.2f} .. {100 * high:.2f} %",
    )


def _counted(what, mean, most, ratio, wrong):
    runs = str(TABLE_RUNS)
    return (what, runs, f"{mean:,.0f}", f"{most:,.0f}", f"{ratio:.1f}", str(wrong), "0", "")
