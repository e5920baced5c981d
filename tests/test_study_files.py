"""Study files and grids that cannot be run are refused before any work, in one clear line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from studies import write_study

import superarm as sa
from superarm.cli import main
from superarm.datasets import QUIZZES, crowd
from superarm.plugins import OURS
from superarm.study import cells, files

GOOD = """
[[instance]]
synthetic = {n = 6, k = 2, gap = 0.5}
noise = "gaussian:1"

[[algorithm]]
name = "icb"
"""


def refused(path, *words):
    """Run a study file; return what the command says, once it is certain that nothing was done."""
    before = sorted(path.parent.iterdir())
    out = path.with_name("table.csv")
    done = CliRunner().invoke(main, ["study", "run", str(path), "--out", str(out), *words])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    *usage, line = done.stderr.strip().splitlines()
    assert not [each for each in usage if each.startswith("Error")]
    assert sorted(path.parent.iterdir()) == before
    return line


def changed(*pairs):
    text = GOOD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


SYNTHETIC = "synthetic = {n = 6, k = 2, gap = 0.5}"
NOISE = 'noise = "gaussian:1"'
NAME = 'name = "icb"'


def instead(old, new):
    return changed((old, new))


def added(old, new):
    return changed((old, f"{old}\n{new}"))


BAD = {
    # the file
    "not TOML": ("[[instance]\n", "study.toml: not TOML: Expected ']]'"),
    "twice": ("rng = 1\nrng = 2\n", "study.toml: not TOML: Cannot overwrite a value"),
    "deep": ("x = " + "[" * 5000, "study.toml: not TOML"),
    "empty": ("", "study.toml: a study needs tables [[instance]]; there is none"),
    "no algorithm": (GOOD.partition("[[alg")[0], "needs tables [[algorithm]]; there is none"),
    "one table": (GOOD.replace("[[instance]]", "[instance]"), "needs tables [[instance]]; this is"),
    "no table": ("instance = 3\n[[algorithm]]\n" + NAME, "needs tables [[instance]]"),
    "unknown key": (
        "replicates = 3\n" + GOOD,
        "'replicates' is not a key that is known; there are",
    ),
    "title": ("title = 3\n" + GOOD, "title must be a text, not 3"),
    "replications text": (
        "replications = '3'\n" + GOOD,
        "replications must be a whole number, not",
    ),
    "replications bool": ("replications = true\n" + GOOD, "replications must be a whole number"),
    "replications 0": ("replications = 0\n" + GOOD, "replications must be a whole number >= 1"),
    "replications list": ("replications = [1, 2]\n" + GOOD, "replications must be one value"),
    "many runs": ("replications = 100000000\n" + GOOD, "replications must not exceed 10,000,000"),
    "rng": ("rng = -1\n" + GOOD, "rng must be a whole number >= 0, not -1"),
    "max_pulls": ("max_pulls = 1.5\n" + GOOD, "max_pulls must be a whole number >= 1, not 1.5"),
    "max_pulls nan": ("max_pulls = nan\n" + GOOD, "max_pulls must be a whole number >= 1"),
    "max_pulls few": ("max_pulls = 3\n" + GOOD, "cell 1 (icb on synthetic): the first look needs"),
    # where the arms come from
    "no source": (
        instead(SYNTHETIC, "k = 2"),
        "instance 1: say where the arms come from, by one of",
    ),
    "two sources": (added(SYNTHETIC, "crowd = 'IT'"), "there are crowd and synthetic"),
    "unknown quiz": (instead(SYNTHETIC, "crowd = 'chess'\nk = 2"), "quiz 'chess' is not one of IT"),
    "no replay": (instead(SYNTHETIC, "replay = 'IT'\nk = 2"), "superarm datasets fetch IT"),
    "missing means": (
        instead(SYNTHETIC, "means = 'gone.csv'\nk = 2"),
        "gone.csv: No such file or directory",
    ),
    "bad means": (instead(SYNTHETIC, "means = 'study.toml'\nk = 2"), "the header must be arm,mean"),
    "synthetic number": (instead(SYNTHETIC, "synthetic = 3"), "synthetic must be a table, as"),
    "synthetic part": (instead(", gap = 0.5", ""), "synthetic needs gap, as {n = 10"),
    "synthetic key": (instead("gap = 0.5", "gap = 0.5, m = 1"), "'m' is not a key that is known"),
    "synthetic type": (instead("n = 6", "n = 6.5"), "n must be a whole number, not 6.5"),
    "gap": (
        instead("gap = 0.5", "gap = [0.5, 1.5]"),
        "(synthetic, gap=1.5): the gap must lie between",
    ),
    "k over n": (
        instead("k = 2", "k = [2, 7]"),
        "instance 1 (synthetic, k=7): k must be between 1",
    ),
    "k twice": (added(SYNTHETIC, "k = 2"), "k is not for synthetic arms"),
    "crowd rng": (
        instead(SYNTHETIC, "crowd = 'IT'\nk = 2\ninstance_rng = 3"),
        "instance_rng draws synthetic arms",
    ),
    # the question
    "no noise": (instead(NOISE, ""), "instance 1: noise is missing"),
    "unknown noise": (instead("gaussian:1", "loud"), "instance 1 (synthetic): noise 'loud'"),
    "noise type": (instead(NOISE, "noise = 1"), "noise must be a text, not 1"),
    "epsilon": (added(NOISE, "epsilon = [0.1, -1]"), "(synthetic, epsilon=-1): epsilon must be"),
    "epsilon nan": (added(NOISE, "epsilon = nan"), "epsilon must be a finite number"),
    "epsilon bool": (added(NOISE, "epsilon = true"), "epsilon must be a number, not True"),
    "delta": (added(NOISE, "delta = [0.05, 1]"), "(synthetic, delta=1): delta must lie strictly"),
    "direction": (added(NOISE, "direction = 'up'"), "direction must be 'maximize' or 'minimize'"),
    "labels' means": (instead("gaussian:1", "labels"), "is impossible under noise labels"),
    "neither k nor class": (instead(SYNTHETIC, "crowd = 'IT'"), "say which groups may be chosen"),
    "both": (
        instead(SYNTHETIC, "crowd = 'IT'\nk = 2\nclass = 'matchings'"),
        "say which groups may be chosen",
    ),
    "unknown class": (instead(SYNTHETIC, "crowd = 'IT'\nclass = 'knots'"), "knots"),
    "class without columns": (instead(SYNTHETIC, "crowd = 'IT'\nclass = 'matchings'"), "column"),
    "empty list": (added(NOISE, "epsilon = []"), "epsilon is an empty list, so that nothing would"),
    "date": (added(NOISE, "name = 2020-01-01"), "name must be a text, not datetime.date"),
    "blank name": (added(NOISE, "name = ' '"), "an instance's name must be a text, not ' '"),
    # the algorithm
    "no name": (instead(NAME, "preset = 'text'"), "algorithm 1: name is missing"),
    "unknown rule": (
        instead(NAME, "name = ['icb', 'ibc']"),
        "algorithm 1 (ibc): 'ibc' is none of the algorithms that are known: ",
    ),
    "unknown preset": (added(NAME, "preset = 'best'"), "algorithm 1 (icb): preset"),
    "unknown setting": (added(NAME, "alpha = 1"), "algorithm 1 (icb): 'alpha' is not a setting of"),
    "bad setting": (
        added(NAME, "radius = ['independent', 'x']"),
        "(icb, radius=x): radius must be",
    ),
    "setting type": (added(NAME, "radius = 3"), "radius must be"),
    "unknown design": (added(NAME, "design = 'x'"), "'x' is none of the designs that are known"),
    "bad support": (added(NAME, "support = 'some'"), "algorithm 1 (icb): "),
    "bad schedule": (added(NAME, "schedule = 'often'"), "algorithm 1 (icb): schedule 'often'"),
    # the grid
    "support too small": (
        added(NAME, "support = ['full', 3]"),
        "cell 2 (icb on synthetic, design=uniform:3): ",
    ),
    "duplicates": (
        GOOD + '[[algorithm]]\nname = "icb"\npreset = "corrected"\n',
        "cell 2 (icb on synthetic) is the same as cell 1; give more replications instead",
    ),
    "same values": (instead("gap = 0.5", "gap = [0.5, 0.5]"), "is the same as cell 1"),
    "many cells": (
        instead("gap = 0.5", f"gap = {[0.5] * 400}").replace(
            NOISE, f"{NOISE}\nepsilon = {[0.5] * 400}"
        ),
        "instance 1: its lists make 160,000 combinations; at most 100,000",
    ),
    "label of a column": (added(NAME, "labels = {seed = 1}"), "label 'seed' is a column of every"),
    "label of an axis": (added(NOISE, "labels = {gap = 1}"), "label 'gap' is an axis of the grid"),
    "label twice": (
        added(NOISE, "labels = {x = 1}").replace(NAME, NAME + "\nlabels = {x = 2}"),
        "label 'x' is one of the instance's too",
    ),
    "label list": (added(NAME, "labels = {x = [1, 2]}"), "label 'x' must be a text"),
    "label nan": (
        added(NAME, "labels = {x = nan}"),
        "label 'x' must be a text, an ordinary number",
    ),
    "label huge": (added(NAME, f"labels = {{x = {2**63}}}"), "label 'x' must be a text"),
    "labels text": (added(NAME, "labels = 'x'"), "labels must be a table, as {name = value}"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_study_is_refused_in_one_line(tmp_path, monkeypatch, case):
    monkeypatch.setenv("SUPERARM_CROWD", str(tmp_path / "nowhere"))
    text, says = BAD[case]
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    line = refused(path)
    assert says in line
    assert line.startswith("Error: ")
    assert "study.toml" in line or "cell" in line


def test_what_these_cases_change_is_good(tmp_path):
    done = CliRunner().invoke(main, ["study", "check", str(write_study(tmp_path, GOOD))])
    assert done.exit_code == 0, done.stderr


def test_every_setting_is_refused_or_taken_and_never_a_traceback(tmp_path):
    """Whatever is written there: texts, numbers, truth values, dates."""
    path = tmp_path / "study.toml"
    for name in OURS["algorithms"]:
        keys = {*files.load("algorithms", name).__dataclass_fields__, *files.ALGORITHM} - {"name"}
        for key in sorted(keys):
            for value in ("'x'", "''", "0", "-1", "2.5", "nan", "1e300", "true", "2020-01-01"):
                path.write_text(instead(NAME, f'name = "{name}"\n{key} = {value}\n'))
                try:
                    files.read_study(path)
                except sa.SuperarmError as error:
                    assert "study.toml" in str(error)  # noqa: PT017 - either way is good


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"title = '\xff'"), "not a text file in UTF-8"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, make, says):
    path = tmp_path / "study.toml"
    make(path)
    assert f"study.toml: {says}" in refused(path)


def test_a_name_that_no_file_can_have():
    with pytest.raises(sa.DataError, match="is no file name"):
        sa.read_study("a\0b.toml")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--out", "table.txt"],
            "the name of a table must end in .csv or .parquet, not 'table.txt'",
        ),
        (["--out", ""], "must end in .csv or .parquet, not ''"),
        (["--out", "gone/table.csv"], "gone/table.csv.journal: No such file or directory"),
        (["--out", "folder.csv"], "folder.csv: Is a directory"),
        (["--out", "there.csv"], "there.csv is there already, and no journal beside it"),
        (["--workers", "0"], "workers must be a whole number >= 1, not 0"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "give either workers or dask"),
        (["--dask", "127.0.0.1"], "dask must be an address as tcp://127.0.0.1:8786"),
        (["--replications", "0"], "study.toml: replications must be a whole number >= 1"),
        (["--rng", "-1"], "study.toml: rng must be a whole number >= 0"),
    ],
)
def test_options_that_cannot_be(tmp_path, monkeypatch, words, says):
    path = write_study(tmp_path, GOOD)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "there.csv").write_text("mine")
    monkeypatch.chdir(tmp_path)
    assert says in refused(path, *words)
    assert (tmp_path / "there.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("cell,pulls\n1,2\n", "is not the table of a study: no column 'study'"),
        ("", "is not the table of a study"),
        ("a,b\n1\n", "line 2: 1 cells, and not 2"),
        ('a\n"x', "unexpected end of data"),
        ("pulls\nmany\n", "column 'pulls' has values that are no int"),
        ("certified\nyes\n", "column 'certified' has values that are no bool"),
    ],
)
def test_tables_that_are_none(tmp_path, content, says):
    (tmp_path / "t.csv").write_text(content)
    done = CliRunner().invoke(main, ["study", "show", str(tmp_path / "t.csv")])
    assert done.exit_code == 2
    assert says in done.stderr
    (tmp_path / "t.parquet").write_text(content)
    done = CliRunner().invoke(main, ["study", "show", str(tmp_path / "t.parquet")])
    assert done.exit_code == 2
    assert "t.parquet: " in done.stderr


def test_a_table_that_is_not_there(tmp_path):
    done = CliRunner().invoke(main, ["study", "show", str(tmp_path / "t.csv")])
    assert done.exit_code == 2
    assert "t.csv: No such file or directory" in done.stderr


# ---- the same from Python ------------------------------------------------------------------------


def instance(**changes):
    problem = sa.Problem(3, 1, sa.gaussian(0.5), epsilon=0.2)
    given = {
        **{"name": "i", "problem": problem},
        "environment": sa.environment([0.9, 0.5, 0.1], problem.noise),
    }
    return sa.Instance(**{**given, **changes})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: instance(name=3), "an instance's name must be a text, not 3"),
        (lambda: instance(name="\ud800"), "characters that no table can hold"),
        (lambda: instance(problem=3), "problem must be a superarm.Problem"),
        (lambda: instance(environment=[1, 2, 3]), "environment must be one such as"),
        (
            lambda: instance(environment=sa.environment([1, 2], sa.gaussian(1.0))),
            "instance 'i': the environment has 2 arms, the problem 3",
        ),
        (lambda: instance(problem=sa.Problem(["a", "b\0", "c"], 1, sa.labels())), "no table can"),
        (lambda: instance(labels=3), "labels must be values by name"),
        (lambda: instance(labels={3: 3}), "a label's name must be a text"),
        (lambda: instance(labels={"x": None}), "label 'x' must be a text"),
        (lambda: instance(labels={"x": math.inf}), "label 'x' must be a text"),
        (lambda: sa.Cell(3, sa.ICB()), "instance must be an Instance"),
        (lambda: sa.Cell(instance(), sa.ICB), "algorithm"),
        (lambda: sa.Study([], 1), "there are no cells"),
        (lambda: sa.Study("cells", 1), "cells must be a list"),
        (lambda: sa.Study(3, 1), "cells must be a list"),
        (lambda: sa.Study([instance()], 1), "cell 1 must be a Cell"),
        (lambda: sa.Study([sa.Cell(instance(), sa.ICB())], 0), "replications must be"),
        (lambda: sa.Study([sa.Cell(instance(), sa.ICB())], 1, title=3), "title must be a text"),
        (lambda: sa.Study([sa.Cell(instance(), sa.ICB())], 1, max_pulls=0), "max_pulls must be"),
        (lambda: sa.Study.grid([], [sa.ICB()], 1), "there are no instances"),
        (lambda: sa.Study.grid([instance()], sa.ICB(), 1), "algorithms must be a list"),
        (
            lambda: sa.Study.grid([instance()] * 2, [sa.ICB()], 1),
            r"cell 2 \(icb on i\) is the same as cell 1",
        ),
    ],
)
def test_studies_that_cannot_be(make, says):
    with pytest.raises(sa.SettingError, match=says):
        make()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"workers": "2"}, "workers must be a whole number"),
        ({"fresh": 1}, "fresh must be True or False"),
        ({"out": 3}, "a table's file must be a path, not 3"),
        ({"dask": 3}, "dask must be an address"),
    ],
)
def test_runs_that_cannot_be(settings, says):
    with pytest.raises(sa.SettingError, match=says):
        sa.Study([sa.Cell(instance(), sa.ICB())], 1).run(**settings)


def test_a_study_has_a_greatest_size(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 1)
    with pytest.raises(sa.SettingError, match="a study has at most 1 cells; these are 2"):
        sa.Study.grid([instance()], [sa.ICB(), sa.SAQM()], 1)
    monkeypatch.undo()
    monkeypatch.setattr(cells, "MOST_RUNS", 5)
    with pytest.raises(sa.SettingError, match="2 cells with 3 replications are 6 runs"):
        sa.Study.grid([instance()], [sa.ICB(), sa.SAQM()], 3)


def test_what_an_extra_brings_is_asked_for(monkeypatch, tmp_path):
    import sys

    for name in ("joblib", "distributed", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    study = sa.Study([sa.Cell(instance(), sa.ICB())], 2)
    for settings, extra in (
        ({"workers": 2}, "study"),
        ({"dask": "tcp://127.0.0.1:1"}, "dask"),
        ({"out": tmp_path / "t.parquet"}, "study"),
    ):
        with pytest.raises(sa.SettingError, match=rf'pip install "superarm\[{extra}\]"'):
            study.run(**settings)


# ---- good files ----------------------------------------------------------------------------------


def test_lists_are_axes_and_the_last_one_runs_fastest(tmp_path):
    study = sa.read_study(write_study(tmp_path))
    assert study.names[:3] == (
        "cell 1 (icb on synthetic, gap=0.4, design=uniform:3n)",
        "cell 2 (icb on synthetic, gap=0.4, design=uniform:full)",
        "cell 3 (exhaustive on synthetic, gap=0.4)",
    )
    assert study.names[8] == "cell 9 (exhaustive on four)"


def test_a_file_says_what_python_says(tmp_path):
    study = sa.read_study(write_study(tmp_path))
    noise = sa.gaussian(0.2)
    means = sa.synthetic(6, 2, 0.8, rng=0)
    problem = sa.Problem(6, 2, noise, epsilon=0.2)
    mine = sa.Instance("synthetic", problem, sa.environment(means, noise), {"gap": 0.8})
    assert study.cells[3].digest == sa.Cell(mine, sa.ICB(design=sa.Uniform("3n"))).digest
    assert study.cells[3].instance.labels == {"gap": 0.8}
    four = study.cells[-1].instance
    assert four.problem.arms == ("a", "b", "c", "d")
    assert four.environment.means.tolist() == [0.9, 0.8, 0.3, 0.2]


def test_paths_are_relative_to_the_study_file(tmp_path, monkeypatch):
    folder = tmp_path / "below"
    folder.mkdir()
    write_study(folder)
    monkeypatch.chdir(tmp_path)
    assert len(sa.read_study(Path("below") / "study.toml").cells) == 9


def test_all_quizzes_are_instances(tmp_path):
    text = f"[[instance]]\ncrowd = {json.dumps(QUIZZES)}\nk = 10\nepsilon = 0.5\nnoise = 'labels'\n"
    study = sa.read_study(write_study(tmp_path, text + "[[algorithm]]\nname = 'icb'\n"))
    for quiz, cell in zip(QUIZZES, study.cells, strict=True):
        assert cell.instance.name == quiz
        assert cell.instance.problem.arms == crowd(quiz).arms
        assert tuple(cell.instance.environment.means) == crowd(quiz).means
    study.check([4])


def test_settings_and_presets_reach_the_algorithm(tmp_path):
    text = GOOD.partition("[[alg")[0] + (
        '[[algorithm]]\nname = "saqm"\npreset = ["text", "experiments"]\nalpha = 0.9\n'
        'schedule = "geometric:1.1"\ndesign = "g-optimal"\nsupport = "3n"\nlabels = {who = "we"}\n'
    )
    for cell, preset in zip(
        sa.read_study(write_study(tmp_path, text)).cells, ("text", "experiments"), strict=True
    ):
        design = sa.GOptimal(support="3n")
        same = sa.SAQM.preset(preset, alpha=0.9, schedule=sa.Geometric(1.1), design=design)
        assert cell.algorithm == same
        assert (cell.preset, dict(cell.labels)) == (preset, {"who": "we"})


def test_a_class_from_columns(tmp_path):
    path = write_study(tmp_path, changed((SYNTHETIC, "means = 'ways.csv'\nclass = 'paths:s:t'")))
    edges = "arm,mean,from,to\na,1,s,x\nb,2,x,t\nc,1,s,y\nd,1,y,t\n"
    (tmp_path / "ways.csv").write_text(edges)
    (cell,) = sa.read_study(path).cells
    assert isinstance(cell.instance.problem.decision, sa.Paths)
    row = sa.Study([cell], 1, max_pulls=3000).run().rows[0]
    assert row["class"] == "Paths"
