"""A fitted model in -> a picture of its symmetric parameter matrix, one block per pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixedgm.fitted import FittedModel
from mixedgm.model.kinds import KINDS
from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes, known_options, label, level_label, pixel_in_points
from mixedgm.views.colours import SIGN_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = ["parameter_matrix", "plot_parameters"]

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
    p = nodes.n_gaussian
    matrix[np.arange(p), np.arange(p)] = params.diagonal * scales[:p] ** 2
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
    p, d = fitted.schema.n_gaussian, len(matrix)
    size = float(np.clip(2.6 + 0.2 * d, 4.5, 11.0))
    ax = axes(ax, (size + 1.4, size), layout="constrained")
    shown = matrix.copy()
    shown[np.arange(p), np.arange(p)] = np.nan
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
    for s in range(p if cell >= _SMALLEST_NUMBER else 0):
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
