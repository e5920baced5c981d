"""Many askings and tellings in one transaction, each answered for itself.

For a server: a transaction costs more than what is in it, so that requests of the same moment share
one. Unlike `tell_many`, one total that is refused does not keep out the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select, update

from superarm._checks import whole
from superarm.campaign import schema
from superarm.campaign.bulk import add_rows
from superarm.campaign.campaign import LEASE, MOST_AT_ONCE, Campaign
from superarm.campaign.ids import Key, never_asked, parse
from superarm.campaign.inputs import lease_of, short
from superarm.campaign.records import Pull, moment
from superarm.campaign.standing import Standing, standing
from superarm.errors import CampaignError, ConflictError, SettingError, SuperarmError

_p, _r, _o = schema.phase.c, schema.result.c, schema.open_pull.c

OUT = "all pulls of this phase are out: the look waits for their totals"


class Telling(NamedTuple):
    """What one `Campaign.tell` is given."""

    id: str
    total: float
    worker: str = ""
    site: str = ""


class Asking(NamedTuple):
    """What one `Campaign.ask` is given."""

    size: int = 1
    worker: str = ""
    lease: float = LEASE
    without: tuple[str, ...] = ()


class Asked(NamedTuple):
    """What one `Campaign.ask` gives, and why it is not more."""

    pulls: list[Pull]
    waiting: str


LATER = Asked([], "ask again in a moment")
"""The answer, by identity, to who has to wait: for a look that is due, or for its own first asking.

A worker that asks twice in one go gets the second time what it was given the first time.
"""


Answers = tuple[list[bool | SuperarmError], list[Asked | SuperarmError], bool]


def serve(campaign: Campaign, tellings: Sequence[Telling], askings: Sequence[Asking]) -> Answers:
    """Tell and ask at once: what is told counts first.

    Returns whether each total was new, or its error; each one's pulls, its error, or `LATER`; and
    whether a look is due, which is left to the caller.
    """
    told: list[bool | SuperarmError] = [False] * len(tellings)
    asked: list[Asked | SuperarmError] = [LATER] * len(askings)
    given = _possible(campaign, tellings, told)
    ready = _sensible(campaign, askings, asked)
    if not given and not ready:
        return told, asked, False
    began = time.time()
    keys: list[list[Key]] | None = None
    with campaign.store.write() as connection:
        where = standing(connection, campaign._id, lock=True)
        due = where.due
        if given and _write(connection, where, given, tellings, told):
            due = standing(connection, campaign._id).due
        if ready and not due and not where.ended:
            keys = _lend(connection, where, list(ready.values()), began)
    if keys is not None:
        phase, problem = campaign._here(where)
        flat = [key for some in keys for key in some]
        pulls = iter(campaign._pulls(problem, phase, flat, began, ""))
        for (i, asking), some in zip(ready.items(), keys, strict=True):
            asked[i] = _asked(asking, began, list(islice(pulls, len(some))))
    elif where.ended and ready:
        verdict = campaign.verdict
        for i in ready:
            asked[i] = Asked([], f"no more are needed: {verdict}")
    return told, asked, due


# ---- telling -------------------------------------------------------------------------------------


def _possible(
    campaign: Campaign, tellings: Sequence[Telling], answers: list[bool | SuperarmError]
) -> list[tuple[int, Key, float]]:
    """Return the totals that can be, with the places of their answers."""
    given = []
    for i, telling in enumerate(tellings):
        try:
            key = parse(telling.id)
            total = campaign._valid([key], [telling.total])[0]
            short("worker", telling.worker + telling.site)
            given.append((i, key, total))
        except CampaignError:
            raise  # it was deleted
        except SuperarmError as error:
            answers[i] = error
    return given


def _write(
    connection: Connection,
    where: Standing,
    given: Sequence[tuple[int, Key, float]],
    tellings: Sequence[Telling],
    answers: list[bool | SuperarmError],
) -> bool:
    """Write totals, and their answers; return whether any was new."""
    open_now = _close(connection, where, {key for _, key, _ in given})
    others = {key for _, key, _ in given} - open_now
    before = _told(connection, where, others) if others else {}
    now, rows = time.time(), []
    for i, key, total in given:
        worker, site = tellings[i].worker.strip(), tellings[i].site.strip()
        if key in before:
            if before[key][0] != total:
                answers[i] = _conflict(key, *before[key], total)
        elif key in open_now:
            before[key], answers[i] = (total, worker), True
            rows.append((where.id, *key, total, now, worker, site))
        else:
            answers[i] = never_asked(str(key))
    add_rows(connection, schema.result, rows)
    return bool(rows)


def _close(connection: Connection, where: Standing, keys: set[Key]) -> set[Key]:
    """Take pulls out of those that are open; return which of them were."""
    found: set[Key] = set()
    for serial, attempt in {(key.serial, key.attempt) for key in keys}:
        mine = [key.position for key in keys if (key.serial, key.attempt) == (serial, attempt)]
        gone = delete(schema.open_pull).where(
            _o.campaign == where.id,
            _o.serial == serial,
            _o.attempt == attempt,
            _o.position.in_(sorted(mine)),
        )
        positions = connection.execute(gone.returning(_o.position)).scalars()
        found.update(Key(serial, position, attempt) for position in positions)
    return found


def _told(connection: Connection, where: Standing, keys: set[Key]) -> dict[Key, tuple[float, str]]:
    """Return the totals that there are of some pulls, and who told them."""
    rows = connection.execute(
        select(_r.serial, _r.position, _r.attempt, _r.total, _r.worker).where(
            _r.campaign == where.id,
            _r.serial.in_({key.serial for key in keys}),
            _r.position.in_({key.position for key in keys}),
        )
    )
    return {Key(*place): (total, who) for *place, total, who in rows}


def _conflict(key: Key, first: float, who: str, total: float) -> ConflictError:
    by = f", told by {who}" if who else ""
    return ConflictError(
        f"pull {key} has total {first:.17g} already{by}; told again as {total:.17g}. To correct "
        "it, amend it"
    )


# ---- asking --------------------------------------------------------------------------------------


def _sensible(
    campaign: Campaign, askings: Sequence[Asking], answers: list[Asked | SuperarmError]
) -> dict[int, Asking]:
    """Return the askings to serve, by the place of their answers; each worker's first."""
    ready: dict[int, Asking] = {}
    seen = set()
    for i, asking in enumerate(askings):
        try:
            one = _checked(asking)
            if one.without:  # these look far ahead in the plan: each for itself
                pulls = campaign.ask(
                    one.size, worker=one.worker, lease=one.lease, without=one.without
                )
                answers[i] = Asked(pulls, campaign.waiting)
            elif not one.worker or one.worker not in seen:
                seen.add(one.worker)
                ready[i] = one
        except CampaignError:
            raise  # it was deleted
        except SuperarmError as error:
            answers[i] = error
    return ready


def _checked(asking: Asking) -> Asking:
    size = whole("the number of pulls to ask for", asking.size, SettingError, 1, MOST_AT_ONCE)
    lease, worker = lease_of(asking.lease), short("worker", asking.worker)
    return Asking(size, worker, lease, tuple(asking.without))


def _asked(asking: Asking, began: float, pulls: Sequence[Pull]) -> Asked:
    until = moment(began + asking.lease)
    mine = [Pull(pull.id, pull.members, pull.reason, asking.worker, until) for pull in pulls]
    return Asked(mine, "" if len(mine) == asking.size else OUT)


def _lend(
    connection: Connection, where: Standing, askings: Sequence[Asking], began: float
) -> list[list[Key]]:
    """Lend pulls to each: its own again, then those that wait, then the plan's next positions."""
    keys = _own(connection, where, askings, began)
    lacking = sum(asking.size - len(some) for asking, some in zip(askings, keys, strict=True))
    waiting = iter(_waiting(connection, where, lacking, began))
    for asking, some in zip(askings, keys, strict=True):
        some += islice(waiting, asking.size - len(some))
        _renew(connection, where, asking, some, began)
    _fresh(connection, where, askings, keys, began)
    return keys


def _here(where: Standing) -> tuple[Any, ...]:
    return _o.campaign == where.id, _o.serial == where.serial


def _own(
    connection: Connection, where: Standing, askings: Sequence[Asking], began: float
) -> list[list[Key]]:
    """Return what each named worker holds already."""
    held: dict[str, list[Key]] = {asking.worker: [] for asking in askings if asking.worker}
    if held:
        chosen = select(_o.worker, _o.position, _o.attempt).where(
            *_here(where), _o.until >= began, _o.worker.in_(held)
        )
        for worker, position, attempt in connection.execute(chosen.order_by(_o.position)):
            held[worker].append(Key(where.serial, position, attempt))
    return [held.get(asking.worker, [])[: asking.size] for asking in askings]


def _waiting(connection: Connection, where: Standing, size: int, began: float) -> list[Key]:
    """Return what was put off, given back or voided, or whose lease has lapsed."""
    if size <= 0:
        return []
    chosen = select(_o.position, _o.attempt).where(*_here(where), _o.until < began)
    chosen = chosen.order_by(_o.position).limit(size).with_for_update(skip_locked=True)
    rows = connection.execute(chosen)
    return [Key(where.serial, *row) for row in rows]


def _renew(
    connection: Connection, where: Standing, asking: Asking, keys: Sequence[Key], began: float
) -> None:
    """Lend pulls that were handed out before."""
    for start in range(0, len(keys), 500):
        positions = [key.position for key in keys[start : start + 500]]
        connection.execute(
            update(schema.open_pull)
            .where(*_here(where), _o.position.in_(positions))
            .values(worker=asking.worker, given=began, until=began + asking.lease, why="")
        )


def _fresh(
    connection: Connection,
    where: Standing,
    askings: Sequence[Asking],
    keys: list[list[Key]],
    began: float,
) -> None:
    """Lend the plan's next positions to those who have too few yet."""
    position, rows = where.frontier, []
    for asking, some in zip(askings, keys, strict=True):
        end = position + asking.size - len(some)
        if where.last is not None:
            end = min(end, where.last)
        until = began + asking.lease
        for place in range(position, end):
            some.append(Key(where.serial, place))
            rows.append((where.id, where.serial, place, 1, asking.worker, began, until, ""))
        position = max(position, end)
    if rows:
        connection.execute(
            update(schema.phase)
            .where(_p.campaign == where.id, _p.serial == where.serial)
            .values(frontier=position)
        )
        add_rows(connection, schema.open_pull, rows)
