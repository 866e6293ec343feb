"""Edges already drawn and their texts in -> a label on every line, clear of others if it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, label, pixel_in_points
from mixedgm.views.labels import sampled
from mixedgm.views.positions import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["label_edges"]

# Where on its line a label may stand, best first.
_ALONG = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])
_BOX = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


def label_edges(
    ax: Axes,
    places: Positions,
    texts: Mapping[tuple[str, str], str],
    *,
    names: Sequence[Annotation],
    radius: float,
    size: float,
) -> list[Annotation]:
    """Write texts on the lines of edges.

    Parameters
    ----------
    ax : matplotlib Axes
        With its limits set.
    places : mapping of str to (float, float)
        Nodes in data coordinates.
    texts : mapping of (str, str) to str
        What is written on the edge of two nodes; the first ones choose their places first.
    names : sequence of matplotlib Annotation
        Labels of the nodes, to keep clear of.
    radius : float
        Half the width of a node in points.
    size : float
        Font size in points.

    Returns
    -------
    list of matplotlib Annotation
        The labels, in the order of the texts.
    """
    if not texts:
        return []
    ends = np.array([(places[a], places[b]) for a, b in texts])
    spots = ends[:, :1] + _ALONG[None, :, None] * (ends[:, 1:] - ends[:, :1])
    notes = [
        _note(ax, text, spot[0], size) for text, spot in zip(texts.values(), spots, strict=True)
    ]
    ax.apply_aspect()
    scale = pixel_in_points(ax)
    nodes = ax.transData.transform(list(places.values())) * scale
    centres, halves = _boxes(names, scale)
    lines = sampled(ax, ends) * scale
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


def _note(ax: Axes, text: str, spot: Floats, size: float) -> Annotation:
    return ax.annotate(
        label(text),
        (float(spot[0]), float(spot[1])),
        xytext=(0.0, 0.0),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=size,
        color=INK,
        zorder=3.5,
        bbox=_BOX,
        gid="edge label",
    )


def _boxes(notes: Sequence[Any], scale: float) -> tuple[Floats, Floats]:
    """(n, 2) centres and half sizes of texts in points."""
    boxes = [note.get_window_extent() for note in notes]
    corners = np.array([box.extents for box in boxes]).reshape(-1, 2, 2) * scale
    return corners.mean(axis=1), np.ptp(corners, axis=1) / 2.0


def _meets(here: Floats, points: Floats, reach: Floats) -> Any:
    """(candidates, points) whether a point is within reach of a candidate, in both directions."""
    return np.all(np.abs(here[:, None] - points[None]) < reach, axis=2)
