"""One compiler setting for every kernel: cached on disk, and said so when it is not yet there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

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


def is_cached(kernel: Any) -> bool:
    """Whether some version of `kernel` has been compiled on this machine before."""
    folder = Path(kernel.stats.cache_path or "")
    source = Path(kernel.py_func.__code__.co_filename).stem
    return any(folder.glob(f"{source}.{kernel.__name__}-*.nbi"))


def announce_compilation(kernel: Any) -> None:
    """Say on stderr that the first use compiles, when it does."""
    if not is_cached(kernel):
        print("superarm: compiling its kernels, once (about 15 s) ...", file=sys.stderr, flush=True)
