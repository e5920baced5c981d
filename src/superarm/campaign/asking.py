"""Handing out pulls: what was put off or has lapsed first, then the plan's next positions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select, update

from superarm.campaign import schema
from superarm.campaign.bulk import add_rows
from superarm.campaign.changes import note
from superarm.campaign.ids import Key
from superarm.campaign.standing import Standing, standing
from superarm.campaign.store import Store
from superarm.phase import Phase

_o, _p = schema.open_pull.c, schema.phase.c

_AT_LEAST = 4_096  # positions that are gone through for groups without those who are away


@dataclass(frozen=True)
class Handed:
    """What was handed out, and until when; and why it was no more."""

    keys: list[Key]
    until: float
    put_off: int
    left: int
    """Positions that can still be handed out now, to others or later; 0 if there are none."""


def hand_out(
    store: Store,
    id: int,
    where: Standing,
    phase: Phase,
    size: int,
    worker: str,
    lease: float,
    away: frozenset[int],
    away_names: Sequence[str],
) -> Handed | None:
    """Hand out up to `size` pulls; None where the phase has changed meanwhile.

    Parameters
    ----------
    away
        Indices of arms that are not there.
    """
    with store.write() as connection:
        now = standing(connection, id, lock=True)
        if (now.serial, now.changes) != (where.serial, where.changes) or now.ended:
            return None
        began = time.time()
        desk = _Desk(connection, now, phase, worker, began, began + lease, away)
        keys = desk.own(size) if worker else []
        keys += desk.again(size - len(keys))
        keys += desk.fresh(size - len(keys))
        if desk.put_off:
            note(
                connection,
                id,
                kind="put off",
                worker=worker,
                reason=f"not there: {', '.join(away_names)}",
                names=away_names,
                total=float(desk.put_off),
                serial=now.serial,
            )
        return Handed(keys, began + lease, desk.put_off, desk.left())


class _Desk:
    """One asking, in one transaction."""

    def __init__(
        self,
        connection: Connection,
        where: Standing,
        phase: Phase,
        worker: str,
        now: float,
        until: float,
        away: frozenset[int],
    ) -> None:
        self.connection, self.where, self.phase = connection, where, phase
        self.worker, self.now, self.until = worker, now, until
        self.away = np.array(sorted(away), dtype=np.int64)
        self.put_off = 0
        self.frontier = where.frontier

    def own(self, size: int) -> list[Key]:
        """Give a worker again what it holds; put back what it cannot measure now."""
        found = self._open(_o.worker == self.worker, _o.until >= self.now)
        fit = self._without([position for position, _ in found])
        keys = [key for key, ok in zip(found, fit, strict=True) if ok][:size]
        self._lend(keys)
        stuck = [key for key, ok in zip(found, fit, strict=True) if not ok]
        self._wait(stuck)
        return self._keys(keys)

    def again(self, size: int) -> list[Key]:
        """Hand out what was put off, given back or voided, or whose lease has lapsed."""
        if size <= 0:
            return []
        limit = size if not len(self.away) else None
        found = self._open(_o.until < self.now, limit=limit)
        fit = self._without([position for position, _ in found])
        keys = [key for key, ok in zip(found, fit, strict=True) if ok][:size]
        self._lend(keys)
        return self._keys(keys)

    def fresh(self, size: int) -> list[Key]:
        """Hand out the plan's next positions, and put off those with somebody who is away."""
        positions: list[int] = []
        skipped: list[int] = []
        start = self.frontier
        most = start + max(_AT_LEAST, self.phase.plan.size) if len(self.away) else start + size
        if self.where.last is not None:
            most = min(most, self.where.last)
        while len(positions) < size and self.frontier < most:
            step = min(most, self.frontier + size - len(positions))
            chunk = np.arange(self.frontier, step)
            fit = self._without(chunk.tolist())
            positions += chunk[fit].tolist()
            skipped += chunk[~fit].tolist()
            self.frontier = step
        if not positions and skipped:  # nobody can measure any: leave them where they are
            self.frontier = start
            return []
        skipped = [position for position in skipped if position < self.frontier]
        self.put_off += len(skipped)
        if self.frontier > start:
            self.connection.execute(
                update(schema.phase)
                .where(_p.campaign == self.where.id, _p.serial == self.where.serial)
                .values(frontier=self.frontier)
            )
        rows = [(position, self.worker, self.now, self.until, "") for position in positions]
        rows += [(position, "", self.now, 0.0, "put off") for position in skipped]
        head = (self.where.id, self.where.serial)
        add_rows(
            self.connection,
            schema.open_pull,
            [(*head, position, 1, *rest) for position, *rest in rows],
        )
        return [Key(self.where.serial, position) for position in positions]

    def left(self) -> int:
        """How many pulls wait to be handed out, among those that were before."""
        found: int = self.connection.execute(
            select(func.count())
            .select_from(schema.open_pull)
            .where(*self._here(), _o.until < self.now)
        ).scalar_one()
        return found

    def _here(self) -> tuple[Any, ...]:
        return (_o.campaign == self.where.id, _o.serial == self.where.serial)

    def _open(self, *conditions: Any, limit: int | None = None) -> list[tuple[int, int]]:
        chosen = select(_o.position, _o.attempt).where(*self._here(), *conditions)
        # What is told or handed out by others at this moment is theirs.
        chosen = chosen.order_by(_o.position).limit(limit).with_for_update(skip_locked=True)
        rows = self.connection.execute(chosen).all()
        return [(row.position, row.attempt) for row in rows]

    def _lend(self, keys: Sequence[tuple[int, int]]) -> None:
        values = {"worker": self.worker, "given": self.now, "until": self.until, "why": ""}
        self._set(keys, values)

    def _wait(self, keys: Sequence[tuple[int, int]]) -> None:
        self.put_off += len(keys)
        self._set(keys, {"worker": "", "until": 0.0, "why": "put off"})

    def _set(self, keys: Sequence[tuple[int, int]], values: dict[str, Any]) -> None:
        for start in range(0, len(keys), 500):
            positions = [position for position, _ in keys[start : start + 500]]
            self.connection.execute(
                update(schema.open_pull)
                .where(*self._here(), _o.position.in_(positions))
                .values(**values)
            )

    def _keys(self, keys: Sequence[tuple[int, int]]) -> list[Key]:
        return [Key(self.where.serial, position, attempt) for position, attempt in keys]

    def _without(self, positions: Sequence[int]) -> NDArray[np.bool_]:
        """Return which groups can be measured without those who are away."""
        if not len(self.away) or not positions:
            return np.ones(len(positions), dtype=bool)
        rows = members_at(self.phase, positions)
        return np.asarray(~np.isin(rows, self.away).any(axis=1))


def members_at(phase: Phase, positions: Sequence[int]) -> NDArray[np.int64]:
    """Return the arms at some positions of a plan, a row each."""
    return phase.plan.members(indices_at(phase, positions))


def indices_at(phase: Phase, positions: Sequence[int]) -> NDArray[np.int64]:
    """Return the plan indices at some positions."""
    at = np.asarray(positions, dtype=np.int64)
    if not len(at):
        return np.zeros(0, dtype=np.int64)
    cycle = phase.plan.cycle
    if cycle is not None:
        places, back = np.unique(at % cycle, return_inverse=True)
        low, high = int(places[0]), int(places[-1]) + 1
        return phase.plan.order(low, high)[places - low][back]
    low, high = int(at.min()), int(at.max()) + 1
    if high - low <= 4 * len(at) + 1_000:
        return phase.plan.order(low, high)[at - low]
    return np.array([int(phase.plan.order(p, p + 1)[0]) for p in at.tolist()], dtype=np.int64)


def replicates(phase: Phase, positions: Sequence[int]) -> list[int]:
    """Return for each position how many times its group has been asked for there: 1, 2, ..."""
    plan = phase.plan
    if plan.cycle is not None and plan.cycle == plan.size:
        return [position // plan.cycle + 1 for position in positions]
    found = []
    index = indices_at(phase, positions).tolist()
    base, at = None, -1
    for position, i in zip(positions, index, strict=True):
        if base is None or position < at:
            base, at = plan.counts(position), position
        elif position > at:
            for between in plan.order(at, position).tolist():
                base[between] += 1
            at = position
        found.append(int(base[i]) + 1)
    return found
