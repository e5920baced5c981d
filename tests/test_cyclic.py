"""Cyclic designs: FFT against dense matrices, flat families, the swap search, certified norms."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm import reference
from superarm.circulant import Circulant
from superarm.cyclic_plan import CyclicPlan
from superarm.design.blocks import flatness, search_blocks
from superarm.design.cyclic import blocks_that_pay, most_blocks
from superarm.design.difference_sets import difference_family
from superarm.estimate import Dense, gram, information, least_squares
from superarm.levels import expected_pulls
from superarm.tally import Tally

relaxed = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def plans(draw, most_n=12, most_blocks=4):
    """A cyclic plan of random blocks that tells all arms apart."""
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(2, most_n))
    k = draw(st.integers(1, n - 1))
    for number in range(draw(st.integers(1, most_blocks)), 40):
        blocks = np.array([np.sort(rng.choice(n, k, replace=False)) for _ in range(number)])
        if flatness(n, blocks) > 0.01:
            return CyclicPlan(blocks, n), rng
    raise AssertionError("no blocks tell the arms apart")


def matrix(plan):
    """Indicators of all super-arms, a row each."""
    X = np.zeros((plan.size, plan.n))
    np.put_along_axis(X, plan.members(slice(None)), 1.0, axis=1)
    return X


def uneven(plan, rng, most=5):
    """Counts that every block has at least once in each shift, and a tally of totals."""
    counts = rng.integers(1, most, plan.size)
    tally = Tally(plan.size)
    tally.add_block(counts, rng.normal(3.0, 2.0, plan.size) * counts, np.ones(plan.size))
    return counts, tally


def whole_differences(n):
    """All x = chi_M - chi_M', by the number of swaps."""
    signs = np.array(np.meshgrid(*[[-1, 0, 1]] * n)).reshape(n, -1).T.astype(np.float64)
    balanced = signs[signs.sum(axis=1) == 0]
    return {d: balanced[(balanced == 1).sum(axis=1) == d] for d in range(1, n // 2 + 1)}


# ---- the plan ------------------------------------------------------------------------------------


@relaxed
@given(plans())
def test_super_arms_are_all_shifts_block_by_block(made):
    plan, rng = made
    rows = [tuple(map(int, row)) for row in plan.members(slice(None))]
    assert rows == reference.shifts(plan.n, [tuple(block) for block in plan.blocks])
    assert tuple(plan.members(plan.size - 1)) == rows[-1]
    some = rng.integers(plan.size, size=5)
    assert [tuple(row) for row in plan.members(some)] == [rows[i] for i in some]
    t = int(rng.integers(1, 5 * plan.size))
    order = plan.order(0, t)
    assert np.array_equal(plan.counts(t), np.bincount(order, minlength=plan.size))
    assert np.array_equal(order, np.arange(t) % plan.size)
    assert np.linalg.matrix_rank(matrix(plan)[: plan.spanning]) == plan.n


@relaxed
@given(plans())
def test_gather_and_scatter_are_products_with_the_indicators(made):
    plan, rng = made
    X = matrix(plan)
    theta, y = rng.normal(size=plan.n), rng.normal(size=plan.size)
    assert plan.gather(theta) == pytest.approx(X @ theta, abs=1e-12)
    assert np.fft.irfft(plan.scatter(y), plan.n) == pytest.approx(X.T @ y, abs=1e-11)


def test_blocks_have_a_fingerprint():
    a, b = np.array([[0, 1, 3]]), np.array([[0, 1, 4]])
    assert CyclicPlan(a, 7).digest == CyclicPlan(a.copy(), 7).digest
    assert len({CyclicPlan(a, 7).digest, CyclicPlan(b, 7).digest, CyclicPlan(a, 8).digest}) == 3


# ---- estimates -----------------------------------------------------------------------------------


@relaxed
@given(plans(), st.integers(1, 6), st.sampled_from([0.0, 7.0, 2.0**20]))
def test_after_whole_cycles_the_estimate_is_least_squares(made, cycles, level):
    plan, rng = made
    X = matrix(plan)
    totals = X @ rng.normal(level / plan.k, 1.0, plan.n) + rng.normal(size=(cycles, plan.size))
    tally = Tally(plan.size)
    for row in totals:
        tally.add(np.arange(plan.size), row)
    info = information(plan, np.ones(plan.size, dtype=np.int64)).scaled(cycles)
    found = least_squares(plan, tally, info)
    expected = np.linalg.lstsq(np.tile(X, (cycles, 1)), totals.ravel() - level)[0] + level / plan.k
    assert np.abs(found.means - expected).max() < 1e-9 + 1e-14 * level
    again = least_squares(plan, tally, information(plan, tally.counts))  # the same, not scaled
    assert again.means == pytest.approx(found.means, abs=1e-12 * (1 + level))
    dense = Dense(gram(plan.members(slice(None)), tally.counts, plan.n))
    assert dense.estimate(plan, tally).means == pytest.approx(found.means, abs=1e-9 * (1 + level))


@relaxed
@given(plans())
def test_with_uneven_counts_the_estimate_is_the_documented_one(made):
    plan, rng = made
    counts, tally = uneven(plan, rng)
    blocks = [tuple(map(int, block)) for block in plan.blocks]
    A, expected = reference.weighted_estimate(plan.n, blocks, counts.tolist(), tally.totals)
    info = information(plan, counts)
    assert least_squares(plan, tally, info).means == pytest.approx(expected, abs=1e-9)
    assert info.inverse() == pytest.approx(np.linalg.inv(A), abs=1e-9)


@relaxed
@given(plans())
def test_the_weighted_estimate_is_unbiased_and_no_noisier_than_it_says(made):
    plan, rng = made
    counts, _ = uneven(plan, rng)
    X, theta = matrix(plan), rng.normal(size=plan.n)
    info = information(plan, counts)
    tally = Tally(plan.size)
    tally.add_block(counts, counts * (X @ theta), np.ones(plan.size))
    assert least_squares(plan, tally, info).means == pytest.approx(theta, abs=1e-9)
    w = np.repeat(counts.reshape(-1, plan.n).min(axis=1), plan.n)
    solved = info.inverse() @ X.T @ np.diag(w)  # theta~ = solved @ ybar
    covariance = solved @ np.diag(1 / counts) @ solved.T
    assert np.linalg.eigvalsh(info.inverse() - covariance)[0] > -1e-10


def test_blocks_not_measured_yet_count_for_nothing():
    plan = CyclicPlan(np.array([[0, 1, 3], [0, 1, 2]]), 7)
    counts = plan.counts(7 + 3)  # the first block whole, the second begun
    tally = Tally(14)
    theta = np.arange(7.0)
    noisy = plan.gather(theta) * counts + 100.0 * (np.arange(14) >= 7) * (counts > 0)
    tally.add_block(counts, noisy, np.ones(14))
    assert least_squares(plan, tally, information(plan, counts)).means == pytest.approx(theta)


@relaxed
@given(plans(), st.floats(0.1, 1e6))
def test_circulant_answers_are_those_of_the_matrix(made, scale):
    plan, rng = made
    weights = rng.integers(1, 4, len(plan.blocks)).astype(np.float64)
    X = matrix(plan)
    A = scale * X.T @ np.diag(np.repeat(weights, plan.n)) @ X
    info, inverse = Circulant(plan, weights).scaled(scale), np.linalg.inv(A)
    b = rng.normal(size=plan.n)
    assert info.solve(b) == pytest.approx(inverse @ b, rel=1e-9, abs=1e-9 / scale)
    assert info.inverse() == pytest.approx(inverse, rel=1e-9, abs=1e-9 / scale)
    assert info.diagonal() == pytest.approx(np.diag(inverse), rel=1e-9)
    assert info.norm(b) == pytest.approx(np.sqrt(b @ inverse @ b), rel=1e-9)
    assert info.reciprocal_condition == pytest.approx(1 / np.linalg.cond(A), rel=1e-6)
    assert np.array_equal(info.inverse(), info.inverse().T)


def test_rules_that_need_the_whole_matrix_say_so_where_it_is_too_large():
    problem = sa.Problem(6_000, 3, sa.gaussian(1.0))
    plan = sa.Cyclic(2).plan(problem, np.random.default_rng(1))
    info = information(plan, np.ones(plan.size, dtype=np.int64))
    with pytest.raises(sa.SettingError, match="choose certified"):
        info.inverse()
    rule = sa.SAQM(design=sa.Cyclic(2))
    world = sa.environment(np.zeros(6_000), problem.noise)
    with pytest.raises(sa.SettingError, match="6,000 x 6,000"):
        sa.simulate(problem, rule, world, rng=1)


@pytest.mark.parametrize("n", [1_000, 100_003])
def test_the_margin_for_rounding_covers_what_longer_numbers_show(n):
    """Eigenvalues and the solve, against the same in extended precision."""
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no longer numbers here")
    from scipy.fft import irfft, rfft

    plan = sa.Cyclic(3).plan(sa.Problem(n, n // 20, sa.gaussian(1.0)), np.random.default_rng(2))
    info = information(plan, np.ones(plan.size, dtype=np.int64))
    B = np.zeros((3, n), dtype=np.longdouble)
    np.put_along_axis(B, plan.blocks, np.longdouble(1), axis=1)
    waves = rfft(B)
    exact = (waves.real**2 + waves.imag**2).sum(axis=0)
    error, squares = info.relative_error, info.differences(n // 20)
    assert 1 / squares.least >= float(1 / exact[1:].min())
    row = irfft(1 / exact, n)
    assert squares.diagonal >= float(row[0] - row[1:].min())
    assert squares.spread >= float(row[1:].max() - row[1:].min())
    y = np.random.default_rng(3).normal(size=plan.size)
    tally = Tally(plan.size)
    tally.add(np.arange(plan.size), y)
    _, sums = tally.centred()
    b = (rfft(sums.reshape(3, n).astype(np.longdouble)) * waves).sum(axis=0)
    found = info.estimate(plan, tally)
    assert float(np.abs(found.centred - irfft(b / exact, n)).max()) <= found.rounding
    assert error < 1e-8


# ---- certified norms -----------------------------------------------------------------------------

DIFFERENCES = {n: whole_differences(n) for n in range(2, 9)}


def true_squares(inverse, k):
    n = len(inverse)
    return np.array(
        [
            np.einsum("xi,ij,xj->x", x, inverse, x).max()
            for d, x in DIFFERENCES[n].items()
            if d <= min(k, n - k)
        ]
    )


@settings(max_examples=300, deadline=None)
@given(seeds, st.integers(2, 8), st.data())
def test_norms_are_never_below_true_ones_on_uneven_tallies(seed, n, data):
    k = data.draw(st.integers(1, n - 1))
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), k)))
    counts = rng.integers(0, 6, len(every)) * rng.integers(0, 2, len(every)) + 0
    counts[rng.permutation(len(every))[: n + 1]] += 10 ** rng.integers(0, 4)
    info = Dense(gram(every, counts, n))
    if not info.usable:
        return
    found = info.scaled(3.0).differences(k).squares(min(k, n - k))
    expected = true_squares(np.linalg.inv(gram(every, counts, n)), k) / 3
    assert (found >= expected * (1 - 1e-12)).all()
    mine = [reference.norm_of_level(gram(every, counts, n), k, d + 1) for d in range(len(found))]
    assert np.sqrt(3 * found) == pytest.approx(np.array(mine), rel=1e-4)
    assert (np.sqrt(3 * found) >= np.array(mine) * (1 - 1e-9)).all()


@settings(max_examples=200, deadline=None)
@given(plans(most_n=8))
def test_norms_are_never_below_true_ones_on_cyclic_designs(made):
    plan, rng = made
    weights = rng.integers(1, 5, len(plan.blocks)).astype(np.float64)
    info = Circulant(plan, weights)
    levels = min(plan.k, plan.n - plan.k)
    expected = true_squares(info.inverse(), plan.k)
    found = info.differences(plan.k).squares(levels)
    assert (found >= expected * (1 - 1e-12)).all()
    assert found[0] == pytest.approx(expected[0], rel=1e-9)  # level 1 of a circulant is exact


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (5, 4), (7, 3), (7, 4), (13, 4), (13, 6)])
def test_on_flat_designs_the_norms_are_exact(n, k):
    """A = aI + bJ there, and |x|^2 = 2d/a, a = L k(n-k)/(n-1)."""
    plan = CyclicPlan(difference_family(n, k), n)
    a = len(plan.blocks) * k * (n - k) / (n - 1)
    d = np.arange(1, min(k, n - k) + 1)
    circulant = information(plan, np.ones(plan.size, dtype=np.int64))
    dense = Dense(gram(plan.members(slice(None)), np.ones(plan.size, dtype=np.int64), n))
    for info in (circulant, dense):
        assert info.differences(k).squares(len(d)) == pytest.approx(2 * d / a, rel=1e-9)


def test_the_plain_eigenvalue_would_not_do():
    """Off the arm counts, lambda of A on the complement of 1 promises too much: a norm exceeds it.

    (What is used is the one of A - cc'/t.)
    """
    rng = np.random.default_rng(4)
    broken = 0
    for _ in range(200):
        every = np.array(list(combinations(range(5), 2)))
        counts = 1 + rng.integers(0, 50, len(every)) * (rng.random(len(every)) < 0.3)
        A = gram(every, counts, 5)
        basis = np.linalg.qr(np.column_stack([np.ones(5), np.eye(5)[:, :4]]))[0][:, 1:]
        plain = 2 / np.linalg.eigvalsh(basis.T @ A @ basis)[0]
        broken += plain < true_squares(np.linalg.inv(A), 2)[0] * (1 - 1e-9)
    assert broken > 0


# ---- difference families -------------------------------------------------------------------------


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


PALEY = [(n, (n - 1) // 2, 1 if n % 4 == 3 else 2) for n in range(7, 132) if is_prime(n)]
SINGER = [
    ((q ** (m + 1) - 1) // (q - 1), (q**m - 1) // (q - 1), 1)
    for m, powers in {
        2: (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 25, 27, 32),
        3: (2, 3, 4, 5, 7, 8, 9),
        4: (2, 3, 4, 5),
        5: (2, 3),
        6: (2,),
    }.items()
    for q in powers
]


@pytest.mark.parametrize(("n", "k", "blocks"), [*PALEY, *SINGER, (2, 1, 1), (9, 1, 1)])
def test_difference_families_are_flat_in_whole_numbers(n, k, blocks):
    for size in {k, n - k}:
        family = difference_family(n, size)
        assert family.shape == (blocks, size)
        together = np.zeros(n, dtype=np.int64)  # how many differences i - j are s, for each s
        for block in family:
            assert np.array_equal(np.unique(block), block)
            assert block[0] >= 0
            assert block[-1] < n
            ones = np.zeros(n, dtype=np.int64)
            ones[block] = 1
            doubled = np.concatenate([ones, ones])
            together += np.correlate(doubled, ones, "valid")[:n]
        assert together[0] == blocks * size
        assert (together[1:] == blocks * size * (size - 1) // (n - 1)).all()


@pytest.mark.parametrize(("n", "k"), [(10, 4), (9, 4), (12, 5), (15, 6), (21, 4), (31, 7), (4, 2)])
def test_no_family_is_claimed_where_none_is_known(n, k):
    assert difference_family(n, k) is None


# ---- the swap search -----------------------------------------------------------------------------

PROTOTYPE = {
    (36, 10): {1: 0.41, 2: 0.67, 4: 0.81, 8: 0.91},
    (111, 10): {1: 0.15, 2: 0.44, 4: 0.68, 8: 0.81, 16: 0.89},
}


@pytest.mark.parametrize(
    ("n", "k", "number", "share"),
    [(*size, number, share) for size, rows in PROTOTYPE.items() for number, share in rows.items()],
)
def test_blocks_are_as_flat_as_they_were_found_to_be(n, k, number, share):
    found = [flatness(n, search_blocks(n, k, number, np.random.default_rng(s))) for s in range(3)]
    assert np.mean(found) >= 0.98 * share
    assert min(found) >= 0.9 * share


@pytest.mark.parametrize(("n", "k", "number"), [(2, 1, 1), (3, 2, 2), (9, 4, 3), (40, 20, 5)])
def test_a_search_can_be_repeated_and_gives_sets(n, k, number):
    one, two = (search_blocks(n, k, number, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.shape == (number, k)
    assert (np.diff(one, axis=1) > 0).all()
    assert one.min() >= 0
    assert one.max() < n


def test_flatness_is_the_least_eigenvalue_by_the_ideal():
    blocks = np.array([[0, 1, 4], [2, 3, 7]])
    A = matrix(CyclicPlan(blocks, 9)).T @ matrix(CyclicPlan(blocks, 9))
    basis = np.linalg.qr(np.column_stack([np.ones(9), np.eye(9)[:, :8]]))[0][:, 1:]
    least = np.linalg.eigvalsh(basis.T @ A @ basis)[0]
    assert flatness(9, blocks) == pytest.approx(least / (2 * 3 * 6 / 8))


# ---- the design ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1e3])
def test_every_small_question_has_a_design(epsilon):
    """Also where all shifts of a single block, whichever it is, leave arms apart (2 of 4, of 8)."""
    for n in range(2, 13):
        for k in range(1, n):
            problem = sa.Problem(n, k, sa.gaussian(1.0), epsilon=epsilon)
            plan = sa.Cyclic().plan(problem, np.random.default_rng(3))
            assert np.linalg.matrix_rank(matrix(plan)) == n
            assert plan.describe()["flatness"] > 0.02


def test_difference_sets_are_taken_where_there_are_any():
    rng = np.random.default_rng(1)
    plan = sa.Cyclic().plan(sa.Problem(31, 6, sa.gaussian(1.0)), rng)
    assert plan.describe()["source"] == "difference set"
    assert plan.describe()["flatness"] == 1.0
    searched = sa.Cyclic(3).plan(sa.Problem(31, 6, sa.gaussian(1.0)), rng)
    assert (searched.source, searched.size) == ("swap search", 93)


def test_more_pulls_pay_for_more_blocks():
    def problem(epsilon):
        return sa.Problem(36, 10, sa.labels(), epsilon=epsilon)

    numbers = [blocks_that_pay(problem(epsilon)) for epsilon in (8.0, 2.0, 0.5, 0.1, 1e-3)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1] == 64
    assert most_blocks(sa.Problem(5, 2, sa.gaussian(1.0))) == 2  # 10 groups are 2 blocks' shifts
    assert sa.Cyclic(pulls=4 * 36 + 5).plan(problem(0.5), np.random.default_rng(1)).size == 4 * 36


def test_pulls_to_expect_have_no_bounds():
    assert expected_pulls(sa.Problem(5, 2, sa.gaussian(1e100), epsilon=1e-100)) == 10**18
    assert expected_pulls(sa.Problem(5, 2, sa.gaussian(1e-300), epsilon=1e100)) == 5
    assert expected_pulls(sa.Problem(50, 2, sa.gaussian(1.0))) == 600


@pytest.mark.parametrize("blocks", [0, -1, 1.5, "many", None, True, 10_000])
def test_impossible_numbers_of_blocks_are_refused(blocks):
    with pytest.raises(sa.SettingError, match="blocks"):
        sa.Cyclic(blocks)


def test_what_a_cyclic_design_cannot_serve_is_refused():
    rng = np.random.default_rng(1)
    tree = sa.SpanningTrees([(0, 1), (1, 2), (0, 2)])
    with pytest.raises(sa.ProblemError, match="choose uniform"):
        sa.Cyclic().plan(sa.Problem(3, tree, sa.gaussian(1.0)), rng)
    with pytest.raises(sa.ProblemError, match="only one group"):
        sa.Cyclic().plan(sa.Problem(5, 5, sa.gaussian(1.0)), rng)
    with pytest.raises(sa.SettingError, match="10,000,000"):
        sa.Cyclic(4).plan(sa.Problem(3_000_000, 5, sa.gaussian(1.0)), rng)
    for design in (sa.Cyclic(1), sa.Cyclic(pulls=5)):
        with pytest.raises(sa.SupportError, match="it takes more blocks"):
            design.plan(sa.Problem(4, 2, sa.gaussian(1.0)), rng)
    with pytest.raises(sa.SettingError, match="pulls"):
        sa.Cyclic(pulls=0)
