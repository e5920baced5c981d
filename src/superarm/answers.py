"""The raw answers behind the six crowd quizzes: fetched once, checked by their hashes, kept.

They do not come with superarm. `fetch` downloads them (from the repository that published them, at
a fixed commit) or copies them from a folder; `quiz_answers` reads them from wherever they are.
"""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm.datasets import QUIZZES, quiz_name
from superarm.errors import DataError, SettingError

VARIABLE = "SUPERARM_CROWD"
"""Environment variable that names a folder of raw answers."""

COMMIT = "6716cff4b3885d70924d255df4048a11e61c8768"
SOURCE = (
    f"https://raw.githubusercontent.com/garfieldpigljy/CrowdLabelwithTextContent/{COMMIT}/Datasets/"
)

FOLDERS = dict(
    zip(
        QUIZZES,
        ("ITMANAGE", "MEDICINE", "CHINESE", "POKEMON", "ENGLISH", "SCIENCE"),
        strict=True,
    )
)

HASHES = {
    "CHINESE/answer.csv": "0f40a7cab3c405582aa433f1b6d9875cd6723389b7cbc8245968429962014950",
    "CHINESE/truth.csv": "786c401b59488b044d7ac4fdf1240b4d5aae774bde833ca06c8b1e7c75b249e9",
    "ENGLISH/answer.csv": "223461fb47ae06c0290680bede16d1ed7b9a5511d9024f21b8dbe359a87721dc",
    "ENGLISH/truth.csv": "9f82aaaf85b260b81393b391af86584272197ccab9d2c1058bb4a7290cccf522",
    "ITMANAGE/answer.csv": "b9daf98c1fad43b674e48e3497b16059cb290c4ba08f6d9294ed53e3e8b8aedd",
    "ITMANAGE/truth.csv": "88e60ea5f21d4d1b054567b743b7fe7e9e700987150a8b37e2b64c8756318c24",
    "MEDICINE/answer.csv": "49c466975bd0586e18e6a1538b2a970de57a4c5d355f39046f4634a8481633c8",
    "MEDICINE/truth.csv": "96541d36baa3ea3f002a7aff0a7832fd6bcbfe28f448cb963801c682166f141b",
    "POKEMON/answer.csv": "dbf568a51ae1a3cab6126edc207d0fd4764a863f3aecf05b235e58f3c99e02d7",
    "POKEMON/truth.csv": "872e8edbeb2d6830af1d95a6a38e58f7c145aa0f78a29a665e508077e1469fd8",
    "SCIENCE/answer.csv": "a21c05e8bbc54fc59fceb4f2c42ca9ac1f44ac1ed7307d416ec968cb23a2eebf",
    "SCIENCE/truth.csv": "9ae960f1ad5326c6662fe921dba9a8537a3b32f8ae58237f2596ec77a6752ead",
}
"""SHA-256 of the files as published."""

RENAMED = {
    "POKEMON/answer.csv": "2b82b45e1dfd43018caa052fbd03d24585e1cf33b609eba313848cce38832a0b",
}
"""The same, where a copy goes round that has worker1 .. worker55 for the workers' own names."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Which answers were right: a row a question, a column a worker."""

    workers: tuple[str, ...]
    right: NDArray[np.int64]


def default_folder() -> Path:
    """Where answers are kept if nothing else is said: in the environment variable, or a cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "superarm" / "crowd"


def fetch(quiz: str, folder: Path | None = None, source: Path | None = None) -> Path:
    """Bring a quiz's answers to a folder, from another one or else from the network.

    Each file is checked by its hash. What is there already and right is not brought again.
    """
    place = default_folder() if folder is None else folder
    name = FOLDERS[quiz_name(quiz)]
    for file in (f"{name}/answer.csv", f"{name}/truth.csv"):
        if source is not None:
            _copy(source, place, file)
        elif not (place / file).exists():
            _download(place, file)
        _check(place / file, file)
    return place / name


def quiz_answers(quiz: str, folder: Path | None = None) -> Answers:
    """Read a quiz's answers from a folder; the workers are called as in `crowd`."""
    place = default_folder() if folder is None else folder
    name = FOLDERS[quiz_name(quiz)]
    if not (place / name / "answer.csv").exists():
        raise DataError(
            f"the answers of {quiz_name(quiz)} are not in {place}: "
            f"superarm datasets fetch {quiz_name(quiz)} brings them there; or name a folder that "
            f"has them in the variable {VARIABLE}"
        )
    for file in (f"{name}/answer.csv", f"{name}/truth.csv"):
        _check(place / file, file)
    return read_answers(place / name)


def read_answers(folder: Path) -> Answers:
    """Read ``answer.csv`` (a line a question, a column a worker) and ``truth.csv`` of any quiz."""
    workers, answers = _cells(folder / "answer.csv")
    _, truth = _cells(folder / "truth.csv")
    if answers.keys() != truth.keys():
        raise DataError(f"{folder}: answer.csv and truth.csv have different questions")
    right = [[int(option == truth[q][0]) for option in row] for q, row in answers.items()]
    names = tuple(f"worker{i}" for i in range(1, len(workers) + 1))
    return Answers(names, np.array(right, dtype=np.int64))


def _cells(path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the columns, and the cells of each question."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise DataError(f"{path}: no answers in it")
    cells = {row[0]: row[1:] for row in rows[1:]}
    if len(cells) < len(rows) - 1 or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{path}: each question must be there once, with one option in each column")
    return rows[0][1:], cells


def _copy(source: Path, place: Path, file: str) -> None:
    _check(source / file, file)
    try:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        if (source / file).resolve() != (place / file).resolve():
            shutil.copyfile(source / file, place / file)
    except OSError as error:
        raise _unwritable(place, error) from None


def _unwritable(place: Path, error: OSError) -> DataError:
    return DataError(
        f"{place}: answers cannot be kept there ({error.strerror or error}); name another folder "
        "by --to"
    )


def _check(path: Path, file: str) -> None:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    if found not in (HASHES[file], RENAMED.get(file)):
        raise DataError(
            f"{path} is not the file that was published (its hash is another); remove it, and "
            "fetch it again"
        )


def _download(place: Path, file: str) -> None:
    try:
        import pooch
    except ModuleNotFoundError:
        raise SettingError(
            'fetching answers needs pooch: pip install "superarm[study]"; '
            "or copy them from a local folder by --from"
        ) from None
    pooch.get_logger().setLevel("ERROR")  # it would tell of every file on stderr
    try:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(place, error) from None
    brought: Any = pooch.create(path=place, base_url=SOURCE, registry=HASHES, retry_if_failed=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # answers of a failed attempt
            brought.fetch(file)
    except PermissionError as error:
        raise _unwritable(place, error) from None
    except ValueError:  # nothing is left of it
        raise DataError(
            f"{SOURCE}{file} is not the file that was published (its hash is another); copy it "
            "from a local folder by --from"
        ) from None
    except Exception as error:  # whatever the network has to say
        if (response := getattr(error, "response", None)) is not None:
            response.close()
        raise DataError(
            f"{file} cannot be fetched ({type(error).__name__}); check the network, or copy the "
            "files from a local folder by --from"
        ) from None
