"""Do totals differ by site, by worker, or by another label, all else equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from superarm.diagnostics.findings import Draft, Finding, Offset, equals, unknown
from superarm.diagnostics.fit import Fit, Index, Matrix, Vector

_MOST_LABELS = 200
_SURE = 0.95


def offset(fit: Fit, kind: str, labels: Sequence[str]) -> tuple[Draft, tuple[Offset, ...]]:
    """Do totals differ by label, all else equal: F test, and an interval for each label."""
    check = f"offset: {kind}"
    names, place, counts = _pooled(labels)
    if len(names) < 2:
        return unknown(check, f"All pulls have the same {kind}."), ()
    pulls = np.arange(fit.pulls)
    Z = csr_matrix((np.ones(fit.pulls), (pulls, place)), shape=(fit.pulls, len(names)))
    extra = fit.extra(Z)
    df = fit.freedom - extra.rank
    if not extra.rank or df < 1 or fit.squares == 0.0:
        rows = tuple(
            Offset(n, int(c), None, None, None) for n, c in zip(names, counts, strict=True)
        )
        why = "each measured other groups" if not extra.rank else "there are too few pulls"
        return unknown(check, f"Offsets by {kind} cannot be told: {why}."), rows
    rest = max(0.0, fit.squares - extra.squares)
    ratio = math.inf if rest == 0.0 else (extra.squares / extra.rank) / (rest / df)
    p = float(stats.f.sf(ratio, extra.rank, df))
    law = f"F({extra.rank}, {df})"
    rows = _offsets(fit, extra.G, extra.inverse, extra.coefficients, rest / df, df, names, place)
    known = [row for row in rows if row.offset is not None]
    clear = [row for row in known if (row.low or 0.0) > 0 or (row.high or 0.0) < 0] or known
    clear.sort(key=lambda row: -abs(row.offset or 0.0))
    listed = ", ".join(f"{row.label} {row.offset:+.3g}" for row in clear[:5])
    alarm = (
        f"Totals differ by {kind} ({law} = {ratio:.3g}, {equals(p)}): {listed}, against the "
        f"average pull. The certificate knows of no such offsets, so that it need not hold. Find "
        f"out where they come from; when measuring again, let each {kind} measure all groups "
        f"equally often, or one {kind} measure them all."
    )
    calm = f"No sign that totals differ by {kind} ({law} = {ratio:.3g}, {equals(p)})."
    return Draft(Finding(check, ratio, law, p, calm), alarm), rows


def _offsets(
    fit: Fit,
    G: Matrix,
    inverse: Matrix,
    found: Vector,
    variance: float,
    df: int,
    names: list[str],
    place: Index,
) -> tuple[Offset, ...]:
    """Offsets against the average pull; None where they are confounded with the groups."""
    counts = np.bincount(place, minlength=len(names))
    C = np.eye(len(names)) - np.outer(np.ones(len(names)), counts / fit.pulls)
    values, vectors = eigh(G)
    loose = C @ vectors[:, values <= 1e-8 * values[-1]]
    told = np.abs(loose).max(axis=1, initial=0.0) < 1e-4
    o = C @ found
    error = np.sqrt(np.maximum(0.0, variance * np.einsum("ij,jk,ik->i", C, inverse, C)))
    half = float(stats.t.isf((1 - _SURE) / 2 / len(names), df)) * error
    return tuple(
        Offset(name, int(c), float(x), float(x - h), float(x + h))
        if known
        else Offset(name, int(c), None, None, None)
        for name, c, x, h, known in zip(names, counts, o, half, told, strict=True)
    )


def _pooled(labels: Sequence[str]) -> tuple[list[str], Index, Index]:
    """Return the different labels, which of them each pull has, and how often; rare ones as one."""
    names, place, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if len(names) <= _MOST_LABELS:
        return [str(name) for name in names], place, counts
    often = np.sort(np.argsort(-counts, kind="stable")[: _MOST_LABELS - 1])
    new = np.full(len(names), len(often))
    new[often] = np.arange(len(often))
    others = f"({len(names) - len(often):,} others)"
    return [*map(str, names[often]), others], new[place], np.bincount(new[place])
