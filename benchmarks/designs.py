"""Optimal designs against cvxpy.

The same super-arms for both. cvxpy (with CLARABEL) solves the G-optimal design as max log det,
which has the same solution, and the XY-optimal design as stated, with one constraint a direction.
Ours then runs to the tolerance that cvxpy has reached, by our own lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from common import Options, Row, clock, in_turns, seconds, tell
from mip import missing

import superarm as sa

FINEST = 1e-6
"""Ours goes no further than this tolerance: rounding is not far."""
PER_ARM = 4
"""Super-arms for each arm."""


def rows(options: Options) -> list[Row]:
    why = missing("cvxpy")
    if why:
        return [Row("cvxpy", why)]
    g, xy = ((20, 5), (36, 10)), ((8, 3), (12, 4))
    if options.quick:
        g, xy = ((6, 2),), ((5, 2),)
    return [
        *(row("g_optimal", g_by_cvxpy, n, k) for n, k in g),
        *(row("xy_optimal, swaps", xy_by_cvxpy, n, k) for n, k in xy),
    ]


def row(name: str, theirs: Callable[[np.ndarray], np.ndarray], n: int, k: int) -> Row:
    tell(f"{name}, ({n}, {k}), cvxpy")
    sets = super_arms(n, k)
    X = np.zeros((len(sets), n))
    np.put_along_axis(X, sets, 1.0, axis=1)
    directions = X if name == "g_optimal" else swaps(n)
    given: list[np.ndarray] = []
    taken = clock(lambda: given.append(theirs(X)))
    value = greatest(X, directions, given[0])

    def optimise(tolerance: float) -> sa.Allocation:
        if name == "g_optimal":
            return sa.g_optimal(sets, n=n, tolerance=tolerance)
        return sa.xy_optimal(sets, "swaps", n=n, tolerance=tolerance)

    bound = optimise(FINEST).bound
    reached = max(FINEST, value / bound - 1)
    ours = optimise(reached)
    time = in_turns({"": partial(optimise, reached)}, 3)[""].least
    return Row(
        f"{name}, ({n}, {k}), {len(sets)} super-arms",
        f"{seconds(time)}, value {ours.value:.7g}; cvxpy {seconds(taken)}, value {value:.7g}; "
        f"no value below {bound:.7g}",
        ratios=(taken / time,),
    )


def super_arms(n: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    draws = [np.sort(rng.choice(n, k, replace=False)) for _ in range(PER_ARM * n)]
    return np.unique(np.array(draws), axis=0)


def swaps(n: int) -> np.ndarray:
    i, j = np.triu_indices(n, 1)
    return np.eye(n)[i] - np.eye(n)[j]


def greatest(X: np.ndarray, directions: np.ndarray, p: np.ndarray) -> float:
    """The greatest y' Lambda_p^-1 y, whoever found p."""
    p = np.maximum(p, 0) / np.maximum(p, 0).sum()
    W = np.linalg.inv(X.T @ (p[:, None] * X))
    return float(np.einsum("ij,jk,ik->i", directions, W, directions).max())


def information(X: np.ndarray, p: object) -> object:
    """Lambda_p as an expression of cvxpy."""
    import cvxpy as cp

    n = X.shape[1]
    products = np.einsum("ij,ik->jki", X, X).reshape(n * n, len(X))
    return cp.reshape(products @ p, (n, n), order="C")


def g_by_cvxpy(X: np.ndarray) -> np.ndarray:
    import cvxpy as cp

    p = cp.Variable(len(X), nonneg=True)
    cp.Problem(cp.Maximize(cp.log_det(information(X, p))), [cp.sum(p) == 1]).solve("CLARABEL")
    return p.value


def xy_by_cvxpy(X: np.ndarray) -> np.ndarray:
    import cvxpy as cp

    p = cp.Variable(len(X), nonneg=True)
    matrix = information(X, p)
    norms = [cp.matrix_frac(y, matrix) for y in swaps(X.shape[1])]
    cp.Problem(cp.Minimize(cp.max(cp.hstack(norms))), [cp.sum(p) == 1]).solve("CLARABEL")
    return p.value
