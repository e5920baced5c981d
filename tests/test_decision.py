"""Decision classes: all that is claimed of one, by enumeration, on thousands of small cases."""

import dataclasses
import itertools
import math
from time import perf_counter

import numpy as np
import pytest
from decisions import KINDS, random_graph, violations
from support import on

import superarm as sa
from superarm import decision as d
from superarm import reference
from superarm.decision import indicators, span_basis, spanning_sets
from superarm.decision import path as path_module
from superarm.decision.base import as_rows
from superarm.decision.vanishing import lowered
from superarm.quadratic.bounds import spectral_bound
from superarm.quadratic.family import (
    family_bound,
    family_ratio,
    family_search,
    heaviest_set,
    sphere_through,
    square_of,
)

every_kind = pytest.mark.parametrize("kind", KINDS)


def cases(kind, count, tag=0):
    """Yield random small classes of a kind, each with its random numbers."""
    for seed in range(count):
        rng = np.random.default_rng([seed, tag])
        yield KINDS[kind](rng), rng


@pytest.fixture
def unlisted(monkeypatch):
    """No graph is small enough to have its paths listed."""
    monkeypatch.setattr(path_module, "_FEW", -1)


# ---- linear maximisation -------------------------------------------------------------------------


@every_kind
def test_every_claim_holds_by_enumeration(kind):
    """Best, best but one, membership, sizes, number, draws and exchanges, on 300 cases a kind."""
    for decision, rng in cases(kind, 300):
        assert violations(decision, rng) == [], decision


def test_every_claim_holds_where_paths_are_not_listed(unlisted):
    for decision, rng in cases("cyclic", 300):
        assert not decision.signed or decision.acyclic
        assert violations(decision, rng) == [], decision


@every_kind
def test_best_with_arms_forced_and_forbidden(kind):
    for decision, rng in cases(kind, 100, tag=1):
        rows = decision.enumerate()
        sets = [set(row[row >= 0].tolist()) for row in rows]
        arms = rng.permutation(decision.n)
        forced = set(arms[: rng.integers(0, min(3, decision.n) + 1)].tolist())
        forbidden = set(arms[len(forced) :][: rng.integers(0, 3)].tolist())
        weights = rng.standard_normal(decision.n)
        allowed = [s for s in sets if forced <= s and not forbidden & s]
        found = decision.best_within(weights, sorted(forced), sorted(forbidden))
        if not allowed:
            assert found is None
            continue
        assert set(found.tolist()) in allowed
        assert weights[found].sum() == pytest.approx(max(weights[list(s)].sum() for s in allowed))


@every_kind
def test_best_except_is_the_best_of_the_others(kind):
    for decision, rng in cases(kind, 60, tag=2):
        rows = decision.enumerate()
        weights = rng.standard_normal(decision.n)
        if len(rows) < 2:
            continue
        row = rows[rng.integers(len(rows))]
        excluded = row[row >= 0]
        found = decision.best_except(weights, excluded)
        others = [r[r >= 0] for r in rows if not np.array_equal(r, row)]
        assert not np.array_equal(found, excluded)
        assert weights[found].sum() == pytest.approx(max(weights[r].sum() for r in others))


# ---- what a class can tell -----------------------------------------------------------------------


@every_kind
def test_the_span_is_that_of_all_sets(kind):
    for decision, rng in cases(kind, 60, tag=3):
        if isinstance(decision, sa.TopK) and decision.k == decision.n:
            continue  # one set: nothing is measured
        chi = indicators(decision.enumerate(), decision.n)
        rank = np.linalg.matrix_rank(chi)
        rows = spanning_sets(decision, rng)
        assert len(rows) == rank
        assert all(decision.contains(row[row >= 0].tolist()) for row in rows)
        basis = span_basis(decision, rng)
        if basis is None:
            assert rank == decision.n
        else:
            assert basis.shape == (decision.n, rank)
            assert np.allclose(basis @ (basis.T @ chi.T), chi.T)


def test_the_span_of_paths_that_are_not_listed(unlisted):
    for decision, rng in cases("cyclic", 100, tag=3):
        rank = np.linalg.matrix_rank(indicators(decision.enumerate(), decision.n))
        assert len(spanning_sets(decision, rng)) == rank


def random_paths(rng, directed):
    """Return paths of any small graph: loops, parallel edges, dead ends, edges both ways."""
    while True:
        nodes = int(rng.integers(2, 8))
        edges = [tuple(rng.integers(0, nodes, 2).tolist()) for _ in range(rng.integers(1, 15))]
        if directed and rng.random() < 0.5:
            edges += [(v, u) for u, v in edges]
        ends = sorted({node for edge in edges for node in edge})
        if len(ends) > 1:
            source, target = rng.choice(ends, 2, replace=False).tolist()
            try:
                return sa.Paths(edges, source, target, directed=directed)
            except sa.ProblemError:
                continue  # the target is out of reach


@pytest.mark.parametrize("directed", [False, True])
def test_vanishing_weights_vanish_on_every_path(directed):
    """They bound the rank from above; without directions they give it exactly."""
    loose = 0
    for seed in range(400):
        paths = random_paths(np.random.default_rng([seed, 4]), directed)
        chi = indicators(paths.enumerate(), paths.n)
        assert not (chi @ paths.vanishing.T).any()
        rank = np.linalg.matrix_rank(chi)
        assert paths.most_independent >= rank
        loose += paths.most_independent > rank
    assert loose == 0 if not directed else loose <= 12


def test_lowered_weights_tell_paths_apart_as_before():
    for seed in range(100):
        rng = np.random.default_rng([seed, 5])
        paths = random_paths(rng, False)
        chi = indicators(paths.enumerate(), paths.n)
        idle = chi.sum(axis=0) == 0
        costs = np.where(idle, 1.0, rng.exponential(size=paths.n) + 0.01)
        shift = rng.standard_normal(len(paths.vanishing)) @ paths.vanishing
        found = lowered(-costs + shift, paths.vanishing)
        assert found is not None
        assert (found < 0).all()
        assert np.allclose(chi @ found, -chi @ costs)


def grid(rows, columns):
    """Return the edges of a grid, with a dead end, and a bridge to the target behind a fork."""
    nodes = list(itertools.product(range(rows), range(columns)))
    edges = [(a, (a[0] + 1, a[1])) for a in nodes if a[0] + 1 < rows]
    edges += [(a, (a[0], a[1] + 1)) for a in nodes if a[1] + 1 < columns]
    corner = (rows - 1, columns - 1)
    return [*edges, ((0, 0), "dead end"), (corner, "gate"), ("gate", "end"), ("gate", "end")]


def test_a_network_too_large_to_list_its_paths():
    """The least-squares costs have cycles that pay, though the network's have none."""
    paths = sa.Paths(grid(6, 6), (0, 0), "end", directed=False)
    assert not paths.signed
    rng = np.random.default_rng(1)
    costs = rng.exponential(size=paths.n) + 0.02
    noise = sa.gaussian(0.1)
    problem = sa.Problem(paths.n, paths, noise, epsilon=0.5, direction="minimize")
    world = sa.environment(costs, noise)
    run = sa.simulate(problem, sa.ICB(), world, rng=1, max_pulls=10**6)
    assert run.verdict.certified
    assert run.regret <= 0.5


def test_a_graph_whose_paths_cannot_be_settled_says_so(unlisted, monkeypatch):
    monkeypatch.setattr("superarm.decision.span._PATHS", 5)
    # on the rim of a planar graph an edge back cannot be part of a path, and only a search shows it
    edges = [
        (u, v)
        for a, b in random_graph(np.random.default_rng(3), 7, 15)
        for u, v in ((a, b), (b, a))
    ]
    paths = sa.Paths([*edges, *[(6, 7), (7, 6)]], 0, 7)
    monkeypatch.setattr(type(paths), "most_independent", property(lambda self: self.n))
    problem = sa.Problem(paths.n, paths, sa.gaussian(1.0), direction="minimize")
    with pytest.raises(sa.SupportError, match="do not settle which differences"):
        sa.Identification(problem, sa.ICB(), rng=1)


# ---- quadratic maximisation ----------------------------------------------------------------------


def inverse_on_span(decision, rng):
    """Return the inverse on the span of a random information matrix, and the basis."""
    basis = span_basis(decision, rng)
    rows = indicators(decision.enumerate(), decision.n)
    A = rows.T @ (rows * rng.integers(1, 20, (len(rows), 1)))
    Q = np.eye(decision.n) if basis is None else basis
    W = Q @ np.linalg.inv(Q.T @ A @ Q) @ Q.T
    return (W + W.T) / 2, basis


@every_kind
def test_found_at_most_maximum_at_most_bound(kind):
    near = []
    for decision, rng in cases(kind, 60, tag=6):
        if isinstance(decision, sa.TopK) and decision.k == decision.n:
            continue
        W, basis = inverse_on_span(decision, rng)
        sets = [row[row >= 0] for row in decision.enumerate()]
        values = [square_of(W, members) for members in sets]
        most = max(values)
        assert square_of(W, heaviest_set(W, decision)) == pytest.approx(most)
        found = square_of(W, family_search(W, decision))
        assert found <= most * (1 + 1e-12)
        near.append(found / most)
        assert family_bound(W, decision, basis) >= most
        assert min(values) >= family_ratio(W, decision, basis) * most * (1 - 1e-9)
    assert np.mean(near) > 0.97


@every_kind
def test_all_sets_lie_on_the_sphere(kind):
    for decision, rng in cases(kind, 40, tag=7):
        if isinstance(decision, sa.TopK) and decision.k == decision.n:
            continue
        centre, D, r2 = sphere_through(decision, span_basis(decision, rng))
        away = indicators(decision.enumerate(), decision.n) - centre
        assert np.allclose((away**2).sum(axis=1), r2)
        assert np.allclose(away @ D @ D.T, away)
        assert np.allclose(D.T @ D, np.eye(D.shape[1]))


def test_for_top_k_the_bound_is_the_spectral_one():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 12))
        topk = sa.TopK(n, int(rng.integers(1, n)))
        X = rng.standard_normal((2 * n, n))
        assert family_bound(X.T @ X, topk, None) == pytest.approx(spectral_bound(X.T @ X, topk.k))


# ---- rules on classes ----------------------------------------------------------------------------

RULES = {
    "icb": (sa.ICB(), reference.icb_sides),
    "icb-ellipsoid": (sa.ICB(radius="ellipsoid", constants="paper"), reference.icb_sides),
    "exhaustive": (sa.Exhaustive(), reference.exhaustive_sides),
    "saqm-exact": (sa.SAQM(oracle="exact"), lambda *a: reference.saqm_sides(*a, alpha="certified")),
}


def instance(kind, seed):
    """Return a class with several sets, costs of its arms, and all sets as tuples."""
    for tag in itertools.count(100 * seed):
        decision = KINDS[kind](np.random.default_rng([tag, 8]))
        sets = [tuple(row[row >= 0].tolist()) for row in decision.enumerate()]
        if len(sets) > 2:
            means = np.random.default_rng(tag).uniform(0.1, 3, decision.n)
            return decision, means, sorted(sets)


@pytest.mark.parametrize("rule", RULES)
@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_runs_equal_the_reference_fed_the_same_totals(kind, rule, seed):
    """One pull at a time, by enumeration, with dense matrices: the same answer at the same pull."""
    decision, means, sets = instance(kind, seed)
    algorithm, by_reference = RULES[rule]
    n = decision.n
    problem = sa.Problem(n, decision, sa.gaussian(1.0), epsilon=1.5, direction="minimize")
    chosen = sa.Uniform(tuple(sets))
    algorithm = on(algorithm, design=chosen, schedule=sa.Geometric(1.3))
    phase = algorithm.first(problem, 5)
    rng = np.random.default_rng(seed)
    rows = phase.plan.members(phase.plan.order(0, 300))
    totals = np.where(rows < 0, 0.0, means[rows]).sum(axis=1) + rng.standard_normal(300)
    found = sa.simulate(problem, algorithm, sa.Recorded(totals, means), rng=5)
    support = [tuple(row[row >= 0].tolist()) for row in phase.plan.members(slice(None))]
    independent = rule == "icb"
    looks = [t for t in itertools.takewhile(lambda t: t <= 300, schedule(phase))]
    expected = reference.run(
        by_reference,
        support,
        [1.0 / len(support)] * len(support),
        looks,
        lambda s: float(-totals[s]),
        sigma=1.0,
        n=n,
        k=sets,
        epsilon=1.5,
        delta=0.05,
        constants=algorithm.constants,
        region="independent" if independent else "ellipsoid",
    )
    if expected.sides.stop:
        assert found.verdict.certified
        assert found.pulls == expected.pulls
        assert found.verdict.answer == problem.names(expected.best)
        margin = expected.sides.gap - expected.sides.radius
        assert found.verdict.gap - found.verdict.radius == pytest.approx(margin, abs=1e-6)
    else:
        assert "limit" in found.verdict.reason


def schedule(phase):
    """Yield the times of a phase's looks."""
    return (phase.looks.time(look) for look in itertools.count(1))


@every_kind
def test_simulation_and_shuffled_tells_agree_to_the_bit(kind):
    decision, means, _ = instance(kind, 1)
    problem = sa.Problem(decision.n, decision, sa.gaussian(0.5), epsilon=1.0, direction="minimize")
    rule = sa.SAQM(schedule=sa.Geometric(1.2))
    phase = rule.first(problem, 5)
    rows = phase.plan.members(phase.plan.order(0, 3000))
    noise = 0.5 * np.random.default_rng(3).standard_normal(3000)
    totals = np.where(rows < 0, 0.0, means[rows]).sum(axis=1) + noise
    simulated = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=5)
    asked = sa.Identification(problem, rule, rng=5)
    pulls = asked.ask(3000)
    for i in np.random.default_rng(4).permutation(3000):
        asked.tell(pulls[i].id, totals[i])
    assert simulated.pulls < 3000
    assert asked.verdict.to_dict() == simulated.verdict.to_dict()


LAWS = [
    sa.gaussian(1.0),
    sa.labels(),
    sa.labels(shared=True),
    sa.bounded(1.0),
    sa.bounded(1.0, independent=True),
    sa.total(-1.0, 9.0),
]


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_blocks_have_the_law_of_single_pulls_for_sets_of_unequal_size(noise):
    paths = sa.Paths(
        [("s", "a"), ("a", "t"), ("s", "t"), ("s", "b"), ("b", "c"), ("c", "t")], "s", "t"
    )
    means = np.array([0.3, 0.2, 0.8, 0.1, 0.5, 0.4])
    problem = sa.Problem(paths.n, paths, noise, direction="minimize")
    plan = sa.Uniform().plan(problem, np.random.default_rng(0))
    world = sa.environment(means, noise)
    count, rng = 30_000, np.random.default_rng(1)
    single = world.pulls(plan, 0, count * plan.size, rng)
    order = plan.order(0, count * plan.size)
    from superarm.tally import Tally

    tally = Tally(plan.size)
    world.add(tally, plan, 0, count * plan.size, rng)
    for M in range(plan.size):
        row = plan.members(M)
        mean, scale = means[row[row >= 0]].sum(), max(single[order == M].std(), 1e-9)
        for sums in (single[order == M].sum(), tally.totals[M]):
            assert abs(sums - count * mean) < 6 * scale * math.sqrt(count)
        spread = [np.square(single[order == M]).sum(), tally.squares[M]]
        assert spread[0] == pytest.approx(spread[1], rel=0.03, abs=1.0)


def test_a_total_must_be_possible_for_the_path_that_was_measured():
    paths = sa.Paths([("s", "a"), ("a", "t"), ("s", "t")], "s", "t")
    crew = sa.Identification(
        sa.Problem(3, paths, sa.labels(), direction="minimize"), sa.ICB(), rng=1
    )
    for pull in crew.ask(2):
        with pytest.raises(sa.TotalError, match="is outside 0"):
            crew.tell(pull.id, len(pull.members) + 1.0)
        crew.tell(pull.id, float(len(pull.members)))


def test_one_group_needs_no_pull():
    paths = sa.Paths([("s", "a"), ("a", "t")], "s", "t")
    verdict = sa.Identification(sa.Problem(["up", "on"], paths, sa.gaussian(1.0)), rng=1).verdict
    assert verdict.certified
    assert (verdict.answer, verdict.pulls) == (("up", "on"), 0)


def test_the_estimate_is_the_truth_on_every_set_where_totals_have_no_noise():
    """Arms that always come together cannot be told apart, and need not be."""
    edges = [("s", "a"), ("a", "b"), ("b", "t"), ("s", "c"), ("c", "t"), ("a", "c")]
    paths = sa.Paths(edges, "s", "t")
    problem = sa.Problem(6, paths, sa.gaussian(1e-9), epsilon=0.01, direction="minimize")
    means = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.5])
    run = sa.simulate(problem, sa.Exhaustive(), sa.environment(means, sa.gaussian(1e-9)), rng=1)
    for row in as_rows(list(paths.sets())):
        arms = row[row >= 0]
        assert run.verdict.estimates[arms].sum() == pytest.approx(means[arms].sum(), abs=1e-6)


# ---- mistakes ------------------------------------------------------------------------------------

TRIANGLE = [("a", "b"), ("b", "c"), ("a", "c")]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sa.Partition(["x", "y"], {"x": 1}), "no capacity is given for group 'y'"),
        (lambda: sa.Partition(["x", "x"], {"x": 3}), "group 'x' has 2 arms, of which 3"),
        (lambda: sa.Partition(["x"], {"x": 0}), "nothing to choose"),
        (lambda: sa.SpanningTrees([("a", "b"), ("c", "d")]), "not connected"),
        (lambda: sa.SpanningTrees([("a", "a")]), "nothing to choose"),
        (lambda: sa.LinearMatroid([[1, 2], [3]]), "rows of numbers"),
        (lambda: sa.LinearMatroid([[1, math.nan]]), "finite numbers"),
        (lambda: sa.LinearMatroid([[0, 0]]), "nothing to choose"),
        (lambda: sa.Transversal([[], []]), "nothing to choose"),
        (lambda: sa.CustomMatroid(3, "no"), "must be a function"),
        (lambda: sa.Paths(TRIANGLE, "a", "a"), "two ends"),
        (lambda: sa.Paths(TRIANGLE, "a", "z"), "no edge touches 'z'"),
        (lambda: sa.Paths(TRIANGLE, "c", "a"), "no path leads from 'c' to 'a'"),
        (lambda: sa.Matchings([("l", "r"), ("l", "r")]), "listed twice"),
        (lambda: sa.Matchings([("l", "r")], 2), "no matching of 2 edges"),
        (lambda: sa.Matchings([("l", "r"), ("l", "q")], 0), "size must be a whole number >= 1"),
        (lambda: sa.Matchings([]), "no matching"),
        (lambda: sa.Problem(4, sa.SpanningTrees(TRIANGLE), sa.gaussian(1.0)), "about 3 arms"),
        *((lambda make=make, e=e: make(e), "edges must be a list of pairs")
          for make in (sa.SpanningTrees, sa.Matchings, lambda e: sa.Paths(e, "a", "b"))
          for e in (None, 3, "ab", ["ab"], [1, 2], [("a",)], [("a", "b", "c")])),
        *((lambda make=make: make([("a", [])]), "a node must be a text or a number")
          for make in (sa.SpanningTrees, sa.Matchings, lambda e: sa.Paths(e, "a", "b"))),
        (lambda: sa.Paths(TRIANGLE, [], "b"), "an end of a path must be"),
        (lambda: sa.Paths(TRIANGLE, "a", "b", directed="no"), "directed must be True or False"),
        (lambda: sa.Partition(None, {}), "groups must be a list"),
        (lambda: sa.Partition([[]], {}), "a group must be a text or a number"),
        (lambda: sa.Partition(["x"], None), "capacities must be a dict"),
        (lambda: sa.Partition(["x"], {"x": "1"}), "capacity of 'x' must be a whole number"),
        (lambda: sa.Partition(["x"], {"x": 0.5}), "capacity of 'x' must be a whole number"),
        (lambda: sa.LinearMatroid([["1", "2"]]), "finite numbers"),
        (lambda: sa.LinearMatroid([[10**400]]), "rows of numbers"),
        (lambda: sa.Transversal(3), "posts must be a list"),
        (lambda: sa.Transversal([3]), "posts must be a list"),
        (lambda: sa.Transversal([[[]]]), "a post must be a text or a number"),
        (lambda: sa.CustomMatroid("3", bool), "n must be a whole number"),
        (lambda: sa.CustomMatroid(0, bool), "n must be a whole number >= 1"),
        (lambda: sa.Problem(3, d.TopK(3, 5), sa.gaussian(1.0)), "k must be between 1 and"),
        (lambda: sa.Problem(3, d.TopK(3, 0), sa.gaussian(1.0)), "k must be between 1 and"),
        (lambda: d.TopK(3, 1.5), "k must be a whole number"),
        (lambda: d.TopK("a", 1), "the number of arms must be a whole number"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(sa.ProblemError, match=says):
        make()


def test_posts_may_be_passed_on_by_any_number_of_arms():
    """The last arm takes the first one's post, which takes the next one's, and so on: 3,000."""
    n = 3_000
    posts = [(i + 1, i) for i in range(n)] + [(n,)]
    moved = d.Transversal(posts)
    assert moved.rank == n + 1
    assert len(moved.best(np.arange(n + 1.0)[::-1])) == n + 1


def test_forcing_many_arms_costs_no_more_than_looking_at_all():
    """Not the square of it: 20,000 arms of which half are forced."""
    n = 20_000
    groups = d.Partition([i % 2 for i in range(n)], {0: n // 2, 1: 1})
    started = perf_counter()
    found = groups.best_within(np.zeros(n), range(0, n, 2), (1,))
    assert perf_counter() - started < 2
    assert len(found) == n // 2 + 1


def test_the_heaviest_path_of_a_large_graph_with_cycles_is_not_sought(unlisted):
    both = [*TRIANGLE, *((v, u) for u, v in TRIANGLE)]
    with pytest.raises(sa.ProblemError, match="direction='minimize'"):
        sa.Problem(6, sa.Paths(both, "a", "c"), sa.gaussian(1.0))


@pytest.mark.parametrize("setting", [{"alpha": "theorem"}, {"bound": "sdp"}])
def test_saqm_settings_for_the_best_k_of_n_are_refused(setting):
    problem = sa.Problem(3, sa.SpanningTrees(TRIANGLE), sa.gaussian(1.0))
    with pytest.raises(sa.ProblemError, match="for the best k of n arms"):
        sa.Identification(problem, sa.SAQM(**setting))


def test_sa_foa_is_for_the_best_k_of_n():
    problem = sa.Problem(3, sa.SpanningTrees(TRIANGLE), sa.gaussian(1.0))
    with pytest.raises(sa.ProblemError, match="choose icb, saqm or exhaustive"):
        sa.Identification(problem, sa.SAFOA())


def test_a_support_that_spans_less_than_the_class_names_the_arms():
    problem = sa.Problem(["ab", "bc", "ac"], sa.SpanningTrees(TRIANGLE), sa.gaussian(1.0))
    with pytest.raises(sa.SupportError, match=r"determine only 2 of 3 means.*ab, ac|ab.*ac"):
        sa.Identification(problem, sa.ICB(design=sa.Uniform(((0, 1), (1, 2)))), rng=1)


def test_a_support_may_leave_open_what_the_class_does():
    """Two edges in a row always come together: their difference is nobody's concern."""
    edges = [("s", "a"), ("a", "t"), ("s", "t")]
    problem = sa.Problem(3, sa.Paths(edges, "s", "t"), sa.gaussian(1.0), direction="minimize")
    crew = sa.Identification(problem, sa.ICB(design=sa.Uniform(((0, 1), (2,)))), rng=1)
    assert len(crew.ask(2)) == 2


def test_a_copy_keeps_the_class():
    problem = sa.Problem(3, sa.SpanningTrees(TRIANGLE), sa.gaussian(1.0))
    copy = dataclasses.replace(problem, epsilon=0.5)
    assert copy.decision == problem.decision
    assert (copy.epsilon, copy.k) == (0.5, 2)
    with pytest.raises(sa.ProblemError, match="the decision class says that k is 2, not 1"):
        dataclasses.replace(problem, k=1)


def test_a_guessed_alpha_is_no_certificate_even_for_single_arms():
    """Parallel edges: every set is one arm, and the widest is only searched for."""
    edges = [("s", "t")] * 30
    problem = sa.Problem(30, sa.Paths(edges, "s", "t"), sa.gaussian(1.0), epsilon=5.0)
    run = sa.simulate(problem, sa.SAQM(alpha=1.0), sa.environment([0.0] * 30, problem.noise), rng=1)
    assert run.verdict.done
    assert not run.verdict.certified
    assert "assumed, not proved" in run.verdict.reason


def test_the_best_k_are_the_first_of_a_stable_order():
    """Ties and infinities included."""
    rng = np.random.default_rng(6)
    for _ in range(500):
        n = int(rng.integers(1, 10))
        values = rng.choice([-np.inf, -1.0, 0.0, 1.0, np.inf], n)
        k = int(rng.integers(1, n + 1))
        expected = np.sort(np.argsort(-values, kind="stable")[:k])
        assert sa.TopK(n, k).best(values).tolist() == expected.tolist()
