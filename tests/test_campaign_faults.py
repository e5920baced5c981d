"""Processes that are killed, disks that are full, files that are damaged: nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import servers
from campaign_worker import acknowledged

import superarm as sa
from superarm.campaign import looks, migrate, standing
from superarm.tally import Tally

WORKER = Path(__file__).with_name("campaign_worker.py")
PROBLEM = sa.Problem(12, 4, sa.gaussian(1.0), epsilon=0.05)


def begin(where, name="c"):
    """Make a campaign that will not be over soon."""
    with sa.Store.open(where) as store:
        sa.Campaign.create(name, PROBLEM, store=store, rng=3)


def start(where, log, seed, seconds, kinds, name="c"):
    command = [sys.executable, str(WORKER), str(where), name, str(log), str(seed), str(seconds)]
    return subprocess.Popen([*command, kinds], stderr=subprocess.PIPE, text=True)


def wait_until_ready(logs, patience=60.0, sign="ready"):
    end = time.monotonic() + patience
    while not all(log.exists() and sign in log.read_text() for log in logs):
        assert time.monotonic() < end, "the workers did not start"
        time.sleep(0.02)


def examine(where, logs, name="c"):
    """Everything acknowledged is there, nothing twice, no half batch; the tally is the fold."""
    with sa.Store.open(where) as store:
        campaign = sa.Campaign.open(name, store=store)
        found = {result.id: result for result in campaign.history()}
        still = {pull.id for pull in campaign.open_pulls()}
        assert not still & set(found)
        batches_are_whole(found, logs)
        told = 0
        for log in logs:
            for kind, what in acknowledged(log):
                if kind == "tell":
                    told += len(what)
                    for id, total in what:
                        assert found[id].first_total == total
        changes = campaign.changes()
        said = [(change.kind, change.id) for change in changes]
        for log in logs:
            for kind, what in acknowledged(log):
                if kind in ("amend", "void"):
                    assert (kind, what[0] if kind == "amend" else what) in said
        verdict = campaign.verdict
        fold(store, campaign)
        check = getattr(store, "check", None)
        assert check is None or check() == []
        return told, verdict


def fold(store, campaign):
    """Check that the tally that is kept is the fold of the history."""
    with store.read() as connection:
        where = standing.standing(connection, campaign._id)
        if where.look:
            phase = campaign._course.phase(connection, where)
            totals = looks.totals_from(connection, where, 0)
            assert len(totals) >= where.pulls
            tally = Tally(phase.plan.size)
            tally.add(phase.plan.order(0, where.pulls), totals[: where.pulls])
            assert tally == looks.stored_tally(connection, where.id, where.serial)


def batches_are_whole(found, logs):
    """Batches are in whole or not at all, acknowledged or not."""
    for log in logs:
        for kind, ids in acknowledged(log):
            if kind == "batch":
                assert len({id in found for id in ids}) <= 1, f"half of the batch {ids}"


def kill_rounds(where, folder, rounds, seed, workers=2, kinds="tttbbav"):
    """Kill workers with SIGKILL at random moments, over and over; return how much was told."""
    begin(where)
    chance = random.Random(seed)
    logs = []
    for turn in range(rounds):
        mine = [folder / f"{turn}-{i}.log" for i in range(workers)]
        running = [start(where, log, 100 * turn + i, 60, kinds) for i, log in enumerate(mine)]
        logs += mine
        wait_until_ready(mine)
        if turn == 0:  # on a busy machine all rounds might end before anything was told
            wait_until_ready(mine, sign="tell")
        time.sleep(chance.uniform(0.0, 0.4))
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
        examine(where, logs)
    return examine(where, logs)[0]


def test_killed_at_any_moment(tmp_path):
    assert kill_rounds(tmp_path / "store.db", tmp_path, rounds=3, seed=1) > 0


def test_killed_at_any_moment_on_postgresql(tmp_path, postgresql_url):
    assert kill_rounds(postgresql_url, tmp_path, rounds=2, seed=2) > 0


def together(where, folder, processes, seconds):
    """Let many measure at once; return totals a second, after checking that none is lost."""
    begin(where)
    logs = [folder / f"{i}.log" for i in range(processes)]
    running = [start(where, log, i, seconds, "t") for i, log in enumerate(logs)]
    for process in running:
        error = process.communicate(timeout=300)[1]
        assert process.returncode == 0, error
    told, _ = examine(where, logs)
    with sa.Store.open(where) as store:
        assert sa.Campaign.open("c", store=store).status().told == told, "none doubled"
    return told


def test_many_at_once(tmp_path):
    assert together(tmp_path / "store.db", tmp_path, processes=4, seconds=1.0) > 0


def test_many_at_once_on_postgresql(tmp_path, postgresql_url):
    assert together(postgresql_url, tmp_path, processes=4, seconds=1.0) > 0


def measured(where, pulls=300):
    begin(where)
    store = sa.Store.open(where)
    campaign = sa.Campaign.open("c", store=store)
    rng = np.random.default_rng(0)
    asked = campaign.ask(pulls)
    campaign.tell_many([(pull.id, float(rng.normal(3, 1))) for pull in asked])
    return store, campaign


def read_all(path):
    with sa.Store.open(path) as opened:
        return sa.Campaign.open("c", store=opened).history()


def test_a_damaged_file_is_named_as_such(tmp_path):
    path = tmp_path / "store.db"
    store, campaign = measured(path, 3_000)
    assert campaign.verdict.look > 0
    store.close()
    whole = path.read_bytes()
    for size in (0.3, 0.6, 0.9):
        for extra in tmp_path.glob("store.db-*"):
            extra.unlink()
        path.write_bytes(whole[: int(len(whole) * size)])
        with pytest.raises(sa.StoreError, match=r"damaged|no store"):
            read_all(path)
    path.write_bytes(b"This is a letter, and no store at all." * 100)
    with pytest.raises(sa.StoreError, match="no store"):
        sa.Store.open(path)


def test_a_store_of_a_newer_version_is_left_alone(tmp_path):
    path = tmp_path / "store.db"
    measured(path)[0].close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE superarm_version SET version_num = '9999'")
    raw.close()
    with pytest.raises(sa.StoreError, match="newer superarm"):
        sa.Store.open(path)


def test_an_older_store_is_copied_and_brought_up_to_date(tmp_path):
    path = tmp_path / "store.db"
    store = sa.Store._connected(str(path), create=True)
    with store.write() as connection:
        migrate.upgrade(connection, "0001")
        assert migrate.version(connection) == "0001"
    store.close()
    before = path.read_bytes()
    with sa.Store.open(path) as opened, opened.read() as connection:
        assert migrate.version(connection) == migrate.HEAD != "0001"
    kept = tmp_path / f"store.db.before-{migrate.HEAD}-from-0001"
    assert kept.exists()
    with sqlite3.connect(kept) as raw:
        assert raw.execute("SELECT version_num FROM superarm_version").fetchone() == ("0001",)
    raw.close()
    assert len(kept.read_bytes()) <= len(before) + 4096
    begin(path)
    sa.Store.open(path).close()
    assert len(list(tmp_path.glob("store.db.before-*"))) == 1, "copied once"


def test_another_programs_file_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE campaign (x INTEGER)")
    raw.close()
    with pytest.raises(sa.StoreError, match="did not make"):
        sa.Store.open(path)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1.5 MB, where this user may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    if not shutil.which("mount") or os.geteuid() != 0:
        pytest.skip("a small disk can be mounted by root only")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_takes_nothing_half(small_disk):
    path = small_disk / "store.db"
    store, campaign = measured(path, 200)
    told = campaign.status().told
    rng = np.random.default_rng(1)

    def fill():
        for _ in range(200):
            asked = campaign.ask(500)
            campaign.tell_many([(pull.id, float(rng.normal(3, 1))) for pull in asked])
            acknowledged_totals.append(len(asked))

    acknowledged_totals = [told]
    with pytest.raises(sa.StoreError, match="disk"):
        fill()
    store.close()
    told = sum(acknowledged_totals)
    with sa.Store.open(path) as again:
        campaign = sa.Campaign.open("c", store=again)
        assert len(campaign.history()) == told, "what is there can be read"
        fold(again, campaign)
        room = ["mount", "-o", "remount,size=16m", str(small_disk)]
        subprocess.run(room, check=True)
        assert campaign.status().told == told
        fold(again, campaign)
        pull = campaign.ask()[0]
        campaign.tell(pull.id, 1.0)
        assert campaign.status().told == told + 1


def test_a_file_that_may_only_be_read(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    path = tmp_path / "store.db"
    measured(path)[0].close()
    path.chmod(0o400)
    with pytest.raises(sa.StoreError, match=r"permission|read"):
        sa.Campaign.open("c", store=path).ask()


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(sa.StoreError, match="there is no store"):
        sa.Campaign.open("c", store=tmp_path / "none.db")
    with pytest.raises(sa.SettingError, match="no store"):
        sa.Store.open("mysql://root:secret@here/db")
    with pytest.raises(sa.StoreError) as caught:
        sa.Store.open("postgresql://someone:secret@127.0.0.1:1/none?connect_timeout=2")
    assert "secret" not in str(caught.value)
    assert "reached" in str(caught.value)


def test_a_server_that_restarts_loses_nothing(tmp_path):
    with servers.postgresql_server() as server, servers.fresh_database(server) as where:
        begin(where)
        store = sa.Store.open(where)
        campaign = sa.Campaign.open("c", store=store)
        told = 0
        for _ in range(3):
            for pull in campaign.ask(5):
                campaign.tell(pull.id, 1.0)
                told += 1
            servers.restart(server)
        assert campaign.status().told == told
        for pull in campaign.ask(5):  # the connection that was lost is made anew
            campaign.tell(pull.id, 1.0)
        assert campaign.status().told == told + 5
        store.close()
