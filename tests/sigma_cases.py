"""Cases for unknown sigma: hard instances, and what a false bound would do."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
from certified_cases import HARD as KNOWN
from certified_cases import Hard
from guarantees import DELTA, Hunt
from scipy.stats import chi2

import superarm as sa
from superarm.sigma import lower_chi, residual_squares

TRUE = 1.0
APART = sa.Cycles(1.1)
"""Looks that are far enough apart for thousands of runs."""
LATE = Hard(1, 0.15, (0.151, 0.0))
"""Stops come when sigma is known well, so that errors are as frequent as where it is stated."""
HARD = {"late": LATE} | {
    name: KNOWN[name] for name in ("k=1", "k=1, n=4", "no epsilon", "uneven gaps")
}


def hunt_unknown(name, runs, *, rule=None, delta=DELTA, max_pulls=100_000):
    """Run a rule that is not told sigma on a hard instance."""
    case = HARD[name]
    problem = sa.Problem(len(case.means), case.k, sa.gaussian(), epsilon=case.epsilon, delta=delta)
    rule = rule or sa.Certified(aim=20 * problem.n, schedule=APART)
    world = sa.environment(case.means, sa.gaussian(TRUE))
    wrong = stopped = pulls = 0
    for seed in range(runs):
        found = sa.simulate(problem, rule, world, rng=seed, max_pulls=max_pulls)
        stopped += found.verdict.certified
        wrong += found.verdict.certified and found.wrong(problem.epsilon)
        pulls += found.pulls
    return Hunt(runs, wrong, stopped, pulls / runs, problem.delta)


def plugging_in(rule):
    """Return the rule with the plain estimate of sigma at every look, as if it were stated."""
    kind = type(rule)

    def look(self, problem, phase, tally, look):
        info, freedom = phase.information(tally.pulls), tally.pulls - phase.plan.rank
        if info is not None and freedom > 0:
            squares = residual_squares(phase.plan, tally, info.estimate(phase.plan, tally))
            problem = problem.with_noise(sa.gaussian(math.sqrt(squares / freedom)))
        return kind.look(self, problem, phase, tally, look)

    settings = {field.name: getattr(rule, field.name) for field in fields(rule)}
    return type("Plugging", (kind,), {"look": look})(**settings)


def exceeded(runs, delta, freedom=3_000):
    """In how many runs sigma is at some look beyond our bound; and beyond one at level delta."""
    looks = np.unique(np.geomspace(15, freedom, 150).astype(int))
    ours = np.array([lower_chi(int(v), delta) for v in looks])
    reused = chi2.ppf(delta, looks)
    rng = np.random.default_rng(5)
    found = np.zeros(2, dtype=int)
    for _ in range(runs):
        S = np.cumsum(rng.chisquare(1, freedom))[looks - 1]
        found += [(ours > S).any(), (reused > S).any()]
    return int(found[0]), int(found[1])
