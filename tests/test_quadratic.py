"""Quadratic maximisation: Algorithm 1, brute force, guarantees, the spectral bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm import reference
from superarm.quadratic import (
    brute_force,
    greedy_peeling,
    peeling_guarantee,
    quadratic_maximum,
    spectral_bound,
    spectral_ratio,
    theorem_ratio,
)


def psd(n, seed, rank=None):
    """Return a random positive (semi-)definite matrix."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rank or 2 * n, n)) * rng.uniform(0.1, 3, n)
    return X.T @ X


def value(W, members):
    return W[np.ix_(members, members)].sum()


sizes = st.integers(2, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@settings(max_examples=150, deadline=None)
@given(size=sizes, seed=st.integers(0, 10**6), thin=st.booleans())
def test_found_at_most_optimum_at_most_bound(size, seed, thin):
    n, k = size
    W = psd(n, seed, rank=max(1, n // 2) if thin else None)
    _, optimum = reference.brute_force_quadratic(W, k)
    found = quadratic_maximum(W, k)
    assert found.value == pytest.approx(value(W, found.members))
    assert len(set(found.members)) == k
    assert found.value <= optimum + 1e-9 * abs(optimum)
    assert optimum <= spectral_bound(W, k)
    assert value(W, brute_force(W, k)) == pytest.approx(optimum)
    assert quadratic_maximum(W, k, "brute-force").value == pytest.approx(optimum)
    ratio = spectral_ratio(W)
    assert found.value >= ratio * optimum * (1 - 1e-9)
    assert found.value >= theorem_ratio(n, k, ratio) * optimum * (1 - 1e-9)
    if k == 1:
        assert found.value == W.diagonal().max()


@settings(max_examples=150, deadline=None)
@given(size=sizes, seed=st.integers(0, 10**6))
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
@given(size=sizes, seed=st.integers(0, 10**6))
def test_bound_and_ratios_equal_the_reference(size, seed):
    n, k = size
    W = psd(n, seed)
    assert spectral_bound(W, k) == pytest.approx(reference.spectral_bound(W, k), rel=1e-8)
    assert spectral_ratio(W) == pytest.approx(reference.spectral_ratio(W))
    assert theorem_ratio(n, k, spectral_ratio(W)) == pytest.approx(reference.theorem_ratio(W, k))


@pytest.mark.parametrize("k", [1, 3, 9, 10])
def test_the_bound_is_exact_where_all_directions_are_alike(k):
    W = 2.0 * np.eye(10) + 0.5
    assert spectral_bound(W, k) == pytest.approx(2.0 * k + 0.5 * k * k)


def test_ties_go_to_the_lower_index_and_singular_matrices_are_no_trouble():
    assert list(brute_force(np.eye(5), 2)) == [0, 1]
    assert list(greedy_peeling(np.ones((5, 5)), 2)) == [3, 4]
    assert spectral_bound(np.zeros((4, 4)), 2) == pytest.approx(0, abs=1e-12)
    assert list(brute_force(-np.diag([3.0, 1.0, 2.0]), 2)) == [1, 2]


def test_an_unknown_oracle_is_refused():
    with pytest.raises(sa.SettingError, match="oracle"):
        quadratic_maximum(np.eye(4), 2, "magic")
