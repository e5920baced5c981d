"""Interrupted studies, and journals that are torn, damaged, of another study, or in use."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from studies import LONG, QUICK, lines_of, members, numbers, started, study_in, wait_until

import superarm as sa
from superarm.cli import main
from superarm.study import tables


@pytest.fixture
def study(tmp_path):
    return study_in(tmp_path, replications=2)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "table.csv"


@pytest.fixture
def journal(out):
    return out.with_name("table.csv.journal")


def counted(study, out, **settings):
    """Run a study; return its results and how many runs were there already."""
    seen = []
    found = study.run(out=out, progress=lambda finished, runs: seen.append(finished), **settings)
    return found, seen[0]


@contextlib.contextmanager
def most_bytes_of_a_file(size):
    """Let no file of this process grow beyond a size, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ---- interrupted ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the long study gives when nothing comes between."""
    return study_in(tmp_path_factory.mktemp("whole"), LONG).run()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_an_interrupted_study_goes_on_to_the_same_table(
    whole, tmp_path, out, journal, how, workers
):
    study = study_in(tmp_path, LONG)
    process = started("run", tmp_path / "study.toml", "--out", out, "--workers", workers)
    try:
        wait_until(lambda: lines_of(journal) > 3 or process.poll() is not None)
        process.send_signal(how)
        stdout, stderr = process.communicate(timeout=120)
        wait_until(lambda: not members(process.pid), 20)  # no worker is left over
    finally:
        process.kill()
        process.wait()
    kept = lines_of(journal) - 1
    assert 3 <= kept < len(whole)
    assert not out.exists()
    assert stdout == ""
    if how == signal.SIGINT:
        assert process.returncode == 130
        said = f"interrupted: {kept} of 40 runs are kept in {journal}; the same command goes on"
        assert stderr.startswith(said)
        assert stderr.count("\n") == 1
    else:
        assert process.returncode == -signal.SIGKILL
    before = [json.loads(line) for line in journal.read_bytes().splitlines()[1 : kept + 1]]
    found, there = counted(study, out)
    assert there == kept
    assert numbers(found) == numbers(whole) == numbers(sa.Results.read(out))
    for each in before:  # taken over, not run again
        assert found.columns["seconds"][each["replication"] - 1] == each["seconds"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_workers_that_have_just_begun_end_with_the_study(tmp_path, out, how):
    """Ctrl-C reaches them all; after kill -9 of the study alone they notice that it is gone."""
    study_in(tmp_path, LONG)
    process = started("run", tmp_path / "study.toml", "--out", out, "--workers", "2")
    try:
        loky = "LokyProcess"
        wait_until(lambda: sum(loky in words for words in members(process.pid).values()) == 2)
        (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
        _, stderr = process.communicate(timeout=120)
        wait_until(lambda: not members(process.pid), 20)
    finally:
        process.kill()
        process.wait()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "KeyboardInterrupt" not in stderr  # as a worker would say that hears it too
        assert "interrupted before the first run" in stderr


def test_the_command_says_what_was_there_already(study, tmp_path, out, journal):
    alone = study.run()
    words = ["study", "run", str(tmp_path / "study.toml"), "--out", str(out), "--replications"]
    assert CliRunner().invoke(main, [*words, "1"]).exit_code == 0
    done = CliRunner().invoke(main, [*words, "2"])
    assert done.exit_code == 0
    assert done.stderr == f"9 of 18 runs are in {journal} already\n"
    assert numbers(sa.Results.read(out)) == numbers(alone)


def test_a_finished_study_runs_nothing_again(study, out):
    first, _ = counted(study, out)
    again, there = counted(study, out)
    assert there == study.runs
    assert again.rows == first.rows  # the seconds too


def test_a_study_grows_by_replications_and_cells(tmp_path, study, out):
    counted(study, out)
    text = QUICK + '\n[[instance]]\nname = "more"\nmeans = "means.csv"\nk=1\nnoise="labels"\n'
    grown = study_in(tmp_path, text, replications=3)
    found, there = counted(grown, out)
    assert there == 18
    assert numbers(found) == numbers(grown.run())
    smaller, there = counted(study, out)
    assert there == 18
    assert numbers(smaller) == numbers(study.run())


def test_fresh_forgets_what_was_there(study, out):
    counted(study, out)
    found, there = counted(study, out, fresh=True)
    assert there == 0
    assert numbers(found) == numbers(study.run())


def test_a_bad_study_forgets_nothing(study, tmp_path, out, journal):
    counted(study, out)
    before = out.read_bytes(), journal.read_bytes()
    bad = study_in(tmp_path, QUICK + "\n[[algorithm]]\nname='icb'\nsupport=3\n")
    with pytest.raises(sa.SuperarmError, match="cell"):
        bad.run(out=out, fresh=True)
    assert (out.read_bytes(), journal.read_bytes()) == before


# ---- torn and damaged ----------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 2, 40, 10**6])
def test_a_last_line_that_was_cut_short_is_run_again(study, out, journal, cut):
    first, _ = counted(study, out)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:-cut])
    found, there = counted(study, out)
    assert there == study.runs - 1
    assert numbers(found) == numbers(first)
    assert sorted(journal.read_bytes().splitlines()[1:])[0].endswith(b"}")
    assert counted(study, out)[1] == study.runs


@pytest.mark.parametrize("size", [0, 1, 12, 200])
def test_a_journal_torn_in_its_first_line_begins_anew(study, out, journal, size):
    first, _ = counted(study, out)
    journal.write_bytes(journal.read_bytes()[:size])
    found, there = counted(study, out)
    assert there == 0
    assert numbers(found) == numbers(first)


def damaged(number, change):
    def damage(content):
        lines = content.splitlines(keepends=True)
        lines[number - 1] = change(lines[number - 1])
        return b"".join(lines)

    return damage


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (damaged(3, lambda line: line[:30] + b"\n"), 3),
        (damaged(3, lambda line: line.replace(b'"pulls":', b'"pulls":1')), 3),
        (damaged(5, lambda line: line.replace(b"true", b"false")), 5),
        (damaged(4, lambda line: b"\0" * len(line)), 4),
        (damaged(6, lambda line: b"[]\n"), 6),
        (damaged(6, lambda line: b"\xff\n"), 6),
        (damaged(19, lambda line: line.replace(b'"look":', b'"look":9')), 19),
    ],
)
def test_a_damaged_line_is_not_believed(study, out, journal, damage, line):
    first, _ = counted(study, out)
    journal.write_bytes(damage(journal.read_bytes()))
    before = journal.read_bytes()
    with pytest.raises(sa.DataError, match=rf"table.csv.journal, line {line}: damaged; take this"):
        study.run(out=out)
    assert journal.read_bytes() == before
    lines = before.splitlines(keepends=True)
    if before.count(b"\n") == 19:  # as the message says
        journal.write_bytes(b"".join(lines[: line - 1] + lines[line:]))
        found, there = counted(study, out)
        assert there == study.runs - 1
        assert numbers(found) == numbers(first)


@pytest.mark.parametrize(
    "content", [b"pulls,regret\n1,2\n", b"{}\n", b'{"journal":"superarm study 0"}\n', b"\0\0\n"]
)
def test_another_file_is_not_taken_for_a_journal(study, out, journal, content):
    journal.write_bytes(content)
    with pytest.raises(sa.DataError, match="is not the journal of a study"):
        study.run(out=out)
    assert journal.read_bytes() == content


# ---- of another study ----------------------------------------------------------------------------


def change_version(study, monkeypatch):
    from superarm.study import journal

    monkeypatch.setattr(journal, "versions", lambda: {"superarm": "0.0.1"})
    return study


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s, m: sa.Study(s.cells, 2, rng=4), "it has rng 3, and this study 4"),
        (lambda s, m: sa.Study(s.cells, 2, rng=3, max_pulls=10**6), "it has max_pulls 1000000000"),
        (
            lambda s, m: sa.Study(s.cells[1:], 2, rng=3),
            r"its cell 1 \(icb on synthetic, gap=0.4, design=uniform:3n\) is another than cell 1 "
            r"\(icb on synthetic, gap=0.4, design=uniform:full\) here",
        ),
        (change_version, "it has superarm .*, and this study 0.0.1"),
    ],
)
def test_the_journal_of_another_study_is_refused(study, out, journal, monkeypatch, change, says):
    counted(study, out)
    before = out.read_bytes(), journal.read_bytes()
    other = change(study, monkeypatch)
    with pytest.raises(sa.SettingError, match=f"is the journal of another study: {says}"):
        other.run(out=out)
    assert (out.read_bytes(), journal.read_bytes()) == before


def test_a_table_without_a_journal_is_not_replaced_unasked(study, out, journal):
    out.write_text("mine")
    with pytest.raises(sa.SettingError, match="is there already, and no journal beside it"):
        study.run(out=out)
    assert out.read_text() == "mine"
    assert not journal.exists()
    assert numbers(study.run(out=out, fresh=True)) == numbers(sa.Results.read(out))


# ---- two processes, and full disks ---------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_two_processes_do_not_write_one_journal(study, out, journal, fresh):
    first, _ = counted(study, out)
    with open(journal, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(sa.SettingError, match="another process is at work on this study"):
            study.run(out=out, fresh=fresh)
    assert counted(study, out)[0].rows == first.rows


def test_a_journal_that_another_process_removes_is_made_again(study, out, journal, monkeypatch):
    """The other one opens it, finds nothing to do, and removes it after we have opened it too."""
    from superarm.study.journal import Journal

    lock, locked = Journal._lock, []

    def after_removal(self, file):
        if not locked:
            self.path.unlink()
        locked.append(file)
        lock(self, file)

    monkeypatch.setattr(Journal, "_lock", after_removal)
    counted(study, out)
    assert len(locked) == 2
    assert lines_of(journal) == 19


def test_a_full_disk_loses_no_run(study, out, journal):
    alone = study.run()
    with most_bytes_of_a_file(4000), pytest.raises(OSError, match=r"writing .*table.csv.journal"):
        study.run(out=out)
    kept = lines_of(journal) - 1
    assert 0 < kept < study.runs
    assert journal.read_bytes().endswith(b"}\n")
    assert not out.exists()
    found, there = counted(study, out)
    assert there == kept
    assert numbers(found) == numbers(alone)


def test_a_table_that_cannot_be_written_stays_as_it_was(study, tmp_path, out):
    first, _ = counted(study, out)
    before = out.read_bytes()
    with most_bytes_of_a_file(1000), pytest.raises(OSError, match=r"too large \(writing .*csv\)"):
        study.run(out=out)
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert counted(study, out)[0].rows == first.rows


def test_a_full_disk_is_one_line_and_exit_code_1(study, tmp_path, out, monkeypatch):
    def full(columns: object, path: Path) -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    monkeypatch.setattr(tables, "_write_csv", full)
    words = ["study", "run", str(tmp_path / "study.toml"), "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert done.stderr == f"Error: the system says: No space left on device (writing {out})\n"
    monkeypatch.undo()
    assert CliRunner().invoke(main, words).stderr == f"45 of 45 runs are in {out}.journal already\n"


def test_a_worker_that_is_killed_ends_the_study_and_loses_nothing(tmp_path, out, journal, whole):
    """Not by a signal of ours to the study: the system may kill a process for its memory."""
    study = study_in(tmp_path, LONG)
    process = started("run", tmp_path / "study.toml", "--out", out, "--workers", "2")
    try:
        wait_until(lambda: lines_of(journal) > 3 or process.poll() is not None)
        worker = next(pid for pid, words in members(process.pid).items() if "LokyPr" in words)
        os.kill(worker, signal.SIGKILL)
        _, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "a worker process came to a sudden end (killed, or out of memory?)" in stderr
    assert "Traceback" not in stderr
    found, there = counted(study, out)
    assert there >= 3
    assert numbers(found) == numbers(whole)
