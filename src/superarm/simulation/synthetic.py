"""The paper's synthetic instances (Section 5): means drawn at random, with a stated gap."""

from __future__ import annotations

import numpy as np

from superarm._checks import real, whole
from superarm.errors import ProblemError, SettingError
from superarm.seeds import Rng, seed_from
from superarm.simulation.environments import Vector


def synthetic(n: int, k: int, gap: float, rng: Rng = None) -> Vector:
    """Return means of n arms whose best k are ahead of all others by `gap`, ranks in random order.

    The best k are uniform on [0, 1]. With m the least of them, the next one is m - gap, and the
    others are uniform on [-1, m - gap]. So the best super-arm is ahead by exactly `gap`.

    Parameters
    ----------
    gap
        Delta_min, from 0 to 1.
    rng
        Seed, generator, or None.
    """
    n = whole("n", n, ProblemError, least=1)
    k = whole("k", k, ProblemError, least=1)
    if k > n:
        raise ProblemError(f"k must be between 1 and the number of arms, {n}, not {k}")
    gap = real("the gap", gap, SettingError)
    if not 0 <= gap <= 1:
        raise SettingError(f"the gap must lie between 0 and 1, not {gap!r}")
    draw = np.random.default_rng(seed_from(rng))
    best = draw.random(k)
    if k == n:
        return draw.permutation(best)
    next_best = float(best.min()) - gap
    others = draw.uniform(-1.0, next_best, n - k - 1)
    return draw.permutation(np.concatenate([best, [next_best], others]))
