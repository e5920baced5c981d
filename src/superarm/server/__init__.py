"""The server: campaigns over HTTP, for programs (REST), browsers (pages) and monitoring.

::

    guard.py     what every request passes: Host, Origin, size, rate, who it is
    access.py    tokens, roles, sessions of browsers
    routes.py    the table of all routes, each with the role that it needs
    desk.py      one thread that writes, so that tells share transactions; others that read
    events.py    live news of a campaign, one poller for all who watch it
    wire.py      what goes over the wire, there and back

Nothing here needs more than the standard library to be imported; `create_app` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superarm.errors import SettingError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from superarm.campaign import Store
    from superarm.server.settings import Settings

__all__ = ["create_app"]


def create_app(store: Store | str | None = None, settings: Settings | None = None) -> FastAPI:
    """Return the application that serves the campaigns of a store.

    Parameters
    ----------
    store
        An open store, or where it is (see `Store.open`).
    settings
        Whether tokens are needed, which names of hosts are right, limits; by default those of a
        server that only this machine can reach.
    """
    check_extra()
    from superarm.server.app import build
    from superarm.server.settings import Settings

    return build(store, settings or Settings())


def check_extra() -> None:
    """Raise with the remedy where the libraries of the extra are missing."""
    from importlib.util import find_spec

    needed: dict[str, Any] = {
        name: find_spec(name)
        for name in ("sqlalchemy", "fastapi", "fastapi_offline", "jinja2", "multipart", "uvicorn")
    }
    missing = [name for name, found in needed.items() if found is None]
    if missing:
        raise SettingError(f'the server needs {", ".join(missing)}: pip install "superarm[server]"')
