"""Routes that change something: measuring, putting right, making and deleting campaigns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from superarm.campaign import Campaign
from superarm.campaign.sheets import Sheet, read_sheet
from superarm.errors import DataError, ProblemError, StoreError
from superarm.problem import Problem
from superarm.server import models
from superarm.server.failures import Refused
from superarm.server.reading import as_json, desk_of, invalid, query
from superarm.server.together import Asking, Telling
from superarm.server.wire import plain

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


async def body_of(request: Request, model: type[M]) -> M:
    """Return the JSON of a request, checked."""
    expect(request, "application/json", "JSON")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise invalid(error) from None


def expect(request: Request, kind: str, word: str) -> None:
    """Refuse a body of another kind: no form of any page can send one of these."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Refused(415, f"send {word}, with Content-Type: {kind}")


async def write(request: Request, work: Callable[[Campaign], T]) -> T:
    """Change the campaign that the path names."""
    return await desk_of(request).write(request.path_params["name"], work)


def answer(content: Any, status: int = 200) -> Response:
    """Return JSON, the quick way."""
    return Response(as_json(content), status, media_type="application/json")


async def ask(request: Request) -> Response:
    """Pulls to measure. A worker with a name gets those again that it has not told yet."""
    sent = await body_of(request, models.Ask)
    asking = Asking(sent.size, sent.worker, sent.lease, tuple(sent.without))
    pulls, waiting = await desk_of(request).ask(request.path_params["name"], asking)
    return answer({"pulls": [plain(pull) for pull in pulls], "waiting": waiting})


async def tell(request: Request) -> Response:
    """The total of one pull. To say it again changes nothing, so a lost answer does no harm."""
    sent = await body_of(request, models.Tell)
    telling = Telling(sent.id, sent.total, sent.worker, sent.site)
    new = await desk_of(request).tell(request.path_params["name"], telling)
    return answer({"new": int(new), "repeated": int(not new)})


async def tell_many(request: Request) -> Response:
    """Totals of many pulls: all are taken or none."""
    sent = await body_of(request, models.TellMany)
    results = [(one.id, one.total) for one in sent.results]
    workers = [sent.worker if one.worker is None else one.worker for one in sent.results]
    sites = [sent.site if one.site is None else one.site for one in sent.results]
    told = await write(
        request, lambda campaign: campaign.tell_many(results, worker=workers, site=sites)
    )
    return answer(plain(told))


async def tell_csv(request: Request) -> Response:
    """Totals as CSV with the columns id and total: all are taken or none."""
    expect(request, "text/csv", "CSV")
    asked = query(request, models.TellQuery)
    sheet = sheet_of(await request.body(), asked.decimal_comma)
    labels = {
        key: [cell or default for cell in sheet.labels[key]] if key in sheet.labels else default
        for key, default in (("worker", asked.worker), ("site", asked.site))
    }
    results = zip(sheet.ids, sheet.totals, strict=True)
    told = await write(request, lambda campaign: campaign.tell_many(results, **labels))
    return answer(plain(told))


def sheet_of(content: bytes, decimal_comma: bool = False) -> Sheet:
    """Return the totals in a CSV that somebody sent; lines without a total are left out."""
    sheet = read_sheet("the CSV", decimal_comma=decimal_comma, stream=BytesIO(content))
    if len(sheet) > models.MOST_RESULTS:
        raise DataError(f"the CSV: more than {models.MOST_RESULTS:,} totals; send it in parts")
    return sheet


async def extend(request: Request) -> Response:
    """Keep pulls for so many seconds from now; with a worker, only those that it still has."""
    sent = await body_of(request, models.Extend)
    count = await write(
        request, lambda found: found.extend(sent.ids, sent.lease, worker=sent.worker)
    )
    return answer({"count": count})


async def give_back(request: Request) -> Response:
    """Pulls that will not be measured: others get them."""
    sent = await body_of(request, models.GiveBack)
    return answer({"count": await write(request, lambda found: found.give_back(sent.ids))})


async def amend(request: Request) -> Response:
    """Put another total in the place of one that was told."""
    sent = await body_of(request, models.Amend)
    return answer(
        plain(
            await write(
                request,
                lambda found: found.amend(
                    sent.id, sent.total, reason=sent.reason, worker=sent.worker
                ),
            )
        )
    )


async def void(request: Request) -> Response:
    """Take a total out; its pull is asked again."""
    sent = await body_of(request, models.Void)

    def work(found: Campaign) -> Any:
        return found.void(
            sent.id,
            reason=sent.reason,
            because_of_value=sent.because_of_value,
            worker=sent.worker,
        )

    return answer(plain(await write(request, work)))


async def undo(request: Request) -> Response:
    """Take an amend or a void back."""
    sent = await body_of(request, models.Undo)
    made = await write(
        request, lambda found: found.undo(sent.number, reason=sent.reason, worker=sent.worker)
    )
    return answer(plain(made))


async def record(request: Request) -> Response:
    """Write down a total that was measured outside the plan; no certificate uses it."""
    sent = await body_of(request, models.Record)
    made = await write(
        request,
        lambda found: found.record(
            sent.members, sent.total, reason=sent.reason, worker=sent.worker
        ),
    )
    return answer(plain(made))


async def retire(request: Request) -> Response:
    """Let arms leave for good; measuring begins anew with the others."""
    sent = await body_of(request, models.Retire)
    made = await write(
        request,
        lambda found: found.retire(sent.names, reason=sent.reason, worker=sent.worker),
    )
    return answer(plain(made))


async def create(request: Request) -> Response:
    """Make a campaign from a question."""
    sent = await body_of(request, models.Create)
    desk = desk_of(request)

    def work() -> Campaign:
        return Campaign.create(
            sent.name, problem_of(sent), rule_of(sent), store=desk.store, rng=sent.seed
        )

    made = await desk.run(work)
    return answer({"name": made.name, "seed": made.seed}, 201)


def problem_of(sent: models.Create) -> Problem:
    """Return the question that was sent, in either form."""
    from superarm.decision.parse import parse_decision
    from superarm.noise import parse_noise
    from superarm.plain import problem_from_plain

    if sent.problem is not None:
        if sent.arms is not None or sent.noise is not None:
            raise ProblemError("state the question by `problem`, or by arms and noise, not by both")
        return problem_from_plain(sent.problem)
    if sent.arms is None or sent.noise is None:
        raise ProblemError("a question needs `arms` (their names) and `noise`")
    if (sent.k is None) == (sent.family is None):
        raise ProblemError("say which groups may be chosen: either by `k`, or by `class`")
    groups: Any = sent.k
    if sent.family is not None:
        columns = {name: tuple(cells) for name, cells in sent.columns.items()}
        groups = parse_decision(sent.family, columns)
    return Problem(
        sent.arms,
        groups,
        parse_noise(sent.noise),
        epsilon=sent.epsilon,
        delta=sent.delta,
        direction=sent.direction,
    )


def rule_of(sent: models.Create) -> Any:
    """Return the rule that was sent; None: the default one."""
    from superarm.plain import from_plain
    from superarm.plugins import load as named

    if sent.algorithm is None:
        return None
    if isinstance(sent.algorithm, str):
        return named("algorithms", sent.algorithm)()
    return from_plain(sent.algorithm)


async def load(request: Request) -> Response:
    """Make a campaign from an export, under its own name or another."""
    expect(request, "application/json", "an export")
    asked = query(request, models.LoadQuery)
    content = await request.body()
    desk = desk_of(request)

    def work() -> Campaign:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "import.json"
            try:
                path.write_bytes(content)
            except OSError as error:
                raise StoreError(f"the import cannot be kept: {error.strerror}") from None
            return Campaign.load(path, store=desk.store, name=asked.name)

    made = await desk.run(work)
    return answer({"name": made.name, "seed": made.seed}, 201)


async def delete(request: Request) -> Response:
    """Delete a campaign with all its results, for good."""
    await write(request, lambda found: found.delete())
    return Response(status_code=204)
