"""Fingerprints: equal for the same values in any process, and others for other values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np


def digest(value: Any) -> str:
    """Return a short fingerprint of plain values, arrays and objects made of them."""
    text = json.dumps(_plain(value), separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return JSON that says the same: objects by their class and their public parts."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return repr(value)
        case np.ndarray():
            whole = np.ascontiguousarray(value)
            content = repr(value.tolist()).encode() if value.dtype.hasobject else whole.tobytes()
            return [str(value.dtype), list(value.shape), sha256(content).hexdigest()]
        case np.generic():
            return _plain(value.item())
        case Mapping():
            pairs = [[_plain(key), _plain(part)] for key, part in value.items()]
            return ["mapping", sorted(pairs, key=json.dumps)]
        case Set():
            return ["set", sorted((_plain(part) for part in value), key=json.dumps)]
        case list() | tuple():
            return [_plain(part) for part in value]
        case partial():
            return [_name(value.func), _plain(value.args), _plain(value.keywords)]
    return [_name(value), _parts(value)]


def _parts(value: Any) -> Any:
    """What an object consists of; names that begin with _ are its own business (caches)."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if hasattr(value, "__qualname__"):  # a function or a class is its name
        return {}
    held = getattr(value, "__dict__", {})
    return {name: _plain(held[name]) for name in sorted(held) if not name.startswith("_")}


def _name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
