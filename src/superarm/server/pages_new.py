"""The page that makes a campaign: plain questions, and at once what the answers will cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from superarm.errors import DataError, SuperarmError
from superarm.server.failures import refused
from superarm.server.pages_frame import desk_of, form_of, page, see, text_of, url_of
from superarm.server.question import (
    RULES,
    Cost,
    arms_in,
    cheaper,
    cost_of,
    problem_in,
    rule_in,
    whole_in,
)


async def new(request: Request) -> Response:
    """The empty form."""
    return page(request, "new.html", form=_blank(), rules=RULES, cost="", cost_more="")


async def create(request: Request) -> Response:
    """Make the campaign that a form describes; or only say what it would cost."""
    form = await form_of(request)
    fields: dict[str, str] = {}
    try:
        fields = await _fields(form)
        if fields.get("do") == "forecast":
            cost, more = await desk_of(request).run(_cost, fields)
            return page(
                request,
                "new.html",
                form=_blank(fields),
                rules=RULES,
                cost=cost.text,
                cost_more=more,
            )
        name = await desk_of(request).run(_create, desk_of(request).store, fields)
    except SuperarmError as error:
        return page(
            request,
            "new.html",
            http=refused(error).status,
            form=_blank(fields),
            rules=RULES,
            cost="",
            cost_more="",
            error=_sentence(error),
        )
    return see(url_of(request, name))


async def forecast(request: Request) -> Response:
    """What the answers so far would cost, for the page to show while somebody answers."""
    form = await form_of(request)
    try:
        cost, more = await desk_of(request).run(_cost, await _fields(form))
    except SuperarmError as error:
        cost, more = Cost(None, f"No forecast yet: {error}."), ""
    return JSONResponse({"text": cost.text, "more": more, "pulls": cost.pulls})


def _create(store: Any, fields: dict[str, str]) -> str:
    from superarm.campaign import Campaign

    problem = problem_in(fields, arms_in(fields.get("arms", "")))
    seed = whole_in(fields, "seed") if fields.get("seed") else None
    made = Campaign.create(fields.get("name", ""), problem, rule_in(fields), store=store, rng=seed)
    return made.name


def _cost(fields: dict[str, str]) -> tuple[Cost, str]:
    problem, rule = problem_in(fields, arms_in(fields.get("arms", ""))), rule_in(fields)
    rule.check(problem)
    cost = cost_of(problem, rule, fields)
    return cost, cheaper(problem, rule, fields, cost)


async def _fields(form: FormData) -> dict[str, str]:
    """Return the fields as text; an uploaded file stands for the pasted arms."""
    found = {key: text_of(form, key) for key in form if isinstance(form[key], str)}
    file = form.get("file")
    if isinstance(file, UploadFile) and file.filename:
        try:
            found["arms"] = (await file.read()).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{file.filename} is not a text file in UTF-8") from None
        finally:
            await form.close()
    await form.close()
    return found


def _blank(fields: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return fields for the template: those that are not there are empty."""
    return defaultdict(str, fields or {})


def _sentence(error: SuperarmError) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
