"""Running the server: where it listens, what is safe there, and how it stops."""

from __future__ import annotations

import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from superarm.campaign import Store
from superarm.errors import SettingError
from superarm.server.settings import Settings, is_loopback


def check_place(host: str, uds: str | None, tokens: bool) -> None:
    """Refuse to listen where others can reach a server that anybody may use."""
    if uds is None and not tokens and not is_loopback(host):
        raise SettingError(
            f"others can reach {host}, and without tokens anybody may do anything: add --tokens "
            "(and make one with superarm token new), or listen on 127.0.0.1"
        )


def serve(
    store: Store,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8420,
    uds: str | None = None,
    root_path: str = "",
    proxy: str | None = None,
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    uds
        A Unix socket in the place of host and port; only its owner's group may use it.
    root_path
        The path under which a proxy shows the server.
    proxy
        Address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed.
    """
    import uvicorn

    from superarm.server import create_app

    check_place(host, uds, settings.tokens)
    app = create_app(store, settings)
    sys.setswitchinterval(0.001)  # the event loop is not to wait long for the writer's thread
    sockets = None if uds is None else [_unix_socket(Path(uds))]
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        root_path=root_path.rstrip("/"),
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        access_log=False,  # paths hold names of campaigns; /metrics counts requests
        log_level="warning",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        limit_concurrency=4_000,
        ws="none",
        lifespan="on",
    )
    try:
        _server(config, app, f"unix:{uds}" if uds else "").run(sockets)
    except KeyboardInterrupt:
        pass  # stopped as it should be: all was answered
    finally:
        if uds is not None:
            with suppress(OSError):
                os.unlink(uds)


def _unix_socket(path: Path) -> socket.socket:
    """Listen at a path; only its owner and their group may connect."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise SettingError(f"{path} is there already, and is no socket: choose another path")
        path.unlink()  # of a server that is gone
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        found.bind(str(path))
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror or error}") from None
    finally:
        os.umask(before)
    found.listen(2048)
    return found


def _server(config: Any, app: Any, where: str) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Says where it listens; ends live streams first when it stops."""

        async def startup(self, sockets: Any = None) -> None:
            await uvicorn.Server.startup(self, sockets)
            if self.started:
                place = where or self._address()
                print(f"superarm: listening on {place}", file=sys.stderr, flush=True)

        def _address(self) -> str:
            name = self.servers[0].sockets[0].getsockname()
            host = f"[{name[0]}]" if ":" in name[0] else name[0]
            return f"http://{host}:{name[1]}{self.config.root_path}/"

        async def shutdown(self, sockets: Any = None) -> None:
            app.state.events.close()
            await uvicorn.Server.shutdown(self, sockets)

    return Server(config)
