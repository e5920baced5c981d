"""The phases of a campaign, made again from its question, its rule, its seed and its tallies.

A phase is never written down: the first one of a stage follows from the question and the seed, and
each later one from the tally of the look that ended the one before.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from superarm.algorithms import Algorithm
from superarm.campaign import schema
from superarm.campaign.standing import Standing
from superarm.decision import TopK
from superarm.errors import CampaignError, StoreError
from superarm.identification import waiting
from superarm.phase import Go, Next, Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import LAST_LOOK_FAILED, Verdict

_SHOWN = 64  # super-arms and looks that a fingerprint takes in


class Known(NamedTuple):
    """A phase, and what its last look decided (None before the first)."""

    phase: Phase | None
    verdict: Verdict
    outcome: Outcome | None


class Course:
    """Question, rule and seed, and the phases that follow from them."""

    def __init__(self, problem: Problem, algorithm: Algorithm, seed: int) -> None:
        self.asked, self.algorithm, self.seed = problem, algorithm, seed
        self._known: dict[tuple[int, int, int], Known] = {}
        self._phases: dict[tuple[int, int], Phase | None] = {}
        self._problems: dict[frozenset[str], Problem] = {frozenset(): problem}

    def problem(self, connection: Connection, id: int, stage: int) -> Problem:
        """Return the question of a stage: that of the beginning, without who has retired."""
        if stage == 1:
            return self.asked
        c = schema.change.c
        rows = connection.execute(
            select(c.names)
            .where(c.campaign == id, c.kind == "retire")
            .order_by(c.number)
            .limit(stage - 1)
        ).scalars()
        return self.without(frozenset(name for names in rows for name in json.loads(names)))

    def without(self, gone: frozenset[str]) -> Problem:
        """Return the question about the arms that are left."""
        if gone not in self._problems:
            asked = self.asked
            if not isinstance(asked.decision, TopK):
                raise CampaignError(
                    "an arm can retire only where any k of n arms may be chosen; begin a new "
                    "campaign for the others"
                )
            left = [name for name in asked.arms if name not in gone]
            if len(left) < asked.k:
                raise CampaignError(
                    f"{len(left)} arms would be left, too few for a group of {asked.k}; begin a "
                    "new campaign with a smaller k"
                )
            self._problems[gone] = Problem(
                left,
                asked.k,
                asked.noise,
                epsilon=asked.epsilon,
                delta=asked.delta,
                direction=asked.direction,
            )
        return self._problems[gone]

    def seed_of(self, stage: int) -> int:
        """Return the seed of a stage."""
        if stage == 1:
            return self.seed
        return int(np.random.default_rng([self.seed, stage]).integers(2**63))

    def first(self, problem: Problem, stage: int) -> Phase | Stop:
        """Return how a stage begins."""
        return self.algorithm.first(problem, self.seed_of(stage))

    def phase(self, connection: Connection, where: Standing) -> Phase:
        """Return the current phase."""
        found = self._phase(connection, where.id, where.serial, where.changes)
        assert found is not None
        return found

    def of_serial(self, connection: Connection, where: Standing, serial: int) -> Phase | None:
        """Return any phase that there was; None where nothing was to be measured."""
        return self._phase(connection, where.id, serial, where.changes)

    def known(self, connection: Connection, where: Standing) -> Known:
        """Return the current phase with what its last look decided."""
        key = where.serial, where.look, where.changes
        known = self._known.get(key)
        if known is None:
            found = self._find(connection, where)
            self._known = {key: found}  # other threads may put another in its place at once
            return found
        return known

    def _find(self, connection: Connection, where: Standing) -> Known:
        problem = self.problem(connection, where.id, where.stage)
        phase = self._phase(connection, where.id, where.serial, where.changes)
        if phase is None:
            stop = self.first(problem, where.stage)
            assert isinstance(stop, Stop)
            return Known(None, stop.verdict, stop)
        if where.look > 0:
            tally = stored_tally(connection, where.id, where.serial)
            outcome = self.algorithm.look(problem, phase, tally, where.look)
            verdict = outcome.verdict
            if where.ended and isinstance(outcome, Go):
                verdict = verdict.ended(LAST_LOOK_FAILED)
            return Known(phase, verdict, outcome)
        if where.parent is None:
            return Known(phase, waiting(self.algorithm, problem, phase), None)
        closing = self._closing(connection, where.id, where.serial, where.changes)
        return Known(phase, closing.verdict, None)

    def _phase(self, connection: Connection, id: int, serial: int, changes: int) -> Phase | None:
        key = serial, changes
        if key not in self._phases:
            row = _row(connection, id, serial)
            if row.parent is None:
                begun = self.first(self.problem(connection, id, row.stage), row.stage)
                self._phases[key] = begun if isinstance(begun, Phase) else None
            else:
                found = self._closing(connection, id, serial, changes).phase
                if fingerprint(found) != row.fingerprint:
                    raise _other(serial)
                self._phases[key] = found
        return self._phases[key]

    def _closing(self, connection: Connection, id: int, serial: int, changes: int) -> Next:
        """Return the look that led to a phase, made again from the tally that it was taken on."""
        row = _row(connection, id, serial)
        before = self._phase(connection, id, row.parent, changes)
        if before is None or row.origin is None:
            raise _other(serial)
        problem = self.problem(connection, id, row.stage)
        tally = Tally.from_bytes(row.origin)
        outcome = self.algorithm.look(problem, before, tally, row.origin_look)
        if not isinstance(outcome, Next):
            raise _other(serial)
        return outcome


def _other(serial: int) -> StoreError:
    return StoreError(
        f"phase {serial} cannot be made again as it was: its results came from another version of "
        "the rule, or the store was changed by hand"
    )


def stored_tally(connection: Connection, id: int, serial: int) -> Tally:
    """Return the tally of the last look of a phase."""
    p = schema.phase.c
    data = connection.execute(
        select(p.tally).where(p.campaign == id, p.serial == serial)
    ).scalar_one()
    return Tally.from_bytes(data)


def fingerprint(phase: Phase) -> str:
    """Return what tells a phase from another: its plan and its looks."""
    plan = phase.plan
    shown = plan.members(np.arange(min(plan.size, _SHOWN)))
    times = list(islice((phase.looks.time(look) for look in range(1, _SHOWN + 1)), _SHOWN))
    content = json.dumps([phase.number, plan.describe(), shown.tolist(), times], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:24]


def _row(connection: Connection, id: int, serial: int) -> Any:
    p = schema.phase.c
    return connection.execute(
        select(p.stage, p.parent, p.fingerprint, p.origin, p.origin_look).where(
            p.campaign == id, p.serial == serial
        )
    ).one()


def uncertified(verdict: Verdict, reason: str) -> Verdict:
    """Return a verdict without its certificate, and why."""
    return replace(verdict, certificate=None, reason=reason, confidence=None)
