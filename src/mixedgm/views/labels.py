"""Nodes and edges already drawn in -> a label beside every node, clear of the rest if it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, halo, pixel_in_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["label_nodes", "sampled"]

# Where a label may stand, best first: below, above, right, left, then the corners.
_SIDES = np.array(
    [(0, -1), (0, 1), (1, 0), (-1, 0), (0.75, -0.75), (-0.75, -0.75), (0.75, 0.75), (-0.75, 0.75)]
)
_GAP = 1.5  # points between a node and its label
_SAMPLES = 40  # points along an edge at which a label can meet it
_ROUNDS = 3


def label_nodes(
    ax: Axes, places: Floats, texts: list[str], radius: float, edges: Floats, size: float
) -> list[Annotation]:
    """Write the text of every node beside it.

    Parameters
    ----------
    ax : matplotlib Axes
        With its limits set.
    places : ndarray (n, 2)
        Nodes in data coordinates.
    texts : list of str
        Labels; an empty one is left out.
    radius : float
        Half the width of a node in points.
    edges : ndarray (m, 2, 2)
        Ends of the edges in data coordinates.
    size : float
        Font size in points.

    Returns
    -------
    list of matplotlib Annotation
        The labels.
    """
    shown = [at for at, text in enumerate(texts) if text]
    notes = [
        ax.annotate(
            texts[at],
            (places[at, 0], places[at, 1]),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=INK,
            zorder=4,
            path_effects=halo(),
        )
        for at in shown
    ]
    if not notes:
        return []
    ax.apply_aspect()
    scale = pixel_in_points(ax)
    boxes = [note.get_window_extent() for note in notes]
    halves = np.array([(box.width, box.height) for box in boxes]) * scale / 2.0
    nodes = ax.transData.transform(places) * scale
    frame = np.array(ax.bbox.extents).reshape(2, 2) * scale
    offsets = _offsets(halves, radius)
    centres = nodes[shown][:, None] + offsets
    fixed = _fixed_costs(centres, halves, nodes, radius, frame, sampled(ax, edges) * scale)
    fixed += _inward(nodes)[shown]
    for note, offset, side in zip(notes, offsets, _chosen(centres, halves, fixed), strict=True):
        note.set_position((float(offset[side, 0]), float(offset[side, 1])))
    return notes


def _offsets(halves: Floats, radius: float) -> Floats:
    """(labels, sides, 2) distance from the node's centre to the label's centre in points."""
    return np.asarray(_SIDES[None] * (halves[:, None] + radius + _GAP))


def sampled(ax: Axes, edges: Floats) -> Floats:
    """Return pixels along the edges."""
    if len(edges) == 0:
        return np.zeros((0, 2))
    along = np.linspace(0.0, 1.0, _SAMPLES)[None, :, None]
    points = edges[:, :1] * (1.0 - along) + edges[:, 1:] * along
    return np.asarray(ax.transData.transform(points.reshape(-1, 2)))


def _fixed_costs(
    centres: Floats, halves: Floats, nodes: Floats, radius: float, frame: Floats, points: Floats
) -> Floats:
    """(labels, sides) cost of what does not move: nodes, edges, the border, habit."""
    middle, room = frame.mean(axis=0), np.ptp(frame, axis=0) / 2.0
    cost = np.tile(0.05 * np.arange(len(_SIDES)), (len(centres), 1))
    for at, half in enumerate(halves):
        for side in range(len(_SIDES)):
            centre = centres[at, side]
            hit = np.all(np.abs(nodes - centre) < half + radius, axis=1)
            crossed = np.all(np.abs(points - centre) < half, axis=1)
            outside = np.maximum(0.0, np.abs(centre - middle) + half - room)
            cost[at, side] += 10.0 * hit.sum() + 0.1 * crossed.sum() + outside.sum()
    return cost


def _inward(nodes: Floats) -> Floats:
    """(nodes, sides) cost of pointing to the middle, which is where the edges are."""
    outward = nodes - nodes.mean(axis=0)
    reach = max(float(np.linalg.norm(outward, axis=1).max()), 1e-9)
    return np.asarray(-0.4 * (outward / reach) @ _SIDES.T)


def _chosen(centres: Floats, halves: Floats, fixed: Floats) -> list[int]:
    """Return the cheapest side of every label given where the others stand, in a few rounds."""
    sides = fixed.argmin(axis=1)
    every = np.arange(len(sides))
    for _ in range(_ROUNDS):
        for at in every:
            now = centres[every, sides]
            gap = np.abs(now[None] - centres[at][:, None]) - (halves + halves[at])[None]
            meets = np.all(gap < 0.0, axis=2)
            meets[:, at] = False
            sides[at] = (fixed[at] + 6.0 * meets.sum(axis=1)).argmin()
    return [int(side) for side in sides]
