"""Fingerprints: equal for the same values in any process, and others for other values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType
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
        case int() | float() | complex() | bytes():
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
            return ["partial", _plain(value.func), _plain(value.args), _plain(value.keywords)]
        case MethodType():
            return ["method", _plain(value.__func__), _plain(value.__self__)]
        case FunctionType():
            return [_name(value), _body(value)]
        case CodeType():  # a function within a function
            return [value.co_code.hex(), list(value.co_names), _plain(value.co_consts)]
    return [_name(value), _parts(value)]


def _body(function: FunctionType) -> Any:
    """What a function does, as far as it is its own: its code, defaults and enclosed values."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    enclosed = [part for part in cells if part is not function]
    return _plain([function.__code__, function.__defaults__, function.__kwdefaults__, enclosed])


def _parts(value: Any) -> Any:
    """What an object consists of; names that begin with _ are its own business (caches)."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if hasattr(value, "__qualname__"):  # a class, or a function that is not written in Python
        return {}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if not hasattr(value, "__dict__") and not slots:
        return repr(value)
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    return {name: _plain(held[name]) for name in sorted(held) if not name.startswith("_")}


def _name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
