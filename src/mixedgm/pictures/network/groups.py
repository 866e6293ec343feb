"""Models of several groups in -> their networks side by side, and their edges in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.fit.fitted import FittedModel
from mixedgm.pictures.canvas import (
    INK,
    axes,
    label,
    n_shown,
    name_rows,
    note_row,
    pair_labels,
    require_matplotlib,
)
from mixedgm.pictures.network.appearance import Appearance
from mixedgm.pictures.network.plot import (
    NetworkDrawing,
    draw_network,
    legend_columns,
    legend_keys,
    place_nodes,
    show_widths,
)
from mixedgm.pictures.network.positions import LayoutArg, Positions
from mixedgm.table.read import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "D", "^", "v", "P")
_MOST_IN_A_ROW = 3
_SIDE = 4.6  # inches
_FITTING = 20  # columns that fit a panel of that side
_MOST_NAMES = 100
_APART = 0.6
"""Height of the marks of all groups of a pair, where rows are one apart."""


def plot_groups(
    fitted: Sequence[FittedModel],
    names: Sequence[str],
    *,
    layout: LayoutArg | NetworkDrawing = "spring",
    **options: Any,
) -> list[NetworkDrawing]:
    """Draw one network per group, all over the same columns, in a new figure.

    Nodes are in the same places and widths on the same scale; a layout that is named lays out the
    edges of all groups together. `options` are those of `Appearance`. It is a ParameterError where
    so many columns would be unreadable.
    """
    require_matplotlib()
    style = Appearance.of(options, ("layout",))
    columns = style.names(fitted[0].schema)
    if len(columns) > _MOST_NAMES and style.labels is not False:
        raise ParameterError(
            f"{len(columns)} columns in each of {len(fitted)} networks would be unreadable; at "
            f"most {_MOST_NAMES} can be drawn. To fix: choose some with columns=[...], leave the "
            "names out with labels=False, or draw one network at a time with models[group].plot()."
        )
    places = place_nodes(fitted, layout, style)
    edges = [edge for model in fitted for edge in style.edges(model)]
    keys = legend_keys(fitted, style)
    figure, panels, keys, in_a_row = _panels(len(fitted), places, keys)
    theme = style.colours
    figure.set_facecolor(theme.surface)
    for panel in panels[len(fitted) :]:
        panel.set_axis_off()
    scale = style.scale(edges, len(columns))
    same_scale = {**options, "maximum": scale.maximum, "cut": scale.cut or 0.0}
    drawn = []
    for model, name, panel in zip(fitted, names, panels, strict=False):
        picture = draw_network(model, layout=places, ax=panel, legend=False, **same_scale)
        rows = f" (n = {model.report.n_rows:,})" if model.report.was_fitted else ""
        panel.set_title(f"{label(name, 40)}{rows}", fontsize=10, color=theme.ink)
        drawn.append(NetworkDrawing(panel, places))
        show_widths(keys, picture.scale)
    look = {"frameon": False, "fontsize": 9, "labelcolor": theme.ink}
    figure.legend(handles=keys, loc="lower center", ncols=in_a_row, **look)
    return drawn


def _panels(count: int, places: Positions, keys: Sequence[Any]) -> tuple[Any, Any, list[Any], int]:
    """A figure with axes for this many networks, shaped like their common layout.

    Below them is room for the legend; the last values are its keys and the number of columns.
    """
    across = 2 if count == 4 else min(count, _MOST_IN_A_ROW)
    down = -(-count // across)
    side = _SIDE * float(np.clip(np.sqrt(len(places) / _FITTING), 1.0, 2.2))
    wide, tall = np.ptp(np.array(list(places.values())), axis=0) + 1.0
    height = side * float(np.clip(tall / wide, 0.5, 1.1)) + 0.5
    shown, in_a_row = legend_columns(keys, 72.0 * side * across, 9.0)
    rows = len(shown) // in_a_row
    below = 0.2 + 0.2 * rows
    figure: Any = axes(None, (side * across, height * down + below)).get_figure(root=True)
    figure.clear()
    panels = figure.subplots(down, across, squeeze=False).ravel()
    tall = figure.get_figheight()
    figure.subplots_adjust(left=0.01, right=0.99, top=1.0 - 0.3 / tall, bottom=below / tall)
    figure.subplots_adjust(wspace=0.03, hspace=0.12)
    return figure, panels, shown, in_a_row


def plot_differences(
    columns: Columns, names: Sequence[str], *, max_edges: int | None = 40, ax: Axes | None = None
) -> Axes:
    """Draw one row per pair with its size in every group, the most different on top.

    Columns: source, target, p_max, differs; estimate_<group> for every group, and where they are
    known probability_differs, strength_<group>, lower_<group> and upper_<group>.  These are drawn
    with the sign of the estimate, their intervals as thin lines.  Pairs that differ have dark
    lines; beside each is the probability that it differs, or the adjusted p-value.
    Pairs that could not be tested are named, without estimates.
    """
    count = n_shown(len(columns["source"]), "max_edges", max_edges)
    ax = axes(ax, (7.0, float(np.clip(1.2 + 0.24 * count, 2.0, 40.0))), layout="constrained")
    rows = np.arange(count)[::-1]
    tested = "probability_differs" in columns
    estimates = np.array([columns[f"estimate_{name}"][:count] for name in names])
    sign, sizes = np.where(estimates < 0.0, -1.0, 1.0), estimates
    if tested:
        sizes = sign * np.array([columns[f"strength_{name}"][:count] for name in names])
    shown = np.asarray(columns["probability_differs" if tested else "p_max"], dtype=float)[:count]
    # Sizes of pairs that cannot be tested may be anything, and would set the scale of all.
    signed = np.where(np.isnan(shown), np.nan, sizes)
    differs = np.asarray(columns["differs"], dtype=bool)[:count]
    ax.axvline(0.0, color="#BBBBBB", linewidth=0.8, zorder=0)
    colours = [INK if each else "#CCCCCC" for each in differs]
    ax.hlines(rows, signed.min(axis=0), signed.max(axis=0), color=colours, linewidth=1.6, zorder=1)
    dots = []
    for k, (name, values) in enumerate(zip(names, signed, strict=True)):
        colour = _COLOURS[k % len(_COLOURS)]
        places = rows + _APART * (0.5 * (len(names) - 1) - k) / len(names)
        marker, text = _MARKERS[k % len(_MARKERS)], label(name, 40)
        dots.append(ax.scatter(values, places, s=22, c=colour, marker=marker, label=text, zorder=2))
        if tested:
            hide = np.where(np.isnan(shown), np.nan, sign[k])
            low, high = (hide * columns[f"{end}_{name}"][:count] for end in ("lower", "upper"))
            ax.hlines(places, low, high, color=colour, linewidth=0.9, zorder=1)
    for row, value in zip(rows, shown, strict=True):
        note_row(ax, row, _verdict(value, tested))
    name_rows(ax, rows, pair_labels(columns, range(count)))
    what = "strength" if tested else "norm"
    ax.set_xlabel(f"{what} of the edge, negative for negative edges")
    ax.legend(handles=dots, frameon=False, fontsize=8, loc="best")
    return ax


def _verdict(value: float, tested: bool) -> str:
    """Return a probability that a pair differs, or an adjusted p-value, in words."""
    if np.isnan(value):
        return "not tested"
    if not tested:
        return f"p = {value:.2g}"
    if value < 0.01:
        return "P(differs) < 0.01"
    return "P(differs) > 0.99" if value > 0.99 else f"P(differs) = {value:.2f}"
