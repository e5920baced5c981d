"""Who works on the store: one thread that writes, and others that read.

Requests that change a campaign wait in one queue. The writer takes all that are there; totals told
of one campaign, and pulls asked of it, share a transaction each, and every request is answered for
itself. While it writes, the next ones gather: the busier it is, the more share a transaction.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import select

from superarm.campaign import Campaign, Store, schema
from superarm.errors import CampaignError, StoreError
from superarm.server.failures import Refused
from superarm.server.metrics import Metrics
from superarm.server.together import LATER, Asked, Asking, Telling, serve

T = TypeVar("T")

MOST_WAITING = 5_000
"""More requests than these do not wait: they are told to come again."""

MOST_TOGETHER = 256
"""Requests that share a transaction at most: each waits for all."""

_MOST_OPEN = 200  # campaigns that are kept open


@dataclass
class Job:
    """A request that waits, and the future that its answer goes to."""

    campaign: str
    work: Asking | Telling | Callable[[Campaign], Any] | None
    answer: asyncio.Future[Any]


class Desk:
    """All use of a store by a server; its methods are for the event loop."""

    def __init__(self, store: Store, gather: float, metrics: Metrics) -> None:
        self.store = store
        self._gather, self._metrics = gather, metrics
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._mine, self._looked = Campaigns(store), Campaigns(store)  # each of one thread
        self._local = threading.local()  # the readers'
        self._readers = ThreadPoolExecutor(2, "superarm-read")
        self._looker = ThreadPoolExecutor(1, "superarm-look")
        self._writer = threading.Thread(target=self._work, name="superarm-write", daemon=True)
        self._writer.start()

    def tell(self, campaign: str, telling: Telling) -> Awaitable[bool]:
        """Tell a total; returns whether it was new."""
        return self._wait(campaign, telling)

    def ask(self, campaign: str, asking: Asking) -> Awaitable[Asked]:
        """Ask for pulls; returns them and why there are no more."""
        return self._wait(campaign, asking)

    def write(self, campaign: str, work: Callable[[Campaign], T]) -> Awaitable[T]:
        """Do something that changes a campaign."""
        return self._wait(campaign, work)

    async def read(self, campaign: str, work: Callable[[Campaign], T]) -> T:
        """Do something that changes nothing."""

        def now() -> T:
            if not hasattr(self._local, "campaigns"):
                self._local.campaigns = Campaigns(self.store)
            found: T = self._local.campaigns.use(campaign, work)
            return found

        return await self.run(now)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something with the store as a whole."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, work, *arguments)

    def close(self) -> None:
        """Finish what waits, and stop."""
        self._queue.put(None)
        self._writer.join(30)
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._looker.shutdown(wait=True, cancel_futures=True)

    def _wait(self, campaign: str, work: Any) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        if self._queue.qsize() >= MOST_WAITING:
            answer.set_exception(StoreError("too many requests wait for the store: try again"))
        else:
            self._queue.put(Job(campaign, work, answer))
        return answer

    # ---- in the writer's thread ------------------------------------------------------------------

    def _work(self) -> None:
        crowded = False
        while True:
            jobs = self._next(crowded)
            stop = None in jobs
            crowded = len(jobs) > 1
            there = [job for job in jobs if job is not None]
            answers: list[tuple[Job, Any]] = []
            for campaign in dict.fromkeys(job.campaign for job in there):
                mine = [job for job in there if job.campaign == campaign]
                answers += self._serve(campaign, mine)
            self._answer(answers)
            if stop:
                return

    def _next(self, crowded: bool) -> list[Job | None]:
        """Wait for a job; return it with all others that are there, or will be in a moment."""
        jobs = [self._queue.get()]
        if crowded and self._gather:
            time.sleep(self._gather)
        while len(jobs) < MOST_TOGETHER:
            try:
                jobs.append(self._queue.get_nowait())
            except Empty:
                break
        return jobs

    def _serve(self, campaign: str, jobs: Sequence[Job]) -> list[tuple[Job, Any]]:
        """Serve the requests about one campaign: totals and askings first, in one transaction."""
        tells = [job for job in jobs if isinstance(job.work, Telling)]
        asks = [job for job in jobs if isinstance(job.work, Asking)]
        answers = self._together(campaign, tells, asks) if tells or asks else []
        for job in jobs:
            if callable(job.work):
                answers.append((job, self._tried(self._mine.use, campaign, job.work)))
        return answers

    def _together(self, campaign: str, tells: list[Job], asks: list[Job]) -> list[tuple[Job, Any]]:
        told: list[Any] = [job.work for job in tells]
        asked: list[Any] = [job.work for job in asks]
        self._metrics.batch.observe(len(told) + len(asked))
        found = self._tried(self._served, campaign, told, asked)
        if isinstance(found, StoreError) and self.store.postgresql:  # a deadlock, or a restart
            found = self._tried(self._served, campaign, told, asked)
        if isinstance(found, Exception):
            return [(job, found) for job in (*tells, *asks)]
        news, pulls, due = found
        later = [job for job, one in zip(asks, pulls, strict=True) if one is LATER]
        if due:
            self._looker.submit(self._look, campaign, later)
        else:
            for job in later:
                self._queue.put(job)
        answers = [*zip(tells, news, strict=True), *zip(asks, pulls, strict=True)]
        return [(job, one) for job, one in answers if one is not LATER]

    def _served(self, campaign: str, told: list[Any], asked: list[Any]) -> Any:
        return self._mine.use(campaign, lambda there: serve(there, told, asked), sure=True)

    def _look(self, campaign: str, later: list[Job]) -> None:
        """Take the looks that are due, in their own thread; then those go on who wait for them."""
        found = self._tried(self._looked.use, campaign, lambda there: there.verdict)
        if isinstance(found, Exception):
            self._answer([(job, found) for job in later])
            return
        for job in later:
            self._queue.put(job)

    def _tried(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except Exception as error:
            return error

    def _answer(self, answers: list[tuple[Job, Any]]) -> None:
        loops = {job.answer.get_loop() for job, _ in answers}
        for loop in loops:
            mine = [(job.answer, found) for job, found in answers if job.answer.get_loop() is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, mine)


def _resolve(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for answer, found in answers:
        if answer.done():  # its client has gone
            continue
        if isinstance(found, BaseException):
            answer.set_exception(found)
        else:
            answer.set_result(found)


class Campaigns:
    """Campaigns that one thread has opened before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, Campaign] = {}

    def use(self, name: str, work: Callable[[Campaign], T], *, sure: bool = False) -> T:
        """Do something with a campaign; it is opened anew if it was deleted and made again.

        With `sure`, `work` itself raises CampaignError where its campaign was deleted.
        """
        known = self._open.get(name)
        if known is not None and (sure or self._is_there(known)):
            try:
                return work(known)
            except CampaignError:
                pass  # perhaps since it was deleted: another try says
        self._open.pop(name, None)
        if len(self._open) >= _MOST_OPEN:
            self._open.clear()
        try:
            self._open[name] = found = Campaign.open(name, store=self._store)
        except CampaignError as error:
            raise Refused(404, str(error), "CampaignError") from None
        return work(found)

    def _is_there(self, known: Campaign) -> bool:
        """Whether a campaign is still the one of its name: others may have deleted it."""
        c = schema.campaign.c
        with self._store.read() as connection:
            found = connection.execute(select(c.id).where(c.name == known.name)).scalar()
        return found == known._id
