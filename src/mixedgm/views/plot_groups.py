"""Models of several groups in -> their networks side by side, and their edges in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.table.assemble import Columns
from mixedgm.views.appearance import Appearance
from mixedgm.views.canvas import (
    INK,
    axes,
    label,
    n_shown,
    name_rows,
    note_row,
    pair_labels,
    require_matplotlib,
)
from mixedgm.views.plot import (
    NetworkDrawing,
    draw_network,
    legend_columns,
    legend_keys,
    place_nodes,
    show_widths,
)
from mixedgm.views.positions import LayoutArg, Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_differences", "plot_groups"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "D", "^", "v", "P")
_MOST_IN_A_ROW = 3
_SIDE = 4.6  # inches
_FITTING = 20  # columns that fit a panel of that side
_MOST_NAMES = 100


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
    figure, panels, in_a_row = _panels(len(fitted), places, keys)
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


def _panels(count: int, places: Positions, keys: Sequence[Any]) -> tuple[Any, Any, int]:
    """A figure with axes for this many networks, shaped like their common layout.

    Below them is room for the legend; the last value is the number of its columns.
    """
    across = 2 if count == 4 else min(count, _MOST_IN_A_ROW)
    down = -(-count // across)
    side = _SIDE * float(np.clip(np.sqrt(len(places) / _FITTING), 1.0, 2.2))
    wide, tall = np.ptp(np.array(list(places.values())), axis=0) + 1.0
    height = side * float(np.clip(tall / wide, 0.5, 1.1)) + 0.5
    in_a_row = legend_columns(keys, 72.0 * side * across, 9.0)
    rows = -(-len(keys) // in_a_row)
    below = 0.2 + 0.2 * rows
    figure: Any = axes(None, (side * across, height * down + below)).get_figure(root=True)
    figure.clear()
    panels = figure.subplots(down, across, squeeze=False).ravel()
    tall = figure.get_figheight()
    figure.subplots_adjust(left=0.01, right=0.99, top=1.0 - 0.3 / tall, bottom=below / tall)
    figure.subplots_adjust(wspace=0.03, hspace=0.12)
    return figure, panels, in_a_row


def plot_differences(
    columns: Columns, names: Sequence[str], *, max_edges: int | None = 40, ax: Axes | None = None
) -> Axes:
    """Draw one row per pair with its estimate in every group, the most different on top.

    Columns: source, target, p_max, differs; estimate_<group> for every group; where they are known
    lower_<group> and upper_<group>, drawn as thin lines, and probability_differs.
    Pairs that differ have dark lines; beside each is the probability, or the adjusted p-value.
    """
    count = n_shown(len(columns["source"]), "max_edges", max_edges)
    ax = axes(ax, (7.0, float(np.clip(1.2 + 0.24 * count, 2.0, 40.0))), layout="constrained")
    rows = np.arange(count)[::-1]
    signed = np.array([columns[f"estimate_{name}"][:count] for name in names])
    dark = np.asarray(columns["differs"], dtype=bool)[:count]
    least, most = signed.min(axis=0), signed.max(axis=0)
    ax.axvline(0.0, color="#BBBBBB", linewidth=0.8, zorder=0)
    colours = [INK if each else "#CCCCCC" for each in dark]
    ax.hlines(rows, least, most, color=colours, linewidth=1.6, zorder=1)
    dots = [
        ax.scatter(
            values,
            rows,
            s=26,
            color=_COLOURS[k % len(_COLOURS)],
            marker=_MARKERS[k % len(_MARKERS)],
            label=label(name, 40),
            zorder=2,
        )
        for k, (name, values) in enumerate(zip(names, signed, strict=True))
    ]
    for k, name in enumerate(names if f"lower_{names[0]}" in columns else ()):
        low, high = (columns[f"{end}_{name}"][:count] for end in ("lower", "upper"))
        ax.hlines(rows, low, high, color=_COLOURS[k % len(_COLOURS)], linewidth=0.7, zorder=1)
    what, shown = (
        ("P", "probability_differs") if "probability_differs" in columns else ("p", "p_max")
    )
    for row, value in zip(rows, np.asarray(columns[shown])[:count], strict=True):
        note_row(ax, row, "" if np.isnan(value) else f"{what} = {value:.2g}")
    name_rows(ax, rows, pair_labels(columns, range(count)))
    partial = "partial correlation, or coefficient in residual standard deviations"
    ax.set_xlabel(partial if what == "P" else "norm of the edge, negative for negative edges")
    ax.legend(handles=dots, frameon=False, fontsize=8, loc="best")
    return ax
