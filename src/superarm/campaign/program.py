"""Measuring by a program of the user's: called once for each pull, never through a shell.

The total is the last line that the program writes to its standard output.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Protocol

from superarm._checks import real, shown
from superarm.errors import MeasurementError, SettingError
from superarm.tables import as_cell

PLACEHOLDER = re.compile(r"\{([A-Za-z_.]+)\}")
SPREAD = "{members...}"
KNOWN = ("members", "members...", "id", "worker")

TAIL = 65_536
"""So many bytes at the end of what a program writes are read."""

GRACE = 2.0
"""Seconds between asking a program to end and ending it."""


class Measurable(Protocol):
    """What a measurement has to know of a pull."""

    @property
    def id(self) -> str:
        """The pull's id."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the arms to measure together."""

    @property
    def worker(self) -> str:
        """Who measures."""


@dataclass(frozen=True)
class Program:
    """A command that measures: a template of its arguments.

    The template is split into arguments once, as a shell would; then placeholders are filled in,
    each inside its argument, so that a name with spaces or quotes stays as it is:

    - ``{members}``: the names, with semicolons between them (a name that has one is quoted);
    - ``{members...}``: an argument for each name; it must be an argument of its own;
    - ``{id}`` and ``{worker}``.

    Parameters
    ----------
    template
        The command, as ``measure --crew {members}``.
    timeout
        Seconds after which a call has failed; None: never.
    """

    template: str
    timeout: float | None = None
    _arguments: tuple[str, ...] = field(init=False, repr=False)
    _running: set[subprocess.Popen[bytes]] = field(
        init=False, repr=False, compare=False, default_factory=set
    )

    def __post_init__(self) -> None:
        if self.timeout is not None and not real("timeout", self.timeout, SettingError) > 0:
            raise SettingError(f"timeout must be > 0 seconds, not {shown(self.timeout)}")
        try:
            arguments = tuple(shlex.split(self.template))
        except ValueError as error:
            raise SettingError(f"the command {shown(self.template)}: {error}") from None
        if not arguments or "\0" in self.template:
            raise SettingError("the command is empty: say which program measures")
        found = PLACEHOLDER.findall(" ".join(arguments))
        for name in found:
            if name not in KNOWN:
                raise SettingError(
                    f"the command has {{{name}}}; there are "
                    f"{', '.join(f'{{{known}}}' for known in KNOWN)}"
                )
        if any(SPREAD in argument and argument != SPREAD for argument in arguments):
            raise SettingError(f"{SPREAD} stands for several arguments: put spaces around it")
        if not {"members", "members...", "id"} & set(found):
            raise SettingError(
                "the command does not say what to measure: put {members} or {members...} into it"
            )
        object.__setattr__(self, "_arguments", arguments)

    def arguments(self, pull: Measurable) -> list[str]:
        """Return the command for one pull."""
        values = {"members": as_cell(pull.members), "id": pull.id, "worker": pull.worker}
        filled: list[str] = []
        for argument in self._arguments:
            if argument == SPREAD:
                filled.extend(pull.members)
            else:
                filled.append(PLACEHOLDER.sub(lambda found: values[found[1]], argument))
        return filled

    def __call__(self, pull: Measurable) -> float:
        """Measure one pull: call the program and return the last line that it writes."""
        # Files, not pipes: whoever inherits a pipe could keep us waiting for its end.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._call(self.arguments(pull), out, err)
            said = _tail(err).strip()
            if code != 0:
                raise _failed(f"ended with {_how(code)}", said)
            lines = _tail(out).split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        try:
            total = math.nan if "_" in last else float(last)
        except ValueError:
            total = math.nan
        if not math.isfinite(total):
            what = f"{shown(last)} is no finite number" if last else "there is none"
            raise _failed(f"wrote no total on the last line of its output: {what}", said)
        return total

    def end(self, *, hard: bool = False) -> None:
        """Ask the calls that are running now to end, or end them without asking."""
        for process in list(self._running):
            _end(process, hard)

    def _call(self, command: Sequence[str], out: IO[bytes], err: IO[bytes]) -> int:
        try:
            # In a session of its own: Ctrl-C on the terminal is ours to pass on.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise _failed(f"cannot be started ({command[0]}: {said})", "") from None
        self._running.add(process)
        try:
            return self._wait(process)
        finally:
            self._running.discard(process)

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            _end(process, hard=False)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                _end(process, hard=True)
                process.wait()
        raise _failed(f"had not ended after {self.timeout:g} s", "")


def _end(process: subprocess.Popen[bytes], hard: bool) -> None:
    """End a program and what it started."""
    if process.poll() is not None:
        return
    if not hasattr(os, "killpg"):  # Windows
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def _tail(file: IO[bytes]) -> str:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - TAIL))
    return file.read().decode("utf-8", "replace")


def _how(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _failed(what: str, said: str) -> MeasurementError:
    lines = [" ".join(line.split()) for line in said.splitlines()[-5:]]
    return MeasurementError(
        f"the program {what}" + (f"; it said: {' / '.join(lines)}" if lines else "")
    )
