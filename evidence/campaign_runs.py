"""Campaigns under faults.

Workers ask, tell (one by one and in batches), amend and void, and are killed by SIGKILL at random
moments, over and over. After each kill everything that was acknowledged must be in the store, no
batch by half, no result twice, and the tally equal to the fold of the history. Then 32 processes at
once, a server that is restarted under them, and the state machine of tests/test_campaign_machine.py
on many more examples.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import servers
import test_campaign_faults as faults
import test_campaign_machine as machine

TITLE = "Campaigns"
HEADER = ("store", "what was done", "runs", "what was found")

Claim = tuple[tuple[str, ...], bool]
ROUNDS = 100


def jobs() -> Iterator[tuple[str, Callable[[], Claim]]]:
    for kind in ("SQLite", "PostgreSQL"):
        yield f"{kind}: killed over and over", partial(killed, kind)
        yield f"{kind}: 32 at once", partial(together, kind)
    yield "PostgreSQL restarted", restarted
    for kind in (machine.Machine, machine.Phased):
        yield f"state machine: {kind.RULE.name}", partial(walked, kind)


def killed(kind: str) -> Claim:
    """Kill two workers a round."""

    def rounds(where: str, folder: Path) -> str:
        told = faults.kill_rounds(where, folder, rounds=ROUNDS, seed=11)
        return f"{told:,} acknowledged totals, all there"

    return claim(kind, "two workers killed at random moments", f"{ROUNDS} rounds", rounds)


def together(kind: str) -> Claim:
    """Let 32 processes ask and tell for a while."""

    def run(where: str, folder: Path) -> str:
        told = faults.together(where, folder, processes=32, seconds=10.0)
        return f"{told:,} totals, none lost, none doubled, no error"

    return claim(kind, "32 processes ask and tell", "1", run)


def restarted() -> Claim:
    """Restart the server under four processes that ask and tell."""
    row = ("PostgreSQL", "the server restarted under four processes", "3 restarts")
    try:
        with servers.postgresql_server() as server, servers.fresh_database(server) as where:
            faults.begin(where)
            with tempfile.TemporaryDirectory() as folder:
                told = restart_under(server, where, Path(folder))
        return (*row, f"{told:,} acknowledged totals, all there"), True
    except AssertionError as error:
        return (*row, str(error)[-300:]), False


def restart_under(server, where: str, folder: Path) -> int:
    """Return how many totals were acknowledged; a worker may end with a clear error, no other."""
    logs = []
    for turn in range(3):
        mine = [folder / f"{turn}-{i}.log" for i in range(4)]
        running = [faults.start(where, log, 10 * turn + i, 4.0, "t") for i, log in enumerate(mine)]
        logs += mine
        faults.wait_until_ready(mine)
        time.sleep(0.5)
        servers.restart(server)
        for process in running:
            error = process.communicate(timeout=120)[1]
            assert process.returncode == 0 or "StoreError" in error, error
        told, _ = faults.examine(where, logs)
    return told


def walked(kind) -> Claim:
    """Run the state machine on many examples."""
    from hypothesis import settings
    from hypothesis.stateful import run_state_machine_as_test

    long = settings(machine.SHORT, max_examples=400, stateful_step_count=50, database=None)
    row = ("memory", f"anything in any order, {kind.RULE.name}", "400 examples")
    try:
        run_state_machine_as_test(kind, settings=long)
    except AssertionError as error:
        return (*row, str(error)[-300:]), False
    return (*row, "as the dictionary, and the verdict as one at a time"), True


def claim(kind: str, what: str, runs: str, run: Callable[[str, Path], str]) -> Claim:
    """Return the row of a run on a store of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            if kind == "SQLite":
                found = run(str(folder / "store.db"), folder)
            else:
                with servers.postgresql_server() as server, servers.fresh_database(server) as url:
                    found = run(url, folder)
        except AssertionError as error:
            return (kind, what, runs, str(error)[-300:]), False
        return (kind, what, runs, found), True
