"""The least condition number of an information matrix of size-k sets (the paper's Lemma 7)."""

from __future__ import annotations

import math

from superarm._checks import whole
from superarm.errors import ProblemError


def least_condition_number(n: int, k: int) -> float:
    """k (n - 1)/(n - k): no proportions on size-k sets have lambda_max/lambda_min below it.

    1 has the Rayleigh quotient k^2/n, which lambda_max is not below. The trace is k, so that
    k - k^2/n is left for the n - 1 directions orthogonal to 1, and lambda_min is at most their
    mean, k (n - k)/(n (n - 1)). The quotient is reached exactly where each arm is measured equally
    often, and so is each pair of arms.

    Lemma 7 says O(k) for every sequence. That is its size at best (for k up to a share of n), and
    what a support really has can be any amount more.

    Parameters
    ----------
    n
        Number of arms.
    k
        Size of the measured sets. For k = n > 1 nothing is told apart: infinite.
    """
    n = whole("the number of arms", n, ProblemError, least=1)
    k = whole("k", k, ProblemError, least=1)
    if k > n:
        raise ProblemError(f"k must be between 1 and the number of arms, {n}, not {k}")
    if n == 1:
        return 1.0
    return k * (n - 1) / (n - k) if k < n else math.inf
