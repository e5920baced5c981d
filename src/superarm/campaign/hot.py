"""Pulls asked and single totals told: what many do at once, in as few steps as can be.

What is out of the ordinary (absent members, a total told before, a batch) takes the longer way of
`asking` and `telling`; both leave the same rows. SQL is written out here, with :names for values,
and goes to the driver as it is: building it anew takes longer than running it. PostgreSQL gets one
statement, since each is a journey; SQLite several in one transaction.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from superarm.campaign.ids import Key
from superarm.campaign.store import Store
from superarm.errors import StoreError

_LONGEST_PAUSE = 4.0
"""Seconds between the last two tries to reach a database that restarts: about 8 s in all."""

_OWN = """
UPDATE open_pull SET until = :until
WHERE campaign = :id AND serial = :serial AND position IN (
    SELECT position FROM open_pull
    WHERE campaign = :id AND serial = :serial AND worker = :worker AND until >= :now
    ORDER BY position LIMIT :size)
RETURNING position, attempt"""

_AGAIN = """
UPDATE open_pull SET worker = :worker, given = :now, until = :until, why = ''
WHERE campaign = :id AND serial = :serial AND until < :now AND position IN ({chosen})
RETURNING position, attempt"""

_LAPSED = """
SELECT position FROM open_pull
WHERE campaign = :id AND serial = :serial AND until < :now
ORDER BY position LIMIT {size}"""

_MOVE = """
UPDATE phase SET frontier = frontier + {size}{source}
WHERE campaign = :id AND serial = :serial AND needed IS NOT NULL
    AND (last IS NULL OR frontier + {size} <= last){more}
RETURNING frontier"""

_CURRENT = """
SELECT 1 FROM campaign JOIN phase ON phase.campaign = campaign.id AND phase.serial = campaign.serial
WHERE campaign.id = :id AND campaign.serial = :serial AND campaign.changes = :changes
    AND phase.needed IS NOT NULL"""

_FRESH = """
INSERT INTO open_pull (campaign, serial, position, attempt, worker, given, until, why)
VALUES (:id, :serial, :position, 1, :worker, :now, :until, '')"""

# What lapsed is chosen once: chosen for each row, one asker would get all of it, since the locked
# are skipped. Nothing is handed out of a phase that is not measured any more.
_NONE_OR = "(SELECT CASE WHEN EXISTS (SELECT 1 FROM here) THEN {} ELSE 0 END)"
_LEFT = ":size - (SELECT count(*) FROM own)"

_ASK_AT_ONCE = f"""
WITH here AS ({_CURRENT}),
own AS ({_OWN.replace(":size", _NONE_OR.format("CASE WHEN :worker = '' THEN 0 ELSE :size END"))}),
lapsed AS MATERIALIZED ({_LAPSED.format(size=_NONE_OR.format(_LEFT))} FOR UPDATE SKIP LOCKED),
again AS ({_AGAIN.format(chosen="SELECT position FROM lapsed")}),
rest AS (
    SELECT :size - (SELECT count(*) FROM own) - (SELECT count(*) FROM again) AS n
    WHERE EXISTS (SELECT 1 FROM here)),
moved AS ({_MOVE.format(size="rest.n", source=" FROM rest", more=" AND rest.n > 0")}, rest.n),
fresh AS (
    INSERT INTO open_pull (campaign, serial, position, attempt, worker, given, until, why)
    SELECT :id, :serial, place, 1, :worker, :now, :until, ''
    FROM moved, generate_series(moved.frontier - moved.n, moved.frontier - 1) place
    RETURNING position, attempt)
SELECT position, attempt FROM own
UNION ALL SELECT position, attempt FROM again
UNION ALL SELECT position, attempt FROM fresh"""

_AGAIN_BY_STEPS = _AGAIN.format(chosen=_LAPSED.format(size=":rest"))

_GONE = """
DELETE FROM open_pull
WHERE campaign = :id AND serial = :serial AND position = :position AND attempt = :attempt
RETURNING position"""

_TOLD = """
INSERT INTO result (campaign, serial, position, attempt, total, at, worker, site)
{values}"""

_VALUES = ":id, :serial, :position, :attempt, :total, :now, :worker, :site"

# Whether a look is due now, as `Standing.due` has it.
_DUE = """
SELECT phase.frontier >= phase.needed AND NOT EXISTS (
    SELECT 1 FROM open_pull
    WHERE open_pull.campaign = phase.campaign AND open_pull.serial = phase.serial
        AND open_pull.position >= phase.pulls AND open_pull.position < phase.needed{more})
FROM phase WHERE campaign = :id AND serial = :serial"""

_OTHERS = " AND NOT (open_pull.position = :position AND open_pull.attempt = :attempt)"

_TELL_AT_ONCE = f"""
WITH gone AS ({_GONE}),
told AS ({_TOLD.format(values=f"SELECT {_VALUES} FROM gone")}),
due AS ({_DUE.format(more=_OTHERS)})
SELECT due.* FROM gone, due"""


class Asker(NamedTuple):
    """What is asked for, of which phase as it was last seen."""

    id: int
    serial: int
    changes: int
    size: int
    worker: str
    lease: float


def ask(store: Store, asker: Asker) -> tuple[list[Key], float]:
    """Hand out pulls, and say until when: fewer than asked for where there is more to think of."""
    now = time.time()
    until = now + asker.lease
    values = {**asker._asdict(), "now": now, "until": until}

    def once() -> list[tuple[int, int]]:
        with store.quick() as run:
            if store.postgresql:
                return list(run(_in_postgresql(_ASK_AT_ONCE), values))
            return _ask_step_by_step(run, values)

    rows = _insist(once)
    return [Key(asker.serial, position, attempt) for position, attempt in rows], until


def _ask_step_by_step(run: Any, values: dict[str, Any]) -> list[tuple[int, int]]:
    if not run(_CURRENT, values):
        return []
    size: int = values["size"]
    rows: list[tuple[int, int]] = run(_OWN, values) if values["worker"] else []
    if len(rows) < size:
        rows = rows + run(_AGAIN_BY_STEPS, {**values, "rest": size - len(rows)})
    rest = size - len(rows)
    if rest > 0:
        moved = run(_MOVE.format(size=":rest", source="", more=""), {**values, "rest": rest})
        if moved:
            places = range(moved[0][0] - rest, moved[0][0])
            run(_FRESH, [{**values, "position": position} for position in places])
            rows = rows + [(position, 1) for position in places]
    return rows


def tell(store: Store, id: int, key: Key, total: float, worker: str, site: str) -> bool | None:
    """Take a total of a pull that is out; return whether a look is due now.

    None where that pull is not out: it was told before, or never asked for. Of two that are told at
    the same moment neither may see the other: then the look is taken with whatever comes next.
    """
    values = {
        "id": id,
        **key._asdict(),
        "total": total,
        "now": time.time(),
        "worker": worker,
        "site": site,
    }

    def once() -> list[Any]:
        with store.quick() as run:
            if store.postgresql:
                return run(_in_postgresql(_TELL_AT_ONCE), values)
            if not run(_GONE, values):
                return []
            run(_TOLD.format(values=f"VALUES ({_VALUES})"), values)
            return run(_DUE.format(more=""), values)

    rows = _insist(once)
    return bool(rows[0][0]) if rows else None


def _insist(action: Callable[[], list[Any]]) -> list[Any]:
    """Try again for a while where the connection was lost: what was done by then is found done."""
    pause = 0.05
    while True:
        try:
            return action()
        except StoreError as error:
            if not error.passing or pause > _LONGEST_PAUSE:
                raise
            time.sleep(pause)
            pause *= 2


@cache
def _in_postgresql(sql: str) -> str:
    """Return SQL with names, and their types, as its driver wants them."""
    typed = {
        "total": "float8",
        "now": "float8",
        "until": "float8",
        "worker": "text",
        "site": "text",
    }
    return re.sub(r":(\w+)", lambda m: f"%({m[1]})s::{typed.get(m[1], 'bigint')}", sql)
