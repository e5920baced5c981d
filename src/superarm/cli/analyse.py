"""superarm analyse: an answer, and how sure it is, from totals that were measured by a plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.output import as_cell, as_csv, as_table
from superarm.cli.question import (
    Known,
    format_option,
    groups,
    groups_options,
    sureness_options,
)
from superarm.errors import DataError

LABELS = ("site", "worker")
"""Columns of a file of totals whose cells are labels: pulls are compared by them."""

if TYPE_CHECKING:
    from superarm.analysis import Analysis
    from superarm.problem import Problem
    from superarm.tables import Table


@click.command()
@click.argument("path", metavar="TOTALS.CSV")
@click.option(
    "--arms",
    "arms_path",
    metavar="FILE",
    help="CSV with the header arm, a line an arm; without it the arms are those in the totals.",
)
@click.option(
    "--plan", "plan_path", metavar="FILE", help="The plan as it was written, to compare with."
)
@groups_options
@sureness_options
@click.option(
    "--algorithm",
    type=Known("algorithms"),
    help="The rule that says how sure the answer is.  [default: certified; for a --class, icb]",
)
@format_option("A table to read, one JSON object, or a CSV line an arm.")
def analyse(
    path: str,
    arms_path: str | None,
    plan_path: str | None,
    k: int | None,
    family: str | None,
    epsilon: float,
    delta: float,
    noise: str,
    direction: str,
    algorithm: str | None,
    form: str,
) -> None:
    """Answer from the totals of a plan: the best group, and how near to the best it is for certain.

    TOTALS.CSV has the columns pull,members,total as written by superarm design: every pull of the
    plan, in any order. The plan must have been fixed before the first pull, and no total left out
    or measured again because of what it was.

    The totals are checked too: are they sums, is the noise as stated, are there slips of the pen,
    trends, changes. With a column site or worker: do totals differ by it. What speaks against the
    certificate is a warning.
    """
    from superarm._jit import announce_compilation
    from superarm.analysis import analyse as run
    from superarm.datasets import read_arms
    from superarm.noise import parse_noise
    from superarm.plugins import load
    from superarm.problem import Problem

    table = _pulls(path)
    members = [_members(table, row, cell) for row, cell in enumerate(table.column("members"))]
    if plan_path is not None:
        _compare(table, members, _pulls(plan_path))
    arms = None if arms_path is None else read_arms(arms_path)
    names = dict.fromkeys(name for group in members for name in group)
    problem = Problem(
        arms.column("arm") if arms is not None else tuple(names),
        groups(k, family, table if arms is None else arms),
        parse_noise(noise),
        epsilon=epsilon,
        delta=delta,
        direction=direction,  # type: ignore[arg-type]
    )
    totals = [
        None if cell == "" else table.number(row, cell)
        for row, cell in enumerate(table.column("total"))
    ]
    announce_compilation()
    places = [f"{table.path}, line {line}" for line in table.lines]
    rule = None if algorithm is None else load("algorithms", algorithm)()
    labels = {name: table.column(name) for name in LABELS if name in table.header}
    found = run(problem, members, totals, rule, places=places, labels=labels)
    click.echo({"json": _json, "csv": _csv, "table": _table}[form](problem, found))


def _pulls(path: str) -> Table:
    """Read a plan, with or without totals; its pulls in their order, each once."""
    from dataclasses import replace

    from superarm.tables import read_table

    table = read_table(path, ("pull", "members", "total"), "pull")
    numbers: dict[int, int] = {}
    for row, cell in enumerate(table.column("pull")):
        if not (cell.isascii() and cell.isdecimal() and 0 < len(cell) < 19):
            raise table.wrong(row, f"{cell!r} is not the number of a pull")
        if int(cell) in numbers:
            first = table.lines[numbers[int(cell)]]
            raise table.wrong(row, f"pull {cell} is on line {first} too")
        numbers[int(cell)] = row
    order = [numbers[number] for number in sorted(numbers)]
    return replace(
        table,
        rows=tuple(table.rows[row] for row in order),
        lines=tuple(table.lines[row] for row in order),
    )


def _members(table: Table, row: int, cell: str) -> tuple[str, ...]:
    from superarm.tables import names_in

    names = names_in(cell)
    if not names or "" in names:
        raise table.wrong(row, f"{cell!r} is not a group: names with semicolons between them")
    return names


def _compare(table: Table, members: list[tuple[str, ...]], plan: Table) -> None:
    """Refuse totals that are not of exactly the plan's pulls."""
    planned = {
        number: frozenset(_members(plan, row, cell))
        for row, (number, cell) in enumerate(
            zip(map(int, plan.column("pull")), plan.column("members"), strict=True)
        )
    }
    for row, (number, group) in enumerate(
        zip(map(int, table.column("pull")), members, strict=True)
    ):
        if number not in planned:
            raise table.wrong(row, f"pull {number} is not in the plan {plan.path}")
        if planned.pop(number) != frozenset(group):
            raise table.wrong(row, f"pull {number} has other members in the plan {plan.path}")
    if planned:
        raise DataError(
            f"{table.path}: pull {min(planned)} of the plan is not there "
            f"({len(planned):,} missing); leave its total empty where there is none"
        )


def _json(problem: Problem, found: Analysis) -> str:
    estimates = found.verdict.estimates
    return json.dumps(
        {
            **found.to_dict(),
            "problem": problem.to_dict(),
            "estimates": None
            if estimates is None
            else dict(zip(problem.arms, estimates.tolist(), strict=True)),
        },
        indent=2,
    )


def _csv(problem: Problem, found: Analysis) -> str:
    return as_csv(("arm", "chosen", "estimate"), _arms(problem, found))


def _arms(problem: Problem, found: Analysis) -> list[tuple[Any, ...]]:
    chosen, estimates = set(found.verdict.answer), found.verdict.estimates
    return [
        (name, name in chosen, None if estimates is None else float(estimates[i]))
        for i, name in enumerate(problem.arms)
    ]


def _table(problem: Problem, found: Analysis) -> str:
    from superarm.verdict import digits_up, opposite

    verdict, reached = found.verdict, found.epsilon_reached
    certain = "nothing"
    if reached is not None:
        certain = (
            f"within {digits_up(reached):g} of the best, with probability >= "
            f"{opposite(problem.delta)}"
        )
    asked = verdict.certificate is not None and verdict.certificate.epsilon <= problem.epsilon
    rows = [
        ("answer", ", ".join(verdict.answer) or "none"),
        ("what is certain", certain),
        (f"within {problem.epsilon:g}, as asked", "yes" if asked else "no"),
        ("why not", verdict.reason),
        ("pulls", f"{verdict.pulls:,}"),
        ("bound", verdict.certificate.bound if verdict.certificate else ""),
        ("cell for a spreadsheet", as_cell(verdict.answer)),
        ("checks of the totals", _checks(found)),
        *(("warning", text) for text in verdict.warnings),
    ]
    return as_table(("what", "result"), [row for row in rows if row[1]])


def _checks(found: Analysis) -> str:
    """Return how many checks there were, and which could not be made."""
    if found.diagnostics is None:
        return ""
    made = [finding for finding in found.diagnostics.findings if finding.p_value is not None]
    warnings = len(found.verdict.warnings)
    return f"{len(made)} made, {warnings or 'no'} warning{'' if warnings == 1 else 's'}"
