"""The reference against hand computation, against enumeration, and against its own symmetries."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable
from functools import partial
from itertools import combinations, count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from superarm import reference as ref

PAIRS_OF_4 = list(combinations(range(4), 2))
Kind = Callable[[np.random.Generator, int], np.ndarray]
relaxed = settings(deadline=None, max_examples=60)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def sizes(draw: st.DrawFn, least_k: int = 1, most_n: int = 7) -> tuple[int, int]:
    n = draw(st.integers(least_k + 1, most_n))
    return n, draw(st.integers(least_k, n - 1))


def positive_definite(rng: np.random.Generator, n: int) -> np.ndarray:
    """Anything from well conditioned to a factor of some thousands."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return basis @ np.diag(10 ** rng.uniform(-3.5, 0.5, size=n)) @ basis.T


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    W = rng.normal(size=(n, n))
    return W + W.T


def random_pulls(rng: np.random.Generator, n: int, k: int, t: int) -> list[tuple[int, ...]]:
    return [tuple(sorted(rng.choice(n, k, replace=False).tolist())) for _ in range(t)]


def relabel(members: tuple[int, ...] | None, new: np.ndarray) -> tuple[int, ...]:
    assert members is not None
    return tuple(sorted(int(new[i]) for i in members))


# ---- independence --------------------------------------------------------------------------------


def test_imports_nothing_of_the_library() -> None:
    tree = ast.parse(Path(ref.__file__).read_text(encoding="utf-8"))
    whole = [n for n in ast.walk(tree) if isinstance(n, ast.Import)]
    parts = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert not [n for n in parts if n.level > 0]
    names = {alias.name for n in whole for alias in n.names} | {str(n.module) for n in parts}
    assert {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) == {"numpy"}


# ---- pulls and least squares ---------------------------------------------------------------------


def test_tracking_by_hand() -> None:
    assert ref.tracking_order([1, 1, 1], 7) == [0, 1, 2, 0, 1, 2, 0]
    assert ref.tracking_order([0.5, 0.25, 0.0, 0.25], 8) == [0, 1, 3, 0, 0, 1, 3, 0]
    assert ref.tracking_order([3.0], 0) == []
    with pytest.raises(ValueError, match="positive proportion"):
        ref.tracking_order([0.0, 0.0], 1)


@relaxed
@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6), st.integers(1, 300))
def test_tracking_follows_the_proportions(weights: list[float], t: int) -> None:
    order = ref.tracking_order(weights, t)
    assert len(order) == t
    pulled = np.bincount(order, minlength=len(weights))
    expected = t * np.array(weights) / sum(weights)
    # A super-arm is pulled only when T/p is least, hence at most t/sum(p): never 1 above its share.
    assert np.all(pulled <= expected + 1 + 1e-9)
    assert abs(pulled - expected).max() <= len(weights)
    assert ref.tracking_order(weights, t + 1)[:t] == order


def test_design_and_response_by_hand() -> None:
    pulled = [(0, 1), (1, 2), (0, 1)]
    assert ref.design_matrix(3, pulled).tolist() == [[2, 2, 0], [2, 3, 1], [0, 1, 1]]
    assert ref.response(3, pulled, [1.0, 10.0, 100.0]).tolist() == [101.0, 111.0, 10.0]
    # each coordinate is rounded once: naive summation would lose the 1
    assert ref.response(1, [(0,)] * 3, [1e17, 1.0, -1e17]).tolist() == [1.0]
    with pytest.raises(ValueError, match="3 pulls came with 1 totals"):
        ref.response(3, pulled, [1.0])


def test_least_squares_by_hand() -> None:
    theta, inverse = ref.least_squares(3, [(0, 1), (1, 2), (0, 2)], [3.0, 5.0, 4.0])
    assert theta == pytest.approx([1.0, 2.0, 3.0])
    assert inverse == pytest.approx(np.full((3, 3), -0.25) + np.eye(3))


@relaxed
@given(seeds, sizes())
def test_least_squares_minimises_the_squares(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    rng = np.random.default_rng(seed)
    pulled = random_pulls(rng, n, k, 6 * n)
    assume(not ref.indistinguishable(n, pulled))
    totals = rng.normal(size=len(pulled)).tolist()
    theta, inverse = ref.least_squares(n, pulled, totals)
    X = np.array([ref.indicator(n, members) for members in pulled])
    assert theta == pytest.approx(np.linalg.lstsq(X, np.array(totals))[0], abs=1e-8)
    assert inverse @ (X.T @ X) == pytest.approx(np.eye(n), abs=1e-8)
    assert np.array_equal(inverse, inverse.T)


def test_singular_designs_name_their_arms() -> None:
    assert ref.indistinguishable(3, []) == [0, 1, 2]
    assert ref.indistinguishable(4, [(0, 1), (0, 1, 2)]) == [0, 1, 3]
    assert ref.indistinguishable(3, [(0, 1), (1, 2), (0, 2)]) == []
    with pytest.raises(ValueError, match=r"arms \[2, 3\] cannot be told apart"):
        ref.least_squares(4, [(0, 1), (0,), (2, 3)], [1.0, 1.0, 1.0])


# ---- constants -----------------------------------------------------------------------------------


def test_log_choose_is_exact() -> None:
    assert ref.log_choose(5, 2) == math.log(10)
    assert ref.log_choose(10, 10) == 0.0
    assert ref.log_choose(1000, 10) == pytest.approx(
        math.lgamma(1001) - math.lgamma(11) - math.lgamma(991), rel=1e-12
    )


def test_constants_by_hand() -> None:
    # n = 4, k = 2: K = 6; t = 3, delta = 0.05, sigma = 2: t^2 K / delta = 1080
    ellipsoid = partial(ref.ellipsoid_constant, 3, 2.0, 4, 2, 0.05)
    assert ellipsoid("paper") == pytest.approx(4 * math.sqrt(2 * math.log(6480 / math.pi**2)))
    assert ellipsoid() == pytest.approx(2 * math.sqrt(2 * math.log(180 * math.pi**2)))
    # t^2 n / delta = 720
    independent = partial(ref.independent_constant, 3, 2.0, 4, 0.05)
    assert independent("paper") == pytest.approx(2 * math.sqrt(2 * math.log(4320 / math.pi**2)))
    assert independent() == pytest.approx(2 * math.sqrt(2 * math.log(120 * math.pi**2)))
    with pytest.raises(ValueError, match="'paper' or 'corrected'"):
        ellipsoid("right")  # type: ignore[arg-type]


def test_corrected_constants_spend_delta() -> None:
    """K times the sub-Gaussian tail exp(-C^2 / (2 sigma^2)), summed over all rounds, is delta."""
    t = np.arange(1, 200_001)
    for events, constant in (
        (10, lambda s: ref.ellipsoid_constant(s, 1.0, 5, 2, 0.05)),
        (5, lambda s: ref.independent_constant(s, 1.0, 5, 0.05)),
    ):
        first = events * math.exp(-(constant(1) ** 2) / 2)
        assert events * math.exp(-(constant(7) ** 2) / 2) == pytest.approx(first / 49)
        assert float(np.sum(first / t**2)) == pytest.approx(0.05, rel=1e-4)


# ---- quadratic maximisation ----------------------------------------------------------------------


def test_best_two_and_ties() -> None:
    assert ref.best_two(np.array([1.0, 5.0, 3.0, 4.0]), 2) == ((1, 3), (1, 2))
    assert ref.best_two(np.zeros(4), 2) == ((0, 1), (0, 2))
    assert ref.best_two(np.array([1.0, 2.0, 2.0]), 1) == ((1,), (2,))
    for k in (0, 3):
        with pytest.raises(ValueError, match="1 <= k < n"):
            ref.best_two(np.zeros(3), k)


@relaxed
@given(seeds, sizes())
def test_best_two_are_the_two_best(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    theta = np.random.default_rng(seed).normal(size=n)
    ranked = sorted(combinations(range(n), k), key=lambda M: -ref.value(theta, M))
    assert ref.best_two(theta, k) == (ranked[0], ranked[1])


def test_peeling_by_hand() -> None:
    # a triangle 1-2-3 of weight 2 and a heavy pendant 0-1 of weight 3; degrees 3, 7, 4, 4
    weights = np.zeros((4, 4))
    for i, j, w in ((1, 2, 2.0), (2, 3, 2.0), (1, 3, 2.0), (0, 1, 3.0)):
        weights[i, j] = weights[j, i] = w
    weights += np.diag([100.0, 0.0, 0.0, 0.0])  # the diagonal is ignored
    assert ref.greedy_peeling(weights, 3) == (1, 2, 3)
    assert ref.greedy_peeling(weights, 2) == (2, 3)  # 4, 4, 4: the lowest index goes
    assert ref.greedy_peeling(np.ones((4, 4)), 2) == (2, 3)
    assert ref.greedy_peeling(weights, 4) == (0, 1, 2, 3)


def test_quadratic_maximisation_by_hand() -> None:
    W = np.array([[1.0, 0.0, 4.0], [0.0, 2.0, 0.0], [4.0, 0.0, 3.0]])
    # w~: 01 -> 3, 02 -> 8, 12 -> 5; degrees 11, 8, 13: arm 1 goes
    assert ref.quadratic_maximisation(W, 2) == ((0, 2), 12.0)
    assert ref.brute_force_quadratic(W, 2) == ((0, 2), 12.0)
    assert ref.quadratic_maximisation(W, 1) == ((2,), 3.0)
    assert ref.quadratic_maximisation(np.eye(3), 1) == ((0,), 1.0)
    assert ref.brute_force_quadratic(np.eye(3), 2) == ((0, 1), 2.0)
    # The reduction is not the identity: by w alone peeling keeps (0, 1), by w~ it keeps (2, 3).
    W = np.diag([0.1, 0.1, 3.0, 3.0])
    W[0, 1] = W[1, 0] = 0.05
    assert ref.greedy_peeling(W, 2) == (0, 1)
    assert ref.quadratic_maximisation(W, 2) == ((2, 3), 6.0)


@relaxed
@given(seeds, sizes())
def test_peeling_never_beats_enumeration(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    W = symmetric(np.random.default_rng(seed), n)
    members, found = ref.quadratic_maximisation(W, k)
    _, most = ref.brute_force_quadratic(W, k)
    assert len(members) == k
    assert list(members) == sorted(set(members))
    assert found == pytest.approx(sum(W[i, j] for i in members for j in members))
    assert found <= most + 1e-9
    if k == 1:
        assert found == most == np.diag(W).max()


@relaxed
@given(seeds, sizes(least_k=2))
def test_peeling_keeps_its_guarantee_for_dks(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.4), 1)

    def weight(members: tuple[int, ...]) -> float:
        return sum(float(weights[i, j]) for i, j in combinations(members, 2))

    found = weight(ref.greedy_peeling(weights + weights.T, k))
    assert found >= ref.peeling_guarantee(n, k) * float(weights.sum()) - 1e-12


def test_ratios_by_hand() -> None:
    W = np.diag([1.0, 2.0, 3.0, 4.0])
    assert ref.peeling_guarantee(4, 3) == 0.5
    assert ref.peeling_guarantee(4, 4) == 1.0
    assert ref.peeling_guarantee(4, 1) == 1.0
    assert ref.spectral_ratio(W) == pytest.approx(0.25)
    assert ref.theorem_ratio(W, 3) == pytest.approx(0.5 / 2 * 0.25)
    assert ref.theorem_ratio(W, 1) == 1.0
    with pytest.raises(ValueError, match="not positive definite"):
        ref.spectral_ratio(np.diag([1.0, -1.0]))


@relaxed
@given(seeds, sizes(least_k=3))
def test_theorem_1_holds(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    W = positive_definite(np.random.default_rng(seed), n)
    _, found = ref.quadratic_maximisation(W, k)
    _, most = ref.brute_force_quadratic(W, k)
    assert found >= ref.theorem_ratio(W, k) * most * (1 - 1e-9)
    assert ref.theorem_ratio(W, k) <= ref.spectral_ratio(W)


@relaxed
@given(seeds, sizes())
def test_every_set_keeps_the_spectral_ratio(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    W = positive_definite(np.random.default_rng(seed), n)
    values = [ref.norm(W, ref.indicator(n, M)) ** 2 for M in combinations(range(n), k)]
    assert min(values) >= ref.spectral_ratio(W) * max(values) * (1 - 1e-9)


@relaxed
@given(seeds, sizes(), st.sampled_from([symmetric, positive_definite]), st.floats(-8, 8))
def test_spectral_bound_is_above_enumeration(
    seed: int, size: tuple[int, int], kind: Kind, log_scale: float
) -> None:
    n, k = size
    W = kind(np.random.default_rng(seed), n) * 10**log_scale
    assert ref.spectral_bound(W, k) >= ref.brute_force_quadratic(W, k)[1]
    assert ref.spectral_bound(W, k) <= k * np.linalg.eigvalsh(W)[-1] + 1e-9 * np.abs(W).max()


@relaxed
@given(seeds, sizes(), st.sampled_from([symmetric, positive_definite]))
def test_spectral_bound_is_the_maximum_on_the_sphere(
    seed: int, size: tuple[int, int], kind: Kind
) -> None:
    n, k = size
    rng = np.random.default_rng(seed)
    W = kind(rng, n)
    if n == 3:  # the sphere is a circle: walk round it
        angle = np.linspace(0, 2 * np.pi, 20_001)
        y = np.outer(np.cos(angle), [1, -1, 0]) / math.sqrt(2)
        y += np.outer(np.sin(angle), [1, 1, -2]) / math.sqrt(6)
    else:
        y = rng.normal(size=(20_000, n))
        for _ in range(2):  # once more, for rows that had little but their mean: rounding grew
            y -= y.mean(axis=1, keepdims=True)
            y /= np.linalg.norm(y, axis=1, keepdims=True)
    x = k / n + math.sqrt(k * (n - k) / n) * y
    reached = np.einsum("ti,ij,tj->t", x, W, x).max()
    bound = ref.spectral_bound(W, k)
    assert reached <= bound + 1e-9 * np.abs(W).max()  # the points are on the sphere to rounding
    if n <= 3:
        assert reached == pytest.approx(bound, rel=1e-6, abs=1e-6 * np.abs(W).max())


def test_spectral_bound_in_the_hard_case() -> None:
    # All of W = a I + b J is the same on the sphere: a k + b k^2, with no direction preferred.
    W = 2.0 * np.eye(6) + 3.0 * np.ones((6, 6))
    assert ref.spectral_bound(W, 2) == pytest.approx(2 * 2 + 3 * 4, rel=1e-10)
    # g lies along an eigenvector that is not the top one: two blocks, the difference of which is
    # an eigenvector, and a top eigenvector inside the second block.
    W = np.zeros((4, 4))
    W[:2, :2] = [[1.0, 0.9], [0.9, 1.0]]
    W[2:, 2:] = [[5.0, -4.9], [-4.9, 5.0]]
    for k in (1, 2, 3):
        assert ref.spectral_bound(W, k) >= ref.brute_force_quadratic(W, k)[1]
    assert ref.spectral_bound(np.zeros((3, 3)), 1) == pytest.approx(0.0, abs=1e-9)
    assert ref.spectral_bound(np.ones((3, 3)), 3) == pytest.approx(9.0)
    assert ref.spectral_bound(-np.eye(3), 2) == pytest.approx(-2.0)


# ---- the rules -----------------------------------------------------------------------------------


def estimate(seed: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """An estimate as a run would make it; every n, k here has designs of full rank."""
    rng = np.random.default_rng(seed)
    pulled = random_pulls(rng, n, k, 8 * n)
    while ref.indistinguishable(n, pulled):
        pulled += random_pulls(rng, n, k, n)
    return ref.least_squares(n, pulled, rng.normal(size=len(pulled)).tolist())


def test_saqm_by_hand() -> None:
    theta = np.array([3.0, 2.0, 1.0, 0.0])
    W = np.diag([0.04, 0.04, 0.09, 0.16])
    # best (0, 1), rival (0, 2): gap 1; Algorithm 1 keeps (2, 3): norm 0.5; |best| = sqrt(0.08)
    sides = ref.saqm_sides(theta, W, 2, 0.25, 2.0, 0.9)
    assert (sides.best, sides.rival, sides.gap) == ((0, 1), (0, 2), 1.0)
    assert sides.radius == pytest.approx(2 * (math.sqrt(0.08) + 0.5 / 0.9))
    assert not sides.stop
    assert ref.saqm_sides(theta, W, 2, 0.68, 2.0, 0.9).stop  # radius 1.6768
    assert not ref.saqm_sides(theta, W, 2, 0.67, 2.0, 0.9).stop
    spectral = ref.saqm_sides(theta, W, 2, 0.0, 2.0, "spectral")
    assert spectral.radius == pytest.approx(2 * (math.sqrt(0.08) + 0.5 / 0.5))
    theorem = ref.saqm_sides(theta, W, 2, 0.0, 2.0, "theorem")  # alpha_DkS = 1/6, k - 1 = 1
    assert theorem.radius == pytest.approx(2 * (math.sqrt(0.08) + math.sqrt(6) * 0.5 / 0.5))
    with pytest.raises(ValueError, match="sure"):
        ref.saqm_sides(theta, W, 2, 0.0, 2.0, "sure")  # type: ignore[arg-type]


def test_only_saqm_and_sa_foa_stop_at_equality() -> None:
    theta, W = np.array([2.0, 0.0]), np.eye(2) / 2  # the difference has norm 1
    assert ref.saqm_sides(theta, 2 * W, 1, 2.0, 2.0, 1.0).stop  # 2 + 2 >= 2 (1 + 1)
    # at k = 1, B's maximum is on the rival: gamma (0.5) + 0 against gamma (0.5 - 1) + 2, gamma = 4
    assert ref.sa_foa_sides(theta, W, 1, 6.0, 8.0, [(1,)]).rival == (1,)
    assert ref.sa_foa_sides(theta, W, 1, 6.0, 8.0, [(1,)]).stop  # 2 + 6 >= 8
    assert not ref.exhaustive_sides(theta, W, 1, 6.0, 8.0).stop  # 2 + 6 > 8 is false
    assert ref.exhaustive_sides(theta, W, 1, 6.0 + 1e-9, 8.0).stop
    assert not ref.icb_sides(theta, 2 * W, 1, 6.0, 4.0).stop  # 2 + 6 > 4 (1 + 1) is false
    assert ref.icb_sides(theta, 2 * W, 1, 6.0 + 1e-9, 4.0).stop


@relaxed
@given(seeds, sizes(), st.floats(0.01, 10))
def test_alphas_are_ordered(seed: int, size: tuple[int, int], C: float) -> None:
    """The exact CEM value is below each of the three certified Z; a number is what it says."""
    n, k = size
    theta, W = estimate(seed, n, k)
    best, _ = ref.best_two(theta, k)
    exact = math.sqrt(ref.brute_force_quadratic(W, k)[1])
    exact_radius = C * (ref.norm(W, ref.indicator(n, best)) + exact)
    for alpha in ("theorem", "spectral", "certified"):
        radius = ref.saqm_sides(theta, W, k, 0.5, C, alpha).radius  # type: ignore[arg-type]
        assert radius >= exact_radius * (1 - 1e-9)
    assert ref.saqm_sides(theta, W, k, 0.5, C, 1.0).radius <= exact_radius * (1 + 1e-9)


@relaxed
@given(seeds, sizes(), st.floats(0.01, 10))
def test_icb_and_exhaustive_against_the_formula(seed: int, size: tuple[int, int], C: float) -> None:
    n, k = size
    theta, W = estimate(seed, n, k)
    best = tuple(sorted(np.argsort(-theta)[:k].tolist()))
    sd = np.sqrt(np.diag(W))
    icb, exhaustive = {}, {}
    for M in combinations(range(n), k):
        swapped = sorted(set(M) ^ set(best))
        sign = np.array([1.0 if i in M else -1.0 for i in swapped])
        if swapped:
            lead = sign @ theta[swapped]
            icb[M] = lead + C * sd[swapped].sum()
            exhaustive[M] = lead + C * math.sqrt(sign @ W[np.ix_(swapped, swapped)] @ sign)
    for sides, upper in (
        (ref.icb_sides(theta, W, k, 0.5, C), icb),
        (ref.exhaustive_sides(theta, W, k, 0.5, C), exhaustive),
    ):
        assert sides.best == best
        assert sides.rival is not None
        assert upper[sides.rival] == pytest.approx(max(upper.values()), abs=1e-9)
        assert sides.radius - sides.gap == pytest.approx(max(upper.values()), abs=1e-9)
        assert sides.stop == (sides.gap + 0.5 > sides.radius)


@relaxed
@given(seeds, sizes(least_k=2), st.floats(0.01, 10))
def test_sa_foa_finds_at_most_what_exhaustive_finds(
    seed: int, size: tuple[int, int], C: float
) -> None:
    n, k = size
    theta, W = estimate(seed, n, k)
    best, _ = ref.best_two(theta, k)
    draws = random_pulls(np.random.default_rng(seed), n, k, 3 * n)
    sides = ref.sa_foa_sides(theta, W, k, 0.5, C, draws, threshold=0.5)
    exact = ref.exhaustive_sides(theta, W, k, 0.5, C)
    assert sides == ref.sa_foa_sides(theta, W, k, 0.5, C, [best, *draws, best], threshold=0.5)
    assert sides == ref.sa_foa_sides(theta, W, k, 0.5, C, draws[::-1], threshold=0.5)
    assert sides.rival != best
    assert sides.radius - sides.gap <= exact.radius - exact.gap + 1e-9
    assert sides.stop == (sides.gap + 0.25 >= sides.radius)


def test_sa_foa_by_hand() -> None:
    theta, W = np.array([1.0, 0.5, 0.0]), np.diag([1.0, 1.0, 4.0])
    # k = 1, best (0,), draw (2,): |x| = sqrt 5, gamma = C / (2 sqrt 5) = 1 at C = 2 sqrt 5;
    # diag B = [1 - 2 + 1, 1 + 0.5, 4 + 0] = [0, 1.5, 4]: rival (2,), radius 2 sqrt 5 sqrt 5 = 10
    sides = ref.sa_foa_sides(theta, W, 1, 0.0, 2 * math.sqrt(5), [(2,)])
    assert (sides.best, sides.rival, sides.gap) == ((0,), (2,), 1.0)
    assert sides.radius == pytest.approx(10.0)
    assert not sides.stop
    assert ref.sa_foa_sides(theta, W, 1, 9.1, 2 * math.sqrt(5), [(2,)]).stop
    assert not ref.sa_foa_sides(theta, W, 1, 9.1, 2 * math.sqrt(5), [(2,)], threshold=0.5).stop
    # no draw leads away from the best: the best-but-one, |x| = sqrt 2, is the rival
    alone = ref.sa_foa_sides(theta, W, 1, 0.0, 1.0, [(0,), (0,)])
    assert (alone.rival, alone.gap) == ((1,), 0.5)
    assert alone.radius == pytest.approx(math.sqrt(2))


@relaxed
@given(seeds, sizes(), st.floats(0.01, 10))
def test_the_first_order_approximation_is_from_above_and_touches(
    seed: int, size: tuple[int, int], C: float
) -> None:
    n, k = size
    theta, W = estimate(seed, n, k)
    best, drawn = ref.best_two(theta, k)
    B = ref.first_order_matrix(theta, W, best, drawn, C)
    chi_best = ref.indicator(n, best)
    at_drawn = ref.norm(W, ref.indicator(n, drawn) - chi_best)
    constant = C / (2 * at_drawn) * ref.norm(W, chi_best) ** 2 + C * at_drawn / 2
    for M in combinations(range(n), k):
        chi = ref.indicator(n, M)
        true = ref.value(theta, M) + C * ref.norm(W, chi - chi_best)
        assert chi @ B @ chi + constant >= true - 1e-9
        if drawn == M:
            assert chi @ B @ chi + constant == pytest.approx(true, abs=1e-9)


RULES = {
    "saqm-theorem": partial(ref.saqm_sides, alpha="theorem"),
    "saqm-spectral": partial(ref.saqm_sides, alpha="spectral"),
    "saqm-certified": partial(ref.saqm_sides, alpha="certified"),
    "saqm-0.9": partial(ref.saqm_sides, alpha=0.9),
    "icb": ref.icb_sides,
    "exhaustive": ref.exhaustive_sides,
    "sa-foa": ref.sa_foa_sides,
}


@pytest.mark.parametrize("name", RULES)
@relaxed
@given(seeds, sizes(least_k=2))
def test_relabelling_the_arms_relabels_the_answer(
    name: str, seed: int, size: tuple[int, int]
) -> None:
    n, k = size
    rng = np.random.default_rng(seed)
    theta, W = rng.normal(size=n), positive_definite(rng, n)  # a design's W can have exact ties
    new = rng.permutation(n)  # arm i is called new[i]
    theta_new, W_new = np.empty(n), np.empty((n, n))
    theta_new[new] = theta
    W_new[np.ix_(new, new)] = W
    draws = random_pulls(rng, n, k, n)
    here = {"draws": draws} if name == "sa-foa" else {}
    there = {"draws": [relabel(M, new) for M in draws]} if name == "sa-foa" else {}
    before = RULES[name](theta, W, k, 0.3, 1.0, **here)
    after = RULES[name](theta_new, W_new, k, 0.3, 1.0, **there)
    assert after.best == relabel(before.best, new)
    assert after.gap == pytest.approx(before.gap, abs=1e-8)
    assert after.radius == pytest.approx(before.radius, rel=1e-8)
    if before.rival is not None:
        assert after.rival == relabel(before.rival, new)


@pytest.mark.parametrize("name", RULES)
@relaxed
@given(seeds, sizes(least_k=2), st.floats(-5, 5), st.floats(0.1, 10))
def test_shifting_means_and_scaling_rewards_change_nothing(
    name: str, seed: int, size: tuple[int, int], shift: float, factor: float
) -> None:
    n, k = size
    rng = np.random.default_rng(seed)
    theta, W = rng.normal(size=n), positive_definite(rng, n)
    here = {"draws": random_pulls(rng, n, k, n)} if name == "sa-foa" else {}
    before = RULES[name](theta, W, k, 0.3, 1.0, **here)
    after = RULES[name](factor * (theta + shift), W, k, factor * 0.3, factor, **here)
    assert (after.best, after.rival) == (before.best, before.rival)
    assert after.gap == pytest.approx(factor * before.gap, rel=1e-6, abs=1e-9)
    assert after.radius == pytest.approx(factor * before.radius, rel=1e-9)


# ---- whole runs ----------------------------------------------------------------------------------

MEANS_OF_4 = [1.0, 0.0, 0.9, 0.2]
run_of_4 = partial(ref.run, supports=PAIRS_OF_4, proportions=[1.0] * 6, sigma=0.1, n=4, k=2)


def exact_total(position: int) -> float:
    return sum(MEANS_OF_4[e] for e in PAIRS_OF_4[position % 6])


def test_run_stops_at_the_first_look_that_allows_it() -> None:
    run = partial(run_of_4, totals=exact_total, sigma=1.0, epsilon=0.1, delta=0.05)
    # By hand: after t = 6 m pulls A = m (2 I + J), so |x|^2 = 2 d / (2 m) for d swaps, the rival
    # is one swap away: 0.7 + 0.1 > C / sqrt(m).
    m = next(
        m for m in count(1) if ref.ellipsoid_constant(6 * m, 1.0, 4, 2, 0.05) < 0.8 * math.sqrt(m)
    )
    cycles = run(ref.exhaustive_sides, looks=count(6, 6))
    assert (cycles.best, cycles.sides.rival) == ((0, 2), (0, 3))
    assert (cycles.look, cycles.pulls, cycles.sides.stop) == (m, 6 * m, True)
    assert cycles.sides.gap == pytest.approx(0.7)
    every = run(ref.exhaustive_sides, looks=count(1))
    assert 100 < every.look == every.pulls <= cycles.pulls
    late = run(ref.exhaustive_sides, looks=[2, every.pulls - 1, every.pulls + 4])
    assert (late.look, late.pulls, late.sides.stop) == (3, every.pulls + 4, True)
    short = run(ref.exhaustive_sides, looks=[every.pulls - 1])
    assert (short.look, short.pulls, short.sides.stop) == (1, every.pulls - 1, False)


def test_run_hands_the_rule_what_the_paper_says() -> None:
    seen = []

    def rule(
        theta: np.ndarray, W: np.ndarray, k: int, epsilon: float, C: float, draws: str
    ) -> ref.Sides:
        seen.append((theta, W, k, epsilon, C, draws))
        return ref.Sides((0, 1), None, 0.0, 0.0, False)

    asked: list[int] = []

    def total(position: int) -> float:
        asked.append(position)
        return exact_total(position)

    run_of_4(
        rule, totals=total, looks=[3, 6, 12], epsilon=0.3, delta=0.1,
        constants="paper", region="independent", draws=lambda look: f"look {look}",
    )  # fmt: skip
    assert asked == list(range(12))
    assert [s[2:] for s in seen] == [  # the look at 3 pulls comes before A_t is invertible
        (2, 0.3, ref.independent_constant(6, 0.1, 4, 0.1, "paper"), "look 2"),
        (2, 0.3, ref.independent_constant(12, 0.1, 4, 0.1, "paper"), "look 3"),
    ]
    for (theta, W, *_), m in zip(seen, (1, 2), strict=True):
        assert theta == pytest.approx(MEANS_OF_4)
        assert W @ (m * (2 * np.eye(4) + np.ones((4, 4)))) == pytest.approx(np.eye(4))


def test_run_says_what_is_wrong() -> None:
    run = partial(run_of_4, ref.icb_sides, totals=exact_total, epsilon=0.1, delta=0.05)
    with pytest.raises(ValueError, match="looks must increase"):
        run(looks=[6, 6], epsilon=-9.0)
    with pytest.raises(ValueError, match="A_t was invertible at no look"):
        run(looks=[1, 2])
    with pytest.raises(ValueError, match=r"arms \[0, 1, 2, 3\] cannot be told apart"):
        run(looks=[9], proportions=[1.0, 0, 0, 0, 0, 1.0])
    with pytest.raises(ValueError, match="not 'sphere'"):
        run(looks=[9], region="sphere")
    with pytest.raises(ValueError, match="6 super-arms came with 1"):
        run(looks=[9], proportions=[1.0])


def test_one_answer_needs_no_pull() -> None:
    def never(position: int) -> float:
        raise AssertionError(position)

    run = ref.run(
        ref.icb_sides, [(0, 1)], [1.0], [1], never, sigma=1, n=2, k=2, epsilon=0.1, delta=0.1
    )
    assert (run.best, run.pulls, run.sides.stop) == ((0, 1), 0, True)


@pytest.mark.parametrize("name", ["saqm-certified", "icb", "exhaustive"])
def test_runs_are_rarely_wrong(name: str) -> None:
    """40 runs at delta = 0.05: 8 or more errors would have a probability of at most 0.00072."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        means = rng.uniform(size=4).tolist()
        order = ref.tracking_order([1.0] * 6, 5000)

        def total(
            s: int, rng: np.random.Generator = rng, means: list[float] = means,
            order: list[int] = order,
        ) -> float:  # fmt: skip
            return ref.draw_total(rng, means, PAIRS_OF_4[order[s]], ("labels",))

        run = run_of_4(
            RULES[name], looks=[200, 1000, 5000], totals=total,
            sigma=math.sqrt(2) / 2, epsilon=0.5, delta=0.05,
        )  # fmt: skip
        assert run.sides.stop
        optimum = sum(sorted(means)[2:])
        wrong += optimum - sum(means[e] for e in run.best) > 0.5
    assert wrong < 8


# ---- drawing totals ------------------------------------------------------------------------------

LAWS = [
    (("gaussian", 0.5), 0.25, None),
    (("labels",), 0.2 * 0.8 + 0.7 * 0.3 + 0.5 * 0.5, {0, 1, 2, 3}),
    # total = [u < 0.2] + [u < 0.5] + [u < 0.7]: 3, 2, 1, 0 with probability 0.2, 0.3, 0.2, 0.3
    (("shared-labels",), 9 * 0.2 + 4 * 0.3 + 0.2 - 1.4**2, {0, 1, 2, 3}),
    (("bounded", 2.0, True), 3 * 4 - 0.2**2 - 0.7**2 - 0.5**2, {-6, -2, 2, 6}),
    # up with probability 0.55, 0.675, 0.625: 6, 2, -2, -6 with probability .55, .075, .05, .325
    (("bounded", 2.0, False), 36 * 0.875 + 4 * 0.125 - 1.4**2, {-6, -2, 2, 6}),
    (("total", -1.0, 3.0), (1.4 + 1) * (3 - 1.4), {-1, 3}),
]


@pytest.mark.parametrize(("noise", "variance", "atoms"), LAWS)
def test_totals_have_the_stated_mean_and_variance(
    noise: tuple[object, ...], variance: float, atoms: set[int] | None
) -> None:
    rng = np.random.default_rng(7)
    means = [9.9, 0.2, 0.7, 0.5]
    draws = np.array([ref.draw_total(rng, means, (1, 2, 3), noise) for _ in range(8000)])
    assert abs(draws.mean() - 1.4) < 6 * math.sqrt(variance / 8000)  # six standard errors, each
    fourth = float(np.mean((draws - 1.4) ** 4))
    assert abs(np.mean((draws - 1.4) ** 2) - variance) < 6 * math.sqrt(fourth / 8000)
    if atoms is not None:
        assert set(draws.tolist()) == atoms


def test_impossible_laws_are_refused() -> None:
    rng = np.random.default_rng(0)
    for noise in (("labels",), ("shared-labels",), ("bounded", 1.0, True), ("total", 0.0, 1.0)):
        with pytest.raises(ValueError, match="asks for a probability"):
            ref.draw_total(rng, [1.5], (0,), noise)
    with pytest.raises(ValueError, match="unknown noise"):
        ref.draw_total(rng, [0.5], (0,), ("pink",))
    assert ref.draw_total(rng, [1.0, 0.0], (0, 1), ("labels",)) == 1.0
