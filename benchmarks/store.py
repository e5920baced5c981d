"""Campaigns in a store, against plain transactions of the same database.

One pair is a pull asked and its total told. The plain side inserts a row and deletes it again, each
in a transaction of its own, as durable as ours: what the database alone takes for a pair.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import Options, Row, seconds, tell

import superarm as sa

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import servers

PROCESSES = 32
NAME = "bench"


def rows(options: Options) -> Iterator[Row]:
    for kind, target in (("SQLite", 1_000), ("PostgreSQL", 1_200)):
        with store_of(kind) as where:
            tell(f"store: {kind}")
            yield from pairs(kind, where, target, options.quick)
        with store_of(kind) as where:
            yield from million(kind, where, options.quick)


@contextmanager
def store_of(kind: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "SQLite":
            yield str(Path(folder) / "store.db")
        else:
            with servers.postgresql_server() as server, servers.fresh_database(server) as url:
                yield url


def pairs(kind: str, where: str, target: int, quick: bool) -> Iterator[Row]:
    processes, each = (2, 5) if quick else (PROCESSES, 200)
    with sa.Store.open(where) as store:
        problem = sa.Problem(100, 10, sa.gaussian(100.0), epsilon=0.01)
        sa.Campaign.create(NAME, problem, store=store, rng=0)
        with store.write() as connection:
            connection.exec_driver_sql("CREATE TABLE plain (id TEXT PRIMARY KEY, total FLOAT)")
    plain = together(kind, where, plain_pairs, processes, each)[0]
    rate, worst = together(kind, where, our_pairs, processes, each)
    with sa.Store.open(where) as store:
        found = sa.Campaign.open(NAME, store=store)
        told, out = found.status().told, len(found.open_pulls())
    whole = told == processes * each and out == 0
    yield Row(
        f"{kind}: {processes} processes ask and tell, {processes * each:,} pairs",
        f"{rate:,.0f} pairs/s; longest wait {seconds(worst)}; "
        f"{'none lost, none doubled' if whole else 'WRONG'}",
        f">= {target:,} pairs/s, <= 5 s",
        (rate / plain,),
        f"of {plain:,.0f} plain pairs/s",
        rate >= target and worst <= 5 and whole,
    )


Pair = Callable[[], None]


def together(
    kind: str, where: str, make: Callable[[str, str], Pair], processes: int, each: int
) -> tuple[float, float]:
    """Return pairs a second of so many processes at once, and the longest that one took."""
    context = multiprocessing.get_context("spawn")
    ready, go, found = context.Barrier(processes + 1), context.Event(), context.Queue()
    running = [
        context.Process(target=run, args=(kind, where, make, each, ready, go, found))
        for _ in range(processes)
    ]
    for process in running:
        process.start()
    ready.wait(timeout=300)
    began = time.perf_counter()
    go.set()
    waits = [found.get(timeout=300) for _ in running]
    taken = time.perf_counter() - began
    for process in running:
        process.join()
    return processes * each / taken, max(waits)


def run(kind, where, make, each, ready, go, found) -> None:  # type: ignore[no-untyped-def]
    pair = make(kind, where)
    ready.wait()
    go.wait()
    longest = 0.0
    for _ in range(each):
        began = time.perf_counter()
        pair()
        longest = max(longest, time.perf_counter() - began)
    found.put(longest)


def our_pairs(kind: str, where: str) -> Pair:
    campaign = sa.Campaign.open(NAME, store=where)
    campaign.give_back([pull.id for pull in campaign.ask()])  # all is loaded and prepared

    def pair() -> None:
        campaign.tell(campaign.ask()[0].id, 1.0)

    return pair


def plain_pairs(kind: str, where: str) -> Pair:
    """Return what inserts and deletes a row."""
    if kind == "SQLite":
        raw = sqlite3.connect(where, isolation_level=None, timeout=60)
        raw.execute("PRAGMA synchronous=FULL")
        begin, mark = "BEGIN IMMEDIATE", "?"
    else:
        import psycopg

        raw = psycopg.connect(where, autocommit=True)
        begin, mark = "BEGIN", "%s"
    count = iter(range(10**9))
    mine = f"{time.time_ns()}"

    def pair() -> None:
        id = f"{mine}-{next(count)}"
        for sql, values in (
            (f"INSERT INTO plain VALUES ({mark}, {mark})", (id, 1.0)),
            (f"DELETE FROM plain WHERE id = {mark}", (id,)),
        ):
            raw.execute(begin)
            raw.execute(sql, values)
            raw.execute("COMMIT")

    return pair


def million(kind: str, where: str, quick: bool) -> Iterator[Row]:
    """A campaign of many totals: taking them in, opening, status, asking."""
    from superarm.campaign.sheets import read_sheet

    count = 2_000 if quick else 1_000_000
    problem = sa.Problem(1_000, 10, sa.gaussian(1.0), epsilon=0.001)
    totals = np.random.default_rng(0).normal(5, 1, count).tolist()
    with sa.Store.open(where) as store, tempfile.TemporaryDirectory() as folder:
        campaign = sa.Campaign.create(NAME, problem, store=store, rng=0)
        asked = campaign.ask(count)
        path = Path(folder) / "results.csv"
        with path.open("w", encoding="utf-8") as file:
            file.write("id,total\n")
            file.writelines(
                f"{pull.id},{total!r}\n" for pull, total in zip(asked, totals, strict=True)
            )
        del asked

        def take_in() -> None:
            sheet = read_sheet(path)
            campaign.tell_many(zip(sheet.ids, sheet.totals, strict=True))

        took = clock(take_in)
        what = f"{kind}: {count:,} totals from a CSV, looks taken"
        yield Row(what, seconds(took), "<= 30 s", met=took <= 30)
        took = least(lambda: sa.Campaign.open(NAME, store=store))
        yield Row(f"{kind}: open that campaign", seconds(took), "<= 500 ms", met=took <= 0.5)
        again = sa.Campaign.open(NAME, store=store)
        took = clock(again.status)
        yield Row(f"{kind}: its status", seconds(took), "<= 200 ms", met=took <= 0.2)
        took = least(lambda: again.ask(1_000))
        yield Row(f"{kind}: ask 1,000 pulls", seconds(took), "<= 150 ms", met=took <= 0.15)


def clock(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def least(call: Callable[[], object]) -> float:
    return min(clock(call) for _ in range(3))
