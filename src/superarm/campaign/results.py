"""Totals as they were told, and pulls that are out, as a campaign shows them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from superarm.campaign import schema
from superarm.campaign.asking import members_at
from superarm.campaign.course import Course
from superarm.campaign.ids import Key, parse
from superarm.campaign.records import OpenPull, Result, moment
from superarm.campaign.standing import Standing, edits, path
from superarm.campaign.store import Store
from superarm.errors import PullError

_p, _r, _o = schema.phase.c, schema.result.c, schema.open_pull.c


def results(
    connection: Connection,
    where: Standing,
    course: Course,
    *,
    start: int,
    limit: int | None,
    newest: bool,
    only: Key | None = None,
) -> list[Result]:
    """Return totals by phase and position, or the newest first; or the one of a single pull."""
    order: Sequence[Any] = (_r.serial, _r.position, _r.attempt)
    if newest:
        order = [column.desc() for column in (_r.at, *order)]
    asked = select(schema.result).where(_r.campaign == where.id)
    if only is not None:
        asked = asked.where(
            _r.serial == only.serial, _r.position == only.position, _r.attempt == only.attempt
        )
    rows = connection.execute(asked.order_by(*order).offset(start).limit(limit)).all()
    made = edits(connection, where.id)
    way = path(connection, where)
    members = _members(connection, where, course, [(row.serial, row.position) for row in rows])
    found = []
    for row, names in zip(rows, members, strict=True):
        key = Key(row.serial, row.position, row.attempt)
        gone = key in made.voided
        if gone:
            state = "voided"
        elif row.position < way.get(row.serial, 0):
            state = "counts"
        else:
            state = "waiting" if row.serial == where.serial and not where.ended else "not used"
        found.append(
            Result(
                id=str(key),
                members=names,
                total=None if gone else made.amended.get(key, row.total),
                first_total=row.total,
                told_at=moment(row.at),
                worker=row.worker,
                site=row.site,
                phase=row.serial,
                position=row.position,
                state=state,
            )
        )
    return found


def result_of(connection: Connection, where: Standing, course: Course, id: str) -> Result:
    """Return the total of one pull; PullError where none has been told."""
    key = parse(id)
    found = results(connection, where, course, start=0, limit=1, newest=False, only=key)
    if not found:
        raise PullError(f"no total of pull {key} has been told; see the history")
    return found[0]


def open_pulls(connection: Connection, where: Standing, course: Course) -> list[OpenPull]:
    """Return the pulls of the current phase that have no total yet, by position."""
    now = time.time()
    rows = connection.execute(
        select(schema.open_pull)
        .where(_o.campaign == where.id, _o.serial == where.serial)
        .order_by(_o.position)
    ).all()
    members = _members(connection, where, course, [(row.serial, row.position) for row in rows])
    return [
        OpenPull(
            id=str(Key(row.serial, row.position, row.attempt)),
            members=names,
            worker=row.worker,
            given_at=moment(row.given) if row.until > 0 else None,
            until=moment(row.until) if row.until > 0 else None,
            lapsed=0 < row.until < now,
            reason=row.why,
        )
        for row, names in zip(rows, members, strict=True)
    ]


def give_back(store: Store, id: int, keys: Iterable[Key]) -> int:
    """Let others have pulls that are out."""
    given = 0
    with store.write() as connection:
        for key in keys:
            given += connection.execute(
                update(schema.open_pull)
                .where(
                    _o.campaign == id,
                    _o.serial == key.serial,
                    _o.position == key.position,
                    _o.attempt == key.attempt,
                    _o.until > 0,
                )
                .values(worker="", until=0.0, why="given back")
            ).rowcount
    return given


def extend(store: Store, id: int, keys: Iterable[Key], lease: float, worker: str) -> int:
    """Keep pulls that are out, with this worker if one is named, for `lease` seconds from now."""
    kept, until = 0, time.time() + lease
    with store.write() as connection:
        for key in keys:
            kept += connection.execute(
                update(schema.open_pull)
                .where(
                    _o.campaign == id,
                    _o.serial == key.serial,
                    _o.position == key.position,
                    _o.attempt == key.attempt,
                    _o.until > 0,
                    *((_o.worker == worker,) if worker else ()),
                )
                .values(until=until)
            ).rowcount
    return kept


def _members(
    connection: Connection, where: Standing, course: Course, places: Sequence[tuple[int, int]]
) -> list[tuple[str, ...]]:
    """Return the names of the groups at (serial, position)."""
    found: list[tuple[str, ...]] = [()] * len(places)
    for serial in {serial for serial, _ in places}:
        at = [i for i, place in enumerate(places) if place[0] == serial]
        phase = course.of_serial(connection, where, serial)
        assert phase is not None
        stage = connection.execute(
            select(_p.stage).where(_p.campaign == where.id, _p.serial == serial)
        ).scalar_one()
        problem = course.problem(connection, where.id, stage)
        rows = members_at(phase, [places[i][1] for i in at]).tolist()
        for i, row in zip(at, rows, strict=True):
            found[i] = problem.names(row)
    return found
