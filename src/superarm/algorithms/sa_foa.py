"""Algorithm 3, SA-FOA: static allocation with first-order approximation (a heuristic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from superarm._checks import flag, real, whole
from superarm._jit import njit_fast
from superarm.algorithms.base import (
    GEOMETRIC,
    PAPER,
    Sides,
    Static,
    Vector,
    check_choice,
    check_topk,
)
from superarm.confidence import Constants, Radius, ellipsoid
from superarm.decision import TopK
from superarm.errors import SettingError
from superarm.information import Information
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.quadratic.bounds import greatest_difference
from superarm.quadratic.densest import peel_from
from superarm.schedule import Every


@dataclass(frozen=True, kw_only=True)
class SAFOA(Static):
    """Stop when the best rival found is within a threshold: threshold * epsilon >= Z' - theta^(M^).

    Z' is the best value found of problem (5)::

        max over M != M^ of theta^(M) + C_t |M - M^|

    For each of l*n super-arms M_i drawn from the support, the norm is replaced by its first-order
    bound at M_i, which makes (5) a quadratic maximisation for Algorithm 1 (with greedy peeling).
    Z' is found, not proved to be the maximum: the verdict carries no certificate. With `certified`
    an upper bound on (5) takes its place, which makes the stop safe: d swaps away from M^ the norm
    is at most sqrt(2 d) times the greatest of a unit vector orthogonal to 1, so that the bound is
    the greatest over d of the d best swaps' gain plus C_t times that (one sort).

    Parameters
    ----------
    threshold
        1, or 1/2 as Algorithm 3 prints it.
    draws
        l, so that l*n super-arms are drawn at a look.
    certified
        Whether to compare with an upper bound on every rival instead of the strongest one found.
    constants
        Of Proposition 1: "corrected", or "paper" as printed.
    """

    threshold: float = 1.0
    draws: int = 1
    certified: bool = False
    constants: Constants = "corrected"

    name: ClassVar[str] = "sa-foa"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "corrected": {},
        "text": {**PAPER, "threshold": 0.5, "schedule": Every()},
        "experiments": {**PAPER, "schedule": GEOMETRIC},
    }

    def check_settings(self) -> None:
        check_choice("constants", self.constants, ("corrected", "paper"))
        threshold = real("threshold", self.threshold, SettingError)
        if not 0 < threshold <= 1:
            raise SettingError(f"threshold must be in (0, 1], not {self.threshold!r}")
        object.__setattr__(self, "threshold", threshold)
        flag("certified", self.certified, SettingError)
        whole("draws", self.draws, SettingError, least=1, most=1_000_000)

    def check(self, problem: Problem) -> None:
        check_topk(problem, self.name)

    def constant(self, problem: Problem, delta: float) -> Radius:
        log_size = problem.decision.log_size
        return ellipsoid(self.scale(problem), log_size, delta, self.constants, self.schedule.number)

    def sides(
        self, problem: Problem, phase: Phase, look: int, theta: Vector, info: Information, C: float
    ) -> Sides:
        topk = TopK(problem.n, problem.k)
        best = topk.best(theta)
        epsilon = self.threshold * problem.epsilon
        if self.certified:
            unit = info.homogeneous(greatest_difference, "greatest_difference") / info.scale
            gains = topk.swap_gains(theta, best)
            radii = C * np.sqrt(2 * np.arange(1, len(gains) + 1) * unit)
            d = int(np.argmax(gains + radii))
            return Sides(best, float(-gains[d]), epsilon, float(radii[d]))
        drawn = phase.rng(look).integers(phase.plan.size, size=self.draws * problem.n)
        rows = phase.plan.members(np.unique(drawn))
        rival = first_order_rival(info.inverse(), theta, best, rows, C)
        if rival is None:  # every draw led back to M^ itself: the closest rival is what is left
            rival = topk.best_two(theta)[1]
        x = np.zeros(problem.n)
        x[best] += 1.0
        x[rival] -= 1.0
        return Sides(best, float(x @ theta), epsilon, C * info.norm(x))

    def objection(self, problem: Problem) -> str:
        if self.certified:
            return ""
        return "SA-FOA is a heuristic: the rival it compares with need not be the strongest"


def first_order_rival(
    W: NDArray[np.float64],
    theta: Vector,
    best: NDArray[np.int64],
    drawn: NDArray[np.int64],
    C: float,
) -> NDArray[np.int64] | None:
    """Return the best of the sets F that the drawn super-arms lead to, without `best` itself."""
    rows, found = _candidates(W, theta, best, drawn, C)
    return rows[np.argmax(found)] if len(found) and found.max() > -np.inf else None


@njit_fast
def _candidates(W, theta, best, drawn, C):  # type: ignore[no-untyped-def]
    """For each M_i: maximise over B = gamma W - 2 gamma Diag(W chi^) + Diag(theta) by peeling.

    Returns the sets and theta(M) + C |M - M^| of each (-inf where there is none). B depends on M_i
    through gamma alone, and its graph through the vertices' own weights.
    """
    n, k = len(theta), len(best)
    inside = np.zeros(n)
    inside[best] = 1.0
    towards = W @ inside
    own = 0.0
    for i in best:
        own += towards[i]
    off = np.empty(n)
    for i in range(n):
        off[i] = W[i].sum() - W[i, i]
    rows = np.empty((drawn.shape[0], k), np.int64)
    values = np.full(drawn.shape[0], -np.inf)
    for d in range(drawn.shape[0]):
        size = distance(W, towards, own, drawn[d])
        if size <= 0.0:  # M_i = M^
            continue
        gamma = C / (2.0 * size)
        # Peeling B/gamma orders vertices as peeling B does, and leaves W itself untouched.
        vertex = np.empty(n)
        for i in range(n):
            vertex[i] = W[i, i] - 2.0 * towards[i] + theta[i] / gamma
        members = peel_from(W, vertex, off.copy(), k) if k > 1 else top_one(vertex)
        rows[d] = members
        away = distance(W, towards, own, members)
        if away > 0.0:
            values[d] = theta[members].sum() + C * away
    return rows, values


@njit_fast
def top_one(values):  # type: ignore[no-untyped-def]
    """Index of the greatest value, as a set."""
    return np.full(1, np.argmax(values), np.int64)


@njit_fast
def distance(W, towards, own, members):  # type: ignore[no-untyped-def]
    """|M - M^| in W, given W chi^ and chi^' W chi^; 0 when M = M^ (up to rounding)."""
    total = own
    for i in members:
        total -= 2.0 * towards[i]
        for j in members:
            total += W[i, j]
    return np.sqrt(total) if total > 1e-12 * own else 0.0
