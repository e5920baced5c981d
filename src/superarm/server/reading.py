"""Routes that change nothing."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from superarm.campaign import Campaign
from superarm.errors import StoreError
from superarm.plain import problem_to_plain, to_plain
from superarm.server import models
from superarm.server.desk import Desk
from superarm.server.events import Events
from superarm.server.failures import Refused
from superarm.server.wire import plain, verdict_data

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_ROWS = 2_000  # of a history that are read at a time


def desk_of(request: Request) -> Desk:
    """Return the desk of the server."""
    found: Desk = request.app.state.desk
    return found


async def read(request: Request, work: Callable[[Campaign], T]) -> T:
    """Read from the campaign that the path names."""
    return await desk_of(request).read(request.path_params["name"], work)


def query(request: Request, model: type[M]) -> M:
    """Return what follows the question mark."""
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Refused(422, f"{name[:50]!r} is given twice", "SettingError")
        given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> Refused:
    """Return what is wrong with a request, in one line."""
    said = []
    for part in error.errors(include_url=False, include_context=False, include_input=False)[:5]:
        place = ".".join(str(step) for step in part["loc"])
        said.append(f"{place}: {part['msg']}" if place else str(part["msg"]))
    return Refused(422, "; ".join(said), "SettingError")


def page(
    request: Request, asked: models.PageQuery, rows: Sequence[Any], more: bool
) -> JSONResponse:
    """Return one part of a list, with the address of the next (from the root of the server)."""
    following = None
    headers = {}
    if more:
        values = {**asked.model_dump(mode="json"), "start": asked.start + asked.limit}
        values = {key: str(value).lower() for key, value in values.items()}
        root = request.scope.get("root_path", "")
        path = request.scope["path"].removeprefix(root)
        following = f"{root}{quote(path)}?{urlencode(values)}"
        headers["Link"] = f'<{following}>; rel="next"'
    return JSONResponse({"items": [plain(row) for row in rows], "next": following}, headers=headers)


def cut(request: Request, asked: models.PageQuery, rows: Sequence[Any]) -> JSONResponse:
    """Return one part of a list that is there as a whole."""
    end = asked.start + asked.limit
    return page(request, asked, rows[asked.start : end], end < len(rows))


async def campaigns(request: Request) -> Response:
    """All campaigns, by name."""
    asked = query(request, models.PageQuery)
    desk = desk_of(request)
    return cut(request, asked, await desk.run(desk.store.campaigns))


async def status(request: Request) -> Response:
    """Where a campaign stands: the verdict, what is missing, the arms."""
    return JSONResponse(plain(await read(request, lambda found: found.status())))


async def arms(request: Request) -> Response:
    """What is known of each arm."""
    asked = query(request, models.PageQuery)
    found = await read(request, lambda campaign: campaign.status())
    return cut(request, asked, found.arms)


async def certificate(request: Request) -> Response:
    """The certificate, and what it is conditional on; or why there is none."""
    found = await read(request, lambda campaign: campaign.status())
    verdict = verdict_data(found.verdict)
    return JSONResponse(
        {
            "certified": found.verdict.certified,
            "certificate": verdict["certificate"],
            "answer": verdict["answer"],
            "reason": verdict["reason"],
            "text": verdict["text"],
            "conditions": list(found.conditions),
        }
    )


async def question(request: Request) -> Response:
    """The question as of now, the rule and the seed: all that decides what is measured."""

    def work(campaign: Campaign) -> dict[str, Any]:
        return {
            "name": campaign.name,
            "problem": problem_to_plain(campaign.problem),
            "algorithm": to_plain(campaign.algorithm),
            "seed": campaign.seed,
            "created": campaign.created.isoformat(),
        }

    return JSONResponse(await read(request, work))


async def history(request: Request) -> Response:
    """Results as they were told, the first told first."""
    asked = query(request, models.HistoryQuery)

    def work(campaign: Campaign) -> list[Any]:
        return campaign.history(
            start=asked.start, limit=asked.limit + 1, newest_first=asked.newest_first
        )

    rows = await read(request, work)
    return page(request, asked, rows[: asked.limit], len(rows) > asked.limit)


async def result(request: Request) -> Response:
    """The total that was told of one pull."""
    id = request.path_params["id"]
    return JSONResponse(plain(await read(request, lambda campaign: campaign.result(id))))


async def history_csv(request: Request) -> Response:
    """All results as CSV."""
    header = ("id", "members", "total", "first_total", "told_at", "worker", "site", "state")

    async def rows_from(start: int) -> list[Any]:
        return await read(request, lambda found: found.history(start=start, limit=_ROWS))

    first = await rows_from(0)

    async def lines() -> AsyncIterator[str]:
        yield _csv([header])
        start, rows = 0, first
        while rows:
            yield _csv(_row(plain(row), header) for row in rows)
            start += len(rows)
            rows = await rows_from(start) if len(rows) == _ROWS else []

    return StreamingResponse(lines(), media_type="text/csv", headers=_file(request, "csv"))


def _row(row: dict[str, Any], header: Sequence[str]) -> list[Any]:
    row["members"] = _csv([row["members"]], ";").rstrip("\r\n")
    return [harmless(row[name]) for name in header]


def harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value


def _csv(rows: Iterable[Iterable[Any]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


async def changes(request: Request) -> Response:
    """Everything else that was done: amends, voids, undos, retirements, groups put off."""
    asked = query(request, models.PageQuery)
    return cut(request, asked, await read(request, lambda campaign: campaign.changes()))


async def diagnostics(request: Request) -> Response:
    """All checks of the totals; `diagnostics` is null while there are none."""
    found = await read(request, lambda campaign: campaign.diagnose())
    return JSONResponse({"diagnostics": None if found is None else found.to_dict()})


async def looks(request: Request) -> Response:
    """Both sides of the stop at each look."""
    asked = query(request, models.PageQuery)
    return cut(request, asked, await read(request, lambda campaign: campaign.looks()))


async def open_pulls(request: Request) -> Response:
    """Pulls that are out, or wait to be handed out again."""
    asked = query(request, models.PageQuery)
    return cut(request, asked, await read(request, lambda campaign: campaign.open_pulls()))


async def export(request: Request) -> Response:
    """Everything about a campaign as one JSON file, which `import` and `superarm verify` read."""

    def work(campaign: Campaign) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "export.json"
            try:
                campaign.export(path)
                return path.read_bytes()
            except OSError as error:
                raise StoreError(f"the export cannot be written: {error.strerror}") from None

    body = await read(request, work)
    return Response(body, media_type="application/json", headers=_file(request, "json"))


def _file(request: Request, kind: str) -> dict[str, str]:
    name = quote(request.path_params["name"], safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}.{kind}"}


async def events(request: Request) -> Response:
    """Live news as server-sent events: `status` at once and after changes, `gone` at the end."""
    found: Events = request.app.state.events
    if found.full:
        raise Refused(503, "too many are watching already", headers={"Retry-After": "60"})
    await read(request, lambda campaign: campaign.name)  # an unknown one is a 404
    stream = found.stream(request.path_params["name"])
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


def news_of(campaign: Campaign) -> dict[str, Any]:
    """Return what those who watch a campaign are told."""
    found = campaign.status()
    short = {key: value for key, value in plain(found).items() if key not in ("arms", "verdict")}
    verdict = verdict_data(found.verdict)
    named = ("answer", "done", "look", "phase", "pulls", "gap", "epsilon", "radius", "text")
    shown = {key: verdict[key] for key in named}
    return {**short, **shown, "certified": found.verdict.certified}


def as_json(value: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()
