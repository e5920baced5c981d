"""What is run: an instance, a cell of the grid, and a study of many cells with replications."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._checks import whole
from superarm.algorithms import Algorithm
from superarm.algorithms.base import check_algorithm
from superarm.errors import SettingError
from superarm.problem import Problem
from superarm.schedule import LAST
from superarm.seeds import Rng, seed_from
from superarm.simulation.engine import MOST_PULLS
from superarm.simulation.environments import Environment
from superarm.study.facts import COLUMNS, Label, cell_facts, descriptions
from superarm.study.identity import digest

if TYPE_CHECKING:
    from superarm.study.results import Results

MOST_CELLS = 100_000
MOST_RUNS = 10_000_000

Labels = Mapping[str, Label]
Progress = Callable[[int, int], Any]


@dataclass(frozen=True, eq=False)
class Instance:
    """A question by name, with its source of totals.

    Parameters
    ----------
    environment
        Where totals come from; see `superarm.simulate`.
    labels
        Further columns of the table, such as ``{"gap": 0.1}``: texts, numbers or bools by name.
    """

    name: str
    problem: Problem
    environment: Environment
    labels: Labels = field(default_factory=dict)

    def __post_init__(self) -> None:
        _text("an instance's name", self.name)
        if not isinstance(self.problem, Problem):
            raise SettingError(f"problem must be a superarm.Problem, not {self.problem!r}")
        if not isinstance(self.environment, Environment):
            raise SettingError(
                "environment must be one such as superarm.environment(means, noise), not "
                f"{self.environment!r}"
            )
        if len(self.environment.means) != self.problem.n:
            raise SettingError(
                f"instance {self.name!r}: the environment has {len(self.environment.means)} arms, "
                f"the problem {self.problem.n}"
            )
        for arm in self.problem.arms:
            _text("an arm's name", arm)
        object.__setattr__(self, "labels", _labels(self.labels))


@dataclass(frozen=True, eq=False)
class Cell:
    """One algorithm on one instance.

    Parameters
    ----------
    labels
        Further columns of the table, beside the instance's.
    preset
        The preset that the algorithm was made from, for the table.
    """

    instance: Instance
    algorithm: Algorithm
    labels: Labels = field(default_factory=dict)
    preset: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.instance, Instance):
            raise SettingError(f"instance must be an Instance, not {self.instance!r}")
        check_algorithm(self.algorithm)
        object.__setattr__(self, "labels", _labels(self.labels))
        for name in self.labels:
            if name in self.instance.labels:
                raise SettingError(f"label {name!r} is one of the instance's too")

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all that decides the numbers of its runs, the seed apart."""
        instance = self.instance
        return digest((instance.problem, instance.environment, self.algorithm))

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What the table says of it in each of its rows."""
        instance = self.instance
        return cell_facts(
            instance.name,
            self.algorithm,
            self.preset,
            instance.problem,
            {**instance.labels, **self.labels},
        )


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Study:
    """Many cells, each run `replications` times with seeds of its own.

    Run r of cell c has the seed that child r of child c of ``SeedSequence(rng)`` gives, whoever
    runs it and when. So more replications, or cells at the end, leave earlier runs as they were.

    Parameters
    ----------
    rng
        Seed, generator or None.
    max_pulls
        Ends a run that has not stopped by then.
    title
        First column of the table.
    """

    cells: tuple[Cell, ...]
    replications: int
    rng: int
    max_pulls: int
    title: str
    _passed: set[int]

    def __init__(
        self,
        cells: Iterable[Cell],
        replications: int,
        *,
        rng: Rng = 0,
        max_pulls: int = MOST_PULLS,
        title: str = "",
    ) -> None:
        fields = {
            "cells": _cells(cells),
            "replications": whole("replications", replications, SettingError, 1, MOST_RUNS),
            "rng": seed_from(rng),
            "max_pulls": whole("max_pulls", max_pulls, SettingError, 1, LAST),
            "title": _text("title", title, empty=True),
            "_passed": set(),  # cells that have been checked
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.runs > MOST_RUNS:
            raise SettingError(
                f"{len(self.cells):,} cells with {self.replications:,} replications are "
                f"{self.runs:,} runs; a study has at most {MOST_RUNS:,}"
            )

    @classmethod
    def grid(
        cls,
        instances: Iterable[Instance],
        algorithms: Iterable[Algorithm],
        replications: int,
        *,
        rng: Rng = 0,
        max_pulls: int = MOST_PULLS,
        title: str = "",
    ) -> Study:
        """Return the study of every algorithm on every instance, instance by instance."""
        rules = _several("algorithms", algorithms)
        cells = [Cell(place, rule) for place in _several("instances", instances) for rule in rules]
        return cls(cells, replications, rng=rng, max_pulls=max_pulls, title=title)

    def __repr__(self) -> str:
        return f"Study({self.title!r}, {len(self.cells)} cells, {self.replications} replications)"

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.cells) * self.replications

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The cells in words: number, algorithm, instance, and what tells them from others."""
        words = descriptions([cell.facts for cell in self.cells])
        return tuple(f"cell {number} ({text})" for number, text in enumerate(words, 1))

    def seed(self, cell: int, replication: int) -> int:
        """Return the seed of one run; cells and replications are counted from 1."""
        key = (cell - 1, replication - 1)
        return seed_from(np.random.SeedSequence(self.rng, spawn_key=key))

    def check(self, cells: Iterable[int] | None = None) -> None:
        """Raise where a cell cannot be run, naming it: its design is made, and a first look taken.

        `run` does so before anything else; no cell is checked twice.
        """
        from superarm.study.check import check_cell

        for number in range(1, len(self.cells) + 1) if cells is None else cells:
            if number not in self._passed:
                check_cell(self, number)
                self._passed.add(number)

    def run(
        self,
        *,
        workers: int = 1,
        out: str | Path | None = None,
        dask: str | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> Results:
        """Run all cells and return the table; the same one on any number of workers.

        Parameters
        ----------
        workers
            Processes on this machine (more than one need joblib).
        out
            A file, .csv or .parquet, for the table. Beside it a journal, the same name with
            .journal behind it, takes each run as it is finished. Where the journal holds runs of
            this study already, only the others are run.
        dask
            Address of a Dask scheduler whose workers are used instead, as tcp://host:8786.
        fresh
            Forget a journal and a table that are there already.
        progress
            Called with the numbers of finished runs and of all runs.
        """
        from superarm.study.run import run_study

        return run_study(self, workers, out, dask, fresh, progress)


def _cells(given: Iterable[Cell]) -> tuple[Cell, ...]:
    cells = tuple(_several("cells", given))
    if len(cells) > MOST_CELLS:
        raise SettingError(f"a study has at most {MOST_CELLS:,} cells; these are {len(cells):,}")
    seen: dict[object, int] = {}
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, Cell):
            raise SettingError(f"cell {number} must be a Cell, not {cell!r}")
        facts = cell.facts
        key = (cell.digest, facts["instance"], facts["preset"], *facts["labels"].items())
        if key in seen:
            raise SettingError(
                f"cell {number} ({facts['algorithm']} on {facts['instance']}) is the same as cell "
                f"{seen[key]}; give more replications instead"
            )
        seen[key] = number
    return cells


def _several(what: str, given: Iterable[Any]) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SettingError(f"{what} must be a list, not {given!r}")
    found = list(given)
    if not found:
        raise SettingError(f"there are no {what}: give at least one")
    return found


def _text(what: str, value: Any, empty: bool = False) -> str:
    if not isinstance(value, str) or not (empty or value.strip()):
        raise SettingError(f"{what} must be a text, not {value!r}")
    if any("\ud800" <= letter <= "\udfff" or letter in "\0\r" for letter in value):
        raise SettingError(f"{what} has characters that no table can hold: {value!r}")
    return value


def _labels(given: Labels) -> Labels:
    if not isinstance(given, Mapping):
        raise SettingError(f"labels must be values by name, not {given!r}")
    found = {}
    for name, value in given.items():
        _text("a label's name", name)
        if name in COLUMNS:
            raise SettingError(f"label {name!r} is a column of every study; take another name")
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, str):
            _text(f"label {name!r}", plain, empty=True)
        elif not (isinstance(plain, int | float) and _ordinary(plain)):
            raise SettingError(
                f"label {name!r} must be a text, an ordinary number or a bool, not {value!r}"
            )
        found[name] = plain
    return found


def _ordinary(number: float) -> bool:
    """Whether a column of a table can hold a number: 64 bits, and finite."""
    return -(2**63) <= number < 2**63 if isinstance(number, int) else math.isfinite(number)
