"""How long until something happens: --help, the first use after an installation, the second."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from common import AS_GIVEN, Options, Row, Times, seconds, tell

import superarm

LIMIT = 20.0
HEAVY = ("numpy", "scipy", "numba")
WHAT_HELP_LOADS = f"""
import sys
from superarm.cli import main
main(["--help"], standalone_mode=False)
print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
OTHERS = (
    ("--algorithm", "saqm", "--schedule", "every"),
    ("--algorithm", "icb"),
    ("--algorithm", "sa-foa"),
    ("--algorithm", "exhaustive"),
)


def rows(options: Options) -> list[Row]:
    with TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        tell("superarm --help")
        table = [*help_rows(copy, 1 if options.quick else 7)]
        if not options.quick:  # compiles for some 15 s
            table += first_use(copy)
        return table


class Copy:
    """A fresh copy of the package, without byte code and compiled kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.caches = folder, 0
        source = Path(superarm.__file__).parent
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / "superarm", ignore=ignore)
        self.means = folder / "superarm" / "data" / "crowd" / "it.csv"
        self.environment = {**AS_GIVEN, "PYTHONPATH": str(folder)}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.forget()

    def forget(self) -> None:
        """Take an empty folder for compiled kernels."""
        self.caches += 1
        self.kernels = self.folder / f"kernels-{self.caches}"
        self.environment["NUMBA_CACHE_DIR"] = str(self.kernels)

    def python(self, *arguments: str) -> tuple[float, str]:
        """Run Python; return seconds and stderr."""
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True
        )
        taken = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return taken, done.stderr

    def simulate(self, *arguments: str) -> tuple[float, str]:
        """Run `superarm simulate`."""
        question = ("--means", str(self.means), "--noise", "labels", "--epsilon", "0.5")
        return self.python("-m", "superarm", "simulate", *question, *arguments)


def help_rows(copy: Copy, repeats: int) -> list[Row]:
    _, loaded = copy.python("-c", WHAT_HELP_LOADS)
    bare, ours = [], []
    for _ in range(repeats):
        bare.append(copy.python("-c", "pass")[0])
        ours.append(copy.python("-m", "superarm", "--help")[0])
    alone = f"; Python alone {seconds(min(bare))}"
    names = "NumPy, SciPy, Numba"
    return [
        Row("superarm --help", f"{Times(tuple(ours))}{alone}"),
        Row(
            f"superarm --help loads of {names}",
            loaded.strip() or "none",
            "none",
            met=not loaded.strip(),
        ),
    ]


def announces(stderr: str) -> bool:
    """Whether it says that it compiles, once."""
    return "compiling" in stderr and "once" in stderr


def first_use(copy: Copy) -> list[Row]:
    first, says = [], []
    for repeat in range(2):
        tell(f"first use after an installation, {repeat + 1} of 2")
        copy.forget()
        taken, stderr = copy.simulate("--k", "10")
        if not any(copy.kernels.rglob("*.nbi")):
            raise RuntimeError("the first use left no compiled kernels")
        first.append(taken)
        says.append(announces(stderr))
    tell("second use")
    again = [copy.simulate("--k", "10") for _ in range(5)]
    rows = [
        Row(
            "superarm simulate, first use after installation",
            str(Times(tuple(first))),
            f"<= {seconds(LIMIT)}",
            met=min(first) <= LIMIT,
        ),
        Row(
            "... says on stderr that it compiles once; then no more",
            f"{sum(says)} of {len(says)} first uses, "
            f"{sum(announces(stderr) for _, stderr in again)} of {len(again)} later ones",
            "all, none",
            met=all(says) and not any(announces(stderr) for _, stderr in again),
        ),
        Row("... second use", str(Times(tuple(taken for taken, _ in again)))),
    ]
    for options in OTHERS:
        tell(f"first use of {' '.join(options)}, second use")
        question = ("--k", "2", "--max-pulls", "2000", *options)
        (before, said), (after, _) = copy.simulate(*question), copy.simulate(*question)
        name = " ".join(option for option in options if not option.startswith("--algo"))
        word = "says" if announces(said) else "does not say"
        figure = f"{seconds(before)} ({word} that it compiles); second use {seconds(after)}"
        rows.append(Row(f"... first use of {name} after that", figure))
    return rows
