"""Which 100 of 100,000 keywords make the best advertisement, when only bundles have a profit?"""

from __future__ import annotations

import argparse

import numpy as np

import superarm as sa
from superarm._jit import announce_compilation
from superarm.cli.output import as_table

STORY = """\
An advertiser may bid on {k:,} of {n:,} keywords at a time. The shop sees one profit for the whole
bundle in an hour, since a customer sees several of its advertisements before buying: nobody can say
which keyword earned what. Which bundle of {k:,} is the best?

(The profits are simulated from each keyword's mean profit, which superarm is not told: most earn
next to nothing, a few earn a lot. Chance adds normal noise of {sigma:g} to a bundle's profit.)
"""
SIGMA = 30.0
ENOUGH = 0.5
"""The bundle may earn so much less than the best one, for each of its keywords."""


def main(n: int = 100_000, k: int = 100) -> None:
    print(STORY.format(n=n, k=k, sigma=SIGMA), flush=True)
    announce_compilation()
    profits = np.random.default_rng(1).lognormal(0.0, 1.0, n)
    problem = sa.Problem(n, k, sa.gaussian(SIGMA), epsilon=ENOUGH * k)
    shop = sa.environment(profits, problem.noise)
    rows = []
    # Certified measures all keywords alike to the end. Focused soon drops most of them, and spends
    # its hours on those that may still matter.
    for rule in (sa.Certified(), sa.Focused()):
        run = sa.simulate(problem, rule, shop, rng=1)
        certified = "yes" if run.verdict.certified else run.verdict.reason
        each = f"{run.pulls / n:.1f}"
        rows.append((rule.name, f"{run.pulls:,}", each, certified, f"{run.regret:.2f}"))
    print(as_table(("rule", "bundles", "per keyword", "certified", "short of the best"), rows))
    best = float(np.sort(profits)[-k:].sum())
    print(
        f"\nWith a probability of at least 95 %, an answer earns at most {problem.epsilon:g} an "
        f"hour less than the best\nbundle, which in truth earns {best:,.0f}; {k:,} keywords at "
        f"random earn {k * profits.mean():,.0f}."
    )
    print(
        f"No method could do with fewer than {n:,} bundles: with fewer equations than unknowns, "
        "some\nkeywords could be worth anything."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keywords", type=int, default=100_000, help="default 100000")
    parser.add_argument("--bundle", type=int, default=100, help="default 100")
    given = parser.parse_args()
    main(given.keywords, given.bundle)
