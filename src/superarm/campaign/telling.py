"""Taking totals in: each once, whatever its order, and all of a batch or none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import ARRAY, BigInteger, Connection, any_, delete, literal, select

from superarm.campaign import schema
from superarm.campaign.bulk import add_rows
from superarm.campaign.ids import Key, never_asked
from superarm.campaign.records import Told
from superarm.campaign.standing import Standing, standing
from superarm.campaign.store import Store
from superarm.errors import ConflictError

_p, _r, _o = schema.phase.c, schema.result.c, schema.open_pull.c

_FEW = 500  # of a phase: up to so many are looked up one by one


Label = str | Sequence[str]
"""A text for all totals, or one for each."""


def take_in(
    store: Store, id: int, keys: Sequence[Key], totals: Sequence[float], worker: Label, site: Label
) -> tuple[Told, bool]:
    """Take totals that are possible; return how many were new, and whether a look is due."""
    with store.write() as connection:
        where = standing(connection, id, lock=True)
        now = time.time()
        labels = _Labels(keys, worker, site)
        new = sum(
            _Batch(connection, where, serial, keys, totals).add(now, labels)
            for serial in dict.fromkeys(key.serial for key in keys)
        )
        return Told(new, len(keys) - new), standing(connection, id).due


class _Labels:
    """Who measured each total, and where."""

    def __init__(self, keys: Sequence[Key], worker: Label, site: Label) -> None:
        self.worker, self.site = worker, site
        plain = isinstance(worker, str) and isinstance(site, str)
        self.rows = {} if plain else {key: row for row, key in enumerate(keys)}

    def of(self, key: Key) -> tuple[str, str]:
        """Return worker and site of one total."""
        worker, site = self.worker, self.site
        return (
            worker if isinstance(worker, str) else worker[self.rows[key]],
            site if isinstance(site, str) else site[self.rows[key]],
        )


class _Batch:
    """The totals of one phase."""

    def __init__(
        self,
        connection: Connection,
        where: Standing,
        serial: int,
        keys: Sequence[Key],
        totals: Sequence[float],
    ) -> None:
        self.connection, self.where, self.serial = connection, where, serial
        self.totals = {
            (key.position, key.attempt): total
            for key, total in zip(keys, totals, strict=True)
            if key.serial == serial
        }
        self._refuse_twins(keys, totals)
        places = np.array(list(self.totals), dtype=np.int64)
        self.low, self.high = int(places[:, 0].min()), int(places[:, 0].max())

    def add(self, now: float, labels: _Labels) -> int:
        """Add what is new; raise for the first that cannot be taken."""
        asked = self._asked()
        there = self._there()
        fresh = []
        for place, total in self.totals.items():
            before = there.get(place)
            if before is None:
                fresh.append(place)
            elif before[0] != total:
                raise self._conflict(place, before, total)
        self._check_asked(fresh, asked)
        if not fresh:
            return 0
        serial = self.serial
        rows = [
            (
                self.where.id,
                serial,
                *place,
                self.totals[place],
                now,
                *labels.of(Key(serial, *place)),
            )
            for place in fresh
        ]
        add_rows(self.connection, schema.result, rows)
        self._close(fresh)
        return len(fresh)

    def _here(self, c: Any) -> list[Any]:
        found = [c.campaign == self.where.id, c.serial == self.serial]
        if len(self.totals) <= _FEW:
            return [*found, c.position.in_({position for position, _ in self.totals})]
        return [*found, c.position >= self.low, c.position <= self.high]

    def _there(self) -> dict[tuple[int, int], tuple[float, str]]:
        chosen = select(_r.position, _r.attempt, _r.total, _r.worker).where(*self._here(_r))
        rows = self.connection.execute(chosen).all()
        return {(row.position, row.attempt): (row.total, row.worker) for row in rows}

    def _asked(self) -> set[tuple[int, int]]:
        """Return what is out, and keep it so: nobody else tells it until we are done."""
        chosen = select(_o.position, _o.attempt).where(*self._here(_o))
        if len(self.totals) > _FEW and self.connection.dialect.name == "postgresql":
            # Others may tell what lies between; an array is one parameter, however long.
            mine = literal([position for position, _ in self.totals], ARRAY(BigInteger))
            chosen = chosen.where(_o.position == any_(mine))
        rows = self.connection.execute(chosen.order_by(_o.position).with_for_update())
        return {(row.position, row.attempt) for row in rows}

    def _check_asked(self, fresh: Sequence[tuple[int, int]], asked: set[tuple[int, int]]) -> None:
        """Each new one must be a position that was handed out, in its latest asking."""
        serial = self.serial
        if serial == self.where.serial:
            frontier: int | None = self.where.frontier
        else:
            frontier = self.connection.execute(
                select(_p.frontier).where(_p.campaign == self.where.id, _p.serial == serial)
            ).scalar_one_or_none()
        if not fresh:
            return
        for place in fresh:
            if frontier is None or place[0] >= frontier or place not in asked:
                raise never_asked(str(Key(serial, *place)))

    def _close(self, fresh: Sequence[tuple[int, int]]) -> None:
        """They are no longer open."""
        gone = schema.open_pull.delete().where(*self._here(_o))
        if len(self.totals) > _FEW:  # others of the same stretch may be open still
            told = select(_r.position).where(
                _r.campaign == self.where.id,
                _r.serial == self.serial,
                _r.position == _o.position,
                _r.attempt == _o.attempt,
            )
            gone = delete(schema.open_pull).where(*self._here(_o), told.exists())
        elif len(fresh) < len(self.totals):
            gone = delete(schema.open_pull).where(
                _o.campaign == self.where.id,
                _o.serial == self.serial,
                _o.position.in_([position for position, _ in fresh]),
            )
        self.connection.execute(gone)

    def _conflict(
        self, place: tuple[int, int], before: tuple[float, str], total: float
    ) -> ConflictError:
        who = f", told by {before[1]}" if before[1] else ""
        return ConflictError(
            f"pull {Key(self.serial, *place)} has total {before[0]:.17g} already{who}; told again "
            f"as {total:.17g}. To correct it, amend it"
        )

    def _refuse_twins(self, keys: Sequence[Key], totals: Sequence[float]) -> None:
        """Refuse a batch that says two things of one pull."""
        for key, total in zip(keys, totals, strict=True):
            if key.serial != self.serial:
                continue
            first = self.totals[key.position, key.attempt]
            if first != total:
                raise ConflictError(
                    f"pull {key} is told twice in one go, as {total:.17g} and {first:.17g}"
                )
