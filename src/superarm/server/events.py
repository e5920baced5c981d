"""Live news of campaigns as server-sent events: one poller a campaign, however many watch it.

What others do with the same store is seen too, by a version number that costs one short query.
Who is slow to read misses what came in between, and never makes anybody wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any

from superarm.errors import CampaignError, SuperarmError
from superarm.server.failures import Refused
from superarm.server.metrics import Metrics

MOST_WATCHING = 2_000

Version = tuple[int, ...]
Look = Callable[[str], Awaitable[Version]]
Tell = Callable[[str], Awaitable[dict[str, Any]]]


class Watch:
    """One campaign that somebody watches: its last message, and who waits for the next."""

    def __init__(self) -> None:
        self.message, self.kept = b"", 0
        self.last, self.number = b"", 0
        self.watching, self.over = 0, False
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def publish(self, message: bytes, *, keep: bool = True) -> None:
        """Hand a message to everybody; the last one that is kept is for newcomers too."""
        if keep:
            self.message = message
            self.kept += 1
        self.last = message
        self.number += 1
        waiting, self._next = self._next, asyncio.get_running_loop().create_future()
        waiting.set_result(None)

    async def next(self) -> None:
        """Wait for a message."""
        await asyncio.shield(self._next)


class Events:
    """All campaigns that are watched.

    Parameters
    ----------
    version
        Returns a number that changes with the campaign.
    news
        Returns what is to be said of it now.
    poll, beat
        See `Settings`.
    """

    def __init__(
        self, version: Look, news: Tell, poll: float, beat: float, metrics: Metrics
    ) -> None:
        self._version, self._news, self._poll, self._beat = version, news, poll, beat
        self._metrics = metrics
        self._watches: dict[str, tuple[Watch, asyncio.Task[None]]] = {}
        self._total = 0

    @property
    def full(self) -> bool:
        """Whether no more can watch."""
        return self._total >= MOST_WATCHING

    async def stream(self, name: str) -> AsyncIterator[bytes]:
        """Yield the messages about a campaign: how it stands at once, then what changes."""
        watch = self._joined(name)
        watch.watching += 1
        self._total += 1
        self._metrics.watching.set(self._total)
        try:
            seen, kept = watch.number, watch.kept
            yield b"retry: 3000\n\n" + watch.message
            while not watch.over or seen < watch.number:
                if seen == watch.number:
                    await watch.next()
                news = watch.message if kept < watch.kept else watch.last
                seen, kept = watch.number, watch.kept
                yield news
        finally:
            watch.watching -= 1
            self._total -= 1
            self._metrics.watching.set(self._total)
            if not watch.watching:
                self._leave(name, watch)

    def close(self) -> None:
        """End all streams, so that a server that stops need not wait for them."""
        for watch, task in list(self._watches.values()):
            task.cancel()
            watch.over = True
            watch.publish(b": the server stops\n\n", keep=False)
        self._watches.clear()

    def _joined(self, name: str) -> Watch:
        if name not in self._watches:
            watch = Watch()
            self._watches[name] = watch, asyncio.create_task(self._follow(name, watch))
        return self._watches[name][0]

    def _leave(self, name: str, watch: Watch) -> None:
        found = self._watches.get(name)
        if found is not None and found[0] is watch:
            found[1].cancel()
            del self._watches[name]

    async def _follow(self, name: str, watch: Watch) -> None:
        known: Version | None = None
        verdict: Any = None
        said = monotonic()
        while True:
            try:
                version = await self._version(name)
                if version != known:
                    news = await self._news(name)
                    changed = known is not None and news.get("look") != verdict
                    verdict, known, said = news.get("look"), version, monotonic()
                    watch.publish(message("status", {**news, "new_look": changed}))
            except (Refused, CampaignError) as error:
                watch.over = True
                watch.publish(message("gone", {"detail": str(error)}))
                self._watches.pop(name, None)
                return
            except SuperarmError as error:  # the store is away: say so, and try again
                known, said = None, monotonic()
                watch.publish(message("trouble", {"detail": str(error)}), keep=False)
            if monotonic() - said > self._beat:
                said = monotonic()
                watch.publish(b": all is quiet\n\n", keep=False)
            await asyncio.sleep(self._poll)


def message(kind: str, data: dict[str, Any]) -> bytes:
    """Return one event."""
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
