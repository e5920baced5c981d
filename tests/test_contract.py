"""What every algorithm owes, whatever it computes: invariances, and one law for all drivers."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import PHASED, RULES, close, gaussian_totals, on, random_rows

import superarm as sa
from superarm import reference
from superarm.algorithms import ALGORITHMS

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
SEEDS = range(6)


def question(n, k, **changed):
    return sa.Problem(
        n, k, changed.pop("noise", sa.gaussian(1.0)), **{"epsilon": 1.0, "delta": 0.1} | changed
    )


def instance(seed):
    """Return sizes, means, a support and totals that make most rules stop."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    k = int(rng.integers(1, n))
    means = np.round(rng.normal(0, 2, n), 3)
    rows = random_rows(n, k, min(3 * n, sa.Problem(n, k, sa.gaussian(1.0)).decision.size), seed)
    return n, k, means, rows


def run(problem, rule, totals, means, seed=5):
    return sa.simulate(problem, rule, sa.Recorded(totals, means), rng=seed)


def recorded(problem, rule, means, seed, count=4000):
    plan = rule.first(problem, 5).plan
    return gaussian_totals(plan, means, count, seed)


def same(a, b, answer=None):
    """Assert two runs agree: the answer, the look, and both sides up to rounding."""
    assert set(a.verdict.answer) == set(answer or b.verdict.answer)
    assert (a.pulls, a.verdict.look, a.verdict.certified) == (
        b.pulls,
        b.verdict.look,
        b.verdict.certified,
    )
    assert close(a.verdict.gap, b.verdict.gap, 1e-6)
    assert close(a.verdict.radius, b.verdict.radius, 1e-6)


def test_every_algorithm_has_a_row():
    rules = (*RULES.values(), *PHASED.values())
    assert {type(rule) for rule in rules} == set(ALGORITHMS.values())


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_permuting_the_arms_permutes_the_answer(rule, seed):
    n, k, means, rows = instance(seed)
    problem = question([f"arm {i}" for i in range(n)], k)
    place = np.random.default_rng(seed).permutation(n)  # arm i goes to place[i]
    moved_rows = tuple(tuple(int(place[i]) for i in row) for row in rows)
    names = [""] * n
    moved_means = np.empty(n)
    for i in range(n):
        names[place[i]], moved_means[place[i]] = f"arm {i}", means[i]
    rule = on(rule, design=sa.Uniform(rows))
    totals = recorded(problem, rule, means, seed)
    moved = run(question(names, k), on(rule, design=sa.Uniform(moved_rows)), totals, moved_means)
    same(run(problem, rule, totals, means), moved)


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", [3.0, 2.0**20])
def test_shifting_all_means_changes_nothing(rule, seed, level):
    n, k, means, rows = instance(seed)
    problem, rule = question(n, k), on(rule, design=sa.Uniform(rows))
    totals = recorded(problem, rule, means, seed)
    same(run(problem, rule, totals, means), run(problem, rule, totals + 3.0 * k, means + 3.0))


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_rewards_and_sigma_together_changes_only_the_scale(rule, seed):
    n, k, means, rows = instance(seed)
    problem, rule = question(n, k), on(rule, design=sa.Uniform(rows))
    scaled = question(n, k, noise=sa.gaussian(8.0), epsilon=8.0)  # a power of two: no rounding
    totals = recorded(problem, rule, means, seed)
    one, other = run(problem, rule, totals, means), run(scaled, rule, 8 * totals, 8 * means)
    sides = dataclasses.replace(
        other.verdict, gap=other.verdict.gap / 8, radius=other.verdict.radius / 8
    )
    same(one, dataclasses.replace(other, verdict=sides))


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_minimising_is_maximising_the_negative(rule, seed):
    n, k, means, rows = instance(seed)
    rule = on(rule, design=sa.Uniform(rows))
    up, down = question(n, k), question(n, k, direction="minimize")
    totals = recorded(up, rule, means, seed)
    one, other = run(up, rule, totals, means), run(down, rule, -totals, -means)
    same(one, other)
    assert other.regret == pytest.approx(one.regret)


@every_rule
@pytest.mark.parametrize("schedule", [sa.Every(), sa.Geometric(1.1)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_simulation_and_shuffled_tells_agree_to_the_bit(rule, schedule, seed):
    n, k, means, rows = instance(seed)
    problem = question(n, k)
    rule = on(rule, design=sa.Uniform(rows), schedule=schedule)
    count = 300
    totals = recorded(problem, rule, means, seed, count)
    simulated = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=5)
    asked = sa.Identification(problem, rule, rng=5)
    pulls = asked.ask(count)
    for i in np.random.default_rng(seed).permutation(count):
        asked.tell(pulls[i].id, totals[i])
    if simulated.pulls < count:  # it stopped by itself
        assert asked.verdict.to_dict() == simulated.verdict.to_dict()
        assert np.array_equal(asked.verdict.estimates, simulated.verdict.estimates)
    else:
        assert not asked.verdict.certified
        assert asked.verdict.pulls <= count


@every_rule
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_one_swap_of_tells_changes_nothing(rule, data):
    n, k, means, rows = instance(1)
    problem, rule = question(n, k), on(rule, design=sa.Uniform(rows))
    count = 60
    totals = recorded(problem, rule, means, 1, count)
    order = list(range(count))
    i, j = data.draw(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)))
    order[i], order[j] = order[j], order[i]
    verdicts = []
    for tells in (range(count), order):
        asked = sa.Identification(problem, rule, rng=5)
        pulls = asked.ask(count)
        for s in tells:
            asked.tell(pulls[s].id, totals[s])
        verdicts.append(asked.verdict.to_dict())
    assert verdicts[0] == verdicts[1]


@every_rule
@pytest.mark.parametrize("n", [2, 5])
def test_k_1_is_the_plain_best_arm_problem(rule, n):
    """At k = 1 each pull measures one arm: theta^ are the arms' averages, A is diagonal."""
    means = np.linspace(1, 0, n)
    problem = question(n, 1, epsilon=0.3)
    assert rule.first(problem, 5).plan.size == n
    totals = recorded(problem, rule, means, 3)
    found = run(problem, rule, totals, means)
    t = found.pulls
    arm = rule.first(problem, 5).plan.members(slice(None))[np.arange(t) % n, 0]
    average = np.array([totals[:t][arm == i].mean() for i in range(n)])
    counts = np.bincount(arm, minlength=n)
    assert found.verdict.estimates == pytest.approx(average)
    best = int(np.argmax(average))
    assert found.verdict.answer == (str(best + 1),)
    C = rule.constant(problem, problem.delta).at(t)
    if rule.name == "saqm":
        radius = C * (counts[best] ** -0.5 + counts.min() ** -0.5)
        assert found.verdict.radius == pytest.approx(radius)
    if rule.name == "icb":
        slack = [
            average[j] + C * (counts[j] ** -0.5 + counts[best] ** -0.5) - average[best]
            for j in range(n)
            if j != best
        ]
        assert max(slack) == pytest.approx(found.verdict.radius - found.verdict.gap)


@every_rule
def test_k_n_needs_no_pull(rule):
    problem = question(4, 4)
    found = sa.simulate(problem, rule, sa.environment([0, 1, 2, 3], problem.noise), rng=1)
    assert (found.pulls, found.regret, found.verdict.certified) == (0, 0.0, True)


@every_rule
def test_ties_with_epsilon_0_end_at_the_limit(rule):
    problem = question(5, 2, epsilon=0.0)
    world = sa.environment([1, 0, 0, 0, 0], problem.noise)
    found = sa.simulate(problem, rule, world, rng=1, max_pulls=50_000)
    assert found.pulls == 50_000
    assert found.verdict.done
    assert found.verdict.certificate is None
    assert "limit of 50,000 pulls" in found.verdict.reason
    assert "1" in found.verdict.answer


@pytest.mark.parametrize(
    ("kind", "preset"),
    sorted({(type(r), preset) for r in RULES.values() for preset in r.PRESETS}, key=str),
)
def test_presets_run_and_can_be_changed(kind, preset):
    problem = question(6, 2, epsilon=3.0, noise=sa.labels())
    rule = kind.preset(preset, schedule=sa.Geometric(1.05))
    assert rule.schedule == sa.Geometric(1.05)
    found = sa.simulate(problem, rule, sa.environment([1, 1, 0, 0, 0, 0], sa.labels()), rng=2)
    assert found.regret == 0
    assert found.verdict.done


def test_what_the_presets_differ_in():
    text, tables, true = (sa.SAQM.preset(p) for p in ("text", "experiments", "corrected"))
    assert (text.alpha, tables.alpha, true.alpha) == ("theorem", 1.0, "certified")
    assert (text.constants, tables.constants, true.constants) == ("paper", "paper", "corrected")
    assert str(text.schedule) == "every"
    problem = question(9, 4, noise=sa.labels())
    assert text.scale(problem) == 4.0
    assert true.scale(problem) == 1.0
    assert sa.SAFOA.preset("text").threshold == 0.5
    assert sa.SAFOA.preset("experiments").threshold == 1.0
    assert sa.ICB.preset("experiments").radius == "ellipsoid"
    assert sa.ICB.preset("text").objection(problem)
    assert not sa.ICB().objection(problem)
    with pytest.raises(sa.SettingError, match="preset 'paper'"):
        sa.SAQM.preset("paper")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (sa.SAQM, {"alpha": 0.0}),
        (sa.SAQM, {"alpha": 1.1}),
        (sa.SAQM, {"alpha": float("nan")}),
        (sa.SAQM, {"alpha": 1e-170}),  # its square is 0
        (sa.SAQM, {"alpha": "guess"}),
        (sa.SAQM, {"constants": "printed"}),
        (sa.SAQM, {"oracle": "magic"}),
        (sa.SAFOA, {"threshold": 0.0}),
        (sa.SAFOA, {"draws": 0}),
        (sa.ICB, {"radius": "wide"}),
        (sa.Exhaustive, {"sigma": "guess"}),
    ],
)
def test_impossible_settings_are_refused(kind, settings):
    with pytest.raises(sa.SettingError):
        kind(**settings)


def test_exhaustive_refuses_what_cannot_be_enumerated():
    with pytest.raises(sa.ProblemError, match="choose saqm or icb"):
        sa.Identification(question(60, 30), sa.Exhaustive())


def certified_sides(theta, W, k, epsilon, C):
    """The bound on (5) level by level, with the strongest set of each level by enumeration."""
    n = len(theta)
    best, _ = reference.best_two(theta, k)
    centre = np.eye(n) - 1 / n
    unit = np.linalg.eigvalsh(centre @ W @ centre)[-1]
    most = -np.inf
    for rival in itertools.combinations(range(n), k):
        d = len(set(rival) - set(best))
        if d == 0:
            continue
        gap = theta[list(best)].sum() - theta[list(rival)].sum()
        radius = C * np.sqrt(2 * d * unit)
        if radius - gap > most:
            most, sides = radius - gap, reference.Sides(best, rival, gap, radius, False)
    return dataclasses.replace(sides, stop=bool(sides.gap + epsilon >= sides.radius))


def sides_of(rule, theta, W, k, epsilon, C, draws):
    """Both sides by the reference."""
    if rule.name == "saqm":
        return reference.saqm_sides(theta, W, k, epsilon, C, rule.alpha)
    if rule.name == "sa-foa" and rule.certified:
        return certified_sides(theta, W, k, epsilon, C)
    if rule.name == "sa-foa":
        return reference.sa_foa_sides(theta, W, k, epsilon, C, draws, rule.threshold)
    if rule.name == "certified":  # looks that are not planned: the j-th has 6/(pi^2 j^2) of delta
        n, look = len(theta), draws
        events = reference.shares_of_levels(n, k, 0.1, min(k, n - k))
        radii = [np.sqrt(2 * (event + np.log(np.pi**2 / 6 * look**2))) for event in events]
        return reference.certified_sides(theta, np.linalg.inv(W), k, epsilon, radii)
    by_name = {"icb": reference.icb_sides, "exhaustive": reference.exhaustive_sides}
    return by_name[rule.name](theta, W, k, epsilon, C)


@every_rule
@pytest.mark.parametrize("seed", range(8))
def test_runs_equal_the_reference_fed_the_same_totals(rule, seed):
    """One pull at a time, dense, from the paper: the same answer after the same pull."""
    n, k, means, rows = instance(seed)
    problem = question(n, k)
    rule = on(rule, design=sa.Uniform(rows), schedule=sa.Every())
    phase = rule.first(problem, 5)
    totals = gaussian_totals(phase.plan, means, 220, seed)
    found = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=5)
    support = [tuple(map(int, row)) for row in phase.plan.members(slice(None))]
    independent = rule.name == "icb" and rule.radius == "independent"

    def drawn(look):
        index = phase.rng(look).integers(phase.plan.size, size=n * getattr(rule, "draws", 1))
        return [support[i] for i in index]

    looks = range(phase.plan.spanning, len(totals) + 1)
    options = {"draws": drawn} if rule.name == "sa-foa" else {}
    if rule.name == "certified":
        options = {"draws": lambda look: look}
    expected = reference.run(
        lambda theta, W, k, epsilon, C, draws=(): sides_of(rule, theta, W, k, epsilon, C, draws),
        support,
        [1.0 / len(support)] * len(support),
        looks,
        lambda s: float(totals[s]),
        sigma=1.0,
        n=n,
        k=k,
        epsilon=1.0,
        delta=0.1,
        constants=getattr(rule, "constants", "corrected"),
        region="independent" if independent else "ellipsoid",
        **options,
    )
    assert found.verdict.answer == problem.names(expected.best)
    assert found.pulls == expected.pulls
    assert ("limit" in found.verdict.reason) == (not expected.sides.stop)
    assert found.verdict.radius == pytest.approx(expected.sides.radius, rel=1e-6)
    # with several rivals equally strong the rule may name either: only the margin is determined
    margin = expected.sides.gap - expected.sides.radius
    assert found.verdict.gap - found.verdict.radius == pytest.approx(margin, abs=1e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda: sa.SAQM(alpha=None),
        lambda: sa.SAFOA(draws=1.5),
        lambda: sa.SAFOA(threshold="half"),
        lambda: sa.SAQM(design="8n"),
        lambda: sa.SAQM(schedule="every"),
        lambda: sa.SAQM.preset("corrected", foo=1),
        lambda: sa.Identification(question(4, 2), sa.ICB),
        lambda: sa.simulate(question(4, 2), sa.ICB, sa.environment([0] * 4, sa.gaussian(1))),
        lambda: sa.simulate(
            question(4, 2), sa.ICB(), sa.environment([0] * 4, sa.gaussian(1)), max_pulls=1e4
        ),
        lambda: sa.Weighted([(0, 1)], ["x"]),
        lambda: sa.Weighted([(0, 1)], 1.0),
        lambda: sa.Weighted([(0, 1)], None),
        lambda: sa.SAQM.preset([]),
        lambda: sa.SAQM.preset(np.zeros(2)),
        lambda: sa.ICB.preset("corrected", name="mine"),
        lambda: sa.ICB.preset("corrected", PRESETS={}),
        lambda: sa.Planned(np.array(5)),
        lambda: sa.SAQM(bound="tight"),
        lambda: sa.SAFOA(draws=10**7),
        lambda: sa.Weighted([(0, 1), (1, 2)], [1e-310, 1.0]),
        lambda: sa.Geometric("x"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(build):
    with pytest.raises(sa.SettingError):
        build()


@pytest.mark.parametrize("support", [(("a", "b"),), ((0, 1.7),), (1, 2)])
def test_supports_that_hold_no_indices_are_refused(support):
    with pytest.raises(sa.SupportError):
        sa.Uniform(support)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.floats(0.01, 10))
def test_the_certified_bound_on_rivals_is_never_below_the_strongest(seed, C):
    """Exhaustive goes through all rivals; the certified SA-FOA must bound every one of them."""
    n, k, means, rows = instance(seed)
    problem = question(n, k)
    rule = sa.SAFOA(certified=True, design=sa.Uniform(rows))
    phase = rule.first(problem, 5)
    info = phase.information(phase.plan.cycle)
    if info is None:
        return
    safe = rule.sides(problem, phase, 1, means, info, C)
    exact = reference.exhaustive_sides(means, info.inverse(), k, 0.0, C)
    assert safe.radius - safe.gap >= exact.radius - exact.gap - 1e-12


def test_a_support_that_hardly_tells_arms_apart_is_refused():
    """It spans, but so thinly that rounding would reach the estimates."""
    problem = question(60, 20)
    thin = sa.SAQM(design=sa.Uniform(random_rows(60, 20, 60, 3)))
    with pytest.raises(sa.SupportError, match="hardly tell the arms apart"):
        thin.first(problem, 1)


def test_a_level_that_all_arms_share_makes_no_certificate_false():
    """Found wrong once: a thin support, noise of 0.001, gaps of 0.01, and means near 1e9."""
    n, k = 40, 13
    problem = question(n, k, noise=sa.gaussian(1e-3), epsilon=0.0, delta=0.05)
    means = 1e9 + 0.01 * np.arange(n)
    for kind in (sa.ICB, sa.SAQM):
        rule = kind(design=sa.Uniform(random_rows(n, k, n, 178)), schedule=sa.Geometric(2))
        for seed in range(4):
            found = sa.simulate(problem, rule, sa.environment(means, problem.noise), rng=seed)
            assert not (found.verdict.certified and found.regret > 1e-6)


def test_no_answer_has_no_regret():
    problem = question(6, 3)
    thin = sa.ICB(design=sa.Uniform(random_rows(6, 3, 6, 2)))
    found = sa.simulate(problem, thin, sa.environment([0] * 6, problem.noise), rng=1, max_pulls=6)
    assert found.verdict.answer
    assert np.isfinite(found.regret)
    empty = dataclasses.replace(found.verdict, answer=())
    from superarm.simulation.engine import _regret

    assert _regret(problem, np.zeros(6), empty) == np.inf
    assert str(empty).startswith("No answer:")


def test_brute_force_is_exact_and_certifies():
    problem = question(6, 3)
    world = sa.environment([1, 1, 1, 0, 0, 0.0], problem.noise)
    exact = sa.simulate(problem, sa.SAQM(oracle="brute-force"), world, rng=1)
    bounded = sa.simulate(problem, sa.SAQM(), world, rng=1)
    assert exact.verdict.certified
    assert exact.pulls <= bounded.pulls
    with pytest.raises(sa.ProblemError, match="choose saqm or icb"):
        sa.SAQM(oracle="brute-force").first(question(60, 30), 1)


def test_settings_are_kept_as_plain_numbers():
    from decimal import Decimal

    assert type(sa.SAQM(alpha=Decimal("0.9")).alpha) is float
    assert type(sa.SAFOA(threshold=Decimal("0.5")).threshold) is float


def test_a_tiny_delta_leaves_the_radius_finite():
    for rule in (sa.ICB(), sa.ICB(constants="paper"), sa.SAQM(), sa.Exhaustive()):
        problem = sa.Problem(4, 2, sa.gaussian(0.1), delta=1e-310)
        found = sa.simulate(problem, rule, sa.environment([3, 2, 1, 0], problem.noise), rng=1)
        assert found.verdict.done
        assert found.pulls < 1e5


def test_a_sharper_bound_stops_no_later_on_the_same_totals():
    """Every bound and the exact maximum certify; the sharper, the earlier."""
    problem = sa.Problem(16, 5, sa.gaussian(1.0), epsilon=1.0)
    means = np.linspace(1, 0, 16)
    plan = sa.SAQM(design=sa.Uniform("2n")).first(problem, 3).plan
    totals = gaussian_totals(plan, means, 60_000, 3)
    pulls = []
    for chosen in ({}, {"bound": "shift"}, {"bound": "sdp"}, {"oracle": "exact"}):
        rule = sa.SAQM(design=sa.Uniform("2n"), **chosen)
        found = sa.simulate(problem, rule, sa.Recorded(totals, means), rng=3)
        assert found.verdict.certified
        pulls.append(found.pulls)
    assert pulls == sorted(pulls, reverse=True)
    assert pulls[-1] < pulls[0]
