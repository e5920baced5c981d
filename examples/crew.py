"""Which ten of 36 workers make the best crew, when only a crew's total score is known?"""

from __future__ import annotations

import os
from math import comb
from pathlib import Path

import superarm as sa
from superarm._jit import announce_compilation
from superarm.cli.output import as_table
from superarm.datasets import crowd

PICTURE = Path(__file__).resolve().parents[1] / "build" / "crew.png"
STORY = """\
36 workers answered the 25 questions of a quiz on IT. Suppose that we may only send out crews of 10,
where each member gets a question of their own, drawn at random, and that we are told how many of
the ten answers were right, but not whose. Which ten workers make the best crew?

(The scores are simulated from each worker's true share of right answers, which superarm is not
told; the last two columns show it. A rank such as 2-4 is a tie.)
"""
CREDIT = """\
Data: Li, Baba, Kashima, "Hyper Questions: Unsupervised Targeting of a Few Experts in
Crowdsourcing" (CIKM 2017); GitHub repository garfieldpigljy/CrowdLabelwithTextContent, commit
6716cff, licence CC BY 4.0. Each worker's share of right answers was computed from the answers."""
BLUE, ORANGE, GREEN, INK = "#0b5fa5", "#c4572b", "#1b7f5c", "#333333"


def main() -> None:
    print(STORY, flush=True)
    workers = crowd("IT")
    problem = sa.Problem(workers.arms, k=10, noise=sa.labels(), epsilon=0.5, delta=0.05)
    scores = sa.environment(workers.means, problem.noise)
    looks: list[sa.Verdict] = []
    announce_compilation()
    run = sa.simulate(problem, sa.Certified(), scores, rng=1, watch=looks.append)
    print(table(workers.means, problem, run.verdict))
    print(conclusion(workers.means, problem, run))
    try:
        draw(workers.means, problem, looks)
        print(f"\nPicture: {os.path.relpath(PICTURE)}")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        print('\nNo picture, for want of matplotlib: pip install "superarm[plot]"')
    print(f"\n{CREDIT}")


def table(means: tuple[float, ...], problem: sa.Problem, verdict: sa.Verdict) -> str:
    """Return a line for each worker, the best estimate first."""
    rows = []
    for estimate, mean, name in sorted(
        zip(verdict.estimates, means, problem.arms, strict=True), reverse=True
    ):
        first, last = (
            1 + sum(other > mean for other in means),
            sum(other >= mean for other in means),
        )
        rank = f"{first}" if first == last else f"{first}-{last}"
        choice = "chosen" if name in verdict.answer else "no"
        rows.append((name, choice, f"{estimate:.1%}", f"{mean:.1%}", rank))
    return as_table(("worker", "crew", "estimated", "true", "true rank"), rows)


def conclusion(means: tuple[float, ...], problem: sa.Problem, run: sa.Run) -> str:
    """Say what is certified, what it cost, and how good the crew really is."""
    k, best, sure = problem.k, sum(sorted(means)[-problem.k :]), 1 - problem.delta
    finding = f"not certified: {run.verdict.reason}"
    if run.verdict.certified:
        finding = f"""with a probability of at least {sure:.0%}, the chosen crew's expected score
is within {problem.epsilon:g} right answers (of {k}) of the best crew's"""
    return f"""
Verdict: {finding}.
It took {run.pulls:,} crew measurements, of {run.verdict.design["support"]:,} different crews out of
the {comb(problem.n, k):,} possible ones.

In truth, the chosen crew's expected score is {best - run.regret:.2f} of {k}, and the best crew's
is {best:.2f}. The choice is {run.regret:.2f} right answers short of the best."""


def draw(means: tuple[float, ...], problem: sa.Problem, looks: list[sa.Verdict]) -> None:
    """Draw estimated against true accuracies, and how the run came to its stop."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
    end, e = looks[-1], f"{problem.epsilon:g}"
    for name, marker, color in (("chosen", "o", BLUE), ("not chosen", "X", ORANGE)):
        which = [i for i, arm in enumerate(problem.arms) if (arm in end.answer) == (marker == "o")]
        x, y = ([100 * values[i] for i in which] for values in (means, end.estimates))
        left.scatter(x, y, s=60, c=color, marker=marker, label=name, alpha=0.75, linewidths=0)
    left.axline((50, 50), slope=1, color=INK, linewidth=0.8, zorder=0, label="estimated = true")
    left.set_title("Crew totals alone tell how good each worker is")
    left.set(xlabel="true share of right answers (%)", ylabel="estimated share (%)")
    left.set_aspect("equal")
    left.legend(loc="upper left", frameon=False)

    pulls, radius = [look.pulls for look in looks], [look.radius for look in looks]
    right.plot(pulls, radius, color=INK, linewidth=2)
    right.plot(pulls, [look.gap + look.epsilon for look in looks], color=GREEN, linewidth=2)
    third = len(pulls) // 3
    off = "how far off the estimated\nlead may be (radius)"
    right.annotate(off, (pulls[third], radius[third]), (8, 8), textcoords="offset points")
    lead = f"the crew's lead over its closest rival + {e} (gap + epsilon)"
    right.text(0.02, 0.06, lead, color=GREEN, transform=right.transAxes)
    right.axvline(end.pulls, color=INK, linewidth=0.8, linestyle=":")
    stop = f"stop after {end.pulls:,} crew measurements"
    right.annotate(stop, (end.pulls, max(radius)), (-6, 0), textcoords="offset points", ha="right")
    right.set_title(f"Stop once the lead + {e} covers its possible error")
    right.set(xlabel="crew measurements", ylabel="right answers of a crew of 10")
    right.set(xlim=(0, None), ylim=(0, None))
    right.xaxis.set_major_formatter("{x:,g}")
    figure.supxlabel(CREDIT, fontsize=8, color=INK)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
