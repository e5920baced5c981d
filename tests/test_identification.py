"""Ask and tell: any order, any delay, any mistake; a verdict moves at its looks only."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm
import superarm as sa
from superarm import (
    ICB,
    SAFOA,
    SAQM,
    ConflictError,
    Every,
    Exhaustive,
    Geometric,
    Identification,
    Planned,
    Problem,
    Pull,
    PullError,
    Schedule,
    SettingError,
    SupportError,
    TotalError,
    Uniform,
    bounded,
    gaussian,
    identification,
    labels,
    total,
)
from superarm.algorithms import Static

MEANS = {"Ann": 0.9, "Bo": 0.1, "Cy": 0.7, "Di": 0.3, "Ed": 0.2}
ARMS = list(MEANS)
RULES: list[type[Static]] = [SAQM, SAFOA, ICB, Exhaustive]
LOOKS = (5, 9, 16)

untimed = settings(deadline=None, max_examples=40)  # the first call compiles
by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def question(**changes: Any) -> Problem:
    fields = {"arms": ARMS, "k": 2, "noise": gaussian(0.2), "epsilon": 0.5, **changes}
    return Problem(**fields)


def begin(schedule: Schedule | None = None, **changes: Any) -> Identification:
    rule = SAQM() if schedule is None else SAQM(schedule=schedule)
    return Identification(question(**changes), rule, rng=7)


def measured(pull: Pull, scale: float = 0.2) -> float:
    """The total of a pull, the same whenever it is measured."""
    noise = np.random.default_rng([11, pull.phase, pull.position]).normal()
    return sum(MEANS[name] for name in pull.members) + scale * float(noise)


def state(crew: Identification) -> dict[str, Any]:
    """All that a tell may change."""
    return {
        "verdict": crew.verdict.to_dict(),
        "tally": crew._tally.copy(),
        "told": dict(crew._told),
        "asked": dict(crew._asked),
        "later": dict(crew._later),
        "missing": crew._missing,
        "look": crew._look,
    }


# ---- ask -----------------------------------------------------------------------------------------


def test_asks_for_groups_of_k_under_ids_that_never_repeat() -> None:
    crew = begin()
    pulls = crew.ask() + crew.ask(3) + crew.ask(40)
    assert len(pulls) == 44
    assert len({pull.id for pull in pulls}) == 44
    assert [pull.position for pull in pulls] == list(range(44))
    for pull in pulls:
        assert len(set(pull.members)) == 2
        assert set(pull.members) <= set(ARMS)
        assert pull.phase == 1


def test_asking_does_not_change_the_verdict() -> None:
    crew = begin()
    before = crew.verdict
    crew.ask(1000)
    assert crew.verdict is before


def test_the_same_seed_asks_the_same_however_it_is_split() -> None:
    problem = Problem(12, 5, labels())
    one, other = (Identification(problem, SAQM(design=Uniform("2n")), rng=3) for _ in range(2))
    assert one.ask(30) == [pull for size in (1, 4, 25) for pull in other.ask(size)]
    third = Identification(problem, SAQM(design=Uniform("2n")), rng=4)
    assert third.ask(30) != Identification(problem, SAQM(design=Uniform("2n")), rng=3).ask(30)


def test_without_a_seed_the_one_drawn_repeats_it() -> None:
    problem = Problem(12, 5, labels())
    crew = Identification(problem)
    assert Identification(problem, rng=crew.seed).ask(30) == crew.ask(30)


def test_a_generator_is_a_seed_too() -> None:
    problem = Problem(12, 5, labels())
    one, other = (Identification(problem, rng=np.random.default_rng(5)) for _ in range(2))
    assert one.ask(30) == other.ask(30)


@pytest.mark.parametrize("rng", [-1, 1.5, "seed"], ids=repr)
def test_a_bad_seed_is_refused(rng: Any) -> None:
    with pytest.raises(SettingError, match="rng"):
        Identification(question(), rng=rng)


@pytest.mark.parametrize("size", [0, -1, 1.5, 2.0, math.nan, "3", None], ids=repr)
def test_a_bad_size_is_refused_and_asks_nothing(size: Any) -> None:
    crew = begin()
    with pytest.raises(SettingError):
        crew.ask(size)
    assert crew.ask(2) == begin().ask(2)


def test_a_pull_is_a_value() -> None:
    pull = begin().ask()[0]
    assert pull == begin().ask()[0]
    with pytest.raises(FrozenInstanceError):
        pull.id = "2-0"  # type: ignore[misc]


# ---- tell: mistakes ------------------------------------------------------------------------------


IDS = """1-3 1-4 2-0 0-0 1--1 01-0 1-00 1 1- -0 x 1-x x-0 1-² \N{ARABIC-INDIC DIGIT ONE}-0"""


@pytest.mark.parametrize("id", ["", "1-0 ", " 1-0", *IDS.split()])
def test_an_unknown_id_is_refused(id: str) -> None:
    crew = begin()
    crew.ask(3)
    before = state(crew)
    with pytest.raises(PullError) as error:
        crew.tell(id, 1.0)
    assert repr(id) in str(error.value)
    assert state(crew) == before


@pytest.mark.parametrize(
    "id", [0, None, 1.0, ("1", 0), pytest.param("1-" + "9" * 5000, id="5000 digits")]
)
def test_what_is_no_id_at_all_is_refused(id: Any) -> None:
    crew = begin()
    crew.ask(3)
    before = state(crew)
    with pytest.raises(PullError):
        crew.tell(id, 1.0)
    assert state(crew) == before


def test_an_id_is_unknown_until_it_has_been_asked() -> None:
    crew = begin()
    with pytest.raises(PullError):
        crew.tell("1-0", 1.0)
    assert crew.ask()[0].id == "1-0"
    crew.tell("1-0", 1.0)


BAD_TOTALS: list[Any] = [
    *((gaussian(1.0), bad) for bad in (math.nan, math.inf, -math.inf, np.float64("nan"))),
    *((gaussian(1.0), bad) for bad in ("", "seven", "7", "nan", None, [1.0], 1j, object())),
    pytest.param(gaussian(1.0), 10**400, id="10**400"),
    *((labels(), bad) for bad in (-1, 3, 1.5, math.nan, math.inf)),
    *((labels(shared=True), bad) for bad in (-1, 3, 0.5)),
    *((bounded(1.0), bad) for bad in (-2.1, 2.1)),
    *((total(0.0, 5.0), bad) for bad in (-0.1, 5.1)),
]


@pytest.mark.parametrize(
    ("noise", "bad"), BAD_TOTALS, ids=lambda value: f"{value}"[:20].partition(" at ")[0]
)
@pytest.mark.parametrize("told", [0, 4, 5, 12])
def test_a_bad_total_is_refused_and_changes_nothing(noise: Any, bad: Any, told: int) -> None:
    """Before the first look, as the last one missing for it, after it, and for a later position."""
    crew = begin(Planned(LOOKS), noise=noise)
    pulls = crew.ask(16)
    for pull in pulls[:told]:
        crew.tell(pull.id, 1.0)
    for pull in (pulls[told], pulls[15]):
        before = state(crew)
        with pytest.raises(TotalError):
            crew.tell(pull.id, bad)
        assert state(crew) == before
        crew.tell(pull.id, 1.0)  # the place is still free
        assert crew._told[pull.id] == 1.0


def test_telling_again_is_harmless_with_the_same_total_and_a_conflict_with_another() -> None:
    crew = begin(Planned(LOOKS), noise=labels())
    pulls = crew.ask(20)
    for pull in pulls[:7]:
        crew.tell(pull.id, 1)
    crew.tell(pulls[15].id, 1)
    before = state(crew)
    for pull in (pulls[0], pulls[6], pulls[15]):  # used in a look, counted, kept for later
        for same in (1, 1.0, np.float64(1), True):
            crew.tell(pull.id, same)
        with pytest.raises(ConflictError, match=f"{pull.id} has total 1 already; .* 0"):
            crew.tell(pull.id, 0)
        with pytest.raises(TotalError):
            crew.tell(pull.id, 0.5)
        assert state(crew) == before


def test_a_conflict_shows_both_totals_to_the_last_digit() -> None:
    crew = begin()
    crew.ask()
    crew.tell("1-0", 1.0)
    with pytest.raises(ConflictError, match=r"1\.000000001"):
        crew.tell("1-0", 1.000000001)


def test_zero_and_minus_zero_are_the_same_total() -> None:
    crew = begin()
    crew.ask()
    crew.tell("1-0", -0.0)
    crew.tell("1-0", 0.0)
    assert math.copysign(1, crew._told["1-0"]) == 1


def test_telling_again_after_the_stop() -> None:
    crew = begin()
    pulls = run(crew)
    verdict = crew.verdict
    crew.tell(pulls[0].id, measured(pulls[0]))
    with pytest.raises(ConflictError):
        crew.tell(pulls[0].id, 0.125)
    assert crew.verdict is verdict


@by_name
def test_totals_whose_sums_overflow_end_no_process(rule: type[Static]) -> None:
    code = f"""
import superarm
from superarm import {rule.__name__}
problem = superarm.Problem(4, 2, superarm.gaussian(1), epsilon=1)
crew = superarm.Identification(problem, {rule.__name__}(), rng=1)
try:
    for pull in crew.ask(40):
        crew.tell(pull.id, 1.7e308)
except superarm.TotalError:
    pass
assert not crew.verdict.certified
crew.verdict.to_json()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---- looks ---------------------------------------------------------------------------------------


@untimed
@given(st.permutations(range(16)))
def test_the_verdict_moves_only_when_all_positions_of_a_look_are_told(order: list[int]) -> None:
    crew = begin(Planned(LOOKS), epsilon=0.0, noise=gaussian(100.0))
    pulls = crew.ask(16)
    told: set[int] = set()
    for position in order:
        before = crew.verdict
        crew.tell(pulls[position].id, measured(pulls[position]))
        told.add(position)
        unbroken = next(i for i in range(17) if i not in told)
        reached = [t for t in LOOKS if t <= unbroken]
        assert crew.verdict.pulls == max(reached, default=0)
        assert crew.verdict.look == len(reached)
        if max(reached, default=0) == before.pulls:
            assert crew.verdict is before


def test_results_of_later_positions_are_kept_and_not_used_yet() -> None:
    ahead, plain = begin(Planned(LOOKS)), begin(Planned(LOOKS))
    pulls = ahead.ask(16)
    plain.ask(16)
    ahead.tell(pulls[15].id, 50.0)
    for crew in (ahead, plain):
        for pull in pulls[:5]:
            crew.tell(pull.id, 1.0)
    assert ahead.verdict.to_dict() == plain.verdict.to_dict()
    assert ahead.verdict.pulls == 5
    for crew in (ahead, plain):
        for pull in pulls[5:15]:
            crew.tell(pull.id, 1.0)
    assert ahead.verdict.pulls == 16
    assert plain.verdict.pulls == 9
    plain.tell(pulls[15].id, 50.0)
    assert ahead.verdict.to_dict() == plain.verdict.to_dict()


def run(crew: Identification, scale: float = 0.2, most: int = 10_000) -> list[Pull]:
    """Measure until it stops, in the plan's order; return what was asked."""
    pulls: list[Pull] = []
    while new := crew.ask():
        crew.tell(new[0].id, measured(new[0], scale))
        pulls += new
        assert len(pulls) < most
    return pulls


@by_name
@pytest.mark.parametrize("schedule", [Geometric(1.1), Every()], ids=str)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_shuffled_tells_give_the_same_verdict_to_the_bit(
    rule: type[Static], schedule: Schedule, direction: str
) -> None:
    problem = question(direction=direction, epsilon=1.0)
    algorithm = rule(schedule=schedule)
    plain = Identification(problem, algorithm, rng=7)
    needed = len(run(plain))
    assert plain.verdict.done
    assert plain.verdict.pulls == needed
    for seed in range(4):
        crew = Identification(problem, algorithm, rng=7)
        pulls = crew.ask(needed + seed)
        for i in np.random.default_rng(seed).permutation(len(pulls)):
            crew.tell(pulls[i].id, measured(pulls[i]))
        assert crew.verdict.to_dict() == plain.verdict.to_dict()
        assert crew.verdict.estimates is not None
        assert plain.verdict.estimates is not None
        assert crew.verdict.estimates.tobytes() == plain.verdict.estimates.tobytes()


@untimed
@given(st.data(), st.integers(5, 40))
def test_one_swap_of_order_changes_nothing(data: st.DataObject, size: int) -> None:
    i = data.draw(st.integers(0, size - 2))
    one, other = (begin(Geometric(1.2), epsilon=0.01) for _ in range(2))
    pulls = one.ask(size)
    swapped = other.ask(size)
    swapped[i], swapped[i + 1] = swapped[i + 1], swapped[i]
    for crew, order in ((one, pulls), (other, swapped)):
        for pull in order:
            crew.tell(pull.id, measured(pull))
    assert one.verdict.to_dict() == other.verdict.to_dict()
    assert one._tally == other._tally


def test_totals_told_after_the_stop_are_taken_and_not_used() -> None:
    crew = begin()
    pulls = crew.ask(3000)
    for pull in pulls:
        crew.tell(pull.id, measured(pull))
        if crew.verdict.done:
            break
    verdict = crew.verdict
    last = pulls[-1]
    assert last.position >= verdict.pulls
    crew.tell(last.id, 100.0)
    assert crew.verdict is verdict
    with pytest.raises(ConflictError):
        crew.tell(last.id, 101.0)
    with pytest.raises(TotalError):
        crew.tell(pulls[-2].id, math.nan)


# ---- answers -------------------------------------------------------------------------------------


@by_name
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_finds_the_best_group_then_asks_no_more(rule: type[Static], k: int, direction: str) -> None:
    problem = question(k=k, noise=gaussian(0.05), epsilon=0.09, direction=direction)
    crew = Identification(problem, rule(), rng=7)
    run(crew, scale=0.05)
    assert crew.verdict.done
    best = sorted(ARMS, key=lambda arm: problem.sign * MEANS[arm])[-k:]
    assert crew.verdict.answer == tuple(arm for arm in ARMS if arm in best)
    assert crew.ask() == crew.ask(10) == []
    assert crew.verdict.certified == (rule is not SAFOA)
    assert crew.verdict.estimates is not None
    for name, estimate in zip(ARMS, crew.verdict.estimates, strict=True):
        assert estimate == pytest.approx(MEANS[name], abs=0.1)


@by_name
def test_minimize_is_maximize_with_the_signs_turned(rule: type[Static]) -> None:
    most = Identification(question(), rule(), rng=7)
    least = Identification(question(direction="minimize"), rule(), rng=7)
    while new := most.ask(20):
        assert new == least.ask(20)
        for pull in new:
            most.tell(pull.id, measured(pull))
            least.tell(pull.id, -measured(pull))
    assert least.ask() == []
    assert least.verdict.to_dict() == most.verdict.to_dict()
    assert most.verdict.answer == ("Ann", "Cy")
    assert least.verdict.estimates == pytest.approx(-np.asarray(most.verdict.estimates))


@by_name
@pytest.mark.parametrize("n", [1, 5])
def test_k_equal_to_n_needs_no_pull(rule: type[Static], n: int) -> None:
    crew = Identification(question(arms=ARMS[:n], k=n), rule())
    assert crew.ask() == []
    assert crew.verdict.done
    assert crew.verdict.certified
    assert (crew.verdict.answer, crew.verdict.pulls) == (tuple(ARMS[:n]), 0)
    with pytest.raises(PullError):
        crew.tell("1-0", 1.0)


def test_the_default_algorithm_is_certified_and_icb_for_other_classes() -> None:
    assert Identification(question(), rng=7).algorithm == sa.Certified()
    paths = sa.Paths([("a", "b"), ("a", "b"), ("b", "c"), ("b", "c"), ("a", "c")], "a", "c")
    assert Identification(question(k=paths), rng=7).algorithm == sa.ICB()


@by_name
def test_planned_looks_that_run_out_end_it_without_a_certificate(rule: type[Static]) -> None:
    problem = question(epsilon=0.0, noise=gaussian(100.0))
    crew = Identification(problem, rule(schedule=Planned(LOOKS)), rng=7)
    run(crew)
    assert crew.ask() == []
    verdict = crew.verdict
    assert (verdict.pulls, verdict.look) == (16, 3)
    assert len(verdict.answer) == 2
    assert not verdict.certified
    assert verdict.done
    assert str(verdict).startswith("Stop: ")
    assert "planned look" in verdict.reason


def test_planned_looks_end_alike_in_simulation_and_identification() -> None:
    algorithm = SAQM(schedule=Planned(LOOKS))
    problem = question(epsilon=0.0, noise=gaussian(100.0))
    crew = Identification(problem, algorithm, rng=7)
    totals = [measured(pull) for pull in run(crew)]
    told = superarm.Recorded(totals, list(MEANS.values()))
    verdict = superarm.simulate(problem, algorithm, told, rng=7).verdict
    assert verdict.to_dict() == crew.verdict.to_dict()


@pytest.mark.parametrize(
    ("algorithm", "error"),
    [
        (SAQM(schedule=Planned((4, 9))), SettingError),
        (SAQM(design=Uniform(4)), SupportError),
        (SAQM(design=Uniform(((0, 1), (2, 3), (0, 4)))), SupportError),
        (SAQM(design=Uniform(((0, 1, 2),))), SupportError),
    ],
    ids=["too early", "too few", "blind", "not k"],
)
def test_what_cannot_work_is_refused_at_the_start(
    algorithm: Static, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Identification(question(), algorithm)


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(superarm.ProblemError, match=r"superarm\.Problem, not \['a', 'b'\]"):
        Identification(["a", "b"])  # type: ignore[arg-type]


def test_the_docstring_runs() -> None:
    found = doctest.DocTestFinder(recurse=False).find(Identification, module=identification)
    assert [len(test.examples) > 0 for test in found] == [True]
    runner = doctest.DocTestRunner()
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_planned_looks_all_skipped_still_end_with_the_last() -> None:
    """Looks after every pull may be skipped as certain to say go on, the last one too."""
    problem = superarm.Problem(6, 2, gaussian(1.0))
    world = superarm.environment([0.0] * 6, problem.noise)
    algorithm = SAQM(schedule=Planned((6, 7, 8)))
    for most in (8, 9):
        found = superarm.simulate(problem, algorithm, world, rng=1, max_pulls=most).verdict
        assert (found.pulls, found.look, found.done) == (8, 3, True)
        assert "planned look" in found.reason


def test_a_look_far_ahead_costs_nothing_before_it_comes() -> None:
    """The positions in between are not gone through."""
    crew = Identification(question(), SAQM(schedule=Planned((10, 10**15))), rng=7)
    pulls = crew.ask(30)
    for pull in reversed(pulls):
        crew.tell(pull.id, measured(pull))
    assert crew.verdict.pulls == 10
    assert crew.open == []


@pytest.mark.parametrize(
    ("schedule", "looks"),
    [(Geometric(1.3), 6), (Every(), 15), (Planned((6, 18)), 2)],
    ids=["geometric", "every", "planned"],
)
def test_a_plan_that_ends_ends_the_search_with_a_last_look(schedule: Any, looks: int) -> None:
    pulls = list(combinations(range(4), 2)) * 3
    problem = sa.Problem(4, 2, gaussian(1.0))
    algorithm = superarm.ICB(design=superarm.Listed(pulls), schedule=schedule)
    crew = Identification(problem, algorithm, rng=1)
    asked = crew.ask(100)
    assert len(asked) == len(crew.open) == 18
    for pull in asked:
        assert not crew.verdict.done
        crew.tell(pull.id, 1.0)
    assert (crew.verdict.done, crew.verdict.pulls, crew.verdict.look) == (True, 18, looks)
    with pytest.raises(PullError):
        crew.tell("1-18", 1.0)
    world = superarm.environment([0.0] * 4, problem.noise)
    run = superarm.simulate(problem, algorithm, world, rng=1)
    assert run.tally is not None
    assert (run.pulls, run.tally.pulls, run.verdict.look) == (18, 18, looks)
    assert "last planned look" in run.verdict.reason


def test_a_look_after_the_end_of_the_plan_is_refused() -> None:
    pulls = list(combinations(range(4), 2))
    algorithm = superarm.ICB(design=superarm.Listed(pulls), schedule=Planned((6, 7)))
    with pytest.raises(SettingError, match="after 7 pulls, is too late: the plan ends after 6"):
        Identification(sa.Problem(4, 2, gaussian(1.0)), algorithm)


def test_no_pull_is_asked_for_beyond_the_last_planned_look() -> None:
    crew = Identification(question(), SAQM(schedule=Planned((10, 12))), rng=7)
    assert len(crew.ask(50)) == 12
    assert crew.ask(50) == []


def test_open_lists_what_a_look_waits_for() -> None:
    crew = Identification(question(), rng=7)
    pulls = crew.ask(4)
    assert crew.open == [pull.id for pull in pulls]
    crew.tell(pulls[2].id, 1.0)
    assert crew.open == [pulls[0].id, pulls[1].id, pulls[3].id]
    ended = Identification(question(), SAQM(schedule=Planned((10,))), rng=7)
    for pull in ended.ask(10):
        ended.tell(pull.id, measured(pull))
    assert ended.open == []


def test_more_pulls_than_can_be_handed_out_are_refused_and_ask_nothing() -> None:
    search = sa.Identification(sa.Problem(4, 2, sa.gaussian(1.0)), rng=1)
    for size in (1_000_001, 10**14, 2**63, 10**30):
        with pytest.raises(sa.SettingError, match="must not exceed 1,000,000"):
            search.ask(size)
    assert search.ask()[0].id == "1-0"


def test_a_look_that_fails_is_taken_again_at_the_next_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    search = sa.Identification(sa.Problem(4, 2, sa.gaussian(1.0)), sa.SAQM(), rng=1)
    pulls = search.ask(6)

    def broken(*args: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(sa.SAQM, "look", broken)
    for pull in pulls[:3]:
        search.tell(pull.id, 1.0)
    with pytest.raises(MemoryError):
        search.tell(pulls[3].id, 1.0)
    monkeypatch.undo()
    assert search.verdict.pulls == 0
    search.tell(pulls[4].id, 1.0)
    assert search.verdict.pulls == 5


@pytest.mark.parametrize("noise", [sa.labels(), sa.gaussian(1e-200)], ids=str)
def test_a_forecast_out_of_range_is_none_and_jams_nothing(noise: Any) -> None:
    problem = sa.Problem(4, 2, noise, epsilon=1e-200)
    search = sa.Identification(problem, sa.ICB(), rng=1)
    for pull in search.ask(30):
        search.tell(pull.id, 1.0)
    assert search.verdict.pulls >= 29
    assert search.verdict.forecast is None or search.verdict.done
