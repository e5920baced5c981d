"""Matrices of users: read, checked, and refused with one clear error."""

from __future__ import annotations

import csv
import tokenize
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superarm._checks import LARGEST, whole
from superarm.errors import DataError, ProblemError

Matrix = NDArray[np.float64]

ASYMMETRY = 1e-8
"""How far two mirrored entries may differ, as a share of the greatest entry (rounding)."""


_NOT_A_MATRIX = (
    ValueError,
    OverflowError,
    EOFError,
    csv.Error,
    tokenize.TokenError,  # a damaged header of a .npy file
    zipfile.BadZipFile,  # a .npy file that begins like a .npz file
)


def check_matrix(W: Any, k: int) -> tuple[Matrix, int]:
    """Return W as a symmetric float matrix and k as an int, or raise ProblemError."""
    matrix = _real(W)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ProblemError(f"the matrix must be square, not of shape {matrix.shape}")
    if not (np.abs(matrix) <= LARGEST).all():
        bad = np.argwhere(~(np.abs(matrix) <= LARGEST))[0]
        raise ProblemError(
            f"the matrix must hold finite numbers, at most {LARGEST:g} in size; "
            f"row {bad[0] + 1}, column {bad[1] + 1} is {float(matrix[tuple(bad)])!r}"
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


def _real(W: Any) -> Matrix:
    """Return an array of floats; text, dates, complex and masked numbers are not taken for such."""
    try:
        given = np.array(W)
        if given.dtype.kind in "biufO" and not np.ma.is_masked(W):
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
                return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ProblemError("the matrix must hold real numbers, in rows of equal length")


def read_matrix(path: str | Path) -> Matrix:
    """Read a matrix from a .npy file, or from a CSV of numbers without a header."""
    try:
        if str(path).lower().endswith(".npy"):
            with open(path, "rb") as stored:
                return np.asarray(np.load(stored, allow_pickle=False))
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            lines = [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except MemoryError:
        raise DataError(f"{path}: larger than the memory") from None
    except _NOT_A_MATRIX as error:
        raise DataError(f"{path}: not a matrix ({error})") from None
    return _numbers(lines, path)


def _numbers(lines: list[tuple[int, list[str]]], path: str | Path) -> Matrix:
    if not lines:
        raise DataError(f"{path}: no numbers in it")
    first, width = lines[0][0], len(lines[0][1])
    values = []
    for line, row in lines:
        if len(row) != width:
            found = f"{len(row)} cells, where line {first} has {width}"
            raise DataError(f"{path}, line {line}: {found}")
        values.append([_number(cell, f"{path}, line {line}") for cell in row])
    return np.array(values)


def _number(cell: str, where: str) -> float:
    try:
        if "_" not in cell:
            return float(cell)
    except ValueError:
        pass
    raise DataError(f"{where}: {cell[:40]!r} is not a number (the file must have no header)")
