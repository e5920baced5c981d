"""Simulation in bulk, on the Science quiz: whole runs, and per pull against one pull at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from common import AS_GIVEN, Options, Row, Times, now, seconds, tell

import superarm as sa
from superarm import reference
from superarm.datasets import crowd
from superarm.tally import Tally

LEAST_RATIO = 1e5
LIMIT = 1.0
LEAST_PULLS = 2e8


def rows(options: Options) -> list[Row]:
    quick = options.quick
    quiz = crowd("Science")
    problem = sa.Problem(quiz.arms, 10, sa.labels(), epsilon=0.5, delta=0.05)
    algorithm = sa.SAQM.preset("experiments")
    world = sa.environment(quiz.means, problem.noise)
    seeds, repeats, looks = (range(1), 1, (300, 306)) if quick else (range(5), 5, (8_000, 8_160))
    sa.simulate(problem, algorithm, world, rng=0)  # compiles
    whole: dict[int, list[sa.Run]] = {seed: [] for seed in seeds}
    adding, pulling, stretch = [], [], []
    for repeat in range(repeats):
        tell(f"Science, SAQM as in the experiments, {repeat + 1} of {repeats}")
        for seed in seeds:
            whole[seed].append(sa.simulate(problem, algorithm, world, rng=seed))
        run = whole[seeds[0]][-1]
        adding.append(seconds_of_adding(problem, algorithm, world, run) / run.pulls)
        pull, look = seconds_of_reference(problem, algorithm, quiz.means, looks)
        pulling.append(pull)
        stretch.append(look)
    first = [run.seconds / run.pulls for run in whole[seeds[0]]]
    return [
        *([] if quick else [side_by_side()]),
        whole_run(whole),
        against_reference(
            "simulation in bulk, looks and all, a pull", first, stretch, f"at {looks[0]:,} pulls"
        ),
        against_reference("simulation in bulk, pulls alone, a pull", adding, pulling, ""),
    ]


def side_by_side() -> Row:
    """Time the same runs by one worker, and by two at once: no run should take longer."""
    taken = {}
    for workers in (1, 2):
        tell(f"Science, SAQM as it comes, by {workers} worker(s)")
        means = Path(sa.__file__).parent / "data" / "crowd" / "science.csv"
        question = ["--means", str(means), "--k", "10", "--noise", "labels", "--epsilon", "0.5"]
        how = ["--replications", "4", "--workers", str(workers), "--format", "json"]
        command = [sys.executable, "-m", "superarm", "simulate", *question, *how]
        done = subprocess.run(command, env=AS_GIVEN, capture_output=True, check=True)
        taken[workers] = Times(tuple(run["seconds"] for run in json.loads(done.stdout)["runs"]))
    return Row(
        "superarm simulate, a run of SAQM on Science, by one worker; by two at once",
        f"{taken[1]}; {taken[2]}",
    )


def whole_run(runs: dict[int, list[sa.Run]]) -> Row:
    pulls = [of_seed[0].pulls for of_seed in runs.values()]
    times = [Times(tuple(run.seconds for run in of_seed)) for of_seed in runs.values()]
    slowest = max(times, key=lambda t: t.least)
    return Row(
        f"a run of SAQM on Science as in the experiments, slowest of {len(runs)} seeds",
        f"{slowest}; {min(pulls):.3g} to {max(pulls):.3g} pulls",
        f"<= {seconds(LIMIT)}, more than {LEAST_PULLS:.0g} pulls",
        met=slowest.least <= LIMIT and min(pulls) > LEAST_PULLS,
    )


def against_reference(what: str, ours: list[float], slow: list[float], where: str) -> Row:
    ratio = min(slow) / min(ours)
    return Row(
        what,
        f"{Times(tuple(ours))}; reference {seconds(min(slow))} {where}".rstrip(),
        f">= {LEAST_RATIO:.0e} x",
        (ratio,),
        met=ratio >= LEAST_RATIO,
    )


def seconds_of_adding(
    problem: sa.Problem, algorithm: sa.SAQM, world: sa.Environment, run: sa.Run
) -> float:
    """Add the pulls of a run to a tally, block by block from look to look, and never look."""
    phase = algorithm.first(problem, run.seed)
    tally, rng = Tally(phase.plan.size), np.random.default_rng(run.seed)
    started = now()
    before = 0
    for look in range(1, run.verdict.look + 1):
        t = phase.looks.time(look)
        world.add(tally, phase.plan, before, t, rng)
        before = t
    assert before == run.pulls
    return now() - started


def seconds_of_reference(
    problem: sa.Problem, algorithm: sa.SAQM, means: tuple[float, ...], looks: tuple[int, int]
) -> tuple[float, float]:
    """Return the time a pull: without looks up to the first, with the look from first to second.

    Two looks 2 % apart, as in the schedule. A look goes through all pulls anew, so that its share
    of the time a pull is the same from there on.
    """
    support = [tuple(map(int, row)) for row in algorithm.first(problem, 0).plan.support]
    proportions = [1 / len(support)] * len(support)
    order = reference.tracking_order(proportions, looks[-1])
    rng = np.random.default_rng(0)
    pulled: list[float] = []
    looked: list[float] = []

    def total(s: int) -> float:
        drawn = reference.draw_total(rng, means, support[order[s]], ("labels",))
        pulled.append(now())
        return drawn

    def rule(*data: object) -> reference.Sides:
        sides = reference.saqm_sides(*data, alpha=1.0)
        looked.append(now())
        return sides

    reference.run(
        rule,
        support,
        proportions,
        looks,
        total,
        sigma=float(problem.k),
        n=problem.n,
        k=problem.k,
        epsilon=problem.epsilon,
        delta=problem.delta,
        constants="paper",
    )
    alone = (pulled[looks[0] - 1] - pulled[0]) / (looks[0] - 1)
    return alone, (looked[1] - looked[0]) / (looks[1] - looks[0])
