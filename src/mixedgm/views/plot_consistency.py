"""Numbers of pairs without an edge in -> a picture of them against the limit 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixedgm.table.assemble import Columns
from mixedgm.views.canvas import INK, axes, n_shown, name_rows, pair_labels
from mixedgm.views.colours import SIGN_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_consistency"]

_BELOW, _ABOVE = SIGN_COLOURS["+"], SIGN_COLOURS["-"]


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
