"""A store of campaigns: an SQLite file, a PostgreSQL database, or memory.

In SQLite, writers queue for a lock file of ours before they begin: its own waiting is by sleeps
that grow, so that of many processes some would starve.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from superarm._checks import shown, writable
from superarm.campaign import schema
from superarm.campaign.migrate import HEAD, migrate, version
from superarm.errors import SettingError, StoreError

if TYPE_CHECKING:
    from superarm.campaign.summary import Summary

try:
    import fcntl
except ImportError:  # not on Windows: SQLite's own waiting has to do
    fcntl = None  # type: ignore[assignment]

Run = Callable[[str, Any], list[Any]]

PATIENCE = 30.0
"""Seconds to wait for other writers."""

VARIABLE = "SUPERARM_STORE"


class Store:
    """Where campaigns are kept; see `Store.open`."""

    def __init__(self, engine: Engine, name: str, path: Path | None) -> None:
        self.engine, self.name, self.path = engine, name, path
        self.postgresql = engine.dialect.name == "postgresql"
        self._local = threading.local()
        self._turn = threading.RLock()  # in memory there is one connection for all

    @classmethod
    def open(cls, where: str | Path | Store | None = None, *, create: bool = True) -> Store:
        """Open a store; its tables are brought up to date first.

        Parameters
        ----------
        where
            A file, a URL (``postgresql://...`` or ``sqlite:///...``), or ":memory:"; if not given
            what the environment variable SUPERARM_STORE says, or else the file campaigns.db in the
            user's data folder.
        create
            Whether to make a file that is not there yet.
        """
        if isinstance(where, Store):
            return where
        text = str(where if where is not None else os.environ.get(VARIABLE) or default_path())
        store = cls._connected(text, create)
        with store._friendly():
            store._prepare()
        return store

    @classmethod
    def _connected(cls, text: str, create: bool) -> Store:
        if text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
            return cls._on_postgresql(text)
        if text == ":memory:":
            engine = create_engine(
                "sqlite://", poolclass=StaticPool, connect_args=_SQLITE, echo=False
            )
            return cls(_as_sqlite(engine, False), ":memory:", None)
        path = text.removeprefix("sqlite:///") if text.startswith("sqlite:///") else text
        if "://" in path:
            raise SettingError(
                f"{_without_password(text)} is no store: give a file, or a URL that begins with "
                "postgresql://"
            )
        try:
            if not writable(path):
                raise ValueError("it has a sign in it that no name has")
            place = Path(path).expanduser().absolute()
            there = place.exists()
        except (OSError, ValueError, RuntimeError) as error:  # as the home of nobody
            raise SettingError(f"{shown(text)} is no name of a file: {error}") from None
        if not there:
            if not create:
                raise StoreError(f"there is no store {place}")
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{place.parent} cannot be made: {error.strerror}") from None
        url = URL.create("sqlite", database=str(place))  # a ? may be part of its name
        engine = create_engine(url, connect_args=_SQLITE)
        return cls(_as_sqlite(engine, True), str(place), place)

    @classmethod
    def _on_postgresql(cls, text: str) -> Store:
        try:
            url = make_url(text.replace("postgres://", "postgresql://", 1))
            engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        except ModuleNotFoundError:
            raise SettingError(
                'a PostgreSQL store needs: pip install "superarm[postgresql]"'
            ) from None
        except SQLAlchemyError as error:
            raise SettingError(f"{_without_password(text)} is no URL of a store: {error}") from None
        return cls(engine, url.render_as_string(hide_password=True), None)

    def close(self) -> None:
        """Let go of all connections."""
        self._forget()
        self.engine.dispose()
        lock = getattr(self._local, "lock", None)
        if lock is not None:
            os.close(lock)
            self._local.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view."""
        with self._friendly(), self._alone(), self.engine.connect() as connection:
            if self.postgresql:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that all of happens, or nothing of."""
        with self._friendly(), self._alone(), self._queue(), self.engine.connect() as connection:
            connection = connection.execution_options(superarm_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def quick(self) -> Iterator[Run]:
        """Statements as they are written, straight to the driver: one transaction.

        On PostgreSQL each is a transaction of its own.
        """
        with self._alone(), self._queue():
            try:
                driver = self._driver()
                if self.postgresql:
                    yield partial(_run, driver)
                    return
                driver.execute("BEGIN IMMEDIATE")
                try:
                    yield partial(_run, driver)
                    driver.execute("COMMIT")
                except BaseException:
                    if driver.in_transaction:
                        driver.execute("ROLLBACK")
                    raise
            except self._errors as error:
                self._forget()
                raise self._error(error) from error

    def _driver(self) -> Any:
        """Return the driver's own connection, one a thread and kept."""
        here = self._local
        if getattr(here, "owner", None) != os.getpid():  # never one of a parent process
            here.owner, here.pooled = os.getpid(), None
        if here.pooled is None:
            here.pooled = self.engine.raw_connection()
            if self.postgresql:
                here.pooled.driver_connection.autocommit = True
        return here.pooled.driver_connection

    def _passing(self, error: BaseException | None) -> bool:
        """Whether it may work at once with another connection: a restart, or a deadlock."""
        state = str(getattr(error, "sqlstate", None) or "")
        lost = type(error).__name__ in ("OperationalError", "AdminShutdown") and not state
        return self.postgresql and (lost or state[:2] in ("40", "57", "08"))

    def _forget(self) -> None:
        """Begin anew with another connection: this one may be broken."""
        pooled = getattr(self._local, "pooled", None)
        self._local.pooled = None
        if pooled is not None:
            with suppress(Exception):
                pooled.invalidate()

    @cached_property
    def _errors(self) -> type[Exception]:
        if self.postgresql:
            import psycopg

            return psycopg.Error
        return sqlite3.Error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self.path is None and not self.postgresql:
            with self._turn:
                yield
        else:
            yield

    @contextmanager
    def _queue(self) -> Iterator[None]:
        """Wait for our turn to write to a file."""
        if self.path is None or fcntl is None:
            yield
            return
        lock = self._lock_file()
        end, pause = time.monotonic() + PATIENCE, 0.0002
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise StoreError(
                        f"{self.name} has been written by others for {PATIENCE:g} s on end; try "
                        "again, or see which process holds it"
                    ) from None
                time.sleep(pause * (0.5 + random.random()))
                pause = min(pause * 1.5, 0.005)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def _lock_file(self) -> int:
        """Each thread has its own: what is locked is an open file, not a process."""
        process = getattr(self._local, "process", None)
        if process != os.getpid():
            self._local.lock, self._local.process = None, os.getpid()
        if self._local.lock is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            try:
                self._local.lock = os.open(f"{self.path}.lock", flags, 0o666)
            except OSError as error:
                raise StoreError(f"{self.path}.lock cannot be opened: {error.strerror}") from None
        found: int = self._local.lock
        return found

    @contextmanager
    def _friendly(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._error(error.orig) from error
        except SQLAlchemyError as error:
            raise StoreError(f"{self.name}: {error}") from error
        except self._errors as error:  # of a copy, which goes to the driver itself
            raise self._error(error) from error

    def _error(self, error: BaseException | None) -> StoreError:
        found = StoreError(f"{self.name}: {in_plain_words(error)}")
        found.passing = self._passing(error)
        return found

    def _prepare(self) -> None:
        with self.engine.connect() as connection, connection.begin():
            if version(connection) == HEAD:
                return
        with self._alone(), self._queue(), self.engine.connect() as connection:
            connection = connection.execution_options(superarm_write=True)
            with connection.begin():
                if self.postgresql:
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7377)")
                migrate(connection, self.name, self._keep)

    def _keep(self, found: str) -> None:
        """Copy a file before its tables are changed (of PostgreSQL, backups are made elsewhere)."""
        if self.path is not None:
            target = self.path.with_name(f"{self.path.name}.before-{HEAD}-from-{found}")
            _copy_sqlite(self.path, target)

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy of a file; measuring may go on meanwhile."""
        if self.path is None:
            raise SettingError(
                f"{self.name} is no file: back it up with the database's own tools, or copy it"
            )
        target = Path(path)
        if target.exists():
            raise SettingError(f"{target} is there already: choose another name for the backup")
        try:
            _copy_sqlite(self.path, target)
        except (OSError, sqlite3.Error) as error:
            with suppress(OSError):
                target.unlink()
            raise StoreError(f"{target}: the backup failed: {error}") from None

    def check(self) -> list[str]:
        """Return what is wrong in the store and what to do about it; nothing if all is well.

        All that is kept for speed (tallies, counts) is compared with what the totals say.
        """
        from superarm.campaign.check import check_store

        return check_store(self)

    def copy_to(self, other: Store) -> int:
        """Copy all campaigns to another store; return how many.

        Nothing is copied where a name is taken there already.
        """
        from superarm.campaign.writing import copy_all

        return copy_all(self, other)

    def campaigns(self) -> list[Summary]:
        """Return every campaign at a glance, by name."""
        from superarm.campaign.summary import summaries

        return summaries(self)

    def names(self) -> list[str]:
        """Return the names of all campaigns, in order."""
        with self.read() as connection:
            found = connection.execute(
                select(schema.campaign.c.name).order_by(schema.campaign.c.name)
            )
            return list(found.scalars())


def default_path() -> Path:
    """Return the file in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("superarm", appauthor=False) / "campaigns.db"


def _run(driver: Any, sql: str, values: Any) -> list[Any]:
    """Run a statement once, or for each of a list of values; return its rows."""
    if isinstance(values, list):
        driver.executemany(sql, values)
        return []
    cursor = driver.execute(sql, values)
    return cursor.fetchall() if cursor.description else []


_SQLITE: dict[str, Any] = {
    "timeout": PATIENCE,
    "check_same_thread": False,
    "isolation_level": None,  # transactions are begun by us, below
}


def _as_sqlite(engine: Engine, file: bool) -> Engine:
    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        if file:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA busy_timeout={PATIENCE * 1000:.0f}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-65536")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        write = connection.get_execution_options().get("superarm_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _copy_sqlite(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else text


def in_plain_words(error: object) -> str:
    """Return what the database says, in the words of somebody who has to put it right."""
    said = " ".join(str(error).split())
    for sign, words in (
        ("database is locked", "another program holds it locked; try again"),
        ("disk is full", "the disk is full: nothing was written; make room and try again"),
        ("No space left", "the disk is full: nothing was written; make room and try again"),
        ("malformed", "the file is damaged: restore a backup (superarm store check says more)"),
        ("not a database", "this is no store: the file is of another kind, or damaged"),
        ("disk I/O error", "the disk cannot be read or written (is it full, or damaged?)"),
        ("readonly database", "it may only be read here: see the file's permissions"),
        ("unable to open", "the file cannot be opened: see its folder and permissions"),
        ("connection", f"the database cannot be reached, or went away ({said})"),
    ):
        if sign in said:
            return words
    return said
