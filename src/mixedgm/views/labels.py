"""Nodes and edges already drawn in -> labels beside nodes and on lines, kept clear of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, label, pixel_in_points
from mixedgm.views.positions import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["Lines", "NodeLabels", "label_edges"]

_TURNS = 16  # directions in which a label can stand from its node
_PREFERRED = {(0, -1): 0.0, (0, 1): 0.1, (1, 0): 0.15, (-1, 0): 0.2}
"""Below, above, right, left; all others come after these."""
_ELSE = 0.3
_GAP = 1.5  # points between a node and its label
_NEAR = np.array([0.0, 3.0])  # points that a label may stand farther away, as if it touched
_FAR = np.array([0.0, 3.0, 10.0, 18.0, 28.0, 40.0, 56.0, 76.0])
_PAD = 1.0  # points between a label and a line
_ROUNDS = 4
_LEADER = "#B5B5B5"
# Where on its line a label may stand, best first.
_ALONG = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])
_BOX = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


class Lines(NamedTuple):
    """Ends (m, 2, 2) of what is drawn as lines, in data coordinates, and half widths in points."""

    ends: Floats
    half_widths: Floats


class NodeLabels:
    """The names of nodes, which find a place beside them where nothing else is drawn.

    Nodes (n, 2) are in data coordinates; `radius` is half the width of a node and `size` that of
    the font, in points. An empty text is left out.
    """

    def __init__(
        self, ax: Axes, places: Floats, texts: Sequence[str], radius: float, size: float
    ) -> None:
        self.ax, self.places, self.radius = ax, places, radius
        self.shown = [at for at, text in enumerate(texts) if text]
        self.notes = [_note(ax, texts[at], places[at], size, zorder=4) for at in self.shown]
        boxes = [note.get_window_extent() for note in self.notes]
        sizes = [(box.width, box.height) for box in boxes]
        self.halves = np.array(sizes).reshape(-1, 2) * pixel_in_points(ax) / 2.0

    def place(self, lines: Lines, *, far: bool) -> float:
        """Put every label where it is clear of nodes, lines, the others and the border.

        `far` labels may stand away from their nodes, with a thin line that leads there.  Returns
        how many labels are not clear, which get the least bad place, plus a little for every edge
        that leading lines cross.  The axes have their limits set.
        """
        if not self.notes:
            return 0.0
        self.ax.apply_aspect()
        scene = _Scene.of(self, lines, _FAR if far else _NEAR)
        chosen, wrong = scene.chosen()
        for note, offset in zip(self.notes, scene.offsets[range(len(chosen)), chosen], strict=True):
            note.set_position((float(offset[0]), float(offset[1])))
        self._leads = [
            scene.leaders[at, side] for at, side in enumerate(chosen) if scene.away[side]
        ]
        self._hidden = wrong
        return float(wrong.sum()) + 1e-3 * float(scene.crossed[range(len(chosen)), chosen].sum())

    def finish(self) -> list[Annotation]:
        """Draw lines to labels that stand away, and boxes behind those that are not clear."""
        from matplotlib.collections import LineCollection

        if not self.notes:
            return []
        pixels = np.array(self._leads).reshape(-1, 2) / pixel_in_points(self.ax)
        ends = self.ax.transData.inverted().transform(pixels).reshape(-1, 2, 2)
        if len(ends):
            leaders = LineCollection(list(ends), linewidths=0.5, colors=[_LEADER], zorder=0.5)
            leaders.set_gid("leaders")
            self.ax.add_collection(leaders, autolim=False)
        for note, hidden in zip(self.notes, self._hidden, strict=True):
            if hidden:  # lines pass behind it
                note.set_bbox({**_BOX, "alpha": 1.0})
        return self.notes


@dataclass
class _Scene:
    """All places that labels can take, in points, and what each of them would meet."""

    offsets: Floats  # (labels, places, 2) from the node
    centres: Floats
    halves: Floats  # (labels, 2)
    leaders: Floats  # (labels, places, 2, 2) lines to those that stand away
    away: NDArray[np.bool_]  # (places,)
    fixed: Floats  # (labels, places) what does not move, and a preferred order
    crossed: Floats  # (labels, places) edges that lines to labels cross

    @classmethod
    def of(cls, labels: NodeLabels, lines: Lines, extra: Floats) -> _Scene:
        ax, shown, halves = labels.ax, labels.shown, labels.halves
        scale = pixel_in_points(ax)
        nodes = ax.transData.transform(labels.places) * scale
        ends = ax.transData.transform(lines.ends.reshape(-1, 2)).reshape(-1, 2, 2) * scale
        frame = np.array(ax.bbox.extents).reshape(2, 2) * scale
        units, order = _directions()
        # From the middle of a node until the box of the label no longer meets its square.
        reach = halves[:, None] + labels.radius + _GAP
        with np.errstate(divide="ignore"):
            least = np.min(reach / np.abs(units)[None], axis=2)
        length = least[:, :, None] + extra[None, None]
        offsets = (units[None, :, None] * length[..., None]).reshape(len(shown), -1, 2)
        own = nodes[shown][:, None]
        centres = own + offsets
        inside = np.clip(own, centres - halves[:, None], centres + halves[:, None])
        leaders = np.stack([np.broadcast_to(own, inside.shape), inside], axis=2)
        cost = (order[:, None] + 0.02 * extra[None]).reshape(-1)
        outward = (nodes - nodes.mean(axis=0))[shown]
        outward = outward / max(float(np.linalg.norm(outward, axis=1).max()), 1e-9)
        towards = (-0.4 * outward @ units.T)[:, :, None] + np.zeros(len(extra))
        away = np.tile(extra >= _FAR[2], len(units))
        fixed = cost[None] + towards.reshape(len(shown), -1)
        led = np.zeros_like(fixed)
        middle, room = frame.mean(axis=0), np.ptp(frame, axis=0) / 2.0
        for at, half in enumerate(halves):
            beyond = np.abs(centres[at] - middle) + half - room
            fixed[at] += _WRONG * (beyond > 0.5).any(axis=1)
            met = np.all(np.abs(nodes[None] - centres[at][:, None]) < half + labels.radius, axis=2)
            crossed = _crossed(centres[at], half + _PAD, ends, lines.half_widths)
            fixed[at] += _WRONG * (2.0 * met.sum(axis=1) + crossed.sum(axis=1))
            others = ends[~np.all(np.isclose(ends, own[at]), axis=2).any(axis=1)]
            led[at] = away * _intersect(leaders[at], others).sum(axis=1)
        return cls(offsets, centres, halves, leaders, away, fixed + 2.0 * led, led)

    def chosen(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of every label, and whether it meets something there.

        Labels with the fewest clear places choose first; then all choose again, given the others.
        """
        sides = self.fixed.argmin(axis=1)
        free = (self.fixed < _WRONG / 2.0).sum(axis=1)
        placed = np.zeros(len(sides), dtype=bool)
        for _ in range(_ROUNDS):
            before = sides.copy()
            for at in np.argsort(free, kind="stable").tolist():
                total = self.fixed[at] + _WRONG * self._met(at, sides, placed)
                sides[at], placed[at] = total.argmin(), True
            if np.array_equal(before, sides):
                break
        cost = [
            self.fixed[at, sides[at]] + _WRONG * self._met(at, sides, placed)[sides[at]]
            for at in range(len(sides))
        ]
        return sides, np.array(cost) > _WRONG / 2.0

    def _met(self, at: int, sides: NDArray[np.intp], placed: NDArray[np.bool_]) -> Floats:
        """(places,) how many other labels, or lines to them, each place of a label would meet."""
        others = np.flatnonzero(placed)
        others = others[others != at]
        if not len(others):
            return np.zeros(len(self.away))
        there, halves = self.centres[others, sides[others]], self.halves[others]
        gap = np.abs(there[None] - self.centres[at][:, None]) - (halves + self.halves[at])
        met: Floats = np.all(gap < _PAD, axis=2).sum(axis=1).astype(np.float64)
        led = others[self.away[sides[others]]]
        if len(led):
            lines = self.leaders[led, sides[led]]
            crossed = _crossed(self.centres[at], self.halves[at] + _PAD, lines, np.zeros(len(led)))
            met += crossed.sum(axis=1)
        away = np.flatnonzero(self.away)
        leaders = self.leaders[at, away]
        met[away] += _crossed(there, halves + _PAD, leaders, np.zeros(len(away))).sum(axis=0)
        return met


_WRONG = 100.0
"""Cost of a label that meets something: more than any preference."""


def _directions() -> tuple[Floats, Floats]:
    """(turns, 2) unit vectors, and what each costs as a matter of taste."""
    turn = 2.0 * np.pi * np.arange(_TURNS) / _TURNS
    units = np.round(np.column_stack([np.cos(turn), np.sin(turn)]), 12)
    order = [
        _PREFERRED.get((int(x), int(y)), _ELSE) if abs(x * y) < 1e-9 else _ELSE for x, y in units
    ]
    return units, np.array(order)


def _crossed(centres: Floats, half: Floats, ends: Floats, widths: Floats) -> NDArray[np.bool_]:
    """(boxes, lines) whether a line comes within its half width of a box; `half` fits `centres`."""
    half = np.broadcast_to(half, centres.shape)
    enters = np.zeros((len(centres), len(ends)))
    leaves = np.ones_like(enters)
    for axis in (0, 1):
        start = ends[None, :, 0, axis] - centres[:, None, axis]
        step = ends[:, 1, axis] - ends[:, 0, axis]
        step = np.where(np.abs(step) < 1e-9, 1e-9, step)
        reach = half[:, None, axis] + widths[None]
        first, second = (-reach - start) / step, (reach - start) / step
        enters = np.maximum(enters, np.minimum(first, second))
        leaves = np.minimum(leaves, np.maximum(first, second))
    return np.asarray(enters <= leaves)


def _intersect(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """(n, m) whether lines (n, 2, 2) and (m, 2, 2) cross."""
    a, b = first[:, None, 0], first[:, None, 1]
    c, d = second[None, :, 0], second[None, :, 1]

    def left(p: Floats, q: Floats, r: Floats) -> NDArray[np.bool_]:
        u, v = q - p, r - p
        return np.asarray(u[..., 0] * v[..., 1] > u[..., 1] * v[..., 0])

    return np.asarray((left(a, b, c) != left(a, b, d)) & (left(c, d, a) != left(c, d, b)))


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
    along = np.linspace(0.0, 1.0, 40)[None, :, None]
    points = edges[:, :1] * (1.0 - along) + edges[:, 1:] * along
    return np.asarray(ax.transData.transform(points.reshape(-1, 2)))


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
