"""What the dashboard's tests share: a server on this machine, a browser, a watched page."""

from __future__ import annotations

import os
import runpy
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import uvicorn

import superarm as sa
from superarm.campaign import Campaign, Store
from superarm.server import create_app

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60_000
"""Milliseconds that the browser may take for a step: the machine may be busy with other tests."""

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESK = {"viewport": {"width": 1200, "height": 900}}
NAMES = ["Ada", "Ben", "Cleo", "Dev", "Eva", "Finn", "Gita", "Hugo", "Iris", "Jon", "Kira", "Leo"]
NAMES += ["Mara", "Nils", "Ona", "Paul", "Quin", "Rosa", "Sven", "Tara"]


class Site:
    """A server for a store of its own."""

    def __init__(self, folder, settings=None):
        self.store = Store.open(folder / "campaigns.db")
        app = create_app(self.store, settings)
        config = uvicorn.Config(
            app, host="127.0.0.1", port=0, log_level="error", ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        end = time.monotonic() + 60
        while not self._server.started:
            assert self._thread.is_alive()
            assert time.monotonic() < end
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def close(self):
        self._server.should_exit = True
        self._thread.join(30)
        self.store.close()

    def campaign(self, name):
        """Open a campaign of this site's store."""
        return Campaign.open(name, store=self.store)

    def crew(self, name="crew", *, told=0, n=8, k=3, sigma=0.4, epsilon=0.6, spread=0.5, noise=0.1):
        """Make a campaign on people, and tell the first totals of its plan.

        With what stands here it is certified at the second look, after 32 totals.
        """
        arms = NAMES[:n] if n <= len(NAMES) else [f"arm {i:04d}" for i in range(n)]
        problem = sa.Problem(arms, k, sa.gaussian(sigma), epsilon=epsilon)
        made = Campaign.create(name, problem, store=self.store, rng=1)
        means = means_of(n, spread)
        rng = np.random.default_rng(2)
        while told:
            pulls = made.ask(min(told, 10_000), worker="Mara")
            if not pulls:
                break
            rows = [[problem.index[member] for member in pull.members] for pull in pulls]
            totals = means[rows].sum(axis=1) + noise * rng.standard_normal(len(pulls))
            ids = [pull.id for pull in pulls]
            made.tell_many(zip(ids, totals.round(2).tolist(), strict=True), worker="Mara")
            told -= len(pulls)
        return made


def means_of(n, spread=0.5):
    """Means that do not follow the order of the names."""
    return spread * (np.arange(n) * 5 % n).astype(float)


def total_of(problem, members):
    """Return a total to type for a group, near its mean."""
    means = means_of(problem.n)
    rows = [problem.index[member] for member in members]
    return round(float(means[rows].sum()) + 0.1 * ((sum(rows) % 3) - 1), 2)


@contextmanager
def chromium():
    """Yield a browser; without one, skip, or fail where SUPERARM_BROWSER=required."""
    path = runpy.run_path(str(ROOT / "scripts" / "browser.py"))["find"]()
    if path is None:
        missing = "no browser: run scripts/browser.py, or name one by CHROMIUM"
        if os.environ.get("SUPERARM_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]  # in a container, as root
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


class Watched:
    """A page of which all requests and complaints are kept."""

    def __init__(self, browser, site, expected=(), **options):
        self.context = browser.new_context(base_url=site.address, **options)
        self.site, self.expected = site, expected
        self.elsewhere, self.complaints = [], []
        self.context.on("request", self._request)
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self.context.set_default_timeout(PATIENCE)
        self.context.set_default_navigation_timeout(PATIENCE)
        self.page = self.context.new_page()

    def _request(self, request):
        parts = urlsplit(request.url)
        if parts.scheme in ("data", "blob"):
            return
        if parts.netloc != f"127.0.0.1:{self.site.port}":
            self.elsewhere.append(request.url)

    def _console(self, message):
        text = message.text
        if message.type in ("error", "warning") and not any(word in text for word in self.expected):
            self.complaints.append(text)

    def close(self):
        self.context.close()
        assert not self.elsewhere
        assert not self.complaints


def accessible(page):
    """Assert that axe finds nothing against WCAG 2.2 at levels A and AA, nor against its habits."""
    from axe_playwright_python.sync_playwright import Axe

    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    page.evaluate(
        "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    # What has just been drawn anew fades in; its colours are those at rest.
    page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished))")
    found = Axe().run(page, options={"runOnly": tags}).response
    assert len(found["passes"]) > 10  # it has looked
    wrong = [
        (one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]
    ]
    assert not wrong
