"""Cases for the certified default: crowds, synthetic instances with a stated gap, hard ones."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from guarantees import DELTA, Hunt

import superarm as sa
from superarm.datasets import crowd
from superarm.noise import Noise

CROWD = {  # most pulls on average, and the bound on isotropic designs
    "it": (9e3, 884),
    "medicine": (13e3, 1_457),
    "chinese": (17.5e3, 1_662),
    "pokemon": (6.5e3, 578),
    "english": (20.5e3, 1_948),
    "science": (55e3, 3_504),
}
SYNTHETIC = {  # (n, k, gap): most pulls on average
    (10, 5, 0.5): 1_000,
    (10, 5, 0.1): 24_000,
    (20, 10, 0.5): 1_218,
    (50, 10, 0.5): 2_252,
    (100, 10, 0.5): 5_087,
    (100, 50, 0.5): 1_814,
}


def crowd_case(quiz):
    """Return the question of the crowd table, and its world."""
    means = crowd(quiz)
    problem = sa.Problem(means.arms, 10, sa.labels(), epsilon=0.5, delta=0.05)
    return problem, sa.environment(means.means, sa.labels())


def synthetic_pulls(n, k, gap, *, runs):
    """Pulls of runs to a best group, each on an instance of its own, and how many are wrong."""
    problem = sa.Problem(n, k, sa.gaussian(1.0), delta=0.05)
    pulls, wrong = [], 0
    for seed in range(runs):
        means = sa.synthetic(n, k, gap, rng=seed)
        found = sa.simulate(problem, sa.Certified(), sa.environment(means, problem.noise), rng=seed)
        pulls.append(found.pulls)
        wrong += found.wrong(0.0)
    return pulls, wrong


GAUSSIAN = sa.gaussian(1.0)


@dataclass(frozen=True)
class Hard:
    """An instance on which early stops err."""

    k: int
    epsilon: float
    means: tuple[float, ...]
    noise: Noise = GAUSSIAN


HARD = {
    # the best beats each other by hardly more than epsilon: nearly half of all early stops err
    "k=1": Hard(1, 0.6, (0.601, 0.0)),
    "k=1, n=4": Hard(1, 0.6, (0.601, 0.0, 0.0, 0.0)),
    "k=n-1": Hard(4, 0.6, (0.601, 0.601, 0.601, 0.601, 0.0)),
    "gap = epsilon - little": Hard(2, 0.6, (0.599, 0.599, 0.0, 0.0, -0.01)),
    "no epsilon": Hard(2, 0.0, (0.5, 0.5, 0.0, 0.0)),
    # rank k is shared by three arms, and the others are just beyond epsilon
    "ties": Hard(2, 0.6, (0.61, 0.61, 0.61, 0.0, 0.0)),
    "uneven gaps": Hard(3, 0.6, (3.0, 1.0, 0.601, 0.0, -0.4, -2.0, -5.0)),
    "difference set": Hard(3, 0.6, (0.601, 0.601, 0.601, 0.0, 0.0, 0.0, 0.0)),
    "labels, k=1": Hard(1, 0.2, (0.601, 0.4), sa.labels()),
    "labels": Hard(2, 0.3, (0.651, 0.651, 0.5, 0.35, 0.35, 0.35), sa.labels()),
    "+-1": Hard(2, 0.8, (0.401, 0.401, -0.4), sa.bounded(1.0)),
    "+-1, independent": Hard(2, 0.6, (0.31, 0.31, 0.0, -0.3), sa.bounded(1.0, independent=True)),
    "two ends": Hard(1, 0.3, (0.651, 0.35), sa.total(0.0, 1.0)),
}


@cache
def _halved_scale(kind):
    return type(
        f"Halved{kind.__name__}",
        (kind,),
        {"scale": lambda self, problem: kind.scale(self, problem) / 2},
    )


def with_halved_scale(rule):
    """Return the rule with half its sigma, and so half of each radius, calibrated or not."""
    return _halved_scale(type(rule))(**{f.name: getattr(rule, f.name) for f in fields(rule)})


def hunt_certified(name, runs, *, rule=None, max_pulls=100_000, delta=DELTA):
    """Run the default on a hard instance; a run at the limit counts as not wrong."""
    case = HARD[name]
    problem = sa.Problem(len(case.means), case.k, case.noise, epsilon=case.epsilon, delta=delta)
    # tightest early, where errors are most frequent
    rule = rule or sa.Certified(aim=20 * problem.n)
    world = sa.environment(case.means, case.noise)
    wrong = stopped = pulls = 0
    for seed in range(runs):
        found = sa.simulate(problem, rule, world, rng=seed, max_pulls=max_pulls)
        stopped += found.verdict.certified
        wrong += found.verdict.certified and found.wrong(problem.epsilon)
        pulls += found.pulls
    return Hunt(runs, wrong, stopped, pulls / runs, problem.delta)
