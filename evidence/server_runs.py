"""The server under faults.

A server is killed by SIGKILL while six clients ask and tell over HTTP, and started again, over and
over. Everything that it acknowledged must be in the store, with its total, and nothing twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import servers
import web

TITLE = "Server"
HEADER = ("store", "what was done", "runs", "what was found")

Claim = tuple[tuple[str, ...], bool]
ROUNDS = 40


def jobs() -> Iterator[tuple[str, Callable[[], Claim]]]:
    for kind in ("SQLite", "PostgreSQL"):
        yield f"server on {kind}: killed over and over", partial(killed, kind)


def killed(kind: str) -> Claim:
    """Kill a server under load in each round."""
    row = (kind, "a server killed under six clients", f"{ROUNDS} rounds")
    try:
        told = _rounds(kind)
    except AssertionError as error:
        return (*row, f"{error}"), False
    return (*row, f"{told:,} acknowledged totals, all there"), True


def _rounds(kind: str) -> int:
    if kind == "SQLite":
        with tempfile.TemporaryDirectory() as folder:
            return web.kill_rounds(str(Path(folder) / "store.db"), ROUNDS)
    with servers.postgresql_server() as server, servers.fresh_database(server) as url:
        return web.kill_rounds(url, ROUNDS)
