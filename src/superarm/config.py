"""Settings of a user or of a folder, in TOML: what options are if nothing else is said.

The order is: the option itself, the environment (SUPERARM_EPSILON, say), superarm.toml in the
folder, config.toml in the user's folder (or the file that SUPERARM_CONFIG names), the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superarm._checks import shown
from superarm.errors import SettingError

LOCAL = "superarm.toml"
"""The name of the settings of a folder."""

PREFIX = "SUPERARM_"

VARIABLE = "SUPERARM_CONFIG"
"""Names another file in the place of the user's own."""

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

LONGEST = 3650 * SECONDS["d"]
"""No duration is longer: ten years."""


def duration(text: str) -> float:
    """Return seconds, of a text such as 90s, 15m, 2h or 3d.

    >>> duration("15m")
    900.0
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhd])", text.strip(), re.ASCII)
    seconds = 0.0 if found is None else float(found[1]) * SECONDS[found[2]]
    if not 0 < seconds <= LONGEST:
        raise SettingError(f"a duration is a text such as 90s, 15m, 2h or 3d, not {shown(text)}")
    return seconds


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _span(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return duration(value) > 0
    except SettingError:
        return False


def _one_of(*names: str) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {', '.join(names)}", lambda value: value in names


KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "store": ("a text", _text),
    "worker": ("a text", _text),
    "site": ("a text", _text),
    "lease": ("a duration such as 90s, 15m, 2h or 3d", _span),
    "size": ("a whole number >= 1", _count),
    "format": _one_of("table", "json", "csv"),
    "decimal-comma": ("true or false", lambda value: isinstance(value, bool)),
    "noise": ("a text", _text),
    "epsilon": ("a number", _number),
    "delta": ("a number", _number),
    "direction": _one_of("maximize", "minimize"),
}
"""What can be set, with what its value must be; each is the long name of an option."""


@dataclass(frozen=True)
class Setting:
    """A value, and where it comes from: a path, or the name of a variable."""

    value: Any
    source: str


def variable(key: str) -> str:
    """Return the environment variable that sets a key."""
    return PREFIX + key.upper().replace("-", "_")


def user_file() -> Path:
    """Return the path of the user's own settings, whether or not there are any."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    try:
        from platformdirs import user_config_path
    except ModuleNotFoundError:  # it comes with superarm[campaign]
        folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return Path(folder) / "superarm" / "config.toml"
    return user_config_path("superarm", appauthor=False) / "config.toml"


def from_files() -> dict[str, Setting]:
    """Return what the files set; that of the folder goes before that of the user."""
    return {**_read(user_file()), **_read(Path(LOCAL))}


def in_force() -> dict[str, Setting]:
    """Return all that is set: by the environment or, where it is silent, by the files."""
    found = from_files()
    for key in KEYS:
        value = os.environ.get(variable(key))
        if value:
            found[key] = Setting(value, variable(key))
    return found


def _read(path: Path) -> dict[str, Setting]:
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: no TOML file: {error}") from None
    for key, value in values.items():
        if key not in KEYS:
            raise SettingError(
                f"{path}: {shown(key)} is no setting; there are {', '.join(sorted(KEYS))}"
            )
        words, fits = KEYS[key]
        if not fits(value):
            raise SettingError(f"{path}: {key} must be {words}, not {shown(value)}")
    return {key: Setting(value, str(path)) for key, value in values.items()}
