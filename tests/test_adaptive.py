"""The adaptive radius: each inequality of its proof against brute force, then runs."""

import itertools
import math

import numpy as np
import pytest
from adaptive_cases import SURE, Cut, CutByThree, hunt_adaptive
from certified_cases import crowd_case
from support import most_wrong

import superarm as sa
from superarm import adaptive
from superarm.adaptive import Adaptive
from superarm.algorithms import adapting
from superarm.cyclic_plan import CyclicPlan
from superarm.label_variance import LabelVariance, can_divide, divides_well, kept_blocks
from superarm.levels import Levels
from superarm.tally import Tally

PLANS = {
    "6 choose 3": ([[0, 3, 4], [2, 3, 4], [2, 4, 5], [0, 2, 4]], 6, None),
    "7 choose 2": ([[0, 1], [0, 2], [0, 3]], 7, None),
    "8 choose 3, relabelled": (
        [[0, 1, 3], [0, 1, 4], [0, 2, 3], [0, 2, 5], [0, 1, 2]],
        8,
        [7, 3, 0, 6, 1, 5, 2, 4],
    ),
    "2 choose 1": ([[0], [1], [0]], 2, None),
}


def plan_of(name):
    blocks, n, arms = PLANS[name]
    return CyclicPlan(np.array(blocks), n, arms=None if arms is None else np.array(arms))


def members(plan):
    """Return the super-arms as rows of 0 and 1, by arm."""
    rows = plan.members(slice(None))
    x = np.zeros((len(rows), plan.n))
    np.put_along_axis(x, rows, 1.0, axis=1)
    return x


def by_place(plan, values):
    return np.asarray(values)[plan.arms]


def differences(n, k):
    """Return chi_M - chi_M' and its level, for all pairs of sets."""
    sets = [np.bincount(s, minlength=n) for s in itertools.combinations(range(n), k)]
    for one, other in itertools.permutations(sets, 2):
        yield one - other, int(np.abs(one - other).sum()) // 2


def measured(plan, p, cycles, rng):
    """Return the tally of whole cycles of independent labels."""
    successes = rng.binomial(cycles, np.asarray(p)[plan.members(slice(None))]).sum(axis=1)
    return tally_of(plan, cycles, successes)


def tally_of(plan, cycles, totals):
    tally = Tally(plan.size)
    tally.add_block(np.full(plan.size, cycles), totals, np.zeros(plan.size))
    return tally


def means_of(plan, p, cycles):
    """Return the tally in which each super-arm came back as its mean."""
    return tally_of(plan, cycles, cycles * members(plan) @ p)


def truth(plan, p):
    """sum_i h_i W_i by place, from the definition."""
    x = members(plan)[:, plan.arms]
    y = x @ np.linalg.inv(x.T @ x)
    y -= y.mean(axis=1, keepdims=True)
    h = by_place(plan, p) * (1 - by_place(plan, p))
    return y.T @ ((x @ h)[:, None] * y)


# ---- the variance of a difference ----------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_weights_are_the_variances_of_all_differences(name):
    plan, rng = plan_of(name), np.random.default_rng(1)
    variance, x = LabelVariance(plan), members(plan_of(name))
    p = rng.random(plan.n)
    weights = variance.weighted(by_place(plan, p * (1 - p)))
    assert weights == pytest.approx(truth(plan, p))
    solve = np.linalg.inv(x.T @ x)
    for difference, _ in differences(plan.n, plan.k):
        of_a_total = x @ (p * (1 - p))
        expected = ((x @ solve @ difference) ** 2 * of_a_total).sum()
        z = by_place(plan, difference)
        assert z @ weights @ z == pytest.approx(expected)
        assert expected <= variance.noisiest * (difference**2).sum() * (1 + 1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_reach_is_what_one_label_can_do_to_any_difference(name):
    plan = plan_of(name)
    x = members(plan)
    y = x @ np.linalg.inv(x.T @ x)
    levels = min(plan.k, plan.n - plan.k)
    most = np.zeros(levels)
    for difference, d in differences(plan.n, plan.k):
        most[d - 1] = max(most[d - 1], np.abs(y @ difference).max())
    reach = LabelVariance(plan).reach(levels)
    assert (reach >= most - 1e-12).all()
    assert reach == pytest.approx(most)


@pytest.mark.parametrize("name", PLANS)
def test_the_bound_is_one_for_all_sets_where_estimates_have_no_error(name):
    """What is left is h <= u^2 + (1 - 2u) p, and the greatest eigenvalue or entries."""
    plan, rng = plan_of(name), np.random.default_rng(2)
    variance, levels = LabelVariance(plan), min(plan.k, plan.n - plan.k)
    for _ in range(20):
        p = rng.beta(0.5, 0.5, plan.n)
        bound = variance.bound(means_of(plan, p, 5), 0.05)
        assert np.linalg.eigvalsh(bound.matrix - truth(plan, p))[0] >= -1e-12
        squares = bound._replace(room=0.0).squares(levels)
        assert (bound.squares(levels) > squares).all()
        for difference, d in differences(plan.n, plan.k):
            z = by_place(plan, difference)
            assert z @ truth(plan, p) @ z <= squares[d - 1] + 1e-12


@pytest.mark.parametrize("name", PLANS)
def test_nu_is_bounded_and_not_by_far(name):
    plan, rng = plan_of(name), np.random.default_rng(3)
    variance, x = LabelVariance(plan), members(plan_of(name))[:, plan_of(name).arms]
    used = x[: variance.kept * plan.places]
    inverse = np.linalg.inv(used.T @ used)
    unit = np.eye(plan.n)
    weights = np.array([variance.weighted(unit[i]) for i in range(plan.n)])
    for _ in range(10):
        slope = 1 - 2 * rng.random(plan.n)
        Q = slope[:, None] * inverse * slope
        exact = np.linalg.eigvalsh(np.einsum("ij,iab,jbc->ac", Q, weights, weights))[-1]
        assert exact <= variance.spread(slope) * (1 + 1e-9) <= 3 * exact


def exceeded(plan, p, cycles, room, runs, seed):
    """Count runs in which sum_i h_i W_i is beyond its bound, the room times a number."""
    variance, rng, bad = LabelVariance(plan), np.random.default_rng(seed), 0
    for _ in range(runs):
        bound = variance.bound(measured(plan, p, cycles, rng), 0.2)
        bad += np.linalg.eigvalsh(truth(plan, p) - bound.matrix)[-1] > room * bound.room
    return bad


LOW = (0.05, 0.1, 0.05, 0.1, 0.9, 0.95, 0.9, 0.95)


@pytest.mark.parametrize("name", PLANS)
def test_the_bound_holds_with_probability(name):
    plan, runs = plan_of(name), 200
    for p in (LOW[: plan.n], (0.5,) * plan.n):
        assert exceeded(plan, p, 20, 1.0, runs, 4) <= most_wrong(runs, 0.2)


@pytest.mark.parametrize("name", [name for name in PLANS if name != "2 choose 1"])
def test_without_room_it_would_not(name):
    runs = 200
    assert exceeded(plan_of(name), (0.3,) * plan_of(name).n, 500, 0.0, runs, 5) > most_wrong(
        runs, 0.2
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_pilot_says_nothing_else_and_the_others_do_not_choose_u(name):
    """So that errors of p^ do not depend on u."""
    plan, rng = plan_of(name), np.random.default_rng(6)
    variance = LabelVariance(plan)
    cut = variance.kept * plan.places
    totals = measured(plan, LOW[: plan.n], 10, rng).totals
    other = measured(plan, LOW[: plan.n], 10, rng).totals
    pilot = tally_of(plan, 10, np.append(totals[:cut], other[cut:]))
    rest = tally_of(plan, 10, np.append(other[:cut], totals[cut:]))
    tally = tally_of(plan, 10, totals)

    def estimates(results):
        return variance._info.scaled(10).estimate(plan, results).means

    assert estimates(pilot) == pytest.approx(estimates(tally))
    assert np.array_equal(variance.guess(rest, 10), variance.guess(tally, 10))
    assert not np.allclose(variance.guess(pilot, 10), variance.guess(tally, 10))


def test_both_parts_of_the_blocks_tell_all_arms_apart_where_they_can():
    plan = plan_of("6 choose 3")  # the last block alone, every other arm, does not
    assert kept_blocks(plan) == 2
    assert can_divide(plan)
    assert divides_well(plan)
    assert not can_divide(CyclicPlan(np.array([[0, 1, 3]]), 7))
    odd = CyclicPlan(np.array([[0, 1, 3], [0, 2, 4]]), 6)
    assert (kept_blocks(odd), can_divide(odd), divides_well(odd)) == (1, True, False)
    assert not can_divide(CyclicPlan(np.array([[0, 2, 4], [0, 1, 3]]), 6))


# ---- exponents and the mixture -------------------------------------------------------------------


def cumulant(p, s):
    """Log E exp(s (Y - p)) of a label."""
    return np.logaddexp(np.log1p(-p), np.log(p) + s) - p * s


P, S = np.meshgrid(np.linspace(1e-4, 1 - 1e-4, 401), np.linspace(-6, 6, 481))


def test_labels_obey_all_three_exponents():
    h, s = P * (1 - P), np.abs(S)
    for bound in (
        h * (np.expm1(s) - s),
        h * s**2 / 2 + adaptive._THIRD * s**3,
        s**2 / 8,
    ):
        assert (cumulant(P, S) <= bound + 1e-12).all()


def test_no_smaller_constant_would_do():
    h, s = P * (1 - P), np.abs(S)
    assert (cumulant(P, S) > h * s**2 / 2 + 0.95 * adaptive._THIRD * s**3).any()
    assert (cumulant(P, S) > h * s**2 / 2 * 1.01).any()
    assert (cumulant(P, S) > h * (np.expm1(s) - s) * 0.99).any()


@pytest.mark.parametrize("name", PLANS)
def test_errors_of_all_differences_obey_psi(name):
    """The log-mgf of a cycle's error, from the definition."""
    plan, rng = plan_of(name), np.random.default_rng(7)
    variance, x = LabelVariance(plan), members(plan)
    levels = min(plan.k, plan.n - plan.k)
    solve = np.linalg.inv(x.T @ x)
    norms = np.zeros(levels)
    pairs = list(differences(plan.n, plan.k))
    for difference, d in pairs:
        norms[d - 1] = max(norms[d - 1], difference @ solve @ difference)
    for p in (rng.beta(0.3, 0.3, plan.n).clip(1e-3, 1 - 1e-3), np.full(plan.n, 0.02)):
        top = np.linalg.eigvalsh(truth(plan, p))[-1]
        squares = 2 * np.arange(1, levels + 1) * top
        eta = np.geomspace(0.1, 50, 30)[None, :].repeat(levels, axis=0)
        most = plan.k / 4 * norms
        psi = adaptive._exponents(
            eta, squares[:, None], most[:, None], variance.reach(levels)[:, None]
        )
        for difference, d in pairs[:: max(1, len(pairs) // 300)]:
            moved = np.outer(eta[0], x @ solve @ difference)
            exact = sum(cumulant(p[i], moved[:, x[:, i] > 0]).sum(axis=1) for i in range(plan.n))
            assert (exact <= psi[d - 1] + 1e-12).all()


def test_weights_add_up_to_one():
    assert math.fsum(np.exp(adaptive._LOG_WEIGHTS)) == pytest.approx(1, abs=1e-12)
    assert math.fsum(np.exp(adaptive._LOG_WEIGHTS)) <= 1 + 1e-12


@pytest.mark.parametrize("cycles", [1, 7, 1000])
def test_roots_are_roots_from_above(cycles):
    logs, most, reach = np.array([3.0, 20.0]), np.array([2.0, 5.0]), np.array([0.3, 1.0])
    variance = np.array([0.2, 5.0])
    z = adaptive._roots(logs, cycles, 10.0, variance, most, reach)
    eta = adaptive._ETA / np.sqrt(10.0 * most)[:, None]
    psi = adaptive._exponents(eta, variance[:, None], most[:, None], reach[:, None])
    for d in range(2):
        terms = eta[d] * z[d] - cycles * psi[d] + adaptive._LOG_WEIGHTS
        found = math.log(math.fsum(np.exp(terms)))
        assert logs[d] - 1e-9 <= found <= logs[d] + 1e-6


@pytest.mark.parametrize("ratio", [1 / 16, 1 / 4, 1, 4, 64])
def test_where_labels_are_as_noisy_as_can_be_it_is_the_levels_radius(ratio):
    logs, rho = np.array([3.0, 12.0, 25.0]), 40.0
    most = np.array([2.0, 4.0, 6.0])
    cycles = rho * ratio * 20
    found = adaptive._roots(logs, cycles, rho, most, most, np.full(3, 1e3)) / cycles
    levels = Levels(1.0, logs, rho=rho).at(cycles) * np.sqrt(most / cycles)
    assert found == pytest.approx(levels, rel=0.01)


# ---- the rule ------------------------------------------------------------------------------------


def phase_of(n=8, k=3, **changed):
    problem = sa.Problem(n, k, sa.labels(), **{"epsilon": 0.3, "delta": 0.1} | changed)
    rule = sa.Certified(radius="adaptive")
    phase = rule.first(problem, 3)
    return problem, rule, phase, rule.radius_of(problem, phase)


@pytest.mark.parametrize("epsilon", [0.3, 0.0])
@pytest.mark.parametrize("p", [0.5, 0.03])
def test_it_is_hardly_above_the_levels_radius_and_far_below_for_sure_labels(epsilon, p):
    problem, rule, phase, C = phase_of(epsilon=epsilon)
    assert isinstance(C, Adaptive)
    levels, plan = sa.Certified().constant(problem, phase.delta), phase.plan
    for cycles in (1, 10, 100, 1000):
        t = cycles * plan.size
        info = phase.information(t)
        found = rule.at_tally(C, means_of(plan, np.full(8, p), cycles), 1)(info, 3)
        unknown = C.widths(t, 1, info, 3)
        assert (found <= unknown * (1 + 1e-12)).all()
        assert (unknown <= 1.03 * levels.widths(t, 1, info, 3)).all()
        assert C.at_look(t, 1)(info, 3) == pytest.approx(unknown)
    if p == 0.03:
        assert (found < 0.5 * levels.widths(t, 1, info, 3)).all()


def test_later_looks_have_a_smaller_share():
    _, rule, phase, C = phase_of()
    tally = means_of(phase.plan, np.full(8, 0.1), 50)
    info = phase.information(tally.pulls)
    first, tenth = (rule.at_tally(C, tally, look)(info, 3) for look in (1, 10))
    assert (first < tenth).all()
    assert C.delta == pytest.approx(0.05 * phase.delta)
    assert C.logs == pytest.approx(sa.Certified().constant(phase_of()[0], 0.095).logs)


def test_the_certificate_says_so_and_takes_fewer_pulls():
    problem, world = crowd_case("english")
    pulls = {}
    for kind in ("levels", "adaptive"):
        for seed in range(4):
            run = sa.simulate(problem, sa.Certified(radius=kind), world, rng=seed)
            assert run.verdict.certified
            assert not run.wrong(0.5)
            assert ("adaptive" in run.verdict.certificate.bound) == (kind == "adaptive")
            pulls[kind] = pulls.get(kind, 0) + run.pulls
    assert pulls["adaptive"] < 0.95 * pulls["levels"]


def test_directions_and_forecasts():
    """Where the least are best, the variance is the same; a forecast sees the means."""
    p = np.array([0.95, 0.95, 0.9, 0.1, 0.05, 0.05])
    problem = sa.Problem(6, 2, sa.labels(), epsilon=0.05)
    least = sa.Problem(6, 2, sa.labels(), epsilon=0.05, direction="minimize")
    rule = sa.Certified(radius="adaptive")
    found, other = sa.forecast(problem, rule, p, rng=1), sa.forecast(least, rule, 1 - p, rng=1)
    assert found.answer == other.answer
    assert found.pulls == other.pulls < sa.forecast(problem, sa.Certified(), p, rng=1).pulls
    assert found.pulls <= found.guarantee.pulls


# ---- where it holds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise", [sa.gaussian(1.0), sa.labels(shared=True), sa.bounded(1.0, independent=True)], ids=str
)
def test_it_is_for_independent_labels_only(noise):
    problem = sa.Problem(6, 2, noise, epsilon=0.5)
    with pytest.raises(sa.ProblemError, match=r"independent labels only.*choose radius levels"):
        sa.Certified(radius="adaptive").first(problem, 1)


def test_more_arms_than_it_can_bound_are_refused(monkeypatch):
    monkeypatch.setattr(adapting, "MOST_ARMS", 5)
    problem = sa.Problem(6, 2, sa.labels(), epsilon=0.5)
    with pytest.raises(sa.ProblemError, match=r"6 arms.*more than 5 are too many"):
        sa.Certified(radius="adaptive").first(problem, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 100}, "a budget needs the radius levels: leave out adaptive"),
        ({"design": sa.Uniform()}, "an adaptive radius needs a cyclic design"),
        ({"schedule": sa.Geometric(1.1)}, "an adaptive radius needs a cyclic design"),
        ({"sigma": "paper"}, "leave out sigma paper"),
    ],
)
def test_settings_that_it_does_not_hold_for_are_refused(settings, message):
    with pytest.raises(sa.SettingError, match=message):
        sa.Certified(radius="adaptive", **settings)


@pytest.mark.parametrize(
    ("n", "k"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (6, 3), (7, 3), (8, 4), (13, 4), (31, 6)]
)
def test_every_plan_gets_a_pilot(n, k):
    """A difference set, of one or two blocks, would leave nothing for it."""
    assert divides_well(phase_of(n, k)[2].plan)


def test_blocks_that_leave_no_pilot_are_refused():
    problem = sa.Problem(7, 3, sa.labels(), epsilon=0.5)
    with pytest.raises(sa.SettingError, match=r"these 1 do not: choose more blocks"):
        sa.Certified(radius="adaptive", design=sa.Cyclic(1)).first(problem, 1)
    assert sa.Certified(radius="adaptive", design=sa.Cyclic(3)).first(problem, 1).plan.size == 21


# ---- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURE)
def test_wrong_at_most_delta(name):
    found = hunt_adaptive(name, 60, 0.2)
    assert found.stopped == found.runs
    assert found.wrong <= most_wrong(60, 0.2)


@pytest.mark.parametrize(
    ("name", "kind"), [("as noisy as can be", Cut), ("nearly sure", CutByThree)]
)
def test_a_cut_radius_is_caught(name, kind):
    runs, delta = 200, 0.03
    assert hunt_adaptive(name, runs, delta, kind).wrong > most_wrong(runs, delta)
