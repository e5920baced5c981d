"""All that a campaign is, in memory: what is exported, checked and verified."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from superarm.campaign import schema
from superarm.campaign.course import Course
from superarm.campaign.ids import Key
from superarm.campaign.standing import Edits, edits_of
from superarm.errors import DataError
from superarm.plain import from_plain, problem_from_plain

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class PhaseRow(NamedTuple):
    """A phase as it is written down; what follows from its results may be missing (None)."""

    serial: int
    stage: int
    number: int
    parent: int | None
    fingerprint: str
    frontier: int
    last: int | None
    look: int
    pulls: int
    needed: int | None = None
    tally: bytes | None = None
    origin: bytes | None = None
    origin_look: int | None = None
    members: list[list[int]] | None = None
    """The super-arms of its plan, in an export."""


class ChangeRow(NamedTuple):
    """A line of the history."""

    number: int
    at: float
    worker: str
    kind: str
    serial: int | None
    position: int | None
    attempt: int | None
    total: float | None
    target: int | None
    by_value: bool
    reason: str
    names: str

    @property
    def key(self) -> Key | None:
        """The pull that it is about."""
        if self.serial is None or self.position is None or self.attempt is None:
            return None
        return Key(self.serial, self.position, self.attempt)


class OpenRow(NamedTuple):
    """A pull that has no result yet."""

    serial: int
    position: int
    attempt: int
    worker: str
    given: float
    until: float
    why: str


class LookRow(NamedTuple):
    """What a look found."""

    serial: int
    number: int
    pulls: int
    gap: float | None
    epsilon: float
    radius: float | None
    at: float


@dataclass(frozen=True, eq=False)
class Results:
    """Totals as they were first told, by phase, position and attempt: a column each."""

    serial: Ints
    position: Ints
    attempt: Ints
    total: Floats
    at: Floats
    worker: Sequence[str]
    site: Sequence[str]

    def __len__(self) -> int:
        return len(self.total)

    @classmethod
    def of(cls, columns: Sequence[Sequence[Any]]) -> Results:
        """Return results from columns in the order above."""
        whole = [np.array(column, dtype=np.int64) for column in columns[:3]]
        real = [np.array(column, dtype=np.float64) for column in columns[3:5]]
        order = np.lexsort((whole[2], whole[1], whole[0]))
        if (order[1:] < order[:-1]).any():
            texts = [[column[i] for i in order.tolist()] for column in columns[5:]]
            return cls(*(column[order] for column in (*whole, *real)), *texts)  # type: ignore[arg-type]
        return cls(*whole, *real, *columns[5:])  # type: ignore[arg-type]

    def stretch(self, serial: int) -> slice:
        """Return where the results of a phase are."""
        ends = np.searchsorted(self.serial, [serial, serial + 1])
        return slice(int(ends[0]), int(ends[1]))

    def place(self, key: Key) -> int | None:
        """Return where the result of a pull is."""
        here = self.stretch(key.serial)
        ends = np.searchsorted(self.position[here], [key.position, key.position + 1])
        for i in range(here.start + int(ends[0]), here.start + int(ends[1])):
            if self.attempt[i] == key.attempt:
                return i
        return None

    def counting(self, serial: int, made: Edits) -> tuple[Ints, Floats]:
        """Return the positions of a phase that have a result, and what counts there."""
        here = self.stretch(serial)
        totals, keep = self.total[here].copy(), np.ones(here.stop - here.start, dtype=np.bool_)
        for key, total in made.amended.items():
            i = self.place(key) if key.serial == serial else None
            if i is not None:
                totals[i - here.start] = total
        for key in made.voided:
            i = self.place(key) if key.serial == serial else None
            if i is not None:
                keep[i - here.start] = False
        return self.position[here][keep], totals[keep]


@dataclass(frozen=True, eq=False)
class Contents:
    """A campaign."""

    name: str
    created: float
    seed: int
    problem: Any
    """The question as plain data."""
    rule: Any
    serial: int
    state: str
    phases: dict[int, PhaseRow]
    results: Results
    changes: list[ChangeRow]
    open: list[OpenRow]
    looks: list[LookRow]
    verdict: Any = None
    """What is claimed, as plain data."""

    @property
    def stages(self) -> int:
        """Number of the current stage."""
        return 1 + sum(1 for row in self.changes if row.kind == "retire")

    def course(self) -> Course:
        """Return question, rule and seed, made anew."""
        return Course(problem_from_plain(self.problem), from_plain(self.rule), self.seed)

    def gone(self, stage: int) -> frozenset[str]:
        """Return who had retired when a stage began."""
        left = [row.names for row in self.changes if row.kind == "retire"][: stage - 1]
        return frozenset(name for names in left for name in json.loads(names))

    def edits(self, stage: int) -> Edits:
        """Return the amends and voids in force; of an earlier stage, those when it ended."""
        ends = [row.number for row in self.changes if row.kind == "retire"]
        rows: Iterable[ChangeRow] = self.changes
        if stage <= len(ends):
            rows = [row for row in self.changes if row.number < ends[stage - 1]]
        return edits_of(rows)

    def root(self, stage: int) -> PhaseRow:
        """Return the first phase of a stage."""
        for row in self.phases.values():
            if row.stage == stage and row.parent is None:
                return row
        raise DataError(f"{self.name}: stage {stage} has no first phase")


def read(connection: Connection, row: Any) -> Contents:
    """Return everything of a campaign, whose row is given."""
    said = _rows(connection, schema.question, row.id, "problem", "rule")[0]
    phases = [
        PhaseRow(*found)
        for found in _rows(connection, schema.phase, row.id, *PhaseRow._fields[:-1])
    ]
    columns: list[Any] = list(zip(*_rows(connection, schema.result, row.id, *RESULT), strict=True))
    columns[5:] = [_shared(column) for column in columns[5:]]
    changes = _rows(connection, schema.change, row.id, *ChangeRow._fields)
    return Contents(
        name=row.name,
        created=row.created,
        seed=int(row.seed),
        problem=json.loads(said.problem),
        rule=json.loads(said.rule),
        serial=row.serial,
        state=row.state,
        phases={found.serial: found for found in sorted(phases, key=lambda found: found.serial)},
        results=Results.of(columns or [()] * len(RESULT)),
        changes=sorted(ChangeRow(*change) for change in changes),
        open=sorted(
            OpenRow(*found)
            for found in _rows(connection, schema.open_pull, row.id, *OpenRow._fields)
        ),
        looks=sorted(
            (LookRow(*found) for found in _rows(connection, schema.look, row.id, *LookRow._fields)),
            key=lambda look: look[:2],
        ),
    )


RESULT = ("serial", "position", "attempt", "total", "at", "worker", "site")


def _rows(connection: Connection, table: Any, id: int, *names: str) -> Any:
    chosen = select(*(table.c[name] for name in names)).where(table.c.campaign == id)
    if table is schema.result:
        chosen = chosen.order_by(table.c.serial, table.c.position, table.c.attempt)
    return connection.execute(chosen).all()


def _shared(texts: Sequence[str]) -> list[str]:
    """Return texts, equal ones as one object: there are few workers and many totals."""
    seen: dict[str, str] = {}
    return [seen.setdefault(text, text) for text in texts]
