"""Pulls until the stop, against the literature's rules and the lower bound.

Means of runs with the same seeds for all. The ratio is to the pulls of our default, `Certified`.
The lower bound is theory: what any method needs on average, and what any method needs whose design
is as flat as a cyclic one. With epsilon > 0 it holds as delta -> 0 only.
"""

from __future__ import annotations

from common import Options, Row, tell

import superarm as sa
from superarm.datasets import crowd
from superarm.theory import lower_bound

REPLICATIONS = 5


def rows(options: Options) -> list[Row]:
    quiz = crowd("IT")
    labels = sa.Problem(quiz.arms, 10, sa.labels(), epsilon=0.5, delta=0.05)
    small = (8, 4, 0.8) if options.quick else (24, 12, 0.5)
    n, k, gap = small
    exact = sa.Problem(n, k, sa.gaussian(1.0), epsilon=0.0, delta=0.05)
    means = sa.synthetic(n, k, gap, rng=1)
    table = []
    if not options.quick:
        name = "IT quiz (36, 10), labels, epsilon 0.5"
        table += case(name, labels, quiz.means, (sa.Focused(), *literature()))
    name = f"synthetic ({n}, {k}), gap {gap:g}, normal noise, exact answer"
    ours = (sa.Certified(radius="calibrated"), sa.Focused())
    return table + case(name, exact, means, (*ours[options.quick :], *literature()))


def literature() -> tuple[sa.Algorithm, ...]:
    return (sa.CSAR(), sa.ICB(), sa.SAQM(), sa.SAFOA())


def case(
    name: str, problem: sa.Problem, means: tuple[float, ...], rules: tuple[sa.Algorithm, ...]
) -> list[Row]:
    tell(f"{name}: lower bound")
    world = sa.environment(means, problem.noise)
    bounds = {
        "any method": lower_bound(problem, means),
        "any on a flat design": lower_bound(problem, means, design="isotropic"),
    }
    ours = pulls(name, problem, sa.Certified(), world)
    default = ours.pulls_mean
    multiples = ", ".join(f"{default / bound.pulls:.3g} x {who}" for who, bound in bounds.items())
    table = [Row(f"{name}: certified", f"{default:,.0f} pulls, {said(ours)}; {multiples}")]
    for who, bound in bounds.items():
        least = f"at least {bound.pulls:,.0f} pulls ({bound.kind})"
        table.append(Row(f"{name}: {who}", least, ratios=(bound.pulls / default,)))
    for rule in rules:
        done = pulls(name, problem, rule, world)
        ratio = done.pulls_mean / default
        what = f"{name}: {title(rule)}"
        table.append(Row(what, f"{done.pulls_mean:,.0f} pulls, {said(done)}", ratios=(ratio,)))
    return table


def pulls(
    name: str, problem: sa.Problem, rule: sa.Algorithm, world: sa.Environment
) -> sa.Replications:
    tell(f"{name}: {title(rule)}")
    return sa.replicate(problem, rule, world, REPLICATIONS, rng=1)


def title(rule: sa.Algorithm) -> str:
    return f"{rule.name}, {rule.radius}" if isinstance(rule, sa.Certified) else rule.name


def said(done: sa.Replications) -> str:
    certified, runs = sum(run.verdict.certified for run in done.runs), len(done.runs)
    return "certified" if certified == runs else f"{certified} of {runs} certified"
