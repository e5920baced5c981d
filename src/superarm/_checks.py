"""Checks of single arguments that many rooms share."""

from __future__ import annotations

import math
import operator
from typing import Any

from superarm.errors import SuperarmError

LARGEST = 1e100
"""Rewards, totals and scales beyond this are refused: their squares and sums could overflow."""


_SHOWN = 100  # characters of a value in a message


def shown(value: Any) -> str:
    """Return a value as it is written, in short."""
    try:
        text = repr(value)
    except Exception:  # a whole number of thousands of digits, say
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def whole(
    what: str,
    value: Any,
    error: type[SuperarmError],
    least: int | None = None,
    most: int | None = None,
) -> int:
    """Return a whole number (never a bool, text or float), from `least` to `most`."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else None
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        lowest = "" if least is None else f" >= {least}"
        raise error(f"{what} must be a whole number{lowest}, not {shown(value)}")
    if most is not None and number > most:
        raise error(f"{what} must not exceed {most:,}; this was {_grouped(number)}")
    return number


def _grouped(number: int) -> str:
    return f"{number:,}" if number < 10**_SHOWN else "larger by far"


def flag(what: str, value: Any, error: type[SuperarmError]) -> bool:
    """Return a bool, and take nothing else for one."""
    if not isinstance(value, bool):
        raise error(f"{what} must be True or False, not {shown(value)}")
    return value


def writable(text: str) -> bool:
    """Whether every store and file can keep a text: no NUL, and no half of a character."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def real(what: str, value: Any, error: type[SuperarmError]) -> float:
    """Return a float from a number (never from text); it may be infinite or NaN."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise error(f"{what} must be a number, not {shown(value)}") from None
    except OverflowError:
        raise error(f"{what} must be a number of ordinary size, not one so large") from None


def bounded_real(what: str, value: Any, error: type[SuperarmError]) -> float:
    """Return a finite float whose square and sums cannot overflow."""
    number = real(what, value, error)
    if not math.isfinite(number):
        raise error(f"{what} must be a finite number, not {shown(number)}")
    if abs(number) > LARGEST:
        raise error(f"{what} must not exceed {LARGEST:g} in size, not {shown(number)}")
    return number
