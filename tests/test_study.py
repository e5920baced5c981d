"""Studies: cells, seeds, tables, summaries, and the same numbers whoever runs them."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pty
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from studies import QUICK, numbers, study_in, write_study

import superarm as sa
from superarm.cli import main
from superarm.study import facts, results
from superarm.study.batches import MOST, Batches
from superarm.study.identity import digest
from superarm.study.journal import left


def instance(name="three", means=(0.9, 0.5, 0.1), k=1, epsilon=0.2, **labels):
    problem = sa.Problem(len(means), k, sa.gaussian(0.5), epsilon=epsilon)
    return sa.Instance(name, problem, sa.environment(means, problem.noise), labels)


def called(*words):
    return CliRunner().invoke(main, ["study", *map(str, words)])


@pytest.fixture
def study(tmp_path):
    return study_in(tmp_path)


# ---- the table -----------------------------------------------------------------------------------


def test_a_row_a_run_with_all_that_it_takes_to_repeat_it(study):
    rows = study.run().rows
    assert len(rows) == study.runs == 9 * 5
    assert [(row["cell"], row["replication"]) for row in rows] == [
        (cell, replication) for cell in range(1, 10) for replication in range(1, 6)
    ]
    assert len({row["seed"] for row in rows}) == len(rows)
    for row in rows:
        cell = study.cells[row["cell"] - 1]
        problem, world = cell.instance.problem, cell.instance.environment
        run = sa.simulate(problem, cell.algorithm, world, rng=row["seed"])
        assert (row["pulls"], row["regret"], row["certified"], row["wrong"], row["look"]) == (
            *(run.pulls, run.regret, run.verdict.certified),
            *(run.wrong(problem.epsilon), run.verdict.look),
        )
        assert row["digest"] == run.verdict.design["digest"]
        assert row["support"] == run.verdict.design["support"]
        assert row["answer"].split(";") == list(run.verdict.answer)
        assert row["superarm"] == sa.__version__
        assert row["numpy"] == np.__version__
        assert row["seconds"] >= 0
    assert {row["gap"] for row in rows} == {0.4, 0.8, None}
    assert {row["instance"] for row in rows} == {"synthetic", "four"}


def test_seeds_are_those_of_spawned_sequences(study):
    child = np.random.SeedSequence(study.rng).spawn(9)[3].spawn(2)[1]
    assert study.seed(4, 2) == int(np.random.default_rng(child).integers(2**63))


def test_more_replications_and_cells_leave_earlier_runs_as_they_were(tmp_path, study):
    more = study_in(tmp_path, QUICK + '\n[[instance]]\ncrowd="IT"\nk=2\nnoise="labels"\n')
    assert len(more.cells) == 12
    less, few = study.run(), study_in(tmp_path, replications=2).run()
    for row in few.rows:
        twin = next(
            other
            for other in less.rows
            if (other["cell"], other["replication"]) == (row["cell"], row["replication"])
        )
        assert {**row, "seconds": 0} == {**twin, "seconds": 0}
    assert [more.seed(c, r) for c in (1, 9) for r in (1, 5)] == [
        study.seed(c, r) for c in (1, 9) for r in (1, 5)
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_a_table_is_read_as_it_was_written(study, tmp_path, suffix):
    out = tmp_path / f"table{suffix}"
    found = study.run(out=out)
    again = sa.Results.read(out)
    assert dict(again.columns) == dict(found.columns)
    assert again.rows == found.rows
    assert again.summary() == found.summary()


def test_tables_are_written_under_the_name_of_their_kind(study, tmp_path):
    found = study.run()
    found.to_csv(tmp_path / "a.csv")
    found.to_parquet(tmp_path / "a.parquet")
    assert sa.Results.read(tmp_path / "a.csv").rows == sa.Results.read(tmp_path / "a.parquet").rows
    with pytest.raises(sa.SettingError, match=r"must end in .csv, not"):
        found.to_csv(tmp_path / "b.parquet")
    with pytest.raises(sa.SettingError, match=r"must end in .parquet, not"):
        found.to_parquet(tmp_path / "b.csv")
    assert list(tmp_path.glob("b*")) == []


def test_labels_keep_their_types(tmp_path):
    labels = {"flag": True, "count": 3, "share": 0.25, "text": "a;b,\n\"c'", "code": "007"}
    cells = [
        sa.Cell(instance("a", **labels), sa.ICB(), {"own": np.int64(4), "huge": 2**62}),
        sa.Cell(instance("b", mixed=1), sa.ICB()),
        sa.Cell(instance("c", mixed=0.5), sa.ICB()),
    ]
    found = sa.Study(cells, 1).run(out=tmp_path / "t.csv")
    first = found.rows[0]
    assert {name: first[name] for name in labels} == labels
    assert (first["own"], type(first["own"]), first["huge"]) == (4, int, 2**62)
    for again in (sa.Results.read(tmp_path / "t.csv"), found):
        assert again.rows == found.rows
        assert [type(value) for value in again.columns["mixed"][1:]] == [float, float]
    header = list(found.columns)
    assert header.index("preset") < header.index("flag") < header.index("settings")


def test_the_summary_is_the_means_of_a_cell(study):
    found = study.run()
    rows = [row for row in found.rows if row["cell"] == 5]
    line = found.summary()[4]
    pulls = [row["pulls"] for row in rows]
    assert (line["cell"], line["runs"], line["instance"]) == (5, 5, "synthetic")
    assert line["pulls"] == pytest.approx(np.mean(pulls))
    assert line["pulls_error"] == pytest.approx(np.std(pulls, ddof=1) / np.sqrt(5))
    assert line["certified"] == sum(row["certified"] for row in rows)
    assert line["wrong"] == sum(row["wrong"] for row in rows)
    assert line["gap"] == 0.8


def test_the_summary_says_with_which_epsilon_a_budget_is_certified(tmp_path):
    rules = [sa.Certified(budget=30), sa.ICB()]
    found = sa.Study.grid([instance()], rules, 3).run(out=tmp_path / "t.csv")
    budget, other = found.summary()
    reached = [row["epsilon_reached"] for row in found.rows[:3]]
    assert budget["epsilon_reached"] == pytest.approx(np.mean(reached))
    assert other["epsilon_reached"] is None
    assert "within" in called("show", tmp_path / "t.csv").stdout
    sa.Study.grid([instance()], rules[1:], 3).run(out=tmp_path / "other.csv")
    assert "within" not in called("show", tmp_path / "other.csv").stdout


def test_one_run_has_no_error(tmp_path):
    line = study_in(tmp_path, replications=1).run().summary()[0]
    assert line["pulls_error"] is None


def test_a_run_that_does_not_stop_is_not_certified_and_says_why(tmp_path):
    found = sa.Study([sa.Cell(instance(epsilon=0), sa.ICB())], 3, max_pulls=7).run()
    assert set(found.columns["pulls"]) == {7}
    assert set(found.columns["reason"]) == {"the limit of 7 pulls came before the stop"}
    assert not any(found.columns["certified"])
    assert found.columns["max_pulls"] == [7] * 3


def test_a_column_is_added_by_two_lines(study, tmp_path, monkeypatch):
    monkeypatch.setitem(facts.COLUMNS, "ratio", float)
    monkeypatch.setitem(results.DERIVED, "ratio", lambda cell, run: run.pulls / cell["n"])
    found = study.run(out=tmp_path / "t.parquet")
    assert found.columns["ratio"] == [row["pulls"] / row["n"] for row in found.rows]
    assert sa.Results.read(tmp_path / "t.parquet").columns["ratio"] == found.columns["ratio"]


def test_a_table_of_before_a_column_was_added_can_be_read(study, tmp_path, monkeypatch):
    found = study.run(out=tmp_path / "t.csv")
    monkeypatch.setitem(facts.COLUMNS, "ratio", float)
    assert sa.Results.read(tmp_path / "t.csv").summary() == found.summary()


# ---- the same numbers on any number of workers ---------------------------------------------------


def test_workers_change_no_number(study, tmp_path):
    alone = numbers(study.run())
    for workers in (2, 4):
        assert numbers(study.run(workers=workers)) == alone
    out = tmp_path / "t.csv"
    assert numbers(study.run(workers=2, out=out)) == alone == numbers(sa.Results.read(out))


def test_other_seeds_give_other_numbers(tmp_path):
    """So that the tests of sameness can fail."""
    one, other = (study_in(tmp_path, rng=seed).run() for seed in (1, 2))
    assert one.columns["pulls"] != other.columns["pulls"]
    assert one.columns["seed"] != other.columns["seed"]


def test_an_error_in_a_worker_names_the_run(tmp_path):
    """Totals end in the middle of a run: nothing that a check beforehand could see."""

    def cell(totals):
        problem = sa.Problem(3, 1, sa.gaussian(0.1), epsilon=0.1)
        return sa.Cell(sa.Instance("i", problem, Failing(totals)), sa.ICB())

    study = sa.Study([cell(12)], 4)
    place = r"cell 1 \(icb on i\), replication \d \(seed \d+\)"  # whichever comes to it first
    for workers in (1, 2):
        with pytest.raises(sa.TotalError, match=place):
            study.run(workers=workers)


class Failing(sa.Environment):
    """Goes wrong after so many pulls."""

    def __init__(self, totals):
        self.totals, self.means = totals, np.array([0.3, 0.2, 0.1])

    def pulls(self, plan, start, stop, rng):
        if stop > self.totals:
            raise sa.TotalError("no more of them")
        return np.zeros(stop - start)


def test_batches_hold_every_run_once_and_about_as_much_as_asked(study):
    batches = Batches(study, left(study, {}), 1.0)
    outcome = partial(dataclasses.replace, _outcome())
    seen = []
    for batch in batches:
        seen += [(batch.number, replication) for replication, _ in batch.runs]
        batches.learn([outcome(cell=batch.number, seconds=0.5)])
        if batch.runs[0][0] > 1:
            assert len(batch.runs) <= 2
    assert seen == [(cell, run) for cell in range(1, 10) for run in range(1, 6)]
    batches.learn([outcome(cell=1, seconds=0.0)] * 10**6)
    assert 1 <= batches._size(1) <= MOST


def _outcome():
    from superarm.study.outcome import Outcome

    return Outcome(1, 1, 1, 1, (), None, False, None, None, "", 1, 0.5, "", None, "")


# ---- fingerprints --------------------------------------------------------------------------------


def test_a_cell_is_known_by_all_that_decides_its_numbers():
    def cell(means=(0.9, 0.5, 0.1), rule=None, **settings):
        return sa.Cell(instance(means=means, **settings), rule or sa.ICB())

    base = cell()
    assert base.digest == cell().digest == cell(name="other name").digest
    others = [
        cell(means=(0.9, 0.5, 0.2)),
        cell(epsilon=0.3),
        cell(k=2),
        cell(rule=sa.SAQM()),
        cell(rule=sa.ICB(constants="paper")),
        cell(rule=sa.ICB(design=sa.Uniform("full"))),
        cell(rule=sa.ICB(schedule=sa.Geometric(1.5))),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 8
    sa.Study([base], 1).run()
    assert base.digest == cell().digest  # what is remembered on the way is no part of it


def test_fingerprints_tell_functions_by_what_they_do():
    def oracle(most):
        return lambda arms: len(arms) <= most

    assert digest(oracle(1)) == digest(oracle(1)) != digest(oracle(2))
    assert digest(partial(max, 1)) != digest(partial(max, 2))
    assert digest([1, 2.0, b"x", {3: None}, {"a"}]) == digest([1, 2.0, b"x", {3: None}, {"a"}])
    assert digest(range(3)) != digest(range(4))
    assert digest(np.array([1.0])) != digest(np.array([1]))
    assert digest([1, [2]]) != digest([[1], 2])


def test_fingerprints_are_the_same_in_other_processes():
    code = (
        "import superarm as sa; from superarm.study.identity import digest; "
        "p = sa.Problem(['a', 'b', 'c'], sa.Partition('xxy', {'x': 1, 'y': 1}), sa.labels()); "
        "print(digest([p, sa.environment([0.1, 0.2, 0.3], sa.labels()), {'u', 'v', 'w'}]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1


# ---- the commands --------------------------------------------------------------------------------


def test_run_show_and_check(tmp_path, study):
    path, out = write_study(tmp_path), tmp_path / "t.csv"
    expected = study.run()
    done = called("run", path, "--out", out, "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert (said["title"], said["runs"]) == ("quick", 45)
    assert numbers(sa.Results.read(out)) == numbers(expected)
    for line, mine in zip(said["cells"], expected.summary(), strict=True):
        assert {**line, "seconds": 0} == {**mine, "seconds": 0}
    shown = called("show", out, "--format", "json")
    assert json.loads(shown.stdout) == said
    rows = list(csv.DictReader(called("show", out, "--format", "csv").stdout.splitlines()))
    assert [float(row["pulls"]) for row in rows] == [line["pulls"] for line in said["cells"]]
    table = called("show", out).stdout
    assert table.startswith("quick\n\ncell  instance")
    assert table.endswith(f"45 runs in {out}\n")


def test_check_lists_the_cells_and_runs_nothing(tmp_path):
    path = write_study(tmp_path)
    found = json.loads(called("check", path, "--format", "json").stdout)
    assert len(found["cells"]) == 9
    assert found["replications"] == 5
    assert found["cells"][3] == {
        **{"cell": 4, "instance": "synthetic", "algorithm": "icb"},
        **{"gap": 0.8, "design": "uniform:3n"},
    }
    assert "9 cells, 5 replications: 45 runs; each can be run" in called("check", path).stdout
    assert len(called("check", path, "--format", "csv").stdout.splitlines()) == 10
    assert sorted(each.name for each in tmp_path.iterdir()) == ["means.csv", "study.toml"]


def test_options_take_the_place_of_what_the_file_says(tmp_path):
    path, out = write_study(tmp_path), tmp_path / "t.csv"
    assert called("run", path, "--out", out, "--replications", 2, "--rng", 9).exit_code == 0
    found = sa.Results.read(out)
    assert len(found) == 18
    assert numbers(found) == numbers(study_in(tmp_path, replications=2, rng=9).run())


def test_progress_is_shown_on_a_terminal_and_only_there(tmp_path):
    path = write_study(tmp_path)
    command = [sys.executable, "-m", "superarm", "study", "run", str(path), "--out"]
    leader, follower = pty.openpty()
    done = subprocess.run(
        [*command, str(tmp_path / "a.csv")], stdout=subprocess.PIPE, stderr=follower, check=True
    )
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 4096):
            seen += part
    except OSError:  # the end, on Linux
        pass
    os.close(leader)
    assert b"100%" in seen
    assert b"runs" in seen
    assert b"%" not in done.stdout
    quiet = subprocess.run([*command, str(tmp_path / "b.csv")], capture_output=True, check=True)
    assert quiet.stderr == b""
    seconds = re.compile(rb"[ \d.e-]+\n")  # the last column
    plain = [seconds.sub(b"\n", part.stdout.partition(b"45 runs")[0]) for part in (done, quiet)]
    assert plain[0] == plain[1]


def test_progress_counts_every_run(study):
    seen = []
    study.run(progress=lambda finished, runs: seen.append((finished, runs)))
    assert seen == [(number, 45) for number in range(46)]
