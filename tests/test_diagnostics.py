"""Diagnostics: p-values are uniform where nothing is amiss, and what is planted is found."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, kstest
from support import most_wrong

import superarm as sa
from superarm.diagnostics import checks
from superarm.diagnostics import fit as fits
from superarm.diagnostics.findings import Draft, Finding, decide
from superarm.diagnostics.fit import Fit

RUNS = 300
SURELY = 1e-5  # a KS test below this fails
N, ARMS, K, GROUPS = 240, 12, 4, 40
CHECKS = ["additive", "curvature", "scale", "outliers", "trend", "change"]
OFFSETS = ["offset: site", "offset: worker"]


def world(noise, seed):
    """Return a problem, pulls, totals and labels, in which all is as stated."""
    rng = np.random.default_rng(seed)
    groups = np.array([rng.choice(ARMS, K, replace=False) for _ in range(GROUPS)])
    rows = groups[rng.permutation(np.resize(np.arange(GROUPS), N))]
    labels = {"site": rng.choice(list("ABC"), N), "worker": rng.choice(list("abcdefgh"), N)}
    if noise == "gaussian":
        means = rng.normal(0, 1, ARMS)
        totals = means[rows].sum(axis=1) + 1.5 * rng.standard_normal(N)
        return sa.Problem(ARMS, K, sa.gaussian(1.5)), rows, totals, labels
    means = rng.uniform(0.05, 0.95, ARMS)  # variances of groups differ by a factor of several
    totals = (rng.random((N, K)) < means[rows]).sum(axis=1).astype(float)
    return sa.Problem(ARMS, K, sa.labels()), rows, totals, labels


def diagnosed(problem, rows, totals, labels=None, **more):
    return sa.diagnose(problem, rows.tolist(), totals.tolist(), labels=labels, **more)


@cache
def clean(noise):
    """Return the p-values of every check, and how many runs had a warning."""
    found, warned = {}, 0
    for seed in range(RUNS):
        result = diagnosed(*world(noise, seed))
        warned += bool(result.warnings)
        for finding in result.findings:
            found.setdefault(finding.check, []).append(finding.p_value)
    return found, warned


def uniform(values):
    return kstest(values, "uniform").pvalue > SURELY


# ---- clean data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [*CHECKS, *OFFSETS])
def test_p_values_are_uniform_under_normal_noise(check):
    assert uniform(clean("gaussian")[0][check])


@pytest.mark.parametrize("check", ["additive", "curvature", "trend", "change", *OFFSETS])
def test_p_values_are_uniform_for_labels(check):
    assert uniform(clean("labels")[0][check])


@pytest.mark.parametrize("check", ["outliers", "independence"])
@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_other_p_values_of_labels_are_not_too_small(check, level):
    """The binomial law is coarse, and the normal one an approximation: by a half at most."""
    small = sum(p <= level for p in clean("labels")[0][check])
    assert small <= binom.isf(1e-6, RUNS, 1.5 * level)


@pytest.mark.parametrize("noise", ["gaussian", "labels"])
def test_clean_data_are_warned_of_as_rarely_as_the_level_says(noise):
    assert clean(noise)[1] <= most_wrong(RUNS, 0.01)


@pytest.mark.parametrize("wrong", ["freedom", "scale", "correlation"])
def test_the_test_of_uniformity_can_fail(wrong, monkeypatch):
    """One slip in each law, and its p-values are no longer uniform."""
    check = {"freedom": "additive", "scale": "scale", "correlation": "change"}[wrong]
    if wrong == "freedom":
        monkeypatch.setattr(Fit, "lack_freedom", property(lambda self: len(self.rows) - 1))
    if wrong == "correlation":
        step = checks._greatest_step
        monkeypatch.setattr(
            checks, "_greatest_step", lambda G, *rest: step(np.diag(np.diagonal(G)), *rest)
        )
    values = []
    for seed in range(RUNS):
        problem, rows, totals, _ = world("gaussian", seed)
        if wrong == "scale":
            problem = sa.Problem(ARMS, K, sa.gaussian(1.42))
        values.append(diagnosed(problem, rows, totals)[check].p_value)
    assert not uniform(values)


def test_labels_of_unequal_variance_need_their_weights(monkeypatch):
    """Without weights, a diminishing return would be seen where variances follow the means."""
    problem = sa.Problem(ARMS, K, sa.labels())
    means = np.where(np.arange(ARMS) < 10, 0.98, 0.5)

    def alarms():
        count = 0
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            _, rows, _, _ = world("labels", seed)
            totals = (rng.random((N, K)) < means[rows]).sum(axis=1).astype(float)
            count += diagnosed(problem, rows, totals)["curvature"].p_value <= 0.05
        return count

    assert alarms() <= binom.isf(1e-6, RUNS, 0.05 * 1.5)
    monkeypatch.setattr("superarm.diagnostics.examination.Labels", lambda: None)
    assert alarms() > binom.isf(1e-6, RUNS, 0.05 * 1.5)


@pytest.mark.parametrize("noise", ["shared", "skewed", "small"])
def test_noise_of_which_little_is_stated_raises_few_alarms(noise):
    """Laws of one side, variances that follow the means, few pulls: still at most 5 % of runs."""
    model = {"shared": sa.labels(shared=True), "skewed": sa.total(0, 60), "small": sa.labels()}
    problem, warned = sa.Problem(ARMS, K, model[noise]), 0
    for seed in range(RUNS):
        _, rows, _, labels = world("labels", seed)
        rng = np.random.default_rng([seed, 3])
        if noise == "small":
            rows, labels = rows[:80], {kind: column[:80] for kind, column in labels.items()}
        means = rng.uniform(*{"small": (0.05, 0.95)}.get(noise, (0.93, 0.99)), ARMS)[rows]
        if noise == "skewed":
            totals = means.sum(axis=1) + np.minimum(50, rng.exponential(2, N))
        else:
            totals = (rng.random((len(rows), K if noise == "small" else 1)) < means).sum(axis=1)
        warned += bool(diagnosed(problem, rows, totals.astype(float), labels).warnings)
    assert warned <= most_wrong(RUNS, 0.05)


def test_a_total_far_off_is_only_a_note_where_the_noise_model_states_a_range():
    _, rows, totals, _ = world("gaussian", 2)
    totals = totals.copy()
    totals[30] += 15
    found = diagnosed(sa.Problem(ARMS, K, sa.total(-50, 50)), rows, totals)
    assert found.warnings == ()
    assert found.notes[0].startswith("One total is far off: pull 31 has")


# ---- planted faults ------------------------------------------------------------------------------


def synergy(rows, totals, labels, rng, unit):
    return totals + 3 * unit * ((rows == rows[0, 0]).any(1) & (rows == rows[0, 1]).any(1))


def bent(rows, totals, labels, rng, unit):
    fitted = totals - rest_of(design(rows), totals)
    return totals + 0.4 / unit * (fitted - fitted.mean()) ** 2


def wide(rows, totals, labels, rng, unit):
    return totals + unit * rng.standard_normal(N)


def slip(rows, totals, labels, rng, unit):
    totals = totals.copy()
    totals[rng.integers(N)] += 7 * unit
    return totals


def drift(rows, totals, labels, rng, unit):
    return totals + 1.5 * unit * np.arange(N) / N


def step(rows, totals, labels, rng, unit):
    return totals + unit * (np.arange(N) >= N // 3)


def by_site(rows, totals, labels, rng, unit):
    return totals + unit * (labels["site"] == "B")


def by_worker(rows, totals, labels, rng, unit):
    return totals + 1.6 * unit * (labels["worker"] == "c")


PLANTED = {
    "additive": synergy,
    "curvature": bent,
    "scale": wide,
    "outliers": slip,
    "trend": drift,
    "change": step,
    "offset: site": by_site,
    "offset: worker": by_worker,
}


def hits(noise, check, plant, runs=60):
    count = 0
    for seed in range(runs):
        problem, rows, totals, labels = world(noise, seed)
        rng = np.random.default_rng([seed, 1])
        totals = plant(rows, totals, labels, rng, 1.5 if noise == "gaussian" else 0.9)
        if noise == "labels":
            totals = np.clip(np.round(totals), 0, K)
        count += diagnosed(problem, rows, totals, labels)[check].beyond
    return count


@pytest.mark.parametrize("check", [*CHECKS, *OFFSETS])
def test_what_is_planted_is_found_under_normal_noise(check):
    assert hits("gaussian", check, PLANTED[check]) >= 48  # four of five


@pytest.mark.parametrize("check", ["trend", "change", *OFFSETS])
def test_what_is_planted_is_found_in_labels(check):
    assert hits("labels", check, PLANTED[check]) >= 48


def test_members_who_help_each_other_are_found_in_labels():
    """Two of moderate skill do everything together: with three or more repetitions of a group."""
    problem = sa.Problem(8, 3, sa.labels())
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = np.array([rng.permutation(8)[:3] for _ in range(30)])[np.resize(np.arange(30), 900)]
        pair = (rows == 0).any(1) & (rows == 1).any(1)
        chance = np.where(pair[:, None] & (rows < 2), 0.95, 0.4)
        totals = (rng.random(rows.shape) < chance).sum(axis=1).astype(float)
        result = diagnosed(problem, rows, totals)
        found += result["additive"].beyond
    assert found >= 32


def test_members_who_all_answer_the_same_question_are_not_independent():
    found = 0
    for seed in range(40):
        problem, rows, _, _ = world("labels", seed)
        rng = np.random.default_rng([seed, 2])
        easy = rng.random((N, 1))
        same = rng.random((N, 1)) < 0.5
        means = rng.uniform(0.1, 0.9, ARMS)[rows]
        draws = np.where(same, easy, rng.random((N, K)))
        result = diagnosed(problem, rows, (draws < means).sum(axis=1).astype(float))
        found += result["independence"].beyond
    assert found >= 38


def test_a_slip_of_the_pen_is_found_in_labels_by_the_group_that_cannot_fail():
    rng = np.random.default_rng(1)
    rows = np.array([rng.permutation(12)[:10] for _ in range(30)])[np.resize(np.arange(30), 600)]
    totals = (rng.random((600, 10)) < 0.95).sum(axis=1).astype(float)
    problem = sa.Problem(12, 10, sa.labels())
    assert not diagnosed(problem, rows, totals)["outliers"].beyond
    totals[123] = 1.0  # for 10
    result = diagnosed(problem, rows, totals)
    assert "pull 124 has 1, where 9." in result["outliers"].sentence
    assert [row["position"] for row in result.rows if row["outlier"]] == [124]


def test_a_change_and_offsets_are_where_they_were_planted():
    problem, rows, totals, _ = world("gaussian", 3)
    late = totals + 3.0 * (np.arange(N) >= 80)
    found = diagnosed(problem, rows, late)["change"]
    assert abs(int(found.details["from"].split()[1]) - 81) <= 10
    assert found.details["step"] == pytest.approx(3.0, abs=0.8)
    times = -np.arange(N)  # measured in the other direction
    found = diagnosed(problem, rows, late, times=times)["change"]
    assert found.details["step"] == pytest.approx(-3.0, abs=0.8)


def test_intervals_of_offsets_hold_together():
    """All of a kind at once with 95 %: under a true offset, in all but so many runs."""
    missed = 0
    for seed in range(RUNS):
        problem, rows, totals, labels = world("gaussian", seed)
        true = np.where(labels["site"] == "B", 1.0, 0.0)
        true -= true.mean()
        result = diagnosed(problem, rows, totals + true, labels)
        site = {name: true[labels["site"] == name][0] for name in "ABC"}
        missed += any(not o.low <= site[o.label] <= o.high for o in result.offsets["site"])
    assert missed <= most_wrong(RUNS, 0.05)


# ---- against the slow truth ----------------------------------------------------------------------


def design(rows):
    X = np.zeros((len(rows), ARMS))
    np.put_along_axis(X, rows, 1.0, axis=1)
    return X


def rest_of(X, y):
    return y - X @ np.linalg.lstsq(X, y, rcond=None)[0]


@pytest.fixture(params=["dense", "iterative"])
def path(request, monkeypatch):
    if request.param == "iterative":
        monkeypatch.setattr(fits, "_MOST_ARMS", 0)
    return request.param


def test_the_statistics_are_those_of_plain_least_squares(path):
    problem, rows, totals, labels = world("gaussian", 5)
    result = diagnosed(problem, rows, totals, labels)
    X = design(rows)
    rss = (rest_of(X, totals) ** 2).sum()
    groups, place = np.unique(X, axis=0, return_inverse=True)
    D = np.eye(len(groups))[place]
    pure, m = (rest_of(D, totals) ** 2).sum(), len(groups)
    F = ((rss - pure) / (m - ARMS)) / (pure / (N - m))
    assert result["additive"].statistic == pytest.approx(F)
    assert result["additive"].law == f"F({m - ARMS}, {N - m})"
    assert result["scale"].statistic == pytest.approx(pure / 1.5**2)
    t = np.arange(N)[:, None]
    full = (rest_of(np.hstack([X, t]), totals) ** 2).sum()
    trend = (rss - full) / (full / (N - ARMS - 1))
    assert result["trend"].statistic ** 2 == pytest.approx(trend)
    sites = (labels["site"][:, None] == np.array(list("ABC"))).astype(float)
    full = (rest_of(np.hstack([X, sites]), totals) ** 2).sum()
    F = ((rss - full) / 2) / (full / (N - ARMS - 2))
    assert result["offset: site"].statistic == pytest.approx(F)
    best = np.linalg.lstsq(np.hstack([X, sites]), totals, rcond=None)[0][ARMS:]
    shares = sites.mean(axis=0)
    offsets = [row.offset for row in result.offsets["site"]]
    assert offsets == pytest.approx(best - shares @ best)
    fitted = X @ np.linalg.lstsq(X, totals, rcond=None)[0]
    square = ((fitted - fitted.mean()) ** 2)[:, None]
    full = (rest_of(np.hstack([X, square]), totals) ** 2).sum()
    curve = (rss - full) / (full / (N - ARMS - 1))
    assert result["curvature"].statistic ** 2 == pytest.approx(curve)


def test_an_outlier_is_judged_by_the_fit_without_it(path):
    problem, rows, totals, _ = world("gaussian", 6)
    totals = totals.copy()
    totals[17] += 9.0
    result = diagnosed(problem, rows, totals)
    X, others = design(rows), np.arange(N) != 17
    theta = np.linalg.lstsq(X[others], totals[others], rcond=None)[0]
    s2 = (rest_of(X[others], totals[others]) ** 2).sum() / (N - 1 - ARMS)
    spread = 1 + X[17] @ np.linalg.inv(X[others].T @ X[others]) @ X[17]
    t = (totals[17] - X[17] @ theta) / np.sqrt(s2 * spread)
    loose = {"dense": 1e-9, "iterative": 0.03}[path]  # there, leverages are drawn
    assert result["outliers"].statistic == pytest.approx(t, rel=loose)
    assert result["outliers"].details["expected"] == pytest.approx(
        X[17] @ theta, rel=loose, abs=4 * loose
    )


def test_the_law_of_the_greatest_step_is_that_of_real_residuals():
    """Drawn from the information of the steps alone, it agrees with residuals drawn in full."""
    _, rows, _, _ = world("gaussian", 8)
    shares = []
    for seed in range(400):
        y = np.random.default_rng([seed, 5]).standard_normal(N)
        shares.append(diagnosed(sa.Problem(ARMS, K, sa.gaussian(1.0)), rows, y)["change"].p_value)
    assert uniform(shares)


# ---- properties ----------------------------------------------------------------------------------


def values(result):
    return [finding.p_value for finding in result.findings]


@pytest.mark.parametrize("change", ["rename", "shift", "scale", "within"])
def test_what_must_not_matter_does_not(change):
    problem, rows, totals, labels = world("gaussian", 9)
    before = values(diagnosed(problem, rows, totals, labels))
    if change == "rename":
        rows = np.random.default_rng(0).permutation(ARMS)[rows]
    if change == "shift":
        totals = totals + 1e6
    if change == "scale":
        totals = totals * 1e-9
        problem = sa.Problem(ARMS, K, sa.gaussian(1.5e-9))
    if change == "within":
        rows = rows[:, ::-1]
    assert values(diagnosed(problem, rows, totals, labels)) == pytest.approx(before, rel=1e-5)


def test_nothing_is_decided_by_the_checks():
    problem, rows, totals, labels = world("gaussian", 9)
    problem = sa.Problem(ARMS, K, sa.gaussian(1.5), epsilon=4.0)
    off = totals + 3.0 * (labels["site"] == "B")
    with_labels = sa.analyse(problem, rows.tolist(), off.tolist(), labels=labels)
    without = sa.analyse(problem, rows.tolist(), off.tolist())
    assert with_labels.verdict.warnings == with_labels.diagnostics.warnings != ()
    assert with_labels.verdict.certificate == without.verdict.certificate
    assert with_labels.verdict.answer == without.verdict.answer
    assert "Warning: Totals differ by site" in str(with_labels)


def test_holm_holds_the_level_for_all_checks_together():
    def draft(p):
        return Draft(Finding("x", 1.0, "", p, "calm"), "alarm")

    found = decide([draft(p) for p in (0.02, None, 0.004, 0.5, 0.02)], 0.05)
    assert [f.adjusted for f in found] == [
        pytest.approx(0.06),
        None,
        pytest.approx(0.016),
        0.5,
        pytest.approx(0.06),
    ]
    assert [f.sentence for f in found] == ["calm", "calm", "alarm", "calm", "calm"]


# ---- data that cannot tell -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pulls", "totals", "silent"),
    [
        ([[0], [1]], [1.0, 2.0], CHECKS),
        ([[0], [1], [0], [1]], [1.0, 2.0, 1.0, 2.0], [c for c in CHECKS if c != "scale"]),
        ([[0], [1]] * 20, [1.0, 2.0, 1.5, 2.5] * 10, ["additive", "curvature"]),
    ],
    ids=["no replicates", "no noise", "groups of one"],
)
def test_what_the_data_cannot_tell_is_said(pulls, totals, silent):
    result = sa.diagnose(sa.Problem(2, 1, sa.gaussian(1.0)), pulls, totals)
    assert [f.check for f in result.findings if f.p_value is None] == silent
    assert all(f.sentence and not f.beyond for f in result.findings if f.p_value is None)


def test_sites_that_measured_different_groups_cannot_be_compared():
    problem = sa.Problem(2, 1, sa.gaussian(1.0))
    totals = np.random.default_rng(1).standard_normal(40).tolist()
    result = sa.diagnose(problem, [[0], [1]] * 20, totals, labels={"site": ["A", "B"] * 20})
    assert result["offset: site"].p_value is None
    assert "cannot be told" in result["offset: site"].sentence
    assert [row.offset for row in result.offsets["site"]] == [None, None]
    three = sa.diagnose(
        problem, [[0], [1]] * 20, totals, labels={"site": ["A", "C", "A", "B"] * 10}
    )
    assert three["offset: site"].p_value is not None  # C and B can be compared, A with neither
    assert three.offsets["site"][0].offset is None


def test_hundreds_of_labels_are_put_together_when_rare():
    problem, rows, totals, _ = world("gaussian", 2)
    result = diagnosed(problem, rows, totals, {"worker": [f"w{i}" for i in range(N)]})
    assert result.offsets["worker"][-1].label == "(41 others)"


def test_a_sigma_too_large_is_a_note_and_no_warning():
    _, rows, totals, _ = world("gaussian", 2)
    result = diagnosed(sa.Problem(ARMS, K, sa.gaussian(3.0)), rows, totals)
    assert result.warnings == ()
    assert result.notes[0].startswith("The stated noise is larger than what is seen")
    bounded = diagnosed(sa.Problem(ARMS, K, sa.total(-50, 50)), rows, totals)
    assert bounded.notes == bounded.warnings == ()  # a range states no more than an upper end


def test_groups_of_different_sizes_and_less_than_full_rank():
    edges = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")]
    paths = sa.Paths(edges, "s", "t", directed=True)
    problem = sa.Problem(5, paths, sa.gaussian(1.0), direction="minimize")
    pulls = [[0, 2], [1, 3], [0, 4, 3]] * 30
    totals = np.random.default_rng(1).standard_normal(90)
    result = sa.diagnose(problem, pulls, totals.tolist(), labels={"site": ["A", "B"] * 45})
    assert result["trend"].law == "t(86)"
    assert result["offset: site"].p_value is not None


def test_everything_can_be_written_down():
    problem, rows, totals, labels = world("gaussian", 4)
    result = diagnosed(problem, rows, totals + 4 * (labels["site"] == "B"), labels)
    found = json.loads(result.to_json())
    assert found == json.loads(json.dumps(result.to_dict()))
    assert [f["check"] for f in found["findings"]] == [*CHECKS, *OFFSETS]
    assert "WARNING: offset: site" in str(result)
    assert str(result).startswith(
        f"240 totals of {result.groups} groups: 2 warnings."
    )  # offsets widen the spread
    assert "<td>yes</td>" in result._repr_html_()
    assert json.loads(json.dumps(result.rows))[0]["pull"] == "pull 1"
    with pytest.raises(KeyError):
        result["nothing"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"labels": {"site": ["A"]}}, "40 pulls need as many labels of kind 'site', not 1"),
        ({"labels": {"site": "A" * 40}}, "labels of kind 'site' must be a list"),
        ({"times": [1.0]}, "40 pulls need as many times, not 1"),
        ({"times": [float("nan")] * 40}, "a time must be a finite number"),
        ({"level": 0}, "the level must lie strictly between 0 and 1"),
    ],
)
def test_mistakes_are_named(more, says):
    with pytest.raises(sa.SettingError, match=says):
        sa.diagnose(sa.Problem(2, 1, sa.gaussian(1.0)), [[0], [1]] * 20, [0.0] * 40, **more)
