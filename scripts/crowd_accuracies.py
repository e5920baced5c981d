"""Each worker's share of right answers, from the raw answers of the six crowd quizzes.

    python scripts/crowd_accuracies.py SOURCE_DIR [--check]

SOURCE_DIR holds a folder for each quiz with ``answer.csv`` (a line a question, a column a worker)
and ``truth.csv`` (the right option of each question). What is written, and whose answers they are,
says src/superarm/data/crowd/README.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

FOLDERS = {
    "it": "ITMANAGE",
    "medicine": "MEDICINE",
    "chinese": "CHINESE",
    "pokemon": "POKEMON",
    "english": "ENGLISH",
    "science": "SCIENCE",
}
TARGET = Path(__file__).resolve().parents[1] / "src" / "superarm" / "data" / "crowd"


def read(path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the columns, and the cells of each question."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        (_, *columns), *rows = (row for row in csv.reader(file, strict=True) if row)
    cells = {question: options for question, *options in rows}
    if len(cells) < len(rows):
        raise ValueError(f"{path}: a question is there twice")
    for question, options in cells.items():
        if len(options) != len(columns) or not all(options):
            raise ValueError(f"{path}: question {question} has not one option in each column")
    return columns, cells


def accuracies(folder: Path) -> dict[str, float]:
    """Return each worker's share of right answers."""
    workers, answers = read(folder / "answer.csv")
    _, truth = read(folder / "truth.csv")
    if answers.keys() != truth.keys():
        raise ValueError(f"{folder}: answer.csv and truth.csv have different questions")
    right = {question: option for question, (option,) in truth.items()}
    return {
        worker: sum(row[i] == right[question] for question, row in answers.items()) / len(right)
        for i, worker in enumerate(workers)
    }


def text(means: dict[str, float]) -> str:
    """Return the file's text; repr gives back the very same float."""
    return "".join(["arm,mean\n", *(f"{arm},{mean!r}\n" for arm, mean in means.items())])


def difference(path: Path, expected: str) -> str | None:
    """Name the first line in which a file is not as expected."""
    if not path.exists():
        return f"{path.name} is missing"
    have, want = path.read_bytes().decode(errors="replace").split("\n"), expected.split("\n")
    for number in range(max(len(have), len(want))):
        pair = [lines[number] if number < len(lines) else None for lines in (have, want)]
        if pair[0] != pair[1]:
            return f"{path.name}, line {number + 1}: {pair[0]!r}, computed {pair[1]!r}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="SOURCE_DIR", help="folder of the raw answers")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if they differ")
    arguments = parser.parse_args()
    for name, folder in FOLDERS.items():
        path = TARGET / f"{name}.csv"
        try:
            expected = text(accuracies(arguments.source / folder))
        except (OSError, ValueError, csv.Error) as error:
            print(f"crowd_accuracies: {error}", file=sys.stderr)
            return 2
        if not arguments.check:
            TARGET.mkdir(parents=True, exist_ok=True)
            path.write_text(expected, encoding="utf-8", newline="\n")
        elif found := difference(path, expected):
            print(f"crowd_accuracies: {found}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
