"""Rows of a campaign that comes from elsewhere: from a file, or from another store."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.exc import IntegrityError

from superarm.campaign import schema
from superarm.campaign.bulk import add_rows
from superarm.campaign.contents import Contents
from superarm.campaign.replay import Step
from superarm.campaign.store import Store
from superarm.errors import CampaignError

_TABLES = (
    schema.question,
    schema.phase,
    schema.result,
    schema.open_pull,
    schema.change,
    schema.look,
)
_PART = 50_000  # rows at a time


def write(connection: Connection, contents: Contents, name: str, steps: Sequence[Step]) -> None:
    """Write a campaign as its replay, `steps`, says that it stands."""
    last = steps[-1]
    state, margin = "measuring", None
    if last.needed is None:
        state = "certified" if last.verdict.certified else "ended"
    if last.look:
        margin = _finite(last.verdict.radius - last.verdict.gap - last.verdict.epsilon)
    id = begin(
        connection,
        name=name,
        created=contents.created,
        seed=str(contents.seed),
        serial=contents.serial,
        changes=len(contents.changes),
        state=state,
        margin=margin,
    )
    problem, rule = (
        json.dumps(part, ensure_ascii=False) for part in (contents.problem, contents.rule)
    )
    connection.execute(insert(schema.question).values(campaign=id, problem=problem, rule=rule))
    told = contents.results
    stood = _standing(steps)
    for row in contents.phases.values():
        values = row._asdict() | stood.get(row.serial, _NOWHERE)
        del values["members"]
        connection.execute(insert(schema.phase).values(campaign=id, **values))
    columns = (told.serial.tolist(), told.position.tolist(), told.attempt.tolist())
    columns += (told.total.tolist(), told.at.tolist(), told.worker, told.site)  # type: ignore[assignment]
    add_rows(connection, schema.result, [(id, *row) for row in zip(*columns, strict=True)])
    add_rows(connection, schema.open_pull, [(id, *row) for row in contents.open])
    add_rows(connection, schema.change, [(id, *row) for row in contents.changes])
    add_rows(connection, schema.look, [(id, *row) for row in _looks(contents, steps)])


_NOWHERE = {"look": 0, "pulls": 0, "needed": None, "tally": None}
"""Of a phase that led nowhere: it begins anew if it is come back to."""


def _standing(steps: Sequence[Step]) -> dict[int, dict[str, Any]]:
    """Return where each phase of the replay stands, and the look that led to it."""
    found = {}
    before: Step | None = None
    for step in steps:
        led = before if step.row.parent is not None else None
        found[step.row.serial] = {
            "look": step.look,
            "pulls": step.pulls,
            "needed": step.needed,
            "tally": step.tally.to_bytes() if step.look else None,
            "origin": None if led is None else led.tally.to_bytes(),
            "origin_look": None if led is None else led.look,
        }
        before = step
    return found


def _looks(contents: Contents, steps: Sequence[Step]) -> Iterator[tuple[Any, ...]]:
    """Yield both sides at every look, with the time that it was taken first."""
    before = {(look.serial, look.number): look.at for look in contents.looks}
    now = time.time()
    for step in steps:
        for number, verdict in step.taken:
            at = before.get((step.row.serial, number), now)
            sides = _finite(verdict.gap), verdict.epsilon, _finite(verdict.radius)
            yield step.row.serial, number, verdict.pulls, *sides, at


def copy_all(source: Store, target: Store) -> int:
    """Copy all campaigns as they are; none where a name is taken there already."""
    names = source.names()
    taken = sorted(set(names) & set(target.names()))
    if taken:
        raise CampaignError(
            f"{target.name} has a campaign {taken[0]!r} already"
            + (f", and {len(taken) - 1} more of the same names" if len(taken) > 1 else "")
            + ": nothing was copied; delete or export them there first"
        )
    for name in names:
        with source.read() as old, target.write() as new:
            _copy(old, new, name)
    return len(names)


def _copy(old: Connection, new: Connection, name: str) -> None:
    c = schema.campaign.c
    row = old.execute(select(schema.campaign).where(c.name == name)).first()
    if row is None:  # deleted meanwhile
        return
    values = dict(row._mapping)
    before = values.pop("id")
    id = begin(new, **values)
    for table in _TABLES:
        for rows in _parts(old, table, before):
            add_rows(new, table, [(id, *row[1:]) for row in rows])


def _parts(connection: Connection, table: Table, id: int) -> Iterator[Sequence[Any]]:
    chosen = select(table).where(table.c.campaign == id)
    found = connection.execute(chosen.execution_options(yield_per=_PART))
    yield from found.partitions(_PART)


def begin(connection: Connection, **values: Any) -> int:
    """Write the row of a new campaign; return its id, one that no campaign has had."""
    taken = f"there is a campaign {values['name']!r} already; choose another name"
    c = schema.campaign.c
    if connection.execute(select(c.id).where(c.name == values["name"])).first() is not None:
        raise CampaignError(taken)
    if connection.dialect.name == "sqlite":
        values["id"] = _unused(connection)
    try:
        made = connection.execute(insert(schema.campaign).values(**values)).inserted_primary_key
    except IntegrityError:  # by another process, since we looked
        raise CampaignError(taken) from None
    assert made is not None
    return int(made[0])


def _unused(connection: Connection) -> int:
    """Return an id at random: SQLite itself gives that of a deleted campaign to the next one.

    Whoever still has the deleted one open would write into the other.
    """
    c = schema.campaign.c
    while True:
        id = 1 + secrets.randbelow(2**31 - 1)
        if connection.execute(select(c.id).where(c.id == id)).first() is None:
            return id


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
