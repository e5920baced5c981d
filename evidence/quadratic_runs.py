"""Quadratic maximisation: value <= maximum <= every bound, and the exact search is exact.

Random positive semi-definite matrices with n <= 12, of six kinds: well conditioned, singular, with
many ties, near-singular with entries of very different size, inverse information of 2n random
super-arms, and matrices for which all sets are alike; k is 1, 2, n-1, n or any. On each: all
oracles are at most the maximum by enumeration and keep the guarantees (spectral ratio, Theorem 1,
peeling's own), the branch and bound equals the maximum, and no bound is below it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from quadratics import random_case, violations

from superarm.quadratic import oracles

TITLE = "Quadratic maximisation"
HEADER = ("matrices", "seed", "violations")
JOBS, MATRICES = 8, 1_250


def jobs():
    """As many jobs, each with a seed of its own."""
    for seed in range(JOBS):
        yield f"{MATRICES:,} matrices, seed {seed}", partial(check, seed)


def check(seed):
    """Count the claims that fail; with branch and bound in place of enumeration everywhere."""
    oracles._FEW = 0
    rng = np.random.default_rng([seed, 3])
    found = [wrong for _ in range(MATRICES) if (wrong := violations(*random_case(rng)))]
    return (f"{MATRICES:,}", str(seed), str(found or 0)), not found
