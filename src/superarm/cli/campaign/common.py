"""What the commands about campaigns share: options, and how times and changes are written."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from superarm.errors import SettingError

if TYPE_CHECKING:
    from superarm.campaign import Campaign, Change

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A text such as 90s, 15m, 2h or 3d, as seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds, or fail."""
        from superarm.config import duration

        if isinstance(value, float):
            return value
        try:
            return duration(value)
        except SettingError as error:
            self.fail(str(error), param, ctx)


class Signed(click.Command):
    """A command whose arguments may be numbers below 0, which are not taken for options."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return a context in which what looks like an unknown option is an argument."""
        kwargs.setdefault("ignore_unknown_options", True)
        return click.Command.make_context(self, *args, **kwargs)


def refuse_options(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Refuse what begins like an option and is no number."""
    for word in words:
        if re.match(r"-[^\d.]", word) and word.lower() not in ("-inf", "-nan"):
            raise click.NoSuchOption(word, ctx=ctx)


def store_option(function: F) -> F:
    """Add --store."""
    return click.option(
        "--store",
        metavar="WHERE",
        help="The store: a file, or postgresql://...  [default: SUPERARM_STORE, or a file in the "
        "user's data folder]",
    )(function)


def worker_option(help: str) -> Callable[[F], F]:
    """Add --worker."""
    return click.option("--worker", default="", metavar="NAME", help=help)


def reason_option(**more: Any) -> Callable[[F], F]:
    """Add --reason."""
    return click.option("--reason", metavar="TEXT", help="Why; it stays on record.", **more)


def lease_option(default: str) -> Callable[[F], F]:
    """Add --lease."""
    return click.option(
        "--lease",
        type=Duration(),
        default=default,
        show_default=True,
        metavar="TIME",
        help="How long the pulls are kept for the worker: 90s, 15m, 2h, 3d.",
    )


def opened(name: str, store: str | None) -> Campaign:
    """Return the campaign of this name."""
    from superarm._jit import announce_compilation
    from superarm.campaign import Campaign, Store

    announce_compilation()
    return Campaign.open(name, store=Store.open(store, create=False))


def sure(question: str, yes: bool) -> None:
    """Ask whether to go on, where somebody can answer."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingError(f"{question} Say --yes if so.")
    click.confirm(question, abort=True, err=True)


def stamp(when: datetime | None) -> str:
    """Return a time for machines, in UTC."""
    return "" if when is None else when.astimezone(UTC).isoformat(timespec="seconds")


def clock(when: datetime | None) -> str:
    """Return a time for people, in UTC."""
    return "" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def say_change(change: Change, form: str) -> None:
    """Say what a change did."""
    if form == "json":
        click.echo(json.dumps(change.to_dict(), indent=2))
    else:
        click.echo(change.text)
