"""Many at once: totals that share a transaction, live news, and a server that is killed."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from web import API, CREW, Running, kill_rounds, measured, process, running

import superarm as sa
from superarm.campaign import Campaign
from superarm.server.desk import Desk
from superarm.server.metrics import Metrics
from superarm.server.together import LATER, Asked, Asking, Telling, serve


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def crew(where: str) -> Iterator[Campaign]:
    with sa.Store.open(where) as store:
        problem = sa.Problem(6, 2, sa.labels(), epsilon=0.5)
        yield Campaign.create("crew", problem, store=store, rng=1)


# ---- one transaction, many answers ---------------------------------------------------------------


def ids(answers: list[Any]) -> list[list[str]]:
    return [[pull.id for pull in answer.pulls] for answer in answers]


def test_what_is_refused_keeps_nobody_else_out(crew: Campaign) -> None:
    pulls = crew.ask(4)
    crew.tell(pulls[3].id, 1)
    sent = [
        Telling(pulls[0].id, 1.0, "Ann"),
        Telling(pulls[0].id, 1.0, "Bo"),  # the same again
        Telling(pulls[0].id, 2.0),  # another
        Telling(pulls[1].id, 7.0),  # cannot be
        Telling("p1-999", 1.0),
        Telling("rubbish", 1.0),
        Telling(pulls[2].id, 0.0, "Cy", "east"),
        Telling(pulls[3].id, 1.0),
        Telling(pulls[3].id, 2.0),
    ]
    answers, _, due = serve(crew, sent, [])
    shown = [one if isinstance(one, bool) else type(one).__name__ for one in answers]
    assert shown == [
        True,
        False,
        "ConflictError",
        "TotalError",
        "PullError",
        "PullError",
        True,
        False,
        "ConflictError",
    ]
    assert not due
    told = {row.id: (row.total, row.worker, row.site) for row in crew.history()}
    assert told[pulls[0].id] == (1.0, "Ann", "")
    assert told[pulls[2].id] == (0.0, "Cy", "east")
    assert len(told) == 3
    status = crew.status()
    assert (status.told, status.open) == (3, 1)


def test_together_and_one_by_one_leave_the_same(tmp_path: Path) -> None:
    problem = sa.Problem(6, 2, sa.labels(), epsilon=0.02)
    kept = []
    for name in ("alone", "together"):
        with sa.Store.open(tmp_path / f"{name}.db") as store:
            crew = Campaign.create("crew", problem, store=store, rng=1)
            while crew.verdict.look < 3:
                assert not crew.verdict.done
                if name == "alone":
                    pulls = [pull for i in range(7) for pull in crew.ask(1, worker=f"w{i}")]
                    for pull in pulls:
                        crew.tell(pull.id, float(len({"1", "2"} & set(pull.members))))
                    continue
                asked: list[Any] = [LATER] * 7
                while LATER in asked:
                    _, asked, due = serve(crew, [], [Asking(1, f"w{i}") for i in range(7)])
                    if due:
                        crew.status()
                pulls = [pull for one in asked for pull in one.pulls]
                told = [
                    Telling(pull.id, float(len({"1", "2"} & set(pull.members)))) for pull in pulls
                ]
                serve(crew, told, [])
            where = crew.status()
            rows = [(row.id, row.members, row.total) for row in crew.history()]
            looks = [(look.number, look.pulls, look.gap, look.radius) for look in crew.looks()]
            kept.append((rows[: where.verdict.pulls], looks, str(where.verdict)))
    assert kept[0] == kept[1]


def test_everybody_gets_other_pulls(crew: Campaign) -> None:
    askings = [Asking(2, "Ann"), Asking(1), Asking(3, "Bo"), Asking(1)]
    _, answers, _ = serve(crew, [], askings)
    handed = ids(answers)
    assert [len(some) for some in handed] == [2, 1, 3, 1]
    assert len({id for some in handed for id in some}) == 7
    _, again, _ = serve(crew, [], [Asking(3, "Bo"), Asking(3, "Ann")])
    assert ids(again)[0] == handed[2]
    assert ids(again)[1][:2] == handed[0]
    assert len({id for some in ids(again) for id in some} - {id for s in handed for id in s}) == 1


def test_who_asks_twice_in_one_go_waits_for_the_first(crew: Campaign) -> None:
    _, answers, due = serve(crew, [], [Asking(1, "Ann"), Asking(1, "Ann"), Asking(0)])
    assert len(answers[0].pulls) == 1  # type: ignore[union-attr]
    assert answers[1] is LATER
    assert isinstance(answers[2], sa.SettingError)
    assert not due


def test_what_waits_goes_out_first(crew: Campaign) -> None:
    first = crew.ask(3, worker="Ann")
    crew.give_back([first[1].id])
    _, answers, _ = serve(crew, [], [Asking(1, "Bo"), Asking(1, "Cy")])
    assert ids(answers)[0] == [first[1].id]
    assert ids(answers)[1] != ids(answers)[0]


def test_at_the_end_of_a_phase_and_after_the_last_look(tmp_path: Path) -> None:
    with sa.Store.open(":memory:") as store:
        problem = sa.Problem(4, 2, sa.labels(), epsilon=0.5)
        rule = sa.Certified(budget=8)
        crew = Campaign.create("crew", problem, rule, store=store, rng=1)
        _, answers, _ = serve(crew, [], [Asking(6, "Ann"), Asking(6, "Bo"), Asking(1)])
        assert [len(some) for some in ids(answers)] == [6, 2, 0]
        assert "look waits" in answers[2].waiting  # type: ignore[union-attr]
        told = [Telling(id, 1.0) for some in ids(answers) for id in some]
        _, _, due = serve(crew, told, [])
        assert due
        _, later, due = serve(crew, [], [Asking(1)])
        assert due
        assert later == [LATER]
        assert crew.verdict.done
        _, over, _ = serve(crew, [], [Asking(1)])
        assert "no more are needed" in over[0].waiting  # type: ignore[union-attr]


def test_the_desk_lets_nobody_wait_for_ever(crew: Campaign) -> None:
    """Concurrent askings by one worker, and looks that fall due, all get their answers."""

    async def work() -> int:
        desk = Desk(crew.store, 0.001, Metrics())
        told = 0
        try:
            for _ in range(40):
                asks = [desk.ask("crew", Asking(1, f"w{i % 3}")) for i in range(9)]
                found: list[Asked] = await asyncio.wait_for(asyncio.gather(*asks), 60)
                pulls = {pull.id for one in found for pull in one.pulls}
                assert len(pulls) == 3
                tells = [desk.tell("crew", Telling(id, 1.0)) for id in pulls]
                assert all(await asyncio.wait_for(asyncio.gather(*tells), 60))
                told += len(pulls)
        finally:
            desk.close()
        return told

    assert asyncio.run(work()) == 120
    assert crew.status().told == 120


STEPS = 25


def over_http(server: Running, i: int) -> dict[str, float]:
    """Measure as a worker with a connection; tell each total twice."""
    mine = {}
    with server.http() as http:
        for step in range(STEPS):
            asked = http.post("/campaigns/crew/ask", json={"worker": f"w{i}"})
            assert asked.status_code == 200, asked.text
            for pull in asked.json()["pulls"]:
                sent = {"id": pull["id"], "total": step % 3, "worker": f"w{i}"}
                for _ in range(2):
                    answer = http.post("/campaigns/crew/tell", json=sent)
                    assert answer.status_code == 200, answer.text
                mine[pull["id"]] = float(step % 3)
    return mine


def beside_it(where: str, i: int) -> dict[str, float]:
    """Measure with the same store, past the server."""
    mine = {}
    with sa.Store.open(where) as store:
        crew = Campaign.open("crew", store=store)
        for step in range(STEPS):
            for pull in crew.ask(1, worker=f"w{i}"):
                crew.tell(pull.id, step % 3, worker=f"w{i}")
                mine[pull.id] = float(step % 3)
    return mine


def test_under_concurrency_nothing_is_lost_or_doubled(where: str) -> None:
    with sa.Store.open(where) as store, running(store) as server:
        with server.http() as http:
            http.post("/campaigns", json={**CREW, "epsilon": 0.01}).raise_for_status()
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(over_http, server, i) for i in range(6)]
            jobs += [pool.submit(beside_it, where, i) for i in (6, 7)]
            found = [job.result() for job in jobs]
        sent = {id: total for mine in found for id, total in mine.items()}
        assert len(sent) == sum(map(len, found)) == STEPS * 8  # no pull was given to two
        crew = Campaign.open("crew", store=store)
        assert {row.id: row.total for row in crew.history()} == sent
        assert crew.status().told == len(sent)
        assert store.check() == []
        text = httpx.get(f"{server.url}/metrics").text
        count, total = (
            float(re.findall(rf"superarm_commit_requests_{word} (\S+)", text)[0])
            for word in ("count", "sum")
        )
        assert total > 1.1 * count  # they did share transactions


# ---- live ----------------------------------------------------------------------------------------


class Listener:
    """Somebody who watches a campaign, in a thread."""

    def __init__(self, server: Running, name: str = "crew") -> None:
        self.seen: list[tuple[str, Any]] = []
        self.beats = 0
        self._client = server.http()
        self._thread = threading.Thread(target=self._listen, args=(name,), daemon=True)
        self._thread.start()

    def _listen(self, name: str) -> None:
        kind = ""
        with self._client.stream("GET", f"/campaigns/{name}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.seen.append((kind, json.loads(line.removeprefix("data: "))))
                elif line.startswith(":"):
                    self.beats += 1

    def wait(self, met: Any, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not met(self):
            assert time.monotonic() < end, (self.seen, self.beats)
            time.sleep(0.01)

    def close(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._client.close()


def test_news_come_without_asking(tmp_path: Path) -> None:
    with sa.Store.open(tmp_path / "store.db") as store, running(store) as server:
        with server.http() as http:
            http.post("/campaigns", json=CREW).raise_for_status()
            one, two = Listener(server), Listener(server)
            for listener in (one, two):
                listener.wait(lambda found: found.seen)
                assert listener.seen[0][0] == "status"
                assert listener.seen[0][1]["told"] == 0
            measured(http, pulls=3)
            for listener in (one, two):
                listener.wait(lambda found: found.seen[-1][1]["told"] == 3)
            other = Campaign.open("crew", store=sa.Store.open(tmp_path / "store.db"))
            for pull in other.ask(2):  # by another process, as it were
                other.tell(pull.id, 1.0)
            one.wait(lambda found: found.seen[-1][1]["told"] == 5)
            other.store.close()
            one.wait(lambda found: found.beats > 1)
            text = httpx.get(f"{server.url}/metrics").text
            assert "superarm_watching 2.0" in text
            assert len(server.app.state.events._watches) == 1  # one poller for both
            http.delete("/campaigns/crew").raise_for_status()
        for listener in (one, two):
            listener.wait(lambda found: found.seen[-1][0] == "gone")
            listener.close()


def test_a_new_look_is_said(tmp_path: Path) -> None:
    with running() as server, server.http() as http:
        http.post("/campaigns", json={**CREW, "epsilon": 1.9}).raise_for_status()
        listener = Listener(server)
        while True:
            asked = http.post("/campaigns/crew/ask", json={"size": 20}).json()
            if not asked["pulls"]:
                break
            for pull in asked["pulls"]:
                total = len({"1", "2"} & set(pull["members"]))
                http.post("/campaigns/crew/tell", json={"id": pull["id"], "total": total})
        listener.wait(lambda found: found.seen and found.seen[-1][1].get("certified"))
        last = listener.seen[-1][1]
        assert sorted(last["answer"]) == ["1", "2"]
        assert last["margin"] <= 0
        assert any(said["new_look"] for _, said in listener.seen)
        http.delete("/campaigns/crew").raise_for_status()
        listener.close()


def test_nobody_watches_what_is_not_there() -> None:
    with running() as server, server.http() as http:
        assert http.get("/campaigns/nix/events").status_code == 404


def test_who_leaves_is_forgotten() -> None:
    with running() as server, server.http() as http:
        http.post("/campaigns", json=CREW).raise_for_status()
        with http.stream("GET", "/campaigns/crew/events") as answer:
            lines = answer.iter_lines()
            next(lines)
            assert server.app.state.events._watches
        end = time.monotonic() + 30
        while server.app.state.events._watches:
            assert time.monotonic() < end
            time.sleep(0.01)


# ---- killed, and stopped -------------------------------------------------------------------------


def test_what_was_acknowledged_survives_a_kill(where: str) -> None:
    assert kill_rounds(where, rounds=2) >= 60


def test_a_server_that_is_stopped_ends_live_pages_and_answers_all(tmp_path: Path) -> None:
    with process(str(tmp_path / "store.db")) as (server, port):
        base = f"http://127.0.0.1:{port}{API}"
        httpx.post(f"{base}/campaigns", json=CREW).raise_for_status()
        with httpx.stream("GET", f"{base}/campaigns/crew/events", timeout=30) as answer:
            lines = answer.iter_lines()
            next(line for line in lines if line.startswith("data: "))
            server.send_signal(signal.SIGINT)
            assert ": the server stops" in list(lines)
        assert server.wait(30) in (0, 130, -signal.SIGINT)
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


def test_a_unix_socket(tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    words = ["serve", "--uds", str(place), "--store", str(tmp_path / "store.db")]
    command = [sys.executable, "-m", "superarm", *words, "--root-path", "/measure"]
    done = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert done.stderr is not None
    try:
        assert done.stderr.readline() == f"superarm: listening on unix:{place}\n"
        assert place.stat().st_mode & 0o777 == 0o660
        transport = httpx.HTTPTransport(uds=str(place))
        with httpx.Client(transport=transport, base_url="http://localhost") as http:
            assert http.get("/healthz").json() == {"status": "ok"}
            http.post(f"{API}/campaigns", json=CREW).raise_for_status()
            http.post(f"{API}/campaigns", json={**CREW, "name": "b"}).raise_for_status()
            page = http.get(f"{API}/campaigns?limit=1").json()
            assert page["next"].startswith(f"/measure{API}/campaigns?")
            assert http.get("/openapi.json").json()["servers"] == [{"url": "/measure"}]
    finally:
        done.send_signal(signal.SIGINT)
        done.wait(30)
        done.stderr.close()
    assert not place.exists()
