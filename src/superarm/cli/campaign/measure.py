"""superarm campaign ask, tell, back, extend: what is measured, and what came out."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.campaign.common import (
    Signed,
    lease_option,
    opened,
    refuse_options,
    stamp,
    store_option,
    worker_option,
)
from superarm.cli.output import as_cell, as_csv, as_table
from superarm.cli.question import format_option
from superarm.errors import DataError, SettingError, SuperarmError

if TYPE_CHECKING:
    from superarm.campaign import Campaign, Pull
    from superarm.campaign.sheets import Sheet


@click.command()
@click.argument("name")
@click.option("--size", default=1, show_default=True, help="How many pulls.")
@worker_option("Who measures. A worker who asks again gets the pulls that are still open first.")
@lease_option("1d")
@click.option(
    "--without",
    multiple=True,
    metavar="ARM",
    help="An arm that is not there now, and again for each other one; its groups are put off.",
)
@store_option
@format_option("A table to read, one JSON object, or a CSV line a pull: id,members,reason.")
def ask(
    name: str,
    size: int,
    worker: str,
    lease: float,
    without: tuple[str, ...],
    store: str | None,
    form: str,
) -> None:
    """Hand out the next pulls of campaign NAME: groups whose totals are to be measured.

    There are fewer, or none, when no more are needed now; standard error says why.
    """
    campaign = opened(name, store)
    pulls = campaign.ask(size, worker=worker, lease=lease, without=without)
    waiting = campaign.waiting if len(pulls) < size else ""
    if form == "json":
        said = {"name": name, "pulls": [_record(pull) for pull in pulls], "waiting": waiting}
        click.echo(json.dumps(said, indent=2))
    else:
        write = as_csv if form == "csv" else as_table
        rows = [(pull.id, as_cell(pull.members), pull.reason) for pull in pulls]
        click.echo(write(("id", "members", "reason"), rows))
    if waiting:
        click.echo(f"{len(pulls):,} of {size:,} pulls: {waiting}", err=True)


def _record(pull: Pull) -> dict[str, Any]:
    return {
        "id": pull.id,
        "members": list(pull.members),
        "reason": pull.reason,
        "worker": pull.worker,
        "until": stamp(pull.until),
    }


@click.command(cls=Signed)
@click.argument("name")
@click.argument("results", nargs=-1, required=True, metavar="ID TOTAL | FILE")
@worker_option("Who measured; a column worker in the file goes before it.")
@click.option(
    "--site", default="", metavar="NAME", help="Where; a column site in the file goes before it."
)
@click.option("--decimal-comma", is_flag=True, help="1,5 in the file is one and a half.")
@store_option
@format_option("A sentence to read, one JSON object, or CSV.")
@click.pass_context
def tell(
    ctx: click.Context,
    name: str,
    results: tuple[str, ...],
    worker: str,
    site: str,
    decimal_comma: bool,
    store: str | None,
    form: str,
) -> None:
    """Tell totals to campaign NAME: of one pull, or of many in a FILE (- for standard input).

    The file is a CSV with the columns id and total, as any spreadsheet program writes it; others
    may be there, so that what superarm campaign ask wrote serves with a column total added. A line
    whose total is empty is not measured yet, and left out. Where one line is wrong, nothing of the
    file is taken.
    """
    refuse_options(ctx, results)
    if len(results) > 2:
        raise click.UsageError(f"expected ID TOTAL, or FILE; this was {' '.join(results)}", ctx)
    if len(results) == 2:
        total = _total(results[1], decimal_comma)
        told = opened(name, store)
        taken = told.tell_many([(results[0], total)], worker=worker, site=site)
        said = {"new": taken.new, "repeated": taken.repeated, "empty": 0}
    else:
        sheet = _sheet(results[0], decimal_comma)
        told = opened(name, store)
        said = _tell_sheet(told, sheet, worker, site)
    _say(told, said, form)


def _total(text: str, decimal_comma: bool) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text.replace(",", ".", 1) if decimal_comma and "." not in text else text)
    except ValueError:
        raise SettingError(f"a total must be a number, not {text!r}") from None


def _sheet(path: str, decimal_comma: bool) -> Sheet:
    from superarm.campaign.sheets import read_sheet

    if path == "-":
        return read_sheet("standard input", decimal_comma=decimal_comma, stream=sys.stdin.buffer)
    return read_sheet(path, decimal_comma=decimal_comma)


def _tell_sheet(campaign: Campaign, sheet: Sheet, worker: str, site: str) -> dict[str, int]:
    """Tell a whole sheet at once."""
    labels = {
        key: [cell or default for cell in sheet.labels[key]] if key in sheet.labels else default
        for key, default in (("worker", worker), ("site", site))
    }
    try:
        told = campaign.tell_many(zip(sheet.ids, sheet.totals, strict=True), **labels)
    except SuperarmError as error:
        raise _placed(error, sheet) from None
    return {"new": told.new, "repeated": told.repeated, "empty": sheet.empty}


def _placed(error: SuperarmError, sheet: Sheet) -> SuperarmError:
    """Return the error with the line of the pull that it names."""
    found = re.search(r"\bpull '?([^\s':]+)", str(error))
    if found is None or found[1] not in sheet.ids:
        return type(error)(f"{sheet.path}: {error}")
    return type(error)(f"{sheet.where(sheet.ids.index(found[1]))}: {error}")


def _say(campaign: Campaign, said: dict[str, int], form: str) -> None:
    verdict = campaign.verdict
    if form == "json":
        click.echo(json.dumps({**said, "verdict": verdict.to_dict()}, indent=2))
        return
    if form == "csv":
        click.echo(as_csv(tuple(said), [tuple(said.values())]))
        return
    parts = [f"{said['new']:,} {'result' if said['new'] == 1 else 'results'} taken"]
    if said["repeated"]:
        parts.append(f"{said['repeated']:,} told before")
    if said["empty"]:
        parts.append(f"{said['empty']:,} not measured yet")
    click.echo(f"{', '.join(parts)}.\n{verdict}")


@click.command()
@click.argument("name")
@click.argument("ids", nargs=-1)
@worker_option("All pulls that this worker holds.")
@click.option("--lapsed", is_flag=True, help="All pulls whose time is over.")
@store_option
def back(name: str, ids: tuple[str, ...], worker: str, lapsed: bool, store: str | None) -> None:
    """Give pulls back unmeasured: others get them, without waiting until their time is over."""
    if bool(ids) + bool(worker) + lapsed != 1:
        raise SettingError("say which pulls: their ids, --worker or --lapsed")
    campaign = opened(name, store)
    chosen = list(ids) or [
        pull.id
        for pull in campaign.open_pulls()
        if (pull.worker == worker if worker else pull.lapsed)
    ]
    count = campaign.give_back(chosen)
    click.echo(f"{count:,} {'pull' if count == 1 else 'pulls'} given back.")


@click.command()
@click.argument("name")
@click.argument("ids", nargs=-1)
@worker_option("Who holds them; without ids, all pulls that this worker holds.")
@lease_option("1d")
@store_option
def extend(name: str, ids: tuple[str, ...], worker: str, lease: float, store: str | None) -> None:
    """Keep pulls for longer, counted from now."""
    if not (ids or worker):
        raise SettingError("say which pulls: their ids, or --worker")
    campaign = opened(name, store)
    chosen = list(ids) or [pull.id for pull in campaign.open_pulls() if pull.worker == worker]
    if not chosen:
        raise DataError(f"worker {worker!r} holds no pulls")
    count = campaign.extend(chosen, lease, worker)
    click.echo(f"{count:,} {'pull' if count == 1 else 'pulls'} kept for longer.")
