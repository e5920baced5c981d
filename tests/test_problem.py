"""The question and its noise: what is refused, what is filled in, what each model implies."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm import (
    NoiseError,
    Problem,
    ProblemError,
    TotalError,
    bounded,
    gaussian,
    labels,
    parse_noise,
    total,
)
from superarm.noise import Noise

NOISE = gaussian(1.0)
positive = st.floats(min_value=1e-300, max_value=1e100)
finite = st.floats(-1e100, 1e100)


def question(**changes: Any) -> Problem:
    fields = {"arms": ["Ann", "Bo", "Cy"], "k": 2, "noise": NOISE, **changes}
    return Problem(**fields)


# ---- the question --------------------------------------------------------------------------------


def test_defaults() -> None:
    problem = question()
    assert problem.arms == ("Ann", "Bo", "Cy")
    assert (problem.n, problem.k) == (3, 2)
    assert (problem.epsilon, problem.delta, problem.direction) == (0.0, 0.05, "maximize")
    assert problem.noise is NOISE


def test_a_number_of_arms_names_them_from_1() -> None:
    assert question(arms=4).arms == ("1", "2", "3", "4")
    assert question(arms=np.int64(4)).arms == ("1", "2", "3", "4")


def test_names_may_come_from_any_iterable() -> None:
    assert question(arms=(name for name in "xyz")).arms == ("x", "y", "z")
    assert question(arms=np.array(["x", "y"])).arms == ("x", "y")


def test_names_of_members() -> None:
    assert question().names([2, 0]) == ("Cy", "Ann")


@pytest.mark.parametrize("k", [1, 3, np.int64(2)])
def test_k_from_1_to_n_is_taken_as_a_plain_int(k: Any) -> None:
    assert question(k=k).k == k
    assert type(question(k=k).k) is int


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"k": 0}, "between 1 and the number of arms, 3, not 0"),
        ({"k": -1}, "not -1"),
        ({"k": 4}, "not 4"),
        ({"k": 10**30}, "between 1 and"),
        ({"k": 2.0}, "k must be a whole number, not 2.0"),
        ({"k": 1.5}, "not 1.5"),
        ({"k": math.nan}, "not nan"),
        ({"k": "2"}, "not '2'"),
        ({"k": None}, "not None"),
        ({"arms": ["a", "b", "a"]}, "given twice: ['a']"),
        ({"arms": list("abcdeabcde")}, "given twice: ['a', 'b', 'c'] and 2 more"),
        ({"arms": ["a", ""]}, "not ''"),
        ({"arms": ["a", " \t"]}, "not ' "),
        ({"arms": ["a", None]}, "not None"),
        ({"arms": ["a", 2]}, "not 2"),
        ({"arms": "abc"}, "not the text 'abc'"),
        ({"arms": ""}, "not the text ''"),
        ({"arms": []}, "no arms"),
        ({"arms": iter(())}, "no arms"),
        ({"arms": 0}, "no arms"),
        ({"arms": -3}, "no arms"),
        ({"arms": 3.0}, "whole number, not 3.0"),
        ({"arms": None}, "whole number, not None"),
        ({"arms": np.array(2.0)}, "whole number, not array(2.)"),
        ({"arms": 10**18}, "must not exceed 10,000,000"),
        ({"decision": 2}, "decision class must be"),
        ({"k": 1.5, "noise": "x" * 10**5}, "not 1.5"),
        ({"noise": "x" * 10**5}, "xxx..."),
        ({"direction": np.zeros(2)}, "not array([0., 0.])"),
        ({"epsilon": -1e-300}, "not -1e-300"),
        ({"epsilon": math.nan}, "not nan"),
        ({"epsilon": math.inf}, "not inf"),
        ({"epsilon": -math.inf}, "not -inf"),
        ({"epsilon": "much"}, "number, not 'much'"),
        ({"epsilon": None}, "number, not None"),
        ({"epsilon": 10**400}, "epsilon"),
        ({"delta": 0}, "not 0.0"),
        ({"delta": 0.0}, "not 0.0"),
        ({"delta": 1}, "not 1.0"),
        ({"delta": -0.05}, "not -0.05"),
        ({"delta": 5}, "not 5.0"),
        ({"delta": math.nan}, "not nan"),
        ({"delta": math.inf}, "not inf"),
        ({"delta": "5 %"}, "number, not '5 %'"),
        ({"direction": "up"}, "'maximize' or 'minimize', not 'up'"),
        ({"direction": "Maximize"}, "not 'Maximize'"),
        ({"direction": None}, "not None"),
        ({"direction": 1}, "not 1"),
        ({"noise": "labels"}, "noise model such as superarm.labels(), not 'labels'"),
        ({"noise": labels}, "noise model"),
        ({"noise": None}, "not None"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_makes_no_sense_is_refused_with_the_value(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ProblemError) as error:
        question(**changes)
    message = str(error.value)
    assert says in message
    assert len(message) < 500
    assert next(iter(changes)).rstrip("s") in message


def test_numbers_of_thousands_of_digits_are_refused_too() -> None:
    """Python refuses to write them out."""
    for changes in ({"k": 10**5000}, {"k": -(10**5000)}, {"arms": 10**5000}, {"arms": -(10**5000)}):
        with pytest.raises(ProblemError) as error:
            question(**changes)
        assert len(str(error.value)) < 500


@given(epsilon=st.floats(0, 1e100), delta=st.floats(1e-300, 1 - 2**-53))
def test_every_epsilon_and_delta_in_range_is_taken_as_it_is(epsilon: float, delta: float) -> None:
    problem = question(epsilon=epsilon, delta=delta)
    assert (problem.epsilon, problem.delta) == (epsilon, delta)


def test_to_dict_is_plain_data() -> None:
    problem = Problem(
        np.int64(5), np.int64(2), bounded(2), epsilon=1, delta=np.float64(0.1), direction="minimize"
    )
    found = problem.to_dict()
    assert found == {
        "n": 5,
        "k": 2,
        "epsilon": 1.0,
        "delta": 0.1,
        "noise": "bounded:2.0",
        "direction": "minimize",
    }
    assert json.loads(json.dumps(found)) == found


def test_repr_names_every_field_but_not_every_arm() -> None:
    assert repr(Problem(10**4, 3, labels())) == (
        "Problem(n=10000, k=3, epsilon=0.0, delta=0.05, noise='labels', direction='maximize')"
    )


def test_a_problem_is_a_value() -> None:
    assert question() == question()
    assert hash(question()) == hash(question())
    assert question() != question(epsilon=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        question().k = 1  # type: ignore[misc]


def test_a_copy_with_a_change_is_checked_too() -> None:
    assert dataclasses.replace(question(), k=1) == question(k=1)
    with pytest.raises(ProblemError, match="not 7"):
        dataclasses.replace(question(), k=7)


def test_sign() -> None:
    assert question().sign == 1.0
    assert question(direction="minimize").sign == -1.0


# ---- noise: sigma and ranges ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "sigma", "paper", "low", "high"),
    [
        # At k = 9. The paper's scale is kR, R = 1 for labels (a label is within 1 of its mean).
        (gaussian(0.7), 0.7, 0.7, -math.inf, math.inf),
        (bounded(0.5), 9 * 0.5, 9 * 0.5, -4.5, 4.5),
        (bounded(0.5, independent=True), 3 * 0.5, 9 * 0.5, -4.5, 4.5),
        (labels(), 1.5, 9.0, 0.0, 9.0),
        (labels(shared=True), 4.5, 9.0, 0.0, 9.0),
        (total(-1.0, 5.0), 3.0, 3.0, -1.0, 5.0),
    ],
    ids=str,
)
def test_sigma_and_range(noise: Noise, sigma: float, paper: float, low: float, high: float) -> None:
    assert noise.sigma(9) == pytest.approx(sigma, rel=1e-15)
    assert noise.paper_sigma(9) == pytest.approx(paper, rel=1e-15)
    assert noise.range(9) == (low, high)


@given(k=st.integers(1, 1000), R=st.floats(1e-3, 1e3))
def test_independence_never_widens_and_one_arm_has_none_to_gain(k: int, R: float) -> None:
    narrow, wide = bounded(R, independent=True), bounded(R)
    assert narrow.sigma(k) <= wide.sigma(k)
    assert labels().sigma(k) <= labels(shared=True).sigma(k)
    assert narrow.sigma(1) == wide.sigma(1)
    assert labels().sigma(1) == labels(shared=True).sigma(1)
    # The whole range of a total bounds its scale: dependence can do no worse.
    low, high = wide.range(k)
    assert wide.sigma(k) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize(
    ("noise", "possible", "impossible"),
    [
        (gaussian(1.0), [0, -1e100, 1e100], [1.5e100]),
        (bounded(0.5), [-1.5, 1.5, 0.1], [-1.5000001, 1.5000001]),
        (labels(), [0, 3, 2.0], [-1, 4, 1.5, 2.999999]),
        (labels(shared=True), [0, 3], [-1, 4, 0.5]),
        (total(-1.0, 5.0), [-1.0, 5.0, 4.9], [-1.1, 5.1]),
    ],
    ids=str,
)
def test_check_total_at_k_3(noise: Noise, possible: list[float], impossible: list[float]) -> None:
    for value in possible:
        noise.check_total(value, 3)
    for value in impossible:
        with pytest.raises(TotalError) as error:
            noise.check_total(value, 3)
        assert str(value) in str(error.value)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(TotalError, match=f"finite number, not {value!r}"):
            noise.check_total(value, 3)


def test_an_impossible_total_is_answered_with_the_range_and_the_model() -> None:
    with pytest.raises(TotalError, match=r"total 4 is outside 0 \.\. 3, .* noise model labels"):
        labels().check_total(4, 3)


# ---- noise: reading and writing ------------------------------------------------------------------

models = st.one_of(
    st.builds(gaussian, positive),
    st.builds(lambda R, flag: bounded(R, independent=flag), positive, st.booleans()),
    st.builds(lambda flag: labels(shared=flag), st.booleans()),
    st.tuples(finite, finite).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: total(*ends)),
)


@given(models)
def test_text_round_trip(noise: Noise) -> None:
    assert parse_noise(str(noise)) == noise


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("gaussian:1", gaussian(1)),
        (" gaussian:2.5e-1 ", gaussian(0.25)),
        ("bounded:3", bounded(3)),
        ("bounded:3:independent", bounded(3, independent=True)),
        ("labels", labels()),
        ("shared-labels", labels(shared=True)),
        ("total:-1:1", total(-1, 1)),
    ],
)
def test_parse(text: str, noise: Noise) -> None:
    assert parse_noise(text) == noise


@pytest.mark.parametrize(
    "text",
    [
        "",
        "normal:1",
        "Gaussian:1",
        "gaussian:",
        "gaussian:x",
        "gaussian:1:2",
        "gaussian=1",
        "bounded",
        "bounded:1:dependent",
        "bounded:independent",
        "bounded:1:independent:2",
        "gaussian:1:independent",
        "labels:1",
        "labels:shared",
        "shared-labels:",
        "total",
        "total:1",
        "total:0:1:2",
        "total:low:high",
        "total::",
        ":",
    ],
)
def test_malformed_text_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(NoiseError) as error:
        parse_noise(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        *[
            f"{model}:{value}"
            for model in ("gaussian", "bounded")
            for value in ["0", "-1", "nan", "inf"]
        ],
        "bounded:-1:independent",
        "total:1:0",
        "total:1:1",
        "total:nan:1",
        "total:0:nan",
        "total:0:inf",
        "total:-inf:0",
    ],
)
def test_impossible_noise_is_refused_with_the_value(text: str) -> None:
    with pytest.raises(NoiseError) as error:
        parse_noise(text)
    numbers = [float(part) for part in text.split(":")[1:] if part != "independent"]
    assert any(repr(number) in str(error.value) for number in numbers)


@pytest.mark.parametrize(
    "value",
    [0, -1, math.nan, math.inf, "wide", [1.0], pytest.param(10**400, id="10**400")],
)
def test_impossible_scales_are_refused(value: Any) -> None:
    with pytest.raises(NoiseError):
        gaussian(value)
    with pytest.raises(NoiseError):
        bounded(value)


@pytest.mark.parametrize(
    ("low", "high"), [(1, 0), (1, 1), (math.nan, 1), (0, math.inf), ("x", 1), (0, None)]
)
def test_impossible_ranges_are_refused(low: Any, high: Any) -> None:
    with pytest.raises(NoiseError):
        total(low, high)


@pytest.mark.parametrize(
    "build", [lambda: sa.bounded(1, independent="no"), lambda: sa.labels(shared=1)]
)
def test_only_true_and_false_are_statements_about_dependence(build: Any) -> None:
    with pytest.raises(sa.NoiseError, match="must be True or False"):
        build()
