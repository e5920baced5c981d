"""How often a client may do something: a bucket that fills at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST_CLIENTS = 10_000


class Limit:
    """Lets each client do something `rate` times a second, `burst` times at once."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._full: dict[str, float] = {}  # by client: when its bucket is full again

    def wait(self, client: str) -> float:
        """Return after how many seconds the client may go on; 0: now."""
        full = self._full.get(client)
        if full is None:
            return 0.0
        lacking = (full - self._clock()) * self._rate  # of a full bucket
        return max(0.0, (lacking + 1 - self._burst) / self._rate)

    def count(self, client: str) -> None:
        """Take note that the client has done it once more."""
        now = self._clock()
        if len(self._full) >= _MOST_CLIENTS:
            self._full = {name: full for name, full in self._full.items() if full > now}
        self._full[client] = max(now, self._full.get(client, now)) + 1 / self._rate

    def forgive(self, client: str) -> None:
        """Take back one count."""
        if client in self._full:
            self._full[client] -= 1 / self._rate
