"""Pictures: one look for all of them, and the kinds that a researcher expects.

Every function draws on axes that it is given, from plain columns of numbers. Matplotlib comes with
the extra ``superarm[plot]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from superarm.errors import SettingError

COLORS = {
    "icb": "#0b5fa5",
    "saqm": "#c4572b",
    "sa-foa": "#1b7f5c",
    "exhaustive": "#6b4fa1",
}
"""One colour for each algorithm, in every picture."""

MARKERS = {"icb": "s", "saqm": "o", "sa-foa": "^", "exhaustive": "D"}

OTHERS = ("#8c6d1f", "#a83279", "#4d4d4d", "#2b8a9e", "#7f3b08", "#542788")
INK = "#333333"


@contextmanager
def figure(
    columns: int = 1, *, rows: int = 1, size: tuple[float, float] = (6.0, 4.4)
) -> Iterator[Any]:
    """Yield a figure and its axes (a list), in our style; closed afterwards."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SettingError('pictures need matplotlib: pip install "superarm[plot]"') from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style: Any = {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.titlesize": 12,
        "legend.frameon": False,
        "pdf.fonttype": 42,
    }
    with plt.rc_context(style):
        drawn, axes = plt.subplots(
            rows, columns, figsize=(size[0] * columns, size[1] * rows), layout="constrained"
        )
        try:
            yield drawn, list(np.ravel(axes))
        finally:
            plt.close(drawn)


def save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF; the same data give the same files."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    drawn.savefig(paths[0], dpi=150, metadata={"Software": None})
    drawn.savefig(paths[1], metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return paths


def look_of(name: str, place: int = 0) -> dict[str, Any]:
    """Return colour and marker of an algorithm; of others, by their place."""
    if name in COLORS:
        return {"color": COLORS[name], "marker": MARKERS[name]}
    return {"color": OTHERS[place % len(OTHERS)], "marker": "v<>pPX"[place % 6]}


def lines(
    axes: Any,
    series: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike | None]],
    *,
    x: str,
    y: str,
    title: str = "",
    log: str = "",
) -> None:
    """Draw a line with error bars for each name: (x, mean, standard error or None).

    `log` says which axes are logarithmic: "", "x", "y" or "xy".
    """
    for place, (name, (at, mean, error)) in enumerate(series.items()):
        axes.errorbar(
            at,
            mean,
            yerr=error,
            label=name,
            capsize=3,
            linewidth=1.6,
            markersize=5,
            **look_of(name, place),
        )
    dress(axes, x=x, y=y, title=title, log=log)
    axes.legend()


def dress(axes: Any, *, x: str, y: str, title: str = "", log: str = "") -> None:
    """Label the axes; plain numbers at their ticks."""
    axes.set(xlabel=x, ylabel=y, title=title)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(axis="y", linewidth=0.4, color="#cccccc")


def pulls_against_gap(axes: Any, rows: Sequence[Mapping[str, Any]], *, gap: str = "gap") -> None:
    """Draw mean pulls with standard errors against the gap, from rows of a study."""
    lines(
        axes,
        {name: _by(rows, name, gap, "pulls") for name in _names(rows)},
        x="gap between the best group and the next",
        y="pulls until the stop",
        log="xy",
    )


def time_against_n(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw seconds a round against the number of arms (log)."""
    lines(
        axes,
        {name: _by(rows, name, "n", "seconds") for name in _names(rows)},
        x="arms n (k = n/2)",
        y="seconds for a round",
        log="y",
    )


def ratio_over_rounds(axes: Any, rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
    """Draw an approximation ratio over rounds: mean and the range of all runs."""
    _over_rounds(axes, rows, "ratio", "value found / greatest value", title)
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")


def error_over_rounds(axes: Any, rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
    """Draw an additive error over rounds."""
    _over_rounds(axes, rows, "error", "greatest value - value found", title)


def margin_over_time(axes: Any, looks: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
    """Draw both sides of the stop over the pulls: it comes where they cross."""
    pulls = [look["pulls"] for look in looks]
    axes.plot(pulls, [look["radius"] for look in looks], color=INK, linewidth=1.8, label="radius")
    ahead = [look["gap"] + look["epsilon"] for look in looks]
    axes.plot(pulls, ahead, color=COLORS["sa-foa"], linewidth=1.8, label="gap + epsilon")
    dress(axes, x="pulls", y="total", title=title, log="xy")
    axes.legend()


def survival(axes: Any, rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
    """Draw the share of runs that still measure after so many pulls."""
    for place, name in enumerate(_names(rows)):
        pulls = np.sort([row["pulls"] for row in rows if row["algorithm"] == name])
        left = 1 - np.arange(1, len(pulls) + 1) / len(pulls)
        at = np.repeat(np.concatenate([[pulls[0]], pulls]), 2)[1:]
        share = np.repeat(np.concatenate([[1.0], left]), 2)[:-1]
        axes.plot(at, share, label=name, linewidth=1.8, color=look_of(name, place)["color"])
    dress(axes, x="pulls", y="share of runs that still measure", title=title, log="x")
    axes.legend()


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(row["algorithm"]) for row in rows))


def _by(
    rows: Sequence[Mapping[str, Any]], name: str, x: str, y: str
) -> tuple[list[float], list[float], list[float]]:
    """Return the values of x in order, and mean and standard error of y at each."""
    mine = [row for row in rows if row["algorithm"] == name]
    at = sorted({float(row[x]) for row in mine})
    groups = [np.array([float(row[y]) for row in mine if float(row[x]) == value]) for value in at]
    errors = [float(g.std(ddof=1) / np.sqrt(len(g))) if len(g) > 1 else 0.0 for g in groups]
    return at, [float(g.mean()) for g in groups], errors


def _over_rounds(
    axes: Any, rows: Sequence[Mapping[str, Any]], what: str, label: str, title: str
) -> None:
    for place, name in enumerate(_names(rows)):
        mine = [row for row in rows if row["algorithm"] == name]
        rounds = sorted({int(row["round"]) for row in mine})
        values = [np.array([row[what] for row in mine if row["round"] == r]) for r in rounds]
        color = look_of(name, place)["color"]
        axes.plot(rounds, [v.mean() for v in values], color=color, linewidth=1.8, label=name)
        low, high = [v.min() for v in values], [v.max() for v in values]
        axes.fill_between(rounds, low, high, color=color, alpha=0.15, linewidth=0)
    dress(axes, x="round", y=label, title=title, log="x")
    axes.legend()
