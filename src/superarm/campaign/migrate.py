"""Bringing a store's tables to the form that this version reads: numbered migrations, by Alembic.

Alembic is loaded only where there is something to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from superarm.errors import StoreError

VERSION_TABLE = "superarm_version"

HEAD = "0002"
"""The newest migration: a test compares it with the files."""


def version(connection: Connection) -> str | None:
    """Return the number of the last migration that a store has had; None for an empty one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    row = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).first()
    return None if row is None else str(row[0])


def migrate(connection: Connection, name: str, backup: Callable[[str], None]) -> None:
    """Bring the tables to `HEAD`; `backup` is called before those of an older store are changed."""
    found = version(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise StoreError(
            f"{name} was written by a newer superarm (its tables are number {found}, this version "
            f"reads up to {HEAD}): upgrade superarm here too"
        )
    if found is None and inspect(connection).has_table("campaign"):
        raise StoreError(f"{name} holds a table campaign that superarm did not make")
    if found is not None:
        backup(found)
    upgrade(connection)


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the migrations up to one of them."""
    import logging

    from alembic import command
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
