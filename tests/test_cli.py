"""The command line: data on stdout, one clear line for each mistake, nothing loaded in vain."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import superarm
from superarm.cli import main

PLAIN = "arm,mean\na,0.9\nb,0.8\nc,0.3\nd,0.2\n"
BASE = {
    "--means": "means.csv",
    "--k": "2",
    "--noise": "labels",
    "--epsilon": "0.5",
    "--algorithm": "saqm",
}


@pytest.fixture(autouse=True)
def means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a means.csv."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "means.csv"
    path.write_text(PLAIN, encoding="utf-8")
    return path


def words(options: dict[str, Any]) -> list[str]:
    merged = {**BASE, **options}
    return ["simulate", *(f"{key}={value}" for key, value in merged.items() if value is not None)]


def called(**options: Any) -> Result:
    """Call `superarm simulate` in this process; max_pulls=3 stands for --max-pulls 3."""
    given = {f"--{key.replace('_', '-')}": value for key, value in options.items()}
    return CliRunner().invoke(main, words(given))


def data(**options: Any) -> Any:
    result = called(format="json", **options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Start `superarm` as a process of its own."""
    command = [sys.executable, "-m", "superarm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# ---- what comes out ------------------------------------------------------------------------------


def check_json(found: Any) -> None:
    assert list(found) == [
        "algorithm",
        "settings",
        "problem",
        "design",
        "runs",
        "pulls_mean",
        "wrong",
        "bound",
        "pulls_over_bound",
    ]
    assert found["algorithm"] == "saqm"
    assert found["problem"] == {
        "n": 4,
        "k": 2,
        "epsilon": 0.5,
        "delta": 0.05,
        "noise": "labels",
        "direction": "maximize",
    }
    assert found["design"].items() >= {"kind": "uniform", "source": "full", "support": 6}.items()
    assert len(found["runs"]) == 3
    for run in found["runs"]:
        assert type(run["pulls"]) is int
        assert run["pulls"] >= 4
        assert run["answer"] == ["a", "b"]
        assert all(type(run[key]) is float for key in ("regret", "seconds"))
        assert run["regret"] == 0.0
        assert run["certified"] is True
        assert run["seconds"] >= 0
    assert type(found["pulls_mean"]) is float
    assert found["pulls_mean"] == pytest.approx(sum(run["pulls"] for run in found["runs"]) / 3)
    assert type(found["wrong"]) is int
    assert found["wrong"] == 0
    assert found["bound"]["kind"] == "isotropic"
    assert found["pulls_over_bound"] == found["pulls_mean"] / found["bound"]["pulls"]


def test_json() -> None:
    check_json(data(replications=3))


def test_certified_is_the_default() -> None:
    found = data(algorithm=None, replications=3)
    assert found["algorithm"] == "certified"
    assert found["design"]["kind"] == "cyclic"
    assert all(run["certified"] for run in found["runs"])


def test_a_budget_says_what_it_reached() -> None:
    found = data(algorithm="certified", budget=200, replications=3)
    for run in found["runs"]:
        assert run["pulls"] == 200
        assert run["certified"] is True
        assert 0 <= run["epsilon_reached"] < 2
        assert 0 <= run["confidence"] <= 1
    result = called(algorithm="certified", budget=200)
    assert "epsilon reached with probability >= 0.95" in result.stdout
    assert result.stdout.splitlines()[4].split()[-2] == "within"  # and not just "yes"
    for wrong in ({"budget": 0}, {"budget": 2}, {"budget": 200, "schedule": "every"}):
        result = called(algorithm="certified", **wrong)
        assert result.exit_code == 2
        assert "budget" in result.stderr


def test_json_from_a_process_of_its_own() -> None:
    done = started(*words({"--replications": "3", "--format": "json"}))
    assert done.returncode == 0
    check_json(json.loads(done.stdout))


def test_wrong_runs_are_counted(means: Path) -> None:
    # With 4 pulls there is nearly no information: some answers are wrong, none is certified.
    found = data(replications=40, max_pulls=4, epsilon=0.1)
    wrong = sum(run["regret"] > 0.1 for run in found["runs"])
    assert 0 < found["wrong"] == wrong < 40
    for run in found["runs"]:
        assert run["certified"] is False
        assert run["pulls"] == 4
        assert run["reason"] == "the limit of 4 pulls came before the stop"
        mean = {"a": 0.9, "b": 0.8, "c": 0.3, "d": 0.2}
        assert run["regret"] == pytest.approx(1.7 - sum(mean[name] for name in run["answer"]))


def test_csv() -> None:
    result = called(replications=3, format="csv")
    runs = data(replications=3)["runs"]
    assert result.exit_code == 0
    header, *rows = csv.reader(result.stdout.splitlines())
    assert header == ["run", "pulls", "answer", "regret", "certified", "seconds"]
    assert len(rows) == 3
    for i, (row, run) in enumerate(zip(rows, runs, strict=True), 1):
        assert row[:5] == [str(i), str(run["pulls"]), "a;b", "0.0", "True"]
        assert float(row[5]) >= 0


def test_table() -> None:
    result = called(replications=3)
    runs = data(replications=3)["runs"]
    assert result.exit_code == 0
    head, gap, titles, rule, *rows, space, foot, bound = result.stdout.splitlines()
    assert head == (
        "saqm: best 2 of 4, epsilon 0.5, delta 0.05, noise labels; design: uniform on 6 super-arms"
    )
    assert (gap, space) == ("", "")
    assert titles.split() == ["run", "pulls", "regret", "seconds", "answer", "certified"]
    assert set(rule) == {"-", " "}
    for i, (row, run) in enumerate(zip(rows, runs, strict=True), 1):
        number, pulls, regret, _, *rest = row.split()
        assert (number, pulls, regret) == (str(i), f"{run['pulls']:,}", "0")
        assert rest == ["a,", "b", "yes"]
    mean = sum(run["pulls"] for run in runs) / 3
    assert foot == f"mean pulls {mean:,.0f}; wrong (regret > epsilon): 0 of 3 runs"
    assert bound.startswith("lower bound on the isotropic design")


def test_the_table_says_why_a_run_is_not_certified() -> None:
    result = called(algorithm="sa-foa", max_pulls=5, epsilon=0.01)
    assert "no: the limit of 5 pulls came before the stop" in result.stdout


def test_names_that_need_quotes_survive_in_csv(means: Path) -> None:
    means.write_text('arm,mean\n"Ann, B.",0.9\n"O\'H ""x""",0.8\nc,0.1\n', encoding="utf-8")
    rows = list(csv.reader(called(format="csv").stdout.splitlines()))
    answer = ["Ann, B.", 'O\'H "x"']
    assert next(csv.reader([rows[1][2]], delimiter=";")) == answer
    assert data()["runs"][0]["answer"] == answer


def test_a_name_with_a_semicolon_stays_one_name_in_csv(means: Path) -> None:
    means.write_text("arm,mean\nx;y,0.9\nb,0.8\nc,0.1\n", encoding="utf-8")
    cell = next(iter(csv.DictReader(called(format="csv").stdout.splitlines())))["answer"]
    assert cell == '"x;y";b'
    assert next(csv.reader([cell], delimiter=";")) == ["x;y", "b"]


def test_each_run_has_its_own_seed_and_digest() -> None:
    found = data(support="5", replications=3)
    assert "digest" not in found["design"]
    assert len({run["seed"] for run in found["runs"]}) == 3
    assert len({run["digest"] for run in found["runs"]}) > 1


def test_a_full_disk_is_one_clear_line() -> None:
    command = [sys.executable, "-m", "superarm", "--help"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: the system says: No space left on device\n"


def test_k_equal_to_n_needs_no_pull() -> None:
    found = data(k=4)
    assert found["pulls_mean"] == 0
    assert found["runs"][0]["answer"] == ["a", "b", "c", "d"]
    assert found["runs"][0]["certified"] is True
    assert called(k=4).exit_code == 0


def test_minimize() -> None:
    found = data(direction="minimize", epsilon=0.2)
    assert found["problem"]["direction"] == "minimize"
    assert found["runs"][0]["answer"] == ["c", "d"]


@pytest.mark.parametrize(
    "noise",
    [
        "gaussian:0.5",
        "bounded:1.0",
        "bounded:1.0:independent",
        "labels",
        "shared-labels",
        "total:0.0:2.0",
    ],
)
def test_every_noise_model(noise: str) -> None:
    found = data(noise=noise, epsilon=1)
    assert found["problem"]["noise"] == noise
    assert found["runs"][0]["certified"] is True


@pytest.mark.parametrize("algorithm", ["saqm", "sa-foa", "icb", "exhaustive"])
@pytest.mark.parametrize("preset", ["text", "experiments", "corrected"])
def test_every_preset_of_every_algorithm(algorithm: str, preset: str) -> None:
    found = data(algorithm=algorithm, preset=preset, support="2n", max_pulls=30)
    assert found["algorithm"] == algorithm
    paper = preset != "corrected"
    assert found["settings"]["constants"] == ("paper" if paper else "corrected")
    assert found["settings"]["sigma"] == ("paper" if paper else "noise")
    assert found["settings"]["schedule"] == ("every" if preset == "text" else "geometric:1.02")


@pytest.mark.parametrize(
    ("options", "setting", "value"),
    [
        ({"support": "full"}, "design", "uniform:full"),
        ({"support": "5"}, "design", "uniform:5"),
        ({"support": "3n"}, "design", "uniform:3n"),
        ({"schedule": "every"}, "schedule", "every"),
        ({"schedule": "geometric:1.5"}, "schedule", "geometric:1.5"),
        ({"schedule": "planned:5,50"}, "schedule", "planned:5,50"),
        ({"sigma": "paper"}, "sigma", "paper"),
        ({"constants": "paper"}, "constants", "paper"),
        ({"alpha": "spectral"}, "alpha", "spectral"),
        ({"alpha": "0.9"}, "alpha", 0.9),
        ({"oracle": "brute-force"}, "oracle", "brute-force"),
        ({"oracle": "multistart"}, "oracle", "multistart"),
        ({"bound": "sdp"}, "bound", "sdp"),
        ({"preset": "text", "constants": "corrected"}, "constants", "corrected"),
        ({"algorithm": "icb", "radius": "ellipsoid"}, "radius", "ellipsoid"),
        ({"algorithm": "sa-foa", "threshold": 0.25}, "threshold", 0.25),
        ({"algorithm": "sa-foa", "draws": 3}, "draws", 3),
    ],
    ids=str,
)
def test_every_setting_reaches_the_algorithm(
    options: dict[str, Any], setting: str, value: Any
) -> None:
    assert data(max_pulls=50, **options)["settings"][setting] == value


def test_the_support_is_shown_as_it_was_used() -> None:
    found = data(support="5")
    assert found["design"].items() >= {"kind": "uniform", "source": "random", "support": 5}.items()


# ---- the same numbers ----------------------------------------------------------------------------


def timeless(found: Any) -> Any:
    return {
        **found,
        "runs": [{k: v for k, v in run.items() if k != "seconds"} for run in found["runs"]],
    }


def test_workers_change_no_number() -> None:
    options = {"--epsilon": "0.1", "--replications": "3", "--rng": "5", "--format": "json"}
    one, two = (started(*words({**options, "--workers": str(n)})) for n in (1, 2))
    assert (one.returncode, two.returncode) == (0, 0)
    assert timeless(json.loads(one.stdout)) == timeless(json.loads(two.stdout))
    pulls = [run["pulls"] for run in json.loads(one.stdout)["runs"]]
    assert len(set(pulls)) > 1  # the runs are not copies of one another


def test_the_seed_decides_everything() -> None:
    options = {"replications": 4, "epsilon": 0.1, "support": 5}
    one, same, other = (timeless(data(rng=seed, **options)) for seed in (5, 5, 6))
    assert one == same
    assert one != other
    assert timeless(data(**options)) == timeless(data(rng=0, **options))


def test_more_replications_begin_with_the_same_runs() -> None:
    few, many = (timeless(data(rng=5, epsilon=0.1, replications=r))["runs"] for r in (2, 4))
    assert many[:2] == few


# ---- mistakes ------------------------------------------------------------------------------------


def check_refused(exit_code: int, stdout: str, stderr: str, says: str) -> None:
    assert exit_code == 2
    assert stdout == ""
    assert "Traceback" not in stderr
    errors = [line for line in stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert stderr.splitlines()[-1] == errors[0]
    assert says in errors[0]


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k must be between 1 and the number of arms, 4, not 0"),
    ({"k": 5}, "not 5"),
    ({"k": -1}, "not -1"),
    ({"k": 2.5}, "'2.5' is not a valid integer"),
    ({"k": "two"}, "'two' is not a valid integer"),
    ({"k": None}, "either --k, or --class"),
    ({"epsilon": -0.1}, "epsilon must be a finite number >= 0, not -0.1"),
    ({"epsilon": "nan"}, "not nan"),
    ({"epsilon": "inf"}, "not inf"),
    ({"epsilon": "much"}, "'much'"),
    ({"delta": 0}, "delta must lie strictly between 0 and 1, not 0.0"),
    ({"delta": 1}, "not 1.0"),
    ({"delta": -0.05}, "not -0.05"),
    ({"delta": "nan"}, "not nan"),
    ({"noise": None}, "'--noise'"),
    ({"noise": ""}, "noise ''"),
    ({"noise": "loud"}, "noise 'loud' is not one of gaussian, gaussian:SIGMA"),
    ({"noise": "gaussian"}, "say with --true-sigma"),
    ({"noise": "gaussian:x"}, "'x' is not a number"),
    ({"noise": "gaussian:0"}, "sigma > 0"),
    ({"noise": "gaussian:-1"}, "not -1.0"),
    ({"noise": "gaussian:inf"}, "not inf"),
    ({"noise": "bounded:0"}, "R > 0"),
    ({"noise": "bounded:nan"}, "not nan"),
    ({"noise": "labels:1"}, "noise 'labels:1'"),
    ({"noise": "total:1"}, "noise 'total:1'"),
    ({"noise": "total:2:1"}, "the lower first, not 2.0 and 1.0"),
    ({"noise": "total:1:1"}, "not 1.0 and 1.0"),
    ({"noise": "bounded:0.5"}, "mean 0.9 is impossible under noise bounded:0.5"),
    ({"noise": "total:0:1"}, "mean total 1.7 is outside its range 0 .. 1"),
    ({"direction": "up"}, "'up'"),
    ({"algorithm": "best"}, "'best'"),
    ({"preset": "mine"}, "'mine'"),
    ({"format": "xml"}, "'xml'"),
    ({"support": ""}, "support ''"),
    ({"support": "most"}, "support 'most'"),
    ({"support": "0n"}, "support '0n'"),
    ({"support": "2.5n"}, "support '2.5n'"),
    ({"support": "²n"}, "support '²n'"),
    ({"support": "-6"}, "support '-6'"),
    ({"support": "0"}, "a support of 0 super-arms cannot tell 4 arms apart"),
    ({"support": "3"}, "a support of 3 super-arms cannot tell 4 arms apart"),
    ({"schedule": "never"}, "schedule 'never' is not one of every"),
    ({"schedule": "geometric"}, "schedule 'geometric'"),
    ({"schedule": "geometric:1"}, "ratio > 1, not 1.0"),
    ({"schedule": "geometric:nan"}, "not nan"),
    ({"schedule": "planned:"}, "schedule 'planned:'"),
    ({"schedule": "planned:9,8"}, "not (9, 8)"),
    ({"schedule": "planned:3,50"}, "the first planned look, after 3 pulls, is too early"),
    ({"sigma": "1.5"}, "sigma must be one of noise, paper, not '1.5'"),
    ({"constants": "mine"}, "constants must be one of corrected, paper, not 'mine'"),
    ({"alpha": "0"}, "not 0.0"),
    ({"alpha": "1.1"}, "not 1.1"),
    ({"alpha": "nan"}, "not nan"),
    ({"alpha": "high"}, "alpha must be one of certified, spectral, theorem, not 'high'"),
    (
        {"oracle": "delphi"},
        "oracle must be one of peeling, fpk, swap, multistart, brute-force, exact, not 'delphi'",
    ),
    ({"algorithm": "icb", "radius": "wide"}, "radius must be one of independent, ellipsoid"),
    ({"algorithm": "sa-foa", "threshold": 0}, "threshold must be in (0, 1], not 0.0"),
    ({"algorithm": "sa-foa", "threshold": "nan"}, "not nan"),
    ({"algorithm": "sa-foa", "draws": 0}, "draws must be a whole number >= 1, not 0"),
    ({"max_pulls": 3}, "max_pulls leaves 3 pulls, and the first look needs 4"),
    ({"max_pulls": 10**20}, "max_pulls must not exceed 1,000,000,000,000,000,000"),
    ({"schedule": f"planned:{10**20}"}, "a planned look must not exceed"),
    ({"schedule": "geometric:1e308"}, "a ratio <= 100, not 1e+308"),
    ({"replications": 10**12}, "replications must not exceed 10,000,000"),
    ({"algorithm": "sa-foa", "draws": 10**11}, "draws must not exceed 1,000,000"),
    ({"bound": "tight"}, "bound must be one of spectral, shift, sdp, not 'tight'"),
    ({"max_pulls": 0}, "max_pulls must be a whole number >= 1, not 0"),
    ({"max_pulls": -1}, "max_pulls must be a whole number >= 1, not -1"),
    ({"max_pulls": "1e6"}, "'1e6'"),
    ({"replications": 0}, "replications must be a whole number >= 1, not 0"),
    ({"replications": -2}, "not -2"),
    ({"workers": 0}, "workers must be a whole number >= 1, not 0"),
    ({"rng": -1}, "rng must be a whole number >= 0"),
    ({"rng": "x"}, "'x'"),
    ({"means": None}, "'--means'"),
    ({"means": "absent.csv"}, "absent.csv: No such file"),
    ({"means": "."}, ".: Is a directory"),
    ({"speed": "9"}, "--speed"),
]


@pytest.mark.parametrize(("options", "says"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_gives_one_clear_line_and_exit_code_2(options: dict[str, Any], says: str) -> None:
    for form in ("json", "table") if "format" not in options else (None,):
        result = called(**{"format": form, **options})
        assert isinstance(result.exception, SystemExit)
        check_refused(result.exit_code, result.stdout, result.stderr, says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"--means": "absent.csv"}, "absent.csv"),
        ({"--delta": "1"}, "not 1.0"),
        ({"--max-pulls": "1", "--workers": "2", "--replications": "2"}, "leaves 1 pulls"),
        ({"--k": "two"}, "'two'"),
    ],
    ids=["file", "problem", "in a worker", "option"],
)
def test_a_mistake_in_a_process_of_its_own(options: dict[str, str], says: str) -> None:
    done = started(*words(options))
    check_refused(done.returncode, done.stdout, done.stderr, says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "means.csv: no arms in it; expected the header arm,mean"),
        ("\n\n", "no arms in it"),
        ("arm,mean\n", "no arms in it"),
        ("a,0.9\nb,0.8\n", "means.csv, line 1: the header must be arm,mean"),
        ("arm;mean\na;0.9\n", "line 1: the header"),
        ("arm,mean,mean\na,0.9,1\n", "line 1: each column needs a name of its own"),
        ("\narm,score\na,1\n", "line 2: the header"),
        ("arm,mean\na,0.9\nb\n", "line 3: expected arm,mean, found 1 cell"),
        ("arm,mean\na,0.9,7\n", "line 2: expected arm,mean, found 3 cell"),
        ("arm,mean\na,0.9\n\nb,high\n", "line 4: 'high' is not a finite number"),
        ("arm,mean\na,nan\n", "line 2: 'nan' is not a finite number"),
        ("arm,mean\na,-inf\n", "line 2: '-inf' is not a finite number"),
        ("arm,mean\na,1e999\n", "line 2: '1e999' is not a finite number"),
        ("arm,mean\na,\n", "line 2: '' is not a finite number"),
        ("arm,mean\n ,0.9\n", "line 2: the arm has no name"),
        ("arm,mean\na,0.9\nb,0.8\na,0.7\n", "line 4: arm 'a' is on line 2 too"),
        ('arm,mean\na,0.9\n"b,0.8\n', "line 3: "),
        ('arm,mean\n"a"x,0.9\n', "line 2: "),
        ("arm,mean\na,0.9\nb,1.5\n", "mean 1.5 is impossible under noise labels"),
        ("arm,mean\na,0.9\n", "k must be between 1 and the number of arms, 1"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_malformed_file_is_refused_with_the_line(means: Path, text: str, says: str) -> None:
    means.write_text(text, encoding="utf-8")
    result = called()
    check_refused(result.exit_code, result.stdout, result.stderr, says)


@pytest.mark.parametrize("content", [b"arm,mean\n\xff\xfe,1\n", PLAIN.encode("utf-16")])
def test_a_file_that_is_no_text_is_refused(means: Path, content: bytes) -> None:
    means.write_bytes(content)
    result = called()
    check_refused(result.exit_code, result.stdout, result.stderr, "not a text file in UTF-8")


def test_what_a_spreadsheet_writes_is_read(means: Path) -> None:
    text = "\ufeffArm, Mean\r\n" + "\r\n".join(PLAIN.splitlines()[1:]) + "\r\n,\r\n\r\n"
    means.write_text(text, encoding="utf-8", newline="")
    assert data()["runs"][0]["answer"] == ["a", "b"]


def many_arms(means: Path, n: int) -> None:
    means.write_text("arm,mean\n" + "".join(f"w{i},0.5\n" for i in range(n)), encoding="utf-8")


@pytest.mark.parametrize("n", [60, 2000])
def test_what_would_take_for_ever_is_refused(means: Path, n: int) -> None:
    many_arms(means, n)
    listed = called(k=n // 2, support="full")
    check_refused(listed.exit_code, listed.stdout, listed.stderr, "too many to list")
    searched = called(k=n // 2, algorithm="exhaustive")
    check_refused(searched.exit_code, searched.stdout, searched.stderr, "choose saqm or icb")


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("arm,mean\na,1e308\nb,1e308\nc,1e308\nd,0\n", "gaussian:1"),
        (PLAIN, "gaussian:1e308"),
    ],
    ids=["means", "noise"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_overflow_in_sums_end_in_no_traceback(
    means: Path, text: str, noise: str
) -> None:
    means.write_text(text, encoding="utf-8")
    result = called(noise=noise, max_pulls=1000)
    check_refused(result.exit_code, result.stdout, result.stderr, "")


def test_an_epsilon_too_small_for_a_forecast_ends_in_no_traceback(means: Path) -> None:
    means.write_text("arm,mean\na,1\nb,1\nc,1\n", encoding="utf-8")
    for algorithm in ("saqm", "icb", "sa-foa", "exhaustive"):
        found = data(algorithm=algorithm, epsilon=1e-200, noise="labels", max_pulls=1000)
        assert found["runs"][0]["certified"] is False


OWN = {
    "saqm": {"alpha", "oracle", "bound"},
    "sa-foa": {"threshold", "draws"},
    "icb": {"radius"},
    "exhaustive": set(),
}
VALUES = {
    "alpha": "spectral",
    "oracle": "peeling",
    "bound": "shift",
    "threshold": "0.5",
    "draws": "2",
    "radius": "ellipsoid",
}


@pytest.mark.parametrize("algorithm", OWN)
@pytest.mark.parametrize("setting", VALUES)
def test_a_setting_of_another_algorithm_is_refused_by_name(algorithm: str, setting: str) -> None:
    result = called(algorithm=algorithm, max_pulls=30, **{setting: VALUES[setting]})
    if setting in OWN[algorithm]:
        assert result.exit_code == 0
    else:
        says = f"--{setting} is not a setting of {algorithm}"
        check_refused(result.exit_code, result.stdout, result.stderr, says)


# ---- maximise ------------------------------------------------------------------------------------


def maximised(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["maximise", *map(str, arguments)])


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """Four rows of a CSV, as a spreadsheet writes it; rows 0 and 3 belong together."""
    path = tmp_path / "W.csv"
    path.write_text("\ufeff4,0,1,2\r\n0,3,0,1\r\n1,0,2,0\r\n2,1,0,4\r\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("oracle", ["peeling", "fpk", "swap", "multistart", "exact", "brute-force"])
@pytest.mark.parametrize("bound", [None, "spectral", "shift", "sdp"])
def test_maximise_json(matrix: Path, oracle: str, bound: str | None) -> None:
    extra = [] if bound is None else ["--bound", bound]
    arguments = ["--matrix", matrix, "--k", 2, "--oracle", oracle, "--format", "json"]
    result = maximised(*arguments, *extra)
    assert result.exit_code == 0
    assert result.stderr in ("", "superarm: compiling its kernels, once ...\n")
    found = json.loads(result.stdout)
    assert set(found) == {
        *("members", "value", "upper_bound", "ratio", "oracle", "bound", "status", "seconds")
    }
    assert (found["members"], found["value"], found["oracle"]) == ([0, 3], 12.0, oracle)
    assert found["upper_bound"] >= 12
    assert found["ratio"] == pytest.approx(12 / found["upper_bound"])
    exact = oracle in ("exact", "brute-force")
    assert found["status"] == ("optimal" if exact else "found")
    assert found["bound"] == (oracle if exact else bound or "spectral")


def test_maximise_reads_numpy_files_and_writes_tables_and_csv(matrix: Path) -> None:
    import numpy as np

    path = matrix.with_suffix(".npy")
    np.save(path, np.loadtxt(matrix, delimiter=",", encoding="utf-8-sig"))
    table = maximised("--matrix", path, "--k", 2, "--oracle", "exact").stdout
    assert re.search(r"members \(rows, from 0\) +0, 3\n", table)
    assert re.search(r"proved greatest +yes", table)
    lines = maximised("--matrix", path, "--k", 2, "--format", "csv").stdout.splitlines()
    row = next(csv.DictReader(lines))
    assert (row["members"], row["value"], row["status"]) == ("0;3", "12.0", "found")


BAD_MATRICES = [
    ("1,2\n3,4\n", "symmetric; row 1, column 2 is 2, mirrored 3"),
    ("1,2,3\n2,1,0\n", "square, not of shape (2, 3)"),
    ("1,nan\nnan,1\n", "row 1, column 2 is"),
    ("1,inf\ninf,1\n", "finite"),
    ("1,x\nx,1\n", "W.csv, line 1: 'x' is not"),
    ("1,2\n\n2\n", "W.csv, line 3: 1 cells, where line 1 has 2"),
    ("", "W.csv: no numbers in it"),
    ("a,b\n1,0\n0,1\n", "W.csv, line 1: 'a' is not"),
]


@pytest.mark.parametrize(("text", "says"), BAD_MATRICES, ids=lambda value: str(value)[:30])
def test_a_matrix_that_cannot_be_is_refused(matrix: Path, text: str, says: str) -> None:
    matrix.write_text(text, encoding="utf-8")
    result = maximised("--matrix", matrix, "--k", 1)
    check_refused(result.exit_code, result.stdout, result.stderr, says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--k", 0], "k must be between 1 and the matrix's size 4, not 0"),
        (["--k", 5], "not 5"),
        (["--k", "two"], "'two'"),
        ([], "'--k'"),
        (["--k", 2, "--oracle", "delphi"], "'delphi'"),
        (["--k", 2, "--bound", "tight"], "'tight'"),
        (["--k", 2, "--seconds", 0], "seconds must be > 0, not 0.0"),
        (["--k", 2, "--seconds", "nan"], "not nan"),
        (["--k", 2, "--format", "xml"], "'xml'"),
    ],
    ids=str,
)
def test_a_mistake_in_maximise_is_refused(matrix: Path, arguments: list[Any], says: str) -> None:
    result = maximised("--matrix", matrix, *arguments)
    check_refused(result.exit_code, result.stdout, result.stderr, says)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("absent.npy", None),
        ("absent.csv", None),
        ("broken.npy", b"no numpy file"),
        ("empty.npy", b""),
        ("latin.csv", b"1,\xff\n"),
        ("zeros.csv", b"\0\0\0"),
    ],
)
def test_an_unreadable_matrix_is_refused(matrix: Path, name: str, content: bytes | None) -> None:
    path = matrix.with_name(name)
    if content is not None:
        path.write_bytes(content)
    result = maximised("--matrix", path, "--k", 1)
    check_refused(result.exit_code, result.stdout, result.stderr, name)


def test_what_does_not_fit_into_the_memory_is_one_clear_line(
    matrix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from superarm.quadratic import matrix as module

    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "read_matrix", full)
    result = maximised("--matrix", matrix, "--k", 1)
    check_refused(result.exit_code, result.stdout, result.stderr, "more memory than there is")


def test_an_objects_file_is_refused_unread(matrix: Path) -> None:
    import numpy as np

    path = matrix.with_suffix(".npy")
    np.save(path, np.array([[print, 1], [1, print]], dtype=object), allow_pickle=True)
    result = maximised("--matrix", path, "--k", 1)
    check_refused(result.exit_code, result.stdout, result.stderr, "not a matrix")


def test_ctrl_c_gives_the_best_so_far_and_exit_code_130(tmp_path: Path) -> None:
    """A real signal to a real process, in the middle of a search that takes minutes."""
    import numpy as np
    from quadratics import information_inverse

    superarm.maximise(information_inverse(24, 12, 5), 12, "exact")  # compiles, for both
    path = tmp_path / "hard.npy"
    np.save(path, information_inverse(140, 70, 5, 1))
    command = [sys.executable, "-m", "superarm", "maximise", "--matrix", str(path), "--k", "70"]
    process = subprocess.Popen(
        [*command, "--oracle", "exact", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            stdout, _ = process.communicate(timeout=6)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    found = json.loads(stdout)
    assert found["status"] == "interrupted"
    assert found["value"] < found["upper_bound"] < 1.2 * found["value"]


# ---- help, version, start ------------------------------------------------------------------------


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize(("name", "command"), [*commands(main)], ids=lambda value: str(value)[:20])
def test_every_command_and_option_has_a_help_text(name: str, command: click.Command) -> None:
    assert command.help
    silent = [
        parameter.opts[0]
        for parameter in command.params
        if isinstance(parameter, click.Option) and not (parameter.help or "").strip()
    ]
    assert silent == []
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    for parameter in command.params:
        argument = isinstance(parameter, click.Argument)
        shown_as = parameter.human_readable_name if argument else parameter.opts[0]
        assert shown_as in shown.stdout


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    assert main.help is not None
    assert "simulate" in shown.stdout
    assert "maximise" in shown.stdout
    assert shown.stdout == CliRunner().invoke(main, ["-h"]).stdout


def test_version() -> None:
    done = started("--version")
    assert (done.returncode, done.stdout) == (0, f"superarm, version {superarm.__version__}\n")


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(main, ["simulat"])
    check_refused(result.exit_code, result.stdout, result.stderr, "'simulat'")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["simulate", "--help"],
        ["maximise", "--help"],
        ["--version"],
        ["simulate", "--k", "2"],
        ["nothing"],
    ],
    ids=" ".join,
)
def test_help_and_usage_load_no_heavy_library(arguments: list[str]) -> None:
    code = f"""
import sys
from superarm.cli import main
try:
    main({arguments!r})
finally:
    heavy = {{"numpy", "scipy", "numba", "llvmlite"}} & set(sys.modules)
    print("loaded:", sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "loaded: []"


def test_the_script_is_the_module() -> None:
    script = Path(sys.executable).with_name("superarm")
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("Usage: superarm [OPTIONS]")
    assert shown.stdout.splitlines()[1:] == started("--help").stdout.splitlines()[1:]
