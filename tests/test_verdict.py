"""A verdict's text is the message that a person reads; its JSON is strict, its HTML is safe."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm import (
    ICB,
    SAFOA,
    SAQM,
    Certificate,
    Exhaustive,
    Identification,
    Problem,
    Verdict,
    environment,
    gaussian,
    labels,
    simulate,
)
from superarm.algorithms import Static

DESIGN = {"kind": "uniform", "source": "random", "support": 24}
KEYS = [
    "algorithm",
    "answer",
    "done",
    "pulls",
    "look",
    "phase",
    "gap",
    "epsilon",
    "radius",
    "certificate",
    "reason",
    "forecast",
    "confidence",
    "design",
    "warnings",
]
CERTIFICATE_KEYS = [
    "epsilon",
    "delta",
    "noise",
    "sigma",
    "seed",
    "look",
    "pulls",
    "bound",
    "design",
    "conditions",
]

measuring = Verdict(
    algorithm="saqm",
    answer=("Ann", "Cy"),
    done=False,
    pulls=1200,
    look=57,
    phase=1,
    gap=0.25,
    epsilon=0.5,
    radius=1.3333333,
    certificate=None,
    reason="the stop is not reached yet",
    forecast=2345,
    design=DESIGN,
)
waiting = replace(
    measuring,
    answer=(),
    pulls=0,
    look=0,
    gap=0.0,
    radius=math.inf,
    reason="the first look comes after 36 pulls",
    forecast=None,
)
certified = replace(
    measuring,
    done=True,
    gap=1.0,
    certificate=Certificate(
        0.5, 0.05, "labels", 0.7, 3, 57, 1200, "ellipsoid (Proposition 1)", DESIGN
    ),
    reason="",
    forecast=0,
)
heuristic = replace(
    certified, certificate=None, reason="alpha = 0.9 is assumed, not proved (heuristic)"
)
limited = replace(
    measuring, done=True, reason="the limit of 1,200 pulls came before the stop", forecast=None
)
states = pytest.mark.parametrize(
    "verdict",
    [waiting, measuring, certified, heuristic, limited],
    ids=["waiting", "measuring", "certified", "heuristic", "limited"],
)


def strictly(text: str) -> Any:
    """Parse JSON as the standard has it: without NaN and Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


# ---- the sentence --------------------------------------------------------------------------------


def test_before_the_first_look() -> None:
    assert str(waiting) == "No answer yet: the first look comes after 36 pulls."


def test_while_measuring_it_forecasts() -> None:
    assert str(measuring) == (
        "Measure on: best so far Ann, Cy after 1,200 pulls (look 57); "
        "gap + epsilon 0.75, radius 1.333; about 2,345 more pulls expected."
    )
    assert str(replace(measuring, forecast=None)) == (
        "Measure on: best so far Ann, Cy after 1,200 pulls (look 57); "
        "gap + epsilon 0.75, radius 1.333."
    )


def test_certified() -> None:
    assert certified.certified
    assert str(certified) == (
        "Stop: Ann, Cy after 1,200 pulls (look 57): within 0.5 of the best with probability "
        ">= 0.95 (gap + epsilon 1.5, radius 1.333; ellipsoid (Proposition 1))."
    )


def test_certified_without_an_epsilon_is_a_best_group() -> None:
    certificate = Certificate(
        0.0, 0.01, "labels", 0.7, 3, 57, 1200, "independent (Lemma 1)", DESIGN
    )
    assert str(replace(certified, epsilon=0.0, gap=1.5, certificate=certificate)) == (
        "Stop: Ann, Cy after 1,200 pulls (look 57): a best group with probability "
        ">= 0.99 (gap + epsilon 1.5, radius 1.333; independent (Lemma 1))."
    )


def test_a_heuristic_stop_says_that_it_proves_nothing() -> None:
    assert not heuristic.certified
    assert str(heuristic) == (
        "Stop: Ann, Cy after 1,200 pulls (look 57), not certified: alpha = 0.9 is assumed, "
        "not proved (heuristic) (gap + epsilon 1.5, radius 1.333)."
    )


def test_a_limit_is_named() -> None:
    assert str(limited) == (
        "Stop: Ann, Cy after 1,200 pulls (look 57), not certified: the limit of 1,200 pulls "
        "came before the stop (gap + epsilon 0.75, radius 1.333)."
    )


def test_long_answers_are_shortened_in_the_sentence_only() -> None:
    names = tuple(f"w{i}" for i in range(1, 14))
    long = replace(measuring, answer=names)
    assert "w1, w2, w3, w4, w5, w6, w7, w8, w9, w10 and 3 more after" in str(long)
    assert long.to_dict()["answer"] == list(names)
    assert "w11, w12 after" in str(replace(measuring, answer=names[:12]))


# ---- JSON ----------------------------------------------------------------------------------------


@states
def test_json_has_every_key_and_round_trips(verdict: Verdict) -> None:
    found = strictly(verdict.to_json())
    assert list(found) == KEYS
    assert found == verdict.to_dict()
    if verdict.certificate is not None:
        assert list(found["certificate"]) == CERTIFICATE_KEYS


def test_json_values() -> None:
    assert strictly(certified.to_json()) == {
        "algorithm": "saqm",
        "answer": ["Ann", "Cy"],
        "done": True,
        "pulls": 1200,
        "look": 57,
        "phase": 1,
        "gap": 1.0,
        "epsilon": 0.5,
        "radius": 1.3333333,
        "certificate": {
            "epsilon": 0.5,
            "delta": 0.05,
            "noise": "labels",
            "sigma": 0.7,
            "seed": 3,
            "look": 57,
            "pulls": 1200,
            "bound": "ellipsoid (Proposition 1)",
            "design": DESIGN,
            "conditions": [],
        },
        "reason": "",
        "forecast": 0,
        "confidence": None,
        "design": DESIGN,
        "warnings": [],
    }


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_become_null(value: float) -> None:
    found = strictly(replace(measuring, gap=value, radius=value).to_json())
    assert found["gap"] is None
    assert found["radius"] is None


def test_json_keeps_any_name() -> None:
    names = ('say "hi"', "Zoë\n", "a, b", "\N{SNOWMAN}")
    assert strictly(replace(measuring, answer=names).to_json())["answer"] == list(names)


# ---- HTML ----------------------------------------------------------------------------------------


class Table(HTMLParser):
    """Collects the tags, and the rows' texts by their heading."""

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self)
        self.tags: set[str] = set()
        self.rows: dict[str, str] = {}
        self.caption = ""
        self._open: list[str] = []
        self._heading = ""
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        match self._open[-1]:
            case "caption":
                self.caption += data
            case "th":
                self._heading = data
            case "td":
                self.rows[self._heading] = self.rows.get(self._heading, "") + data


@states
def test_html_says_what_the_sentence_says(verdict: Verdict) -> None:
    table = Table(verdict._repr_html_())
    assert table.tags == {"table", "caption", "tr", "th", "td"}
    assert table.caption == "saqm"
    assert table.rows["answer"] == (", ".join(verdict.answer) or "none yet")
    assert table.rows["state"] == ("stop" if verdict.done else "measure on")
    assert table.rows["certificate"] == (
        "within 0.5 of the best with probability at least 0.95, by ellipsoid (Proposition 1)"
        if verdict.certified
        else f"no: {verdict.reason}"
    )
    assert table.rows["pulls"].startswith(f"{verdict.pulls:,} ")
    assert table.rows["pulls still expected"] == (
        "unknown" if verdict.forecast is None else f"{verdict.forecast:,}"
    )


def test_html_escapes_names() -> None:
    names = ("<b>", "R&D", "<script>alert(1)</script>", 'O\'Hara "Jo"')
    text = replace(measuring, answer=names)._repr_html_()
    assert "&lt;b&gt;, R&amp;D, &lt;script&gt;" in text
    table = Table(text)
    assert table.tags == {"table", "caption", "tr", "th", "td"}
    assert table.rows["answer"] == ", ".join(names)


def test_html_escapes_reasons_and_algorithms() -> None:
    table = Table(replace(measuring, reason="1 < 2 & <i>so</i>", algorithm="<mine>")._repr_html_())
    assert table.tags == {"table", "caption", "tr", "th", "td"}
    assert table.rows["certificate"] == "no: 1 < 2 & <i>so</i>"
    assert table.caption == "<mine>"


# ---- as the drivers make them --------------------------------------------------------------------

MEANS = [0.9, 0.8, 0.4, 0.3, 0.1]
ARMS = ["<b>", "b", "c", "d", "e"]


def question(**changes: Any) -> Problem:
    return Problem(ARMS, 2, labels(), **{"epsilon": 0.5, **changes})


def test_no_look_yet() -> None:
    verdict = Identification(question(), rng=1).verdict
    assert str(verdict) == "No answer yet: the first look comes after 10 pulls."
    found = strictly(verdict.to_json())
    assert found["radius"] is None
    assert (found["answer"], found["done"], found["pulls"]) == ([], False, 0)
    assert Table(verdict._repr_html_()).rows["radius"] == "inf"


def test_nothing_to_measure() -> None:
    verdict = Identification(Problem(ARMS, 5, labels())).verdict
    assert str(verdict) == (
        "Stop: <b>, b, c, d, e after 0 pulls (look 0): a best group with probability >= 0.95 "
        "(gap + epsilon inf, radius 0; the only group)."
    )
    assert strictly(verdict.to_json())["gap"] is None


@pytest.mark.parametrize(
    ("algorithm", "bound"),
    [
        (SAQM(), "ellipsoid (Proposition 1)"),
        (SAQM(alpha="spectral", constants="paper"), "ellipsoid (Proposition 1, as printed)"),
        (SAQM(alpha="theorem"), "ellipsoid (Proposition 1)"),
        (ICB(), "independent (Lemma 1)"),
        (ICB(radius="ellipsoid"), "ellipsoid (Proposition 1)"),
        (Exhaustive(), "ellipsoid (Proposition 1)"),
    ],
    ids=lambda value: getattr(value, "name", "bound"),
)
def test_a_certificate_states_what_was_certified(algorithm: Static, bound: str) -> None:
    verdict = simulate(question(), algorithm, environment(MEANS, labels()), rng=1).verdict
    assert verdict.certificate is not None
    assert verdict.certificate.to_dict() == {
        "epsilon": 0.5,
        "delta": 0.05,
        "noise": "labels",
        "sigma": algorithm.scale(question()),
        "seed": 1,
        "look": verdict.look,
        "pulls": verdict.pulls,
        "bound": bound,
        "design": dict(verdict.design),
        "conditions": [],
    }
    assert verdict.design["support"] == 10
    assert len(verdict.design["digest"]) == 16
    assert verdict.gap + verdict.epsilon >= verdict.radius
    assert (verdict.reason, verdict.forecast) == ("", 0)
    assert str(verdict).startswith("Stop: <b>, b after ")
    assert strictly(verdict.to_json())["certificate"]["bound"] == bound
    assert "<b>" not in verdict._repr_html_()


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        (SAQM(alpha=0.9), "alpha = 0.9 is assumed, not proved"),
        (SAQM(alpha=1), "alpha = 1 is assumed, not proved"),
        (SAFOA(), "SA-FOA is a heuristic"),
        (SAFOA(threshold=0.5), "SA-FOA is a heuristic"),
        (ICB(constants="paper"), "Lemma 1, as printed, does not hold at level delta"),
    ],
    ids=lambda value: getattr(value, "name", "reason"),
)
def test_a_stop_without_proof_carries_no_certificate(algorithm: Static, reason: str) -> None:
    verdict = simulate(question(), algorithm, environment(MEANS, labels()), rng=1).verdict
    assert verdict.done
    assert verdict.certificate is None
    assert reason in verdict.reason
    assert "not certified: " + verdict.reason in str(verdict)
    assert strictly(verdict.to_json())["reason"] == verdict.reason


@pytest.mark.parametrize("algorithm", [SAQM(), SAFOA(), ICB(), Exhaustive()], ids=lambda a: a.name)
def test_a_tie_ends_at_the_limit_with_an_answer_and_the_reason(algorithm: Static) -> None:
    tied = environment([0.9, 0.5, 0.5, 0.1, 0.1], gaussian(1))
    problem = Problem(ARMS, 2, gaussian(1))
    run = simulate(problem, algorithm, tied, rng=1, max_pulls=3000)
    verdict = run.verdict
    assert (verdict.done, verdict.certificate, run.pulls, verdict.pulls) == (True, None, 3000, 3000)
    assert verdict.reason == "the limit of 3,000 pulls came before the stop"
    assert verdict.gap + verdict.epsilon <= verdict.radius
    assert len(verdict.answer) == 2
    assert str(verdict).startswith("Stop: ")
    assert "after 3,000 pulls" in str(verdict)


@pytest.mark.parametrize(
    "algorithm",
    [
        SAFOA(threshold=np.float64(1.0)),
        SAQM(alpha=np.float64(0.9)),
        SAFOA(draws=np.int64(2)),
    ],
    ids=["threshold", "alpha", "draws"],
)
def test_settings_from_numpy_give_json_too(algorithm: Static) -> None:
    problem = question(epsilon=np.float64(0.5), delta=np.float64(0.05))
    verdict = simulate(problem, algorithm, environment(MEANS, labels()), rng=1).verdict
    assert strictly(verdict.to_json())["done"] is True


def test_a_forecast_comes_true_within_a_factor() -> None:
    # Noise far below the gap: the estimates stay as they are, so that the forecast is nearly exact.
    problem = Problem(ARMS, 2, gaussian(0.5), epsilon=0.05)
    seen: list[Verdict] = []
    world = environment(MEANS, gaussian(0.5))
    end = simulate(problem, ICB(), world, rng=1, watch=seen.append).pulls
    halfway = [v for v in seen if end / 2 <= v.pulls < end and v.forecast is not None]
    assert halfway
    for verdict in halfway:
        assert verdict.forecast is not None
        assert verdict.pulls + verdict.forecast == pytest.approx(end, rel=0.3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "nearness", "confidence"),
    [
        (0.5, 0.05, "within 0.5 of the best", "0.95"),
        (0.12345649, 1e-7, "within 0.12345649 of the best", "0.9999999"),
        (0.1, 1e-30, "within 0.1 of the best", "1 - 1e-30"),
        (0.0, 0.1, "a best group", "0.9"),
    ],
)
def test_the_sentence_claims_no_more_than_was_proved(
    epsilon: float, delta: float, nearness: str, confidence: str
) -> None:
    problem = sa.Problem(3, 1, sa.gaussian(1e-3), epsilon=epsilon, delta=delta)
    world = sa.environment([3, 2, 1], problem.noise)
    verdict = sa.simulate(problem, sa.ICB(), world, rng=1).verdict
    assert f"{nearness} with probability >= {confidence} (" in str(verdict)
    assert f"probability at least {confidence}, by" in verdict._repr_html_()


# ---- warnings ------------------------------------------------------------------------------------


def test_warnings_are_said_everywhere_and_change_nothing_else() -> None:
    warned = replace(measuring, warnings=("Totals <drift>.", "pull 3 is far off."))
    assert str(warned) == f"{measuring} Warning: Totals <drift>. Warning: pull 3 is far off."
    assert warned.to_dict() == {**measuring.to_dict(), "warnings": list(warned.warnings)}
    assert json.loads(warned.to_json())["warnings"] == list(warned.warnings)
    rows = Table(warned._repr_html_()).rows
    assert (rows["warning 1"], rows["warning 2"]) == warned.warnings
    assert not any("warning" in name for name in Table(measuring._repr_html_()).rows)
