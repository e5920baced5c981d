"""Totals that were measured by a plan fixed in advance: one look at all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from superarm.algorithms import Algorithm, Static, default_algorithm
from superarm.algorithms.base import check_algorithm
from superarm.design.listed import Listed
from superarm.diagnostics import Diagnostics, examine
from superarm.errors import SettingError
from superarm.measured import Group, read_measured
from superarm.phase import Stop
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict, digits_up


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
    diagnostics
        Whether the totals look as the certificate takes them to be; its warnings are those of the
        verdict. None where there is nothing to check.
    """

    verdict: Verdict
    epsilon_reached: float | None
    diagnostics: Diagnostics | None = None

    def __str__(self) -> str:
        return str(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        checks = None if self.diagnostics is None else self.diagnostics.to_dict()
        return {
            **self.verdict.to_dict(),
            "epsilon_reached": self.epsilon_reached,
            "diagnostics": checks,
        }


def analyse(
    problem: Problem,
    pulls: Sequence[Group],
    totals: Sequence[float | None],
    algorithm: Algorithm | None = None,
    *,
    places: Sequence[str] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    times: Sequence[float] | None = None,
) -> Analysis:
    """Answer from the totals of pulls that were fixed before the first was measured.

    There is one look, after the last pull, which may spend all of delta. The totals are checked
    too (see `diagnose`); a warning changes neither the answer nor the certificate.

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
    labels, times
        What `diagnose` may compare: by kind, the label of each pull (a site, a worker), and when it
        was measured.
    """
    rule = check_algorithm(default_algorithm(problem) if algorithm is None else algorithm)
    if not isinstance(rule, Static):
        raise SettingError(f"{rule.name} has several phases; analyse with icb, saqm or exhaustive")
    measured = read_measured(problem, pulls, totals, places)
    count = len(measured.rows)
    rule = rule.at_once(Listed(measured.rows), count)
    phase = rule.first(problem, 0)
    if isinstance(phase, Stop):
        return Analysis(phase.verdict, 0.0)
    tally = Tally(phase.plan.size)
    tally.add(phase.plan.order(0, count), measured.totals)
    checked = examine(problem, measured, labels=labels, times=times)
    verdict = replace(rule.look(problem, phase, tally, 1).verdict, warnings=tuple(checked.warnings))
    if measured.missing:
        planned = count + measured.missing
        reason = f"{measured.missing:,} of {planned:,} planned totals are missing"
        return Analysis(verdict.ended(reason), None, checked)
    reached = max(0.0, verdict.radius - verdict.gap)
    known = not rule.objection(problem) and math.isfinite(reached)
    if not verdict.done:
        only = f"these pulls show only that it is within {digits_up(reached):g} of the best"
        failed = LAST_LOOK_FAILED if verdict.answer else verdict.reason
        verdict = verdict.ended(only if known else failed)
    return Analysis(verdict, reached if known else None, checked)
