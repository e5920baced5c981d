"""Study files: ``study.toml`` into a study. Each error names the file, the table and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from superarm._checks import whole
from superarm.algorithms import Algorithm
from superarm.errors import DataError, SettingError
from superarm.plugins import load
from superarm.schedule import parse_schedule
from superarm.simulation.engine import MOST_PULLS
from superarm.study.cells import MOST_CELLS, Cell, Instance, Study
from superarm.study.check import naming
from superarm.study.grid import FREE, Point, Schema, check_table, points
from superarm.study.sources import INSTANCE, instance_at, own_labels, source_of

STUDY: Schema = {
    "title": str,
    "replications": int,
    "rng": int,
    "max_pulls": float,
    "instance": object,
    "algorithm": object,
}
"""The keys of a study file."""

TABLES = ("instance", "algorithm")

ALGORITHM: Schema = {
    "name": str,
    "preset": str,
    "design": str,
    "support": object,
    "blocks": int,
    "schedule": str,
    "labels": FREE,
}
"""The keys of ``[[algorithm]]``, beside the settings of the algorithm itself."""


def read_study(
    path: str | Path, *, replications: int | None = None, rng: int | None = None
) -> Study:
    """Read a study from a TOML file.

    Parameters
    ----------
    replications, rng
        Take the place of what the file says.
    """
    given = _loaded(path)
    with naming(str(path)):
        single = {key: value for key, value in given.items() if key not in TABLES}
        check_table(single, STUDY)
        for key, value in single.items():
            if isinstance(value, list):
                raise SettingError(f"{key} must be one value, not a list")
        max_pulls = _whole_number("max_pulls", given.get("max_pulls", MOST_PULLS))
    tables = {kind: _tables(path, given, kind) for kind in TABLES}
    folder = Path(path).parent
    instances = [
        each
        for number, table in enumerate(tables["instance"], 1)
        for each in _instances(f"{path}, instance {number}", table, folder)
    ]
    rules = [
        each
        for number, table in enumerate(tables["algorithm"], 1)
        for each in _algorithms(f"{path}, algorithm {number}", table)
    ]
    with naming(str(path)):
        size = len(instances) * len(rules)
        if size > MOST_CELLS:
            raise SettingError(f"its grid has {size:,} cells; a study has at most {MOST_CELLS:,}")
        return Study(
            [Cell(place, *rule) for place in instances for rule in rules],
            given.get("replications", 1) if replications is None else replications,
            rng=given.get("rng", 0) if rng is None else rng,
            max_pulls=max_pulls,
            title=given.get("title", ""),
        )


def _loaded(path: str | Path) -> dict[str, Any]:
    if "\0" in str(path):
        raise DataError(f"{path!r} is no file name")
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8 ({error.reason})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: not TOML: {error}") from None


def _tables(path: object, given: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    found = given.get(kind)
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        what = "there is none" if found is None else f"this is {found!r}"
        raise SettingError(f"{path}: a study needs tables [[{kind}]]; {what}")
    if not found:
        raise SettingError(f"{path}: {kind} is an empty list, so that nothing would be run")
    return found


def _instances(place: str, table: Mapping[str, Any], folder: Path) -> Iterator[Instance]:
    with naming(place):
        check_table(table, INSTANCE)
        source = source_of(table)
        grid = list(points(table, MOST_CELLS))
    for point in grid:
        name = point.values.get("name", point.values.get(source, source))
        with naming(f"{place} ({point.words(name)})"):
            instance = instance_at(point, source, folder)
        yield instance


def _algorithms(
    place: str, table: Mapping[str, Any]
) -> Iterator[tuple[Algorithm, dict[str, Any], str]]:
    with naming(place):
        check_table(table, ALGORITHM, default=object)
        if "name" not in table:
            raise SettingError("name is missing, as name = 'icb'")
        grid = list(points(table, MOST_CELLS))
    for point in grid:
        with naming(f"{place} ({point.words(point.values['name'])})"):
            preset = point.values.get("preset", "corrected")
            rule = _algorithm(point, preset)
            labels = own_labels(point.values, point.axes, ("name",))
        yield rule, labels, preset


def _algorithm(point: Point, preset: str) -> Algorithm:
    name = point.values["name"]
    kind: type[Algorithm] = load("algorithms", name)
    of_design = {key: point.values[key] for key in ("support", "blocks") if key in point.values}
    apart = ("name", "preset", "labels", *of_design)
    settings = {key: value for key, value in point.values.items() if key not in apart}
    for key in settings:
        if key not in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            raise SettingError(f"{key!r} is not a setting of {name}")
    if "design" in settings or of_design:
        named = settings.get("design", "cyclic" if "blocks" in of_design else "uniform")
        design = load("designs", named)
        for key in of_design:
            if key not in getattr(design, "__dataclass_fields__", {}):
                raise SettingError(f"{key!r} is not a setting of design {named}")
        settings["design"] = design(**of_design)
    if "schedule" in settings:
        settings["schedule"] = parse_schedule(settings["schedule"])
    return kind.preset(preset, **settings)


def _whole_number(what: str, value: Any) -> int:
    """Return a number such as 1e9 as the whole number that it is."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole(what, value, SettingError, least=1)
