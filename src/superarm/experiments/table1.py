"""Table 1: the six crowd quizzes."""

from __future__ import annotations

from pathlib import Path

from superarm.datasets import QUIZZES, crowd
from superarm.experiments.base import Settings, markdown_table, read_rows, write_rows

PAPER = {
    "IT": (25, 36, 0.54, 0.84),
    "Medicine": (36, 45, 0.48, 0.92),
    "Chinese": (24, 50, 0.37, 0.79),
    "Pokemon": (20, 55, 0.28, 1.00),
    "English": (30, 63, 0.26, 0.70),
    "Science": (20, 111, 0.29, 0.85),
}
"""Tasks, workers, average and best, as the paper prints them."""


def compute(folder: Path, settings: Settings) -> None:
    """Write a row for each quiz, recomputed from the workers' shares of right answers."""
    rows = []
    for done, quiz in enumerate(QUIZZES, 1):
        means = sorted(crowd(quiz).means, reverse=True)
        tasks = _tasks(means)
        rows.append(
            {
                "quiz": quiz,
                "tasks": tasks,
                "workers": len(means),
                "average": sum(means) / len(means),
                "best": means[0],
                "gap_10_11": means[9] - means[10],
            }
        )
        settings.report("table1", done, len(QUIZZES))
    write_rows(folder / "table1.csv", rows)


def _tasks(means: list[float]) -> int:
    """Return the least number of tasks of which all shares are whole parts."""
    return next(q for q in range(1, 1000) if all(abs(m * q - round(m * q)) < 1e-9 for m in means))


def plot(folder: Path) -> None:
    """There is nothing to draw."""


def page(folder: Path) -> str:
    """Compare with the paper's table."""
    rows = read_rows(folder / "table1.csv")
    table, agree = [], 0
    for row in rows:
        tasks, workers, average, best = PAPER[row["quiz"]]
        ours = (int(row["tasks"]), int(row["workers"]), row["average"], row["best"])
        near = abs(ours[2] - average) <= 0.0051 and abs(ours[3] - best) <= 0.0051
        same = ours[:2] == (tasks, workers) and near
        agree += same
        table.append(
            (
                row["quiz"],
                f"{ours[0]} / {tasks}",
                f"{ours[1]} / {workers}",
                f"{ours[2]:.3f} / {average:.2f}",
                f"{ours[3]:.3f} / {best:.2f}",
                f"{row['gap_10_11']:.2f}",
                "yes" if same else "no",
            )
        )
    header = (
        "quiz",
        "tasks, ours / paper",
        "workers",
        "average",
        "best",
        "gap of ranks 10, 11",
        "agree",
    )
    return (
        "## Table 1: the crowd quizzes\n\n"
        f"{markdown_table(header, table)}\n\n{agree} of {len(rows)} agree (shares to the two "
        "digits printed). Five of the six have a tie between ranks 10 and 11, so that several "
        "crews are best: an answer is right when its expected total is within epsilon of the best "
        "total.\n\n"
        'Data: Li, Baba, Kashima, "Hyper Questions: Unsupervised Targeting of a Few Experts in '
        'Crowdsourcing" (CIKM 2017); GitHub repository garfieldpigljy/CrowdLabelwithTextContent, '
        "commit 6716cff, CC BY 4.0."
    )
