"""A question from the fields of a form: plain answers become a problem and a rule."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass

from superarm._checks import shown
from superarm.algorithms import Algorithm, Certified, Focused
from superarm.errors import NoiseError, ProblemError, SettingError, SuperarmError
from superarm.forecasting import forecast
from superarm.levels import expected_pulls
from superarm.noise import Bounded, Gaussian, Labels, Noise, Total
from superarm.problem import Direction, Problem

Fields = Mapping[str, str]

RULES = {
    "certified": "For any noise; the default",
    "calibrated": "Fewer results, for normal noise only",
    "focused": "In phases that leave decided arms behind; for an exact answer",
}

MOST_FORECAST = 3000
"""With more arms, the forecast does not lay out a plan: it would keep the form waiting."""


@dataclass(frozen=True)
class Cost:
    """What a campaign is expected to take."""

    pulls: int | None
    text: str


def arms_in(text: str) -> list[str]:
    """Return the names in a pasted text: one a line, or the column `arm` of a CSV (or its first).

    Blank lines are left out. A header is known by a first cell that reads arm or name.
    """
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise ProblemError("there are no arms yet: paste their names, one a line")
    if "," not in lines[0] and "\t" not in lines[0]:
        names = [line.strip() for line in lines]
        return names[1:] if names[0].casefold() == "arm" and len(names) > 1 else names
    sign = "\t" if "\t" in lines[0] else ","
    try:
        rows = [
            [cell.strip() for cell in row]
            for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=sign)
        ]
    except csv.Error as error:
        raise ProblemError(f"the arms cannot be read as CSV: {error}") from None
    head = [cell.casefold() for cell in rows[0]]
    place = next((head.index(word) for word in ("arm", "name") if word in head), None)
    body = rows if place is None else rows[1:]
    names = [row[place or 0] for row in body if len(row) > (place or 0)]
    if not names:
        raise ProblemError("there is a header and no arm beneath it")
    return names


def noise_in(fields: Fields, k: int) -> Noise:
    """Return the noise model that the answers describe."""
    kind = fields.get("noise", "")
    if kind == "labels":
        return Labels(shared=fields.get("shared") == "yes")
    if kind == "parts":
        low, high = number_in(fields, "part_low"), number_in(fields, "part_high")
        if low >= high:
            raise NoiseError(f"a part's range needs the lower end first, not {low:g} and {high:g}")
        if fields.get("independent") != "yes":
            return Total(k * low, k * high)
        if low != -high:
            middle, half = (low + high) / 2, (high - low) / 2
            raise NoiseError(
                "for independent parts, measure each from the middle of its range: subtract "
                f"{middle:g} for each member from a total, and state parts from {-half:g} to "
                f"{half:g}"
            )
        return Bounded(high, independent=True)
    if kind == "total":
        return Total(number_in(fields, "total_low"), number_in(fields, "total_high"))
    if kind == "gaussian":
        return Gaussian(number_in(fields, "sigma"))
    raise NoiseError("say what is known of a total: one of the four answers")


def problem_in(fields: Fields, arms: list[str]) -> Problem:
    """Return the problem that a form states."""
    k = whole_in(fields, "k")
    if not 1 <= k <= len(arms):
        raise ProblemError(f"k must be between 1 and the number of arms, {len(arms)}, not {k}")
    direction: Direction = "minimize" if fields.get("direction") == "minimize" else "maximize"
    epsilon = 0.0 if fields.get("near") == "exact" else number_in(fields, "epsilon")
    delta = number_in(fields, "delta")
    return Problem(arms, k, noise_in(fields, k), epsilon=epsilon, delta=delta, direction=direction)


def rule_in(fields: Fields) -> Algorithm:
    """Return the rule that a form names."""
    rule = fields.get("rule") or "certified"
    if rule == "focused":
        return Focused()
    if rule in RULES:
        return Certified(radius="calibrated" if rule == "calibrated" else "levels")
    raise SettingError(f"rule {shown(rule)} is none of {', '.join(RULES)}")


def cost_of(problem: Problem, rule: Algorithm, fields: Fields) -> Cost:
    """Say how many results to expect, and how many days they take."""
    gap = number_in(fields, "gap") if fields.get("gap", "").strip() else None
    if problem.only is not None:
        return Cost(0, "There is only one group: nothing has to be measured.")
    if gap is not None and isinstance(rule, Certified) and problem.n <= MOST_FORECAST:
        found = forecast(problem, rule, _two_kinds(problem, gap), rng=0)
        if found.pulls is None:
            return Cost(None, f"No forecast: {found.reason}.")
        pulls = found.pulls
        text = f"About {pulls:,} results, if each of the best {problem.k} is better by {gap:g}"
    elif problem.epsilon > 0:
        pulls = expected_pulls(problem)
        text = f"Roughly {pulls:,} results"
    else:
        return Cost(
            None,
            "An exact answer takes as long as the differences are small. Say below how much better "
            "the best are, for a forecast.",
        )
    pace = number_in(fields, "pace") if fields.get("pace", "").strip() else 0.0
    if pace > 0:
        days = math.ceil(pulls / pace)
        text += f": {days:,} day{'' if days == 1 else 's'} at {pace:g} a day"
    return Cost(pulls, f"{text}.")


def cheaper(problem: Problem, rule: Algorithm, fields: Fields, cost: Cost) -> str:
    """Say what twice the tolerance would save."""
    if not cost.pulls or problem.epsilon == 0:
        return ""
    wider = Problem(
        problem.arms,
        problem.k,
        problem.noise,
        epsilon=2 * problem.epsilon,
        delta=problem.delta,
        direction=problem.direction,
    )
    try:
        other = cost_of(wider, rule, {**fields, "pace": ""})
    except SuperarmError:
        return ""
    return (
        f"With a tolerance of {wider.epsilon:g} it would be {other.pulls:,}." if other.pulls else ""
    )


def number_in(fields: Fields, name: str) -> float:
    """Return a field's number; a comma may stand for the point."""
    text = fields.get(name, "").strip().replace(",", ".")
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        said = f"not {shown(text)}" if text else "and is empty"
        raise SettingError(f"{_WORDS.get(name, name)} must be a number, {said}")
    return number


def whole_in(fields: Fields, name: str) -> int:
    """Return a field's whole number."""
    number = number_in(fields, name)
    if number != int(number) or abs(number) > 1e15:
        raise SettingError(f"{_WORDS.get(name, name)} must be a whole number, not {number:g}")
    return int(number)


_WORDS = {
    "k": "the size of a group",
    "epsilon": "the tolerance",
    "delta": "how often the answer may be wrong",
    "sigma": "the standard deviation of a total",
    "part_low": "the lower end of a part",
    "part_high": "the upper end of a part",
    "total_low": "the least total",
    "total_high": "the greatest total",
    "gap": "how much better the best are",
    "pace": "the number of results a day",
    "total": "the total",
    "seed": "the seed",
}


def _two_kinds(problem: Problem, gap: float) -> list[float]:
    """Return k means that are better than the others by the gap, in the middle of what may be."""
    low, high = problem.noise.range(problem.k)
    middle = (low + high) / 2 / problem.k if math.isfinite(high - low) else 0.0
    half = problem.sign * abs(gap) / 2
    return [middle + half] * problem.k + [middle - half] * (problem.n - problem.k)
