"""Errors over HTTP: application/problem+json (RFC 9457), one kind for each of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from superarm import errors
from superarm.errors import SuperarmError

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:superarm:"
RETRY_AFTER = 1
"""Seconds after which to try again what the store could not do."""

_STATUS: dict[type[SuperarmError], int] = {
    errors.CampaignError: 409,
    errors.ConflictError: 409,
    errors.PullError: 404,
    errors.StoreError: 503,
}
"""Where it is not 422: what was sent makes no sense."""


class Refused(Exception):
    """A request that is not served, with the status that says why."""

    def __init__(
        self, status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        Exception.__init__(self, detail)
        self.status, self.detail, self.kind = status, detail, kind
        self.headers = dict(headers or {})


def refused(error: SuperarmError) -> Refused:
    """Return an error of ours as it goes over the wire."""
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 422)
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    return Refused(status, str(error), type(error).__name__, headers)


def body_of(error: Refused) -> bytes:
    """Return the problem document."""
    title = HTTPStatus(error.status).phrase
    kind = f"{PREFIX}{error.kind}" if error.kind else "about:blank"
    document = {"type": kind, "title": title, "status": error.status, "detail": error.detail}
    return json.dumps(document).encode()


def headers_of(error: Refused) -> list[tuple[bytes, bytes]]:
    """Return the headers of the answer, without its length."""
    found = {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", **error.headers}
    return [(name.lower().encode(), value.encode()) for name, value in found.items()]


def error_from(kind: str, detail: str) -> SuperarmError | None:
    """Return the error that a problem document stands for, where it is one of ours."""
    name = kind.removeprefix(PREFIX)
    found = getattr(errors, name, None) if name.isidentifier() else None
    if isinstance(found, type) and issubclass(found, SuperarmError):
        return found(detail)
    return None
