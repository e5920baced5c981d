"""Settings of files and of the environment become the defaults of options of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from superarm.config import KEYS, variable


def listen(command: click.Command) -> None:
    """Let the options of all commands hear the environment variable of their name."""
    for one in _all(command):
        for option, key in _settable(one):
            option.envvar = variable(key)


def apply(command: click.Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` as click wants defaults: by command, and there by parameter."""
    if isinstance(command, click.Group):
        return {name: apply(inner, values) for name, inner in command.commands.items()}
    return {str(option.name): values[key] for option, key in _settable(command) if key in values}


def _all(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _all(inner)


def _settable(command: click.Command) -> Iterator[tuple[click.Option, str]]:
    """Yield the options that a setting may set, each with its key."""
    for option in command.params:
        if isinstance(option, click.Option):
            key = option.opts[0].removeprefix("--")
            if key in KEYS:
                yield option, key
