"""What is drawn is what was measured: the data of the artists, from rows as a study has them."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex

import superarm as sa
from superarm import plots
from superarm.study import Cell, Instance, Results, Study


def lines_of(axes):
    """Return the lines that are in the legend, by label: x, y."""
    found = {}
    for line, text in zip(*axes.get_legend_handles_labels(), strict=True):
        data = line.lines[0] if hasattr(line, "lines") else line
        found[text] = (np.array(data.get_xdata()), np.array(data.get_ydata()))
    return found


@pytest.fixture
def axes():
    with plots.figure() as (_, (axes,)):
        yield axes


@pytest.fixture(scope="module")
def study_rows(tmp_path_factory):
    """A study's table as it is read again: two gaps, two algorithms, three runs each."""
    instances = []
    for gap in (0.5, 1.0):
        noise = sa.gaussian(0.5)
        world = sa.environment([gap, 0.0, 0.0], noise)
        problem = sa.Problem(3, 1, noise)
        instances.append(Instance(f"gap {gap}", problem, world, {"gap": gap}))
    rules = sa.ICB(), sa.SAQM()
    path = tmp_path_factory.mktemp("study") / "table.csv"
    Study.grid(instances, rules, 3, rng=1).run(out=path)
    return Results.read(path).rows


def of(rows, name, **where):
    return [
        row
        for row in rows
        if row["algorithm"] == name and all(row[key] == value for key, value in where.items())
    ]


# ---- pulls by rule -------------------------------------------------------------------------------


def test_pulls_by_rule_draws_means_runs_and_the_least(axes):
    rows = [
        {"rule": name, "algorithm": algorithm, "pulls": pulls, "certified": algorithm == "icb"}
        for name, algorithm, pulls in (("A", "icb", 10), ("A", "icb", 30), ("B", "sa-foa", 50))
    ]
    plots.pulls_by_rule(axes, rows, least=5.0, title="here")
    drawn = lines_of(axes)
    assert {name: (x.tolist(), y.tolist()) for name, (x, y) in drawn.items()} == {
        "A": ([20], [0]),
        "B": ([50], [1]),
    }
    runs = [line for line in axes.get_lines() if line.get_marker() == "|"]
    assert [list(line.get_xdata()) for line in runs] == [[10, 30], [50]]
    filled = {line.get_label(): line.get_fillstyle() for line in axes.get_lines()}
    assert (filled["A"], filled["B"]) == ("full", "none")
    assert axes.get_lines()[-1].get_xdata()[0] == 5.0
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A", "B"]
    assert (axes.get_xscale(), axes.get_title("left")) == ("log", "here")


# ---- pulls against gap ---------------------------------------------------------------------------


def test_pulls_against_gap_draws_means_and_standard_errors(axes, study_rows):
    plots.pulls_against_gap(axes, study_rows, title="here")
    drawn = lines_of(axes)
    assert list(drawn) == ["ICB", "SAQM"]
    for title, name in (("ICB", "icb"), ("SAQM", "saqm")):
        runs = [[row["pulls"] for row in of(study_rows, name, gap=gap)] for gap in (0.5, 1.0)]
        x, y = drawn[title]
        assert x.tolist() == [0.5, 1.0]
        assert y == pytest.approx([np.mean(each) for each in runs])
        handles, labels = axes.get_legend_handles_labels()
        (bars,) = handles[labels.index(title)].lines[2]
        for segment, each in zip(bars.get_segments(), runs, strict=True):
            error = np.std(each, ddof=1) / math.sqrt(3)
            assert segment[:, 1] == pytest.approx([np.mean(each) - error, np.mean(each) + error])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.5", "1"]
    assert axes.get_title("left") == "here"


def test_a_mean_over_runs_that_did_not_stop_gets_an_arrow(axes):
    limit = "the limit of 100 pulls came before the stop"
    rows = [
        {"algorithm": "icb", "gap": gap, "pulls": pulls, "reason": reason}
        for gap, pulls, reason in ((0.1, 100, limit), (0.1, 60, ""), (0.2, 50, ""))
    ]
    plots.pulls_against_gap(axes, rows)
    (arrows,) = [line for line in axes.get_lines() if line.get_marker() == r"$\uparrow$"]
    assert list(arrows.get_xdata()) == [0.1]
    assert arrows.get_ydata()[0] > 80


def test_the_gap_may_have_another_name_and_crowded_ticks_are_left_out(axes):
    gaps = [round(0.1 * i, 1) for i in range(1, 11)]
    rows = [{"algorithm": "icb", "d": gap, "pulls": 1 / gap} for gap in gaps]
    plots.pulls_against_gap(axes, rows, gap="d")
    assert lines_of(axes)["ICB"][0].tolist() == gaps
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["0.1", "0.2", "0.3", "0.4", "0.5", "1"]


# ---- time against n ------------------------------------------------------------------------------


def test_time_against_n_draws_the_column_it_is_told(axes, study_rows):
    plots.time_against_n(axes, study_rows)
    x, y = lines_of(axes)["ICB"]
    assert x.tolist() == [3]
    assert y == pytest.approx([np.mean([row["seconds"] for row in of(study_rows, "icb")])])


def test_times_are_on_a_logarithmic_axis_in_words(axes):
    rows = [{"algorithm": "exhaustive", "n": n, "each": 2.0**n * 1e-6} for n in (10, 12, 14)]
    plots.time_against_n(axes, rows, seconds="each")
    assert axes.get_yscale() == "log"
    assert lines_of(axes)["Exhaustive"][1] == pytest.approx([1024e-6, 4096e-6, 16384e-6])
    assert axes.yaxis.get_major_formatter()(1e-3) == "1 ms"
    assert axes.get_xticks().tolist() == [10, 12, 14]


# ---- ratio and error over rounds -----------------------------------------------------------------


def over_rounds():
    return [
        {"algorithm": name, "round": t, "ratio": ratio, "error": 10 * (1 - ratio)}
        for name, t, ratio in (
            ("saqm", 10, 0.5),
            ("saqm", 10, 0.7),
            ("saqm", 100, 1.0),
            ("saqm", 100, 0.8),
            ("sa-foa", 10, 0.9),
        )
    ]


def test_ratio_over_rounds_draws_the_mean_and_the_range(axes):
    plots.ratio_over_rounds(axes, over_rounds(), title="ratio")
    x, y = lines_of(axes)["SAQM"]
    assert x.tolist() == [10, 100]
    assert y == pytest.approx([0.6, 0.9])
    band = axes.collections[0].get_paths()[0].vertices
    for t, low, high in ((10, 0.5, 0.7), (100, 0.8, 1.0)):
        at = band[band[:, 0] == t, 1]
        assert (at.min(), at.max()) == pytest.approx((low, high))
    assert any(list(line.get_ydata()) == [1.0, 1.0] for line in axes.get_lines())


def test_error_over_rounds_shows_zero_too(axes):
    plots.error_over_rounds(axes, over_rounds())
    assert lines_of(axes)["SAQM"][1] == pytest.approx([4.0, 1.0])
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim()[0] == 0


# ---- margin over time ----------------------------------------------------------------------------


def test_margin_over_time_draws_both_sides_of_the_looks_of_a_run(axes):
    problem = sa.Problem(4, 2, sa.gaussian(0.5), epsilon=0.2)
    world = sa.environment([1.0, 0.8, 0.3, 0.0], problem.noise)
    looks = []
    run = sa.simulate(
        problem,
        sa.ICB(),
        world,
        rng=1,
        watch=lambda v: looks.append(
            {"pulls": v.pulls, "gap": v.gap, "epsilon": v.epsilon, "radius": v.radius}
        ),
    )
    plots.margin_over_time(axes, looks)
    drawn = lines_of(axes)
    pulls, radius = drawn["radius"]
    _, ahead = drawn["gap + epsilon"]
    assert pulls[-1] == run.pulls
    assert ahead[-1] >= radius[-1]
    assert (ahead[:-1] < radius[:-1]).all()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_what_a_logarithmic_axis_cannot_show_is_left_out(axes):
    looks = [
        {"pulls": 4, "gap": 0.0, "epsilon": 0.0, "radius": math.inf, "algorithm": "icb"},
        {"pulls": 8, "gap": -0.5, "epsilon": 0.1, "radius": 2.0, "algorithm": "icb"},
        {"pulls": 16, "gap": 0.5, "epsilon": 0.1, "radius": 1.0, "algorithm": "saqm"},
    ]
    plots.margin_over_time(axes, looks)
    drawn = lines_of(axes)
    assert set(drawn) == {
        f"{name}: {side}" for name in ("ICB", "SAQM") for side in ("radius", "gap + epsilon")
    }
    assert np.isnan(drawn["ICB: radius"][1]).tolist() == [True, False]
    assert np.isnan(drawn["ICB: gap + epsilon"][1]).all()


# ---- survival ------------------------------------------------------------------------------------


def test_survival_steps_down_at_each_stop(axes, study_rows):
    plots.survival(axes, study_rows)
    pulls = sorted(row["pulls"] for row in of(study_rows, "icb"))
    x, y = lines_of(axes)["ICB"]
    assert x[1:].tolist() == pulls
    assert x[0] < pulls[0]
    assert y == pytest.approx([1.0, *(1 - (i + 1) / 6 for i in range(6))])
    assert all(line.get_drawstyle() == "steps-post" for line in axes.get_lines())


def test_runs_that_did_not_stop_count_as_measuring_on(axes):
    limit = "the limit of 50 pulls came before the stop"
    rows = [
        {"algorithm": "icb", "pulls": pulls, "reason": reason}
        for pulls, reason in ((10, ""), (20, "heuristic"), (50, limit), (50, limit))
    ]
    plots.survival(axes, rows)
    x, y = lines_of(axes)["ICB"]
    assert x[1:].tolist() == [10, 20, 50]
    assert y.tolist() == [1.0, 0.75, 0.5, 0.5]


def test_beyond_a_run_of_unknown_length_nothing_is_drawn(axes):
    rows = [
        {"algorithm": "icb", "pulls": 10, "reason": ""},
        {"algorithm": "icb", "pulls": 20, "reason": "the limit of 20 pulls came before the stop"},
        {"algorithm": "icb", "pulls": 30, "reason": ""},
    ]
    plots.survival(axes, rows)
    x, y = lines_of(axes)["ICB"]
    assert x[1:].tolist() == [10, 20]
    assert y == pytest.approx([1, 2 / 3, 2 / 3])


def test_survival_without_any_stop_is_a_flat_line(axes):
    row = {
        "algorithm": "icb",
        "pulls": 50,
        "reason": "the last planned look did not reach the stop",
    }
    plots.survival(axes, [row, row])
    assert set(lines_of(axes)["ICB"][1]) == {1.0}


# ---- the look ------------------------------------------------------------------------------------


def test_an_algorithm_looks_alike_everywhere_and_unlike_others(axes):
    names = [*plots.COLORS, "mine", "yours"]
    looks = [tuple(plots.look_of(name, place).values()) for place, name in enumerate(names)]
    assert len({color for color, _ in looks}) == len(names)
    assert len({marker for _, marker in looks}) == len(names)
    plots.lines(axes, {"saqm": ([1, 2], [1, 2], None)}, x="x", y="y")
    assert to_hex(axes.get_lines()[0].get_color()) == plots.COLORS["saqm"]


def test_the_same_data_give_the_same_files(tmp_path):
    written = []
    for part in ("one", "two"):
        folder = tmp_path / part
        folder.mkdir()
        with plots.figure(2) as (drawn, axes):
            plots.lines(axes[0], {"icb": ([1, 2], [3, 4], [0.1, 0.2])}, x="x", y="y")
            written.append([path.read_bytes() for path in plots.save(drawn, folder, "it")])
    assert written[0] == written[1]
    assert written[0][0].startswith(b"\x89PNG")
    assert written[0][1].startswith(b"%PDF")


def test_a_study_of_presets_can_be_drawn(axes):
    """Labels of cells are columns like those of instances."""
    noise = sa.gaussian(0.5)
    place = Instance("a", sa.Problem(3, 1, noise), sa.environment([1.0, 0.0, 0.0], noise))
    cells = [
        Cell(place, sa.ICB.preset(name), {"gap": gap}, name)
        for name, gap in (("corrected", 1.0), ("experiments", 2.0))
    ]
    plots.pulls_against_gap(axes, Study(cells, 2, rng=1).run().rows)
    assert lines_of(axes)["ICB"][0].tolist() == [1.0, 2.0]


def test_without_matplotlib_the_way_to_get_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sa.SettingError, match=r"superarm\[plot\]"), plots.figure():
        pass


# ---- diagnostics ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked():
    """Totals with one that is far off, measured at two sites."""
    rng = np.random.default_rng(4)
    groups = [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]] * 20
    totals = np.array([3.0, 2.0, 1.0, 0.0])[np.array(groups)].sum(axis=1)
    totals += rng.standard_normal(120)
    totals[50] += 9.0
    problem = sa.Problem(4, 2, sa.gaussian(1.0))
    return sa.diagnose(problem, groups, totals.tolist(), labels={"site": list("AABBCCBBCCAA") * 10})


def test_residuals_are_drawn_in_the_order_of_measuring_with_their_cusum(axes, checked):
    plots.residuals_over_order(axes, checked.rows, title="here")
    drawn = lines_of(axes)
    assert drawn["outliers"][0].tolist() == [51]
    assert sorted([*drawn["pulls"][0], 51]) == list(range(1, 121))
    at, cusum = drawn["cusum"]
    assert at.tolist() == list(range(1, 121))
    assert cusum.tolist() == [row["cusum"] for row in checked.rows]
    assert abs(cusum[-1]) < 1e-9
    assert axes.get_title(loc="left") == "here"


def test_totals_are_drawn_against_the_fit(axes, checked):
    plots.observed_against_fitted(axes, checked.rows)
    drawn = lines_of(axes)
    assert drawn["outliers"][1].tolist() == [checked.rows[50]["total"]]
    low, high = axes.lines[-1].get_xdata()
    assert (low, high) == (
        min(row["fitted"] for row in checked.rows),
        max(row["fitted"] for row in checked.rows),
    )


def test_residuals_are_drawn_by_size_against_normal_quantiles(axes, checked):
    plots.residual_quantiles(axes, checked.rows)
    x, y = lines_of(axes)["pulls"]
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) >= 0).all()
    mark, far = lines_of(axes)["outliers"]
    assert far.item() == max(row["residual"] for row in checked.rows)
    assert mark.item() == pytest.approx(2.638, abs=0.01)  # the quantile of 119.5 / 120


def test_offsets_are_drawn_with_intervals(axes, checked):
    rows = [offset.to_dict() for offset in checked.offsets["site"]]
    plots.offsets(axes, [*rows, {"label": "D", "offset": None, "low": None, "high": None}])
    intervals = [tuple(line.get_xdata()) for line in axes.lines[:3]]
    assert intervals == [(row["low"], row["high"]) for row in rows]
    assert axes.lines[3].get_xdata().tolist() == [row["offset"] for row in rows]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A", "B", "C"]
