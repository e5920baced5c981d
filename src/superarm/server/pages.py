"""The table of pages: what each is for, and the role that it takes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from superarm.server import (
    pages_arms,
    pages_campaign,
    pages_certificate,
    pages_measure,
    pages_new,
)
from superarm.server.access import Role
from superarm.server.failures import Refused
from superarm.server.pages_frame import STATIC, Handler, for_people, page, static

_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


async def login(request: Request) -> Response:
    """Where a browser shows its token."""
    return login_page(request)


def login_page(request: Request, error: str = "", status: int = 200) -> Response:
    """Return the page to log in, with what was wrong the last time."""
    there = request.query_params.get("next", "/")
    return page(request, "login.html", http=status, error=error, next=own_address(there))


def own_address(there: str) -> str:
    """Return an address of ours; the first page in the place of any other."""
    parts = urlsplit(there)
    ours = there.startswith("/") and not there.startswith(("//", "/\\")) and there.isprintable()
    return there if ours and not parts.netloc and not parts.scheme else "/"


async def static_file(request: Request) -> Response:
    """A style sheet, a script or a picture of ours."""
    name = request.path_params["file"]
    path = STATIC / name
    if "/" in name or path.suffix not in _KINDS or not path.is_file():
        raise Refused(404, f"there is no file {name[:100]!r}")
    # Pages ask for a file with a digest of what is in it: that address never changes its content.
    fresh = request.url.query == static(name).partition("?")[2]
    keep = "public, max-age=31536000, immutable" if fresh else "no-cache"
    return FileResponse(path, media_type=_KINDS[path.suffix], headers={"Cache-Control": keep})


C = "/campaigns/{name}"

PAGES: tuple[tuple[str, str, Role, Handler], ...] = (
    ("GET", "/", Role.READ, pages_campaign.campaigns),
    ("GET", "/new", Role.ADMIN, pages_new.new),
    ("POST", "/new", Role.ADMIN, pages_new.create),
    ("POST", "/new/forecast", Role.ADMIN, pages_new.forecast),
    ("GET", C, Role.READ, pages_campaign.campaign),
    ("GET", f"{C}/live", Role.READ, pages_campaign.live),
    ("GET", f"{C}/arms", Role.READ, pages_arms.arms),
    ("GET", f"{C}/results", Role.READ, pages_campaign.results),
    ("GET", f"{C}/results/{{id}}", Role.READ, pages_campaign.result),
    ("POST", f"{C}/results/{{id}}/amend", Role.MEASURE, pages_campaign.amend),
    ("POST", f"{C}/results/{{id}}/void", Role.MEASURE, pages_campaign.void),
    ("POST", f"{C}/undo", Role.MEASURE, pages_campaign.undo),
    ("POST", f"{C}/give-back", Role.MEASURE, pages_campaign.give_back),
    ("GET", f"{C}/certificate", Role.READ, pages_certificate.certificate),
    ("GET", f"{C}/measure", Role.MEASURE, pages_measure.measure),
    ("POST", f"{C}/measure", Role.MEASURE, pages_measure.tell),
    ("GET", f"{C}/measure/live", Role.MEASURE, pages_measure.live),
    ("POST", f"{C}/measure/start", Role.MEASURE, pages_measure.start),
    ("POST", f"{C}/measure/stop", Role.MEASURE, pages_measure.stop),
    ("GET", "/login", Role.OPEN, login),
    ("GET", "/static/{file}", Role.OPEN, static_file),
)
"""Method, path, role, handler."""

HANDLERS: tuple[tuple[str, str, Role, Any], ...] = tuple(
    (method, path, role, for_people(handler)) for method, path, role, handler in PAGES
)
"""The same, where what goes wrong becomes a page."""
