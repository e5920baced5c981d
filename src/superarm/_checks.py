"""Checks of single arguments that many rooms share."""

from __future__ import annotations

import math
import operator
from typing import Any

from superarm.errors import SuperarmError

LARGEST = 1e100
"""Rewards, totals and scales beyond this are refused: their squares and sums could overflow."""


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
        raise error(f"{what} must be a whole number{lowest}, not {value!r}")
    if most is not None and number > most:
        raise error(f"{what} must not exceed {most:,}; this was {number:,}")
    return number


def flag(what: str, value: Any, error: type[SuperarmError]) -> bool:
    """Return a bool, and take nothing else for one."""
    if not isinstance(value, bool):
        raise error(f"{what} must be True or False, not {value!r}")
    return value


def real(what: str, value: Any, error: type[SuperarmError]) -> float:
    """Return a float from a number (never from text); it may be infinite or NaN."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise error(f"{what} must be a number, not {value!r}") from None
    except OverflowError:
        raise error(f"{what} must be a number of ordinary size, not one so large") from None


def bounded_real(what: str, value: Any, error: type[SuperarmError]) -> float:
    """Return a finite float whose square and sums cannot overflow."""
    number = real(what, value, error)
    if not math.isfinite(number):
        raise error(f"{what} must be a finite number, not {number!r}")
    if abs(number) > LARGEST:
        raise error(f"{what} must not exceed {LARGEST:g} in size, not {number!r}")
    return number
