"""The least pulls: against closed forms, other optimisers, random designs, and the command line."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from certified_cases import CROWD, crowd_case
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import superarm as sa
from superarm.cli import main
from superarm.theory import lower_bound
from superarm.theory.lower_bound import bound_of, isotropic_bound, kl_opposite

seeds = st.integers(0, 2**32 - 1)
relaxed = settings(max_examples=25, deadline=None)


def question(n, k, **changed):
    return sa.Problem(
        n, k, changed.pop("noise", sa.gaussian(1.0)), **{"epsilon": 0.0, "delta": 0.05} | changed
    )


def case(seed, most=6):
    """Return a small question, means in steps (some equal), and its epsilon."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most + 1))
    k = int(rng.integers(1, n))
    means = np.round(rng.normal(0, 2, n), 1) + 0.01 * np.arange(n)
    epsilon = float(rng.choice([0.0, 0.5]))
    return question(n, k, epsilon=epsilon), means, rng


def indicators(n, k):
    X = np.zeros((math.comb(n, k), n))
    np.put_along_axis(X, np.array(list(combinations(range(n), k))), 1.0, axis=1)
    return X


def directions(problem, means, best=None):
    """sqrt(2) sigma (chi_M' - chi_M) / (theta(M) - theta(M') + epsilon), for all rivals M'."""
    theta = problem.sign * np.asarray(means)
    X = indicators(problem.n, problem.k)
    values = X @ theta
    at = int(np.argmax(values)) if best is None else best
    x, loss = X - X[at], values[at] - values + problem.epsilon
    keep = np.arange(len(X)) != at
    return math.sqrt(2) * problem.noise.sigma(problem.k) * x[keep] / loss[keep][:, None]


def value(Y, X, p):
    """Greatest |y|^2 on the design p."""
    inverse = np.linalg.inv((X * p[:, None]).T @ X)
    return float(np.einsum("yi,ij,yj->y", Y, inverse, Y).max())


def optimum(Y, X):
    """T* by a general-purpose optimiser: maximise log-weights of a soft maximum, ever harder."""
    best, z = math.inf, np.zeros(len(X))

    def proportions(z):
        e = np.exp(z - z.max())
        return e / e.sum()

    for sharp in (3, 10, 30, 100, 300, 1000):

        def soft(z, sharp=sharp):
            p = 0.999 * proportions(z) + 0.001 / len(X)
            inverse = np.linalg.inv((X * p[:, None]).T @ X)
            logs = np.log(np.einsum("yi,ij,yj->y", Y, inverse, Y))
            top = logs.max()
            return top + math.log(np.exp(sharp * (logs - top)).sum()) / sharp

        z = minimize(soft, z, method="BFGS", options={"maxiter": 300, "gtol": 1e-7}).x
        best = min(best, value(Y, X, 0.999 * proportions(z) + 0.001 / len(X)))
    return best


# ---- figures and closed forms --------------------------------------------------------------------


@pytest.mark.parametrize("quiz", CROWD)
def test_isotropic_figures_of_the_crowds(quiz):
    problem, world = crowd_case(quiz)
    found = isotropic_bound(problem, world.means)
    assert found.pulls == pytest.approx(CROWD[quiz][1], abs=0.5)
    assert found.kind == "isotropic"
    assert found == bound_of(problem, world.means)
    assert found == lower_bound(problem, world.means, design="isotropic")


OPTIMISED = {"it": 557, "medicine": 764, "pokemon": 393}


@pytest.mark.parametrize("quiz", OPTIMISED)
def test_optimised_figures_of_the_crowds(quiz):
    """At most those of designs that are alike on groups of arms."""
    problem, world = crowd_case(quiz)
    found = lower_bound(problem, world.means, tolerance=0.05, rounds=12)
    kl = kl_opposite(0.05)
    assert found.design["dual"] <= found.t_star
    assert kl * found.t_star <= 1.03 * OPTIMISED[quiz]
    assert found.pulls == pytest.approx(kl * found.design["dual"])
    assert found.pulls < isotropic_bound(problem, world.means).pulls


def test_kl_of_opposite_coins():
    for delta in (0.4, 0.05, 1e-6):
        expected = delta * math.log(delta / (1 - delta)) + (1 - delta) * math.log(1 / delta - 1)
        assert kl_opposite(delta) == pytest.approx(expected)
    assert kl_opposite(0.5) == 0
    assert kl_opposite(1e-300) == pytest.approx(300 * math.log(10))
    means = [0.0, 1.0, 2.0, 4.0]
    assert lower_bound(question(4, 2, delta=1e-40), means).pulls == pytest.approx(
        40 * math.log(10) * lower_bound(question(4, 2), means).design["dual"]
    )
    assert lower_bound(question(4, 2, delta=0.7), means).pulls == 0


def test_two_arms():
    """Half of the pulls each: |x|^2 = 4, T* = 8 sigma^2 / (gap + epsilon)^2."""
    for epsilon in (0.0, 0.3):
        problem = question(2, 1, epsilon=epsilon, noise=sa.gaussian(3.0))
        found = lower_bound(problem, [1.0, 0.5], tolerance=1e-6)
        assert found.t_star == pytest.approx(8 * 9 / (0.5 + epsilon) ** 2, rel=1e-4)
        assert found.kind == ("exact" if epsilon == 0 else "asymptotic")
        assert isotropic_bound(problem, [1.0, 0.5]).t_star == pytest.approx(found.t_star, rel=1e-4)


def test_k_1_is_the_plain_best_arm_problem():
    """All others at the same distance: the best arm gets sqrt(n-1) times as many pulls as they."""
    n, gap = 6, 0.7
    found = lower_bound(question(n, 1), [gap] + [0.0] * (n - 1), tolerance=1e-6)
    assert found.t_star == pytest.approx(2 * (1 + math.sqrt(n - 1)) ** 2 / gap**2, rel=1e-4)


def test_one_arm_left_out_mirrors_one_taken():
    """At n = 3, k = 2 a pull is a known sum less one arm, so that it is worth at least as much."""
    took = lower_bound(question(3, 1), [1.0, 0.0, 0.0]).t_star
    left = lower_bound(question(3, 2, direction="minimize"), [1.0, 0.0, 0.0]).t_star
    assert left == pytest.approx(
        optimum(
            directions(question(3, 2, direction="minimize"), [1.0, 0.0, 0.0]), indicators(3, 2)
        ),
        rel=0.01,
    )
    assert took == pytest.approx(2 * (1 + math.sqrt(2)) ** 2, rel=0.01)


def test_only_one_group_needs_no_pull_and_ties_need_endless_ones():
    assert lower_bound(question(4, 4), [1, 2, 3, 4]).pulls == 0
    tie = lower_bound(question(4, 2), [1, 0, 0, -1])
    assert (tie.pulls, tie.kind, tie.design["reason"]) == (math.inf, "exact", "a tie at rank k")
    assert tie.to_dict()["pulls"] is None
    assert tie.ratio(10) is None
    assert math.isinf(isotropic_bound(question(4, 2), [1, 0, 0, -1]).pulls)
    assert lower_bound(question(4, 2, epsilon=0.1), [1, 0, 0, -1]).pulls < math.inf


# ---- against others ------------------------------------------------------------------------------


@relaxed
@given(seeds)
def test_the_isotropic_value_is_that_of_all_sets_alike(seed):
    problem, means, _ = case(seed)
    X = indicators(problem.n, problem.k)
    expected = value(directions(problem, means), X, np.full(len(X), 1 / len(X)))
    assert isotropic_bound(problem, means).t_star == pytest.approx(expected, rel=1e-6)


@relaxed
@given(seeds)
def test_the_dual_is_below_every_design_and_the_value_that_of_one(seed):
    problem, means, rng = case(seed)
    found = lower_bound(problem, means)
    dual = found.design["dual"]
    assert dual <= found.t_star * (1 + 1e-9)
    assert found.t_star <= dual * 1.0101
    X, Y = indicators(problem.n, problem.k), directions(problem, means)
    values = [value(Y, X, np.full(len(X), 1 / len(X)))]
    for spread in (0.3, 1.0, 3.0):
        p = rng.dirichlet(np.full(len(X), spread), size=30)
        values += [value(Y, X, 0.99 * row + 0.01 / len(X)) for row in p]
    assert dual <= min(values) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_value_is_the_optimum_of_a_general_optimiser(seed):
    problem, means, _ = case(seed, most=5)
    found = lower_bound(problem, means, tolerance=1e-3)
    expected = optimum(directions(problem, means), indicators(problem.n, problem.k))
    assert found.design["dual"] <= expected * (1 + 1e-9)
    assert found.t_star == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_answer_within_epsilon_needs_less(seed):
    """The least over all right answers is that of a best one: each other's optimum is above it."""
    rng = np.random.default_rng(seed)
    n, k = 4, int(rng.integers(1, 4))
    means = np.round(rng.normal(0, 0.3, n), 2)
    problem = question(n, k, epsilon=0.6)
    found = lower_bound(problem, means, tolerance=1e-3)
    X = indicators(n, k)
    values = X @ means
    for at in np.flatnonzero(values > values.max() - 0.55):
        others = optimum(directions(problem, means, int(at)), X)
        assert found.design["dual"] <= others * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-60, 1e-9, 1e9, 1e60])
def test_the_scale_of_the_means_does_not_matter(scale):
    means = np.array([0.0, 1.0, 2.0, 2.5, 4.0])
    one = lower_bound(question(5, 2, epsilon=0.3), means)
    changed = question(5, 2, epsilon=0.3 * scale, noise=sa.gaussian(scale))
    other = lower_bound(changed, means * scale)
    assert other.t_star == pytest.approx(one.t_star, rel=1e-6)
    assert other.pulls == pytest.approx(one.pulls, rel=1e-6)
    tiny = lower_bound(question(5, 2, noise=sa.gaussian(scale)), means)
    assert tiny.t_star / scale**2 == pytest.approx(lower_bound(question(5, 2), means).t_star)
    assert tiny.design["gap"] < 0.01


@pytest.mark.parametrize(
    ("sigma", "epsilon", "means"),
    [
        (1.0, 1e-300, [0, 1, 3, 3, 4]),
        (1e100, 1e-200, [0, 1, 3, 3, 4]),
        (1.0, 1e-300, [0, 1e90, 3e99, 3e99, 4e99]),
    ],
)
def test_losses_beyond_numbers_end_with_a_clear_word(sigma, epsilon, means):
    problem = question(5, 2, epsilon=epsilon, noise=sa.gaussian(sigma))
    assert lower_bound(problem, means, design="isotropic").pulls == math.inf
    with pytest.raises(sa.SettingError, match="choose design isotropic"):
        lower_bound(problem, means)


def test_next_to_no_noise_needs_next_to_no_pulls():
    problem = question(5, 2, epsilon=1e100, noise=sa.gaussian(1e-100))
    assert lower_bound(problem, [0, 1, 2, 3, 4]).pulls == 0  # below the least number


def test_order_level_and_direction_do_not_matter():
    rng = np.random.default_rng(3)
    means, order = np.array([0.0, 1.0, 1.5, 2.5, 4.0, 4.2]), rng.permutation(6)
    problem = question(6, 3, epsilon=0.2)
    one = lower_bound(problem, means).t_star
    assert lower_bound(problem, means[order]).t_star == pytest.approx(one, rel=0.01)
    assert lower_bound(problem, means + 1e3).t_star == pytest.approx(one, rel=0.01)
    down = question(6, 3, epsilon=0.2, direction="minimize")
    assert lower_bound(down, -means).t_star == pytest.approx(one, rel=0.01)


def test_no_certified_run_beats_it_on_average():
    """Its stop would be false otherwise: the means of 40 runs are above the bound."""
    means = np.array([1.0, 0.8, 0.3, 0.0, -0.5])
    problem = question(5, 2)
    runs = sa.replicate(problem, sa.Certified(), sa.environment(means, problem.noise), 40, rng=1)
    bound = lower_bound(problem, means)
    assert bound.ratio(runs.pulls_mean) > 1


def test_arms_beyond_number_are_not_optimised():
    means = np.linspace(0, 1, 300)
    with pytest.raises(sa.SettingError, match="choose design isotropic"):
        lower_bound(question(300, 5), means)
    assert lower_bound(question(300, 5), means, design="isotropic").pulls > 0
    with pytest.raises(sa.SettingError, match="optimised or isotropic"):
        lower_bound(question(4, 2), [1, 2, 3, 4], design="best")
    with pytest.raises(sa.SuperarmError, match="4 arms"):
        lower_bound(question(4, 2), [1, 2, 3])
    tree = sa.SpanningTrees([(0, 1), (1, 2), (0, 2)])
    with pytest.raises(sa.ProblemError, match="best k of n"):
        lower_bound(sa.Problem(3, tree, sa.gaussian(1.0)), [1, 2, 3])
    assert bound_of(sa.Problem(3, tree, sa.gaussian(1.0)), [1, 2, 3]) is None


def test_a_tiny_epsilon_bounds_as_none_does():
    means = [0.9, 0.5, 0.3, 0.1]
    tiny = lower_bound(question(4, 2, epsilon=1e-300), means)
    assert tiny.t_star == pytest.approx(lower_bound(question(4, 2), means).t_star, rel=0.01)


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture
def means_file(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("arm,mean\na,0.9\nb,0.8\nc,0.3\nd,0.2\n", encoding="utf-8")
    return path


def called(path, *words):
    return CliRunner().invoke(
        main, ["lower-bound", f"--means={path}", "--noise=gaussian:1", *words]
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("design", [None, "isotropic"])
def test_the_command_gives_the_same_figures(means_file, epsilon, design):
    chosen = [] if design is None else [f"--design={design}"]
    words = ("--k=2", f"--epsilon={epsilon}", "--delta=0.05", *chosen)
    result = called(means_file, *words, "--format=json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) == {"pulls", "t_star", "kind", "design"}
    problem = question(4, 2, epsilon=epsilon)
    expected = lower_bound(problem, [0.9, 0.8, 0.3, 0.2], design=design or "optimised")
    assert found == json.loads(json.dumps(expected.to_dict()))
    kinds = {0.0: "exact", 0.5: "asymptotic"}
    assert found["kind"] == (design or kinds[epsilon])
    table = called(means_file, *words, "--format=table").stdout
    assert f"{expected.pulls:,.1f}" in table
    assert found["kind"] in table
    header, row = called(means_file, *words, "--format=csv").stdout.splitlines()
    assert header == "pulls,t_star,kind,design"
    assert float(row.split(",")[0]) == expected.pulls


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k=9"], "k must be between 1 and the number of arms, 4, not 9"),
        (["--k=2", "--epsilon=-1"], "epsilon"),
        (["--k=2", "--delta=2"], "delta"),
        (["--k=2", "--noise=loud"], "noise"),
        (["--k=2", "--design=best"], "best"),
        (["--k=two"], "two"),
        ([], "--k"),
    ],
)
def test_mistakes_end_with_one_clear_line(means_file, words, message):
    result = called(means_file, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if "rror" in line]
    assert len(errors) == 1
    assert message in errors[0]


def test_a_missing_file_and_bad_tables_are_told_so(tmp_path):
    for text, message in (
        (None, "means.csv"),
        ("arm,mean\na,x\nb,1\n", "line 2"),
        ("arm,skill\na,1\n", "mean"),
    ):
        path = tmp_path / "means.csv"
        if text is not None:
            path.write_text(text, encoding="utf-8")
        result = called(path, "--k=1")
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("tolerance", ["0", "-1", "nan", "inf"])
def test_a_tolerance_that_means_nothing_is_refused(means_file, tolerance):
    result = called(means_file, "--k=2", f"--tolerance={tolerance}")
    assert result.exit_code == 2
    assert "tolerance" in result.stderr


def test_a_tie_is_told(means_file):
    means_file.write_text("arm,mean\na,1\nb,0\nc,0\n", encoding="utf-8")
    result = called(means_file, "--k=2", "--format=json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["pulls"] is None
    assert found["design"]["reason"] == "a tie at rank k"
