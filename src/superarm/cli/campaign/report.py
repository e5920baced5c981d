"""superarm campaign list, status, open, history, looks, changes: how it stands."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.campaign.common import clock, opened, stamp, store_option
from superarm.cli.output import as_cell, as_csv, as_table
from superarm.cli.question import format_option

if TYPE_CHECKING:
    from superarm.campaign import Change, LookTaken, OpenPull, Result, Status

SHOWN_ARMS = 40
"""More arms than this are in a table only with --all-arms."""


@click.command("list")
@store_option
@format_option("A table to read, one JSON object, or a CSV line a campaign.")
def overview(store: str | None, form: str) -> None:
    """List the campaigns of a store."""
    from superarm.campaign import Store

    with Store.open(store, create=False) as kept:
        found = kept.campaigns()
        rows = [(one.name, one.n, one.k, one.state, one.told, one.created) for one in found]
        where = kept.name
    if form == "json":
        keys = ("name", "n", "k", "state", "told", "created")
        said = [dict(zip(keys, (*row[:-1], stamp(row[-1])), strict=True)) for row in rows]
        click.echo(json.dumps({"store": where, "campaigns": said}, indent=2))
    elif form == "csv":
        header = ("name", "n", "k", "state", "told", "created")
        click.echo(as_csv(header, [(*row[:-1], stamp(row[-1])) for row in rows]))
    else:
        header = ("campaign", "arms", "k", "state", "totals", "begun (UTC)")
        cells = [(*row[:4], f"{row[4]:,}", clock(row[5])) for row in rows]
        click.echo(as_table(header, cells))
        if not rows:
            click.echo(f"no campaigns in {where} yet", err=True)


@click.command()
@click.argument("name")
@click.option("--all-arms", is_flag=True, help=f"All arms, where there are more than {SHOWN_ARMS}.")
@store_option
@format_option("Tables to read, one JSON object, or a CSV line an arm.")
def status(name: str, all_arms: bool, store: str | None, form: str) -> None:
    """Say how campaign NAME stands: the verdict, what is out, what is still needed.

    Exit code 0: certified; 3: not certified yet, or ended without a certificate.
    """
    found = opened(name, store).status()
    if form == "json":
        click.echo(json.dumps(found.to_dict(), indent=2))
    elif form == "csv":
        rows = [
            (arm.name, *map(_or_empty, (arm.estimate, arm.low, arm.high)), arm.chosen, arm.state)
            for arm in found.arms
        ]
        click.echo(as_csv(("arm", "estimate", "low", "high", "chosen", "state"), rows))
    else:
        click.echo(_status(found, all_arms))
    sys.exit(0 if found.verdict.certified else 3)


def _status(found: Status, all_arms: bool) -> str:
    facts = as_table(("what", "state"), _facts(found))
    arms = sorted(found.arms, key=lambda arm: not arm.chosen)
    shown = arms if all_arms else arms[:SHOWN_ARMS]
    rows = [
        (
            arm.name,
            _short(arm.estimate),
            f"{_short(arm.low)} .. {_short(arm.high)}" if arm.low is not None else "",
            "yes" if arm.chosen else "no",
            arm.state,
        )
        for arm in shown
    ]
    table = as_table(("arm", "estimate", "surely within", "chosen", "state"), rows)
    rest = len(arms) - len(shown)
    foot = f"\n... and {rest:,} more arms (--all-arms)" if rest else ""
    return f"{found.verdict}\n\n{facts}\n\n{table}{foot}"


def _facts(found: Status) -> list[tuple[str, str]]:
    margin = found.margin
    rows = [
        ("totals told", f"{found.told:,}"),
        ("pulls out", f"{found.open:,}" + (f" ({found.lapsed:,} lapsed)" if found.lapsed else "")),
        (
            "held by",
            ", ".join(f"{who or 'nobody named'}: {n:,}" for who, n in found.holders.items()),
        ),
        ("phase", f"{found.phase:,}"),
        ("next look", "" if found.next_look is None else f"after {found.next_look:,} pulls"),
        ("totals missing for it", "" if found.next_look is None else f"{found.missing:,}"),
        ("still missing to the stop", _short(margin) if margin > 0 else ""),
        ("pulls still expected", "" if found.forecast is None else f"{found.forecast:,}"),
        ("totals a day", _short(found.pace)),
        ("days left", _short(found.days_left)),
        *(("the certificate rests on", text) for text in found.conditions),
        *(("warning", text) for text in found.warnings),
    ]
    return [row for row in rows if row[1]]


def _short(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value


@click.command("open")
@click.argument("name")
@store_option
@format_option("A table to read, one JSON object, or a CSV line a pull.")
def open_pulls(name: str, store: str | None, form: str) -> None:
    """List the pulls that are out and have no total yet: who holds them, and until when."""
    found = opened(name, store).open_pulls()
    if form == "json":
        click.echo(json.dumps({"name": name, "open": [_open(pull) for pull in found]}, indent=2))
        return
    time = stamp if form == "csv" else clock
    header = ("id", "members", "worker", "given_at", "until", "lapsed", "reason")
    rows = [
        (
            pull.id,
            as_cell(pull.members),
            pull.worker,
            time(pull.given_at),
            time(pull.until),
            pull.lapsed if form == "csv" else "yes" if pull.lapsed else "no",
            pull.reason,
        )
        for pull in found
    ]
    click.echo((as_csv if form == "csv" else as_table)(header, rows))


def _open(pull: OpenPull) -> dict[str, Any]:
    times = {"given_at": stamp(pull.given_at) or None, "until": stamp(pull.until) or None}
    return {**asdict(pull), "members": list(pull.members), **times}


@click.command()
@click.argument("name")
@click.option("--start", default=0, show_default=True, help="Leave out so many at the beginning.")
@click.option("--limit", type=int, help="Show so many.  [default: all]")
@click.option("--newest-first", is_flag=True, help="Begin with what was told last.")
@store_option
@format_option("A table to read, one JSON object, or a CSV line a total.")
def history(
    name: str, start: int, limit: int | None, newest_first: bool, store: str | None, form: str
) -> None:
    """List the totals that were told, with what became of each."""
    found = opened(name, store).history(start=start, limit=limit, newest_first=newest_first)
    if form == "json":
        said = {"name": name, "results": [_result(one) for one in found]}
        click.echo(json.dumps(said, indent=2))
    elif form == "csv":
        header: tuple[str, ...] = (
            *("id", "members", "total", "first_total", "told_at", "worker", "site"),
            *("phase", "position", "state"),
        )
        click.echo(as_csv(header, [_cells(one) for one in found]))
    else:
        rows = [
            (
                one.id,
                as_cell(one.members),
                "" if one.total is None else f"{one.total:.10g}",
                clock(one.told_at),
                one.worker,
                one.site,
                one.state if one.total in (None, one.first_total) else f"{one.state}, amended",
            )
            for one in found
        ]
        header = ("id", "members", "total", "told (UTC)", "worker", "site", "state")
        click.echo(as_table(header, rows))


def _cells(one: Result) -> Sequence[object]:
    return (
        one.id,
        as_cell(one.members),
        _or_empty(one.total),
        one.first_total,
        stamp(one.told_at),
        one.worker,
        one.site,
        one.phase,
        one.position,
        one.state,
    )


def _result(one: Result) -> dict[str, Any]:
    return {**asdict(one), "members": list(one.members), "told_at": stamp(one.told_at)}


@click.command()
@click.argument("name")
@store_option
@format_option("A table to read, one JSON object, or a CSV line a look.")
def looks(name: str, store: str | None, form: str) -> None:
    """List the looks that were taken, with both sides of the stop at each."""
    found = opened(name, store).looks()
    if form == "json":
        click.echo(json.dumps({"name": name, "looks": [_look(one) for one in found]}, indent=2))
    elif form == "csv":
        rows = [["" if v is None else v for v in _look(one).values()] for one in found]
        header: tuple[str, ...] = ("phase", "number", "pulls", "gap", "epsilon", "radius", "at")
        click.echo(as_csv(header, rows))
    else:
        header = ("phase", "look", "pulls", "gap + epsilon", "radius", "at (UTC)")
        cells = [
            (
                one.phase,
                one.number,
                f"{one.pulls:,}",
                "" if one.gap is None else f"{one.gap + one.epsilon:.4g}",
                _short(one.radius),
                clock(one.at),
            )
            for one in found
        ]
        click.echo(as_table(header, cells))


def _look(one: LookTaken) -> dict[str, Any]:
    return {**asdict(one), "at": stamp(one.at)}


@click.command()
@click.argument("name")
@store_option
@format_option("A table to read, one JSON object, or a CSV line a change.")
def changes(name: str, store: str | None, form: str) -> None:
    """List what was done besides telling totals: amends, voids, undos, who left or was away."""
    found = opened(name, store).changes()
    if form == "json":
        said = {"name": name, "changes": [change.to_dict() for change in found]}
        click.echo(json.dumps(said, indent=2))
        return
    if form == "csv":
        header = (
            *("number", "at", "kind", "id", "total", "reason", "worker"),
            *("because_of_value", "undone", "text"),
        )
        click.echo(as_csv(header, [_change(change, header) for change in found]))
        return
    rows = [(change.number, clock(change.at), change.worker, change.text) for change in found]
    click.echo(as_table(("number", "at (UTC)", "worker", "what"), rows))


def _change(change: Change, header: Sequence[str]) -> list[object]:
    values = {name: getattr(change, name) for name in header} | {"at": stamp(change.at)}
    return ["" if value is None else value for value in values.values()]


@click.command()
@click.argument("name")
@store_option
@format_option("A list to read, one JSON object, or a CSV line a check.")
def diagnose(name: str, store: str | None, form: str) -> None:
    """Check all totals of campaign NAME: are they sums, with the noise stated, from first to last.

    Workers and sites are compared too, where totals name them.
    """
    found = opened(name, store).diagnose()
    if found is None:
        click.echo("no totals yet: nothing to check", err=True)
    elif form == "json":
        click.echo(json.dumps(found.to_dict(), indent=2))
    elif form == "csv":
        rows = [
            (one.check, one.p_value, one.beyond and not one.harmless, one.sentence)
            for one in found.findings
        ]
        click.echo(as_csv(("check", "p_value", "warning", "sentence"), rows))
    else:
        click.echo(str(found))
