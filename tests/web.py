"""Servers for tests: a real one in a thread, and the application alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

import superarm as sa
from superarm.campaign import Campaign
from superarm.server import create_app
from superarm.server.settings import Settings

API = "/api/v1"
SERVE = """
import sys
from superarm.campaign import Store
from superarm.server.run import serve
from superarm.server.settings import Settings
serve(Store.open(sys.argv[1]), Settings(), port=int(sys.argv[2]))
"""

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


@contextmanager
def process(where: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    done = subprocess.Popen(
        [sys.executable, "-c", SERVE, where, str(port)], stderr=subprocess.PIPE, text=True
    )
    assert done.stderr is not None
    try:
        line = done.stderr.readline()
        found = re.search(r":(\d+)/", line)
        assert found, line + done.stderr.read()
        yield done, int(found[1])
    finally:
        done.kill()
        done.wait(30)
        done.stderr.close()


def kill_rounds(where: str, rounds: int) -> int:
    """Kill a server under load, over and over; return how many totals were acknowledged.

    All of them must be in the store, and at most what was on its way besides.
    """
    told: dict[str, float] = {}
    for round in range(rounds):
        with process(where) as (server, port):
            base = f"http://127.0.0.1:{port}{API}"
            if round == 0:
                httpx.post(f"{base}/campaigns", json={**CREW, "epsilon": 0.001}).raise_for_status()
            before = len(told)
            threads = [
                threading.Thread(target=_until_killed, args=(base, i, told)) for i in range(6)
            ]
            for thread in threads:
                thread.start()
            end = time.monotonic() + 60
            while len(told) < before + 30:
                assert time.monotonic() < end
                time.sleep(0.002)
            os.kill(server.pid, signal.SIGKILL)
            for thread in threads:
                thread.join(30)
    with sa.Store.open(where) as again:
        crew = Campaign.open("crew", store=again)
        kept = {row.id: row.total for row in crew.history()}
        assert told.items() <= kept.items()
        assert len(kept) <= len(told) + 6 * rounds
        assert again.check() == []
    return len(told)


def _until_killed(base: str, i: int, told: dict[str, float]) -> None:
    """Ask and tell while there is a server; remember what it acknowledged."""
    with httpx.Client(verify=False, timeout=30) as http:
        while True:
            try:
                asked = http.post(f"{base}/campaigns/crew/ask", json={"worker": f"w{i}"})
                for pull in asked.json()["pulls"]:
                    sent = {"id": pull["id"], "total": 1}
                    answer = http.post(f"{base}/campaigns/crew/tell", json=sent)
                    if answer.status_code == 200:
                        told[pull["id"]] = 1.0
            except httpx.TransportError:
                return
