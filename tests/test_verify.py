"""Certificates worked out again: true ones are confirmed, others refuted with the reason."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from campaigns import MEANS, create, finished, measure
from support import PHASED, RULES

import superarm as sa
from superarm import reference
from superarm import reference_certified as plain
from superarm.campaign import verify_file
from superarm.campaign.transfer import digest

WIDE = sa.Problem(12, 3, sa.gaussian(1.0), delta=0.05)
WIDE_MEANS = [3.0, 2.5, 2.0, 1.6, *[0.1 * i for i in range(-8, 0)]]


@pytest.fixture
def store():
    with sa.Store.open(":memory:") as found:
        yield found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The export of a certified campaign, as text."""
    path = tmp_path_factory.mktemp("verify") / "crew.json"
    with sa.Store.open(":memory:") as store:
        finished(store).export(path)
    return path.read_text(encoding="utf-8")


def tampered(tmp_path, exported, change, *, rehash=True):
    found = json.loads(exported)
    change(found["content"])
    if rehash:
        found["sha256"] = digest(found["content"])
    path = tmp_path / "crew.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return verify_file(path)


# ---- what is true --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RULES, *PHASED])
def test_every_rule_is_confirmed(store, tmp_path, name):
    rule = {**RULES, **PHASED}[name]
    campaign = finished(store, rule, most=3_000, size=200)
    live = campaign.verify()
    campaign.export(tmp_path / "crew.json.gz")
    filed = verify_file(tmp_path / "crew.json.gz")
    for found in (live, filed):
        assert found.confirmed, str(found)
        assert (
            str(found.verdict) == str(campaign.verdict) or campaign.verdict.certificate.conditions
        )
        assert found.by == ("replay" if rule.name == "csar" else "reference")
        assert found.lines[-1].startswith("Confirmed")
        assert ("at least 1 - 0.05" in found.lines[-1]) == campaign.verdict.certified
        json.dumps(found.to_dict())


OTHERS = {
    "minimize": (sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5, direction="minimize"), None),
    "exact": (sa.Problem(8, 4, sa.gaussian(1.0)), None),
    "bounded": (sa.Problem(8, 4, sa.bounded(3.0, independent=True), epsilon=2.0), None),
    "budget": (sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5), sa.Certified(budget=300)),
    "planned": (
        sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5),
        sa.Certified(schedule=sa.Planned((111, 222, 333))),
    ),
    "dense": (
        sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5),
        sa.Certified(design=sa.Uniform("8n"), schedule=sa.Geometric(1.1)),
    ),
    "icb-planned": (
        sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5),
        sa.ICB(schedule=sa.Planned((400, 800, 1600))),
    ),
    "weighted": (
        sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5),
        sa.Exhaustive(design=sa.GOptimal()),
    ),
    "one-of-n": (sa.Problem(8, 1, sa.gaussian(1.0), epsilon=0.5), sa.SAQM()),
    "unknown": (sa.Problem(8, 4, sa.gaussian(), epsilon=0.5), None),
    "unknown-icb": (sa.Problem(8, 4, sa.gaussian(), epsilon=0.5), sa.ICB()),
    "unknown-focused": (sa.Problem(8, 4, sa.gaussian(), epsilon=0.5), sa.Focused()),
    "unknown-budget": (sa.Problem(8, 4, sa.gaussian(), epsilon=0.5), sa.Certified(budget=400)),
    "level": (sa.Problem(8, 4, sa.gaussian(1.0), epsilon=0.5), sa.Certified()),
    "matroid": (
        sa.Problem(
            8,
            sa.Partition(tuple("aabbccdd"), {g: 1 for g in "abcd"}),
            sa.gaussian(1.0),
            epsilon=0.5,
        ),
        sa.ICB(),
    ),
    "tree": (
        sa.Problem(
            8,
            sa.SpanningTrees([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 3), (2, 4)]),
            sa.gaussian(1.0),
            epsilon=0.5,
        ),
        sa.Exhaustive(),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_questions_are_confirmed_by_the_reference(store, name):
    problem, rule = OTHERS[name]
    means = MEANS + 1e6 if name == "level" else MEANS
    campaign = finished(store, rule, problem, most=6_000, size=300, means=means)
    found = campaign.verify()
    assert found.confirmed, str(found)
    assert found.by == "reference"
    assert campaign.verdict.certified


def test_phases_are_confirmed_with_their_eliminations(store):
    campaign = finished(store, sa.Focused(), WIDE, means=WIDE_MEANS, size=300)
    assert campaign.verdict.phase >= 2
    found = campaign.verify()
    assert found.confirmed, str(found)
    assert found.by == "reference"
    assert (
        sum("arms at the end of phase" in line for line in found.lines)
        == campaign.verdict.phase - 1
    )


@pytest.mark.parametrize("radius", ["calibrated", "adaptive"])
def test_what_the_reference_cannot_do_is_said(store, radius):
    if radius == "calibrated":
        campaign = finished(store, sa.Certified(radius=radius))
    else:
        problem = sa.Problem(8, 4, sa.labels(), epsilon=1.0)
        campaign = create(store, sa.Certified(radius=radius), problem)
        while pulls := campaign.ask(500):
            campaign.tell_many((p.id, float("arm" in p.members[0]) + len(p.id) % 3) for p in pulls)
    found = campaign.verify()
    assert found.confirmed
    assert found.by == "replay"
    assert f"the reference does not have the radius '{radius}'" in str(found)


def test_many_arms_are_replayed(store):
    problem = sa.Problem(400, 20, sa.gaussian(1.0), epsilon=50.0)
    found = finished(store, None, problem, means=np.linspace(0, 3, 400), size=5_000).verify()
    assert found.confirmed
    assert "400 arms are more than the 300" in str(found)


def test_three_hundred_arms_are_worked_out(store):
    problem = sa.Problem(300, 20, sa.gaussian(1.0), epsilon=20.0)
    campaign = finished(store, None, problem, means=np.linspace(0, 3, 300), size=5_000)
    found = campaign.verify()
    assert (found.confirmed, found.by) == (True, "reference"), str(found)


def test_changes_stand_as_conditions(store, tmp_path):
    campaign = measure(create(store), most=60)
    campaign.void("p1-4", reason="the clock stood still")
    measure(campaign)
    assert campaign.verdict.certified
    campaign.export(tmp_path / "crew.json")
    found = verify_file(tmp_path / "crew.json")
    assert found.confirmed
    assert "On condition" in found.lines[-1]
    assert "the clock stood still" in found.lines[-1]


def test_a_stage_after_a_retirement_rests_on_its_own_totals(store, tmp_path):
    campaign = measure(create(store, sa.Focused()), most=100)
    campaign.amend("p1-3", 4.0, reason="slip")
    campaign.retire(["arm 7"], reason="left")
    measure(campaign, seed=5)
    assert campaign.verdict.certified
    campaign.export(tmp_path / "crew.json")
    found = verify_file(tmp_path / "crew.json")
    assert found.confirmed
    assert any("without arm 7: what was measured before plays no part" in x for x in found.lines)


def test_voided_for_its_value_the_verdict_stands_without_a_certificate(store):
    campaign = measure(create(store), most=60)
    campaign.void("p1-4", reason="too high", because_of_value=True)
    measure(campaign)
    found = campaign.verify()
    assert found.confirmed
    assert "without a certificate" in found.lines[-1]


def test_an_unfinished_campaign_stands_as_it_is(store):
    campaign = create(store)
    assert campaign.verify().confirmed
    measure(campaign, most=100)
    found = campaign.verify()
    assert found.confirmed
    assert "without a certificate" in found.lines[-1]


def test_one_group_needs_no_total(store):
    found = create(store, problem=sa.Problem(3, 3, sa.labels())).verify()
    assert found.confirmed
    assert "nothing to measure" in str(found)


# ---- what is not ---------------------------------------------------------------------------------


def _drop(position):
    def change(content):
        i = content["results"]["position"].index(position)
        for column in content["results"].values():
            del column[i]

    return change


def _certificate(key, value):
    def change(content):
        content["verdict"]["certificate"][key] = value
        if key in ("look", "pulls", "epsilon"):
            content["verdict"][key] = value

    return change


def _total(position, by):
    def change(content):
        for i in range(position, position + 6):
            content["results"]["total"][i] += by * i

    return change


def _by_value(content):
    content["changes"].append(
        {
            "number": 1, "at": 1.0, "worker": "", "kind": "void", "serial": 1, "position": 2,
            "attempt": 1, "total": None, "target": None, "by_value": True, "reason": "too low",
            "names": [],
        }
    )  # fmt: skip
    columns = content["results"]
    i = columns["position"].index(2)
    for name, column in columns.items():
        column.append(2 if name == "attempt" else column[i])


def _answer(content):
    content["verdict"]["answer"][0] = "arm 0"


def _question(key, value):
    def change(content):
        content["problem"][key] = value
        if key in content["verdict"]["certificate"]:
            content["verdict"]["certificate"][key] = value
        if key == "epsilon":
            content["verdict"][key] = value

    return change


def _twice(content):
    for name, column in content["results"].items():
        column.append(2 if name == "attempt" else column[5])


def _groups(content):
    content["phases"][0]["members"][0] = [0, 1, 2, 7]


def _condition(content):
    content["verdict"]["certificate"]["conditions"] = ["nothing of note"]


def _hidden(content):
    content["verdict"]["certificate"] = None


def _no_verdict(content):
    content["verdict"] = "fine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_drop(7), "position 7 of phase 1 has no total that counts"),
        (_twice, "position 6 of phase 1 has no total that counts, or more than one"),
        (_certificate("epsilon", 0.1), "epsilon on the certificate is 0.1"),
        (_certificate("delta", 0.01), "delta on the certificate is 0.01"),
        (_certificate("pulls", 100), "looks at other times than planned"),
        (_certificate("look", 2), "looks at other times than planned"),
        (_certificate("look", 99), "looks at other times than planned"),
        (_certificate("sigma", 0.5), "scale of the noise on the certificate is 0.5"),
        (_certificate("noise", "labels"), "noise on the certificate"),
        (_certificate("bound", "magic"), "bound on the certificate"),
        (_total(3, 0.01), "the gap is said to be|the radius is said to be"),
        (_total(3, -40.0), "look 2 of phase 1 already, so that look 3 never took place"),
        (_answer, "the answer is said to be"),
        (_by_value, "voided a total because of its value"),
        (_question("delta", 0.01), "cannot be made again|do not give a certificate|said to"),
        (_question("epsilon", 0.1), "cannot be made again|do not give a certificate|said to"),
        (_groups, "not those that the seed gives"),
        (_condition, "conditions on the certificate are not"),
        (_hidden, "certificate, and it is left out"),
        (_no_verdict, "holds no verdict"),
    ],
)
def test_what_is_not_true_is_refuted(tmp_path, exported, change, said):
    import re

    found = tampered(tmp_path, exported, change)
    assert not found.confirmed
    assert found.lines[-1].startswith("Refuted: ")
    assert re.search(said, found.lines[-1]), found.lines[-1]
    assert "Confirmed" not in str(found)


def test_a_file_that_was_changed_is_refuted_by_its_hash(tmp_path, exported):
    found = tampered(tmp_path, exported, _total(3, 0.01), rehash=False)
    assert not found.confirmed
    assert found.verdict is None
    assert "its hash does not fit" in str(found)


def test_what_is_no_export_is_an_error(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(sa.DataError, match="no export of a campaign"):
        verify_file(tmp_path / "x.json")


def test_looking_when_it_looks_good_is_refuted(tmp_path, exported):
    """The certificate of a look between two planned ones, its figures all right otherwise."""

    def change(content):
        verdict = content["verdict"]
        verdict["pulls"] = verdict["certificate"]["pulls"] = verdict["pulls"] - 8

    assert "other times than planned" in tampered(tmp_path, exported, change).lines[-1]


def test_a_replay_that_went_wrong_is_seen_by_the_reference(store, monkeypatch):
    """With half its radius the library stops too early, and again so when it is replayed."""
    from superarm.levels import Levels

    honest = Levels.squares
    monkeypatch.setattr(Levels, "squares", lambda self, t, look: honest(self, t, look) / 4)
    campaign = finished(store)
    found = campaign.verify()
    assert not found.confirmed
    assert "the reference finds" in found.lines[-1]


def test_a_wrong_elimination_is_seen_by_the_reference(store, monkeypatch):
    campaign = finished(store, sa.Focused(), WIDE, means=WIDE_MEANS, size=300)
    honest = plain.decided

    def stricter(theta, arms, places, radius):
        return honest(theta, arms, places, 3 * radius)

    monkeypatch.setattr(plain, "decided", stricter)
    assert "an arm was decided" in campaign.verify().lines[-1]


def test_a_weaker_design_is_seen_by_the_reference(store, monkeypatch):
    from superarm.differences import Differences

    honest = Differences.squares
    monkeypatch.setattr(Differences, "squares", lambda self, d: honest(self, d) * 0.9)
    found = finished(store, sa.Certified()).verify()
    assert not found.confirmed


# ---- the reference by sorts ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_sorts_find_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    n, k = 9, int(rng.integers(1, 9))
    pulled = [tuple(sorted(rng.choice(n, k, replace=False).tolist())) for _ in range(60)]
    totals = rng.normal(size=60).tolist()
    if reference.indistinguishable(n, pulled):
        pytest.skip("these do not tell the arms apart")
    theta, W = reference.least_squares(n, pulled, totals)
    groups = {}
    for members, total in zip(pulled, totals, strict=True):
        groups.setdefault(members, []).append(total)
    A, found = plain.estimate(n, groups)
    np.testing.assert_allclose(found, theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(A, reference.design_matrix(n, pulled))
    levels = min(k, n - k)
    norms = plain.norms_of_levels(A, levels)
    for d in range(1, levels + 1):
        assert norms[d - 1] == pytest.approx(reference.norm_of_level(A, k, d))
    radii = [0.3 * (d + 1) for d in range(levels)]
    best, _ = reference.best_two(theta, k)
    ours = plain.level_sides(theta, best, 0.1, [r * s for r, s in zip(radii, norms, strict=True)])
    theirs = reference.certified_sides(theta, A, k, 0.1, radii)
    assert ours.radius - ours.gap == pytest.approx(theirs.radius - theirs.gap)
    ours = plain.icb_level_sides(theta, W, best, 0.1, 0.7)
    theirs = reference.icb_sides(theta, W, k, 0.1, 0.7)
    assert ours.radius - ours.gap == pytest.approx(theirs.radius - theirs.gap)
    radii = plain.sphere_radii(W, levels, 1.3)
    for members in reference.sets_of(n, k):
        x = reference.indicator(n, members) - reference.indicator(n, best)
        d = int(np.count_nonzero(x)) // 2
        if d:
            assert 1.3 * reference.norm(W, x) <= radii[d - 1] + 1e-12


@pytest.mark.parametrize("freedom", [1, 5, 60, 3_000, 200_000])
@pytest.mark.parametrize("looks", [None, 12])
def test_the_bound_on_sigma_is_the_same_by_integration(freedom, looks):
    from superarm.sigma import upper_sigma

    for delta in (0.005, 1e-6):
        ours = plain.sigma_bound(2.0 * freedom, freedom, delta, looks)
        assert ours == pytest.approx(upper_sigma(2.0 * freedom, freedom, delta, looks), rel=2e-7)


def test_unequal_counts_are_weighted_as_in_the_reference():
    n, blocks = 5, [(0, 1), (0, 2)]
    sets = reference.shifts(n, blocks)
    rng = np.random.default_rng(0)
    counts = [3 if i < 7 else 2 for i in range(10)]
    groups = {s: rng.normal(size=c).tolist() for s, c in zip(sets, counts, strict=True)}
    sums = [math.fsum(groups[s]) for s in sets]
    A, theta = reference.weighted_estimate(n, blocks, counts, sums)
    pairs = [(s, groups[s]) for s in sets]
    ours = plain.estimate_by_blocks(n, [pairs[:5], pairs[5:]])
    np.testing.assert_allclose(ours[0], A)
    np.testing.assert_allclose(ours[1], theta)
