"""The options that state a question, the same for every command, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from superarm.errors import NoiseError, ProblemError
from superarm.plugins import Kind, names

if TYPE_CHECKING:
    from superarm.decision import Decision
    from superarm.noise import Noise
    from superarm.tables import Table

F = TypeVar("F", bound=Callable[..., Any])

NOISE = "gaussian[:SIGMA], bounded:R[:independent], labels, shared-labels or total:LO:HI."


class Known(click.ParamType):  # type: ignore[type-arg]
    """A name of ours or of a plug-in; nothing is looked up before one is given or asked for."""

    name = "name"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names, for the help."""
        return f"[{'|'.join(names(self.kind))}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail naming those that are known."""
        if value not in names(self.kind):
            self.fail(f"{value!r} is not one of {', '.join(names(self.kind))}.", param, ctx)
        return value


def groups_options(function: F) -> F:
    """Add --k and --class."""
    function = click.option(
        "--class",
        "family",
        metavar="NAME[:...]",
        help="Which groups may be chosen, if not any K: paths:SOURCE:TARGET, "
        "undirected-paths:SOURCE:TARGET, spanning-trees, matchings[:SIZE] (columns from, to), "
        "partition:GROUP=COUNT:... (column group), transversal (column posts).",
    )(function)
    return click.option("--k", type=int, help="How many arms make a group.")(function)


def sureness_options(function: F) -> F:
    """Add --epsilon, --delta, --noise and --direction."""
    for option in reversed(
        (
            click.option(
                "--epsilon",
                default=0.0,
                show_default=True,
                help="How far from the best is good enough.",
            ),
            click.option(
                "--delta",
                default=0.05,
                show_default=True,
                help="How often the answer may be wrong.",
            ),
            click.option("--noise", required=True, help=NOISE),
            click.option(
                "--direction",
                type=click.Choice(["maximize", "minimize"]),
                default="maximize",
                show_default=True,
                help="Whether great totals are good (rewards) or bad (costs).",
            ),
        )
    ):
        function = option(function)
    return function


TRUE_SIGMA = click.option(
    "--true-sigma",
    type=float,
    help="With noise gaussian: the standard deviation of simulated totals.",
)
"""Add --true-sigma."""


def true_noise(noise: Noise, sigma: float | None) -> Noise:
    """Return the noise of simulated totals: as stated, or where sigma is not, with a true one."""
    from superarm.noise import gaussian

    if noise.known:
        if sigma is not None:
            raise NoiseError(f"--true-sigma goes with --noise gaussian, not with {noise}")
        return noise
    if sigma is None:
        raise NoiseError(
            "--noise gaussian leaves sigma to be estimated: say with --true-sigma what it is in "
            "the simulated totals, or state it, as gaussian:1.0"
        )
    return gaussian(sigma)


def format_option(help: str) -> Callable[[F], F]:
    """Add --format."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help=help,
    )


def groups(k: int | None, family: str | None, table: Table) -> int | Decision:
    """Return what --k or --class says of the arms in a table."""
    from superarm.decision.parse import parse_decision

    if (k is None) == (family is None):
        raise ProblemError("say which groups may be chosen: either --k, or --class")
    if family is None:
        assert k is not None
        return k
    return parse_decision(family, table.columns())
