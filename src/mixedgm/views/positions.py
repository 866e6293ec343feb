"""The graph of a fitted model and a layout in -> a place for every node, always the same one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.printable import few, quoted
from mixedgm.views.export import to_networkx
from mixedgm.views.scale import widest_weight

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["LAYOUTS", "LayoutArg", "Positions", "height_to_width", "positions"]

Positions = dict[str, tuple[float, float]]
LayoutArg = str | Mapping[str, Any]

_SEED = 0
_CLEARANCE = 0.35  # between a node and a line, where neighbouring nodes are about 1 apart
_SPACING = 0.8  # between two nodes
_MOVES = 60
_STRESS_LIMIT = 150  # nodes; beyond that the stress layout takes seconds


def positions(
    fitted: FittedModel, layout: LayoutArg = "spring", columns: Sequence[str] | None = None
) -> Positions:
    """Return the place of every column in the picture of the network, in the table's order.

    A layout is "spring", "circle", "kamada-kawai", or places by name, which are checked; names that
    the model does not have are left out. The same model gets the same places. "spring" and
    "kamada-kawai" put unconnected parts beside each other and columns without edges in a row below.
    Of given `columns`, only these are placed, by the edges between them.
    """
    if isinstance(layout, Mapping):
        return _given(fitted.schema.names if columns is None else tuple(columns), layout)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        choices = ", ".join(quoted(name) for name in LAYOUTS)
        raise ParameterError.must_be(
            "layout", f"one of {choices}, or a dict of name: (x, y)", layout
        )
    graph = to_networkx(fitted)
    if columns is not None:
        graph.remove_nodes_from([name for name in fitted.schema.names if name not in set(columns)])
    places = LAYOUTS[layout](graph) if len(graph) else np.zeros((0, 2))
    return {name: (float(x), float(y)) for name, (x, y) in zip(graph, places, strict=True)}


def _given(names: tuple[str, ...], layout: Mapping[str, Any]) -> Positions:
    absent = [name for name in names if name not in layout]
    if absent:
        raise ParameterError(f"layout has no place (x, y) for the columns {few(absent)}.")
    places: Positions = {}
    for name in names:
        try:
            x, y = (float(value) for value in layout[name])
            if not (math.isfinite(x) and math.isfinite(y)):
                raise ValueError
        except (TypeError, ValueError):
            raise ParameterError.must_be(
                f"layout[{quoted(name)}]", "two finite numbers (x, y)", layout[name]
            ) from None
        places[name] = (x, y)
    return places


def height_to_width(places: Positions) -> float:
    """Return the shape of a layout; 1 where it has no width."""
    width, height = np.ptp(np.array(list(places.values()) or [(0.0, 0.0)]), axis=0)
    return float(height / width) if width > 0.0 else 1.0


def _circle(graph: nx.Graph[str]) -> Floats:
    """Return places on a circle, clockwise from the top, in the table's order."""
    turn = 2.0 * np.pi * np.arange(len(graph)) / len(graph)
    return np.column_stack([np.sin(turn), np.cos(turn)]) * (len(graph) > 1)


def _stress_part(part: nx.Graph[int]) -> Floats:
    """Return places whose distances follow the number of steps between nodes."""
    import networkx as nx

    return _as_array(nx.kamada_kawai_layout(part, weight=None))


def _spring_part(part: nx.Graph[int]) -> Floats:
    """Return places where edges pull by their weight; the stress layout is a good start."""
    import networkx as nx

    start = None
    if len(part) <= _STRESS_LIMIT:
        start = dict(enumerate(_stress_part(part)))
    # All edges may be there at other values of a moderator only, and have no weight.
    heaviest = widest_weight([edge["weight"] for _, _, edge in part.edges(data=True)]) or 1.0
    for u, v, edge in part.edges(data=True):
        # Light edges pull too, most of all the only edge of a node, which would drift away.
        hold = 1.0 + 2.0 / min(part.degree[u], part.degree[v])
        edge["pull"] = hold * (0.5 + 0.5 * math.sqrt(min(edge["weight"] / heaviest, 1.0)))
    return _as_array(nx.spring_layout(part, pos=start, weight="pull", iterations=60, seed=_SEED))


def _as_array(places: Mapping[int, Any]) -> Floats:
    return np.array([places[node] for node in range(len(places))], dtype=np.float64)


def _packed(graph: nx.Graph[str], place: Callable[[nx.Graph[int]], Floats]) -> Floats:
    """Lay out every connected part alone, then set the parts side by side.

    In one go unconnected nodes would repel each other out of the picture.
    """
    import networkx as nx

    index = {name: at for at, name in enumerate(graph)}
    parts = [sorted(index[name] for name in part) for part in nx.connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), part[0]))
    names = list(graph)
    shapes = []
    for part in parts:
        local = _numbered(graph, [names[at] for at in part])
        if len(part) > 2:
            shapes.append(_off_lines(_upright(place(local)), np.array(local.edges)))
        else:
            shapes.append(_row(len(part)))
    places = np.zeros((len(graph), 2))
    for part, shape in zip(parts, _shelved(shapes), strict=True):
        places[part] = shape
    middle = (places.max(axis=0) + places.min(axis=0)) / 2.0
    reach = float(np.abs(places - middle).max())
    return np.asarray((places - middle) / (reach if reach > 0.0 else 1.0))


def _numbered(graph: nx.Graph[str], names: list[str]) -> nx.Graph[int]:
    """Return the part with these nodes, numbered, with its edges in one fixed order."""
    import networkx as nx

    number = {name: at for at, name in enumerate(names)}
    part: nx.Graph[int] = nx.Graph()
    part.add_nodes_from(range(len(names)))
    for u in names:
        for v in names[: number[u]]:
            if graph.has_edge(u, v):
                part.add_edge(number[v], number[u], weight=graph.edges[u, v]["weight"])
    return part


def _row(count: int) -> Floats:
    return np.column_stack([np.arange(count, dtype=np.float64), np.zeros(count)])


def _upright(places: Floats) -> Floats:
    """Turn the long side to the horizontal and make neighbouring nodes about 1 apart."""
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1]
    # An eigenvector has no sign of its own: fix one, and keep the picture from being mirrored.
    axes[:, 0] *= np.where(axes[np.abs(axes[:, 0]).argmax(), 0] < 0.0, -1.0, 1.0)
    axes[:, 1] *= np.sign(np.linalg.det(axes))
    turned = centred @ axes
    gaps = np.linalg.norm(turned[:, None] - turned[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    near = float(np.quantile(gaps.min(axis=1), 0.3))
    return np.asarray(turned / (near if near > 0.0 else 1.0))


def _off_lines(places: Floats, edges: NDArray[np.intp]) -> Floats:
    """Move nodes off the lines of edges that are not theirs, which would seem to end there.

    The node moves away from the line, and the ends of the line a little from the node; nodes keep
    their distance from each other.
    """
    if len(places) > _STRESS_LIMIT:
        return places
    places, start, end = places.copy(), edges[:, 0], edges[:, 1]
    every = np.arange(len(edges))
    foreign = np.ones((len(places), len(edges)), dtype=bool)
    foreign[start, every] = foreign[end, every] = False
    for _ in range(_MOVES):
        step = places[end] - places[start]
        length = np.maximum((step**2).sum(axis=1), 1e-12)
        along = ((places[:, None] - places[start][None]) * step[None]).sum(axis=2) / length
        normal = np.stack([-step[:, 1], step[:, 0]], axis=1) / np.sqrt(length)[:, None]
        aside = ((places[:, None] - places[start][None]) * normal[None]).sum(axis=2)
        lacking = _CLEARANCE - np.abs(aside)
        close = foreign & (along > 0.0) & (along < 1.0) & (lacking > 0.0)
        apart = places[:, None] - places[None]
        distance = np.linalg.norm(apart, axis=2) + np.eye(len(places)) * _SPACING
        crowded = np.maximum(_SPACING - distance, 0.0) / np.maximum(distance, 1e-9)
        if not close.any() and crowded.max() < 0.05:
            break
        # On the line itself there is no direction away from it: take the left side.
        side = np.where(aside < 0.0, -1.0, 1.0)[..., None] * normal[None]
        push = np.where(close, lacking, 0.0)[..., None] * side / 2.0
        moved = push.sum(axis=1) + (crowded[..., None] * apart).sum(axis=1) / 2.0
        for at in (start, end):
            np.add.at(moved, at, -push.sum(axis=0) / 4.0)
        reach = np.linalg.norm(moved, axis=1, keepdims=True)
        places += moved * np.minimum(1.0, _CLEARANCE / np.maximum(reach, 1e-12))
    return places


def _shelved(shapes: list[Floats]) -> list[Floats]:
    """Set the shapes on shelves from top to bottom, in the order given."""
    boxes = [np.ptp(shape, axis=0) + 1.0 for shape in shapes]
    area = sum(float(box.prod()) for box in boxes)
    width = max(max(float(box[0]) for box in boxes), 1.25 * math.sqrt(area)) + 1e-9
    shelves: list[list[int]] = [[]]
    for at, box in enumerate(boxes):
        if shelves[-1] and sum(boxes[k][0] for k in shelves[-1]) + box[0] > width:
            shelves.append([])
        shelves[-1].append(at)
    placed: list[Floats] = list(shapes)
    top = 0.0
    for shelf in shelves:
        height = max(float(boxes[at][1]) for at in shelf)
        left = -sum(float(boxes[at][0]) for at in shelf) / 2.0
        for at in shelf:
            corner = shapes[at].min(axis=0)
            middle = top - height / 2.0 - (boxes[at][1] - 1.0) / 2.0
            placed[at] = shapes[at] - corner + [left + 0.5, middle]
            left += float(boxes[at][0])
        top -= height
    return placed


LAYOUTS: dict[str, Callable[[nx.Graph[str]], Floats]] = {
    "spring": partial(_packed, place=_spring_part),
    "circle": _circle,
    "kamada-kawai": partial(_packed, place=_stress_part),
}
