"""Quadratic maximisation: max x'Wx over size-k sets (the paper's Section 3)."""

from superarm.quadratic.bounds import BOUNDS, Bound, sdp_bound, shift_bound, spectral_bound
from superarm.quadratic.densest import greedy_peeling, peeling_guarantee
from superarm.quadratic.exact import brute_force
from superarm.quadratic.fpk import feige_peleg_kortsarz
from superarm.quadratic.maximise import Maximisation, maximise
from superarm.quadratic.oracles import Maximum, Oracle, exact_search, quadratic_maximum
from superarm.quadratic.reduction import spectral_ratio, theorem_ratio
from superarm.quadratic.swap import multistart, swap_search

__all__ = [
    "BOUNDS",
    "Bound",
    "Maximisation",
    "Maximum",
    "Oracle",
    "brute_force",
    "exact_search",
    "feige_peleg_kortsarz",
    "greedy_peeling",
    "maximise",
    "multistart",
    "peeling_guarantee",
    "quadratic_maximum",
    "sdp_bound",
    "shift_bound",
    "spectral_bound",
    "spectral_ratio",
    "swap_search",
    "theorem_ratio",
]
