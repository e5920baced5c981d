"""`make evidence`: the long runs behind the claims, summed up on one page (build/evidence.md)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "evidence")]

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: every core has a process

import adaptive_runs  # noqa: E402
import campaign_runs  # noqa: E402
import certified_runs  # noqa: E402
import fewer_runs  # noqa: E402
import guarantee_runs  # noqa: E402
import law_runs  # noqa: E402
import quadratic_runs  # noqa: E402
import server_runs  # noqa: E402
import sigma_runs  # noqa: E402
import table2_runs  # noqa: E402

PARTS = (
    guarantee_runs,
    certified_runs,
    fewer_runs,
    adaptive_runs,
    law_runs,
    quadratic_runs,
    table2_runs,
    sigma_runs,
    campaign_runs,
    server_runs,
)


def main() -> int:
    """Run every part's jobs on two processes; write and print the page; 1 if a claim fails."""
    started = time.perf_counter()
    jobs = [(part, name, job) for part in PARTS for name, job in part.jobs()]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_timed, job) for _, _, job in jobs]
        rows = []
        for (part, name, _), future in zip(jobs, futures, strict=True):
            (row, holds), seconds = future.result()
            rows.append((part, row, holds))
            print(f"{name}: {'holds' if holds else 'FAILS'} ({seconds:.0f} s)", file=sys.stderr)
    page = _page(rows, time.perf_counter() - started)
    out = ROOT / "build" / "evidence.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(page, encoding="utf-8")
    print(page)
    return 0 if all(holds for _, _, holds in rows) else 1


def _timed(job: Callable[[], tuple[tuple[str, ...], bool]]):
    started = time.perf_counter()
    return job(), time.perf_counter() - started


def _page(rows, seconds: float) -> str:
    lines = ["# Evidence", ""]
    for part in PARTS:
        mine = [(row, holds) for owner, row, holds in rows if owner is part]
        header = (*part.HEADER, "claim")
        lines += [f"## {part.TITLE}", "", part.__doc__.split("\n\n", 1)[1].strip(), ""]
        lines += ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
        lines += [
            "| " + " | ".join((*row, "holds" if holds else "**FAILS**")) + " |"
            for row, holds in mine
        ]
        lines.append("")
    failed = sum(not holds for _, _, holds in rows)
    lines.append(f"{len(rows) - failed} claims hold, {failed} fail; {seconds / 60:.1f} minutes.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
