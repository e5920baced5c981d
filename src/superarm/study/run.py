"""From a study to its table: what is left is run, written to the journal, and put in order."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from superarm._checks import flag, whole
from superarm.errors import DataError, SettingError
from superarm.study.batches import Batches
from superarm.study.executors import Outcomes, cluster, in_process, needed, processes
from superarm.study.journal import Journal, Key, journal_path, left
from superarm.study.outcome import Outcome
from superarm.study.results import Results, results_of
from superarm.study.tables import table_path, write_table

if TYPE_CHECKING:
    from superarm.study.cells import Progress, Study

BATCH_SECONDS = 0.25
"""How much work goes to another process at once; a death there costs no more than that."""


def run_study(
    study: Study,
    workers: int,
    out: str | Path | None,
    dask: str | None,
    fresh: bool,
    progress: Progress | None,
) -> Results:
    """Do what `Study.run` says."""
    _check_settings(workers, dask, fresh)
    target = None if out is None else table_path(out)
    if target is None or fresh:
        study.check()  # before anything there is forgotten
    with ExitStack() as stack:
        journal = None
        finished: dict[Key, Outcome] = {}
        if target is not None:
            journal = stack.enter_context(_journal(study, target, fresh))
            finished = {key: each for key, each in journal.finished.items() if _of(study, key)}
        todo = left(study, finished)
        study.check(number for number in todo if len(todo[number]) == study.replications)
        if progress is not None:
            progress(len(finished), study.runs)
        batches = Batches(study, todo, BATCH_SECONDS if workers > 1 or dask else 0.0)
        running = _executor(batches, workers, dask, study.runs - len(finished))
        for outcomes in stack.enter_context(closing(running)):
            batches.learn(outcomes)
            if journal is not None:
                journal.add(outcomes)
            finished.update(((each.cell, each.replication), each) for each in outcomes)
            if progress is not None:
                progress(len(finished), study.runs)
        results = results_of(study, finished.values())
        if target is not None:
            write_table(results.columns, target)
        return results


def _check_settings(workers: int, dask: str | None, fresh: bool) -> None:
    whole("workers", workers, SettingError, least=1)
    flag("fresh", fresh, SettingError)
    if dask is not None:
        if "://" not in str(dask):
            raise SettingError(f"dask must be an address as tcp://127.0.0.1:8786, not {dask!r}")
        if workers > 1:
            raise SettingError("give either workers or dask: a cluster has workers of its own")
        needed("distributed", "dask", "dask")
    if workers > 1:
        needed("joblib", "study", f"workers={workers}")


def _journal(study: Study, target: Path, fresh: bool) -> Journal:
    """Open the journal beside a table; a table without one is not replaced unasked."""
    if target.is_dir():
        raise DataError(f"{target}: Is a directory")
    journal = journal_path(target)
    if target.exists() and not journal.exists() and not fresh:
        raise SettingError(
            f"{target} is there already, and no journal beside it to go on from; choose another "
            "file for the table, or replace this one (--fresh)"
        )
    return Journal(journal, study, fresh=fresh)


def _of(study: Study, key: Key) -> bool:
    """Whether a run in a journal is one of the study: it may have had more of them before."""
    cell, replication = key
    return 1 <= cell <= len(study.cells) and 1 <= replication <= study.replications


def _executor(batches: Batches, workers: int, dask: str | None, runs: int) -> Outcomes:
    if runs and dask is not None:
        return cluster(batches, dask)
    if min(workers, runs) > 1:
        return processes(batches, min(workers, runs))
    return in_process(batches)
