"""The table of arms: sorted, searched and cut by the server, with or without scripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from superarm.server import pictures
from superarm.server.pages_frame import desk_of, render, templates, url_of

if TYPE_CHECKING:
    from superarm.campaign import ArmStatus, Status

FIRST = 50
"""Arms that are shown at first: the page is there at once, whatever their number."""

MOST_SHOWN = 20_000

_ORDERS = (("estimate", "estimate"), ("doubt", "contested first"), ("name", "name"))
_RANKS = {"contested": 0, "in": 1, "out": 2, "retired": 3}


async def arms(request: Request) -> Response:
    """The table of arms alone: sorted, searched, or all of it."""
    name = request.path_params["name"]
    status, problem = await desk_of(request).read(name, lambda c: (c.status(), c.problem))
    shown = arms_shown(status, request.query_params, problem.sign)
    values = {"url": url_of(request, name), "arms": shown, "marks": marks()}
    return HTMLResponse(render(request, "arms_table.html", **values))


def marks() -> dict[str, Markup]:
    """Return the mark of each state, drawn once for all rows."""
    mark = templates().get_template("macros.html").module.mark  # type: ignore[attr-defined]
    return {state: mark(state) for state in ("in", "out", "contested", "retired", "unknown")}


def arms_shown(status: Status, query: QueryParams, sign: float) -> dict[str, Any]:
    """Return the rows of the table of arms, with their pictures on one scale."""
    words = query.get("q", "").strip()
    order = query.get("sort", "estimate")
    asked = query.get("show", "")
    show = min(int(asked), MOST_SHOWN) if asked.isdecimal() and len(asked) < 9 else FIRST
    everyone = status.arms
    found = [arm for arm in everyone if words.casefold() in arm.name.casefold()]
    found.sort(key=lambda arm: _place(arm, order, sign))
    rows = found[: max(1, show)]
    known = status.verdict.estimates is not None
    ends, cut = pictures.scale(everyone), _cut(everyone)
    drawn = [
        {
            "name": arm.name,
            "state": arm.state if known or arm.state == "retired" else "unknown",
            "chosen": arm.chosen,
            "estimate": arm.estimate,
            "low": arm.low,
            "high": arm.high,
            "picture": _interval(arm, ends, cut),
        }
        for arm in rows
    ]
    return {
        "rows": drawn,
        "q": words,
        "sort": order,
        "show": show,
        "orders": _ORDERS,
        "found": len(found),
        "more": len(found) > len(rows) and show < MOST_SHOWN,
        "all_query": urlencode({"q": words, "sort": order, "show": min(len(found), MOST_SHOWN)}),
        "caption": _caption(everyone, len(rows), known),
    }


def _place(arm: ArmStatus, order: str, sign: float) -> tuple[Any, ...]:
    """Return where an arm stands in an order."""
    if order == "name":
        return (arm.name.casefold(),)
    rank = _RANKS.get(arm.state, 4) if order == "doubt" else arm.state == "retired"
    return (rank, math.inf if arm.estimate is None else -sign * arm.estimate)


def _caption(arms: Sequence[ArmStatus], shown: int, known: bool) -> str:
    some = "" if shown == len(arms) else f"; {shown:,} shown"
    if not known:
        return f"{len(arms):,} arms{some}. Nothing is known of them before the first look."
    states = Counter(arm.state for arm in arms)
    counts = ", ".join(
        f"{states[s]:,} {s}" for s in ("in", "contested", "out", "retired") if s in states
    )
    return (
        f"{len(arms):,} arms: {counts}{some}. ✓: in the best group so far. Intervals hold together "
        "with probability 95 % at one look; the dashed line parts the group from the rest."
    )


def _interval(arm: ArmStatus, ends: tuple[float, float], cut: float) -> Markup | str:
    if arm.low is None or arm.high is None or arm.estimate is None:
        return ""
    return pictures.interval(arm.low, arm.high, arm.estimate, ends, cut, arm.state)


def _cut(arms: Sequence[ArmStatus]) -> float:
    """Return what lies half-way between the chosen and the others."""
    chosen = [arm.estimate for arm in arms if arm.chosen and arm.estimate is not None]
    others = [arm.estimate for arm in arms if not arm.chosen and arm.estimate is not None]
    if not chosen or not others:
        return 0.0
    if sum(chosen) / len(chosen) >= sum(others) / len(others):
        return (min(chosen) + max(others)) / 2
    return (max(chosen) + min(others)) / 2
