"""Groups of nodes in -> soft areas behind them, each with its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import label, pixel_in_points
from mixedgm.views.colours import Theme, mixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AREA_PAD", "area_of", "draw_areas"]

AREA_PAD = 9.0
"""Points between a node and the border of the area of its group."""

_TURNS = 24


def area_of(members: Sequence[int], places: Floats) -> list[list[int]]:
    """Return corners of the areas of a group: one where no other node lies in between.

    The area is the convex hull of the members where no other node is inside; else lines between
    members, each to the nearest that is connected already, which become wide bands.
    """
    points = places[list(members)]
    hull = _hull(points)
    others = np.delete(places, list(members), axis=0)
    if len(hull) < 3 or not _inside(others, points[hull]).any():
        return [[members[at] for at in hull]]
    return [[members[a], members[b]] for a, b in _tree(points)]


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
        for corners in area_of(at, places):
            path = Path(places[[*corners, corners[0]]])
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
            at,
            label(group),
            mixed(colours[group][:7], theme.ink, 0.55),
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

    It is nearer to a node of its group than to any other.
    """
    pixel = pixel_in_points(ax)
    nodes = ax.transData.transform(places)
    note = ax.annotate(
        text,
        tuple(places[members[0]]),
        xytext=(0.0, 0.0),
        textcoords="offset pixels",
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
    for turn in 2.0 * np.pi * np.arange(_TURNS) / _TURNS:
        unit = np.array([np.sin(turn), np.cos(turn)])
        outer = own[(own @ unit).argmax()]
        spot = outer + unit * (reach + float(half @ np.abs(unit)))
        away = np.maximum(np.abs(nodes - spot) - half, 0.0)
        if (np.hypot(*away.T) < (0.55 * node + 2.0) / pixel).any():
            continue
        if (spot - half < frame[0]).any() or (spot + half > frame[1]).any():
            continue
        if any(_meets(spot, half, box) for box in taken):
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
    note.set_position((float(best[0]), float(best[1])))
    taken.append(note.get_window_extent())


def _meets(spot: Floats, half: Floats, box: Any) -> bool:
    return bool(
        spot[0] - half[0] < box.x1
        and box.x0 < spot[0] + half[0]
        and spot[1] - half[1] < box.y1
        and box.y0 < spot[1] + half[1]
    )
