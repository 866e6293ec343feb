"""A fitted model in -> a picture of its symmetric parameter matrix, one block per pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes, label
from mixedgm.views.colours import SIGN_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["parameter_matrix", "plot_parameters"]

_MOST_TICKS = 70
_MOST_NUMBERS = 40


def parameter_matrix(fitted: FittedModel) -> Floats:
    """(d, d) parameters with continuous columns in standard deviations.

    Off the diagonal a positive number means a positive relation, so continuous pairs appear as
    minus the precision. The diagonal of the continuous block is the precision itself; the blocks
    of a categorical column with itself have no parameters and are NaN.
    """
    p, params = fitted.schema.n_cont, fitted.params
    scales = np.ones(len(params.coef))
    scales[:p] = fitted.node_scales[:p]
    matrix = params.coef * np.outer(scales, scales)
    matrix[np.arange(p), np.arange(p)] = np.diagonal(params.precision) * scales[:p] ** 2
    for cat in range(len(params.n_levels)):
        block = params.levels_of(cat)
        matrix[p + block.start : p + block.stop, p + block.start : p + block.stop] = np.nan
    return np.asarray(matrix)


def plot_parameters(fitted: FittedModel, *, ax: Axes | None = None) -> Axes:
    """Draw the parameter matrix: continuous columns first, one row per level of the others.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        With a colour bar beside it.

    Notes
    -----
    Continuous columns are in standard deviations, which makes the blocks comparable. Blue is a
    positive relation, vermilion a negative one. The colours span the edges; the diagonal of the
    continuous block, the precision of each column given all others, is grey with its number. The
    block of a categorical column with itself has no parameters.
    """
    matrix = parameter_matrix(fitted)
    p, d = fitted.schema.n_cont, len(matrix)
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
    if d <= _MOST_NUMBERS:
        for s in range(p):
            ax.text(
                s, s, f"{matrix[s, s]:.2g}", ha="center", va="center", color=INK,
                fontsize=float(np.clip(150.0 / d, 4.0, 8.0)),
            )
    figure = ax.get_figure(root=True)
    bar = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)  # type: ignore[union-attr]
    bar.set_label("parameter (continuous columns in standard deviations)")
    bar.outline.set_visible(False)  # type: ignore[operator]
    return ax


def _colours() -> object:
    from matplotlib.colors import LinearSegmentedColormap

    stops = [SIGN_COLOURS["-"], "#F3B58A", "#FFFFFF", "#8FC1E0", SIGN_COLOURS["+"]]
    colours = LinearSegmentedColormap.from_list("relation", stops)
    return colours.with_extremes(bad="#E4E4E4")


def _starts(fitted: FittedModel) -> NDArray[np.int64]:
    """Return the first row of every column, and the end."""
    widths = [1] * fitted.schema.n_cont + list(fitted.schema.n_levels)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def _draw_lines(ax: Axes, fitted: FittedModel) -> None:
    """Separate columns by thin lines, the continuous from the categorical ones by a thick one."""
    starts = _starts(fitted) - 0.5
    inner = starts[1:-1]
    width = 0.6 if len(starts) <= 40 else 0.25
    for line in (ax.axhline, ax.axvline):
        for at in inner:
            line(at, color="#9A9A9A", linewidth=width)
        if 0 < fitted.schema.n_cont < len(starts) - 1:
            line(starts[fitted.schema.n_cont], color=INK, linewidth=1.6)
    for spine in ax.spines.values():
        spine.set_color(INK)


def _draw_ticks(ax: Axes, fitted: FittedModel) -> None:
    """Name levels at the left and below, columns above and at the right."""
    starts, nodes = _starts(fitted), fitted.schema.nodes
    rows = [label(name, 18) for node in nodes for name in node.level_names or (node.name,)]
    detailed = len(rows) <= _MOST_TICKS
    size = float(np.clip(340.0 / max(len(rows), 1), 5.0, 9.0))
    at = np.arange(len(rows)) if detailed else np.zeros(0)
    ax.set_xticks(at, labels=rows if detailed else [], rotation=90, fontsize=size)
    ax.set_yticks(at, labels=rows if detailed else [], fontsize=size)
    ax.tick_params(length=0)
    named = [k for k, node in enumerate(nodes) if node.kind == "categorical" or not detailed]
    names = [label(nodes[k].name, 18) for k in named]
    if not detailed and len(names) > _MOST_TICKS:
        size = 5.0
    middles = (starts[:-1] + starts[1:] - 1)[named] / 2.0
    top, right = ax.secondary_xaxis("top"), ax.secondary_yaxis("right")
    size = size + 1.0 if detailed else size
    top.set_xticks(middles, labels=names, rotation=90, fontsize=size, fontweight="bold")
    right.set_yticks(middles, labels=names, fontsize=size, fontweight="bold")
    for axis in (ax.xaxis, ax.yaxis, top.xaxis, right.yaxis):
        axis.set_tick_params(length=0)
        for tick in axis.get_ticklabels():
            tick.set_parse_math(False)
