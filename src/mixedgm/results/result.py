"""A title, columns and notes, or a Summary -> text and HTML of it, everything escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from numbers import Real
from typing import Any

from mixedgm.base.printable import cut, one_line
from mixedgm.families import KINDS
from mixedgm.fit.fitted import Edge
from mixedgm.model.layout import Floats
from mixedgm.results.colours import SIGN_COLOURS
from mixedgm.results.summary import Summary
from mixedgm.results.text import cell_text, facts, heading, sign_legend, table_text, top_edges
from mixedgm.table.read import Columns, named_rows_frame

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


# -- HTML of a summary -----------------------------------------------------------------------------

_CELL = CELL.format(align="left") + ";vertical-align:top"
_SUMMARY_HEAD = _CELL + ";font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)"
_NUMBER = _CELL + ";font-variant-numeric:tabular-nums;white-space:nowrap"
_BAR = (
    "display:inline-block;height:.65em;margin-left:.5em;border-radius:2px;"
    "background:{colour};width:{width:.1f}em"
)
_WIDEST_BAR = 6.0
_LONGEST_NAME = 200


def html(summary: Summary) -> str:
    """Return the summary as one ``<div>`` of HTML that needs nothing else to be shown."""
    body = [
        '<strong style="font-size:1.05em">Mixed graphical model</strong>',
        _facts(summary),
        f"<strong>{escape(heading(summary))}</strong>",
        _edges(tuple(top_edges(summary))) if summary.edges else "",
        _columns(summary),
    ]
    return f'<div style="color:inherit;line-height:1.35">{"".join(body)}</div>'


def _short(name: str) -> str:
    return cut(one_line(name), _LONGEST_NAME)


def _facts(summary: Summary) -> str:
    rows = []
    for name, value in facts(summary):
        text = escape(value)
        if name == "certificate" and not summary.solved:
            text = f'<strong style="color:{SIGN_COLOURS["-"]}">{text}</strong>'
        rows.append(
            f'<tr><td style="{_CELL};opacity:.7">{name}</td><td style="{_CELL}">{text}</td></tr>'
        )
    return f'<table style="{TABLE}"><tbody>{"".join(rows)}</tbody></table>'


def _edges(edges: tuple[Edge, ...]) -> str:
    names = ["source", "target", "kind", "strength", "sign", "partial correlation"]
    moderated = any(edge.moderator is not None for edge in edges)
    if moderated:
        names.append("moderator")
    head = "".join(f'<th style="{_SUMMARY_HEAD}">{name}</th>' for name in names)
    strongest = max(edge.strength for edge in edges)
    rows = "".join(_edge(edge, strongest, moderated) for edge in edges)
    table = f'<table style="{TABLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    legend = sign_legend(edges)
    if not legend:
        return table
    return f'{table}<div style="opacity:.7;margin-bottom:.5em">{legend}</div>'


def _edge(edge: Edge, strongest: float, moderated: bool) -> str:
    bar = _BAR.format(
        colour=SIGN_COLOURS[edge.sign], width=_WIDEST_BAR * edge.strength / max(strongest, 1e-300)
    )
    partial = "" if edge.partial_correlation is None else f"{edge.partial_correlation:+.3f}"
    cells = [
        (_CELL, escape(_short(edge.source)) + (" &rarr;" if edge.directed else "")),
        (_CELL, escape(_short(edge.target))),
        (_CELL, escape(edge.kind)),
        (_NUMBER, f'{edge.strength:.3f}<span style="{bar}"></span>'),
        (_NUMBER, {"+": "+", "-": "&minus;", None: ""}[edge.sign]),
        (_NUMBER, partial.replace("-", "&minus;")),
    ]
    if moderated:
        cells.append((_CELL, escape(_short(edge.moderator or ""))))
    return "<tr>" + "".join(f'<td style="{s}">{cell}</td>' for s, cell in cells) + "</tr>"


def _columns(summary: Summary) -> str:
    """Return the names of the columns, folded away."""
    parts = []
    for kind, columns in summary.columns.items():
        names, heading = list(columns), kind
        if KINDS[kind].has_levels:
            names = [f"{name} ({n_levels})" for name, n_levels in columns.items()]
            heading = f"{kind} (levels)"
        parts.append(f"<div>{heading}: {escape(', '.join(map(_short, names)))}</div>")
    return f"<details><summary>columns</summary>{''.join(parts)}</details>"
