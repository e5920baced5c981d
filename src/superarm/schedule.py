"""Schedules: after how many pulls to look, fixed before the first pull (the rule of looks)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from superarm._checks import real, shown, whole
from superarm.errors import SettingError
from superarm.plan import Plan

LAST = 10**18
"""No schedule goes on beyond so many pulls."""

_STEEPEST = 100  # looks further apart than this factor serve nobody


class Schedule(ABC):
    """A rule that turns a plan into look times t_1 < t_2 < ..."""

    @property
    def end(self) -> int | None:
        """The last look time, when there is one."""
        return None

    @property
    def number(self) -> int | None:
        """How many looks there are, when that is fixed."""
        return None

    @abstractmethod
    def times(self, plan: Plan) -> Iterator[int]:
        """Yield t_1, t_2, ... (finitely many or for ever)."""


@dataclass(frozen=True)
class Every(Schedule):
    """Look after every pull, from the first at which the pulled super-arms span (the paper)."""

    def times(self, plan: Plan) -> Iterator[int]:
        t = plan.spanning
        while True:
            yield t
            t += 1

    def __str__(self) -> str:
        return "every"


@dataclass(frozen=True)
class Geometric(Schedule):
    """Look each time that the pulls have grown by a factor.

    Once a step is longer than a cycle of the plan, looks fall on whole cycles: then every super-arm
    has been measured as often as its proportion says, and the information matrix is a multiple of
    one that is known.
    """

    ratio: float

    def __post_init__(self) -> None:
        ratio = real("the ratio of a geometric schedule", self.ratio, SettingError)
        object.__setattr__(self, "ratio", ratio)
        if not (math.isfinite(ratio) and ratio > 1):
            raise SettingError(f"a geometric schedule needs a ratio > 1, not {ratio!r}")
        if ratio > _STEEPEST:
            raise SettingError(f"a geometric schedule needs a ratio <= {_STEEPEST}, not {ratio!r}")

    def times(self, plan: Plan) -> Iterator[int]:
        t = plan.spanning
        while True:
            yield t
            if t * self.ratio > LAST:
                return
            following = max(t + 1, math.ceil(t * self.ratio))
            if plan.cycle is not None and following - t >= plan.cycle:
                following = -(-following // plan.cycle) * plan.cycle
            t = following

    def __str__(self) -> str:
        return f"geometric:{self.ratio!r}"


@dataclass(frozen=True)
class Cycles(Schedule):
    """Look after whole cycles of the plan, whenever the pulls have grown by a factor at least.

    All looks then have multiples of one information matrix, which some bounds need.
    """

    ratio: float = 1.005
    first: int = 1

    def __post_init__(self) -> None:
        Geometric(self.ratio)  # the same numbers are possible
        whole("the first look (pulls)", self.first, SettingError, 1, LAST)

    def times(self, plan: Plan) -> Iterator[int]:
        if plan.cycle is None:
            raise SettingError(
                "looks after whole cycles need a plan that has cycles (equal proportions); "
                "choose another schedule, such as geometric:1.02"
            )
        cycles = max(1, self.first // plan.cycle)
        while cycles * plan.cycle <= LAST:
            yield cycles * plan.cycle
            cycles = max(cycles + 1, math.ceil(cycles * self.ratio))

    def __str__(self) -> str:
        return f"cycles:{self.ratio!r}"


@dataclass(frozen=True)
class Planned(Schedule):
    """Look at these times and no others."""

    at: tuple[int, ...]

    def __post_init__(self) -> None:
        given: Any = self.at
        try:
            given = None if isinstance(given, str) else tuple(given)
        except TypeError:
            given = None
        if given is None:
            raise SettingError(f"planned looks must be numbers of pulls, not {shown(self.at)}")
        times = tuple(whole("a planned look", t, SettingError, most=LAST) for t in given)
        object.__setattr__(self, "at", times)
        ascending = all(a < b for a, b in zip(self.at, self.at[1:], strict=False))
        if not self.at or self.at[0] < 1 or not ascending:
            raise SettingError(
                f"planned looks must be ascending numbers of pulls, not {shown(self.at)}"
            )

    @property
    def end(self) -> int | None:
        return self.at[-1]

    @property
    def number(self) -> int | None:
        return len(self.at)

    def times(self, plan: Plan) -> Iterator[int]:
        if self.at[0] < plan.spanning:
            raise SettingError(
                f"the first planned look, after {self.at[0]} pulls, is too early: the plan needs "
                f"{plan.spanning} pulls to tell the arms apart"
            )
        if plan.length is not None and self.at[-1] > plan.length:
            raise SettingError(
                f"the last planned look, after {self.at[-1]} pulls, is too late: the plan ends "
                f"after {plan.length}"
            )
        yield from self.at

    def __str__(self) -> str:
        return "planned:" + ",".join(map(str, self.at))


def parse_schedule(text: str) -> Schedule:
    """Read ``every | geometric:RATIO | cycles[:RATIO] | planned:T1,T2,...``."""
    name, colon, rest = str(text).strip().partition(":")
    try:
        if name == "every" and not colon:
            return Every()
        if name == "geometric":
            return Geometric(float(rest))
        if name == "cycles":
            return Cycles(float(rest)) if colon else Cycles()
        if name == "planned":
            return Planned(tuple(int(part) for part in rest.split(",")))
    except SettingError:
        raise
    except ValueError:
        pass
    raise SettingError(
        f"schedule {shown(text)} is not one of every, geometric:RATIO (as geometric:1.02), "
        "cycles, cycles:RATIO, planned:T1,T2,... (numbers of pulls)"
    )


class Looks:
    """The look times of one phase: t_j by number, j = 1, 2, ... (made as they are needed).

    Where the plan ends, the last look takes place there.
    """

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.schedule = schedule
        self._first = plan.spanning if isinstance(schedule, Every) else None
        self._length = plan.length
        self._source = schedule.times(plan)
        self._times: list[int] = []

    @property
    def end(self) -> int | None:
        """The last look time, when there is one."""
        return self._length if self.schedule.end is None else self.schedule.end

    def time(self, look: int) -> int | None:
        """Return t_look; None when there are fewer looks."""
        if self._first is not None:  # a list of every pull would grow without end
            time = self._first + look - 1
            return time if self._length is None or time <= self._length else None
        while len(self._times) < look:
            following = next(self._source, None)
            if self._length is not None and following is not None and following > self._length:
                following = self._length if self._times[-1:] != [self._length] else None
            if following is None:
                return None
            self._times.append(following)
        return self._times[look - 1]
