"""A campaign on a server, used like one in a store of one's own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from superarm.errors import SettingError, StoreError, SuperarmError
from superarm.remote import ROWS, RemoteCampaign
from superarm.server.failures import error_from

if TYPE_CHECKING:
    import httpx

    from superarm.algorithms import Algorithm
    from superarm.problem import Problem
    from superarm.seeds import Rng

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
            page = self._get(f"{path}?start={start}&limit={ROWS}&{words}".rstrip("&"))
            yield from page["items"]
            if page["next"] is None:
                return
            start += ROWS

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
