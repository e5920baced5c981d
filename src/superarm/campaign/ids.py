"""Ids of pulls: p, the serial of the phase, the position, and from the second asking on its number.

The letter keeps spreadsheets from taking an id for a date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from superarm._checks import shown
from superarm.errors import PullError

_FORM = re.compile(r"p([1-9]\d{0,8})-(0|[1-9]\d{0,17})(?:-([2-9]|[1-9]\d{1,8}))?", re.ASCII)


class Key(NamedTuple):
    """Which pull: the `attempt`-th asking of a position of a phase."""

    serial: int
    position: int
    attempt: int = 1

    def __str__(self) -> str:
        again = "" if self.attempt == 1 else f"-{self.attempt}"
        return f"p{self.serial}-{self.position}{again}"


def parse(id: str) -> Key:
    """Return the key of an id; PullError where it is none."""
    found = _FORM.fullmatch(str(id).strip()[:50])
    if found is None:
        raise never_asked(id)
    return Key(int(found[1]), int(found[2]), int(found[3] or 1))


def parse_all(ids: Iterable[str]) -> list[Key]:
    """Return the keys of many ids."""
    return [parse(id) for id in ids]


def never_asked(id: object) -> PullError:
    """Return the error about an id that was not given out."""
    return PullError(f"pull {shown(id)} was never asked for; copy its id as it was given out")
