"""Verification: a certificate worked out again from the raw totals, offline.

Nothing that a store or a file says of its looks is believed. What is believed is what was told, and
that no total was left out or replaced for a reason that depends on it: no file can show that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.campaign.changes import described
from superarm.campaign.check import findings
from superarm.campaign.contents import Contents
from superarm.campaign.course import Course
from superarm.campaign.recompute import NEAR, recompute
from superarm.campaign.replay import Step, replay
from superarm.errors import SuperarmError
from superarm.phase import Next
from superarm.verdict import Verdict

if TYPE_CHECKING:
    from superarm.campaign.campaign import Campaign

_EXACT = ("answer", "done", "look", "pulls", "phase", "epsilon", "algorithm")
_CERTIFIED = ("epsilon", "delta", "sigma", "noise", "seed", "look", "pulls", "bound", "design")
_WORDS = {"delta": "delta", "pulls": "number of pulls", "sigma": "scale of the noise"}


@dataclass(frozen=True)
class Verified:
    """What became of a verdict that was worked out again from raw totals.

    Parameters
    ----------
    confirmed
        Whether it is what the totals say, certificate and all.
    lines
        What was done, step by step; the last one says what came of it.
    verdict
        The one that was worked out; None where it did not come to that.
    by
        "reference" where the slow reference worked out every stop as well, "replay" where that was
        left to the library itself (`lines` says why).
    """

    confirmed: bool
    lines: tuple[str, ...]
    verdict: Verdict | None
    by: str

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        verdict = None if self.verdict is None else self.verdict.to_dict()
        return {
            "confirmed": self.confirmed,
            "lines": list(self.lines),
            "verdict": verdict,
            "by": self.by,
        }


class _Refuted(Exception):
    """Why a verdict is not what its totals say."""


def verify_campaign(campaign: Campaign) -> Verified:
    """Work out the verdict of a campaign again, from the totals in its store."""
    contents, verdict = campaign._contents()
    return _verified(
        contents, verdict.to_dict(), [f"Campaign {contents.name!r} of {campaign.store.name}."]
    )


def verify_file(path: str | Path) -> Verified:
    """Work out the verdict in an exported file again; DataError where it is no such file."""
    from superarm.campaign.transfer import contents_of, read_content

    source = Path(path)
    content, whole = read_content(source)
    if not whole:
        said = (
            f"Refuted: {source} was changed after it was written, or is damaged: its hash does not "
            "fit its content."
        )
        return Verified(False, (said,), None, "replay")
    contents = contents_of(source, content)
    head = f"{source} is as it was written (its hash fits): campaign {contents.name!r}."
    return _verified(contents, contents.verdict, [head])


def _verified(contents: Contents, claim: Any, lines: list[str]) -> Verified:
    check = _Check(contents, claim, lines)
    try:
        check.run()
    except _Refuted as found:
        return Verified(False, (*lines, f"Refuted: {found}."), check.verdict, check.by)
    except SuperarmError as error:
        return Verified(False, (*lines, f"Refuted: {error}."), check.verdict, check.by)
    return Verified(True, tuple(lines), check.verdict, check.by)


class _Check:
    """One verification, step by step."""

    def __init__(self, contents: Contents, claim: Any, lines: list[str]) -> None:
        self.contents, self.lines = contents, lines
        if not isinstance(claim, Mapping):
            claim = {}
        self.claim = claim
        certificate = claim.get("certificate")
        self.certificate = certificate if isinstance(certificate, Mapping) else None
        self.verdict: Verdict | None = None
        self.by = "replay"

    def run(self) -> None:
        """Go through all steps; raise where one fails."""
        course = self.contents.course()
        stage = self.contents.stages
        steps = replay(self.contents, course, stage)
        self.verdict = steps[-1].verdict
        self._schedule(steps)
        self._same(steps[-1].verdict)
        self._rows()
        self._history()
        self._plans(steps)
        self._said(steps, stage)
        self._reference(course, steps)
        self._end()

    def _schedule(self, steps: list[Step]) -> None:
        """The look must be a planned one, and all totals that it rests on must be there."""
        number, look, pulls = (self.claim.get(key) for key in ("phase", "look", "pulls"))
        if not all(isinstance(value, int) for value in (number, look, pulls)):
            raise _Refuted("it holds no verdict")
        last, before = steps[-1], 0
        for step in steps:
            if step.phase is None or step.phase.number == number:
                break
            before += step.pulls
        else:
            raise _Refuted(
                f"it rests on phase {number}, and the totals lead to phase "
                f"{last.verdict.phase} only{self._gap(last)}"
            )
        if step.phase is None or not look:
            return
        planned = step.phase.looks.time(look) if look > 0 else None
        if planned is None or pulls != before + planned:
            there = (
                "there is no such look" if planned is None else f"it takes place after {planned:,}"
            )
            raise _Refuted(
                f"look {look} of phase {number} is said to rest on {pulls} pulls, and {there}: "
                "looks at other times than planned are worth nothing"
            )
        if len(step.totals) < planned:
            raise _Refuted(
                f"look {look} rests on the first {planned:,} positions of phase {number}"
                f"{self._gap(step)}"
            )
        if step.look < look or step is not last:
            raise _Refuted(
                f"the rule stops or goes on to another phase at look {step.look} of phase "
                f"{number} already, so that look {look} never took place"
            )

    def _gap(self, step: Step) -> str:
        row = step.row
        return (
            f", and position {len(step.totals):,} of phase {row.number} has no total that "
            "counts, or more than one"
        )

    def _same(self, found: Verdict) -> None:
        """The replay must say what is claimed."""
        if self.certificate is not None and found.certificate is None:
            raise _Refuted(f"the totals do not give a certificate: {found.reason or 'measure on'}")
        plain = json.loads(found.to_json())
        if self.certificate is None and found.certificate is not None and not self._by_value():
            raise _Refuted("the totals give a certificate, and it is left out")
        if self.certificate is not None:
            for key in _CERTIFIED:
                if self.certificate.get(key) != plain["certificate"][key]:
                    raise _Refuted(
                        f"the {_WORDS.get(key, key)} on the certificate is "
                        f"{self.certificate.get(key)!r}, and the totals give "
                        f"{plain['certificate'][key]!r}"
                    )
        for key in _EXACT:
            if self.claim.get(key) != plain[key]:
                raise _Refuted(
                    f"the {_WORDS.get(key, key)} is said to be {self.claim.get(key)!r}, and the "
                    f"totals give {plain[key]!r}"
                )
        scale = sum(abs(plain[key] or 0.0) for key in ("gap", "radius", "epsilon"))
        for key, size in (("gap", scale), ("radius", scale), ("confidence", 1.0)):
            if not _near(self.claim.get(key), plain[key], size):
                raise _Refuted(
                    f"the {key} is said to be {self.claim.get(key)!r}, and the totals give "
                    f"{plain[key]!r}"
                )

    def _rows(self) -> None:
        """Every position handed out is told once, or still open; changes refer to totals."""
        wrong = findings(self.contents)
        if wrong:
            raise _Refuted(wrong[0])

    def _history(self) -> None:
        """Nothing may have been voided for its value, and the certificate must name all changes."""
        from superarm.campaign.campaign import conditions

        if self.certificate is None:
            return
        history = described(self.contents.changes)
        for number in self._by_value():
            raise _Refuted(
                f"change {number} voided a total because of its value: no certificate holds after "
                "that"
            )
        if tuple(self.certificate.get("conditions", ())) != conditions(history):
            raise _Refuted("the conditions on the certificate are not the changes that were made")

    def _by_value(self) -> list[int]:
        """Return the changes that end every certificate."""
        history = described(self.contents.changes)
        return [
            change.number for change in history if change.because_of_value and not change.undone
        ]

    def _plans(self, steps: list[Step]) -> None:
        """The super-arms that were written out must be those that the seed gives."""
        for step in steps:
            listed = step.row.members
            if listed is None or step.phase is None:
                continue
            made = step.phase.plan.members(slice(None))
            if np.shape(listed) != made.shape or (np.asarray(listed) != made).any():
                raise _Refuted(
                    f"the groups of phase {step.row.number} are not those that the seed gives"
                )
        if all(step.row.members is not None for step in steps if step.phase is not None):
            self.lines.append(
                "The groups that were measured are written out, as the seed gives them."
            )
        else:
            self.lines.append("The groups that were measured were made again from the seed.")

    def _said(self, steps: list[Step], stage: int) -> None:
        if stage > 1:
            gone = ", ".join(sorted(self.contents.gone(stage)))
            self.lines.append(
                f"Stage {stage}, without {gone}: what was measured before plays no part in it."
            )
        for step in steps:
            if step.phase is None:
                self.lines.append("There is one group only, and nothing to measure.")
            elif step.look:
                self.lines.append(
                    f"Phase {step.row.number}: positions 0 to {step.pulls - 1:,} are told once "
                    f"each; look {step.look:,} was planned there, and is the first that "
                    f"{_does(step)}, of {step.look:,} replayed from the raw totals."
                )
            else:
                self.lines.append(f"Phase {step.row.number}: its first look is not complete yet.")

    def _reference(self, course: Course, steps: list[Step]) -> None:
        """Work out each phase's last look by the slow reference."""
        by = "reference"
        for step in steps:
            if step.phase is None or not step.look or not step.verdict.answer:
                continue
            found = recompute(course.algorithm, step)
            if isinstance(found, str):
                by = "replay"
                self.lines.append(
                    f"The sides of the stop in phase {step.row.number} were worked out by the "
                    f"library itself: {found}."
                )
                continue
            sides, said = found.sides, step.verdict
            scale = sides.radius + abs(sides.gap) + said.epsilon
            apart = max(abs(sides.gap - said.gap), abs(sides.radius - said.radius))
            if found.wrong:
                raise _Refuted(found.wrong)
            if apart > NEAR * scale:
                raise _Refuted(
                    f"the reference finds gap {sides.gap:.9g} and radius {sides.radius:.9g} at "
                    f"look {step.look} of phase {step.row.number}, not {said.gap:.9g} and "
                    f"{said.radius:.9g}"
                )
            claims = said.certificate
            if claims is not None and found.reached > claims.epsilon + NEAR * scale:
                raise _Refuted(f"the reference does not reach epsilon {claims.epsilon!r}")
            self.lines.append(
                f"The reference, which shares no code with the rule, finds the same at look "
                f"{step.look:,}: gap {sides.gap:.6g} + epsilon {said.epsilon:.6g}, radius "
                f"{sides.radius:.6g}."
            )
            self.lines += found.lines
        self.by = by

    def _end(self) -> None:
        assert self.verdict is not None
        if self.certificate is not None:
            c = self.certificate
            who = ", ".join(self.verdict.answer)
            self.lines.append(
                f"Confirmed: {who}, within epsilon {c['epsilon']} of the best with probability at "
                f"least 1 - {c['delta']}."
            )
            for said in c.get("conditions", ()):
                self.lines.append(f"On condition that no total was a reason for this: {said}.")
            return
        reason = self.claim.get("reason") or "measuring goes on"
        self.lines.append(f"Confirmed as it stands, without a certificate: {reason}.")


def _does(step: Step) -> str:
    if isinstance(step.outcome, Next):
        return "leads to another phase"
    return "stops" if step.verdict.done else "is the last one complete"


def _near(a: Any, b: Any, scale: float) -> bool:
    if a is None or b is None:
        return a is b
    return isinstance(a, int | float) and abs(a - b) <= NEAR * scale
