"""The paper's Table 2 in the preset `experiments`, and other readings of SA-FOA.

Labels of independent workers, k = 10, epsilon = 0.5, delta = 0.05, random super-arms, means of five
supports. The claims: every answer is within epsilon; ICB and SAQM are within a factor 1.5 of the
paper (means of five supports scatter by 5 to 15 %); SA-FOA is within 4. That SA-FOA is not nearer
is not explained: each other reading of Algorithm 3 is tried too, and the claim about it is that it
does not bring all six quizzes within 1.25 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

import superarm as sa
from superarm.algorithms.base import Sides
from superarm.algorithms.sa_foa import first_order_rival
from superarm.design import Uniform
from superarm.experiments.table2 import NEAR, PAPER, RULES, instances
from superarm.quadratic.densest import peel
from superarm.schedule import Geometric

TITLE = "Table 2"
HEADER = (
    "rule",
    *(f"{quiz}: ours / paper" for quiz in ("IT", "Medicine", "Chinese", "Pokemon", "English")),
    "Science: ours / paper",
    "wrong of 30",
)
RUNS = 5


@dataclass(frozen=True, kw_only=True)
class Reading(sa.SAFOA):
    """SA-FOA whose sets F come from elsewhere: `way` says from where."""

    way: str = "printed"

    def sides(self, problem, phase, look, theta, info, C):
        """Both sides of the stop, for the strongest of the sets in F."""
        best, second = problem.decision.best_two(theta)
        W = info.inverse()
        inside = np.zeros(problem.n)
        inside[best] = 1.0
        drawn = phase.rng(look).integers(phase.plan.size, size=self.draws * problem.n)
        rows = phase.plan.members(np.unique(drawn[:1] if self.way == "one draw" else drawn))
        if self.way == "next best":
            found = [second]
        elif self.way == "one swap":
            found = [one_swap(W, theta, best, inside, C)]
        elif self.way == "drawn":
            found = list(rows)
        elif self.way in CHANGES:
            found = by_matrix(W, theta, inside, rows, C, problem.k, CHANGES[self.way])
        else:
            found = [first_order_rival(W, theta, best, rows, C)]
        radius, gap = 0.0, 0.0
        value = -np.inf
        for members in found:
            if members is None or set(members) == set(best):
                continue
            x = inside.copy()
            x[members] -= 1.0
            away = C * info.norm(x)
            if away - x @ theta > value:
                value, radius, gap = away - x @ theta, away, float(x @ theta)
        return Sides(best, gap, self.threshold * problem.epsilon, radius)


def one_swap(W, theta, best, inside, C):
    """The strongest of all rivals that differ by one arm."""
    square = np.diag(W)[:, None] + np.diag(W)[None, :] - 2 * W
    value = theta[None, :] - theta[:, None] + C * np.sqrt(np.maximum(square, 0))
    value[inside == 0] = -np.inf
    value[:, inside == 1] = -np.inf
    out, into = np.unravel_index(np.argmax(value), value.shape)
    return np.array([into if arm == out else arm for arm in best])


CHANGES = {
    "no theta": lambda W, towards, theta, gamma, k: (W, np.diag(W) - 2 * towards),
    "theta subtracted": lambda W, towards, theta, gamma, k: (
        W,
        np.diag(W) - 2 * towards - theta / gamma,
    ),
    "without the 2": lambda W, towards, theta, gamma, k: (W, np.diag(W) - towards + theta / gamma),
    "gamma of the square": lambda W, towards, theta, gamma, k: (
        W,
        np.diag(W) - 2 * towards + theta / gamma,
    ),
    "exact weights": lambda W, towards, theta, gamma, k: (
        W,
        (np.diag(W) - 2 * towards + theta / gamma) / (2 * (k - 1)),
    ),
}
"""Matrices in the place of B/gamma: off-diagonal part, and the vertices' own weights."""


def by_matrix(W, theta, inside, rows, C, k, change):
    """Greedy peeling of a changed B for each drawn super-arm."""
    towards = W @ inside
    for row in rows:
        x = -inside
        x[row] += 1.0
        square = float(x @ W @ x)
        if square <= 1e-12 * W.max():
            continue
        norm = square if change is CHANGES["gamma of the square"] else np.sqrt(square)
        off, own = change(W, towards, theta, C / (2 * norm), k)
        yield peel(off, np.ascontiguousarray(own), k)


def preset(**settings):
    """SA-FOA in the preset `experiments`, otherwise read."""
    return Reading.preset("experiments", **settings)


READINGS = {
    "epsilon/2": preset(threshold=0.5),
    "one draw a look (F emptied in the loop)": preset(way="one draw"),
    "ten times n draws": preset(draws=10),
    "one draw, looks 0.2 % apart": preset(way="one draw", schedule=Geometric(1.002)),
    "4n super-arms": preset(design=Uniform("4n")),
    "8n super-arms": preset(design=Uniform("8n")),
    "edges that weigh as x'Bx does": preset(way="exact weights"),
    "B without theta": preset(way="no theta"),
    "theta subtracted": preset(way="theta subtracted"),
    "Diag(gamma ...) without the 2": preset(way="without the 2"),
    "gamma with the squared norm": preset(way="gamma of the square"),
    "F: the drawn super-arms": preset(way="drawn"),
    "F: the next best super-arm": preset(way="next best"),
    "F: the strongest single swap": preset(way="one swap"),
}


def jobs():
    """One job a rule or reading."""
    for rule in RULES:
        most = 4.0 if rule is sa.SAFOA else 1.5
        yield f"table 2: {rule.name}", partial(line, rule.name, rule.preset("experiments"), most)
    for name in READINGS:
        yield f"table 2: sa-foa, {name}", partial(reading, name)


def reading(name):
    """One reading: the claim is that it does not fit."""
    return line(f"sa-foa, {name}", READINGS[name], None)


def line(name, rule, most):
    """Five runs on each quiz."""
    ratios, wrong = [], 0
    for instance, paper in zip(instances(), PAPER[rule.name], strict=True):
        world = instance.environment
        found = sa.replicate(instance.problem, rule, world, RUNS, rng=1)
        ratios.append(found.pulls_mean / 1000 / paper)
        wrong += found.wrong
    farthest = max(max(ratio, 1 / ratio) for ratio in ratios)
    holds = farthest > NEAR if most is None else farthest <= most and wrong == 0
    return (name, *(f"{ratio:.2f}" for ratio in ratios), str(wrong)), holds
