"""What the experiments share: settings, tables on disk, and the pages that sum them up."""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from superarm._checks import flag, whole
from superarm.errors import DataError, SettingError

Row = Mapping[str, Any]

EXPERIMENTS = ("figure2", "figure3", "figure4", "table1", "table2", "rules")
"""In the order of the paper, and then ours; a module of this package each."""

ALL = "all"

Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class Settings:
    """How much is computed, and on how many processes.

    Parameters
    ----------
    quick
        Fewer realisations and smaller cases, to see that it works.
    workers
        Processes; they change no number but times.
    rng
        Seed of everything.
    progress
        Called with a name and the numbers of parts that are done and of all.
    """

    quick: bool = False
    workers: int = 1
    rng: int = 7
    progress: Progress | None = None

    def __post_init__(self) -> None:
        flag("quick", self.quick, SettingError)
        whole("workers", self.workers, SettingError, least=1)
        whole("rng", self.rng, SettingError, least=0)

    def report(self, name: str, done: int, of: int) -> None:
        """Say how far it has come."""
        if self.progress is not None:
            self.progress(name, done, of)


@dataclass(frozen=True)
class Page:
    """What an experiment's data say: its title, the comparison in words, and the tables."""

    title: str
    agrees: str
    differs: str
    body: str

    def text(self) -> str:
        """Return the page in Markdown."""
        return (
            f"# {self.title}\n\n{self.body}\n\n"
            f"**What agrees.** {self.agrees}\n\n**What does not, and why.** {self.differs}\n"
        )


def reproduce(name: str, folder: Path, settings: Settings) -> list[Path]:
    """Compute, draw and describe an experiment, or all of them; return the files, pages first."""
    if name not in (*EXPERIMENTS, ALL):
        raise SettingError(f"{name!r} is not one of {', '.join(EXPERIMENTS)}, {ALL}")
    names = EXPERIMENTS if name == ALL else (name,)
    _check_extras(names, settings.workers)
    _make(folder)
    pages, others, lines = [], [], []
    for each in names:
        module = import_module(f"superarm.experiments.{each}")
        module.compute(folder, settings)
        others += [folder / f"{each}.csv", *module.plot(folder)]
        page: Page = module.page(folder)
        path = folder / f"{each}.md"
        path.write_text(f"{page.text()}\n{_origin(each, settings)}\n", encoding="utf-8")
        pages.append(path)
        lines.append((f"[{page.title}]({path.name})", page.agrees, page.differs))
    if name == ALL:
        path = folder / "reproduction.md"
        path.write_text(_overview(lines, settings), encoding="utf-8")
        pages.insert(0, path)
    return [*pages, *others]


def _check_extras(names: Sequence[str], workers: int) -> None:
    """Raise for extras that will be missing, before anything is computed."""
    from superarm import plots
    from superarm.study.executors import needed

    if any(name != "table1" for name in names):
        plots.check_matplotlib()
    if workers > 1:
        needed("joblib", "study", f"workers={workers}")


def _make(folder: Path) -> None:
    """Make the folder, and see that a file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise DataError(f"{folder} is a file; results go to a folder") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{folder}: cannot write there ({why}); name another folder") from None


PAPER = (
    'Kuroki, Xu, Miyauchi, Honda, Sugiyama: "Polynomial-time Algorithms for Multiple-arm '
    'Identification with Full-bandit Feedback" (Neural Computation 32 (9), 2020)'
)


def _origin(name: str, settings: Settings) -> str:
    size = " --quick" if settings.quick else ""
    return (
        f"Made by `superarm reproduce {name} --rng {settings.rng}{size}`; the data are in "
        f'{name}.csv. "The paper" is {PAPER}.'
    )


def _overview(lines: Iterable[Sequence[str]], settings: Settings) -> str:
    size = "the quick size" if settings.quick else "full size"
    table = markdown_table(("experiment", "what agrees", "what does not, and why"), lines)
    return (
        f"# Reproduction\n\nThe experiments of {PAPER}; {size}, seed {settings.rng}.\n\n{table}\n"
    )


# ---- tables on disk ------------------------------------------------------------------------------


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, with the keys of the first as header."""
    listed = list(rows)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read rows, with numbers and truth values as such."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [
                {key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)
            ]
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text


# ---- words ---------------------------------------------------------------------------------------


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def mean(rows: Iterable[Row], column: str, **where: Any) -> float:
    """Return the mean of a column over the rows that have these values."""
    return float(np.mean([row[column] for row in select(rows, **where)]))


def select(rows: Iterable[Row], **where: Any) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def span(values: Iterable[float]) -> str:
    """Return "1.2 to 3.4", or one number where that is the same."""
    listed = list(values)
    low, high = (_short(value) for value in (min(listed), max(listed)))
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    if not math.isfinite(value) or value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def listing(words: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
