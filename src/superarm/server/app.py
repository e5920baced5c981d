"""The application: the routes of the tables, guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from superarm.campaign import Campaign, Store
from superarm.server import pages
from superarm.server.access import Gate, server_key
from superarm.server.desk import Desk
from superarm.server.events import Events
from superarm.server.failures import Refused
from superarm.server.guard import Guard, ruled
from superarm.server.metrics import Metrics
from superarm.server.openapi import document
from superarm.server.pages_frame import error_page
from superarm.server.reading import news_of
from superarm.server.routes import RULES, Rule
from superarm.server.settings import Settings

PAGE_RULES = tuple(
    Rule(method, path, role, endpoint, page=True, listed=False)
    for method, path, role, endpoint in pages.HANDLERS
)
ALL_RULES = (*RULES, *PAGE_RULES)


def build(store: Store | str | None, settings: Settings) -> FastAPI:
    """Return the application; see `superarm.server.create_app`."""
    place = Store.open(store)
    figures = Metrics()
    desk = Desk(place, settings.gather, figures)
    events = Events(
        lambda name: desk.read(name, version_of),
        lambda name: desk.read(name, news_of),
        settings.poll,
        settings.beat,
        figures,
    )
    gate = Gate(place, settings.session)
    guard = Guard(settings, gate, server_key(place), desk.run, figures, error_page)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        events.close()
        desk.close()
        if place is not store:
            place.close()

    app = FastAPI(
        title="superarm", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    app.state.desk, app.state.events, app.state.metrics = desk, events, figures
    app.state.guard, app.state.settings = guard, settings
    app.openapi = lambda: document(RULES, settings.tokens)  # type: ignore[method-assign]
    app.add_exception_handler(HTTPException, _not_found)
    app.add_middleware(guard.around)
    for rule in ALL_RULES:
        _add(app, rule)
    return app


def _add(app: FastAPI, rule: Rule) -> None:
    app.add_api_route(
        rule.path, rule.endpoint, methods=[rule.method], include_in_schema=False, name=rule.path
    )
    route: Any = app.router.routes[-1]
    route.app = ruled(route.app, rule.role, rule.page)


async def _not_found(_request: Request, error: Exception) -> Response:
    """Turn what the framework refuses (no such route, another method) into our kind of error."""
    assert isinstance(error, HTTPException)
    raise Refused(error.status_code, str(error.detail), headers=error.headers) from None


def version_of(campaign: Campaign) -> tuple[int, ...]:
    """Return numbers that change with what is to be seen of a campaign; two short queries."""
    from sqlalchemy import case, func, select

    from superarm.campaign.schema import open_pull
    from superarm.campaign.standing import standing

    out = func.count(case((open_pull.c.until > 0, 1)))
    there = select(func.count(), out).where(open_pull.c.campaign == campaign._id)
    with campaign.store.read() as connection:
        where = standing(connection, campaign._id)
        waiting = connection.execute(there).one()
    return (where.serial, where.changes, where.look, where.frontier, *waiting)
