"""A Summary in -> a small piece of HTML for notebooks, everything from the data escaped."""

from __future__ import annotations

from html import escape

from mixedgm.fitted import Edge
from mixedgm.model.kinds import KINDS
from mixedgm.printable import cut, one_line
from mixedgm.views.colours import SIGN_COLOURS
from mixedgm.views.result import CELL, TABLE
from mixedgm.views.summary import Summary
from mixedgm.views.text import facts, heading, sign_legend, top_edges

__all__ = ["html"]

_CELL = CELL.format(align="left") + ";vertical-align:top"
_HEAD = _CELL + ";font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)"
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
    head = "".join(f'<th style="{_HEAD}">{name}</th>' for name in names)
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
