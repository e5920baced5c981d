"""Arm means from files: a user's CSV, and the six crowd quizzes that come with the package."""

from __future__ import annotations

import csv
import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from superarm.errors import DataError

QUIZZES = ("IT", "Medicine", "Chinese", "Pokemon", "English", "Science")
"""The six quizzes of the paper's Table 1; the answers are by Li, Baba, Kashima (2017)."""


@dataclass(frozen=True)
class Means:
    """Arms by name, and the mean reward of each."""

    arms: tuple[str, ...]
    means: tuple[float, ...]


def crowd(quiz: str) -> Means:
    """Return the share of right answers of each worker of a quiz, by the paper's name for it."""
    known = {name.casefold(): name for name in QUIZZES}
    plain = unicodedata.normalize("NFKD", quiz).encode("ascii", "ignore").decode()  # Pokémon
    name = known.get(plain.casefold())
    if name is None:
        raise DataError(f"quiz {quiz!r} is not one of {', '.join(QUIZZES)}")
    with as_file(files("superarm") / "data" / "crowd" / f"{name.lower()}.csv") as path:
        return read_means(path)


def read_means(path: str | Path) -> Means:
    """Read a CSV with the header ``arm,mean``; errors name the line."""
    if "\0" in str(path):
        raise DataError(f"{path!r} is no file name")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parse(file, str(path))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8 ({error.reason})") from None


def _parse(file: Iterable[str], path: str) -> Means:
    rows = csv.reader(file, strict=True)
    arms: dict[str, int] = {}
    means: list[float] = []
    header = None
    try:
        for row in rows:
            line = rows.line_num
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if header is None:
                header = [cell.lower() for cell in cells]
                if header != ["arm", "mean"]:
                    raise DataError(f"{path}, line {line}: the header must be arm,mean, not {row}")
                continue
            name, mean = _row(cells, path, line)
            if name in arms:
                raise DataError(f"{path}, line {line}: arm {name!r} is on line {arms[name]} too")
            arms[name] = line
            means.append(mean)
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}") from None
    if not means:
        raise DataError(f"{path}: no arms in it; expected the header arm,mean and a line an arm")
    return Means(tuple(arms), tuple(means))


def _row(cells: list[str], path: str, line: int) -> tuple[str, float]:
    if len(cells) != 2:
        raise DataError(f"{path}, line {line}: expected arm,mean, found {len(cells)} cells")
    name, text = cells
    if not name:
        raise DataError(f"{path}, line {line}: the arm has no name")
    try:
        mean = math.nan if "_" in text else float(text)
    except ValueError:
        mean = math.nan
    if not math.isfinite(mean):
        raise DataError(f"{path}, line {line}: {text!r} is not a finite number")
    return name, mean
