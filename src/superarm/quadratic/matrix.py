"""Matrices of users: read, checked, and refused with one clear error."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm._checks import LARGEST, whole
from superarm.errors import DataError, ProblemError

Matrix = NDArray[np.float64]

ASYMMETRY = 1e-8
"""How far two mirrored entries may differ, as a share of the greatest entry (rounding)."""


def check_matrix(W: Any, k: int) -> tuple[Matrix, int]:
    """Return W as a symmetric float matrix and k as an int, or raise ProblemError."""
    try:
        matrix = np.array(W, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError("the matrix must hold numbers, in rows of equal length") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ProblemError(f"the matrix must be square, not of shape {matrix.shape}")
    if not (np.abs(matrix) <= LARGEST).all():
        bad = np.argwhere(~(np.abs(matrix) <= LARGEST))[0]
        raise ProblemError(
            f"the matrix must hold finite numbers, at most {LARGEST:g} in size; "
            f"row {bad[0] + 1}, column {bad[1] + 1} is {matrix[tuple(bad)]!r}"
        )
    apart = np.abs(matrix - matrix.T)
    if apart.max() > ASYMMETRY * np.abs(matrix).max():
        i, j = np.unravel_index(np.argmax(apart), apart.shape)
        raise ProblemError(
            f"the matrix must be symmetric; row {i + 1}, column {j + 1} is {matrix[i, j]:.15g}, "
            f"mirrored {matrix[j, i]:.15g}"
        )
    size = whole("k", k, ProblemError)
    if not 1 <= size <= len(matrix):
        raise ProblemError(f"k must be between 1 and the matrix's size {len(matrix)}, not {size}")
    return np.ascontiguousarray((matrix + matrix.T) / 2), size


def check_positive(W: Matrix) -> None:
    """Raise ProblemError unless W is positive semi-definite, up to rounding."""
    values = np.linalg.eigvalsh(W)
    if values[0] < -1e-9 * max(abs(float(values[0])), abs(float(values[-1]))):
        raise ProblemError(
            f"the matrix must be positive semi-definite here; its least eigenvalue is {values[0]:g}"
        )


def read_matrix(path: str | Path) -> Matrix:
    """Read a matrix from a .npy file, or from a CSV of numbers without a header."""
    try:
        if str(path).lower().endswith(".npy"):
            return np.asarray(np.load(path, allow_pickle=False))
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            lines = [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, csv.Error) as error:
        raise DataError(f"{path}: not a matrix ({error})") from None
    return _numbers(lines, path)


def _numbers(lines: list[tuple[int, list[str]]], path: str | Path) -> Matrix:
    if not lines:
        raise DataError(f"{path}: no numbers in it")
    width = len(lines[0][1])
    values = []
    for line, row in lines:
        if len(row) != width:
            raise DataError(f"{path}, line {line}: {len(row)} cells, where line 1 has {width}")
        try:
            values.append([float(cell) for cell in row])
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from None
    return np.array(values)
