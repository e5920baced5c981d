"""Who runs the batches: this process, processes on this machine, or the workers of a Dask cluster.

Each yields the outcomes of a batch as soon as it is done, in whatever order.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any

from superarm.errors import SettingError, SuperarmError
from superarm.simulation.replicate import single_threaded
from superarm.study.outcome import Batch, Outcome, Versions, run_batch, versions

Outcomes = Generator[list[Outcome]]

_PATIENCE = 10  # seconds for a Dask scheduler to answer, and for its first worker to be there


def needed(module: str, extra: str, what: str) -> Any:
    """Import what an extra of superarm brings, or say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise SettingError(f'{what} needs {module}: pip install "superarm[{extra}]"') from None


def in_process(batches: Iterable[Batch]) -> Outcomes:
    """Run everything here."""
    yield from map(run_batch, batches)


# ---- processes on this machine -------------------------------------------------------------------


def processes(batches: Iterable[Batch], workers: int) -> Outcomes:
    """Run batches in `workers` processes, by joblib and loky."""
    joblib = needed("joblib", "study", f"workers={workers}")
    parallel = joblib.Parallel(
        workers,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,  # they are batches already
        pre_dispatch="2*n_jobs",
        max_nbytes=None,  # arrays are sent, not mapped: kernels want to own them
        initializer=_live_with,
        initargs=(os.getpid(),),
    )
    with ExitStack() as stack:
        with single_threaded(), _deaf():
            found = parallel(joblib.delayed(run_batch)(batch) for batch in batches)
            stack.callback(_close, found)
        try:
            yield from found
        except RuntimeError as error:
            if type(error).__name__ not in ("TerminatedWorkerError", "BrokenProcessPool"):
                raise
            raise ChildProcessError(
                "a worker process came to a sudden end (killed, or out of memory?)"
            ) from None


def _close(found: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that not all results were taken is why we close
        found.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, not even before `_live_with`; we hear it later."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # it would lift the block when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _live_with(parent: int) -> None:
    """Let this worker live as long as its parent: leave Ctrl-C to it, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


# ---- a Dask cluster ------------------------------------------------------------------------------


def cluster(batches: Iterable[Batch], address: str) -> Outcomes:
    """Run batches on the workers of a Dask scheduler; the work of one that dies goes to others."""
    distributed = needed("distributed", "dask", "dask")
    dumps = import_module("cloudpickle").dumps
    with _connected(distributed, address) as client:
        flying = distributed.as_completed(loop=client.loop)
        source, room = iter(batches), _Room(client)
        while True:
            while flying.count() < room.now() and (batch := next(source, None)) is not None:
                # Bytes, so that no two threads of a worker share an object.
                flying.add(client.submit(_on_cluster, dumps(batch), pure=False))
            if flying.is_empty():
                return
            found, outcomes = _result(distributed, next(flying), address)
            _same(found)
            yield outcomes


def _on_cluster(batch: bytes) -> tuple[Versions, list[Outcome]]:
    return versions(), run_batch(import_module("cloudpickle").loads(batch))


def _connected(distributed: Any, address: str) -> Any:
    """Return a client of a scheduler that answers, whose workers have what we have."""
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SettingError(f"no Dask scheduler answers at {address!r}: {error}") from None
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        for found in client.run(versions, on_error="return").values():
            if isinstance(found, ImportError):
                raise SettingError(f"a Dask worker at {address} has no superarm: {found}")
            if isinstance(found, dict):  # else it has just died, or it will say so later
                _same(found)
    except TimeoutError:
        client.close()
        raise SettingError(f"the Dask scheduler at {address} has no workers") from None
    except BaseException:
        client.close()
        raise
    return client


class _Room:
    """How many batches may be under way: two for each thread of the workers there are now."""

    def __init__(self, client: Any) -> None:
        self.client, self.size, self.asked = client, 2, -math.inf

    def now(self) -> int:
        if time.monotonic() - self.asked > 2:
            self.size = max(2, 2 * sum(self.client.nthreads().values()))
            self.asked = time.monotonic()
        return self.size


def _result(distributed: Any, future: Any, address: str) -> tuple[Versions, list[Outcome]]:
    try:
        return future.result()
    except SuperarmError:
        raise
    except distributed.KilledWorker as error:
        raise ChildProcessError(f"one Dask worker after the other died: {error}") from None
    except Exception as error:
        if type(error).__name__ in ("CancelledError", "FutureCancelledError", "CommClosedError"):
            raise ConnectionError(f"the Dask scheduler at {address} was lost") from None
        raise


def _same(found: Versions) -> None:
    for name, mine in versions().items():
        if found.get(name) != mine:
            raise SettingError(
                f"a Dask worker has {name} {found.get(name)}, and here is {mine}: results could "
                "differ; give all the same environment"
            )
