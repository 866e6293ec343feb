"""Nodes and edges already drawn in -> labels beside nodes and on lines, kept clear of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, label, pixel_in_points
from mixedgm.views.positions import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["label_edges", "label_nodes"]

# Where a label may stand, best first: below, above, right, left, then the corners.
_SIDES = np.array(
    [(0, -1), (0, 1), (1, 0), (-1, 0), (0.75, -0.75), (-0.75, -0.75), (0.75, 0.75), (-0.75, 0.75)]
)
_GAP = 1.5  # points between a node and its label
_SAMPLES = 40  # points along an edge at which a label can meet it
_ROUNDS = 3
# Where on its line a label may stand, best first.
_ALONG = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])
_BOX = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


def label_nodes(
    ax: Axes, places: Floats, texts: list[str], radius: float, edges: Floats, size: float
) -> list[Annotation]:
    """Write the text of every node beside it; an empty one is left out.

    Nodes (n, 2) and ends of edges (m, 2, 2) are in data coordinates; `radius` is half the width of
    a node and `size` that of the font, in points. The axes have their limits set.
    """
    from matplotlib.patheffects import withStroke

    shown = [at for at, text in enumerate(texts) if text]
    # A halo keeps names readable on top of lines.
    look = {"zorder": 4, "path_effects": [withStroke(linewidth=2.5, foreground="white")]}
    notes = [_note(ax, texts[at], places[at], size, **look) for at in shown]
    if not notes:
        return []
    ax.apply_aspect()
    scale = pixel_in_points(ax)
    boxes = [note.get_window_extent() for note in notes]
    halves = np.array([(box.width, box.height) for box in boxes]) * scale / 2.0
    nodes = ax.transData.transform(places) * scale
    frame = np.array(ax.bbox.extents).reshape(2, 2) * scale
    offsets = _SIDES[None] * (halves[:, None] + radius + _GAP)  # (labels, sides, 2) from a node
    centres = nodes[shown][:, None] + offsets
    fixed = _fixed_costs(centres, halves, nodes, radius, frame, _sampled(ax, edges) * scale)
    fixed += _inward(nodes)[shown]
    for note, offset, side in zip(notes, offsets, _chosen(centres, halves, fixed), strict=True):
        note.set_position((float(offset[side, 0]), float(offset[side, 1])))
    return notes


def _note(ax: Axes, text: str, spot: Floats, size: float, **look: Any) -> Annotation:
    return ax.annotate(
        text,
        (float(spot[0]), float(spot[1])),
        xytext=(0.0, 0.0),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=size,
        color=INK,
        **look,
    )


def _sampled(ax: Axes, edges: Floats) -> Floats:
    """Return pixels along the edges."""
    if len(edges) == 0:
        return np.zeros((0, 2))
    along = np.linspace(0.0, 1.0, _SAMPLES)[None, :, None]
    points = edges[:, :1] * (1.0 - along) + edges[:, 1:] * along
    return np.asarray(ax.transData.transform(points.reshape(-1, 2)))


def _fixed_costs(
    centres: Floats, halves: Floats, nodes: Floats, radius: float, frame: Floats, points: Floats
) -> Floats:
    """(labels, sides) cost of what does not move: nodes, edges, the border, a preferred order."""
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


def label_edges(
    ax: Axes,
    places: Positions,
    texts: Mapping[tuple[str, str], str],
    *,
    names: Sequence[Annotation],
    radius: float,
    size: float,
) -> list[Annotation]:
    """Write texts on the lines of edges; the first ones choose their places first.

    `names` are the labels of the nodes, to keep clear of; `radius` is half the width of a node and
    `size` that of the font, in points. The axes have their limits set.
    """
    if not texts:
        return []
    ends = np.array([(places[a], places[b]) for a, b in texts])
    spots = ends[:, :1] + _ALONG[None, :, None] * (ends[:, 1:] - ends[:, :1])
    look = {"zorder": 3.5, "bbox": _BOX, "gid": "edge label"}
    notes = [
        _note(ax, label(text), spot[0], size, **look)
        for text, spot in zip(texts.values(), spots, strict=True)
    ]
    ax.apply_aspect()
    scale = pixel_in_points(ax)
    nodes = ax.transData.transform(list(places.values())) * scale
    centres, halves = _boxes(names, scale)
    lines = _sampled(ax, ends) * scale
    for note, spot in zip(notes, spots, strict=True):
        half = _boxes([note], scale)[1][0]
        here = ax.transData.transform(spot) * scale
        cost = 0.02 * np.arange(len(_ALONG))
        cost += 10.0 * _meets(here, nodes, half + radius).sum(axis=1)
        cost += 6.0 * _meets(here, centres, halves + half).sum(axis=1)
        cost += 0.1 * _meets(here, lines, half).sum(axis=1)
        at = int(cost.argmin())
        note.set_position((0.0, 0.0))
        note.xy = (float(spot[at, 0]), float(spot[at, 1]))
        centres, halves = np.vstack([centres, here[at]]), np.vstack([halves, half])
    return notes


def _boxes(notes: Sequence[Any], scale: float) -> tuple[Floats, Floats]:
    """(n, 2) centres and half sizes of texts in points."""
    boxes = [note.get_window_extent() for note in notes]
    corners = np.array([box.extents for box in boxes]).reshape(-1, 2, 2) * scale
    return corners.mean(axis=1), np.ptp(corners, axis=1) / 2.0


def _meets(here: Floats, points: Floats, reach: Floats) -> Any:
    """(candidates, points) whether a point is within reach of a candidate, in both directions."""
    return np.all(np.abs(here[:, None] - points[None]) < reach, axis=2)
