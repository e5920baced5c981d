"""The benchmarks still run: all of their code once, for figures of no worth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOLVERS = "gurobipy", "pyscipopt", "highspy", "cvxpy"

sys.path.append(str(ROOT / "benchmarks"))

from common import Row  # noqa: E402
from run import LAST, PARTS, keep, read, table  # noqa: E402


def bench(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/run.py", "--quick", *options]
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        check=False,
    )


def cells_of(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_benchmark_runs_and_makes_rows_of_a_table(tmp_path: Path) -> None:
    output = tmp_path / "bench.md"
    done = bench("--output", str(output))
    assert done.returncode == 0, done.stderr
    assert "bench: greedy peeling" in done.stderr
    assert output.read_text(encoding="utf-8") == done.stdout

    headings = [line for line in done.stdout.splitlines() if line.startswith("## ")]
    assert len(headings) == len(PARTS)
    cells = [row for row in cells_of(done.stdout) if set("".join(row)) != {"-"}]
    head = ["what", "figure", "ratio", "last", "target", "met"]
    assert cells.count(head) == len(PARTS)
    rows = [row for row in cells if row != head]
    for what, figure, _, last, target, met in rows:
        assert what
        assert figure
        assert not last
        assert met in (("yes", "**no**", "") if target else ("",))
    listed = " ".join(row[0] for row in rows)
    groups = "SAQM round", "greedy peeling", "levels maximum", "Science", "in bulk", "--help"
    designs = "xy_optimal" if find_spec("cvxpy") else "cvxpy"  # which only `make bench` installs
    for group in (*groups, "growth", "Gurobi", designs, "any method", "simulate: design"):
        assert group in listed


def test_a_solver_that_is_not_there_is_said_in_a_line(tmp_path: Path) -> None:
    for name in SOLVERS:
        text = f"raise ModuleNotFoundError('No module named {name}', name={name!r})"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = bench("--only", "solvers", "designs", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for name in SOLVERS:
        assert f"{name} is not there (No module named {name}); `make bench` installs it" in (
            done.stdout
        )
    assert "exact proved" in done.stdout


def test_what_is_kept_is_what_is_compared_and_losses_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "last.json"
    assert read(path) == {}
    assert "no ratios to compare with" in capsys.readouterr().err
    before = [Row("a", "1 s", ratios=(10.0, 2.0)), Row("b", "1 s", ratios=(3.0,)), Row("c", "1 s")]
    keep(path, before, complete=True)
    last = read(path)
    assert last == {"a": (10.0, 2.0), "b": (3.0,)}

    now = [Row("a", "2 s", ratios=(10.0, 1.61)), Row("b", "2 s", ratios=(2.39,), note="at n=8")]
    page = table(sys.modules[__name__], [*now, Row("c", "2 s")], last)
    shown = {row[0]: row[2:4] for row in cells_of(page)[2:]}
    assert shown == {
        "a": ["10 x, 1.61 x", "10 x, 2 x"],  # 19.5 % less
        "b": ["2.39 x at n=8", "3 x **lost**"],  # 20.3 % less
        "c": ["", ""],
    }
    assert page.startswith("## The benchmarks still run: all of their code once")

    keep(path, now[:1])
    assert read(path) == {"a": (10.0, 1.61), "b": (3.0,)}
    keep(path, now[:1], complete=True)
    assert read(path) == {"a": (10.0, 1.61)}


def test_the_ratios_in_the_repository_can_be_read() -> None:
    last = json.loads(LAST.read_text(encoding="utf-8"))
    assert len(last) > 30
    assert all(ratio > 0 for ratios in last.values() for ratio in ratios)


def test_figures_of_no_worth_are_not_kept() -> None:
    done = bench("--keep")
    assert done.returncode == 2
    assert "leave out --keep" in done.stderr
