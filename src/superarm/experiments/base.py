"""What the experiments share: settings, tables on disk, and the page that sums them up."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from superarm._checks import flag, whole
from superarm.errors import DataError, SettingError

Row = Mapping[str, Any]

EXPERIMENTS = ("figure2", "figure3", "figure4", "table1", "table2")
"""In the order of the paper; a module of this package each."""

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


def reproduce(names: Sequence[str], folder: Path, settings: Settings) -> Path:
    """Compute, draw and describe experiments; return the page about them, in Markdown."""
    for name in names:
        if name not in EXPERIMENTS:
            raise SettingError(f"{name!r} is not one of {', '.join(EXPERIMENTS)}, all")
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in names:
        started = time.perf_counter()
        module = import_module(f"superarm.experiments.{name}")
        module.compute(folder, settings)
        module.plot(folder)
        seconds = time.perf_counter() - started
        parts.append(f"{module.page(folder)}\n\n(Computed and drawn in {seconds:.0f} s.)")
    page = folder / "reproduction.md"
    page.write_text("\n\n".join([_head(settings), *parts]) + "\n", encoding="utf-8")
    return page


def _head(settings: Settings) -> str:
    size = "quick" if settings.quick else "full"
    return (
        "# Reproduction\n\n"
        'Of the experiments in Kuroki, Xu, Miyauchi, Honda, Sugiyama: "Polynomial-time Algorithms '
        'for Multiple-arm Identification with Full-bandit Feedback" (Neural Computation 32 (9), '
        f"2020).\nSize: {size}; seed {settings.rng}. Data are in the CSV files beside this page."
    )


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


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
