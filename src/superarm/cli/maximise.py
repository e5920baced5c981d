"""superarm maximise: the size-k set of greatest x'Wx, and a bound on all sets."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from superarm.cli.output import as_csv, as_table

if TYPE_CHECKING:
    from superarm.quadratic import Maximisation

ORACLES = ("peeling", "fpk", "swap", "multistart", "exact", "brute-force")


@click.command()
@click.option(
    "--matrix",
    "path",
    required=True,
    metavar="FILE",
    help="A symmetric matrix: .npy, or CSV of numbers without a header.",
)
@click.option("--k", required=True, type=int, help="How many rows make a set.")
@click.option(
    "--oracle",
    type=click.Choice(ORACLES),
    default="multistart",
    show_default=True,
    help="How the set is found.",
)
@click.option(
    "--bound",
    type=click.Choice(["spectral", "shift", "sdp"]),
    help="Ever sharper, ever slower; spectral by default. An exact search has its own.",
)
@click.option("--seconds", type=float, help="End an exact search then; so does Ctrl-C.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="A table to read, one JSON object, or a CSV line.",
)
def maximise(
    path: str, k: int, oracle: str, bound: str | None, seconds: float | None, form: str
) -> None:
    """Find K rows of a symmetric matrix W with a great sum of all W_ij among them.

    That is x'Wx for the indicator x of the rows, and an upper bound on it for all sets of K rows.
    """
    from superarm._jit import announce_compilation
    from superarm.quadratic import maximise as run
    from superarm.quadratic.matrix import read_matrix

    announce_compilation()
    found = run(read_matrix(path), k, oracle, bound, seconds=seconds)  # type: ignore[arg-type]
    click.echo({"json": _json, "csv": _csv, "table": _table}[form](found))
    if found.status == "interrupted":
        sys.exit(130)


def _json(found: Maximisation) -> str:
    return json.dumps(found.to_dict(), indent=2)


def _csv(found: Maximisation) -> str:
    values = {**found.to_dict(), "members": ";".join(map(str, found.members))}
    return as_csv(tuple(values), [tuple("" if v is None else v for v in values.values())])


def _table(found: Maximisation) -> str:
    proved = {
        "optimal": "yes: no set is above it",
        "found": "no: some set may be above it",
        "time limit": "no: the time ran out",
        "interrupted": "no: interrupted",
    }[found.status]
    rows = [
        ("members (rows, from 0)", ", ".join(map(str, found.members))),
        ("value", f"{found.value:.10g}"),
        ("upper bound", f"{found.upper_bound:.10g} ({found.bound})"),
        ("value / upper bound", "no ratio" if found.ratio is None else f"{found.ratio:.6f}"),
        ("proved greatest", proved),
        ("found by", found.oracle),
        ("seconds", f"{found.seconds:.3f}"),
    ]
    return as_table(("what", "result"), rows)
