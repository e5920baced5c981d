"""What is wrong in a store: that all which follows from the totals does follow from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from sqlalchemy import Connection, select, text

from superarm.campaign import schema
from superarm.campaign.contents import ChangeRow, Contents, PhaseRow, read
from superarm.campaign.course import Course, fingerprint
from superarm.campaign.replay import Step, replay
from superarm.campaign.standing import edits_of
from superarm.campaign.store import Store
from superarm.errors import StoreError, SuperarmError, TotalError
from superarm.phase import Next, Phase
from superarm.tally import Tally

RESTORE = "restore a backup"
REBUILD = (
    "export the campaign and load it by another name, which works everything out again from its "
    "totals, or restore a backup"
)
_KINDS = ("amend", "void", "undo", "retire", "put off", "outside")


def check_store(store: Store) -> list[str]:
    """Return what is wrong, and what to do about it; nothing where all is well."""
    found = []
    try:
        with store.read() as connection:
            found += _integrity(connection)
            rows = connection.execute(
                select(schema.campaign).order_by(schema.campaign.c.name)
            ).all()
    except StoreError as error:
        return [*found, f"{error}; {RESTORE}"]
    for row in rows:
        try:
            with store.read() as connection:
                contents = read(connection, row)
            wrong = [*findings(contents), *derived(contents)]
        except StoreError as error:
            wrong = [f"{error}; {RESTORE}"]
        except Exception as error:  # whatever damage does: to say so is what this is for
            wrong = [f"it cannot be read ({type(error).__name__}: {error}); {RESTORE}"]
        found += [f"campaign {row.name!r}: {said}" for said in wrong]
    return found


def _integrity(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    said = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
    return [] if said == ["ok"] else [f"the file is damaged ({line}); {RESTORE}" for line in said]


# ---- what was told -------------------------------------------------------------------------------


def findings(contents: Contents) -> list[str]:
    """Return what cannot be in the rows themselves: phases, totals, open pulls, changes."""
    wrong = [*_of_phases(contents)]
    if not wrong:
        wrong += _of_changes(contents)
        wrong += _of_results(contents)
        for row in contents.phases.values():
            wrong += _of_phase(contents, row)
    return [f"{said}; {RESTORE}" for said in wrong]


def _of_phases(contents: Contents) -> Iterator[str]:
    rows = contents.phases
    roots = sorted(row.stage for row in rows.values() if row.parent is None)
    if roots != list(range(1, contents.stages + 1)):
        yield f"it has {contents.stages} stages, and first phases of the stages {roots}"
    elif contents.serial not in rows or rows[contents.serial].stage != contents.stages:
        yield f"phase {contents.serial} is to be the current one, and there is none such"
    for row in rows.values():
        parent = None if row.parent is None else rows.get(row.parent)
        if row.parent is not None and (
            parent is None or (parent.stage, parent.number) != (row.stage, row.number - 1)
        ):
            yield f"phase {row.serial} follows on phase {row.parent}, which cannot be"


def _of_changes(contents: Contents) -> Iterator[str]:
    changes = contents.changes
    if [row.number for row in changes] != list(range(1, len(changes) + 1)):
        yield "changes are missing, or are there twice"
        return
    standing: dict[int, ChangeRow] = {}
    for row in changes:
        said = f"change {row.number} ({row.kind})"
        if row.kind not in _KINDS:
            yield f"{said} is of no kind that there is"
        elif row.kind in ("amend", "void", "undo"):
            if row.key is None or contents.results.place(row.key) is None:
                yield f"{said} is about a total that is not there"
            elif row.kind == "undo":
                undone = standing.pop(row.target or 0, None)
                if undone is None or undone.key != row.key:
                    yield f"{said} takes back change {row.target}, which does not stand"
            elif row.kind == "amend" and row.total is None:
                yield f"{said} has no total"
            else:
                standing[row.number] = row


def _of_results(contents: Contents) -> Iterator[str]:
    results = contents.results
    unknown = set(np.unique(results.serial).tolist()) - set(contents.phases)
    if unknown:
        yield f"totals of phase {min(unknown)} are there, and the phase is not"
    problem = contents.course().asked
    amended = [row.total for row in contents.changes if row.kind == "amend"]
    totals = np.append(results.total, np.array([t for t in amended if t is not None]))
    if not np.isfinite(totals).all():
        yield "a total is no finite number"
        return
    for total in _extremes(totals):
        try:
            problem.noise.check_total(total, problem.k, problem.decision.least_size)
        except TotalError as error:
            yield str(error)


def _extremes(totals: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Return the totals that are wrong if any is: the least, the greatest, a broken number."""
    if not len(totals):
        return []
    broken = totals[totals != np.floor(totals)][:1].tolist()
    return sorted({float(totals.min()), float(totals.max()), *broken})


def _of_phase(contents: Contents, row: PhaseRow) -> Iterator[str]:
    here = contents.results.stretch(row.serial)
    places, attempts = contents.results.position[here], contents.results.attempt[here]
    waiting = [found for found in contents.open if found.serial == row.serial]
    asked = np.array([found.position for found in waiting], dtype=np.int64)
    which = f"phase {row.serial}"
    for what, positions in (("a total", places), ("an open pull", asked)):
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < row.frontier:
            yield f"{which}: {what} is of a position that was never handed out"
            return
    if row.last is not None and row.frontier > row.last:
        yield f"{which}: more positions were handed out than it has"
    if len(places) and (
        ((np.diff(places) == 0) & (np.diff(attempts) == 0)).any() or attempts.min() < 1
    ):
        yield f"{which}: a pull has two totals, or none of its number"
        return
    told = Counter[int]()
    if (attempts > 1).any() or len(waiting):
        told.update(places.tolist())
    again = [p for p, times in Counter(asked.tolist()).items() if times > 1]
    again += [found.position for found in waiting if found.attempt != told[found.position] + 1]
    if again:
        yield f"{which}: the open pull of position {again[0]} is told already, or is there twice"
    positions, _ = contents.results.counting(row.serial, edits_of(contents.changes))
    twice = positions[1:][np.diff(positions) == 0]
    if len(twice):
        yield f"{which}: position {int(twice[0])} has two totals that count"
    both = np.intersect1d(positions, asked)
    if len(both):
        yield f"{which}: position {int(both[0])} has a total that counts, and is open too"
    there = np.union1d(positions, asked)
    if len(there) != row.frontier:
        lost = np.setdiff1d(np.arange(row.frontier), there)
        yield f"{which}: position {int(lost[0])} was handed out, and is neither told nor open"


# ---- what follows from it ------------------------------------------------------------------------


def derived(contents: Contents) -> list[str]:
    """Return where what a store keeps for speed differs from what the totals say."""
    wrong: list[str] = []
    try:
        course = contents.course()
        for stage in range(1, contents.stages + 1):
            steps = replay(contents, course, stage, every=False)
            before = None
            for step in steps:
                wrong += _of_step(step, before, stage == contents.stages)
                before = step
            if stage == contents.stages:
                wrong += _of_end(contents, steps[-1])
        wrong += aside(contents, course)
    except SuperarmError as error:
        wrong.append(str(error))
    return [f"{said}; {REBUILD}" for said in wrong]


def aside(contents: Contents, course: Course) -> list[str]:
    """Return which phases, of all that there were, cannot be made again from where they began."""
    made: dict[int, Phase | None] = {}
    wrong: list[str] = []
    for row in contents.phases.values():  # a parent comes before what it leads to
        problem = course.without(contents.gone(row.stage))
        if row.parent is None:
            first = course.first(problem, row.stage)
            made[row.serial] = first if isinstance(first, Phase) else None
            continue
        before = made.get(row.parent)
        made[row.serial] = None
        if before is not None and row.origin is not None and row.origin_look is not None:
            try:
                tally = Tally.from_bytes(row.origin)
                outcome = course.algorithm.look(problem, before, tally, row.origin_look)
            except Exception:  # whatever damage does
                outcome = None
            if isinstance(outcome, Next) and fingerprint(outcome.phase) == row.fingerprint:
                made[row.serial] = outcome.phase
        if made[row.serial] is None:
            wrong.append(f"phase {row.serial} cannot be made again from the look that led to it")
    return wrong


def _of_step(step: Step, before: Step | None, current: bool) -> Iterator[str]:
    row, which = step.row, f"phase {step.row.serial}"
    if (row.look, row.pulls) != (step.look, step.pulls):
        yield (
            f"{which} stands at look {row.look} after {row.pulls} pulls, and look {step.look} "
            f"comes after {step.pulls}"
        )
        return
    if step.look and (row.tally is None or Tally.from_bytes(row.tally) != step.tally):
        yield f"{which}: its tally is not the sum of its totals"
    if before is not None and (
        row.origin_look != before.look
        or row.origin is None
        or Tally.from_bytes(row.origin) != before.tally
    ):
        yield f"{which} began from other totals than those of the phase before it"
    if current and row.needed != step.needed:
        yield f"{which} waits for {row.needed} pulls, and its next look comes after {step.needed}"


def _of_end(contents: Contents, step: Step) -> Iterator[str]:
    if step.row.serial != contents.serial:
        yield f"it stands at phase {contents.serial}, and its totals lead to {step.row.serial}"
        return
    state = "measuring"
    if step.needed is None:
        state = "certified" if step.verdict.certified else "ended"
    if contents.state != state:
        yield f"it is said to be {contents.state}, and is {state}"
