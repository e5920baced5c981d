"""Algorithm 1: quadratic maximisation through a densest-k-subgraph oracle, and its guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from superarm.errors import SettingError
from superarm.quadratic.densest import peel, peeling_guarantee
from superarm.quadratic.exact import brute_force

Matrix = NDArray[np.float64]
Oracle = Literal["peeling", "brute-force"]


@dataclass(frozen=True)
class Maximum:
    """A size-k set and its value x'Wx."""

    members: NDArray[np.int64]
    value: float


def quadratic_maximum(W: Matrix, k: int, oracle: Oracle = "peeling") -> Maximum:
    """Maximise x'Wx over size-k sets, approximately for "peeling" (Algorithm 1).

    The graph has edge weights w~_ij = w_ij + w_ii + w_jj. k = 1 is the exact diagonal maximum.
    """
    if k == 1:
        members = np.array([np.argmax(np.diagonal(W))])
    elif oracle == "peeling":
        members = peel(W, np.ascontiguousarray(np.diagonal(W)), k)
    elif oracle == "brute-force":
        members = brute_force(W, k)
    else:
        raise SettingError(f"oracle must be 'peeling' or 'brute-force', not {oracle!r}")
    return Maximum(members, float(W[np.ix_(members, members)].sum()))


def theorem_ratio(n: int, k: int, spectral: float) -> float:
    """Theorem 1's ratio for QP with greedy peeling, given lambda_min/lambda_max of W.

    It holds, though Lemma 5 in its proof fails at k = 2 (it counts each off-diagonal entry once
    where x'Wx counts it twice): it is never above `spectral`, which any set reaches. At k = 1 the
    maximum is exact.
    """
    return 1.0 if k == 1 else spectral * peeling_guarantee(n, k) / (k - 1)


def spectral_ratio(W: Matrix) -> float:
    """lambda_min/lambda_max: every size-k set has at least this share of the optimum."""
    values = np.linalg.eigvalsh(W)
    return float(max(values[0], 0.0) / values[-1])
