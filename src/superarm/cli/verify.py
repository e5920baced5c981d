"""superarm verify: replay a campaign from its raw totals, and see whether its certificate holds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from superarm.cli.campaign.common import opened, store_option
from superarm.cli.output import as_csv
from superarm.cli.question import format_option


@click.command()
@click.argument("what", metavar="FILE | NAME")
@store_option
@format_option("A sentence to read, one JSON object, or CSV.")
def verify(what: str, store: str | None, form: str) -> None:
    """Replay a campaign from its raw totals, and confirm or refute its verdict.

    A FILE that superarm campaign export wrote, or the NAME of a campaign in the store. Nothing else
    is needed: no network, and for a file no store. Exit code 0: confirmed; 1: refuted.
    """
    from superarm._jit import announce_compilation
    from superarm.campaign import verify_file

    announce_compilation()
    is_file = "\0" not in what and (Path(what).is_file() or what.endswith(".json"))
    found = verify_file(what) if is_file else opened(what, store).verify()
    if form == "json":
        click.echo(json.dumps(found.to_dict(), indent=2))
    elif form == "csv":
        click.echo(as_csv(("confirmed", "text"), [(found.confirmed, str(found))]))
    else:
        click.echo(str(found))
    sys.exit(0 if found.confirmed else 1)
