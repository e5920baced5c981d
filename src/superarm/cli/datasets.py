"""superarm datasets: the six crowd quizzes, and the raw answers behind them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from superarm.cli.output import as_csv, as_table
from superarm.cli.question import format_option

CREDIT = (
    'Data: Li, Baba, Kashima, "Hyper Questions" (CIKM 2017); GitHub repository '
    "garfieldpigljy/CrowdLabelwithTextContent, commit 6716cff, licence CC BY 4.0."
)


@click.group()
def datasets() -> None:
    """List the quizzes that come with superarm, show one, or fetch its raw answers."""


@datasets.command("list")
@format_option("A table to read, one JSON object, or a CSV line a quiz.")
def list_quizzes(form: str) -> None:
    """List the quizzes: workers, the shares of right answers, and whether raw answers are there."""
    from superarm.answers import FOLDERS, default_folder
    from superarm.datasets import QUIZZES, crowd

    rows = []
    for quiz in QUIZZES:
        means = sorted(crowd(quiz).means, reverse=True)
        there = (default_folder() / FOLDERS[quiz] / "answer.csv").exists()
        average = sum(means) / len(means)
        rows.append((quiz, len(means), average, means[0], means[9] - means[10], there))
    header = ("quiz", "workers", "average", "best", "gap_10_11", "answers")
    if form == "json":
        click.echo(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2))
    elif form == "csv":
        click.echo(as_csv(header, rows))
    else:
        words = [
            (quiz, n, f"{average:.3f}", f"{best:.3f}", f"{gap:.2f}", "yes" if there else "no")
            for quiz, n, average, best, gap, there in rows
        ]
        titles = ("quiz", "workers", "average", "best", "gap of ranks 10, 11", "raw answers here")
        click.echo(f"{as_table(titles, words)}\n\n{CREDIT}")


@datasets.command()
@click.argument("quiz")
@format_option("A table to read, one JSON object, or CSV with the header arm,mean.")
def show(quiz: str, form: str) -> None:
    """Show each worker's share of right answers; as CSV it is a file for --means."""
    from superarm.datasets import crowd

    given = crowd(quiz)
    rows = list(zip(given.arms, given.means, strict=True))
    if form == "json":
        click.echo(json.dumps(dict(rows), indent=2))
    elif form == "csv":
        click.echo(as_csv(("arm", "mean"), rows))
    else:
        best = sorted(rows, key=lambda row: -row[1])
        table = as_table(("worker", "right"), [(arm, f"{mean:.3f}") for arm, mean in best])
        click.echo(f"{table}\n\n{CREDIT}")


@datasets.command()
@click.argument("quizzes", nargs=-1, metavar="[QUIZ]...")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A local folder to copy from.  [default: the network]",
)
@click.option(
    "--to",
    "place",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to keep them.  [default: SUPERARM_CROWD, or the user's cache]",
)
def fetch(quizzes: tuple[str, ...], source: Path | None, place: Path | None) -> None:
    """Bring the raw answers of quizzes (all, if none is named), checked by their hashes."""
    from superarm.answers import fetch as bring
    from superarm.datasets import QUIZZES, quiz_name

    for quiz in [quiz_name(quiz) for quiz in quizzes] or QUIZZES:
        click.echo(f"{quiz}: {bring(quiz, place, source)}")
