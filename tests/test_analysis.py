"""Plans for people who measure by other means, and what their totals say."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support import most_wrong

import superarm as sa
from superarm.cli import main

ARMS = [f"w{i}" for i in range(8)]
MEANS = dict(zip(ARMS, (0.9, 0.8, 0.7, 0.4, 0.3, 0.2, 0.2, 0.1), strict=True))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with an arms.csv."""
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text("arm\n" + "\n".join(ARMS) + "\n", encoding="utf-8")
    return tmp_path


def called(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def planned(pulls: int = 400, *more: Any) -> list[dict[str, str]]:
    """Write a plan by the command line, and return its rows."""
    result = called(
        "design", "--arms", "arms.csv", "--k", 3, "--pulls", pulls, "--out", "plan.csv", *more
    )
    assert result.exit_code == 0, result.stderr
    with open("plan.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def measured(rows: list[dict[str, str]], seed: int = 1) -> list[dict[str, Any]]:
    """Fill in totals of labels."""
    rng = np.random.default_rng(seed)
    return [
        {**row, "total": int(sum(rng.random() < MEANS[n] for n in row["members"].split(";")))}
        for row in rows
    ]


def written(rows: list[dict[str, Any]], name: str = "totals.csv") -> str:
    with open(name, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return name


def analysed(*more: Any, epsilon: float = 1.0) -> Any:
    result = called(
        *("analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels"),
        *("--epsilon", epsilon, "--format", "json", *more),
    )
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


# ---- design --------------------------------------------------------------------------------------


def test_a_plan_lists_every_pull_in_order():
    rows = planned(100)
    assert [row["pull"] for row in rows] == [str(i) for i in range(1, 101)]
    assert all(row["total"] == "" for row in rows)
    groups = [tuple(row["members"].split(";")) for row in rows]
    assert all(len(set(group)) == 3 and set(group) <= set(ARMS) for group in groups)
    few = planned(100, "--support", 20)
    assert planned(100, "--support", 20) == few  # the same seed, the same plan
    assert planned(100, "--support", 20, "--rng", 1) != few


@pytest.mark.parametrize("design", ["uniform", "g-optimal", "xy-optimal"])
def test_every_design_writes_a_plan_that_can_be_analysed(design):
    written(measured(planned(300, "--design", design)))
    assert analysed("--plan", "plan.csv")["answer"] == ARMS[:3]


def test_the_summary_says_what_was_written():
    result = called(
        *("design", "--arms", "arms.csv", "--k", 3, "--pulls", 90, "--out", "plan.csv"),
        *("--support", 20, "--format", "json"),
    )
    said = json.loads(result.stdout)
    assert (
        said.items() >= {"arms": 8, "k": 3, "pulls": 90, "groups": 20, "file": "plan.csv"}.items()
    )
    rows = [
        [ARMS.index(name) for name in row["members"].split(";")]
        for row in csv.DictReader(Path("plan.csv").read_text().splitlines())
    ]
    chi = np.zeros((90, 8))
    for x, row in zip(chi, rows, strict=True):
        x[row] = 1.0
    variances = np.diagonal(np.linalg.inv(chi.T @ chi))
    assert said["error_of_an_arm"] == pytest.approx(math.sqrt(variances.max()))
    written(measured(list(csv.DictReader(Path("plan.csv").read_text().splitlines()))))
    assert analysed()["design"]["digest"] == said["digest"]


def test_a_plan_for_another_class():
    Path("links.csv").write_text("arm,from,to\nx,s,a\ny,a,t\nz,s,t\n", encoding="utf-8")
    result = called(
        *("design", "--arms", "links.csv", "--class", "paths:s:t", "--pulls", 5),
        *("--out", "plan.csv", "--format", "csv"),
    )
    assert result.exit_code == 0
    groups = {row["members"] for row in csv.DictReader(Path("plan.csv").read_text().splitlines())}
    assert groups == {"x;y", "z"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"--k": None}, "either --k, or --class"),
        ({"--class": "paths:a:b"}, "either --k, or --class"),
        ({"--k": 9}, "k must be between 1 and the number of arms"),
        ({"--pulls": 0}, "--pulls must be a whole number >= 1"),
        ({"--pulls": 7}, "7 pulls cannot tell these 8 arms apart"),
        ({"--pulls": 10**9}, "--pulls must not exceed"),
        ({"--support": "7"}, "a support of 7 super-arms cannot tell 8 arms apart"),
        ({"--support": "many"}, "support 'many' is not"),
        ({"--design": "round"}, "'round' is not one of cyclic, uniform"),
        ({"--k": None, "--class": "trees"}, "'trees' is none of the decisions"),
        ({"--k": None, "--class": "spanning-trees"}, "needs a column 'from'"),
        ({"--k": None, "--class": "spanning-trees:3"}, "is written spanning-trees"),
        ({"--k": None, "--class": "paths:a"}, "paths need their ends"),
        ({"--arms": "nobody.csv"}, "nobody.csv: No such file"),
        ({"--out": "nowhere/plan.csv"}, "nowhere/plan.csv: not the name of a file in a directory"),
        ({"--out": "."}, ".: not the name of a file"),
        ({"--out": ""}, "--out: not the name of a file"),
        ({"--out": "arms.csv"}, "arms.csv: there already, and not a plan without totals"),
    ],
)
def test_a_mistake_in_design_gives_one_clear_line(options, says):
    base = {"--arms": "arms.csv", "--k": 3, "--pulls": 50, "--out": "plan.csv"}
    given = {key: value for key, value in {**base, **options}.items() if value is not None}
    result = called("design", *(word for pair in given.items() for word in pair))
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_plan_is_written_anew_but_never_over_totals():
    planned(100)
    assert len(planned(120)) == 120
    before = Path(written(measured(planned(100)), "plan.csv")).read_text(encoding="utf-8")
    result = called("design", "--arms", "arms.csv", "--k", 3, "--pulls", 100, "--out", "plan.csv")
    assert result.exit_code == 2
    assert "plan.csv: there already" in result.stderr
    assert Path("plan.csv").read_text(encoding="utf-8") == before


# ---- analysis ------------------------------------------------------------------------------------


def test_an_answer_with_its_certificate():
    written(measured(planned(1500)))
    found = analysed("--plan", "plan.csv")
    assert found["answer"] == ARMS[:3]
    assert found["certificate"]["pulls"] == 1500
    assert found["epsilon_reached"] <= 1.0
    assert list(found["estimates"]) == ARMS
    # What is reached is what would have been certified, and nothing better.
    reached = found["epsilon_reached"]
    assert found["certificate"]["epsilon"] == reached
    written(measured(planned(150, "--design", "uniform")))
    rule = ("--algorithm", "icb")
    reached = analysed(*rule)["epsilon_reached"]
    assert reached > 0
    assert analysed(*rule, epsilon=reached * 1.001)["certificate"] is not None
    less = analysed(*rule, epsilon=reached * 0.999)
    assert less["certificate"] is None
    assert less["reason"].startswith("these pulls show only that it is within")


def test_the_order_of_lines_does_not_matter():
    rows = measured(planned(300))
    written(rows)
    straight = analysed()
    written([rows[i] for i in np.random.default_rng(1).permutation(300)])
    mixed = analysed("--plan", "plan.csv")
    before, after = straight.pop("diagnostics"), mixed.pop("diagnostics")
    assert mixed == straight
    for one, other in zip(before["findings"], after["findings"], strict=True):
        assert one["p_value"] == other["p_value"]  # the sentences name lines of the file


def test_missing_totals_leave_a_guess_and_no_certificate():
    rows = measured(planned(1500))
    rows[7]["total"] = rows[9]["total"] = ""
    written(rows)
    found = analysed("--plan", "plan.csv")
    assert found["answer"] == ARMS[:3]
    assert found["certificate"] is None
    assert found["epsilon_reached"] is None
    assert found["reason"] == "2 of 1,500 planned totals are missing"


def test_a_heuristic_reaches_nothing_for_certain():
    problem = sa.Problem(ARMS, 3, sa.labels(), epsilon=1.0)
    rows = measured(planned(1500))
    groups, totals = [row["members"].split(";") for row in rows], [row["total"] for row in rows]
    found = sa.analyse(problem, groups, totals, sa.SAFOA())
    assert found.epsilon_reached is None
    assert not found.verdict.certified
    assert sa.analyse(problem, groups, totals, sa.SAFOA(certified=True)).epsilon_reached is not None


def test_tables_and_csv():
    written(measured(planned(300)))
    base = ("analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels")
    table = called(*base).stdout
    assert "with probability >= 0.95" in table
    assert "w0, w1, w2" in table
    lines = called(*base, "--format", "csv").stdout.splitlines()
    assert lines[0] == "arm,chosen,estimate"
    assert [line.split(",")[:2] for line in lines[1:]] == [
        [name, str(name in ARMS[:3])] for name in ARMS
    ]


def test_without_a_file_of_arms_they_are_those_in_the_totals():
    written(measured(planned(300)))
    result = called(
        "analyse", "totals.csv", "--k", 3, "--noise", "labels", "--format", "json", "--epsilon", 1
    )
    assert sorted(json.loads(result.stdout)["answer"]) == ARMS[:3]


def test_paths_are_analysed_too():
    Path("arms.csv").write_text("arm,from,to\nx,s,a\ny,a,t\nz,s,t\n", encoding="utf-8")
    written(
        [
            {"pull": i, "members": group, "total": total}
            for i, (group, total) in enumerate([("x;y", 3.0), ("z", 5.0)] * 50, 1)
        ]
    )
    result = called(
        *("analyse", "totals.csv", "--arms", "arms.csv", "--class", "paths:s:t"),
        *("--noise", "gaussian:1", "--direction", "minimize", "--format", "json"),
    )
    found = json.loads(result.stdout)
    assert found["answer"] == ["x", "y"]
    assert found["certificate"]["epsilon"] == 0.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pull,members\n1,w0\n", "line 1: the header must be pull,members,total"),
        ("pull,members,total\n", "no pulls in it"),
        ("pull,members,total\nx,w0;w1;w2,1\n", "line 2: 'x' is not the number of a pull"),
        ("pull,members,total\n1,w0;w1;w2,1\n1,w0;w1;w3,1\n", "line 3: pull 1 is on line 2 too"),
        ("pull,members,total\n1,w0;;w2,1\n", "line 2: 'w0;;w2' is not a group"),
        ("pull,members,total\n1,w0;w1;w2,two\n", "line 2: 'two' is not a finite number"),
        ("pull,members,total\n1,w0;w1;zoe,2\n", "line 2: 'zoe' is none of the arms"),
        ("pull,members,total\n1,w0;w1,2\n", "line 2: the group (w0, w1) is not 3 different arms"),
        ("pull,members,total\n1,w0;w1;w1,2\n", "line 2: the group (w0, w1, w1) is not 3"),
        ("pull,members,total\n1,w0;w1;w2,2\n", "cannot be told apart"),
        ("pull,members,total\n1,w0;w1;w2,\n", "no pull has a total yet"),
    ],
)
def test_a_mistake_in_totals_gives_one_clear_line(text, says):
    Path("totals.csv").write_text(text, encoding="utf-8")
    result = called("analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels")
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def test_the_table_does_not_say_yes_to_more_than_was_reached():
    written(measured(planned(100)))
    base = "analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels"
    for epsilon, yes in ((0.01, "no"), (3, "yes")):
        lines = called(*base, "--epsilon", epsilon).stdout.splitlines()
        assert next(line for line in lines if "as asked" in line).split()[-1] == yes
    lines = called(*base, "--delta", 1e-12).stdout.splitlines()
    assert next(line for line in lines if "certain" in line).endswith(">= 1 - 1e-12")


def test_a_total_that_cannot_be_is_refused():
    rows = measured(planned(100))
    rows[3]["total"] = 4
    written(rows)
    result = called("analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels")
    assert result.exit_code == 2
    assert "totals.csv, line 5: total 4 is outside 0 .. 3" in result.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[:-1], "pull 100 of the plan is not there (1 missing)"),
        (lambda rows: [*rows, {**rows[0], "pull": "101"}], "pull 101 is not in the plan"),
        (lambda rows: [{**rows[1], "pull": "1"}, *rows[1:]], "pull 1 has other members"),
    ],
)
def test_totals_that_are_not_those_of_the_plan_are_refused(change, says):
    written(change(measured(planned(100))))
    result = called(
        *("analyse", "totals.csv", "--plan", "plan.csv", "--arms", "arms.csv"),
        *("--k", 3, "--noise", "labels"),
    )
    assert result.exit_code == 2
    assert says in result.stderr


def test_analyse_equals_a_simulation_fed_the_same_totals():
    problem = sa.Problem(6, 2, sa.gaussian(1.0), epsilon=2.0)
    rule = sa.ICB(schedule=sa.Planned((60,)))
    means = np.array([3.0, 2.5, 1.0, 0.5, 0.2, 0.0])
    plan = rule.first(problem, 3).plan
    rows = plan.members(plan.order(0, 60))
    totals = means[rows].sum(axis=1) + np.random.default_rng(1).standard_normal(60)
    run = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=3)
    found = sa.analyse(problem, rows.tolist(), totals.tolist(), sa.ICB())
    assert found.verdict.answer == run.verdict.answer
    assert found.verdict.radius == pytest.approx(run.verdict.radius)
    assert found.verdict.gap == pytest.approx(run.verdict.gap)


@pytest.mark.parametrize("rule", [sa.ICB(), sa.Exhaustive(), sa.SAQM()], ids=lambda r: r.name)
def test_the_epsilon_reached_is_rarely_too_small(rule):
    """One look may spend all of delta; chosen with hindsight, the epsilon reached still holds."""
    noise, runs, wrong = sa.gaussian(1.0), 600, 0
    problem = sa.Problem(3, 1, noise, delta=0.2)
    rows = [[0], [1], [2]] * 8
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        means = rng.normal(0, 0.3, 3)
        totals = means[np.array(rows)[:, 0]] + rng.standard_normal(24)
        found = sa.analyse(problem, rows, totals.tolist(), rule)
        chosen = int(found.verdict.answer[0]) - 1
        wrong += means.max() - means[chosen] > found.epsilon_reached
    assert wrong <= most_wrong(runs, 0.2)


def test_pulls_and_totals_must_match():
    problem = sa.Problem(2, 1, sa.gaussian(1.0))
    with pytest.raises(sa.SettingError, match="2 pulls need as many totals, not 1"):
        sa.analyse(problem, [[0], [1]], [1.0])


@pytest.mark.parametrize(
    ("pulls", "totals", "says"),
    [
        (None, [1.0], "pulls must be a list"),
        ([[0]], 1.0, "totals must be a list"),
        ([[0], 1], [1.0, 2.0], "pull 2: a pull must be a group of arms, not 1"),
        ([[0], "2"], [1.0, 2.0], "pull 2: a pull must be a group of arms, not '2'"),
        ([[0], ["3"]], [1.0, 2.0], "pull 2: '3' is none of the arms"),
        ([[0], [2]], [1.0, 2.0], r"pull 2: the group \(2\) is not 1 different"),
        ([[0], []], [1.0, 2.0], r"pull 2: the group \(\) is not 1 different"),
        ([[0], [0.5]], [1.0, 2.0], "pull 2: an arm's index must be a whole number"),
        ([[0], [1]], [1.0, "2"], "pull 2: a total must be a number"),
        ([[0], [1]], [1.0, float("nan")], "pull 2: a total must be a finite number"),
    ],
)
def test_pulls_and_totals_that_cannot_be_are_named(pulls, totals, says):
    with pytest.raises(sa.SuperarmError, match=says):
        sa.analyse(sa.Problem(2, 1, sa.gaussian(1.0)), pulls, totals)


# ---- planned looks -------------------------------------------------------------------------------


def test_planned_looks_share_delta_equally():
    from superarm.confidence import ellipsoid, independent

    for looks in (1, 7):
        C = ellipsoid(2.0, math.log(50), 0.05, "corrected", looks)
        assert (
            C.at(10) == C.at(10**6) == pytest.approx(2 * math.sqrt(2 * math.log(50 * looks / 0.05)))
        )
        C = independent(2.0, 9, 0.05, "corrected", looks)
        assert C.at(10) == pytest.approx(2 * math.sqrt(2 * math.log(9 * looks / 0.05)))
    printed = [ellipsoid(2.0, 1.0, 0.05, "paper", looks).at(99) for looks in (None, 3)]
    assert printed[0] == printed[1]


# ---- plug-ins ------------------------------------------------------------------------------------

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import superarm as sa

class Hasty(sa.ICB):
    name: ClassVar[str] = "hasty"

class Full(sa.Uniform):
    def __init__(self, support="full"):
        object.__setattr__(self, "support", support)

def pairs(columns, words):
    return sa.TopK(len(columns["arm"]), 2)

broken = 1 / 0 if False else None
"""

ENTRIES = """
[superarm.algorithms]
hasty = plugged:Hasty
icb = plugged:Hasty
lost = nowhere:Rule
[superarm.designs]
everything = plugged:Full
[superarm.decisions]
pairs = plugged:pairs
"""


@pytest.fixture
def plugged(folder, monkeypatch):
    """An installed package with entry points: a folder on the path with metadata."""
    (folder / "plugged.py").write_text(PLUGIN, encoding="utf-8")
    metadata = folder / "plugged-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))


def test_plug_ins_are_known_by_name(plugged):
    rows = "".join(f"{name},{mean}\n" for name, mean in MEANS.items())
    Path("means.csv").write_text("arm,mean\n" + rows, encoding="utf-8")
    result = called(
        *("simulate", "--means", "means.csv", "--class", "pairs", "--noise", "labels"),
        *("--epsilon", 0.5, "--algorithm", "hasty", "--design", "everything", "--format", "json"),
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["algorithm"] == "hasty"
    assert found["problem"]["k"] == 2
    assert found["design"]["support"] == 28
    assert "hasty" in called("simulate", "--help").stdout


def test_a_plug_in_takes_no_name_of_ours_over(plugged):
    from superarm.plugins import load

    assert load("algorithms", "icb") is sa.ICB


def test_a_plug_in_that_cannot_be_loaded_is_named(plugged):
    from superarm.plugins import load

    with pytest.raises(sa.SettingError, match=r"'lost' \(nowhere:Rule\) cannot be loaded"):
        load("algorithms", "lost")
    with pytest.raises(sa.SettingError, match="'none' is none of the algorithms that are known"):
        load("algorithms", "none")


# ---- classes on the command line -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "table", "best"),
    [
        ("paths:s:t", "arm,mean,from,to\nx,1,s,a\ny,1,a,t\nz,5,s,t\n", ["x", "y"]),
        ("undirected-paths:t:s", "arm,mean,from,to\nx,1,s,a\ny,1,a,t\nz,5,s,t\n", ["x", "y"]),
        ("spanning-trees", "arm,mean,from,to\nx,1,s,a\ny,1,a,t\nz,5,s,t\n", ["x", "y"]),
        ("matchings", "arm,mean,from,to\nx,1,a,r\ny,4,a,s\nz,4,b,r\nw,1,b,s\n", ["x", "w"]),
        ("matchings:1", "arm,mean,from,to\nx,3,a,r\ny,4,a,s\nz,4,b,r\nw,1,b,s\n", ["w"]),
        ("partition:p=1:q=1", "arm,mean,group\nx,1,p\ny,4,p\nz,4,q\nw,1,q\n", ["x", "w"]),
        ("transversal", "arm,mean,posts\nx,1,p\ny,4,p\nz,1,p;q\n", ["x", "z"]),
    ],
)
def test_every_class_is_reached_from_the_command_line(family, table, best):
    Path("means.csv").write_text(table, encoding="utf-8")
    result = called(
        *("simulate", "--means", "means.csv", "--class", family, "--noise", "gaussian:0.5"),
        *("--epsilon", 0.5, "--direction", "minimize", "--algorithm", "icb", "--format", "json"),
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["runs"][0]["answer"] == best


@pytest.mark.parametrize(
    ("family", "says"),
    [
        ("matchings:x", "'x' is not a whole number"),
        ("matchings:1:2", "is written matchings or matchings:SIZE"),
        ("partition:p=1", "needs a column 'group'"),
        ("partition:p=1:p=2", "group 'p' has two capacities"),
        ("transversal", "needs a column 'posts'"),
        ("paths:s:nowhere", "no edge touches 'nowhere'"),
        ("", "'' is none of the decisions"),
    ],
)
def test_a_class_that_cannot_be_is_refused(family, says):
    Path("means.csv").write_text("arm,mean,from,to\nx,1,s,a\ny,1,a,t\n", encoding="utf-8")
    result = called("simulate", "--means", "means.csv", "--class", family, "--noise", "gaussian:1")
    assert result.exit_code == 2
    assert says in result.stderr


# ---- checks of the totals ------------------------------------------------------------------------


def test_labels_of_the_file_are_compared_and_a_warning_changes_nothing_else():
    rows = measured(planned(600, "--support", 20))
    rows = [{**row, "site": "AB"[i % 7 < 3], "note": "x"} for i, row in enumerate(rows)]
    written(rows)
    clean = analysed()
    assert clean["warnings"] == []
    assert {row["label"] for row in clean["diagnostics"]["offsets"]["site"]} == {"A", "B"}
    off = [{**row, "total": min(3, row["total"] + (row["site"] == "B"))} for row in rows]
    written(off)
    found = analysed()
    (warning,) = [text for text in found["warnings"] if "by site" in text]
    low = {row["label"]: row["low"] for row in found["diagnostics"]["offsets"]["site"]}
    assert low["B"] > 0
    table = called(
        *("analyse", "totals.csv", "--arms", "arms.csv", "--k", 3, "--noise", "labels"),
        *("--epsilon", 1),
    ).stdout
    assert warning in table
    written([{name: cell for name, cell in row.items() if name != "site"} for row in off])
    blind = analysed()
    same = ("answer", "certificate", "epsilon_reached", "gap", "radius")
    assert [blind[name] for name in same] == [found[name] for name in same]
    assert "site" not in blind["diagnostics"]["offsets"]


def test_missing_totals_leave_the_checks_of_the_others():
    rows = measured(planned(300, "--support", 20))
    rows[7]["total"] = ""
    written([{**row, "worker": f"w{i % 5}"} for i, row in enumerate(rows)])
    found = analysed()
    assert found["diagnostics"]["pulls"] == 299
    assert found["certificate"] is None
