"""Table 1: the six crowd quizzes."""

from __future__ import annotations

from pathlib import Path

from superarm.datasets import QUIZZES, crowd
from superarm.experiments.base import Page, Settings, listing, markdown_table, read_rows, write_rows

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
        rows.append(
            {
                "quiz": quiz,
                "tasks": _tasks(means),
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


def plot(folder: Path) -> list[Path]:
    """There is nothing to draw."""
    return []


def page(folder: Path) -> Page:
    """Compare with the paper's table."""
    rows = read_rows(folder / "table1.csv")
    table, agree = [], []
    for row in rows:
        tasks, workers, average, best = PAPER[row["quiz"]]
        same = (
            (row["tasks"], row["workers"]) == (tasks, workers)
            and abs(row["average"] - average) <= 0.00501  # 0.475 is printed as 0.48, 0.295 as 0.29
            and abs(row["best"] - best) <= 0.00501
        )
        agree += [row["quiz"]] if same else []
        table.append(
            (
                row["quiz"],
                f"{row['tasks']:.0f} / {tasks}",
                f"{row['workers']:.0f} / {workers}",
                f"{row['average']:.3f} / {average:.2f}",
                f"{row['best']:.3f} / {best:.2f}",
                f"{row['gap_10_11']:.2f}",
            )
        )
    other = [row["quiz"] for row in rows if row["quiz"] not in agree]
    tied = [row["quiz"] for row in rows if row["gap_10_11"] < 1e-9]
    header = ("quiz", "tasks", "workers", "average", "best", "gap of ranks 10 and 11")
    return Page(
        "Table 1: the crowd quizzes",
        agrees=(
            f"{len(agree)} of {len(rows)} quizzes, in all four numbers, to the two digits that are "
            "printed."
        ),
        differs=(
            (f"{listing(other)}. " if other else "Nothing. ")
            + f"What the table does not say: {len(tied)} of {len(rows)} quizzes ({listing(tied)}) "
            "have a tie between ranks 10 and 11, so that several crews of ten are the best, and "
            '"the optimal subset" must mean one of them. Here an answer is right when its expected '
            "total is within epsilon of the best."
        ),
        body=(
            "Ours / the paper's. The number of tasks is the least of which all shares of right "
            f"answers are whole parts.\n\n{markdown_table(header, table)}\n\n{CREDIT}"
        ),
    )


CREDIT = (
    'Data: Li, Baba, Kashima, "Hyper Questions: Unsupervised Targeting of a Few Experts in '
    'Crowdsourcing" (CIKM 2017); GitHub repository garfieldpigljy/CrowdLabelwithTextContent, '
    "commit 6716cff, CC BY 4.0; reduced to each worker's share of right answers."
)
