"""Quadratic maximisation: every oracle, the guarantees, and bounds that are never too low."""

import itertools
import math
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import information_inverse, random_case, value, violations

import superarm as sa
from superarm import reference
from superarm.quadratic import (
    BOUNDS,
    branch,
    brute_force,
    exact_search,
    feige_peleg_kortsarz,
    greedy_peeling,
    multipliers,
    multistart,
    peeling_guarantee,
    quadratic_maximum,
    sdp_bound,
    shift_bound,
    spectral_bound,
    spectral_ratio,
    swap_search,
    theorem_ratio,
)
from superarm.quadratic import fpk as procedures
from superarm.quadratic import oracles as oracles_module
from superarm.quadratic.bounds import sphere_bound
from superarm.quadratic.branch import Search
from superarm.quadratic.matrix import read_matrix
from superarm.quadratic.multipliers import relaxations


def psd(n, seed, rank=None):
    """Return a random positive (semi-)definite matrix."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rank or 2 * n, n)) * rng.uniform(0.1, 3, n)
    return X.T @ X


sizes = st.integers(2, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))
inner = st.integers(3, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(2, n - 1)))
seeds = st.integers(0, 10**6)


# ---- values, maxima, bounds ----------------------------------------------------------------------


def test_found_at_most_maximum_at_most_bound(monkeypatch):
    """On 250 matrices, with branch and bound in place of enumeration; 10,000 in the evidence."""
    monkeypatch.setattr(oracles_module, "_FEW", 0)
    rng = np.random.default_rng(1)
    for _ in range(250):
        W, k = random_case(rng)
        assert violations(W, k) == [], (W.tolist(), k)


def test_a_bound_without_its_margin_term_is_caught(monkeypatch):
    """The same claims fail when a bound forgets the linear part of what it bounds."""
    monkeypatch.setitem(BOUNDS, "spectral", lambda W, k: spectral_bound(W, k) * 0.9)
    rng = np.random.default_rng(1)
    found = [violations(*random_case(rng)) for _ in range(40)]
    assert any("spectral: below the maximum" in wrong for wrong in found)


@settings(max_examples=100, deadline=None)
@given(size=sizes, seed=seeds, thin=st.booleans())
def test_brute_force_equals_the_reference(size, seed, thin):
    n, k = size
    W = psd(n, seed, rank=max(1, n // 2) if thin else None)
    _, optimum = reference.brute_force_quadratic(W, k)
    assert value(W, brute_force(W, k)) == pytest.approx(optimum)


@settings(max_examples=150, deadline=None)
@given(size=sizes, seed=seeds)
def test_peeling_equals_the_reference_and_keeps_its_guarantee(size, seed):
    n, k = size
    w = np.random.default_rng(seed).random((n, n)) ** 3
    w = w + w.T
    members = greedy_peeling(w, k)
    assert tuple(members) == reference.greedy_peeling(w, k)
    off = w - np.diag(w.diagonal())
    _, optimum = reference.brute_force_quadratic(off, k)
    assert value(off, members) >= peeling_guarantee(n, k) * optimum * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(size=sizes, seed=seeds)
def test_bound_and_ratios_equal_the_reference(size, seed):
    n, k = size
    W = psd(n, seed)
    assert spectral_bound(W, k) == pytest.approx(reference.spectral_bound(W, k), rel=1e-8)
    assert spectral_ratio(W) == pytest.approx(reference.spectral_ratio(W))
    assert theorem_ratio(n, k, spectral_ratio(W)) == pytest.approx(reference.theorem_ratio(W, k))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("k", [1, 3, 9, 10])
def test_bounds_are_exact_where_all_directions_are_alike(bound, k):
    W = 2.0 * np.eye(10) + 0.5
    assert BOUNDS[bound](W, k) == pytest.approx(2.0 * k + 0.5 * k * k)


def test_bounds_get_sharper_with_effort():
    for seed in range(5):
        W = information_inverse(36, 10, 4, seed)
        maximum = quadratic_maximum(W, 10, "exact").value
        wide, middle, sharp = (bound(W, 10) / maximum for bound in BOUNDS.values())
        assert 1 <= sharp <= middle <= wide
        assert middle <= 1.12
        assert sharp <= 1.02


@settings(max_examples=40, deadline=None)
@given(size=inner, seed=seeds, rounds=st.integers(1, 12))
def test_any_multipliers_bound_every_set(size, seed, rounds):
    """However far from their best: set by set, and on the sphere."""
    n, k = size
    rng = np.random.default_rng(seed)
    W = psd(n, seed) if seed % 2 else np.asarray(rng.standard_normal((n, n)))
    W = (W + W.T) / 2
    relaxed = next(relaxations(W, k, rounds))
    bound = sphere_bound(relaxed, k)
    for members in itertools.combinations(range(n), k):
        x = np.zeros(n)
        x[list(members)] = 1.0
        above = x @ relaxed.quadratic @ x + relaxed.linear @ x + relaxed.constant
        assert x @ W @ x <= above + 1e-9 * np.abs(W).max()
        assert x @ W @ x <= bound


@pytest.mark.parametrize("size", [1e2, 1e6, 1e12])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_is_the_same_for_all_sets_drowns_nothing(size, share):
    """A great constant, and a great linear part, beside what has to be told apart."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        own = share * rng.random(10)
        W = psd(10, 3, rank=12) + size * (1 + own[:, None] + own[None, :])
        values = [value(W, list(members)) for members in itertools.combinations(range(10), 4)]
        maximum, spread = max(values), np.std(values)
        above = [bound(W, 4) - maximum for bound in (spectral_bound, shift_bound, sdp_bound)]
        assert min(above) >= 0
        assert above[1] <= 0.5 * spread + 1e-10 * maximum
        assert sa.maximise(W, 4, "exact").value == pytest.approx(maximum, rel=1e-9)


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_where_only_rounding_tells_sets_apart(bound):
    x = np.random.default_rng(1).standard_normal((200, 9)) * 1e-16 + 1.0
    for row in x:
        W = np.outer(row, row)
        for k in (2, 5, 8):
            assert k * k * (1 - 1e-15) <= BOUNDS[bound](W, k) <= k * k * (1 + 1e-10)
            assert sa.maximise(W, k, "exact").value == pytest.approx(k * k)


# ---- oracles -------------------------------------------------------------------------------------


def test_ties_go_to_the_lower_index_and_singular_matrices_are_no_trouble():
    assert list(brute_force(np.eye(5), 2)) == [0, 1]
    assert list(greedy_peeling(np.ones((5, 5)), 2)) == [3, 4]
    assert spectral_bound(np.zeros((4, 4)), 2) == pytest.approx(0, abs=1e-12)
    assert list(brute_force(-np.diag([3.0, 1.0, 2.0]), 2)) == [1, 2]


def test_an_unknown_oracle_is_refused():
    with pytest.raises(sa.SettingError, match="oracle"):
        quadratic_maximum(np.eye(4), 2, "magic")


@settings(max_examples=80, deadline=None)
@given(size=sizes, seed=seeds)
def test_no_single_swap_improves_what_swap_search_finds(size, seed):
    n, k = size
    W = psd(n, seed)
    start = np.random.default_rng(seed).permutation(n)[:k]
    members = swap_search(W, start)
    held = value(W, members)
    assert held >= value(W, start) - 1e-9 * abs(held)
    for out, into in itertools.product(members, sorted(set(range(n)) - set(members.tolist()))):
        other = [i for i in members if i != out] + [into]
        assert value(W, other) <= held + 1e-9 * abs(held)


def test_multistart_finds_the_maximum_and_always_the_same():
    for n, k in ((24, 12), (50, 10), (50, 25)):
        for multiple in (5, 2):
            W = information_inverse(n, k, multiple, 3)
            found = quadratic_maximum(W, k, "multistart")
            assert found.value == pytest.approx(quadratic_maximum(W, k, "exact").value)
            again = multistart(W, quadratic_maximum(W, k).members)
            assert np.array_equal(found.members, again)


def planted(n, k, seed):
    """Return a graph of light edges in which k vertices have heavy ones, and those vertices."""
    rng = np.random.default_rng(seed)
    members = np.sort(rng.choice(n, k, replace=False))
    edges = 0.1 * rng.random((n, n))
    edges[np.ix_(members, members)] += 1.0
    edges = np.triu(edges, 1)
    return edges + edges.T, members


@pytest.mark.parametrize("procedure", ["heaviest_edges", "greedy", "walks"])
def test_each_procedure_of_feige_peleg_kortsarz_finds_a_planted_subgraph(procedure):
    for seed in range(10):
        edges, members = planted(30, 8, seed)
        assert np.array_equal(getattr(procedures, procedure)(edges, 8), members)


@settings(max_examples=60, deadline=None)
@given(size=inner, seed=seeds)
def test_feige_peleg_kortsarz_takes_the_best_of_its_procedures(size, seed):
    n, k = size
    edges = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    edges += edges.T
    found = feige_peleg_kortsarz(edges, k)
    assert len(set(found.tolist())) == k
    each = [
        value(edges, procedure(edges, k))
        for procedure in (procedures.heaviest_edges, procedures.greedy, procedures.walks)
    ]
    assert value(edges, found) == pytest.approx(max(each))


def test_indefinite_matrices_are_maximised_and_bounded_too():
    rng = np.random.default_rng(5)
    for _ in range(20):
        W = rng.standard_normal((10, 10))
        W = (W + W.T) / 2
        for k in (2, 5, 9):
            maximum = value(W, brute_force(W, k))
            found = sa.maximise(W, k, "exact")
            assert found.value == pytest.approx(maximum)
            assert all(bound(W, k) >= maximum for bound in BOUNDS.values())
            assert sa.maximise(W, k, "fpk").value <= maximum + 1e-9


# ---- the exact search ----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(size=inner, seed=seeds, rounds=st.integers(1, 40))
def test_the_search_is_exact_from_any_multipliers_and_any_start(size, seed, rounds):
    n, k = size
    W = psd(n, seed, rank=max(2, n // 2) if seed % 3 == 0 else None)
    relaxed = next(relaxations(W, k, rounds))
    search = Search(W, k, relaxed, np.arange(k), value(W, np.arange(k)), 0.0)
    maximum = value(W, brute_force(W, k))
    while not search.complete:
        found = search.run(3)
        assert found.value <= maximum + 1e-9 * maximum
        assert found.bound >= maximum * (1 - 1e-12)
    assert search.run(1).value == pytest.approx(maximum, rel=1e-8)
    assert search.bound == pytest.approx(maximum, rel=1e-6)


def test_outcomes_get_better_and_the_last_is_complete():
    W = information_inverse(80, 40, 5, 1)
    values, bounds, complete = zip(
        *((o.value, o.bound, o.complete) for o in exact_search(W, 40)), strict=True
    )
    assert list(values) == sorted(values)
    assert list(bounds) == sorted(bounds, reverse=True)
    assert complete[-1]
    assert not any(complete[:-1])
    assert values[-1] <= bounds[-1] <= values[-1] * (1 + 1e-6)


def test_a_time_limit_gives_the_best_so_far_and_a_bound():
    W = information_inverse(140, 70, 5, 1)
    found = sa.maximise(W, 70, "exact", seconds=0.3)
    assert found.status == "time limit"
    assert found.seconds < 5
    better = sa.maximise(W, 70, "multistart", "shift")
    assert found.value == pytest.approx(better.value, rel=0.02)
    assert found.upper_bound >= better.value
    assert 0.8 < found.ratio < 1


class Clock:
    """A second goes by whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_the_clock_is_looked_at_after_each_round_of_multipliers(monkeypatch):
    """A round takes a second or more at n = 1000."""
    clock, rounds = Clock(), []
    step = multipliers._cone
    monkeypatch.setattr(multipliers, "perf_counter", clock)
    monkeypatch.setattr(multipliers, "_cone", lambda *a: (rounds.append(0), step(*a))[1])
    W = psd(20, 1)
    first, second = exact_search(W, 9, until=7.5)
    assert len(rounds) == 7
    assert not second.complete
    assert first.value <= value(W, brute_force(W, 9)) <= second.bound < first.bound


def test_the_clock_is_looked_at_more_often_the_larger_the_matrix(monkeypatch):
    """4,000 nodes take minutes at n = 1000."""
    W = information_inverse(50, 25, 5, 1)
    relaxed = next(relaxations(W, 25, 30))
    search = Search(W, 25, relaxed, np.arange(25), 0.0, 0.0)
    monkeypatch.setattr(branch, "perf_counter", Clock())
    monkeypatch.setattr(branch, "_SLICE", (4_000, 50_000))
    assert search.run(10**6, until=4.5).nodes == 4 * 20
    assert not search.complete


def test_multipliers_end_with_what_they_have_by_then():
    W = psd(12, 1)
    first = next(relaxations(W, 5, 10**6, perf_counter() + 0.05))
    assert value(W, brute_force(W, 5)) <= sphere_bound(first, 5)
    assert list(relaxations(W, 5, 10**6, 0.0)) == []


def test_brute_force_that_would_never_end_is_refused():
    with pytest.raises(sa.ProblemError, match=r"go through about 10\^29 sets; use exact"):
        sa.maximise(np.eye(100), 50, "brute-force")


def damaged(header):
    """Return a .npy file of 4 x 4 numbers with another header."""
    return b"\x93NUMPY\x01\x00" + b"v\x00" + header.ljust(117) + b"\n" + bytes(128)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04 and no more", "not a matrix (File is not a zip file)"),
        (b"", "not a matrix"),
        (damaged(b"{'descr': '<f8', 'fortran_order': False, 'shape': ((4, 4), "), "not a matrix"),
        (damaged(b'"""'), "not a matrix"),
        (damaged(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4" + 30 * b"0" + b", 4), }"),
         "not a matrix"),
        (damaged(b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 100000000), }"),
         "larger than the memory"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, content, says):
    path = tmp_path / "W.npy"
    path.write_bytes(content)
    with pytest.raises(sa.DataError) as caught:
        read_matrix(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("\n\n1,2\n2,1,3\n", "line 4: 3 cells, where line 3 has 2"),
        ("a,b\n1,2\n2,1\n", "line 1: 'a' is not a number (the file must have no header)"),
        ("1_0,2\n2,1\n", "line 1: '1_0' is not a number"),
    ],
)
def test_a_table_that_is_no_matrix_is_refused(tmp_path, content, says):
    path = tmp_path / "W.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(sa.DataError) as caught:
        read_matrix(path)
    assert says in str(caught.value)


def test_an_interrupted_search_gives_the_best_so_far_and_a_bound(monkeypatch):
    W = information_inverse(24, 12, 5, 1)
    steps = iter(range(100))

    def pressed(search, *limits):
        if next(steps) == 1:
            raise KeyboardInterrupt
        return real(search, 1)

    real = Search.run
    monkeypatch.setattr(Search, "run", pressed)
    found = sa.maximise(W, 12, "exact")
    monkeypatch.undo()
    assert found.status == "interrupted"
    maximum = sa.maximise(W, 12, "exact").value
    assert found.value <= maximum <= found.upper_bound


def test_an_exact_search_that_would_fill_the_memory_is_refused():
    with pytest.raises(sa.ProblemError, match="would take 256 GB; use multistart"):
        sa.maximise(np.eye(4000), 2000, "exact")


# ---- maximise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", oracles_module.NAMES)
@pytest.mark.parametrize("bound", [None, *BOUNDS])
@pytest.mark.parametrize("k", [1, 2, 7, 8])
def test_maximise_says_what_it_did(oracle, bound, k):
    W = psd(8, 4)
    found = sa.maximise(W, k, oracle, bound)
    assert found.value == pytest.approx(value(W, list(found.members)))
    assert found.upper_bound >= value(W, brute_force(W, k)) * (1 - 1e-12)
    assert found.ratio == pytest.approx(found.value / found.upper_bound)
    assert 0 < found.ratio <= 1
    exact = oracle in ("exact", "brute-force") or k in (1, 8)
    assert found.status == ("optimal" if exact else "found")
    assert found.bound == (oracle if exact else bound or "spectral")
    assert list(found.members) == sorted(found.members)


def test_shares_of_a_maximum_that_is_not_positive_mean_nothing():
    found = sa.maximise(-np.eye(6) - 1, 3)
    assert found.ratio is None
    assert found.value == pytest.approx(-12)
    assert sa.maximise(np.zeros((4, 4)), 2, "exact").ratio == 1.0


def test_scale_does_not_matter():
    W = information_inverse(30, 10, 4, 2)
    for factor in (1e-60, 1e60):
        for bound in (spectral_bound, shift_bound, sdp_bound):
            assert bound(factor * W, 10) == pytest.approx(factor * bound(W, 10), rel=1e-6)
        exact = sa.maximise(factor * W, 10, "exact")
        assert exact.members == sa.maximise(W, 10, "exact").members


@pytest.mark.parametrize(
    ("W", "k", "says"),
    [
        (np.zeros((2, 3)), 1, "square, not of shape (2, 3)"),
        (np.zeros(4), 1, "square, not of shape (4,)"),
        (np.zeros((0, 0)), 1, "square"),
        ([[1, 2], [3, 4]], 1, "symmetric; row 1, column 2 is 2, mirrored 3"),
        ([[1, math.nan], [math.nan, 4]], 1, "row 1, column 2 is"),
        ([[1, math.inf], [math.inf, 4]], 1, "finite"),
        ([[1e101, 0], [0, 1]], 1, "at most 1e+100"),
        ([["a", 0], [0, 1]], 1, "must hold real numbers"),
        ([[1, 2], [3]], 1, "rows of equal length"),
        (np.eye(2) * 1j, 1, "must hold real numbers"),
        ([["1", "0"], ["0", "1"]], 1, "must hold real numbers"),
        (np.zeros((2, 2), dtype="datetime64[D]"), 1, "must hold real numbers"),
        (np.zeros((2, 2), dtype=[("a", float)]), 1, "must hold real numbers"),
        (np.ma.masked_array(np.eye(2), mask=[[0, 1], [1, 0]]), 1, "must hold real numbers"),
        ([[10**400, 0], [0, 1]], 1, "must hold real numbers"),
        ([[1, math.nan], [math.nan, 4]], 1, "column 2 is nan"),
        (np.eye(3), 0, "k must be between 1 and the matrix's size 3, not 0"),
        (np.eye(3), 4, "not 4"),
        (np.eye(3), 1.5, "k must be a whole number"),
    ],
)
def test_matrices_and_sizes_that_cannot_be_are_refused(W, k, says):
    with pytest.raises(sa.ProblemError) as caught:
        sa.maximise(W, k)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"oracle": "magic"}, "oracle must be one of peeling"),
        ({"bound": "tight"}, "bound must be one of spectral"),
        ({"seconds": 0}, "seconds must be > 0, not 0"),
        ({"seconds": math.nan}, "not nan"),
        ({"seconds": "long"}, "'long'"),
        ({"bound": []}, "bound must be one of spectral"),
        ({"oracle": []}, "oracle must be one of peeling"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(sa.SettingError) as caught:
        sa.maximise(np.eye(3), 2, **settings)
    assert says in str(caught.value)


def test_ratios_need_a_positive_semi_definite_matrix():
    with pytest.raises(sa.ProblemError, match="the least eigenvalue of this one is -1"):
        spectral_ratio(np.diag([1.0, -1.0]))
    assert spectral_ratio(np.zeros((2, 2))) == 1.0


def test_asymmetry_from_rounding_is_no_error():
    W = psd(6, 1)
    W[0, 1] += 1e-12 * W[0, 1]
    assert sa.maximise(W, 3).status == "found"
