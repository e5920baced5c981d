"""How large |chi_M' - chi_M| in A^-1 can be, for size-k sets that differ in d swaps: certified.

With x = chi_M' - chi_M, which has d entries 1 and d entries -1, c = A1/k and t = 1'c/k pulls:

- |x|^2 <= 2d / lambda, lambda the least eigenvalue of A - cc'/t on the complement of 1. For x
  there, x'A^-1 x = sup_y 2x'y - y'Ay <= sup_y 2x'y - y'(A - cc'/t)y, and (A - cc'/t)1 = 0.
- |x|^2 <= 2d (max C_ii - C_min) + 2d(d-1) (C_max - C_min), C = A^-1, min and max over i != j: 2d
  diagonal entries, 2d(d-1) entries within the two halves, 2d^2 between them with sign -.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Differences(NamedTuple):
    """Both bounds in three numbers."""

    least: float
    """lambda"""
    diagonal: float
    """max C_ii - C_min"""
    spread: float
    """C_max - C_min"""

    def scaled(self, factor: float) -> Differences:
        """Return the bounds for `factor` * A."""
        return Differences(self.least * factor, self.diagonal / factor, self.spread / factor)

    def squares(self, levels: int) -> Vector:
        """Return the smaller bound on |x|^2 for d = 1 .. levels swaps."""
        d = np.arange(1, levels + 1, dtype=np.float64)
        return (
            2
            * d
            * np.minimum(
                1 / self.least if self.least > 0 else np.inf, self.diagonal + (d - 1) * self.spread
            )
        )


def differences_of(
    matrix: NDArray[np.float64], inverse: NDArray[np.float64], k: int
) -> Differences:
    """Return the bounds of a matrix A that is written out, without a margin for rounding."""
    n = len(matrix)
    c = matrix.sum(axis=1) / k
    rest = matrix - np.outer(c, c) * (k / c.sum())
    rest += np.trace(rest) / n  # puts the eigenvalue of 1, 0 till now, among the greatest
    least = float(np.linalg.eigvalsh(rest)[0])
    off = inverse[~np.eye(n, dtype=np.bool_)]
    return Differences(
        least, float(inverse.diagonal().max() - off.min()), float(off.max() - off.min())
    )
