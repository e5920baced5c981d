"""Cyclic plans: all n shifts of a few base blocks, one block after the other.

Super-arm l n + s is block l with every arm moved on by s (mod n). Nothing of size n k is ever kept:
with the transforms F B_l of the blocks' indicators, totals of all super-arms and sums over them are
circular correlations and convolutions, O(L n log n).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from superarm.plan import Index, Plan

Vector = NDArray[np.float64]
Transforms = NDArray[np.complex128]

TOLD = 1e-6
"""Of the mean eigenvalue: blocks with a lower one do not tell the arms apart."""


class CyclicPlan(Plan):
    """All shifts of base blocks, block by block, over and over.

    Parameters
    ----------
    blocks
        A row of arms for each block.
    details
        What else a reader of the result has to know of the design, as plain data.
    """

    k: int

    def __init__(
        self,
        blocks: Index,
        n: int,
        *,
        source: str = "given",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.blocks = np.ascontiguousarray(blocks, dtype=np.int64)
        self.n, self.k = n, self.blocks.shape[1]
        self.source, self.details = source, dict(details or {})

    @property
    def size(self) -> int:
        return len(self.blocks) * self.n

    @property
    def cycle(self) -> int:
        return self.size

    @cached_property
    def spanning(self) -> int:
        """So many whole blocks as tell all arms apart."""
        powers = np.cumsum(self.powers, axis=0)
        told = powers[:, 1:].min(axis=1) > TOLD * powers[:, 1:].mean(axis=1)
        return self.n * (int(np.argmax(told)) + 1 if told.any() else len(self.blocks))

    @cached_property
    def transforms(self) -> Transforms:
        """Return F B_l at frequencies 0 .. n//2, a row a block."""
        indicators = np.zeros((len(self.blocks), self.n))
        np.put_along_axis(indicators, self.blocks, 1.0, axis=1)
        return rfft(indicators)

    @cached_property
    def powers(self) -> Vector:
        """|F B_l|^2: eigenvalues of the information of all shifts of block l."""
        return self.transforms.real**2 + self.transforms.imag**2

    def members(self, index: int | slice | Index) -> Index:
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.size))
        block, shift = np.divmod(index, self.n)
        return np.sort((self.blocks[block] + np.expand_dims(shift, -1)) % self.n, axis=-1)

    def order(self, start: int, stop: int) -> Index:
        return np.arange(start, stop, dtype=np.int64) % self.size

    def counts(self, t: int) -> Index:
        whole, rest = divmod(t, self.size)
        counts = np.full(self.size, whole, dtype=np.int64)
        counts[:rest] += 1
        return counts

    def gather(self, means: Vector) -> Vector:
        """Return the sum of the members' means for every super-arm (by correlation)."""
        totals = irfft(self.transforms.conj() * rfft(means), self.n)
        return np.asarray(totals).ravel()

    def scatter(self, sums: Vector) -> Transforms:
        """Return F(X'y), the transform of each arm's sum over the super-arms that it is in."""
        waves = rfft(sums.reshape(len(self.blocks), self.n))
        waves *= self.transforms
        return waves.sum(axis=0)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the blocks."""
        return sha256(
            f"cyclic {self.n}".encode() + self.blocks.astype("<i8").tobytes()
        ).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "cyclic",
            "source": self.source,
            "support": self.size,
            "blocks": len(self.blocks),
            "digest": self.digest,
            **self.details,
        }
