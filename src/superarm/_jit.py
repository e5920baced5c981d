"""One compiler setting for every kernel: cached on disk, and said so when it is not yet there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F) -> F:
    """Compile with a cache on disk; without one where no folder can be written."""
    return _compile(function, False)


def njit_fast(function: F) -> F:
    """Compile likewise, and let sums be reordered so that loops use vector instructions.

    Infinities keep their meaning; NaN must not occur.
    """
    return _compile(function, {"nnan", "nsz", "reassoc", "contract", "arcp"})


def _compile(function: F, fastmath: bool | set[str]) -> F:
    try:
        return cast(F, numba.njit(cache=True, fastmath=fastmath)(function))
    except RuntimeError:  # numba finds neither the package's folder nor a user cache to write to
        return cast(F, numba.njit(fastmath=fastmath)(function))


def announce_compilation() -> None:
    """Say once on stderr when a kernel has to be compiled, that is on first use after install."""
    event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


class _Announcement(event.Listener):
    said = False

    def on_start(self, event: Any) -> None:
        if not _Announcement.said:
            _Announcement.said = True
            print("superarm: compiling its kernels, once ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass
