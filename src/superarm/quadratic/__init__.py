"""Quadratic maximisation: max x'Wx over size-k sets (the paper's Section 3)."""

from superarm.quadratic.bounds import spectral_bound
from superarm.quadratic.densest import greedy_peeling, peeling_guarantee
from superarm.quadratic.exact import brute_force
from superarm.quadratic.reduction import (
    Maximum,
    Oracle,
    quadratic_maximum,
    spectral_ratio,
    theorem_ratio,
)

__all__ = [
    "Maximum",
    "Oracle",
    "brute_force",
    "greedy_peeling",
    "peeling_guarantee",
    "quadratic_maximum",
    "spectral_bound",
    "spectral_ratio",
    "theorem_ratio",
]
