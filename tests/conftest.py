"""Before NumPy is loaded: one BLAS thread a process, since every core runs tests already.

And a real PostgreSQL for the tests that ask for one.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["SUPERARM_CONFIG"] = os.devnull  # the settings of who runs the tests change none

import pytest
import servers


@pytest.fixture(scope="session")
def postgresql_server():
    with servers.postgresql_server() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql_server):
    """The URL of a fresh, empty database."""
    with servers.fresh_database(postgresql_server) as url:
        yield url
