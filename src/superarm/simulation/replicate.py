"""Replications: many seeded runs of one setting, with the same numbers on any number of workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from superarm._checks import whole
from superarm._jit import announce_compilation
from superarm.algorithms import Algorithm
from superarm.errors import SettingError
from superarm.problem import Problem
from superarm.seeds import Rng, seed_from
from superarm.simulation.engine import MOST_PULLS, Run, simulate
from superarm.simulation.environments import Environment

MOST_WORKERS = 1_000
"""More processes than this are taken for a slip."""

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Replications:
    """The runs of one setting."""

    problem: Problem
    algorithm: Algorithm
    runs: tuple[Run, ...]

    @property
    def pulls_mean(self) -> float:
        """Mean number of pulls."""
        return float(np.mean([run.pulls for run in self.runs]))

    @property
    def wrong(self) -> int:
        """Number of runs whose answer is not within epsilon of the best."""
        return sum(run.wrong(self.problem.epsilon) for run in self.runs)


def replicate(
    problem: Problem,
    algorithm: Algorithm,
    environment: Environment,
    replications: int,
    *,
    rng: Rng = None,
    workers: int = 1,
    max_pulls: int = MOST_PULLS,
    progress: Callable[[], Any] | None = None,
) -> Replications:
    """Run `replications` independent simulations, in `workers` processes.

    `progress` is called after each run. Run i gets the i-th seed of one sequence, whoever runs it.
    """
    whole("replications", replications, SettingError, least=1, most=10_000_000)
    whole("workers", workers, SettingError, least=1, most=MOST_WORKERS)
    seeds = np.random.SeedSequence(seed_from(rng)).generate_state(replications, np.uint64)
    one = partial(_one, problem, algorithm, environment, max_pulls)
    runs = []
    with _mapper(min(workers, replications)) as mapper:
        for run in mapper(one, [int(seed) for seed in seeds]):
            runs.append(run)
            if progress is not None:
                progress()
    return Replications(problem, algorithm, tuple(runs))


def _one(
    problem: Problem, algorithm: Algorithm, environment: Environment, max_pulls: int, seed: int
) -> Run:
    run = simulate(problem, algorithm, environment, rng=seed, max_pulls=max_pulls)
    return Run(run.verdict, run.pulls, run.regret, run.seconds, run.seed, None)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Give processes that start meanwhile one BLAS thread each.

    On the small matrices here more threads only wait for each other, the more so when every core
    has a process of its own already.
    """
    before = {name: os.environ.get(name) for name in BLAS_THREADS}
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _mapper(workers: int) -> Iterator[Callable[..., Iterator[Run]]]:
    if workers == 1:
        yield map
        return
    with single_threaded():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin)
        try:
            yield pool.map
        except BrokenProcessPool:
            raise ChildProcessError(
                "a worker process was ended from outside (too little memory?); try fewer workers"
            ) from None
        except BaseException:  # a mistake, or ctrl-c: nobody waits for the runs under way
            processes = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise
        finally:
            pool.shutdown()


def _begin() -> None:
    """Start a worker: ctrl-c, which reaches all processes at once, ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    announce_compilation()
