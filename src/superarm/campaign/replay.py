"""The looks of a campaign taken again, from its raw totals alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from superarm.campaign.contents import Contents, PhaseRow
from superarm.campaign.course import Course, fingerprint
from superarm.errors import StoreError
from superarm.identification import waiting
from superarm.phase import Go, Next, Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict


@dataclass
class Step:
    """One phase, as far as its totals go."""

    row: PhaseRow
    problem: Problem
    phase: Phase | None
    """None where there is nothing to measure."""
    totals: NDArray[np.float64]
    """Those that count at positions 0, 1, ... up to the first gap."""
    verdict: Verdict
    look: int = 0
    pulls: int = 0
    tally: Tally = field(default_factory=lambda: Tally(0))
    outcome: Outcome | None = None
    taken: list[tuple[int, Verdict]] = field(default_factory=list)

    @property
    def needed(self) -> int | None:
        """When the next look takes place; None after the last."""
        if self.phase is None or isinstance(self.outcome, Stop | Next):
            return None
        return self.phase.looks.time(self.look + 1)


def replay(contents: Contents, course: Course, stage: int, *, every: bool = True) -> list[Step]:
    """Go through the phases of a stage.

    Parameters
    ----------
    every
        Whether to take all looks from the first on, as far as totals go (of an earlier stage: up to
        the look at which it was left); or only the one that each phase is said to stand at.
    """
    problem = course.without(contents.gone(stage))
    first = course.first(problem, stage)
    row = contents.root(stage)
    if isinstance(first, Stop):
        return [Step(row, problem, None, np.zeros(0), first.verdict, outcome=first)]
    steps: list[Step] = []
    phase: Phase | None = first
    said = waiting(course.algorithm, problem, first)
    while phase is not None:
        if fingerprint(phase) != row.fingerprint:
            raise StoreError(
                f"phase {row.serial} cannot be made again as it was: its results came from another "
                "version of the rule, or it was changed by hand"
            )
        step = Step(row, problem, phase, _prefix(contents, row.serial, stage), said)
        step.tally = Tally(phase.plan.size)
        steps.append(step)
        bound = row.look if stage < contents.stages or not every else None
        _look(course, step, phase, bound, every)
        said, phase = step.verdict, None
        if isinstance(step.outcome, Next):
            phase = step.outcome.phase
            found = _child(contents.phases.values(), row, phase)
            if found is None:
                if bound is not None and stage < contents.stages:
                    break  # it was left before that phase began
                raise StoreError(f"phase {row.serial} leads to one that is not there")
            row = found
    return steps


def _look(course: Course, step: Step, phase: Phase, bound: int | None, every: bool) -> None:
    """Take the looks that there are totals for."""
    look = step.look if every else max(0, (bound or 0) - 1)
    while bound is None or look < bound:
        t = phase.looks.time(look + 1)
        if t is None or t > len(step.totals):
            if bound is not None:
                raise StoreError(
                    f"phase {step.row.serial} is said to have had {bound:,} looks, but totals are "
                    f"missing for look {look + 1:,}"
                )
            return
        step.tally.add(phase.plan.order(step.pulls, t), step.totals[step.pulls : t])
        look += 1
        step.look, step.pulls = look, t
        step.outcome = course.algorithm.look(step.problem, phase, step.tally, look)
        step.verdict = step.outcome.verdict
        step.taken.append((look, step.verdict))
        if isinstance(step.outcome, Go) and phase.looks.time(look + 1) is None:
            step.verdict = step.verdict.ended(LAST_LOOK_FAILED)
        if isinstance(step.outcome, Stop | Next):
            return


def _prefix(contents: Contents, serial: int, stage: int) -> NDArray[np.float64]:
    positions, totals = contents.results.counting(serial, contents.edits(stage))
    gaps = np.flatnonzero(positions != np.arange(len(positions)))
    return totals[: gaps[0]] if len(gaps) else totals


def _child(rows: Iterable[PhaseRow], parent: PhaseRow, phase: Phase) -> PhaseRow | None:
    mark = fingerprint(phase)
    for row in rows:
        same = row.stage == parent.stage and row.parent == parent.serial
        if same and row.number == phase.number and row.fingerprint == mark:
            return row
    return None
