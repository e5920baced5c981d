"""superarm campaign run: measure by a program, until it is certified."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.campaign.common import Duration, lease_option, opened, store_option, worker_option
from superarm.cli.output import as_csv
from superarm.cli.question import format_option

if TYPE_CHECKING:
    from superarm.campaign.runner import Progress, Ran


@click.command()
@click.argument("name")
@click.option(
    "--command",
    "template",
    required=True,
    metavar="COMMAND",
    help="The program, with {members} (names, semicolons between) or {members...} (an argument "
    "each), {id}, {worker}. Its last line of output is the total. No shell is used.",
)
@click.option("--timeout", type=Duration(), metavar="TIME", help="A call has failed after this.")
@click.option(
    "--retries", default=0, show_default=True, help="How often a failed call is tried again."
)
@click.option("--parallel", default=1, show_default=True, help="Calls at a time.")
@click.option("--size", type=int, help="Pulls held at a time.  [default: as --parallel]")
@click.option("--max-pulls", type=int, help="End after so many totals.")
@worker_option("No two runs may share a name.  [default: made of this machine's and the process's]")
@click.option("--site", default="", metavar="NAME", help="Where it is measured.")
@lease_option("10m")
@store_option
@format_option("A sentence to read, one JSON object, or CSV.")
def run(
    name: str,
    template: str,
    timeout: float | None,
    retries: int,
    parallel: int,
    size: int | None,
    max_pulls: int | None,
    worker: str,
    site: str,
    lease: float,
    store: str | None,
    form: str,
) -> None:
    """Measure campaign NAME by a program, until it is certified or has ended.

    Exit code 0: certified; 3: not certified yet; 1: the program failed for good; 130: interrupted.
    Pulls that are out then are given back.
    """
    from superarm.campaign.program import Program
    from superarm.campaign.runner import own_name
    from superarm.campaign.runner import run as measure

    program = Program(template, timeout)
    campaign = opened(name, store)
    line = _Line(sys.stderr.isatty())
    stop = threading.Event()
    try:
        with _heard(stop) as heard:
            ran = measure(
                campaign,
                program,
                parallel=parallel,
                size=size,
                retries=retries,
                worker=worker or own_name(),
                site=site,
                lease=lease,
                max_pulls=max_pulls,
                progress=line.show,
                note=line.note,
                stop=stop,
            )
    finally:
        line.end()
    _say(ran, form)
    if ran.interrupted:
        click.echo("interrupted; pulls that were out are given back", err=True)
        sys.exit(128 + (heard[0] if heard else signal.SIGINT))
    sys.exit(0 if ran.verdict.certified else 3)


@contextmanager
def _heard(stop: threading.Event) -> Iterator[list[int]]:
    """Turn the first Ctrl-C or request to end into `stop`; a second Ctrl-C does not wait."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)
        stop.set()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Line:
    """A line on the terminal that says where the run is."""

    def __init__(self, shown: bool) -> None:
        self.shown, self.said = shown, ""

    def show(self, where: Progress) -> None:
        """Write the line anew."""
        if not self.shown:
            return
        verdict = where.verdict
        more = "" if verdict.forecast is None else f", about {verdict.forecast:,} more expected"
        text = f"{where.told:,} totals told, {where.running:,} being measured{more}"
        if text != self.said:
            click.echo(f"\r{text:<{len(self.said)}}", nl=False, err=True)
            self.said = text

    def note(self, text: str) -> None:
        """Write something that stays."""
        self.end()
        click.echo(text, err=True)

    def end(self) -> None:
        """Leave the line."""
        if self.said:
            click.echo(err=True)
            self.said = ""


def _say(ran: Ran, form: str) -> None:
    said: dict[str, Any] = {"told": ran.told, "dropped": ran.dropped}
    if form == "json":
        click.echo(json.dumps({**said, "verdict": ran.verdict.to_dict()}, indent=2))
    elif form == "csv":
        said |= {"certified": ran.verdict.certified, "pulls": ran.verdict.pulls}
        click.echo(as_csv(tuple(said), [tuple(said.values())]))
    else:
        click.echo(f"{ran.told:,} {'total' if ran.told == 1 else 'totals'} told.\n{ran.verdict}")
