"""Pages of campaigns: all of them, one of them, its results, and what may be changed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from superarm.errors import PullError, SettingError, SuperarmError
from superarm.server import pictures
from superarm.server.failures import Refused, refused
from superarm.server.pages_arms import arms_shown, marks
from superarm.server.pages_frame import (
    api_of,
    desk_of,
    form_of,
    number,
    page,
    render,
    see,
    text_of,
    url_of,
    worker_of,
)
from superarm.server.question import number_in

if TYPE_CHECKING:
    from superarm.campaign import Campaign, Status

SIZE = 100
"""Results on one page of the history."""


async def campaigns(request: Request) -> Response:
    """All campaigns."""
    desk = desk_of(request)
    rows = [
        {
            "name": one.name,
            "url": url_of(request, one.name),
            "state": one.state,
            "n": one.n,
            "k": one.k,
            "told": one.told,
            "missing": _missing(one.margin, one.state == "certified"),
            "last": one.last,
        }
        for one in await desk.run(desk.store.campaigns)
    ]
    return page(request, "campaigns.html", campaigns=rows, store=desk.store.name)


async def campaign(request: Request) -> Response:
    """One campaign: how it stands."""
    return HTMLResponse(await _overview(request, "campaign.html"))


async def live(request: Request) -> Response:
    """The parts of that page which change while people measure."""
    return HTMLResponse(await _overview(request, "campaign_live.html"))


async def _overview(request: Request, template: str) -> str:
    name = request.path_params["name"]

    def work(c: Campaign) -> dict[str, Any]:
        return {
            "problem": c.problem,
            "status": c.status(),
            "looks": c.looks(),
            "open_pulls": c.open_pulls(),
            "results": c.history(limit=8, newest_first=True),
            "changes": c.changes(),
        }

    found = await desk_of(request).read(name, work)
    return render(
        request, template, **frame(request, name, found, "overview"), **_shown(found, request)
    )


def frame(request: Request, name: str, found: dict[str, Any], at: str) -> dict[str, Any]:
    """Return what the frame of a campaign's pages shows."""
    verdict = found["status"].verdict if "status" in found else found["verdict"]
    live = {"overview": "/live", "measure": "/measure/live"}.get(at)
    return {
        "name": name,
        "url": url_of(request, name),
        "at": at,
        "problem": found["problem"],
        "verdict": verdict,
        "verdict_text": _without_warnings(verdict),
        "campaign_state": state_of(verdict),
        "api": api_of(request, name),
        "live": live and url_of(request, name) + live,
        "seen": _seen(found.get("status")),
    }


def _seen(status: Status | None) -> str:
    """Return what tells a script whether news is new to a page that was just drawn."""
    return "" if status is None else f"{status.told}/{status.open}/{status.missing}"


def state_of(verdict: Any) -> str:
    """Return the state of a campaign in a word."""
    if verdict.certified:
        return "certified"
    return "ended" if verdict.done else "measuring"


def _without_warnings(verdict: Any) -> str:
    """Return what a verdict says; its warnings have a place of their own."""
    return str(verdict).partition(" Warning: ")[0]


def _shown(found: dict[str, Any], request: Request) -> dict[str, Any]:
    status: Status = found["status"]
    looks = [one for one in found["looks"] if one.phase == found["looks"][-1].phase]
    drawn = pictures.thinned(looks)
    forecast = None if status.verdict.done else status.verdict.forecast
    undone = [one for one in found["changes"] if one.kind in ("amend", "void") and not one.undone]
    return {
        "status": status,
        "said": _said(status),
        "missing_margin": _missing(status.margin, status.verdict.certified),
        "looks": drawn,
        "looks_total": len(looks),
        "chart_wide": pictures.margin(drawn, forecast) if drawn else "",
        "chart_thin": pictures.margin(drawn, forecast, width=340, name="thin") if drawn else "",
        "arms": arms_shown(status, request.query_params, found["problem"].sign),
        "marks": marks(),
        "open_pulls": [one for one in found["open_pulls"] if one.until is not None][:12],
        "results": found["results"],
        "undoable": undone[-5:][::-1],
    }


def _said(status: Status) -> str:
    """Return what is read out when it changes: not each number, but each look."""
    verdict = status.verdict
    if verdict.done:
        return "Measuring is over: the answer is certified." if verdict.certified else "It is over."
    if not verdict.look:
        return ""
    return f"Look {verdict.look:,}: {_missing(status.margin, False)} of the margin is missing."


def _missing(margin: float | None, reached: bool) -> str:
    return "none" if reached else number(None if margin is None else max(0.0, margin))


# ---- results and changes -------------------------------------------------------------------------


async def results(request: Request) -> Response:
    """The results as they were told, the newest first."""
    name = request.path_params["name"]
    asked = request.query_params.get("start", "0")
    start = int(asked) if asked.isdecimal() and len(asked) < 13 else 0

    def work(c: Campaign) -> dict[str, Any]:
        status = c.status()
        return {
            "problem": c.problem,
            "status": status,
            "results": c.history(start=start, limit=SIZE, newest_first=True),
        }

    found = await desk_of(request).read(name, work)
    shown = {"results": found["results"], "start": start, "size": SIZE}
    told = found["status"].told
    return page(
        request, "results.html", **frame(request, name, found, "results"), **shown, told=told
    )


async def result(request: Request) -> Response:
    """One result, and the forms that change it."""
    return await _result(request)


async def _result(
    request: Request, error: SuperarmError | None = None, form: FormData | None = None
) -> Response:
    name, id = request.path_params["name"], request.path_params["id"]

    def work(c: Campaign) -> dict[str, Any]:
        return {
            "problem": c.problem,
            "verdict": c.verdict,
            "result": c.result(id),
            "changes": [one for one in c.changes() if one.id == id],
        }

    try:
        found = await desk_of(request).read(name, work)
    except PullError as wrong:
        raise Refused(404, str(wrong)) from None
    changes = found["changes"]
    voids = [one for one in changes if one.kind == "void" and not one.undone]
    return page(
        request,
        "result.html",
        http=200 if error is None else refused(error).status,
        **frame(request, name, found, "results"),
        r=found["result"],
        changes=changes,
        undo=voids[-1] if voids else None,
        error="" if error is None else str(error),
        form={key: text_of(form, key) if form else "" for key in ("total", "reason")},
        by=worker_of(request),
    )


async def amend(request: Request) -> Response:
    """Take another total in the place of one."""
    form = await form_of(request)
    id = request.path_params["id"]

    def work(c: Campaign) -> None:
        total = number_in({"total": text_of(form, "total")}, "total")
        c.amend(id, total, reason=text_of(form, "reason"), worker=text_of(form, "worker"))

    return await _change(request, form, work)


async def void(request: Request) -> Response:
    """Take a result out, so that its group is measured again."""
    form = await form_of(request)
    id, because = request.path_params["id"], text_of(form, "because")

    def work(c: Campaign) -> None:
        if because not in ("yes", "no"):
            raise SettingError("say whether the reason has to do with the number")
        c.void(
            id,
            reason=text_of(form, "reason"),
            because_of_value=because == "yes",
            worker=text_of(form, "worker"),
        )

    return await _change(request, form, work)


async def _change(request: Request, form: FormData, work: Any) -> Response:
    name, id = request.path_params["name"], request.path_params["id"]
    try:
        await desk_of(request).write(name, work)
    except SuperarmError as error:
        return await _result(request, error, form)
    return see(f"{url_of(request, name)}/results/{id}")


async def undo(request: Request) -> Response:
    """Take back a change."""
    form, name = await form_of(request), request.path_params["name"]
    number = text_of(form, "number")
    if not number.isdecimal() or len(number) > 12:
        raise SettingError(f"a change is named by its number, not {number!r}")
    by = worker_of(request)

    def work(c: Campaign) -> None:
        c.undo(int(number), reason=text_of(form, "reason"), worker=by)

    await desk_of(request).write(name, work)
    return see(url_of(request, name))


async def give_back(request: Request) -> Response:
    """Return a pull that nobody will measure, so that somebody else may."""
    form, name = await form_of(request), request.path_params["name"]
    await desk_of(request).write(name, lambda c: c.give_back([text_of(form, "id")]))
    return see(url_of(request, name))
