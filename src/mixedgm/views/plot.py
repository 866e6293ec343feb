"""A fitted model in -> a picture of its network, with a layout that can be used again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixedgm.fitted import Edge, FittedModel
from mixedgm.model.kinds import KINDS, Kind
from mixedgm.model.layout import Floats
from mixedgm.views.appearance import Appearance
from mixedgm.views.canvas import INK, axes, label, pixel_in_points, require_matplotlib, save_figure
from mixedgm.views.colours import SIGN_COLOURS, SIGN_NAMES
from mixedgm.views.labels import Lines, NodeLabels, label_edges
from mixedgm.views.positions import LayoutArg, Positions, height_to_width, positions
from mixedgm.views.scale import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["NetworkDrawing", "legend_keys", "legend_rows", "plot_network"]

_DASHES: dict[str | None, Any] = {"+": "solid", "-": (0, (4.0, 1.6)), None: "solid"}
_MODERATED = (0, (1.0, 1.6))
_NO_GROUP = "#EEEEEE"
_KEYS_IN_A_ROW = 6
_RING_COLOUR = "#4A4A4A"
_EMPTY = "#DEDEDE"
_HEAD_LENGTH, _HEAD_WIDTH = 0.6, 0.32
_ATTEMPTS = [
    *((growth, False) for growth in (1.0, 1.15, 1.3)),
    *((growth, True) for growth in (1.0, 1.2, 1.4, 1.6)),
]
"""How much larger a picture may become, and whether labels may stand away from their nodes, until
no label meets a line."""
_ATTEMPTS_IN_GIVEN_AXES = [(1.0, False), (1.0, True)]
_INNER, _RING_WIDTH = 1.33, 1.7
"""Diameters of the ring in widths of the node; corners of nodes stay inside."""


class NetworkDrawing(NamedTuple):
    """The axes of a drawn network, and where its nodes are.

    `positions` can be the `layout` of another picture, and so can the drawing itself.
    """

    ax: Axes
    positions: Positions

    def __repr__(self) -> str:
        return f"NetworkDrawing({len(self.positions)} nodes)"

    def save(self, path: str | os.PathLike[str], *, dpi: int = 160) -> None:
        """Write the figure as .png, .svg or .pdf; names in the last two stay text.

        The file is complete or not written, and the same drawing gives the same bytes.
        """
        save_figure(self.ax, path, dpi)


def plot_network(
    fitted: FittedModel,
    *,
    layout: LayoutArg | NetworkDrawing = "spring",
    ax: Axes | None = None,
    legend: bool = True,
    rings: Mapping[str, float] | None = None,
    **options: Any,
) -> NetworkDrawing:
    """Draw the network: a shape for each kind of column.

    Circles are continuous columns, pentagons hurdle ones, diamonds ordinal ones, hexagons counts,
    squares categories. The parameters are those of `MixedGraphicalModel.plot`, `options` those of
    `Appearance`; `rings` are shares by column.

    Notes
    -----
    Width is the edge's weight. Positive edges are blue, negative ones vermilion and dashed; grey
    edges have no sign, because an end is categorical with three or more levels, or a hurdle column
    with one sign for whether and another for how much. Covariates are white, and arrows lead
    from them to what they predict. A dotted line on top of an edge, or in its place, means that the
    edge varies with a moderator; its width is the weight of that deviation.
    """
    require_matplotlib()
    style = Appearance.of(options, ("layout", "ax", "predictability", "legend"))
    edges = style.edges(fitted)
    scale = style.scale(edges)
    if isinstance(layout, NetworkDrawing):
        layout = layout.positions
    places = positions(fitted, layout, style.names(fitted.schema))
    rings = {name: share for name, share in (rings or {}).items() if name in places}
    usual = float(np.clip(75.0 / np.sqrt(max(len(places), 1)), 8.0, 22.0))
    node_size = style.node_size or usual * (0.75 if rings else 1.0)
    reach = node_size * _RING_WIDTH if rings else node_size
    texts = _texts(list(places), fitted, style.labels)
    edge_texts = style.edge_texts(edges, fitted.schema)
    classes = _node_classes(fitted, places, style)
    keys = legend_keys([fitted], style, rings=bool(rings)) if legend and places else []
    longest = max(map(len, texts), default=0)
    size = float(np.clip(32.0 / max(len(places), 1) ** 0.37, 7.0, 11.0))
    size = max(7.0, size * float(np.clip(16.0 / max(longest, 1), 0.75, 1.0)))
    widest = longest * 0.5 * size
    margin = np.array([widest + reach, 2.0 * size + reach])
    below = 0.1 + (0.2 * max(legend_rows(keys), 2) + 0.1 * bool(rings)) * bool(legend)
    sheet = _Sheet(ax, places, margin, below)
    ax = sheet.ax
    ax.set_axis_off()
    ax.set_aspect("equal")
    points = np.array(list(places.values())).reshape(-1, 2)
    names = NodeLabels(ax, points, texts, reach / 2.0, size)
    _make_room(sheet, names, lambda: _obstacles(places, edges, scale, ax, reach / 2.0))
    _draw_edges(ax, places, edges, scale)
    _draw_heads(ax, places, edges, scale, reach / 2.0)
    _draw_rings(ax, places, rings, node_size)
    _draw_nodes(ax, classes, places, node_size)
    notes = names.finish()
    label_edges(ax, places, edge_texts, names=notes, radius=reach / 2.0, size=0.85 * size)
    if keys:
        _draw_legend(ax, keys)
    return NetworkDrawing(ax, places)


def _make_room(sheet: _Sheet, names: NodeLabels, lines: Callable[[], Lines]) -> None:
    """Let the picture grow, and labels stand away from their nodes, until no label is in the way.

    Where that is not enough, the best attempt counts.
    """

    def attempt(growth: float, far: bool) -> float:
        sheet.grow(growth)
        return names.place(lines(), far=far)

    attempts = _ATTEMPTS if sheet.can_grow else _ATTEMPTS_IN_GIVEN_AXES
    left = []
    for growth, far in attempts:
        left.append(attempt(growth, far))
        if not left[-1]:
            return
    attempt(*attempts[left.index(min(left))])


class _Sheet:
    """Axes shaped like the layout with its margins, with inches for the legend below.

    Where the figure is our own it can grow: type and nodes keep their size, so that there is more
    room between lines.
    """

    def __init__(self, ax: Axes | None, places: Positions, margin: Floats, below: float) -> None:
        self.places, self.margin, self.below = places, margin, below
        self.can_grow = ax is None
        self.ax = axes(ax, (6.0, 4.0))
        self.grow(1.0)

    def grow(self, times: float) -> None:
        """Make the picture larger than it is at first, and set the limits of its axes."""
        if self.can_grow:
            across, above = 2.0 * self.margin / 72.0
            width = times * float(np.clip(5.0 + 0.55 * np.sqrt(len(self.places)), 6.0, 12.0))
            width = max(width, 0.65 * width + across)  # long names leave room for the nodes
            height = max(width - across, 1.0) * height_to_width(self.places) + above
            height = float(np.clip(height, 1.5, 0.95 * width))
            whole = height + self.below
            figure: Any = self.ax.get_figure(root=True)
            figure.set_size_inches(width, whole)
            self.ax.set_position((0.02, self.below / whole, 0.96, (height - 0.1) / whole))
        _set_limits(self.ax, self.places, self.margin)


def _texts(
    names: Sequence[str], fitted: FittedModel, labels: bool | Mapping[str, str]
) -> list[str]:
    if not isinstance(labels, Mapping):
        return [label(name) if labels else "" for name in names]
    for name in labels:
        fitted.schema.node_index(name)
    return [label(str(labels.get(name, name)), 60) for name in names]


def _set_limits(ax: Axes, places: Positions, margin: Floats) -> None:
    """Leave `margin` points beside and above the outermost nodes, so that labels stay inside.

    The shorter side is filled up to the shape of the axes, so that equal units use all of them.
    """
    points = np.array(list(places.values()) or [(0.0, 0.0)])
    box = ax.get_window_extent()
    points_wide = np.array([box.width, box.height]) * pixel_in_points(ax)
    share = np.minimum(margin / np.maximum(points_wide, 1.0), 0.3)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2.0
    reach = np.maximum(np.ptp(points, axis=0) / 2.0, 1e-9) / (1.0 - 2.0 * share)
    unit = float((reach / points_wide).max()) if np.ptp(points) > 0.0 else 1.0
    reach = unit * points_wide
    ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])


def _obstacles(
    places: Positions, edges: Sequence[Edge], scale: Scale, ax: Axes, radius: float
) -> Lines:
    """Return what labels keep clear of: lines of edges, and heads of arrows as short wide lines."""
    ends = _segments(places, edges)
    widths = [scale.width(edge.strength) / 2.0 for edge in edges]
    heads = [at for at, edge in enumerate(edges) if edge.directed]
    if heads:
        ax.apply_aspect()
        pixels = ax.transData.transform(ends[heads].reshape(-1, 2)).reshape(-1, 2, 2)
        length = np.linalg.norm(pixels[:, 1] - pixels[:, 0], axis=1) * pixel_in_points(ax)
        scales = np.array([_head_scale(edges[at], scale) for at in heads])
        share = (radius + _HEAD_LENGTH * scales) / np.maximum(length, 1e-9)
        start = ends[heads, 1] + np.minimum(share, 1.0)[:, None] * (ends[heads, 0] - ends[heads, 1])
        ends = np.concatenate([ends, np.stack([start, ends[heads, 1]], axis=1)])
        widths += list(_HEAD_WIDTH * scales)
    return Lines(ends, np.array(widths))


def _segments(places: Positions, edges: Sequence[Edge]) -> Floats:
    ends = [(places[edge.source], places[edge.target]) for edge in edges]
    return np.array(ends, dtype=np.float64).reshape(-1, 2, 2)


def _draw_edges(ax: Axes, places: Positions, edges: Sequence[Edge], scale: Scale) -> None:
    """Draw one collection per sign, heavy edges on top, and dotted lines where edges vary."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    def add(chosen: Sequence[Edge], **look: Any) -> None:
        if chosen:
            lines = LineCollection(list(_segments(places, chosen)), **look)
            ax.add_collection(lines, autolim=False)

    moderated = [edge for edge in edges if edge.moderator]
    add(
        moderated,
        linewidths=[max(1.2, 0.6 * scale.width(edge.strength)) for edge in moderated],
        colors=[INK],
        linestyles=[_MODERATED],
        zorder=2,
        label="moderated",
    )
    for sign, colour in SIGN_COLOURS.items():
        chosen = [edge for edge in reversed(edges) if edge.sign == sign and not edge.moderator]
        add(
            chosen,
            linewidths=[scale.width(edge.strength) for edge in chosen],
            colors=[to_rgba(colour, scale.opacity(edge.strength)) for edge in chosen],
            linestyles=[_DASHES[sign]],
            capstyle="round" if sign != "-" else "butt",
            zorder=1,
            label=SIGN_NAMES[sign],
        )


def _draw_heads(
    ax: Axes, places: Positions, edges: Sequence[Edge], scale: Scale, radius: float
) -> None:
    """Put an arrow head where an edge of a covariate meets the column that it predicts."""
    from matplotlib.patches import FancyArrowPatch

    for edge in edges:
        if edge.directed:
            head = FancyArrowPatch(
                places[edge.source],
                places[edge.target],
                arrowstyle=f"-|>,head_length={_HEAD_LENGTH},head_width={_HEAD_WIDTH}",
                mutation_scale=_head_scale(edge, scale),
                shrinkA=0.0,
                shrinkB=radius,
                linewidth=0.0,
                color=SIGN_COLOURS[edge.sign],
                alpha=None if scale.cut is None else scale.opacity(edge.strength),
                zorder=1.5,
            )
            ax.add_patch(head)


def _head_scale(edge: Edge, scale: Scale) -> float:
    return 9.0 + 2.6 * scale.width(edge.strength)


class _NodeClass(NamedTuple):
    """Nodes that are drawn alike except for their fill."""

    kind: Kind
    name: str
    colour: str
    columns: list[str]
    fills: list[str]


def _node_classes(fitted: FittedModel, names: Iterable[str], style: Appearance) -> list[_NodeClass]:
    """Return the kinds and roles of nodes that occur."""
    colours, shown = style.node_colours(fitted.schema), set(names)
    classes = []
    for role in ("target", "covariate"):
        for kind in KINDS.values():
            name = kind.name if role == "target" else f"{kind.name} covariate"
            colour = kind.fill if role == "target" else "white"
            columns = [
                column.name
                for column in fitted.schema.columns
                if (column.kind, column.role) == (kind.name, role) and column.name in shown
            ]
            if columns:
                fills = [colours.get(column, colour) for column in columns]
                # Where every node has the colour of its group, only the shape tells the kind.
                key = colour if colour in fills or role == "covariate" else _NO_GROUP
                classes.append(_NodeClass(kind, name, key, columns, fills))
    return classes


def _draw_nodes(ax: Axes, classes: Sequence[_NodeClass], places: Positions, size: float) -> None:
    for each in classes:
        x, y = zip(*(places[column] for column in each.columns), strict=True)
        ax.scatter(
            x,
            y,
            s=(each.kind.marker_size * size) ** 2,
            marker=each.kind.marker,
            facecolors=each.fills if len(set(each.fills)) > 1 else each.fills[0],
            edgecolor=INK,
            linewidth=float(np.clip(size / 18.0, 0.5, 1.2)),
            zorder=3,
            label=each.name,
        )


def _draw_rings(ax: Axes, places: Positions, shares: Mapping[str, float], size: float) -> None:
    """Draw a ring around each node that has a share of up to 1; below 0 it is empty.

    It is filled clockwise from the top to the share. `size` is the width of a node in points.
    """
    drawn: dict[str, Any] = {"s": (_RING_WIDTH * size) ** 2, "linewidths": 0.0}
    for name, share in shares.items():
        x, y = places[name]
        # Edges end at the ring, not in it.
        ax.scatter(x, y, marker="o", facecolor="white", zorder=2.0, **drawn)
        ax.scatter(x, y, marker=_arc(1.0), facecolor=_EMPTY, zorder=2.1, **drawn)
        if share > 0.0:
            arc = ax.scatter(
                x, y, marker=_arc(float(share)), facecolor=_RING_COLOUR, zorder=2.2, **drawn
            )
            arc.set_gid(f"ring {name}")


def _arc(share: float) -> Path:
    """Return the part of a ring from the top clockwise; its outer radius is 1.

    It always contains the point (0, 1), by which matplotlib finds the size of a marker.
    """
    from matplotlib.path import Path

    turn = 2.0 * np.pi * np.linspace(0.0, share, max(3, int(np.ceil(90 * share))))
    outer = np.column_stack([np.sin(turn), np.cos(turn)])
    points = np.vstack([outer, (_INNER / _RING_WIDTH) * outer[::-1]])
    return Path(points, closed=False)


def legend_rows(keys: Sequence[Any], in_a_row: int = _KEYS_IN_A_ROW) -> int:
    """Return how many rows the keys take; a long text takes the place of two or more."""
    wide = sum(1 + len(key.get_label()) // 16 for key in keys)
    return max(1, -(-wide // in_a_row))


def _draw_legend(ax: Axes, keys: Sequence[Any]) -> None:
    ax.legend(
        handles=list(keys),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=-(-len(keys) // legend_rows(keys)),
        frameon=False,
        fontsize=9,
        handlelength=1.8,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def legend_keys(
    models: Sequence[FittedModel], style: Appearance, *, rings: bool = False
) -> list[Any]:
    """Return what the legend of these models shows: nodes, signs that occur, widths, a ring."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def node(marker: str, size: float, label: str, **colours: Any) -> Line2D:
        look: dict[str, Any] = {"linestyle": "", "marker": marker, "markersize": 9.5 * size}
        return Line2D([], [], label=label, **look, **colours)

    fitted, edges = models[0], [edge for model in models for edge in style.edges(model)]
    names = style.names(fitted.schema)
    keys: list[Any] = [
        node(kind.marker, kind.marker_size, name, markerfacecolor=colour, markeredgecolor=INK)
        for kind, name, colour, *_ in _node_classes(fitted, names, style)
    ]
    grouped = style.group_of_columns(fitted.schema)
    seen = {grouped[name] for name in names if name in grouped}
    keys += [
        Patch(facecolor=colour, edgecolor=INK, linewidth=0.8, label=label(group))
        for group, colour in style.group_colours(fitted.schema).items()
        if group in seen
    ]
    present = {edge.sign for edge in edges if not edge.moderator}
    keys += [
        Line2D([], [], color=colour, linewidth=2.2, linestyle=_DASHES[sign], label=SIGN_NAMES[sign])
        for sign, colour in SIGN_COLOURS.items()
        if sign in present
    ]
    if any(edge.moderator for edge in edges):
        moderators = sorted({edge.moderator for edge in edges if edge.moderator})
        text = label(f"varies with {', '.join(moderators)}", 40)
        keys.append(Line2D([], [], color=INK, linewidth=1.8, linestyle=_MODERATED, label=text))
    lines = style.scale(edges).keys() if edges else []
    keys += [
        Line2D([], [], color=INK, linewidth=width, alpha=alpha, label=text, solid_capstyle="butt")
        for text, width, alpha in lines
    ]
    hidden = sum(style.n_hidden(model) for model in models)
    if hidden:
        text = f"{hidden:,} lighter {'edge' if hidden == 1 else 'edges'} not drawn"
        keys.append(Line2D([], [], linestyle="", label=text))
    if rings:
        line = {"markerfacecolor": "none", "markeredgecolor": _RING_COLOUR, "markeredgewidth": 2.2}
        keys.append(node("o", 1.0, "predicted share", **line))
    return keys
