"""What the tests of studies share: a small study file, processes that run it, tables compared."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from superarm.study import read_study

QUICK = """
title = "quick"
replications = 5
rng = 3

[[instance]]
synthetic = {n = 6, k = 2, gap = [0.4, 0.8]}
noise = "gaussian:0.2"
epsilon = 0.2

[[instance]]
name = "four"
means = "means.csv"
k = 2
noise = "labels"
epsilon = 0.8

[[algorithm]]
name = "icb"
support = ["3n", "full"]

[[algorithm]]
name = "exhaustive"
"""
"""Nine cells of very short runs."""

LONG = """
title = "long"
replications = 40
rng = 5

[[instance]]
synthetic = {n = 12, k = 4, gap = 0.1}
noise = "gaussian:1"

[[algorithm]]
name = "icb"
"""
"""One cell, some seconds: long enough to be interrupted in the middle."""

MEANS = "arm,mean\na,0.9\nb,0.8\nc,0.3\nd,0.2\n"


def write_study(folder: Path, text: str = QUICK) -> Path:
    """Write a study file, and the means that it may name."""
    (folder / "means.csv").write_text(MEANS, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def study_in(folder: Path, text: str = QUICK, **settings):
    """Return the study that a text says."""
    return read_study(write_study(folder, text), **settings)


def numbers(results):
    """Return all columns but the one that no two runs share."""
    return {name: values for name, values in results.columns.items() if name != "seconds"}


def started(*words, **settings):
    """Start `superarm study` in a session of its own."""
    command = [sys.executable, "-W", "error", "-m", "superarm", "study", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, **settings
    )


def lines_of(path: Path) -> int:
    """Return the number of whole lines in a file; 0 where there is none."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_until(condition, seconds: float = 120.0) -> None:
    """Wait, not for ever."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def members(session: int) -> dict[int, str]:
    """Return the commands of all processes of a session that still live (Linux), by number."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state != "Z":
                words = stat.with_name("cmdline").read_text().replace("\0", " ")
                found[int(stat.parent.name)] = words
        except OSError:
            continue  # it has just ended
    return found
