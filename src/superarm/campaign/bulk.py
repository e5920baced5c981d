"""Many rows at once, by the fastest way that each database has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table

_MANY = 500  # from so many rows on, PostgreSQL copies


def add_rows(connection: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, whose values are in the order of the table's columns."""
    if not rows:
        return
    if connection.dialect.name == "postgresql" and len(rows) >= _MANY:
        raw: Any = connection.connection.driver_connection
        names = ", ".join(column.name for column in table.columns)
        with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    connection.exec_driver_sql(_insertion(table, connection.dialect.name), [tuple(r) for r in rows])


@cache
def _insertion(table: Table, dialect: str) -> str:
    names = [column.name for column in table.columns]
    mark = "%s" if dialect == "postgresql" else "?"
    marks = ", ".join([mark] * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
