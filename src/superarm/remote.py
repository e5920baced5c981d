"""A campaign on a server: its methods are those of `Campaign`, its records and errors the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from superarm.errors import SettingError

if TYPE_CHECKING:
    from superarm.algorithms import Algorithm
    from superarm.campaign import Change, LookTaken, OpenPull, Pull, Result, Status, Told
    from superarm.campaign.verify import Verified
    from superarm.client import Client
    from superarm.diagnostics import Diagnostics
    from superarm.problem import Problem
    from superarm.verdict import Verdict

Label = str | Sequence[str]

LEASE = 86_400.0
"""Seconds for which a pull is handed out, if nothing else is said: a day."""

ROWS = 1_000
"""Rows of a list that are fetched at a time."""


class RemoteCampaign:
    """A campaign on a server; made by `Client`. Its methods are those of `Campaign`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client, self._path = client, f"/campaigns/{quote(name, safe='')}"
        self._waiting = ""
        self._asked: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"RemoteCampaign({self.name!r}, {self._client!r})"

    def question(self) -> dict[str, Any]:
        """Return question, rule and seed as plain data, as of now."""
        found: dict[str, Any] = self._client._get(f"{self._path}/question")
        return found

    @property
    def problem(self) -> Problem:
        """The question as it is now: without the arms that have retired."""
        from superarm.plain import problem_from_plain

        return problem_from_plain(self.question()["problem"])

    @property
    def algorithm(self) -> Algorithm:
        """The rule."""
        from superarm.plain import from_plain

        found: Algorithm = from_plain(self.question()["algorithm"])
        return found

    @property
    def seed(self) -> int:
        """What the design leaves to chance is decided by it."""
        return int(self.question()["seed"])

    @property
    def created(self) -> datetime:
        """When it was made."""
        return datetime.fromisoformat(self.question()["created"])

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
        """Return up to `size` pulls to measure; see `Campaign.ask`."""
        from superarm.server.wire import pull_from

        names = [without] if isinstance(without, str) else list(without)
        body = {"size": size, "worker": worker, "lease": lease, "without": names}
        said = self._post("ask", body, again=bool(worker))
        self._waiting = said["waiting"]
        return [pull_from(pull) for pull in said["pulls"]]

    def tell(self, id: str, total: float, *, worker: str = "", site: str = "") -> Told:
        """Take the total of a pull; telling the same total again changes nothing."""
        body = {"id": id, "total": _number(total), "worker": worker, "site": site}
        return self._told("tell", body)

    def tell_many(
        self, results: Iterable[tuple[str, float]], *, worker: Label = "", site: Label = ""
    ) -> Told:
        """Take many totals, pairs of id and total: all of them, or none where one is refused.

        `worker` and `site` are a text each for all totals, or as many texts as totals.
        """
        pairs: list[dict[str, Any]] = [{"id": id, "total": _number(total)} for id, total in results]
        for name, labels in (("worker", worker), ("site", site)):
            each = [labels] * len(pairs) if isinstance(labels, str) else list(labels)
            if len(each) != len(pairs):
                raise SettingError(f"{len(each)} texts for {name}, and {len(pairs)} totals")
            for pair, text in zip(pairs, each, strict=True):
                pair[name] = text
        return self._told("tell-many", {"results": pairs})

    def _told(self, path: str, body: Any) -> Told:
        from superarm.campaign import Told

        return Told(**self._post(path, body, again=True))

    def extend(self, ids: Iterable[str], lease: float = LEASE, worker: str = "") -> int:
        """Keep pulls that are out for so many seconds from now; return how many there were.

        With `worker`, only those that this worker still has.
        """
        body = {"ids": list(ids), "lease": lease, "worker": worker}
        return int(self._post("extend", body, again=True)["count"])

    def give_back(self, ids: Iterable[str]) -> int:
        """Hand pulls back unmeasured, so that others get them; return how many were out."""
        return int(self._post("give-back", {"ids": list(ids)}, again=True)["count"])

    def record(
        self, members: Sequence[str], total: float, *, reason: str, worker: str = ""
    ) -> Change:
        """Write down a total that was measured outside the plan; no look uses it."""
        body = {"members": list(members), "total": _number(total)}
        return self._change("record", {**body, "reason": reason, "worker": worker})

    def amend(self, id: str, total: float, *, reason: str, worker: str = "") -> Change:
        """Put another total in the place of one that was told wrongly."""
        body = {"id": id, "total": _number(total), "reason": reason, "worker": worker}
        return self._change("amend", body)

    def void(
        self, id: str, *, reason: str, because_of_value: bool = False, worker: str = ""
    ) -> Change:
        """Take a total out; its group is measured again."""
        body = {"id": id, "reason": reason, "because_of_value": because_of_value}
        return self._change("void", {**body, "worker": worker})

    def undo(self, number: int | None = None, *, reason: str = "", worker: str = "") -> Change:
        """Take back the last amend or void that stands, or the one with a number."""
        return self._change("undo", {"number": number, "reason": reason, "worker": worker})

    def retire(self, names: Iterable[str], *, reason: str, worker: str = "") -> Change:
        """Let arms leave for good. It cannot be undone."""
        gone = [names] if isinstance(names, str) else list(names)
        return self._change("retire", {"names": gone, "reason": reason, "worker": worker})

    def _change(self, path: str, body: Any) -> Change:
        from superarm.server.wire import change_from

        return change_from(self._post(path, body))

    @property
    def verdict(self) -> Verdict:
        """What the last look found."""
        return self.status().verdict

    def status(self) -> Status:
        """Return how the campaign stands: verdict, intervals, who holds what, days left."""
        from superarm.server.wire import status_from

        return status_from(self._client._get(self._path))

    def result(self, id: str) -> Result:
        """Return the total that was told of one pull."""
        from superarm.server.wire import result_from

        return result_from(self._client._get(f"{self._path}/history/{quote(id, safe='')}"))

    def history(
        self, *, start: int = 0, limit: int | None = None, newest_first: bool = False
    ) -> list[Result]:
        """Return the totals as they were told, by phase and position, or the newest first."""
        from superarm.server.wire import result_from

        found: list[Result] = []
        order = str(newest_first).lower()
        while limit is None or len(found) < limit:
            size = ROWS if limit is None else min(ROWS, limit - len(found))
            at = start + len(found)
            query = f"start={at}&limit={size}&newest_first={order}"
            page = self._client._get(f"{self._path}/history?{query}")
            found += [result_from(item) for item in page["items"]]
            if page["next"] is None:
                break
        return found

    def changes(self) -> list[Change]:
        """Return everything that was done besides telling, in its order."""
        from superarm.server.wire import change_from

        return [change_from(item) for item in self._client._list(f"{self._path}/changes")]

    def open_pulls(self) -> list[OpenPull]:
        """Return the pulls that were handed out, or put off, and have no total yet."""
        from superarm.server.wire import open_pull_from

        return [open_pull_from(item) for item in self._client._list(f"{self._path}/open")]

    def looks(self) -> list[LookTaken]:
        """Return both sides of the stop at every look, in their order."""
        from superarm.server.wire import look_from

        return [look_from(item) for item in self._client._list(f"{self._path}/looks")]

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the totals as a data frame: "pandas", "polars" or "pyarrow"."""
        from superarm.campaign.frames import frame

        return frame(self.history(), backend)

    def export(self, path: str | Path) -> None:
        """Write everything to one file: question, rule, seed, totals, changes, looks."""
        content = self._client._answer("GET", f"{self._path}/export", None, True).content
        try:
            Path(path).write_bytes(content)
        except OSError as error:
            raise SettingError(f"{path}: {error.strerror or error}") from None

    def diagnose(self) -> Diagnostics | None:
        """Check all totals against what a certificate counts on; None while there are none."""
        from superarm.server.wire import diagnostics_from

        found = self._client._get(f"{self._path}/diagnostics")["diagnostics"]
        return None if found is None else diagnostics_from(found)

    def verify(self) -> Verified:
        """Work the certificate out again, here, from the raw totals that the server sends."""
        from tempfile import TemporaryDirectory

        from superarm.campaign.verify import verify_file

        with TemporaryDirectory() as folder:
            path = Path(folder) / "export.json"
            self.export(path)
            return verify_file(path)

    def delete(self) -> None:
        """Take the campaign out of the server's store, with all its totals."""
        self._client._send("DELETE", self._path)

    def _post(self, path: str, body: Any, *, again: bool = False) -> Any:
        return self._client._send("POST", f"{self._path}/{path}", body, again=again)


def _number(total: float) -> float:
    """Return a total as JSON can write it; what is no finite number is refused here."""
    from superarm._checks import bounded_real
    from superarm.errors import TotalError

    return bounded_real("a total", total, TotalError)
