"""How a server is set up, and which of it is safe."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from superarm._checks import bounded_real, whole
from superarm.errors import SettingError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a server is set up.

    Parameters
    ----------
    tokens
        Whether every request needs a token. Without, only this machine may reach the server.
    hosts
        Names under which it is reached, beside those of this machine (needs `tokens`).
    body
        Most bytes of a request.
    rate
        Most requests a second of one client on the average, when tokens are needed.
    failures
        Most wrong tokens a minute of one client.
    session
        Seconds that a browser stays logged in.
    gather
        Seconds to wait for more results to write in one transaction, while others are coming in.
    poll
        Seconds between two looks for news of a campaign that somebody watches.
    beat
        Seconds of silence after which those who watch are sent a sign of life.
    """

    tokens: bool = False
    hosts: tuple[str, ...] = ()
    body: int = 16 * 1024 * 1024
    rate: float = 500.0
    failures: int = 10
    session: float = 30 * 86_400.0
    gather: float = 0.002
    poll: float = 1.0
    beat: float = 15.0

    def __post_init__(self) -> None:
        whole("the greatest size of a request (bytes)", self.body, SettingError, 1024)
        whole("the number of wrong tokens a minute", self.failures, SettingError, 1)
        for what in ("rate", "session", "poll", "beat"):
            if bounded_real(what, getattr(self, what), SettingError) <= 0:
                raise SettingError(f"{what} must be > 0, not {getattr(self, what)!r}")
        if not 0 <= bounded_real("gather", self.gather, SettingError) <= 1:
            raise SettingError(f"gather must be from 0 to 1 s, not {self.gather!r}")
        for host in self.hosts:
            if not host or any(sign in host for sign in "/@ :"):
                raise SettingError(f"{host!r} is no name of a host, such as measure.example.org")
        if self.hosts and not self.tokens:
            raise SettingError(
                f"who reaches this server as {self.hosts[0]} may be anybody: that needs tokens "
                "(--tokens; make one with superarm token new)"
            )

    def right_host(self, host: str) -> bool:
        """Whether the Host of a request is one of ours.

        A page of somebody else's can make its own name point at this machine (DNS rebinding); it
        cannot do so with an address, so those are as good as our names.
        """
        name = without_port(host).lower().rstrip(".")
        if name in LOOPBACK or name in (known.lower() for known in self.hosts):
            return True
        if not self.tokens:
            return False
        if name in _own_names():
            return True
        return is_address(name)


def without_port(host: str) -> str:
    """Return a Host without its port."""
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback


def _own_names() -> tuple[str, ...]:
    name = socket.gethostname().lower()
    return (name, f"{name}.local")
