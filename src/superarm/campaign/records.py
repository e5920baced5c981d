"""What a campaign hands out: pulls, results, changes, looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


def moment(seconds: float) -> datetime:
    """Return a time of the store as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True)
class Pull:
    """A measurement to make: the total of `members`, to be told under `id` before `until`.

    A total that comes later is taken too, unless somebody else has told it by then.
    """

    id: str
    members: tuple[str, ...]
    reason: str
    worker: str
    until: datetime


@dataclass(frozen=True)
class OpenPull:
    """A pull that was handed out, or put off, and has no total yet."""

    id: str
    members: tuple[str, ...]
    worker: str
    given_at: datetime | None
    until: datetime | None
    lapsed: bool
    reason: str


@dataclass(frozen=True)
class Told:
    """How many totals were new, and how many had been told before."""

    new: int
    repeated: int


@dataclass(frozen=True)
class Result:
    """A total that was told.

    `total` is what counts now (None when voided), `first_total` what was told first. `state` is one
    of "counts" (used by a look), "waiting" (for the look that it belongs to), "voided", "not used"
    (its phase was over).
    """

    id: str
    members: tuple[str, ...]
    total: float | None
    first_total: float
    told_at: datetime
    worker: str
    site: str
    phase: int
    position: int
    state: str


@dataclass(frozen=True)
class Change:
    """Something other than a total that was told: amend, void, undo, retire, put off, outside.

    `text` says it in words, `undone` whether it was taken back.
    """

    number: int
    at: datetime
    kind: str
    id: str | None
    total: float | None
    reason: str
    worker: str
    because_of_value: bool
    names: tuple[str, ...]
    target: int | None
    undone: bool
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "number": self.number,
            "at": self.at.isoformat(),
            "kind": self.kind,
            "id": self.id,
            "total": self.total,
            "reason": self.reason,
            "worker": self.worker,
            "because_of_value": self.because_of_value,
            "names": list(self.names),
            "target": self.target,
            "undone": self.undone,
            "text": self.text,
        }


@dataclass(frozen=True)
class LookTaken:
    """Both sides of the stop at one look: it is reached when gap + epsilon >= radius."""

    phase: int
    number: int
    pulls: int
    gap: float | None
    epsilon: float
    radius: float | None
    at: datetime
