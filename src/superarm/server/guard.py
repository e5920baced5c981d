"""What every request passes before a route sees it, and what every answer is given.

In this order: is it meant for us (Host), was it sent by a page of ours (Origin), is the client in a
hurry (rate), who is it (token or cookie), is it too large. The role that a route needs is asked by
`ruled`, which wraps each route: what a request may do is decided in one place for all of them.
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from superarm.errors import SuperarmError
from superarm.server.access import NOBODY, Gate, Role, Who, form_token
from superarm.server.failures import Refused, body_of, headers_of, refused
from superarm.server.limits import Limit
from superarm.server.metrics import Metrics
from superarm.server.settings import Settings

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
Blocking = Callable[..., Awaitable[Any]]
ErrorPage = Callable[[Request, Refused], Response]

log = logging.getLogger("superarm.server")

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE = "superarm"
CSRF = "csrf"
"""Name of the form field, and of the header x-csrf-token, that changes by a browser carry."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class Guard:
    """The application, guarded."""

    app: App

    def __init__(
        self,
        settings: Settings,
        gate: Gate,
        key: bytes,
        blocking: Blocking,
        metrics: Metrics,
        error_page: ErrorPage,
    ) -> None:
        self.settings, self.gate, self.metrics = settings, gate, metrics
        self._blocking, self._key, self._error_page = blocking, key, error_page
        self.failures = Limit(settings.failures / 60, settings.failures)
        self.requests = Limit(settings.rate, 4 * settings.rate)

    def around(self, app: App) -> Guard:
        """Return this guard around an application."""
        self.app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:  # no web sockets here
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        started = perf_counter()
        try:
            headers = _headers(scope)
            await self._check(scope, headers, answer)
            await self.app(scope, _limited(receive, headers, self.settings.body), answer)
        except Refused as error:
            await self._refuse(scope, receive, answer, error)
        except SuperarmError as error:
            await self._refuse(scope, receive, answer, refused(error))
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            sorry = Refused(500, "the server failed; its log says more")
            await self._refuse(scope, receive, answer, sorry)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "none")
            self.metrics.request(scope["method"], path, answer.status, perf_counter() - started)

    async def _refuse(
        self, scope: Scope, receive: Receive, answer: _Answer, error: Refused
    ) -> None:
        """Answer with a page for people, or a problem document; unless an answer has begun."""
        if answer.status:
            raise error  # too late to say so: the connection is cut
        accept = dict(scope["headers"]).get(b"accept", b"")
        if b"text/html" in accept and not scope["path"].startswith("/api/"):
            if error.status == 303:
                await RedirectResponse(error.headers["Location"], 303)(scope, receive, answer)
            else:
                scope.setdefault("state", {"who": NOBODY, "csrf": ""})
                await self._error_page(Request(scope), error)(scope, receive, answer)
            return
        if error.status == 303:  # for those who cannot log in by a page
            error = _no_token("this needs a token: Authorization: Bearer TOKEN")
        body = body_of(error)
        headers = [*headers_of(error), (b"content-length", str(len(body)).encode())]
        await answer({"type": "http.response.start", "status": error.status, "headers": headers})
        await answer({"type": "http.response.body", "body": body})

    async def _check(self, scope: Scope, headers: dict[bytes, bytes], answer: _Answer) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.settings.right_host(host):
            raise Refused(
                421,
                f"this server is not known as {host[:100]!r}; if it is to be, start it with "
                "--host-name and that name",
            )
        if scope["method"] not in SAFE:
            _check_origin(headers, host)
        who = await self._who(scope, headers)
        scope.setdefault("state", {})
        state = scope["state"] = {**scope["state"], "who": who}
        cookie = _cookie(headers)
        if not cookie and b"text/html" in headers.get(b"accept", b""):
            cookie = secrets.token_urlsafe(32)
            answer.extra.append((b"set-cookie", set_cookie(scope, cookie)))
        state["csrf"] = form_token(self._key, cookie) if cookie else ""
        if who.cookie and scope["method"] not in SAFE and not _is_form(headers):
            given = headers.get(b"x-csrf-token", b"").decode("latin-1")
            check_csrf(state["csrf"], given)

    async def _who(self, scope: Scope, headers: dict[bytes, bytes]) -> Who:
        if not self.settings.tokens:
            return Who(Role.ADMIN)
        client = (scope.get("client") or ("local", 0))[0]
        if self.gate.stale:
            await self._blocking(self.gate.refresh)
        shown = headers.get(b"authorization", b"").decode("latin-1")
        if shown:
            kind, _, text = shown.partition(" ")
            if kind.lower() != "bearer":
                raise _no_token("show a token as: Authorization: Bearer TOKEN")
            who = await self.recognise(client, text.strip())
        else:
            who = await self._session(_cookie(headers))
        pace = who.token or client
        if wait := self.requests.wait(pace):
            raise Refused(429, "too many requests", headers={"Retry-After": _whole(wait)})
        self.requests.count(pace)
        return who

    async def recognise(self, client: str, text: str) -> Who:
        """Return who shows a token; wrong ones are counted, and refused after too many."""
        who = self.gate.remembered("t", text)
        if who is not None:
            return who
        if wait := self.failures.wait(client):
            raise Refused(
                429,
                "too many wrong tokens from here; try again later",
                headers={"Retry-After": _whole(wait)},
            )
        self.failures.count(client)  # before hashing: many at once must not all get through
        who = await self._blocking(self.gate.verify, text)
        if who is None:
            raise _no_token("this token is unknown, or was revoked")
        self.failures.forgive(client)
        return who

    async def _session(self, cookie: str) -> Who:
        if not cookie:
            return NOBODY
        who = self.gate.remembered("c", cookie)
        if who is None:
            who = await self._blocking(self.gate.resume, cookie)
        return who or NOBODY


def ruled(app: App, role: Role, page: bool) -> App:
    """Return a route's application for those who have the role; others are told what they lack."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        who: Who = scope["state"]["who"]
        if who.role < role:
            raise _lacking(scope, who, role, page)
        await app(scope, receive, send)

    return guarded


def _lacking(scope: Scope, who: Who, role: Role, page: bool) -> Refused:
    if who.role is not Role.OPEN:
        return Refused(403, f"this needs the role {role.word}; {who.name} has {who.role.word}")
    if page and scope["method"] in SAFE:
        root = scope.get("root_path", "")
        there = quote(scope["path"], safe="/")
        return Refused(303, "log in first", headers={"Location": f"{root}/login?next={there}"})
    return _no_token("this needs a token: Authorization: Bearer TOKEN")


def _no_token(detail: str) -> Refused:
    return Refused(401, detail, headers={"WWW-Authenticate": 'Bearer realm="superarm"'})


def check_csrf(expected: str, given: str) -> None:
    """Refuse what a browser sends without the sign that a page of ours gave it."""
    if not expected or not hmac.compare_digest(expected.encode(), given.encode()):
        raise Refused(403, "this form is too old, or not of this server: load the page anew")


def _check_origin(headers: dict[bytes, bytes], host: str) -> None:
    """Refuse changes that a page of somebody else's makes a browser send."""
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or _plain(parts.netloc) != _plain(host):
            raise Refused(403, f"changes are not taken from pages of {origin[:100]!r}")
    elif headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
        raise Refused(403, "changes are not taken from pages of others")


def _plain(host: str) -> str:
    """Return host and port, without the port that goes without saying."""
    return host.lower().removesuffix(":80").removesuffix(":443")


def _is_form(headers: dict[bytes, bytes]) -> bool:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind in (b"application/x-www-form-urlencoded", b"multipart/form-data")


def _headers(scope: Scope) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in (b"host", b"authorization", b"origin", b"content-length"):
            raise Refused(400, f"the header {name.decode()} was sent twice")
        found[name] = value
    return found


def _cookie(headers: dict[bytes, bytes]) -> str:
    text = headers.get(b"cookie", b"").decode("latin-1")
    if not text:
        return ""
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value[:100]


def set_cookie(scope: Mapping[str, Any], value: str, seconds: float | None = None) -> bytes:
    """Return the header that gives a browser its cookie; for this visit, or so many seconds."""
    parts = [f"{COOKIE}={value}", f"Path={scope.get('root_path') or '/'}", "HttpOnly"]
    parts.append("SameSite=Strict")
    if scope.get("scheme") == "https":
        parts.append("Secure")
    if seconds is not None:
        parts.append(f"Max-Age={seconds:.0f}")
    return "; ".join(parts).encode()


def _limited(receive: Receive, headers: dict[bytes, bytes], most: int) -> Receive:
    """Return `receive` that stops at so many bytes."""
    length = headers.get(b"content-length", b"0")
    refusal = Refused(413, f"a request may have {most:,} bytes at most")
    if not length.isdigit() or len(length) > 15 or int(length) > most:
        raise refusal
    if b"transfer-encoding" not in headers:
        return receive
    seen = 0

    async def limited() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise refusal
        return message

    return limited


class _Answer:
    """`send`, which adds our headers and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0
        self.extra: list[tuple[bytes, bytes]] = []

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message["headers"])
            given = {name for name, _ in headers}
            headers += [pair for pair in HEADERS.items() if pair[0] not in given]
            if b"set-cookie" not in given:
                headers += self.extra
            if b"cache-control" not in given:
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await self._send(message)


def _whole(seconds: float) -> str:
    return str(math.ceil(seconds))
