"""How a campaign stands, for people: the verdict, what is missing, who holds what, how long yet."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sqlalchemy import Connection, func, select

from superarm.campaign import schema
from superarm.campaign.standing import Standing
from superarm.phase import Phase
from superarm.problem import Problem
from superarm.sigma import Estimated, at_look, shares
from superarm.tally import Tally
from superarm.verdict import Verdict

_r, _o = schema.result.c, schema.open_pull.c

_RECENT = 500  # results that the pace is taken from
SURE = 0.95
"""Probability with which all intervals of the arms hold together, at one look."""


@dataclass(frozen=True)
class ArmStatus:
    """One arm: its estimated mean, an interval, and whether it is in the answer for certain.

    `state` is "in" or "out" where its interval, with those of all others, leaves no doubt,
    "contested" where it does, "retired" for one that has left. `chosen`: it is in the best group so
    far. The intervals of all arms hold together with probability 95 % at one look; the certificate
    does not rest on them.
    """

    name: str
    estimate: float | None
    low: float | None
    high: float | None
    chosen: bool
    state: str


@dataclass(frozen=True)
class Status:
    """How a campaign stands.

    Parameters
    ----------
    told, open, lapsed
        Totals told; pulls that are out; those of them whose lease has lapsed.
    missing, next_look
        How many totals the next look waits for, and after how many pulls of the phase it comes.
    margin
        How much the radius exceeds gap + epsilon: what is still missing, <= 0 when it is reached.
    forecast, pace, days_left
        Pulls still to be expected, totals a day of late, and so the days; None where unknown.
    holders
        Open pulls by worker.
    arms
        Every arm, the chosen first, then by estimate.
    warnings
        What speaks against the assumptions (see `diagnose`), as of the results up to `checked`.
    conditions
        Changes that the certificate counts on: their reasons did not depend on totals.
    """

    name: str
    verdict: Verdict
    told: int
    open: int
    lapsed: int
    missing: int
    next_look: int | None
    phase: int
    stage: int
    margin: float
    forecast: int | None
    pace: float | None
    days_left: float | None
    holders: Mapping[str, int]
    arms: tuple[ArmStatus, ...]
    warnings: tuple[str, ...]
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.verdict}"]
        out = f"{self.told:,} totals told, {self.open:,} pulls out"
        if self.lapsed:
            out += f" ({self.lapsed:,} of them lapsed)"
        if self.next_look is not None:
            out += f"; the next look waits for {self.missing:,} more"
        lines.append(f"{out}.")
        if self.days_left is not None and self.pace is not None:
            lines.append(
                f"At {self.pace:,.3g} totals a day, about {self.days_left:,.1f} days left."
            )
        lines += [f"Warning: {text}" for text in self.warnings]
        lines += [f"On condition: {text}" for text in self.conditions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (numbers that are not finite become None)."""
        return {
            "name": self.name,
            "verdict": self.verdict.to_dict(),
            "certified": self.verdict.certified,
            "told": self.told,
            "open": self.open,
            "lapsed": self.lapsed,
            "missing": self.missing,
            "next_look": self.next_look,
            "phase": self.phase,
            "stage": self.stage,
            "margin": self.margin if math.isfinite(self.margin) else None,
            "forecast": self.forecast,
            "pace": self.pace,
            "days_left": self.days_left,
            "holders": dict(self.holders),
            "arms": [dict(vars(arm)) for arm in self.arms],
            "warnings": list(self.warnings),
            "conditions": list(self.conditions),
        }


def _span(days: float) -> str:
    """Return a time in the unit that suits it."""
    for size, unit in ((1.0, "days"), (1 / 24, "hours"), (1 / 1440, "minutes")):
        if days >= 2 * size:
            return f"{days / size:,.0f} {unit}"
    return "2 minutes"


def counts_of_open(connection: Connection, where: Standing) -> tuple[int, int, dict[str, int]]:
    """Return how many pulls are out, how many of them have lapsed, and how many each worker has."""
    held = (_o.until >= time.time()).label("held")
    rows = connection.execute(
        select(_o.worker, held, func.count())
        .where(_o.campaign == where.id, _o.serial == where.serial, _o.until > 0)
        .group_by(_o.worker, "held")
    ).all()
    holders: dict[str, int] = {}
    lapsed = 0
    for worker, here, count in rows:
        if here:
            holders[worker] = holders.get(worker, 0) + count
        else:
            lapsed += count
    return sum(holders.values()) + lapsed, lapsed, dict(sorted(holders.items()))


def told_in_all(connection: Connection, where: Standing) -> int:
    """Return how many positions of all phases have a total that counts."""
    out = select(func.count()).select_from(schema.open_pull).where(_o.campaign == where.id)
    p = schema.phase.c
    handed = select(func.sum(p.frontier)).where(p.campaign == where.id)
    return int(connection.execute(handed).scalar_one()) - int(connection.execute(out).scalar_one())


def pace_of(connection: Connection, where: Standing) -> float | None:
    """Return totals a day, by the latest results of the phase; None where they are too few."""
    late = (
        select(_r.at)
        .where(
            _r.campaign == where.id,
            _r.serial == where.serial,
            _r.position >= max(0, where.frontier - _RECENT),
        )
        .subquery()
    )
    count, first = connection.execute(select(func.count(), func.min(late.c.at))).one()
    if count < 2:
        return None
    days = (time.time() - first) / 86_400
    return count / days if days > 0 else None


def arms_of(
    asked: Problem, problem: Problem, phase: Phase | None, tally: Tally | None, verdict: Verdict
) -> tuple[ArmStatus, ...]:
    """Return every arm with its interval, the chosen first, then by estimate."""
    chosen = set(verdict.answer)
    estimates = verdict.estimates
    found = []
    width = None if phase is None or tally is None else _widths(problem, phase, tally)
    if estimates is None or width is None:
        shown = [None] * problem.n if estimates is None else estimates.tolist()
        found = [
            ArmStatus(name, shown[i], None, None, name in chosen, "contested")
            for i, name in enumerate(problem.arms)
        ]
    else:
        low, high = estimates - width, estimates + width
        states = _states(problem, low, high, chosen)
        found = [
            ArmStatus(
                name, float(estimates[i]), float(low[i]), float(high[i]), name in chosen, states[i]
            )
            for i, name in enumerate(problem.arms)
        ]
    found.sort(key=lambda arm: (not arm.chosen, -problem.sign * (arm.estimate or 0.0)))
    gone = [name for name in asked.arms if name not in problem.index]
    return (*found, *(ArmStatus(name, None, None, None, False, "retired") for name in gone))


def _widths(problem: Problem, phase: Phase, tally: Tally) -> NDArray[np.float64] | None:
    info = phase.information(tally.pulls)
    if info is None or not problem.topk:
        return None
    unsure, for_sigma = shares(problem.noise, 1 - SURE)
    question = at_look(problem, phase, tally, info.estimate(phase.plan, tally))
    if isinstance(question, str):
        return None
    noise = question.noise
    sigma = noise.bound(for_sigma) if isinstance(noise, Estimated) else noise.sigma(problem.k)
    z = float(norm.isf(unsure / (2 * problem.n)))  # sub-Gaussian tails are at most slightly fatter
    wide = max(z, math.sqrt(2 * math.log(2 * problem.n / unsure)))
    found: NDArray[np.float64] = wide * sigma * np.sqrt(np.maximum(0.0, info.diagonal()))
    return found if len(found) == problem.n else None


def _states(
    problem: Problem,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    chosen: set[str],
) -> list[str]:
    """In for certain: ahead of all but k - 1 others, whatever the truth within the intervals."""
    worst, best = (low, high) if problem.sign > 0 else (-high, -low)
    bests, worsts = np.sort(best), np.sort(worst)
    n, k = problem.n, problem.k
    # An arm is in when fewer than k others could be above its worst; its own best is one of them.
    above = n - np.searchsorted(bests, worst, side="left")
    sure_in = above - 1 < k
    ahead = n - np.searchsorted(worsts, best, side="right")
    sure_out = ahead >= k
    return ["in" if sure_in[i] else "out" if sure_out[i] else "contested" for i in range(n)]
