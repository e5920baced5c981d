"""Benchmarks: figures, targets, and how many times faster than `superarm.reference`.

Prints one Markdown table on stdout and writes it to build/bench.md; progress goes to stderr. A
figure is the least over repeats (all in turns), which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from common import HEADER, Row, one_thread, tell

GROUPS = ("rounds", "peeling", "quadratic", "certified", "bulk", "startup", "growth")
RESULT = Path(__file__).resolve().parents[1] / "build" / "bench.md"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("groups", nargs="*", help=f"some of {', '.join(GROUPS)}; none: all")
    parser.add_argument(
        "--quick", action="store_true", help="run all code in a moment, for figures of no worth"
    )
    parser.add_argument("--output", type=Path, help="where the table goes (default build/bench.md)")
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    one_thread()
    modules = [import_module(name) for name in options.groups or GROUPS]
    table = markdown(row for module in modules for row in module.rows(options.quick))
    print(table)
    output = options.output
    if output is None and not options.quick and not options.groups:
        output = RESULT
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(f"{table}\n", encoding="utf-8")
        tell(f"written to {os.path.relpath(output)}")


def markdown(rows: Iterable[Row]) -> str:
    """One table, and under it on what it was made."""
    cells = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADER))]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join([*lines, "", under()])


def under() -> str:
    on = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return (
        f"Python {platform.python_version()}, {on}, {os.cpu_count()} cores ({platform.machine()}). "
        "Figures are the least over repeats. BLAS has one thread, except in what runs as a command."
    )


if __name__ == "__main__":
    main()
