"""Pictures: one look for all of them, and the kinds that a researcher expects.

Every function draws on axes that it is given, from rows (a dictionary each): those of a study's
table, ``Results.rows``, or any others that have the columns it names. Matplotlib comes with the
extra ``superarm[plot]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from superarm.errors import SettingError
from superarm.verdict import LAST_LOOK_FAILED

Row = Mapping[str, Any]

COLORS = {
    "icb": "#0b5fa5",
    "saqm": "#c4572b",
    "sa-foa": "#1b7f5c",
    "exhaustive": "#6b4fa1",
    "certified": "#a83279",
    "focused": "#d4a017",
    "csar": "#5c4033",
}
"""One colour for each of our algorithms, in every picture."""

MARKERS = {
    "icb": "s",
    "saqm": "o",
    "sa-foa": "^",
    "exhaustive": "D",
    "certified": "*",
    "focused": "v",
    "csar": "P",
}
TITLES = {
    "icb": "ICB",
    "saqm": "SAQM",
    "sa-foa": "SA-FOA",
    "exhaustive": "Exhaustive",
    "certified": "Certified",
    "focused": "Focused",
    "csar": "CSAR",
}

OTHERS = ("#8c6d1f", "#4d4d4d", "#2b8a9e", "#7f3b08", "#542788", "#b8860b")
INK = "#333333"


def check_matplotlib() -> Any:
    """Return matplotlib, or say how to get it."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SettingError('pictures need matplotlib: pip install "superarm[plot]"') from None
    return matplotlib


@contextmanager
def figure(
    columns: int = 1, *, rows: int = 1, size: tuple[float, float] = (6.0, 4.4)
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a figure and the list of its axes; what is drawn and saved within has our style.

    Parameters
    ----------
    columns, rows
        How many axes there are.
    size
        Width and height of each, in inches.
    """
    matplotlib = check_matplotlib()
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.titlesize": 12,
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "legend.fontsize": 10,
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(style):
        # Without pyplot: no window, whatever the backend, and nothing to close.
        drawn = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        yield drawn, list(np.ravel(drawn.subplots(rows, columns)))


def save(drawn: Any, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF; the same data give the same files."""
    paths = [Path(folder) / f"{name}.png", Path(folder) / f"{name}.pdf"]
    drawn.savefig(paths[0], dpi=150, metadata={"Software": None})
    drawn.savefig(paths[1], metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return paths


def title_of(name: str) -> str:
    """Return what people call an algorithm."""
    return TITLES.get(name, name)


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

    `log` says which axes are logarithmic: "", "x", "y" or "xy". Later lines have larger, hollow
    markers, so that one that lies on another is seen too.
    """
    for place, (name, (at, mean, error)) in enumerate(series.items()):
        axes.errorbar(
            at,
            mean,
            yerr=error,
            label=title_of(name),
            capsize=3,
            linewidth=1.6,
            markersize=4 + 1.8 * place,
            fillstyle="none" if place else "full",
            zorder=3 - 0.1 * place,
            **look_of(name, place),
        )
    dress(axes, x=x, y=y, title=title, log=log)
    axes.legend()


def dress(axes: Any, *, x: str, y: str, title: str = "", log: str = "") -> None:
    """Label the axes; a faint line at each tick of the upright one."""
    axes.set(xlabel=x, ylabel=y, title=title)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(axis="y", linewidth=0.4, color="#cccccc")
    axes.set_axisbelow(True)


def pulls_against_gap(axes: Any, rows: Sequence[Row], *, gap: str = "gap", title: str = "") -> None:
    """Draw mean pulls with standard errors against the gap, both on logarithmic axes.

    Where a run ended at a limit of pulls the mean is a lower bound: an arrow up from there says so.

    Parameters
    ----------
    rows
        With columns ``algorithm``, ``pulls`` and the one of the gap, as a study has that labels its
        instances so.
    gap
        The name of that column.
    """
    from matplotlib.ticker import NullLocator

    names = _names(rows)
    lines(
        axes,
        {name: _by(rows, name, gap, "pulls") for name in names},
        x="gap between the best group and the next",
        y="pulls until the stop",
        title=title,
        log="xy",
    )
    for place, name in enumerate(names):
        open_ended = {float(r[gap]) for r in rows if r["algorithm"] == name and not _stopped(r)}
        at, means, _ = _by([r for r in rows if float(r[gap]) in open_ended], name, gap, "pulls")
        color = look_of(name, place)["color"]
        axes.plot(at, [1.25 * m for m in means], color=color, linestyle="", marker=r"$\uparrow$")
    gaps = sorted({float(row[gap]) for row in rows})
    crowded = {low for low in gaps for high in gaps if 1 < high / low < 1.19}
    at = [each for each in gaps if each not in crowded]
    axes.set_xticks(at, [f"{each:g}" for each in at])
    axes.xaxis.set_minor_locator(NullLocator())


def pulls_by_rule(
    axes: Any, rows: Sequence[Row], *, rule: str = "rule", least: float = 0.0, title: str = ""
) -> None:
    """Draw the pulls of each rule, runs as dashes and means as markers, hollow if not certified.

    Parameters
    ----------
    rows
        With columns ``algorithm``, ``pulls``, ``certified`` and the one of the rule's name.
    rule
        The name of that column.
    least
        Pulls that every method needs, as a dotted line; 0: none is drawn.
    """
    names = list(dict.fromkeys(str(row[rule]) for row in rows))
    for place, name in enumerate(names):
        mine = [row for row in rows if row[rule] == name]
        style = {**look_of(str(mine[0]["algorithm"]), place), "linestyle": ""}
        pulls = [float(row["pulls"]) for row in mine]
        level = [place] * len(pulls)
        axes.plot(pulls, level, **{**style, "marker": "|"}, alpha=0.35)
        filled = "full" if all(row["certified"] for row in mine) else "none"
        axes.plot([np.mean(pulls)], [place], label=name, markersize=8, fillstyle=filled, **style)
    if least > 0:
        axes.axvline(least, color=INK, linewidth=0.8, linestyle=":")
    dress(axes, x="pulls until the stop", y="", title=title, log="x")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def time_against_n(
    axes: Any, rows: Sequence[Row], *, seconds: str = "seconds", title: str = ""
) -> None:
    """Draw mean times with standard errors against the number of arms, times on a log axis.

    Parameters
    ----------
    rows
        With columns ``algorithm``, ``n`` and the one of the time.
    seconds
        The name of that column; of a study, ``seconds`` is the time of a run.
    """
    from matplotlib.ticker import EngFormatter

    lines(
        axes,
        {name: _by(rows, name, "n", seconds) for name in _names(rows)},
        x="number of arms n",
        y="time",
        title=title,
        log="y",
    )
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.set_xticks(sorted({int(row["n"]) for row in rows}))


def ratio_over_rounds(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw an approximation ratio over rounds: the mean, and shaded the range of all realisations.

    `rows` have columns ``algorithm``, ``round`` and ``ratio``.
    """
    _over_rounds(axes, rows, "ratio", "value found / greatest value", title)
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")


def error_over_rounds(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw an additive error over rounds likewise, from a column ``error``.

    The upright axis is linear from 0 to 0.01, and logarithmic above.
    """
    _over_rounds(axes, rows, "error", "greatest value - value found", title)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(bottom=0)


def margin_over_time(axes: Any, looks: Sequence[Row], *, title: str = "") -> None:
    """Draw both sides of the stop over the pulls: it comes where the radius meets the other.

    Parameters
    ----------
    looks
        A row a look, with ``pulls``, ``gap``, ``epsilon`` and ``radius``, as the verdicts have them
        that ``simulate(..., watch=...)`` shows; with ``algorithm`` too there is a pair of lines for
        each. What a logarithmic axis cannot show (at 0 or below, or infinite) is left out.
    """
    names = list(dict.fromkeys(str(look.get("algorithm", "")) for look in looks))
    for place, name in enumerate(names):
        mine = [look for look in looks if str(look.get("algorithm", "")) == name]
        pulls = [look["pulls"] for look in mine]
        radius = [_positive(look["radius"]) for look in mine]
        ahead = [_positive(look["gap"] + look["epsilon"]) for look in mine]
        color = look_of(name, place)["color"] if name else INK
        who = f"{title_of(name)}: " if name else ""
        axes.plot(pulls, radius, color=color, linewidth=1.8, label=f"{who}radius")
        axes.plot(
            pulls, ahead, color=color, linewidth=1.4, linestyle="--", label=f"{who}gap + epsilon"
        )
    dress(axes, x="pulls", y="difference of totals", title=title, log="xy")
    axes.legend()


def survival(
    axes: Any, rows: Sequence[Row], *, pulls: str = "pulls", x: str = "pulls", title: str = ""
) -> None:
    """Draw the share of runs that still measure after so many pulls (on a logarithmic axis).

    A run that ended without having stopped, at a limit of pulls, counts as measuring on; the line
    ends where the first of these ends, since beyond that nothing is known of it.

    Parameters
    ----------
    rows
        With columns ``algorithm`` and `pulls`; ``reason`` of a study says which have not stopped.
    pulls
        The name of that column.
    x
        What stands below the axis.
    """
    start = 0.9 * min(float(row[pulls]) for row in rows)
    for place, name in enumerate(_names(rows)):
        mine = [row for row in rows if row["algorithm"] == name]
        at, share = _still(
            start,
            [float(row[pulls]) for row in mine if _stopped(row)],
            [float(row[pulls]) for row in mine if not _stopped(row)],
        )
        color = look_of(name, place)["color"]
        axes.step(at, share, where="post", label=title_of(name), linewidth=1.8, color=color)
    dress(axes, x=x, y="share of runs that still measure", title=title, log="x")
    axes.set_ylim(-0.02, 1.05)
    axes.legend()


def residuals_over_order(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw the residuals in the order of measuring, and their cusum: a line that wanders off.

    `rows` are those of `Diagnostics`: ``position``, ``residual``, ``cusum``, ``outlier``.
    """
    at, cusum = [row["position"] for row in rows], [row["cusum"] for row in rows]
    _points(axes, rows, "position", "residual")
    axes.plot(at, cusum, color=COLORS["saqm"], linewidth=1.8, label="cusum")
    axes.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    dress(axes, x="pull", y="standard deviations", title=title)
    axes.legend()


def observed_against_fitted(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw each total against the sum of its members' estimates; on the line they are equal.

    `rows` are those of `Diagnostics`: ``fitted``, ``total``, ``outlier``.
    """
    _points(axes, rows, "fitted", "total")
    ends = [f([float(row["fitted"]) for row in rows]) for f in (min, max)]
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":")
    dress(axes, x="sum of the members' estimates", y="measured total", title=title)
    axes.legend()


def residual_quantiles(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw the residuals in order of size against normal quantiles; outliers are marked.

    `rows` are those of `Diagnostics`: ``residual``, ``outlier``.
    """
    from statistics import NormalDist

    ordered = sorted(rows, key=lambda row: float(row["residual"]))
    normal = NormalDist()
    quantiles = [normal.inv_cdf((i + 0.5) / len(ordered)) for i in range(len(ordered))]
    placed = [{**row, "quantile": q} for row, q in zip(ordered, quantiles, strict=True)]
    _points(axes, placed, "quantile", "residual")
    axes.axline((0.0, 0.0), slope=1.0, color=INK, linewidth=0.8, linestyle=":")
    dress(axes, x="normal quantile", y="residual, in standard deviations", title=title)
    axes.legend()


def offsets(axes: Any, rows: Sequence[Row], *, title: str = "") -> None:
    """Draw how much higher the totals of each label are than the average, with intervals.

    `rows` have ``label``, ``offset``, ``low`` and ``high``, as ``Offset.to_dict()`` gives them;
    labels without an offset are left out.
    """
    known = [row for row in rows if row["offset"] is not None]
    color = COLORS["icb"]
    for place, row in enumerate(known):
        axes.plot([row["low"], row["high"]], [place, place], color=color, linewidth=1.6)
    at = [row["offset"] for row in known]
    axes.plot(at, range(len(at)), color=color, marker="o", linestyle="", label="offset")
    axes.axvline(0.0, color=INK, linewidth=0.8, linestyle=":")
    dress(axes, x="offset of totals against the average pull", y="", title=title)
    axes.set_yticks(range(len(known)), [str(row["label"]) for row in known])


def _points(axes: Any, rows: Sequence[Row], x: str, y: str) -> None:
    """Draw a point for each pull, and outliers in another colour and shape."""
    for label, marked in (("pulls", False), ("outliers", True)):
        mine = [row for row in rows if bool(row["outlier"]) == marked]
        if mine:
            axes.plot(
                [row[x] for row in mine],
                [row[y] for row in mine],
                color=COLORS["certified" if marked else "icb"],
                marker="D" if marked else ".",
                markersize=7 if marked else 4,
                linestyle="",
                label=label,
            )


def _still(
    start: float, stopped: list[float], ended: list[float]
) -> tuple[list[float], list[float]]:
    """Return the steps of the share of runs still going, up to the first of unknown length."""
    runs = len(stopped) + len(ended)
    end = min(ended, default=math.inf)
    at = sorted(pulls for pulls in stopped if pulls <= end)
    share = [1.0, *(1 - (i + 1) / runs for i in range(len(at)))]
    if ended:
        return [start, *at, end], [*share, share[-1]]
    return [start, *at], share


def _stopped(row: Row) -> bool:
    """Whether a run came to its stop, rather than to a limit of pulls or looks."""
    reason = str(row.get("reason") or "")
    return not (reason == LAST_LOOK_FAILED or reason.endswith("came before the stop"))


def _positive(value: float) -> float:
    return value if value > 0 and math.isfinite(value) else math.nan


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["algorithm"]) for row in rows))


def _by(
    rows: Sequence[Row], name: str, x: str, y: str
) -> tuple[list[float], list[float], list[float]]:
    """Return the values of x in order, and mean and standard error of y at each."""
    mine = [row for row in rows if row["algorithm"] == name]
    at = sorted({float(row[x]) for row in mine})
    groups = [np.array([float(row[y]) for row in mine if float(row[x]) == value]) for value in at]
    errors = [float(g.std(ddof=1) / np.sqrt(len(g))) if len(g) > 1 else 0.0 for g in groups]
    return at, [float(g.mean()) for g in groups], errors


def _over_rounds(axes: Any, rows: Sequence[Row], what: str, label: str, title: str) -> None:
    for place, name in enumerate(_names(rows)):
        mine = [row for row in rows if row["algorithm"] == name]
        rounds = sorted({int(row["round"]) for row in mine})
        values = [np.array([row[what] for row in mine if row["round"] == r]) for r in rounds]
        color = look_of(name, place)["color"]
        means = [float(v.mean()) for v in values]
        axes.plot(rounds, means, color=color, linewidth=1.8, label=title_of(name))
        low, high = [v.min() for v in values], [v.max() for v in values]
        axes.fill_between(rounds, low, high, color=color, alpha=0.15, linewidth=0)
    dress(axes, x="round", y=label, title=title, log="x")
    axes.legend()
