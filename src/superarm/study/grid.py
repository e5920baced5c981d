"""Tables of a study file: every value that is a list is an axis of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from superarm.errors import SettingError

Schema = Mapping[str, Any]
"""The type of each key; for a table, the schema of its keys."""

FREE: Schema = {}
"""Of a table whose keys are anybody's, and whose values are no axes."""

_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    object: "a text, a number, or true or false",
}


@dataclass(frozen=True)
class Point:
    """One point of a grid: all values, and those among them that come from a list."""

    values: Mapping[str, Any]
    axes: Mapping[str, Any]

    def words(self, first: str) -> str:
        """Return what people call it: a name, and the values that come from other lists."""
        axes = [f"{name}={value}" for name, value in self.axes.items() if value != first]
        return ", ".join([first, *axes])


def check_table(table: Mapping[str, Any], schema: Schema, default: type | None = None) -> None:
    """Raise SettingError for keys that a schema does not know, and values of other types.

    Keys that are not in the schema have the type `default`, where there is one.
    """
    for key, value in table.items():
        kind = schema.get(key, default)
        if kind is None:
            known = ", ".join(schema)
            raise SettingError(f"{key!r} is not a key that is known; there are {known}")
        if isinstance(kind, Mapping):
            if not isinstance(value, Mapping):
                raise SettingError(f"{key} must be a table, as {{name = value}}, not {value!r}")
            check_table(value, kind, object if kind is FREE else None)
        elif isinstance(value, list):
            if not value:
                raise SettingError(f"{key} is an empty list, so that nothing would be run")
            for part in value:
                _check_value(key, part, kind)
        else:
            _check_value(key, value, kind)


def points(table: Mapping[str, Any], most: int) -> Iterator[Point]:
    """Yield the grid of a table: the lists in the order of the file, the last one fastest."""
    flat = list(_options("", table))
    size = math.prod(len(options) for _, options, _ in flat)
    if size > most:
        raise SettingError(f"its lists make {size:,} combinations; at most {most:,} are run")
    for chosen in product(*(options for _, options, _ in flat)):
        named = list(zip(flat, chosen, strict=True))
        values = {name: value for (name, _, _), value in named}
        axes = {name.rpartition(".")[2]: value for (name, _, axis), value in named if axis}
        yield Point(values, axes)


def _options(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], bool]]:
    """Yield the name of each key (with its table's before it), its values, and if it is a list."""
    for key, value in table.items():
        if isinstance(value, Mapping) and key != "labels":
            yield from _options(f"{key}.", value)
        elif isinstance(value, list):
            yield prefix + key, value, True
        else:
            yield prefix + key, [value], False


def _check_value(key: str, value: Any, kind: type) -> None:
    good = isinstance(value, str | int | float)
    if kind in (int, float):
        numbers = (int,) if kind is int else (int, float)
        good = isinstance(value, numbers) and not isinstance(value, bool)
    elif kind is not object:
        good = isinstance(value, kind)
    if not good:
        raise SettingError(f"{key} must be {_WORDS[kind]}, not {value!r}")
