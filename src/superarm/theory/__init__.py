"""The paper's theory as functions: how hard an instance is, and how many pulls suffice for it.

- `gaps`: Delta_min;
- `extremes`: rho, rho' and H of Section 4 and Appendix A, for a plan's proportions;
- `guarantees`: Theorem 3, Corollary 1, Lemma 3, and what holds likewise for the other rules;
- `lower_bound`: pulls that every method needs;
- `pulls`: from "t >= a (2 log t + b)" to a number, exactly and by the paper's closed forms;
- `condition`: the least condition number that there can be (the paper's Lemma 7).

Where the paper's derivation has a slip, the functions follow the corrected one and name the
difference; docs/explanation/theory.md proves each.
"""

from superarm.theory.condition import least_condition_number
from superarm.theory.extremes import (
    Extremum,
    H_epsilon,
    H_prime_epsilon,
    rho,
    rho_difference,
    rho_prime,
)
from superarm.theory.gaps import delta_min
from superarm.theory.guarantees import (
    Guarantee,
    corollary1_bound,
    difference_bound,
    guarantee,
    lemma3_bound,
    levels_bound,
    theorem3_bound,
)
from superarm.theory.lower_bound import LowerBound, isotropic_bound, lower_bound
from superarm.theory.pulls import (
    mended_form,
    printed_corollary1,
    printed_lemma3,
    sufficient_pulls,
)

__all__ = [
    "Extremum",
    "Guarantee",
    "H_epsilon",
    "H_prime_epsilon",
    "LowerBound",
    "corollary1_bound",
    "delta_min",
    "difference_bound",
    "guarantee",
    "isotropic_bound",
    "least_condition_number",
    "lemma3_bound",
    "levels_bound",
    "lower_bound",
    "mended_form",
    "printed_corollary1",
    "printed_lemma3",
    "rho",
    "rho_difference",
    "rho_prime",
    "sufficient_pulls",
    "theorem3_bound",
]
