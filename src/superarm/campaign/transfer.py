"""A campaign as one file, and back: JSON, a list for each column, and a hash of it all.

What is read is not trusted: every row is checked, and all looks are taken again from the totals.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from superarm._checks import shown, writable
from superarm.campaign.contents import (
    RESULT,
    ChangeRow,
    Contents,
    LookRow,
    OpenRow,
    PhaseRow,
    Results,
)
from superarm.campaign.store import Store
from superarm.errors import CampaignError, DataError, StoreError, SuperarmError

if TYPE_CHECKING:
    from superarm.campaign.campaign import Campaign

FORMAT = 1
"""Of the file; a newer one is refused."""

HEAD = "superarm campaign"

MOST_NUMBERS = 200_000
"""Plans whose super-arms take up to so many numbers are written out, for others to check."""

_COLUMNS: dict[str, Sequence[str]] = {
    "results": RESULT,
    "open": OpenRow._fields,
    "looks": LookRow._fields,
}
_PHASE = PhaseRow._fields[:9]
_LATEST = 253_402_300_799.0  # the last second of the year 9999
_WHOLE = ("serial", "position", "attempt", "number", "pulls")
_TEXT = ("worker", "site", "why")


def export(campaign: Campaign, path: str | Path) -> None:
    """Write everything to one file; it is there as a whole or not at all (".gz": compressed)."""
    contents, verdict = campaign._contents()
    content = _plain(contents, _plans(contents))
    content["verdict"] = verdict.to_dict()
    target = Path(path)
    try:
        with _written(target) as file:
            for piece in _pieces(content):
                file.write(piece)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None


def from_file(path: str | Path) -> Contents:
    """Read what `export` wrote; DataError where it is something else, or was changed since."""
    source = Path(path)
    content, whole = read_content(source)
    if not whole:
        raise DataError(
            f"{source} was changed after it was written, or is damaged: its hash does not fit; "
            "export the campaign again"
        )
    return contents_of(source, content)


def contents_of(source: Path, content: Any) -> Contents:
    """Return the campaign that a file's content says, each value of its kind."""
    try:
        return _contents(content)
    except SuperarmError as error:
        raise DataError(f"{source}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{source} is no export of a campaign: {error!r}") from None


def load(path: str | Path, store: Store, name: str | None = None) -> str:
    """Take in a campaign under its own name or another; return the name."""
    from superarm.campaign.check import aside, findings
    from superarm.campaign.inputs import check_name
    from superarm.campaign.replay import replay
    from superarm.campaign.writing import write

    contents = from_file(path)
    called = check_name(contents.name if name is None else name)
    if called in store.names():
        raise CampaignError(f"there is a campaign {called!r} already; load it by another name")
    wrong = findings(contents)
    if wrong:
        more = f" (and {len(wrong) - 1} more of the kind)" if len(wrong) > 1 else ""
        raise DataError(f"{path}: {wrong[0]}{more}")
    try:
        course = contents.course()
        stages = range(1, contents.stages + 1)
        steps = [step for stage in stages for step in replay(contents, course, stage)]
        lost = aside(contents, course)
    except StoreError as error:
        raise DataError(f"{path}: {error}") from None
    if lost:
        raise DataError(f"{path}: {lost[0]}")
    if steps[-1].row.serial != contents.serial:
        raise DataError(
            f"{path}: its totals lead to phase {steps[-1].row.serial}, not {contents.serial}"
        )
    with store.write() as connection:
        write(connection, contents, called, steps)
    return called


def digest(content: Any) -> str:
    """Return the hash of a content, whatever its spaces and the order of its keys."""
    found = sha256()
    for piece in _body(content):
        found.update(piece)
    return found.hexdigest()


# ---- writing -------------------------------------------------------------------------------------


def _plain(contents: Contents, plans: Mapping[int, list[list[int]]]) -> dict[str, Any]:
    from superarm import __version__

    results = contents.results
    columns = [getattr(results, name) for name in RESULT]
    return {
        "superarm": __version__,
        "written": time.time(),
        "name": contents.name,
        "created": contents.created,
        "seed": str(contents.seed),
        "problem": contents.problem,
        "rule": contents.rule,
        "serial": contents.serial,
        "state": contents.state,
        "phases": [
            {
                **dict(zip(_PHASE, row, strict=False)),
                "origin": None if row.origin is None else b64encode(row.origin).decode(),
                "origin_look": row.origin_look,
                "members": plans.get(row.serial),
            }
            for row in contents.phases.values()
        ],
        "changes": [{**row._asdict(), "names": json.loads(row.names)} for row in contents.changes],
        "results": dict(zip(RESULT, map(_listed, columns), strict=True)),
        "open": _as_columns(contents.open, OpenRow._fields),
        "looks": _as_columns(contents.looks, LookRow._fields),
    }


def _plans(contents: Contents) -> dict[int, list[list[int]]]:
    """Return the super-arms of each phase that can be made again, where they are not too many."""
    from superarm.campaign.replay import replay

    found = {}
    course = contents.course()
    for stage in range(1, contents.stages + 1):
        for step in replay(contents, course, stage, every=False):
            plan = None if step.phase is None else step.phase.plan
            if plan is None or plan.size * plan.members(0).size > MOST_NUMBERS:
                continue
            found[step.row.serial] = plan.members(slice(None)).tolist()
    return found


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _as_columns(rows: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _pieces(content: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the file bit by bit; the hash is that of the content as it is written."""
    found = sha256()
    yield f'{{"{HEAD}": {FORMAT}, "content": '.encode()
    for piece in _body(content):
        found.update(piece)
        yield piece
    yield f', "sha256": "{found.hexdigest()}"}}\n'.encode()


def _body(content: Any) -> Iterator[bytes]:
    """Yield an object by its keys in order, and what is in a column's place by columns."""
    if not isinstance(content, dict):
        yield _dumped(content)
        return
    between = b"{"
    for key in sorted(content):
        yield between + _dumped(key) + b":"
        yield from (_body(content[key]) if key in _COLUMNS else [_dumped(content[key])])
        between = b","
    yield b"}" if content else b"{}"


def _dumped(value: Any) -> bytes:
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode()


@contextmanager
def _written(target: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes the target's place when all of it is on the disk."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            if target.suffix == ".gz":
                with gzip.GzipFile("", "wb", 5, file, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


# ---- reading -------------------------------------------------------------------------------------


def read_content(source: Path) -> tuple[Any, bool]:
    """Return the content of a file, and whether its hash fits."""
    content, mark = _content(source)
    try:
        return content, mark == digest(content)
    except UnicodeEncodeError:  # half a character, which JSON can spell
        raise DataError(
            f"{source} is damaged: it has a sign in it that cannot be kept as text"
        ) from None


def _content(source: Path) -> tuple[Any, str]:
    try:
        data = source.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        found = json.loads(data, parse_constant=_no_number)
    except (OSError, EOFError) as error:
        raise DataError(
            f"{source} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source} is no export of a campaign: {error}") from None
    except Exception as error:  # of zlib, in the middle of a damaged file
        raise DataError(f"{source} is damaged: {error}") from None
    if not isinstance(found, dict) or HEAD not in found:
        raise DataError(f"{source} is no export of a campaign")
    if found[HEAD] != FORMAT:
        raise DataError(
            f"{source} is of format {found[HEAD]!r}; this superarm reads format {FORMAT}: use the "
            "version that wrote it, or a newer one"
        )
    if not isinstance(found.get("content"), dict):
        raise DataError(f"{source} is no export of a campaign: it has no content")
    return found["content"], str(found.get("sha256"))


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _contents(content: Mapping[str, Any]) -> Contents:
    phases = [_phase(row) for row in content["phases"]]
    results = _columns(content["results"], "results")
    changes = [
        ChangeRow(**{**row, "names": json.dumps(_names(row["names"]), ensure_ascii=False)})
        for row in content["changes"]
    ]
    for change in changes:
        _check_change(change)
    open_columns = _columns(content["open"], "open")
    looks = _columns(content["looks"], "looks")
    return Contents(
        name=_text(content["name"]),
        created=_moment(content["created"]),
        seed=int(_text(content["seed"])),
        problem=content["problem"],
        rule=content["rule"],
        serial=_whole(content["serial"]),
        state=_text(content["state"]),
        phases={row.serial: row for row in phases},
        results=Results.of([results[name] for name in RESULT]),
        changes=changes,
        open=[OpenRow(*row) for row in zip(*open_columns.values(), strict=True)],
        looks=[LookRow(*row) for row in zip(*looks.values(), strict=True)],
        verdict=content["verdict"],
    )


def _phase(row: Mapping[str, Any]) -> PhaseRow:
    values = {name: row[name] for name in _PHASE}
    for name in ("serial", "stage", "number", "frontier", "look", "pulls"):
        _whole(values[name])
    values |= {"origin_look": row["origin_look"], "members": row["members"]}
    for name in ("parent", "last", "origin_look"):
        if values[name] is not None:
            _whole(values[name])
    if row["origin"] is not None:
        values["origin"] = b64decode(_text(row["origin"]), validate=True)
    return PhaseRow(**{**values, "fingerprint": _text(row["fingerprint"])})


def _columns(given: Mapping[str, Any], what: str) -> dict[str, list[Any]]:
    """Return columns of equal length, each of its kind."""
    found = {name: given[name] for name in _COLUMNS[what]}
    lengths = {len(column) for column in found.values()}
    if len(lengths) > 1 or not all(isinstance(column, list) for column in found.values()):
        raise DataError(f"the columns of {what} differ in length")
    for name, column in found.items():
        kinds = set(map(type, column))
        if name in _TEXT:
            right = kinds <= {str} and all(map(writable, set(column)))
        elif name in _WHOLE:
            right = kinds <= {int} and all(0 <= value < 2**62 for value in column)
        else:
            right = kinds <= {int, float, type(None) if what == "looks" else float}
            right = right and all(math.isfinite(v) for v in column if v is not None)
        if name in ("at", "given", "until"):
            right = right and all(0 <= value <= _LATEST for value in column)
        if not right:
            raise DataError(f"the column {name!r} of {what} has a value that cannot be")
    return found


def _check_change(row: ChangeRow) -> None:
    _whole(row.number)
    _moment(row.at)
    for part in (row.serial, row.position, row.attempt, row.target):
        if part is not None:
            _whole(part)
    if row.total is not None and not (type(row.total) is float and math.isfinite(row.total)):
        raise DataError(f"change {row.number} has a total that cannot be")
    for text in (row.worker, row.kind, row.reason):
        _text(text)
    if type(row.by_value) is not bool:
        raise DataError(f"change {row.number} does not say whether it was because of a value")


def _names(given: Any) -> list[str]:
    if not isinstance(given, list):
        raise DataError("the names of a change are no list")
    return [_text(name) for name in given]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{value!r} is in the place of a text")
    if not writable(value):
        raise DataError(f"{shown(value)} has a sign in it that cannot be kept as text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise DataError(f"{value!r} is in the place of a whole number")
    return value


def _moment(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LATEST:
        raise DataError(f"{value!r} is in the place of a time")
    return float(value)
