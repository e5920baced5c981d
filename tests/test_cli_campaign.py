"""Campaigns from the command line: what comes out, what is refused, and the exit codes."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import superarm as sa
from superarm.cli import main

ARMS = ["Ann", "Bo", "Cy", "Dee", "Eli", "Fay"]
NEW = ("--arms=arms.csv", "--k=2", "--noise=labels", "--epsilon=1", "--seed=1")
Called = Callable[..., Result]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with arms.csv and a store that is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERARM_STORE", str(tmp_path / "store.db"))
    lines = "\n".join(["arm", *ARMS])
    (tmp_path / "arms.csv").write_text(f"{lines}\n", encoding="utf-8")
    return tmp_path


def called(*words: object, stdin: str | bytes | None = None) -> Result:
    """Call `superarm campaign ...` in this process."""
    return CliRunner().invoke(main, ["campaign", *map(str, words)], input=stdin)


def done(*words: object, stdin: str | bytes | None = None) -> str:
    result = called(*words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def data(*words: object) -> Any:
    return json.loads(done(*words, "--format=json"))


def refused(code: int, says: str, *words: object, stdin: str | None = None) -> None:
    result = called(*words, stdin=stdin)
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == code
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert says in errors[0]


def started(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "superarm", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


@pytest.fixture
def crew() -> str:
    done("new", "crew", *NEW)
    return "crew"


def total_of(members: str) -> int:
    """Ann and Bo never fail, the others never succeed."""
    return sum(name in ("Ann", "Bo") for name in members.split(";"))


def asked(name: str, size: int, *more: str) -> list[dict[str, str]]:
    return list(
        csv.DictReader(io.StringIO(done("ask", name, f"--size={size}", "--format=csv", *more)))
    )


def to_the_end(name: str) -> None:
    for _ in range(100):
        pulls = asked(name, 50)
        if not pulls:
            return
        lines = [f"{pull['id']},{total_of(pull['members'])}" for pull in pulls]
        done("tell", name, "-", stdin="\n".join(["id,total", *lines]))
    raise AssertionError


# ---- new and list --------------------------------------------------------------------------------


def test_new_says_what_it_made() -> None:
    said = data("new", "crew", *NEW)
    assert said["name"] == "crew"
    assert said["store"].endswith("store.db")
    assert (said["n"], said["k"], said["noise"], said["seed"]) == (6, 2, "labels", 1)
    assert said["algorithm"] == "certified"
    assert said["state"].startswith("No answer yet: the first look comes after")
    campaign = sa.Campaign.open("crew")
    assert campaign.problem.arms == tuple(ARMS)
    assert campaign.seed == 1


def test_new_by_names_and_settings() -> None:
    said = data(
        *("new", "few", "--arm=Ann", "--arm=Bo; C.", "--arm=Dee", "--k=1", "--noise=gaussian:2"),
        *("--algorithm=icb", "--radius=ellipsoid", "--direction=minimize", "--delta=0.1"),
    )
    assert (said["n"], said["algorithm"], said["direction"]) == (3, "icb", "minimize")
    campaign = sa.Campaign.open("few")
    assert campaign.problem.arms == ("Ann", "Bo; C.", "Dee")
    assert campaign.algorithm.settings()["radius"] == "ellipsoid"
    pulls = asked("few", 3)
    cells = {next(csv.reader([pull["members"]], delimiter=";"))[0] for pull in pulls}
    assert cells <= {"Ann", "Bo; C.", "Dee"}


def test_a_class_of_groups(place: Path) -> None:
    (place / "net.csv").write_text("arm,from,to\nx,s,a\ny,a,t\nz,s,t\n", encoding="utf-8")
    said = data(
        "new", "net", "--arms=net.csv", "--class=paths:s:t", "--noise=gaussian:1", "--epsilon=1"
    )
    assert said["algorithm"] == "icb"
    assert {pull["members"] for pull in asked("net", 4)} == {"x;y", "z"}


def test_two_seeds_are_two_plans_and_none_is_drawn() -> None:
    seeds = {data("new", f"c{i}", *NEW[:-1])["seed"] for i in range(2)}
    assert len(seeds) == 2


MISTAKES: list[tuple[int, str, tuple[str, ...]]] = [
    (2, "either --arms FILE, or --arm", ("new", "x", *NEW[1:])),
    (2, "either --arms FILE, or --arm", ("new", "x", *NEW, "--arm=Ann")),
    (2, "absent.csv: No such file", ("new", "x", "--arms=absent.csv", *NEW[1:])),
    (2, "either --k, or --class", ("new", "x", NEW[0], NEW[2])),
    (2, "k must be between 1", ("new", "x", NEW[0], "--k=9", NEW[2])),
    (2, "'--noise'", ("new", "x", *NEW[:2])),
    (2, "--budget is not a setting of", ("new", "x", *NEW, "--algorithm=icb", "--budget=2")),
    (2, "a campaign's name", ("new", "", *NEW)),
    (1, "there is a campaign 'crew' already", ("new", "crew", *NEW)),
    (1, "there is no campaign 'crow' in this store; there are: crew", ("status", "crow")),
    (1, "there is no campaign 'crow'", ("ask", "crow")),
    (2, "a whole number >= 1, not 0", ("ask", "crew", "--size=0")),
    (2, "a duration is a text such as 90s, 15m, 2h or 3d", ("ask", "crew", "--lease=2")),
    (2, "'Zoe' is none of the arms", ("ask", "crew", "--without=Zoe")),
    (2, "pull 'p1-0' was never asked for", ("tell", "crew", "p1-0", "1")),
    (2, "pull 'x' was never asked for", ("tell", "crew", "x", "1")),
    (2, "a total must be a number, not 'one'", ("tell", "crew", "p1-0", "one")),
    (2, "a total must be a number, not '1_0'", ("tell", "crew", "p1-0", "1_0")),
    (2, "'--nothing'", ("tell", "crew", "--nothing")),
    (2, "'--tota'", ("amend", "crew", "p1-0", "--tota", "--reason=x")),
    (2, "expected ID TOTAL, or FILE", ("tell", "crew", "p1-0", "1", "2")),
    (2, "Missing argument", ("tell", "crew")),
    (2, "absent.csv: No such file", ("tell", "crew", "absent.csv")),
    (2, "'--reason'", ("amend", "crew", "p1-0", "1")),
    (2, "'--reason'", ("void", "crew", "p1-0")),
    (2, "say why", ("void", "crew", "p1-0", "--reason= ")),
    (1, "there is no amend and no void", ("undo", "crew")),
    (1, "change 7 cannot be undone", ("undo", "crew", "7")),
    (2, "say which pulls: their ids, --worker or --lapsed", ("back", "crew")),
    (2, "say which pulls", ("back", "crew", "p1-0", "--lapsed")),
    (2, "say which pulls", ("extend", "crew")),
    (2, "worker 'Zoe' holds no pulls", ("extend", "crew", "--worker=Zoe")),
    (2, "will leave for good", ("retire", "crew", "Ann", "--reason=moved")),
    (2, "All of campaign crew will be deleted. Say --yes if so.", ("delete", "crew")),
    (2, "arms.csv: there already", ("export", "crew", "arms.csv")),
    (2, "is not the name of a file", ("export", "crew", ".")),
    (2, "is no group of different arms", ("record", "crew", "1", "Ann", "Ann", "--reason=x")),
    (2, "the command is empty", ("run", "crew", "--command=")),
    (2, "No closing quotation", ("run", "crew", "--command=a 'b")),
    (2, "put {members}", ("run", "crew", "--command=measure")),
    (2, "the command has {member}", ("run", "crew", "--command=measure {member}")),
    (2, "put spaces around it", ("run", "crew", "--command=measure x{members...}")),
    (2, "parallel must be", ("run", "crew", "--command=x {id}", "--parallel=0")),
    (2, "retries must be", ("run", "crew", "--command=x {id}", "--retries=-1")),
    (2, "max_pulls must be", ("run", "crew", "--command=x {id}", "--max-pulls=0")),
]


@pytest.mark.parametrize(("code", "says", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_line_and_an_exit_code(
    crew: str, code: int, says: str, words: tuple[str, ...]
) -> None:
    refused(code, says, *words)


def test_list(crew: str) -> None:
    done("new", "another", *NEW)
    asked("crew", 2)
    done("tell", "crew", "p1-0", 1)
    rows = data("list")["campaigns"]
    assert [(row["name"], row["n"], row["k"], row["state"], row["told"]) for row in rows] == [
        ("another", 6, 2, "measuring", 0),
        ("crew", 6, 2, "measuring", 1),
    ]
    lines = done("list", "--format=csv").splitlines()
    assert lines[0] == "name,n,k,state,told,created"
    assert lines[2].startswith("crew,6,2,measuring,1,20")
    assert "crew" in done("list")


def test_without_a_store_there_is_nothing_to_list(place: Path) -> None:
    refused(1, "there is no store", "list")
    assert not (place / "store.db").exists()


def test_the_option_goes_before_the_environment(place: Path, crew: str) -> None:
    done("new", "there", *NEW, "--store=other.db")
    refused(1, "'there'", "status", "there")
    assert called("status", "there", "--store=other.db").exit_code == 3


# ---- ask and tell --------------------------------------------------------------------------------


def test_ask_in_every_format(crew: str) -> None:
    pulls = data("ask", "crew", "--size=2", "--worker=Zoe", "--lease=2h")
    assert pulls["waiting"] == ""
    assert [pull["id"] for pull in pulls["pulls"]] == ["p1-0", "p1-1"]
    assert all(len(pull["members"]) == 2 for pull in pulls["pulls"])
    assert pulls["pulls"][0]["worker"] == "Zoe"
    again = asked("crew", 3, "--worker=Zoe")  # the open ones first
    assert list(again[0]) == ["id", "members", "reason"]
    assert [pull["id"] for pull in again] == ["p1-0", "p1-1", "p1-2"]
    assert again[0]["members"] == ";".join(pulls["pulls"][0]["members"])
    table = done("ask", "crew", "--worker=Yan").splitlines()
    assert table[0].split() == ["id", "members", "reason"]
    assert table[2].startswith("p1-3  ")


def test_who_is_away_is_asked_for_later(crew: str) -> None:
    pulls = asked("crew", 10, "--without=Ann", "--without=Bo")
    assert pulls
    assert not [pull for pull in pulls if {"Ann", "Bo"} & set(pull["members"].split(";"))]
    result = called("ask", "crew", "--size=100000", "--without", "Ann")
    assert result.exit_code == 0
    assert "Ann" in result.stderr
    reasons = [change["text"] for change in data("changes", "crew")["changes"]]
    assert any("put off" in reason for reason in reasons)


def test_tell_one(crew: str) -> None:
    asked("crew", 3)
    assert done("tell", "crew", "p1-0", "1", "--worker=Zoe", "--site=north").startswith(
        "1 result taken.\nNo answer yet"
    )
    assert done("tell", "crew", "p1-0", "1.0").startswith("0 results taken, 1 told before.")
    refused(4, "pull p1-0 has total 1 already", "tell", "crew", "p1-0", "2")
    refused(2, "pull p1-1: total -1 is outside 0 .. 2", "tell", "crew", "p1-1", "-1")
    refused(2, "pull p1-1: total -0.5 is outside", "tell", "crew", "p1-1", "-.5")
    refused(2, "a finite number", "tell", "crew", "p1-1", "-inf")
    said = data("tell", "crew", "p1-1", "0")
    assert (said["new"], said["repeated"], said["empty"]) == (1, 0, 0)
    assert said["verdict"]["answer"] == []
    lines = done("tell", "crew", "p1-2", "2", "--format=csv").splitlines()
    assert lines == ["new,repeated,empty", "1,0,0"]
    first = data("history", "crew", "--limit=1")["results"][0]
    assert (first["worker"], first["site"], first["total"]) == ("Zoe", "north", 1.0)


def test_a_total_below_0_is_no_option() -> None:
    done("new", "cold", NEW[0], "--k=2", "--noise=gaussian:1", "--epsilon=1")
    asked("cold", 3)
    for id, total in (("p1-0", "-3.5"), ("p1-1", "-1e-3"), ("p1-2", "-2,5")):
        done("tell", "cold", id, total, "--decimal-comma")
    done("amend", "cold", "p1-0", "-4", "--reason", "misread")
    done("record", "cold", "-7", "Ann", "Bo", "--reason", "a rehearsal")
    totals = [row["total"] for row in data("history", "cold")["results"]]
    assert totals == [-4, -0.001, -2.5]


DIALECTS = [
    ("utf-8", ",", "\n", "."),
    ("utf-8-sig", ";", "\r\n", ","),
    ("utf-16", "\t", "\r\n", ","),
]


@pytest.mark.parametrize(("encoding", "separator", "end", "point"), DIALECTS)
def test_what_ask_wrote_with_a_column_total_is_told(
    place: Path, encoding: str, separator: str, end: str, point: str
) -> None:
    done("new", "crew", NEW[0], "--k=2", "--noise=total:0:3", "--epsilon=1")
    pulls = asked("crew", 4)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=end)
    writer.writerow([*pulls[0], "Total"])
    for pull, total in zip(pulls, ("0.5", "1.5", "", "3"), strict=True):
        writer.writerow([*pull.values(), total.replace(".", point)])
    (place / "results.csv").write_bytes(out.getvalue().encode(encoding))
    comma = ["--decimal-comma"] if point == "," else []
    assert done("tell", "crew", "results.csv", *comma).startswith(
        "3 results taken, 1 not measured yet."
    )
    assert [row["total"] for row in data("history", "crew")["results"]] == [0.5, 1.5, 3]
    again = done("tell", "crew", "-", *comma, stdin=out.getvalue().encode(encoding))
    assert again.startswith("0 results taken, 3 told before, 1 not measured yet.")


def test_a_wrong_line_is_named_and_nothing_is_taken(place: Path, crew: str) -> None:
    asked("crew", 4)
    done("tell", "crew", "p1-3", "1")
    for line, code, says in (
        ("p1-2,x", 2, "results.csv, line 4: 'x' is not a finite number"),
        ("p1-2,7", 2, "results.csv, line 4: pull p1-2: total 7 is outside 0 .. 2"),
        ("p1-9,1", 2, "results.csv, line 4: pull 'p1-9' was never asked for"),
        ("1-2,1", 2, "results.csv, line 4: pull '1-2' was never asked for"),
        ("p1-0,2", 2, "results.csv, line 4: pull p1-0 has the total 2 here and 1 on line 2"),
        ("p1-3,2", 4, "results.csv, line 4: pull p1-3 has total 1 already"),
    ):
        (place / "results.csv").write_text(f"id,total\np1-0,1\np1-1,1\n{line}\n", encoding="utf-8")
        refused(code, says, "tell", "crew", "results.csv")
        assert len(data("history", "crew")["results"]) == 1
    refused(2, "standard input, line 2: 'x'", "tell", "crew", "-", stdin="id,total\np1-0,x\n")


def test_labels_in_the_file_go_before_the_options(place: Path, crew: str) -> None:
    asked("crew", 3)
    text = "id,total,worker,site\np1-0,1,Ann,\np1-1,1,,south\np1-2,1,Cy,east\n"
    done("tell", "crew", "-", "--worker=Zoe", "--site=north", stdin=text)
    rows = [(row["worker"], row["site"]) for row in data("history", "crew")["results"]]
    assert rows == [("Ann", "north"), ("Zoe", "south"), ("Cy", "east")]


def test_from_the_first_pull_to_the_certificate(crew: str) -> None:
    assert called("status", "crew").exit_code == 3
    to_the_end("crew")
    result = called("status", "crew")
    assert result.exit_code == 0
    assert result.stdout.startswith("Stop: Ann, Bo after")
    found = data("status", "crew")
    assert found["certified"] is True
    assert found["verdict"]["answer"] == ["Ann", "Bo"]
    rows = list(csv.DictReader(io.StringIO(done("status", "crew", "--format=csv"))))
    assert {row["arm"] for row in rows if row["chosen"] == "True"} == {"Ann", "Bo"}
    none = called("ask", "crew", "--size=2")
    assert (none.exit_code, none.stdout.splitlines()[0].split()) == (0, ["id", "members", "reason"])
    assert none.stderr.startswith("0 of 2 pulls: no more are needed")
    looks = data("looks", "crew")["looks"]
    assert looks[-1]["gap"] + looks[-1]["epsilon"] >= looks[-1]["radius"]
    assert len(done("looks", "crew").splitlines()) == 2 + len(looks)
    assert len(done("looks", "crew", "--format=csv").splitlines()) == 1 + len(looks)
    assert data("list")["campaigns"][0]["state"] == "certified"


# ---- pulls that are out --------------------------------------------------------------------------


def test_open_back_and_extend(crew: str) -> None:
    asked("crew", 3, "--worker=Zoe", "--lease=1h")
    asked("crew", 1, "--worker=Yan")
    found = data("open", "crew")["open"]
    assert [(pull["id"], pull["worker"]) for pull in found] == [
        ("p1-0", "Zoe"),
        ("p1-1", "Zoe"),
        ("p1-2", "Zoe"),
        ("p1-3", "Yan"),
    ]
    assert done("extend", "crew", "p1-0", "--lease=9d") == "1 pull kept for longer.\n"
    assert done("extend", "crew", "--worker=Yan", "--lease=9d") == "1 pull kept for longer.\n"
    later = [pull["until"] for pull in data("open", "crew")["open"]]
    assert min(later[0], later[3]) > max(later[1:3])
    assert done("back", "crew", "p1-3") == "1 pull given back.\n"
    assert done("back", "crew", "--worker=Zoe") == "3 pulls given back.\n"
    assert [pull["id"] for pull in asked("crew", 4, "--worker=Xi")] == [f"p1-{i}" for i in range(4)]
    lines = done("open", "crew", "--format=csv").splitlines()
    assert lines[0] == "id,members,worker,given_at,until,lapsed,reason"
    assert len(lines) == 5
    assert len(done("open", "crew").splitlines()) == 6
    assert done("back", "crew", "--lapsed") == "0 pulls given back.\n"


def test_a_lapsed_pull_that_another_told_is_a_conflict(crew: str) -> None:
    import time

    asked("crew", 1, "--worker=Zoe", "--lease=0.05s")
    time.sleep(0.1)
    assert [pull["id"] for pull in asked("crew", 1, "--worker=Yan")] == ["p1-0"]
    done("tell", "crew", "p1-0", "1", "--worker=Yan")
    refused(4, "p1-0", "tell", "crew", "p1-0", "2", "--worker=Zoe")


# ---- changes -------------------------------------------------------------------------------------


def test_amend_void_and_undo(crew: str) -> None:
    to_the_end("crew")
    said = data("amend", "crew", "p1-0", "1", "--reason=a slip of the pen", "--worker=Zoe")
    assert (said["number"], said["kind"], said["total"], said["worker"]) == (1, "amend", 1, "Zoe")
    assert "it rained" in done("void", "crew", "p1-1", "--reason=it rained")
    assert called("status", "crew").exit_code == 3  # it is asked for again
    again = asked("crew", 1)
    assert again[0]["id"] == "p1-1-2"
    assert "measured again" in again[0]["reason"]
    assert "change 2" in done("undo", "crew")
    assert "change 1" in done("undo", "crew", "1", "--reason=it was right")
    assert called("status", "crew").exit_code == 0
    found = data("changes", "crew")["changes"]
    assert [(one["kind"], one["undone"]) for one in found] == [
        ("amend", True),
        ("void", True),
        ("undo", False),
        ("undo", False),
    ]
    assert len(done("changes", "crew").splitlines()) == 6
    header = done("changes", "crew", "--format=csv").splitlines()[0]
    assert header.startswith("number,at,kind,id,total,reason")


def test_void_because_of_the_value_ends_the_certificate(crew: str) -> None:
    to_the_end("crew")
    done("void", "crew", "p1-0", "--reason=an outlier", "--because-of-value")
    to_the_end("crew")
    result = called("status", "crew")
    assert result.exit_code == 3
    assert "because of its value" in result.stdout


def test_retire_and_record(crew: str) -> None:
    to_the_end("crew")
    assert "outside the plan" in done("record", "crew", "2", "Ann", "Cy", "--reason=a rehearsal")
    assert "Ann left for good" in done("retire", "crew", "Ann", "--reason=moved away", "--yes")
    found = data("changes", "crew")["changes"]
    assert [change["kind"] for change in found] == ["outside", "retire"]
    pulls = asked("crew", 20)
    assert not [pull for pull in pulls if "Ann" in pull["members"]]
    done("back", "crew", *(pull["id"] for pull in pulls))
    to_the_end("crew")
    arms = {arm["name"]: arm["state"] for arm in data("status", "crew")["arms"]}
    assert arms["Ann"] == "retired"
    assert "retired" in done("status", "crew")


# ---- files ---------------------------------------------------------------------------------------


def test_export_verify_import_and_delete(place: Path, crew: str) -> None:
    to_the_end("crew")
    done("export", "crew", "crew.json")
    refused(2, "crew.json: there already", "export", "crew", "crew.json")
    done("export", "crew", "crew.json", "--force")
    for words in (("campaign", "verify", "crew"), ("verify", "crew"), ("verify", "crew.json")):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
    refused(1, "there is a campaign 'crew' already", "import", "crew.json")
    done("import", "crew.json", "--name=copy")
    assert called("status", "copy").exit_code == 0
    assert done("delete", "crew", "--yes") == "crew is deleted.\n"
    refused(1, "there is no campaign 'crew'", "status", "crew")
    done("import", "crew.json")
    assert data("history", "crew")["results"] == data("history", "copy")["results"]


def test_verify_needs_no_store(place: Path, crew: str, monkeypatch: pytest.MonkeyPatch) -> None:
    to_the_end("crew")
    done("export", "crew", "crew.json")
    monkeypatch.setenv("SUPERARM_STORE", str(place / "nowhere" / "store.db"))
    assert CliRunner().invoke(main, ["verify", "crew.json"]).exit_code == 0
    assert not (place / "nowhere").exists()
    said = CliRunner().invoke(main, ["verify", "crew.json", "--format=json"])
    assert json.loads(said.stdout)["confirmed"] is True


def test_a_certificate_that_was_tampered_with_is_refuted(place: Path, crew: str) -> None:
    to_the_end("crew")
    done("export", "crew", "crew.json")
    text = (place / "crew.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert content  # the answer of the certificate is one of the names
    forged = text.replace('"answer": ["Ann", "Bo"]', '"answer": ["Cy", "Bo"]')
    forged = forged.replace('"answer":["Ann","Bo"]', '"answer":["Cy","Bo"]')
    assert forged != text
    (place / "forged.json").write_text(forged, encoding="utf-8")
    assert CliRunner().invoke(main, ["verify", "forged.json"]).exit_code == 1


def test_stores_are_copied_checked_and_backed_up(place: Path, crew: str) -> None:
    to_the_end("crew")
    copied = CliRunner().invoke(main, ["store", "copy", "store.db", "other.db"])
    assert (copied.exit_code, copied.stdout[:18]) == (0, "1 campaign copied "), copied.output
    there = data("history", "crew", "--store=other.db")["results"]
    assert there == data("history", "crew")["results"]
    again = CliRunner().invoke(main, ["store", "copy", "store.db", "other.db"])
    assert again.exit_code == 1
    assert "crew" in again.stderr
    fine = CliRunner().invoke(main, ["store", "check"])
    assert (fine.exit_code, fine.stdout[-27:]) == (0, "db, 1 campaign: all is well.\n"[-27:])
    assert CliRunner().invoke(main, ["store", "backup", "backup.db"]).exit_code == 0
    assert data("history", "crew", "--store=backup.db") == data("history", "crew")
    with sqlite3.connect(place / "store.db") as raw:
        raw.execute("UPDATE result SET total = 2 - total")
    raw.close()
    wrong = CliRunner().invoke(main, ["store", "check", "--format=json"])
    assert wrong.exit_code == 1
    assert len(json.loads(wrong.stdout)["faults"]) >= 1
    absent = CliRunner().invoke(main, ["store", "check", "--store=absent.db"])
    assert absent.exit_code == 1
    assert "there is no store" in absent.stderr


# ---- processes of their own ----------------------------------------------------------------------


def test_exit_codes_of_a_process(crew: str) -> None:
    asked("crew", 1)
    done("tell", "crew", "p1-0", "1")
    for code, words in (
        (0, ("list",)),
        (1, ("status", "nobody")),
        (2, ("ask", "crew", "--size=none")),
        (3, ("status", "crew")),
        (4, ("tell", "crew", "p1-0", "2")),
    ):
        result = started("campaign", *words)
        assert result.returncode == code
        assert "Traceback" not in result.stderr


def test_a_missing_extra_is_one_friendly_line() -> None:
    code = """
import sys
sys.modules["sqlalchemy"] = None
from superarm.cli import main
main(sys.argv[1:])
"""
    for words in (["campaign", "list"], ["campaign", "new", "x", *NEW], ["store", "check"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == 'Error: campaigns need: pip install "superarm[campaign]"\n'


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["campaign", "--help"],
        ["campaign", "new", "--help"],
        ["campaign", "run"],
        ["config"],
    ],
    ids=" ".join,
)
def test_what_needs_no_store_loads_no_heavy_library(words: list[str]) -> None:
    code = f"""
import sys
from superarm.cli import main
try:
    main({words!r})
finally:
    heavy = {{"numpy", "scipy", "numba", "sqlalchemy", "alembic", "narwhals"}} & set(sys.modules)
    print("loaded:", sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "loaded: []"


def test_diagnose_checks_the_totals(crew: str) -> None:
    assert "no totals yet" in called("diagnose", crew).stderr
    for row in asked(crew, 40):
        done("tell", crew, row["id"], total_of(row["members"]))
    for form, sign in (("table", "additive"), ("json", '"findings"'), ("csv", "check,p_value")):
        assert sign in done("diagnose", crew, "--format", form)
