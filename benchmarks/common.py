"""What all benchmarks share: timing in turns, and rows of the table."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

AS_GIVEN = dict(os.environ)
"""The environment before `one_thread`: what a user's own processes have."""

now = time.process_time
"""Calls with one thread are timed by the processor: other work on the machine disturbs it less."""

LOSS = 0.2
"""A ratio that has lost more than this share is pointed out."""

HEADER = ("what", "figure", "ratio", "last", "target", "met")

Ratios = tuple[float, ...]


@dataclass(frozen=True)
class Options:
    """What a part is told: whether figures matter, and the seconds another solver may take."""

    quick: bool = False
    limit: float = 10.0


@dataclass(frozen=True)
class Row:
    """One line of a table; `met` is None where there is no target.

    `ratios`, the greater the better, have both their sides measured in this run, so that they can
    be compared with those of another; `note` says of what or where they are.
    """

    what: str
    figure: str
    target: str = ""
    ratios: Ratios = ()
    note: str = ""
    met: bool | None = None

    def cells(self, last: Ratios = ()) -> tuple[str, ...]:
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        now, before = (", ".join(map(times_faster, ratios)) for ratios in (self.ratios, last))
        if self.lost(last):
            before += " **lost**"
        return (self.what, self.figure, f"{now} {self.note}".strip(), before, self.target, met)

    def lost(self, last: Ratios) -> bool:
        """Whether a ratio is more than `LOSS` below what it was."""
        pairs = zip(self.ratios, last, strict=False)
        return any(now < (1 - LOSS) * before for now, before in pairs)


@dataclass(frozen=True)
class Times:
    """Seconds of one call, several times over."""

    all: tuple[float, ...]

    @property
    def least(self) -> float:
        return min(self.all)

    def per(self, units: float) -> Times:
        return Times(tuple(seconds / units for seconds in self.all))

    def __str__(self) -> str:
        return f"{seconds(self.least)} (median {seconds(median(self.all))})"


def one_thread() -> None:
    """Keep the libraries behind NumPy to one thread; to be called before NumPy is loaded.

    At these sizes more gain nothing, and where cores are busy they wait for each other, up to a
    thousand times longer than they work: neither side's figures would mean anything.
    """
    for library in ("OPENBLAS", "MKL", "OMP", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    os.environ["VECLIB_MAXIMUM_THREADS"] = "1"


def in_turns(
    calls: Mapping[str, Callable[[], object]], repeats: int, least: float = 0.02
) -> dict[str, Times]:
    """Time each call `repeats` times, one after the other, so that a disturbance hits all alike.

    Each is called once before (which compiles), and as often at a time as takes `least` seconds.
    """
    often = {}
    for name, call in calls.items():
        call()
        often[name] = max(1, math.ceil(least / max(clock(call), 1e-7)))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            taken[name].append(mean_seconds(call, often[name], 10 * least))
    return {name: Times(tuple(values)) for name, values in taken.items()}


def mean_seconds(call: Callable[[], object], often: int, most: float) -> float:
    """Seconds of one call, the mean of so many, or of fewer where they take more than `most`."""
    batch, done = max(1, often // 10), 0
    started = now()
    while True:
        for _ in range(batch):
            call()
        done += batch
        taken = now() - started
        if done >= often or taken > most:
            return taken / done


def clock(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = now()
    call()
    return now() - started


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of log time against log size."""
    return linear_regression([*map(math.log, sizes)], [*map(math.log, times)]).slope


def seconds(value: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def times_faster(ratio: float) -> str:
    """How many times faster."""
    return (
        f"{ratio:,.3g} x" if ratio < 1e3 else f"{ratio:,.0f} x" if ratio < 1e5 else f"{ratio:.1e} x"
    )


def tell(text: str) -> None:
    """Progress, on stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
