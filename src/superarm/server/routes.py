"""The table of routes: what each is for, and the role that it takes.

A route that is not in a table, with its role, does not exist: `app.build` makes routes from the
tables alone, and wraps each with the question for the role.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from superarm.server import changing, models, reading, site
from superarm.server.access import Role

API = "/api/v1"
C = f"{API}/campaigns/{{name}}"
CSV = "text/csv"
JSON = "application/json"

Endpoint = Callable[..., Awaitable[Response]]


@dataclass(frozen=True)
class Rule:
    """A route: its method and path, who may use it, and what goes in and comes out.

    `page` is for what browsers show: who must log in first is sent there.
    """

    method: str
    path: str
    role: Role
    endpoint: Endpoint
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    query: type[BaseModel] | None = None
    sends: str = JSON
    returns: str = JSON
    fails: tuple[int, ...] = ()
    page: bool = False
    listed: bool = True
    """Whether it is in the OpenAPI document."""

    @property
    def purpose(self) -> str:
        """Its first line of documentation."""
        return (self.endpoint.__doc__ or "").strip().split("\n")[0]


def _read(path: str, endpoint: Endpoint, answer: type[BaseModel] | None, **more: Any) -> Rule:
    return Rule("GET", path, Role.READ, endpoint, answer=answer, **more)


def _list(
    what: str, endpoint: Endpoint, answer: type[BaseModel], query: Any = models.PageQuery
) -> Rule:
    return _read(f"{C}/{what}", endpoint, answer, query=query, fails=(404,))


def _post(
    role: Role, path: str, endpoint: Endpoint, body: type[BaseModel], answer: Any, **more: Any
) -> Rule:
    return Rule("POST", path, role, endpoint, body, answer, **{"fails": (404, 409), **more})


ABOUT_ONE = (
    _read(C, reading.status, models.Status, fails=(404,)),
    _list("arms", reading.arms, models.Arms),
    _read(f"{C}/certificate", reading.certificate, models.Certificate, fails=(404,)),
    _read(f"{C}/question", reading.question, models.Question, fails=(404,)),
    _read(f"{C}/diagnostics", reading.diagnostics, models.Diagnostics, fails=(404,)),
    _read(f"{C}/history/{{id}}", reading.result, models.Result, fails=(404,)),
    _list("history", reading.history, models.History, models.HistoryQuery),
    _read(f"{C}/history.csv", reading.history_csv, None, fails=(404,), returns=CSV),
    _list("changes", reading.changes, models.Changes),
    _list("looks", reading.looks, models.Looks),
    _list("open", reading.open_pulls, models.Open),
    _read(f"{C}/export", reading.export, None, fails=(404,)),
    _read(f"{C}/events", reading.events, None, fails=(404,), returns="text/event-stream"),
)

MEASURING = (
    _post(Role.MEASURE, f"{C}/ask", changing.ask, models.Ask, models.Asked),
    _post(Role.MEASURE, f"{C}/tell", changing.tell, models.Tell, models.Told),
    _post(Role.MEASURE, f"{C}/tell-many", changing.tell_many, models.TellMany, models.Told),
    Rule(
        "POST",
        f"{C}/tell.csv",
        Role.MEASURE,
        changing.tell_csv,
        answer=models.Told,
        query=models.TellQuery,
        sends=CSV,
        fails=(404, 409),
    ),
    _post(Role.MEASURE, f"{C}/extend", changing.extend, models.Extend, models.Count),
    _post(Role.MEASURE, f"{C}/give-back", changing.give_back, models.GiveBack, models.Count),
    _post(Role.MEASURE, f"{C}/amend", changing.amend, models.Amend, models.Change),
    _post(Role.MEASURE, f"{C}/void", changing.void, models.Void, models.Change),
    _post(Role.MEASURE, f"{C}/undo", changing.undo, models.Undo, models.Change),
    _post(Role.MEASURE, f"{C}/record", changing.record, models.Record, models.Change),
)

ADMINISTERING = (
    _post(
        Role.ADMIN,
        f"{API}/campaigns",
        changing.create,
        models.Create,
        models.Made,
        status=201,
        fails=(409,),
    ),
    Rule(
        "POST",
        f"{API}/import",
        Role.ADMIN,
        changing.load,
        answer=models.Made,
        query=models.LoadQuery,
        status=201,
        fails=(409,),
    ),
    _post(Role.ADMIN, f"{C}/retire", changing.retire, models.Retire, models.Change),
    Rule("DELETE", C, Role.ADMIN, changing.delete, status=204, fails=(404, 409)),
)

SITE = (
    Rule("GET", "/healthz", Role.OPEN, site.health, answer=models.Health),
    Rule("GET", "/metrics", Role.READ, site.metrics, returns="text/plain"),
    Rule("GET", "/openapi.json", Role.OPEN, site.openapi, listed=False),
    Rule("GET", "/docs", Role.OPEN, site.docs, page=True, listed=False),
    Rule("GET", "/docs/start.js", Role.OPEN, site.docs_script, listed=False),
    Rule("GET", "/docs/{file}", Role.OPEN, site.docs_file, listed=False),
    Rule("POST", "/login", Role.OPEN, site.log_in, page=True, listed=False),
    Rule("POST", "/logout", Role.OPEN, site.log_out, page=True, listed=False),
)

RULES: tuple[Rule, ...] = (
    *MEASURING,  # first, since they are asked for most
    _read(f"{API}/campaigns", reading.campaigns, models.Campaigns, query=models.PageQuery),
    *ABOUT_ONE,
    *ADMINISTERING,
    *SITE,
)
