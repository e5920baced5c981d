"""The frame of all pages: templates, how values are written, forms, and errors that people read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache, wraps
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from superarm.errors import SuperarmError
from superarm.server.access import NOBODY, Role, Who
from superarm.server.failures import Refused, refused
from superarm.server.guard import CSRF, check_csrf

HERE = Path(__file__).parent
STATIC = HERE / "static"

Handler = Callable[[Request], Awaitable[Response]]

_SAY = {
    401: "Log in first",
    403: "That is not allowed",
    404: "There is no such page",
    409: "That does not go together",
    413: "That is too much at once",
    421: "Another name",
    422: "That cannot be right",
    429: "Not so fast",
    503: "The store cannot be reached",
}


# ---- how values are written ----------------------------------------------------------------------


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for people; an en dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:,.{digits}g}"
    if "e" in text and abs(value) < 1e15 and abs(value) >= 1:
        text = f"{value:,.0f}"
    return text.replace("-", "−")


def count(value: float | None) -> str:
    """Return a number of things."""
    return "–" if value is None else f"{value:,.0f}"


def iso(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def ago(moment: datetime) -> str:
    """Return how long ago something was, or how soon it will be."""
    seconds = (datetime.now(UTC) - moment.astimezone(UTC)).total_seconds()
    size = abs(seconds)
    if size < 45:
        return "now"
    for unit, length, most in (("min", 60, 90), ("h", 3600, 36), ("days", 86_400, math.inf)):
        if size / length < most:
            many = max(1, round(size / length))
            word = "day" if unit == "days" and many == 1 else unit
            return f"{many:,} {word} ago" if seconds > 0 else f"in {many:,} {word}"
    raise AssertionError("an infinite time")


@cache
def static(name: str) -> str:
    """Return the address of a file of ours, which changes with what is in it."""
    digest = hashlib.blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"static/{name}?v={digest}"


@cache
def templates() -> Environment:
    """Return the templates: everything that is put into them is escaped."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(number=number, count=count, iso=iso, ago=ago)
    found.globals.update(version=version("superarm"))
    return found


# ---- answers -------------------------------------------------------------------------------------


class Visitor:
    """Who looks at a page, and what they may do."""

    def __init__(self, who: Who) -> None:
        self.name, self.cookie, self.word = who.name, who.cookie, who.role.word
        self.may_read = who.role >= Role.READ
        self.may_measure = who.role >= Role.MEASURE
        self.may_admin = who.role >= Role.ADMIN


def who_of(request: Request) -> Who:
    """Return who sends a request."""
    return cast(Who, getattr(request.state, "who", NOBODY))


def render(request: Request, template: str, **values: Any) -> str:
    """Return a template's text for one request."""
    sign = getattr(request.state, "csrf", "")
    field = Markup('<input type="hidden" name="{}" value="{}">').format(CSRF, sign)
    root = root_of(request)
    common = {
        "root": root,
        "static": lambda name: f"{root}/{static(name)}",
        "visitor": Visitor(who_of(request)),
        "csrf": lambda: field,
        "csrf_token": sign,
        "here": "",
        "error": "",
    }
    return templates().get_template(template).render({**common, **values})


def page(request: Request, template: str, *, http: int = 200, **values: Any) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(render(request, template, **values), http)


def error_page(request: Request, error: Refused, back: str = "") -> HTMLResponse:
    """Return the page that says what was wrong."""
    status = HTTPStatus(error.status)
    title = _SAY.get(error.status, status.phrase)
    text = error.detail[:1].upper() + error.detail[1:]
    found = page(
        request,
        "error.html",
        http=error.status,
        title=title,
        text=text if text.endswith((".", "!", "?")) else f"{text}.",
        code=f"{status.value} {status.phrase}",
        back=back,
    )
    found.headers.update({name: value for name, value in error.headers.items()})
    return found


def for_people(handler: Handler) -> Handler:
    """Wrap a page: what goes wrong in it becomes a page too."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        try:
            return await handler(request)
        except SuperarmError as error:
            found = refused(error)
            if "there is no campaign" in str(error) and request.method == "GET":
                found = Refused(404, str(error))
            return error_page(request, found)
        except Refused as error:
            if error.status == 303:
                raise
            return error_page(request, error)

    return wrapped


def see(address: str) -> RedirectResponse:
    """Send a browser to another page after a form: loading it anew sends nothing twice."""
    return RedirectResponse(address, 303)


def root_of(request: Request) -> str:
    """Return what comes before each address of ours, behind a proxy that serves others too."""
    return str(request.scope.get("root_path", "")).rstrip("/")


async def form_of(request: Request) -> FormData:
    """Return a form's fields, if a page of ours made it."""
    form = await request.form(max_files=2, max_fields=100_000)
    check_csrf(getattr(request.state, "csrf", ""), text_of(form, CSRF))
    return form


def text_of(form: FormData, name: str) -> str:
    """Return one field of a form; "" where it is not there or a file."""
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def url_of(request: Request, name: str) -> str:
    """Return the address of a campaign's page."""
    return f"{root_of(request)}/campaigns/{quote(name, safe='')}"


def api_of(request: Request, name: str) -> str:
    """Return the address of a campaign for programs."""
    return f"{root_of(request)}/api/v1/campaigns/{quote(name, safe='')}"


def desk_of(request: Request) -> Any:
    """Return who works on the store."""
    return request.app.state.desk


WORKER = "superarm-worker"
"""Cookie with the worker's name, so that it is remembered without scripts too."""


def worker_of(request: Request) -> str:
    """Return the name under which this browser measures."""
    found = unquote(request.cookies.get(WORKER, ""))[:100].strip()
    return found if found.isprintable() else ""


def remember(response: Response, worker: str) -> None:
    """Keep a worker's name for a year."""
    response.set_cookie(
        WORKER, quote(worker), max_age=365 * 86_400, httponly=True, samesite="strict"
    )
