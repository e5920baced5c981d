"""The paper's Table 2 in the preset `experiments`: mean pulls of five runs beside the paper's.

Labels of independent workers, k = 10, epsilon = 0.5, delta = 0.05, 2n random super-arms. The claim
is that every answer is within epsilon, and that ICB and SAQM are within a factor 1.5 of the paper
(means of five supports scatter by 5 to 15 %).
"""

from __future__ import annotations

from functools import partial

import superarm as sa
from superarm.datasets import QUIZZES, crowd

TITLE = "Table 2"
HEADER = ("quiz", "rule", "pulls (thousands)", "the paper", "ours / paper", "wrong of 5")
PAPER = {
    "icb": (46_658, 73_337, 105_214, 20_943, 118_587, 362_558),
    "saqm": (68_328, 86_252, 110_504, 91_423, 131_512, 291_773),
    "sa-foa": (3_421, 3_493, 4_949, 3_050, 9_313, 15_611),
}
RULES = {"icb": sa.ICB, "saqm": sa.SAQM, "sa-foa": sa.SAFOA}


def jobs():
    """One job a cell."""
    for rule in RULES:
        for quiz in QUIZZES:
            yield f"table 2: {rule} on {quiz}", partial(cell, rule, quiz)


def cell(rule, quiz):
    """Five runs."""
    data = crowd(quiz)
    problem = sa.Problem(data.arms, 10, sa.labels(), epsilon=0.5)
    world = sa.environment(data.means, sa.labels())
    found = sa.replicate(problem, RULES[rule].preset("experiments"), world, 5, rng=1)
    paper = PAPER[rule][QUIZZES.index(quiz)]
    ratio = found.pulls_mean / 1000 / paper
    row = (quiz, rule, f"{found.pulls_mean / 1000:,.0f}", f"{paper:,}", f"{ratio:.2f}")
    near = rule == "sa-foa" or 1 / 1.5 <= ratio <= 1.5
    return (*row, str(found.wrong)), near and found.wrong == 0
