"""superarm study: run what a study file says, resume it, look at its table."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from superarm.cli.output import as_csv, as_table
from superarm.cli.question import format_option

if TYPE_CHECKING:
    from superarm.study import Results

SUMMARY = format_option("How the summary is written, a line a cell.")


@click.group()
def study() -> None:
    """Run algorithms on instances many times, as a study file says, into one table."""


@study.command()
@click.argument("file", metavar="FILE")
@click.option("--out", required=True, metavar="TABLE", help="The table: .csv or .parquet.")
@click.option("--workers", default=1, show_default=True, help="Processes; they change no number.")
@click.option("--dask", metavar="ADDRESS", help="A Dask scheduler, as tcp://HOST:8786.")
@click.option("--replications", type=int, help="Runs of each cell.  [default: as the file says]")
@click.option("--rng", type=int, help="Seed.  [default: as the file says]")
@click.option("--fresh", is_flag=True, help="Forget a table and a journal that are there.")
@SUMMARY
def run(
    file: str,
    out: str,
    workers: int,
    dask: str | None,
    replications: int | None,
    rng: int | None,
    fresh: bool,
    form: str,
) -> None:
    """Run the study in FILE; where it was interrupted before, go on."""
    from superarm._jit import announce_compilation
    from superarm.study import read_study

    found = read_study(file, replications=replications, rng=rng)
    announce_compilation()
    with click.progressbar(
        length=found.runs, label="runs", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        progress = _Progress(bar, out, fresh)
        try:
            with progress.listening(), _quiet():
                results = found.run(
                    workers=workers, out=out, dask=dask, fresh=fresh, progress=progress
                )
        except KeyboardInterrupt:
            bar.render_finish()
            click.echo(progress.interrupted(), err=True)
            sys.exit(130)
    _show(results, form, f"written to {out}")


@study.command()
@click.argument("table", metavar="TABLE")
@SUMMARY
def show(table: str, form: str) -> None:
    """Show the summary of a TABLE that a study wrote."""
    from superarm.study import Results

    _show(Results.read(table), form, f"in {table}")


@study.command()
@click.argument("file", metavar="FILE")
@format_option("A table to read, one JSON object, or a CSV line a cell.")
def check(file: str, form: str) -> None:
    """List the cells of the study in FILE, and see that each can be run."""
    from superarm._jit import announce_compilation
    from superarm.study import read_study
    from superarm.study.facts import telling_columns

    found = read_study(file)
    announce_compilation()
    found.check()
    told = telling_columns([cell.facts for cell in found.cells])
    rows = [{"cell": number, **words} for number, words in enumerate(told, 1)]
    foot = (
        f"{len(rows):,} cells, {found.replications:,} replications: {found.runs:,} runs; "
        "each can be run"
    )
    if form == "json":
        said = {"title": found.title, "replications": found.replications, "cells": rows}
        click.echo(json.dumps(said, indent=2))
    else:
        _lines(rows, form, f"\n\n{foot}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's log of lost connections off the terminal: what matters of it is an error."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


class _Progress:
    """Moves the bar, says what was there already, and remembers how far it came."""

    def __init__(self, bar: Any, out: str, fresh: bool) -> None:
        self.bar, self.out, self.fresh = bar, out, fresh
        self.finished: int | None = None
        self.runs = 0
        self.heard = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Lose no Ctrl-C: where compiled code calls back, a KeyboardInterrupt is swallowed."""

        def hear(number: int, frame: FrameType | None) -> None:
            self.heard = True
            signal.default_int_handler(number, frame)

        before = signal.signal(signal.SIGINT, hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def __call__(self, finished: int, runs: int) -> None:
        if self.heard:
            raise KeyboardInterrupt
        if self.finished is None and finished:
            text = f"{finished:,} of {runs:,} runs are in {self.out}.journal already"
            click.echo(text, err=True)
        self.bar.update(finished - (self.finished or 0))
        self.finished, self.runs = finished, runs

    def interrupted(self) -> str:
        if not self.finished:
            return "interrupted before the first run was finished"
        return (
            f"interrupted: {self.finished:,} of {self.runs:,} runs are kept in {self.out}.journal; "
            f"the same command{' without --fresh' if self.fresh else ''} goes on from there"
        )


def _show(results: Results, form: str, where: str) -> None:
    rows = results.summary()
    titles = results.columns["study"]
    title = titles[0] if titles else ""
    if form == "json":
        click.echo(json.dumps({"title": title, "runs": len(results), "cells": rows}, indent=2))
        return
    if form == "table":
        budget = any(row["epsilon_reached"] is not None for row in rows)
        rows = [_for_people(row, budget) for row in rows]
        click.echo(f"{title}\n" if title else "", nl=bool(title))
    _lines(rows, form, f"\n\n{len(results):,} runs {where}")


def _for_people(row: dict[str, Any], budget: bool) -> dict[str, Any]:
    error, over, reached = row["pulls_error"], row["pulls_over_bound"], row["epsilon_reached"]
    rounded = {
        "pulls": f"{row['pulls']:,.0f}",
        "pulls_error": "" if error is None else f"{error:,.0f}",
        "pulls_over_bound": "" if over is None else f"{over:,.3g}",
        "epsilon_reached": "" if reached is None else f"{reached:.4g}",
        "seconds": f"{row['seconds']:.2g}",
    }
    names = {
        "pulls_error": "std. error",
        "pulls_over_bound": "pulls / bound",
        "epsilon_reached": "within",
    }
    return {
        names.get(name, name): rounded.get(name, value)
        for name, value in row.items()
        if budget or name != "epsilon_reached"
    }


def _lines(rows: list[dict[str, Any]], form: str, foot: str) -> None:
    header = tuple(rows[0]) if rows else ("cell",)
    cells = [tuple("" if value is None else value for value in row.values()) for row in rows]
    if form == "csv":
        click.echo(as_csv(header, cells))
    else:
        click.echo(as_table(header, cells) + foot)
