"""Algorithm 1: quadratic maximisation as a densest-k-subgraph problem, and what that guarantees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from superarm.errors import ProblemError
from superarm.quadratic.densest import peel, peeling_guarantee
from superarm.quadratic.fpk import feige_peleg_kortsarz

Matrix = NDArray[np.float64]
Members = NDArray[np.int64]


def edge_weights(W: Matrix) -> Matrix:
    """w~_ij = w_ij + w_ii + w_jj (Algorithm 1, line 3), and 0 on the diagonal.

    A subgraph weighs x'Wx + (2k - 3) sum of its w_ii, halved. For W that is not positive
    semi-definite all weights are raised by the same number, where that is needed to have none
    below 0; this ranks subgraphs of k vertices as before.
    """
    diagonal = np.diagonal(W)
    weights = W + diagonal[:, None] + diagonal[None, :]
    np.fill_diagonal(weights, 0.0)
    least = float(weights.min())
    if least < 0:
        weights -= least
        np.fill_diagonal(weights, 0.0)
    return weights


def by_peeling(W: Matrix, k: int) -> Members:
    """Algorithm 1 with greedy peeling, without writing the graph down: O(n^2)."""
    members: Members = peel(W, np.ascontiguousarray(np.diagonal(W)), k)
    return members


def by_fpk(W: Matrix, k: int) -> Members:
    """Algorithm 1 with the procedures of Feige, Peleg and Kortsarz, the best by x'Wx: O(n^3)."""
    return feige_peleg_kortsarz(edge_weights(W), k)


def theorem_ratio(n: int, k: int, spectral: float) -> float:
    """Theorem 1's ratio for QP with greedy peeling, given lambda_min/lambda_max of W.

    It holds, though Lemma 5 in its proof fails at k = 2 (it counts each off-diagonal entry once
    where x'Wx counts it twice): it is never above `spectral`, which any set reaches. At k = 1 the
    maximum is exact.
    """
    return 1.0 if k == 1 else spectral * peeling_guarantee(n, k) / (k - 1)


def spectral_ratio(W: Matrix) -> float:
    """lambda_min/lambda_max: every size-k set has at least this share of the optimum.

    W must be positive semi-definite (up to rounding).
    """
    values = np.linalg.eigvalsh(W)
    low, high = float(values[0]), float(values[-1])
    if low < -1e-9 * max(abs(low), abs(high)):
        raise ProblemError(
            "the ratio needs a matrix that is positive semi-definite; "
            f"the least eigenvalue of this one is {low:g}"
        )
    return max(low, 0.0) / high if high > 0 else 1.0
