"""superarm reproduce: the paper's figures and tables, computed, drawn and compared."""

from __future__ import annotations

import sys
from pathlib import Path

import click

NAMES = ("figure2", "figure3", "figure4", "table1", "table2", "rules", "all")


@click.command()
@click.argument("name", type=click.Choice(NAMES), metavar=f"[{'|'.join(NAMES)}]")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder for data, pictures and pages; made if it is not there.",
)
@click.option("--quick", is_flag=True, help="Fewer and smaller cases, to see that it works.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; they change no number but times.",
)
@click.option(
    "--rng", type=click.IntRange(min=0), default=7, show_default=True, help="Seed of everything."
)
def reproduce(name: str, out: Path, quick: bool, workers: int, rng: int) -> None:
    """Repeat an experiment of the paper, or all of them, and compare. `rules` compares all rules.

    Data (CSV), pictures (PNG, PDF) and a page in Markdown that says what agrees and what does not
    go to DIR. The paths of the files are printed, pages first.
    """
    from superarm._jit import announce_compilation
    from superarm.experiments import Settings
    from superarm.experiments import reproduce as run

    announce_compilation()
    with _Progress() as progress:
        files = run(name, out, Settings(quick, workers, rng, progress))
    for path in files:
        click.echo(path)


class _Progress:
    """A bar on stderr for each experiment, on a terminal only."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._name = ""

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._name:
            click.echo(err=True)

    def __call__(self, name: str, done: int, of: int) -> None:
        if not self._shown:
            return
        if self._name not in ("", name):
            click.echo(err=True)
        self._name = name
        bar = "#" * (30 * done // of)
        click.echo(f"\r{name:8} [{bar:30}] {done:,} of {of:,}", err=True, nl=False)
