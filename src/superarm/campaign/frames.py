"""Totals as a data frame of whichever library the user has, through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from superarm.campaign.records import Result
from superarm.errors import SettingError

Backend = Literal["pandas", "polars", "pyarrow"]


def frame(rows: Sequence[Result], backend: Backend) -> Any:
    """Return a row for each total: id, members (a list), total, first_total, told_at and so on."""
    if backend not in get_args(Backend):
        raise SettingError(
            f"backend must be one of {', '.join(get_args(Backend))}, not {backend!r}"
        )
    try:
        import narwhals as nw

        kinds = {
            "id": nw.String(),
            "total": nw.Float64(),
            "first_total": nw.Float64(),
            "told_at": nw.Datetime(time_zone="UTC"),
            "worker": nw.String(),
            "site": nw.String(),
            "phase": nw.Int64(),
            "position": nw.Int64(),
            "state": nw.String(),
        }
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in rows] for name in kinds
        }
        columns["members"] = [list(row.members) for row in rows]
        found = nw.from_dict(columns, backend=backend)
        return found.with_columns(
            *(nw.col(name).cast(kind) for name, kind in kinds.items())
        ).to_native()
    except ModuleNotFoundError as error:
        raise SettingError(f"a {backend} frame needs {error.name}: pip install {backend}") from None
