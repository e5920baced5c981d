"""A campaign on a server, used like one in a store of one's own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

from superarm.errors import SettingError, StoreError, SuperarmError
from superarm.server.failures import error_from

if TYPE_CHECKING:
    import httpx

    from superarm.algorithms import Algorithm
    from superarm.campaign import Change, LookTaken, OpenPull, Pull, Result, Status, Told
    from superarm.campaign.verify import Verified
    from superarm.problem import Problem
    from superarm.seeds import Rng
    from superarm.verdict import Verdict

Label = str | Sequence[str]

LEASE = 86_400.0
"""Seconds for which a pull is handed out, if nothing else is said: a day."""

_ROWS = 1_000  # of a list that are fetched at a time
_LONGEST = 30.0  # seconds between two attempts


class Client:
    """A server of campaigns.

    >>> client = Client("http://127.0.0.1:8420")  # doctest: +SKIP
    >>> crew = client.campaign("crew")  # doctest: +SKIP
    >>> pull = crew.ask(worker="Dee")[0]  # doctest: +SKIP
    >>> crew.tell(pull.id, 2)  # doctest: +SKIP
    Told(new=1, repeated=0)

    What failed for a reason that passes is tried again, after growing pauses: everything while the
    server does not answer at all or says that it was not done; and where it is unknown whether it
    was done, what does no harm when done twice: reading, telling, and asking by a named worker.

    Parameters
    ----------
    url
        Where the server is.
    token
        What `superarm token new` printed, where the server asks for one.
    uds
        The Unix socket that it listens on.
    timeout
        Seconds to wait for an answer.
    attempts
        How often to try.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        token: str | None = None,
        *,
        uds: str | Path | None = None,
        timeout: float = 30.0,
        attempts: int = 6,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise SettingError('the client needs httpx: pip install "superarm[server]"') from None
        if not url.startswith(("http://", "https://")):
            raise SettingError(f"{url!r} is no address of a server, such as http://127.0.0.1:8420")
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token.strip()}"
        self._url, self._attempts = url.rstrip("/"), max(1, attempts)
        self._pause: Callable[[float], object] = time.sleep
        transport = None if uds is None else httpx.HTTPTransport(uds=str(uds))
        self._http = httpx.Client(
            base_url=f"{self._url}/api/v1", headers=headers, timeout=timeout, transport=transport
        )

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def campaigns(self) -> list[str]:
        """Return the names of all campaigns, in order."""
        return [item["name"] for item in self._list("/campaigns")]

    def campaign(self, name: str) -> RemoteCampaign:
        """Return a campaign that the server has."""
        found = RemoteCampaign(self, name)
        found.question()
        return found

    def create(
        self,
        name: str,
        problem: Problem,
        algorithm: Algorithm | None = None,
        *,
        rng: Rng = None,
    ) -> RemoteCampaign:
        """Begin a campaign; see `Campaign.create`."""
        from superarm.plain import problem_to_plain, to_plain
        from superarm.seeds import seed_from

        body = {
            "name": name,
            "problem": problem_to_plain(problem),
            "algorithm": None if algorithm is None else to_plain(algorithm),
            "seed": seed_from(rng),
        }
        made = self._send("POST", "/campaigns", body)
        return RemoteCampaign(self, made["name"])

    def load(self, path: str | Path, *, name: str | None = None) -> RemoteCampaign:
        """Take in a campaign that `export` wrote, under its own name or another."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise SettingError(f"{path}: {error.strerror or error}") from None
        address = "/import" if name is None else f"/import?name={quote(name, safe='')}"
        made = self._send("POST", address, content)
        return RemoteCampaign(self, made["name"])

    # ---- requests --------------------------------------------------------------------------------

    def _list(self, path: str, **query: str) -> Iterator[Any]:
        """Yield all items of a list, a page at a time."""
        start = 0
        while True:
            words = "&".join(f"{key}={value}" for key, value in query.items())
            page = self._get(f"{path}?start={start}&limit={_ROWS}&{words}".rstrip("&"))
            yield from page["items"]
            if page["next"] is None:
                return
            start += _ROWS

    def _get(self, path: str) -> Any:
        return self._send("GET", path, again=True)

    def _send(self, method: str, path: str, body: Any = None, *, again: bool = False) -> Any:
        """Send a request until it is answered; `again`: doing it twice does no harm."""
        answer = self._answer(method, path, body, again)
        if answer.status_code == 204:
            return None
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return answer.json() if kind == "application/json" else answer.content

    def _answer(self, method: str, path: str, body: Any, again: bool) -> httpx.Response:
        import httpx

        for attempt in range(self._attempts):
            last = attempt == self._attempts - 1
            wait = min(_LONGEST, 0.1 * 2**attempt) * (0.5 + random.random())
            try:
                answer = self._http.request(method, path, **_content(body))
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                if last:
                    raise self._silent(error) from None
            except httpx.TransportError as error:  # it may have been done
                if last or not again:
                    raise self._silent(error) from None
            else:
                if answer.is_success:
                    return answer
                if last or answer.status_code not in (429, 503):
                    raise _error_in(answer)
                wait = max(wait, _retry_after(answer))
            self._pause(wait)
        raise AssertionError("the last attempt returns or raises")

    def _silent(self, error: Exception) -> StoreError:
        said = str(error) or type(error).__name__
        return StoreError(f"the server {self._url} does not answer: {said}")


def _content(body: Any) -> dict[str, Any]:
    if isinstance(body, bytes):
        return {"content": body, "headers": {"Content-Type": "application/json"}}
    return {} if body is None else {"json": body}


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return min(_LONGEST, float(text)) if text.isdigit() else 0.0


def _error_in(answer: httpx.Response) -> SuperarmError:
    """Return the error that the server answers with: the same that a store of one's own raises."""
    try:
        said = answer.json()
        detail, kind = str(said["detail"]), str(said["type"])
    except (ValueError, KeyError, TypeError):
        detail, kind = "", ""
    found = error_from(kind, detail)
    if found is not None:
        return found
    what = detail or "it says nothing that could be read; is it a superarm server?"
    return SettingError(f"the server answers {answer.status_code} {answer.reason_phrase}: {what}")


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

    def history(
        self, *, start: int = 0, limit: int | None = None, newest_first: bool = False
    ) -> list[Result]:
        """Return the totals as they were told, by phase and position, or the newest first."""
        from superarm.server.wire import result_from

        found: list[Result] = []
        order = str(newest_first).lower()
        while limit is None or len(found) < limit:
            size = _ROWS if limit is None else min(_ROWS, limit - len(found))
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
