"""Where the totals of a study come from: the laws behind its numbers."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from studies import study_in

import superarm as sa
from superarm.answers import quiz_answers
from superarm.tally import Tally

RAW = Path(
    os.environ.get("SUPERARM_CROWD")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "crowd"
)

EASY_OR_HARD = np.array([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
"""Few questions, which workers answer much alike."""

PULLS = 4


def tallies(add, runs=4000):
    """Return how often each pair of sum and sum of squares came of one crew's four pulls."""
    problem = sa.Problem(4, 3, sa.labels(shared=True))
    plan = sa.Uniform("full").plan(problem, np.random.default_rng(0))
    seen = np.zeros((3 * PULLS + 1, 9 * PULLS + 1), dtype=int)
    for seed in range(runs):
        tally = Tally(plan.size)
        add(tally, plan, 0, PULLS * plan.size, np.random.default_rng([seed, 8]))
        assert tally.counts.tolist() == [PULLS] * plan.size
        seen[int(tally.totals[-1]), int(tally.squares[-1])] += 1
    return seen.ravel()


def agreement(one, other):
    """Return the p-value of both being drawn from one law."""
    table = np.array([one, other])
    return chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def test_replayed_blocks_have_the_joint_law_of_questions_asked_one_at_a_time():
    """Of sum and sum of squares at once; workers taken for independent would not pass."""

    def by_hand(tally, plan, start, stop, rng):
        for position in range(start, stop):
            M = int(plan.order(position, position + 1)[0])
            question = EASY_OR_HARD[rng.integers(len(EASY_OR_HARD))]
            tally.add(np.array([M]), np.array([float(question[plan.members(M)].sum())]))

    world = sa.Replay(EASY_OR_HARD)
    blocks, singles = tallies(world.add), tallies(by_hand, 1500)
    independent = sa.environment(world.means, sa.labels())
    shared = sa.environment(world.means, sa.labels(shared=True))
    assert agreement(blocks, singles) > 1e-5
    assert agreement(tallies(independent.add), singles) < 1e-9
    assert agreement(tallies(shared.add), singles) < 1e-9


def test_what_goes_to_workers_is_the_answers_alone():
    world = sa.Replay(EASY_OR_HARD)
    plan = sa.Uniform("full").plan(sa.Problem(4, 2, sa.labels()), np.random.default_rng(0))
    small = len(pickle.dumps(world))
    world.pulls(plan, 0, 10, np.random.default_rng(0))
    assert len(pickle.dumps(world)) == small
    again = pickle.loads(pickle.dumps(world))
    drawn = [each.pulls(plan, 0, 50, np.random.default_rng(3)) for each in (world, again)]
    assert np.array_equal(*drawn)


def write_quiz(folder, right):
    """Write answers as they were published, with these ones right."""
    folder.mkdir(parents=True)
    head = "question," + ",".join(f"w{i}" for i in range(right.shape[1]))
    rows = [f"{q}," + ",".join("AB"[1 - x] for x in row) for q, row in enumerate(right)]
    (folder / "answer.csv").write_text("\n".join([head, *rows]) + "\n")
    (folder / "truth.csv").write_text(
        "\n".join(["question,truth", *(f"{q},A" for q in range(len(right)))]) + "\n"
    )


REPLAY = """
replications = 6
[[instance]]
replay = "IT"
k = 2
epsilon = 0.4
noise = "shared-labels"
[[algorithm]]
name = "icb"
"""


def test_a_study_replays_answers_from_a_folder(tmp_path, monkeypatch):
    from superarm import answers

    write_quiz(tmp_path / "raw" / "ITMANAGE", EASY_OR_HARD)
    monkeypatch.setenv("SUPERARM_CROWD", str(tmp_path / "raw"))
    monkeypatch.setattr(answers, "_check", lambda path, file: None)  # it is not the published one
    found = study_in(tmp_path, REPLAY).run()
    assert set(found.columns["instance"]) == {"IT replay"}
    assert set(found.columns["answer"]) <= {"worker1;worker2", "worker2;worker4"}
    assert found.columns["regret"] == [0.0] * 6
    assert all(found.columns["certified"])


@pytest.mark.skipif(
    not RAW.is_dir(),
    reason="the raw answers do not come with superarm; name their folder in SUPERARM_CROWD",
)
def test_a_study_replays_a_quiz(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERARM_CROWD", str(RAW))
    study = study_in(tmp_path, REPLAY.replace("k = 2", "k = 10").replace("0.4", "2.0"))
    assert np.array_equal(study.cells[0].instance.environment.right, quiz_answers("IT").right)
    found = study.run()
    assert not any(found.columns["wrong"])
    assert len(set(found.columns["pulls"])) > 1


def test_synthetic_instances_are_those_of_their_seed(tmp_path):
    text = """
    [[instance]]
    synthetic = {n = 10, k = 5, gap = [0.1, 1.0]}
    instance_rng = [1, 2]
    noise = "gaussian:1"
    [[algorithm]]
    name = "icb"
    """
    study = study_in(tmp_path, text)
    seen = [tuple(cell.instance.environment.means) for cell in study.cells]
    assert seen == [tuple(sa.synthetic(10, 5, gap, rng=r)) for gap in (0.1, 1.0) for r in (1, 2)]
    labels = [dict(cell.instance.labels) for cell in study.cells]
    assert labels == [{"gap": gap, "instance_rng": r} for gap in (0.1, 1.0) for r in (1, 2)]
