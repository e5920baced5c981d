"""Matrices for quadratic maximisation, and the claims that must hold on each of them."""

from __future__ import annotations

import numpy as np

from superarm.quadratic import BOUNDS, brute_force, peeling_guarantee, quadratic_maximum
from superarm.quadratic.oracles import NAMES
from superarm.quadratic.reduction import edge_weights, spectral_ratio, theorem_ratio


def information_inverse(n, k, multiple, seed=0):
    """Return W = A^-1 for a support of `multiple` * n random size-k sets, each measured once."""
    rng = np.random.default_rng(seed)
    while True:
        rows = np.zeros((multiple * n, n))
        for row in rows:
            row[rng.choice(n, k, replace=False)] = 1.0
        A = rows.T @ rows
        if np.linalg.cond(A) < 1e10:
            W = np.linalg.inv(A)
            return (W + W.T) / 2


def random_case(rng):
    """Return a positive semi-definite matrix with n <= 12, of one of six kinds, and a size k."""
    n = int(rng.integers(2, 13))
    k = int(rng.choice([1, 2, n - 1, n, rng.integers(1, n + 1)]))
    kind = rng.integers(6)
    if kind == 0:
        X = rng.standard_normal((2 * n, n)) * rng.uniform(0.1, 3, n)
    elif kind == 1:  # singular
        X = rng.standard_normal((max(1, n // 2), n))
    elif kind == 2:  # small whole numbers: many ties
        X = rng.integers(-1, 2, (n + 2, n)).astype(float)
    elif kind == 3:  # near-singular, entries of very different size
        X = rng.standard_normal((n, n)) @ np.diag(10.0 ** rng.uniform(-6, 3, n))
    elif kind == 4 and 1 < k < n:  # what the algorithms meet
        return information_inverse(n, k, 2, int(rng.integers(2**31))), k
    else:  # all sets alike
        return np.eye(n) * rng.uniform(0, 2) + rng.uniform(0, 2), k
    W = X.T @ X * 10.0 ** rng.uniform(-6, 6)
    return (W + W.T) / 2, k


def value(W, members):
    """x'Wx."""
    return float(W[np.ix_(members, members)].sum())


def violations(W, k):
    """Return every claim that fails: value <= maximum <= bound, guarantees, and exactness."""
    n = len(W)
    size = float(np.abs(W).max())
    maximum = value(W, brute_force(W, k))
    rounding = 1e-12 * k * k * size
    wrong = []
    ratio = spectral_ratio(W)
    for name in NAMES:
        found = quadratic_maximum(W, k, name)
        if len(set(found.members.tolist())) != k or found.value != value(W, found.members):
            wrong.append(f"{name}: not a set of {k}, or not its value")
        if found.value > maximum + rounding:
            wrong.append(f"{name}: above the maximum")
        if found.bound < maximum - rounding:
            wrong.append(f"{name}: a bound below the maximum")
        if found.value < ratio * maximum - rounding:
            wrong.append(f"{name}: below the spectral ratio")
        if name in ("exact", "brute-force") and found.value < maximum * (1 - 1e-8) - rounding:
            wrong.append(f"{name}: not exact")
        if k == 1 and found.value != np.diagonal(W).max():
            wrong.append(f"{name}: not the greatest diagonal entry")
    if value(W, quadratic_maximum(W, k, "peeling").members) < (
        theorem_ratio(n, k, ratio) * maximum - rounding
    ):
        wrong.append("peeling: below Theorem 1's ratio")
    if k > 1 and not peeling_keeps_its_guarantee(W, k):
        wrong.append("peeling: below its own guarantee")
    for name, bound in BOUNDS.items():
        if bound(W, k) < maximum:
            wrong.append(f"{name}: below the maximum")
    return wrong


def peeling_keeps_its_guarantee(W, k):
    """Whether the graph of Algorithm 1 is peeled to k(k-1)/(n(n-1)) of its heaviest subgraph."""
    graph = edge_weights(W)
    peeled = value(graph, quadratic_maximum(W, k, "peeling").members)
    heaviest = value(graph, brute_force(graph, k))
    return peeled >= peeling_guarantee(len(W), k) * heaviest * (1 - 1e-9)
