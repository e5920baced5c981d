"""Worker processes: what happens when they are interrupted, killed, or given what cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import superarm as sa

SCRIPT = """
import os, signal, sys, time
import superarm as sa
from superarm.simulation import LinearEnvironment

class Stuck(LinearEnvironment):
    def add(self, *args):
        if {dies}:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(1, b"begun\\n")  # at once, so that two lines stay two
        time.sleep(600)

if __name__ == "__main__":
    problem = sa.Problem(4, 2, sa.gaussian(1.0))
    try:
        sa.replicate(problem, sa.ICB(), Stuck([0, 0, 1, 1], problem.noise), 6, rng=1, workers=2)
    except KeyboardInterrupt:
        sys.exit(130)
    except ChildProcessError as error:
        sys.exit(str(error))
"""


def started(tmp_path: Path, dies: bool) -> subprocess.Popen[str]:
    script = tmp_path / "stuck.py"
    script.write_text(SCRIPT.format(dies=dies), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("all_at_once", [True, False], ids=["as by ctrl-c", "the parent alone"])
def test_an_interrupt_ends_the_workers_too(tmp_path: Path, all_at_once: bool) -> None:
    with started(tmp_path, dies=False) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == "begun\n"
        try:
            (os.killpg if all_at_once else os.kill)(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert (process.returncode, out, err) == (130, "", "")


def test_a_worker_that_is_killed_is_one_clear_error(tmp_path: Path) -> None:
    with started(tmp_path, dies=True) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith("a worker process was ended from outside")
    assert err.count("\n") == 1


def test_a_mistake_found_by_a_worker_is_raised_here() -> None:
    problem = sa.Problem(3, 2, sa.total(0, 1))
    world = sa.environment([0.9, 0.9, 0.0], problem.noise)
    with pytest.raises(sa.NoiseError, match="outside its range"):
        sa.replicate(problem, sa.ICB(), world, 4, rng=1, workers=2)
