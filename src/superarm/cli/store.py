"""superarm store: what holds campaigns: copy it, check it, keep a backup."""

from __future__ import annotations

import json
import sys

import click

from superarm.cli.campaign.common import store_option
from superarm.cli.output import as_csv
from superarm.cli.question import format_option


@click.group()
def store() -> None:
    """Copy, check and back up stores of campaigns."""


@store.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
def copy(source: str, target: str) -> None:
    """Copy all campaigns of a store into another: from a file to PostgreSQL, say, or back.

    Each is a file or a URL. A name that is there already is refused, and nothing is copied then.
    """
    from superarm._jit import announce_compilation
    from superarm.campaign import Store

    announce_compilation()
    with Store.open(source, create=False) as old, Store.open(target) as new:
        count = old.copy_to(new)
        click.echo(f"{count:,} {'campaign' if count == 1 else 'campaigns'} copied to {new.name}.")


@store.command()
@store_option
@format_option("A line for each fault to read, one JSON object, or CSV.")
def check(store: str | None, form: str) -> None:
    """Compare what a store says of each campaign with its history; exit code 1 if they differ."""
    from superarm._jit import announce_compilation
    from superarm.campaign import Store

    announce_compilation()
    with Store.open(store, create=False) as kept:
        faults, count = kept.check(), len(kept.campaigns())
        if form == "json":
            click.echo(
                json.dumps({"store": kept.name, "campaigns": count, "faults": faults}, indent=2)
            )
        elif form == "csv":
            click.echo(as_csv(("fault",), [(fault,) for fault in faults]))
        else:
            for fault in faults:
                click.echo(fault)
            found = f"{len(faults):,} faults" if faults else "all is well"
            campaigns = "campaign" if count == 1 else "campaigns"
            click.echo(f"{kept.name}, {count:,} {campaigns}: {found}.")
    sys.exit(1 if faults else 0)


@store.command()
@click.argument("path", metavar="FILE")
@store_option
def backup(path: str, store: str | None) -> None:
    """Write a consistent copy of a store that is a file; measuring may go on meanwhile."""
    from superarm.campaign import Store

    with Store.open(store, create=False) as kept:
        kept.backup(path)
        click.echo(f"{kept.name} is in {path}.")
