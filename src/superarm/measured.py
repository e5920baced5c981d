"""Pulls and totals as users give them: checked, and as indices and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm._checks import bounded_real, whole
from superarm.errors import ProblemError, SettingError, SupportError, TotalError
from superarm.problem import Problem

Group = Iterable[str] | Iterable[int]


@dataclass(frozen=True)
class Measured:
    """The pulls that have a total.

    Parameters
    ----------
    rows
        The arms of each, by index.
    totals
        The total of each.
    there
        Which of the pulls that were given these are.
    places
        What an error or a warning calls each.
    missing
        How many of the pulls that were given have no total.
    """

    rows: list[tuple[int, ...]]
    totals: NDArray[np.float64]
    there: list[int]
    places: list[str]
    missing: int


def read_measured(
    problem: Problem,
    pulls: Sequence[Group],
    totals: Sequence[float | None],
    places: Sequence[str] | None = None,
) -> Measured:
    """Return the pulls that have a total; an error says which pull or total cannot be."""
    for what, given in (("pulls", pulls), ("totals", totals)):
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
            raise SettingError(f"{what} must be a list, one for each pull, not {given!r}")
    if len(pulls) != len(totals):
        raise SettingError(f"{len(pulls)} pulls need as many totals, not {len(totals)}")
    if places is None:
        places = [f"pull {i + 1}" for i in range(len(pulls))]
    rows = [_indices(problem, *pull) for pull in zip(pulls, places, strict=True)]
    there = [i for i, total in enumerate(totals) if total is not None]
    if not there:
        raise TotalError("no pull has a total yet")
    values = [_valid(problem, totals[i], len(rows[i]), places[i]) for i in there]
    return Measured(
        [rows[i] for i in there],
        np.array(values),
        there,
        [places[i] for i in there],
        len(rows) - len(there),
    )


def _indices(problem: Problem, group: Any, place: str) -> tuple[int, ...]:
    """Return a group of names or of indices as indices."""
    if isinstance(group, str | bytes) or not isinstance(group, Iterable):
        raise ProblemError(f"{place}: a pull must be a group of arms, not {group!r}")
    arms = tuple(group)
    if arms and all(isinstance(arm, str) for arm in arms):
        unknown = [arm for arm in arms if arm not in problem.index]
        if unknown:
            raise ProblemError(f"{place}: {unknown[0]!r} is none of the arms")
        found = tuple(problem.index[arm] for arm in arms)
    else:
        what = f"{place}: an arm's index"
        found = tuple(whole(what, arm, SupportError) for arm in arms)
    if len(set(found)) < len(found) or not problem.decision.contains(found):
        said = ", ".join(map(str, arms))
        what = f"{problem.k} different arms" if problem.topk else "one that may be chosen"
        raise SupportError(f"{place}: the group ({said}) is not {what}")
    return found


def _valid(problem: Problem, total: float | None, size: int, place: str) -> float:
    try:
        value = bounded_real("a total", total, TotalError)
        problem.noise.check_total(value, size)
    except TotalError as error:
        raise TotalError(f"{place}: {error}") from None
    return value + 0.0
