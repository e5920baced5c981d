"""What every store keeps to, whatever it is made of: memory, an SQLite file, PostgreSQL."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

import numpy as np
import pytest
from campaigns import MEANS, PROBLEM, create, finished, measure, totals_of

import superarm as sa
from superarm.campaign import asking, changes, telling

SMALL = sa.Problem(["Ann", "Bo", "Cy", "Dee", "Eve"], 2, sa.labels(), epsilon=0.5)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def where(request, tmp_path):
    """Where a store is opened; ":memory:" gives another one each time."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql_url")
    return ":memory:" if request.param == "memory" else str(tmp_path / "store.db")


@pytest.fixture
def store(where):
    with sa.Store.open(where) as found:
        yield found


def told(campaign):
    """Return everything that was told, but for times."""
    return [
        (r.id, r.members, r.total, r.first_total, r.worker, r.state) for r in campaign.history()
    ]


class TestStore:
    """One class for all: a new kind of store is a new parameter of `where`."""

    # ---- create, open, delete --------------------------------------------------------------------

    def test_a_campaign_is_found_again_as_it_was(self, store, where):
        campaign = create(store, sa.Certified())
        measure(campaign, most=50)
        again = store if where == ":memory:" else sa.Store.open(where)
        try:
            found = sa.Campaign.open("crew", store=again)
            assert found.problem == campaign.problem
            assert found.algorithm == campaign.algorithm
            assert (found.seed, found.created) == (campaign.seed, campaign.created)
            assert told(found) == told(campaign)
            assert str(found.verdict) == str(campaign.verdict)
        finally:
            if again is not store:
                again.close()

    def test_a_name_is_taken_once(self, store):
        create(store)
        with pytest.raises(sa.CampaignError, match="there is a campaign 'crew' already"):
            create(store)

    def test_an_unknown_name_is_said(self, store):
        create(store)
        with pytest.raises(sa.CampaignError, match=r"no campaign 'crow' .* there are: crew"):
            sa.Campaign.open("crow", store=store)

    def test_names_of_all_scripts(self, store):
        name, worker = "团队 № 1 «ü» '; DROP TABLE result; --", "Zoë\\N\t\\."
        campaign = create(store, name=name)
        pulls = campaign.ask(600, worker=worker)  # so many that PostgreSQL copies them
        campaign.tell_many([(pull.id, 1.0) for pull in pulls], worker=worker, site="\\N")
        assert store.names() == [name]
        assert {r.worker for r in campaign.history()} == {worker.strip()}
        assert {r.site for r in campaign.history()} == {"\\N"}

    @pytest.mark.parametrize("text", ["a\0b", "a\udcff"])
    def test_what_no_database_keeps_is_refused_in_plain_words(self, store, text):
        campaign = create(store)
        pulls = campaign.ask(600)
        results = [(pull.id, 1.0) for pull in pulls]
        for act in (
            lambda: campaign.ask(worker=text),
            lambda: campaign.tell(pulls[0].id, 1.0, worker=text),
            lambda: campaign.tell_many(results, site=text),
            lambda: campaign.tell_many(results, worker=[text] * 600),
            lambda: campaign.record(["arm 1"], 1.0, reason=text),
        ):
            with pytest.raises(sa.SettingError, match="cannot be kept as text"):
                act()
        with pytest.raises(sa.ProblemError, match="cannot be kept as text"):
            create(store, problem=sa.Problem([text, "b", "c"], 2, sa.gaussian(1.0)), name="odd")
        with pytest.raises(sa.CampaignError, match="there is no campaign"):
            sa.Campaign.open(text, store=store)
        assert campaign.history() == []

    def test_what_is_deleted_is_gone(self, store):
        campaign = finished(store)
        other = create(store, name="other")
        campaign.delete()
        assert store.names() == ["other"]
        assert store.check() == []
        with pytest.raises(sa.CampaignError):
            campaign.ask()
        assert create(store).history() == []  # of the same name, and nothing of the old one
        assert other.ask()

    def test_what_was_deleted_does_not_write_into_what_came_after(self, store):
        old = create(store)
        pull = old.ask()[0]
        old.delete()
        new = create(store, seed=4)
        new.ask()
        with pytest.raises(sa.CampaignError, match="deleted meanwhile"):
            old.ask()
        with pytest.raises(sa.CampaignError, match="deleted meanwhile"):
            old.tell(pull.id, 1.0)
        assert new.history() == []

    # ---- ask -------------------------------------------------------------------------------------

    def test_pulls_are_handed_out_once(self, store):
        campaign = create(store)
        first, second = campaign.ask(7, worker="Ann"), campaign.ask(7, worker="Bo")
        ids = [pull.id for pull in (*first, *second)]
        assert len(set(ids)) == 14
        assert [pull.members for pull in first] != [pull.members for pull in second]
        assert sorted(p.id for p in campaign.open_pulls()) == sorted(ids)

    def test_a_worker_gets_its_own_again(self, store):
        campaign = create(store)
        mine = campaign.ask(3, worker="Ann")
        campaign.ask(2, worker="Bo")
        again = campaign.ask(4, worker="Ann", lease=1_000_000)
        assert [pull.id for pull in again[:3]] == [pull.id for pull in mine]
        assert again[0].until > mine[0].until
        assert again[3].id not in {pull.id for pull in mine}

    def test_a_lapsed_lease_goes_to_others(self, store):
        campaign = create(store)
        slow = campaign.ask(2, worker="Ann", lease=0.05)
        time.sleep(0.2)
        quick = campaign.ask(2, worker="Bo")
        assert [pull.id for pull in quick] == [pull.id for pull in slow]
        assert {pull.worker for pull in campaign.open_pulls()} == {"Bo"}

    @pytest.mark.parametrize("worker", ["", "Bo"])
    def test_of_many_lapsed_pulls_no_more_than_asked_for_go_to_one(self, store, worker):
        campaign = create(store)
        campaign.ask()
        campaign.ask(4, worker="Ann", lease=0.05)
        time.sleep(0.2)
        assert [pull.id for pull in campaign.ask(1, worker=worker)] == ["p1-1"]
        assert [pull.lapsed for pull in campaign.open_pulls()] == [False, False, True, True, True]

    def test_a_lapsed_total_counts_where_nobody_was_faster(self, store):
        campaign = create(store, problem=SMALL)
        pull = campaign.ask(worker="Ann", lease=0.05)[0]
        time.sleep(0.1)
        assert campaign.tell(pull.id, 1.0, worker="Ann") == campaign_told(1)
        with pytest.raises(sa.ConflictError, match="has total 1 already, told by Ann"):
            campaign.tell(pull.id, 2.0, worker="Bo")

    def test_what_is_given_back_goes_to_others(self, store):
        campaign = create(store)
        pulls = campaign.ask(3, worker="Ann")
        assert campaign.give_back([pull.id for pull in pulls[1:]]) == 2
        assert campaign.give_back([pulls[1].id]) == 0
        again = campaign.ask(3, worker="Bo")
        assert [pull.id for pull in again[:2]] == [pull.id for pull in pulls[1:]]

    def test_who_is_away_is_put_off(self, store):
        campaign = create(store)
        pulls = campaign.ask(6, worker="Bo", without=["arm 0"])
        assert len(pulls) == 6
        assert not any("arm 0" in pull.members for pull in pulls)
        later = campaign.ask(1)
        assert "arm 0" in later[0].members  # those put off come first, once somebody can
        assert [change.kind for change in campaign.changes()] == ["put off"]
        assert store.check() == []

    # ---- tell ------------------------------------------------------------------------------------

    def test_telling_twice_changes_nothing(self, store):
        campaign = create(store, problem=SMALL)
        pull = campaign.ask()[0]
        assert campaign.tell(pull.id, 1) == campaign_told(1)
        assert campaign.tell(pull.id, 1.0) == campaign_told(0, 1)
        assert len(campaign.history()) == 1
        with pytest.raises(sa.ConflictError, match="To correct it, amend it"):
            campaign.tell(pull.id, 2)

    def test_a_batch_is_taken_as_a_whole_or_not_at_all(self, store):
        campaign = create(store, problem=SMALL)
        pulls = campaign.ask(600)
        good = [(pull.id, 1.0) for pull in pulls]
        for bad, error in (
            ((pulls[0].id, 2.0), sa.ConflictError),
            (("p1-100000", 1.0), sa.PullError),
            (("p2-0", 1.0), sa.PullError),
            ((pulls[0].id, 3.0), sa.TotalError),
        ):
            with pytest.raises(error):
                campaign.tell_many([*good, bad])
            assert campaign.history() == []
        assert campaign.tell_many(good) == campaign_told(600)
        assert campaign.tell_many(good) == campaign_told(0, 600)
        assert store.check() == []

    def test_what_was_never_asked_is_refused(self, store):
        campaign = create(store)
        campaign.ask(3)
        for id in ("p1-3", "p1-0-2", "p7-0", "1-0", "", "p1-99999999999999999"):
            with pytest.raises(sa.PullError, match="never asked"):
                campaign.tell(id, 1.0)

    def test_order_and_batches_do_not_matter(self, store):
        rule = sa.Focused()
        one = finished(store, rule, size=1_000)
        many = create(store, rule, name="many")
        while pulls := many.ask(200):
            results = {r.id: r.first_total for r in one.history()}
            for pull in reversed(pulls):
                if pull.id in results:
                    many.tell(pull.id, results[pull.id])
            if not any(pull.id in results for pull in pulls):
                break
        assert str(many.verdict) == str(one.verdict)
        assert [look.radius for look in many.looks()] == [look.radius for look in one.looks()]

    def test_it_goes_as_an_identification_does(self, store):
        rule = sa.SAQM()
        other = sa.Identification(PROBLEM, rule, rng=3)
        campaign, rng = create(store, rule), np.random.default_rng(4)
        while pulls := campaign.ask(200):
            results = totals_of(campaign, pulls, rng)
            assert [pull.members for pull in pulls] == [pull.members for pull in other.ask(200)]
            campaign.tell_many(results)
            for id, total in results:
                other.tell(id[1:], total)
            assert str(campaign.verdict) == str(other.verdict)
        assert campaign.verdict.certified

    # ---- changes ---------------------------------------------------------------------------------

    def test_a_void_is_measured_again(self, store):
        campaign = create(store)
        measure(campaign, most=10)
        change = campaign.void("p1-4", reason="the clock stood still")
        assert (change.number, change.kind, change.id) == (1, "void", "p1-4")
        pull = campaign.ask(worker="Bo")[0]
        assert (pull.id, pull.reason) == ("p1-4-2", "measured again, since a total was voided")
        campaign.tell(pull.id, 5.0, worker="Bo")
        states = {r.id: (r.total, r.state) for r in campaign.history()}
        assert states["p1-4"] == (None, "voided")
        assert states["p1-4-2"][0] == 5.0
        assert store.check() == []
        with pytest.raises(sa.ConflictError, match="voided"):
            campaign.void("p1-4", reason="again")
        with pytest.raises(sa.ConflictError, match="can no longer be undone"):
            campaign.undo(1)

    def test_a_change_within_a_look_takes_the_look_again(self, store):
        campaign = finished(store)
        before = str(campaign.verdict)
        assert campaign.verdict.certified
        number = campaign.amend(
            "p1-0", campaign.history(limit=1)[0].first_total + 0.25, reason="slip"
        ).number
        assert campaign.changes()[0].text.endswith("slip")
        changed = campaign.verdict
        assert str(changed) != before
        assert changed.certificate is None or "slip" in changed.certificate.conditions[0]
        campaign.undo(number)
        assert str(campaign.verdict) == before
        assert store.check() == []

    def test_an_undone_void_is_as_if_it_had_not_been(self, store):
        campaign = finished(store)
        before = str(campaign.verdict)
        campaign.void("p1-3", reason="slip")
        assert not campaign.verdict.done
        assert campaign.status().missing == 1
        campaign.undo()
        assert str(campaign.verdict) == before
        with pytest.raises(sa.CampaignError, match="no amend and no void"):
            campaign.undo()
        assert store.check() == []

    def test_voided_for_its_value_there_is_no_certificate(self, store):
        campaign = finished(store)
        assert campaign.verdict.certified
        campaign.void("p1-3", reason="too high to be true", because_of_value=True)
        measure(campaign)
        assert campaign.verdict.done
        assert "because of its value" in campaign.verdict.reason
        assert not campaign.verdict.certified

    def test_retired_arms_leave_and_fresh_totals_come(self, store):
        campaign = measure(create(store), most=30)
        campaign.retire(["arm 7", "arm 0"], reason="moved away")
        assert campaign.problem.n == 6
        pulls = campaign.ask(50)
        assert not {"arm 0", "arm 7"} & {name for pull in pulls for name in pull.members}
        campaign.tell_many(totals_of(campaign, pulls, np.random.default_rng(1)))
        measure(campaign)
        verdict = campaign.verdict
        assert set(verdict.answer) == {"arm 3", "arm 4", "arm 5", "arm 6"}
        assert verdict.certificate.conditions == ("arm 7, arm 0 left for good: moved away",)
        assert {r.state for r in campaign.history() if r.phase == 1} <= {"counts", "not used"}
        assert store.check() == []

    def test_a_total_from_outside_is_only_written_down(self, store):
        campaign = measure(create(store), most=30)
        before = str(campaign.verdict)
        change = campaign.record(["arm 1", "arm 2"], 2.5, reason="a test")
        assert (change.kind, change.total, change.names) == ("outside", 2.5, ("arm 1", "arm 2"))
        assert str(campaign.verdict) == before
        assert store.check() == []

    def test_reasons_are_demanded(self, store):
        campaign = measure(create(store), most=3)
        for change in (campaign.void, lambda id, reason: campaign.amend(id, 1.0, reason=reason)):
            with pytest.raises(sa.SettingError, match="say why"):
                change("p1-0", reason=" ")

    # ---- the whole of it -------------------------------------------------------------------------

    def test_a_glance_at_all(self, store):
        assert store.campaigns() == []
        one, two = (
            finished(store, name="b"),
            measure(create(store, name="a", problem=SMALL), most=0),
        )
        two.retire(["Ann"], reason="left")
        first, second = store.campaigns()
        assert (first.name, first.n, first.k, first.told, first.last) == ("a", 4, 2, 0, None)
        assert (second.name, second.n, second.k, second.state) == ("b", 8, 4, "certified")
        assert second.told == len(one.history())
        assert second.created == one.created
        assert second.last == max(r.told_at for r in one.history())
        assert second.margin == pytest.approx(one.status().margin)
        assert second.margin <= 0

    def test_a_copy_is_the_same(self, store, tmp_path):
        rich(store)
        create(store, name="other", problem=SMALL)
        with sa.Store.open(tmp_path / "copy.db") as other:
            assert store.copy_to(other) == 2
            same(store, other)
            with pytest.raises(
                sa.CampaignError, match=r"has a campaign 'crew' already.*nothing was"
            ):
                store.copy_to(other)
            measure(sa.Campaign.open("other", store=other), means=[0.5] * 5, sigma=0.0, most=0)

    def test_a_copy_comes_back(self, store, tmp_path):
        with sa.Store.open(tmp_path / "first.db") as first:
            rich(first)
            assert first.copy_to(store) == 1
            same(first, store)

    def test_a_copy_can_be_measured_on(self, store):
        measure(create(store), most=40)
        with sa.Store.open(":memory:") as other:
            store.copy_to(other)
            there = measure(sa.Campaign.open("crew", store=other))
            here = measure(sa.Campaign.open("crew", store=store))
            assert str(here.verdict) == str(there.verdict)

    def test_an_export_comes_back(self, store, tmp_path):
        campaign = rich(store)
        campaign.export(tmp_path / "crew.json")
        loaded = sa.Campaign.load(tmp_path / "crew.json", store=store, name="again")
        assert told(loaded) == told(campaign)
        assert str(loaded.verdict) == str(campaign.verdict)
        assert [c.text for c in loaded.changes()] == [c.text for c in campaign.changes()]
        assert store.check() == []

    def test_all_is_well_at_every_step(self, store):
        campaign, rng = create(store, sa.Focused()), np.random.default_rng(0)
        for _ in range(25):
            pulls = campaign.ask(int(rng.integers(1, 60)), worker=str(rng.integers(3)))
            if not pulls:
                break
            some = [pull for pull in pulls if rng.random() < 0.8]
            campaign.tell_many(totals_of(campaign, some, rng))
            if some and rng.random() < 0.3:
                campaign.void(some[0].id, reason="slip")
            if some[1:] and rng.random() < 0.3:
                campaign.amend(some[1].id, 6.0, reason="slip")
            if rng.random() < 0.1 and campaign.changes():
                with suppress(sa.SuperarmError):  # measured again meanwhile, or nothing to undo
                    campaign.undo()
            assert store.check() == []

    def test_many_processes_tell_at_once(self, store, where):
        if where == ":memory:":
            pytest.skip("memory is not shared between processes")
        create(store)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=work, args=(where, f"worker {i}")) for i in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == 0
        found = sa.Campaign.open("crew", store=store)
        assert len(found.history()) == 60
        assert {r.worker for r in found.history()} == {"worker 0", "worker 1"}
        assert store.check() == []


def campaign_told(new, repeated=0):
    from superarm.campaign import Told

    return Told(new, repeated)


def rich(store):
    """Return a campaign with something of everything."""
    campaign = measure(create(store, sa.Focused()), most=60)
    campaign.void("p1-4", reason="slip")
    campaign.amend("p1-5", 5.5, reason="typed wrongly")
    campaign.void("p1-6", reason="slip too")
    campaign.undo(3)
    campaign.record(["arm 1"], 0.5, reason="a test")
    campaign.retire(["arm 0"], reason="left")
    measure(campaign, most=90, seed=9)
    campaign.ask(5, worker="Bo", without=["arm 3"])
    return campaign


def same(one, two):
    """All campaigns of one store are in the other, row for row."""
    assert two.check() == []
    assert two.campaigns() == one.campaigns()
    for name in one.names():
        a, b = (sa.Campaign.open(name, store=store) for store in (one, two))
        assert b.history() == a.history()
        assert b.changes() == a.changes()
        assert b.open_pulls() == a.open_pulls()
        assert b.looks() == a.looks()
        assert str(b.verdict) == str(a.verdict)
        assert (b.seed, b.created, b.problem, b.algorithm) == (
            a.seed,
            a.created,
            a.problem,
            a.algorithm,
        )


def work(where, name):
    """Ask and tell as one of several processes."""
    with sa.Store.open(where) as store:
        campaign = sa.Campaign.open("crew", store=store)
        for _ in range(10):
            pulls = campaign.ask(3, worker=name)
            campaign.tell_many([(pull.id, 1.0 + len(MEANS)) for pull in pulls], worker=name)


def elsewhere(store):
    """Open the campaign by connections of its own, as another process would."""
    url = store.path or store.engine.url.render_as_string(hide_password=False)
    return sa.Campaign.open("crew", store=sa.Store.open(url))


def meanwhile(monkeypatch, owner, name, act):
    """Let a thread begin `act` before a method is called for the first time; return what it gave.

    It gets a moment, and then the time that it takes after that.
    """
    found, real = [], getattr(owner, name)

    def both(*args, **settings):
        if not found and (name != "_lend" or args[1]):
            pool = ThreadPoolExecutor(1)
            found.append(pool.submit(act))
            wait(found, 2.0)
        return real(*args, **settings)

    monkeypatch.setattr(owner, name, both)
    return found


@pytest.fixture
def two(request, postgresql_url, tmp_path):
    """A campaign and the same by other connections, in a PostgreSQL store."""
    with sa.Store.open(postgresql_url) as store:
        campaign = create(store)
        other = elsewhere(store)
        other.ask(1, worker="other")
        yield campaign, other
        other.store.close()


class TestAtTheSameMoment:
    """What PostgreSQL lets happen between two statements of a transaction."""

    def test_a_single_total_and_a_batch(self, two, monkeypatch):
        campaign, other = two
        pulls = campaign.ask(3)
        told = meanwhile(
            monkeypatch, telling._Batch, "_check_asked", lambda: other.tell(pulls[0].id, 1.0)
        )
        new = campaign.tell_many([(pull.id, 1.0) for pull in pulls]).new
        assert new + told[0].result().new == 3

    def test_a_void_is_undone_while_its_pull_is_told_again(self, two, monkeypatch):
        campaign, other = two
        pull = campaign.ask()[0]
        campaign.tell(pull.id, 1.0)
        campaign.void(pull.id, reason="wrong group")
        again = campaign.ask()[0]
        told = meanwhile(monkeypatch, changes, "delete", lambda: other.tell(again.id, 2.0))
        with suppress(sa.ConflictError):
            campaign.undo()
        with suppress(sa.PullError):
            told[0].result()
        assert campaign.store.check() == []

    def test_a_lapsed_pull_goes_to_one_of_two(self, two, monkeypatch):
        campaign, other = two
        campaign.ask(5, worker="slow", lease=0.01)
        time.sleep(0.1)
        theirs = meanwhile(monkeypatch, asking._Desk, "_lend", lambda: other.ask(2, worker="B"))
        mine = campaign._ask_with_care(2, "A", 1000.0, ())
        ids = [pull.id for pull in (*mine, *theirs[0].result())]
        assert len(set(ids)) == 4


def test_nothing_is_handed_out_of_a_stage_that_is_over(store):
    campaign = create(store)
    campaign.ask(2, worker="Ann")
    campaign.ask(2, worker="Bo", lease=0.01)
    time.sleep(0.1)
    sa.Campaign.open("crew", store=store).retire(["arm 1"], reason="left")
    for worker in ("Ann", "Cy"):
        for pull in campaign.ask(2, worker=worker):
            assert pull.id.startswith("p2-")
            assert "arm 1" not in pull.members


def test_what_is_told_while_it_is_verified_refutes_nothing(store, tmp_path, monkeypatch):
    campaign = create(store)
    pulls = campaign.ask(2000)
    results = totals_of(campaign, pulls, np.random.default_rng(1))
    due = campaign._settled().needed
    campaign.tell_many(results[:due])
    other, real, told = sa.Campaign.open("crew", store=store), sa.Campaign._dressed, []

    def dressed(self, *args):
        found = real(self, *args)
        if self is campaign and not told and store.path is not None:
            told.append(threading.Thread(target=other.tell_many, args=(results[due:],)))
            told[0].start()
            told[0].join(20)
        return found

    monkeypatch.setattr(sa.Campaign, "_dressed", dressed)
    assert campaign.verify().confirmed


def test_odd_numbers_are_refused_before_anything_happens(store):
    campaign = create(store)
    for lease in (0, 1e15, float("inf"), float("nan")):
        with pytest.raises(sa.SettingError, match="lease"):
            campaign.ask(lease=lease)
    assert campaign.open_pulls() == []
    campaign.tell(campaign.ask()[0].id, 1.0)
    for odd in ({"start": -1}, {"limit": -1}, {"start": 10**30}, {"limit": 1.5}, {"limit": "x"}):
        with pytest.raises(sa.SettingError, match=r"start|limit"):
            campaign.history(**odd)
    assert campaign.history(limit=0) == []


@pytest.mark.parametrize("name", ["what?mode=ro.db", "a%20b#c.db"])
def test_a_file_has_the_name_that_was_given(tmp_path, name):
    with sa.Store.open(tmp_path / name) as store:
        create(store)
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["~nobody-of-this-name/a.db", "a\0b.db"])
def test_what_is_no_name_of_a_file(name):
    with pytest.raises((sa.SettingError, sa.StoreError)):
        sa.Store.open(name)


def test_nothing_can_be_measured_without_some(store):
    campaign = create(store)
    assert campaign.ask(2, without=[f"arm {i}" for i in range(5)]) == []
    assert campaign.waiting.startswith("nothing else is left without arm 0, arm 1")
    assert campaign.waiting.endswith("the next groups have them")
