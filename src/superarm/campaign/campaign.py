"""A campaign: an identification that people run over days, kept in a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, delete, insert, select

from superarm._checks import bounded_real, flag, shown, whole, writable
from superarm.algorithms import Algorithm, default_algorithm
from superarm.algorithms.base import check_algorithm, check_problem
from superarm.campaign import changes, hot, schema
from superarm.campaign.asking import Handed, hand_out, members_at, replicates
from superarm.campaign.course import Course, uncertified
from superarm.campaign.examined import MOST, examined
from superarm.campaign.ids import Key, parse, parse_all
from superarm.campaign.inputs import (
    check_name,
    indices_of,
    labels_of,
    lease_of,
    listed,
    said,
    short,
)
from superarm.campaign.looks import settle
from superarm.campaign.records import Change, LookTaken, OpenPull, Pull, Result, Told, moment
from superarm.campaign.results import open_pulls, results
from superarm.campaign.standing import Standing, find, missing, path, standing
from superarm.campaign.status import Status, arms_of, counts_of_open, pace_of, told_in_all
from superarm.campaign.store import Store
from superarm.campaign.telling import Label, take_in
from superarm.campaign.totals import check_totals
from superarm.diagnostics import Diagnostics
from superarm.errors import ProblemError, SettingError, StoreError, TotalError
from superarm.phase import Phase
from superarm.plain import from_plain, problem_from_plain, problem_to_plain, to_plain
from superarm.problem import Problem
from superarm.seeds import Rng, seed_from
from superarm.verdict import Verdict

if TYPE_CHECKING:
    from superarm.campaign.contents import Contents
    from superarm.campaign.frames import Backend
    from superarm.campaign.verify import Verified

MOST_AT_ONCE = 1_000_000
"""More pulls than this are not handed out by one call."""

_MOST_ROWS = 10**15  # of a history

LEASE = 86_400.0
"""Seconds for which a pull is handed out, if nothing else is said: a day."""


class Campaign:
    """Find the best k of n over days and by many hands; made by `create`, `open` or `load`.

    >>> import superarm as sa
    >>> store = sa.Store.open(":memory:")
    >>> problem = sa.Problem(["Ann", "Bo", "Cy"], 2, sa.labels(), epsilon=0.5)
    >>> crew = sa.Campaign.create("crew", problem, store=store, rng=1)
    >>> pull = crew.ask(worker="Dee")[0]
    >>> crew.tell(pull.id, 2)
    Told(new=1, repeated=0)

    Everything that was told is in the store when a call returns. Totals may be told in any order
    and by any process: look j takes place once the plan's first t_j positions are told.
    """

    def __init__(self, store: Store, row: Any, course: Course) -> None:
        self.store, self.name = store, str(row.name)
        self.created: datetime = moment(row.created)
        self._id, self._course = int(row.id), course
        self._where: Standing | None = None
        self._kept: tuple[tuple[int, int], Phase, Problem] | None = None
        self._checked: tuple[tuple[int, int], int, tuple[str, ...]] = (-1, -1), 0, ()
        self._waiting = ""

    @classmethod
    def create(
        cls,
        name: str,
        problem: Problem,
        algorithm: Algorithm | None = None,
        *,
        store: Store | str | Path | None = None,
        rng: Rng = None,
    ) -> Self:
        """Begin a campaign.

        Parameters
        ----------
        name
            One that no campaign in the store has yet.
        algorithm
            The rule; by default `Certified` for the best k of n arms, `ICB` for other classes.
        store
            As for `Store.open`.
        rng
            Seed: decides what the design leaves to chance.
        """
        odd = next((arm for arm in check_problem(problem).arms if not writable(arm)), None)
        if odd is not None:
            raise ProblemError(f"arm {shown(odd)} has a sign in it that cannot be kept as text")
        rule = default_algorithm(problem) if algorithm is None else algorithm
        seed = seed_from(rng)
        course = Course(problem, check_algorithm(rule), seed)
        first = course.first(problem, 1)
        row = changes.begun(first, 1, 1)
        plain = problem_to_plain(problem), to_plain(rule)
        return cls._write(Store.open(store), check_name(name), seed, plain, row)

    @classmethod
    def _write(
        cls, store: Store, name: str, seed: int, plain: tuple[Any, Any], row: dict[str, Any]
    ) -> Self:
        import json
        import time

        from superarm.campaign.writing import begin

        with store.write() as connection:
            state = "certified" if row["needed"] is None else "measuring"
            id = begin(
                connection,
                name=name,
                created=time.time(),
                seed=str(seed),
                serial=1,
                changes=0,
                state=state,
            )
            problem, rule = (json.dumps(part, ensure_ascii=False) for part in plain)
            connection.execute(
                insert(schema.question).values(campaign=id, problem=problem, rule=rule)
            )
            connection.execute(insert(schema.phase).values(campaign=id, **row))
        return cls.open(name, store=store)

    @classmethod
    def open(cls, name: str, *, store: Store | str | Path | None = None) -> Self:
        """Go on with a campaign that is in a store."""
        import json

        place = Store.open(store, create=False)
        q = schema.question.c
        with place.read() as connection:
            row = find(connection, name)
            said = connection.execute(select(q.problem, q.rule).where(q.campaign == row.id)).one()
        course = Course(
            problem_from_plain(json.loads(said.problem)),
            from_plain(json.loads(said.rule)),
            int(row.seed),
        )
        return cls(place, row, course)

    @classmethod
    def load(
        cls, path: str | Path, *, store: Store | str | Path | None = None, name: str | None = None
    ) -> Self:
        """Take in a campaign that `export` wrote, under its own name or another."""
        from superarm.campaign.transfer import load

        place = Store.open(store)
        return cls.open(load(path, place, name), store=place)

    def export(self, path: str | Path) -> None:
        """Write everything to one file: question, rule, seed, totals, changes, looks."""
        from superarm.campaign.transfer import export

        export(self, path)

    def delete(self) -> None:
        """Take the campaign out of the store, with all its totals."""
        with self.store.write() as connection:
            connection.execute(delete(schema.campaign).where(schema.campaign.c.id == self._id))

    def __repr__(self) -> str:
        return f"Campaign({self.name!r}, store={self.store.name!r})"

    @property
    def problem(self) -> Problem:
        """The question as it is now: without the arms that have retired."""
        with self.store.read() as connection:
            stage = standing(connection, self._id).stage
            return self._course.problem(connection, self._id, stage)

    @property
    def algorithm(self) -> Algorithm:
        """The rule."""
        return self._course.algorithm

    @property
    def seed(self) -> int:
        """What the design leaves to chance is decided by it."""
        return self._course.seed

    @property
    def waiting(self) -> str:
        """Why the last `ask` gave fewer pulls than were asked for; empty when it did not."""
        return self._waiting

    def ask(
        self,
        size: int = 1,
        *,
        worker: str = "",
        lease: float = LEASE,
        without: Iterable[str] = (),
    ) -> list[Pull]:
        """Return up to `size` pulls to measure; fewer, or none, with the reason in `waiting`.

        Parameters
        ----------
        worker
            Who measures. A worker that asks again gets its open pulls first.
        lease
            Seconds until a pull that has no total is handed out to others.
        without
            Arms that are not there now: groups with any of them are put off.
        """
        size = whole("the number of pulls to ask for", size, SettingError, 1, MOST_AT_ONCE)
        lease = lease_of(lease)
        worker, away = short("worker", worker), listed(without)
        self._waiting, first = "", []
        if self._where is not None and not self._where.ended and not away:
            found = self._ask_quickly(self._where, size, worker, lease)
            if len(found) == size:
                return found
            first = [] if worker else found  # a worker's own will be found again
        return first + self._ask_with_care(size - len(first), worker, lease, away)

    def _ask_quickly(self, where: Standing, size: int, worker: str, lease: float) -> list[Pull]:
        phase, problem = self._here(where)
        asker = hot.Asker(self._id, where.serial, where.changes, size, worker, lease)
        keys, until = hot.ask(self.store, asker)
        return self._pulls(problem, phase, keys, until, worker)

    def _here(self, where: Standing) -> tuple[Phase, Problem]:
        """Return the phase and the question of where we were last seen."""
        mark = where.serial, where.changes
        kept = self._kept  # other threads may go on to another phase meanwhile
        if kept is None or kept[0] != mark:
            with self.store.read() as connection:
                phase = self._course.phase(connection, where)
                problem = self._course.problem(connection, self._id, where.stage)
            kept = self._kept = mark, phase, problem
        return kept[1:]

    def _ask_with_care(
        self, size: int, worker: str, lease: float, away: Sequence[str]
    ) -> list[Pull]:
        while True:
            where = self._settled()
            if where.ended:
                self._waiting = f"no more are needed: {self.verdict}"
                return []
            phase, problem = self._here(where)
            absent = indices_of(problem, away)
            handed = hand_out(self.store, self._id, where, phase, size, worker, lease, absent, away)
            if handed is not None:
                self._waiting = _why_fewer(handed, size, away)
                return self._pulls(problem, phase, handed.keys, handed.until, worker)

    def _pulls(
        self, problem: Problem, phase: Phase, keys: Sequence[Key], until: float, worker: str
    ) -> list[Pull]:
        if not keys:
            return []
        positions = [key.position for key in keys]
        rows = members_at(phase, positions).tolist()
        purpose, end = self.algorithm.purpose(problem, phase), moment(until)
        return [
            Pull(str(key), problem.names(row), _reason(key, copy, purpose), worker, end)
            for key, row, copy in zip(keys, rows, replicates(phase, positions), strict=True)
        ]

    def tell(self, id: str, total: float, *, worker: str = "", site: str = "") -> Told:
        """Take the total of a pull; telling the same total again changes nothing."""
        key = parse(id)
        value = self._valid([key], [total])[0]
        worker, site = short("worker", worker), short("site", site)
        due = hot.tell(self.store, self._id, key, value, worker, site)
        if due is None:
            return self.tell_many([(id, value)], worker=worker, site=site)
        if due:
            self._look()
        return Told(1, 0)

    def tell_many(
        self, results: Iterable[tuple[str, float]], *, worker: Label = "", site: Label = ""
    ) -> Told:
        """Take many totals, pairs of id and total: all of them, or none where one is refused.

        `worker` and `site` are a text each for all totals, or as many texts as totals.
        """
        pairs = list(results)
        if not pairs:
            return Told(0, 0)
        keys = parse_all(id for id, _ in pairs)
        totals = self._valid(keys, [total for _, total in pairs])
        labels = labels_of("worker", worker, len(keys)), labels_of("site", site, len(keys))
        told, due = take_in(self.store, self._id, keys, totals, *labels)
        if due:
            self._look()
        return told

    def _valid(self, keys: Sequence[Key], totals: Sequence[float]) -> list[float]:
        """Return totals as floats; raise where one cannot be, under the noise model."""
        asked = self._course.asked
        if asked.decision.least_size < asked.k:
            return [self._valid_of(key, total) for key, total in zip(keys, totals, strict=True)]
        return check_totals(asked.noise, asked.k, keys, totals)

    def _valid_of(self, key: Key, total: float) -> float:
        """Groups have different sizes here: the range is that of the one measured."""
        asked = self._course.asked
        value = bounded_real("a total", total, TotalError)
        size, least = asked.k, asked.decision.least_size
        with self.store.read() as connection:
            where = standing(connection, self._id)
            frontier = connection.execute(
                select(schema.phase.c.frontier).where(
                    schema.phase.c.campaign == self._id, schema.phase.c.serial == key.serial
                )
            ).scalar_one_or_none()
            if frontier is not None and key.position < frontier:
                phase = self._course.of_serial(connection, where, key.serial)
                assert phase is not None
                size = least = int((members_at(phase, [key.position])[0] >= 0).sum())
        asked.noise.check_total(value, size, least)
        return value + 0.0

    def extend(self, ids: Iterable[str], lease: float = LEASE, worker: str = "") -> int:
        """Keep pulls that are out for so many seconds from now; return how many there were.

        With `worker`, only those that this worker still has.
        """
        from superarm.campaign.results import extend

        return extend(
            self.store, self._id, parse_all(ids), lease_of(lease), short("worker", worker)
        )

    def give_back(self, ids: Iterable[str]) -> int:
        """Hand pulls back unmeasured, so that others get them; return how many were out."""
        from superarm.campaign.results import give_back

        return give_back(self.store, self._id, parse_all(ids))

    def record(
        self, members: Sequence[str], total: float, *, reason: str, worker: str = ""
    ) -> Change:
        """Write down a total that was measured outside the plan; no look uses it."""
        names = tuple(members)
        unknown = [name for name in names if name not in self._course.asked.index]
        if unknown or not names or len(set(names)) < len(names):
            raise ProblemError(f"{shown(names)} is no group of different arms of this campaign")
        value = bounded_real("a total", total, TotalError)
        self._course.asked.noise.check_total(value, len(names))
        number = changes.outside(
            self.store, self._id, names, value, said(reason), short("worker", worker)
        )
        return self._change(number)

    def amend(self, id: str, total: float, *, reason: str, worker: str = "") -> Change:
        """Put another total in the place of one that was told wrongly.

        The reason must not be what the total was: then a certificate stays true. A look that was
        taken already is taken again.
        """
        key = parse(id)
        value = self._valid([key], [total])[0]
        self._made(key)
        number = changes.amend(
            self.store, self._id, self._course, key, value, said(reason), short("worker", worker)
        )
        return self._changed(number)

    def void(
        self, id: str, *, reason: str, because_of_value: bool = False, worker: str = ""
    ) -> Change:
        """Take a total out; its group is measured again.

        Parameters
        ----------
        because_of_value
            Say True where the total was taken out for what it was. That is honest, and it is the
            end of the certificate.
        """
        key = parse(id)
        self._made(key)
        number = changes.void(
            self.store,
            self._id,
            self._course,
            key,
            said(reason),
            short("worker", worker),
            flag("because_of_value", because_of_value, SettingError),
        )
        return self._changed(number)

    def undo(self, number: int | None = None, *, reason: str = "", worker: str = "") -> Change:
        """Take back the last amend or void that stands, or the one with a number."""
        if number is not None:
            number = whole("the number of a change", number, SettingError, 1)
        found = changes.undo(
            self.store,
            self._id,
            self._course,
            number,
            short("reason", reason),
            short("worker", worker),
        )
        return self._changed(found)

    def retire(self, names: Iterable[str], *, reason: str, worker: str = "") -> Change:
        """Let arms leave for good. It cannot be undone.

        A new stage begins on the arms that are left, with totals of its own: those told so far are
        not used in it, so that its certificate holds with 1 - delta even where they led to the
        retirement. It is about the best of the arms that are left.
        """
        gone = tuple(listed(names))
        if not gone:
            raise SettingError("name at least one arm that leaves")
        self._settled()
        number = changes.retire(
            self.store, self._id, self._course, gone, said(reason), short("worker", worker)
        )
        return self._changed(number)

    def _made(self, key: Key) -> None:
        """Make the phase of a pull before the store is locked for writing."""
        with self.store.read() as connection:
            where = standing(connection, self._id)
            if key.serial in path(connection, where):
                self._course.of_serial(connection, where, key.serial)

    def _changed(self, number: int) -> Change:
        self._look()
        return self._change(number)

    def _change(self, number: int) -> Change:
        return next(change for change in self.changes() if change.number == number)

    def changes(self) -> list[Change]:
        """Return everything that was done besides telling, in its order."""
        with self.store.read() as connection:
            return changes.history(connection, self._id)

    @property
    def verdict(self) -> Verdict:
        """What the last look found."""
        where = self._settled()
        with self.store.read() as connection:
            known = self._course.known(connection, where)
            return self._dressed(known.verdict, changes.history(connection, self._id))

    def _contents(self) -> tuple[Contents, Verdict]:
        """Return all that there is, and the verdict on exactly that."""
        from superarm.campaign.contents import read

        while True:
            self._settled()
            with self.store.read() as connection:
                where = standing(connection, self._id)
                if where.due:  # by what was told since
                    continue
                row = find(connection, self.name)
                known = self._course.known(connection, where)
                history = changes.history(connection, self._id)
                return read(connection, row), self._dressed(known.verdict, history)

    def _dressed(self, verdict: Verdict, history: Sequence[Change]) -> Verdict:
        """Add what the history does to a certificate."""
        tampered = [c for c in history if c.because_of_value and not c.undone]
        if tampered:
            reason = (
                f"a total was voided because of its value (change {tampered[0].number}), so that "
                "no certificate can hold"
            )
            if verdict.certificate is not None:
                return uncertified(verdict, reason)
            return replace(verdict, warnings=(*verdict.warnings, reason))
        if verdict.certificate is None:
            return verdict
        found = conditions(history)
        return replace(verdict, certificate=replace(verdict.certificate, conditions=found))

    def status(self) -> Status:
        """Return how the campaign stands: verdict, intervals, who holds what, days left."""
        where = self._settled()
        with self.store.read() as connection:
            known = self._course.known(connection, where)
            history = changes.history(connection, self._id)
            problem = self._course.problem(connection, self._id, where.stage)
            tally = self._tally(connection, where)
            out, lapsed, holders = counts_of_open(connection, where)
            pace = pace_of(connection, where)
            told, waits = told_in_all(connection, where), missing(connection, where)
            warnings = self._warnings(connection, where, told)
        verdict = self._dressed(known.verdict, history)
        verdict = replace(verdict, warnings=(*verdict.warnings, *warnings))
        forecast = verdict.forecast
        if forecast is not None:  # counted from the look: what came since is there already
            forecast = max(0, forecast - max(0, where.frontier - out - where.pulls))
        return Status(
            name=self.name,
            verdict=verdict,
            told=told,
            open=out,
            lapsed=lapsed,
            missing=waits,
            next_look=where.needed,
            phase=where.number,
            stage=where.stage,
            margin=verdict.radius - verdict.gap - verdict.epsilon,
            forecast=forecast,
            pace=pace,
            days_left=forecast / pace if forecast is not None and pace else None,
            holders=holders,
            arms=arms_of(self._course.asked, problem, known.phase, tally, verdict),
            warnings=verdict.warnings,
            conditions=conditions(history),
        )

    def _tally(self, connection: Any, where: Standing) -> Any:
        from superarm.campaign.course import stored_tally

        return stored_tally(connection, self._id, where.serial) if where.look else None

    def diagnose(self) -> Diagnostics | None:
        """Check all totals against what a certificate counts on; None while there are none.

        Are they sums, is the noise as stated, are there slips of the pen, trends, or differences
        between workers or sites; see `superarm.diagnose`. `status` has the warnings, as long as
        there are at most 20,000 totals.
        """
        where = self._settled()
        with self.store.read() as connection:
            return examined(connection, where, self._course)

    def _warnings(self, connection: Connection, where: Standing, told: int) -> tuple[str, ...]:
        """Return the warnings of the checks; they are made again where much has come since."""
        if told > MOST:
            return ()
        mark, count = (where.changes, where.stage), self._checked[1]
        if self._checked[0] != mark or not count <= told <= count + max(10, count // 50):
            found = examined(connection, where, self._course)
            self._checked = mark, told, () if found is None else found.warnings
        return self._checked[2]

    def history(
        self, *, start: int = 0, limit: int | None = None, newest_first: bool = False
    ) -> list[Result]:
        """Return the totals as they were told, by phase and position, or the newest first."""
        start = whole("start", start, SettingError, 0, _MOST_ROWS)
        if limit is not None:
            limit = whole("limit", limit, SettingError, 0, _MOST_ROWS)
        with self.store.read() as connection:
            where = standing(connection, self._id)
            return results(
                connection, where, self._course, start=start, limit=limit, newest=newest_first
            )

    def result(self, id: str) -> Result:
        """Return the total that was told of one pull."""
        from superarm.campaign.results import result_of

        with self.store.read() as connection:
            return result_of(connection, standing(connection, self._id), self._course, id)

    def open_pulls(self) -> list[OpenPull]:
        """Return the pulls that were handed out, or put off, and have no total yet."""
        with self.store.read() as connection:
            where = standing(connection, self._id)
            return open_pulls(connection, where, self._course)

    def looks(self) -> list[LookTaken]:
        """Return both sides of the stop at every look, in their order."""
        k = schema.look.c
        self._settled()
        with self.store.read() as connection:
            rows = connection.execute(
                select(schema.look).where(k.campaign == self._id).order_by(k.serial, k.number)
            ).all()
        return [
            LookTaken(r.serial, r.number, r.pulls, r.gap, r.epsilon, r.radius, moment(r.at))
            for r in rows
        ]

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the totals as a data frame: "pandas", "polars" or "pyarrow"."""
        from superarm.campaign.frames import frame

        return frame(self.history(), backend)

    def verify(self) -> Verified:
        """Work the certificate out again from the raw totals, by the slow reference."""
        from superarm.campaign.verify import verify_campaign

        return verify_campaign(self)

    def _look(self) -> None:
        """Take the looks that are due after something was written.

        That is written, whatever becomes of the looks: where the disk is full, say, they are taken
        by whoever asks for the verdict next, and it is they who are told.
        """
        with suppress(StoreError):
            self._settled()

    def _settled(self) -> Standing:
        self._where = settle(self.store, self._id, self._course)
        return self._where


def conditions(history: Iterable[Change]) -> tuple[str, ...]:
    """Return what a certificate counts on: changes for reasons that no total gave."""
    kinds = ("amend", "void", "put off", "retire")
    return tuple(c.text for c in history if c.kind in kinds and not c.undone)


def _why_fewer(handed: Handed, size: int, away: Sequence[str]) -> str:
    if len(handed.keys) == size:
        return ""
    if away and not handed.left:
        return f"nothing else is left without {', '.join(away)}: the next groups have them"
    if away:
        return (
            f"nothing else is left without {', '.join(away)}: {handed.left:,} groups wait for them"
        )
    return "all pulls of this phase are out: the look waits for their totals"


def _reason(key: Key, copy: int, purpose: str) -> str:
    again = "measured again, since a total was voided" if key.attempt > 1 else ""
    first = "first measurement of this group" if copy == 1 else f"replicate {copy} of this group"
    return "; ".join(part for part in (purpose, again or first) if part)
