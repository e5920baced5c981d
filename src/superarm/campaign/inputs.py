"""What users give to a campaign besides totals: names, reasons, workers, leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from superarm._checks import real, shown, writable
from superarm.campaign.telling import Label
from superarm.config import LONGEST
from superarm.errors import ProblemError, SettingError
from superarm.problem import Problem

_LONGEST = 200  # characters of a name


def check_name(name: str) -> str:
    """Return a name that a campaign can have."""
    given: Any = name
    if not isinstance(given, str) or not name.strip() or not name.isprintable():
        raise SettingError(f"a campaign's name must be a text that can be read, not {shown(name)}")
    if len(name) > _LONGEST or "/" in name:
        raise SettingError(
            f"a campaign's name has at most {_LONGEST} characters and no /, not {shown(name)}"
        )
    return name.strip()


def short(what: str, text: str) -> str:
    """Return a text of ordinary length."""
    given: Any = text
    if not isinstance(given, str) or len(text) > 10 * _LONGEST:
        raise SettingError(f"{what} must be a text of ordinary length, not {shown(text)}")
    if not writable(text):
        raise SettingError(f"{what} has a sign in it that cannot be kept as text: {shown(text)}")
    return text.strip()


def labels_of(what: str, given: Label, count: int) -> Label:
    """Return a worker or a site: one for all totals, or one for each."""
    if isinstance(given, str):
        return short(what, given)
    if len(given) != count:
        raise SettingError(f"{what} must be a text, or {count:,} of them, not {len(given):,}")
    known = {text: short(what, text) for text in set(given)}
    return [known[text] for text in given]


def lease_of(lease: float) -> float:
    """Return seconds for which a pull can be handed out."""
    lease = real("lease (seconds)", lease, SettingError)
    if not 0 < lease <= LONGEST:  # later dates cannot be written
        raise SettingError(
            f"lease must be a number of seconds from 0 to {LONGEST:,.0f}, not {lease!r}"
        )
    return lease


def said(reason: str) -> str:
    """Return a reason; it must be given."""
    if not short("the reason", reason):
        raise SettingError("say why: the reason is kept, and stands on the certificate")
    return reason.strip()


def listed(names: Iterable[str]) -> list[str]:
    """Return names, each once; a single text is one name."""
    return [names] if isinstance(names, str) else list(dict.fromkeys(names))


def indices_of(problem: Problem, names: Sequence[str]) -> frozenset[int]:
    """Return the indices of arms that are away."""
    for name in names:
        if name not in problem.index:
            raise ProblemError(f"{shown(name)} is none of the arms, so that nothing is put off")
    return frozenset(problem.index[name] for name in names)
