"""The radius that adapts to the variance of labels.

Hard instances whose labels vary little, with a gap at the border of epsilon: wrong answers among
certified ones, as under "Guarantees"; and with the radius deliberately cut, to see that the test
can fail (by half where labels are as noisy as can be; by two thirds elsewhere, where the variance
is known less well than it is small). Then the pulls on the crowds of the paper, as the mean over
runs at delta = 0.05, beside those of the levels radius with the same seeds.
"""

from __future__ import annotations

from functools import partial

from adaptive_cases import SURE, Cut, CutByThree, hunt_adaptive
from certified_cases import CROWD, crowd_case
from guarantees import DELTA
from support import most_wrong

import superarm as sa

TITLE = "The adaptive radius"
HEADER = (
    "case",
    "runs",
    "mean pulls",
    "pulls at most",
    "levels",
    "/ levels",
    "wrong",
    "wrong at most",
    "99 % interval",
)
RUNS, TABLE_RUNS = 2_000, 20
NOISY = ("as noisy as can be",)  # as under "The certified default"
CAUGHT = {NOISY[0]: Cut, "nearly hopeless": CutByThree, "nearly sure": CutByThree}
MOST = {quiz: (0.8 if quiz == "pokemon" else 1.05) * most for quiz, (most, _) in CROWD.items()}


def jobs():
    """Name and function of each run; a function returns its row and whether the claim holds."""
    for name in SURE:
        if name not in NOISY:
            yield f"adaptive on {name}", partial(right, name)
    for name, kind in CAUGHT.items():
        yield f"adaptive on {name}, radius / {kind.by:g}", partial(caught, name, kind)
    for quiz in CROWD:
        yield f"adaptive on {quiz}", partial(crowd, quiz)


def right(name):
    """The rule as it is."""
    found = hunt_adaptive(name, RUNS, DELTA)
    return _hunted(name, found), found.holds and found.wrong <= found.delta * found.runs


def caught(name, kind):
    """The rule with its radius cut: the claim is that the test sees it."""
    found = hunt_adaptive(name, RUNS, DELTA, kind)
    return _hunted(f"{name}, radius / {kind.by:g}", found), not found.holds


def crowd(quiz):
    """Mean pulls on a crowd of the paper, and those of the levels radius."""
    problem, world = crowd_case(quiz)
    found, levels = (
        sa.replicate(problem, sa.Certified(radius=radius), world, TABLE_RUNS, rng=1)
        for radius in ("adaptive", "levels")
    )
    ratio = found.pulls_mean / levels.pulls_mean
    row = (
        f"{quiz} ({problem.n} workers)",
        str(TABLE_RUNS),
        f"{found.pulls_mean:,.0f}",
        f"{MOST[quiz]:,.0f}",
        f"{levels.pulls_mean:,.0f}",
        f"{ratio:.2f}",
        str(found.wrong),
        "0",
        "",
    )
    return row, found.pulls_mean <= MOST[quiz] and ratio <= 1.05 and found.wrong == 0


def _hunted(what, found):
    low, high = found.interval
    return (
        what,
        f"{found.runs:,}",
        f"{found.pulls:,.0f}",
        "",
        "",
        "",
        str(found.wrong),
        str(most_wrong(found.runs, found.delta)),
        f"{100 * low:.2f} .. {100 * high:.2f} %",
    )
