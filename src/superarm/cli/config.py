"""superarm config: what is set by files and the environment, and where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from superarm.cli.output import as_csv, as_table
from superarm.cli.question import format_option


@click.command()
@format_option("A table to read, one JSON object, or a CSV line a setting.")
def config(form: str) -> None:
    """Show what the options are if they are not given, and where that is said.

    An option goes before its environment variable (SUPERARM_EPSILON for --epsilon), that before
    superarm.toml in this folder, and that before config.toml in the user's folder.
    """
    from superarm.config import KEYS, LOCAL, in_force, user_file

    found = in_force()
    rows = [
        (key, _shown(found[key].value), found[key].source) if key in found else (key, None, "")
        for key in KEYS
    ]
    files = {str(path): path.is_file() for path in (Path(LOCAL).absolute(), user_file())}
    if form == "json":
        said = {key: {"value": value, "from": source} for key, value, source in rows if source}
        click.echo(json.dumps({"settings": said, "files": files}, indent=2))
        return
    cells = [
        (key, _written(value), source or ("the default" if form == "table" else ""))
        for key, value, source in rows
    ]
    if form == "csv":
        click.echo(as_csv(("setting", "value", "from"), cells))
        return
    click.echo(as_table(("setting", "value", "from"), cells))
    click.echo()
    for path, there in files.items():
        click.echo(f"{path}: {'read' if there else 'not there'}")


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _shown(value: object) -> object:
    """Leave the password of a store's address out."""
    return re.sub(r"://[^@/]*@", "://...@", value) if isinstance(value, str) else value
