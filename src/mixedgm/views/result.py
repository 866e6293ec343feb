"""A title, columns of values and notes in -> the text and the HTML of a small result."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from numbers import Real
from typing import Any

from mixedgm.model.layout import Floats
from mixedgm.printable import cut, one_line
from mixedgm.table.assemble import Columns, named_rows_frame
from mixedgm.views.text import cell_text, table_text

__all__ = ["how_found", "result_html", "result_text", "square_frame"]

_SHOWN = 24
_WIDTH = 80
_LONGEST = 200
# Text takes the notebook's own colour; borders and bars are half transparent, so both a light
# and a dark background show through.
TABLE = "border-collapse:collapse;margin:.3em 0 .6em 0;color:inherit;background:transparent"
CELL = "text-align:{align};padding:.15em .9em .15em 0;border:0;background:transparent;color:inherit"
_HEAD = CELL + ";font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)"


def how_found(exact: bool, note: str = "") -> str:
    """Return how a result was found, for the line below it.

    Examples
    --------
    >>> how_found(True), how_found(False)
    ('exact under the model', 'sampled')
    """
    return "exact under the model" if exact else note or "sampled"


def result_text(title: str, columns: Columns, notes: Sequence[str], whole: str = "frame()") -> str:
    """Return a result as text: title, the first rows of its table, notes.

    `whole` is the method that has all rows.

    Examples
    --------
    >>> print(result_text("Means", {"column": ["age"], "mean": [41.5]}, ["sampled"]))
    Means
    column  mean
    age     41.5
    (sampled)
    """
    n_rows = len(next(iter(columns.values())))
    shown = {name: list(values)[:_SHOWN] for name, values in columns.items()}
    lines = [textwrap.fill(_one_title(title), _WIDTH, subsequent_indent="  ")]
    if n_rows:
        lines.append(table_text(shown))
    if n_rows > _SHOWN:
        lines.append(f"... {_SHOWN} of {n_rows:,} rows; {whole} has all")
    return "\n".join([*lines, textwrap.fill(f"({one_line('; '.join(notes))})", _WIDTH)])


def result_html(title: str, columns: Columns, notes: Sequence[str], whole: str = "frame()") -> str:
    """Return the same as HTML that needs nothing else; everything is escaped."""
    n_rows = len(next(iter(columns.values())))
    align = [
        "right" if all(isinstance(v, Real) or v is None for v in values) else "left"
        for values in columns.values()
    ]
    head = _row("th", _HEAD, list(columns), align) if n_rows else ""
    shown = [list(values)[:_SHOWN] for values in columns.values()]
    body = "".join(
        _row("td", CELL, [cell_text(cell) for cell in row], align)
        for row in zip(*shown, strict=True)
    )
    below = [f"{_SHOWN} of {n_rows:,} rows; {whole} has all"] if n_rows > _SHOWN else []
    return (
        f'<div style="color:inherit;line-height:1.35"><strong>{escape(_one_title(title))}</strong>'
        f'<table style="{TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'
        f'<div style="opacity:.7">{escape(one_line("; ".join([*below, *notes])))}</div></div>'
    )


def _one_title(title: str) -> str:
    return cut(one_line(title), 2 * _LONGEST)


def _row(tag: str, style: str, cells: Sequence[str], align: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} style="{style.format(align=side)}">{escape(cut(one_line(cell), _LONGEST))}</{tag}>'
        for cell, side in zip(cells, align, strict=True)
    )
    return f"<tr>{inner}</tr>"


def square_frame(names: Sequence[str], matrix: Floats, library: str) -> Any:
    """Return a matrix as a frame with names on both axes."""
    return named_rows_frame(names, dict(zip(names, matrix.T, strict=True)), library)
