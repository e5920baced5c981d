"""The table of a study: a row a run, and its summary, a line a cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.errors import SettingError
from superarm.study.facts import COLUMNS, Facts, compact, telling_columns
from superarm.study.outcome import Outcome, versions
from superarm.study.tables import as_cell, column_type, read_table, table_path, write_table
from superarm.theory.lower_bound import bound_of

if TYPE_CHECKING:
    from superarm.study.cells import Instance, Study

DERIVED: dict[str, Callable[[Facts, Outcome], Any]] = {
    "answer": lambda cell, run: as_cell(run.answer),
    "pulls_over_bound": lambda cell, run: run.pulls / cell["bound"] if cell["bound"] else None,
    "wrong": lambda cell, run: run.regret is None or run.regret > cell["epsilon"],
}
"""Columns that follow from what a cell's rows share and from a run. All other ones are a part of
either, by the same name; a new column needs a line in COLUMNS, and here or in `_common`."""


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """All runs of a study, ordered by cell and replication.

    Parameters
    ----------
    columns
        The values of each column, by name. Everything but `seconds` is the same whenever the study
        is run again.
    """

    columns: Mapping[str, Sequence[Any]]

    @classmethod
    def read(cls, path: str | Path) -> Results:
        """Read a table that a study wrote."""
        return cls(read_table(path))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each run."""
        names = tuple(self.columns)
        values = zip(*self.columns.values(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in values]

    def __len__(self) -> int:
        return len(self.columns["cell"])

    def __repr__(self) -> str:
        return f"Results({len(self)} runs of {len(set(self.columns['cell']))} cells)"

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV, to a name that ends in .csv."""
        write_table(self.columns, table_path(path, ".csv"))

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet, to a name that ends in .parquet; this needs pyarrow."""
        write_table(self.columns, table_path(path, ".parquet"))

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame; this needs pandas."""
        try:
            import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ModuleNotFoundError:
            raise SettingError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.columns)

    def summary(self) -> list[dict[str, Any]]:
        """Return a line a cell: what was run, and means over its runs.

        `pulls` and `seconds` are means, `pulls_error` is the standard error of the former (None of
        one run), `pulls_over_bound` the mean multiple of what the isotropic design needs (None
        where there is no such bound), `wrong` and `certified` are numbers of runs. With a budget
        `epsilon_reached` is the mean of what was certified, else None.
        """
        first: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        for row, number in enumerate(self.columns["cell"]):
            first.setdefault(number, row)
            groups.setdefault(number, []).append(row)
        told = telling_columns([self._facts(row) for row in first.values()])
        return [
            {"cell": number, **words, **self._means(rows)}
            for (number, rows), words in zip(groups.items(), told, strict=True)
        ]

    def _facts(self, row: int) -> Facts:
        values = {name: column[row] for name, column in self.columns.items()}
        labels = {name: value for name, value in values.items() if name not in COLUMNS}
        given = {name: value for name, value in labels.items() if value not in (None, "")}
        return {**values, "labels": given, "settings": json.loads(values["settings"])}

    def _means(self, rows: Sequence[int]) -> dict[str, Any]:
        runs = len(rows)
        pulls = [self.columns["pulls"][row] for row in rows]
        mean = sum(pulls) / runs
        error = None
        if runs > 1:
            squares = math.fsum((each - mean) ** 2 for each in pulls)
            error = math.sqrt(squares / (runs - 1) / runs)
        return {
            "runs": runs,
            "pulls": mean,
            "pulls_error": error,
            "pulls_over_bound": self._mean("pulls_over_bound", rows),
            "wrong": sum(self.columns["wrong"][row] for row in rows),
            "certified": sum(self.columns["certified"][row] for row in rows),
            "epsilon_reached": self._reached(rows),
            "seconds": math.fsum(self.columns["seconds"][row] for row in rows) / runs,
        }

    def _reached(self, rows: Sequence[int]) -> float | None:
        """Mean of the epsilon reached, where all of the runs had a budget."""
        budget = self._mean("confidence", rows) is not None
        return self._mean("epsilon_reached", rows) if budget else None

    def _mean(self, name: str, rows: Sequence[int]) -> float | None:
        """Mean of a column, where all of the runs have a value (and the table the column)."""
        column = self.columns.get(name)
        if column is None or any(column[row] is None for row in rows):
            return None
        return math.fsum(column[row] for row in rows) / len(rows)


def results_of(study: Study, outcomes: Iterable[Outcome]) -> Results:
    """Return the table of a study's outcomes, in the order of cells and replications."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.cell, outcome.replication))
    common = _common(study)
    parts = *(cell.instance.labels for cell in study.cells), *(cell.labels for cell in study.cells)
    labels = list(dict.fromkeys(name for part in parts for name in part))
    columns: dict[str, Sequence[Any]] = {}
    for name in COLUMNS:
        columns[name] = _column(name, common, ordered)
        if name == "preset":
            for label in labels:
                values = [common[o.cell - 1]["labels"].get(label) for o in ordered]
                kind = column_type(label, values)
                missing = "" if kind is str else None  # as CSV has it
                columns[label] = [missing if value is None else kind(value) for value in values]
    return Results(columns)


def _common(study: Study) -> list[Facts]:
    """What the rows of each cell share."""
    stated = {"study": study.title, "max_pulls": study.max_pulls, **versions()}
    bounds = {id(cell.instance): _bound(cell.instance) for cell in study.cells}
    return [
        {
            **cell.facts,
            **stated,
            "settings": compact(cell.facts["settings"]),
            "bound": bounds[id(cell.instance)],
        }
        for cell in study.cells
    ]


def _bound(instance: Instance) -> float | None:
    """Pulls that the isotropic design needs; None where there is no such bound, or no end."""
    found = bound_of(instance.problem, instance.environment.means)
    return found.pulls if found is not None and 0 < found.pulls < math.inf else None


def _column(name: str, common: Sequence[Facts], ordered: Sequence[Outcome]) -> list[Any]:
    if name in DERIVED:
        return [DERIVED[name](common[outcome.cell - 1], outcome) for outcome in ordered]
    if name in Outcome.__slots__:
        return list(map(getattr, ordered, repeat(name)))
    return [common[outcome.cell - 1][name] for outcome in ordered]
