"""The journal of a study: each run is on disk as soon as it is done, and need not be run again.

A text file of JSON lines. The first says of which study it is; then comes a line for each run. When
cells are added to a study, another line of the first kind follows. Each line ends with a checksum.
A last line that was cut short (by kill -9, say) is dropped when the journal is opened again; a line
that was damaged otherwise is named and not believed.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from superarm.errors import DataError, SettingError
from superarm.study.outcome import Outcome, Versions, versions

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from superarm.study.cells import Study

FORMAT = "superarm study 1"

_SYNC = 1.0  # seconds: after a power cut, no more than these are lost

Key = tuple[int, int]


@dataclass(frozen=True)
class Header:
    """What decides the numbers of a study: a journal goes on where these agree."""

    rng: int
    max_pulls: int
    versions: Versions
    cells: tuple[tuple[str, str], ...]
    """Fingerprint and name of each cell; one list may go on where the other ends."""

    @classmethod
    def of(cls, study: Study) -> Header:
        """Return the header of a study's journal."""
        pairs = zip((cell.digest for cell in study.cells), study.names, strict=True)
        return cls(study.rng, study.max_pulls, versions(), tuple(pairs))

    def difference(self, other: Header) -> str:
        """Say why runs under `other` are not runs under this; empty when they are."""
        for name, mine, found in (
            ("rng", self.rng, other.rng),
            ("max_pulls", self.max_pulls, other.max_pulls),
            *((name, mine, other.versions.get(name)) for name, mine in self.versions.items()),
        ):
            if mine != found:
                return f"it has {name} {found}, and this study {mine}"
        for (mine, name), (found, their_name) in zip(self.cells, other.cells, strict=False):
            if mine != found:
                return f"its {their_name} is another than {name} here"
        return ""

    def line(self) -> bytes:
        """Return the journal's line that says so."""
        return _line({"journal": FORMAT, **self.__dict__})

    @classmethod
    def read(cls, given: dict[str, Any]) -> Header:
        """Return what `line` wrote."""
        cells = tuple((digest, name) for digest, name in given["cells"])
        return cls(given["rng"], given["max_pulls"], given["versions"], cells)


class Journal:
    """A journal that is open for this process alone."""

    def __init__(self, path: Path, study: Study, *, fresh: bool = False) -> None:
        self.path, self.header = path, Header.of(study)
        self.finished: dict[Key, Outcome] = {}
        self._known: Header | None = None
        self._synced = time.monotonic()
        try:
            self._file = self._opened(fresh)
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}") from None
        try:
            self._size = self._read()
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, 0, os.SEEK_END)
        except BaseException:
            os.close(self._file)
            raise

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Write finished runs."""
        content = b"".join(_line(outcome.to_dict()) for outcome in outcomes)
        if self._known is None or len(self._known.cells) < len(self.header.cells):
            content = self.header.line() + content
            self._known = self.header
        try:
            self._write(content)
            if time.monotonic() - self._synced > _SYNC:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise OSError(
                error.errno,
                f"{error.strerror} (writing {self.path}); runs finished before are kept there",
            ) from None

    def close(self) -> None:
        """Bring everything to the disk; a journal without any run is removed."""
        try:
            if self._size == 0:
                self.path.unlink(missing_ok=True)
            else:
                with suppress(OSError):  # what cannot be synced is written all the same
                    os.fsync(self._file)
        finally:
            os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self, fresh: bool) -> int:
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise OSError(errno.EINVAL, "not an ordinary file")
                self._lock(file)
                if self._there(file):
                    if fresh:
                        os.ftruncate(file, 0)
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _there(self, file: int) -> bool:
        """Whether an open file still has its name: another process may just have removed it."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _lock(self, file: int) -> None:
        if sys.platform == "win32":  # two processes on one journal are not told apart there
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingError(f"{self.path}: another process is at work on this study") from None
        except OSError:
            pass  # a file system without locks

    def _write(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size += len(content)

    def _read(self) -> int:
        """Take in what is there; return the size of what is whole."""
        good = 0
        with open(self._file, "rb", closefd=False) as file:
            for number, line in enumerate(file, 1):
                try:
                    self._take(number, line)
                except _Torn:
                    self._refuse_more(file, number, line)
                    break
                good += len(line)
        return good

    def _take(self, number: int, line: bytes) -> None:
        given = _parsed(line)
        if number == 1 and (given is None or given.get("journal") != FORMAT):
            if given is None and self._begun(line):
                raise _Torn
            raise DataError(f"{self.path} is not the journal of a study (or of another version)")
        if given is None:
            raise _Torn
        try:
            if "journal" in given:
                self._compare(Header.read(given))
            else:
                outcome = Outcome.from_dict(given)
                self.finished[outcome.cell, outcome.replication] = outcome
        except (TypeError, KeyError):
            raise DataError(f"{self.path}, line {number}: not a line of a journal") from None

    def _begun(self, line: bytes) -> bool:
        """Whether this may be a first line cut short."""
        start = json.dumps({"journal": FORMAT}, separators=(",", ":"))[:-1].encode()
        return not line.endswith(b"\n") and (line.startswith(start) or start.startswith(line))

    def _compare(self, found: Header) -> None:
        difference = self.header.difference(found)
        if difference:
            raise SettingError(
                f"{self.path} is the journal of another study: {difference}; start afresh "
                "(--fresh) or choose another file for the table"
            )
        if self._known is None or len(found.cells) > len(self._known.cells):
            self._known = found

    def _refuse_more(self, file: BinaryIO, number: int, line: bytes) -> None:
        """Raise DataError unless a line is a last one that was cut short."""
        if line.endswith(b"\n") or file.readline():
            raise DataError(
                f"{self.path}, line {number}: damaged; take this line out, so that its run is run "
                "again, or start afresh (--fresh)"
            )


class _Torn(Exception):
    """A line that is not whole."""


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return what is on a line; None where it is not as it was written."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    found.pop("check", None)
    return found if _line(found) == line else None


def _line(given: dict[str, Any]) -> bytes:
    """Return a line: JSON whose last part, `check`, is the CRC-32 of the JSON without it."""
    text = json.dumps(given, separators=(",", ":"))
    return f'{text[:-1]},"check":{zlib.crc32(text.encode())}}}\n'.encode()


def journal_path(out: Path) -> Path:
    """Return where the journal of a table is."""
    return out.with_name(out.name + ".journal")


def left(study: Study, finished: dict[Key, Outcome]) -> dict[int, Sequence[int]]:
    """Return the replications of each cell that are still to be run."""
    todo: dict[int, Sequence[int]] = {}
    for number in range(1, len(study.cells) + 1):
        every = range(1, study.replications + 1)
        missing = [r for r in every if (number, r) not in finished] if finished else every
        if missing:
            todo[number] = missing
    return todo
