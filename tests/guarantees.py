"""The test of a guarantee: many seeded runs on hard instances, and the binomial bound.

A rule that is wrong with probability at most delta is wrong in more than `most_wrong(runs, delta)`
of the runs less than once in a million. Looks are taken after every pull, where errors are most
frequent. The command line of `make evidence` calls `hunt` with more runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from scipy.stats import beta
from support import most_wrong

import superarm as sa
from superarm.simulation import environment

DELTA = 0.05


@dataclass(frozen=True)
class Kind:
    """An instance that is hard in its own way."""

    problem: sa.Problem
    means: tuple[float, ...]
    design: sa.Design = field(default_factory=sa.Uniform)


def _problem(n, k, epsilon):
    return sa.Problem(n, k, sa.gaussian(1.0), epsilon=epsilon, delta=DELTA)


KINDS = {
    # the best beats each other by hardly more than epsilon: nearly half of all early stops err
    "k=1": Kind(_problem(2, 1, 0.3), (0.301, 0.0)),
    "k=n-1": Kind(_problem(3, 2, 0.3), (0.301, 0.301, 0.0)),
    "tiny gap": Kind(_problem(4, 2, 0.0), (0.15, 0.15, 0.0, 0.0)),
    # rank k is shared by three arms, and others are just beyond epsilon
    "ties": Kind(_problem(5, 2, 0.4), (0.41, 0.41, 0.41, 0.0, 0.0)),
    # uneven means, measured unevenly
    "uneven": Kind(
        _problem(4, 2, 0.3),
        (2.0, 0.301, 0.0, -1.0),
        sa.Weighted(
            [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [0.05, 0.3, 0.1, 0.15, 0.1, 0.3]
        ),
    ),
}

K33 = [(f"l{i}", f"r{j}") for i in range(3) for j in range(3)]
K4 = [(u, v) for u in range(4) for v in range(u + 1, 4)]


def _class(decision, epsilon, direction="minimize"):
    return sa.Problem(
        decision.n, decision, sa.gaussian(1.0), epsilon=epsilon, delta=DELTA, direction=direction
    )


CLASSES = {
    # as above, one answer is hardly worse than epsilon; the edges are those of a complete graph
    "spanning trees": Kind(_class(sa.SpanningTrees(K4), 1.5), (0.0, 0.0, 0.0, 1.501, 1.501, 1.501)),
    # the direct edge against ways of two and three edges
    "paths": Kind(_class(sa.Paths(K4, 0, 3), 1.5), (0.5, 0.5, 2.502, 0.5, 0.501, 0.5)),
    "paths, both ways": Kind(
        _class(sa.Paths(K4, 0, 3, directed=False), 1.5), (0.5, 0.5, 2.502, 0.5, 0.501, 0.5)
    ),
    "matchings": Kind(
        _class(sa.Matchings(K33), 1.5, "maximize"),
        (0.501, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5),
    ),
}
"""Other decision classes than the best k of n."""

RULES = {
    "saqm": sa.SAQM(),
    "icb": sa.ICB(),
    "exhaustive": sa.Exhaustive(),
}
"""The rules that certify."""


@dataclass(frozen=True)
class Hunt:
    """How often a rule was wrong."""

    runs: int
    wrong: int
    stopped: int
    pulls: float
    delta: float

    @property
    def holds(self) -> bool:
        """Whether this many errors are compatible with an error rate of at most delta."""
        return self.wrong <= most_wrong(self.runs, self.delta)

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the error rate, at 99 %."""
        low = beta.ppf(0.005, self.wrong, self.runs - self.wrong + 1) if self.wrong else 0.0
        return float(low), float(beta.ppf(0.995, self.wrong + 1, self.runs - self.wrong))


def hunt(rule, kind, runs, *, delta=None, max_pulls=50_000):
    """Run a rule on an instance `runs` times; a run at the limit counts as not wrong."""
    problem = kind.problem if delta is None else replace_delta(kind.problem, delta)
    rule = replace(rule, design=kind.design, schedule=sa.Every())
    world = environment(kind.means, problem.noise)
    wrong = stopped = pulls = 0
    for seed in range(runs):
        run = sa.simulate(problem, rule, world, rng=seed, max_pulls=max_pulls)
        stopped += run.verdict.certified
        wrong += run.verdict.certified and run.wrong(problem.epsilon)
        pulls += run.pulls
    return Hunt(runs, wrong, stopped, pulls / runs, problem.delta)


def replace_delta(problem, delta):
    """Return the problem with another delta."""
    return replace(problem, delta=delta)


__all__ = ["CLASSES", "KINDS", "RULES", "Hunt", "Kind", "hunt"]
