"""The page to measure with: one group, one number, next. It works without scripts too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from superarm.errors import SettingError, SuperarmError
from superarm.noise import Labels, Noise
from superarm.server.failures import refused
from superarm.server.pages_campaign import frame
from superarm.server.pages_frame import (
    desk_of,
    form_of,
    page,
    remember,
    render,
    see,
    text_of,
    url_of,
    who_of,
    worker_of,
)
from superarm.server.question import number_in
from superarm.server.together import Asking, Telling

if TYPE_CHECKING:
    from superarm.campaign import Campaign

LEASE = 86_400.0
MOST_AWAY = 1_000
"""More arms than this are not offered as ones that are missing."""

MOST_TAKEN = 100
"""Groups that one device takes along at most."""


async def measure(request: Request) -> Response:
    """The group that this worker has, and a field for its total."""
    return await _measure(request)


async def _measure(
    request: Request, error: SuperarmError | None = None, typed: str = ""
) -> Response:
    name = request.path_params["name"]
    worker = worker_of(request) or who_of(request).name
    without = request.query_params.getlist("without")

    def work(c: Campaign) -> dict[str, Any]:
        mine = [p for p in c.open_pulls() if worker and p.worker == worker and not p.lapsed]
        return {
            "problem": c.problem,
            "status": c.status(),
            "pulls": [{"id": p.id, "members": p.members} for p in mine[:MOST_TAKEN]],
        }

    found = await desk_of(request).read(name, work)
    problem, pulls = found["problem"], found["pulls"]
    low, high = problem.noise.range(problem.k)
    waiting = request.query_params.get("waiting", "")
    return page(
        request,
        "measure.html",
        http=200 if error is None else refused(error).status,
        **frame(request, name, found, "measure"),
        pulls=pulls,
        worker=worker,
        without=[arm for arm in without if arm in problem.index],
        without_query=f"?{urlencode([('without', arm) for arm in without])}" if without else "",
        away=problem.arms if problem.n <= MOST_AWAY else pulls[0]["members"] if pulls else (),
        waiting=waiting[:500] or "You hold no group.",
        told=found["status"].told,
        missing=found["status"].missing,
        range=range_in_words(problem.noise, problem.k),
        low=low if math.isfinite(low) else "",
        high=high if math.isfinite(high) else "",
        whole="yes" if isinstance(problem.noise, Labels) else "",
        error="" if error is None else str(error),
        typed=typed,
    )


async def live(request: Request) -> Response:
    """What changes on that page while others measure."""
    name = request.path_params["name"]

    def work(c: Campaign) -> dict[str, Any]:
        return {"problem": c.problem, "status": c.status()}

    found = await desk_of(request).read(name, work)
    status = found["status"]
    shown = {"told": status.told, "missing": status.missing}
    values = {**frame(request, name, found, "measure"), **shown}
    return HTMLResponse(render(request, "measure_live.html", **values))


async def start(request: Request) -> Response:
    """Hand out a group to a worker, without those that are missing."""
    form, name = await form_of(request), request.path_params["name"]
    worker = text_of(form, "worker")
    if not worker or len(worker) > MOST_TAKEN or not worker.isprintable():
        raise SettingError("say who is measuring: a name of ordinary length")
    without = [text for text in form.getlist("without") if isinstance(text, str)]
    waiting = await _ask(request, name, worker, without)
    answer = see(_address(request, name, without, waiting))
    remember(answer, worker)
    return answer


async def tell(request: Request) -> Response:
    """Take a total, and hand out the next group."""
    form, name = await form_of(request), request.path_params["name"]
    worker, typed = text_of(form, "worker"), text_of(form, "total")
    try:
        total = number_in({"total": typed}, "total")
        await desk_of(request).tell(name, Telling(text_of(form, "id"), total, worker, ""))
    except SuperarmError as error:
        return await _measure(request, error, typed)
    without = request.query_params.getlist("without")
    waiting = await _ask(request, name, worker, without)
    return see(_address(request, name, without, waiting))


async def stop(request: Request) -> Response:
    """Give back what a worker has and will not measure."""
    form, name = await form_of(request), request.path_params["name"]
    worker = text_of(form, "worker")

    def work(c: Campaign) -> int:
        held = [pull.id for pull in c.open_pulls() if worker and pull.worker == worker]
        return c.give_back(held) if held else 0

    await desk_of(request).write(name, work)
    return see(url_of(request, name))


async def _ask(request: Request, name: str, worker: str, without: Sequence[str]) -> str:
    asking = Asking(1, worker, LEASE, tuple(without))
    pulls, waiting = await desk_of(request).ask(name, asking)
    return "" if pulls else str(waiting)


def _address(request: Request, name: str, without: Sequence[str], waiting: str) -> str:
    query = [("without", arm) for arm in without] + ([("waiting", waiting)] if waiting else [])
    return f"{url_of(request, name)}/measure" + (f"?{urlencode(query)}" if query else "")


def range_in_words(noise: Noise, k: int) -> str:
    """Say which totals can be."""
    low, high = noise.range(k)
    if not math.isfinite(high - low):
        return "Any number."
    kind = "A whole number" if isinstance(noise, Labels) else "A number"
    return f"{kind} from {low:g} to {high:g}."
