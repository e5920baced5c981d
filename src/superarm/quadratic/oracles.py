"""All ways to find a set of great x'Wx, behind one interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from superarm.errors import ProblemError, SettingError
from superarm.quadratic.bounds import spectral_bound, sphere_bound
from superarm.quadratic.branch import Outcome, Search, search_bytes
from superarm.quadratic.exact import brute_force
from superarm.quadratic.multipliers import relaxations
from superarm.quadratic.reduction import by_fpk, by_peeling
from superarm.quadratic.swap import multistart, swap_search

Matrix = NDArray[np.float64]
Members = NDArray[np.int64]
Oracle = Literal["peeling", "fpk", "swap", "multistart", "exact", "brute-force"]

TOLERANCE = 1e-9
"""The exact search calls a set greatest when none is greater by more than about this share."""

_FEW = 5_000  # so many sets are compared outright
_ROUNDS = 30  # of better multipliers, before the search is tried again
_TRIES = (1e3, 1e4, 1e5, math.inf)  # nodes of each try
_NODES = 20_000  # between two outcomes
_MEMORY = 4e9  # bytes that the search may take


@dataclass(frozen=True)
class Maximum:
    """A size-k set and its value x'Wx; no set is above `bound` (infinite where none is known)."""

    members: Members
    value: float
    bound: float = math.inf


ORACLES: dict[str, Callable[[Matrix, int], Members]] = {
    "peeling": by_peeling,
    "fpk": by_fpk,
    "swap": lambda W, k: swap_search(W, by_peeling(W, k)),
    "multistart": lambda W, k: multistart(W, by_peeling(W, k)),
    "brute-force": brute_force,
}
"""By name; `exact` is a search that can be watched, `exact_search`."""

NAMES: tuple[str, ...] = (*ORACLES, "exact")


def quadratic_maximum(W: Matrix, k: int, oracle: Oracle = "peeling") -> Maximum:
    """Maximise x'Wx over size-k sets. k = 1 is the exact diagonal maximum, whatever the oracle."""
    if oracle not in NAMES:
        raise SettingError(f"oracle must be one of {', '.join(NAMES)}, not {oracle!r}")
    if oracle == "exact":
        *_, last = exact_search(W, k)
        return Maximum(last.members, last.value, last.bound)
    members = trivial(W, k)
    if members is None:
        members = ORACLES[oracle](W, k)
        return Maximum(members, value_of(W, members))
    return Maximum(members, value_of(W, members), value_of(W, members))


def exact_search(W: Matrix, k: int, until: float = math.inf) -> Iterator[Outcome]:
    """Yield ever better outcomes, the last one complete: a greatest set, up to `TOLERANCE`.

    Multistart finds a set, the relaxation a bound; then branch and bound, taken up again with
    better multipliers when it takes long. It ends early when the clock (`perf_counter`) says so.
    """
    members = trivial(W, k)
    if members is None and math.comb(len(W), k) <= _FEW:
        members = brute_force(W, k)
    if members is not None:
        value = value_of(W, members)
        yield Outcome(members, value, value, 0, True)
        return
    _check_memory(len(W), k)
    members = multistart(W, by_peeling(W, k))
    value, bound, done = value_of(W, members), spectral_bound(W, k), 0
    yield Outcome(members, value, bound, 0, False)
    multipliers = relaxations(W, k, _ROUNDS, until)
    for most in _TRIES:
        relaxed = next(multipliers, None)
        if relaxed is None:
            return
        bound = min(bound, sphere_bound(relaxed, k))
        search = Search(W, k, relaxed, members, value, TOLERANCE * abs(value))
        while search.nodes < most:
            found = search.run(min(_NODES, most - search.nodes), until)
            bound = max(min(bound, found.bound), found.value)
            members, value = found.members, found.value
            yield Outcome(members, value, bound, done + found.nodes, found.complete)
            if found.complete or perf_counter() > until:
                return
        done += search.nodes


def trivial(W: Matrix, k: int) -> Members | None:
    """Return the greatest set where that takes no search: k = 1 and k = n."""
    if k == len(W):
        return np.arange(k)
    return np.array([np.argmax(np.diagonal(W))]) if k == 1 else None


def value_of(W: Matrix, members: Members) -> float:
    """x'Wx."""
    return float(W[np.ix_(members, members)].sum())


def _check_memory(n: int, k: int) -> None:
    needed = search_bytes(n, k)
    if needed > _MEMORY:
        raise ProblemError(
            f"an exact search with n = {n} and k = {k} would take {needed / 1e9:.0f} GB; "
            "use multistart, with a bound"
        )
