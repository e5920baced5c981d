r"""The calibrated radius: for normal noise, quantiles by simulation in the place of a union bound.

On a cyclic plan whose arms were put to places at random, the errors E = theta^ - theta at whole
cycles do not depend on theta: they are sums of independent circulant normal vectors, and M* is a
set of places drawn at random. So the joint law over levels d and looks j of

    z_dj = max over M at level d of [E(M) - E(M*)] / (sigma s_dj),   s_dj = sqrt(2d / (lambda t_j))

can be simulated, lambda being a fixed scale. A first sample gives the shape: beta_d, the quantile
of max_j z_dj that is exceeded with probability alpha w_d, where alpha is such that any of them is
exceeded with probability delta. (w is less for the first two levels, which decide rarely.) On a
second sample, q is the 1 - delta' quantile of max z_dj / beta_d, and the radius is
sigma s_dj q beta_d. A simulated quantile is not exact: q is the order statistic that is beyond the
true one with probability 1 - eta (Clopper and Pearson), and delta' + eta = delta.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft
from scipy.stats import beta

from superarm._jit import njit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

VERSION = 3
"""Of the simulation: what another one has cached is not used."""

SEED = 20261119
_EFFORT = 4e7  # replications times looks times arms
_REPLICATIONS = 4_000, 100_000  # least and most
_BEYOND = 1_000  # replications beyond the quantile: with more of them pulls fall by less than 1 %
MOST_REPLICATIONS = 100_000
"""Of smaller deltas that need more, no quantile is simulated."""

_BATCH = 500
_FEW = 64  # levels; with more, sorting is faster
_UNSURE = 0.02  # eta as a share of delta


@dataclass(frozen=True, eq=False)
class Quantiles:
    """b_d = q beta_d, d = 1, 2, ..., so that radii are sigma b_d sqrt(2d / (lambda t))."""

    b: Vector
    scale: float
    """lambda: information a pull."""
    replications: int
    seed: int


def calibrate(
    eigenvalues: Vector,
    n: int,
    k: int,
    cycles: Sequence[int],
    pulls: int,
    levels: int,
    delta: float,
    share: float = 1.0,
) -> Quantiles:
    """Return the quantiles for looks after these numbers of cycles, from the cache or a simulation.

    Parameters
    ----------
    eigenvalues
        Of the information of one cycle, at frequencies 0 .. n//2.
    pulls
        Of one cycle.
    levels
        How many levels count.
    share
        Of the usual effort: for what will not be asked again.
    """
    inverse, mean = _inverse(eigenvalues, n)
    least = max(_REPLICATIONS[0], least_replications(delta))
    most = max(_REPLICATIONS[1], least)
    reps = int(np.clip(min(_BEYOND / delta, share * _EFFORT / (len(cycles) * n)), least, most))
    key = {
        "version": VERSION,
        "seed": SEED,
        "n": n,
        "k": k,
        "levels": levels,
        "delta": delta,
        "replications": reps,
        "cycles": [int(c) for c in cycles],
        "spectrum": sha256(np.round(inverse / mean, 9).astype("<f8").tobytes()).hexdigest(),
    }
    b = _cached(json.dumps(key, sort_keys=True), tuple((inverse / mean).tolist()))
    return Quantiles(np.array(b), information(eigenvalues, n, pulls), reps, SEED)


def information(eigenvalues: Vector, n: int, pulls: int) -> float:
    """Return lambda: that of a flat design whose places have the same mean variance."""
    return (n - 1) / n / _inverse(eigenvalues, n)[1] / pulls


def _inverse(eigenvalues: Vector, n: int) -> tuple[Vector, float]:
    """Return the inverse spectrum of one cycle, and the variance of a place after it."""
    inverse = np.zeros(len(eigenvalues))
    inverse[1:] = 1 / eigenvalues[1:]  # what all places share drops out of differences
    return inverse, float(irfft(inverse, n)[0])


@lru_cache(maxsize=64)
def _cached(key: str, variances: tuple[float, ...]) -> tuple[float, ...]:
    place = _folder() / f"{sha256(key.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(place.read_text(encoding="utf-8"))
        if found["key"] == json.loads(key):
            b = tuple(float(value) for value in found["b"])
            if len(b) == found["key"]["levels"] and all(0 < value < math.inf for value in b):
                return b
    b = _simulated(json.loads(key), np.array(variances))
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"key": json.loads(key), "b": b}), encoding="utf-8")
        os.replace(temporary, place)
    return b


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "superarm" / "calibration"


def _simulated(key: dict[str, Any], variances: Vector) -> tuple[float, ...]:
    n, k, levels, reps = key["n"], key["k"], key["levels"], key["replications"]
    rng = np.random.default_rng([key["seed"], n, k])
    unit = np.sqrt(2 * np.arange(1, levels + 1) * n / (n - 1))
    filters = np.sqrt(variances)

    def sample(size: int) -> Matrix:
        """Return max_j z_dj, a row a replication."""
        parts = (
            _excesses(key["cycles"], filters, n, k, levels, rng).max(axis=1) / unit
            for _ in range(0, size, _BATCH)
        )
        return np.concatenate(list(parts))[:size]

    shape = np.ones(1) if levels == 1 else _shape(sample(reps // 4), key["delta"])
    most = (sample(reps) / shape).max(axis=1)
    q = np.sort(most)[::-1][exceedances(reps, key["delta"])]
    return tuple(float(b) for b in q * shape)


def _shape(z: Matrix, delta: float) -> Vector:
    """Return beta_d, by bisection on alpha."""
    levels = z.shape[1]
    weights = np.minimum(1.0, np.arange(1, levels + 1) / min(3, levels))
    low, high = 0.0, delta
    for _ in range(40):
        alpha = (low + high) / 2
        shape = np.array([np.quantile(z[:, d], 1 - alpha * weights[d]) for d in range(levels)])
        if (z > shape).any(axis=1).mean() > delta:
            high = alpha
        else:
            low = alpha
    return shape


def exceedances(replications: int, delta: float) -> int:
    """Return how many replications may be beyond q: then delta' holds, but for eta."""
    eta = _UNSURE * delta
    target = delta - eta
    low, high = 0, math.ceil(replications * delta)
    while low < high:
        middle = (low + high + 1) // 2
        if beta.ppf(1 - eta, middle + 1, replications - middle) <= target:
            low = middle
        else:
            high = middle - 1
    return low


def least_replications(delta: float) -> int:
    """Return how many replications it takes for any quantile to be safe, and about 2 beyond it.

    With fewer than log(1/eta)/(delta - eta), even the greatest of them may be too small.
    """
    eta = _UNSURE * delta
    return math.ceil(2 * math.log(1 / eta) / (delta - eta))


def can_calibrate(delta: float) -> bool:
    """Whether delta is not too small to be reached by simulation."""
    return least_replications(delta) <= MOST_REPLICATIONS


def _excesses(
    cycles: Sequence[int], filters: Vector, n: int, k: int, levels: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return max [E(M) - E(M*)] sqrt(c_j) by replication, look and level, for one batch.

    Errors are drawn as their Fourier coefficients, which are independent.
    """
    size = len(filters)
    scale = filters * math.sqrt(n / 2)
    if n % 2 == 0:
        scale[-1] *= math.sqrt(2)  # this coefficient is real
    total = np.zeros((_BATCH, size), dtype=np.complex128)
    inside = rng.permuted(np.broadcast_to(np.arange(n) < k, (_BATCH, n)), axis=1)
    found = np.empty((_BATCH, len(cycles), levels))
    before = 0
    for j, c in enumerate(cycles):
        step = rng.standard_normal((_BATCH, 2 * size)).view(np.complex128)
        step *= math.sqrt(c - before) * scale
        total += step
        before = c
        _best_swaps(irfft(total, n), inside, levels, found[:, j])
        found[:, j] /= math.sqrt(c)
    return found


@njit
def _best_swaps(errors, inside, levels, out):  # type: ignore[no-untyped-def]
    """The d greatest errors outside M* in the place of the d least inside, in each row.

    Where d is small both are kept ordered while going through a row, as few arms get in.
    """
    least, most = np.empty(levels), np.empty(levels)  # ascending, descending
    for r in range(errors.shape[0]):
        if levels > _FEW:
            least[:] = np.sort(errors[r][inside[r]])[:levels]
            most[:] = np.sort(-errors[r][~inside[r]])[:levels]
            out[r] = np.cumsum(-most - least)
            continue
        least[:], most[:] = np.inf, -np.inf
        for i in range(errors.shape[1]):
            error = errors[r, i]
            if inside[r, i]:
                if error < least[-1]:
                    d = levels - 1
                    while d > 0 and least[d - 1] > error:
                        least[d] = least[d - 1]
                        d -= 1
                    least[d] = error
            elif error > most[-1]:
                d = levels - 1
                while d > 0 and most[d - 1] < error:
                    most[d] = most[d - 1]
                    d -= 1
                most[d] = error
        excess = 0.0
        for d in range(levels):
            excess += most[d] - least[d]
            out[r, d] = excess
