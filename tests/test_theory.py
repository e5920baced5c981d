"""The theory: maxima against brute force, bounds against adversaries and simulated runs."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from decisions import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw
from support import RULES, close, on

import superarm as sa
from superarm import decision as d
from superarm import theory
from superarm.errors import ProblemError, SettingError
from superarm.plan import Plan
from superarm.theory import climb, coverage, extremes
from superarm.theory.coverage import covered, design_information
from superarm.theory.looks import LookTimes, first_look

GAUSS = sa.gaussian(1.0)


def sets_of(decision):
    return [tuple(row[row >= 0].tolist()) for row in decision.enumerate()]


def chi(n, members):
    x = np.zeros(n)
    x[list(members)] = 1.0
    return x


def random_case(kind, seed, epsilon=0.0):
    """Return a problem with a small class of this kind, means with ties, and a plan's design."""
    rng = np.random.default_rng([seed, sum(map(ord, kind))])
    decision = KINDS[kind](rng)
    costs = isinstance(decision, d.Paths) and not decision.acyclic
    means = rng.random(decision.n).round(int(rng.integers(1, 4)))
    problem = sa.Problem(
        decision.n,
        decision,
        GAUSS,
        epsilon=epsilon,
        direction="minimize" if costs or rng.random() < 0.3 else "maximize",
    )
    return problem, means, rng


def random_plan(problem, rng):
    """Return a plan on all sets or some, in equal or unequal proportions."""
    sets = sets_of(problem.decision)
    if rng.random() < 0.5:
        return sa.Uniform("full").plan(problem, rng)
    return sa.Weighted(sets, rng.uniform(0.2, 1.0, len(sets))).plan(problem, rng)


def slow_lambda(plan):
    """Lambda_p, one pull after the other, and its pseudo-inverse (the inverse on the span)."""
    rows = plan.members(slice(None))
    shares = getattr(plan, "proportions", None)
    shares = np.ones(len(rows)) if shares is None else np.asarray(shares)
    matrix = np.zeros((plan.n, plan.n))
    for row, share in zip(rows, shares / shares.sum(), strict=True):
        x = chi(plan.n, row[row >= 0])
        matrix += share * np.outer(x, x)
    return matrix, np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)


# ---- Delta_min, rho, rho' by brute force ---------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_delta_min_is_that_of_all_sets(kind):
    for seed in range(150):
        problem, means, _ = random_case(kind, seed)
        totals = sorted(
            (
                problem.sign * math.fsum(means[list(members)])
                for members in sets_of(problem.decision)
            ),
            reverse=True,
        )
        found = theory.delta_min(problem, means)
        if len(totals) == 1:
            assert found == math.inf
        else:
            assert found == pytest.approx(totals[0] - totals[1], abs=1e-12)
            assert found == 0 or found > 1e-9  # a tie is a tie, whatever floats say


def test_a_tie_that_floats_do_not_see():
    problem = sa.Problem(4, d.Partition("aabb", {"a": 1, "b": 1}), GAUSS)
    assert theory.delta_min(problem, [0.1, 0.3, 0.2, 0.0]) == pytest.approx(0.2)
    trees = sa.Problem(3, d.Paths([(0, 1), (1, 2), (0, 2)], 0, 2), GAUSS)
    assert 0.1 + 0.2 != 0.3
    assert theory.delta_min(trees, [0.1, 0.2, 0.3]) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_maxima_are_those_of_all_sets(kind):
    for seed in range(60):
        problem, means, rng = random_case(kind, seed, epsilon=0.1)
        plan = random_plan(problem, rng)
        _, W = slow_lambda(plan)
        widths = np.sqrt(np.clip(np.diagonal(W), 0, None))
        every = [chi(problem.n, members) for members in sets_of(problem.decision)]
        pairs = list(itertools.product(every, every))
        squares = max(x @ W @ x for x in every)
        exchange = max(widths @ np.abs(x - y) for x, y in pairs) ** 2
        apart = max((x - y) @ W @ (x - y) for x, y in pairs)
        for found, truth in (
            (theory.rho(problem, plan), squares),
            (theory.rho_prime(problem, plan), exchange),
            (theory.rho_difference(problem, plan), apart),
        ):
            assert found.exact
            assert found.value == pytest.approx(truth, rel=1e-7, abs=1e-7)
            assert found.upper >= found.value
        ahead = theory.delta_min(problem, means) + problem.epsilon
        assert theory.H_epsilon(problem, plan, means).value == pytest.approx(squares / ahead**2)
        assert theory.H_prime_epsilon(problem, plan, means).value == pytest.approx(
            exchange / ahead**2, abs=1e-9
        )
        assert apart <= min(4 * squares, exchange) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_sets_differ_in_more_arms_than_reach(kind):
    for seed in range(25):
        decision = random_case(kind, seed)[0].decision
        sets = [set(members) for members in sets_of(decision)]
        most = max(len(a ^ b) for a in sets for b in sets)
        assert most <= extremes._reach(decision)
        if kind == "top-k":
            assert most == extremes._reach(decision)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_exact_brackets_the_truth(kind, monkeypatch):
    truth = []
    for few in (extremes.FEW, 0):
        monkeypatch.setattr(extremes, "FEW", max(few, 1))
        for seed in range(25):
            problem, _, rng = random_case(kind, seed)
            plan = random_plan(problem, rng)
            maxima = [
                f(problem, plan) for f in (theory.rho, theory.rho_prime, theory.rho_difference)
            ]
            if few:
                truth.append([found.value for found in maxima])
                continue
            for found, value in zip(maxima, truth[seed], strict=True):
                assert found.value <= value * (1 + 1e-7) + 1e-7
                assert found.upper >= value * (1 - 1e-7) - 1e-7
                assert found.how


def test_the_search_for_rho_against_brute_force_and_when_it_is_not_finished(monkeypatch):
    problem = sa.Problem(16, 8, GAUSS)  # 12,870 sets: more than are compared outright
    plan = sa.Uniform("3n").plan(problem, np.random.default_rng(1))
    found = theory.rho(problem, plan)
    W = design_information(plan).inverse()
    rows = problem.decision.enumerate()
    truth = max(W[np.ix_(row, row)].sum() for row in rows)
    assert found.how == "exact search"
    assert found.exact
    assert found.value == pytest.approx(truth, rel=1e-9)
    monkeypatch.setattr(extremes, "_EFFORT", -1.0)
    short = theory.rho(problem, plan)
    assert "unfinished" in short.how
    assert short.value <= truth * (1 + 1e-9) <= short.upper * (1 + 1e-8)
    assert not short.exact
    monkeypatch.setattr(extremes, "_SEARCHED", 10)
    large = theory.rho(problem, plan)
    assert "spectral" in large.how
    assert large.value <= truth * (1 + 1e-9) <= large.upper * (1 + 1e-8)


def test_climbs_do_not_depend_on_chance():
    W = np.diag(np.arange(6.0))
    graph = d.SpanningTrees(list(itertools.combinations(range(4), 2)))
    assert climb.great_difference(graph, W) == climb.great_difference(graph, W)
    assert climb.great_exchange(graph, np.arange(6.0)) == 15.0  # two disjoint trees


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.data())
def test_maxima_know_no_names(n, data):
    """Renaming arms changes no maximum; scaling rewards scales H by the square."""
    k = data.draw(st.integers(1, n - 1))
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    problem = sa.Problem(n, k, GAUSS, epsilon=0.25)
    scaled = sa.Problem(n, k, sa.gaussian(4.0), epsilon=1.0)
    rows = sets_of(problem.decision)
    place = rng.permutation(n)
    weights = rng.uniform(0.2, 1.0, len(rows))
    means = rng.random(n)
    plan = sa.Weighted(rows, weights).plan(problem, rng)
    renamed = sa.Weighted(
        [tuple(sorted(int(place[i]) for i in row)) for row in rows], weights
    ).plan(problem, rng)
    moved = np.empty(n)
    moved[place] = means
    for f in (theory.H_epsilon, theory.H_prime_epsilon):
        H = f(problem, plan, means).value
        assert f(problem, renamed, moved).value == pytest.approx(H, rel=1e-6)
        assert f(problem, plan, means + 7.0).value == pytest.approx(H, rel=1e-6)
        assert f(scaled, plan, 4 * means).value == pytest.approx(H / 16, rel=1e-6)


# ---- what a plan has covered ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_covers_what_is_said(seed):
    rng = np.random.default_rng(seed)
    problem = sa.Problem(5, 2, GAUSS)
    plan = random_plan(problem, rng)
    share = np.ones(plan.size) if plan.proportions is None else plan.proportions
    share = share / share.sum()
    Lambda, _ = slow_lambda(plan)
    W = design_information(plan).inverse()
    assert np.allclose(W @ Lambda, np.eye(5), atol=1e-8)
    for t in rng.integers(1, 400, 30).tolist():
        tau, growth = covered(plan, t)
        counts = plan.counts(t) / share
        assert tau <= counts.min() * (1 + 1e-12)
        assert tau >= t - plan.size + 1
        if tau > 0:
            assert counts.max() <= growth * counts.min() * (1 + 1e-12)
    assert covered(plan, plan.size * 10) == (10 * plan.size, 1.0) or plan.proportions is not None


def test_a_listed_plan_covers_what_is_said():
    problem = sa.Problem(4, 2, GAUSS)
    sets = sets_of(problem.decision)
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = [sets[i] for i in rng.permutation(np.repeat(np.arange(6), rng.integers(1, 9, 6)))]
        plan = sa.Listed(order).plan(problem, rng)
        for t in range(1, len(order) + 1):
            tau, growth = covered(plan, t)
            relative = plan.counts(t) / plan.counts(len(order)) * len(order)
            assert close(tau, relative.min())
            assert tau == 0 or close(growth * tau, relative.max())
        assert covered(plan, len(order)) == pytest.approx((len(order), 1.0))
        assert covered(plan, len(order) + 1)[0] == 0.0
        total = design_information(plan).scaled(len(order)).inverse()
        truth = sum(np.outer(chi(4, s), chi(4, s)) for s in order)
        assert np.allclose(total @ truth, np.eye(4))


def test_a_plan_of_unknown_proportions_is_refused():
    class Odd(Plan):
        n, k, size, spanning, cycle = 3, 1, 3, 3, None

        def members(self, index):
            return np.arange(3)[:, None][index]

        def order(self, start, stop):
            raise NotImplementedError

        def counts(self, t):
            raise NotImplementedError

        def describe(self):
            return {"kind": "odd"}

    with pytest.raises(SettingError, match="odd"):
        design_information(Odd())


# ---- from a condition on t to a number of pulls --------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-3, 1e12), st.floats(0.5, 60))
def test_sufficient_pulls_is_the_greater_root(a, b):
    t = theory.sufficient_pulls(a, b)
    for later in (t, t * (1 + 1e-9), 1.5 * t, 10 * t):
        assert later >= a * (2 * math.log(later) + b) * (1 - 1e-9)
    if t > 1:
        assert t == pytest.approx(-2 * a * lambertw(-math.exp(-b / 2) / (2 * a), -1).real, rel=1e-6)
        before = t * (1 - 1e-6)
        assert before < a * (2 * math.log(before) + b)
    assert theory.mended_form(a, b) >= t * (1 - 1e-12)


def test_sufficient_pulls_at_the_ends():
    assert theory.sufficient_pulls(0.0, 3.0) == 1.0
    assert theory.sufficient_pulls(math.inf, 3.0) == math.inf
    assert theory.sufficient_pulls(0.1, 0.5) == 1.0  # satisfied by every t
    assert theory.sufficient_pulls(1e300, 5.0) > 1e300
    assert theory.sufficient_pulls(7.0, 3.0, slope=0.0) == 21.0  # looks that are planned
    assert theory.mended_form(7.0, 3.0, slope=0.0) == 21.0


@pytest.mark.parametrize(("a", "b", "slope"), [(math.nan, 1, 2), (1, math.nan, 2), (1, 1, 3)])
def test_sufficient_pulls_of_what_is_no_number(a, b, slope):
    with pytest.raises(SettingError, match="must be numbers and the slope 2 or 0"):
        theory.sufficient_pulls(a, b, slope)


def test_the_closed_forms_as_printed():
    """Written out once more, from the proofs."""
    H, alpha, sigma, K, delta, n = 13.0, 0.4, 1.5, 252, 0.05, 10
    c1 = 6 / math.pi**2
    three = (3 + 1 / alpha) ** 2
    N = three * 8 * sigma**2 * math.log(c1 * K / delta) * H
    L = 2 * math.sqrt(16 * three**2 * sigma**4 * H**2 + N)
    printed = 8 * three * sigma**2 * H * math.log(c1 * K / delta)
    printed += 16 * three * sigma**2 * H * math.log(L)
    assert close(theory.printed_corollary1(H, alpha, sigma, math.log(K), delta), printed)
    N = 8 * sigma**2 * math.log(c1 * n / delta) * H
    L = 2 * math.sqrt(64 * sigma**4 * H**2 + N)
    printed = 16 * sigma**2 * H * math.log(c1 * n / delta) + 32 * sigma**2 * H * math.log(L)
    assert close(theory.printed_lemma3(H, sigma, n, delta), printed)


def test_the_printed_corollary_is_too_small_by_what_it_drops():
    """N + 2 a log L' in place of N + 4 a log L: less than the root, for all but tiny cases."""
    for alpha, H in itertools.product((1.0, 0.1, 0.001), (1.0, 100.0, 1e6)):
        a = 8 * (3 + 1 / alpha) ** 2 * H
        b = math.log(6 / math.pi**2 * 252 / 0.05)
        printed = theory.printed_corollary1(H, alpha, 1.0, math.log(252), 0.05)
        assert printed < theory.sufficient_pulls(a, b) < theory.mended_form(a, b)


@pytest.mark.parametrize("last", [1, 2, 3, 7, 50, 1000])
def test_first_look(last):
    problem = sa.Problem(4, 2, GAUSS)
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))
    asked = []

    def satisfied(look, t):
        asked.append(look)
        return look >= last

    found = first_look(LookTimes(sa.Every(), plan), satisfied)
    assert found == (last, plan.spanning + last - 1)
    assert len(asked) <= 2 * last.bit_length() + 2
    planned = sa.Planned(tuple(range(4, 10)))
    found = first_look(LookTimes(planned, plan), satisfied)
    assert found == ((last, 3 + last) if last <= 6 else None)
    assert first_look(LookTimes(sa.Every(), plan), lambda look, t: False) is None


# ---- the bounds: against an adversary ------------------------------------------------------------
# On the events of Proposition 1 (Lemma 1) estimates may be anywhere within the radius. The bound
# says: at a look that suffices the rule stops, wherever they are.

ADVERSARIES = {
    "saqm": sa.SAQM(),
    "saqm-exact": sa.SAQM(oracle="exact"),
    "saqm-theorem": sa.SAQM(alpha="theorem"),
    "saqm-spectral": sa.SAQM(alpha="spectral"),
    "saqm-number": sa.SAQM(alpha=0.3),
    "saqm-paper": sa.SAQM(alpha=1.0, constants="paper"),
    "icb": sa.ICB(),
    "icb-ellipsoid": sa.ICB(radius="ellipsoid"),
    "exhaustive": sa.Exhaustive(),
    "sa-foa": sa.SAFOA(),
    "sa-foa-certified": sa.SAFOA(certified=True),
}


def worst_estimates(problem, theta, info, C, box, rng):
    """Yield estimates at the edge of what the events allow."""
    best, second = problem.decision.best_two(theta)
    one, two = chi(problem.n, best), chi(problem.n, second)
    if box:  # each arm at an end of its interval
        widths = C * np.sqrt(info.diagonal())
        for sign in (two - one, *rng.choice([-1.0, 0.0, 1.0], (10, problem.n))):
            yield theta + sign * widths
        yield theta + widths * (two - one) * 0.999
        return
    directions = [one, two, one - two, one + two, *rng.standard_normal((10, problem.n))]
    directions += [
        chi(problem.n, problem.decision.best(x)) for x in rng.standard_normal((5, problem.n))
    ]
    if not problem.topk:  # what lies outside of the span is not estimated
        every = np.array([chi(problem.n, s) for s in sets_of(problem.decision)])
        directions = [np.linalg.pinv(every) @ (every @ x) for x in directions]
    for x in directions:
        for sign in (1, -1):
            yield theta + sign * C * info.solve(x) / max(info.norm(x), 1e-12)


def check_adversary(problem, rule, means, design, rng, shrink=1.0, box=False):
    """Return how often the rule went on at the first look that suffices, and at some after it."""
    rule = on(rule, design=design)
    phase = rule.first(problem, 3)
    found = theory.guarantee(problem, rule, phase.plan, means)
    theta = problem.sign * np.asarray(means)
    went_on = 0
    for t in (found.pulls, found.pulls + 1, found.pulls + 7, 2 * found.pulls + 3):
        t = math.ceil(t * shrink)
        tau, _ = covered(phase.plan, t)
        info = phase.information(t)
        C = rule.constant(problem, problem.delta).at(t)
        if shrink == 1.0 and t != found.pulls and tau < found.pulls:
            continue  # between whole cycles a look may not suffice where one before did
        for estimate in worst_estimates(problem, theta, info, C, box or rule.name == "icb", rng):
            went_on += not rule.sides(problem, phase, 1, estimate, info, C).stop
    return went_on


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_adversary_can_stop_the_stop(name):
    rule = ADVERSARIES[name]
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 9))
        k = int(rng.integers(1, n))
        problem = sa.Problem(n, k, GAUSS, epsilon=[0.0, 0.5][seed % 2])
        means = rng.random(n).round(1)
        if theory.delta_min(problem, means) + problem.epsilon == 0:
            means[np.argmax(means)] += 0.5
            means = np.linspace(0, 1, n) if theory.delta_min(problem, means) == 0 else means
        sets = sets_of(problem.decision)
        design = sa.Uniform("full")
        if seed % 3 == 0:
            design = sa.Weighted(sets, rng.uniform(0.3, 1.0, len(sets)))
        assert check_adversary(problem, rule, means, design, rng) == 0


@pytest.mark.parametrize("kind", ["spanning trees", "partition", "dag", "matchings"])
def test_no_adversary_can_stop_the_stop_in_other_classes(kind):
    tried = 0
    for seed in range(14):
        problem, means, rng = random_case(kind, seed, epsilon=0.3)
        if problem.only is not None:
            continue
        tried += 1
        for name in ("icb", "exhaustive", "saqm", "saqm-spectral", "saqm-number"):
            assert check_adversary(problem, ADVERSARIES[name], means, sa.Uniform("full"), rng) == 0
    assert tried > 5


def test_the_adversary_wins_a_little_earlier():
    """Where Delta_min is that of the farthest set, the bounds leave (nearly) no room."""
    problem = sa.Problem(2, 1, GAUSS)
    rng = np.random.default_rng(0)
    for name in ("icb", "exhaustive", "saqm-exact"):
        rule, box = ADVERSARIES[name], name == "saqm-exact"  # at k = 1 sets are arms
        for shrink, wins in ((1.0, False), (0.95, True)):
            went_on = check_adversary(
                problem, rule, [1.0, 0.0], sa.Uniform("full"), rng, shrink, box
            )
            assert (went_on > 0) == wins


# ---- the bounds: in simulation -------------------------------------------------------------------

INSTANCES = {
    "gap": (sa.Problem(8, 3, GAUSS), [0.5] * 3 + [0.0] * 5),
    "spread": (sa.Problem(9, 4, GAUSS, epsilon=0.2), np.linspace(0, 1, 9)),
    "ties": (sa.Problem(7, 3, GAUSS, epsilon=0.6), [0.5] * 5 + [0.0] * 2),
    "labels": (sa.Problem(8, 4, sa.labels(), epsilon=0.1), np.linspace(0.1, 0.9, 8)),
    "costs": (
        sa.Problem(8, 3, GAUSS, epsilon=0.2, direction="minimize"),
        np.linspace(-1, 1, 8),
    ),
    "k=1": (sa.Problem(6, 1, GAUSS, epsilon=0.1), [0.5, 0.4, 0.1, 0.0, 0.0, 0.0]),
    "trees": (
        sa.Problem(
            10,
            d.SpanningTrees(list(itertools.combinations(range(5), 2))),
            GAUSS,
            epsilon=0.2,
        ),
        np.linspace(0, 1, 10),
    ),
    "paths": (
        sa.Problem(
            8,
            d.Paths([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (0, 3)], 0, 4),
            GAUSS,
            epsilon=0.2,
        ),
        np.linspace(1, 0, 8),
    ),
}


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", RULES)
def test_runs_end_within_the_bound(name, instance):
    problem, means = INSTANCES[instance]
    rule = RULES[name]
    if not problem.topk and name in ("certified", "sa-foa", "sa-foa-certified", "saqm-theorem"):
        return
    rule = on(rule, design=sa.Uniform("4n"), schedule=sa.Geometric(1.2))
    plan = rule.first(problem, 5).plan
    rule = on(rule, design=sa.Uniform(_sets(plan)))  # the same super-arms in every run
    plan = rule.first(problem, 5).plan
    found = theory.guarantee(problem, rule, plan, means)
    world = sa.environment(means, problem.noise)
    runs = [sa.simulate(problem, rule, world, rng=seed) for seed in range(4)]
    assert max(run.pulls for run in runs) <= found.pulls
    assert max(run.pulls for run in runs) > found.pulls / 400  # a bound, not just a large number


def _sets(plan):
    return tuple(tuple(int(i) for i in row if i >= 0) for row in plan.members(slice(None)))


def test_many_runs_end_within_the_bound():
    """At most delta of them may be late; none is."""
    problem, means = INSTANCES["gap"]
    world = sa.environment(means, problem.noise)
    for rule in (sa.ICB(), sa.SAQM(alpha=0.9), sa.Exhaustive(), sa.Certified()):
        rule = on(rule, design=sa.Uniform("full"), schedule=sa.Geometric(1.2))
        found = theory.guarantee(problem, rule, rule.first(problem, 0).plan, means)
        late = sum(
            sa.simulate(problem, rule, world, rng=seed).pulls > found.pulls for seed in range(100)
        )
        assert late == 0


def test_the_printed_corollary_is_no_bound():
    """Every run takes more pulls than Corollary 1 prints, and fewer than it should print."""
    problem = sa.Problem(4, 2, GAUSS)
    means = [0.5, 0.5, 0.0, 0.0]
    rule = sa.SAQM.preset(
        "text", alpha=0.01, design=sa.Uniform("full"), schedule=sa.Geometric(1.05)
    )
    found = theory.corollary1_bound(problem, rule, rule.first(problem, 0).plan, means)
    world = sa.environment(means, problem.noise)
    pulls = [sa.simulate(problem, rule, world, rng=seed).pulls for seed in range(20)]
    assert min(pulls) > found.printed * 1.1
    assert max(pulls) <= found.pulls <= found.mended
    assert found.alpha == pytest.approx(0.01)


def test_theorem_3_is_corollary_1_with_theorem_1s_ratio():
    problem, means = INSTANCES["gap"]
    rule = sa.SAQM(alpha="theorem", design=sa.Uniform("full"))
    plan = rule.first(problem, 0).plan
    third = theory.theorem3_bound(problem, sa.SAQM(), plan, means)
    first = theory.corollary1_bound(problem, rule, plan, means)
    assert third.statement == "Theorem 3"
    assert dataclasses.replace(third, statement="Corollary 1") == first
    # 1/alpha^2 = (k-1) kappa n(n-1)/(k(k-1)) = kappa n(n-1)/k, kappa the least possible here
    kappa = theory.least_condition_number(8, 3)
    assert 1 / first.alpha**2 == pytest.approx(kappa * 8 * 7 / 3)
    assert first.factor == pytest.approx((3 + 1 / first.alpha) ** 2)
    by_number = theory.corollary1_bound(
        problem, sa.SAQM(alpha=first.alpha, design=rule.design), plan, means
    )
    assert by_number.root == pytest.approx(first.root)


def test_guarantees_by_rule():
    problem, means = INSTANCES["gap"]
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))
    statements = {
        name: theory.guarantee(problem, rule, plan, means).statement for name, rule in RULES.items()
    }
    assert statements["certified"] == "levels"
    assert statements["saqm"] == statements["saqm-number"] == "Corollary 1"
    assert statements["icb"] == statements["icb-ellipsoid"] == "Lemma 3"
    assert statements["exhaustive"] == statements["sa-foa"] == "differences"
    short = sa.ICB(constants="paper")
    assert theory.lemma3_bound(problem, short, plan, means).probability == pytest.approx(
        1 - (math.pi**2 / 6) ** 2 * 0.05
    )
    assert theory.lemma3_bound(problem, sa.ICB(), plan, means).probability == 0.95
    near = sa.Problem(8, 3, GAUSS, epsilon=0.4)
    half, nearer = sa.SAFOA(threshold=0.5), sa.Problem(8, 3, GAUSS, epsilon=0.2)
    found = theory.difference_bound(near, half, plan, means)
    assert found.epsilon == 0.2
    assert found.pulls == theory.difference_bound(nearer, sa.SAFOA(), plan, means).pulls


def test_ties_and_ends_have_a_reason():
    plan = sa.Uniform("full").plan(sa.Problem(4, 2, GAUSS), np.random.default_rng(0))
    tie = theory.guarantee(sa.Problem(4, 2, GAUSS), sa.ICB(), plan, [1, 1, 1, 0])
    assert tie.pulls is None
    assert "tied" in tie.reason
    assert tie.root == tie.hardness == math.inf
    assert tie.to_dict()["root"] is None
    with_epsilon = sa.Problem(4, 2, GAUSS, epsilon=0.5)
    assert theory.guarantee(with_epsilon, sa.ICB(), plan, [1, 1, 1, 0]).pulls > 0
    ends = theory.guarantee(with_epsilon, sa.ICB(schedule=sa.Planned((6, 12))), plan, [1, 1, 0, 0])
    assert ends.pulls is None
    assert "no look of the schedule" in ends.reason


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 8), st.data())
def test_guarantees_are_invariant(n, data):
    """Shifting all means, renaming arms, scaling rewards, sigma and epsilon: the same pulls."""
    k = data.draw(st.integers(1, n - 1))
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    means = rng.integers(0, 64, n) / 64
    problem = sa.Problem(n, k, GAUSS, epsilon=0.125)
    scaled = sa.Problem(n, k, sa.gaussian(4.0), epsilon=0.5)
    minimal = sa.Problem(n, k, GAUSS, epsilon=0.125, direction="minimize")
    plan = sa.Uniform("full").plan(problem, rng)
    place = rng.permutation(n)
    for rule in (sa.SAQM(alpha=0.5), sa.SAQM(), sa.ICB(), sa.Exhaustive()):
        pulls = theory.guarantee(problem, rule, plan, means).pulls
        assert theory.guarantee(problem, rule, plan, means + 3).pulls == pulls
        assert theory.guarantee(problem, rule, plan, means[place]).pulls == pulls
        assert theory.guarantee(scaled, rule, plan, 4 * means).pulls == pulls
        assert theory.guarantee(minimal, rule, plan, -means).pulls == pulls


def test_planned_looks_share_delta_equally():
    problem = sa.Problem(4, 2, GAUSS, epsilon=0.5)
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))
    rule = sa.ICB(schedule=sa.Planned((6, 60, 60_000)))
    found = theory.guarantee(problem, rule, plan, [1, 1, 0, 0])
    C2 = rule.constant(problem, 0.05).at(1) ** 2
    assert rule.constant(problem, 0.05).at(10**6) ** 2 == C2
    assert found.root == found.mended == pytest.approx(4 * C2 * found.hardness)
    assert found.pulls == 60_000


def test_pulls_shrink_as_the_question_gets_easier():
    plan = sa.Uniform("full").plan(sa.Problem(6, 2, GAUSS), np.random.default_rng(0))
    for rule in (sa.SAQM(), sa.ICB(), sa.Exhaustive()):

        def pulls(gap, epsilon, delta, rule=rule):
            problem = sa.Problem(6, 2, GAUSS, epsilon=epsilon, delta=delta)
            return theory.guarantee(problem, rule, plan, [gap, gap, 0, 0, 0, 0]).pulls

        assert pulls(0.2, 0, 0.05) > pulls(0.2, 0.1, 0.05) > pulls(0.4, 0.1, 0.05)
        assert pulls(0.2, 0, 0.01) > pulls(0.2, 0, 0.05)


# ---- the least condition number ------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(2, 9) for k in range(1, n)])
def test_the_balanced_design_has_the_least_condition_number(n, k):
    problem = sa.Problem(n, k, GAUSS)
    rng = np.random.default_rng(n * 10 + k)
    values = np.linalg.eigvalsh(slow_lambda(sa.Uniform("full").plan(problem, rng))[0])
    assert values[-1] / values[0] == pytest.approx(theory.least_condition_number(n, k))
    sets = sets_of(problem.decision)
    for _ in range(30):
        weights = rng.exponential(size=len(sets)) * (rng.random(len(sets)) < 0.7)
        matrix = sum(w * np.outer(chi(n, s), chi(n, s)) for w, s in zip(weights, sets, strict=True))
        values = np.linalg.eigvalsh(matrix) if weights.any() else [0.0, 1.0]
        least = theory.least_condition_number(n, k)
        assert values[-1] >= least * values[0] * (1 - 1e-9)


def test_the_ends_of_the_condition_number():
    assert theory.least_condition_number(1, 1) == 1.0
    assert theory.least_condition_number(7, 1) == 1.0
    assert theory.least_condition_number(7, 7) == math.inf
    assert theory.least_condition_number(7, 6) == 36.0
    for n, k in ((0, 1), (3, 0), (3, 4), (3.5, 1), (True, 1)):
        with pytest.raises(ProblemError):
            theory.least_condition_number(n, k)


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "says"),
    [
        ([1, 2], "2 means are given for 3 arms"),
        ([1, 2, "x"], "list of numbers"),
        ([1, 2, math.nan], "finite"),
        ([[1, 2, 3]], "finite"),
        ([1, 2, 1e300], "1e+100"),
    ],
)
def test_means_that_cannot_be(means, says):
    with pytest.raises(ProblemError) as raised:
        theory.delta_min(sa.Problem(3, 1, GAUSS), means)
    assert says in str(raised.value)


def test_a_rule_without_a_theorem_is_refused():
    problem, means = INSTANCES["gap"]
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))

    class Bare:
        name = "bare"

    with pytest.raises(SettingError, match="bare"):
        theory.guarantee(problem, Bare(), plan, means)


def test_a_theorem_that_does_not_speak_of_the_class_is_refused():
    problem, means = INSTANCES["trees"]
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))
    with pytest.raises(ProblemError, match="theorem"):
        theory.theorem3_bound(problem, sa.SAQM(), plan, means)
    with pytest.raises(ProblemError, match="sa-foa"):
        theory.difference_bound(problem, sa.SAFOA(), plan, means)


def test_every_public_name_is_listed():
    assert sorted(theory.__all__) == list(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)
    assert coverage.covered is covered
