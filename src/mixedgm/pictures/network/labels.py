"""Nodes already placed -> names and texts clear of the rest, and areas behind groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.pictures.canvas import label, pixel_in_points
from mixedgm.pictures.network.sizes import GAP
from mixedgm.results.colours import Theme, mixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Annotation


_TURNS = 16  # directions in which a name can stand from its node
_PREFERRED = {(0, -1): 0.0, (0, 1): 0.1, (1, 0): 0.15, (-1, 0): 0.2}
"""Below, above, right, left; all others come after these."""
_ELSE = 0.3
_ROUNDS = 4
_WRONG = 100.0
"""Cost of a name that meets something: more than any preference."""
_FARTHER = 1.5  # points by which a name is nearer to its own node than to any other
_HALO = 2.2  # points
_BASELINE = -0.36  # from the middle of a line of text, in sizes of the font
# Where on its line a text may stand, best first.
_ALONG = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])


class Obstacles(NamedTuple):
    """What names keep clear of, in points."""

    nodes: Floats
    """(n, 2) centres of all nodes, which names never touch."""
    radius: float
    lines: Floats
    """(m, 2, 2) ends of straight pieces of lines, which names cross where they must."""
    half_widths: Floats
    solid: Floats
    """(m,) how much is lost where a name crosses a line, from 0 to 1."""
    frame: Floats
    """(2, 2) lower left and upper right corner of the picture."""


def name_places(
    own: NDArray[np.intp], halves: Floats, obstacles: Obstacles
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return where names stand from their nodes, in points, and which of them are not clear.

    A name touches no node and no other name, is nearer to its own node than to any other, and
    crosses as few lines as it can, faint ones first.

    Parameters
    ----------
    own : ndarray (k,)
        The node of every name.
    halves : ndarray (k, 2)
        Half the width and height of every name in points.
    obstacles : Obstacles
        Nodes, lines and the border.
    """
    if not len(own):
        return np.zeros((0, 2)), np.zeros(0, dtype=bool)
    nodes, radius = obstacles.nodes, obstacles.radius
    units, order = _directions()
    # From the middle of a node until the box of the name no longer meets its square.
    with np.errstate(divide="ignore"):
        reach = np.min((halves[:, None] + radius + GAP) / np.abs(units)[None], axis=2)
    offsets = units[None] * reach[..., None]
    centres = nodes[own][:, None] + offsets
    middle, room = obstacles.frame.mean(axis=0), np.ptp(obstacles.frame, axis=0) / 2.0
    outward = nodes[own] - nodes.mean(axis=0)
    outward = outward / max(float(np.linalg.norm(outward, axis=1).max()), 1e-9)
    taste = order[None] - 0.4 * outward @ units.T
    wrong = np.zeros_like(taste)
    for at, half in enumerate(halves):
        beyond = (np.abs(centres[at] - middle) + half - room > 0.5).any(axis=1)
        away = _from_box(nodes[None], centres[at][:, None], half) - radius
        foreign = np.delete(away, own[at], axis=1).min(axis=1, initial=np.inf)
        near = foreign < np.maximum(away[:, own[at]], 0.0) + _FARTHER
        crossed = _crossed(centres[at], half, obstacles.lines, obstacles.half_widths)
        wrong[at] = 4.0 * beyond + 2.0 * near
        taste[at] += crossed @ obstacles.solid
    sides = _chosen(centres, halves, wrong, taste)
    met = [_met(at, centres, halves, sides)[side] for at, side in enumerate(sides)]
    every = np.arange(len(own))
    return offsets[every, sides], wrong[every, sides] + np.array(met) > 0.0


def _directions() -> tuple[Floats, Floats]:
    """(turns, 2) unit vectors, and what each costs as a matter of taste."""
    turn = 2.0 * np.pi * np.arange(_TURNS) / _TURNS
    units = np.round(np.column_stack([np.cos(turn), np.sin(turn)]), 12)
    order = [
        _PREFERRED.get((int(x), int(y)), _ELSE) if abs(x * y) < 1e-9 else _ELSE for x, y in units
    ]
    return units, np.array(order)


def _chosen(centres: Floats, halves: Floats, wrong: Floats, taste: Floats) -> NDArray[np.intp]:
    """Return the side of every name; those with the fewest clear sides choose first.

    Then all choose again, given the others.
    """
    sides = np.full(len(wrong), -1)
    free = (wrong == 0.0).sum(axis=1)
    for _ in range(_ROUNDS):
        before = sides.copy()
        for at in np.argsort(free, kind="stable").tolist():
            faults = wrong[at] + _met(at, centres, halves, sides)
            sides[at] = (_WRONG * faults + np.minimum(taste[at], _WRONG)).argmin()
        if np.array_equal(before, sides):
            break
    return sides


def _met(at: int, centres: Floats, halves: Floats, sides: NDArray[np.intp]) -> Floats:
    """(sides,) how many other names each side of a name would meet."""
    others = np.flatnonzero(sides >= 0)
    others = others[others != at]
    gap = np.abs(centres[others, sides[others]][None] - centres[at][:, None])
    met: Floats = np.all(gap < halves[others] + halves[at] + 1.0, axis=2).sum(axis=1)
    return met.astype(np.float64)


def _from_box(points: Floats, centres: Floats, half: Floats) -> Floats:
    """Return the distance of points from boxes, 0 inside."""
    return np.asarray(np.linalg.norm(np.maximum(np.abs(points - centres) - half, 0.0), axis=2))


def _crossed(centres: Floats, half: Floats, ends: Floats, widths: Floats) -> Floats:
    """(boxes, lines) what a box costs a line, 0 for none: more, the more of the line it hides.

    `half` fits `centres`.
    """
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
    hidden = np.minimum(leaves, 1.0) - np.maximum(enters, 0.0)
    return np.where(enters <= leaves, 0.7 + 2.0 * hidden, 0.0)


# -- drawing ---------------------------------------------------------------------------------------


def text_halves(ax: Axes, texts: Sequence[str], size: float) -> Floats:
    """(n, 2) half the width and height of texts in points.

    Pixels make letters wider than their outlines are, so the width is the larger of the two.
    """
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size)
    tall = 0.62 * size
    outlines = [np.ptp(_outline(text, font).vertices[:, 0]) for text in texts]
    notes = [ax.text(0.0, 0.0, text, fontproperties=font) for text in texts]
    drawn = 2.0 * _boxes(notes, pixel_in_points(ax))[1][:, 0]
    for note in notes:
        note.remove()
    wide = np.maximum(outlines, drawn) / 2.0 + 0.5
    return np.column_stack([wide, np.full(len(texts), tall)])


def _outline(text: str, font: FontProperties) -> Any:
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    outline = TextPath((0.0, 0.0), text, prop=font)
    return outline if len(outline.vertices) else Path([(0.0, 0.0)])  # nothing but spaces


def draw_name(
    ax: Axes, text: str, spot: Floats, offset: Floats, size: float, *, ink: str, halo: str | None
) -> Annotation:
    """Write a name at an offset in points; a halo lets it stand out from lines behind it.

    The halo is an outline below the text, so that the text stays text in an SVG or PDF.
    """
    note = ax.annotate(
        text,
        (float(spot[0]), float(spot[1])),
        xytext=(float(offset[0]), float(offset[1]) + _BASELINE * size),
        textcoords="offset points",
        ha="center",
        va="baseline",
        fontsize=size,
        color=ink,
        zorder=4,
    )
    if halo is not None:
        _draw_halo(ax, text, spot, offset, size, halo)
    return note


def _draw_halo(ax: Axes, text: str, spot: Floats, offset: Floats, size: float, colour: str) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D, ScaledTranslation

    figure: Any = ax.get_figure(root=True)
    outline = _outline(text, FontProperties(size=size))
    across = outline.vertices[:, 0]
    left = float(offset[0]) - (across.min() + across.max()) / 2.0
    low = float(offset[1]) + _BASELINE * size
    data: Any = ax.transData
    place = (
        Affine2D().translate(left, low).scale(1.0 / 72.0)
        + figure.dpi_scale_trans
        + ScaledTranslation(float(spot[0]), float(spot[1]), data)
    )
    patch = PathPatch(
        outline,
        transform=place,
        facecolor=colour,
        edgecolor=colour,
        linewidth=2.0 * _HALO,
        joinstyle="round",
        alpha=0.85,
        zorder=3.8,
        gid="halo",
    )
    ax.add_artist(patch)


def label_edges(
    ax: Axes,
    texts: Mapping[int, str],
    lines: Sequence[Floats],
    nodes: Floats,
    radius: float,
    names: Sequence[Annotation],
    *,
    size: float,
    ink: str,
    surface: str,
) -> list[Annotation]:
    """Write texts on the lines of edges; the first ones choose their places first.

    `texts` are by the position of the edge, `lines` the points of every edge in data coordinates.
    `names` are the labels of the nodes, to keep clear of; `radius` is half the width of a node in
    points. The axes have their limits set.
    """
    if not texts:
        return []
    scale = pixel_in_points(ax)
    along = [np.array([_along(lines[at], share) for share in _ALONG]) for at in texts]
    every = np.linspace(0.0, 1.0, 40)
    drawn = np.concatenate([[_along(lines[at], share) for share in every] for at in texts])
    drawn = ax.transData.transform(drawn) * scale
    places = ax.transData.transform(nodes) * scale
    centres, halves = _boxes(names, scale)
    box = {"boxstyle": "square,pad=0.3", "facecolor": surface, "edgecolor": "none", "alpha": 0.85}
    notes = []
    for text, spots in zip(texts.values(), along, strict=True):
        note = ax.annotate(
            label(text),
            tuple(spots[0]),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=ink,
            zorder=3.5,
            bbox=box,
            gid="edge label",
        )
        half = _boxes([note], scale)[1][0]
        here = ax.transData.transform(spots) * scale
        cost = 0.02 * np.arange(len(_ALONG))
        cost += 10.0 * _meets(here, places, half + radius).sum(axis=1)
        cost += 6.0 * _meets(here, centres, halves + half).sum(axis=1)
        cost += 0.1 * _meets(here, drawn, half).sum(axis=1)
        at = int(cost.argmin())
        note.xy = (float(spots[at, 0]), float(spots[at, 1]))
        centres, halves = np.vstack([centres, here[at]]), np.vstack([halves, half])
        notes.append(note)
    return notes


def _along(line: Floats, share: float) -> Floats:
    """Return the point at a share of the way along the points of a line."""
    at = share * (len(line) - 1)
    first = min(int(at), len(line) - 2)
    return np.asarray(line[first] + (at - first) * (line[first + 1] - line[first]))


def _boxes(notes: Sequence[Any], scale: float) -> tuple[Floats, Floats]:
    """(n, 2) centres and half sizes of texts in points."""
    boxes = [note.get_window_extent() for note in notes]
    corners = np.array([box.extents for box in boxes]).reshape(-1, 2, 2) * scale
    return corners.mean(axis=1), np.ptp(corners, axis=1) / 2.0


def _meets(here: Floats, points: Floats, reach: Floats) -> Any:
    """(candidates, points) whether a point is within reach of a candidate, in both directions."""
    return np.all(np.abs(here[:, None] - points[None]) < reach, axis=2)


# -- areas -----------------------------------------------------------------------------------------

AREA_PAD = 9.0
"""Points between a node and the border of the area of its group."""

_CORNERS = 24
_DOT = 1e-3  # makes a line of a single point, which would not be drawn
_FAR = 3.0  # times the usual distance of neighbours: farther members have an area of their own


def parts_of(members: Sequence[int], places: Floats) -> list[list[int]]:
    """Return the members of a group by where they stand together, the largest part first.

    Members far from the rest are a part of their own, so that no band crosses the picture.
    """
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    far = _FAR * float(np.median(gaps.min(axis=1)))
    part = {at: at for at in members}
    for a, b in ((members[a], members[b]) for a, b in _tree(places[list(members)])):
        if gaps[a, b] <= far:
            part = {at: part[a] if own == part[b] else own for at, own in part.items()}
    parts = [[at for at in members if part[at] == own] for own in dict.fromkeys(part.values())]
    return sorted(parts, key=len, reverse=True)


def area_of(part: Sequence[int], places: Floats) -> list[list[int]]:
    """Return corners of the areas of a part of a group: one where no other node is in between.

    The area is the convex hull where no other node is inside; else lines between members, each to
    the nearest that is connected already, which become wide bands.
    """
    points = places[list(part)]
    hull = _hull(points)
    others = np.delete(places, list(part), axis=0)
    if len(hull) < 3 or not _inside(others, points[hull]).any():
        return [[part[at] for at in hull]]
    return [[part[a], part[b]] for a, b in _tree(points)]


def _hull(points: Floats) -> list[int]:
    """Return the corners of the convex hull, in order."""
    order: list[int] = np.lexsort((points[:, 1], points[:, 0])).tolist()
    if len(order) < 3:
        return order

    def chain(indices: Sequence[int]) -> list[int]:
        kept: list[int] = []
        for at in indices:
            while len(kept) > 1 and _turn(points[kept[-2]], points[kept[-1]], points[at]) <= 0.0:
                kept.pop()
            kept.append(at)
        return kept[:-1]

    return chain(order) + chain(order[::-1])


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    (ux, uy), (vx, vy) = b - a, c - a
    return float(ux * vy - uy * vx)


def _inside(points: Floats, corners: Floats) -> Any:
    """Return which points lie in a convex polygon whose corners run counter-clockwise."""
    following = np.roll(corners, -1, axis=0) - corners
    away = points[:, None] - corners[None]
    return (following[None, :, 0] * away[..., 1] > following[None, :, 1] * away[..., 0]).all(axis=1)


def _tree(points: Floats) -> list[tuple[int, int]]:
    """Return the edges of the minimum spanning tree."""
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    joined, edges = [0], []
    while len(joined) < len(points):
        left = [at for at in range(len(points)) if at not in joined]
        near = gaps[np.ix_(joined, left)]
        a, b = np.unravel_index(near.argmin(), near.shape)
        edges.append((joined[a], left[b]))
        joined.append(left[b])
    return edges


def draw_areas(
    ax: Axes,
    places: Floats,
    members: Mapping[str, Sequence[int]],
    colours: Mapping[str, str],
    theme: Theme,
    node: float,
    size: float,
    names: Sequence[Any],
) -> None:
    """Draw the area of every group behind everything else, and write its name at its border."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    taken = [note.get_window_extent() for note in names]
    for group, at in members.items():
        if not at:
            continue
        tint = mixed(theme.surface, colours[group][:7], theme.area)
        parts = parts_of(at, places)
        for corners in (each for part in parts for each in area_of(part, places)):
            outline = places[[*corners, corners[0]]]
            outline[-1] += _DOT
            path = Path(outline)
            ax.add_artist(
                PathPatch(
                    path,
                    facecolor=tint,
                    edgecolor=tint,
                    linewidth=node + 2.0 * AREA_PAD,
                    joinstyle="round",
                    capstyle="round",
                    zorder=0,
                    gid=f"area {label(group)}",
                )
            )
        _write_group(
            ax,
            places,
            parts[0],
            label(group),
            theme.name(colours[group]),
            node,
            size,
            taken,
        )


def _write_group(
    ax: Axes,
    places: Floats,
    members: Sequence[int],
    text: str,
    colour: str,
    node: float,
    size: float,
    taken: list[Any],
) -> None:
    """Write the name of a group at its border, where it meets no node and no name; else nowhere.

    It is nearer to one of these members of its group than to any other node.
    """
    pixel = pixel_in_points(ax)
    nodes = ax.transData.transform(places)
    note = ax.annotate(
        text,
        tuple(places[members[0]]),
        xytext=(0.0, 0.0),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=size + 1.0,
        fontweight="bold",
        color=colour,
        zorder=3.9,
        gid="group name",
    )
    half = np.array(note.get_window_extent().bounds[2:]) / 2.0
    reach = (node / 2.0 + AREA_PAD) / pixel
    own, others = nodes[list(members)], np.delete(nodes, list(members), axis=0)
    frame = np.array(ax.get_window_extent().extents).reshape(2, 2)
    best, least = None, np.inf
    for turn in 2.0 * np.pi * np.arange(_CORNERS) / _CORNERS:
        unit = np.array([np.sin(turn), np.cos(turn)])
        outer = own[(own @ unit).argmax()]
        spot = outer + unit * (reach + float(half @ np.abs(unit)))
        away = np.maximum(np.abs(nodes - spot) - half, 0.0)
        if (np.hypot(*away.T) < (0.55 * node + 2.0) / pixel).any():
            continue
        if (spot - half < frame[0]).any() or (spot + half > frame[1]).any():
            continue
        if any(_meets_box(spot, half + 2.0, box) for box in taken):
            continue
        # Away from the areas of other groups, better above its own than below.
        near, far = (
            np.hypot(*np.maximum(np.abs(those - spot) - half, 0.0).T).min(initial=np.inf)
            for those in (own, others)
        )
        if far <= near:
            continue
        cost = 3.0 * max(1.0 - float(far) / (1.5 * reach), 0.0) - 0.5 * unit[1]
        if cost < least:
            best, least = spot - nodes[members[0]], cost
    if best is None:
        note.remove()
        return
    note.set_position((float(best[0]) * pixel, float(best[1]) * pixel))
    taken.append(note.get_window_extent())


def _meets_box(spot: Floats, half: Floats, box: Any) -> bool:
    return bool(
        spot[0] - half[0] < box.x1
        and box.x0 < spot[0] + half[0]
        and spot[1] - half[1] < box.y1
        and box.y0 < spot[1] + half[1]
    )
