"""What is known of a cell before it runs: its columns, and the words that tell it from others."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from superarm.algorithms import Algorithm
from superarm.problem import Problem

Label = str | int | float | bool
Facts = Mapping[str, Any]

COLUMNS: dict[str, type] = {
    "study": str,
    "cell": int,
    "replication": int,
    "seed": int,
    "instance": str,
    "algorithm": str,
    "preset": str,
    "settings": str,
    "n": int,
    "k": int,
    "class": str,
    "epsilon": float,
    "delta": float,
    "noise": str,
    "direction": str,
    "max_pulls": int,
    "design": str,
    "support": int,
    "digest": str,
    "pulls": int,
    "bound": float,
    "pulls_over_bound": float,
    "answer": str,
    "regret": float,
    "wrong": bool,
    "certified": bool,
    "epsilon_reached": float,
    "confidence": float,
    "reason": str,
    "look": int,
    "seconds": float,
    "superarm": str,
    "numpy": str,
    "numba": str,
    "scipy": str,
    "python": str,
}
"""The columns of every table, with the types of their values. Labels come after `preset`."""

TELLING = ("preset", "k", "class", "epsilon", "delta", "noise", "direction")
"""Columns that tell one cell from another, beside the names, the labels and the settings."""

READ = (
    *("study", "cell", "instance", "algorithm", "settings", *TELLING),
    *("pulls", "wrong", "certified", "seconds"),
)
"""Columns without which a table is not taken for a study's: what its summary is made of."""


def cell_facts(
    instance: str,
    algorithm: Algorithm,
    preset: str,
    problem: Problem,
    labels: Mapping[str, Label],
) -> Facts:
    """Return what all rows of a cell have in common; labels and settings stay on their own."""
    return {
        "instance": instance,
        "algorithm": algorithm.name,
        "preset": preset,
        "labels": labels,
        "settings": algorithm.settings(),
        "n": problem.n,
        "k": problem.k,
        "class": type(problem.decision).__name__,
        "epsilon": problem.epsilon,
        "delta": problem.delta,
        "noise": str(problem.noise),
        "direction": problem.direction,
    }


def compact(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON without spaces."""
    return json.dumps(settings, separators=(",", ":"))


def distinctions(cells: Sequence[Facts]) -> list[dict[str, Any]]:
    """Return for each cell what differs among cells of the same instance and algorithm."""
    alike: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    traits = [_traits(facts) for facts in cells]
    for facts, own in zip(cells, traits, strict=True):
        alike[facts["instance"], facts["algorithm"]].append(own)
    differing = {key: _differing(group) for key, group in alike.items()}
    return [
        {
            name: value
            for name, value in own.items()
            if name in differing[facts["instance"], facts["algorithm"]]
        }
        for facts, own in zip(cells, traits, strict=True)
    ]


def descriptions(cells: Sequence[Facts]) -> list[str]:
    """Return a short text for each cell, as ``icb on IT, epsilon=0.5``."""
    return [
        ", ".join(
            [f"{facts['algorithm']} on {facts['instance']}"]
            + [f"{name}={value}" for name, value in own.items()]
        )
        for facts, own in zip(cells, distinctions(cells), strict=True)
    ]


def telling_columns(cells: Sequence[Facts]) -> list[dict[str, Any]]:
    """Return for each cell the names, and under the same headings in all what tells them apart."""
    headings = list(dict.fromkeys(name for own in distinctions(cells) for name in own))
    return [
        {
            "instance": facts["instance"],
            "algorithm": facts["algorithm"],
            **{name: own.get(name) for name in headings},
        }
        for facts, own in zip(cells, map(_traits, cells), strict=True)
    ]


def _traits(facts: Facts) -> dict[str, Any]:
    return {
        **facts["labels"],
        **{name: facts[name] for name in TELLING},
        **{name: value for name, value in facts["settings"].items() if name not in facts["labels"]},
    }


def _differing(group: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names whose values are not the same in all of a group (one that is missing is another)."""
    nothing = object()
    names = {name for own in group for name in own}
    return {name for name in names if len({repr(own.get(name, nothing)) for own in group}) > 1}
