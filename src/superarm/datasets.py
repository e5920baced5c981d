"""Arm means from files: a user's CSV, and the six crowd quizzes that come with the package."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from superarm.errors import DataError
from superarm.tables import Table, read_table

QUIZZES = ("IT", "Medicine", "Chinese", "Pokemon", "English", "Science")
"""The six quizzes of the paper's Table 1; the answers are by Li, Baba, Kashima (2017)."""


@dataclass(frozen=True)
class Means:
    """Arms by name, and the mean reward of each."""

    arms: tuple[str, ...]
    means: tuple[float, ...]


def quiz_name(quiz: str) -> str:
    """Return the paper's name for a quiz, whatever its case and accents."""
    known = {name.casefold(): name for name in QUIZZES}
    plain = unicodedata.normalize("NFKD", quiz).encode("ascii", "ignore").decode()  # Pokémon
    name = known.get(plain.casefold())
    if name is None:
        raise DataError(f"quiz {quiz!r} is not one of {', '.join(QUIZZES)}")
    return name


def crowd(quiz: str) -> Means:
    """Return the share of right answers of each worker of a quiz, by the paper's name for it."""
    name = quiz_name(quiz)
    with as_file(files("superarm") / "data" / "crowd" / f"{name.lower()}.csv") as path:
        return read_means(path)


def read_means(path: str | Path) -> Means:
    """Read a CSV with the header ``arm,mean``; other columns may follow. Errors name the line."""
    table = read_arms(path, "mean")
    return Means(table.column("arm"), table.numbers("mean"))


def read_arms(path: str | Path, *required: str) -> Table:
    """Read a CSV whose header begins with ``arm`` and the `required` columns: a line an arm."""
    table = read_table(path, ("arm", *required), "arm")
    seen: dict[str, int] = {}
    for row, name in enumerate(table.column("arm")):
        if not name:
            raise table.wrong(row, "the arm has no name")
        if name in seen:
            raise table.wrong(row, f"arm {name!r} is on line {seen[name]} too")
        seen[name] = table.lines[row]
    return table
