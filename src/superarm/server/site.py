"""Routes about the server itself: health, figures, its documentation, logging in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import text
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

from superarm.server.failures import Refused
from superarm.server.guard import POLICY, Guard, check_csrf, set_cookie
from superarm.server.reading import desk_of

_DOCS = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>superarm: REST interface</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = """SwaggerUIBundle({
  url: new URL("openapi.json", location.href.replace(/[?#].*/, "")).href,
  dom_id: "#ui",
  validatorUrl: null,
});
"""
_DOCS_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
_FILES = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}


async def health(request: Request) -> Response:
    """Whether the server is up and its store answers."""
    desk = desk_of(request)

    def work() -> None:
        with desk.store.read() as connection:
            connection.execute(text("SELECT 1"))

    await desk.run(work)
    return JSONResponse({"status": "ok"})


async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    content: bytes = request.app.state.metrics.text()
    return Response(content, media_type="text/plain; version=0.0.4")


async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    found: dict[str, Any] = request.app.openapi()
    root = request.scope.get("root_path", "")
    return JSONResponse({**found, "servers": [{"url": root}]} if root else found)


async def docs(request: Request) -> Response:
    """Return a page about all routes, to read and to try; it works without a network."""
    return HTMLResponse(_DOCS, headers={"Content-Security-Policy": _DOCS_POLICY})


async def docs_script(request: Request) -> Response:
    """Return what starts that page."""
    return Response(_START, media_type="text/javascript")


async def docs_file(request: Request) -> Response:
    """Return a file of that page, from the package that brings them."""
    import fastapi_offline

    name = request.path_params["file"]
    if name not in _FILES:
        raise Refused(404, f"there is no file {name[:100]!r}")
    path = Path(fastapi_offline.__file__).parent / "static" / name
    return FileResponse(path, media_type=_FILES[name], headers={"Cache-Control": "max-age=86400"})


async def log_in(request: Request) -> Response:
    """Take a token, once; from then on the browser shows a cookie."""
    from superarm.server.pages import login_page, own_address

    form = await request.form(max_files=0, max_fields=10)
    token, sign, there = (str(form.get(name, "")).strip() for name in ("token", "csrf", "next"))
    check_csrf(request.state.csrf, sign)
    guard: Guard = request.app.state.guard
    client = request.client.host if request.client else "local"
    try:
        who = await guard.recognise(client, token)
    except Refused as error:
        return login_page(request, error.detail, error.status)
    cookie = await desk_of(request).run(guard.gate.log_in, who)
    header = set_cookie(request.scope, cookie, guard.settings.session)
    return _see(request, own_address(there), header)


async def log_out(request: Request) -> Response:
    """End a browser's session."""
    form = await request.form(max_files=0, max_fields=10)
    check_csrf(request.state.csrf, str(form.get("csrf", "")))
    guard: Guard = request.app.state.guard
    who = request.state.who
    if who.cookie:
        await desk_of(request).run(guard.gate.log_out, who.cookie)
    return _see(request, "/login", set_cookie(request.scope, "", 0))


def _see(request: Request, there: str, cookie: bytes) -> Response:
    """Send a browser elsewhere, with another cookie."""
    root = request.scope.get("root_path", "")
    there = there if root and there.startswith(f"{root}/") else f"{root}{there}"
    headers = {"Location": there, "Set-Cookie": cookie.decode()}
    return Response(status_code=303, headers=headers)
