"""Campaigns in memory: the same verdicts as one at a time, and what only they can do."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from support import PHASED, RULES

import superarm as sa
from superarm.campaign import campaign as room
from superarm.campaign import standing as standings

PROBLEM = sa.Problem(list("abcdefgh"), 4, sa.gaussian(1.0), epsilon=0.5)
MEANS = dict(zip("abcdefgh", np.linspace(0, 3, 8), strict=True))
ALL = {**RULES, **PHASED}
CLOSE = {f"arm {i}": 2.0 if i < 2 else 1.0 if i == 2 else 0.75 if i < 5 else 0.0 for i in range(24)}
"""Means that take several phases."""


@pytest.fixture
def store():
    with sa.Store.open(":memory:") as opened:
        yield opened


def total_of(pull, means=MEANS, sigma=1.0):
    """Return the same total for a position, whoever measures it, whenever."""
    rng = np.random.default_rng([int(part) for part in pull.id[1:].split("-")[:2]])
    return float(sum(means[name] for name in pull.members) + sigma * rng.standard_normal())


def measure(campaign, at_most=10_000, size=32, shuffle=None, **asked):
    """Ask and tell until there is nothing more to ask for."""
    done = 0
    while done < at_most:
        pulls = campaign.ask(min(size, at_most - done), **asked)
        if not pulls:
            break
        if shuffle is not None:
            shuffle.shuffle(pulls)
        for pull in pulls:
            campaign.tell(pull.id, total_of(pull))
        done += len(pulls)
    return campaign.verdict


def alone(rule, pulls=10_000, problem=PROBLEM, seed=1):
    """Return what one at a time finds from the same totals."""
    one = sa.Identification(problem, rule, rng=seed)
    for _ in range(pulls):
        asked = one.ask()
        if not asked:
            break
        pull = dataclasses.replace(asked[0], id=f"p{asked[0].id}")
        one.tell(asked[0].id, total_of(pull))
    return one.verdict


def bare(verdict):
    """Return a verdict without the conditions of its certificate."""
    if verdict.certificate is None:
        return verdict
    certificate = dataclasses.replace(verdict.certificate, conditions=())
    return dataclasses.replace(verdict, certificate=certificate)


def same(verdict, other):
    assert str(verdict) == str(other)
    assert verdict.to_dict() == other.to_dict()
    np.testing.assert_array_equal(verdict.estimates, other.estimates)


@pytest.mark.parametrize("name", ALL)
def test_the_same_verdict_at_the_same_look_as_one_at_a_time(name, store):
    campaign = sa.Campaign.create("c", PROBLEM, ALL[name], store=store, rng=1)
    most = 600
    found = measure(campaign, most, shuffle=random.Random(2))
    same(found, alone(ALL[name], most))


@pytest.mark.parametrize("name", ["certified", "focused", "csar", "saqm"])
def test_a_campaign_goes_on_where_it_was(name, store):
    campaign = sa.Campaign.create("c", PROBLEM, ALL[name], store=store, rng=1)
    measure(campaign, 130)
    again = sa.Campaign.open("c", store=store)
    same(again.verdict, campaign.verdict)
    assert [p.id for p in again.ask(3)] == ["p1-130", "p1-131", "p1-132"]


def test_many_phases_give_the_same_verdict_as_one_at_a_time(store):
    named = CLOSE
    problem = sa.Problem(list(named), 3, sa.gaussian(1.0))
    rule = sa.Focused()
    campaign = sa.Campaign.create("c", problem, rule, store=store, rng=4)
    one = sa.Identification(problem, rule, rng=4)
    serials = {1: 1}
    while pulls := campaign.ask(500):
        for pull in reversed(pulls):
            campaign.tell(pull.id, total_of(pull, named))
        for single in one.ask(500):
            phase = serials.setdefault(single.phase, len(serials) + 1)
            stand_in = room.Pull(f"p{phase}-{single.position}", single.members, "", "", None)
            one.tell(single.id, total_of(stand_in, named))
    assert one.verdict.phase > 1
    same(campaign.verdict, one.verdict)


def test_asks_and_tells_keep_their_places(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    first = campaign.ask(2, worker="Ann")
    other = campaign.ask(2, worker="Bo")
    assert [p.id for p in first + other] == ["p1-0", "p1-1", "p1-2", "p1-3"]
    assert [p.id for p in campaign.ask(3, worker="Ann")] == ["p1-0", "p1-1", "p1-4"]
    assert campaign.tell("p1-2", 3.0, worker="Bo") == room.Told(1, 0)
    assert campaign.tell("p1-2", 3.0) == room.Told(0, 1)
    with pytest.raises(sa.ConflictError, match=r"p1-2 has total 3 already, told by Bo"):
        campaign.tell("p1-2", 4.0)
    for id in ("p1-99", "p2-0", "p1-0-2", "x", "", "p1-2 x"):
        with pytest.raises(sa.PullError, match="never asked"):
            campaign.tell(id, 1.0)
    with pytest.raises(sa.TotalError, match="finite"):
        campaign.tell("p1-0", float("nan"))
    assert campaign.status().holders == {"Ann": 3, "Bo": 1}


def test_a_batch_is_taken_whole_or_not_at_all(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    pulls = campaign.ask(600)
    good = [(pull.id, total_of(pull)) for pull in pulls]
    for bad in [("p1-700", 1.0), ("p1-0", 99.0), ("p1-5", float("inf"))]:
        with pytest.raises(sa.SuperarmError):
            campaign.tell_many([*good, bad])
        assert campaign.status().told == 0
    assert campaign.tell_many(good) == room.Told(600, 0)
    assert campaign.tell_many(good[::-1]) == room.Told(0, 600)


def test_a_lapsed_lease_goes_to_others_and_a_late_total_is_taken_once(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    held = campaign.ask(2, worker="Ann", lease=1e-6)
    taken = campaign.ask(2, worker="Bo")
    assert [p.id for p in taken] == [p.id for p in held]
    campaign.tell(held[0].id, 1.0, worker="Ann")  # late, but first
    with pytest.raises(sa.ConflictError, match="told by Ann"):
        campaign.tell(taken[0].id, 2.0, worker="Bo")
    campaign.tell(taken[1].id, 2.0, worker="Bo")
    assert campaign.status().told == 2


def test_who_is_away_is_put_off_and_listed(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    pulls = campaign.ask(20, without=["a"])
    assert len(pulls) == 20
    assert not any("a" in pull.members for pull in pulls)
    for pull in pulls:
        campaign.tell(pull.id, total_of(pull))
    later = campaign.ask(5)
    assert all("a" in pull.members for pull in later), "what was put off comes first"
    campaign.tell_many([(pull.id, total_of(pull)) for pull in later])
    found = measure(campaign)
    assert found.certified
    assert any("put off, not there: a" in text for text in found.certificate.conditions)
    same(bare(found), alone(sa.Certified()))
    everybody = sa.Campaign.create("d", PROBLEM, store=store, rng=1)
    assert everybody.ask(3, without=list("abcdefgh")) == []
    assert "nothing else is left without a, b" in everybody.waiting
    with pytest.raises(sa.ProblemError, match="none of the arms"):
        everybody.ask(without=["zoe"])


def test_void_asks_again_and_undo_takes_it_back(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    before = measure(campaign, 100)
    assert before.look > 0
    change = campaign.void("p1-3", reason="the scale was not at zero", worker="Ann")
    assert (change.kind, change.id, change.worker) == ("void", "p1-3", "Ann")
    assert campaign.verdict.look == 0
    with pytest.raises(sa.ConflictError, match="voided"):
        campaign.amend("p1-3", 2.0, reason="no")
    again = campaign.ask()[0]
    assert again.id == "p1-3-2"
    assert "voided" in again.reason
    campaign.undo()
    same(campaign.verdict, before)
    with pytest.raises(sa.PullError):
        campaign.tell(again.id, 1.0)
    campaign.void("p1-3", reason="spilled")
    again = campaign.ask()[0]
    campaign.tell(again.id, 1.5)
    assert campaign.verdict.look == before.look
    with pytest.raises(sa.ConflictError, match="measured again"):
        campaign.undo()
    assert [c.kind for c in campaign.changes()] == ["void", "undo", "void"]
    states = {r.id: (r.state, r.total) for r in campaign.history()}
    assert states["p1-3"] == ("voided", None)
    assert states["p1-3-2"] == ("counts", 1.5)


def test_a_void_because_of_its_value_ends_the_certificate(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    assert measure(campaign).certified
    campaign.void("p1-3", reason="looked too high", because_of_value=True)
    assert not measure(campaign).certified
    assert "because of its value" in campaign.verdict.reason
    assert [summary.state for summary in store.campaigns()] == ["ended"]
    with pytest.raises(sa.ConflictError, match="can no longer be undone"):
        campaign.undo()


def test_an_amend_in_a_look_that_was_taken_takes_it_again(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    before = measure(campaign, 100)
    old = campaign.history()[5].total
    campaign.amend("p1-5", old + 100, reason="a slip of the pen")
    changed = campaign.verdict
    assert changed.look == before.look
    assert not np.array_equal(changed.estimates, before.estimates)
    expected = sa.Identification(PROBLEM, rng=1)
    for pull in expected.ask(100):
        stand_in = room.Pull(f"p{pull.id}", pull.members, "", "", None)
        expected.tell(pull.id, old + 100 if pull.position == 5 else total_of(stand_in))
    same(bare(changed), expected.verdict)
    campaign.undo(reason="it was right")
    same(campaign.verdict, before)


def test_an_amend_in_a_closed_phase_reopens_it_only_if_its_decision_changes(store):
    means = CLOSE
    problem = sa.Problem(list(means), 3, sa.gaussian(1.0))
    campaign = sa.Campaign.create("c", problem, sa.Focused(), store=store, rng=4)
    while campaign.status().phase == 1:
        for pull in campaign.ask(200):
            campaign.tell(pull.id, total_of(pull, means))
    for pull in campaign.ask(200):
        campaign.tell(pull.id, total_of(pull, means))
    later = [r for r in campaign.history() if r.phase == 2]
    assert len(later) >= 200
    told = campaign.history()[0].total
    campaign.amend("p1-0", told + 1e-9, reason="a rounding")
    assert campaign.status().phase == 2
    assert [r for r in campaign.history() if r.phase == 2] == later, "its results are kept"
    campaign.amend("p1-0", told + 1e4, reason="a unit")
    assert campaign.status().phase == 1, "nothing is decided any more"
    assert {r.state for r in campaign.history() if r.phase == 2} == {"not used"}
    campaign.undo()
    assert campaign.status().phase == 2


def test_an_arm_that_retires_leaves_a_new_question(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    measure(campaign, 50)
    change = campaign.retire(["h"], reason="moved away")
    assert "left for good" in change.text
    assert campaign.problem.arms == tuple("abcdefg")
    pulls = campaign.ask(10)
    assert all(pull.id.startswith("p2-") and "h" not in pull.members for pull in pulls)
    campaign.tell_many([(pull.id, total_of(pull)) for pull in pulls])
    found = measure(campaign)
    assert found.certified
    assert set(found.answer) == set("defg")
    assert any("left for good" in text for text in found.certificate.conditions)
    assert [a.state for a in campaign.status().arms if a.name == "h"] == ["retired"]
    with pytest.raises(sa.CampaignError, match="too few"):
        campaign.retire(list("abcd"), reason="all ill")
    campaign.retire(list("abc"), reason="ill")
    assert campaign.verdict.certified, "four are left, and there is nothing to choose"
    assert campaign.ask() == []


def test_totals_from_outside_the_plan_are_kept_apart(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    measure(campaign, 40)
    before = campaign.verdict
    change = campaign.record(["a", "b", "c"], 2.5, reason="a trial run")
    assert "outside the plan" in change.text
    same(campaign.verdict, before)
    with pytest.raises(sa.ProblemError):
        campaign.record(["a", "zoe"], 1.0, reason="?")


def test_names_and_reasons_are_asked_for(store):
    sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    with pytest.raises(sa.CampaignError, match="already"):
        sa.Campaign.create("c", PROBLEM, store=store)
    with pytest.raises(sa.CampaignError, match=r"no campaign 'd'.*there are: c"):
        sa.Campaign.open("d", store=store)
    for name in ("", " ", "a/b", "a\nb", "x" * 300, 3):
        with pytest.raises(sa.SettingError):
            sa.Campaign.create(name, PROBLEM, store=store)
    campaign = sa.Campaign.open("c", store=store)
    pull = campaign.ask()[0]
    campaign.tell(pull.id, 1.0)
    with pytest.raises(sa.SettingError, match="say why"):
        campaign.void(pull.id, reason=" ")
    for size in (0, -1, 1.5, 10**7):
        with pytest.raises(sa.SettingError):
            campaign.ask(size)
    with pytest.raises(sa.SettingError, match="lease"):
        campaign.ask(lease=0)
    with pytest.raises(sa.CampaignError, match="no amend and no void"):
        campaign.undo()


def test_one_group_needs_no_pull(store):
    campaign = sa.Campaign.create("c", sa.Problem(3, 3, sa.labels()), store=store)
    assert campaign.verdict.certified
    assert campaign.ask() == []
    assert "no more are needed" in campaign.waiting
    assert campaign.status().told == 0


def test_intervals_call_in_only_what_is_in(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    measure(campaign)
    arms = campaign.status().arms
    truth = set("efgh")
    assert all(arm.name in truth for arm in arms if arm.state == "in")
    assert all(arm.name not in truth for arm in arms if arm.state == "out")
    assert all(arm.low <= MEANS[arm.name] <= arm.high for arm in arms)
    assert [arm.chosen for arm in arms] == [True] * 4 + [False] * 4


def test_what_a_look_waits_for_is_what_is_out(store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    pulls = campaign.ask(20)
    for pull in pulls[:7]:
        campaign.tell(pull.id, 1.0)
    status = campaign.status()
    assert status.missing == status.next_look - 7
    with store.read() as connection:
        where = standings.standing(connection, campaign._id)
        assert standings.missing(connection, where) == status.missing
    assert campaign.give_back([pulls[8].id, pulls[9].id]) == 2
    assert [p.id for p in campaign.ask(2)] == [pulls[8].id, pulls[9].id]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend, store):
    campaign = sa.Campaign.create("c", PROBLEM, store=store, rng=1)
    assert campaign.to_frame(backend).shape == (0, 10)
    measure(campaign, 10)
    assert campaign.to_frame(backend).shape == (10, 10)
    with pytest.raises(sa.SettingError, match="backend"):
        campaign.to_frame("excel")


def test_what_the_totals_say_against_the_assumptions_is_a_warning(store):
    campaign = sa.Campaign.create("c", PROBLEM, sa.Certified(aim=10**6), store=store, rng=1)
    assert campaign.diagnose() is None
    for worker, offset in (("Ann", 0.0), ("Bo", 2.0)):
        for pull in campaign.ask(100):
            campaign.tell(pull.id, total_of(pull) + offset, worker=worker)
    assert any("Bo" in text for text in campaign.status().warnings)
    assert campaign.status().warnings == campaign.diagnose().warnings
    clean = sa.Campaign.create("d", PROBLEM, store=store, rng=1)
    measure(clean, 50)
    assert clean.status().warnings == ()
