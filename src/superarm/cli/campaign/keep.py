"""superarm campaign export, import, delete: campaigns as files, and out of a store."""

from __future__ import annotations

from pathlib import Path

import click

from superarm.cli.campaign.common import opened, store_option, sure
from superarm.errors import DataError


@click.command()
@click.argument("name")
@click.argument("file")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@store_option
def export(name: str, file: str, force: bool, store: str | None) -> None:
    """Write all of a campaign into one FILE (JSON): question, totals, changes, certificate.

    superarm verify FILE checks it anywhere, without a store; superarm campaign import reads it.
    """
    if "\0" in file or Path(file).is_dir():
        raise DataError(f"{file!r} is not the name of a file")
    if Path(file).exists() and not force:
        raise DataError(f"{file}: there already; choose another name, or say --force")
    campaign = opened(name, store)
    campaign.export(file)
    click.echo(f"{name} is in {file}.")


@click.command("import")
@click.argument("file")
@click.option("--name", metavar="NAME", help="Another name.  [default: the one that it had]")
@store_option
def load(file: str, name: str | None, store: str | None) -> None:
    """Take a campaign from a FILE that superarm campaign export wrote, and go on with it here."""
    from superarm._jit import announce_compilation
    from superarm.campaign import Campaign, Store

    announce_compilation()
    campaign = Campaign.load(file, store=Store.open(store), name=name)
    click.echo(f"{campaign.name} is in the store.\n{campaign.verdict}")


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@store_option
def delete(name: str, yes: bool, store: str | None) -> None:
    """Delete a campaign with all its totals. Nothing brings it back but an export or a backup."""
    campaign = opened(name, store)
    sure(f"All of campaign {name} will be deleted.", yes)
    campaign.delete()
    click.echo(f"{name} is deleted.")
