"""Taking the looks that are due: on a snapshot, outside of any lock, written if nothing changed.

Look j of a phase uses the results of exactly its first t_j positions. Which process takes it does
not matter: all would find the same, and the first to write it is right.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select, update

from superarm.campaign import schema
from superarm.campaign.bulk import add_rows
from superarm.campaign.course import Course, fingerprint, stored_tally
from superarm.campaign.standing import Edits, Standing, edits, standing
from superarm.campaign.store import Store
from superarm.errors import StoreError
from superarm.phase import Next, Outcome, Phase, Stop
from superarm.problem import Problem
from superarm.tally import Tally
from superarm.verdict import Verdict

_c, _p, _r = schema.campaign.c, schema.phase.c, schema.result.c

Vector = NDArray[np.float64]


@dataclass
class Progress:
    """What looks were taken from a snapshot, and where they lead."""

    look: int
    pulls: int
    tally: Tally
    outcome: Outcome | None = None
    taken: list[tuple[int, Verdict]] = field(default_factory=list)


def settle(store: Store, id: int, course: Course) -> Standing:
    """Take every look that is due, and return where the campaign stands then."""
    while True:
        with store.read() as connection:
            where = standing(connection, id)
            if not where.due:
                return where
            phase = course.phase(connection, where)
            problem = course.problem(connection, id, where.stage)
            tally = (
                stored_tally(connection, id, where.serial) if where.look else Tally(phase.plan.size)
            )
            totals = totals_from(connection, where, where.pulls)
        progress = _take(course, problem, phase, where, tally, totals)
        with store.write() as connection:
            now = standing(connection, id, lock=True)
            same = (now.serial, now.changes, now.look) == (where.serial, where.changes, where.look)
            if same:
                _write(connection, course, phase, where, progress)


def totals_from(connection: Connection, where: Standing, start: int) -> Vector:
    """Return the totals that count at positions start, start + 1, ... up to the first gap."""
    positions, totals = counting(connection, where.id, where.serial, start)
    gaps = np.flatnonzero(positions != start + np.arange(len(positions)))
    return totals[: gaps[0]] if len(gaps) else totals


def counting(
    connection: Connection, id: int, serial: int, start: int, found: Edits | None = None
) -> tuple[NDArray[np.int64], Vector]:
    """Return positions from `start` on that have a result, and what counts there."""
    made = edits(connection, id, serial) if found is None else found
    rows = connection.execute(
        select(_r.position, _r.attempt, _r.total)
        .where(_r.campaign == id, _r.serial == serial, _r.position >= start)
        .order_by(_r.position, _r.attempt)
    ).all()
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    columns = list(zip(*rows, strict=True))
    positions = np.array(columns[0], dtype=np.int64)
    attempts = np.array(columns[1], dtype=np.int64)
    totals = np.array(columns[2], dtype=np.float64)
    keep = np.ones(len(positions), dtype=bool)
    for key in made.voided:
        keep &= ~((positions == key.position) & (attempts == key.attempt))
    for key, total in made.amended.items():
        totals[(positions == key.position) & (attempts == key.attempt)] = total
    return positions[keep], totals[keep]


def _take(
    course: Course,
    problem: Problem,
    phase: Phase,
    where: Standing,
    tally: Tally,
    totals: Vector,
) -> Progress:
    """Take all looks that these totals, from position where.pulls on, allow."""
    done = Progress(where.look, where.pulls, tally)
    while True:
        t = phase.looks.time(done.look + 1)
        if t is None or t > where.pulls + len(totals):
            return done
        index = phase.plan.order(done.pulls, t)
        tally.add(index, totals[done.pulls - where.pulls : t - where.pulls])
        done.look, done.pulls = done.look + 1, t
        done.outcome = course.algorithm.look(problem, phase, tally, done.look)
        done.taken.append((done.look, done.outcome.verdict))
        if isinstance(done.outcome, Stop | Next):
            return done


def _write(
    connection: Connection, course: Course, phase: Phase, where: Standing, done: Progress
) -> None:
    now = time.time()
    add_rows(
        connection,
        schema.look,
        [
            (
                where.id,
                where.serial,
                number,
                verdict.pulls,
                _finite(verdict.gap),
                verdict.epsilon,
                _finite(verdict.radius),
                now,
            )
            for number, verdict in done.taken
        ],
    )
    outcome = done.outcome
    following = phase.looks.time(done.look + 1)
    over = isinstance(outcome, Stop | Next) or following is None
    values: dict[str, Any] = {
        "look": done.look,
        "pulls": done.pulls,
        "tally": done.tally.to_bytes() if done.taken else None,
        "needed": None if over else following,
    }
    _set_phase(connection, where, values)
    hot: dict[str, Any] = {}
    if outcome is not None:
        margin = outcome.verdict.radius - outcome.verdict.gap - outcome.verdict.epsilon
        hot["margin"] = _finite(margin)
    if isinstance(outcome, Next):
        hot["serial"] = enter(connection, where, outcome.phase, done)
    elif over:
        certified = outcome is not None and outcome.verdict.certified
        hot["state"] = "certified" if certified else "ended"
    if hot:
        connection.execute(update(schema.campaign).where(_c.id == where.id).values(**hot))


def enter(connection: Connection, where: Standing, phase: Phase, done: Progress) -> int:
    """Begin a phase, or come back to it with the results that it has; return its serial."""
    mark = fingerprint(phase)
    here = _p.campaign == where.id
    found: int | None = connection.execute(
        select(_p.serial).where(
            here,
            _p.stage == where.stage,
            _p.number == phase.number,
            _p.parent == where.serial,
            _p.fingerprint == mark,
        )
    ).scalar_one_or_none()
    origin = {"origin": done.tally.to_bytes(), "origin_look": done.look}
    if found is not None:
        back = where._replace(serial=found)
        restart(connection, back, phase)
        _set_phase(connection, back, origin)
        return found
    serial: int = connection.execute(select(func.max(_p.serial)).where(here)).scalar_one() + 1
    row = new_phase(phase, serial, where.stage, where.serial, mark)
    connection.execute(insert(schema.phase).values(campaign=where.id, **{**row, **origin}))
    return serial


def new_phase(
    phase: Phase, serial: int, stage: int, parent: int | None, mark: str
) -> dict[str, Any]:
    """Return the row of a phase of which nothing is known yet."""
    first = phase.looks.time(1)
    if first is None:
        raise StoreError("a phase without a look cannot be measured")
    return {
        "serial": serial,
        "stage": stage,
        "number": phase.number,
        "parent": parent,
        "fingerprint": mark,
        "frontier": 0,
        "last": phase.looks.end,
        "look": 0,
        "pulls": 0,
        "needed": first,
        "tally": None,
        "origin": None,
        "origin_look": None,
    }


def restart(connection: Connection, where: Standing, phase: Phase) -> None:
    """Forget the looks of a phase, so that they are taken again from its first result on."""
    first = phase.looks.time(1)
    assert first is not None
    c = schema.look.c
    connection.execute(delete(schema.look).where(c.campaign == where.id, c.serial == where.serial))
    _set_phase(
        connection,
        where,
        {
            "look": 0,
            "pulls": 0,
            "tally": None,
            "needed": first,
        },
    )


def _set_phase(connection: Connection, where: Standing, values: dict[str, Any]) -> None:
    connection.execute(
        update(schema.phase)
        .where(_p.campaign == where.id, _p.serial == where.serial)
        .values(**values)
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
