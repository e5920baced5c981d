"""Sheets of totals: CSV files as spreadsheet programs write them, with the columns id and total.

Told by the file itself: UTF-8 or UTF-16, with or without a byte order mark; commas, semicolons or
tabs between the cells; a first line ``sep=;``. Each error names the file and the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from superarm._checks import shown
from superarm.errors import DataError

SEPARATORS = ",;\t"

LABELS = ("worker", "site")
"""Further columns that are read, where they are there."""


@dataclass
class Sheet:
    """Totals by the ids of their pulls, each with the number of its line."""

    path: str
    ids: list[str] = field(default_factory=list)
    totals: array[float] = field(default_factory=lambda: array("d"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    labels: dict[str, list[str]] = field(default_factory=dict)
    empty: int = 0  # lines whose total is not there yet

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, row: int) -> str:
        """Return the place of a row, for an error."""
        return f"{self.path}, line {self.lines[row]}"


def read_sheet(
    path: str | Path, *, decimal_comma: bool = False, stream: BinaryIO | None = None
) -> Sheet:
    """Read the columns id and total, and worker and site where they are; others may be there.

    A line with an empty total is not measured yet: it is left out and counted.

    Parameters
    ----------
    path
        The file, or what messages call the `stream`.
    decimal_comma
        Whether 1,5 is one and a half.
    stream
        Read this in the place of a file.
    """
    if "\0" in str(path):
        raise DataError(f"{str(path)!r} is no file name")
    try:
        if stream is not None:
            return _read(io.BytesIO(stream.read()), str(path), decimal_comma)
        with open(path, "rb") as file:
            return _read(file, str(path), decimal_comma)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not a text file in UTF-8 ({error.reason}); save it as CSV UTF-8"
        ) from None


def _read(file: BinaryIO, path: str, decimal_comma: bool) -> Sheet:
    text = io.TextIOWrapper(file, _encoding(file, path), newline="")
    try:
        return _parse(text, path, decimal_comma)
    finally:
        text.detach()


def _encoding(file: BinaryIO, path: str) -> str:
    start = file.read(4)
    file.seek(0)
    if start == b"PK\3\4":
        raise DataError(f"{path}: a file of a spreadsheet program; save it as CSV UTF-8 instead")
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def _parse(text: io.TextIOWrapper, path: str, decimal_comma: bool) -> Sheet:
    separator, before, header = _header(text, path)
    sheet = Sheet(path, labels={name: [] for name in LABELS if name in header})
    rows = csv.reader(text, delimiter=separator, strict=True)
    try:
        _fill(sheet, rows, header, before, decimal_comma)
    except csv.Error as error:
        raise DataError(f"{path}, line {before + rows.line_num}: {error}") from None
    if not sheet.ids and not sheet.empty:
        raise DataError(
            f"{path}: no totals in it; expected the header id,total and a line for each"
        )
    _refuse_contradictions(sheet)
    return sheet


def _header(text: Iterable[str], path: str) -> tuple[str, int, list[str]]:
    """Return the separator, the number of lines up to the header, and the header."""
    stated = ""
    for number, line in enumerate(text, 1):
        line = line.strip("\r\n")
        found = re.fullmatch(r"sep=(.)", line, re.IGNORECASE)
        if found is not None and not stated:
            stated = found[1]
        elif line.strip(SEPARATORS + " "):
            return _columns(line, stated or SEPARATORS, f"{path}, line {number}", number)
    raise DataError(f"{path}: no totals in it; expected the header id,total and a line for each")


def _columns(line: str, separators: str, where: str, number: int) -> tuple[str, int, list[str]]:
    for separator in separators:
        try:
            cells = next(csv.reader([line], delimiter=separator), [])
        except csv.Error as error:
            raise DataError(f"{where}: {error}") from None
        header = [cell.strip().lower() for cell in cells]
        while header and not header[-1]:
            header.pop()
        if "id" in header and "total" in header:
            twice = [name for name in ("id", "total", *LABELS) if header.count(name) > 1]
            if twice:
                raise DataError(f"{where}: there is more than one column {twice[0]}")
            return separator, number, header
    raise DataError(
        f"{where}: the header must name the columns id and total, with commas, semicolons or "
        f"tabs between; it is {shown(line)}"
    )


def _fill(
    sheet: Sheet,
    rows: Iterator[list[str]],
    header: list[str],
    before: int,
    decimal_comma: bool,
) -> None:
    width, id_at, total_at = len(header), header.index("id"), header.index("total")
    places = [(header.index(name), cells) for name, cells in sheet.labels.items()]
    ids, totals, lines = sheet.ids, sheet.totals, sheet.lines
    for row in rows:
        if len(row) != width and not _fits(row, width):
            if not any(cell.strip() for cell in row):
                continue
            raise DataError(
                f"{sheet.path}, line {before + rows.line_num}: expected {width} cells "  # type: ignore[attr-defined]
                f"({','.join(header)}), found {len(row)}{_hint(row, width)}"
            )
        cell = row[total_at].strip()
        id = row[id_at].strip()
        if not cell:
            sheet.empty += bool(id)
            if id or not any(each.strip() for each in row):
                continue
        line = before + rows.line_num  # type: ignore[attr-defined]
        if not id:
            raise DataError(f"{sheet.path}, line {line}: there is no id beside the total")
        ids.append(id)
        totals.append(_number(cell, decimal_comma, sheet.path, line))
        lines.append(line)
        for place, labels in places:
            labels.append(row[place].strip())


def _fits(row: list[str], width: int) -> bool:
    """Whether a row is only longer by empty cells."""
    return len(row) > width and not any(cell.strip() for cell in row[width:])


def _hint(row: list[str], width: int) -> str:
    whole = len(row) == width + 1 and all(re.fullmatch(r"\s*-?\d+\s*", cell) for cell in row[-2:])
    return "; a total with a decimal comma needs quotes, or another separator" if whole else ""


def _number(cell: str, decimal_comma: bool, path: str, line: int) -> float:
    text = cell
    if decimal_comma:
        text = cell.replace(",", ".", 1) if "." not in cell else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and "_" not in text:
        return value
    hint = ""
    if decimal_comma:
        hint = ", with a comma as its decimal sign and nothing between the thousands"
    elif re.fullmatch(r"[+-]?\d+,\d+", cell):
        hint = "; if the comma is a decimal sign, say --decimal-comma"
    raise DataError(f"{path}, line {line}: {shown(cell)} is not a finite number{hint}")


def _refuse_contradictions(sheet: Sheet) -> None:
    """Refuse two totals of one pull, which cannot both be right."""
    if len(set(sheet.ids)) == len(sheet.ids):
        return
    seen: dict[str, int] = {}
    for row, id in enumerate(sheet.ids):
        first = seen.setdefault(id, row)
        if sheet.totals[first] != sheet.totals[row]:
            raise DataError(
                f"{sheet.where(row)}: pull {id} has the total {sheet.totals[row]:.15g} here and "
                f"{sheet.totals[first]:.15g} on line {sheet.lines[first]}"
            )
