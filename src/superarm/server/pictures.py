"""Pictures of a campaign as SVG: plain text from numbers, styled by the dashboard's one sheet.

No picture says anything by colour alone, and each has its numbers in words beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from superarm.campaign import LookTaken

MOST_POINTS = 160
"""A curve is thinned to so many points: more are not seen."""

FARTHEST = 4
"""The forecast is drawn up to so many times the pulls so far."""


@dataclass(frozen=True)
class Frame:
    """Where numbers come to lie on a picture of so many units."""

    width: int
    height: int
    most_x: float
    least_y: float
    most_y: float
    left: int = 46
    right: int = 14
    top: int = 16
    bottom: int = 38

    def x(self, value: float) -> float:
        """Return the place of a number of pulls."""
        room = self.width - self.left - self.right
        return round(self.left + room * value / self.most_x, 1)

    def y(self, value: float) -> float:
        """Return the place of a difference of totals; what lies far outside is kept near."""
        room = self.height - self.top - self.bottom
        share = (value - self.least_y) / (self.most_y - self.least_y)
        return round(self.top + room * (1 - min(3.0, max(-3.0, share))), 1)


@dataclass(frozen=True)
class Point:
    """One look: after how many results, how far ahead the answer is, how far that may be off."""

    pulls: int
    ahead: float
    radius: float


def thinned(looks: Sequence[LookTaken], most: int = MOST_POINTS) -> list[Point]:
    """Return at most so many looks, the first and the last among them, at even steps."""
    there = [
        Point(one.pulls, one.gap + one.epsilon, one.radius)
        for one in looks
        if one.gap is not None and one.radius is not None
    ]
    if len(there) <= most:
        return there
    step = (len(there) - 1) / (most - 1)
    return [there[round(i * step)] for i in range(most)]


def margin(
    looks: Sequence[Point], forecast: int | None, *, width: int = 720, name: str = "margin"
) -> Markup:
    """Draw the radius and how far the answer is ahead, over looks: where they meet, it is certain.

    Parameters
    ----------
    looks
        Of the phase that is shown, thinned.
    forecast
        Pulls still expected, drawn dotted; None draws none.
    width
        In units that become pixels; there is one picture for wide screens and one for phones.
    name
        Tells the parts of two pictures on one page apart.
    """
    last = looks[-1]
    height = 250 if width < 500 else 280
    frame = _frame(looks, forecast, width, height)
    radius = [(frame.x(one.pulls), frame.y(one.radius)) for one in looks]
    ahead = [(frame.x(one.pulls), frame.y(one.ahead)) for one in looks]
    inside = (
        f'<rect x="{frame.left}" y="{frame.top}" width="{width - frame.left - frame.right}" '
        f'height="{height - frame.top - frame.bottom}"/>'
    )
    parts = [
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">Margin to certainty over looks</title>',
        f'<desc id="{name}-d">{escape(in_words(last))}</desc>',
        f'<clipPath id="{name}-c">{inside}</clipPath>',
        _axes(frame),
        f'<g clip-path="url(#{name}-c)">',
        f'<path class="between" d="{_path(radius + ahead[::-1])}Z"/>',
        _later(frame, last, forecast),
        _curve("ahead", ahead),
        _curve("radius", radius),
        f'<line class="cursor" x1="0" x2="0" y1="{frame.top}" y2="{height - frame.bottom}" '
        'visibility="hidden"/>',
        "</g>",
        _dots(frame, "ahead", ahead),
        _dots(frame, "radius", radius),
        "</svg>",
    ]
    return Markup("".join(str(part) for part in parts))


def in_words(look: Point) -> str:
    """Say what the picture's last point says."""
    ahead = look.ahead
    end = (
        "the stop is reached." if look.radius <= ahead else f"{look.radius - ahead:.4g} is missing."
    )
    return (
        f"After {look.pulls:,} results the estimate may be off by {look.radius:.4g}; the answer is "
        f"ahead, with epsilon, by {ahead:.4g}: {end}"
    )


def interval(
    low: float, high: float, estimate: float, ends: tuple[float, float], cut: float, state: str
) -> Markup:
    """Draw one arm's interval on the scale that all arms of a table share."""
    least, most = ends
    room = (most - least) or 1.0

    def x(value: float) -> str:
        return f"{100 * min(1.0, max(0.0, (value - least) / room)):.1f}"

    return Markup(
        f'<svg class="interval {escape(state)}" viewBox="0 0 100 10" preserveAspectRatio="none" '
        'aria-hidden="true">'
        f'<line class="cut" x1="{x(cut)}" x2="{x(cut)}" y1="0" y2="10"/>'
        f'<line class="span" x1="{x(low)}" x2="{x(high)}" y1="5" y2="5"/>'
        f'<line class="at" x1="{x(estimate)}" x2="{x(estimate)}" y1="2" y2="8"/></svg>'
    )


def ticks(least: float, most: float, number: int) -> list[float]:
    """Return about so many round numbers between two."""
    room = most - least
    if not (room > 0 and math.isfinite(room)):
        return [least]
    rough = room / number
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * f for f in (1, 2, 2.5, 5, 10) if size * f >= rough * 0.999)
    first = math.ceil(least / step - 1e-9)
    return [i * step for i in range(first, math.floor(most / step + 1e-9) + 1)]


def _frame(looks: Sequence[Point], forecast: int | None, width: int, height: int) -> Frame:
    last = looks[-1]
    end = min(last.pulls + (forecast or 0), FARTHEST * last.pulls)
    ahead = [one.ahead for one in looks if one.pulls >= 0.1 * end] or [last.ahead]
    # The first radii are huge: the picture is about the later ones.
    seen = [one.radius for one in looks if one.pulls >= 0.15 * end] or [last.radius]
    most = 1.15 * max([*seen, *ahead, 1e-12])
    return Frame(width, height, max(1.0, float(end)), max(min(0.0, *ahead, 0.0), -most), most)


def _axes(frame: Frame) -> str:
    floor = frame.height - frame.bottom
    right = frame.width - frame.right
    lines = []
    for value in ticks(frame.least_y, frame.most_y, 4):
        y = frame.y(value)
        lines.append(f'<path class="tick" d="M{frame.left} {y}H{right}"/>')
        lines.append(f'<text class="end" x="{frame.left - 6}" y="{y + 4}">{value:.4g}</text>')
    for value in ticks(0, frame.most_x, 3 if frame.width < 500 else 6):
        place = "end" if frame.x(value) > right - 12 else "mid"
        text = f'<text class="{place}" x="{frame.x(value)}" y="{floor + 16}">{value:,.0f}</text>'
        lines.append(text)
    lines.append(f'<text class="end" x="{right}" y="{frame.height - 5}">results</text>')
    return "".join(lines)


def _later(frame: Frame, last: Point, forecast: int | None) -> str:
    """Draw how it goes on if the estimates stay: the radius falls as one over the root."""
    if not forecast:
        return ""
    steps = [last.pulls + (frame.most_x - last.pulls) * i / 24 for i in range(25)]
    falling = [(frame.x(t), frame.y(last.radius * math.sqrt(last.pulls / t))) for t in steps]
    flat = [(frame.x(t), frame.y(last.ahead)) for t in (last.pulls, frame.most_x)]
    return _curve("radius later", falling) + _curve("ahead later", flat)


def _dots(frame: Frame, kind: str, points: Sequence[tuple[float, float]]) -> str:
    """Draw a mark at each look, where they are few; else at the last."""
    few = points if len(points) <= frame.width // 20 else points[-1:]
    last = points[-1]
    return "".join(_dot(kind, x, y, (x, y) == last) for x, y in few if y >= frame.top - 2)


def _curve(kind: str, points: Iterable[tuple[float, float]]) -> str:
    return f'<path class="curve {kind}" d="{_path(points)}"/>'


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _dot(kind: str, x: float, y: float, large: bool) -> str:
    size = 5.5 if large else 3.5
    if kind == "radius":
        return f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="{size}"/>'
    # Another shape, not only another colour.
    around = f"l{size} {size}l-{size} {size}l-{size} -{size}z"
    return f'<path class="dot {kind}" d="M{x} {y - size:g}{around}"/>'


def scale(arms: Sequence[Any]) -> tuple[float, float]:
    """Return the ends of the scale of arms' intervals, without the widest that say nothing."""
    ends = [v for arm in arms for v in (arm.low, arm.high) if v is not None and math.isfinite(v)]
    if not ends:
        return (0.0, 1.0)
    return (min(ends), max(ends))
