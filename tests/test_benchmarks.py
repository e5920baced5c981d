"""The benchmarks still run: all of their code once, for figures of no worth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_benchmark_runs_and_makes_one_row_of_a_table(tmp_path: Path) -> None:
    output = tmp_path / "bench.md"
    command = [sys.executable, "benchmarks/run.py", "--quick", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "bench: greedy peeling" in done.stderr
    assert output.read_text(encoding="utf-8") == done.stdout

    head, rule, *rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in (head, *rows)]
    assert cells[0] == ["what", "figure", "target", "ratio to reference", "met"]
    assert set(rule) == set("| -")
    for what, figure, target, _, met in cells[1:]:
        assert what
        assert figure
        assert met in (("yes", "**no**") if target else ("",))
    listed = " ".join(row[0] for row in cells[1:])
    groups = "SAQM round", "greedy peeling", "levels maximum", "Science", "in bulk", "--help"
    for group in (*groups, "growth"):
        assert group in listed
