"""Exports and what is read from them; what `check` finds in a store that was changed by hand."""

from __future__ import annotations

import gzip
import json
import os
import random

import pytest
from campaigns import PROBLEM, create, finished, measure
from sqlalchemy import text

import superarm as sa
from superarm.campaign.transfer import FORMAT, HEAD, digest, from_file


@pytest.fixture
def store():
    with sa.Store.open(":memory:") as found:
        yield found


def rich(store, name="crew"):
    """Return a campaign with something of everything, in two stages."""
    campaign = measure(create(store, sa.Focused(), name=name), most=60)
    campaign.void("p1-4", reason="slip")
    campaign.amend("p1-5", 5.5, reason="typed wrongly")
    campaign.void("p1-6", reason="slip too")
    campaign.undo(3)
    campaign.record(["arm 1"], 0.5, reason="a test")
    campaign.retire(["arm 0"], reason="left")
    measure(campaign, most=90, seed=9)
    campaign.ask(5, worker="Bo", without=["arm 3"])
    return campaign


def document(campaign, path):
    campaign.export(path)
    return json.loads(path.read_text(encoding="utf-8"))


def write(path, found, *, rehash=True):
    if rehash:
        found["sha256"] = digest(found["content"])
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


# ---- export and load -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_campaign_comes_back_whole(store, tmp_path, suffix):
    campaign = rich(store)
    path = tmp_path / f"crew{suffix}"
    campaign.export(path)
    with sa.Store.open(":memory:") as other:
        loaded = sa.Campaign.load(path, store=other)
        assert loaded.name == "crew"
        assert (loaded.created, loaded.seed) == (campaign.created, campaign.seed)
        assert (loaded.problem, loaded.algorithm) == (campaign.problem, campaign.algorithm)
        assert loaded.changes() == campaign.changes()
        assert loaded.history() == campaign.history()
        assert loaded.looks() == campaign.looks()
        assert loaded.verdict.to_dict() == campaign.verdict.to_dict()
        assert {p.id for p in loaded.open_pulls()} == {p.id for p in campaign.open_pulls()}
        assert other.check() == []
        assert str(measure(loaded).verdict) == str(measure(campaign).verdict)


def test_the_hash_does_not_depend_on_how_it_is_written(store, tmp_path):
    path = tmp_path / "crew.json"
    found = document(rich(store), path)
    path.write_text(json.dumps(found, indent=3), encoding="utf-8")
    assert from_file(path).name == "crew"
    packed = tmp_path / "packed"  # known by its first bytes, not by its name
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert from_file(packed).name == "crew"


def test_a_name_that_is_taken_is_refused(store, tmp_path):
    path = tmp_path / "crew.json"
    measure(create(store), most=9).export(path)
    with pytest.raises(sa.CampaignError, match="load it by another name"):
        sa.Campaign.load(path, store=store)
    assert sa.Campaign.load(path, store=store, name="other").name == "other"
    assert store.names() == ["crew", "other"]


def test_an_export_is_there_as_a_whole_or_not_at_all(store, tmp_path, monkeypatch):
    path = tmp_path / "crew.json"
    path.write_text("what was there", encoding="utf-8")
    campaign = measure(create(store), most=9)

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(sa.DataError, match="cannot be written: No space left"):
        campaign.export(path)
    assert path.read_text(encoding="utf-8") == "what was there"
    assert os.listdir(tmp_path) == ["crew.json"]
    with pytest.raises(sa.DataError, match="cannot be written"):
        campaign.export(tmp_path / "no such folder" / "crew.json")


def test_every_bit_counts(store, tmp_path):
    path = tmp_path / "crew.json"
    measure(create(store), most=20).export(path)
    good = path.read_text(encoding="utf-8")
    for old, new in (("arm 3", "arm 9"), ('"attempt":[1', '"attempt":[2'), ("Ann", "Bob")):
        assert old in good
        path.write_text(good.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(sa.DataError, match="was changed after it was written"):
            sa.Campaign.load(path, store=store, name="x")


def test_what_is_no_export_is_said_so(store, tmp_path):
    path = tmp_path / "x.json"
    for data, said in (
        (b"", "no export"),
        (b"{}", "no export"),
        (b"[1]", "no export"),
        (b"\xff\xfe", "no export"),
        (b'{"a": NaN}', "no export"),
        (b"[" * 100_000, "no export"),
        (gzip.compress(b"{}" * 999)[:20], "cannot be read|damaged"),
        (json.dumps({HEAD: FORMAT + 1}).encode(), "is of format 2"),
        (json.dumps({HEAD: FORMAT}).encode(), "has no content"),
        (json.dumps({HEAD: FORMAT, "content": {}, "sha256": digest({})}).encode(), "no export"),
    ):
        path.write_bytes(data)
        with pytest.raises(sa.DataError, match=said):
            sa.Campaign.load(path, store=store)
    with pytest.raises(sa.DataError, match="No such file"):
        sa.Campaign.load(tmp_path / "nothing.json", store=store)
    assert store.names() == []


def _without_last(content):
    for column in content["results"].values():
        column.pop()


def _set(*path):
    *way, value = path

    def change(content):
        for key in way[:-1]:
            content = content[key]
        content[way[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_last, "neither told nor open"),
        (_set("results", "total", 3, 1e101), "1e\\+100"),
        (_set("results", "total", 3, "7"), "'total' of results"),
        (_set("results", "total", 3, True), "'total' of results"),
        (_set("results", "position", 3, -1), "'position' of results"),
        (_set("results", "position", 3, 2), "two totals"),
        (_set("results", "position", 3, 10**9), "never handed out"),
        (_set("results", "serial", 59, 4), "phase 4 are there, and the phase is not"),
        (_set("results", "worker", []), "differ in length"),
        (_set("changes", 0, "number", 2), "changes are missing"),
        (_set("changes", 0, "position", 9_999), "not there"),
        (_set("changes", 0, "kind", "erase"), "of no kind"),
        (_set("changes", 3, "target", 2), "does not stand"),
        (_set("changes", 0, "by_value", 0), "because of a value"),
        (_set("phases", 0, "fingerprint", "0" * 24), "cannot be made again"),
        (_set("phases", 0, "stage", 2), "first phases of the stages"),
        (_set("phases", []), "first phases of the stages"),
        (_set("serial", 1), "to be the current one"),
        (_set("seed", "4"), "cannot be made again"),
        (_set("rule", "class", "os.system"), "no class that this version"),
        (_set("problem", "delta", 2.0), "delta must lie"),
        (_set("problem", {}), "no question"),
        (_set("open", "attempt", 0, 7), "told already"),
        (_set("created", 1e300), "in the place of a time"),
        (_set("name", ""), "must be a text"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_hash_put_right(store, tmp_path, change, said):
    path = tmp_path / "crew.json"
    found = document(rich(store), path)
    change(found["content"])
    write(path, found)
    with sa.Store.open(":memory:") as other:
        with pytest.raises(sa.SuperarmError, match=said):
            sa.Campaign.load(path, store=other)
        assert other.names() == []


def test_no_damage_leads_to_a_traceback(store, tmp_path):
    """Any value of a file in the place of any other: refused, or loaded and well."""
    path = tmp_path / "crew.json"
    found = document(measure(create(store, sa.Focused()), most=30), path)
    good = json.dumps(found)
    rng = random.Random(1)
    strange = [None, -1, 10**30, 1.5, "", "x", [], {}, True, [[]], {"class": "TopK"}]
    places = list(_places(found["content"]))
    with sa.Store.open(":memory:") as other:
        for _ in range(150):
            bad = json.loads(good)
            *way, last = rng.choice(places)
            part = bad["content"]
            for key in way:
                part = part[key]
            part[last] = rng.choice(strange)
            write(path, bad)
            for name in other.names():
                sa.Campaign.open(name, store=other).delete()
            try:
                sa.Campaign.load(path, store=other)
            except sa.SuperarmError:
                assert other.names() == []
            else:
                assert other.check() == []


def _places(content, way=()):
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, part in pairs:
        yield (*way, key)
        if isinstance(part, dict | list) and key not in ("members", "verdict"):
            yield from _places(part, (*way, key))


# ---- check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE result SET total = total + 1 WHERE position = 3", "its tally is not the sum"),
        ("DELETE FROM result WHERE position = 3", "position 3 was handed out"),
        ("UPDATE result SET attempt = 2 WHERE position = 3", None),
        (
            "INSERT INTO open_pull VALUES (:id,1,3,2,'',0,0,'')",
            "position 3 has a total that counts, and is open too",
        ),
        ("UPDATE phase SET pulls = pulls + 1, look = look", "stands at look"),
        ("UPDATE phase SET look = look - 1", "stands at look"),
        ("UPDATE phase SET frontier = frontier - 50", "never handed out"),
        ("UPDATE phase SET fingerprint = 'x'", "cannot be made again"),
        ("UPDATE phase SET tally = x'00'", "cannot be read"),
        ("UPDATE phase SET needed = 10", "waits for 10 pulls"),
        ("UPDATE campaign SET state = 'measuring'", "is said to be measuring, and is certified"),
        ("UPDATE campaign SET serial = 9", "phase 9 is to be the current one"),
        ("UPDATE campaign SET seed = 'x'", "cannot be read"),
        ("UPDATE question SET rule = '{'", "cannot be read"),
        ("UPDATE question SET problem = '{}'", "no question"),
        (
            "INSERT INTO change VALUES (:id,1,0,'','void',1,9999,1,NULL,NULL,0,'x','[]')",
            "about a total that is not there",
        ),
        (
            "INSERT INTO open_pull VALUES (:id,1,3,1,'',0,0,'')",
            "the open pull of position 3 is told already",
        ),
    ],
)
def test_what_was_changed_by_hand_is_found(store, sql, said):
    id = finished(store)._id
    assert store.check() == []
    with store.write() as connection:
        connection.execute(text(sql.replace(":id", str(id))))
    found = store.check()
    if said is None:  # harmless: the sum is the same
        return
    assert any(said in line for line in found), found
    assert all(line.startswith("campaign 'crew': ") and "backup" in line for line in found)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE phase SET origin_look = 9 WHERE serial = 2", "began from other totals"),
        ("UPDATE phase SET origin = x'00' WHERE serial = 2", "cannot be read"),
        ("UPDATE phase SET origin = tally WHERE serial = 3", "began from other totals"),
        ("UPDATE campaign SET serial = 2", "stands at phase 2"),
    ],
)
def test_where_a_phase_began_is_checked(store, sql, said):
    finished(store, sa.Focused(), problem=WIDE, means=WIDE_MEANS)
    assert store.check() == []
    with store.write() as connection:
        connection.execute(text(sql))
    assert any(said in line for line in store.check()), store.check()


@pytest.mark.parametrize("where", [0, 20, 3_000])
def test_a_damaged_file_is_said_so(tmp_path, where):
    path = tmp_path / "store.db"
    with sa.Store.open(path) as store:
        for name in ("crew", "other"):
            finished(store, name=name)
    data = bytearray(path.read_bytes())
    data[where : where + 2_000] = random.Random(where).randbytes(2_000)
    path.write_bytes(data)
    try:
        with sa.Store.open(path, create=False) as store:
            found = store.check()
    except sa.StoreError as error:
        found = [str(error)]
    assert found
    assert "damaged" in " ".join(found) or "backup" in " ".join(found)


def test_no_damaged_page_leads_to_a_traceback(tmp_path):
    path = tmp_path / "store.db"
    with sa.Store.open(path) as store:
        finished(store)
    data = path.read_bytes()
    said = 0
    for start in range(0, len(data), 4096):
        bad = bytearray(data)
        bad[start : start + 4096] = random.Random(start).randbytes(4096)
        path.write_bytes(bad)
        try:
            with sa.Store.open(path, create=False) as store:
                said += bool(store.check())
        except sa.StoreError:
            said += 1
    assert said == len(data) // 4096


def test_results_that_come_back_to_an_abandoned_phase(store, tmp_path):
    """An amend may lead to another second phase; undone, the first one goes on where it was."""
    campaign = finished(store, sa.Focused(), problem=WIDE, means=WIDE_MEANS)
    if len({look.phase for look in campaign.looks()}) < 2:
        pytest.fail("this case needs two phases")
    before = str(campaign.verdict)
    first = campaign.history(limit=1)[0]
    campaign.amend(first.id, first.first_total + 30.0, reason="slip")
    assert store.check() == []
    led_nowhere = {r.phase: r.state for r in campaign.history() if r.phase in (2, 3)}
    assert set(led_nowhere.values()) <= {"not used"}
    measure(campaign, means=WIDE_MEANS)
    assert store.check() == []
    assert campaign.verify().confirmed
    campaign.export(tmp_path / "crew.json")
    with sa.Store.open(":memory:") as other:
        loaded = sa.Campaign.load(tmp_path / "crew.json", store=other)
        assert other.check() == []
        for one in (campaign, loaded):
            one.undo()
            assert str(one.verdict) == before
        assert loaded.history() == campaign.history()
        assert other.check() == []
    assert store.check() == []


WIDE = sa.Problem(12, 3, sa.gaussian(1.0), delta=0.05)
WIDE_MEANS = [3.0, 2.5, 2.0, 1.6, *[0.1 * i for i in range(-8, 0)]]


def test_the_question_of_the_tests_is_what_it_was():
    assert (PROBLEM.n, PROBLEM.k) == (8, 4)


def test_half_a_character_in_a_file_is_said(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text('{"superarm campaign": 1, "content": {"a": "\\ud800"}, "sha256": "x"}')
    with pytest.raises(sa.DataError, match="cannot be kept as text"):
        sa.Campaign.load(path, store=":memory:")
