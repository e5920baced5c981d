"""What goes over the wire: our records as plain data, and back again as the same records.

The server writes with `plain`, the client reads with the functions below it; numbers that are not
finite cannot be written in JSON and go as null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

import numpy as np

from superarm.campaign import ArmStatus, Change, LookTaken, OpenPull, Pull, Result, Status
from superarm.diagnostics import Diagnostics, Finding, Offset
from superarm.verdict import Certificate, Verdict

T = TypeVar("T")
Data = Mapping[str, Any]

_MOMENTS = {"until", "given_at", "told_at", "at", "created"}
_TUPLES = {"members", "names", "warnings", "conditions"}


def plain(record: Any) -> dict[str, Any]:
    """Return a record (a dataclass of ours) as data that JSON can write."""
    return {part.name: _plain(getattr(record, part.name)) for part in fields(record)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Verdict):
        return verdict_data(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return plain(value)


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as data, with its estimates and its sentence."""
    estimates = verdict.estimates
    known = None if estimates is None else [_plain(float(value)) for value in estimates]
    return {**verdict.to_dict(), "estimates": known, "text": str(verdict)}


def certificate_from(data: Data) -> Certificate:
    """Return the certificate that was sent."""
    return Certificate(**{**data, "conditions": tuple(data["conditions"])})


def verdict_from(data: Data) -> Verdict:
    """Return the verdict that was sent."""
    kept = {part.name: data[part.name] for part in fields(Verdict) if part.name in data}
    certificate, estimates = kept["certificate"], kept.get("estimates")
    radius = math.inf if kept["radius"] is None else kept["radius"]
    gap = math.inf if kept["gap"] is None else kept["gap"]
    kept |= {
        "answer": tuple(kept["answer"]),
        "warnings": tuple(kept["warnings"]),
        "gap": gap,
        "radius": radius,
        "certificate": None if certificate is None else certificate_from(certificate),
        "estimates": None if estimates is None else np.array(estimates, dtype=np.float64),
    }
    return Verdict(**kept)


def diagnostics_from(data: Data) -> Diagnostics:
    """Return the checks that were sent; the rows of single pulls are not."""
    return Diagnostics(
        findings=tuple(Finding(**finding) for finding in data["findings"]),
        level=data["level"],
        pulls=data["pulls"],
        groups=data["groups"],
        offsets={
            kind: tuple(Offset(**offset) for offset in offsets)
            for kind, offsets in data["offsets"].items()
        },
    )


def record_from(kind: type[T], data: Data) -> T:
    """Return a record of one of the kinds without others in it."""
    values = {}
    for part in fields(kind):  # type: ignore[arg-type]
        value = data[part.name]
        if value is not None and part.name in _MOMENTS:
            value = datetime.fromisoformat(value)
        elif part.name in _TUPLES:
            value = tuple(value)
        values[part.name] = value
    return kind(**values)


def pull_from(data: Data) -> Pull:
    """Return a pull."""
    return record_from(Pull, data)


def open_pull_from(data: Data) -> OpenPull:
    """Return a pull that is out."""
    return record_from(OpenPull, data)


def result_from(data: Data) -> Result:
    """Return a result."""
    return record_from(Result, data)


def change_from(data: Data) -> Change:
    """Return a change."""
    return record_from(Change, data)


def look_from(data: Data) -> LookTaken:
    """Return a look."""
    return record_from(LookTaken, data)


def arm_from(data: Data) -> ArmStatus:
    """Return what is known of an arm."""
    return record_from(ArmStatus, data)


def status_from(data: Data) -> Status:
    """Return a status."""
    values = {part.name: data[part.name] for part in fields(Status)}
    values |= {
        "verdict": verdict_from(data["verdict"]),
        "arms": [arm_from(arm) for arm in data["arms"]],
        "warnings": tuple(data["warnings"]),
        "conditions": tuple(data["conditions"]),
    }
    if values["margin"] is None:
        values["margin"] = math.inf
    return Status(**values)
