"""Benchmarks: figures, targets, and how many times better than something else in the same run.

Prints one Markdown page on stdout and writes it to build/bench.md; progress goes to stderr. A
figure is the least over repeats (all in turns), which other work on the machine disturbs least.

A part is a file beside this one, named in PARTS: its docstring's first line is a heading, and its
`rows(options)` are a table. benchmarks/last.json has the ratios that were last kept (`--keep`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from common import HEADER, LOSS, Options, Ratios, Row, one_thread, tell

PARTS = (
    "rounds",
    "peeling",
    "quadratic",
    "solvers",
    "certified",
    "designs",
    "rivals",
    "bulk",
    "startup",
    "growth",
    "scale",
    "store",
    "server",
)
RESULT = Path(__file__).resolve().parents[1] / "build" / "bench.md"
LAST = Path(__file__).resolve().parent / "last.json"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument(
        "--limit", type=float, default=10.0, help="seconds for each solve by others (default 10)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="run all code in a moment, for figures of no worth"
    )
    parser.add_argument(
        "--keep", action="store_true", help="later runs are compared with this one's ratios"
    )
    parser.add_argument("--last", type=Path, default=LAST, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help="where the page goes (default build/bench.md)")
    chosen = parser.parse_args()
    if chosen.quick and chosen.keep:
        parser.error("figures of --quick are of no worth: leave out --keep")
    if not chosen.limit > 0:
        parser.error(f"--limit must be above 0, not {chosen.limit:g}")
    one_thread()
    options = Options(chosen.quick, chosen.limit)
    last = {} if chosen.quick else read(chosen.last)
    tables, every = [], []
    for part in chosen.only:
        module = import_module(part)
        rows = list(module.rows(options))
        tables.append(table(module, rows, last))
        print(tables[-1], end="\n\n", flush=True)
        every += rows
        if chosen.keep:  # so far: a long run may end early
            keep(chosen.last, rows)
    page = "\n\n".join([*tables, under()])
    print(under())
    output = chosen.output
    if output is None and not chosen.quick and len(tables) == len(PARTS):
        output = RESULT
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(f"{page}\n", encoding="utf-8")
        tell(f"written to {os.path.relpath(output)}")
    for row in every:
        if row.lost(last.get(row.what, ())):
            tell(f"more than {LOSS:.0%} lost: {row.what}")
    if chosen.keep and len(tables) == len(PARTS):
        keep(chosen.last, every, complete=True)


def table(module: ModuleType, rows: Iterable[Row], last: Mapping[str, Ratios]) -> str:
    """The heading of a part, and a table."""
    cells = [HEADER, *(row.cells(last.get(row.what, ())) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADER))]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join([f"## {(module.__doc__ or '').splitlines()[0].rstrip('.')}", "", *lines])


def read(path: Path) -> dict[str, Ratios]:
    """Return the ratios last kept, by what they are of; none where there is no file."""
    if not path.exists():
        tell(f"no ratios to compare with: there is no {os.path.relpath(path)} (see --keep)")
        return {}
    return {what: tuple(ratios) for what, ratios in json.loads(path.read_text()).items()}


def keep(path: Path, rows: Iterable[Row], complete: bool = False) -> None:
    """Write the ratios for later runs; others stay, unless these are complete."""
    ratios = {} if complete or not path.exists() else read(path)
    new = {row.what: tuple(float(f"{r:.3g}") for r in row.ratios) for row in rows if row.ratios}
    lines = [f"  {json.dumps(what)}: {json.dumps(r)}" for what, r in {**ratios, **new}.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    tell(f"ratios kept in {os.path.relpath(path)}")


def under() -> str:
    on = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return (
        f"Python {platform.python_version()}, {on}, {os.cpu_count()} cores ({platform.machine()}). "
        "Figures are the least over repeats, in seconds of one processor, except for commands and "
        "whole runs. A ratio above 1 is in our favour; beside it stands the one that was last "
        f"kept, and a loss of more than {LOSS:.0%} is marked."
    )


if __name__ == "__main__":
    main()
