"""Least squares, information, and rank-one updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import gaussian_totals, random_rows

import superarm as sa
from superarm import reference
from superarm.estimate import Dense, advance, information, least_squares
from superarm.tally import Tally


def spanning_plan(n, k, size, seed):
    problem = sa.Problem(n, k, sa.gaussian(1.0))
    rng = np.random.default_rng(0)
    return sa.Uniform(random_rows(n, k, size, seed)).plan(problem, rng)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(3, 12), seed=st.integers(0, 10**6), extra=st.integers(0, 60))
def test_least_squares_equals_the_reference(n, seed, extra):
    k = 1 + seed % (n - 1)
    size = min(2 * n, sa.Problem(n, k, sa.gaussian(1)).decision.size)
    plan = spanning_plan(n, k, size, seed)
    t = plan.spanning + extra
    totals = gaussian_totals(plan, np.linspace(0, 1, n), t, seed)
    tally = Tally(plan.size)
    tally.add(plan.order(0, t), totals)
    info = information(plan, tally.counts)
    pulled = [tuple(map(int, row)) for row in plan.members(plan.order(0, t))]
    theta, W = reference.least_squares(n, pulled, [float(x) for x in totals])
    if info.reciprocal_condition > 1e-9:
        assert least_squares(plan, tally, info).means == pytest.approx(theta, rel=1e-5, abs=1e-5)
        assert info.inverse() == pytest.approx(W, rel=1e-5, abs=1e-5)
        assert info.diagonal() == pytest.approx(np.diag(W), rel=1e-5)
        x = np.arange(n, dtype=float)
        assert info.norm(x) ** 2 == pytest.approx(x @ W @ x, rel=1e-5)


@pytest.mark.parametrize("n", [20, 300])  # below and above the size from which LAPACK inverts
def test_the_inverse_is_the_inverse(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((2 * n, n))
    A = X.T @ X
    info = Dense(A)
    assert info.inverse() @ A == pytest.approx(np.eye(n), abs=1e-9)
    assert info.inverse() == pytest.approx(info.inverse().T, abs=0)
    assert info.scaled(4.0).inverse() == pytest.approx(info.inverse() / 4)
    assert info.scaled(4.0).solve(np.ones(n)) == pytest.approx(info.solve(np.ones(n)) / 4)


def test_singular_information_is_not_usable():
    assert not Dense(np.ones((3, 3))).usable
    assert not Dense(np.diag([1.0, 1.0, 1e-13])).usable
    assert Dense(np.diag([1.0, 2.0, 3.0])).usable


@pytest.mark.parametrize(("n", "k"), [(12, 6), (40, 10)])
def test_rank_one_updates_do_not_drift_over_a_million_pulls(n, k):
    """Without any fresh factorisation: far more than the stretches that are used."""
    plan = spanning_plan(n, k, 2 * n, 7)
    means = np.linspace(-1, 1, n)
    start, pulls = plan.size, 1_000_000
    totals = gaussian_totals(plan, means, start + pulls, 1)
    tally = Tally(plan.size)
    tally.add(plan.order(0, start), totals[:start])
    info = information(plan, tally.counts)
    inverse, theta = info.inverse(), least_squares(plan, tally, info).means
    rows = plan.members(plan.order(start, start + pulls))
    advance(inverse, theta, rows, totals[start:])
    tally.add(plan.order(start, start + pulls), totals[start:])
    exact = information(plan, tally.counts)
    estimates = least_squares(plan, tally, exact).means
    scale = np.abs(exact.inverse()).max()
    assert np.abs(inverse - exact.inverse()).max() < 1e-7 * scale
    spread = np.sqrt(exact.diagonal()).min()  # how far noise moves an estimate
    assert np.abs(theta - estimates).max() < 1e-4 * spread


def test_a_look_after_whole_cycles_shares_one_factorisation():
    problem = sa.Problem(6, 3, sa.gaussian(1.0))
    phase = sa.SAQM().first(problem, 1)
    cycle = phase.plan.cycle
    once, twice = phase.information(cycle), phase.information(2 * cycle)
    assert once._core is twice._core
    direct = information(phase.plan, phase.plan.counts(2 * cycle))
    assert twice.inverse() == pytest.approx(direct.inverse())


@pytest.mark.parametrize("level", [0.0, 1e3, 1e6, 1e9, -1e9])
def test_a_common_level_costs_differences_no_accuracy(level):
    """On a thin support (as many super-arms as arms), whose information is nearly singular."""
    n, k = 40, 13
    problem = sa.Problem(n, k, sa.gaussian(1e-3))
    plan = sa.Uniform(random_rows(n, k, n, 178)).plan(problem, np.random.default_rng(0))
    means = np.linspace(0, 1, n)
    whole = np.full(plan.size, 1.0)
    totals = means[plan.members(slice(None))].sum(axis=1)
    tally, rows = Tally(plan.size), plan.members(slice(None))
    tally.add(np.arange(plan.size), np.array([float(np.sum(means[r]) + k * level) for r in rows]))
    info = information(plan, whole)
    estimate = least_squares(plan, tally, info)
    told = k * level + totals - k * level  # what is left of the totals beside so great a level
    expected = info.solve(np.bincount(rows.ravel(), np.repeat(told, k), minlength=n))
    differences = estimate.centred - estimate.centred[0]
    assert np.abs(differences - (expected - expected[0])).max() <= 2 * estimate.rounding + 1e-6
    assert estimate.means == pytest.approx(level + means, rel=1e-5, abs=1e-4 + 1e-6 * abs(level))
