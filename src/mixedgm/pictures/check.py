"""Distances of pairs and columns from what is right -> a picture that shows where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.pictures.canvas import (
    INK,
    axes,
    ink_on,
    label,
    n_shown,
    name_rows,
    pair_labels,
    pixel_in_points,
)
from mixedgm.results.colours import SIGN_COLOURS
from mixedgm.table.read import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SMALLEST_TEXT = 5.0  # points
_ODD = SIGN_COLOURS["-"]


@dataclass(frozen=True, eq=False)
class CheckPicture:
    """What is drawn: columns and their pairs, with matrices (n, n) over pairs.

    A distance is 1 where it is as expected, NaN on the diagonal; `flagged` pairs are not as the
    model says, `edge` pairs have an edge in it. `nodes` are the distance of every column, whether
    it is flagged, and why.  `meanings` say why flagged pairs are.
    """

    names: Sequence[str]
    distance: Floats
    flagged: NDArray[np.bool_]
    edge: NDArray[np.bool_]
    nodes: Sequence[tuple[float, bool, str]]
    meanings: Mapping[tuple[int, int], str] = field(default_factory=dict)


def plot_check(picture: CheckPicture, *, ax: Axes | None = None) -> Axes:
    """Draw a matrix of the pairs, and a bar for every column beside it.

    White is as the model expects (a distance of 1 or less), vermilion is far from it, on a
    logarithmic scale.  A frame marks what is flagged; below the diagonal a dot marks an edge of the
    model, above it a letter says what a flag means, and the title what the letters are.  The axes
    are those of the matrix; their last sibling in the figure holds the bars.
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    n = len(picture.names)
    size = float(np.clip(2.2 + 0.32 * n, 3.4, 9.5))
    ax = axes(ax, (size + 4.0, size + 1.0), layout="constrained")
    colours = LinearSegmentedColormap.from_list("odd", ["#FFFFFF", "#F6C9A8", _ODD, "#7A2E00"])
    worst = float(np.nanmax(picture.distance, initial=0.0))
    shown = np.ma.masked_invalid(np.maximum(picture.distance, 1.0))
    image = ax.imshow(
        shown,
        cmap=colours.with_extremes(bad="#E9E9E9"),
        norm=LogNorm(1.0, max(worst, 4.0)),
        interpolation="none",
        aspect="equal",
    )
    cell = float(ax.get_window_extent().height * pixel_in_points(ax) / max(n, 1))
    inks = ink_on(image.to_rgba(shown)[..., :3])
    _mark(ax, picture, cell, inks)
    text = float(np.clip(0.75 * cell, _SMALLEST_TEXT, 9.0))
    names = [label(name, 20) for name in picture.names] if cell >= _SMALLEST_TEXT else []
    at = np.arange(len(names))
    ax.set_xticks(at, labels=names, rotation=90, fontsize=text)
    ax.set_yticks(at, labels=names, fontsize=text)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color(INK)
    key = "pairs: frame = flagged; below the diagonal, dot = edge"
    if np.isnan(picture.distance[~np.eye(n, dtype=bool)]).any():
        key += "; grey = not checked"
    lines = [key, *(_name_meanings(ax, picture, inks, text) if cell >= _SMALLEST_TEXT else ())]
    ax.set_title("\n".join(lines), fontsize=9, color=INK)
    _draw_bars(ax, picture, text)
    _draw_colour_bar(ax, image)
    return ax


def _mark(ax: Axes, picture: CheckPicture, cell: float, inks: NDArray[np.str_]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    u, v = np.nonzero(np.tril(picture.edge))
    size = float(np.clip(0.16 * cell, 1.0, 5.0)) ** 2
    ax.scatter(v, u, s=size, color=inks[u, v].tolist(), linewidths=0.0)
    places = np.argwhere(picture.flagged)
    frames = [Rectangle((b - 0.44, a - 0.44), 0.88, 0.88) for a, b in places]
    colours = inks[picture.flagged].tolist()
    ax.add_collection(
        PatchCollection(frames, facecolor="none", edgecolor=colours, linewidth=1.2, gid="flagged")
    )


def _name_meanings(
    ax: Axes, picture: CheckPicture, inks: NDArray[np.str_], text: float
) -> list[str]:
    """Write a letter into flagged cells above the diagonal; return lines that explain them."""
    meanings = list(dict.fromkeys(picture.meanings.values()))
    letters = dict(zip(meanings, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=False))
    for (u, v), meaning in picture.meanings.items():
        at = min(u, v), max(u, v)
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": text, "gid": "meaning"}
        ax.text(at[1], at[0], letters[meaning], color=str(inks[at]), **style)
    named = [f"{letter} = {meaning}" for meaning, letter in letters.items()]
    return [", ".join(named[k : k + 3]) for k in range(0, len(named), 3)]


def _draw_bars(ax: Axes, picture: CheckPicture, text: float) -> None:
    """Draw one bar per column, in the rows of the matrix."""
    beside = ax.inset_axes((1.03, 0.0, 0.5, 1.0), sharey=ax)
    distance = np.array([node[0] for node in picture.nodes])
    colours = [_ODD if flagged else "#B9B9B9" for _, flagged, _ in picture.nodes]
    beside.barh(np.arange(len(distance)), distance, height=0.62, color=colours)
    beside.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    right = max(float(distance.max(initial=0.0)), 2.0)
    beside.set_xlim(0.0, 1.1 * right)
    for row, (length, flagged, why) in enumerate(picture.nodes):
        if not flagged:
            continue
        inside = length > 0.6 * right
        beside.annotate(
            label(why, 26),
            (length, row),
            xytext=(-3 if inside else 3, 0),
            textcoords="offset points",
            ha="right" if inside else "left",
            va="center",
            fontsize=min(text, 7.5),
            color="white" if inside else INK,
        )
    beside.tick_params(axis="y", length=0, labelleft=False)
    beside.tick_params(axis="x", labelsize=8)
    beside.spines[["top", "right", "left"]].set_visible(False)
    beside.set_xlabel("distance\nof columns", fontsize=9, color=INK)


def _draw_colour_bar(ax: Axes, image: Any) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    figure: Any = ax.get_figure(root=True)
    bar = figure.colorbar(image, ax=ax, location="bottom", shrink=0.6, pad=0.02, aspect=35)
    bar.ax.tick_params(labelsize=8)
    top = float(image.norm.vmax)
    steps = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    bar.locator = FixedLocator([step for step in steps if step <= top])
    bar.formatter = ScalarFormatter()
    bar.minorlocator = NullLocator()
    bar.update_ticks()
    bar.set_label("distance from the model (1 = as expected)", fontsize=8)
    bar.outline.set_visible(False)


_BELOW, _ABOVE = SIGN_COLOURS["+"], SIGN_COLOURS["-"]


# -- consistency -----------------------------------------------------------------------------------


def plot_consistency(
    columns: Columns, *, max_pairs: int | None = 30, ax: Axes | None = None
) -> Axes:
    """Draw one row per pair, the worst on top.

    Columns: source, target, at_truth, lower, upper. Dots are the numbers over all directions (a
    line where only bounds are known), vermilion from 1 on; rings are those of the true directions.
    """
    count = n_shown(len(columns["source"]), "max_pairs", max_pairs)
    ax = axes(ax, (6.4, float(np.clip(1.3 + 0.2 * count, 2.0, 40.0))), layout="constrained")
    rows = np.arange(count)[::-1]
    truth, lower, upper = (
        np.asarray(columns[name], dtype=np.float64)[:count]
        for name in ("at_truth", "lower", "upper")
    )
    colours = [_ABOVE if value >= 1.0 else _BELOW for value in upper]
    ax.axvline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=0)
    ax.hlines(rows, lower, upper, color=colours, linewidth=2.0, zorder=1)
    ax.scatter(upper, rows, s=26, color=colours, label="all directions", zorder=2)
    ax.scatter(
        truth, rows, s=26, facecolors="white", edgecolors=INK, label="true directions", zorder=3
    )
    name_rows(ax, rows, pair_labels(columns, range(count)))
    ax.set_xlim(left=0.0)
    ax.set_xlabel("irrepresentability of the missing edge (must be below 1)")
    if count:
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return ax
