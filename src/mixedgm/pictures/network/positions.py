"""Strengths of edges and a layout in -> a place for every node, always the same one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import few, quoted
from mixedgm.fit.fitted import Edge, FittedModel
from mixedgm.model.layout import Floats

Positions = dict[str, tuple[float, float]]
LayoutArg = str | Mapping[str, Any]

LAYOUTS = ("spring", "kamada-kawai", "circle", "groups")
_SHAPE = 1.3  # width to height that a layout is turned and packed towards
_ROUNDS = 300
_TIED = 0.9  # share of the pull that edges have; the rest keeps the picture together
_ASIDE = (0.3, -0.3, 0.45, -0.45, 0.6, -0.6, 0.8, -0.8)
"""How far lines bend aside at most, where nodes are about 1 apart, smallest first."""
_FAINT_ASIDE = 2
"""How many of these are tried for faint lines: in a crowd, wide arcs of them hide the rest."""
_BESIDE = 0.6  # share of the room of their names that neighbours on a circle leave
_MOST_BEND = 0.3  # of the length of a line
_MOST_BENT = 200_000  # edges times nodes; finding bends for more takes seconds


def positions(
    fitted: FittedModel | Sequence[FittedModel],
    layout: LayoutArg = "spring",
    columns: Sequence[str] | None = None,
    *,
    groups: Mapping[str, str] | None = None,
    room: Mapping[str, tuple[float, float]] | None = None,
) -> Positions:
    """Return the place of every column in the picture of the network, in the table's order.

    Nodes are at least 1 apart. The same model gets the same places. Several models share one
    layout, by the mean of their strengths.

    Parameters
    ----------
    fitted : FittedModel or sequence of these
        Models of the same columns.
    layout : str or mapping of name to (x, y)
        "spring" draws columns together by the strengths of their edges, "kamada-kawai" by the
        number of steps between them, "circle" has one circle and "groups" a circle for each group.
        "spring" and "kamada-kawai" put unconnected parts beside each other, and columns without
        edges in rows below. Given places are checked; other names in them are left out.
    columns : sequence of str, optional
        Only these are placed, by the edges between them.
    groups : mapping of column to group, optional
        Needed for the layout "groups"; columns without a group have a circle of their own.
    room : mapping of name to (width, height), optional
        Size of a node with its name, which no other node may enter; 1 x 1 by default.
    """
    models = [fitted] if isinstance(fitted, FittedModel) else list(fitted)
    names = models[0].schema.names if columns is None else tuple(columns)
    if isinstance(layout, Mapping):
        return _given(names, layout)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        choices = ", ".join(quoted(name) for name in LAYOUTS)
        raise ParameterError.must_be(
            "layout",
            f"one of {choices}, a dict of name: (x, y), an earlier drawing or models",
            layout,
        )
    size = {name: (room or {}).get(name, (1.0, 1.0)) for name in names}
    boxes = np.array(list(size.values()), dtype=np.float64).reshape(-1, 2)
    if layout == "circle":
        places = _circle(boxes)
    elif layout == "groups":
        if not groups:
            raise ParameterError('layout="groups" needs groups={group: [column, ...], ...}.')
        places = _circles([groups.get(name) for name in names], boxes)
    else:
        place = _spring if layout == "spring" else _steps
        places = _packed(_strengths(models, names), boxes, place)
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)}


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


def _strengths(models: Sequence[FittedModel], names: Sequence[str]) -> Floats:
    """(n, n) mean strengths between these columns; edges that only vary have a small one."""
    at = {name: k for k, name in enumerate(names)}
    total = np.zeros((len(names), len(names)))
    for model in models:
        own = np.zeros_like(total)
        for edge in model.edges:
            if edge.source in at and edge.target in at:
                pair = at[edge.source], at[edge.target]
                own[pair] = max(own[pair], edge.strength)
        total += own
    return np.asarray(np.maximum(total, total.T) / len(models))


# -- one connected part ----------------------------------------------------------------------------


def _spring(strength: Floats) -> Floats:
    """Return places where edges pull by their strength and all nodes push each other away.

    The minimum of the sum of w d^2.5 / 2.5 over edges minus the sum of log d over pairs, where the
    strengths w are capped, so that no edge pulls its ends onto each other.
    """
    from scipy.optimize import minimize

    n = len(strength)
    there = strength > 0.0
    cap = np.quantile(strength[there], 0.9)
    pull = np.minimum(strength / cap, 1.0) + 0.02 * there
    # The strongest edge of a node and the only ones hold it, so that it does not drift away.
    first = strength == strength.max(axis=1, keepdims=True)
    pull = np.where(there & (first | first.T), np.maximum(pull, 0.5), pull)
    hold = np.sqrt(there.sum(axis=1))
    pull = pull / np.sqrt(hold[:, None] * hold[None])
    pull = _TIED * n * pull / pull.sum() + (1.0 - _TIED) / n
    row, column = np.triu_indices(n, 1)
    weight = pull[row, column]

    def energy(flat: Floats) -> tuple[float, Floats]:
        places = flat.reshape(n, 2)
        step = places[row] - places[column]
        squared = (step**2).sum(axis=1) + 1e-9
        drawn = weight * squared**0.25
        value = float((drawn * squared).sum() / 2.5 - 0.5 / n * np.log(squared).sum())
        force = (drawn - 1.0 / (n * squared))[:, None] * step
        slope = np.zeros((n, 2))
        for axis in (0, 1):
            slope[:, axis] = np.bincount(row, force[:, axis], n)
            slope[:, axis] -= np.bincount(column, force[:, axis], n)
        return value, slope.ravel()

    found = minimize(
        energy,
        _steps(strength).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300 if n <= 100 else 100},
    )
    return np.asarray(found.x.reshape(n, 2))


def _steps(strength: Floats) -> Floats:
    """Return places whose distances follow the number of steps, by stress majorisation."""
    from scipy.sparse.csgraph import shortest_path

    n = len(strength)
    wanted = shortest_path((strength > 0.0).astype(np.float64), unweighted=True)
    np.fill_diagonal(wanted, 1.0)
    turn = np.pi * (3.0 - math.sqrt(5.0)) * np.arange(n)  # a spiral, so that no two coincide
    spiral = np.sqrt(np.arange(n) / n)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    centred = wanted**2 - (wanted**2).mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (centred - centred.mean(axis=1)[:, None]))
    scaled = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 1e-9))
    # An eigenvector has no sign of its own.
    sign = np.sign(scaled[np.abs(scaled).argmax(axis=0), [0, 1]])
    places = scaled * np.where(sign == 0.0, 1.0, sign) + 0.1 * spiral
    weight = 1.0 / wanted**2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(laplacian + 1.0 / n)
    for _ in range(100 if n <= 300 else 10):
        gap = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)) + np.eye(n)
        ratio = weight * wanted / np.maximum(gap, 1e-9)
        moved = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ places)
        if np.abs(moved - places).max() < 1e-4:
            break
        places = moved
    return np.asarray(places)


def _upright(places: Floats) -> Floats:
    """Turn the long side to the horizontal, the same way round every time."""
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1]
    axes[:, 0] *= np.where(axes[np.abs(axes[:, 0]).argmax(), 0] < 0.0, -1.0, 1.0)
    axes[:, 1] *= np.sign(np.linalg.det(axes))
    return np.asarray(centred @ axes)


def _spread(places: Floats, boxes: Floats) -> Floats:
    """Move nodes apart until no two boxes overlap and no two nodes are nearer than 1."""
    wide, tall = np.ptp(places, axis=0)
    # A layout that is much wider or taller than pictures are is stretched a little.
    stretch = float(np.clip(math.sqrt(_SHAPE * tall / max(wide, 1e-9)), 0.8, 1.25))
    places = places * [stretch, 1.0 / stretch]
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    near = float(np.quantile(gaps.min(axis=1), 0.4))
    places = places * (0.75 * float(np.sqrt(boxes.prod(axis=1).mean())) / max(near, 1e-9))
    least, every = (boxes[:, None] + boxes[None]) / 2.0, np.arange(len(places))
    for _ in range(_ROUNDS):
        step = places[:, None] - places[None]
        lacking = least - np.abs(step)
        np.einsum("iij->ij", lacking)[:] = -1.0
        over = np.asarray((lacking > 0.0).all(axis=2))
        distance = np.sqrt((step**2).sum(axis=2)) + 2.0 * np.eye(len(places))
        round_over = np.maximum(1.0 - distance, 0.0)
        if not (over.any() or round_over.any()):
            break
        sideways = np.asarray(lacking[..., 0] < lacking[..., 1])
        side = np.where(step == 0.0, (every[:, None] - every[None])[..., None], step)
        push = np.stack([sideways, ~sideways], axis=2) * np.sign(side) * (lacking + 0.01)
        push = np.where(over[..., None], push, 0.0)
        push += (round_over / np.maximum(distance, 1e-9))[..., None] * step * 1.02
        places = places + 0.5 * push.sum(axis=1)
    return np.asarray(places)


# -- whole pictures --------------------------------------------------------------------------------


def _packed(strength: Floats, boxes: Floats, place: Callable[[Floats], Floats]) -> Floats:
    """Lay out every connected part alone and pack the parts; lonely columns stand in rows below."""
    from scipy.sparse.csgraph import connected_components

    _, part_of = connected_components(strength > 0.0, directed=False)
    parts = [np.flatnonzero(part_of == k) for k in range(part_of.max(initial=-1) + 1)]
    parts.sort(key=lambda part: -len(part))
    lonely = np.array([part[0] for part in parts if len(part) == 1], dtype=np.intp)
    parts = [part for part in parts if len(part) > 1]
    places = np.zeros((len(boxes), 2))
    shapes = []
    for part in parts:
        inner = strength[np.ix_(part, part)]
        if len(part) == 2:
            shape = np.array([[0.0, 0.0], [1.05 * max(1.3, boxes[part, 0].mean()), 0.0]])
        else:
            shape = _spread(_upright(place(inner)), boxes[part])
        shapes.append(shape - _corners(shape, boxes[part])[0])
    sizes = [
        np.ptp(_corners(s, boxes[part]), axis=0) for s, part in zip(shapes, parts, strict=True)
    ]
    rest = float(boxes[lonely].prod(axis=1).sum())
    for part, shape, corner in zip(parts, shapes, _shelves(sizes, rest), strict=True):
        places[part] = shape + corner
    _below(places, boxes, lonely, np.concatenate(parts) if parts else lonely[:0])
    return places


def _corners(places: Floats, boxes: Floats) -> Floats:
    """(2, 2) lower left and upper right corner of all boxes."""
    return np.array([(places - boxes / 2.0).min(axis=0), (places + boxes / 2.0).max(axis=0)])


def _shelves(sizes: Sequence[Floats], rest: float) -> list[Floats]:
    """Return the lower left corners of rectangles on shelves, from top to bottom.

    `rest` is the area of what will stand below.
    """
    area = sum(float(size.prod()) for size in sizes) + rest
    width = max([float(size[0]) for size in sizes] + [math.sqrt(_SHAPE * area)]) + 1e-9
    shelves: list[list[int]] = [[]]
    for at, size in enumerate(sizes):
        if shelves[-1] and sum(sizes[k][0] for k in shelves[-1]) + size[0] > width:
            shelves.append([])
        shelves[-1].append(at)
    corners: list[Floats] = [np.zeros(2)] * len(sizes)
    top = 0.0
    for shelf in filter(None, shelves):
        height = max(float(sizes[at][1]) for at in shelf)
        spare = (width - sum(float(sizes[at][0]) for at in shelf)) / (len(shelf) + 1)
        left = spare
        for at in shelf:
            corners[at] = np.array([left, top - (height + sizes[at][1]) / 2.0])
            left += float(sizes[at][0]) + spare
        top -= height
    return corners


def _below(places: Floats, boxes: Floats, lonely: NDArray[np.intp], placed: Any) -> None:
    """Place columns without edges in centred rows, below the nodes that are placed already."""
    if not len(lonely):
        return
    if len(placed):
        (left, bottom), (right, _) = _corners(places[placed], boxes[placed])
    else:
        wide = math.sqrt(2.0 * _SHAPE * float(boxes[lonely].prod(axis=1).sum()))
        left, right, bottom = 0.0, wide, 0.0
    width = max(right - left, float(boxes[lonely, 0].max()))
    rows: list[list[int]] = [[]]
    for at in lonely.tolist():
        if rows[-1] and boxes[rows[-1], 0].sum() + boxes[at, 0] > width:
            rows.append([])
        rows[-1].append(at)
    bottom -= 0.15 * bool(len(placed))
    for row in rows:
        tall = float(boxes[row, 1].max())
        ends = np.cumsum(boxes[row, 0])
        places[row, 0] = (left + right) / 2.0 - ends[-1] / 2.0 + ends - boxes[row, 0] / 2.0
        places[row, 1] = bottom - tall / 2.0
        bottom -= tall


def _circle(boxes: Floats) -> Floats:
    """Return places on a circle, clockwise from the top, in the table's order."""
    turn = 2.0 * np.pi * np.arange(len(boxes)) / max(len(boxes), 1)
    round_ = np.column_stack([np.sin(turn), np.cos(turn)])
    if len(boxes) < 2:
        return np.zeros((len(boxes), 2))
    # As large as the nearest neighbours need: boxes are apart once they are in one direction.
    step = np.abs(round_ - np.roll(round_, 1, axis=0))
    # Names may stand on either side of the circle, so that neighbours need not leave all the room.
    boxes = np.maximum(_BESIDE * boxes, 1.0)
    least = (boxes + np.roll(boxes, 1, axis=0)) / 2.0
    ratio = np.divide(least, step, out=np.full_like(least, np.inf), where=step > 1e-9)
    gap = np.linalg.norm(step, axis=1)
    return np.asarray(round_ * max(float(ratio.min(axis=1).max()), float((1.0 / gap).max()), 0.7))


def _circles(groups: Sequence[str | None], boxes: Floats) -> Floats:
    """Return places on one circle for each group, and the circles around a larger one."""
    names = list(dict.fromkeys(groups))
    members = [np.flatnonzero([group == name for group in groups]) for name in names]
    shapes = [_circle(boxes[part]) for part in members]
    sizes = np.array(
        [np.ptp(_corners(s, boxes[m]), axis=0) for s, m in zip(shapes, members, strict=True)]
    )
    centres = _spread(_circle(1.1 * sizes), 1.1 * sizes) if len(names) > 1 else np.zeros((1, 2))
    places = np.zeros((len(boxes), 2))
    for part, shape, centre in zip(members, shapes, centres, strict=True):
        places[part] = shape + centre
    return places


# -- lines -----------------------------------------------------------------------------------------


def bends(
    places: Positions, edges: Sequence[Edge], clearance: float, cut: float | None = None
) -> Floats:
    """Return how far every edge bends aside, as a share of its length; 0 for a straight one.

    An edge bends where it would come nearer than `clearance` to a node that is not its own, and
    stays straight where a slight bend does not help. Edges below the cut, which are faint, bend
    slightly or not at all. The line is a parabola whose control point lies twice that far beside
    the middle.
    """
    bent = np.zeros(len(edges))
    if len(edges) * len(places) > _MOST_BENT or not len(edges):
        return bent
    place = {name: k for k, name in enumerate(places)}
    nodes = np.array(list(places.values()))
    ends = np.array([(place[edge.source], place[edge.target]) for edge in edges])
    there = _nearest(nodes, ends, np.zeros(len(edges)))
    blocked = np.flatnonzero(there < clearance)
    length = np.linalg.norm(nodes[ends[:, 0]] - nodes[ends[:, 1]], axis=1)
    faint = np.array([cut is not None and edge.strength < cut for edge in edges])
    for at, aside in enumerate(_ASIDE):
        if at == _FAINT_ASIDE:
            blocked = blocked[~faint[blocked]]
        bend = np.clip(aside / length[blocked], -_MOST_BEND, _MOST_BEND)
        clear = _nearest(nodes, ends[blocked], bend) >= 0.9 * clearance
        bent[blocked[clear]] = bend[clear]
        blocked = blocked[~clear]
    return bent


def _nearest(nodes: Floats, ends: NDArray[np.intp], bend: Floats) -> Floats:
    """(m,) distance of the nearest foreign node from every line."""
    start, end = nodes[ends[:, 0]], nodes[ends[:, 1]]
    step = end - start
    normal = np.stack([-step[:, 1], step[:, 0]], axis=1)
    near = np.full((len(ends), len(nodes)), np.inf)
    low, high = nodes.min(axis=0) - 0.4, nodes.max(axis=0) + 0.4  # a line stays in the picture
    for share in np.linspace(0.04, 0.96, 24):
        line = start + share * step + (4.0 * share * (1.0 - share) * bend)[:, None] * normal
        near = np.minimum(near, ((line[:, None] - nodes[None]) ** 2).sum(axis=2))
        near[((line < low) | (line > high)).any(axis=1)] = 0.0
    every = np.arange(len(ends))
    foreign = np.ones(near.shape, dtype=bool)
    foreign[every, ends[:, 0]] = foreign[every, ends[:, 1]] = False
    return np.asarray(np.sqrt(near.min(axis=1, initial=np.inf, where=foreign)))
