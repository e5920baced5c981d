"""What a decision class can tell: the span of its sets' indicator vectors.

Totals of sets determine x'theta for x in that span, and nothing else of theta. Spanning trees of a
series of edges, paths and matchings rarely span all of R^n; all that a rule compares lies in the
span, so that least squares is done there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from superarm.decision.base import Decision, Rows, as_rows, indicators
from superarm.decision.path import Paths
from superarm.decision.topk import TopK
from superarm.errors import SupportError

Matrix = NDArray[np.float64]

_FOUND = 1e-7  # a set whose indicator is further than this from a span is not in it
_PATIENCE = 20  # draws for each arm without a new direction, before all paths are gone through
_PATHS = 200_000  # more are not gone through


def spanning_sets(decision: Decision, rng: np.random.Generator) -> Rows:
    """Return sets of the class whose indicators are a basis of its span."""
    if isinstance(decision, Paths) and not decision.signed:
        return _spanning_paths(decision, rng)
    basis = _Basis(decision.n)
    while len(basis.sets) < decision.n:
        u = basis.outside(rng.standard_normal(decision.n))
        # If u is orthogonal to every set, then (with probability 1) nothing is outside of the span.
        if not any(basis.add(decision.best(direction)) for direction in (u, -u)):
            break
    return as_rows(basis.sets)


def span_basis(decision: Decision, rng: np.random.Generator) -> Matrix | None:
    """Return an orthonormal basis of the span, in columns; None when it is all of R^n."""
    if isinstance(decision, TopK) and decision.k < decision.n:
        return None
    rows = spanning_sets(decision, rng)
    if len(rows) == decision.n:
        return None
    return np.ascontiguousarray(np.linalg.qr(indicators(rows, decision.n).T)[0])


class _Basis:
    """Sets found to be independent, and an orthonormal basis of their span."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.sets: list[tuple[int, ...]] = []
        self.vectors = np.zeros((n, 0))

    def outside(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what of x is orthogonal to the span (twice: rounding)."""
        for _ in range(2):
            x = x - self.vectors @ (self.vectors.T @ x)
        return x

    def add(self, members: Iterable[int]) -> bool:
        """Take a set in if it is outside of the span; say whether it was."""
        arms = tuple(int(i) for i in members)
        chi = np.zeros(self.n)
        chi[list(arms)] = 1.0
        rest = self.outside(chi)
        length = float(np.linalg.norm(rest))
        if length <= _FOUND * math.sqrt(len(arms)):
            return False
        self.sets.append(arms)
        self.vectors = np.column_stack([self.vectors, rest / length])
        return True


def _spanning_paths(paths: Paths, rng: np.random.Generator) -> Rows:
    """For large graphs with cycles, where a heaviest path cannot be asked for.

    Cheapest paths for random costs, until there are as many as can be independent; should they
    stay short of that, all paths, one after the other.
    """
    basis, most = _Basis(paths.n), paths.most_independent
    quiet = 0
    while len(basis.sets) < most and quiet < _PATIENCE * paths.n:
        quiet = 0 if basis.add(paths.draw(rng)) else quiet + 1
    if len(basis.sets) < most:
        for count, members in enumerate(itertools.islice(paths.sets(), _PATHS + 1)):
            if count == _PATHS:
                raise SupportError(
                    f"there are more than {_PATHS:,} paths, and those drawn do not settle which "
                    "differences paths can tell. Leave out directed edges that no simple path "
                    "uses, or say directed=False where both ways are one arm"
                )
            basis.add(members)
    return as_rows(basis.sets)
