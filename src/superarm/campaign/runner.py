"""Measure a campaign by a function or a program, until it is certified.

Only the calling thread uses the store; what measures runs in threads of its own.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superarm._checks import real, whole
from superarm.campaign.program import GRACE
from superarm.errors import ConflictError, MeasurementError, SettingError, SuperarmError

if TYPE_CHECKING:
    from superarm.campaign import Campaign, Pull
    from superarm.verdict import Verdict

MOST_PARALLEL = 1000
MOST_HELD = 100_000
STEP = 0.5
"""Seconds after which it is seen whether to stop."""

LEAST_PAUSE, MOST_PAUSE = 0.05, 2.0
"""Seconds between questions whether there is something to measure again."""


@dataclass(frozen=True)
class Ran:
    """What a run did: the verdict at its end, and how many totals it told."""

    verdict: Verdict
    told: int
    dropped: int
    interrupted: bool


@dataclass(frozen=True)
class Progress:
    """Where a run is."""

    verdict: Verdict
    told: int
    running: int
    waiting: str


def own_name() -> str:
    """Return a name that no other process here or on another machine has."""
    return f"run-{socket.gethostname()}-{os.getpid()}"


def run(
    campaign: Campaign,
    measure: Callable[[Pull], float],
    *,
    parallel: int = 1,
    size: int | None = None,
    retries: int = 0,
    worker: str | None = None,
    site: str = "",
    lease: float = 600.0,
    max_pulls: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> Ran:
    """Ask, measure and tell until the campaign is done.

    Pulls that are out when it ends, for whatever reason, are given back.

    Parameters
    ----------
    measure
        Returns the total of a pull: a function, or a `Program`.
    parallel
        So many measurements at a time, each in a thread.
    size
        So many pulls are held at a time; by default `parallel`.
    retries
        How often a measurement that failed is tried again. A failure must have nothing to do with
        what the total would be.
    worker
        The name under which pulls are asked for. No two runs may share one; by default the name of
        this process.
    lease
        Seconds for which pulls are held; renewed while they are measured.
    max_pulls
        End after so many results of this run.
    progress, note
        Called with where it is, and with what somebody should know.
    stop
        End when this event is set; what is being measured is given back.

    Raises
    ------
    MeasurementError
        When a measurement has failed for good; what came back before is told.
    """
    runner = _Runner(
        campaign,
        measure,
        parallel=whole("parallel", parallel, SettingError, 1, MOST_PARALLEL),
        retries=whole("retries", retries, SettingError, 0, 1000),
        worker=own_name() if worker is None else worker,
        site=site,
        lease=real("lease", lease, SettingError),
        note=note or (lambda text: None),
        stop=stop or threading.Event(),
    )
    runner.hold = whole("size", parallel if size is None else size, SettingError, 1, MOST_HELD)
    if max_pulls is not None:
        runner.left = whole("max_pulls", max_pulls, SettingError, 1)
    if not runner.worker:
        raise SettingError("a run needs a worker's name of its own, not an empty one")
    return runner.run(progress or (lambda where: None))


class _Runner:
    def __init__(
        self,
        campaign: Campaign,
        measure: Callable[[Pull], float],
        *,
        parallel: int,
        retries: int,
        worker: str,
        site: str,
        lease: float,
        note: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        self.campaign, self.measure = campaign, measure
        self.parallel, self.retries = parallel, retries
        self.worker, self.site, self.lease = worker, site, lease
        self.note, self.stop = note, stop
        self.noise = campaign.problem.noise
        self.hold = parallel
        self.left: int | None = None
        self.told = self.dropped = 0
        self.out: dict[Future[float], Pull] = {}
        self.back: list[str] = []  # ids of pulls that were not measured
        self.failure: MeasurementError | None = None

    def run(self, progress: Callable[[Progress], None]) -> Ran:
        pool = ThreadPoolExecutor(self.parallel, "superarm-measure")
        try:
            self._loop(pool, progress)
            interrupted, failure = self.stop.is_set(), self.failure
        finally:
            self._close(pool)
        if failure is not None and not interrupted:
            raise failure
        return Ran(self.campaign.verdict, self.told, self.dropped, interrupted)

    def _loop(self, pool: ThreadPoolExecutor, progress: Callable[[Progress], None]) -> None:
        pause, renewed, said = LEAST_PAUSE, time.monotonic(), ""
        while not self.stop.is_set():
            verdict = self.campaign.verdict
            if verdict.done or self.left == 0 or (self.failure and not self.out):
                return
            waiting = "" if self.failure else self._ask(pool)
            progress(Progress(verdict, self.told, len(self.out), waiting))
            if not self.out:
                if waiting and waiting != said:
                    self.note(waiting)
                    said = waiting
                self.stop.wait(pause)
                pause = min(MOST_PAUSE, 1.5 * pause)
                continue
            pause, said = LEAST_PAUSE, ""
            self._take(wait(self.out, min(STEP, self.lease / 3), FIRST_COMPLETED).done)
            if self.out and time.monotonic() - renewed > self.lease / 3:
                self.campaign.extend([p.id for p in self.out.values()], self.lease, self.worker)
                renewed = time.monotonic()

    def _ask(self, pool: ThreadPoolExecutor) -> str:
        """Fill up what is held; return why that is nothing, if it is."""
        most = self.hold if self.left is None else min(self.hold, self.left)
        if len(self.out) >= min(self.parallel, most):
            return ""
        wanted = min(most - len(self.out), self._wanted())
        if wanted > 0:
            # Pulls that are out already come first in what is answered.
            size, held = len(self.out) + wanted, {pull.id for pull in self.out.values()}
            for pull in self.campaign.ask(size, worker=self.worker, lease=self.lease):
                if pull.id not in held and len(self.out) < most:
                    self.out[pool.submit(self._measured, pull)] = pull
        return "" if self.out else "waiting: the next look needs totals that others hold"

    def _wanted(self) -> int:
        """How many more pulls it makes sense to measure before the next look.

        Later positions could be measured for ever while one that somebody else holds is missing.
        """
        where = self.campaign._settled()
        if where.needed is None:
            return 0
        ahead = where.needed + self.hold - where.frontier
        if ahead > 0:
            return ahead
        free = [p for p in self.campaign.open_pulls() if p.lapsed or p.until is None]
        return len(free)

    def _measured(self, pull: Pull) -> float:
        """Measure, and again where it fails."""
        for tries in itertools.count(1):
            try:
                if self.stop.is_set():
                    raise MeasurementError("interrupted")
                total = self.measure(pull)
                self.noise.check_total(total, len(pull.members))
                return total
            except SuperarmError as error:
                if tries > self.retries or self.stop.is_set():
                    often = f" ({tries} times)" if tries > 1 else ""
                    raise MeasurementError(
                        f"pull {pull.id} of {_listed(pull.members)} was not measured{often}: "
                        f"{error}"
                    ) from None
        raise AssertionError

    def _take(self, done: set[Future[float]]) -> None:
        """Tell what came back, and remember what failed."""
        results = []
        for future in done:
            error = future.exception()
            if error is None:
                results.append((self.out[future].id, future.result()))
            elif isinstance(error, MeasurementError):
                self._failed(future, error)
            else:
                raise error
        self._tell(results)
        for future in done:
            self.out.pop(future, None)

    def _failed(self, failed: Future[float], error: MeasurementError) -> None:
        """Begin nothing new; what is being measured comes to its end."""
        self.failure = self.failure or error
        for future in [failed, *(other for other in self.out if other.cancel())]:
            self.back.append(self.out.pop(future).id)

    def _tell(self, results: list[tuple[str, float]]) -> None:
        if not results:
            return
        try:
            self.campaign.tell_many(results, worker=self.worker, site=self.site)
            told = len(results)
        except ConflictError:
            told = sum(self._told_alone(*result) for result in results)
        self.told += told
        if self.left is not None:
            self.left -= told

    def _told_alone(self, id: str, total: float) -> bool:
        try:
            self.campaign.tell(id, total, worker=self.worker, site=self.site)
        except ConflictError as error:
            self.dropped += 1
            self.note(f"a total is not used: {error}")
            return False
        return True

    def _close(self, pool: ThreadPoolExecutor) -> None:
        """Whatever happened: tell what came back, give back what did not."""
        self.stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        self._end()
        try:
            self._take({f for f in self.out if not f.cancelled() and f.exception() is None})
        finally:
            self.back.extend(pull.id for pull in self.out.values())
            if self.back:
                self.campaign.give_back(self.back)

    def _end(self) -> None:
        """Wait until nothing is measured any more; end programs rather than wait for them."""
        end, began = getattr(self.measure, "end", None), time.monotonic()
        while running := [future for future in self.out if not future.done()]:
            if end is not None:
                end(hard=time.monotonic() - began > GRACE)
            wait(running, STEP / 5)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
