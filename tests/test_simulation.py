"""The bulk engine has the same law as one pull at a time, and the same tally when fed the same."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp
from support import RULES, gaussian_totals, on

import superarm as sa
from superarm import reference
from superarm.plan import SupportPlan
from superarm.simulation.environments import LinearEnvironment
from superarm.tally import Tally

MEANS = np.array([0.1, 0.45, 0.8, 0.6, 0.3])
ROWS = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 3, 4], [0, 1, 4]])
LAWS = {
    "gaussian": (sa.gaussian(0.7), ("gaussian", 0.7)),
    "labels": (sa.labels(), ("labels",)),
    "shared-labels": (sa.labels(shared=True), ("shared-labels",)),
    "bounded": (sa.bounded(2.0), ("bounded", 2.0, False)),
    "bounded-independent": (sa.bounded(2.0, independent=True), ("bounded", 2.0, True)),
    "total": (sa.total(-1.0, 4.0), ("total", -1.0, 4.0)),
}
every_law = pytest.mark.parametrize(("noise", "law"), LAWS.values(), ids=LAWS)
SURELY = 1e-5  # a true law is refused this often: the seeds are fixed, so it never flickers


def plan():
    return SupportPlan(ROWS, 5, spanning=5)


def blocks(noise, size, draws, seed):
    """Sums and sums of squares of super-arm 0 over blocks of `size` pulls, in bulk."""
    world, rng = LinearEnvironment(MEANS, noise), np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        tally = Tally(len(ROWS))
        world.add(tally, plan(), 0, size * len(ROWS), rng)
        found.append((tally.totals[0], tally.squares[0]))
    return np.array(found).T


def one_at_a_time(law, size, draws, seed):
    """The same from single pulls by the reference."""
    rng = np.random.default_rng(seed)
    totals = np.array(
        [
            [reference.draw_total(rng, MEANS, tuple(ROWS[0]), law) for _ in range(size)]
            for _ in range(draws)
        ]
    )
    return totals.sum(axis=1), (totals**2).sum(axis=1)


def p_value(a, b):
    """Two-sample p-value: exact categories where there are few values, else Kolmogorov-Smirnov."""
    values = np.unique(np.round(np.concatenate([a, b]), 6))
    if len(values) > 60:
        return ks_2samp(a, b).pvalue
    table = np.array([[np.sum(np.isclose(x, v)) for v in values] for x in (a, b)])
    common = table.sum(axis=0) >= 20
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


@every_law
@pytest.mark.parametrize("size", [2, 7])
def test_blocks_have_the_law_of_single_pulls(noise, law, size):
    bulk, single = blocks(noise, size, 3000, 1), one_at_a_time(law, size, 3000, 2)
    assert p_value(bulk[0], single[0]) > SURELY
    assert p_value(bulk[1], single[1]) > SURELY
    # and jointly: the scatter about the block's mean
    scatter = [squares - sums**2 / size for sums, squares in (bulk, single)]
    assert p_value(*scatter) > SURELY


@every_law
def test_pulls_drawn_ahead_have_the_law_of_single_pulls(noise, law):
    world, rng = LinearEnvironment(MEANS, noise), np.random.default_rng(3)
    ahead = world.pulls(plan(), 0, 4000 * len(ROWS), rng)[:: len(ROWS)]
    assert p_value(ahead, one_at_a_time(law, 1, 4000, 4)[0]) > SURELY


def test_the_two_sample_test_sees_a_wrong_law():
    shared, independent = (
        blocks(noise, 7, 3000, 1) for noise in (sa.labels(shared=True), sa.labels())
    )
    assert p_value(shared[0], independent[0]) < SURELY
    wider = blocks(sa.gaussian(0.8), 7, 3000, 1)
    single = one_at_a_time(("gaussian", 0.7), 7, 3000, 2)
    assert p_value(wider[1] - wider[0] ** 2 / 7, single[1] - single[0] ** 2 / 7) < SURELY


@every_law
def test_a_block_of_one_pull_each_is_its_square(noise, law):
    tally = Tally(len(ROWS))
    LinearEnvironment(MEANS, noise).add(tally, plan(), 0, len(ROWS), np.random.default_rng(0))
    assert tally.squares == pytest.approx(tally.totals**2)
    assert list(tally.counts) == [1] * len(ROWS)


@pytest.mark.parametrize("noise", [noise for noise, _ in LAWS.values()], ids=LAWS)
def test_blocks_are_right_at_the_size_of_real_runs(noise):
    tally = Tally(len(ROWS))
    count = 10**8
    LinearEnvironment(MEANS, noise).add(tally, plan(), 0, count * 5, np.random.default_rng(0))
    mean = MEANS[ROWS].sum(axis=1)
    error = (tally.totals / count - mean) / (noise.sigma(3) / np.sqrt(count))
    assert np.abs(error).max() < 5
    # the variance of a pull, from the scatter, against the law's own
    variance = (tally.squares - tally.totals**2 / count) / count
    single = LinearEnvironment(MEANS, noise).pulls(plan(), 0, 10**6, np.random.default_rng(1))
    expected = single.reshape(-1, len(ROWS)).var(axis=0)
    assert variance == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_bulk_equals_one_at_a_time_when_fed_the_same_totals(rule):
    """Blocks, single adds in any order, and arrays give one tally, to the bit."""
    problem = sa.Problem(5, 3, sa.gaussian(1.0), epsilon=0.5)
    rule = on(rule, design=sa.Uniform(tuple(map(tuple, ROWS.tolist()))))
    phase = rule.first(problem, 0)
    totals = gaussian_totals(phase.plan, MEANS, 500, 1)
    at_once, singly = Tally(5), Tally(5)
    at_once.add(phase.plan.order(0, 500), totals)
    for s in np.random.default_rng(0).permutation(500):
        singly.add(int(phase.plan.order(int(s), int(s) + 1)[0]), float(totals[s]))
    assert at_once == singly
    assert np.array_equal(at_once.totals, singly.totals)
    assert np.array_equal(at_once.squares, singly.squares)
    look = next(j for j in range(1, 400) if phase.looks.time(j) >= 500)
    outcomes = [rule.look(problem, phase, tally, look) for tally in (at_once, singly)]
    assert outcomes[0].verdict.to_dict() == outcomes[1].verdict.to_dict()


def test_whole_number_blocks_equal_their_single_pulls():
    counts = np.array([3, 0, 2, 1, 0])
    block, singly = Tally(5), Tally(5)
    block.add_block(counts, [6.0, 0, 3, 1, 0], [14.0, 0, 5, 1, 0])
    singly.add(np.array([0, 0, 0, 2, 2, 3]), np.array([1.0, 2, 3, 1, 2, 1]))
    assert block == singly
    assert block.pulls == 6


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_change_no_number(workers):
    problem = sa.Problem(8, 3, sa.labels(), epsilon=0.5)
    world = sa.environment(np.linspace(0, 1, 8), sa.labels())
    one, many = (sa.replicate(problem, sa.SAQM(), world, 5, rng=3, workers=w) for w in (1, workers))
    assert [run.verdict for run in one.runs] == [run.verdict for run in many.runs]
    assert one.pulls_mean == many.pulls_mean
    assert len({run.pulls for run in one.runs}) > 1  # replications differ


def test_the_every_schedule_stops_where_plain_looks_would():
    """`skip` leaves out looks that say Go for certain, and no other."""

    class Plain(sa.SAQM):
        def skip(self, *args):
            return 0

    problem = sa.Problem(6, 2, sa.gaussian(1.0), epsilon=1.0)
    world = sa.environment([1, 1, 0, 0, 0, 0.0], problem.noise)
    for settings in (
        {"alpha": "certified"},
        {"alpha": "spectral"},
        {"alpha": "theorem"},
        {"alpha": 0.9},
        {"alpha": 0.9, "oracle": "swap"},
        {"alpha": 0.9, "oracle": "multistart"},
        {"oracle": "exact"},
        {"bound": "shift"},
    ):
        for seed in range(3):
            fast, plain = (
                sa.simulate(
                    problem, kind(**settings, schedule=sa.Every()), world, rng=seed, max_pulls=3000
                )
                for kind in (sa.SAQM, Plain)
            )
            assert fast.verdict == plain.verdict
            assert fast.tally == plain.tally


@pytest.mark.parametrize(
    ("kind", "settings", "seeds"),
    [
        (sa.ICB, {}, (237,)),
        (sa.SAQM, {}, (63, 219, 226, 237)),
        (sa.SAQM, {"alpha": "spectral"}, (386,)),
        (sa.SAQM, {"alpha": 0.9}, (63, 145, 226)),
        (sa.Exhaustive, {}, (145, 226, 237)),
    ],
    ids=["icb", "saqm", "saqm-spectral", "saqm-number", "exhaustive"],
)
def test_ties_in_the_estimates_hide_no_stop_from_the_every_schedule(kind, settings, seeds):
    """Which of two equal arms is in the best set decides on the radius, and rounding on which.

    These runs went past the look at which they should have stopped.
    """
    plain = type(f"Plain{kind.__name__}", (kind,), {"skip": lambda self, *args: 0})
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 6))
        k = int(rng.integers(1, n))
        means, epsilon = rng.choice([0.0, 0.5, 1.0], n), rng.choice([0.4, 0.7, 1.0, 1.5])
        problem = sa.Problem(n, k, sa.labels(), epsilon=epsilon, delta=0.2)
        design = sa.Uniform(min(n + 1 + seed % 3, problem.decision.size))
        world = sa.environment(means, problem.noise)
        fast, slow = (
            sa.simulate(
                problem,
                rule(schedule=sa.Every(), design=design, **settings),
                world,
                rng=seed,
                max_pulls=1500,
            )
            for rule in (kind, plain)
        )
        assert fast.verdict == slow.verdict
        assert fast.tally == slow.tally


def test_the_limit_must_reach_the_first_look():
    problem = sa.Problem(6, 2, sa.gaussian(1.0))
    with pytest.raises(sa.SettingError, match="the first look needs 6"):
        sa.simulate(problem, sa.SAQM(), sa.environment([0] * 6, problem.noise), max_pulls=5)


def test_means_and_laws_that_cannot_be_are_refused():
    with pytest.raises(sa.NoiseError, match=r"mean 1\.5 is impossible"):
        sa.environment([0.5, 1.5], sa.labels())
    with pytest.raises(sa.NoiseError, match="impossible"):
        sa.environment([-3.0], sa.bounded(2.0))
    with pytest.raises(sa.NoiseError, match="finite numbers, at most 1e\\+100 in size, not nan"):
        sa.environment([float("nan")], sa.gaussian(1))
    with pytest.raises(sa.NoiseError, match="not 1e\\+101"):
        sa.environment([1e99, 1e101], sa.gaussian(1))
    with pytest.raises(sa.NoiseError, match="list of numbers, not 3"):
        sa.environment(3, sa.gaussian(1))
    with pytest.raises(sa.NoiseError, match="noise model such as"):
        sa.environment([0.5], "labels")
    problem = sa.Problem(3, 2, sa.total(0, 1))
    with pytest.raises(sa.NoiseError, match="outside its range"):
        sa.simulate(problem, sa.SAQM(), sa.environment([0.9, 0.9, 0], problem.noise), rng=1)
    with pytest.raises(sa.SettingError, match="2 arms, the problem 3"):
        sa.simulate(problem, sa.SAQM(), sa.environment([0.1, 0.2], problem.noise), rng=1)
    for bad in ({"replications": 0}, {"workers": 0}, {"workers": 10**6}):
        with pytest.raises(sa.SettingError):
            sa.replicate(
                problem,
                sa.SAQM(),
                sa.environment([0, 0, 0], sa.total(0, 1)),
                bad.get("replications", 1),
                workers=bad.get("workers", 1),
            )


def test_arguments_that_are_something_else_are_refused_by_name():
    problem = sa.Problem(3, 2, sa.gaussian(1.0))
    world = sa.environment([0.0, 0.0, 1.0], problem.noise)
    with pytest.raises(sa.ProblemError, match=r"superarm\.Problem, not 3"):
        sa.simulate(3, sa.ICB(), world)
    with pytest.raises(sa.SettingError, match="the environment must be"):
        sa.simulate(problem, sa.ICB(), [0.0, 0.0, 1.0])
    with pytest.raises(sa.SettingError, match="watch must be a function"):
        sa.simulate(problem, sa.ICB(), world, watch="verdict")


def test_watch_sees_every_look_taken():
    problem = sa.Problem(6, 2, sa.gaussian(1.0), epsilon=1.0)
    seen = []
    run = sa.simulate(
        problem,
        sa.ICB(),
        sa.environment([1, 1, 0, 0, 0, 0], problem.noise),
        rng=0,
        watch=seen.append,
    )
    assert seen[-1] == run.verdict
    assert [v.look for v in seen] == list(range(1, run.verdict.look + 1))
    assert all(v.forecast is None or v.forecast > 0 for v in seen[:-1])


def test_recorded_totals_must_be_possible_under_the_noise_model():
    problem = sa.Problem(3, 2, sa.labels(), epsilon=0.9)
    with pytest.raises(sa.TotalError, match=r"total 3\.5 is outside 0 \.\. 2"):
        sa.simulate(problem, sa.SAQM(), sa.Recorded([3.5, 700.0, -9.0], [0.1, 0.2, 0.3]), rng=1)


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_a_wrong_answer_counts_at_any_scale(scale):
    problem = sa.Problem(4, 1, sa.gaussian(scale))
    world = sa.environment([0, 0, 0, 0.02 * scale], problem.noise)
    found = sa.replicate(problem, sa.SAFOA(), world, 20, rng=1, max_pulls=40)
    assert found.wrong == 17


def test_an_answer_epsilon_short_of_the_best_is_not_wrong():
    """0.9 - 0.6 is more than 0.3 by rounding alone."""
    problem = sa.Problem(2, 1, sa.gaussian(1e-3), epsilon=0.3)
    world = sa.environment([0.6, 0.9], problem.noise)
    assert 0.9 - 0.6 > 0.3
    limited = sa.simulate(problem, sa.ICB(), world, rng=1)
    assert limited.regret == 0
    from superarm.simulation.engine import _regret

    verdict = dataclasses.replace(limited.verdict, answer=("1",))
    assert _regret(problem, world.means, verdict) == 0.3


def test_rounding_does_not_decide_between_equals_in_peeling():
    """Many ties: the rounds that `skip` leaves out must be those at which a look says Go."""
    problem = sa.Problem(4, 3, sa.labels(shared=True), epsilon=1.0, delta=0.5, direction="minimize")
    rule = sa.SAQM(alpha=0.5890568380904879, schedule=sa.Every())
    for seed in (18, 19, 20, 21):
        means = np.random.default_rng(seed).random(4).round(1)
        world = sa.environment(means, problem.noise)
        plan = rule.first(problem, seed).plan
        totals = world.pulls(plan, 0, 1600, np.random.default_rng(seed))
        run = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=seed)
        search = sa.Identification(problem, rule, rng=seed)
        for pull in search.ask(run.pulls):
            search.tell(pull.id, totals[pull.position])
        assert search.verdict.pulls == run.pulls
