"""Settings from files and the environment: what goes before what, and every slip named."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from superarm.cli import main
from superarm.config import KEYS, duration, in_force, user_file, variable
from superarm.errors import SettingError

MEANS = "arm,mean\na,0.9\nb,0.8\nc,0.3\nd,0.2\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, a user without settings."""
    for key in KEYS:
        monkeypatch.delenv(variable(key), raising=False)
    monkeypatch.setenv("SUPERARM_CONFIG", str(tmp_path / "home" / "config.toml"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("means.csv").write_text(MEANS, encoding="utf-8")
    return tmp_path / "here"


def of_user(text: str) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(text, encoding="utf-8")


def of_folder(text: str) -> None:
    Path("superarm.toml").write_text(text, encoding="utf-8")


def called(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def problem(*words: str) -> Any:
    """What `superarm simulate` understood."""
    result = called("simulate", "--means", "means.csv", "--k", "2", "--format", "json", *words)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["problem"]


def test_the_order_is_option_environment_folder_user_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ("--noise", "labels")
    assert problem(*said, "--epsilon", "1")["delta"] == 0.05
    of_user("delta = 0.1\nepsilon = 0.9\n")
    assert problem(*said)["delta"] == 0.1
    of_folder("delta = 0.2\n")
    assert problem(*said)["delta"] == 0.2
    assert problem(*said)["epsilon"] == 0.9  # each key by itself
    monkeypatch.setenv("SUPERARM_DELTA", "0.3")
    assert problem(*said)["delta"] == 0.3
    assert problem(*said, "--delta", "0.4")["delta"] == 0.4
    monkeypatch.setenv("SUPERARM_DELTA", "")  # as if it were not there
    assert problem(*said)["delta"] == 0.2


def test_what_is_required_may_stand_in_a_file() -> None:
    of_folder('noise = "labels"\nepsilon = 0.5\nformat = "csv"\n')
    result = called("simulate", "--means", "means.csv", "--k", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith("run,pulls,answer")


def test_config_shows_what_is_in_force_and_from_where(monkeypatch: pytest.MonkeyPatch) -> None:
    of_user('worker = "Ann"\nlease = "2h"\ndelta = 0.1\n')
    of_folder("delta = 0.2\nsize = 20\ndecimal-comma = true\n")
    monkeypatch.setenv("SUPERARM_LEASE", "3d")
    result = called("config", "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["settings"] == {
        "worker": {"value": "Ann", "from": str(user_file())},
        "lease": {"value": "3d", "from": "SUPERARM_LEASE"},
        "size": {"value": 20, "from": "superarm.toml"},
        "decimal-comma": {"value": True, "from": "superarm.toml"},
        "delta": {"value": 0.2, "from": "superarm.toml"},
    }
    assert list(found["files"].values()) == [True, True]
    table = called("config").stdout.splitlines()
    assert [line.split()[0] for line in table[2 : 2 + len(KEYS)]] == list(KEYS)
    assert "epsilon               the default" in called("config").stdout
    assert called("config", "--format", "csv").stdout.splitlines()[0] == "setting,value,from"


def test_a_password_is_not_shown() -> None:
    of_folder('store = "postgresql://ann:secret@db/superarm"\n')
    for form in ("table", "json", "csv"):
        shown = called("config", "--format", form).stdout
        assert "secret" not in shown
        assert "postgresql://...@db/superarm" in shown


WRONG = [
    ("epsilom = 0.1", "'epsilom' is no setting; there are decimal-comma, delta, direction"),
    ("[campaign]\nstore = 'x'", "'campaign' is no setting"),
    ("epsilon = '0.1'", "epsilon must be a number, not '0.1'"),
    ("delta = true", "delta must be a number, not True"),
    ("size = 0", "size must be a whole number >= 1, not 0"),
    ("size = 2.0", "size must be a whole number >= 1, not 2.0"),
    ("lease = 90", "lease must be a duration such as 90s, 15m, 2h or 3d, not 90"),
    ("lease = 'long'", "lease must be a duration"),
    ("format = 'xml'", "format must be one of table, json, csv, not 'xml'"),
    ("direction = 'up'", "direction must be one of maximize, minimize"),
    ("worker = ''", "worker must be a text"),
    ("decimal-comma = 'yes'", "decimal-comma must be true or false, not 'yes'"),
    ("epsilon = 0.1 0.2", "no TOML file: "),
    ("epsilon = 1\nepsilon = 2", "no TOML file: "),
]


@pytest.mark.parametrize(("text", "says"), WRONG, ids=lambda value: value[:30])
def test_a_slip_in_a_file_is_one_line_that_names_the_file(text: str, says: str) -> None:
    for write, name in ((of_user, str(user_file())), (of_folder, "superarm.toml")):
        write(text)
        for words in (("config",), ("datasets", "list")):
            result = called(*words)
            assert result.exit_code == 2
            assert result.stdout == ""
            assert result.stderr.startswith(f"Error: {name}: ")
            assert says in result.stderr
        write("")


def test_a_file_that_is_no_text_is_named() -> None:
    Path("superarm.toml").write_bytes(b"\xff\xfe")
    assert "superarm.toml: no TOML file" in called("config").stderr
    Path("superarm.toml").unlink()
    Path("superarm.toml").mkdir()
    assert "superarm.toml: Is a directory" in called("config").stderr


def test_help_and_version_need_no_file() -> None:
    of_folder("epsilom = 1")
    assert called("--help").exit_code == 0
    assert called("--version").exit_code == 0


def test_every_setting_is_an_option_of_some_command() -> None:
    found: set[str] = set()

    def walk(command: click.Command) -> None:
        for option in command.params:
            if isinstance(option, click.Option):
                key = option.opts[0].removeprefix("--")
                if key in KEYS:
                    assert option.envvar == variable(key)
                    found.add(key)
        for inner in getattr(command, "commands", {}).values():
            walk(inner)

    walk(main)
    assert found == set(KEYS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("3d", 259_200),
        (" 1.5 h ", 5400),
        ("3650d", 3650 * 86400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "h",
        "-1h",
        "0s",
        "2w",
        "1h30m",
        "1e3s",
        "nan s",
        "inf s",
        "٣h",
        "3651d",
        "9" * 400 + "d",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(SettingError, match="a duration is a text such as 90s, 15m, 2h or 3d"):
        duration(text)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(SettingError):
        assert 0 < duration(text) <= 3650 * 86400


def test_where_the_users_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert user_file() == tmp_path / "home" / "config.toml"
    monkeypatch.delenv("SUPERARM_CONFIG")
    assert user_file().name == "config.toml"
    assert "superarm" in user_file().parts
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "platformdirs", None)  # without superarm[campaign]
    assert user_file() == tmp_path / "superarm" / "config.toml"


def test_in_force_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_force() == {}
    monkeypatch.setenv("SUPERARM_STORE", "x.db")
    assert in_force()["store"].source == "SUPERARM_STORE"
