"""Exact sums against Python's fractions, which cannot round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superarm import exact_sum
from superarm.exact_sum import ExactSums

SIZE = 3
BIG = 2.0**1023
MAX = math.nextafter(math.inf, 0.0)
TINY = 5e-324
CROWDED = float.fromhex("0x1.a990ee20fbba1p+61")  # its square brings a limb two full digits

finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53).map(float),
    st.sampled_from([0.0, -0.0, TINY, -TINY, 2.0**-1022, 1.0, 2.0**53, MAX, -MAX, BIG, -BIG]),
    st.builds(
        math.ldexp, st.sampled_from([1.0, -1.0, 1.5, 1 + 2.0**-52]), st.integers(-1074, 1023)
    ),
)
pairs = st.lists(st.tuples(st.integers(0, SIZE - 1), finite), max_size=30)
Pairs = list[tuple[int, float]]


def in_bulk(sums: ExactSums, told: Pairs, sign: int = 1, squared: bool = False) -> None:
    add = sums.add_squares if squared else sums.add
    add([index for index, _ in told], [value for _, value in told], sign)


def one_by_one(sums: ExactSums, told: Pairs, sign: int = 1, squared: bool = False) -> None:
    add = sums.add_squares if squared else sums.add
    for index, value in told:
        add(index, value, sign)


untimed = settings(deadline=None)  # the first call compiles
ways = st.sampled_from([in_bulk, one_by_one])
Way = Callable[..., None]


def sums_of(told: Pairs, way: Way = in_bulk, squared: bool = False) -> ExactSums:
    sums = ExactSums(SIZE)
    way(sums, told, squared=squared)
    return sums


def truth(told: Pairs, squared: bool = False) -> list[Fraction]:
    totals = [Fraction(0)] * SIZE
    for index, value in told:
        totals[index] += Fraction(value) ** (2 if squared else 1)
    return totals


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def bits(numbers: Iterable[float]) -> list[int]:
    """Tell even 0.0 from -0.0."""
    return np.array(list(numbers), dtype=np.float64).view(np.int64).tolist()


def check(sums: ExactSums, expected: list[Fraction]) -> None:
    assert [sums.fraction(index) for index in range(len(sums))] == expected
    assert bits(sums.value(index) for index in range(len(sums))) == bits(map(nearest, expected))
    assert bits(sums.values()) == bits(map(nearest, expected))
    exponent, ints = sums.to_ints()
    assert [number * Fraction(2) ** exponent for number in ints] == expected
    assert exponent == 0 or (exponent < 0 and any(number % 2 for number in ints))


@untimed
@given(told=pairs, way=ways, squared=st.booleans())
def test_sums_are_exact_and_rounded_once(told: Pairs, way: Way, squared: bool) -> None:
    check(sums_of(told, way, squared), truth(told, squared))


@untimed
@given(values=st.lists(finite.filter(lambda value: abs(value) < 1e300), max_size=50))
def test_agrees_with_fsum(values: list[float]) -> None:
    sums = ExactSums(1)
    sums.add([0] * len(values), values)
    assert sums.values()[0] == math.fsum(values)


@untimed
@given(told=pairs, data=st.data(), squared=st.booleans())
def test_order_and_grouping_change_no_bit(told: Pairs, data: st.DataObject, squared: bool) -> None:
    shuffled = data.draw(st.permutations(told))
    cut = data.draw(st.integers(0, len(told)))
    one, other = sums_of(told, squared=squared), sums_of(shuffled[:cut], one_by_one, squared)
    in_bulk(other, shuffled[cut:], squared=squared)
    assert one == other
    assert one.to_ints() == other.to_ints()
    assert bits(one.values()) == bits(other.values())


@untimed
@given(kept=pairs, passing=pairs, way=ways, back=ways, squared=st.booleans())
def test_taking_away_restores(
    kept: Pairs, passing: Pairs, way: Way, back: Way, squared: bool
) -> None:
    sums = sums_of(kept, squared=squared)
    before = sums.copy()
    way(sums, passing, squared=squared)
    back(sums, passing[::-1], sign=-1, squared=squared)
    assert sums == before
    assert sums.to_ints() == before.to_ints()
    check(sums, truth(kept, squared))
    back(sums, kept, sign=-1, squared=squared)
    assert sums == ExactSums(SIZE)
    assert sums.to_ints() == (0, [0] * SIZE)


@untimed
@given(told=pairs, taken=pairs)
def test_differences_of_squares_are_exact(told: Pairs, taken: Pairs) -> None:
    sums = sums_of(told, squared=True)
    in_bulk(sums, taken, sign=-1, squared=True)
    pairs_of_truths = zip(truth(told, True), truth(taken, True), strict=True)
    check(sums, [plus - minus for plus, minus in pairs_of_truths])


@untimed
@given(
    exponent=st.integers(-2148, 1000),
    ints=st.lists(st.integers() | st.integers(-(2**2200), 2**2200), max_size=5),
)
def test_restored_from_ints(exponent: int, ints: list[int]) -> None:
    sums = ExactSums.from_ints(exponent, ints)
    expected = [number * Fraction(2) ** exponent for number in ints]
    check(sums, expected)
    again = ExactSums.from_ints(*sums.to_ints())
    assert again == sums
    assert again.to_ints() == sums.to_ints()
    if ints:
        sums.add(0, -0.1)
        sums.add_squares([0], [MAX])
        check(sums, [expected[0] + Fraction(-0.1) + Fraction(MAX) ** 2, *expected[1:]])
        assert again != sums


@untimed
@given(told=pairs, other=pairs)
def test_equal_when_the_sums_are(told: Pairs, other: Pairs) -> None:
    assert (sums_of(told) == sums_of(other)) == (truth(told) == truth(other))


@untimed
@given(
    told=st.lists(st.tuples(st.integers(0, SIZE - 1), finite), min_size=10, max_size=40),
    threshold=st.integers(3, 7),
    squared=st.booleans(),
    way=ways,
)
def test_carries_in_time(told: Pairs, threshold: int, squared: bool, way: Way) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sum, "CARRY_EVERY", threshold)
        sums = sums_of(told, way, squared)
        assert sums._deposits <= threshold
        check(sums, truth(told, squared))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("value", [2.0**32 - 1, -(2.0**32 - 1), 2.0**64 - 2.0**12, -0.1, CROWDED])
def test_limbs_take_all_the_deposits_counted_for_them(value: float, squared: bool) -> None:
    sums = ExactSums(1)
    add = sums.add_squares if squared else sums.add
    add([0], [value])
    times = exact_sum.CARRY_EVERY // sums._deposits
    sums._limbs *= times  # as if told that many times, and not carried yet
    sums._deposits *= times
    add([0], [value])
    assert sums._deposits <= 3
    check(sums, [(times + 1) * Fraction(value) ** (2 if squared else 1)])


def test_the_highest_limb_grows_when_sums_outgrow_it() -> None:
    sums = ExactSums(2)
    sums.add([0, 1], [2.0**62, -(2.0**62)])
    assert sums._limbs.shape[1] == 2
    for _ in range(40):
        sums.to_ints()  # carries, as additions do in time
        sums._limbs *= 2
        sums._deposits = 1
    check(sums, [Fraction(2**102), Fraction(-(2**102))])
    assert sums._limbs.shape[1] == 4


def test_the_window_grows_both_ways_and_not_for_integers() -> None:
    sums = ExactSums(2)
    sums.add([0, 1, 0], [1.0, -(2.0**53 - 1), 3e15])
    sums.add(0, 2.0**63)
    assert (sums._base, sums._limbs.shape[1]) == (0, 2)
    sums.add([1], [0.1])
    assert (sums._base, sums._limbs.shape[1]) == (-64, 4)
    sums.add(1, 2.0**64)
    assert (sums._base, sums._limbs.shape[1]) == (-64, 5)
    sums.add([0, 0], [TINY, MAX])
    assert (sums._base, sums._top) == (-1088, 1024)
    sums.add_squares(1, TINY)
    sums.add_squares([1], [MAX])
    assert (sums._base, sums._top) == (-2176, 2048)
    check(
        sums,
        [
            sum(map(Fraction, [1.0, 3e15, 2.0**63, TINY, MAX]), Fraction(0)),
            sum(map(Fraction, [1 - 2.0**53, 0.1, 2.0**64]), Fraction(0))
            + Fraction(TINY) ** 2
            + Fraction(MAX) ** 2,
        ],
    )


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([2.0**53, 1.0], 2.0**53),  # a tie, to even
        ([2.0**53 + 2, 1.0], 2.0**53 + 4),
        ([2.0**53, 1.0, TINY], 2.0**53 + 2),  # what breaks it is 1100 bits below
        ([2.0**53, 1.0, -TINY], 2.0**53),
        ([MAX, 2.0**969], MAX),
        ([MAX, 2.0**970], math.inf),
        ([MAX, 2.0**970, -TINY], MAX),
        ([-MAX, -MAX], -math.inf),
        ([MAX, MAX, -MAX], MAX),
        ([1e308, 1.0, -1e308], 1.0),
        ([TINY, -(2.0**-1022)], -(2.0**-1022 - TINY)),
        ([-0.0], 0.0),
    ],
)
def test_rounding_at_the_edges(told: list[float], expected: float) -> None:
    for sign in (1, -1):
        sums = ExactSums(1)
        sums.add(np.zeros(len(told), dtype=np.int64), np.array(told), sign)
        assert sums.values()[0] == sign * expected
        assert sums.value(0) == sign * expected


@pytest.mark.parametrize(("quarters", "units"), [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (10, 2)])
def test_squares_below_the_subnormals_round_half_to_even(quarters: int, units: int) -> None:
    value = math.ldexp(1.0, -538)  # its square is 2^-1076, a quarter of the least subnormal
    sums = ExactSums(1)
    sums.add_squares([0] * quarters, [value] * quarters)
    assert sums.values()[0] == sums.value(0) == units * TINY


@pytest.mark.parametrize("offset", range(33))
def test_one_bit_however_far_below_breaks_a_tie(offset: int) -> None:
    scale = 2.0**offset  # so that the tie falls anywhere in a limb
    for bit in range(1, 130):
        sums = ExactSums(2)
        told = [2.0**53, 1.0, 2.0**-bit]
        sums.add([0, 0, 0, 1, 1, 1], scale * np.array(told + [-value for value in told]))
        expected = scale * (2.0**53 + 2)
        assert sums.values().tolist() == [expected, -expected]


def test_many_random_values_of_many_sizes() -> None:
    rng = np.random.default_rng(1)
    told = rng.normal(size=20_000) * 10.0 ** rng.integers(-30, 30, size=20_000)
    index = rng.integers(50, size=told.size)
    sums = ExactSums(50)
    sums.add(index, told)
    expected = [math.fsum(told[index == place]) for place in range(50)]
    assert sums.values().tolist() == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("squared", [False, True])
def test_what_is_not_finite_is_refused_and_changes_nothing(bad: float, squared: bool) -> None:
    sums = sums_of([(0, 0.1), (2, -7.0)])
    before = sums.to_ints()
    add = sums.add_squares if squared else sums.add
    with pytest.raises(ValueError, match="must be finite"):
        add([0, 1, 2], [1.0, 1e300, bad])
    with pytest.raises(ValueError, match="must be finite"):
        add(1, bad)
    assert sums.to_ints() == before


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        ([0, 3], [1.0, 1.0], "index 3 is out of range"),
        ([0, -1], [1.0, 1.0], "index -1 is out of range"),
        (3, 1.0, "index 3 is out of range"),
        (np.int64(-1), 1.0, "index -1 is out of range"),
        ([[0, 1]], [[1.0, 1.0]], "one-dimensional"),
        ([0, 1], [1.0], "one-dimensional"),
        ([0, 1], 1.0, "one-dimensional"),
        (0, [1.0], "one-dimensional"),
        ([0.0, 1.0], [1.0, 1.0], "indices are float64"),
        ([True, False, True], [1.0, 1.0, 1.0], "indices are bool"),
        ([0], [1j], "values are complex128"),
        ([0], [10**400], "values are object"),
        (0, 10**400, "must be finite"),
    ],
)
def test_refusals_change_nothing(indices: object, values: object, message: str) -> None:
    sums = sums_of([(0, 0.1)])
    before = sums.to_ints()
    with pytest.raises(ValueError, match=message):
        sums.add(indices, values)  # type: ignore[arg-type]
    assert sums.to_ints() == before


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="sign is 2"):
        ExactSums(1).add(0, 1.0, sign=2)
    with pytest.raises(ValueError, match="cannot be negative"):
        ExactSums(-1)
    with pytest.raises(ValueError, match="exponent 5000"):
        ExactSums.from_ints(5000, [1])
    with pytest.raises(ValueError, match="index 1 is out of range"):
        ExactSums(1).fraction(1)
    with pytest.raises(ValueError, match="index -1 is out of range"):
        ExactSums(1).value(-1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(ExactSums(1))


def test_any_layout_of_numbers_is_taken() -> None:
    values = np.arange(6.0)
    values.setflags(write=False)
    packed = np.zeros(3, dtype=[("flag", "i1"), ("value", ">f8")])
    packed["value"] = [0.5, 0.25, 0.125]
    sums = ExactSums(SIZE)
    sums.add(np.array([2, 1, 0], dtype=np.uint8), values[::2])
    sums.add((0, 1, 2), packed["value"])
    sums.add(range(3), np.array([1, 2, 3], dtype=np.int16))
    sums.add(np.uint16(1), np.float32(0.5))
    sums.add([], [])
    assert sums.values().tolist() == [4 + 0.5 + 1, 2 + 0.25 + 2 + 0.5, 0.125 + 3]


def test_values_and_copies_are_snapshots() -> None:
    sums = sums_of([(0, 1.0)])
    values, twin = sums.values(), sums.copy()
    assert sums.values() is values
    assert not values.flags.writeable
    sums.add(0, 0.5)
    twin.add([1], [2.0])
    assert values.tolist() == [1.0, 0.0, 0.0]
    assert sums.values().tolist() == [1.5, 0.0, 0.0]
    assert twin.values().tolist() == [1.0, 2.0, 0.0]


def test_none_at_all() -> None:
    sums = ExactSums(0)
    sums.add([], [])
    assert (len(sums), sums.values().size, sums.to_ints()) == (0, 0, (0, []))
    assert sums == ExactSums.from_ints(0, [])
    assert sums != ExactSums(1)
    assert sums != 0


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_the_sum_of_all_sums_is_rounded_once(values: list[float]) -> None:
    sums = ExactSums(3)
    for i, value in enumerate(values):
        sums.add(i % 3, value)
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert sums.whole() == expected
