"""Results on stdout: one JSON object, CSV, or a table that explains itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from superarm.tables import as_cell as as_cell  # here too: it is how commands write a group

NUMBER = "-+.0123456789,"


def as_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def as_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as aligned columns: numbers to the right, text to the left."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(header, *cells, strict=True)]
    right = [
        all(cell[:1] in NUMBER and cell for cell in column)
        for column in (zip(*cells, strict=True) if cells else [[""]] * len(header))
    ]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, cells)])
