"""Rows of cells in -> CSV text that every reader cuts at the same places."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

__all__ = ["csv_text"]


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    r"""Return the rows as CSV, lines ended by a newline.

    A carriage return is quoted, too: Python's writer quotes what ends its own lines only, and its
    reader then takes the rest of the cell for another row.

    Examples
    --------
    >>> csv_text([["a", "b"], ["x\ry", 1]])
    'a,b\n"x\ry","1"\n'
    """
    file = io.StringIO(newline="")
    plain = csv.writer(file, lineterminator="\n")
    quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        returns = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting if returns else plain).writerow(row)
    return file.getvalue()
