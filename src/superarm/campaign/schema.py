"""The tables of a store, as the numbered migrations leave them.

Results and changes are only ever added. What changes place are pulls that are out (`open_pull`) and
where a campaign stands (`campaign`, `phase`): the latter follow from the former, which
`check` proves.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

_Id = BigInteger().with_variant(Integer, "sqlite")  # counts by itself there


def _of_campaign() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE")


campaign = Table(
    "campaign",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created", Float(53), nullable=False),
    Column("seed", Text, nullable=False),
    Column("serial", Integer, nullable=False),  # of the phase that is measured, or was last
    Column("changes", BigInteger, nullable=False),  # +1 by what may change a look taken already
    Column("state", Text, nullable=False),  # measuring | certified | ended
    Column("margin", Float(53)),  # radius - gap - epsilon at the last look
)
"""Where a campaign stands: one short row, read by every verb."""

question = Table(
    "question",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("problem", Text, nullable=False),
    Column("rule", Text, nullable=False),
    _of_campaign(),
)
"""What was asked and by which rule, as plain data; never changed."""

phase = Table(
    "phase",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("serial", Integer, primary_key=True, autoincrement=False),
    Column("stage", Integer, nullable=False),  # +1 by each retirement
    Column("number", Integer, nullable=False),  # of the phase in its stage
    Column("parent", Integer),  # serial of the phase whose last look led here
    Column("fingerprint", Text, nullable=False),  # of its plan and looks
    Column("frontier", BigInteger, nullable=False),  # positions below have been handed out
    Column("last", BigInteger),  # number of positions, where there is an end
    Column("look", BigInteger, nullable=False),  # looks taken
    Column("pulls", BigInteger, nullable=False),  # t of the last look taken
    Column("needed", BigInteger),  # t of the next look; none after the last
    Column("tally", LargeBinary),  # of the first `pulls` positions
    Column("origin", LargeBinary),  # the parent's tally at the look that led here
    Column("origin_look", BigInteger),
    _of_campaign(),
)

open_pull = Table(
    "open_pull",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("serial", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("given", Float(53), nullable=False),
    Column("until", Float(53), nullable=False),  # 0: to be handed out again
    Column("why", Text, nullable=False),  # why it waits
    _of_campaign(),
    Index("open_pull_until", "campaign", "serial", "until"),
    Index("open_pull_worker", "campaign", "serial", "worker"),
    sqlite_with_rowid=False,
)
"""Pulls that were handed out, or were to be, and have no result yet.

Every position below the frontier of its phase is either here or has a result that counts, never
both: so what a look still waits for need not be counted anywhere else.
"""

result = Table(
    "result",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("serial", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("total", Float(53), nullable=False),
    Column("at", Float(53), nullable=False),
    Column("worker", Text, nullable=False),
    Column("site", Text, nullable=False),
    _of_campaign(),
    sqlite_with_rowid=False,
)
"""Totals as they were first told."""

change = Table(
    "change",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float(53), nullable=False),
    Column("worker", Text, nullable=False),
    Column("kind", Text, nullable=False),  # amend | void | undo | retire | put off | outside
    Column("serial", Integer),
    Column("position", BigInteger),
    Column("attempt", Integer),
    Column("total", Float(53)),
    Column("target", Integer),  # of an undo: the number of what is undone
    Column("by_value", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("names", Text, nullable=False),  # arms, as a JSON list
    _of_campaign(),
    sqlite_with_rowid=False,
)
"""Everything else that was done, in its order."""

look = Table(
    "look",
    metadata,
    Column("campaign", _Id, primary_key=True, autoincrement=False),
    Column("serial", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("pulls", BigInteger, nullable=False),  # of all phases of its stage
    Column("gap", Float(53)),
    Column("epsilon", Float(53), nullable=False),
    Column("radius", Float(53)),
    Column("at", Float(53), nullable=False),
    _of_campaign(),
    sqlite_with_rowid=False,
)
"""What the looks of the present course found, for pictures."""

access_token = Table(
    "access_token",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),  # read | measure | admin
    Column("salt", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),  # of the token: it is nowhere itself
    Column("created", Float(53), nullable=False),
    Column("revoked", Float(53)),
)
"""Who may use a server on this store (see `superarm.server.access`)."""

browser_session = Table(
    "browser_session",
    metadata,
    Column("hash", Text, primary_key=True),  # of the cookie
    Column("token", Text, nullable=False),
    Column("until", Float(53), nullable=False),
)
"""Browsers that have shown a token."""

server_secret = Table(
    "server_secret",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
"""What binds the forms of pages to sessions."""
