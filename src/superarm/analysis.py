"""Totals that were measured by a plan fixed in advance: one look at all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm._checks import bounded_real, whole
from superarm.algorithms import Static, default_algorithm
from superarm.algorithms.base import check_algorithm
from superarm.design.listed import Listed
from superarm.errors import ProblemError, SettingError, SupportError, TotalError
from superarm.phase import Stop
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict, digits_up

Group = Iterable[str] | Iterable[int]


@dataclass(frozen=True)
class Analysis:
    """What totals of a plan say.

    Parameters
    ----------
    verdict
        The answer, with a certificate where it is as near to the best as was asked for; that of
        `Certified` names the epsilon which is reached, whatever was asked for.
    epsilon_reached
        How near to the best the answer is with probability 1 - delta, whatever was asked for; None
        where nothing can be said (totals are missing, or the rule is a heuristic).
    """

    verdict: Verdict
    epsilon_reached: float | None

    def __str__(self) -> str:
        return str(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**self.verdict.to_dict(), "epsilon_reached": self.epsilon_reached}


def analyse(
    problem: Problem,
    pulls: Sequence[Group],
    totals: Sequence[float | None],
    algorithm: Static | None = None,
    *,
    places: Sequence[str] | None = None,
) -> Analysis:
    """Answer from the totals of pulls that were fixed before the first was measured.

    There is one look, after the last pull, which may spend all of delta.

    Parameters
    ----------
    pulls
        The group of each pull, by names or by indices, in the order of the plan.
    totals
        The total of each; None where one is missing. Then the look cannot take place: the answer
        is the best guess from the others, without a certificate.
    algorithm
        The rule; by default `Certified` for the best k of n arms, `ICB` for other classes. Its
        design and schedule are replaced by these pulls and this look.
    places
        What an error calls each pull; "pull 1", "pull 2" and so on, if not given.
    """
    rule = check_algorithm(default_algorithm(problem) if algorithm is None else algorithm)
    if not isinstance(rule, Static):
        raise SettingError(f"{rule.name} has several phases; analyse with icb, saqm or exhaustive")
    for what, given in (("pulls", pulls), ("totals", totals)):
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
            raise SettingError(f"{what} must be a list, one for each pull, not {given!r}")
    if len(pulls) != len(totals):
        raise SettingError(f"{len(pulls)} pulls need as many totals, not {len(totals)}")
    if places is None:
        places = [f"pull {i + 1}" for i in range(len(pulls))]
    rows = [_indices(problem, *pull) for pull in zip(pulls, places, strict=True)]
    there = [i for i, total in enumerate(totals) if total is not None]
    missing = len(rows) - len(there)
    if not there:
        raise TotalError("no pull has a total yet")
    rule = rule.at_once(Listed([rows[i] for i in there]), len(there))
    phase = rule.first(problem, 0)
    if isinstance(phase, Stop):
        return Analysis(phase.verdict, 0.0)
    tally = Tally(phase.plan.size)
    values = [_valid(problem, totals[i], len(rows[i]), places[i]) for i in there]
    tally.add(phase.plan.order(0, len(there)), np.array(values))
    verdict = rule.look(problem, phase, tally, 1).verdict
    if missing:
        reason = f"{missing:,} of {len(rows):,} planned totals are missing"
        return Analysis(verdict.ended(reason), None)
    reached = max(0.0, verdict.radius - verdict.gap)
    known = not rule.objection(problem) and math.isfinite(reached)
    if not verdict.done:
        only = f"these pulls show only that it is within {digits_up(reached):g} of the best"
        verdict = verdict.ended(only if known else LAST_LOOK_FAILED)
    return Analysis(verdict, reached if known else None)


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
