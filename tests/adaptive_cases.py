"""Hard instances for the adaptive radius: labels that vary little, and gaps just above epsilon."""

from __future__ import annotations

from certified_cases import HARD, Hard
from guarantees import Hunt

import superarm as sa

SURE = {
    "nearly hopeless": Hard(1, 0.05, (0.101, 0.05)),
    "nearly sure": Hard(2, 0.1, (0.951, 0.951, 0.85, 0.85)),
    "sure and hopeless": Hard(3, 0.1, (0.97, 0.95, 0.151, 0.05, 0.05, 0.05)),
    "as noisy as can be": Hard(1, 0.2, HARD["labels, k=1"].means),
}


class Cut(sa.Certified):
    """The rule with its radius deliberately divided by a number."""

    by = 2.0

    def at_tally(self, C, tally, look):
        widths = super().at_tally(C, tally, look)
        return lambda info, k: widths(info, k) / self.by


class CutByThree(Cut):
    by = 3.0


def hunt_adaptive(name, runs, delta, kind=sa.Certified):
    """Run the rule on a hard instance; looks 5 % apart, to take less time."""
    case = SURE[name]
    problem = sa.Problem(len(case.means), case.k, sa.labels(), epsilon=case.epsilon, delta=delta)
    rule = kind(radius="adaptive", schedule=sa.Cycles(1.05), aim=20 * problem.n)
    world = sa.environment(case.means, sa.labels())
    found = [sa.simulate(problem, rule, world, rng=seed, max_pulls=100_000) for seed in range(runs)]
    ended = [run for run in found if run.verdict.certified]
    wrong = sum(run.wrong(case.epsilon) for run in ended)
    return Hunt(runs, wrong, len(ended), sum(run.pulls for run in found) / runs, delta)
