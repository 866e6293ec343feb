"""Parameters, tests or patterns of missing cells -> a picture of them as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.printable import number_of
from mixedgm.families import KINDS
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.pictures.canvas import (
    INK,
    axes,
    ink_on,
    known_options,
    label,
    level_label,
    n_shown,
    pixel_in_points,
)
from mixedgm.results.colours import SIGN_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


_SMALLEST_TEXT = 5.5  # points per line of text
_SMALLEST_BLOCK = 6.0  # points; finer lines would cover the matrix
_SMALLEST_NUMBER = 12.0  # points per cell with a number


def parameter_matrix(fitted: FittedModel) -> Floats:
    """(d, d) parameters with numbers and scores in standard deviations.

    Off the diagonal a positive number means a positive relation, so continuous pairs appear as
    minus the precision. The diagonal of the continuous block is the precision itself; the blocks
    of any other column with itself, and of two covariates, have no parameters and are NaN.
    In separate regressions a row holds the effects of a column, a column the effects on it.
    """
    params, nodes = fitted.params, fitted.params.nodes
    scales = np.concatenate([np.ones(0), *(fitted.units_of(v) for v in range(len(nodes)))])
    matrix = params.coef * np.outer(scales, scales)
    matrix[nodes.column_node[:, None] == nodes.column_node] = np.nan
    at = np.flatnonzero(nodes.gaussian_nodes)
    matrix[at, at] = params.diagonal * scales[at] ** 2
    given = np.isin(nodes.column_node, fitted.schema.covariates)
    matrix[np.ix_(given, given)] = np.nan
    return np.asarray(matrix)


@known_options
def plot_parameters(fitted: FittedModel, *, ax: Axes | None = None) -> Axes:
    """Draw the parameter matrix: numbers and scores first, one row per level of categories.

    Numbers and scores are in standard deviations, which makes the blocks comparable. Blue is a
    positive relation, vermilion a negative one, as the colour bar beside them says. The colours
    span the edges; the diagonal of the continuous block, the precision of each column given all
    others, is grey with its number. The block of any other column with itself has no
    parameters, nor has that of two covariates. Separate regressions have two copies of an edge: a
    row predicts, a column is predicted.
    """
    matrix = parameter_matrix(fitted)
    d = len(matrix)
    size = float(np.clip(2.6 + 0.2 * d, 4.5, 11.0))
    ax = axes(ax, (size + 1.4, size), layout="constrained")
    shown = matrix.copy()
    at = np.flatnonzero(fitted.schema.spans.gaussian_nodes)
    shown[at, at] = np.nan
    limit = float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
    image = ax.imshow(
        np.ma.masked_invalid(shown), cmap=_colours(), vmin=-limit, vmax=limit, interpolation="none"
    )
    _draw_lines(ax, fitted)
    _draw_ticks(ax, fitted)
    cell = _cell_size(ax, fitted)
    if fitted.params.nodewise:
        ax.set_ylabel("predictor")
        ax.set_xlabel("predicted")
    for s in at.tolist() if cell >= _SMALLEST_NUMBER else []:
        if s in fitted.schema.covariates:
            continue
        size = float(np.clip(0.45 * cell, 5.0, 9.0))
        ax.text(s, s, f"{matrix[s, s]:.2g}", ha="center", va="center", color=INK, fontsize=size)
    figure = ax.get_figure(root=True)
    bar = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)  # type: ignore[union-attr]
    nodes = fitted.params.nodes
    what = "continuous columns" if not nodes.first_indicator else "numbers and scores"
    what = what if nodes.n_scored or not nodes.n_spiked else "numbers"
    bar.set_label(f"parameter ({what} in standard deviations)")
    bar.outline.set_visible(False)
    return ax


def _colours() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    stops = [SIGN_COLOURS["-"], "#F3B58A", "#FFFFFF", "#8FC1E0", SIGN_COLOURS["+"]]
    # An odd number of colours, so that zero is exactly white.
    colours = LinearSegmentedColormap.from_list("relation", stops, N=257)
    return colours.with_extremes(bad="#E4E4E4")


def _draw_lines(ax: Axes, fitted: FittedModel) -> None:
    """Separate columns by thin lines, kinds of columns by thick ones."""
    starts = fitted.params.nodes.column_start
    wide = _cell_size(ax, fitted) * np.diff(starts) >= _SMALLEST_BLOCK
    width = 0.6 if len(starts) <= 30 else 0.2
    for line in (ax.axhline, ax.axvline):
        for node in np.flatnonzero(wide):
            if node > 0:
                line(starts[node] - 0.5, color="#9A9A9A", linewidth=width)
        for nodes in _nodes_by_kind(fitted).values():
            if nodes[0] > 0:
                line(starts[nodes[0]] - 0.5, color=INK, linewidth=1.6)
    for spine in ax.spines.values():
        spine.set_color(INK)


def _cell_size(ax: Axes, fitted: FittedModel) -> float:
    """Return the height of one row of the matrix in points."""
    n_rows = max(fitted.params.nodes.n_columns, 1)
    return float(ax.get_window_extent().height * pixel_in_points(ax) / n_rows)


def _draw_ticks(ax: Axes, fitted: FittedModel) -> None:
    """Name levels at the left and below, columns above and at the right, where there is room."""
    nodes, cell = fitted.schema.nodes, _cell_size(ax, fitted)
    numeric = fitted.schema.spans.numeric_nodes
    rows = [
        label(name, 18) if numeric[node] else level_label(name, 22)
        for node in range(len(nodes))
        for name in fitted.axis(node)
    ]
    detailed = cell >= _SMALLEST_TEXT
    at = np.arange(len(rows)) if detailed else np.zeros(0)
    size = float(np.clip(0.8 * cell, 4.5, 9.0))
    ax.set_xticks(at, labels=rows if detailed else [], rotation=90, fontsize=size)
    ax.set_yticks(at, labels=rows if detailed else [], fontsize=size)
    places, names = _column_names(fitted, cell, detailed)
    top, right = ax.secondary_xaxis("top"), ax.secondary_yaxis("right")
    size = min(size + 1.0, 9.0) if detailed else 6.0
    top.set_xticks(places, labels=names, rotation=90, fontsize=size, fontweight="bold")
    right.set_yticks(places, labels=names, fontsize=size, fontweight="bold")
    for axis in (ax.xaxis, ax.yaxis, top.xaxis, right.yaxis):
        axis.set_tick_params(length=0)


def _column_names(
    fitted: FittedModel, cell: float, detailed: bool
) -> tuple[list[float], list[str]]:
    """Return places and names of all columns that have no tick of their own.

    A kind whose columns are too narrow for a name each gets one for all of them.
    """
    starts = fitted.params.nodes.column_start
    places, names = [], []
    for kind, nodes in _nodes_by_kind(fitted).items():
        if KINDS[kind].is_numeric and detailed:
            continue
        first, last = nodes[0], nodes[-1] + 1
        if cell * np.diff(starts[first : last + 1]).mean() >= _SMALLEST_TEXT:
            for node in nodes:
                places.append(float(starts[node] + starts[node + 1] - 1) / 2.0)
                names.append(label(fitted.schema.nodes[node].name, 18))
        else:
            places.append(float(starts[first] + starts[last] - 1) / 2.0)
            names.append(f"{len(nodes)} {kind}")
    return places, names


def _nodes_by_kind(fitted: FittedModel) -> dict[str, list[int]]:
    """Return the nodes of every kind that occurs; they are neighbours."""
    nodes: dict[str, list[int]] = {}
    for node, column in enumerate(fitted.schema.nodes):
        nodes.setdefault(column.kind, []).append(node)
    return nodes


# -- tests of all pairs ----------------------------------------------------------------------------

_MARKS = {"present": "●", "absent": "×"}
_MOST_MARKED = 40


def plot_tests(
    names: Sequence[str],
    pairs: Ints,
    probability: Floats,
    verdicts: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix: shades are probabilities of an edge, marks are verdicts.

    A dot says that an edge is present, a cross that there is none, and no mark that the rows do not
    decide.  A cell without shade is a pair that may not have an edge.
    """
    n = len(names)
    matrix = np.full((n, n), np.nan)
    u, v = pairs.T
    matrix[u, v] = matrix[v, u] = probability
    size = float(np.clip(2.6 + 0.28 * n, 4.0, 11.0))
    ax = axes(ax, (size + 1.2, size), layout="constrained")
    shown = np.ma.masked_invalid(matrix)
    image = ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="none")
    ax.set_facecolor("#f1f1ef")
    if n <= _MOST_MARKED:
        for a, b, chance, verdict in zip(u, v, probability, verdicts, strict=True):
            mark = _MARKS.get(verdict)
            if mark is not None:
                colour = str(ink_on(np.array(image.cmap(chance)[:3])))
                for x, y in ((a, b), (b, a)):
                    ax.text(x, y, mark, ha="center", va="center", color=colour, fontsize=8)
    text = [label(name) for name in names]
    points = float(np.clip(220.0 / max(n, 1), 4.0, 9.0))
    ax.set_xticks(range(n), text, rotation=90, fontsize=points)
    ax.set_yticks(range(n), text, fontsize=points)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    figure = ax.get_figure(root=True)
    bar = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)  # type: ignore[union-attr]
    bar.set_label("probability of an edge")
    bar.outline.set_visible(False)
    key = "●  present    ×  absent    no mark: undecided"
    if np.isnan(matrix[~np.eye(n, dtype=bool)]).any():
        key += "    grey: not tested"
    ax.set_title(key, fontsize=9, color=INK)
    return ax


# -- missing cells ---------------------------------------------------------------------------------

_GAP = SIGN_COLOURS["-"]
_THERE = "#E4E7EA"
_BAR = "#8C969F"


@dataclass(frozen=True, eq=False)
class MissingPicture:
    """What is drawn: columns, the share of each that is missing, and patterns with their rows."""

    names: Sequence[str]
    share: Floats
    """(columns,)"""
    gaps: NDArray[np.bool_]
    """(patterns, columns)"""
    rows: Floats
    """(patterns,) most first."""


def plot_missing(
    picture: MissingPicture, *, n_patterns: int | None = 20, ax: Axes | None = None
) -> Axes:
    """Draw one row per pattern, the most frequent on top, and one column per column with gaps.

    Vermilion is missing, grey is there.  Bars at the right are the rows that have the pattern; bars
    above are the share of each column that is missing.
    """
    from matplotlib.colors import ListedColormap

    total = len(picture.rows)
    shown, some = n_shown(total, "n_patterns", n_patterns), np.flatnonzero(picture.share)
    some = some if len(some) else np.arange(len(picture.names))
    n = len(some)
    width, height = (float(np.clip(1.6 + 0.32 * k, 2.6, 11.0)) for k in (n, shown))
    ax = axes(ax, (width + 3.2, height + 2.2), layout="constrained")
    gaps = picture.gaps[:shown, some].astype(np.float64)
    colours = ListedColormap([_THERE, _GAP])
    ax.imshow(gaps, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(shown + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5 if max(n, shown) <= 60 else 0.3)
    ax.tick_params(which="both", length=0)
    text = float(np.clip(300.0 / max(n, 1), 4.0, 9.0))
    ax.set_xticks(
        range(n), [label(picture.names[k]) for k in some.tolist()], rotation=90, fontsize=text
    )
    ax.set_yticks([])
    ax.set_ylabel("patterns, most frequent first", fontsize=9, color=INK)
    ax.spines[:].set_visible(False)
    _draw_rows(ax, picture.rows[:shown], float(picture.rows.sum()))
    _draw_shares(ax, picture.share[some], text)
    notes = []
    if n < len(picture.names):
        complete = number_of(len(picture.names) - n, "column")
        notes.append(f"{complete} without missing cells not drawn")
    if shown < total:
        left = float(picture.rows[shown:].sum() / max(picture.rows.sum(), 1.0))
        notes.append(f"{shown} of {total} patterns; the others are {left:.1%} of the rows")
    ax.set_xlabel("\n".join(notes), fontsize=8, color=INK)
    return ax


def _draw_rows(ax: Axes, rows: Floats, total: float) -> None:
    """Draw how many rows have each pattern, at the right."""
    beside = ax.inset_axes((1.02, 0.0, 0.45, 1.0), sharey=ax)
    at = np.arange(len(rows))
    beside.barh(at, rows, height=0.72, color=_BAR, gid="rows")
    beside.set_xlim(0.0, 2.2 * float(rows.max(initial=1.0)))
    for row, count in zip(at, rows, strict=True):
        text = f"{count:,.6g} ({_percent(count / max(total, 1.0))})"
        beside.annotate(
            text,
            (count, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=INK,
        )
    beside.tick_params(left=False, labelleft=False, which="both", bottom=False, labelbottom=False)
    beside.spines[:].set_visible(False)
    beside.set_title("rows", fontsize=9, color=INK, loc="left")


def _draw_shares(ax: Axes, share: Floats, text: float) -> None:
    """Draw the share of every column that is missing, above."""
    above = ax.inset_axes((0.0, 1.02, 1.0, 0.25), sharex=ax)
    at = np.arange(len(share))
    above.bar(at, share, width=0.72, color=_GAP, gid="shares")
    above.set_ylim(0.0, 1.3 * max(float(share.max(initial=0.0)), 1e-3))
    for column, value in zip(at, share, strict=True):
        if value > 0.0:
            above.annotate(
                _percent(value),
                (column, value),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=min(text, 7.5),
                color=INK,
            )
    above.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False, which="both")
    above.spines[["top", "left", "right"]].set_visible(False)
    above.set_ylabel("share missing", fontsize=9, color=INK)


def _percent(share: float) -> str:
    if 0.0 < share < 0.001:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
