r"""Confidence radii of the paper: Proposition 1 (ellipsoid) and Lemma 1 (independent).

Both have the form C_t = scale * sqrt(slope * log t + offset). With slope = 2 they hold for all
rounds t at once, so that any schedule of looks is covered.

With ``constants="corrected"`` a look at t may err with probability delta_t = 6 delta/(pi^2 t^2),
which sums to delta, shared by N one-sided events: scale = sqrt(2) sigma,
offset = log(pi^2 N / (6 delta)). Where only J looks are planned, each may err with probability
delta/J instead: slope = 0, offset = log(J N / delta).

- *ellipsoid*: N = K. For a rule that compares bounds of single super-arms (SAQM), the lower side
  for each M other than M*, the upper side for M* alone. For a rule that compares differences with
  M* (Exhaustive), one side for each of K - 1 differences.
- *independent*: N = n. One side for each arm: upper inside M*, lower outside.

With ``constants="paper"`` they are as printed: c = 2 sqrt(2) sigma and c' = 6/pi^2 in
Proposition 1 (valid, though wide), scale = sqrt(2) sigma and c' = 6/pi^2 in Lemma 1, which then
does not hold at level delta: its shares add up to (pi^2/6)^2 delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Constants = Literal["corrected", "paper"]

_SUM_OF_SQUARES = math.pi**2 / 6  # sum over t >= 1 of 1/t^2


@dataclass(frozen=True)
class Radius:
    """C_t = scale * sqrt(slope log t + offset), and which statement it comes from."""

    scale: float
    offset: float
    name: str
    slope: float = 2.0

    def at(self, t: float, look: int = 0) -> float:
        """Return C_t (the same, whatever the number of the look)."""
        return self.scale * math.sqrt(max(0.0, self.slope * math.log(t) + self.offset))

    at_look = at
    """What a look reckons with."""

    typical = at
    """One number that shows how C_t grows."""


def ellipsoid(
    sigma: float, log_size: float, delta: float, constants: Constants, looks: int | None = None
) -> Radius:
    """Proposition 1: |x'(theta - theta^_t)| <= C_t |x|_{A_t^-1} for K fixed directions x.

    `looks` is the number of planned looks, None for any number of them.
    """
    name = "ellipsoid (Proposition 1)"
    if constants == "paper":
        offset = math.log(1 / _SUM_OF_SQUARES) + log_size - math.log(delta)
        return Radius(2 * math.sqrt(2) * sigma, offset, _as_printed(name))
    return _shared(math.sqrt(2) * sigma, log_size - math.log(delta), name, looks)


def independent(
    sigma: float, n: int, delta: float, constants: Constants, looks: int | None = None
) -> Radius:
    """Lemma 1: |x'(theta - theta^_t)| <= C_t sum |x_i| sqrt(A_t^-1(i, i)), x in {-1, 0, 1}^n."""
    name = "independent (Lemma 1)"
    if constants == "paper":
        offset = math.log(n / _SUM_OF_SQUARES) - math.log(delta)
        return Radius(math.sqrt(2) * sigma, offset, _as_printed(name))
    return _shared(math.sqrt(2) * sigma, math.log(n) - math.log(delta), name, looks)


def _shared(scale: float, log_events: float, name: str, looks: int | None) -> Radius:
    """Share delta among looks: by 6/(pi^2 t^2), or equally among those that are planned."""
    if looks is None:
        return Radius(scale, math.log(_SUM_OF_SQUARES) + log_events, name)
    return Radius(scale, math.log(looks) + log_events, name, slope=0.0)


def _as_printed(name: str) -> str:
    return f"{name[:-1]}, as printed)"
