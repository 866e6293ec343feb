"""Shares by node in -> a ring around every node, filled clockwise from the top to its share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.views.positions import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["RING_COLOUR", "RING_WIDTH", "draw_rings"]

RING_COLOUR = "#4A4A4A"
_EMPTY = "#DEDEDE"
_INNER, RING_WIDTH = 1.33, 1.7
"""Diameters of the ring in widths of the node; a square's corners stay inside."""


def draw_rings(ax: Axes, places: Positions, shares: Mapping[str, float], size: float) -> None:
    """Draw a ring around each node that has a share; below 0 it is empty.

    Parameters
    ----------
    ax : matplotlib Axes
        With its limits set.
    places : mapping of str to (float, float)
        Where the nodes are.
    shares : mapping of str to float
        Up to 1.
    size : float
        Width of a node in points.
    """
    drawn: dict[str, Any] = {"s": (RING_WIDTH * size) ** 2, "linewidths": 0.0}
    for name, share in shares.items():
        x, y = places[name]
        # Edges end at the ring, not in it.
        ax.scatter(x, y, marker="o", facecolor="white", zorder=2.0, **drawn)
        ax.scatter(x, y, marker=_arc(1.0), facecolor=_EMPTY, zorder=2.1, **drawn)
        if share > 0.0:
            arc = ax.scatter(
                x, y, marker=_arc(float(share)), facecolor=RING_COLOUR, zorder=2.2, **drawn
            )
            arc.set_gid(f"ring {name}")


def _arc(share: float) -> Path:
    """Return the part of a ring from the top clockwise; its outer radius is 1.

    It always contains the point (0, 1), by which matplotlib finds the size of a marker.
    """
    from matplotlib.path import Path

    turn = 2.0 * np.pi * np.linspace(0.0, share, max(3, int(np.ceil(90 * share))))
    outer = np.column_stack([np.sin(turn), np.cos(turn)])
    points = np.vstack([outer, (_INNER / RING_WIDTH) * outer[::-1]])
    return Path(points, closed=False)
