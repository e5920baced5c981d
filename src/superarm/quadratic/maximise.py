"""max x'Wx over size-k sets for a user's own matrix: a set, its value, and a bound on all sets."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm._checks import real
from superarm.errors import ProblemError, SettingError
from superarm.quadratic.bounds import BOUNDS, Bound
from superarm.quadratic.branch import Outcome
from superarm.quadratic.matrix import check_matrix
from superarm.quadratic.oracles import Matrix, Oracle, exact_search, quadratic_maximum

MOST = 10**10
"""Brute force goes through no more sets than this, which takes about a minute."""


@dataclass(frozen=True)
class Maximisation:
    """What `maximise` found.

    Parameters
    ----------
    members
        Row numbers of the set, ascending, from 0.
    value
        x'Wx of the set.
    upper_bound
        No set of this size is above it.
    ratio
        value / upper_bound: at least this share of the maximum is reached; None when the bound is
        not positive, so that shares mean nothing.
    oracle, bound
        How the set was found, and where the bound comes from.
    status
        "optimal": the set is proved to be greatest; "found": it need not be; "time limit" or
        "interrupted": an exact search was ended, and this is what it had.
    seconds
        Time taken.
    """

    members: tuple[int, ...]
    value: float
    upper_bound: float
    ratio: float | None
    oracle: str
    bound: str
    status: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "members": list(self.members)}


def maximise(
    W: Any,
    k: int,
    oracle: Oracle = "multistart",
    bound: Bound | None = None,
    *,
    seconds: float | None = None,
) -> Maximisation:
    """Find a size-k set of great x'Wx, and bound what any set can reach.

    Parameters
    ----------
    W
        A symmetric matrix. It need not be positive semi-definite, though Theorem 1 and the
        guarantees of the paper are for such.
    k
        Size of the set.
    oracle
        "peeling" (the paper's), "fpk", "swap" (peeling, then the best single swaps), "multistart"
        (many such climbs), "exact" (branch and bound: proves its set greatest), "brute-force".
    bound
        "spectral" (the default), "shift" or "sdp": ever sharper, ever slower. An exact search has
        a bound of its own; one that is named as well is taken if it is less.
    seconds
        Ends an exact search. Ctrl-C does so too; either way the best set and bound are returned.
    """
    started = time.perf_counter()
    matrix, k = check_matrix(W, k)
    if bound is not None and bound not in tuple(BOUNDS):
        raise SettingError(f"bound must be one of {', '.join(BOUNDS)}, not {bound!r}")
    limit = math.inf if seconds is None else real("seconds", seconds, SettingError)
    if not limit > 0:
        raise SettingError(f"seconds must be > 0, not {seconds!r}")
    if oracle == "brute-force":
        _check_number(len(matrix), k)
    if oracle == "exact":
        outcome, status = _exact(matrix, k, started + limit)
    else:
        found = quadratic_maximum(matrix, k, oracle)
        proved = found.bound <= found.value or oracle == "brute-force"
        best = found.value if proved else math.inf
        outcome = Outcome(found.members, found.value, best, 0, proved)
        status = "optimal" if proved else "found"
    upper, source = outcome.bound, str(oracle)
    if bound is not None or upper == math.inf:
        named = "spectral" if bound is None else bound
        other = BOUNDS[named](matrix, k)
        if other < upper:
            upper, source = other, named
    upper = max(upper, outcome.value)
    return Maximisation(
        members=tuple(int(i) for i in outcome.members),
        value=outcome.value,
        upper_bound=upper,
        ratio=_ratio(outcome.value, upper),
        oracle=oracle,
        bound=source,
        status=status,
        seconds=time.perf_counter() - started,
    )


def _exact(W: Matrix, k: int, until: float) -> tuple[Outcome, str]:
    """Search until done, the clock says so, or Ctrl-C; and say which."""
    outcome = None
    try:
        for outcome in exact_search(W, k, until):
            if not outcome.complete and time.perf_counter() > until:
                return outcome, "time limit"
    except KeyboardInterrupt:
        if outcome is None:
            raise
        return outcome, "interrupted"
    assert outcome is not None
    return outcome, "optimal" if outcome.complete else "time limit"


def _check_number(n: int, k: int) -> None:
    number = math.comb(n, k)
    if number > MOST:
        raise ProblemError(
            f"brute force would go through about 10^{len(str(number)) - 1} sets; use exact"
        )


def _ratio(value: float, upper: float) -> float | None:
    if value == upper:
        return 1.0
    return float(np.clip(value / upper, -math.inf, 1.0)) if upper > 0 else None
