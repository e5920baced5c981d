"""What the totals of a campaign say against its assumptions; see `superarm.diagnose`."""

from __future__ import annotations

import numpy as np
from sqlalchemy import Connection, select

from superarm.campaign import schema
from superarm.campaign.asking import members_at
from superarm.campaign.course import Course
from superarm.campaign.ids import Key
from superarm.campaign.standing import Standing, edits
from superarm.diagnostics import Diagnostics
from superarm.diagnostics.examination import LEVEL, examine
from superarm.measured import Measured

_p, _r = schema.phase.c, schema.result.c

MOST = 20_000
"""With more totals than this, `status` leaves the checks to `diagnose`: they take too long."""


def examined(
    connection: Connection, where: Standing, course: Course, level: float = LEVEL
) -> Diagnostics | None:
    """Check all totals of the present stage that count; None where there are none."""
    rows = connection.execute(
        select(_r.serial, _r.position, _r.attempt, _r.total, _r.at, _r.worker, _r.site)
        .join_from(
            schema.result, schema.phase, (_p.campaign == _r.campaign) & (_p.serial == _r.serial)
        )
        .where(_r.campaign == where.id, _p.stage == where.stage)
        .order_by(_r.at, _r.serial, _r.position)
    ).all()
    made = edits(connection, where.id)
    rows = [row for row in rows if Key(*row[:3]) not in made.voided]
    if not rows:
        return None
    keys = [Key(*row[:3]) for row in rows]
    groups: list[tuple[int, ...]] = [()] * len(rows)
    for serial in {key.serial for key in keys}:
        phase = course.of_serial(connection, where, serial)
        assert phase is not None
        at = [i for i, key in enumerate(keys) if key.serial == serial]
        found = members_at(phase, [keys[i].position for i in at]).tolist()
        for i, row in zip(at, found, strict=True):
            groups[i] = tuple(arm for arm in row if arm >= 0)
    measured = Measured(
        rows=groups,
        totals=np.array(
            [made.amended.get(key, row.total) for key, row in zip(keys, rows, strict=True)]
        ),
        there=list(range(len(rows))),
        places=[f"pull {key}" for key in keys],
        missing=0,
    )
    labels = {kind: [getattr(row, kind) for row in rows] for kind in ("worker", "site")}
    problem = course.problem(connection, where.id, where.stage)
    return examine(
        problem,
        measured,
        labels={kind: values for kind, values in labels.items() if len(set(values)) > 1},
        times=[row.at - rows[0].at for row in rows],
        level=level,
    )
