"""What rules of several phases owe, and what drivers owe them: one law for all drivers."""

import dataclasses

import numpy as np
import pytest
from support import ONE_LOOK, PHASED, close

import superarm as sa
from superarm.phase import Next, Phase
from superarm.simulation import Recorded
from superarm.simulation.engine import MOST_PULLS
from superarm.tally import Tally

every_rule = pytest.mark.parametrize("rule", PHASED.values(), ids=PHASED)
one_look = pytest.mark.parametrize("rule", ONE_LOOK.values(), ids=ONE_LOOK)
SIZES = [(7, 2), (9, 1), (12, 4), (9, 8), (10, 6), (11, 7)]
SEEDS = range(len(SIZES))


def question(n, k, **changed):
    return sa.Problem(
        n, k, changed.pop("noise", sa.gaussian(1.0)), **{"epsilon": 0.1, "delta": 0.1} | changed
    )


def instance(seed):
    """Return sizes and means whose best group is found after more than one phase."""
    n, k = SIZES[seed]
    rng = np.random.default_rng(seed)
    return n, k, np.round(rng.permutation(np.linspace(-1, 1, n)) + rng.normal(0, 0.05, n), 3)


def due(search):
    """Return how many pulls are still to be asked for before the next look."""
    return search._needed - search._asked[search._phase.number]


def measured(problem, rule, means, seed, *, scale=1.0, shuffled=False):
    """Ask and tell until it stops; return the verdicts of all looks and all totals as asked."""
    search = sa.Identification(problem, rule, rng=5)
    noise, order = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    totals, verdicts = [], []
    while not search.verdict.done:
        before, pulls = search.verdict, []
        while due(search) and (more := search.ask(min(10_000, due(search)))):
            pulls += more
        values = [
            float(sum(means[problem.index[name]] for name in pull.members) + scale * error)
            for pull, error in zip(pulls, noise.standard_normal(len(pulls)), strict=True)
        ]
        totals += values
        for i in order.permutation(len(pulls)) if shuffled else range(len(pulls)):
            assert search.verdict is before  # nothing is decided before the phase is complete
            search.tell(pulls[i].id, values[i])
        verdicts.append(search.verdict)
    return verdicts, totals


def same(one, other):
    """Assert that two searches agree at every look, up to rounding."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (set(a.answer), a.pulls, a.phase, a.certified) == (
            set(b.answer),
            b.pulls,
            b.phase,
            b.certified,
        )
        assert close(a.gap, b.gap, 1e-6)
        assert close(a.radius, b.radius, 1e-6)


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_simulation_and_shuffled_tells_agree_to_the_bit(rule, seed):
    n, k, means = instance(seed)
    problem = question(n, k)
    plain, totals = measured(problem, rule, means, seed)
    mixed, _ = measured(problem, rule, means, seed, shuffled=True)
    assert [verdict.to_dict() for verdict in mixed] == [verdict.to_dict() for verdict in plain]
    watched = []
    run = sa.simulate(problem, rule, Recorded(totals, means), rng=5, watch=watched.append)
    assert [verdict.to_dict() for verdict in watched] == [verdict.to_dict() for verdict in plain]
    assert np.array_equal(run.verdict.estimates, plain[-1].estimates)
    assert run.pulls == run.verdict.pulls == len(totals) == run.verdict.certificate.pulls
    if plain[-1].phase > 1:
        assert run.tally.pulls < run.pulls  # that of the last phase
    phases = [verdict.phase for verdict in plain]
    assert sorted(phases) == phases
    assert set(phases) == set(range(1, phases[-1] + 1))
    if isinstance(rule, sa.CSAR):  # one look a phase
        assert len(phases) == phases[-1] > 1


@one_look
def test_ids_tell_the_phases_apart(rule):
    n, k, means = instance(0)
    problem = question(n, k)
    search = sa.Identification(problem, rule, rng=5)
    first = search.ask(10_000)
    assert search.ask(1) == []  # until the phase is decided
    assert not search.verdict.done
    assert search.open == [pull.id for pull in first]
    for pull in first:
        search.tell(pull.id, float(sum(means[problem.index[name]] for name in pull.members)))
    second = search.ask(1)[0]
    assert (first[0].id, second.id) == ("1-0", "2-0")
    assert (first[0].phase, second.phase) == (1, 2)
    known = float(sum(means[problem.index[name]] for name in first[0].members))
    search.tell("1-0", known)  # the same again changes nothing
    with pytest.raises(sa.ConflictError):
        search.tell("1-0", known + 1)
    with pytest.raises(sa.PullError):
        search.tell("2-1", 0.0)
    assert search.open == ["2-0"]


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_shifting_all_means_changes_nothing(rule, seed):
    n, k, means = instance(seed)
    problem = question(n, k)
    for level in (3.0, 2.0**20):
        one, _ = measured(problem, rule, means, seed)
        other, _ = measured(problem, rule, means + level, seed)
        same(one, other)


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_rewards_and_sigma_together_changes_only_the_scale(rule, seed):
    n, k, means = instance(seed)
    scaled = question(n, k, noise=sa.gaussian(8.0), epsilon=0.8)
    accuracy = getattr(rule, "accuracy", None)
    wide = rule if accuracy is None else dataclasses.replace(rule, accuracy=8 * accuracy)
    one, _ = measured(question(n, k), rule, means, seed)
    other, _ = measured(scaled, wide, 8 * means, seed, scale=8.0)
    same(one, [dataclasses.replace(v, gap=v.gap / 8, radius=v.radius / 8) for v in other])


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_minimising_is_maximising_the_negative(rule, seed):
    n, k, means = instance(seed)
    one, _ = measured(question(n, k), rule, means, seed)
    other, _ = measured(question(n, k, direction="minimize"), rule, -means, seed, scale=-1.0)
    same(one, other)


@every_rule
@pytest.mark.parametrize("seed", SEEDS)
def test_permuting_the_arms_permutes_the_answer(rule, seed):
    """Without noise: who is in a group with whom is left to chance."""
    n, k, means = instance(seed)
    one, _ = measured(question(n, k), rule, means, seed, scale=0.0)
    place = np.random.default_rng(seed).permutation(n)
    names = [f"{i + 1}" for i in place]
    other, _ = measured(question(names, k), rule, means[place], seed, scale=0.0)
    same(one, other)
    assert set(one[-1].answer) == {str(i + 1) for i in np.argsort(-means)[:k]}


@one_look
@pytest.mark.parametrize("seed", SEEDS)
def test_without_noise_the_forecast_comes_true(rule, seed):
    n, k, means = instance(seed)
    verdicts, totals = measured(question(n, k), rule, means, seed, scale=0.0)
    for verdict in verdicts:
        assert verdict.forecast == len(totals) - verdict.pulls


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
    assert found.pulls == found.verdict.pulls == 50_000
    assert found.verdict.done
    assert found.verdict.certificate is None
    assert "limit of 50,000 pulls" in found.verdict.reason
    assert "1" in found.verdict.answer


@every_rule
def test_a_tie_ends_where_pulls_cannot_be_counted_any_more(rule):
    problem = question(5, 2, epsilon=0.0)
    world = sa.environment([1, 0, 0, 0, 0], problem.noise)
    found = sa.simulate(problem, rule, world, rng=1, max_pulls=10**18)
    assert MOST_PULLS < found.pulls <= 10**18
    assert not found.verdict.certified


@one_look
@pytest.mark.parametrize("more", [0, 1, 5])
def test_the_limit_may_come_anywhere_in_a_later_phase(rule, more):
    n, k, means = instance(0)
    problem = question(n, k, epsilon=0.01)
    world = sa.environment(means, problem.noise)
    first = rule.first(problem, 3)
    limit = first.looks.end + more
    watched = []
    found = sa.simulate(problem, rule, world, rng=3, max_pulls=limit, watch=watched.append)
    assert found.pulls == found.verdict.pulls == limit
    assert found.verdict.answer == watched[0].answer  # of the phase that was complete
    assert (len(watched), found.verdict.phase, found.verdict.look) == (1, 2, 0)
    assert not found.verdict.certified
    assert f"limit of {limit:,} pulls" in found.verdict.reason
    with pytest.raises(sa.SettingError, match="the first look needs"):
        sa.simulate(problem, rule, world, rng=3, max_pulls=first.plan.spanning - 1)


@one_look
def test_a_look_can_be_repeated(rule):
    """A rule is pure: the same tally gives the same answer and the same next phase."""
    n, k, means = instance(0)
    problem = question(n, k)
    phase = rule.first(problem, 3)
    world = sa.environment(means, problem.noise)
    assert isinstance(phase, Phase)
    tally = Tally(phase.plan.size)
    world.add(tally, phase.plan, 0, phase.looks.end, np.random.default_rng(1))
    one, other = (rule.look(problem, phase, tally, 1) for _ in range(2))
    assert isinstance(one, Next)
    assert isinstance(other, Next)
    assert one.verdict == other.verdict
    assert one.phase.plan.digest == other.phase.plan.digest
    assert one.phase.looks.end == other.phase.looks.end
    with pytest.raises(TypeError):
        phase.carry["state"] = None


@one_look
def test_the_shares_of_delta_add_up_to_no_more_than_delta(rule):
    problem = question(5, 2, epsilon=0.0)
    phase, spent = rule.first(problem, 1), 0.0
    world = sa.environment([0.0] * 5, problem.noise)
    for number in range(1, 16):
        assert phase.number == number
        spent += phase.delta
        tally = Tally(phase.plan.size)
        world.add(tally, phase.plan, 0, phase.looks.end, np.random.default_rng(number))
        outcome = rule.look(problem, phase, tally, 1)
        if not isinstance(outcome, Next):  # wrong, with probability below delta
            break
        phase = outcome.phase
    assert 0.5 * problem.delta < spent <= problem.delta


@every_rule
def test_it_cannot_be_forecast_or_analysed(rule):
    problem = question(8, 2)
    with pytest.raises(sa.SettingError, match="several phases"):
        sa.forecast(problem, rule, np.arange(8.0))
    with pytest.raises(sa.SettingError, match="several phases"):
        sa.analyse(problem, [(0, 1)], [1.0], rule)


@every_rule
def test_it_takes_part_in_studies(rule):
    problem = question(8, 2, noise=sa.labels(), epsilon=0.5)
    means = np.linspace(0.1, 0.9, 8)
    place = sa.Instance("eight", problem, sa.environment(means, problem.noise))
    rows = sa.Study.grid([place], [rule, sa.Certified()], replications=2, rng=7).run().rows
    assert [row["algorithm"] for row in rows] == [rule.name] * 2 + ["certified"] * 2
    assert all(row["certified"] for row in rows)
    assert rows[0]["design"] == rule.first(problem, 1).plan.describe()["kind"]
