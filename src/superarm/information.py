"""The information matrix A of a look, behind the questions that are asked of it.

Two structures answer them: `Dense` (in `estimate`), a matrix written out, and `Circulant`, by FFT.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from superarm.differences import Differences
from superarm.plan import Plan
from superarm.tally import Tally

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

LEAST_RECIPROCAL_CONDITION = 1e-9
"""Below this, rounding could reach the estimate: the look counts as one without information."""


@dataclass(frozen=True)
class Estimate:
    """theta^ = level + centred, and how far rounding may have moved an entry of it."""

    level: float
    centred: Vector
    rounding: float

    @property
    def means(self) -> Vector:
        """Return theta^."""
        return self.level + self.centred


class Information(ABC):
    """A, or `scale` times a matrix that others share: A of whole cycles costs nothing new."""

    n: int
    scale: float

    @property
    @abstractmethod
    def reciprocal_condition(self) -> float:
        """An estimate of 1 / (|A| |A^-1|)."""

    @property
    @abstractmethod
    def relative_error(self) -> float:
        """How far rounding may move A^-1 and what is solved with it, as a share."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the information `factor` * A, at no cost."""

    @abstractmethod
    def solve(self, b: Vector) -> Vector:
        """A^-1 b."""

    @abstractmethod
    def diagonal(self) -> Vector:
        """Diagonal of A^-1."""

    @abstractmethod
    def inverse(self) -> Matrix:
        """A^-1 itself, for the quadratic maximisation, which needs all of it."""

    @abstractmethod
    def homogeneous(self, compute: Callable[[Matrix], Any], key: Any) -> Any:
        """Return `compute`(W) for W the inverse of the unscaled A, computed once a `key`."""

    @abstractmethod
    def differences(self, k: int) -> Differences:
        """Return what bounds |chi_M' - chi_M| in A^-1 for all pairs of size-k sets."""

    @abstractmethod
    def estimate(self, plan: Plan, tally: Tally) -> Estimate:
        """Return theta^ from a tally of which A is the information."""

    @property
    def usable(self) -> bool:
        """Whether A can be inverted without rounding reaching the result."""
        return self.reciprocal_condition >= LEAST_RECIPROCAL_CONDITION

    def norm(self, x: Vector) -> float:
        """|x| in A^-1: sqrt(x' A^-1 x)."""
        return math.sqrt(max(0.0, float(x @ self.solve(x))))
