"""Cyclic plans: all n shifts of a few base blocks, one block after the other.

Blocks are sets of places 0 .. m-1, and an arm stands at each place: mostly m = n, the arms in any
order. Super-arm l m + s is block l with every place moved on by s (mod m), and a filler that is in
every super-arm. Nothing of size n k is ever kept: with the transforms F B_l of the blocks'
indicators, totals of all super-arms and sums over them are circular correlations and convolutions,
O(L m log m).
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
        A row of places for each block.
    arms
        The arm at each place; all n in their order, if not given.
    filler
        Arms that are in every super-arm, at none of the places.
    details
        What else a reader of the result has to know of the design, as plain data.
    """

    k: int

    def __init__(
        self,
        blocks: Index,
        n: int,
        *,
        arms: Index | None = None,
        filler: Index | None = None,
        source: str = "given",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.blocks = np.ascontiguousarray(blocks, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        self.arms = np.arange(n) if arms is None else np.asarray(arms, dtype=np.int64)
        self.filler = none if filler is None else np.asarray(filler, dtype=np.int64)
        self.n, self.places = n, len(self.arms)
        self.k = self.blocks.shape[1] + len(self.filler)
        self.source, self.details = source, dict(details or {})

    @property
    def size(self) -> int:
        return len(self.blocks) * self.places

    @property
    def rank(self) -> int:
        """One number for each place; the filler's constant is among what they span."""
        return self.places

    @property
    def cycle(self) -> int:
        return self.size

    @cached_property
    def spanning(self) -> int:
        """So many whole blocks as tell all arms apart."""
        powers = np.cumsum(self.powers, axis=0)
        told = powers[:, 1:].min(axis=1) > TOLD * powers[:, 1:].mean(axis=1)
        return self.places * (int(np.argmax(told)) + 1 if told.any() else len(self.blocks))

    @cached_property
    def transforms(self) -> Transforms:
        """Return F B_l at frequencies 0 .. m//2, a row a block."""
        indicators = np.zeros((len(self.blocks), self.places))
        np.put_along_axis(indicators, self.blocks, 1.0, axis=1)
        return rfft(indicators)

    @cached_property
    def powers(self) -> Vector:
        """|F B_l|^2: eigenvalues of the information of all shifts of block l."""
        return self.transforms.real**2 + self.transforms.imag**2

    def members(self, index: int | slice | Index) -> Index:
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.size))
        block, shift = np.divmod(index, self.places)
        moved = self.arms[(self.blocks[block] + np.expand_dims(shift, -1)) % self.places]
        filler = np.broadcast_to(self.filler, (*moved.shape[:-1], len(self.filler)))
        return np.sort(np.concatenate([moved, filler], axis=-1), axis=-1)

    def order(self, start: int, stop: int) -> Index:
        return np.arange(start, stop, dtype=np.int64) % self.size

    def counts(self, t: int) -> Index:
        whole, rest = divmod(t, self.size)
        counts = np.full(self.size, whole, dtype=np.int64)
        counts[:rest] += 1
        return counts

    def gather(self, means: Vector) -> Vector:
        """Return the sum of the members' means for every super-arm (by correlation)."""
        totals = irfft(self.transforms.conj() * rfft(means[self.arms]), self.places)
        return np.asarray(totals).ravel() + means[self.filler].sum()

    def scatter(self, sums: Vector) -> Transforms:
        """Return F(X'y), the transform of each place's sum over the super-arms that it is in."""
        waves = rfft(sums.reshape(len(self.blocks), self.places))
        waves *= self.transforms
        return waves.sum(axis=0)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the blocks and the arms at their places."""
        parts = (self.blocks, self.arms, self.filler)
        content = b"".join(part.astype("<i8").tobytes() for part in parts)
        return sha256(f"cyclic {self.n}".encode() + content).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "cyclic",
            "source": self.source,
            "support": self.size,
            "blocks": len(self.blocks),
            "digest": self.digest,
            **self.details,
        }
