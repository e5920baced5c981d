"""Checks of many totals at once: none is taken that the noise model excludes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superarm._checks import bounded_real
from superarm.campaign.ids import Key
from superarm.errors import TotalError
from superarm.noise import Noise

_MANY = 100


def check_totals(noise: Noise, k: int, keys: Sequence[Key], totals: Sequence[float]) -> list[float]:
    """Return totals of groups of `k` as floats; an error names the pull whose total cannot be."""
    if len(totals) > _MANY and all(type(total) is float for total in totals):
        values = np.array(totals)
        if np.isfinite(values).all():
            for extreme in (float(values.min()), float(values.max())):
                _check(noise, k, keys[totals.index(extreme)], extreme)
            broken = values[values != np.floor(values)]
            if not len(broken) or _fits(noise, k, float(broken[0])):
                return (values + 0.0).tolist()
    return [_check(noise, k, key, total) for key, total in zip(keys, totals, strict=True)]


def _fits(noise: Noise, k: int, total: float) -> bool:
    try:
        noise.check_total(total, k)
    except TotalError:
        return False
    return True


def _check(noise: Noise, k: int, key: Key, total: float) -> float:
    try:
        value = bounded_real("a total", total, TotalError)
        noise.check_total(value, k)
    except TotalError as error:
        raise TotalError(f"pull {key}: {error}") from None
    return value + 0.0
