"""Unknown sigma: residuals to the last digit, a bound at all looks, certificates that hold."""

import math
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2
from sigma_cases import APART, HARD, exceeded, hunt_unknown, plugging_in
from support import most_wrong, on, with_halved_radius

import superarm as sa
from superarm.algorithms.certified import _least_log_delta
from superarm.campaign.status import _widths
from superarm.cli import main
from superarm.cyclic_plan import CyclicPlan
from superarm.design.listed import Listed
from superarm.estimate import information
from superarm.noise import Gaussian, parse_noise
from superarm.schedule import Looks, Planned
from superarm.sigma import (
    SHARE,
    Estimated,
    log_martingale,
    lower_chi,
    residual_squares,
    shares,
    upper_sigma,
)
from superarm.tally import Tally
from superarm.theory import lower_bound

UNKNOWN = sa.gaussian()
seeds = st.integers(0, 2**32 - 1)


# ---- the noise model -----------------------------------------------------------------------------


def test_the_noise_model_and_its_text():
    assert sa.gaussian() == Gaussian(None)
    assert not UNKNOWN.known
    assert sa.gaussian(1.0).known
    assert sa.labels().known
    assert str(UNKNOWN) == "gaussian"
    assert parse_noise("gaussian") == UNKNOWN
    assert parse_noise("gaussian:2") == sa.gaussian(2.0)
    for text in ("gaussian:1:2", "gaussian:", "labels:1"):
        with pytest.raises(sa.NoiseError):
            parse_noise(text)
    UNKNOWN.check_total(-1e99, 3)
    with pytest.raises(sa.TotalError):
        UNKNOWN.check_total(math.nan, 3)
    for sigma in (UNKNOWN.sigma, UNKNOWN.paper_sigma):
        with pytest.raises(sa.NoiseError, match="state it, as gaussian"):
            sigma(3)


# ---- residuals -----------------------------------------------------------------------------------


def exact_squares(rows, n, totals):
    """Least-squares residual sum of squares, by elimination in whole fractions."""
    X = [[Fraction(int(i in row)) for i in range(n)] for row in rows.tolist()]
    y = [Fraction(total) for total in totals]
    basis = []  # orthogonal columns
    for j in range(n):
        column = [row[j] for row in X]
        for other in basis:
            share = sum(a * b for a, b in zip(column, other, strict=True))
            share /= sum(b * b for b in other)
            column = [a - share * b for a, b in zip(column, other, strict=True)]
        if any(column):
            basis.append(column)
    for other in basis:
        share = sum(a * b for a, b in zip(y, other, strict=True)) / sum(b * b for b in other)
        y = [a - share * b for a, b in zip(y, other, strict=True)]
    return sum(a * a for a in y), len(basis)


def fitted(plan, totals):
    """Return a tally of the plan's first totals, and the estimate."""
    tally = Tally(plan.size)
    tally.add(plan.order(0, len(totals)), np.asarray(totals))
    info = information(plan, plan.counts(len(totals)))
    return tally, info.estimate(plan, tally)


def some_plan(kind):
    if kind == "uneven":
        rows = [(0, 1), (0, 2), (1, 2), (2, 3), (0, 3)]
        return sa.Weighted(rows, [0.4, 0.2, 0.2, 0.1, 0.1]).plan(
            sa.Problem(4, 2, UNKNOWN), np.random.default_rng(1)
        )
    if kind == "cyclic":
        return CyclicPlan(np.array([[0, 1, 3], [0, 1, 2]]), 5)
    if kind == "filler":  # arms 4 and 0 are in every group, 5 in none
        blocks = np.array([[0, 1], [0, 2]])
        return CyclicPlan(blocks, 6, arms=np.array([3, 1, 2]), filler=np.array([0, 4]))
    assert kind == "smaller groups"
    return Listed(((0, 1), (0, 1, 2), (2,), (1, 2), (0, 1), (2,), (0, 1, 2))).plan(
        sa.Problem(3, sa.PartitionMatroid({"a": 1}, ["a"] * 3), UNKNOWN), None
    )


@pytest.mark.parametrize("kind", ["uneven", "cyclic", "filler"])
@pytest.mark.parametrize("level", [0.0, 1e6])
def test_residuals_are_exact_and_never_rounded_down(kind, level):
    """A level of 1e6 above noise of 0.001: a sum of squares less its fitted part would be 0."""
    plan, rng = some_plan(kind), np.random.default_rng(7)
    cycles = 4 * plan.size
    noise = np.round(1e-3 * rng.standard_normal(cycles) * 2**30) / 2**30  # with level: exact
    means = np.round(rng.normal(size=plan.n) * 2**20) / 2**20
    totals = level + plan.gather(means)[plan.order(0, cycles)] + noise
    expected, rank = exact_squares(plan.members(plan.order(0, cycles)), plan.n, totals)
    tally, estimate = fitted(plan, totals)
    found = residual_squares(plan, tally, estimate)
    assert Fraction(found) >= expected
    assert found == pytest.approx(float(expected), rel=1e-5)
    assert plan.rank == rank


def test_where_the_estimate_is_not_least_squares_residuals_are_no_smaller():
    plan, rng = some_plan("cyclic"), np.random.default_rng(8)
    for t in (7, 9, 13, 18):
        totals = rng.standard_normal(t)
        expected, rank = exact_squares(plan.members(plan.order(0, t)), 5, totals)
        tally, estimate = fitted(plan, totals)
        assert rank == plan.rank
        assert Fraction(residual_squares(plan, tally, estimate)) >= expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_sums_about_means_are_those_of_fractions(seed):
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 3, 20)
    totals = rng.standard_normal(20) * 2.0 ** rng.integers(-30, 30, 20) + rng.choice([0.0, 1e9])
    tally = Tally(4)
    tally.add(index, totals)
    c, sums, squares = tally.about_means()
    for s in range(4):
        apart = [Fraction(y) - Fraction(c[s]) for y in totals[index == s]]
        assert sums[s] == float(sum(apart))
        assert squares[s] == float(sum(a * a for a in apart))


def test_sums_about_means_of_very_many_results():
    tally = Tally(1)
    count = 3 * 2**40
    tally.add_block([count], [1.5 * count], [2.5 * count])
    c, sums, squares = tally.about_means()
    assert (c[0], sums[0], squares[0]) == (1.5, 0.0, 0.25 * count)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(-40, 40))
def test_scaling_and_order_change_nothing(seed, power):
    plan, rng = some_plan("cyclic"), np.random.default_rng(seed)
    totals = rng.normal(size=30)
    found = residual_squares(plan, *fitted(plan, totals))
    scaled = residual_squares(plan, *fitted(plan, totals * 2.0**power))
    assert scaled == found * 4.0**power
    tally = Tally(plan.size)
    for i in rng.permutation(30).tolist():
        tally.add(int(plan.order(i, i + 1)[0]), float(totals[i]))
    estimate = information(plan, plan.counts(30)).estimate(plan, tally)
    assert residual_squares(plan, tally, estimate) == found


def test_totals_without_noise_are_refused():
    plan = some_plan("cyclic")
    totals = 1e6 + plan.gather(np.array([0.1, 0.2, 0.3, 0.4, 0.5]))[plan.order(0, 30)]
    assert residual_squares(plan, *fitted(plan, totals)) is None
    assert residual_squares(plan, *fitted(plan, np.zeros(30))) is None


# ---- the bound on sigma --------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1, 2, 7, 40, 1_000])
def test_the_martingale_is_the_integral(freedom):
    for share in (0.01, 0.3, 0.9, 1.0):
        S = share * freedom
        peak = max(0.0, freedom / (S + 2) - 1)

        def bet(u, S=S, peak=peak):
            log = lambda u: freedom / 2 * math.log1p(u) - u * S / 2 - u  # noqa: E731
            return math.exp(log(u) - log(peak))

        top = freedom / 2 * math.log1p(peak) - peak * S / 2 - peak
        width = 40 * (1 + peak) / math.sqrt(freedom / 2 + 1) + 40 / (S / 2 + 1)
        parts = quad(bet, max(0.0, peak - width), peak)[0] + quad(bet, peak, peak + width)[0]
        assert log_martingale(S, freedom) == pytest.approx(top + math.log(parts), abs=2e-3)
        assert log_martingale(S, freedom) <= top + math.log(parts) + 1e-7


@pytest.mark.parametrize("freedom", [1, 2, 9, 60])
def test_its_mean_is_one(freedom):
    mean = quad(
        lambda S: math.exp(log_martingale(S, freedom)) * chi2.pdf(S, freedom), 0, 400, limit=500
    )[0]
    assert mean == pytest.approx(1.0, abs=2e-3)


def test_the_quantile():
    assert lower_chi(3, 0.005) == 0.0
    assert upper_sigma(1.0, 3, 0.005) == math.inf
    assert lower_chi(30, 0.01, 1) == pytest.approx(chi2.ppf(0.01, 30))
    assert lower_chi(30, 0.01, 4) == pytest.approx(chi2.ppf(0.0025, 30))
    for delta in (1e-9, 0.005, 0.3):
        found = [lower_chi(freedom, delta) for freedom in (100, 10**3, 10**5, 10**8, 10**12)]
        shares_of = [q / v for q, v in zip(found, (1e2, 1e3, 1e5, 1e8, 1e12), strict=True)]
        assert shares_of == sorted(shares_of)
        assert shares_of[-1] > 0.9999
        for q, freedom in zip(found[:3], (100, 10**3, 10**5), strict=True):
            assert q < chi2.ppf(delta, freedom)
            assert log_martingale(q, freedom) >= math.log(1 / delta)


def test_the_bound_holds_at_all_looks_together_and_a_share_used_anew_does_not():
    runs, delta = 4_000, 0.01
    ours, reused = exceeded(runs, delta)
    assert ours <= most_wrong(runs, delta)
    assert reused > most_wrong(runs, delta)


def test_shares_of_delta():
    assert shares(sa.labels(), 0.05) == (0.05, 0.0)
    mean, sigma = shares(UNKNOWN, 0.05)
    assert mean + sigma == pytest.approx(0.05)
    problem = sa.Problem(6, 2, UNKNOWN, delta=0.05)
    for rule, most in ((sa.Certified(), 0.05), (sa.ICB(), 0.05), (sa.Focused(), 0.025)):
        phase = rule.first(problem, 1)
        assert phase.for_sigma == pytest.approx(SHARE * most)
        assert phase.delta == pytest.approx((1 - SHARE) * most)


# ---- rules ---------------------------------------------------------------------------------------

RULES = {
    "certified": sa.Certified(),
    "planned": sa.Certified(schedule=sa.Planned((40, 80, 160, 320, 640))),
    "calibrated": sa.Certified(radius="calibrated"),
    "focused": sa.Focused(),
    "focused, calibrated": sa.Focused(radius="calibrated"),
    "icb": sa.ICB(),
    "saqm": sa.SAQM(),
    "sa-foa": sa.SAFOA(certified=True),
    "exhaustive": sa.Exhaustive(),
    "every": sa.ICB(schedule=sa.Every()),
}
MEANS = (1.0, 1.0, 0.0, 0.0)
FIVE = (*MEANS, -0.5)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_certifies_and_says_by_which_sigma(name):
    problem = sa.Problem(5, 2, UNKNOWN, delta=0.05)
    found = sa.simulate(problem, RULES[name], sa.environment(FIVE, sa.gaussian(0.5)), rng=1)
    certificate = found.verdict.certificate
    assert certificate is not None, found.verdict
    assert found.regret == 0
    assert 0.3 < certificate.sigma < 1.5
    assert certificate.noise.startswith("gaussian (sigma estimated, <= ")
    assert float(certificate.noise[30:-1]) >= certificate.sigma
    assert certificate.delta == 0.05


@pytest.mark.parametrize("name", ["certified", "focused", "icb"])
def test_scale_and_level_change_neither_pulls_nor_answer(name):
    rng, rule = np.random.default_rng(3), RULES[name]
    problem = sa.Problem(4, 2, UNKNOWN)
    noise = rng.standard_normal(4_000)
    plan = rule.first(problem, 5).plan

    def run(scale, level):
        totals = plan.gather(np.array(MEANS))[plan.order(0, 4_000)] + noise
        world = sa.Recorded(scale * totals + level, [scale * mean for mean in MEANS])
        return sa.simulate(problem, rule, world, rng=5).verdict

    plain = run(1.0, 0.0)
    assert plain.certified
    scaled, shifted = run(1024.0, 0.0), run(1.0, 4096.0)
    assert (scaled.answer, scaled.pulls) == (plain.answer, plain.pulls)
    assert scaled.certificate.sigma == pytest.approx(1024 * plain.certificate.sigma, rel=1e-12)
    assert (shifted.answer, shifted.pulls) == (plain.answer, plain.pulls)
    assert shifted.certificate.sigma == pytest.approx(plain.certificate.sigma, rel=1e-9)


def test_what_is_fixed_in_advance_does_not_depend_on_totals():
    problem = sa.Problem(9, 3, UNKNOWN, epsilon=0.5)
    rule = sa.Certified()
    rho = {
        rule.constant(problem.with_noise(Estimated(1.0, 50, None, sigma)), 0.045).rho
        for sigma in (0.01, 1.0, 100.0)
    }
    assert len(rho) == 1


@pytest.mark.parametrize("name", [name for name in HARD if name != "no epsilon"])
def test_certificates_hold(name):
    """`make evidence` has longer runs, and one with epsilon = 0."""
    found = hunt_unknown(name, 150)
    assert found.stopped == found.runs
    assert found.wrong <= most_wrong(found.runs, found.delta)


def test_the_test_can_fail():
    """Half the radius; and the plain estimate of sigma at every look."""
    halved = hunt_unknown(
        "late", 300, rule=with_halved_radius(sa.Certified(aim=40, schedule=APART))
    )
    assert halved.wrong > most_wrong(halved.runs, halved.delta)
    plain = hunt_unknown(
        "k=1", 500, rule=plugging_in(sa.Certified(aim=40, schedule=APART)), delta=0.005
    )
    assert plain.wrong > most_wrong(plain.runs, plain.delta)


def test_ask_and_tell_in_any_order():
    problem, rng = sa.Problem(["a", "b", "c"], 1, UNKNOWN, epsilon=0.2), np.random.default_rng(4)
    means = {"a": 1.0, "b": 0.0, "c": 0.0}
    search = sa.Identification(problem, rng=1)
    while not search.verdict.done:
        pulls = search.ask(30)
        for i in rng.permutation(len(pulls)).tolist():
            total = sum(means[name] for name in pulls[i].members) + 0.3 * rng.standard_normal()
            search.tell(pulls[i].id, total)
    assert search.verdict.certified
    assert search.verdict.answer == ("a",)


def test_no_answer_before_there_are_degrees_of_freedom():
    problem = sa.Problem(3, 1, UNKNOWN)
    rule = sa.ICB(design=Listed(((0,), (1,), (2,))), schedule=Planned((3, 4, 30)))
    search = sa.Identification(problem, on(rule, design=sa.Uniform(3)), rng=1)
    for pull in search.ask(3):
        search.tell(pull.id, 1.0)
    assert search.verdict.answer == ()
    assert "3 pulls leave nothing to do it by: it takes more than 3" in str(search.verdict)
    search.tell(search.ask()[0].id, 1.5)
    assert search.verdict.answer != ()


def test_open_ended_looks_wait_until_sigma_is_bounded():
    problem = sa.Problem(3, 1, UNKNOWN)
    search = sa.Identification(problem, sa.ICB(design=sa.Uniform(3)), rng=1)
    for i, pull in enumerate(search.ask(5)):
        search.tell(pull.id, float(i % 2))
    assert "2 degrees of freedom are too few to bound sigma" in str(search.verdict)


def test_totals_that_are_too_coarse():
    search = sa.Identification(sa.Problem(3, 1, UNKNOWN), rng=1)
    for pull in search.ask(60):
        search.tell(pull.id, 2.0)
    assert "the totals show no noise at all" in str(search.verdict)
    assert not search.verdict.certified


# ---- a fixed budget ------------------------------------------------------------------------------


def test_confidence_is_where_the_rule_is_satisfied():
    problem = sa.Problem(5, 2, UNKNOWN, epsilon=0.4)
    rule = sa.Certified(budget=80)
    world = sa.environment((1.0, 1.0, 0.3, 0.0, 0.0), sa.gaussian(1.0))
    for seed in range(5):
        sure = sa.simulate(problem, rule, world, rng=seed).verdict.confidence
        for delta, holds in ((1.001 * (1 - sure), True), (0.999 * (1 - sure), False)):
            if 0 < delta < 1:
                at = sa.Problem(5, 2, UNKNOWN, epsilon=0.4, delta=delta)
                reached = sa.simulate(at, rule, world, rng=seed).verdict.certificate.epsilon
                assert (reached <= 0.4) == holds


def test_confidence_is_as_rare_as_it_says():
    """The answer is off by more than epsilon with a confidence of 1 - x at most x of the time."""
    problem = sa.Problem(2, 1, UNKNOWN, epsilon=0.3)
    world = sa.environment((0.301, 0.0), sa.gaussian(1.0))
    runs = [sa.simulate(problem, sa.Certified(budget=24), world, rng=seed) for seed in range(600)]
    wrong = [run.verdict.confidence for run in runs if run.wrong(0.3)]
    assert wrong
    for x in (0.01, 0.1, 0.5):
        assert sum(sure >= 1 - x for sure in wrong) <= most_wrong(600, x)
    beyond = sum(run.wrong(run.verdict.certificate.epsilon) for run in runs)
    assert beyond <= most_wrong(600, 0.05)


def test_the_search_for_a_confidence():
    noise = Estimated(100.0, 100, 1, 1.2)
    assert _least_log_delta(noise, lambda sigma: 1.0) == 0.0
    assert _least_log_delta(noise, lambda sigma: -math.inf) == pytest.approx(-600)


def test_a_budget_needs_one_pull_more_than_arms():
    problem = sa.Problem(5, 2, UNKNOWN)
    with pytest.raises(sa.SettingError, match="and estimate sigma: it takes at least 6"):
        sa.Certified(budget=5).first(problem, 1)
    assert sa.Certified(budget=6).first(problem, 1)


def test_analyse():
    rng = np.random.default_rng(2)
    problem = sa.Problem(4, 2, UNKNOWN)
    rows = [(i, j) for i in range(4) for j in range(i)] * 6
    totals = [MEANS[i] + MEANS[j] + 0.1 * rng.standard_normal() for i, j in rows]
    found = sa.analyse(problem, rows, totals)
    assert found.verdict.certified
    assert found.verdict.answer == ("1", "2")
    assert found.epsilon_reached == 0
    scale = next(each for each in found.diagnostics.findings if each.check == "scale")
    assert "no stated one" in scale.sentence
    few = sa.analyse(problem, rows[:6][:4] + rows[4:5], totals[:5])
    assert few.verdict.certified or few.verdict.reason
    known = sa.analyse(sa.Problem(4, 2, sa.gaussian(0.1)), rows, totals, sa.ICB())
    assert sa.analyse(problem, rows, totals, sa.ICB()).verdict.answer == known.verdict.answer


def test_analyse_with_as_many_pulls_as_arms():
    problem = sa.Problem(4, 2, UNKNOWN)
    rows = [(0, 1), (0, 2), (1, 2), (2, 3)]
    found = sa.analyse(problem, rows, [1.0, 2.0, 3.0, 4.5])
    assert found.epsilon_reached is None
    assert "4 pulls leave nothing to do it by" in found.verdict.reason


# ---- what needs a number -------------------------------------------------------------------------


def test_nothing_to_measure():
    verdict = sa.Identification(sa.Problem(3, 3, UNKNOWN)).verdict
    assert verdict.certified
    assert verdict.certificate.sigma is None
    assert '"sigma": null' in verdict.to_json()


def test_a_world_and_csar_need_sigma():
    with pytest.raises(sa.NoiseError, match="need the true sigma"):
        sa.environment(MEANS, UNKNOWN)
    with pytest.raises(sa.ProblemError, match="choose certified or focused, or state sigma"):
        sa.CSAR().first(sa.Problem(4, 2, UNKNOWN), 1)
    with pytest.raises(sa.NoiseError, match="state it"):
        lower_bound(sa.Problem(4, 2, UNKNOWN), MEANS)


def test_forecast():
    problem, stated = sa.Problem(4, 2, UNKNOWN), sa.Problem(4, 2, sa.gaussian(0.5))
    found = sa.forecast(problem, sa.Certified(), MEANS, true_sigma=0.5, rng=1, replications=30)
    known = sa.forecast(stated, sa.Certified(), MEANS, rng=1)
    assert found.guarantee is None
    assert found.certified
    assert known.pulls < found.pulls < 3 * known.pulls
    assert found.simulated.low <= found.pulls <= 2 * found.simulated.high
    again = sa.forecast(problem, sa.Certified(), [64 * m for m in MEANS], true_sigma=32.0, rng=1)
    assert again.pulls == found.pulls
    with pytest.raises(sa.NoiseError, match="needs true_sigma"):
        sa.forecast(problem, sa.Certified(), MEANS)
    with pytest.raises(sa.NoiseError, match="true_sigma goes with"):
        sa.forecast(stated, sa.Certified(), MEANS, true_sigma=1.0)


def test_commands(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("arm,mean\na,1\nb,1\nc,0\nd,0\n")
    common = ["--means", str(path), "--k", "2"]

    def run(command, *options):
        return CliRunner().invoke(main, [command, *common, *options])

    for command in ("simulate", "forecast"):
        good = run(command, "--noise", "gaussian", "--true-sigma", "0.5")
        assert good.exit_code == 0, good.output
        assert "noise gaussian" in good.stdout
        for options, says in (
            (("--noise", "gaussian"), "say with --true-sigma"),
            (("--noise", "labels", "--true-sigma", "1"), "goes with --noise gaussian, not"),
            (("--noise", "gaussian", "--true-sigma", "-1"), "sigma > 0"),
        ):
            bad = run(command, *options)
            assert bad.exit_code != 0
            assert says in bad.stderr
    assert "state it, as gaussian:1.0" in run("lower-bound", "--noise", "gaussian").stderr


def test_intervals_of_a_campaign():
    """Those at hand, with a bound on sigma for one look or more in its place."""
    stated, problem = sa.Problem(5, 2, sa.gaussian(0.5)), sa.Problem(5, 2, UNKNOWN)
    phase = sa.Certified().first(problem, 1)
    tally, pulls = Tally(phase.plan.size), 40 * phase.plan.size
    assert _widths(problem, phase, tally) is None
    world = sa.environment(FIVE, sa.gaussian(0.5))
    world.add(tally, phase.plan, 0, pulls, np.random.default_rng(1))
    ratio = _widths(problem, phase, tally) / _widths(stated, phase, tally)
    assert ((ratio > 1.0) & (ratio < 1.4)).all()


def test_a_look_at_many_arms_stays_cheap():
    """A size that no dense matrix would allow."""
    n = 20_000
    means = np.zeros(n)
    means[:100] = 1.0
    problem = sa.Problem(n, 100, UNKNOWN, epsilon=50.0)
    found = sa.simulate(problem, sa.Certified(), sa.environment(means, sa.gaussian(0.5)), rng=1)
    assert found.verdict.certified
    assert found.verdict.certificate.sigma == pytest.approx(0.5, rel=0.1)


def test_looks_of_a_plan_that_is_listed():
    assert Looks(Planned((7,)), some_plan("cyclic")).schedule.number == 1
