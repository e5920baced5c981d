"""superarm serve and superarm token: campaigns over HTTP, and who may use them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from superarm.cli.campaign.common import store_option
from superarm.cli.output import as_csv, as_table
from superarm.cli.question import format_option

if TYPE_CHECKING:
    from superarm.server.access import Token


@click.command()
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8420,
    show_default=True,
    help="Port to listen on; 0: any that is free.",
)
@click.option(
    "--uds", metavar="PATH", help="A Unix socket to listen on, in place of host and port."
)
@click.option("--tokens", is_flag=True, help="Every request needs a token (see superarm token).")
@click.option(
    "--host-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name under which the server is reached; may be given again. Needs --tokens.",
)
@click.option(
    "--root-path", default="", metavar="/PATH", help="The path under which a proxy shows it."
)
@click.option(
    "--proxy",
    metavar="ADDRESS",
    help="Address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed.",
)
def serve(
    store: str | None,
    host: str,
    port: int,
    uds: str | None,
    tokens: bool,
    names: tuple[str, ...],
    root_path: str,
    proxy: str | None,
) -> None:
    """Serve campaigns over HTTP: pages for browsers and phones, REST for programs.

    Without --tokens only this machine can reach it. Stop it by Ctrl-C: what was told is kept.
    """
    from superarm.errors import SettingError
    from superarm.server import check_extra

    check_extra()
    from superarm.campaign import Store
    from superarm.server.access import list_tokens
    from superarm.server.run import check_place
    from superarm.server.run import serve as run
    from superarm.server.settings import Settings

    settings = Settings(tokens=tokens, hosts=names)
    check_place(host, uds, tokens)
    if root_path and not root_path.startswith("/"):
        raise SettingError(f"--root-path begins with /, not as {root_path!r}")
    with Store.open(store) as place:
        if tokens and not any(token.revoked is None for token in list_tokens(place)):
            raise SettingError(
                "there is no token yet, so nobody could use the server: make one with "
                "superarm token new NAME --role admin"
            )
        run(
            place,
            settings,
            host=host,
            port=port,
            uds=uds,
            root_path=root_path,
            proxy=proxy,
        )


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that a server asks for."""


@token.command("new")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["read", "measure", "admin"]),
    required=True,
    help="read: see everything; measure: ask, tell and correct too; admin: make campaigns too.",
)
@store_option
def token_new(name: str, role: str, store: str | None) -> None:
    """Make a token and print it, once: the store keeps a hash only.

    NAME says whose it is.
    """
    from superarm.campaign import Store
    from superarm.server.access import new_token

    with Store.open(store) as place:
        _, text = new_token(place, name, role)
    click.echo(text)
    click.echo("this is shown once; keep it as you would a password", err=True)


@token.command("list")
@store_option
@format_option("A table to read, one JSON list, or a CSV line a token.")
def token_list(store: str | None, form: str) -> None:
    """List all tokens: id, name, role, when made, whether they count."""
    from superarm.campaign import Store
    from superarm.server.access import list_tokens

    with Store.open(store) as place:
        rows = [_shown(one) for one in list_tokens(place)]
    header = ("id", "name", "role", "created", "revoked")
    if form == "json":
        click.echo(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2))
    else:
        click.echo((as_csv if form == "csv" else as_table)(header, rows))


@token.command("revoke")
@click.argument("which", metavar="NAME_OR_ID")
@store_option
def token_revoke(which: str, store: str | None) -> None:
    """Make a token worth nothing; browsers that showed it are logged out."""
    from superarm.campaign import Store
    from superarm.server.access import revoke_token

    with Store.open(store) as place:
        gone = revoke_token(place, which)
    click.echo(f"revoked: {gone.name} ({gone.id})")


def _shown(one: Token) -> tuple[str, ...]:
    return (one.id, one.name, one.role.word, _when(one.created), _when(one.revoked))


def _when(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
