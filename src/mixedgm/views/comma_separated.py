"""Rows of cells in -> CSV text that every reader cuts at the same places."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Literal

__all__ = ["Formulas", "csv_text"]

Formulas = Literal["keep", "mark"]

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(rows: Iterable[Sequence[object]], formulas: Formulas = "keep") -> str:
    r"""Return the rows as CSV, lines ended by a newline.

    A carriage return is quoted, too: Python's writer quotes what ends its own lines only, and its
    reader then takes the rest of the cell for another row.

    A spreadsheet runs text that starts with =, +, -, @, a tab or a line break as a formula. "keep"
    writes it as it is, so that reading gives it back; "mark" puts an apostrophe before it, so that
    a spreadsheet shows it as text. Numbers, and a sign on its own, stay as they are.

    Examples
    --------
    >>> csv_text([["a", "b"], ["x\ry", 1]])
    'a,b\n"x\ry","1"\n'
    >>> csv_text([["=1+2", "-", "-3.5", -3.5]], formulas="mark")
    "'=1+2,-,-3.5,-3.5\n"
    """
    file = io.StringIO(newline="")
    plain = csv.writer(file, lineterminator="\n")
    quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [_marked(cell) for cell in row] if formulas == "mark" else row
        returns = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoting if returns else plain).writerow(cells)
    return file.getvalue()


def _marked(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_STARTS) or cell in ("+", "-"):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
