"""rho, rho' and H of Section 4 and Appendix A: maxima over a decision class, in Lambda_p^-1.

Such a maximum is hard to find in general. What is given back says what it is: a value that is
reached and an upper bound on all, which agree where it was found exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from superarm.decision import Decision, TopK, indicators
from superarm.estimate import Matrix
from superarm.plan import Plan
from superarm.problem import Problem
from superarm.quadratic import exact_search, quadratic_maximum, spectral_bound
from superarm.quadratic.bounds import greatest_difference
from superarm.quadratic.family import family_bound, family_search, square_of
from superarm.theory.climb import great_difference, great_exchange
from superarm.theory.coverage import design_information
from superarm.theory.gaps import Means, delta_min

FEW = 2_000
"""Up to so many sets, all of them (and all pairs) are compared."""

_SEARCHED = 300  # arms up to which an exact search is tried
_EFFORT = 4e8  # nodes times n^2 after which it is given up: about two seconds
_EXACT = 1e-8  # a share; the search itself leaves 1e-9


@dataclass(frozen=True)
class Extremum:
    """A maximum over a decision class: `value` is reached, and nothing is above `upper`.

    `how` says where both come from.
    """

    value: float
    upper: float
    how: str

    @property
    def exact(self) -> bool:
        """Whether value and upper agree, rounding apart."""
        return self.upper <= self.value * (1 + _EXACT)

    def times(self, factor: float) -> Extremum:
        """Return the maximum of what is `factor` times as great."""
        return replace(self, value=self.value * factor, upper=self.upper * factor)


def rho(problem: Problem, plan: Plan) -> Extremum:
    """rho(p): the greatest squared norm of a chi_M in Lambda_p^-1.

    Exact for any k of n arms where a search comes to its end, and for classes of few sets.
    """
    W, decision = design_information(plan).inverse(), problem.decision
    if isinstance(decision, TopK):
        return _greatest_of_size(W, decision.k)
    sets = _listed(decision)
    if sets is not None:
        return _exactly(float(((sets @ W) * sets).sum(axis=1).max()))
    found = square_of(W, family_search(W, decision))
    return _between(found, _bounds_on_squares(decision, plan, W))


def rho_prime(problem: Problem, plan: Plan) -> Extremum:
    """rho'(p) = (max over M, M' of the sum over i in M xor M' of sqrt(Lambda_p^-1(i, i)))^2.

    Exact for any k of n arms, as M and M' can be any min(k, n - k) arms each, apart from what they
    share: the 2 min(k, n - k) greatest roots. Exact for classes of few sets too.
    """
    widths, decision = np.sqrt(design_information(plan).diagonal()), problem.decision
    greatest = float(-np.sort(-widths)[: _reach(decision)].sum())
    if isinstance(decision, TopK):
        return Extremum(greatest**2, greatest**2, "the greatest roots")
    sets = _listed(decision)
    if sets is not None:
        whole = sets @ widths
        both = (sets * widths) @ sets.T
        return _exactly(max(0.0, float((whole[:, None] + whole - 2 * both).max())) ** 2)
    bounds = {"the greatest roots": greatest**2}
    if decision.signed:
        heaviest = float(widths[decision.best(widths)].sum())
        bounds["twice the heaviest set"] = (2 * heaviest) ** 2
    return _between(great_exchange(decision, widths) ** 2, bounds)


def rho_difference(problem: Problem, plan: Plan) -> Extremum:
    """Return the greatest squared norm in Lambda_p^-1 of a difference chi_M - chi_M'.

    At most 4 rho(p) and at most rho'(p), by the triangle inequality. (The paper has no sign for
    it.) Exact for classes of few sets.
    """
    W, decision = design_information(plan).inverse(), problem.decision
    sets = _listed(decision)
    if sets is not None:
        inner = sets @ W @ sets.T
        own = np.diagonal(inner)
        return _exactly(max(0.0, float((own[:, None] + own - 2 * inner).max())))
    if decision.least_size == decision.k:  # differences are orthogonal to 1
        unit = greatest_difference(W)
    else:
        unit = float(np.linalg.eigvalsh(W)[-1]) * (1 + 1e-12)
    bounds = {
        "the greatest eigenvalue": _reach(decision) * unit,
        "the triangle inequality": 4 * min(_bounds_on_squares(decision, plan, W).values()),
        "independent widths": rho_prime(problem, plan).upper,
    }
    return _between(great_difference(decision, W), bounds)


def H_epsilon(problem: Problem, plan: Plan, means: Means) -> Extremum:
    """H_epsilon = rho(p)/(Delta_min + epsilon)^2; infinite where both of these are 0."""
    return rho(problem, plan).times(_per_gap(problem, means))


def H_prime_epsilon(problem: Problem, plan: Plan, means: Means) -> Extremum:
    """H'_epsilon = rho'(p)/(Delta_min + epsilon)^2; infinite where both of these are 0."""
    return rho_prime(problem, plan).times(_per_gap(problem, means))


def _per_gap(problem: Problem, means: Means) -> float:
    ahead = delta_min(problem, means) + problem.epsilon
    return 1 / ahead / ahead if ahead > 0 else math.inf


def _greatest_of_size(W: Matrix, k: int) -> Extremum:
    """Exact search, given up when it takes long; then the best set and the best bound."""
    n = len(W)
    if n > _SEARCHED and 1 < k < n:
        found = quadratic_maximum(W, k, "multistart").value
        return _between(found, {"spectral": spectral_bound(W, k)})
    for outcome in exact_search(W, k):
        if outcome.complete:
            return Extremum(outcome.value, max(outcome.value, outcome.bound), "exact search")
        if outcome.nodes * n * n > _EFFORT:
            break
    return _between(outcome.value, {"an unfinished search": outcome.bound})


def _bounds_on_squares(decision: Decision, plan: Plan, W: Matrix) -> dict[str, float]:
    """Upper bounds on x'Wx over the class, by name."""
    if isinstance(decision, TopK):
        return {"spectral": spectral_bound(W, decision.k)}
    bounds = {"spectral": family_bound(W, decision, plan.basis)}
    if decision.signed:
        # Row i of W gives a member i at most the heaviest set's share of it.
        shares = np.array([row[decision.best(row)].sum() for row in W])
        bounds["row by row"] = float(shares[decision.best(shares)].sum())
        widths = np.sqrt(np.diagonal(W))
        bounds["independent widths"] = float(widths[decision.best(widths)].sum()) ** 2
    return bounds


def _reach(decision: Decision) -> int:
    """No two sets differ in more arms."""
    if decision.least_size == decision.k:
        return 2 * min(decision.k, decision.n - decision.k)
    return min(2 * decision.k, decision.n)


def _listed(decision: Decision) -> Matrix | None:
    """Indicators of all sets, where there are few."""
    if decision.log_size > math.log(FEW):
        return None
    return indicators(decision.listed, decision.n)


def _exactly(value: float) -> Extremum:
    return Extremum(value, value, "all sets compared")


def _between(value: float, bounds: dict[str, float]) -> Extremum:
    name = min(bounds, key=bounds.__getitem__)
    return Extremum(value, max(value, bounds[name]), f"a value found; the bound: {name}")
