"""The public names: complete, documented, loaded when first used; errors in one tree."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import superarm
from superarm import SuperarmError, errors

SOURCE = Path(superarm.__file__)
FOUND = [m.name for m in pkgutil.walk_packages(superarm.__path__, "superarm.")]
MODULES = ["superarm", *(name for name in FOUND if ".migrations" not in name)]  # Alembic runs those
ERRORS = [found for _, found in inspect.getmembers(errors, inspect.isclass)]


def in_fresh_python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# ---- names ---------------------------------------------------------------------------------------


def test_all_is_what_can_be_loaded() -> None:
    listed = [name for names in superarm._HOMES.values() for name in names]
    assert len(listed) == len(set(listed))
    assert sorted(superarm.__all__) == sorted(listed)


def test_all_is_what_type_checkers_see() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == sorted(superarm.__all__)
    assert seen == {name: f"superarm.{home}" for name, home in superarm._HOME_OF.items()}


@pytest.mark.parametrize("name", superarm.__all__)
def test_every_name_is_the_one_of_its_home(name: str) -> None:
    home = importlib.import_module(f"superarm.{superarm._HOME_OF[name]}")
    assert getattr(superarm, name) is getattr(home, name)
    assert name in dir(superarm)


def test_star_import_brings_exactly_these() -> None:
    namespace: dict[str, Any] = {}
    exec("from superarm import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(superarm.__all__)


def test_no_name_hides_a_module() -> None:
    # Importing superarm.x sets the attribute x of superarm: a function x would be gone.
    modules = {module.name for module in pkgutil.iter_modules(superarm.__path__)}
    assert modules & set(superarm.__all__) == set()


@pytest.mark.parametrize("home", [name for name in MODULES if "__main__" not in name])
def test_every_listed_name_of_every_module_exists(home: str) -> None:
    module = importlib.import_module(home)
    listed = getattr(module, "__all__", [])
    assert [name for name in listed if not hasattr(module, name)] == []
    assert len(listed) == len(set(listed))


def test_version() -> None:
    assert superarm.__version__ == version("superarm")
    assert re.fullmatch(r"\d+\.\d+\.\d+", superarm.__version__)
    assert "__version__" in dir(superarm)


@pytest.mark.parametrize("name", ["Problems", "problem_", "__wrapped__", "numpy", "import_"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'superarm' has no attribute '{name}'"):
        getattr(superarm, name)
    with pytest.raises(ImportError):
        exec(f"from superarm import {name}")


# ---- documentation -------------------------------------------------------------------------------


def owned(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public classes and functions (compiled ones too) that a module defines."""
    for name, found in vars(module).items():
        mine = getattr(found, "__module__", None) == module.__name__
        if mine and not name.startswith("_") and hasattr(found, "__qualname__"):
            yield f"{module.__name__}.{name}", found


def made_by_dataclass(cls: type) -> bool:
    """Whether the docstring is only the signature that dataclasses write when there is none."""
    return (cls.__doc__ or "").startswith(f"{cls.__name__}(")


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    silent = [] if module.__doc__ else [name]
    for place, found in owned(module):
        if not inspect.getdoc(found) or (inspect.isclass(found) and made_by_dataclass(found)):
            silent.append(place)
        if not inspect.isclass(found):
            continue
        for part, member in vars(found).items():
            if part.startswith("_") or not (callable(member) or isinstance(member, property)):
                continue
            if not inspect.getdoc(getattr(found, part)):
                silent.append(f"{place}.{part}")
    assert silent == []


def test_the_docstring_check_sees_what_it_should() -> None:
    places = [place for name in MODULES for place, _ in owned(importlib.import_module(name))]
    assert {"superarm.problem.Problem", "superarm.noise.labels"} <= set(places)
    assert "superarm.estimate.rank_one" in places  # compiled
    homes = {f"{getattr(superarm, name).__module__}.{name}" for name in superarm.__all__}
    assert homes <= set(places)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_errors_are_one_tree_of_value_errors(error: type[Exception]) -> None:
    assert issubclass(error, SuperarmError)
    assert issubclass(error, ValueError)
    assert error.__name__ in superarm.__all__
    assert (error.__bases__ == (ValueError,)) == (error is SuperarmError)


def test_the_docstring_lists_every_error_and_no_other() -> None:
    assert errors.__doc__ is not None
    line = r"^ *(?:│ +)?(?:[├└]── )?(\w+Error)\b(?= )"
    listed = re.findall(line, errors.__doc__, flags=re.MULTILINE)
    assert sorted(listed) == sorted(error.__name__ for error in ERRORS)
    assert len(re.findall("[├└]── ", errors.__doc__)) == len(ERRORS) - 1


def test_no_error_for_users_is_made_elsewhere() -> None:
    answers = "superarm.server.failures.Refused"  # over HTTP: no caller of ours sees it
    elsewhere = [
        place
        for name in MODULES
        for place, found in owned(importlib.import_module(name))
        if inspect.isclass(found) and issubclass(found, Exception) and name != "superarm.errors"
    ]
    assert elsewhere == [answers]


# ---- loading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import superarm",
        "import superarm; superarm.__version__, dir(superarm), superarm.SuperarmError",
        "import superarm.errors, superarm.datasets, superarm.cli",
        "import superarm; hasattr(superarm, 'nothing')",
    ],
)
def test_what_needs_no_numpy_loads_none(code: str) -> None:
    heavy = '{"numpy", "scipy", "numba"} & set(sys.modules)'
    assert in_fresh_python(f"import sys; {code}; print(sorted({heavy}))") == "[]\n"


def test_using_a_name_loads_what_it_needs() -> None:
    code = "import sys, superarm; superarm.Identification; print('numpy' in sys.modules)"
    assert in_fresh_python(code) == "True\n"


def test_the_library_is_typed() -> None:
    assert SOURCE.with_name("py.typed").is_file()
