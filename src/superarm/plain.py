"""Questions and rules as plain data, and back: what a campaign writes down of itself.

An object is its class's name and the arguments it is made from, so that the constructor checks
again all that was written. Only classes of ours, and algorithms and designs of plug-ins by the name
that they are known by, are ever made from data.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

import superarm.decision as decisions
import superarm.design as designs
from superarm import algorithms, schedule
from superarm.algorithms import Algorithm
from superarm.decision import CustomMatroid, Decision
from superarm.design import Design
from superarm.errors import DataError, SettingError, SuperarmError
from superarm.noise import Noise, parse_noise
from superarm.plugins import Kind, load, names
from superarm.problem import Problem
from superarm.schedule import Schedule

_KINDS = (Algorithm, Design, Decision, Schedule)
_ROOMS: tuple[Kind, ...] = ("algorithms", "designs")


def problem_to_plain(problem: Problem) -> dict[str, Any]:
    """Return a question as plain data, with the names of its arms."""
    return {
        "arms": list(problem.arms),
        "decision": to_plain(problem.decision),
        "noise": str(problem.noise),
        "epsilon": problem.epsilon,
        "delta": problem.delta,
        "direction": problem.direction,
    }


def problem_from_plain(data: Any) -> Problem:
    """Return the question that `problem_to_plain` wrote."""
    try:
        return Problem(
            data["arms"],
            from_plain(data["decision"]),
            parse_noise(data["noise"]),
            epsilon=data["epsilon"],
            delta=data["delta"],
            direction=data["direction"],
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"this is no question: {error} is missing or of the wrong kind") from None


def to_plain(value: Any) -> Any:
    """Return an algorithm, design, schedule or decision class, or a part of one, as plain data."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, tuple | list):
        return [to_plain(part) for part in value]
    if isinstance(value, Noise):
        return {"noise": str(value)}
    if isinstance(value, CustomMatroid) or not isinstance(value, _KINDS):
        raise SettingError(f"a {type(value).__name__} cannot be written down in a campaign")
    arguments = {name: to_plain(getattr(value, name)) for name in _arguments(type(value))}
    return {"class": _name_of(type(value)), **arguments}


def from_plain(data: Any) -> Any:
    """Return what `to_plain` was given."""
    if isinstance(data, list):
        return tuple(from_plain(part) for part in data)
    if not isinstance(data, dict):
        return data
    if "array" in data:
        return np.array(data["array"], dtype=np.float64)
    if "noise" in data:
        return parse_noise(data["noise"])
    arguments = {name: from_plain(part) for name, part in data.items() if name != "class"}
    kind = _class_of(str(data.get("class")))
    if "capacities" in arguments:  # of a partition: the pairs of a dict
        arguments["capacities"] = dict(arguments["capacities"])
    try:
        return kind(**arguments)
    except TypeError as error:
        raise DataError(f"{data['class']}: {error}") from None


def _arguments(kind: type) -> list[str]:
    if is_dataclass(kind) and "__init__" not in vars(kind):
        return [part.name for part in fields(kind) if part.init]
    return [name for name in inspect.signature(kind).parameters]


@cache
def _ours() -> dict[str, type]:
    return {
        name: kind
        for room in (algorithms, designs, decisions, schedule)
        for name, kind in vars(room).items()
        if isinstance(kind, type) and issubclass(kind, _KINDS) and not inspect.isabstract(kind)
    }


def _name_of(kind: type) -> str:
    if _ours().get(kind.__name__) is kind:
        return kind.__name__
    for room in _ROOMS:
        for name in names(room):
            if load(room, name) is kind:
                return f"{room}:{name}"
    raise SettingError(
        f"a {kind.__name__} cannot be written down in a campaign: it is neither ours nor a plug-in "
        "that is known by a name"
    )


def _class_of(name: str) -> Any:
    if name in _ours():
        return _ours()[name]
    for room in _ROOMS:
        if name.startswith(f"{room}:"):
            try:
                return load(room, name.removeprefix(f"{room}:"))
            except SuperarmError as error:
                raise DataError(str(error)) from None
    raise DataError(f"{name!r} is no class that this version of superarm knows")
