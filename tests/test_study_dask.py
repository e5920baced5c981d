"""Studies on a real Dask cluster on this machine: a scheduler and workers, each its own process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from studies import LONG, lines_of, numbers, study_in, wait_until

import superarm as sa
from superarm.cli import main
from superarm.study import executors

DASK = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}


def dask(folder, *words):
    """Start a part of the cluster; what it has to say goes to a file."""
    with open(folder / f"{words[0]}.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]],
            stdout=log,
            stderr=log,
            env={**os.environ, **DASK, "OPENBLAS_NUM_THREADS": "1"},
            cwd=folder,
        )


@contextlib.contextmanager
def scheduler(folder):
    """A scheduler of its own; its address."""
    file = folder / "scheduler.json"
    where = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter", "--no-show"]
    process = dask(folder, "scheduler", *where, "--scheduler-file", str(file))
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"]
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def workers(folder, address, number):
    """So many workers with one thread each, and no process that would start them again."""
    words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    made = [dask(folder, "worker", *words, "--local-directory", str(folder)) for _ in range(number)]
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            process.wait()


def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(tmp_path):
    study, out = study_in(tmp_path, LONG), tmp_path / "t.csv"
    alone = numbers(study.run())
    killed = []
    with scheduler(tmp_path) as address, workers(tmp_path, address, 2) as made:

        def kill_one(finished, runs):
            if finished >= 6 and not killed:
                made[0].kill()
                killed.append(finished)

        found = study.run(dask=address, out=out, progress=kill_one)
        assert numbers(found) == alone == numbers(sa.Results.read(out))
        assert killed[0] < len(found)
        assert made[0].wait() != 0
        assert made[1].poll() is None
        # The same by the command, on the worker that is left, going on from a part.
        journal = tmp_path / "u.csv.journal"
        lines = (tmp_path / "t.csv.journal").read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:31]))
        words = ["study", "run", tmp_path / "study.toml", "--out", tmp_path / "u.csv"]
        done = CliRunner().invoke(main, [*map(str, words), "--dask", address])
        assert done.exit_code == 0, done.stderr
        assert done.stderr == f"30 of 40 runs are in {journal} already\n"
        assert numbers(sa.Results.read(tmp_path / "u.csv")) == alone


def test_a_scheduler_that_is_lost_is_one_clear_line_and_the_study_goes_on_later(tmp_path):
    study, out = study_in(tmp_path, LONG), tmp_path / "t.csv"
    command = [sys.executable, "-m", "superarm", "study", "run", str(tmp_path / "study.toml")]
    with scheduler(tmp_path) as address, workers(tmp_path, address, 1):
        process = subprocess.Popen(
            [*command, "--out", str(out), "--dask", address],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **DASK},
        )
        try:
            journal = tmp_path / "t.csv.journal"
            wait_until(lambda: lines_of(journal) > 3 or process.poll() is not None)
        except BaseException:
            process.kill()
            process.wait()
            raise
    try:
        _, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert stderr == f"Error: the system says: the Dask scheduler at {address} was lost\n"
    assert 3 <= lines_of(journal) - 1 < study.runs
    assert numbers(study.run(out=out)) == numbers(study.run())


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "_PATIENCE", 1)
    study, out = study_in(tmp_path, LONG, replications=1), tmp_path / "t.csv"
    with pytest.raises(sa.SettingError, match=r"no Dask scheduler answers at 'tcp://127"):
        study.run(dask="tcp://127.0.0.1:9", out=out)
    with pytest.raises(sa.SettingError, match="no Dask scheduler answers at 'x://y'"):
        study.run(dask="x://y", out=out)
    with (
        scheduler(tmp_path) as address,
        pytest.raises(sa.SettingError, match=f"the Dask scheduler at {address} has no workers"),
    ):
        study.run(dask=address, out=out)
    assert not out.exists()
    assert not out.with_name("t.csv.journal").exists()


def test_workers_with_other_versions_are_refused(monkeypatch):
    mine = executors.versions()
    executors._same(mine)
    with pytest.raises(sa.SettingError, match=r"a Dask worker has numpy 1\.0, and here is"):
        executors._same({**mine, "numpy": "1.0"})
