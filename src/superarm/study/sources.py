"""Instances of a study file: where the arms come from, and which question is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from superarm.datasets import crowd, quiz_name, read_arms
from superarm.decision import Decision
from superarm.decision.parse import parse_decision
from superarm.errors import SettingError
from superarm.noise import Noise, parse_noise
from superarm.problem import Problem
from superarm.simulation.environments import Environment, environment
from superarm.study.cells import Instance
from superarm.study.facts import COLUMNS, Label
from superarm.study.grid import FREE, Point, Schema

SYNTHETIC: Schema = {"n": int, "k": int, "gap": float}

INSTANCE: Schema = {
    "name": str,
    "crowd": str,
    "means": str,
    "synthetic": SYNTHETIC,
    "replay": str,
    "instance_rng": int,
    "k": int,
    "class": str,
    "epsilon": float,
    "delta": float,
    "noise": str,
    "direction": str,
    "labels": FREE,
}
"""The keys of ``[[instance]]``."""


@dataclass(frozen=True)
class Arms:
    """Arms from one of the sources, and how totals of them come about under a noise model."""

    name: str
    arms: int | Sequence[str]
    totals: Callable[[Noise], Environment]
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    k: int | None = None
    labels: Mapping[str, Label] = field(default_factory=dict)


def _crowd(values: Mapping[str, Any], folder: Path) -> Arms:
    """The shares of right answers of a quiz."""
    found = crowd(values["crowd"])
    return Arms(
        quiz_name(values["crowd"]),
        found.arms,
        lambda noise: environment(found.means, noise),
        {"arm": found.arms},
    )


def _means(values: Mapping[str, Any], folder: Path) -> Arms:
    """A file of means; its path is relative to the study file."""
    table = read_arms(folder / values["means"], "mean")
    means = table.numbers("mean")
    return Arms(
        Path(values["means"]).stem,
        table.column("arm"),
        lambda noise: environment(means, noise),
        table.columns(),
    )


def _synthetic(values: Mapping[str, Any], folder: Path) -> Arms:
    """The paper's synthetic means."""
    from superarm.simulation.synthetic import synthetic

    for key in SYNTHETIC:
        if f"synthetic.{key}" not in values:
            raise SettingError(f"synthetic needs {key}, as {{n = 10, k = 5, gap = 0.1}}")
    n, k, gap = (values[f"synthetic.{key}"] for key in SYNTHETIC)
    means = synthetic(n, k, gap, rng=values.get("instance_rng", 0))
    labels: dict[str, Label] = {"gap": gap}
    return Arms("synthetic", n, lambda noise: environment(means, noise), {}, k, labels)


def _replay(values: Mapping[str, Any], folder: Path) -> Arms:
    """The raw answers of a quiz, from where `superarm datasets fetch` keeps them."""
    from superarm.answers import quiz_answers
    from superarm.simulation.replay import Replay

    found = quiz_answers(values["replay"])
    return Arms(
        f"{quiz_name(values['replay'])} replay",
        found.workers,
        lambda noise: Replay(found.right),
        {"arm": found.workers},
    )


SOURCES: dict[str, Callable[[Mapping[str, Any], Path], Arms]] = {
    "crowd": _crowd,
    "means": _means,
    "synthetic": _synthetic,
    "replay": _replay,
}
"""Each reads the arms that its key of ``[[instance]]`` names; a table's keys are ``table.key``."""


def source_of(table: Mapping[str, Any]) -> str:
    """Return the one key of a table that says where the arms come from."""
    given = [key for key in SOURCES if key in table]
    if len(given) != 1:
        found = f"; there are {' and '.join(given)}" if given else ""
        raise SettingError(f"say where the arms come from, by one of {', '.join(SOURCES)}{found}")
    if "instance_rng" in table and given[0] != "synthetic":
        raise SettingError("instance_rng draws synthetic arms, and these are not")
    if "noise" not in table:
        raise SettingError("noise is missing, as noise = 'labels'")
    return given[0]


def instance_at(point: Point, source: str, folder: Path) -> Instance:
    """Return the instance at one point of a grid."""
    values = point.values
    arms = SOURCES[source](values, folder)
    noise = parse_noise(values["noise"])
    problem = Problem(
        arms.arms,
        _groups(values, arms),
        noise,
        epsilon=values.get("epsilon", 0.0),
        delta=values.get("delta", 0.05),
        direction=values.get("direction", "maximize"),
    )
    name = values.get("name", arms.name)
    skipped = ("name",) if "name" in values else ("name", source)  # then the name shows the source
    labels = own_labels(values, {**arms.labels, **point.axes}, skipped)
    return Instance(name, problem, arms.totals(noise), labels)


def own_labels(
    values: Mapping[str, Any], axes: Mapping[str, Label], skipped: Sequence[str]
) -> dict[str, Label]:
    """Return the labels that are stated, and the axes that no column of every study shows."""
    stated = dict(values.get("labels", {}))
    for name, value in axes.items():
        if name in stated:
            raise SettingError(f"label {name!r} is an axis of the grid too; take another name")
        if name not in COLUMNS and name not in skipped:
            stated[name] = value
    return stated


def _groups(values: Mapping[str, Any], arms: Arms) -> int | Decision:
    given = [key for key in ("k", "class") if key in values]
    if arms.k is not None:
        if given:
            raise SettingError(f"{given[0]} is not for synthetic arms, which have their own k")
        return arms.k
    if len(given) != 1:
        raise SettingError("say which groups may be chosen: either k, or class")
    if "k" in values:
        return int(values["k"])
    return parse_decision(values["class"], arms.columns)
