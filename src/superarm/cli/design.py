"""superarm design: a plan of pulls for people who measure by other means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.output import as_cell, as_csv, as_table
from superarm.cli.question import Known, format_option, groups, groups_options
from superarm.cli.simulate import SUPPORT, build_design
from superarm.errors import DataError, SettingError

if TYPE_CHECKING:
    from superarm.plan import Index, Plan
    from superarm.problem import Problem

MOST = 10_000_000
"""More pulls than this are not written to a file."""


@click.command()
@click.option(
    "--arms", "path", required=True, metavar="FILE", help="CSV with the header arm, a line an arm."
)
@groups_options
@click.option("--pulls", required=True, type=int, help="How many measurements there will be.")
@click.option("--out", required=True, metavar="FILE", help="Where the plan goes, as CSV.")
@click.option(
    "--design",
    "kind",
    type=Known("designs"),
    help="Where to measure.  [default: cyclic; for a --class or a --support, uniform]",
)
@click.option("--support", help=SUPPORT)
@click.option("--rng", default=0, show_default=True, help="Seed: the same seed, the same plan.")
@format_option("What is said of the plan on stdout.")
def design(
    path: str,
    k: int | None,
    family: str | None,
    pulls: int,
    out: str,
    kind: str | None,
    support: str | None,
    rng: int,
    form: str,
) -> None:
    """Write a plan: which group to measure at each pull, fixed before the first.

    Measure in this order, write each total into the column total, and give the file to superarm
    analyse.
    """
    import numpy as np

    from superarm._checks import whole
    from superarm._jit import announce_compilation
    from superarm.datasets import read_arms
    from superarm.design import Cyclic
    from superarm.noise import gaussian
    from superarm.problem import Problem
    from superarm.seeds import seed_from

    table = read_arms(path)
    whole("--pulls", pulls, SettingError, least=1, most=MOST)
    _check_target(out)
    problem = Problem(table.column("arm"), groups(k, family, table), gaussian(1.0))
    announce_compilation()
    if kind is None:
        kind = "cyclic" if problem.topk and support is None else "uniform"
    chosen = build_design(kind, support)
    if chosen == Cyclic():
        chosen = Cyclic(pulls=pulls)
    plan = chosen.plan(problem, np.random.default_rng([seed_from(rng), 1]))
    if pulls < plan.spanning:
        raise SettingError(
            f"{pulls:,} pulls cannot tell these {problem.n:,} arms apart: it takes at least "
            f"{plan.spanning:,}"
        )
    rows = plan.members(plan.order(0, pulls))
    _write(out, problem, rows)
    said = _summary(problem, plan, rows, out)
    click.echo({"json": _json, "csv": _csv, "table": _table}[form](said))


def _check_target(out: str) -> None:
    """Refuse, before anything is worked out, a place that cannot be written to or holds data."""
    place = Path(out)
    if not out or place.is_dir() or not place.parent.is_dir():
        raise DataError(f"{out or '--out'}: not the name of a file in a directory that there is")
    if place.is_file() and not _empty_plan(out):
        raise DataError(
            f"{out}: there already, and not a plan without totals; choose another name, "
            "or remove that file"
        )


def _empty_plan(path: str) -> bool:
    """Whether a file is a plan none of whose totals is there yet."""
    from superarm.tables import read_table

    try:
        table = read_table(path, ("pull", "members", "total"), "pull")
    except DataError:
        return False
    return not any(table.column("total"))


def _write(out: str, problem: Problem, rows: Index) -> None:
    lines = [(i, as_cell(problem.names(row)), "") for i, row in enumerate(rows, 1)]
    text = as_csv(("pull", "members", "total"), lines) + "\n"
    try:
        Path(out).write_text(text, encoding="utf-8")
    except PermissionError as error:
        raise DataError(f"{out}: {error.strerror}") from None


def _summary(problem: Problem, plan: Plan, rows: Index, out: str) -> dict[str, Any]:
    """What a reader has to know, and how exactly these pulls tell one arm from another.

    The digest is the one that an analysis of exactly these pulls shows, with the same file of arms.
    """
    import numpy as np

    from superarm.design.listed import Listed
    from superarm.estimate import information

    listed = Listed([row[row >= 0] for row in rows]).plan(problem, np.random.default_rng(0))
    variances = information(listed, listed.counts(len(rows))).diagonal()
    return {
        **plan.describe(),
        "arms": problem.n,
        "k": problem.k,
        "pulls": len(rows),
        "groups": listed.size,
        "error_of_an_arm": float(np.sqrt(variances.max())),
        "digest": listed.describe()["digest"],
        "file": out,
    }


def _json(said: dict[str, Any]) -> str:
    return json.dumps(said, indent=2)


def _csv(said: dict[str, Any]) -> str:
    return as_csv(tuple(said), [tuple(said.values())])


def _table(said: dict[str, Any]) -> str:
    words = {
        "arms": "arms",
        "k": "arms of a group",
        "pulls": "pulls",
        "groups": "different groups",
        "error_of_an_arm": "standard error of an arm's mean, in units of the noise of a total",
        "kind": "design",
        "digest": "digest",
        "file": "written to",
    }
    rows = [
        (text, f"{value:.4g}" if isinstance(value, float) else value)
        for name, text in words.items()
        if (value := said.get(name)) is not None
    ]
    return as_table(("what", "plan"), rows)
