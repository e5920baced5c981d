"""What several test files share: rules, recorded totals, binomial bounds."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
from scipy.stats import binom

import superarm as sa

RULES = {
    "saqm": sa.SAQM(),
    "saqm-theorem": sa.SAQM(alpha="theorem"),
    "saqm-spectral": sa.SAQM(alpha="spectral"),
    "saqm-number": sa.SAQM(alpha=0.9),
    "sa-foa": sa.SAFOA(),
    "sa-foa-certified": sa.SAFOA(certified=True),
    "icb": sa.ICB(),
    "icb-ellipsoid": sa.ICB(radius="ellipsoid", constants="paper"),
    "exhaustive": sa.Exhaustive(),
    "certified": sa.Certified(),
}
"""One row an algorithm of one phase: every contract test runs on each."""

PHASED = {
    "csar": sa.CSAR(),
    "csar-accuracy": sa.CSAR(accuracy=0.7),
    "focused": sa.Focused(),
}
"""Those of several phases: `test_phases.py` is their contract."""

ONE_LOOK = {name: rule for name, rule in PHASED.items() if rule.name == "csar"}
"""Those whose phases have one look, at their end."""


def on(rule, **settings):
    """Return the rule with changed settings."""
    return dataclasses.replace(rule, **settings)


def random_rows(n, k, size, seed):
    """Return `size` different super-arms that span, as a design takes them."""
    rng = np.random.default_rng(seed)
    topk = sa.Problem(n, k, sa.gaussian(1.0)).decision
    return tuple(tuple(map(int, row)) for row in _support(topk, size, rng))


def _support(topk, size, rng):
    from superarm.design.support import random_support

    return random_support(topk, size, rng)


def gaussian_totals(plan, means, count, seed, sigma=1.0):
    """Return totals of the first `count` positions of a plan."""
    rng = np.random.default_rng(seed)
    rows = plan.members(plan.order(0, count))
    return np.asarray(means)[rows].sum(axis=1) + sigma * rng.standard_normal(count)


def most_wrong(runs, delta, surely=1e-6):
    """Return the number of wrong runs that a rate of delta exceeds with probability < surely."""
    return int(binom.isf(surely, runs, delta))


@cache
def halved(kind):
    """Return a version of an algorithm whose confidence radius is deliberately halved."""

    def constant(self, problem, delta):
        radius = kind.constant(self, problem, delta)
        scale = "sigma" if hasattr(radius, "sigma") else "scale"
        return dataclasses.replace(radius, **{scale: getattr(radius, scale) / 2})

    return type(f"Halved{kind.__name__}", (kind,), {"constant": constant})


def with_halved_radius(rule):
    """Return the rule with half its radius."""
    settings = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule)}
    return halved(type(rule))(**settings)


def close(a, b, tolerance=1e-9):
    """Whether two numbers agree up to rounding (infinities included)."""
    return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
