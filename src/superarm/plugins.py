"""Algorithms, designs and decision classes by name: ours, and those of other packages.

A package adds its own by entry points, without a change here::

    [project.entry-points."superarm.algorithms"]
    mine = "my_package:MyRule"          # a class derived from superarm.algorithms.Static

    [project.entry-points."superarm.designs"]
    mine = "my_package:MyDesign"        # a class derived from superarm.Design

    [project.entry-points."superarm.decisions"]
    mine = "my_package:build"           # a function of the columns of the arms' file (lists of text
                                        # by header) and of the words after the name, mine:A:B

They are then known to the command line by that name. Names of ours cannot be taken over.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from superarm.errors import SettingError

Kind = Literal["algorithms", "designs", "decisions"]

OURS: dict[str, dict[str, str]] = {
    "algorithms": {
        "certified": "superarm.algorithms:Certified",
        "saqm": "superarm.algorithms:SAQM",
        "sa-foa": "superarm.algorithms:SAFOA",
        "icb": "superarm.algorithms:ICB",
        "exhaustive": "superarm.algorithms:Exhaustive",
        "csar": "superarm.algorithms:CSAR",
        "focused": "superarm.algorithms:Focused",
    },
    "designs": {
        "cyclic": "superarm.design:Cyclic",
        "uniform": "superarm.design:Uniform",
        "g-optimal": "superarm.design:GOptimal",
        "xy-optimal": "superarm.design:XYOptimal",
    },
    "decisions": {
        "paths": "superarm.decision.parse:paths",
        "undirected-paths": "superarm.decision.parse:undirected_paths",
        "spanning-trees": "superarm.decision.parse:spanning_trees",
        "matchings": "superarm.decision.parse:matchings",
        "partition": "superarm.decision.parse:partition",
        "transversal": "superarm.decision.parse:transversal",
    },
}


def names(kind: Kind) -> tuple[str, ...]:
    """Names that are known, ours first; nothing of what they stand for is loaded."""
    return (*OURS[kind], *(name for name in _others(kind) if name not in OURS[kind]))


def load(kind: Kind, name: str) -> Any:
    """Return what a name stands for."""
    if name in OURS[kind]:
        module, _, attribute = OURS[kind][name].partition(":")
        return getattr(import_module(module), attribute)
    others = _others(kind)
    if name not in others:
        known = ", ".join(names(kind))
        raise SettingError(f"{name!r} is none of the {kind} that are known: {known}")
    try:
        return others[name].load()
    except Exception as error:
        place = others[name].value
        raise SettingError(f"{kind[:-1]} {name!r} ({place}) cannot be loaded: {error}") from error


def _others(kind: Kind) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"superarm.{kind}")}
