"""Anything that people may do to a campaign, in any order, against a dictionary."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

import superarm as sa
from superarm.campaign import looks, standing
from superarm.tally import Tally

ARMS = list("abcdef")
WORKERS = st.sampled_from(["", "Ann", "Bo"])


class Machine(RuleBasedStateMachine):
    """Model: what each id was told, what was amended, what was voided, and by which change."""

    RULE: sa.Algorithm = sa.Certified()
    PROBLEM = sa.Problem(ARMS, 3, sa.gaussian(1.0), epsilon=0.4)
    ids = Bundle("ids")

    def __init__(self):
        super().__init__()
        self.store = sa.Store.open(":memory:")
        self.campaign = sa.Campaign.create("c", self.PROBLEM, self.RULE, store=self.store, rng=7)
        self.asked = {}  # id: members
        self.told = {}  # id: first total
        self.amends = []  # [number, id, total, stands]
        self.voids = []  # [number, id, stands]
        self.by_value = set()

    # ---- the model ----

    def mean(self, id):
        """Arms a, b, ... add 3, 2, 1, 0, ...: looks have something to decide."""
        return sum(max(0.0, 3.0 - ARMS.index(name)) for name in self.asked[id])

    def voided(self):
        return {id for _, id, stands in self.voids if stands}

    def counting(self):
        found = {id: total for id, total in self.told.items() if id not in self.voided()}
        for _, id, total, stands in self.amends:
            if stands and id in found:
                found[id] = total
        return found

    def latest(self, id):
        """Whether no later asking of the same position has a total."""
        head = "-".join(id.split("-")[:2])
        return [other for other in self.told if "-".join(other.split("-")[:2]) == head][-1] == id

    # ---- what people do ----

    @rule(
        target=ids, size=st.integers(1, 30), worker=WORKERS, away=st.sampled_from(["", "a", "bc"])
    )
    def ask(self, size, worker, away):
        pulls = self.campaign.ask(size, worker=worker, without=list(away))
        assert len({pull.id for pull in pulls}) == len(pulls) <= size
        for pull in pulls:
            assert pull.id not in self.told
            assert not set(away) & set(pull.members)
            assert self.asked.setdefault(pull.id, pull.members) == pull.members
        return tuple(pull.id for pull in pulls)

    @rule(ids=ids, seed=st.integers(0, 2**20), worker=WORKERS)
    def tell(self, ids, seed, worker):
        rng = np.random.default_rng(seed)
        totals = {id: round(self.mean(id) + float(rng.normal()), 3) for id in ids}
        fresh = {}
        for id, total in totals.items():
            if id in self.told:
                if self.told[id] != total:
                    with pytest.raises(sa.ConflictError):
                        self.campaign.tell(id, total, worker=worker)
                self.campaign.tell(id, self.told[id])
            elif self.known_open(id):
                fresh[id] = total
        if seed % 2:
            assert self.campaign.tell_many(fresh.items(), worker=worker).new == len(fresh)
        else:
            for id, total in fresh.items():
                assert self.campaign.tell(id, total, worker=worker).new == 1
        self.told.update(fresh)

    def known_open(self, id):
        """A pull that an undone void had asked for is gone."""
        return id in {pull.id for pull in self.campaign.open_pulls()} or not self.revoked(id)

    def revoked(self, id):
        parts = id.split("-")
        if len(parts) == 2:
            return False
        before = "-".join(parts[:2]) + ("" if parts[2] == "2" else f"-{int(parts[2]) - 1}")
        return before not in self.voided()

    @rule(ids=ids)
    def give_back(self, ids):
        self.campaign.give_back(ids)

    @rule(size=st.integers(1, 5))
    def lapse(self, size):
        pulls = self.campaign.ask(size, worker="late", lease=1e-9)
        for pull in pulls:
            self.asked.setdefault(pull.id, pull.members)
        time.sleep(1e-6)

    @precondition(lambda self: self.told)
    @rule(data=st.data(), total=st.floats(-5, 9).map(lambda x: round(x, 2)))
    def amend(self, data, total):
        id = data.draw(st.sampled_from(sorted(self.told)))
        if id in self.voided():
            with pytest.raises(sa.ConflictError):
                self.campaign.amend(id, total, reason="slip")
            return
        change = self.campaign.amend(id, total, reason="slip")
        self.amends.append([change.number, id, total, True])

    @precondition(lambda self: self.told)
    @rule(data=st.data(), by_value=st.booleans())
    def void(self, data, by_value):
        id = data.draw(st.sampled_from(sorted(self.told)))
        if id in self.voided():
            with pytest.raises(sa.ConflictError):
                self.campaign.void(id, reason="spilled")
            return
        change = self.campaign.void(id, reason="spilled", because_of_value=by_value)
        self.voids.append([change.number, id, True])
        if by_value:
            self.by_value.add(change.number)

    @rule()
    def undo(self):
        stand = [entry for entry in self.amends + self.voids if entry[-1]]
        if not stand:
            with pytest.raises(sa.CampaignError):
                self.campaign.undo()
            return
        last = max(stand, key=lambda entry: entry[0])
        if len(last) == 3 and not self.latest(last[1]):
            with pytest.raises(sa.ConflictError):
                self.campaign.undo()
            return
        assert self.campaign.undo().target == last[0]
        last[-1] = False

    @rule()
    def reopen(self):
        self.campaign = sa.Campaign.open("c", store=self.store)

    @precondition(lambda self: self.told)
    @rule()
    def verdict(self):
        self.campaign.verdict  # noqa: B018 - takes looks that are due

    # ---- what must always be so ----

    @invariant()
    def results_are_the_models(self):
        found = {result.id: result for result in self.campaign.history()}
        assert {id: result.first_total for id, result in found.items()} == self.told
        counting = self.counting()
        assert {i: r.total for i, r in found.items() if r.total is not None} == counting
        assert all(
            found[id].members == members for id, members in self.asked.items() if id in found
        )

    @invariant()
    def open_or_told_never_both(self):
        still = {pull.id for pull in self.campaign.open_pulls()}
        assert not still & set(self.told)

    def teardown(self):
        """The verdict is that of one at a time, fed what counts, in the order of the plan."""
        found = self.campaign.verdict
        one = sa.Identification(self.PROBLEM, self.RULE, rng=7)
        counting = self.counting()
        serials = self.serials()
        while asked := one.ask():
            pull = asked[0]
            head = f"p{serials.get(pull.phase)}-{pull.position}"
            there = [id for id in counting if "-".join(id.split("-")[:2]) == head]
            if not there:
                break
            assert len(there) == 1
            one.tell(pull.id, counting[there[0]])
        expected = one.verdict
        assert (found.answer, found.look, found.pulls, found.phase, found.done) == (
            expected.answer,
            expected.look,
            expected.pulls,
            expected.phase,
            expected.done,
        )
        tampered = any(n in self.by_value and stands for n, _, stands in self.voids)
        assert found.certified == (expected.certified and not tampered)
        self.fold()
        self.store.close()

    def serials(self):
        """Return the serials of the phases on the present course, by number."""
        with self.store.read() as connection:
            where = standing.standing(connection, self.campaign._id)
            way = sorted(standing.path(connection, where))
        return {number: serial for number, serial in enumerate(way, start=1)}

    def fold(self):
        """The tally that is kept is the fold of the history."""
        with self.store.read() as connection:
            where = standing.standing(connection, self.campaign._id)
            if where.look == 0:
                return
            phase = self.campaign._course.phase(connection, where)
            tally = Tally(phase.plan.size)
            totals = looks.totals_from(connection, where, 0)[: where.pulls]
            tally.add(phase.plan.order(0, where.pulls), totals)
            assert tally == looks.stored_tally(connection, where.id, where.serial)


class Phased(Machine):
    """With a rule of several phases, so that changes reach into phases that are closed."""

    RULE = sa.CSAR(accuracy=1.5)
    PROBLEM = sa.Problem(ARMS, 2, sa.gaussian(1.0), epsilon=0.4)


SHORT = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMachine = Machine.TestCase
TestMachine.settings = SHORT
TestPhased = Phased.TestCase
TestPhased.settings = SHORT
