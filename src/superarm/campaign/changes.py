"""What is done besides telling: amend, void, undo, retire, and totals from outside the plan.

All are added to a history that nothing is taken from. A change inside a look that was taken already
sends its phase back to the start, and its looks are taken again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from superarm.campaign import schema
from superarm.campaign.course import Course, fingerprint
from superarm.campaign.ids import Key, never_asked
from superarm.campaign.looks import new_phase, restart
from superarm.campaign.records import Change, moment
from superarm.campaign.standing import Edits, Standing, edits, path, standing
from superarm.campaign.store import Store
from superarm.errors import CampaignError, ConflictError, PullError
from superarm.phase import Phase

_c, _p, _r, _o, _h = (
    schema.campaign.c,
    schema.phase.c,
    schema.result.c,
    schema.open_pull.c,
    schema.change.c,
)


def note(
    connection: Connection,
    id: int,
    *,
    kind: str,
    worker: str,
    reason: str,
    key: Key | None = None,
    serial: int | None = None,
    total: float | None = None,
    target: int | None = None,
    by_value: bool = False,
    names: Sequence[str] = (),
) -> int:
    """Add a line to the history; return its number."""
    most = select(func.coalesce(func.max(_h.number), 0)).where(_h.campaign == id)
    number: int = connection.execute(most).scalar_one() + 1
    connection.execute(
        insert(schema.change).values(
            campaign=id,
            number=number,
            at=time.time(),
            worker=worker,
            kind=kind,
            serial=serial if key is None else key.serial,
            position=None if key is None else key.position,
            attempt=None if key is None else key.attempt,
            total=total,
            target=target,
            by_value=by_value,
            reason=reason,
            names=json.dumps(list(names), ensure_ascii=False),
        )
    )
    return number


def amend(
    store: Store, id: int, course: Course, key: Key, total: float, reason: str, worker: str
) -> int:
    """Put another total in the place of one that was told."""
    with store.write() as connection:
        where = standing(connection, id, lock=True)
        _told(connection, where, key, edits(connection, id))
        number = note(
            connection, id, kind="amend", worker=worker, reason=reason, key=key, total=total
        )
        _touch(connection, where, course, key)
        return number


def void(
    store: Store, id: int, course: Course, key: Key, reason: str, worker: str, by_value: bool
) -> int:
    """Take a total out; its position is asked again."""
    with store.write() as connection:
        where = standing(connection, id, lock=True)
        _told(connection, where, key, edits(connection, id))
        number = note(
            connection, id, kind="void", worker=worker, reason=reason, key=key, by_value=by_value
        )
        connection.execute(
            insert(schema.open_pull).values(
                campaign=id,
                serial=key.serial,
                position=key.position,
                attempt=key.attempt + 1,
                worker="",
                given=time.time(),
                until=0.0,
                why="voided",
            )
        )
        _touch(connection, where, course, key)
        return number


def undo(
    store: Store, id: int, course: Course, number: int | None, reason: str, worker: str
) -> int:
    """Take an amend or a void back: the last one, or that with a number."""
    with store.write() as connection:
        where = standing(connection, id, lock=True)
        row = _to_undo(connection, id, number)
        key = Key(row.serial, row.position, row.attempt)
        if row.kind == "void":
            _unvoid(connection, id, key)
        found = note(
            connection, id, kind="undo", worker=worker, reason=reason, key=key, target=row.number
        )
        _touch(connection, where, course, key)
        return found


def outside(
    store: Store, id: int, names: Sequence[str], total: float, reason: str, worker: str
) -> int:
    """Write down a total that no pull asked for; no look uses it."""
    with store.write() as connection:
        standing(connection, id, lock=True)
        return note(
            connection, id, kind="outside", worker=worker, reason=reason, total=total, names=names
        )


def retire(
    store: Store, id: int, course: Course, names: Sequence[str], reason: str, worker: str
) -> int:
    """Let arms leave for good: a new stage begins, with fresh results, on those that are left."""
    with store.write() as connection:
        where = standing(connection, id, lock=True)
        problem = course.problem(connection, id, where.stage)
        unknown = [name for name in names if name not in problem.index]
        if unknown:
            raise CampaignError(f"{unknown[0]!r} is none of the arms that are measured")
        left = course.without(frozenset(course.asked.arms) - frozenset(problem.arms) | set(names))
        first = course.first(left, where.stage + 1)
        number = note(connection, id, kind="retire", worker=worker, reason=reason, names=names)
        most = select(func.max(_p.serial)).where(_p.campaign == id)
        serial = connection.execute(most).scalar_one() + 1
        row = begun(first, serial, where.stage + 1)
        connection.execute(insert(schema.phase).values(campaign=id, **row))
        connection.execute(
            update(schema.campaign)
            .where(_c.id == id)
            .values(
                serial=serial,
                changes=where.changes + 1,
                state="measuring" if isinstance(first, Phase) else "certified",
                margin=None,
            )
        )
        return number


def begun(first: Any, serial: int, stage: int) -> dict[str, Any]:
    """Return the row of the first phase of a stage; a mere place where nothing is to be measured.

    `first` is what the rule begins with: a phase, or a stop.
    """
    if isinstance(first, Phase):
        return new_phase(first, serial, stage, None, fingerprint(first))
    nothing = dict.fromkeys(("frontier", "last", "look", "pulls"), 0)
    return {
        **nothing,
        "serial": serial,
        "stage": stage,
        "number": 1,
        "parent": None,
        "fingerprint": "",
        "needed": None,
        "tally": None,
        "origin": None,
        "origin_look": None,
    }


def history(connection: Connection, id: int) -> list[Change]:
    """Return all changes in their order."""
    rows = connection.execute(
        select(schema.change).where(_h.campaign == id).order_by(_h.number)
    ).all()
    return described(rows)


def described(rows: Sequence[Any]) -> list[Change]:
    """Return rows of the history as changes, with what each says."""
    undone = {row.target for row in rows if row.kind == "undo"}
    return [_change(row, row.number in undone) for row in rows]


def _change(row: Any, undone: bool) -> Change:
    key = None if row.position is None else str(Key(row.serial, row.position, row.attempt))
    names = tuple(json.loads(row.names))
    return Change(
        number=row.number,
        at=moment(row.at),
        kind=row.kind,
        id=key,
        total=None if row.kind == "put off" else row.total,
        reason=row.reason,
        worker=row.worker,
        because_of_value=bool(row.by_value),
        names=names,
        target=row.target,
        undone=undone,
        text=_text(row, key, names, undone),
    )


def _text(row: Any, key: str | None, names: Sequence[str], undone: bool) -> str:
    why = f": {row.reason}" if row.reason else ""
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    said = {
        "amend": f"pull {key} amended to {row.total!r}{why}",
        "void": f"pull {key} voided{' because of its value' if row.by_value else ''}{why}",
        "undo": f"change {row.target} (pull {key}) taken back{why}",
        "retire": f"{listed} left for good{why}",
        "put off": f"{row.total or 0:,.0f} groups put off, {row.reason}",
        "outside": f"total {row.total!r} of {listed}, measured outside the plan{why}",
    }[row.kind]
    return f"{said} (taken back later)" if undone else said


def _told(connection: Connection, where: Standing, key: Key, made: Edits) -> None:
    """Raise unless a pull has a total that counts."""
    there = connection.execute(
        select(_r.total).where(
            _r.campaign == where.id,
            _r.serial == key.serial,
            _r.position == key.position,
            _r.attempt == key.attempt,
        )
    ).first()
    if there is None:
        frontier = connection.execute(
            select(_p.frontier).where(_p.campaign == where.id, _p.serial == key.serial)
        ).scalar_one_or_none()
        if frontier is None or key.position >= frontier:
            raise never_asked(str(key))
        raise PullError(f"pull {key} has no total yet: tell it first")
    if key in made.voided:
        raise ConflictError(f"pull {key} is voided: undo that first")


def _to_undo(connection: Connection, id: int, number: int | None) -> Any:
    rows = connection.execute(
        select(schema.change)
        .where(_h.campaign == id, _h.kind.in_(("amend", "void", "undo")))
        .order_by(_h.number)
    ).all()
    undone = {row.target for row in rows if row.kind == "undo"}
    there = [row for row in rows if row.kind != "undo" and row.number not in undone]
    if number is None:
        if not there:
            raise CampaignError("there is no amend and no void that could be undone")
        return there[-1]
    for row in there:
        if row.number == number:
            return row
    raise CampaignError(
        f"change {number} cannot be undone: it is no amend or void that still stands"
    )


def _unvoid(connection: Connection, id: int, key: Key) -> None:
    """Take back the asking that a void led to; refuse where that has a total already."""
    # First: a total of it that is told at this moment is waited for, and seen then.
    connection.execute(
        delete(schema.open_pull).where(
            _o.campaign == id, _o.serial == key.serial, _o.position == key.position
        )
    )
    again = connection.execute(
        select(_r.attempt)
        .where(_r.campaign == id, _r.serial == key.serial, _r.position == key.position)
        .order_by(_r.attempt.desc())
    ).scalars()
    latest = next(iter(again))
    if latest > key.attempt:
        raise ConflictError(
            f"pull {key} was measured again, as {key._replace(attempt=latest)}: the void can no "
            "longer be undone; amend that one if it is wrong"
        )


def _touch(connection: Connection, where: Standing, course: Course, key: Key) -> None:
    """Let the looks follow a change of one result."""
    connection.execute(
        update(schema.campaign).where(_c.id == where.id).values(changes=where.changes + 1)
    )
    way = path(connection, where)
    if key.serial not in way:
        return  # of a phase that led nowhere
    if key.position >= way[key.serial]:
        return  # no look has used it yet
    phase = course.of_serial(connection, where, key.serial)
    assert phase is not None
    restart(connection, where._replace(serial=key.serial), phase)
    connection.execute(
        update(schema.campaign)
        .where(_c.id == where.id)
        .values(serial=key.serial, state="measuring", margin=None)
    )
