"""Seeds: one whole number from whatever the user gives as `rng`."""

from __future__ import annotations

import numpy as np

from superarm._checks import whole
from superarm.errors import SettingError

Rng = int | np.random.Generator | np.random.SeedSequence | None


def seed_from(rng: Rng) -> int:
    """Return a whole number that repeats everything: of an int itself, else one drawn from it."""
    if rng is None or isinstance(rng, np.random.SeedSequence | np.random.Generator):
        return int(np.random.default_rng(rng).integers(2**63))
    return whole("rng", rng, SettingError, least=0)
