"""Where totals come from beside stated means: the paper's generator, and real answers replayed."""

from __future__ import annotations

import csv
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import chi2_contingency

import superarm as sa
from superarm import answers as answers_module
from superarm.answers import HASHES, RENAMED, fetch, quiz_answers, read_answers
from superarm.cli import main
from superarm.datasets import QUIZZES, crowd
from superarm.simulation.replay import Replay
from superarm.simulation.synthetic import synthetic
from superarm.tally import Tally

RAW = Path(
    os.environ.get("SUPERARM_CROWD")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "crowd"
)
needs_raw = pytest.mark.skipif(
    not RAW.is_dir(),
    reason="the raw answers do not come with superarm; name their folder in SUPERARM_CROWD",
)


# ---- the paper's synthetic instances -------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "k", "gap"), [(10, 5, 0.1), (10, 5, 1.0), (4, 3, 0.0), (24, 12, 0.5)]
)
def test_the_best_group_is_ahead_by_the_gap(n, k, gap):
    for seed in range(50):
        means = synthetic(n, k, gap, seed)
        order = np.sort(means)[::-1]
        assert len(means) == n
        assert (order[:k] >= 0).all()
        assert (order[:k] <= 1).all()
        assert order[k - 1] - order[k] == pytest.approx(gap, abs=1e-15)
        assert (order >= -1).all()


def test_all_are_best_where_k_is_n():
    assert (synthetic(3, 3, 0.5, 1) >= 0).all()


def test_means_are_uniform_and_in_random_order():
    drawn = np.array([synthetic(6, 2, 0.2, seed) for seed in range(3000)])
    ranks = (-drawn).argsort(axis=1)
    assert (
        np.bincount(ranks[:, 0], minlength=6).min() > 400
    )  # each place is the best one's at times
    best = np.sort(drawn, axis=1)[:, ::-1][:, :2].ravel()
    assert best.mean() == pytest.approx(0.5, abs=0.02)
    assert best.var() == pytest.approx(1 / 12, abs=0.005)
    next_best, low = np.sort(drawn, axis=1)[:, 3], drawn.min(axis=1)
    share = (low + 1) / (next_best + 1)  # the least of three that are uniform on [-1, next best]
    assert share.mean() == pytest.approx(1 / 4, abs=0.02)


def test_the_same_seed_gives_the_same_means():
    assert np.array_equal(synthetic(8, 3, 0.1, 5), synthetic(8, 3, 0.1, 5))
    assert not np.array_equal(synthetic(8, 3, 0.1, 5), synthetic(8, 3, 0.1, 6))


@pytest.mark.parametrize(
    ("n", "k", "gap", "says"),
    [
        (0, 1, 0.1, "n must be"),
        (3, 4, 0.1, "k must be"),
        (3, 1, 1.5, "between 0 and 1"),
        (3, 1, "x", "a number"),
    ],
)
def test_instances_that_cannot_be_are_refused(n, k, gap, says):
    with pytest.raises(sa.SuperarmError, match=says):
        synthetic(n, k, gap, 1)


# ---- replay --------------------------------------------------------------------------------------

RIGHT = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 0]])


def plan_of(k=2):
    problem = sa.Problem(4, k, sa.labels(shared=True))
    return sa.Uniform("full").plan(problem, np.random.default_rng(0))


def test_a_pull_is_the_score_of_a_crew_on_one_question():
    plan = plan_of()
    totals = Replay(RIGHT).pulls(plan, 0, 6000, np.random.default_rng(1))
    order = plan.order(0, 6000)
    for M in range(plan.size):
        scores = RIGHT[:, plan.members(M)].sum(axis=1)
        seen = np.bincount(totals[order == M].astype(int), minlength=3) / 1000
        assert np.abs(seen - np.bincount(scores, minlength=3) / 5).max() < 0.07


def test_blocks_have_the_law_of_single_pulls():
    plan, world = plan_of(), Replay(RIGHT)
    single, block = [], []
    for seed in range(1500):
        for found, add in ((single, sa.Environment.add), (block, Replay.add)):
            tally = Tally(plan.size)
            add(world, tally, plan, 0, 5 * plan.size, np.random.default_rng([seed, len(found)]))
            found.append((tally.totals, tally.squares))
    for part in range(2):
        table = [
            np.bincount(np.array([x[part] for x in found]).ravel().astype(int), minlength=25)
            for found in (single, block)
        ]
        table = np.array(table)[:, np.sum(table, axis=0) > 0]
        assert chi2_contingency(table).pvalue > 1e-5


def test_means_are_the_shares_of_right_answers():
    assert Replay(RIGHT).means.tolist() == [0.8, 0.4, 0.6, 0.2]


def test_a_crew_is_found_from_real_answers():
    """Members answer the same question: only the shared noise model is known to be true."""
    noise = sa.labels(shared=True)
    problem = sa.Problem(4, 2, noise, epsilon=0.15)
    run = sa.simulate(problem, sa.ICB(), Replay(RIGHT), rng=1)
    assert run.verdict.certified
    assert set(run.verdict.answer) == {"1", "3"}
    assert run.regret == 0.0


@pytest.mark.parametrize("right", [[], [[]], [1, 0], [[0.5]], [["yes"]]])
def test_answers_that_are_no_table_are_refused(right):
    with pytest.raises(sa.DataError, match="rows of right"):
        Replay(right)


# ---- raw answers ---------------------------------------------------------------------------------


def write_quiz(folder: Path, answers: str, truth: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "answer.csv").write_text(answers)
    (folder / "truth.csv").write_text(truth)
    return folder


def test_answers_are_compared_with_the_truth_by_question(tmp_path):
    folder = write_quiz(
        tmp_path / "quiz", "question_id,x,y\n1,A,B\n2,C,C\n", "question_id,truth\n2,C\n1,B\n"
    )
    found = read_answers(folder)
    assert found.workers == ("worker1", "worker2")
    assert found.right.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("answers", "truth", "says"),
    [
        ("question_id,x\n1,A\n", "question_id,truth\n2,A\n", "different questions"),
        ("question_id,x\n1,A\n1,B\n", "question_id,truth\n1,A\n", "must be there once"),
        ("question_id,x,y\n1,A\n", "question_id,truth\n1,A\n", "one option in each column"),
        ("", "question_id,truth\n1,A\n", "no answers in it"),
    ],
)
def test_answers_that_cannot_be_read_are_named(tmp_path, answers, truth, says):
    with pytest.raises(sa.DataError, match=says):
        read_answers(write_quiz(tmp_path / "quiz", answers, truth))


def test_every_quiz_has_its_hashes():
    expected = {
        f"{name}/{file}.csv"
        for name in answers_module.FOLDERS.values()
        for file in ("answer", "truth")
    }
    assert set(HASHES) == expected
    assert set(RENAMED) <= expected
    assert len(answers_module.COMMIT) == 40


def test_answers_that_are_not_there_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERARM_CROWD", str(tmp_path))
    with pytest.raises(sa.DataError, match="superarm datasets fetch IT"):
        quiz_answers("it")


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path):
    write_quiz(tmp_path / "ITMANAGE", "question_id,x\n1,A\n", "question_id,truth\n1,A\n")
    with pytest.raises(sa.DataError, match="not the file that was published"):
        quiz_answers("IT", tmp_path)
    result = CliRunner().invoke(
        main, ["datasets", "fetch", "IT", "--from", str(tmp_path), "--to", "x"]
    )
    assert result.exit_code == 2
    assert "not the file that was published" in result.stderr


def test_a_network_that_is_out_of_reach_is_one_clear_line(tmp_path, monkeypatch):
    """Nothing answers on this port of this machine."""
    monkeypatch.setattr(answers_module, "SOURCE", "http://127.0.0.1:9/")
    result = CliRunner().invoke(main, ["datasets", "fetch", "IT", "--to", str(tmp_path)])
    assert result.exit_code == 2
    assert "ITMANAGE/answer.csv cannot be fetched" in result.stderr
    assert "--from" in result.stderr
    assert "Traceback" not in result.output


@needs_raw
def test_what_is_fetched_is_checked_and_brought_once(tmp_path, monkeypatch):
    """By a real server on this machine that serves the files under the published paths."""
    import functools
    import threading
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(RAW)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setattr(answers_module, "SOURCE", f"http://127.0.0.1:{server.server_port}/")
        for _ in range(2):
            result = CliRunner().invoke(main, ["datasets", "fetch", "IT", "--to", str(tmp_path)])
            assert result.exit_code == 0, result.stderr
    finally:
        server.shutdown()
        server.server_close()
    assert asked == ["/ITMANAGE/answer.csv", "/ITMANAGE/truth.csv"]
    assert quiz_answers("IT", tmp_path).right.shape == (25, 36)


@needs_raw
@pytest.mark.parametrize("quiz", QUIZZES)
def test_replayed_means_are_the_shipped_shares(quiz, tmp_path, monkeypatch):
    result = CliRunner().invoke(
        main, ["datasets", "fetch", quiz, "--from", str(RAW), "--to", str(tmp_path)]
    )
    assert result.exit_code == 0, result.stderr
    monkeypatch.setenv("SUPERARM_CROWD", str(tmp_path))
    found = quiz_answers(quiz)
    assert found.workers == crowd(quiz).arms
    assert Replay(found.right).means == pytest.approx(crowd(quiz).means, abs=1e-15)
    assert fetch(quiz).parent == tmp_path


@needs_raw
def test_real_answers_depend_on_each_other():
    """Some questions are easy for all: totals vary more than those of independent workers."""
    right = quiz_answers("IT", RAW).right
    best = np.argsort(-right.mean(axis=0))[:10]
    p = right.mean(axis=0)[best]
    assert right[:, best].sum(axis=1).var() > 1.5 * (p * (1 - p)).sum()


# ---- the command ---------------------------------------------------------------------------------


def test_list_and_show():
    listed = json.loads(CliRunner().invoke(main, ["datasets", "list", "--format", "json"]).stdout)
    assert [row["quiz"] for row in listed] == list(QUIZZES)
    assert listed[0]["workers"] == 36
    table = CliRunner().invoke(main, ["datasets", "list"]).stdout
    assert "CC BY 4.0" in table
    shown = CliRunner().invoke(main, ["datasets", "show", "pokémon", "--format", "csv"]).stdout
    rows = list(csv.reader(shown.splitlines()))
    assert rows[0] == ["arm", "mean"]
    assert [float(mean) for _, mean in rows[1:]] == list(crowd("Pokemon").means)
    by_name = json.loads(
        CliRunner().invoke(main, ["datasets", "show", "IT", "--format", "json"]).stdout
    )
    assert tuple(itertools.islice(by_name, 2)) == ("worker1", "worker2")


def test_an_unknown_quiz_is_refused():
    result = CliRunner().invoke(main, ["datasets", "show", "chess"])
    assert result.exit_code == 2
    assert "quiz 'chess' is not one of IT" in result.stderr
