"""Optimal designs: known optima, duality gaps, column generation, and efficient rounding."""

import dataclasses
import itertools
import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from decisions import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from support import random_rows

import superarm as sa
from superarm.decision import (
    Matchings,
    Partition,
    Paths,
    SpanningTrees,
    TopK,
    indicators,
    span_basis,
)
from superarm.design import (
    Allocation,
    GOptimal,
    XYOptimal,
    efficient_rounding,
    g_optimal,
    xy_optimal,
)
from superarm.plan import SupportPlan

g_module = sys.modules["superarm.design.g_optimal"]
xy_module = sys.modules["superarm.design.xy_optimal"]

SHIFTS = {7: (0, 1, 3), 13: (0, 1, 3, 9), 21: (0, 1, 4, 14, 16)}
"""Planar difference sets: every difference but 0 comes about once."""


def shifts(n):
    return [tuple(sorted((i + s) % n for i in SHIFTS[n])) for s in range(n)]


def ideal_swap(n, k):
    """|e_i - e_j|^2 when all pairs are alike: 2 over the information k(n-k)/(n(n-1)) a pull."""
    return 2 * n * (n - 1) / (k * (n - k))


def inverse(rows, proportions, n):
    """Lambda_p^-1 on the span, worked out apart from the library."""
    x = indicators(np.asarray(rows), n)
    return np.linalg.pinv(x.T @ (x * np.asarray(proportions)[:, None]), rcond=1e-9, hermitian=True)


def greatest(vectors, W):
    """Return the greatest y'Wy."""
    return float(np.einsum("yi,ij,yj->y", vectors, W, vectors).max())


def pairs(x):
    """Return the differences of any two rows."""
    first, second = np.triu_indices(len(x), 1)
    return x[first] - x[second]


def violations(found, rows, vectors, n, tolerance):
    """Return every claim of an allocation that fails: the value, the bound, the gap, the rows."""
    wrong = []
    top = greatest(vectors, inverse(found.rows, found.proportions, n))
    if not math.isclose(top, found.value, rel_tol=1e-6):
        wrong.append(f"the value is {top}, not {found.value}")
    if found.value < found.bound * (1 - 1e-9) or found.upper < found.value * (1 - 1e-9):
        wrong.append("bound, value and upper are not in order")
    if not found.converged or found.gap > tolerance * (1 + 1e-6) + 1e-12:
        wrong.append(f"the gap is {found.gap}")
    if not math.isclose(found.proportions.sum(), 1) or found.proportions.min() <= 0:
        wrong.append("the proportions are none")
    if found.proportions.min() < 1e-9 * found.proportions.max():
        wrong.append("the proportions are too far apart for a plan")
    if not {tuple(row) for row in found.rows} <= {tuple(row) for row in np.asarray(rows)}:
        wrong.append("a super-arm that was not given")
    return wrong


def crude(x, vectors):
    """Minimise the greatest y' Lambda_p^-1 y by a general solver: an upper bound on the optimum."""
    m = len(x)

    def values(p):
        p = np.abs(p[:m]) + 1e-9
        W = np.linalg.pinv(x.T @ (x * (p / p.sum())[:, None]), rcond=1e-10, hermitian=True)
        return np.einsum("yi,ij,yj->y", vectors, W, vectors)

    start = np.append(np.full(m, 1 / m), values(np.full(m, 1 / m)).max())
    found = minimize(
        lambda p: p[m],
        start,
        method="SLSQP",
        bounds=[(1e-6, 1)] * m + [(0, None)],
        constraints=[
            {"type": "eq", "fun": lambda p: p[:m].sum() - 1},
            {"type": "ineq", "fun": lambda p: p[m] - values(p)},
        ],
        options={"maxiter": 200},
    )
    return min(float(values(found.x).max()), float(start[m]))


def drawn(seed, most=13):
    """Return n, k and random super-arms that span."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    k = int(rng.integers(1, n))
    return (
        n,
        k,
        np.array(random_rows(n, k, min(math.comb(n, k), int(rng.integers(n, 5 * n))), seed)),
    )


def question(n, k, **changed):
    return sa.Problem(n, k, sa.gaussian(1.0), **{"epsilon": 1.0} | changed)


def grid(width):
    """Edges of a grid of nodes, right and down."""
    nodes = itertools.product(range(width), repeat=2)
    steps = [((i, j), end) for i, j in nodes for end in ((i + 1, j), (i, j + 1))]
    return [edge for edge in steps if max(edge[1]) < width]


CLASSES = {
    "spanning trees": SpanningTrees(list(itertools.combinations(range(5), 2))),
    "paths": Paths(grid(4), (0, 0), (3, 3)),
    "paths with cycles": Paths(grid(3), (0, 0), (2, 2), directed=False),
    "matchings": Matchings(list(itertools.product(range(4), range(4)))),
    "partition": Partition([i % 3 for i in range(12)], {0: 1, 1: 2, 2: 3}),
}
every_class = pytest.mark.parametrize("decision", CLASSES.values(), ids=CLASSES)
problems = pytest.mark.parametrize(
    "decision", [TopK(8, 3), TopK(5, 1), TopK(6, 5), *CLASSES.values()], ids=str
)


# ---- G-optimal: the theorem of Kiefer and Wolfowitz ----------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (7, 3), (10, 5), (12, 11)])
def test_the_optimum_over_all_sets_is_n(n, k):
    rows = TopK(n, k).enumerate()
    found = g_optimal(rows)
    assert found.bound == n
    assert violations(found, rows, indicators(rows, n), n, 1e-3) == []


@every_class
def test_the_optimum_over_a_class_is_the_dimension_of_its_span(decision):
    rows = decision.enumerate()
    basis = span_basis(decision, np.random.default_rng(0))
    found = g_optimal(rows, n=decision.n)
    assert found.bound == (decision.n if basis is None else basis.shape[1])
    assert violations(found, rows, indicators(rows, decision.n), decision.n, 1e-3) == []


@pytest.mark.parametrize("seed", range(40))
def test_the_gap_closes_on_random_supports(seed):
    n, _, rows = drawn(seed)
    tolerance = 10.0 ** -(3 + seed % 4)
    found = g_optimal(rows, n=n, tolerance=tolerance)
    assert violations(found, rows, indicators(rows, n), n, tolerance) == []


@pytest.mark.parametrize(("n", "k", "size"), [(24, 12, 48), (36, 10, 288), (111, 10, 888)])
def test_the_gap_closes_on_large_supports(n, k, size):
    rows = np.array(random_rows(n, k, size, 1))
    found = g_optimal(rows)
    assert violations(found, rows, indicators(rows, n), n, 1e-3) == []
    assert len(found.rows) <= size


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_closes_on_small_classes_of_every_kind(kind):
    for seed in range(12):
        decision = KINDS[kind](np.random.default_rng(seed))
        rows = decision.enumerate()
        x = indicators(rows, decision.n)
        found = g_optimal(rows, n=decision.n)
        assert violations(found, rows, x, decision.n, 1e-3) == []
        assert found.bound == np.linalg.matrix_rank(x)


def test_the_determinant_is_the_greatest():
    """No exchange between two super-arms raises it."""
    n, _, rows = drawn(5)
    found = g_optimal(rows, n=n, tolerance=1e-9)
    x, chosen = indicators(rows, n), indicators(found.rows, n)

    def log_det(vectors, p):
        return np.linalg.slogdet(vectors.T @ (vectors * p[:, None]))[1]

    best = log_det(chosen, found.proportions)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = rng.dirichlet(np.full(len(rows), rng.choice([0.1, 1.0])))
        for share in (1e-3, 0.1):
            mixed = np.concatenate([(1 - share) * found.proportions, share * other])
            assert log_det(np.concatenate([chosen, x]), mixed) <= best + 1e-7


# ---- XY-optimal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SHIFTS)
def test_on_a_difference_set_all_swaps_are_alike(n):
    k = len(SHIFTS[n])
    found = xy_optimal(shifts(n), "swaps")
    assert found.value == pytest.approx(ideal_swap(n, k), rel=1e-3)
    assert found.bound <= ideal_swap(n, k) * (1 + 1e-9)
    assert violations(found, sorted(shifts(n)), pairs(np.eye(n)), n, 1e-3) == []
    assert ideal_swap(n, k) == pytest.approx(2 * n / (k - 1))  # A = ((k - 1) I + J) / n
    assert g_optimal(shifts(n)).value == pytest.approx(n)


@pytest.mark.parametrize(("n", "k"), [(7, 3), (13, 4), (6, 2), (9, 8), (5, 1)])
def test_the_optimum_for_swaps_over_all_sets(n, k):
    rows = TopK(n, k).enumerate()
    found = xy_optimal(rows, "swaps")
    assert found.value == pytest.approx(ideal_swap(n, k), rel=1e-3)
    assert violations(found, rows, pairs(np.eye(n)), n, 1e-3) == []


@pytest.mark.parametrize(("n", "k"), [(7, 3), (10, 2), (6, 4)])
def test_the_optimum_for_differences_over_all_sets(n, k):
    """Those of min(k, n - k) swaps are the widest where all swaps are alike."""
    found = xy_optimal(TopK(n, k).enumerate())
    assert found.value == pytest.approx(min(k, n - k) * ideal_swap(n, k), rel=1e-3)


@pytest.mark.parametrize("what", ["swaps", "differences", "vectors"])
@pytest.mark.parametrize("seed", range(15))
def test_the_gap_closes_for_all_directions(seed, what):
    n, _, rows = drawn(seed)
    vectors = {
        "swaps": pairs(np.eye(n)),
        "differences": pairs(indicators(rows, n)),
        "vectors": np.random.default_rng(seed).standard_normal((1 + seed % 5, n)),
    }[what]
    directions = vectors if what == "vectors" else what
    found = xy_optimal(rows, directions, n=n)
    assert violations(found, rows, vectors, n, 1e-3) == []


@every_class
def test_the_gap_closes_for_differences_of_a_class(decision):
    rows = decision.enumerate()[:200]
    found = xy_optimal(rows, n=decision.n)
    vectors = pairs(indicators(rows, decision.n))
    assert violations(found, rows, vectors, decision.n, 1e-3) == []


@pytest.mark.parametrize("what", ["swaps", "differences"])
def test_directions_and_super_arms_that_come_in_later(what, monkeypatch):
    """A master problem far too small at first leads to the same optimum."""
    n, k = 12, 4
    rows = np.array(random_rows(n, k, 150, 2))
    whole = xy_optimal(rows, what)
    monkeypatch.setattr(xy_module, "_MASTER", (20, 20))
    monkeypatch.setattr(xy_module, "_BLOCK", 1000)
    grown = xy_optimal(rows, what)
    vectors = pairs(np.eye(n)) if what == "swaps" else pairs(indicators(rows, n))
    assert violations(grown, rows, vectors, n, 1e-3) == []
    assert grown.value == pytest.approx(whole.value, rel=2e-3)


@pytest.mark.parametrize("single", [False, True])
def test_directions_that_need_few_super_arms(single):
    """One arm in a class of single arms: only that one need be measured; of two, each half."""
    vectors = np.eye(4)[: 1 if single else 2]
    found = xy_optimal(TopK(4, 1).enumerate(), vectors)
    assert found.value == pytest.approx(len(vectors), rel=1e-3)
    assert found.bound == pytest.approx(len(vectors), rel=1e-3)


@pytest.mark.parametrize("seed", range(25))
def test_the_gap_closes_where_the_best_design_is_nearly_singular(seed):
    """Two arms are asked for, and the others need not be known."""
    n, _, rows = drawn(seed)
    found = xy_optimal(rows, np.eye(n)[:2], n=n)
    assert violations(found, rows, np.eye(n)[:2], n, 1e-3) == []


def test_a_singular_design_gets_a_little_of_another():
    support = g_module.read_support(TopK(5, 2).enumerate(), 5)
    alone, even = np.eye(10)[0], np.full(10, 0.1)
    assert support.inverse(alone) is None
    p, W = support.usable(alone, even, 1e-4)
    assert 0.99 < p[0] < 1
    assert pytest.approx(inverse(support.rows, p, 5)) == W
    assert support.usable(even, alone, 1e-4)[0] is even


# ---- bounds that hold ----------------------------------------------------------------------------


def bounds_broken():
    """Return what is wrong with bounds and values beside those of a general solver."""
    wrong = []
    for seed in range(8):
        n, k = 5 + seed % 3, 2 + seed % 2
        rows = np.array(random_rows(n, k, n + 3, seed))
        x, some = indicators(rows, n), np.random.default_rng(seed).standard_normal((4, n))
        for name, vectors, found in (
            ("G", x, g_optimal(rows, n=n, tolerance=1e-4)),
            ("swaps", pairs(np.eye(n)), xy_optimal(rows, "swaps", n=n, tolerance=1e-4)),
            ("differences", pairs(x), xy_optimal(rows, n=n, tolerance=1e-4)),
            ("vectors", some, xy_optimal(rows, some, n=n, tolerance=1e-4)),
        ):
            other = crude(x, vectors)
            if found.bound > other * (1 + 1e-9):
                wrong.append((seed, name, "a bound above what can be had"))
            if found.value > other * (1 + 2e-4):
                wrong.append((seed, name, "a value above what can be had"))
    return wrong


def test_no_bound_is_above_what_a_general_solver_reaches():
    assert bounds_broken() == []


def test_a_bound_that_is_too_high_is_caught(monkeypatch):
    """The same claims fail when the bound takes the prices' mean for their maximum."""
    plain = xy_module._prices

    def careless(*given):
        found = plain(*given)
        return found._replace(bound=found.bound * found.prices.max() / found.prices.mean())

    monkeypatch.setattr(xy_module, "_prices", careless)
    assert any("bound" in says for *_, says in bounds_broken())


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_bound_holds_for_any_proportions_weights_and_matrix(seed):
    """tr(WC)^2 / max x'WCWx is below the value of all proportions, though W be no inverse."""
    rng = np.random.default_rng(seed)
    n, _, rows = drawn(seed, most=8)
    x = indicators(rows, n)
    support = g_module.read_support(rows, n)
    vectors = rng.standard_normal((5, n))
    p = rng.dirichlet(np.ones(len(rows)))
    W = inverse(rows, p, n) + rng.choice([0, 0.1]) * np.diag(rng.standard_normal(n))
    at = xy_module._prices(support, W, vectors, rng.dirichlet(np.ones(5)))
    for _ in range(20):
        q = rng.dirichlet(np.full(len(rows), rng.choice([0.5, 1.0, 5.0])))
        exact = np.linalg.inv(x.T @ (x * q[:, None]))
        assert at.bound <= greatest(vectors, exact) * (1 + 1e-9)


# ---- properties ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_renaming_the_arms_changes_no_value(seed):
    rng = np.random.default_rng(seed)
    n, _, rows = drawn(seed)
    renamed = np.sort(rng.permutation(n)[rows], axis=1)[rng.permutation(len(rows))]
    for what in ("swaps", "differences"):
        one, other = (xy_optimal(r, what, n=n, tolerance=1e-4) for r in (rows, renamed))
        assert one.value == pytest.approx(other.value, rel=3e-4)
    one, other = (g_optimal(r, n=n, tolerance=1e-7) for r in (rows, renamed))
    assert one.value == pytest.approx(other.value, rel=2e-7)
    diagonals = (np.sort(inverse(f.rows, f.proportions, n).diagonal()) for f in (one, other))
    assert next(diagonals) == pytest.approx(next(diagonals), rel=1e-2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_more_super_arms_or_fewer_directions_never_hurt(seed):
    n, _, rows = drawn(seed)
    vectors = np.random.default_rng(seed).standard_normal((6, n))
    fewer = random_part(rows, n, seed)
    assert xy_optimal(rows, vectors, n=n).bound <= xy_optimal(fewer, vectors, n=n).value
    assert xy_optimal(rows, vectors[:3], n=n).bound <= xy_optimal(rows, vectors, n=n).value
    wider = xy_optimal(rows, 3 * vectors, n=n)
    assert wider.value == pytest.approx(9 * xy_optimal(rows, vectors, n=n).value, rel=2e-3)


def random_part(rows, n, seed):
    """Return some of the rows, of the same span."""
    order = np.random.default_rng(seed).permutation(len(rows))
    first = g_module.support_of(rows[order], n)
    kept = [i for i in range(1, len(rows) + 1) if not _short(rows[order][:i], n, first.dimension)]
    return rows[order][: kept[0]]


def _short(rows, n, dimension):
    x = indicators(rows, n)
    return len(rows) < dimension or np.linalg.cond(x.T @ x) > 1e7


@pytest.mark.parametrize("design", [GOptimal(), GOptimal("8n"), XYOptimal("4n"), GOptimal("full")])
def test_the_same_input_gives_the_same_output(design):
    plans = [design.plan(question(12, 4), np.random.default_rng(3)) for _ in range(2)]
    assert plans[0].digest == plans[1].digest
    assert plans[0].describe() == plans[1].describe()


def test_the_limit_of_iterations_is_told():
    rows = np.array(random_rows(36, 10, 288, 0))
    for found in (
        g_optimal(rows, iterations=1),
        xy_optimal(rows, "swaps", iterations=1),
        g_optimal(TopK(36, 10), iterations=1),
    ):
        assert not found.converged
        assert found.gap > found.tolerance
        assert "not within" in str(found)
        assert found.details()["converged"] is False
        assert found.iterations == 1
    found = g_optimal(rows)
    assert "not within" not in str(found)
    assert str(found).startswith(f"{len(found.rows)} super-arms, value 36.0")


def test_what_is_dropped_is_worked_out_anew():
    """The looser the limit, the fewer super-arms; the value of those that stay keeps within it."""
    rows = np.array(random_rows(20, 6, 200, 0))
    support = g_module.read_support(rows, 20)
    norm = g_module.greatest_norm(support)
    best = g_module.d_optimal(support, np.full(200, 1 / 200), 1e-6, 1000).proportions
    sizes = []
    for limit in (20 * (1 + 1e-5), 22, 30, 60):
        p = g_module.trimmed(best, norm, limit)
        x = indicators(rows[p > 0], 20)
        assert norm(p) <= limit
        assert p.sum() == pytest.approx(1)
        assert greatest(indicators(rows, 20), inverse(rows, p, 20)) == pytest.approx(norm(p))
        assert np.linalg.matrix_rank(x) == 20
        sizes.append(len(x))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] - 10
    assert math.isinf(norm(np.eye(200)[0]))


# ---- column generation ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (9, 4), (10, 9), (14, 7), (60, 58)])
def test_the_whole_class_is_within_the_tolerance(n, k):
    decision = TopK(n, k)
    found = g_optimal(decision)
    assert found.bound == (n if k < n else 1)
    assert found.converged
    assert found.proved_gap <= 0.02 * (1 + 1e-9)
    if decision.size < 10**4:
        top = greatest(
            indicators(decision.enumerate(), n), inverse(found.rows, found.proportions, n)
        )
        assert found.value == pytest.approx(top)


@pytest.mark.parametrize("kind", KINDS)
def test_searching_finds_what_listing_finds(kind, monkeypatch):
    """Without going through the sets; then what is claimed is compared with all of them."""
    monkeypatch.setattr(g_module, "_LISTED", -1.0)
    monkeypatch.setattr(g_module, "_LISTED_TOPK", -1.0)
    for seed in range(6):
        decision = KINDS[kind](np.random.default_rng(seed))
        found = g_optimal(decision)
        x = indicators(decision.enumerate(), decision.n)
        top = greatest(x, inverse(found.rows, found.proportions, decision.n))
        assert found.bound == np.linalg.matrix_rank(x)
        assert top <= found.upper * (1 + 1e-9)
        assert top <= 1.02 * found.bound * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_no_set_is_above_the_upper_bound_whatever_the_matrix(kind, monkeypatch):
    monkeypatch.setattr(g_module, "_LISTED", -1.0)
    monkeypatch.setattr(g_module, "_LISTED_TOPK", -1.0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        decision = KINDS[kind](rng)
        root = rng.standard_normal((max(1, decision.n // 2), decision.n))
        top = greatest(indicators(decision.enumerate(), decision.n), root.T @ root)
        basis = span_basis(decision, rng)
        assert g_module._Search(decision, basis).upper(root.T @ root) >= top


@every_class
def test_local_search_ends_where_nothing_near_is_greater(decision):
    rng = np.random.default_rng(3)
    climbed = 0
    for _ in range(50):
        root = rng.standard_normal((decision.n, decision.n))
        W, start = root.T @ root, decision.draw(rng)
        middle = g_module._ascend(decision, W, start)
        end = g_module._exchange(decision, W, middle)
        low, high, top = (W[np.ix_(m, m)].sum() for m in (start, middle, end))
        assert low <= high <= top
        climbed += low < high
        assert np.array_equal(g_module._ascend(decision, W, middle), middle)
        assert all(W[np.ix_(m, m)].sum() <= top * (1 + 1e-9) for m in decision.exchanges(end))
    assert climbed >= 10


def test_column_generation_on_111_arms():
    """Proved for all 5.2e13 sets, by the spectral bound."""
    found = g_optimal(TopK(111, 10))
    assert found.bound == 111
    assert found.value <= found.upper <= 1.02 * 111
    W = inverse(found.rows, found.proportions, 111)
    assert sa.maximise(W, 10, "multistart", "spectral").upper_bound <= 1.02 * 111 * (1 + 1e-9)


def test_a_class_that_is_not_listed():
    """What another search of some seconds finds among 262,144 trees is not above the tolerance."""
    trees = SpanningTrees(list(itertools.combinations(range(8), 2)))
    found = g_optimal(trees)
    assert (found.bound, found.converged) == (28, True)
    assert found.upper >= found.value
    W = inverse(found.rows, found.proportions, 28)
    rng = np.random.default_rng(5)
    for _ in range(100):
        seen = g_module._exchange(trees, W, trees.best(W @ rng.standard_normal(28)))
        assert W[np.ix_(seen, seen)].sum() <= 1.02 * 28


def test_searched_matchings_compared_with_all(monkeypatch):
    """What the search claims is not far below the greatest of all 5,040."""
    monkeypatch.setattr(g_module, "_LISTED", -1.0)
    matchings = Matchings(list(itertools.product(range(7), range(7))))
    found = g_optimal(matchings)
    assert found.converged
    x = indicators(matchings.enumerate(), 49)
    top = float(((x @ inverse(found.rows, found.proportions, 49)) * x).sum(axis=1).max())
    assert found.value <= top * (1 + 1e-9)
    assert top <= min(1.025 * found.bound, found.upper)


def test_a_smaller_tolerance_is_reached_too():
    found = g_optimal(TopK(12, 5), tolerance=1e-3)
    assert found.proved_gap <= 1e-3 * (1 + 1e-9)


# ---- designs -------------------------------------------------------------------------------------


@problems
@pytest.mark.parametrize("design", [GOptimal(), GOptimal("full"), XYOptimal("full")], ids=str)
def test_plans_hold_what_they_describe(design, decision):
    problem = question(
        decision.n, decision, direction="maximize" if decision.signed else "minimize"
    )
    plan = design.plan(problem, np.random.default_rng(1))
    assert plan.describe()["kind"] == "weighted"
    assert plan.describe()["design"] == str(design)
    assert plan.describe()["converged"] is True
    json.dumps(plan.describe())
    n, x = decision.n, indicators(decision.enumerate(), decision.n)
    W = inverse(plan.support, plan.proportions, n)
    if isinstance(design, XYOptimal):
        x = pairs(np.eye(n)) if problem.topk else pairs(x)
    assert greatest(x, W) == pytest.approx(plan.describe()["value"], rel=1e-6)
    first = indicators(plan.members(slice(0, plan.spanning)), n)
    assert np.linalg.matrix_rank(first) == plan.spanning
    assert np.linalg.matrix_rank(indicators(plan.support, n)) == plan.spanning
    assert all(decision.contains(row[row >= 0]) for row in plan.support)


@pytest.mark.parametrize("design", [GOptimal(), XYOptimal("4n")], ids=str)
@pytest.mark.parametrize("decision", [TopK(8, 3), *CLASSES.values()], ids=str)
def test_a_rule_stops_on_them(design, decision):
    signed = decision.signed
    problem = question(decision.n, decision, direction="maximize" if signed else "minimize")
    means = np.random.default_rng(2).uniform(1, 2, decision.n)
    rule = sa.ICB(design=design)
    found = sa.simulate(problem, rule, sa.environment(means, problem.noise), rng=1)
    assert found.verdict.certified
    assert found.regret <= 1.0
    assert rule.settings()["design"] == str(design)


@pytest.mark.parametrize("design", [GOptimal(), GOptimal("4n"), XYOptimal()], ids=str)
def test_a_single_set_needs_no_design(design):
    problem = question(4, 4)
    assert design.plan(problem, np.random.default_rng(0)).size == 1
    assert sa.Identification(problem, sa.ICB(design=design)).verdict.done


def test_given_super_arms():
    rows = tuple(shifts(7))
    plan = GOptimal(rows).plan(question(7, 3), np.random.default_rng(0))
    assert plan.describe()["source"] == "given"
    assert plan.proportions == pytest.approx(np.full(7, 1 / 7))
    assert str(GOptimal(rows)) == "g-optimal:7 given"
    assert str(XYOptimal(rows)) == "xy-optimal:7 given"
    with pytest.raises(sa.SupportError, match="cannot be told apart"):
        GOptimal(rows[:5]).plan(question(7, 3), np.random.default_rng(0))


def test_they_beat_equal_proportions_on_the_same_support():
    problem = question(36, 10)
    uniform = sa.Uniform("8n").plan(problem, np.random.default_rng(4))
    better = GOptimal("8n").plan(problem, np.random.default_rng(4))
    swaps = XYOptimal("8n").plan(problem, np.random.default_rng(4))
    equal = np.full(uniform.size, 1 / uniform.size)
    W = inverse(uniform.support, equal, 36)
    assert {tuple(row) for row in better.support} <= {tuple(row) for row in uniform.support}
    assert better.describe()["value"] < 0.85 * greatest(indicators(uniform.support, 36), W)
    assert swaps.describe()["value"] < 0.85 * greatest(pairs(np.eye(36)), W)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: GOptimal("8m"), "'8m' is not .* 'generated' too"),
        (lambda: GOptimal(None), "support"),
        (lambda: GOptimal(tolerance=0), "tolerance must be a number > 0, not 0"),
        (lambda: GOptimal(tolerance="x"), "tolerance"),
        (lambda: GOptimal(tolerance=float("nan")), "tolerance"),
        (lambda: GOptimal(iterations=0), "iterations"),
        (lambda: XYOptimal("generated"), "generated"),
        (lambda: XYOptimal(directions="all"), "'swaps' or 'differences', not 'all'"),
        (lambda: XYOptimal(iterations=1.5), "iterations"),
        (lambda: g_optimal([(0, 1), (1, 2)], n=2), "no arm of index 2 among 2"),
        (lambda: g_optimal([]), "empty"),
        (lambda: g_optimal([(10**9,)]), "1,000,000,001 arms are too many"),
        (lambda: g_optimal([(10**30,)]), "arms are too many"),
        (lambda: g_optimal([(0,)], n=10**12), "arms are too many"),
        (lambda: g_optimal(CLASSES["spanning trees"], rng=-1), "rng"),
        (lambda: g_optimal(CLASSES["spanning trees"], rng="x"), "rng"),
        (lambda: g_optimal("8n"), "list of super-arms"),
        (lambda: g_optimal([3, 4]), "list of super-arms"),
        (lambda: g_optimal([(0, 0)]), "not a set"),
        (lambda: g_optimal([(0, 1), (1, 0)]), "twice"),
        (lambda: g_optimal([("a",)]), "index"),
        (lambda: xy_optimal([(0, 1)]), "single super-arm"),
        (lambda: xy_optimal([(0,)], "swaps"), "single arm"),
        (lambda: xy_optimal([(0, 1), (2, 3)], "swaps"), "cannot be told"),
        (lambda: xy_optimal([(0,), (1,)], "both"), "'swaps' or 'differences'"),
        (lambda: xy_optimal([(0,), (1,)], [[1.0]]), "rows of 2 numbers"),
        (lambda: xy_optimal([(0,), (1,)], [[0.0, 0.0]]), "not all 0"),
        (lambda: xy_optimal([(0,), (1,)], [[1.0, math.nan]]), "finite"),
        (lambda: xy_optimal([(0, 1), (1, 2)], [[1.0, 0.0, 0.0]]), "number 1"),
        (lambda: xy_optimal([(0,), (1,)], [["a", "b"]]), "rows of numbers"),
        (lambda: XYOptimal(directions="swaps").plan(
            question(10, CLASSES["spanning trees"]), np.random.default_rng(0)), "best k of n"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(build, says):
    with pytest.raises((sa.SettingError, sa.SupportError), match=says):
        build()


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(xy_module, "_MOST_PAIRED", 20)
    with pytest.raises(sa.SettingError, match="21 super-arms are too many"):
        xy_optimal(random_rows(7, 3, 21, 0))


def test_results_are_frozen():
    found = g_optimal([(0,), (1,)])
    assert isinstance(found, Allocation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.value = 0.0


# ---- efficient rounding --------------------------------------------------------------------------

MIXES = [
    np.full(7, 1 / 7),
    np.array([1.0]),
    np.array([0.5, 0.3, 0.2]),
    np.array([1e-9, 1.0, 1.0]),
    np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    *(np.random.default_rng(s).dirichlet(np.full(2 + 9 * s, 0.5)) for s in range(6)),
    np.random.default_rng(9).dirichlet(np.ones(200)),
]


def whole_shares(p):
    """Return whole numbers in exactly the proportions p."""
    exact = [Fraction(float(share)) for share in p]
    common = math.lcm(*(share.denominator for share in exact))
    return [int(share * common) for share in exact]


def broken(shares, counts, t):
    """Return every claim on counts that fails, in exact arithmetic."""
    held = [i for i, share in enumerate(shares) if share > 0]
    s, total = len(held), sum(shares)
    ratios = [Fraction(int(counts[i]), shares[i]) for i in held]
    wrong = []
    if counts.sum() != t or counts.min() < 0 or counts[held].sum() != t:
        wrong.append("the counts are none for t")
    if min(ratios) * total < t - s + 1:  # Pukelsheim has t - s
        wrong.append("below the bound")
    if max(Fraction(int(counts[i]) - 1, shares[i]) for i in held) > min(ratios):
        wrong.append("an exchange would help")
    if min(ratios) == 0 and t >= s:
        wrong.append("a super-arm without a pull")
    return wrong


@pytest.mark.parametrize("p", MIXES, ids=len)
def test_rounding_is_within_pukelsheims_bound_for_every_t(p):
    before = np.zeros(len(p), dtype=np.int64)
    shares = whole_shares(p)
    for t in range(1, 501):
        counts = efficient_rounding(p, t)
        assert broken(shares, counts, t) == [], t
        assert (counts >= before).all()  # one pull more, and none taken back
        before = counts


def test_plain_rounding_is_caught():
    """Rounding each to the nearest, or only the first step, breaks the claims."""
    p = MIXES[-1]
    start = np.ceil((300 - len(p) / 2) * p).astype(np.int64)
    nearest = np.rint(300 * p).astype(np.int64)
    nearest[np.argmax(p)] += 300 - nearest.sum()
    assert broken(whole_shares(p), start, 300)
    assert broken(whole_shares(p), nearest, 300)


@settings(max_examples=150, deadline=None)
@given(
    p=st.lists(
        st.one_of(st.floats(1e-3, 1.0), st.sampled_from([1.0, 2.0])), min_size=1, max_size=4
    ),
    t=st.integers(1, 9),
)
def test_no_other_counts_have_a_greater_least_ratio(p, t):
    exact = [Fraction(share) for share in p]

    def least(counts):
        return min(Fraction(int(c)) / share for c, share in zip(counts, exact, strict=True))

    best = max(
        least(counts)
        for counts in itertools.product(range(t + 1), repeat=len(p))
        if sum(counts) == t
    )
    assert least(efficient_rounding(p, t)) == best


@settings(max_examples=100, deadline=None)
@given(
    p=st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=30),
    t=st.one_of(st.integers(1, 100), st.integers(10**11, 10**12)),
)
def test_rounding_is_exact_far_out(p, t):
    assert broken(whole_shares(p), efficient_rounding(p, t), t) == []


def test_information_loses_no_more_than_the_bound():
    found = g_optimal(TopK(12, 4))
    s, d = len(found.rows), 12
    for t in (s, s + 7, 5 * s, 50 * s):
        counts = efficient_rounding(found.proportions, t)
        norm = greatest(indicators(found.rows, d), inverse(found.rows, counts / t, d))
        assert norm <= found.value / (1 - (s - 1) / t) * (1 + 1e-9)


@pytest.mark.parametrize("t", [60, 61, 199, 10**6 + 1])
def test_tracking_measures_by_efficient_rounding(t):
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    plan = SupportPlan(np.arange(40)[:, None], 40, spanning=40, proportions=p)
    assert np.array_equal(plan.counts(t), efficient_rounding(p, t))


def test_rounding_by_hand():
    assert efficient_rounding([1, 1, 1], 4).tolist() == [2, 1, 1]  # ties: the lower index
    assert efficient_rounding([1, 2, 1], 1).tolist() == [0, 1, 0]  # the greatest first
    assert efficient_rounding([1, 2, 1], 5).tolist() == [1, 3, 1]  # at (1, 2, 1) all are even
    assert efficient_rounding([0, 3, 0], 5).tolist() == [0, 5, 0]
    assert efficient_rounding([1e-300, 1e300], 5).tolist() == [1, 4]
    assert efficient_rounding([0.1] * 10, 10**12).tolist() == [10**11] * 10
    assert efficient_rounding(np.full(1000, 0.001), 3).sum() == 3  # t far below s/2


@pytest.mark.parametrize(
    ("p", "t", "says"),
    [
        ([1.0], 0, "t .* >= 1, not 0"),
        ([1.0], 1.5, "t "),
        ([1.0], 10**16, "must not exceed"),
        ([], 1, "not all 0"),
        ([0.0, 0.0], 1, "not all 0"),
        ([-1.0, 2.0], 1, ">= 0"),
        ([math.nan], 1, "finite"),
        ([math.inf], 1, "finite"),
        ("ab", 1, "list of numbers"),
        (0.5, 1, "list of numbers"),
        (["x"], 1, "a proportion"),
    ],
)
def test_impossible_roundings_are_refused(p, t, says):
    with pytest.raises(sa.SettingError, match=says):
        efficient_rounding(p, t)
