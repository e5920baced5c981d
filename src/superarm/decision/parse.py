"""Decision classes from text and the columns of a table of arms, as the command line gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from superarm.decision.base import Decision
from superarm.decision.matching import Matchings
from superarm.decision.matroid import Partition, SpanningTrees, Transversal
from superarm.decision.path import Paths
from superarm.errors import ProblemError
from superarm.plugins import load

Columns = Mapping[str, Sequence[str]]
Builder = Callable[[Columns, Sequence[str]], Decision]


def parse_decision(text: str, columns: Columns) -> Decision:
    """Read ``NAME[:WORD:...]``, as ``paths:SOURCE:TARGET``; `columns` hold a text for each arm."""
    name, *words = (word.strip() for word in text.split(":"))
    build: Builder = load("decisions", name)
    return build(columns, words)


def paths(columns: Columns, words: Sequence[str]) -> Paths:
    """``paths:SOURCE:TARGET``; columns from, to."""
    return _paths(columns, words, True)


def undirected_paths(columns: Columns, words: Sequence[str]) -> Paths:
    """``undirected-paths:SOURCE:TARGET``; columns from, to."""
    return _paths(columns, words, False)


def _paths(columns: Columns, words: Sequence[str], directed: bool) -> Paths:
    if len(words) != 2:
        raise ProblemError("paths need their ends, as paths:SOURCE:TARGET")
    return Paths(_edges(columns), words[0], words[1], directed=directed)


def spanning_trees(columns: Columns, words: Sequence[str]) -> SpanningTrees:
    """``spanning-trees``; columns from, to."""
    _no_more(words, 0, "spanning-trees")
    return SpanningTrees(_edges(columns))


def matchings(columns: Columns, words: Sequence[str]) -> Matchings:
    """``matchings`` (perfect) or ``matchings:SIZE``; columns from, to."""
    _no_more(words, 1, "matchings or matchings:SIZE")
    return Matchings(_edges(columns), _whole(words[0]) if words else None)


def partition(columns: Columns, words: Sequence[str]) -> Partition:
    """``partition:GROUP=COUNT:...``; column group."""
    capacities = {}
    for word in words:
        group, _, count = (part.strip() for part in word.rpartition("="))
        if group in capacities:
            raise ProblemError(f"group {group!r} has two capacities; give one")
        capacities[group] = _whole(count)
    return Partition(_column(columns, "group"), capacities)


def transversal(columns: Columns, words: Sequence[str]) -> Transversal:
    """``transversal``; column posts, with semicolons between the posts that an arm can fill."""
    _no_more(words, 0, "transversal")
    return Transversal(
        [post.strip() for post in cell.split(";") if post.strip()]
        for cell in _column(columns, "posts")
    )


def _edges(columns: Columns) -> list[tuple[str, str]]:
    return list(zip(_column(columns, "from"), _column(columns, "to"), strict=True))


def _column(columns: Columns, name: str) -> Sequence[str]:
    if name not in columns:
        raise ProblemError(f"this decision class needs a column {name!r} in the file of arms")
    return columns[name]


def _whole(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text) < 10):
        raise ProblemError(f"{text!r} is not a whole number")
    return int(text)


def _no_more(words: Sequence[str], most: int, form: str) -> None:
    if len(words) > most:
        raise ProblemError(f"this decision class is written {form}")
