"""What the tests of campaigns share: small campaigns, measured by a seed."""

from __future__ import annotations

import numpy as np

import superarm as sa

MEANS = np.linspace(0.0, 3.0, 8)
PROBLEM = sa.Problem([f"arm {i}" for i in range(8)], 4, sa.gaussian(1.0), epsilon=0.5)


def create(store, rule=None, problem=PROBLEM, name="crew", seed=3):
    return sa.Campaign.create(name, problem, rule, store=store, rng=seed)


def totals_of(campaign, pulls, rng, means=MEANS, sigma=1.0):
    """Return what measuring some pulls gives."""
    index = campaign._course.asked.index
    return [
        (pull.id, float(sum(means[index[name]] for name in pull.members) + sigma * rng.normal()))
        for pull in pulls
    ]


def measure(campaign, *, most=100_000, size=37, seed=3, means=MEANS, sigma=1.0, worker="Ann"):
    """Ask and tell, out of order, until nothing is asked any more or `most` pulls are told."""
    rng = np.random.default_rng(seed)
    told = 0
    while told < most:
        pulls = campaign.ask(min(size, most - told), worker=worker)
        if not pulls:
            break
        results = totals_of(campaign, pulls, rng, means, sigma)
        rng.shuffle(results)
        campaign.tell_many(results, worker=worker, site="north")
        told += len(results)
    return campaign


def finished(store, rule=None, problem=PROBLEM, name="crew", seed=3, **settings):
    """Return a campaign that was measured to its end."""
    return measure(create(store, rule, problem, name, seed), seed=seed, **settings)
