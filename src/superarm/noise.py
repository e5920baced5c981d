"""Noise models: what the user knows of the noise of one total, and so its sigma.

sigma is the sub-Gaussian scale of the total of k arms:
E exp(s (total - mean)) <= exp(s^2 sigma^2 / 2) for all s. A total within an interval of length h
has sigma <= h/2 (Hoeffding); sums of independent parts add their squares. Nothing weaker than what
the user states is assumed: independence is a statement.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from superarm._checks import bounded_real, flag, shown
from superarm.errors import NoiseError, TotalError


class Noise(ABC):
    """What is known of the noise of a total."""

    @property
    def known(self) -> bool:
        """Whether sigma is a number before anything is measured."""
        return True

    @abstractmethod
    def sigma(self, k: int) -> float:
        """Sub-Gaussian scale of the total of `k` arms."""

    @abstractmethod
    def paper_sigma(self, k: int) -> float:
        """The scale that the paper would use: kR, R bounding one arm's noise (Section 4)."""

    @abstractmethod
    def range(self, k: int) -> tuple[float, float]:
        """Least and greatest possible total of `k` arms."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the text that `parse_noise` reads."""

    def check_total(self, total: float, k: int, least: int | None = None) -> None:
        """Raise TotalError for a total that cannot be, of `k` arms or of any from `least` to k."""
        bounded_real("a total", total, TotalError)
        ends = [self.range(size) for size in {k, k if least is None else least}]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        rounding = 4 * k * sys.float_info.epsilon * max(abs(low), abs(high))
        if math.isfinite(rounding) and not low - rounding <= total <= high + rounding:
            raise TotalError(
                f"total {total:.15g} is outside {low:g} .. {high:g}, the range of noise "
                f"model {self}; check the entry, or state a noise model that allows it"
            )


@dataclass(frozen=True)
class Gaussian(Noise):
    """The total is its mean plus a normal error of standard deviation `scale` (None: unknown)."""

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            object.__setattr__(self, "scale", _positive("sigma", self.scale))

    @property
    def known(self) -> bool:
        return self.scale is not None

    def sigma(self, k: int) -> float:
        if self.scale is None:
            raise NoiseError(
                "noise gaussian leaves sigma to be estimated from totals, and there are none here: "
                "state it, as gaussian:1.0"
            )
        return self.scale

    def paper_sigma(self, k: int) -> float:
        return self.sigma(k)

    def range(self, k: int) -> tuple[float, float]:
        return (-math.inf, math.inf)

    def __str__(self) -> str:
        return "gaussian" if self.scale is None else f"gaussian:{self.scale!r}"


@dataclass(frozen=True)
class Bounded(Noise):
    """Each arm's reward lies in [-R, R]; the arms of one pull may depend on each other, or not."""

    bound: float
    independent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", _positive("R", self.bound))
        flag("noise: independent", self.independent, NoiseError)

    def sigma(self, k: int) -> float:
        return self.bound * (math.sqrt(k) if self.independent else k)

    def paper_sigma(self, k: int) -> float:
        return self.bound * k

    def range(self, k: int) -> tuple[float, float]:
        return (-k * self.bound, k * self.bound)

    def __str__(self) -> str:
        return f"bounded:{self.bound!r}" + (":independent" if self.independent else "")


@dataclass(frozen=True)
class Labels(Noise):
    """Each arm gives 0 or 1: independent of each other, or all answering one shared question."""

    shared: bool = False

    def __post_init__(self) -> None:
        flag("noise: shared", self.shared, NoiseError)

    def sigma(self, k: int) -> float:
        return (k if self.shared else math.sqrt(k)) / 2

    def paper_sigma(self, k: int) -> float:
        return float(k)  # R = 1: a label is at most 1 away from its mean

    def range(self, k: int) -> tuple[float, float]:
        return (0.0, float(k))

    def check_total(self, total: float, k: int, least: int | None = None) -> None:
        super().check_total(total, k, least)
        if total != int(total):
            raise TotalError(f"a total of 0/1 labels must be a whole number, not {total!r}")

    def __str__(self) -> str:
        return "shared-labels" if self.shared else "labels"


@dataclass(frozen=True)
class Total(Noise):
    """The total itself lies in [low, high]; nothing is known of its parts."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            value = bounded_real("an end of a total's range", getattr(self, end), NoiseError)
            object.__setattr__(self, end, value)
        if self.low >= self.high:
            raise NoiseError(
                f"a total's range needs two numbers, the lower first, not "
                f"{self.low!r} and {self.high!r}"
            )

    def sigma(self, k: int) -> float:
        return (self.high - self.low) / 2

    def paper_sigma(self, k: int) -> float:
        return self.sigma(k)

    def range(self, k: int) -> tuple[float, float]:
        return (self.low, self.high)

    def __str__(self) -> str:
        return f"total:{self.low!r}:{self.high!r}"


def gaussian(sigma: float | None = None) -> Gaussian:
    """Normal noise of standard deviation `sigma` on the total (the paper's N(0, 1): sigma = 1).

    Without a number sigma is the same for all totals, but not known: each look bounds it from
    above by the residuals, for a tenth of delta.
    """
    return Gaussian(sigma)


def bounded(R: float, *, independent: bool = False) -> Bounded:
    """Arms in [-R, R]: sigma = kR, or sqrt(k) R when the arms of a pull are independent."""
    return Bounded(R, independent)


def labels(*, shared: bool = False) -> Labels:
    """Arms that give 0 or 1: sigma = sqrt(k)/2, or k/2 when all get the same question."""
    return Labels(shared)


def total(low: float, high: float) -> Total:
    """Totals in [low, high], however they come about: sigma = (high - low)/2."""
    return Total(low, high)


_FORMS: dict[str, tuple[tuple[int, ...], Callable[..., Noise]]] = {
    "gaussian": ((0, 1), gaussian),
    "bounded": ((1,), bounded),
    "labels": ((0,), labels),
    "shared-labels": ((0,), lambda: labels(shared=True)),
    "total": ((2,), total),
}


def parse_noise(text: str) -> Noise:
    """Read a noise model: the text of one is that model again.

    ``gaussian[:SIGMA] | bounded:R[:independent] | labels | shared-labels | total:LO:HI``
    """
    name, *parts = str(text).strip().split(":")
    independent = name == "bounded" and parts[1:] == ["independent"]
    if independent:
        parts = parts[:1]
    arities, build = _FORMS.get(name, ((), gaussian))
    if len(parts) not in arities:
        raise NoiseError(
            f"noise {shown(text)} is not one of gaussian, gaussian:SIGMA, bounded:R, "
            "bounded:R:independent, labels, shared-labels, total:LO:HI"
        )
    numbers = [_parse_number(text, part) for part in parts]
    return build(*numbers, independent=True) if independent else build(*numbers)


def _parse_number(noise: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NoiseError(f"noise {shown(noise)}: {shown(text)} is not a number") from None


def _positive(what: str, value: float) -> float:
    number = bounded_real(f"noise: {what}", value, NoiseError)
    if number <= 0:
        raise NoiseError(f"noise needs {what} > 0, not {number!r}")
    return number
