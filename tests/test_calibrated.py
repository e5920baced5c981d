"""The calibrated radius: against a slow simulation from the definition, its cache, its limits."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest
from support import most_wrong

import superarm as sa
from superarm import calibration
from superarm.algorithms.radii import phase_radius
from superarm.circulant import Circulant
from superarm.cyclic_plan import CyclicPlan
from superarm.estimate import gram
from superarm.levels import Calibrated, Levels, level_logs
from superarm.tally import Tally


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Nobody's cache is touched, nothing is remembered, and simulations are short."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "_EFFORT", 1e6)
    calibration._cached.cache_clear()
    yield tmp_path / "superarm" / "calibration"
    calibration._cached.cache_clear()


def problem_of(n, k, **changed):
    return sa.Problem(n, k, sa.gaussian(1.0), **{"epsilon": 0.5, "delta": 0.1} | changed)


def radius_of(n, k, rule=None, **changed):
    """Return the problem, the first phase and its radius."""
    problem = problem_of(n, k, **changed)
    rule = rule or sa.Certified(radius="calibrated")
    phase = rule.first(problem, 3)
    return problem, phase, rule.radius_of(problem, phase)


# ---- the quantile --------------------------------------------------------------------------------


def exceeded(n, k, phase, times, radii, runs, seed):
    """Count runs in which any set is beyond its radius at any look, by definition.

    Totals are noise alone; errors are dense least squares; M* is any set; all sets are gone over.
    """
    rng = np.random.default_rng(seed)
    rows = phase.plan.members(slice(None))
    x = np.zeros((len(rows), n))
    np.put_along_axis(x, rows, 1.0, axis=1)
    solve = np.linalg.pinv(x)
    sets = np.array(
        [[float(i in s) for i in range(n)] for s in itertools.combinations(range(n), k)]
    )
    level = (k - sets @ sets.T).round().astype(int)
    total, before, bad = np.zeros((runs, len(rows))), 0, np.zeros(runs, dtype=bool)
    truth = rng.integers(len(sets), size=runs)
    for t, widths in zip(times, radii, strict=True):
        cycles = t // len(rows)
        total += math.sqrt(cycles - before) * rng.standard_normal(total.shape)
        before = cycles
        values = total / cycles @ solve.T @ sets.T
        excess = values - values[np.arange(runs), truth][:, None]
        bad |= (excess > np.append(0.0, widths)[level[truth]] + 1e-9).any(axis=1)
    return int(bad.sum())


@pytest.mark.parametrize(("n", "k", "epsilon"), [(7, 3, 0.5), (8, 3, 0.5), (6, 2, 0.0)])
def test_radii_are_exceeded_about_as_often_as_delta_says(n, k, epsilon):
    """7 and 3 have a difference set; for 8 and 3 the eigenvalues differ. 0.0: level 1 alone."""
    problem, phase, radius = radius_of(n, k, epsilon=epsilon)
    assert isinstance(radius, Calibrated)
    times = sorted(radius.times)
    assert len(times) > 10
    radii = [radius.widths(t, 1, phase.information(t), k) for t in times]
    if epsilon == 0:
        assert len(radii[0]) == 1
        radii = [np.append(r, np.inf) for r in radii]
    runs = 4000
    bad = exceeded(n, k, phase, times, radii, runs, 5)
    assert bad <= most_wrong(runs, problem.delta)
    assert bad >= problem.delta / 2 * runs
    few = 400  # and this test would see that radii are too small
    smaller = [0.7 * r for r in radii]
    assert exceeded(n, k, phase, times, smaller, few, 6) > most_wrong(few, problem.delta)


@pytest.mark.parametrize("replications", [4000, 20_000])
@pytest.mark.parametrize("delta", [0.3, 0.1, 0.01, 0.005])
def test_exceedances_obey_clopper_and_pearson(replications, delta):
    eta = 0.02 * delta
    allowed = calibration.exceedances(replications, delta)

    def bound(e):
        return binomtest(e, replications, alternative="less").proportion_ci(1 - eta).high

    assert bound(allowed) <= delta - eta < bound(allowed + 1)


@pytest.mark.parametrize("delta", [0.1, 0.01, 1e-3, 2e-4])
def test_there_are_replications_enough_for_a_small_delta(delta):
    """With 4,000 of them, 0.001 is out of reach: even the greatest may be below the quantile."""
    least = calibration.least_replications(delta)
    allowed = calibration.exceedances(least, delta)
    assert beta.ppf(1 - 0.02 * delta, allowed + 1, least - allowed) <= 0.98 * delta


def test_a_small_delta_is_simulated_by_as_many_as_it_takes():
    flat = np.ones(3)
    found = calibration.calibrate(flat, 4, 1, [1, 2], 4, 1, 1e-3)
    assert found.replications >= calibration.least_replications(1e-3) > 20_000


def test_a_delta_beyond_simulation_gets_the_levels_radius():
    problem, _, radius = radius_of(7, 3, delta=1e-6)
    assert isinstance(radius, Levels)
    assert radius.rho == sa.Certified().constant(problem, 1e-6).rho


# ---- the cache -----------------------------------------------------------------------------------


def quantiles(**changed):
    settings = {"eigenvalues": np.array([9.0, 2.0, 1.5, 2.0]), "n": 7, "k": 3, "cycles": [1, 2, 4]}
    settings |= {"pulls": 7, "levels": 3, "delta": 0.1} | changed
    calibration._cached.cache_clear()  # as in another process
    return calibration.calibrate(**settings)


def test_the_second_call_reads_what_the_first_wrote(cache, monkeypatch):
    first = quantiles()
    (path,) = cache.iterdir()
    monkeypatch.setattr(calibration, "_simulated", None)  # would raise
    assert np.array_equal(quantiles().b, first.b)
    changed = json.loads(path.read_text())
    changed["b"] = [9.0, 8.0, 7.0]
    path.write_text(json.dumps(changed))
    assert quantiles().b.tolist() == [9.0, 8.0, 7.0]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "17",
        '{"b": [1, 1, 1]}',
        '{"key": {}, "b": [1, 1, 1]}',
        b"\xff\xfe",
        ("b", [1.0, 1.0]),
        ("b", [1.0, 1.0, math.nan]),
        ("b", [1.0, 1.0, 0.0]),
        ("b", None),
        ("key", None),
    ],
)
def test_a_file_that_is_gone_or_spoilt_is_made_anew(cache, text):
    first = quantiles()
    (path,) = cache.iterdir()
    good = path.read_bytes()
    if text is None:
        path.unlink()
    elif isinstance(text, tuple):
        path.write_text(json.dumps(json.loads(good) | {text[0]: text[1]}))
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert np.array_equal(quantiles().b, first.b)
    assert path.read_bytes() == good


def test_a_folder_that_cannot_be_written_is_harmless(tmp_path, monkeypatch):
    first = quantiles()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert np.array_equal(quantiles().b, first.b)
    assert (tmp_path / "file").read_text() == "in the way"


def test_another_question_is_another_file(cache):
    quantiles()
    for changed in (
        {"delta": 0.05},
        {"levels": 2},
        {"cycles": [1, 2, 5]},
        {"k": 4},
        {"eigenvalues": np.array([9.0, 1.0, 1.5, 2.0])},
    ):
        before = len(list(cache.iterdir()))
        quantiles(**changed)
        assert len(list(cache.iterdir())) == before + 1
    before = len(list(cache.iterdir()))
    twice = quantiles(eigenvalues=2 * np.array([9.0, 2.0, 1.5, 2.0]))  # the scale is no matter
    assert len(list(cache.iterdir())) == before
    assert twice.scale == pytest.approx(2 * quantiles().scale)


# ---- where it holds ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [sa.Certified, sa.Focused])
@pytest.mark.parametrize("noise", [sa.labels(), sa.bounded(1.0)], ids=str)
def test_it_is_for_normal_noise_only(rule, noise):
    problem = sa.Problem(6, 2, noise, epsilon=0.5)
    with pytest.raises(sa.ProblemError, match=r"normal noise only.*choose radius levels"):
        rule(radius="calibrated").first(problem, 1)
    rule().first(problem, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 100}, "a budget needs the radius levels"),
        ({"design": sa.Uniform()}, "needs a cyclic design and looks at cycles"),
        ({"schedule": sa.Geometric(1.1)}, "needs a cyclic design and looks at cycles"),
        ({"schedule": sa.Every()}, "needs a cyclic design and looks at cycles"),
    ],
)
def test_settings_that_it_does_not_hold_for_are_refused(settings, message):
    with pytest.raises(sa.SettingError, match=message):
        sa.Certified(radius="calibrated", **settings)


def test_there_are_two_radii():
    for rule in (sa.Certified, sa.Focused):
        with pytest.raises(sa.SettingError, match="radius must be one of levels, calibrated"):
            rule(radius="mine")


@pytest.mark.parametrize(("n", "k"), [(7, 3), (8, 3), (20, 4), (31, 6)])
@pytest.mark.parametrize("epsilon", [0.5, 0.0])
def test_it_is_below_the_levels_radius(n, k, epsilon, monkeypatch):
    """With too few replications, the margin for them would be greater than what is gained."""
    monkeypatch.setattr(calibration, "_EFFORT", 4e6)
    problem, phase, radius = radius_of(n, k, epsilon=epsilon)
    levels = sa.Certified().radius_of(problem, phase)
    for t in sorted(radius.times):
        info = phase.information(t)
        assert (radius.widths(t, 1, info, k) < levels.widths(t, 1, info, k)).all()


def test_beyond_the_calibrated_looks_it_is_the_levels_radius():
    problem, phase, radius = radius_of(8, 3)
    last, cycle = max(radius.times), phase.plan.size
    logs = level_logs(8, 3, 0.03 * problem.delta, pairs=False)
    tail = Levels(1.0, logs, rho=last / (2 * float(logs.mean()) + 1))
    for t in (min(radius.times) - cycle, last + cycle, 10 * last // cycle * cycle):
        if t < cycle:
            continue
        info = phase.information(t)
        assert radius.widths(t, 1, info, 3) == pytest.approx(tail.widths(t, 1, info, 3))
    info = phase.information(last)
    assert (radius.widths(last, 1, info, 3) < tail.widths(last, 1, info, 3)).all()


@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 2), (8, 2), (8, 3), (12, 1), (12, 7)])
def test_calibrated_looks_are_looks_of_the_phase_and_go_on_to_where_a_stop_is_certain(n, k):
    """Up to an epsilon for which that is so at the first look."""
    for epsilon in (0.2, 0.5, 5.0):
        _, phase, radius = radius_of(n, k, epsilon=epsilon)
        looks = {phase.looks.time(j) for j in range(1, 200)}
        assert radius.times <= looks
        last = max(radius.times)
        assert radius.widths(last, 1, phase.information(last), k).max() <= epsilon


# ---- runs ----------------------------------------------------------------------------------------


class Halved(sa.Certified):
    """Half the radius."""

    def radius_of(self, problem, phase):
        radius = super().radius_of(problem, phase)
        tail = dataclasses.replace(radius.tail, sigma=radius.sigma / 2)
        return dataclasses.replace(radius, sigma=radius.sigma / 2, tail=tail)


HARD = {
    "k=1": (2, 1, (0.301, 0.0), 0.3),
    "k=n-1": (3, 2, (0.301, 0.301, 0.0), 0.3),
    "ties": (5, 2, (0.41, 0.41, 0.41, 0.0, 0.0), 0.4),
}


def wrong(rule, kind, runs, delta):
    n, k, means, epsilon = kind
    problem = problem_of(n, k, epsilon=epsilon, delta=delta)
    world = sa.environment(means, problem.noise)
    found = [sa.simulate(problem, rule, world, rng=seed) for seed in range(runs)]
    assert all(run.verdict.certified for run in found)
    return sum(run.wrong(epsilon) for run in found)


@pytest.mark.parametrize("kind", HARD.values(), ids=HARD)
def test_wrong_at_most_delta(kind):
    runs = 200
    assert wrong(sa.Certified(radius="calibrated"), kind, runs, 0.2) <= most_wrong(runs, 0.2)


def test_a_halved_radius_is_caught():
    runs = 400
    assert wrong(Halved(radius="calibrated"), HARD["k=1"], runs, 0.1) > most_wrong(runs, 0.1)


def test_the_certificate_says_so_and_takes_fewer_pulls():
    problem = problem_of(20, 4, epsilon=0.3)
    world = sa.environment(np.linspace(0, 1, 20), problem.noise)
    pulls = {}
    for kind in ("levels", "calibrated"):
        for seed in range(5):
            run = sa.simulate(problem, sa.Certified(radius=kind), world, rng=seed)
            assert run.verdict.certified
            assert kind in run.verdict.certificate.bound
            pulls[kind] = pulls.get(kind, 0) + run.pulls
    assert pulls["calibrated"] < 0.9 * pulls["levels"]


def test_arms_are_put_to_places_by_the_seed_and_blocks_are_always_the_same():
    rule, problem = sa.Certified(radius="calibrated"), problem_of(12, 4)
    one, other = (rule.first(problem, seed).plan for seed in (1, 2))
    assert np.array_equal(one.blocks, other.blocks)
    assert not np.array_equal(one.arms, other.arms)
    assert one.digest != other.digest
    assert sorted(one.arms) == sorted(other.arms) == list(range(12))


# ---- plans with arms at places, and fillers ------------------------------------------------------

PLANS = {
    "relabelled": ([[0, 1, 3], [0, 2, 3]], 7, [3, 0, 6, 1, 5, 2, 4], []),
    "even": ([[0, 1, 3], [0, 1, 4]], 8, [7, 3, 0, 6, 1, 5, 2, 4], []),
    "fillers": ([[0, 1], [0, 2]], 9, [8, 0, 6, 3, 5], [4, 1]),
    "one filler": ([[0]], 5, [4, 0, 2], [3]),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_agree_with_dense_formulas(name):
    blocks, n, arms, filler = PLANS[name]
    plan = CyclicPlan(
        np.array(blocks), n, arms=np.array(arms), filler=np.array(filler, dtype=np.int64)
    )
    m, rng = len(arms), np.random.default_rng(1)
    rows = plan.members(slice(None))
    for index, row in enumerate(rows):  # by definition
        block, shift = divmod(index, m)
        at = [arms[(p + shift) % m] for p in blocks[block]]
        assert row.tolist() == sorted(at + filler) == plan.members(index).tolist()
    assert len(rows) == plan.size
    assert rows.shape[1] == plan.k
    means = rng.normal(size=n)
    assert plan.gather(means) == pytest.approx(means[rows].sum(axis=1))

    placed, others = np.sort(arms), np.setdiff1d(np.arange(n), arms)
    weights = np.array([3.0, 2.0][: len(blocks)])
    info = Circulant(plan, weights)
    counts = np.repeat(weights.astype(np.int64), m)
    dense = gram(rows, counts, n)[np.ix_(placed, placed)]
    inverse = np.linalg.inv(dense)
    assert info.inverse() == pytest.approx(inverse)
    assert info.scaled(5).inverse() == pytest.approx(inverse / 5)
    assert info.diagonal()[placed] == pytest.approx(np.diag(inverse))
    b = rng.normal(size=n)
    assert info.solve(b)[placed] == pytest.approx(inverse @ b[placed])
    assert info.scaled(5).solve(b)[placed] == pytest.approx(inverse @ b[placed] / 5)
    for found in (info.diagonal(), info.solve(b)):
        assert np.isnan(found[others]).all()

    tally, x = Tally(plan.size), np.zeros((len(rows), m))
    totals = means[rows].sum(axis=1) + rng.normal(size=len(rows))
    for index, count in enumerate(counts):
        for _ in range(count):
            tally.add(index, float(totals[index]))
        x[index] = np.isin(placed, rows[index])
    estimate = info.estimate(plan, tally)
    least = np.linalg.solve(dense, x.T @ (counts * totals))
    found = estimate.centred[placed]
    assert np.isnan(estimate.centred[others]).all()
    assert found - found.mean() == pytest.approx(least - least.mean())
    if not filler:
        assert estimate.means == pytest.approx(least)


def test_phases_with_fillers_have_the_radius_of_their_arms():
    """lambda and the levels are those of the contested arms."""
    plan = CyclicPlan(np.array([[0, 1, 3]]), 9, arms=np.arange(2, 9), filler=np.array([0, 1]))
    phase = dataclasses.replace(
        sa.Certified(radius="calibrated").first(problem_of(9, 5), 1),
        plan=plan,
        looks=sa.schedule.Looks(sa.schedule.Cycles(1.08), plan),
    )
    radius = phase_radius("calibrated", phase, 7, 3, 1.0, 0.5, 100)
    assert len(radius.b) == 3
    assert radius.information == pytest.approx(3 * 4 / (7 * 6))
