"""Verdicts: what a look says, in words, JSON and HTML."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_UP, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-9  # below it, 1 - delta would be a row of nines

LAST_LOOK_FAILED = "the last planned look did not reach the stop"


@dataclass(frozen=True)
class Certificate:
    """What is certified: the answer is within `epsilon` of the best with probability 1 - `delta`.

    It holds when the noise is as stated (`noise`, with scale `sigma` of a total, or that bound on
    it; None where it was not stated and nothing was measured), looks were taken
    at the planned numbers of pulls only, and no result was left out or replaced for a reason that
    depends on its total. `seed` repeats what the design left to chance; `conditions` are changes
    of a campaign whose reasons it counts on.
    """

    epsilon: float
    delta: float
    noise: str
    sigma: float | None
    seed: int
    look: int
    pulls: int
    bound: str
    design: Mapping[str, Any]
    conditions: tuple[str, ...] = ()

    @property
    def confidence(self) -> str:
        """1 - delta, written out: never rounded up."""
        return opposite(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "sigma": self.sigma,
            "seed": self.seed,
            "look": self.look,
            "pulls": self.pulls,
            "bound": self.bound,
            "design": dict(self.design),
            "conditions": list(self.conditions),
        }


@dataclass(frozen=True)
class Verdict:
    """The answer so far, and whether it may be trusted.

    Parameters
    ----------
    answer
        Names of the chosen arms, in the problem's order; empty before the first look.
    done
        Whether to stop measuring.
    pulls, look, phase
        The look that it rests on; results that came later are not used in it.
    gap, epsilon, radius
        Both sides of the stop: it is reached when gap + epsilon >= radius. gap is how far the
        answer is estimated to be ahead of its closest rival, radius how far that may be off.
    certificate, reason
        The certificate, or None with the reason.
    forecast
        Pulls still needed, if the estimates stay as they are; None when that cannot be said.
    design
        What was measured, with the size of its support.
    estimates
        Estimated means of all arms, in the problem's order (None before the first look).
    confidence
        With a fixed budget: the greatest 1 - delta with which the answer is within `epsilon` of the
        best. It is seen only afterwards, as a p-value is: whatever x, it exceeds 1 - x while the
        answer is not that good with probability <= x. None where it is not worked out.
    warnings
        What the totals show against the assumptions of a certificate, where they were checked (see
        `diagnose`). A warning changes nothing else here.
    """

    algorithm: str
    answer: tuple[str, ...]
    done: bool
    pulls: int
    look: int
    phase: int
    gap: float
    epsilon: float
    radius: float
    certificate: Certificate | None
    reason: str
    forecast: int | None
    design: Mapping[str, Any] = field(default_factory=dict)
    estimates: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    confidence: float | None = None
    warnings: tuple[str, ...] = ()

    def ended(self, reason: str) -> Verdict:
        """Return this verdict as the last one, uncertified, with the reason."""
        return replace(
            self, done=True, certificate=None, reason=reason, forecast=None, confidence=None
        )

    @property
    def certified(self) -> bool:
        """Whether there is a certificate."""
        return self.certificate is not None

    def __str__(self) -> str:
        return " ".join([self._said(), *(f"Warning: {text}" for text in self.warnings)])

    def _said(self) -> str:
        if not self.answer:
            return f"{'No answer' if self.done else 'No answer yet'}: {self.reason}."
        who = f"{_listed(self.answer)} after {self.pulls:,} pulls (look {self.look:,})"
        sides = f"gap + epsilon {self.gap + self.epsilon:.4g}, radius {self.radius:.4g}"
        if self.certificate is not None:
            c = self.certificate
            reached = c.epsilon if self.confidence is None else digits_up(c.epsilon)
            nearness = "a best group" if c.epsilon == 0 else f"within {reached} of the best"
            spent = ""
            if self.confidence is not None:
                asked = "a best group" if self.epsilon == 0 else f"within {self.epsilon} of it"
                spent = f"; {asked}: {percent_down(self.confidence)} sure"
            return (
                f"Stop: {who}: {nearness} with probability >= {c.confidence} "
                f"({sides}; {c.bound}{spent})."
            )
        if self.done:
            return f"Stop: {who}, not certified: {self.reason} ({sides})."
        more = "" if self.forecast is None else f"; about {self.forecast:,} more pulls expected"
        return f"Measure on: best so far {who}; {sides}{more}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (numbers that are not finite become None)."""
        return {
            "algorithm": self.algorithm,
            "answer": list(self.answer),
            "done": self.done,
            "pulls": self.pulls,
            "look": self.look,
            "phase": self.phase,
            "gap": _finite(self.gap),
            "epsilon": self.epsilon,
            "radius": _finite(self.radius),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "reason": self.reason,
            "forecast": self.forecast,
            "confidence": self.confidence,
            "design": dict(self.design),
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(self.to_dict())

    def _repr_html_(self) -> str:
        rows = {
            "answer": ", ".join(self.answer) or "none yet",
            "state": "stop" if self.done else "measure on",
            "certificate": (
                f"no: {self.reason}"
                if self.certificate is None
                else f"within {digits_up(self.certificate.epsilon)} of the best with probability "
                f"at least {self.certificate.confidence}, by {self.certificate.bound}"
            ),
            "pulls": f"{self.pulls:,} (look {self.look:,} of phase {self.phase})",
            "gap + epsilon": f"{self.gap + self.epsilon:.4g}",
            "radius": f"{self.radius:.4g}",
            "pulls still expected": "unknown" if self.forecast is None else f"{self.forecast:,}",
        }
        rows |= {f"warning {i + 1}": text for i, text in enumerate(self.warnings)}
        cells = "".join(
            f'<tr><th scope="row">{name}</th><td>{html.escape(text)}</td></tr>'
            for name, text in rows.items()
        )
        return f"<table><caption>{html.escape(self.algorithm)}</caption>{cells}</table>"


def _listed(names: tuple[str, ...]) -> str:
    if len(names) <= 12:
        return ", ".join(names)
    return f"{', '.join(names[:10])} and {len(names) - 10} more"


def digits_up(value: float) -> float:
    """Return a number of four digits, never rounded down."""
    if not 0 < value < math.inf:
        return value
    digits = Decimal(repr(value))
    last = Decimal(1).scaleb(digits.adjusted() - 3)
    return float(digits.quantize(last, rounding=ROUND_UP))


def percent_down(share: float) -> str:
    """Return a share as a percentage, never rounded up."""
    return f"{math.floor(share * 1000) / 10:g} %"


def opposite(delta: float) -> str:
    """Return 1 - delta, written out: never rounded up."""
    if delta < _TINY:
        return f"1 - {delta!r}"
    return str((1 - Decimal(repr(delta))).normalize())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
