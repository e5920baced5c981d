"""Greedy peeling."""

from __future__ import annotations

import numpy as np
from common import Options, Row, in_turns, seconds, tell

from superarm import reference
from superarm.quadratic.densest import greedy_peeling

LIMIT = 1.5e-3


def rows(options: Options) -> list[Row]:
    n, small, k, repeats = (200, 60, 10, 1) if options.quick else (1000, 200, 50, 9)
    tell(f"greedy peeling, n={n}, k={k}")
    large, W = random_weights(n), random_weights(small)
    if tuple(greedy_peeling(W, k)) != reference.greedy_peeling(W, k):
        raise RuntimeError("superarm and reference peel differently")
    times = in_turns(
        {
            "large": lambda: greedy_peeling(large, k),
            "small": lambda: greedy_peeling(W, k),
            "reference": lambda: reference.greedy_peeling(W, k),
        },
        repeats,
    )
    ratio = times["reference"].least / times["small"].least
    return [
        Row(
            f"greedy peeling, n={n}, k={k}",
            str(times["large"]),
            f"<= {seconds(LIMIT)}",
            (ratio,),
            f"at n={small}",
            times["large"].least <= LIMIT,
        )
    ]


def random_weights(n: int) -> np.ndarray:
    """Return a random symmetric matrix with entries in (0, 2)."""
    W = np.random.default_rng(n).random((n, n))
    return W + W.T
