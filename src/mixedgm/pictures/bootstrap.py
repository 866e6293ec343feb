"""Columns of a bootstrap in -> pictures of intervals, differences and stability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.printable import few
from mixedgm.pictures.canvas import (
    INK,
    axes,
    label,
    level_label,
    n_shown,
    name_rows,
    pair_labels,
    pixel_in_points,
)
from mixedgm.pictures.network.sizes import text_ems
from mixedgm.results.colours import SIGN_COLOURS, SIGN_NAMES, UNCERTAIN
from mixedgm.table.read import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LINES = ("#333333", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
_MARKERS = ("o", "s", "D", "^", "v")
_DIFFERENT, _ALIKE = "#444444", "#D9D9D9"
_HOLLOW = "#FFFFFF"
_ROW_INCHES = 0.22


def plot_intervals(columns: Columns, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
    """Draw estimates without shrinkage with their intervals, largest on top.

    Columns: source, target, source_level, target_level, estimate, lower, upper; the most certain
    rows first. Colours are the signs of intervals that leave zero out.
    """
    first = np.arange(n_shown(len(columns["source"]), "max_edges", max_edges))
    low, high = (np.asarray(columns[name]) for name in ("lower", "upper"))
    order = first[np.argsort(np.asarray(columns["estimate"])[first], kind="stable")]
    signs = ["+" if low[k] > 0.0 else "-" if high[k] < 0.0 else None for k in order]
    levels = list(zip(columns["source_level"], columns["target_level"], strict=True))
    named = [", ".join(level_label(name) for name in levels[k] if name) for k in order]
    texts = zip(pair_labels(columns, order), named, strict=True)
    rows = [f"{pair}: {which}" if which else pair for pair, which in texts]
    ax = _rows_axes(ax, len(order), rows)
    colours = {**SIGN_COLOURS, None: UNCERTAIN}
    _draw_intervals(ax, columns, order, [colours[sign] for sign in signs])
    name_rows(ax, range(len(order)), rows)
    ax.set_xlabel("size of the edge, without shrinkage")
    _sign_legend(ax, signs, {**SIGN_NAMES, None: "sign not certain"}, colours)
    return ax


def plot_selection(columns: Columns, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
    """Draw the share of resamples that have each edge, strongest on top.

    Columns: source, target, sign, inclusion; strongest first.
    """
    order = np.arange(n_shown(len(columns["source"]), "max_edges", max_edges))[::-1]
    ax = _rows_axes(ax, len(order))
    share, signs = np.asarray(columns["inclusion"])[order], [columns["sign"][k] for k in order]
    ax.barh(range(len(order)), 100.0 * share, color=[SIGN_COLOURS[sign] for sign in signs])
    name_rows(ax, range(len(order)), pair_labels(columns, order))
    ax.set_xlim(0.0, 100.0)
    ax.set_xlabel("resamples that have the edge, %")
    _sign_legend(ax, signs)
    return ax


def plot_centrality(columns: Columns, measure: str, *, ax: Axes | None = None) -> Axes:
    """Draw one measure with intervals, largest estimate on top.

    Columns: column, measure, estimate, mean, lower, upper. Those without this measure are named
    below. Estimates outside their interval are hollow, and the legend says why.
    """
    estimate = np.asarray(columns["estimate"])
    chosen = np.array([name == measure for name in columns["measure"]])
    absent = np.flatnonzero(chosen & np.isnan(estimate)).tolist()
    without = [columns["column"][k] for k in absent]
    rows = np.flatnonzero(chosen & ~np.isnan(estimate))
    order = rows[np.argsort(estimate[rows], kind="stable")]
    ax = _rows_axes(ax, len(order))
    outside = _draw_intervals(ax, columns, order, [_LINES[1]] * len(order))
    name_rows(ax, range(len(order)), [label(columns["column"][k], 40) for k in order])
    text = measure.replace("_", " ")
    if without:
        named = few(without, 5, lambda name: label(name, 20))
        letters = max(int(ax.get_window_extent().width * pixel_in_points(ax) / 6.0), 20)
        note = f"not defined for {named}: an edge has no single sign"
        text = "\n".join([text, *wrap(note, letters)])
    ax.set_xlabel(text)
    _interval_legend(ax, outside)
    return ax


def plot_differences(
    edges: Columns, differences: Columns, *, max_edges: int | None = 40, ax: Axes | None = None
) -> Axes:
    """Draw a matrix of the model's edges: dark where two differ significantly in strength.

    Columns of the edges: source, target, strength; strongest first. Columns of the differences:
    first_source, first_target, second_source, second_target, significant. The diagonal holds the
    strengths.
    """
    strengths = np.asarray(edges["strength"])
    count = n_shown(len(strengths), "max_edges", max_edges)
    shown = [k for k in range(count) if strengths[k] > 0.0]
    at = {(edges["source"][k], edges["target"][k]): row for row, k in enumerate(shown)}
    matrix = np.full((len(shown), len(shown)), np.nan)
    names = ("first_source", "first_target", "second_source", "second_target", "significant")
    for a, b, c, d, significant in zip(*(differences[name] for name in names), strict=True):
        if (a, b) in at and (c, d) in at:
            i, j = at[a, b], at[c, d]
            matrix[i, j] = matrix[j, i] = float(significant)
    side = float(np.clip(2.5 + 0.3 * len(shown), 4.0, 14.0))
    ax = axes(ax, (side + 1.0, side), layout="constrained")
    _draw_cells(ax, matrix, pair_labels(edges, shown))
    if len(shown) <= 25:
        for row, k in enumerate(shown):
            ax.text(
                row, row, f"{strengths[k]:.2f}", ha="center", va="center", fontsize=6, color=INK
            )
    return ax


def plot_stability(columns: Columns, *, ax: Axes | None = None) -> Axes:
    """Draw the correlation with the whole table against the share of rows dropped.

    Columns: statistic, dropped, mean, lower, upper. Lines are means over resamples, bands their
    intervals; the dashed line is at 0.7, the usual limit of what counts as stable.
    """
    ax = axes(ax, (7.0, 4.4), layout="constrained")
    names = np.array(columns["statistic"])
    kinds = list(dict.fromkeys(names.tolist()))
    for k, name in enumerate(kinds):
        rows = names == name
        x, mean, low, high = (
            np.asarray(columns[key])[rows] for key in ("dropped", "mean", "lower", "upper")
        )
        if np.isnan(mean).all():
            continue
        colour = _LINES[k % len(_LINES)]
        ax.fill_between(100.0 * x, low, high, color=colour, alpha=0.12, linewidth=0.0)
        ax.plot(
            100.0 * x,
            mean,
            color=colour,
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=4,
            linewidth=1.5,
            label=name.replace("_", " "),
        )
    limit: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4.0, 3.0))}
    ax.axhline(0.7, label="0.7: stable where line\nand band stay above", **limit)
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.02)
    ax.set_xlabel("rows dropped, %")
    ax.set_ylabel("correlation with the whole table\n(line: mean of resamples, band: interval)")
    _legend_above(ax, ax.get_legend_handles_labels()[0], 2)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# -- parts -------------------------------------------------------------------------------------


def _rows_axes(ax: Axes | None, n_rows: int, names: Sequence[str] = ()) -> Axes:
    """Return axes with a row for each name; long names make a new figure wider."""
    height = float(np.clip(1.2 + _ROW_INCHES * n_rows, 2.0, 40.0))
    longest = 8.0 / 72.0 * max(map(text_ems, names), default=0.0)
    return axes(ax, (max(7.0, 4.5 + longest), height), layout="constrained")


def _draw_intervals(
    ax: Axes, columns: Columns, order: NDArray[np.int64], colours: Sequence[str]
) -> bool:
    """One row each: a line from lower to upper, a dot at the estimate, a tick at a mean.

    Return whether any estimate is outside its interval; its dot is hollow.
    """
    rows = np.arange(len(order))
    values: dict[str, Any] = {
        name: np.asarray(columns[name])[order]
        for name in ("estimate", "mean", "lower", "upper")
        if name in columns
    }
    ax.axvline(0.0, color="#BBBBBB", linewidth=0.8, zorder=0)
    ax.hlines(rows, values["lower"], values["upper"], color=colours, linewidth=1.6, zorder=1)
    if "mean" in values:
        ax.scatter(values["mean"], rows, marker="|", s=40, color=INK, linewidth=1.0, zorder=2)
    estimate = values["estimate"]
    outside = (estimate < values["lower"]) | (estimate > values["upper"])
    fills = np.where(outside, _HOLLOW, np.asarray(colours, dtype=object)).tolist()
    ax.scatter(estimate, rows, s=18, facecolors=fills, edgecolors=colours, zorder=3)
    return bool(outside.any())


def _interval_legend(ax: Axes, outside: bool) -> None:
    """Say what marks of intervals of resampled graphs mean."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5, "color": _LINES[1]}
    keys = [
        Line2D([], [], label="whole table", **dot),
        Line2D(
            [], [], linestyle="", marker="|", markersize=7, color=INK, label="mean of resamples"
        ),
        Line2D([], [], color=_LINES[1], linewidth=1.6, label="interval of resamples"),
    ]
    if outside:
        text = "outside: resampled graphs have\nother edges, often fewer"
        keys.append(Line2D([], [], label=text, **dot, markerfacecolor=_HOLLOW))
    _legend_above(ax, keys, 2)


def _legend_above(ax: Axes, keys: Sequence[Any], n_columns: int) -> None:
    """Explain marks above the axes, where no row can be, in as many columns as fit."""
    lines = [line for key in keys for line in key.get_label().split("\n")]
    wide = 8.0 * (4.0 + max(map(text_ems, lines)))
    fitting = int(ax.get_window_extent().width * pixel_in_points(ax) / wide)
    n_columns = max(min(fitting, n_columns), 1)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(handles=keys, frameon=False, fontsize=8, ncols=n_columns, **place)


def _sign_legend(
    ax: Axes,
    signs: Sequence[str | None],
    names: Mapping[str | None, str] = SIGN_NAMES,
    colours: Mapping[str | None, str] = SIGN_COLOURS,
) -> None:
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=names[sign])
        for sign, colour in colours.items()
        if sign in signs
    ]
    if keys:
        _legend_above(ax, keys, 3)


def _draw_cells(ax: Axes, matrix: NDArray[np.float64], texts: Sequence[str]) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ListedColormap([_ALIKE, _DIFFERENT]).with_extremes(bad="white")
    ax.imshow(np.ma.masked_invalid(matrix), cmap=colours, vmin=0.0, vmax=1.0)
    ticks = range(len(texts))
    cell = ax.get_window_extent().height * pixel_in_points(ax) / max(len(texts), 1)
    size = float(np.clip(0.8 * cell, 3.0, 7.0))
    ax.set_xticks(ticks, texts, rotation=90, fontsize=size)
    ax.set_yticks(ticks, texts, fontsize=size)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(len(texts) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(texts) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.0)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    keys = [
        Patch(color=_DIFFERENT, label="significant difference"),
        Patch(color=_ALIKE, label="not significant"),
    ]
    _legend_above(ax, keys, 1)
