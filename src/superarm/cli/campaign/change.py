"""superarm campaign amend, void, undo, retire, record: mistakes, and what else happens."""

from __future__ import annotations

import click

from superarm.cli.campaign.common import (
    Signed,
    opened,
    reason_option,
    refuse_options,
    say_change,
    store_option,
    sure,
    worker_option,
)
from superarm.cli.question import format_option
from superarm.errors import SettingError

WHO = "Who says so."
SHOWN = "A sentence to read, or one JSON object."


def _number(text: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise SettingError(f"a total must be a number, not {text!r}") from None


@click.command(cls=Signed)
@click.argument("name")
@click.argument("id")
@click.argument("total")
@reason_option(required=True)
@worker_option(WHO)
@store_option
@format_option(SHOWN)
@click.pass_context
def amend(
    ctx: click.Context,
    name: str,
    id: str,
    total: str,
    reason: str,
    worker: str,
    store: str | None,
    form: str,
) -> None:
    """Put another TOTAL in the place of one that was told, as after a slip of the pen.

    Looks that used it are taken again. The certificate says so.
    """
    refuse_options(ctx, (id, total))
    value = _number(total)
    say_change(opened(name, store).amend(id, value, reason=reason, worker=worker), form)


@click.command()
@click.argument("name")
@click.argument("id")
@reason_option(required=True)
@click.option(
    "--because-of-value",
    is_flag=True,
    help="The reason has to do with what the total was, as for an outlier. There is no certificate "
    "then.",
)
@worker_option(WHO)
@store_option
@format_option(SHOWN)
def void(
    name: str,
    id: str,
    reason: str,
    because_of_value: bool,
    worker: str,
    store: str | None,
    form: str,
) -> None:
    """Take the total of pull ID out: the same group is asked for again, under another id.

    The reason must have nothing to do with what the total was; otherwise say --because-of-value.
    """
    change = opened(name, store).void(
        id, reason=reason, because_of_value=because_of_value, worker=worker
    )
    say_change(change, form)


@click.command()
@click.argument("name")
@click.argument("number", type=int, required=False)
@reason_option(default="")
@worker_option(WHO)
@store_option
@format_option(SHOWN)
def undo(
    name: str, number: int | None, reason: str, worker: str, store: str | None, form: str
) -> None:
    """Take back the last amend or void, or that with a NUMBER (see superarm campaign changes)."""
    say_change(opened(name, store).undo(number, reason=reason, worker=worker), form)


@click.command()
@click.argument("name")
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@reason_option(required=True)
@worker_option(WHO)
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@store_option
@format_option(SHOWN)
def retire(
    name: str,
    arms: tuple[str, ...],
    reason: str,
    worker: str,
    yes: bool,
    store: str | None,
    form: str,
) -> None:
    """Let arms leave for good. The others begin anew: totals with them in it are used no more.

    This cannot be undone. For somebody who is only away, see superarm campaign ask --without.
    """
    campaign = opened(name, store)
    sure(
        f"{', '.join(arms)} will leave for good, and the rest of {name} begins anew, on fresh "
        "totals.",
        yes,
    )
    say_change(campaign.retire(arms, reason=reason, worker=worker), form)


@click.command(cls=Signed)
@click.argument("name")
@click.argument("total")
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@reason_option(required=True)
@worker_option("Who measured.")
@store_option
@format_option(SHOWN)
@click.pass_context
def record(
    ctx: click.Context,
    name: str,
    total: str,
    arms: tuple[str, ...],
    reason: str,
    worker: str,
    store: str | None,
    form: str,
) -> None:
    """Keep a TOTAL of a group that no pull asked for. It is never used for the certificate."""
    refuse_options(ctx, (total, *arms))
    value = _number(total)
    say_change(opened(name, store).record(arms, value, reason=reason, worker=worker), form)
