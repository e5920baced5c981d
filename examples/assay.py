"""Which eight of 96 compounds are the most active, when only pools of eight are assayed?"""

from __future__ import annotations

import argparse

import numpy as np

import superarm as sa
from superarm._jit import announce_compilation
from superarm.cli.output import as_table

STORY = """\
A laboratory has {n} compounds and wants the {k} most active ones. One well holds a pool of {k}, and
the reader shows the activity of the whole pool. At low doses activities add up (superarm.diagnose
says whether yours do). Which {k} compounds are they?

(The readings are simulated from each compound's mean activity, which superarm is not told.)
"""
SIGMA = 2.0
"""The reader's error, a standard deviation: the simulation draws it."""
NOISE = sa.gaussian()
"""What superarm is told of it: normal, and the same for all wells. It estimates how large."""
ENOUGH = 0.25
"""The chosen pool may be so much below the best one, for each of its compounds."""


def main(n: int = 96, k: int = 8) -> None:
    print(STORY.format(n=n, k=k), flush=True)
    announce_compilation()
    activity = activities(n, k)
    names = [f"C{i + 1:03}" for i in range(n)]
    problem = sa.Problem(names, k, NOISE, epsilon=ENOUGH * k, delta=0.05)
    reader = sa.environment(activity, sa.gaussian(SIGMA))
    run = sa.simulate(problem, sa.Certified(), reader, rng=5)
    truth = dict(zip(names, activity, strict=True))
    estimates = dict(zip(names, run.verdict.estimates, strict=True))
    ranked = sorted(truth, key=lambda name: -truth[name])
    rows = [
        (name, f"{estimates[name]:.2f}", f"{truth[name]:.2f}", str(ranked.index(name) + 1))
        for name in sorted(run.verdict.answer, key=lambda name: -estimates[name])
    ]
    print(as_table(("compound", "estimated", "true", "true rank"), rows))
    print(f"\n{run.verdict}")
    print(
        f"\n{run.pulls:,} wells, {run.pulls / n:.0f} for each compound. In truth the chosen pool "
        f"is {run.regret:.2f} below the best."
    )
    # Variance of a difference after t wells: 2 sigma^2 n / t one by one; in pools, where all pairs
    # are together equally often, 2 sigma^2 n (n-1) / (k (n-k) t).
    print(
        f"One compound a well would take about {k * (n - k) / (n - 1):.1f} times as many wells, if "
        "a well's error stayed the same."
    )


def activities(n: int, k: int) -> np.ndarray:
    """Return means of n compounds: most do little, about 3k/2 of them a lot."""
    rng = np.random.default_rng(3)
    active = rng.permutation(n) < k + k // 2
    return np.where(active, rng.uniform(2.0, 6.0, n), rng.uniform(0.0, 1.0, n))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compounds", type=int, default=96, help="default 96")
    parser.add_argument("--pool", type=int, default=8, help="default 8")
    given = parser.parse_args()
    main(given.compounds, given.pool)
