"""Plans, looks and designs: fixed beforehand, lazy, and able to tell the arms apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, islice, pairwise
from math import ceil, comb
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from superarm import (
    Every,
    Geometric,
    Planned,
    Problem,
    Schedule,
    SettingError,
    SupportError,
    Uniform,
    Weighted,
    gaussian,
)
from superarm.plan import SupportPlan
from superarm.reference import indistinguishable, tracking_order
from superarm.schedule import Looks, parse_schedule

untimed = settings(deadline=None)  # the first call compiles
proportions = st.one_of(st.floats(1e-3, 1.0), st.sampled_from([1.0, 2.0, 3.0, 0.5, 1 / 3]))
mixes = st.lists(proportions, min_size=1, max_size=6)


def cyclic_plan(weights: Sequence[float] | None, size: int = 5) -> SupportPlan:
    """Some plan of that many super-arms, of two neighbours each."""
    size = size if weights is None else len(weights)
    rows = np.array([[i, i + 1] for i in range(size)])
    mix = None if weights is None else np.array(weights)
    return SupportPlan(rows, size + 1, spanning=size, proportions=mix)


plans = st.one_of(
    st.builds(lambda size: cyclic_plan(None, size), st.integers(1, 6)),
    st.builds(cyclic_plan, mixes),
)


def question(n: int, k: int) -> Problem:
    return Problem([f"arm {i}" for i in range(n)], k, gaussian(1.0))


def drawn(design: Uniform | Weighted, n: int, k: int, seed: int = 0) -> SupportPlan:
    return design.plan(question(n, k), np.random.default_rng(seed))


def indicators(plan: SupportPlan, index: Any) -> np.ndarray:
    rows = plan.members(index)
    x = np.zeros((len(rows), plan.n))
    np.put_along_axis(x, rows, 1.0, axis=1)
    return x


# ---- the order of a plan -------------------------------------------------------------------------


@given(mixes, st.integers(0, 200))
def test_weighted_order_is_the_tracking_of_algorithms_2_to_5(mix: list[float], t: int) -> None:
    assert cyclic_plan(mix).order(0, t).tolist() == tracking_order(mix, t)


@given(st.integers(1, 6), st.integers(0, 60))
def test_uniform_order_is_tracking_with_equal_proportions(size: int, t: int) -> None:
    expected = tracking_order([1.0] * size, t)
    assert cyclic_plan(None, size).order(0, t).tolist() == expected
    assert cyclic_plan([0.7] * size).order(0, t).tolist() == expected


@given(plans, st.integers(0, 150), st.integers(0, 60))
def test_any_stretch_is_a_slice_and_counts_are_its_histogram(
    plan: SupportPlan, start: int, length: int
) -> None:
    whole = plan.order(0, start + length)
    assert np.array_equal(plan.order(start, start + length), whole[start:])
    assert np.array_equal(plan.counts(start), np.bincount(whole[:start], minlength=plan.size))
    assert np.array_equal(plan.members(whole), plan.support[whole])


@given(plans, st.integers(0, 10**13), st.integers(0, 50))
@example(cyclic_plan([1.0, *[1e-3] * 7]), 1000, 9)  # many pulls of one in a row
@example(cyclic_plan([*[1e-4] * 5, 3.0]), 10**10 + 3, 9)
def test_counts_and_order_agree_far_out(plan: SupportPlan, start: int, length: int) -> None:
    before, after = plan.counts(start), plan.counts(start + length)
    assert (before.sum(), after.sum()) == (start, start + length)
    stretch = plan.order(start, start + length)
    assert np.array_equal(after - before, np.bincount(stretch, minlength=plan.size))
    # Exactly those pulls have been made that come first by (T_M / p_M, M).
    mix = [1.0] * plan.size if plan.proportions is None else plan.proportions.tolist()
    counts = before.tolist()
    made = [((T - 1) / p, M) for M, (T, p) in enumerate(zip(counts, mix, strict=True)) if T > 0]
    coming = [(T / p, M) for M, (T, p) in enumerate(zip(counts, mix, strict=True))]
    assert max(made, default=(-1.0, 0)) < min(coming)


def test_positions_far_out_come_at_once() -> None:
    # Three super-arms at 1 : 2 : 3, in whole numbers: the order repeats every 6 pulls.
    weighted, uniform = cyclic_plan([1.0, 2.0, 3.0]), cyclic_plan(None, 7)
    period = tracking_order([1.0, 2.0, 3.0], 6)
    far = 10**12
    started = perf_counter()
    assert weighted.order(far, far + 12).tolist() == [period[(far + i) % 6] for i in range(12)]
    assert uniform.order(far, far + 12).tolist() == [(far + i) % 7 for i in range(12)]
    assert uniform.counts(far).tolist() == [far // 7 + (i < far % 7) for i in range(7)]
    assert perf_counter() - started < 2


@given(plans)
def test_the_cycle_is_the_period(plan: SupportPlan) -> None:
    if plan.cycle is None:
        assert plan.proportions is not None
        return
    once = plan.order(0, plan.cycle)
    assert np.array_equal(plan.order(plan.cycle, 2 * plan.cycle), once)
    assert set(plan.counts(3 * plan.cycle)) == {3}
    assert all(set(plan.counts(t)) != {1} for t in range(plan.cycle))


# ---- schedules -----------------------------------------------------------------------------------


@given(plans, st.floats(1.0001, 3.0), st.integers(2, 60))
def test_geometric_looks_grow_by_the_ratio_then_fall_on_whole_cycles(
    plan: SupportPlan, ratio: float, number: int
) -> None:
    times = list(islice(Geometric(ratio).times(plan), number))
    assert times[0] == plan.spanning
    in_cycles = False
    for t, following in pairwise(times):
        least = max(t + 1, ceil(t * ratio))
        in_cycles = in_cycles or (plan.cycle is not None and least - t >= plan.cycle)
        if in_cycles:
            assert plan.cycle is not None
            assert following % plan.cycle == 0
            assert least <= following < least + plan.cycle
        else:
            assert following == least


def test_geometric_looks_by_hand() -> None:
    # A cycle of 5; from 8 on a step is not shorter, so 13 is put off to 15.
    times = Geometric(1.6).times(cyclic_plan(None, 5))
    assert list(islice(times, 6)) == [5, 8, 15, 25, 40, 65]
    times = Geometric(1.6).times(cyclic_plan([1.0] * 5))
    assert list(islice(times, 6)) == [5, 8, 13, 21, 34, 55]


@given(plans, st.integers(1, 30))
def test_every_looks_after_each_pull_once_the_arms_can_be_told_apart(
    plan: SupportPlan, number: int
) -> None:
    start = plan.spanning
    assert list(islice(Every().times(plan), number)) == list(range(start, start + number))


def test_a_ratio_that_leaves_hardly_any_looks_is_refused() -> None:
    assert list(islice(Geometric(100.0).times(cyclic_plan(None)), 3)) == [5, 500, 50_000]
    for ratio in (100.5, 1.7e308):
        with pytest.raises(SettingError, match="a ratio <= 100, not"):
            Geometric(ratio)


def test_a_look_after_every_pull_keeps_no_list_of_them() -> None:
    looks = Looks(Every(), cyclic_plan(None))
    assert [looks.time(look) for look in (1, 2, 10**12)] == [5, 6, 10**12 + 4]


def test_planned_looks_beyond_any_count_are_refused() -> None:
    with pytest.raises(SettingError, match="a planned look must not exceed 1,000,000,000,000,000,"):
        Planned((5, 10**20))


def test_planned_looks_are_those_and_no_others() -> None:
    looks = Looks(Planned((5, 8, 13)), cyclic_plan(None))
    assert [looks.time(j) for j in (3, 1, 2, 4, 5)] == [13, 5, 8, None, None]


def test_a_planned_look_before_the_arms_can_be_told_apart_is_refused() -> None:
    plan = cyclic_plan(None)
    with pytest.raises(SettingError, match="after 4 pulls, is too early: the plan needs 5 pulls"):
        Looks(Planned((4, 20)), plan).time(1)


@given(plans, st.sampled_from([Every(), Geometric(1.5), Planned((10, 20, 30, 40))]))
def test_looks_are_strictly_increasing_and_never_change(
    plan: SupportPlan, schedule: Schedule
) -> None:
    looks = Looks(schedule, plan)
    last = looks.time(4)
    times = [looks.time(j) for j in (1, 2, 3, 4)]
    assert times[-1] == last
    assert all(a < b for a, b in pairwise(t for t in times if t is not None))
    assert None not in times


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0, -2.0, float("nan"), float("inf")])
def test_a_ratio_that_does_not_grow_is_refused(ratio: float) -> None:
    with pytest.raises(SettingError, match=f"ratio > 1, not {ratio!r}"):
        Geometric(ratio)


@pytest.mark.parametrize("at", [(), (0, 5), (-1,), (5, 5), (5, 8, 7)], ids=repr)
def test_planned_looks_that_do_not_ascend_are_refused(at: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match=re.escape(repr(at))):
        Planned(at)


ascending = st.sets(st.integers(1, 10**15), min_size=1).map(lambda at: tuple(sorted(at)))


@given(
    st.one_of(
        st.just(Every()),
        st.builds(Geometric, st.floats(1, 100, exclude_min=True)),
        st.builds(Planned, ascending),
    )
)
def test_schedule_text_round_trip(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "never",
        "Every",
        "every:2",
        "geometric",
        "geometric:",
        "geometric:x",
        "geometric:1.02:3",
        "planned",
        "planned:",
        "planned:x",
        "planned:5,",
        "planned:5;8",
        "planned:5.5",
        "5,8",
    ],
)
def test_malformed_schedules_are_refused_and_quoted(text: str) -> None:
    with pytest.raises(SettingError, match=re.escape(repr(text))):
        parse_schedule(text)


@pytest.mark.parametrize("text", ["geometric:1", "geometric:nan", "planned:8,5", "planned:0"])
def test_impossible_schedules_are_refused(text: str) -> None:
    with pytest.raises(SettingError):
        parse_schedule(text)


# ---- designs: what is measured -------------------------------------------------------------------


def test_full_support_is_every_super_arm() -> None:
    plan = drawn(Uniform("full"), 6, 3)
    assert sorted(map(tuple, plan.support.tolist())) == list(combinations(range(6), 3))
    assert plan.describe().items() >= {"kind": "uniform", "source": "full", "support": 20}.items()


@pytest.mark.parametrize(("support", "size"), [(20, 20), ("2n", 24), ("8n", 96), ("10n", 120)])
def test_random_support_has_the_stated_size(support: int | str, size: int) -> None:
    plan = drawn(Uniform(support), 12, 5)
    assert plan.size == len(plan.support) == size
    assert (
        plan.describe().items() >= {"kind": "uniform", "source": "random", "support": size}.items()
    )


@pytest.mark.parametrize("support", [35, 36, 10**9, "9n", "1000n"])
def test_a_support_of_at_least_all_super_arms_is_the_full_one(support: int | str) -> None:
    plan = drawn(Uniform(support), 7, 3)
    assert plan.size == comb(7, 3)
    assert plan.describe()["source"] == "full"


def test_the_default_is_eight_times_the_arms() -> None:
    assert Uniform() == Uniform("8n")


@untimed
@given(st.data(), st.integers(2, 12), st.integers(0, 2**32))
def test_random_supports_are_distinct_ascending_and_span_first(
    data: st.DataObject, n: int, seed: int
) -> None:
    k = data.draw(st.integers(1, n - 1))
    size = data.draw(st.integers(min(2 * n, comb(n, k)), comb(n, k)).filter(lambda m: m >= n))
    plan = drawn(Uniform(size), n, k, seed)
    rows = plan.support
    assert rows.shape == (size, k)
    assert (np.diff(rows, axis=1) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < n
    assert len(np.unique(rows, axis=0)) == size
    assert plan.spanning == n
    assert np.linalg.matrix_rank(indicators(plan, plan.order(0, plan.spanning))) == n


@pytest.mark.parametrize(("n", "k"), [(60, 3), (60, 30), (60, 57), (111, 10)])
def test_large_supports_span_as_well(n: int, k: int) -> None:
    plan = drawn(Uniform("2n"), n, k)
    assert plan.spanning == n
    assert np.linalg.matrix_rank(indicators(plan, slice(0, n))) == n


def test_the_same_seed_draws_the_same_plan() -> None:
    one, same, other = (drawn(Uniform("2n"), 15, 6, seed).support for seed in (3, 3, 4))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


given_pairs = ((1, 0), (2, 1), (0, 2), (3, 2), (0, 3))


def test_given_super_arms_are_measured_and_no_others() -> None:
    plan = drawn(Uniform(given_pairs), 4, 2)
    assert sorted(map(tuple, plan.support.tolist())) == sorted(
        tuple(sorted(r)) for r in given_pairs
    )
    assert np.linalg.matrix_rank(indicators(plan, plan.order(0, plan.spanning))) == 4
    assert plan.describe().items() >= {"kind": "uniform", "source": "given", "support": 5}.items()
    assert np.array_equal(drawn(Uniform(np.array(given_pairs)), 4, 2).support, plan.support)


def test_a_basis_comes_first_even_when_it_is_given_last() -> None:
    # The first four pairs of a square have rank 3: (0,1) - (1,2) + (2,3) = (0,3).
    square = ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2))
    plan = drawn(Uniform(square), 4, 2)
    assert plan.spanning == 4
    assert np.linalg.matrix_rank(indicators(plan, plan.order(0, 4))) == 4
    weighted = drawn(Weighted(square, (5.0, 5.0, 5.0, 5.0, 0.1)), 4, 2)
    assert np.linalg.matrix_rank(indicators(weighted, weighted.order(0, weighted.spanning))) == 4


def test_weighted_keeps_each_super_arm_with_its_proportion_and_drops_zeros() -> None:
    rows = (*given_pairs, (1, 3))
    weights = (0.1, 0.2, 0.0, 0.4, 0.5, 0.6)
    plan = drawn(Weighted(rows, weights), 4, 2)
    assert plan.proportions is not None
    found = dict(zip(map(tuple, plan.support.tolist()), plan.proportions.tolist(), strict=True))
    expected = {tuple(sorted(row)): p for row, p in zip(rows, weights, strict=True) if p > 0}
    assert found == expected
    assert plan.cycle is None
    assert plan.describe().items() >= {"kind": "weighted", "source": "given", "support": 5}.items()


# ---- designs: what is refused --------------------------------------------------------------------


def unknown_arms(message: str) -> list[int]:
    """Indices of the arms that a SupportError names."""
    listed = re.search(r"cannot be told apart: (.*?)(?: \(.*\))?\. Add", message)
    assert listed is not None, message
    return [int(name.removeprefix("arm ")) for name in listed[1].split(", ")]


@untimed
@given(st.data(), st.integers(3, 7))
def test_arms_that_cannot_be_told_apart_are_named_exactly(data: st.DataObject, n: int) -> None:
    k = data.draw(st.integers(1, n - 1))
    every = list(combinations(range(n), k))
    support = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=n + 1, unique=True))
    unknown = indistinguishable(n, support)
    if not unknown:
        assert drawn(Uniform(tuple(support)), n, k).size == len(support)
        return
    for design in (Uniform(tuple(support)), Weighted(support, [1.0] * len(support))):
        with pytest.raises(SupportError) as error:
            drawn(design, n, k)
        assert unknown_arms(str(error.value)) == unknown


@untimed
@given(st.data(), st.integers(3, 6))
def test_a_super_arm_of_proportion_0_tells_nothing(data: st.DataObject, n: int) -> None:
    k = data.draw(st.integers(1, n - 1))
    every = list(combinations(range(n), k))
    used = data.draw(st.sets(st.sampled_from(every), min_size=1))
    unknown = indistinguishable(n, used)
    assume(unknown)
    with pytest.raises(SupportError) as error:
        drawn(Weighted(every, [float(row in used) for row in every]), n, k)
    assert unknown_arms(str(error.value)) == unknown


def test_the_message_counts_and_says_what_is_missing() -> None:
    with pytest.raises(SupportError) as error:
        drawn(Uniform(((0, 1), (0, 2), (1, 2))), 4, 2)
    assert str(error.value) == (
        "the support's 3 super-arms determine only 3 of 4 means; these arms cannot be told apart: "
        "arm 3 (arm 3: in none of them). Add super-arms that separate them"
    )


@pytest.mark.parametrize("size", [4, 1, 0, -1])
def test_fewer_super_arms_than_arms_are_refused(size: int) -> None:
    with pytest.raises(SupportError, match=f"{size} super-arms cannot tell 5 arms apart"):
        drawn(Uniform(size), 5, 2)


def test_a_full_support_that_cannot_be_listed_is_refused() -> None:
    with pytest.raises(SettingError, match="too many to list"):
        drawn(Uniform("full"), 60, 30)
    with pytest.raises(SettingError, match="too many to list"):
        drawn(Uniform("full"), 2000, 1000)


@pytest.mark.parametrize(
    "support", ["", "all", "n", "0n", "-2n", "2.5n", "8", "8 n", "8m", "²n", "fulln"]
)
def test_malformed_support_text_is_refused_and_quoted(support: str) -> None:
    with pytest.raises(SettingError, match=re.escape(repr(support))):
        Uniform(support)


@pytest.mark.parametrize("support", [2.5, None], ids=repr)
def test_a_support_that_is_no_number_is_refused(support: Any) -> None:
    with pytest.raises(SettingError):
        Uniform(support)


def test_a_number_may_come_from_numpy() -> None:
    assert drawn(Uniform(np.int64(20)), 12, 5).size == 20


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ((), "empty"),
        (((0, 1), (0, 1, 2)), "(0, 1, 2) is not 2 different arm indices between 0 and 3"),
        (((0, 1), (2,)), "(2,)"),
        (((0, 1), ()), "()"),
        (((0, 0), (0, 1)), "(0, 0)"),
        (((0, 1), (1, 4)), "(1, 4)"),
        (((0, 1), (-1, 2)), "(-1, 2)"),
        (((0, 1), (1, 2), (0, 1)), "twice"),
        (((0, 1), (1, 2), (1, 0)), "twice"),
    ],
    ids=repr,
)
def test_bad_rows_are_refused_and_named(rows: tuple[tuple[int, ...], ...], says: str) -> None:
    for design in (Uniform(rows), Weighted(rows, [1.0] * len(rows)) if rows else Uniform(rows)):
        with pytest.raises(SupportError, match=re.escape(says)):
            drawn(design, 4, 2)


@pytest.mark.parametrize(
    "weights",
    [
        (1.0,),
        (1.0, 1.0, 1.0),
        (),
        (1.0, -0.1),
        (1.0, float("nan")),
        (1.0, float("inf")),
        (0.0, 0.0),
    ],
    ids=repr,
)
def test_bad_proportions_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(SettingError, match="proportions"):
        Weighted(((0, 1), (1, 2)), weights)


@pytest.mark.parametrize("at", [(float("nan"), 2), (3.5, 4.5), ("a",), 5, "5,8"], ids=repr)
def test_planned_looks_that_are_no_whole_numbers_are_refused(at: Any) -> None:
    with pytest.raises(SettingError, match="planned look"):
        Planned(at)
