"""Whether a cell can be run at all: found out before any work, and said with the cell's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from superarm import errors
from superarm.errors import SettingError, SuperarmError
from superarm.phase import Phase
from superarm.tally import Tally

if TYPE_CHECKING:
    from superarm.study.cells import Cell, Study

_FAR = 100_000  # pulls: a first look that is further off is not tried


def check_cell(study: Study, number: int) -> None:
    """Make the design of a cell's first run, draw its first pulls, and take a look at them.

    That is all which a run could stumble over. The kernels are compiled on the way, so that workers
    find them ready.
    """
    with naming(study.names[number - 1]):
        _try(study.cells[number - 1], study.seed(number, 1), study.max_pulls)


def _try(cell: Cell, seed: int, max_pulls: int) -> None:
    problem, environment = cell.instance.problem, cell.instance.environment
    environment.check(problem)
    phase = cell.algorithm.first(problem, seed)
    if not isinstance(phase, Phase):
        return
    needed = phase.plan.spanning
    most = max_pulls if environment.length is None else min(max_pulls, environment.length)
    if most < needed:
        raise SettingError(
            f"the first look needs {needed:,} pulls, and no more than {most:,} may be taken"
        )
    first = phase.looks.time(1) or needed
    tally, rng = Tally(phase.plan.size), np.random.default_rng(seed)
    environment.add(tally, phase.plan, 0, needed, rng)
    if first <= min(most, _FAR):
        environment.add(tally, phase.plan, needed, first, rng)
        cell.algorithm.look(problem, phase, tally, 1)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put a place before the message of an error of ours; note it on any other error."""
    try:
        yield
    except SuperarmError as error:
        kind = type(error)
        if getattr(errors, kind.__name__, None) is not kind:  # a plug-in's own
            kind = SettingError
        raise kind(f"{place}: {error}") from error
    except Exception as error:
        error.add_note(f"in {place}")
        raise
