"""A Summary or columns of values in -> plain text, aligned and at most 80 columns wide."""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

from mixedgm.base.printable import bounded, cut, few, one_line, rows
from mixedgm.base.printable import width as width_of
from mixedgm.families import KINDS, edge_kinds, ends_of
from mixedgm.fit.fitted import Edge
from mixedgm.path.recipe import Lam
from mixedgm.results.summary import Summary
from mixedgm.table.read import Columns

TOP_EDGES = 12
NO_SIGN = "no sign: a categorical column with three or more levels"
_TWO_SIGNS = "a hurdle column (one sign for whether, another for how much)"
_NARROWEST = 8
_LONGEST_HEAD = 24
_LONGEST_NAME = 40
_MOST_NAMES = 10
SHORT_KINDS = {name: "-".join(kind.short for kind in ends_of(name)) for name in edge_kinds()}


def summary_text(summary: Summary, width: int = 80) -> str:
    """Return facts about the fit, then the strongest edges, in lines of at most `width`."""
    lines = facts_lines("Mixed graphical model", facts(summary), width)
    lines += ["", heading(summary)]
    if summary.edges:
        lines.append(edges_text(top_edges(summary), width))
    return "\n".join(lines)


def facts_lines(title: str, named: Sequence[tuple[str, str]], width: int = 80) -> list[str]:
    """Return a title, then names and values beside each other, wrapped to the width."""
    indent, lines = 4 + max(len(name) for name, _ in named), [title]
    for name, value in named:
        lines += textwrap.wrap(
            value,
            width,
            initial_indent=f"  {name}".ljust(indent),
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
        )
    return lines


def top_edges(summary: Summary) -> list[Edge]:
    """Return the strongest edges; a third of the places are for how edges vary, where they do."""
    varying = [edge for edge in summary.edges if edge.moderator is not None]
    kept = set(varying[: TOP_EDGES // 3])
    others = [edge for edge in summary.edges if edge not in kept][: TOP_EDGES - len(kept)]
    chosen = kept | set(others)
    return [edge for edge in summary.edges if edge in chosen]


def heading(summary: Summary) -> str:
    """Return the line above the list of edges."""
    shown, total = min(len(summary.edges), TOP_EDGES), len(summary.edges)
    if total == 0 and summary.n_rows == 0:
        return "No edges: every column is independent of the others."
    if total == 0:
        return "No edges: at this lam every column is independent of the others."
    if shown == total:
        return "Edges"
    if summary.n_deviations == 0:
        return f"Edges, strongest first ({shown} of {total})"
    varying = sum(edge.moderator is not None for edge in top_edges(summary))
    edges, varied = total - summary.n_deviations, summary.n_deviations
    return (
        f"Edges, strongest first ({shown - varying} of {edges}), "
        f"and how they vary ({varying} of {varied})"
    )


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return names and values of everything except the edges, as text."""
    columns, edges = ("columns", _columns(summary)), ("edges", _edges(summary))
    scores = few(summary.transformed, _MOST_NAMES, _short)
    scores = f"{scores} (normal scores of ranks)" if scores else ""
    if summary.n_rows == 0:
        named = [("parameters", summary.message), columns, edges]
    else:
        count, varying = f"{summary.n_rows:,}", ""
        if summary.total_weight != summary.n_rows:
            count += f" with a total weight of {summary.total_weight:,.6g}"
        if summary.moderators:
            varying = f"{summary.n_deviations} of {summary.n_possible_deviations} possible"
            varying += f", by {few(summary.moderators, show=_short)}"
        named = [
            ("rows", count),
            ("missing", "" if summary.completion is None else str(summary.completion)),
            columns,
            ("transformed", scores),
            ("covariates", few(summary.covariates, _MOST_NAMES, _short)),
            edges,
            ("moderated", varying),
            ("tests", _tests(summary)),
            ("lam", _lam(summary)),
            ("estimates", _estimates(summary)),
            ("loss", "" if summary.loss == "pseudolikelihood" else summary.loss),
            ("objective", _objective(summary)),
            ("certificate", _certificate(summary)),
        ]
    named += [("note", note) for note in summary.notes]
    return [(name, one_line(bounded(value))) for name, value in named if value]


def _columns(summary: Summary) -> str:
    parts = []
    for kind, columns in summary.columns.items():
        parts.append(f"{len(columns)} {kind}")
        if KINDS[kind].has_levels:
            low, high = min(columns.values()), max(columns.values())
            parts[-1] += f" ({low} levels)" if low == high else f" ({low} to {high} levels)"
    return f"{summary.n_columns}: " + ", ".join(parts)


def _edges(summary: Summary) -> str:
    kinds = [f"{n} {SHORT_KINDS[kind]}" for kind, n in summary.edges_by_kind.items() if n]
    count = len(summary.edges) - summary.n_deviations
    total = f"{count} of {summary.n_possible} possible"
    return f"{total}: {', '.join(kinds)}" if kinds else total


def _tests(summary: Summary) -> str:
    """Return how tests of all pairs chose the edges, and how many of these may be wrong."""
    if summary.expected_false is None:
        return ""
    text = f"{summary.criterion}, each pair given the other edges"
    if not summary.edges:
        return text
    if not summary.rate_known:
        return (
            f"{text}; how many of these edges are false is not known with "
            f"{rows(summary.total_weight)}"
        )
    return f"{text}; {summary.expected_false:.2g} of these edges expected to be false"


def _lam(summary: Summary) -> str:
    text = lam_text(summary.lam)
    if not isinstance(summary.lam, tuple) and summary.lam_max:
        text += f" ({summary.lam / summary.lam_max:.2g} of lam_max)"
    if summary.expected_false is not None:
        return f"{text}, where the path is nearest to this graph"
    if summary.criterion is None:
        return f"{text}, given"
    values = "value" if summary.n_lams == 1 else "values"
    return f"{text}, by {summary.criterion} from {summary.n_lams} {values}"


def _estimates(summary: Summary) -> str:
    """Return whether they are shrunken, and which of them the data do not determine."""
    text = estimates_text(summary.refitted, summary.lam)
    if summary.shrunken:
        text += "; edges of several parameters shrunken, each by its own variance"
    if summary.ridge:
        pairs = few(summary.ridge, show=lambda pair: " - ".join(map(_short, pair)))
        text += f"; a ridge worth one row on {pairs}, whose size the data do not determine"
    if summary.noisy:
        names = few(summary.noisy, show=_short)
        text += f"; noise worth one row in {names}, which the others determine"
    return text


def estimates_text(refitted: bool, lam: Lam) -> str:
    """Return whether estimates have a penalty.

    Examples
    --------
    >>> estimates_text(True, 0.1), estimates_text(False, 0.1)
    ('without penalty, given these edges', 'shrunken by the penalty')
    """
    if refitted:
        return "without penalty, given these edges"
    return "without penalty" if lam == 0.0 else "shrunken by the penalty"


def _short(name: str) -> str:
    return cut(one_line(name), _LONGEST_NAME)


def lam_text(lam: Lam) -> str:
    """Return the penalty, or the range of those of all columns.

    Examples
    --------
    >>> lam_text(0.125), lam_text((0.25, float("nan"), 0.125))
    ('0.125', '0.125 to 0.25, one per column')
    """
    if not isinstance(lam, tuple):
        return f"{lam:.4g}"
    known = [value for value in lam if not math.isnan(value)]
    return f"{min(known):.4g} to {max(known):.4g}, one per column"


def _objective(summary: Summary) -> str:
    if summary.objective_error == 0.0:
        return f"{summary.objective:.7g}"
    return f"{summary.objective:.7g} with a standard error of {summary.objective_error:.1g}"


def _certificate(summary: Summary) -> str:
    if summary.solved and not summary.converged:
        return (
            f"KKT {summary.kkt:.2g} at the completions that were drawn, at most tol "
            f"{summary.tol:.2g}: solved up to their Monte Carlo error, {summary.kkt_error:.1g}"
        )
    if summary.kkt_error > 0.0 and (summary.completion is None or not summary.converged):
        text = f"KKT {summary.kkt:.2g}, standard error {summary.kkt_error:.1g}"
        text += "" if summary.converged else ": NOT converged"
        return f"{text}. {one_line(summary.message)}"
    if summary.converged:
        return f"KKT {summary.kkt:.2g}, at most tol {summary.tol:.2g}: converged"
    text = f"KKT {summary.kkt:.2g}, tol {summary.tol:.2g}: NOT converged"
    return f"{text}. {one_line(summary.message)}" if summary.message else text


def edges_text(
    edges: Sequence[Edge], width: int = 80, shrunken: Iterable[float] | None = None
) -> str:
    """Return edges as an aligned table; an edge without sign has a blank and a legend.

    Where some edges lead from a covariate, arrows mark them.  `shrunken` norms have
    a column beside the others.

    Examples
    --------
    >>> print(edges_text([Edge("age", "sex", "continuous-categorical", 0.25, "+", None, 0.4)]))
    source  target  kind                    strength  sign  part.cor
    age     sex     continuous-categorical  0.250     +
    """
    directed = any(edge.directed for edge in edges)
    arrows = {"": ["->" if edge.directed else "--" for edge in edges]} if directed else {}
    columns: Columns = {
        "source": [edge.source for edge in edges],
        **arrows,
        "target": [edge.target for edge in edges],
        "kind": [edge.kind for edge in edges],
        "strength": [f"{edge.strength:.3f}" for edge in edges],
        **(
            {}
            if shrunken is None
            else {
                "norm": [f"{edge.norm:.4f}" for edge in edges],
                "shrunken": [f"{norm:.4f}" for norm in shrunken],
            }
        ),
        "sign": [edge.sign for edge in edges],
        "part.cor": [
            None if edge.partial_correlation is None else f"{edge.partial_correlation:+.3f}"
            for edge in edges
        ],
    }
    if any(edge.moderator is not None for edge in edges):
        columns = {**columns, "moderator": [edge.moderator for edge in edges]}
    if any(edge.ridge for edge in edges):
        columns = {**columns, "ridge": ["yes" if edge.ridge else None for edge in edges]}
    cells = _Cells(columns)
    if sum(cells.widths) + cells.gaps > width:
        columns = {**columns, "kind": [SHORT_KINDS[edge.kind] for edge in edges]}
    text = table_text(columns, width)
    legend = sign_legend(edges)
    return f"{text}\n{textwrap.fill(f'({legend})', width)}" if legend else text


def sign_legend(edges: Iterable[Edge]) -> str:
    """Return why some of these edges have no sign; nothing where all have one.

    Examples
    --------
    >>> print(sign_legend([Edge("age", "debt", "continuous-hurdle", 0.25, None, None, 0.4)]))
    no sign: a hurdle column (one sign for whether, another for how much)
    """
    ends = [ends_of(edge.kind) for edge in edges if edge.sign is None]
    spiked = [any(kind.has_spike for kind in pair) for pair in ends]
    levels = any(kind.has_levels and not kind.is_numeric for pair in ends for kind in pair)
    if not ends:
        return ""
    if not any(spiked):
        return NO_SIGN
    return f"{NO_SIGN}, or {_TWO_SIGNS}" if levels else f"no sign: {_TWO_SIGNS}"


def table_text(columns: Columns, width: int = 80) -> str:
    """Return columns as an aligned table: one line of names, then one line per row.

    Numbers are flush right with four digits; None and NaN are left blank. Long text is cut in its
    middle to keep to the width, as far as eight characters for every column of text allow.

    Examples
    --------
    >>> print(table_text({"column": ["age", "sex"], "degree": [10, 2]}))
    column  degree
    age         10
    sex          2
    """
    cells = _Cells(columns)
    widths = cells.fitted(width)
    lines = []
    for row in [cells.names, *zip(*cells.columns, strict=True)]:
        padded = (
            _padded(cell, size, numeric)
            for cell, size, numeric in zip(row, widths, cells.numeric, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


class _Cells:
    """The cells of a table as text, and how wide its columns have to be."""

    def __init__(self, columns: Columns) -> None:
        self.names = [one_line(name) for name in columns]
        self.columns = [[cell_text(value) for value in values] for values in columns.values()]
        self.numeric = [_numeric(values) for values in columns.values()]
        inner = [max(map(width_of, column), default=0) for column in self.columns]
        heads = [width_of(name) for name in self.names]
        self.widths = [max(sizes) for sizes in zip(inner, heads, strict=True)]
        self.least = [
            max(size if numeric else _NARROWEST, min(head, _LONGEST_HEAD))
            for size, head, numeric in zip(inner, heads, self.numeric, strict=True)
        ]
        self.gaps = 2 * (len(self.names) - 1)

    def fitted(self, width: int) -> list[int]:
        """Return the widths of the columns with the widest texts cut, as far as that is needed."""

        def cut_to(most: int) -> list[int]:
            pairs = zip(self.widths, self.least, strict=True)
            return [min(size, max(most, least)) for size, least in pairs]

        sizes = range(max(self.widths, default=0) + 1)
        fits = bisect_right(sizes, width - self.gaps, key=lambda most: sum(cut_to(most)))
        return cut_to(max(fits - 1, 0))


def _numeric(values: Iterable[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in present
    )


def cell_text(value: object) -> str:
    """Return a value as a table shows it: four digits, and nothing for None and NaN."""
    if value is None:
        return ""
    if isinstance(value, Real) and not isinstance(value, Integral):
        return "" if math.isnan(value) else f"{float(value):.4g}"
    return one_line(str(value))


def _padded(text: str, size: int, right: bool) -> str:
    text = cut(text, size)
    space = " " * (size - width_of(text))
    return space + text if right else text + space
