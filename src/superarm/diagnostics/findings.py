"""What the checks found: one finding each, and all of them together."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOID = "The certificate counts on this, so that it need not hold."


@dataclass(frozen=True)
class Finding:
    """One check: a statistic, its p-value, and what they mean.

    Parameters
    ----------
    check
        Its name: "additive", "curvature", "scale", "outliers", "trend", "change", or "offset: "
        and a kind of label.
    statistic, law
        The statistic, and the law that it has where nothing is amiss.
    p_value
        How often clean data would look as bad; None where these data cannot tell.
    adjusted
        The same for the worst of all checks (Holm): at most `level` means beyond the level.
    sentence
        What was found; and beyond the level, what it means for the certificate and what to do.
    beyond
        Whether it is beyond the level.
    harmless
        Whether a certificate stays true all the same.
    details
        Plain data: how large the effect is, and where.
    """

    check: str
    statistic: float | None
    law: str
    p_value: float | None
    sentence: str
    adjusted: float | None = None
    beyond: bool = False
    harmless: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.check}: {self.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (numbers that are not finite become None)."""
        return {
            "check": self.check,
            "statistic": _finite(self.statistic),
            "law": self.law,
            "p_value": self.p_value,
            "adjusted": self.adjusted,
            "beyond": self.beyond,
            "harmless": self.harmless,
            "sentence": self.sentence,
            "details": dict(self.details),
        }


@dataclass(frozen=True)
class Draft:
    """A finding before it is known whether it is beyond the level: both of its sentences."""

    finding: Finding
    alarm: str = ""

    def decided(self, adjusted: float | None, level: float) -> Finding:
        """Return the finding with the sentence that holds."""
        beyond = adjusted is not None and adjusted <= level
        sentence = self.alarm if beyond else self.finding.sentence
        return replace(self.finding, adjusted=adjusted, beyond=beyond, sentence=sentence)


@dataclass(frozen=True)
class Offset:
    """How much higher the totals of one label are than the average over all pulls, all else equal.

    `low` and `high` are ends of intervals that hold together, for all labels of the kind, with
    probability 95 %. None where the label cannot be told from the groups that it measured.
    """

    label: str
    pulls: int
    offset: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "label": self.label,
            "pulls": self.pulls,
            "offset": self.offset,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True)
class Diagnostics:
    """What totals say about the assumptions of a certificate.

    Parameters
    ----------
    findings
        One for each check.
    level
        How often clean data may raise any warning at all.
    pulls, groups
        How many totals there are, of how many different groups.
    offsets
        By kind of label, a row for each label.
    """

    findings: tuple[Finding, ...]
    level: float
    pulls: int
    groups: int
    offsets: Mapping[str, tuple[Offset, ...]] = field(default_factory=dict)
    series: Mapping[str, Sequence[Any] | NDArray[Any]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __getitem__(self, check: str) -> Finding:
        """Return the finding of a check."""
        for finding in self.findings:
            if finding.check == check:
                return finding
        raise KeyError(check)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the certificate, beyond the level; in words."""
        return tuple(f.sentence for f in self.findings if f.beyond and not f.harmless)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is beyond the level, but does a certificate no harm."""
        return tuple(f.sentence for f in self.findings if f.beyond and f.harmless)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each pull, in the order of measuring, as the pictures take them."""
        columns = {
            name: values.tolist() if isinstance(values, np.ndarray) else list(values)
            for name, values in self.series.items()
        }
        return [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]

    def __str__(self) -> str:
        head = f"{self.pulls:,} totals of {self.groups:,} groups: {_number(len(self.warnings))}."
        marks = ["WARNING: " if f.beyond and not f.harmless else "" for f in self.findings]
        lines = [f"- {mark}{f}" for mark, f in zip(marks, self.findings, strict=True)]
        return "\n".join([head, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the rows of single pulls."""
        return {
            "pulls": self.pulls,
            "groups": self.groups,
            "level": self.level,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "offsets": {
                kind: [offset.to_dict() for offset in offsets]
                for kind, offsets in self.offsets.items()
            },
        }

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(self.to_dict())

    def _repr_html_(self) -> str:
        heads = ("check", "p-value", "warning", "finding")
        lines = [
            (
                finding.check,
                "" if finding.p_value is None else probability(finding.p_value),
                "yes" if finding.beyond and not finding.harmless else "no",
                finding.sentence,
            )
            for finding in self.findings
        ]
        head = "".join(f'<th scope="col">{name}</th>' for name in heads)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>"
            for line in lines
        )
        caption = f"{self.pulls:,} totals of {self.groups:,} groups"
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"


def decide(drafts: Sequence[Draft], level: float) -> tuple[Finding, ...]:
    """Return the findings, with p-values adjusted by Holm for as many checks as could be made."""
    values = {i: d.finding.p_value for i, d in enumerate(drafts) if d.finding.p_value is not None}
    adjusted: dict[int, float] = {}
    greatest = 0.0
    for rank, i in enumerate(sorted(values, key=lambda i: values[i])):
        greatest = max(greatest, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = greatest
    return tuple(draft.decided(adjusted.get(i), level) for i, draft in enumerate(drafts))


def unknown(check: str, sentence: str) -> Draft:
    """Return what is said of a check that these data do not allow."""
    return Draft(Finding(check, None, "", None, sentence))


def probability(p: float) -> str:
    """Return a p-value for a sentence."""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def equals(p: float) -> str:
    """Return "p = 0.03", or "p < 0.0001"."""
    shown = probability(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _number(warnings: int) -> str:
    return {0: "no warning", 1: "1 warning"}.get(warnings, f"{warnings} warnings")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
