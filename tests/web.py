"""Servers for tests: a real one in a thread, and the application alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

import superarm as sa
from superarm.server import create_app
from superarm.server.settings import Settings

API = "/api/v1"
CREW = {"name": "crew", "arms": 6, "k": 2, "noise": "labels", "epsilon": 0.5, "seed": 1}


@dataclass
class Running:
    """A server that listens on a port of its own."""

    url: str
    app: Any
    store: sa.Store

    def http(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=f"{self.url}{API}", timeout=30, verify=False, **more)


@contextmanager
def running(store: sa.Store | None = None, **settings: Any) -> Iterator[Running]:
    """Run a server in a thread."""
    place = store or sa.Store.open(":memory:")
    app = create_app(place, Settings(**{"poll": 0.05, "beat": 0.2, **settings}))
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Running(f"http://127.0.0.1:{port}", app, place)
    finally:
        app.state.events.close()
        server.should_exit = True
        thread.join(30)
        if store is None:
            place.close()


def measured(http: httpx.Client, campaign: str = "crew", pulls: int = 4) -> list[str]:
    """Tell some totals; return their ids."""
    asked = http.post(f"/campaigns/{campaign}/ask", json={"size": pulls}).json()["pulls"]
    for pull in asked:
        told = http.post(f"/campaigns/{campaign}/tell", json={"id": pull["id"], "total": 1})
        assert told.status_code == 200, told.text
    return [pull["id"] for pull in asked]
