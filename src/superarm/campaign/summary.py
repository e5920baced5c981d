"""The campaigns of a store at a glance, without making anything of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select

from superarm.campaign import schema
from superarm.campaign.records import moment
from superarm.campaign.store import Store
from superarm.plain import from_plain


@dataclass(frozen=True)
class Summary:
    """One campaign at a glance.

    Parameters
    ----------
    state
        "measuring", "certified", or "ended" where the last look left it without a certificate.
    told
        Totals that count.
    n, k
        Arms that are left, and members of a group.
    margin
        By how much the radius still exceeds gap + epsilon; None before the first look.
    last
        When the last total was told.
    """

    name: str
    created: datetime
    told: int
    state: str
    n: int
    k: int
    margin: float | None
    last: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        last = None if self.last is None else self.last.isoformat()
        return {**vars(self), "created": self.created.isoformat(), "last": last}


def summaries(store: Store) -> list[Summary]:
    """Return a summary of each campaign, by name."""
    c, q, p, r, o, h = (
        table.c
        for table in (
            schema.campaign,
            schema.question,
            schema.phase,
            schema.result,
            schema.open_pull,
            schema.change,
        )
    )
    handed = select(func.sum(p.frontier)).where(p.campaign == c.id).scalar_subquery()
    out = select(func.count()).where(o.campaign == c.id).scalar_subquery()
    last = select(func.max(r.at)).where(r.campaign == c.id).scalar_subquery()
    with store.read() as connection:
        rows = connection.execute(
            select(c.id, c.name, c.created, c.state, c.margin, q.problem, handed - out, last)
            .join_from(schema.campaign, schema.question, q.campaign == c.id)
            .order_by(c.name)
        ).all()
        left = connection.execute(select(h.campaign, h.names).where(h.kind == "retire")).all()
        undone = schema.change.alias("undone")
        void = connection.execute(
            select(h.campaign).where(
                h.by_value,
                ~exists().where(
                    undone.c.campaign == h.campaign,
                    undone.c.kind == "undo",
                    undone.c.target == h.number,
                ),
            )
        ).scalars()
        tampered = set(void)
    gone: dict[int, int] = {}
    for id, names in left:
        gone[id] = gone.get(id, 0) + len(json.loads(names))
    found = []
    for id, name, created, state, margin, problem, count, at in rows:
        asked = json.loads(problem)
        found.append(
            Summary(
                name=name,
                created=moment(created),
                told=int(count or 0),
                state="ended" if state == "certified" and id in tampered else state,
                n=len(asked["arms"]) - gone.get(id, 0),
                k=from_plain(asked["decision"]).k,
                margin=margin,
                last=None if at is None else moment(at),
            )
        )
    return found
