"""Campaigns: questions, phases, pulls, results, changes, looks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables of an empty store."""
    op.create_table(
        "campaign",
        sa.Column("id", _Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("serial", sa.Integer(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("margin", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "change",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("serial", sa.Integer(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("total", sa.Float(precision=53), nullable=True),
        sa.Column("target", sa.Integer(), nullable=True),
        sa.Column("by_value", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "look",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("serial", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pulls", sa.BigInteger(), nullable=False),
        sa.Column("gap", sa.Float(precision=53), nullable=True),
        sa.Column("epsilon", sa.Float(precision=53), nullable=False),
        sa.Column("radius", sa.Float(precision=53), nullable=True),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "serial", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "open_pull",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("serial", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("given", sa.Float(precision=53), nullable=False),
        sa.Column("until", sa.Float(precision=53), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "serial", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index("open_pull_worker", "open_pull", ["campaign", "serial", "worker"], unique=False)
    op.create_index("open_pull_until", "open_pull", ["campaign", "serial", "until"], unique=False)
    op.create_table(
        "phase",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("serial", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("stage", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("frontier", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=True),
        sa.Column("look", sa.BigInteger(), nullable=False),
        sa.Column("pulls", sa.BigInteger(), nullable=False),
        sa.Column("needed", sa.BigInteger(), nullable=True),
        sa.Column("tally", sa.LargeBinary(), nullable=True),
        sa.Column("origin", sa.LargeBinary(), nullable=True),
        sa.Column("origin_look", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "serial"),
    )
    op.create_table(
        "question",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign"),
    )
    op.create_table(
        "result",
        sa.Column("campaign", _Id, autoincrement=False, nullable=False),
        sa.Column("serial", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("total", sa.Float(precision=53), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "serial", "position", "attempt"),
        sqlite_with_rowid=False,
    )
