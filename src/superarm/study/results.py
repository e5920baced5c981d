"""The table of a study: a row a run, and its summary, a line a cell."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from superarm.errors import SettingError
from superarm.study.facts import COLUMNS, Facts, compact, telling_columns
from superarm.study.outcome import Outcome, versions
from superarm.study.tables import as_cell, column_type, read_table, write_table

if TYPE_CHECKING:
    from superarm.study.cells import Study


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
    def read(cls, path: str | os.PathLike[str]) -> Results:
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

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV (or as its name says)."""
        write_table(self.columns, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet (or as its name says); this needs pyarrow."""
        write_table(self.columns, path)

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
        one run), `wrong` and `certified` are numbers of runs.
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
            "wrong": sum(self.columns["wrong"][row] for row in rows),
            "certified": sum(self.columns["certified"][row] for row in rows),
            "seconds": math.fsum(self.columns["seconds"][row] for row in rows) / runs,
        }


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
                columns[label] = [None if value is None else kind(value) for value in values]
    return Results(columns)


def _common(study: Study) -> list[Facts]:
    """What the rows of each cell share."""
    stated = {"study": study.title, "max_pulls": study.max_pulls, **versions()}
    return [
        {**cell.facts, **stated, "settings": compact(cell.facts["settings"])}
        for cell in study.cells
    ]


def _column(name: str, common: Sequence[Facts], ordered: Sequence[Outcome]) -> list[Any]:
    if name == "answer":
        return [as_cell(outcome.answer) for outcome in ordered]
    if name == "wrong":
        return [
            outcome.regret is None or outcome.regret > common[outcome.cell - 1]["epsilon"]
            for outcome in ordered
        ]
    if name in Outcome.__slots__:
        return list(map(getattr, ordered, repeat(name)))
    return [common[outcome.cell - 1][name] for outcome in ordered]
