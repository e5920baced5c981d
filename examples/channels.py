"""Which user gets which radio channel, when only the whole network's throughput is known?"""

from __future__ import annotations

import argparse
import math

import numpy as np

import superarm as sa
from superarm.cli.output import as_table

STORY = """\
{users} users share {channels} radio channels, one channel each, no channel twice. How well a user
does on a channel depends on both: where the user is, and who disturbs the channel. The base station
reports only the throughput of all users together, which goes up and down with the weather, the
traffic and the hour (normal noise of {sigma:g} Mbit/s). Which assignment is the best?

(The throughput is simulated from each pair's mean, which superarm is not told.)
"""
SIGMA = 5.0
EPSILON = 6.0
FEW = 10_000
"""More assignments than this are too many for the rule that goes through them all."""


def main(users: int = 5, channels: int = 7) -> None:
    print(STORY.format(users=users, channels=channels, sigma=SIGMA), flush=True)
    means = rates(users, channels)
    pairs = [(f"user{u + 1}", f"ch{c + 1}") for u in range(users) for c in range(channels)]
    # An arm is a pair, and a group is an assignment: a matching that leaves no user out.
    assignments = sa.Matchings(pairs)
    names = [f"{user}:{channel}" for user, channel in pairs]
    problem = sa.Problem(names, assignments, sa.gaussian(SIGMA), epsilon=EPSILON)
    air = sa.environment(means.ravel(), problem.noise)
    rules: list[sa.Algorithm] = [sa.ICB(), sa.SAQM()]
    if assignments.log_size <= math.log(FEW):
        rules.append(sa.Exhaustive())
    rows = []
    for rule in rules:
        run = sa.simulate(problem, rule, air, rng=3)
        certified = "yes" if run.verdict.certified else run.verdict.reason
        rows.append((rule.name, f"{run.pulls:,}", f"{run.regret:.1f}", certified))
    print(as_table(("rule", "measurements", "Mbit/s below the best", "certified"), rows))
    given = dict(name.split(":") for name in run.verdict.answer)
    print("\n" + ", ".join(f"{user} on {channel}" for user, channel in sorted(given.items())))
    # A user who takes the best channel may keep it from one who needs it more.
    greedy, best = greedily(means), means.ravel()[assignments.best(means.ravel())].sum()
    print(
        f"In truth the best assignment carries {best:.1f} Mbit/s; user after user taking the best "
        f"channel\nthat is left would carry {greedy:.1f}."
    )


def rates(users: int, channels: int) -> np.ndarray:
    """Mbit/s of each user on each channel, by Shannon: bandwidth times log2(1 + signal / noise)."""
    rng = np.random.default_rng(2)
    signal = rng.uniform(5, 20, (users, 1)) + rng.normal(0, 4, (users, channels))  # dB
    return 5 * np.log2(1 + 10 ** (signal / 10))


def greedily(means: np.ndarray) -> float:
    """Return the throughput when each user in turn takes the best channel that is left."""
    total, left = 0.0, list(range(means.shape[1]))
    for row in means:
        channel = max(left, key=lambda c: row[c])
        left.remove(channel)
        total += row[channel]
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5, help="default 5")
    parser.add_argument("--channels", type=int, default=7, help="default 7")
    given = parser.parse_args()
    main(given.users, given.channels)
