"""Tables on disk, CSV or Parquet: written whole or not at all, and read again with their types."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from superarm.errors import DataError, SettingError
from superarm.study.executors import needed
from superarm.study.facts import COLUMNS, READ

Columns = Mapping[str, Sequence[Any]]

SUFFIXES = (".csv", ".parquet")


def table_path(path: str | Path, *suffixes: str) -> Path:
    """Return the path of a table whose kind is told by its name, and can be written or read.

    Without `suffixes` each kind is welcome.
    """
    try:
        found = Path(path)
    except TypeError:
        raise SettingError(f"a table's file must be a path, not {path!r}") from None
    if found.suffix.lower() not in (suffixes or SUFFIXES) or "\0" in str(found):
        named = " or ".join(suffixes or SUFFIXES)
        raise SettingError(f"the name of a table must end in {named}, not {str(path)!r}")
    if found.suffix.lower() == ".parquet":
        needed("pyarrow", "study", "a .parquet table")
    return found


def write_table(columns: Columns, path: str | Path) -> None:
    """Write columns as CSV or Parquet; the file is there whole, or as it was before."""
    target = table_path(path)
    with _replacing(target) as temporary:
        if target.suffix.lower() == ".csv":
            _write_csv(columns, temporary)
        else:
            _write_parquet(columns, temporary)


def read_table(path: str | Path) -> dict[str, list[Any]]:
    """Read a table that `write_table` wrote."""
    source = table_path(path)
    try:
        found = _read_csv(source) if source.suffix.lower() == ".csv" else _read_parquet(source)
    except OSError as error:
        raise DataError(f"{source}: {error.strerror or error}") from None
    except (ValueError, csv.Error) as error:
        raise DataError(f"{source}: {error}") from None
    missing = [name for name in READ if name not in found]
    if missing:
        raise DataError(f"{source} is not the table of a study: no column {missing[0]!r}")
    return found


def as_cell(names: Sequence[str]) -> str:
    """Return names as one cell, as `superarm simulate` writes them: with semicolons between."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(names)
    return text.getvalue()


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Give a file beside the target that takes its place when all has gone well."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{reason} (writing {target})") from None
    finally:
        temporary.unlink(missing_ok=True)


def _write_csv(columns: Columns, path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_parquet(columns: Columns, path: Path) -> None:
    arrow = needed("pyarrow", "study", "a .parquet table")
    parquet = needed("pyarrow.parquet", "study", "a .parquet table")
    kinds = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(), str: arrow.string()}
    table = arrow.table(
        {
            name: arrow.array(values, kinds[column_type(name, values)])
            for name, values in columns.items()
        }
    )
    parquet.write_table(table, path)


def column_type(name: str, values: Sequence[Any]) -> type:
    """Return the type of a column's values: of a label, the one that all have, or text."""
    if name in COLUMNS:
        return COLUMNS[name]
    found = {type(value) for value in values if value is not None}
    if found == {int, float}:
        return float
    return found.pop() if len(found) == 1 else str


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    parquet = needed("pyarrow.parquet", "study", "a .parquet table")
    table: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    return table


def _read_csv(path: Path) -> dict[str, list[Any]]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        header = next(rows, [])
        cells: dict[str, list[str]] = {name: [] for name in header}
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"line {rows.line_num}: {len(row)} cells, and not {len(header)}")
            for name, cell in zip(header, row, strict=True):
                cells[name].append(cell)
    return {name: _typed(name, texts) for name, texts in cells.items()}


def _typed(name: str, texts: Sequence[str]) -> list[Any]:
    """Return texts as values of the column's type; of a label's, as the first type that fits."""
    if name in COLUMNS:
        try:
            return [_value(COLUMNS[name], text) for text in texts]
        except ValueError:
            what = COLUMNS[name].__name__
            raise ValueError(f"column {name!r} has values that are no {what}") from None
    for kind in (bool, int, float):
        with suppress(ValueError):
            values = [_value(kind, text) for text in texts]
            if ["" if value is None else str(value) for value in values] == list(texts):
                return values
    return list(texts)


def _value(kind: type, text: str) -> Any:
    if kind is str:
        return text
    if not text:
        return None
    if kind is bool:
        if text not in ("True", "False"):
            raise ValueError(text)
        return text == "True"
    return kind(text)
