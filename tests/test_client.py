"""The client: the same verbs, records and errors as in a store of one's own; attempts that fail."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from web import Running, running

import superarm as sa
from superarm.campaign import Campaign
from superarm.client import Client
from superarm.errors import (
    CampaignError,
    ConflictError,
    ProblemError,
    PullError,
    SettingError,
    StoreError,
    TotalError,
)
from superarm.remote import RemoteCampaign

PROBLEM = sa.Problem(["Ann", "Bo", "Cy", "Di", "Ed", "Flo"], 2, sa.labels(), epsilon=0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.url) as found:
        yield found
        for name in found.campaigns():
            found.campaign(name).delete()


def same(one: Any, other: Any) -> bool:
    """Whether two records say the same, arrays included."""
    if is_dataclass(one):
        parts = [part.name for part in fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in parts
        )
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def test_it_has_the_verbs_of_a_campaign() -> None:
    for name, verb in inspect.getmembers(Campaign):
        if name.startswith("_") or name in ("create", "open", "load"):
            continue
        mine = getattr(RemoteCampaign, name)
        if inspect.isfunction(verb):
            ours = [str(p).partition(":")[0] for p in inspect.signature(verb).parameters.values()]
            there = [str(p).partition(":")[0] for p in inspect.signature(mine).parameters.values()]
            assert ours == there, name
        else:
            assert isinstance(mine, property), name


def test_it_says_what_the_store_says(client: Client, server: Running) -> None:
    far = client.create("crew", PROBLEM, sa.Certified(radius="levels"), rng=3)
    near = Campaign.open("crew", store=server.store)
    assert far.problem == near.problem
    assert far.algorithm == near.algorithm
    assert (far.seed, far.created) == (near.seed, near.created) == (3, near.created)
    rng = np.random.default_rng(1)
    while far.verdict.look < 2 and not far.verdict.done:
        for pull in far.ask(10, worker="Dee"):
            assert far.tell(pull.id, float(rng.integers(3)), worker="Dee", site="east").new == 1
    pulls = far.ask(2, worker="Dee")
    assert [(pull.id, pull.members) for pull in pulls] == [
        (pull.id, pull.members) for pull in near.ask(2, worker="Dee")
    ]
    id = far.history(limit=1)[0].id
    change = far.amend(id, 2, reason="a slip")
    assert same(change, near.changes()[-1])
    far.void(far.history(start=1, limit=1)[0].id, reason="wrong day")
    assert same(far.undo(), near.changes()[-1])
    assert far.record(["Ann", "Bo"], 2, reason="by the way").kind == "outside"
    assert same(far.history(), near.history())
    assert same(
        far.history(start=1, limit=3, newest_first=True),
        near.history(start=1, limit=3, newest_first=True),
    )
    assert same(far.changes(), near.changes())
    assert same(far.looks(), near.looks())
    assert same(far.open_pulls(), near.open_pulls())
    mine, theirs = far.status(), near.status()
    for part in fields(mine):
        if part.name not in ("pace", "days_left"):  # these move on with the clock
            assert same(getattr(mine, part.name), getattr(theirs, part.name)), part.name
    assert str(far.verdict) == str(near.verdict)
    assert far.give_back([pulls[0].id]) == 1
    far.extend([pulls[1].id], 1e6)
    assert far.retire("Flo", reason="left the firm").names == ("Flo",)
    assert far.problem.n == 5
    assert len(far.to_frame()) == len(far.history())


def test_errors_are_those_of_a_store(client: Client) -> None:
    crew = client.create("crew", PROBLEM, rng=1)
    (pull,) = crew.ask()
    crew.tell(pull.id, 1)
    cases: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ConflictError, lambda: crew.tell(pull.id, 2)),
        (PullError, lambda: crew.tell("p1-999", 2)),
        (TotalError, lambda: crew.tell(pull.id, 0.5)),
        (TotalError, lambda: crew.tell(pull.id, float("nan"))),
        (SettingError, lambda: crew.ask(0)),
        (SettingError, lambda: crew.amend(pull.id, 2, reason="")),
        (ProblemError, lambda: crew.ask(without=["Zoe"])),
        (CampaignError, lambda: client.campaign("nix")),
        (CampaignError, lambda: client.create("crew", PROBLEM)),
        (CampaignError, lambda: crew.undo()),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
        assert str(caught.value)


def test_why_there_are_no_more_pulls(client: Client) -> None:
    crew = client.create("crew", PROBLEM, sa.Certified(budget=12), rng=1)
    assert len(crew.ask(12)) == 12
    assert crew.waiting == ""
    assert crew.ask(1) == []
    assert "look waits" in crew.waiting


def test_an_export_is_taken_in_and_verified(client: Client, tmp_path: Path) -> None:
    crew = client.create("crew", PROBLEM, sa.Certified(budget=12), rng=1)
    crew.tell_many([(pull.id, 1) for pull in crew.ask(12)])
    crew.export(tmp_path / "crew.json")
    again = client.load(tmp_path / "crew.json", name="again")
    assert [row.total for row in again.history()] == [row.total for row in crew.history()]
    assert type(again.verify()).__name__ == "Verified"


# ---- attempts ------------------------------------------------------------------------------------


class Flaky(httpx.BaseTransport):
    """Fails as told, before or after the server has done what was asked."""

    def __init__(self, plan: list[str]) -> None:
        self.plan, self.sent = plan, 0
        self.real = httpx.HTTPTransport()

    def close(self) -> None:
        self.real.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        step = self.plan.pop(0) if self.plan else "go"
        if step == "refused":
            raise httpx.ConnectError("connection refused")
        if step == "busy":
            body = {"type": "urn:superarm:StoreError", "detail": "locked", "status": 503}
            return httpx.Response(503, json=body, headers={"retry-after": "7"})
        answer = self.real.handle_request(request)
        if step == "lost":
            answer.read()
            answer.close()
            raise httpx.ReadError("the answer was lost")
        return answer


@pytest.fixture
def flaky(server: Running) -> Iterator[Callable[..., tuple[Client, Flaky, list[float]]]]:
    with ExitStack() as stack:

        def made(*plan: str) -> tuple[Client, Flaky, list[float]]:
            client = stack.enter_context(Client(server.url))
            transport, pauses = Flaky(list(plan)), list[float]()
            client._http.close()
            client._http = httpx.Client(base_url=f"{server.url}/api/v1", transport=transport)
            client._pause = pauses.append
            return client, transport, pauses

        yield made


def test_a_total_whose_answer_was_lost_is_told_once(client: Client, flaky: Any) -> None:
    crew = client.create("crew", PROBLEM, rng=1)
    (pull,) = crew.ask(worker="Dee")
    unsure, transport, _ = flaky("refused", "lost", "busy", "lost")
    told = RemoteCampaign(unsure, "crew").tell(pull.id, 1, worker="Dee")
    assert (told.new, told.repeated) == (0, 1)
    assert transport.sent == 5
    assert crew.status().told == 1


def test_pauses_grow_and_heed_the_server(client: Client, flaky: Any) -> None:
    client.create("crew", PROBLEM, rng=1)
    unsure, _, pauses = flaky("refused", "refused", "refused", "busy")
    RemoteCampaign(unsure, "crew").status()
    assert 0.05 <= pauses[0] <= 0.15
    assert 0.2 <= pauses[2] <= 0.6
    assert pauses[3] >= 7


def test_what_may_have_been_done_is_not_done_again(client: Client, flaky: Any) -> None:
    crew = client.create("crew", PROBLEM, rng=1)
    (pull,) = crew.ask(worker="Dee")
    crew.tell(pull.id, 1)
    for call in (
        lambda far: far.amend(pull.id, 2, reason="a slip"),
        lambda far: far.ask(1),  # nobody's: others would lack these pulls
    ):
        unsure, transport, _ = flaky("lost")
        with pytest.raises(StoreError, match="does not answer"):
            call(RemoteCampaign(unsure, "crew"))
        assert transport.sent == 1
    assert len(crew.changes()) == 1
    unsure, transport, _ = flaky("lost")
    again = RemoteCampaign(unsure, "crew").ask(1, worker="Eve")
    assert transport.sent == 2
    assert [pull.id for pull in crew.ask(1, worker="Eve")] == [pull.id for pull in again]


def test_in_the_end_it_gives_up(flaky: Any) -> None:
    unsure, transport, _ = flaky(*["refused"] * 20)
    with pytest.raises(StoreError, match="refused"):
        unsure.campaigns()
    assert transport.sent == 6
    unsure, transport, _ = flaky(*["busy"] * 20)
    with pytest.raises(StoreError, match="locked"):
        unsure.campaigns()


def test_what_is_no_superarm_server(server: Running) -> None:
    with pytest.raises(SettingError, match="no address"):
        Client("localhost:8420")
    with Client(f"{server.url}/nowhere") as other, pytest.raises(SettingError, match="404"):
        other.campaigns()


def test_a_token_is_shown_and_never_printed(server: Running) -> None:
    from superarm.server.access import new_token

    with sa.Store.open(":memory:") as store:
        _, text = new_token(store, "Ann", "measure")
        with running(store, tokens=True) as guarded:
            with Client(guarded.url, text) as client:
                assert client.campaigns() == []
                assert text not in repr(client)
                with pytest.raises(SettingError, match="role admin"):
                    client.create("crew", PROBLEM)
            with Client(guarded.url) as client, pytest.raises(SettingError, match="token"):
                client.campaigns()


def test_verdicts_cross_the_wire_whole() -> None:
    from superarm.server.wire import verdict_data, verdict_from

    crew = sa.Identification(sa.Problem(["a", "b"], 2, sa.labels()))
    only = crew.verdict
    assert same(verdict_from(json.loads(json.dumps(verdict_data(only)))), only)
    crew = sa.Identification(PROBLEM, rng=1)
    before = crew.verdict
    back = verdict_from(json.loads(json.dumps(verdict_data(before))))
    assert same(back, before)
    assert str(back) == str(before)
