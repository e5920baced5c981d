"""Finding the look at which something first holds, without going through those before it."""

from __future__ import annotations

from collections.abc import Callable

from superarm.plan import Plan
from superarm.schedule import LAST, Every, Looks, Schedule


class LookTimes:
    """t_j by number, up to `most` pulls; in O(1) where every pull is a look."""

    def __init__(self, schedule: Schedule, plan: Plan, most: int = LAST) -> None:
        self._most = most
        self._first = plan.spanning if isinstance(schedule, Every) else None
        self._looks = Looks(schedule, plan)

    def time(self, look: int) -> int | None:
        """Return t_look; None when there are fewer looks."""
        t = self._looks.time(look) if self._first is None else self._first + look - 1
        return None if t is None or t > self._most else t


def first_look(times: LookTimes, satisfied: Callable[[int, int], bool]) -> tuple[int, int] | None:
    """Return number and time of a look that is satisfied, while the one before it is not.

    By doubling and bisection: where looks stay satisfied from one on, that is the first. None when
    the schedule ends before.
    """

    def over(look: int) -> bool:
        t = times.time(look)
        return t is None or satisfied(look, t)

    before, at = 0, 1
    while not over(at):
        before, at = at, 2 * at
    while at - before > 1:
        middle = (before + at) // 2
        before, at = (before, middle) if over(middle) else (middle, at)
    t = times.time(at)
    return None if t is None else (at, t)
