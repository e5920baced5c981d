"""Where a campaign stands, as its rows say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, exists, func, select

from superarm._checks import writable
from superarm.campaign import schema
from superarm.campaign.ids import Key
from superarm.errors import CampaignError

_c, _p, _o = schema.campaign.c, schema.phase.c, schema.open_pull.c


class Standing(NamedTuple):
    """The current phase and how far it is."""

    id: int
    serial: int
    changes: int
    state: str
    stage: int
    number: int
    parent: int | None
    frontier: int
    last: int | None
    look: int
    pulls: int
    needed: int | None
    waits: bool
    """Whether a pull that the next look needs is out, or was put off."""

    @property
    def ended(self) -> bool:
        """Whether there is no look to come."""
        return self.needed is None

    @property
    def due(self) -> bool:
        """Whether all is there for the next look."""
        return self.needed is not None and self.frontier >= self.needed and not self.waits


_STANDING = select(
    _c.id,
    _c.serial,
    _c.changes,
    _c.state,
    _p.stage,
    _p.number,
    _p.parent,
    _p.frontier,
    _p.last,
    _p.look,
    _p.pulls,
    _p.needed,
    exists()
    .where(
        _o.campaign == _c.id,
        _o.serial == _c.serial,
        _o.position >= _p.pulls,
        _o.position < _p.needed,
    )
    .label("waits"),
).join_from(schema.campaign, schema.phase, (_p.campaign == _c.id) & (_p.serial == _c.serial))


def standing(connection: Connection, id: int, *, lock: bool = False) -> Standing:
    """Return where a campaign stands; with `lock`, nobody else changes it in this transaction."""
    if lock and connection.dialect.name == "postgresql":  # first: what is read then is fresh
        # Not the key: pulls that are handed out meanwhile refer to it.
        locked = select(_c.serial).where(_c.id == id).with_for_update(key_share=True)
        serial = connection.execute(locked)
        here = (_p.campaign == id, _p.serial == serial.scalar_one_or_none())
        connection.execute(select(_p.serial).where(*here).with_for_update(key_share=True))
    row = connection.execute(_STANDING.where(_c.id == id)).first()
    if row is None:
        raise CampaignError("the campaign was deleted meanwhile")
    return Standing._make(row)


@dataclass(frozen=True)
class Edits:
    """The amends and voids of one phase that are in force."""

    amended: dict[Key, float]
    voided: frozenset[Key]


NONE = Edits({}, frozenset())


def edits(connection: Connection, id: int, serial: int | None = None) -> Edits:
    """Return what was amended or voided and not undone, in one phase or in all."""
    c = schema.change.c
    rows = connection.execute(
        select(c.number, c.kind, c.serial, c.position, c.attempt, c.total, c.target)
        .where(c.campaign == id, c.kind.in_(("amend", "void", "undo")))
        .order_by(c.number)
    ).all()
    return edits_of(rows, serial)


def edits_of(rows: Iterable[Any], serial: int | None = None) -> Edits:
    """Return the same from rows of the history, in their order."""
    rows = [row for row in rows if row.kind in ("amend", "void", "undo")]
    undone = {row.target for row in rows if row.kind == "undo"}
    amended: dict[Key, float] = {}
    voided = set()
    for row in rows:
        if row.number in undone or row.kind == "undo" or serial not in (None, row.serial):
            continue
        key = Key(row.serial, row.position, row.attempt)
        if row.kind == "amend":
            amended[key] = row.total
        else:
            voided.add(key)
    return Edits(amended, frozenset(voided))


def missing(connection: Connection, where: Standing) -> int:
    """Return how many totals the next look still waits for."""
    if where.needed is None:
        return 0
    out: int = connection.execute(
        select(func.count())
        .select_from(schema.open_pull)
        .where(_o.campaign == where.id, _o.serial == where.serial, _o.position < where.needed)
    ).scalar_one()
    return out + max(0, where.needed - where.frontier)


def path(connection: Connection, where: Standing) -> dict[int, int]:
    """Return the phases that led to the current one, it included: t of their last looks."""
    rows = {
        row.serial: row
        for row in connection.execute(
            select(_p.serial, _p.parent, _p.pulls).where(_p.campaign == where.id)
        )
    }
    way = {}
    serial: int | None = where.serial
    while serial is not None:
        way[serial] = rows[serial].pulls
        serial = rows[serial].parent
    return way


def find(connection: Connection, name: str) -> Any:
    """Return the row of a campaign by its name."""
    row = None
    if writable(name):  # no database takes anything else
        row = connection.execute(select(schema.campaign).where(_c.name == name)).first()
    if row is None:
        known = connection.execute(select(_c.name).order_by(_c.name).limit(6)).scalars().all()
        there = ", ".join(known[:5]) + (" and more" if len(known) > 5 else "")
        raise CampaignError(
            f"there is no campaign {name!r} in this store"
            + (f"; there are: {there}" if known else "; it holds none yet")
        )
    return row
