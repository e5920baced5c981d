"""The paper's figures and tables: small ones are computed, and pages say what their data say."""

from __future__ import annotations

import csv
import importlib
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest, ttest_1samp

import superarm as sa
from superarm import experiments
from superarm.cli import main
from superarm.datasets import QUIZZES
from superarm.experiments import (
    EXPERIMENTS,
    Settings,
    figure2,
    figure3,
    figure4,
    rules,
    table1,
    table2,
)
from superarm.experiments.base import listing, read_rows, span, write_rows
from superarm.study import Results

command = importlib.import_module("superarm.cli.reproduce")
ROOT = Path(__file__).resolve().parents[1]
PAPER = sorted((ROOT.parent / "shared" / "paper").glob("*.txt"))


def run(*words):
    return CliRunner().invoke(main, ["reproduce", *map(str, words)])


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_prints_the_paths_of_what_it_wrote(tmp_path):
    out = tmp_path / "new" / "folder"
    result = run("table1", "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split() == [str(out / "table1.md"), str(out / "table1.csv")]
    page = (out / "table1.md").read_text()
    assert page.startswith("# Table 1")
    assert "superarm reproduce table1 --rng 7`" in page


def test_the_command_knows_every_experiment():
    assert list(command.NAMES) == [*EXPERIMENTS, experiments.ALL]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("figure5",), "'figure5' is not one of"),
        (("table1", "--workers", "0"), "0 is not in the range x>=1"),
        (("table1", "--rng", "-1"), "-1 is not in the range x>=0"),
    ],
)
def test_what_cannot_be_is_one_clear_error(tmp_path, words, says):
    result = run(*words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_is_needed():
    result = run("table1")
    assert result.exit_code == 2
    assert "--out" in result.stderr


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("mine")
    for out, says in ((tmp_path / "taken", "is a file"), (tmp_path / "taken" / "in", "Not a dir")):
        result = run("table1", "--out", out)
        assert (result.exit_code, result.stdout) == (2, "")
        assert str(out) in result.stderr
        assert says in result.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(**settings):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    result = run("table1", "--out", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path}: cannot write there (Permission denied)" in result.stderr


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [("matplotlib", ("figure3",), "plot"), ("joblib", ("all", "--workers", "2"), "study")],
)
def test_a_missing_extra_is_said_before_anything_is_computed(
    tmp_path, monkeypatch, module, words, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    result = run(*words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert f'pip install "superarm[{extra}]"' in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "settings", [{"quick": 1}, {"workers": 0}, {"workers": 1.5}, {"rng": -1}, {"rng": None}]
)
def test_settings_are_checked(settings):
    with pytest.raises(sa.SettingError):
        Settings(**settings)


def test_an_unknown_name_is_an_error_from_python_too(tmp_path):
    with pytest.raises(sa.SettingError, match="'figure9' is not one of figure2"):
        experiments.reproduce("figure9", tmp_path, Settings())


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    for terminal in (False, True):
        monkeypatch.setattr("sys.stderr.isatty", lambda shown=terminal: shown)
        with command._Progress() as progress:
            progress("table1", 1, 2)
            progress("table2", 2, 2)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("table2" in shown.err and "2 of 2" in shown.err) is terminal


# ---- data and pages of one experiment after the other --------------------------------------------


def done(into):
    """Return settings that note how far an experiment has come."""
    return Settings(quick=True, progress=lambda name, part, of: into.append((name, part, of)))


def test_figure2_compares_with_enumeration(tmp_path, monkeypatch):
    monkeypatch.setattr(figure2, "ROUNDS", 504)
    monkeypatch.setattr(figure2, "_rounds", lambda first, looks: [first, 60, 252, 300, 504])
    parts = []
    figure2.compute(tmp_path, done(parts))
    assert parts[-1] == ("figure2", 12, 12)
    rows = read_rows(tmp_path / "figure2.csv")
    assert {row["algorithm"] for row in rows} == {"saqm", "sa-foa"}
    for row in rows:
        assert row["ratio"] <= 1 + 1e-9
        assert row["ratio"] == pytest.approx(row["found"] / row["greatest"])
        assert row["error"] == pytest.approx(row["greatest"] - row["found"], abs=1e-9)
    # After whole cycles of all super-arms every set has the same norm ...
    whole = [r for r in rows if r["design"] == "all" and r["algorithm"] == "saqm"]
    assert all(r["ratio"] == pytest.approx(1) for r in whole if r["round"] in (252, 504))
    # ... and in the first rounds peeling misses the greatest now and then.
    assert min(r["ratio"] for r in whole) < 0.95
    figure2.plot(tmp_path)
    page = figure2.page(tmp_path).text()
    assert "3 realisations" in page
    assert f"The least ratio on the G-allocation is {min(r['ratio'] for r in whole):.2f}" in page


def test_figure2_is_the_same_for_the_same_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(figure2, "GAPS", (1.0,))
    monkeypatch.setattr(figure2, "_rounds", lambda first, looks: [first, 40])
    for part, rng in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / part).mkdir()
        figure2.compute(tmp_path / part, Settings(quick=True, rng=rng))
    a, b, c = ((tmp_path / part / "figure2.csv").read_bytes() for part in "abc")
    assert a == b != c


def test_figure2_page_follows_its_data(tmp_path):
    rows = [
        {
            "design": design,
            "gap": gap,
            "realisation": 0,
            "round": t,
            "algorithm": name,
            "ratio": ratio,
            "error": error,
        }
        for design in figure2.DESIGNS
        for gap in figure2.GAPS
        for name in figure2.RULES
        for t, ratio, error in ((10, 0.5, 1.0), (figure2.ROUNDS, 0.8, 2.0))
    ]
    write_rows(tmp_path / "figure2.csv", rows)
    page = figure2.page(tmp_path)
    assert "0% of SAQM's ratios and 0% of SA-FOA's are above 0.9, and 0% of both" in page.agrees
    assert "shrinks in 0 of the 4 cases" in page.agrees
    assert "is 0.80 (least 0.80) in place of 0.80" in page.differs


def test_figure3_measures_every_rule(tmp_path, monkeypatch):
    monkeypatch.setattr(figure3, "SIZES", (6, 8))
    monkeypatch.setattr(figure3, "_ROUNDS", (5, 10))
    parts = []
    figure3.compute(tmp_path, done(parts))
    assert parts[-1] == ("figure3", 8, 8)
    rows = read_rows(tmp_path / "figure3.csv")
    assert {(r["n"], r["algorithm"]) for r in rows} == {
        (n, rule.name) for n in (6, 8) for rule in figure3.RULES
    }
    assert all(row["seconds"] >= 0 and row["k"] == row["n"] / 2 for row in rows)
    assert {row["super_arms"] for row in rows} == {20, 70}


def test_figure3_page_says_how_times_grow(tmp_path):
    sizes = (10, 12, 14, 16)
    rows = [
        {"n": n, "algorithm": name, "realisation": i, "seconds": seconds * growth ** (n / 2)}
        for n in sizes
        for i in range(2)
        for name, seconds, growth in (
            ("saqm", 1e-6, 1.0),
            ("sa-foa", 1e-4, 1.0),
            ("icb", 1e-6, 1.5),
            ("exhaustive", 1e-8, 4.0),
        )
    ]
    write_rows(tmp_path / "figure3.csv", rows)
    figure3.plot(tmp_path)
    page = figure3.page(tmp_path)
    assert "a round of Exhaustive 4.00 times as long" in page.agrees
    assert "a round of the others 1.00 to 1.50 times as long" in page.agrees
    exhaustive = 1e-8 * 4**8
    assert f"takes {1000 * exhaustive:.2f} ms" in page.agrees
    assert "12,870 super-arms" in page.agrees
    last = {"SAQM": 1e-6, "SA-FOA": 1e-4, "ICB": 1e-6 * 1.5**8}
    faster = [name for name, seconds in last.items() if seconds < exhaustive]
    assert f"({listing(faster)} are faster)" in page.agrees or len(faster) == 3


def test_figure4_gives_every_rule_the_same_instances(tmp_path):
    parts = []
    figure4.compute(tmp_path, done(parts))
    assert parts[-1] == ("figure4", 24, 24)
    rows = Results.read(tmp_path / "figure4.csv").rows
    assert len(rows) == 2 * 3 * 4
    assert not any(row["wrong"] for row in rows)
    by = {
        (name, gap): np.mean(
            [r["pulls"] for r in rows if (r["algorithm"], r["gap"]) == (name, gap)]
        )
        for name in ("saqm", "exhaustive")
        for gap in (0.5, 1.0)
    }
    assert by["saqm", 0.5] > 2 * by["saqm", 1.0]
    assert by["saqm", 1.0] > 3 * by["exhaustive", 1.0]
    figure4.plot(tmp_path)
    page = figure4.page(tmp_path)
    assert "none of 24 answers is wrong" in page.agrees
    assert f"{by['saqm', 0.5]:,.0f}" in page.body
    assert "SAQM" in page.differs


@pytest.fixture(scope="module")
def example():
    """Rows of a study, to be changed: one cell of Table 2, computed."""
    cell = next(
        c for c in table2.study(["experiments"], 1, 1).cells if c.instance.name == "Pokemon"
    )
    from superarm.study import Study

    return Study([cell], 1, rng=1, title="Table 2").run().rows[0]


def write_table(path, rows):
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    Results(columns).to_csv(path)


def test_figure4_page_follows_its_data(tmp_path, example):
    pulls = {"saqm": 120, "sa-foa": 110, "icb": 200, "exhaustive": 100}
    rows = [
        {
            **example,
            "algorithm": name,
            "pulls": round(each / gap**2),
            "gap": gap,
            "realisation": 0,
            "wrong": name == "icb",
        }
        for name, each in pulls.items()
        for gap in (0.1, 1.0)
    ]
    write_table(tmp_path / "figure4.csv", rows)
    page = figure4.page(tmp_path)
    assert "2 of 8 answers are wrong" in page.agrees
    assert "to the power 2.00," in page.agrees
    assert "SAQM and SA-FOA are within a factor 1.25" in page.agrees
    assert "ICB 2.00 times are taken" in page.differs
    assert "SAQM" not in page.differs


def test_table1_agrees_with_the_paper_and_says_where_not(tmp_path):
    table1.compute(tmp_path, Settings())
    assert table1.page(tmp_path).agrees.startswith("6 of 6 quizzes")
    assert "5 of 6 quizzes (IT, Medicine, Chinese, English and Science) have a tie" in (
        table1.page(tmp_path).differs
    )
    rows = read_rows(tmp_path / "table1.csv")
    rows[1]["average"] = 0.5
    write_rows(tmp_path / "table1.csv", rows)
    page = table1.page(tmp_path)
    assert page.agrees.startswith("5 of 6 quizzes")
    assert page.differs.startswith("Medicine. ")


# ---- Table 2 -------------------------------------------------------------------------------------


def made_up(example, factor, presets=("experiments",)):
    """Return rows whose pulls are so many times the paper's: factor(preset, rule, quiz)."""
    return [
        {
            **example,
            "preset": preset,
            "algorithm": name,
            "instance": quiz,
            "replication": run,
            "pulls": round(1000 * paper * factor(preset, name, quiz)),
        }
        for preset in presets
        for name, column in table2.PAPER.items()
        for quiz, paper in zip(QUIZZES, column, strict=True)
        for run in (1, 2)
    ]


def page_of(tmp_path, rows):
    write_table(tmp_path / "table2.csv", rows)
    return table2.page(tmp_path)


def test_table2_page_of_the_papers_own_numbers(tmp_path, example):
    page = page_of(tmp_path, made_up(example, lambda *cell: 1.0))
    assert "ICB takes 1.00 times the paper's pulls, within 1.25 of them on all six" in page.agrees
    assert "SA-FOA takes the fewest pulls of the three on 6 of 6" in page.agrees
    assert "none of 36 answers" in page.agrees
    assert "46,658 / 46,658 = 1.00" in page.body
    assert "text" not in page.body
    assert ">=" not in page.body


def test_table2_page_names_what_does_not_agree(tmp_path, example):
    def factor(preset, name, quiz):
        return {("icb", "IT"): 1.3, ("saqm", "Science"): 0.7, ("sa-foa", "English"): 30}.get(
            (name, quiz), 1.0
        )

    rows = made_up(example, factor)
    rows[0]["wrong"] = True
    page = page_of(tmp_path, rows)
    assert "ICB takes 1.00 to 1.30 times" in page.agrees
    assert "on all quizzes but IT;" in page.agrees
    assert "on all quizzes but Science." in page.agrees
    assert "on 5 of 6 quizzes" in page.agrees
    assert "here 1 of 36 answers" in page.agrees
    assert "SA-FOA takes 1.00 to 30.00 times" in page.differs
    none = page_of(tmp_path, made_up(example, lambda *cell: 2.0))
    assert "within 1.25 of them on none of the quizzes" in none.agrees


def test_table2_page_shows_the_other_presets_and_limits(tmp_path, example):
    factors = {"experiments": 1.0, "text": 5.0, "corrected": 0.01}
    rows = made_up(example, lambda preset, name, quiz: factors[preset], tuple(factors))
    limit = {"pulls": example["max_pulls"], "reason": "the limit of ... came before the stop"}
    rows[36 + 12] |= limit
    page = page_of(tmp_path, rows)
    assert "The preset `text` takes, in multiples of the paper's pulls: ICB 5.00, SAQM" in (
        page.differs
    )
    assert "(1 runs ended at the limit of pulls.)" in page.differs
    assert "None of the 18 numbers is within 1.25" in page.differs
    assert "The preset `corrected`" in page.differs
    assert page.body.count(">= ") == 1
    fitting = made_up(example, lambda *cell: 1.1, ("experiments", "text"))
    assert (
        "18 of the 18 numbers is within 1.25 of the paper's." in page_of(tmp_path, fitting).differs
    )


def test_table2_draws_ours_and_the_papers(tmp_path, example, monkeypatch):
    drawn = []
    monkeypatch.setattr("superarm.plots.save", lambda figure, *_: drawn.append(figure) or [])
    write_table(tmp_path / "table2.csv", made_up(example, lambda *cell: 1.5))
    table2.plot(tmp_path)
    left, right = drawn[0].axes
    lines = {line.get_label(): line for line in left.get_lines()}
    assert list(lines["SAQM, the paper"].get_ydata()) == [1000 * p for p in table2.PAPER["saqm"]]
    assert list(lines["SAQM, ours"].get_ydata()) == pytest.approx(
        [1500 * p for p in table2.PAPER["saqm"]]
    )
    assert lines["SAQM, ours"].get_fillstyle() == "full"
    assert lines["SAQM, the paper"].get_fillstyle() == "none"
    survived = {line.get_label(): line.get_xdata() for line in right.get_lines()}
    assert survived["ICB"][1:] == pytest.approx([1.5] * 12)


def test_the_experiments_preset_comes_near_the_paper(example):
    """The scatter of one support is some 15 %; Pokemon's ICB is at 1.06 of the paper on average."""
    assert (example["algorithm"], example["instance"]) == ("icb", "Pokemon")
    assert 0.6 < example["pulls"] / 1000 / table2.PAPER["icb"][3] < 1.6
    assert example["support"] == 2 * 55


def test_presets_look_as_they_say():
    for rule in table2.RULES:
        assert table2.rule_of(rule, "experiments") == rule.preset("experiments")
        assert table2.rule_of(rule, "corrected") == rule.preset("corrected")
        assert str(table2.rule_of(rule, "text").schedule) == "geometric:1.05"


# ---- all of them ---------------------------------------------------------------------------------


def test_all_writes_every_page_and_an_overview(tmp_path, monkeypatch, example):
    """With the computation of studies left out; the rest is small."""
    monkeypatch.setattr(figure2, "_rounds", lambda first, looks: [first, 252, figure2.ROUNDS])
    monkeypatch.setattr(figure3, "SIZES", (6, 8))
    monkeypatch.setattr(figure3, "_ROUNDS", (5, 10))
    monkeypatch.setattr(
        table2,
        "compute",
        lambda folder, settings: write_table(
            folder / "table2.csv", made_up(example, lambda *cell: 1.0)
        ),
    )
    result = run("all", "--quick", "--rng", 3, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert paths[0] == tmp_path / "reproduction.md"
    assert all(path.stat().st_size for path in paths)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    drawn = [name for name in EXPERIMENTS if name != "table1"]
    assert {path.name for path in paths} == {
        "reproduction.md",
        *(f"{name}.{kind}" for name in EXPERIMENTS for kind in ("md", "csv")),
        *(f"{name}.{kind}" for name in drawn for kind in ("png", "pdf")),
    }
    overview = paths[0].read_text()
    assert "the quick size, seed 3" in overview
    for name in EXPERIMENTS:
        assert f"({name}.md)" in overview
        page = (tmp_path / f"{name}.md").read_text()
        assert "**What agrees.**" in page
        assert "--rng 3 --quick" in page
        for target in re.findall(r"!\[[^]]*]\(([^)]*)\)", page):
            assert (tmp_path / target).exists()


# ---- all rules -----------------------------------------------------------------------------------


def rules_page(tmp_path, example, wrong=0):
    """Return the page of 20 made-up runs of each rule on IT, of which ICB has so many wrong."""
    rows = [
        {
            **example,
            "instance": "IT",
            "rule": name,
            "algorithm": rule.name,
            "replication": run,
            "pulls": pulls + (-1) ** run,
            "wrong": rule.name == "icb" and run < wrong,
            "certified": rule.name != "sa-foa",
            "seconds": 0.25,
            "least": 50.0,
            "least_kind": "asymptotic",
        }
        for (name, rule), pulls in zip(
            rules.RULES.items(), (200, 0, 150, 300, 0, 400, 500, 600, 100), strict=True
        )
        for run in range(20)
        if pulls
    ]
    write_table(tmp_path / "rules.csv", rows)
    return rules.page(tmp_path)


def test_rules_page_follows_its_data(tmp_path, example):
    page = rules_page(tmp_path, example)
    error = rules.mean_error([199, 201] * 10)
    assert f"| Certified | 200 +- {error:.0f} | 0 of 20 (0.0 to 16.8 %) | yes | 4.0 |" in page.body
    assert "| SA-FOA | 100 +- 0 | 0 of 20 (0.0 to 16.8 %) | no | 2.0 | 0.250 |" in page.body
    assert "no rule that certifies errs more often" in page.agrees
    assert "On IT Certified, adaptive takes the fewest pulls" in page.agrees
    assert "and SAQM the most, 600" in page.agrees
    assert "as delta goes to 0" in page.body
    assert (
        "Not here. Certified, calibrated: a calibrated radius holds for normal noise" in page.body
    )
    assert [path.name for path in rules.plot(tmp_path)] == ["rules.png", "rules.pdf"]


def test_rules_page_says_who_errs_too_often(tmp_path, example):
    """4 of 20 may be chance at 0.05 (the interval begins at 0.057: it is not); 3 of 20 are."""
    page = rules_page(tmp_path, example, wrong=4)
    assert "ICB on IT err more often than they may" in page.agrees
    assert "| ICB | 500 +- 0 | 4 of 20 (5.7 to 43.7 %) |" in page.body
    assert "no rule" in rules_page(tmp_path, example, wrong=3).agrees


def test_every_rule_serves_a_question_and_refusals_are_reasons():
    asked = rules.questions()
    for name, rule in rules.RULES.items():
        for_labels = name == "Certified, adaptive"
        assert bool(rules.refusal(rule, asked["8 of 24"].problem)) == for_labels
        assert bool(rules.refusal(rule, asked["10 of 100"].problem)) == for_labels
    refused = [name for name, r in rules.RULES.items() if rules.refusal(r, asked["IT"].problem)]
    assert refused == ["Certified, calibrated", "Focused, calibrated"]


@pytest.mark.parametrize(("wrong", "runs"), [(0, 3), (3, 3), (1, 40), (7, 50)])
def test_intervals_are_those_of_clopper_and_pearson(wrong, runs):
    known = binomtest(wrong, runs).proportion_ci(0.95)
    assert rules.interval(wrong, runs) == pytest.approx((known.low, known.high))


def test_intervals_of_means_are_student_s():
    pulls = [3.0, 5.0, 4.0, 10.0]
    known = ttest_1samp(pulls, 0).confidence_interval(0.95)
    assert np.mean(pulls) + rules.mean_error(pulls) == pytest.approx(known.high)
    assert rules.mean_error([3.0]) == math.inf


# ---- words and tables ----------------------------------------------------------------------------


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [{"a": 1.5, "b": "text", "c": True}, {"a": math.inf, "b": "", "c": False}]
    write_rows(tmp_path / "rows.csv", rows)
    assert read_rows(tmp_path / "rows.csv") == rows
    with pytest.raises(sa.DataError, match=r"missing\.csv"):
        read_rows(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, 1.001], "1.00"),
        ([0.5, 2, 1], "0.50 to 2.00"),
        ([0.00123, 0.02], "0.0012 to 0.02"),
        ([1234.5, 3], "3.00 to 1,234"),
    ],
)
def test_spans_in_words(values, words):
    assert span(values) == words


def test_lists_in_words():
    assert [listing(list(names)) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]


# ---- the paper -----------------------------------------------------------------------------------


@pytest.mark.skipif(not PAPER, reason="the paper's source does not come with superarm")
def test_the_papers_numbers_are_the_papers():
    text = PAPER[0].read_text()
    lines = {
        name: re.findall(rf"{{\\em {start}.*?}}?\s*}} *& *(.*?)\\\\", text)
        for name, start in zip(
            QUIZZES, ("IT", "Medicine", "Chinese", "Pok", "English", "Science"), strict=True
        )
    }
    for i, quiz in enumerate(QUIZZES):
        first, second = ([float(c.replace(",", "")) for c in t.split("&")] for t in lines[quiz])
        assert tuple(first) == table1.PAPER[quiz]
        assert tuple(second) == tuple(table2.PAPER[n][i] for n in ("icb", "saqm", "sa-foa"))


def test_the_papers_numbers_add_up():
    """Sums of the printed columns."""
    assert {name: sum(column) for name, column in table2.PAPER.items()} == {
        "icb": 727_297,
        "saqm": 779_792,
        "sa-foa": 39_837,
    }


def test_the_data_are_plain_csv(tmp_path):
    table1.compute(tmp_path, Settings())
    with open(tmp_path / "table1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["quiz"] for row in rows] == list(QUIZZES)
