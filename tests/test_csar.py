"""CSAR: Hadamard matrices, estimates of arms from pairs of halves, accepts and rejects."""

import itertools
import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from support import most_wrong

import superarm as sa
from superarm.algorithms.csar import _groups, _share, _split
from superarm.cli import main
from superarm.design.hadamard import exists, hadamard
from superarm.estimate import gram, scatter
from superarm.hadamard_plan import HadamardPlan
from superarm.phase import Next
from superarm.tally import Tally

# ---- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, *range(4, 92, 4), 96, 100, 104, 108, 112, 128, 244, 488])
def test_rows_are_orthogonal_and_the_first_is_all_ones(order):
    """Among them prime powers: 10 = 9 + 1 (Paley II, order 20), 28 = 27 + 1, 52 = 2(25 + 1)."""
    matrix = hadamard(order).astype(np.int64)
    assert set(np.unique(matrix)) <= {-1, 1}
    assert (matrix[0] == 1).all()
    assert np.array_equal(matrix @ matrix.T, order * np.eye(order, dtype=np.int64))


@pytest.mark.parametrize("order", [-4, 0, 3, 6, 10, 14, 90, 92, 116, 156])
def test_other_orders_are_none(order):
    assert not exists(order)
    assert hadamard(order) is None


# ---- the plan and its estimate -------------------------------------------------------------------


def plan_of(n, k, seed=0, contested=None):
    half = min(k, n - k)
    arms = np.arange(n) if contested is None else np.asarray(contested)
    groups = _groups(arms, 2 * half, n, np.random.default_rng(seed))
    return HadamardPlan(hadamard(2 * half), groups, n, complement=half < k)


SIZES = [(2, 1), (5, 1), (5, 4), (4, 2), (7, 2), (9, 7), (12, 4), (13, 6), (15, 9), (40, 10)]


def filled(plan, means, times, sigma=0.0, seed=0):
    tally, rows = Tally(plan.size), plan.members(slice(None))
    noise = np.random.default_rng(seed)
    for index, count in enumerate(times):
        totals = means[rows[index]].sum() + sigma * noise.standard_normal(count)
        tally.add(np.full(count, index), totals)
    return tally


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_the_plan_lists_complementary_halves(n, k):
    plan, half = plan_of(n, k), min(k, n - k)
    rows = plan.members(slice(None))
    assert rows.shape == (plan.size, k)
    assert (np.diff(rows, axis=1) > 0).all()
    assert np.array_equal(plan.members(3 % plan.size), rows[3 % plan.size])
    assert np.array_equal(plan.members(np.array([1, 0])), rows[[1, 0]])
    for g, group in enumerate(plan.groups):
        assert len(set(group)) == 2 * half
        for i in range(2 * half - 1):
            at = (4 * half - 2) * g + 2 * i
            halves = [set(row) for row in rows[at : at + 2]]
            if half < k:
                halves = [set(range(n)) - chosen for chosen in halves]
            assert halves[0].isdisjoint(halves[1])
            assert halves[0] | halves[1] == set(group)
    means = np.random.default_rng(1).normal(size=n)
    assert plan.gather(means) == pytest.approx(means[rows].sum(axis=1))
    t = 2 * plan.size + 1
    assert np.array_equal(plan.counts(t), np.bincount(plan.order(0, t), minlength=plan.size))
    assert plan.digest == plan_of(n, k).digest
    if n > 2:
        assert plan.digest != plan_of(n, k, seed=1).digest


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_the_estimate_finds_the_means(n, k):
    plan, half = plan_of(n, k), min(k, n - k)
    means = np.random.default_rng(2).normal(size=n)
    level, values = plan.estimate(filled(plan, means, np.arange(plan.size) % 3 + 1))
    true = means.sum() / half - means if half < k else means
    assert level + values == pytest.approx(true)


@pytest.mark.parametrize("half", [1, 2, 4, 6, 10])
def test_in_one_group_it_is_least_squares_with_the_variance_that_is_claimed(half):
    n = 2 * half
    plan = plan_of(n, half)
    tally = filled(plan, np.arange(n) / n, np.full(plan.size, 3), sigma=1.0)
    rows, counts = plan.members(slice(None)), tally.counts
    A = gram(rows, counts, n)
    level, values = plan.estimate(tally)
    assert level + values == pytest.approx(np.linalg.solve(A, scatter(rows, tally.totals, n)))
    assert np.diagonal(np.linalg.inv(A)) == pytest.approx(np.full(n, plan.variance / 3))
    assert plan.variance <= 1 / half


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_no_estimate_varies_more_than_is_claimed(n, k):
    """Its weights, column by column: the sum of their squares, with fillers and uneven counts."""
    plan = plan_of(n, k, contested=range(n - n // 3))
    times = np.random.default_rng(3).integers(2, 6, plan.size)
    weights = []
    for index in range(plan.size):
        tally = Tally(plan.size)
        tally.add_block(times, times * (np.arange(plan.size) == index), times)
        level, values = plan.estimate(tally)
        measured = np.unique(plan.groups)
        weights.append(level + values[measured])
    variances = (np.array(weights) ** 2 / times[:, None]).sum(axis=0)
    assert (variances <= plan.variance / times.min() + 1e-12).all()


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_groups_have_every_contested_arm_and_no_arm_twice(seed):
    rng = np.random.default_rng(seed)
    half = int(rng.integers(1, 6))
    n = int(rng.integers(2 * half, 8 * half))
    contested = np.sort(rng.choice(n, int(rng.integers(2, n + 1)), replace=False))
    groups = _groups(contested, 2 * half, n, rng)
    assert len(groups) == -(-len(contested) // (2 * half))
    assert all(len(set(group)) == 2 * half for group in groups)
    assert set(contested) <= set(groups.ravel())


# ---- the rule ------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.floats(0.001, 2))
def test_both_sides_and_who_is_decided_by_brute_force(seed, radius):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 8))
    q = int(rng.integers(1, m))
    values = np.round(rng.normal(size=m), 2)  # ties now and then
    split = _split(values, q, radius, 0.0)
    best = set(split.sides.answer.tolist())
    assert values[list(best)].sum() == pytest.approx(np.sort(values)[-q:].sum())
    most = max(
        sum(values[i] + radius for i in set(rival) - best)
        - sum(values[j] - radius for j in best - set(rival))
        for rival in itertools.combinations(range(m), q)
        if set(rival) != best
    )
    assert split.sides.radius - split.sides.gap == pytest.approx(most)
    for arm in range(m):
        others = np.sort(np.delete(values, arm))[::-1]
        accepted = arm in split.accepted
        rejected = not accepted and arm not in split.contested
        assert accepted == (values[arm] > others[q - 1] + 2 * radius)
        assert rejected == (q < m and values[arm] < others[q - 1] - 2 * radius)
    if len(split.contested) == 0 or len(split.accepted) == q:
        assert split.sides.stop


def test_phases_halve_the_accuracy_and_end_where_a_stop_is_certain():
    """All means are equal: nobody is decided, and the last phase has r = epsilon/(2 * 4)."""
    problem = sa.Problem(12, 4, sa.gaussian(2.0), epsilon=0.4, delta=0.1)
    world = sa.environment([0.0] * 12, problem.noise)
    phase = sa.CSAR().first(problem, 1)
    variance = (7 + 1 / 7) / 32

    def radius(cycles):
        return 2 * math.sqrt(2 * variance / cycles * math.log(12 / _share(problem, phase.number)))

    for target in (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 0.05):  # and 1/32 = 0.031 would be finer
        cycles = phase.looks.end // phase.plan.size
        assert cycles * phase.plan.size == phase.looks.end
        assert radius(cycles) <= target < radius(cycles - 1)
        tally = Tally(phase.plan.size)
        world.add(tally, phase.plan, 0, phase.looks.end, np.random.default_rng(phase.number))
        outcome = sa.CSAR().look(problem, phase, tally, 1)
        if isinstance(outcome, Next):
            phase = outcome.phase
            assert len(phase.carry["state"].contested) == 12
    assert outcome.verdict.certified
    assert outcome.verdict.radius <= 0.4


def test_k_1_is_the_plain_best_arm_problem():
    problem = sa.Problem(6, 1, sa.gaussian(1.0), epsilon=0.1, delta=0.1)
    plan = sa.CSAR().first(problem, 1).plan
    assert sorted(plan.members(slice(None))[:, 0]) == list(range(6))
    assert plan.variance == 1.0


@pytest.mark.parametrize(
    ("n", "k", "nearest"),
    [
        (20, 3, "2 and 4"),
        (20, 5, "4 and 6"),
        (20, 17, "16 and 18"),
        (10, 5, "4 and 6"),
        (200, 46, "44 and 48"),
        (6, 3, "2 and 4"),
    ],
)
def test_k_without_a_matrix_is_refused_with_those_that_work(n, k, nearest):
    problem = sa.Problem(n, k, sa.gaussian(1.0))
    with pytest.raises(sa.ProblemError, match=f"the nearest k that work are {nearest}; choose"):
        sa.CSAR().first(problem, 1)
    for other in map(int, nearest.split(" and ")):
        sa.CSAR().first(sa.Problem(n, other, sa.gaussian(1.0)), 1)


def test_other_classes_are_refused():
    trees = sa.SpanningTrees([(0, 1), (1, 2), (0, 2)])
    with pytest.raises(sa.ProblemError, match="csar is for the best k of n arms"):
        sa.CSAR().first(sa.Problem(3, trees, sa.gaussian(1.0)), 1)


@pytest.mark.parametrize(
    "changed",
    [{"accuracy": 0}, {"accuracy": -1.0}, {"accuracy": math.inf}, {"accuracy": math.nan}],
)
def test_impossible_settings_are_refused(changed):
    with pytest.raises(sa.SettingError, match="accuracy must be a finite number > 0"):
        sa.CSAR(**changed)
    with pytest.raises(sa.SettingError, match="sigma must be one of noise, paper"):
        sa.CSAR(sigma="mine")


def test_an_accuracy_beyond_all_pulls_is_refused():
    with pytest.raises(sa.SettingError, match="takes more than"):
        sa.CSAR(accuracy=1e-12).first(sa.Problem(4, 2, sa.gaussian(1.0)), 1)
    with pytest.raises(sa.SettingError, match="takes more than"):
        sa.CSAR(accuracy=1e-300).first(sa.Problem(4, 2, sa.gaussian(1.0)), 1)


def test_the_paper_s_sigma_costs_as_much_as_it_is_greater():
    problem = sa.Problem(12, 4, sa.labels(), epsilon=0.5)
    rule = sa.CSAR(sigma="paper", accuracy=0.5)
    ends = [r.first(problem, 1).looks.end for r in (rule, sa.CSAR(accuracy=0.5))]
    assert ends[0] / ends[1] == pytest.approx(16, rel=0.05)


# ---- certificates --------------------------------------------------------------------------------


class Halved(sa.CSAR):
    """Half the radius."""

    def radius(self, problem, arms, variance, delta):
        return sa.CSAR.radius(self, problem, arms, variance, delta) / 2


def wrong(rule, problem, means, runs):
    """Count wrong certificates and those that were given."""
    world = sa.environment(means, problem.noise)
    bad = given = 0
    for seed in range(runs):
        run = sa.simulate(problem, rule, world, rng=seed, max_pulls=10**9)
        given += run.verdict.certified
        bad += run.verdict.certified and run.wrong(problem.epsilon)
    return bad, given


HARD = {
    "k=1": (2, 1, (0.301, 0.0), 0.3),
    "k=n-1": (3, 2, (0.301, 0.301, 0.0), 0.3),
    "one group": (4, 2, (0.3, 0.3, 0.0, 0.0), 0.0),
    "fillers": (7, 2, (0.301, 0.301, 0.0, 0.0, -1.0, -2.0, -2.0), 0.3),
    "more than half": (6, 4, (0.401, 0.401, 0.401, 0.401, 0.0, 0.0), 0.4),
}


@pytest.mark.parametrize("kind", HARD.values(), ids=HARD)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_wrong_at_most_delta(kind, delta):
    n, k, means, epsilon = kind
    problem = sa.Problem(n, k, sa.gaussian(1.0), epsilon=epsilon, delta=delta)
    bad, given = wrong(sa.CSAR(), problem, means, 500)
    assert given == 500
    assert bad <= delta * 500
    assert bad <= most_wrong(500, delta)


def test_a_halved_radius_is_caught():
    """At k = 1 intervals of arms are wider than those of differences by sqrt(2).

    So halving shows at a small delta only: with L = log(2/delta_t) a phase errs with the chance
    that a normal variable exceeds sqrt(L), and not 2 sqrt(L): 0.0022 where delta = 0.001, in the
    first phase alone.
    """
    problem = sa.Problem(2, 1, sa.gaussian(1.0), epsilon=0.3, delta=0.001)
    runs = 4000
    bad, given = wrong(Halved(), problem, (0.301, 0.0), runs)
    assert given == runs
    assert bad > most_wrong(runs, 0.001)
    bad, _ = wrong(sa.CSAR(), problem, (0.301, 0.0), runs)
    assert bad <= most_wrong(runs, 0.001)


@pytest.mark.parametrize(("n", "k"), [(8, 2), (8, 6), (9, 4), (5, 4)])
@pytest.mark.parametrize(
    "noise", [sa.labels(), sa.labels(shared=True), sa.bounded(1.0), sa.total(0, 9)], ids=str
)
def test_it_finds_the_best_under_every_noise(n, k, noise):
    problem = sa.Problem(n, k, noise, epsilon=0.1, delta=0.01)
    means = np.random.default_rng(4).permutation(np.linspace(0.0, 1.0, n))
    run = sa.simulate(problem, sa.CSAR(), sa.environment(means, noise), rng=1)
    assert run.verdict.certified
    assert run.regret <= 0.1
    assert run.verdict.estimates == pytest.approx(means, abs=0.3)


def test_it_beats_the_default_where_n_is_many_times_k():
    """The figures of docs/explanation/rivals.md, fewer runs."""
    pulls = {}
    for seed in range(3):
        means = sa.synthetic(500, 10, 0.1, rng=seed)
        problem = sa.Problem(500, 10, sa.gaussian(1.0))
        for rule in (sa.CSAR(), sa.Certified()):
            run = sa.simulate(problem, rule, sa.environment(means, problem.noise), rng=seed)
            assert run.regret == 0
            pulls[rule.name] = pulls.get(rule.name, 0) + run.pulls
    assert pulls["csar"] < 0.8 * pulls["certified"]


# ---- the command line ----------------------------------------------------------------------------


def test_the_command_line_knows_it(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("arm,mean\n" + "".join(f"a{i},{i / 10}\n" for i in range(10)))
    simulate = ["simulate", "--means", str(path), "--noise", "labels", "--epsilon", "0.5"]
    done = CliRunner().invoke(
        main, [*simulate, "--k", "4", "--algorithm", "csar", "--accuracy", "0.4", "--format", "csv"]
    )
    assert done.exit_code == 0
    assert ",True," in done.stdout
    refused = CliRunner().invoke(main, [*simulate, "--k", "3", "--algorithm", "csar"])
    assert refused.exit_code != 0
    assert "the nearest k that work are 2 and 4" in refused.stderr
    other = CliRunner().invoke(main, [*simulate, "--k", "4", "--accuracy", "0.4"])
    assert "--accuracy is not a setting of certified" in other.stderr
    forecast = ["forecast", *simulate[1:], "--k", "4", "--format", "csv"]
    everyone = CliRunner().invoke(main, forecast)
    assert everyone.exit_code == 0
    assert "csar" not in everyone.stdout
    named = CliRunner().invoke(main, [*forecast, "--algorithm", "csar"])
    assert "csar has several phases" in named.stderr
