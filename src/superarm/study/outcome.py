"""What a worker gets to do, and what it hands back for each run."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from superarm.simulation.engine import simulate
from superarm.study.check import naming

if TYPE_CHECKING:
    from superarm.study.cells import Cell

Versions = dict[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished run, as plain data; cells and replications are counted from 1."""

    cell: int
    replication: int
    seed: int
    pulls: int
    answer: tuple[str, ...]
    regret: float | None
    certified: bool
    epsilon_reached: float | None
    confidence: float | None
    reason: str
    look: int
    seconds: float
    design: str
    support: int | None
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return what `Outcome.from_dict` reads."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Outcome:
        """Return the outcome that was written; raise KeyError or TypeError otherwise."""
        return cls(**{**given, "answer": tuple(given["answer"])})


@dataclass(frozen=True)
class Batch:
    """Some runs of one cell: its number and name, and the replications with their seeds."""

    number: int
    name: str
    cell: Cell
    runs: tuple[tuple[int, int], ...]
    max_pulls: int


def run_batch(batch: Batch) -> list[Outcome]:
    """Run the runs of a batch, one after the other."""
    return [_run(batch, replication, seed) for replication, seed in batch.runs]


def _run(batch: Batch, replication: int, seed: int) -> Outcome:
    instance = batch.cell.instance
    with naming(f"{batch.name}, replication {replication} (seed {seed})"):
        run = simulate(
            instance.problem,
            batch.cell.algorithm,
            instance.environment,
            rng=seed,
            max_pulls=batch.max_pulls,
        )
    verdict = run.verdict
    return Outcome(
        cell=batch.number,
        replication=replication,
        seed=seed,
        pulls=run.pulls,
        answer=verdict.answer,
        regret=float(run.regret) if math.isfinite(run.regret) else None,
        certified=verdict.certified,
        epsilon_reached=None if verdict.certificate is None else verdict.certificate.epsilon,
        confidence=verdict.confidence,
        reason=verdict.reason,
        look=verdict.look,
        seconds=round(run.seconds, 6),
        design=str(verdict.design.get("kind", "")),
        support=verdict.design.get("support"),
        digest=str(verdict.design.get("digest", "")),
    )


@cache
def versions() -> Versions:
    """Return the versions of all that decides the numbers."""
    packages = ("superarm", "numpy", "numba", "scipy")
    return {**{name: version(name) for name in packages}, "python": platform.python_version()}
