"""Measuring by a program or a function until it is certified, whatever the program does."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.campaign.program import Program
from superarm.campaign.runner import Progress, Ran, run
from superarm.cli import main

ARMS = ["Ann", "Bo", 'Cy "x" y', "Dee;D", "-Eli", "Fay's"]
GOOD = {"Ann", "Bo"}


class Crew(NamedTuple):
    id: str
    members: tuple[str, ...]
    worker: str


PULL = Crew("p1-0", ("Ann B.", "x;y", "it's", "$HOME", "-v"), "Zoe")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERARM_STORE", str(tmp_path / "store.db"))
    return tmp_path


@pytest.fixture
def crew() -> sa.Campaign:
    problem = sa.Problem(ARMS, 2, sa.labels(), epsilon=1.0)
    return sa.Campaign.create("crew", problem, rng=1)


def truth(pull: Any) -> float:
    return float(len(GOOD & set(pull.members)))


def program(body: str, *arguments: str) -> str:
    """A template that runs a few lines of Python; names are sys.argv[1:]."""
    Path("measure.py").write_text(f"import os, sys, time\nnames = sys.argv[1:]\n{body}\n")
    return (
        shlex.join([sys.executable, "measure.py"]) + " " + (" ".join(arguments) or "{members...}")
    )


TRUTH = f"print('crew', names)\nprint(len({GOOD!r} & set(names)))"


# ---- programs ------------------------------------------------------------------------------------


def test_each_placeholder_stays_in_its_argument() -> None:
    found = Program("m --crew={members} '{id} of {worker}' {worker}").arguments(PULL)
    assert found == ["m", '--crew=Ann B.;"x;y";it\'s;$HOME;-v', "p1-0 of Zoe", "Zoe"]
    assert Program("m {members...} end").arguments(PULL) == ["m", *PULL.members, "end"]
    assert Program("m '{members...}'").arguments(PULL) == ["m", *PULL.members]
    assert Program("m {id} '{\"a\": 1}' {} {1}").arguments(PULL)[2:] == ['{"a": 1}', "{}", "{1}"]


def test_names_that_look_like_placeholders_stay_names() -> None:
    odd = Crew("p1-0", ("{id}", "{members...}"), "{worker}")
    assert Program("m {members} {members...} {worker}").arguments(odd) == [
        *("m", "{id};{members...}", "{id}", "{members...}", "{worker}")
    ]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_the_names_are_they_arrive_as_they_are(names: list[str]) -> None:
    code = "import sys; print(len(sys.argv[1:]), [a.encode() for a in sys.argv[1:]])"
    command = Program(shlex.join([sys.executable, "-c", code]) + " {members...}").arguments(
        Crew("p1-0", tuple(names), "")
    )
    assert command[3:] == names  # and never go through a shell: see the next test


def test_no_shell_reads_the_names() -> None:
    seen = program("print(names, file=sys.stderr)\nprint(len(names))")
    assert Program(seen)(Crew("p", ("$(touch hacked)", "`x`; rm", "a|b"), "")) == 3.0
    assert not Path("hacked").exists()


@pytest.mark.parametrize(
    ("body", "total"),
    [
        ("print(2)", 2.0),
        ("print('working'); print(-1.5)", -1.5),
        ("print('3\\n\\n  ')", 3.0),
        ("print('x' * 10**6); print('1e2', end='')", 100.0),
        ("sys.stdout.buffer.write(b'\\xff\\n4\\r\\n')", 4.0),
        ("print('warning', file=sys.stderr); print(5)", 5.0),
    ],
)
def test_the_last_line_is_the_total(body: str, total: float) -> None:
    assert Program(program(body))(PULL) == total


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("pass", "wrote no total on the last line of its output: there is none"),
        ("print(1); print('done')", "'done' is no finite number"),
        ("print('nan')", "'nan' is no finite number"),
        ("print('1_0')", "'1_0' is no finite number"),
        ("print('1,5')", "'1,5' is no finite number"),
        (
            "print(1); print('  scales\\n are off', file=sys.stderr); sys.exit(3)",
            "ended with exit code 3; it said: scales / are off",
        ),
        ("os.kill(os.getpid(), 9)", "ended with signal SIGKILL"),
        ("time.sleep(60)", "had not ended after 0.5 s"),
        ("import signal; signal.signal(15, signal.SIG_IGN); time.sleep(60)", "had not ended"),
    ],
)
def test_a_program_that_fails_is_reported_with_what_it_said(body: str, says: str) -> None:
    began = time.monotonic()
    with pytest.raises(sa.MeasurementError) as caught:
        Program(program(body), timeout=0.5 if "sleep" in body else None)(PULL)
    assert says in str(caught.value)
    assert time.monotonic() - began < 20


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(sa.MeasurementError, match=r"cannot be started \(/no/such/m: No such file"):
        Program("/no/such/m {members}")(PULL)


def test_what_a_program_leaves_behind_does_not_hold_us_up() -> None:
    sleep = "[sys.executable, '-c', 'import time; time.sleep(30)']"
    body = f"import subprocess; subprocess.Popen({sleep})\nprint(7)"
    began = time.monotonic()
    assert Program(program(body))(PULL) == 7
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "2"])
def test_a_timeout_that_cannot_be(timeout: Any) -> None:
    with pytest.raises(sa.SettingError, match="timeout must be"):
        Program("m {id}", timeout)


# ---- runs by a function --------------------------------------------------------------------------


@pytest.mark.parametrize(("parallel", "size"), [(1, None), (4, None), (3, 40), (8, 2)])
def test_a_run_ends_with_the_certificate(
    crew: sa.Campaign, parallel: int, size: int | None
) -> None:
    most = 0
    running = threading.Semaphore(0)
    lock = threading.Lock()
    now = [0]

    def measure(pull: sa.Pull) -> float:
        nonlocal most
        with lock:
            now[0] += 1
            most = max(most, now[0])
        time.sleep(0.002)
        with lock:
            now[0] -= 1
        running.release()
        return truth(pull)

    seen: list[Progress] = []
    ran = run(crew, measure, parallel=parallel, size=size, progress=seen.append)
    assert ran.verdict.certified
    assert ran.verdict.answer == ("Ann", "Bo")
    assert not ran.interrupted
    assert most <= parallel
    assert crew.open_pulls() == [] or all(not pull.worker for pull in crew.open_pulls())
    assert ran.told == len(crew.history())
    assert seen[0].told == 0
    assert len({result.worker for result in crew.history()}) == 1


def test_the_numbers_are_those_of_any_other_way(crew: sa.Campaign) -> None:
    ran = run(crew, truth, parallel=3)
    twin = sa.Identification(crew.problem, crew.algorithm, rng=crew.seed)
    while not twin.verdict.done:
        for pull in twin.ask(10):
            twin.tell(pull.id, truth(pull))
    assert (
        twin.verdict.to_dict().items()
        >= {
            "answer": list(ran.verdict.answer),
            "pulls": ran.verdict.pulls,
            "gap": ran.verdict.gap,
        }.items()
    )


def test_max_pulls_ends_a_run_and_the_next_goes_on(crew: sa.Campaign) -> None:
    assert run(crew, truth, parallel=3, size=7, max_pulls=5).told == 5
    assert len(crew.history()) == 5
    assert not [pull for pull in crew.open_pulls() if pull.worker]
    assert run(crew, truth).verdict.certified


def test_a_failure_is_tried_again_and_then_ends_the_run(crew: sa.Campaign) -> None:
    calls: list[str] = []

    def shaky(pull: sa.Pull) -> float:
        calls.append(pull.id)
        if len(calls) % 3:
            raise sa.MeasurementError("no signal")
        return truth(pull)

    assert run(crew, shaky, retries=2).verdict.certified
    assert calls[:6] == ["p1-0"] * 3 + ["p1-1"] * 3
    other = sa.Campaign.create("other", crew.problem, rng=1)
    calls.clear()
    with pytest.raises(
        sa.MeasurementError, match=r"pull p1-0 of .* was not measured \(2 times\): no signal"
    ):
        run(other, shaky, retries=1)
    assert [pull.id for pull in other.ask(1)] == ["p1-0"]  # given back


def test_a_total_that_cannot_be_is_a_failure_too(crew: sa.Campaign) -> None:
    with pytest.raises(sa.MeasurementError, match=r"p1-0 .* total 7 is outside 0 .. 2"):
        run(crew, lambda pull: 7.0)
    assert crew.history() == []


def test_what_others_measure_at_that_time_is_kept_when_one_fails(crew: sa.Campaign) -> None:
    def measure(pull: sa.Pull) -> float:
        if pull.id == "p1-0":
            raise sa.MeasurementError("broken")
        time.sleep(0.2)
        return truth(pull)

    with pytest.raises(sa.MeasurementError, match="broken"):
        run(crew, measure, parallel=3, size=6)
    told = {result.id for result in crew.history()}
    assert {"p1-1", "p1-2"} <= told <= {"p1-1", "p1-2", "p1-3"}  # a quick one may get another
    assert not [pull for pull in crew.open_pulls() if pull.worker]


def test_an_error_of_the_function_itself_gives_the_pulls_back(crew: sa.Campaign) -> None:
    def wrong(pull: sa.Pull) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(crew, wrong, parallel=2)
    assert not [pull for pull in crew.open_pulls() if pull.worker]


def test_two_runs_share_the_work(crew: sa.Campaign) -> None:
    found: list[Ran] = []

    def go(worker: str) -> None:
        def slow(pull: sa.Pull) -> float:
            time.sleep(0.005)
            return truth(pull)

        found.append(run(sa.Campaign.open("crew"), slow, worker=worker, parallel=2))

    threads = [threading.Thread(target=go, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [ran.verdict.certified for ran in found] == [True, True]
    history = crew.history()
    assert sum(ran.told for ran in found) == len(history)
    assert {result.worker for result in history} == {"one", "two"}


def test_a_run_waits_for_what_others_hold(crew: sa.Campaign) -> None:
    theirs = crew.ask(1, worker="Zoe")
    said: list[str] = []

    def later() -> None:
        while not said:
            time.sleep(0.01)
        sa.Campaign.open("crew").tell(theirs[0].id, truth(theirs[0]))

    teller = threading.Thread(target=later)
    teller.start()
    measured = sa.Campaign.open("crew")
    ran = run(measured, truth, size=100, note=said.append)
    teller.join(10)
    assert ran.verdict.certified


def test_leases_are_renewed_while_a_program_works(crew: sa.Campaign) -> None:
    taken: list[str] = []

    def slow(pull: sa.Pull) -> float:
        other, end = sa.Campaign.open("crew"), time.monotonic() + 2.5
        while time.monotonic() < end:
            taken.extend(theirs.id for theirs in other.ask(1))
            time.sleep(0.05)
        return truth(pull)

    assert run(crew, slow, lease=1.0, max_pulls=1).told == 1
    assert len(taken) > 5
    assert crew.history()[0].id not in taken


def test_stop_gives_back_what_is_measured(crew: sa.Campaign) -> None:
    stop = threading.Event()
    slow = Program(program("time.sleep(60)"))
    timer = threading.Timer(1.0, stop.set)
    timer.start()
    began = time.monotonic()
    ran = run(crew, slow, parallel=2, size=4, stop=stop)
    assert ran.interrupted
    assert time.monotonic() - began < 30
    assert not [pull for pull in crew.open_pulls() if pull.worker]
    assert slow._running == set()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"parallel": 0}, "parallel must be"),
        ({"parallel": 1001}, "parallel must not exceed"),
        ({"size": 0}, "size must be"),
        ({"retries": -1}, "retries must be"),
        ({"max_pulls": 0}, "max_pulls must be"),
        ({"worker": ""}, "a worker's name of its own"),
        ({"lease": 0}, "lease must be"),
    ],
)
def test_settings_that_cannot_be(crew: sa.Campaign, settings: Any, says: str) -> None:
    with pytest.raises(sa.SettingError, match=says):
        run(crew, truth, **settings)


# ---- superarm campaign run -----------------------------------------------------------------------


def called(*words: str) -> Result:
    return CliRunner().invoke(main, ["campaign", "run", "crew", *words])


def test_run_until_certified(crew: sa.Campaign) -> None:
    result = called("--command", program(TRUTH), "--parallel=2", "--format=json", "--site=lab")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["verdict"]["answer"] == ["Ann", "Bo"]
    assert found["told"] == len(crew.history())
    assert result.stderr in ("", "superarm: compiling its kernels, once ...\n")
    assert {one.site for one in crew.history()} == {"lab"}
    again = called("--command", program(TRUTH))
    assert (again.exit_code, again.stdout[:15]) == (0, "0 totals told.\n")


def test_run_that_ends_before(crew: sa.Campaign) -> None:
    result = called("--command", program(TRUTH), "--max-pulls=2")
    assert result.exit_code == 3
    assert result.stdout.startswith("2 totals told.\nNo answer yet")
    lines = called("--command", program(TRUTH), "--max-pulls=1", "--format=csv").stdout.splitlines()
    assert lines == ["told,dropped,certified,pulls", "1,0,False,0"]


def test_run_of_a_failing_program(crew: sa.Campaign) -> None:
    failing = program("print('out of paper', file=sys.stderr); sys.exit(4)")
    result = called("--command", failing, "--retries=1", "--timeout=1m")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("Error: pull p1-0 of ")
    assert "(2 times): the program ended with exit code 4; it said: out of paper" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_gives_pulls_back(crew: sa.Campaign, number: int, code: int) -> None:
    body = (
        f"open(str(os.getpid()) + '.pid', 'w').close()\n{TRUTH}\nsys.stdout.flush()\ntime.sleep(60)"
    )
    command = [sys.executable, "-m", "superarm", "campaign", "run", "crew", "--parallel=2"]
    process = subprocess.Popen(
        [*command, "--command", program(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        waited = time.monotonic() + 60
        while len(list(Path().glob("*.pid"))) < 2 and time.monotonic() < waited:
            time.sleep(0.05)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert "interrupted; pulls that were out are given back" in stderr
    assert "Traceback" not in stderr
    assert stdout.startswith("0 totals told.")
    assert not [pull for pull in crew.open_pulls() if pull.worker]
    for left in Path().glob("*.pid"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(left.stem), 0)
