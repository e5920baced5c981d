"""Tables from CSV files of users; every error names the file and, where it can, the line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from superarm._checks import shown
from superarm.errors import DataError


@dataclass(frozen=True)
class Table:
    """Rows of text under a header, each with the number of its line in the file."""

    path: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> tuple[str, ...]:
        """Return the cells under one name of the header."""
        place = self.header.index(name)
        return tuple(row[place] for row in self.rows)

    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return all columns by name."""
        return {name: self.column(name) for name in self.header}

    def wrong(self, row: int, what: str) -> DataError:
        """Return an error about one row."""
        return DataError(f"{self.path}, line {self.lines[row]}: {what}")

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return the cells under one name as finite numbers."""
        return tuple(self.number(row, text) for row, text in enumerate(self.column(name)))

    def number(self, row: int, text: str) -> float:
        """Return one cell as a finite number."""
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(row, f"{shown(text)} is not a finite number")
        return value


def as_cell(names: Sequence[str]) -> str:
    """Return names as one cell, with semicolons between them; a name that has one is quoted."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(names)
    return text.getvalue()


def names_in(cell: str) -> tuple[str, ...]:
    """Return the names in a cell that `as_cell` wrote, or a person."""
    return tuple(name.strip() for name in next(csv.reader([cell], delimiter=";"), []))


def read_table(path: str | Path, required: Sequence[str], what: str) -> Table:
    """Read a CSV whose header begins with the `required` names; other columns may follow.

    `what` says what a line is about, for the error when there is none.
    """
    if "\0" in str(path):
        raise DataError(f"{path!r} is no file name")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parse(file, str(path), required, what)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8 ({error.reason})") from None


def _parse(file: Iterable[str], path: str, required: Sequence[str], what: str) -> Table:
    header: tuple[str, ...] = ()
    rows, lines = [], []
    for line, cells in _filled(file, path):
        if not header:
            header = _header(cells, required, f"{path}, line {line}")
        elif len(cells) != len(header):
            expected = ",".join(header)
            raise DataError(f"{path}, line {line}: expected {expected}, found {len(cells)} cells")
        else:
            rows.append(cells)
            lines.append(line)
    if not rows:
        named = ",".join(required)
        raise DataError(
            f"{path}: no {what}s in it; expected the header {named} and a line for each {what}"
        )
    return Table(path, header, tuple(rows), tuple(lines))


def _filled(file: Iterable[str], path: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the lines that are not blank, with their numbers."""
    rows = csv.reader(file, strict=True)
    try:
        for row in rows:
            cells = tuple(cell.strip() for cell in row)
            if any(cells):
                yield rows.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}") from None


def _header(cells: tuple[str, ...], required: Sequence[str], where: str) -> tuple[str, ...]:
    header = tuple(cell.lower() for cell in cells)
    if header[: len(required)] != tuple(required):
        raise DataError(f"{where}: the header must be {','.join(required)}, not {list(cells)}")
    if "" in header or len(set(header)) < len(header):
        raise DataError(f"{where}: each column needs a name of its own, not {list(cells)}")
    return header
