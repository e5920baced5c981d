"""All checks on the totals of one measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from superarm._checks import bounded_real, real
from superarm.decision import span_basis
from superarm.diagnostics import checks, spread
from superarm.diagnostics.findings import Diagnostics, Draft, Offset, decide
from superarm.diagnostics.fit import Fit, Vector
from superarm.diagnostics.offsets import offset
from superarm.errors import SettingError
from superarm.measured import Group, Measured, read_measured
from superarm.noise import Labels
from superarm.problem import Problem

LEVEL = 0.01
"""How often clean data may raise a warning, if nothing else is said."""

_LEAST_VARIANCE = 0.1  # of labels, as a share of that of fair coins


def diagnose(
    problem: Problem,
    pulls: Sequence[Group],
    totals: Sequence[float | None],
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    times: Sequence[float] | None = None,
    level: float = LEVEL,
    places: Sequence[str] | None = None,
) -> Diagnostics:
    """Check whether totals are sums, the noise as stated, and all else the same from first to last.

    The checks are explained one by one in the documentation. None of them changes an answer or a
    certificate.

    Parameters
    ----------
    pulls
        The group of each pull, by names or by indices, in the order in which they were measured.
    totals
        The total of each; None where one is missing.
    labels
        By kind, such as "site" or "worker", the label of each pull.
    times
        When each was measured, as a number; if not given, its place in the order.
    level
        How often clean data may raise any warning.
    places
        What a warning calls each pull; "pull 1", "pull 2" and so on, if not given.
    """
    measured = read_measured(problem, pulls, totals, places)
    return examine(problem, measured, labels=labels, times=times, level=level)


def examine(
    problem: Problem,
    measured: Measured,
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    times: Sequence[float] | None = None,
    level: float = LEVEL,
) -> Diagnostics:
    """Check pulls and totals that have been read; see `diagnose`."""
    level = real("the level", level, SettingError)
    if not 0 < level < 1:
        raise SettingError(f"the level must lie strictly between 0 and 1, not {level!r}")
    kinds = {} if labels is None else dict(labels)
    given = len(measured.there) + measured.missing
    for kind, values in kinds.items():
        _check_length(f"labels of kind {kind!r}", values, given)
    if times is not None:
        _check_length("times", times, given)
    there = measured.there
    moments = (
        np.arange(len(there), dtype=np.float64)
        if times is None
        else np.array([bounded_real("a time", times[i], SettingError) for i in there])
    )
    fit = _fit(problem, measured)

    def group_name(row: int) -> str:
        names = problem.names(fit.rows[row])
        return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:10])} and others"

    order = np.argsort(moments, kind="stable")
    outlying, family = checks.outliers(fit, problem.noise, measured.places)
    told = spread.independence(fit) if problem.noise == Labels() else None
    drafts: list[Draft] = [
        checks.additive(fit, group_name),
        checks.curvature(fit, problem.noise),
        told or spread.scale(fit, problem.noise),
        outlying,
        checks.trend(fit, problem.noise, moments),
        checks.change(fit, order, measured.places),
    ]
    offsets: dict[str, tuple[Offset, ...]] = {}
    for kind, values in kinds.items():
        draft, offsets[kind] = offset(fit, kind, [str(values[i]) for i in there])
        drafts.append(draft)
    findings = decide(drafts, level)
    series = _series(fit, measured, moments, order, family <= level)
    return Diagnostics(findings, level, fit.pulls, len(fit.rows), offsets, series)


def _fit(problem: Problem, measured: Measured) -> Fit:
    """Least squares; for labels of independent arms weighted by what their means say of the noise.

    The variance of a total of labels is the sum of p (1 - p) over its members.
    """
    numbers: dict[tuple[int, ...], int] = {}
    group = np.array(
        [numbers.setdefault(tuple(sorted(row)), len(numbers)) for row in measured.rows],
        dtype=np.int64,
    )
    rows = np.full((len(numbers), max(map(len, numbers))), -1, dtype=np.int64)
    for r, members in enumerate(numbers):
        rows[r, : len(members)] = members
    spanned = None
    if not problem.topk:
        basis = span_basis(problem.decision, np.random.default_rng(0))
        spanned = None if basis is None else basis.shape[1]
    fit = Fit(rows, group, measured.totals, problem.n, spanned=spanned)
    if problem.noise != Labels() or fit.squares == 0.0:
        return fit
    p = np.clip(fit.theta, 0.0, 1.0)
    variance = np.maximum(fit.X @ (p * (1 - p)), _LEAST_VARIANCE * fit.sizes / 4)
    return Fit(rows, group, measured.totals, problem.n, 1 / variance, spanned)


def _series(
    fit: Fit, measured: Measured, moments: Vector, order: Any, outlying: Any
) -> dict[str, Any]:
    """Columns with a cell for each pull, in the order of measuring."""
    standardised = fit.standardised[order]
    sums = np.cumsum(fit.pull_weights[order] * fit.residuals[order])
    whole = np.sqrt(float((fit.pull_weights**2 * fit.residuals**2).sum()))
    return {
        "pull": [measured.places[i] for i in order],
        "position": np.arange(1, fit.pulls + 1),
        "time": moments[order],
        "total": fit.totals[order],
        "fitted": fit.fitted[fit.group][order],
        "residual": standardised,
        "cusum": sums / whole if whole > 0 else sums,
        "outlier": outlying[order],
    }


def _check_length(what: str, values: Any, pulls: int) -> None:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray):
        raise SettingError(f"{what} must be a list, one for each pull, not {values!r}")
    if len(values) != pulls:
        raise SettingError(f"{pulls} pulls need as many {what}, not {len(values)}")
