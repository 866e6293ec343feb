"""A fitted model in -> a picture of its network, with a layout that can be used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import Edge, FittedModel
from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes, label, pixel_in_points
from mixedgm.views.colours import NODE_COLOURS, SIGN_COLOURS, SIGN_NAMES
from mixedgm.views.labels import label_nodes
from mixedgm.views.positions import LayoutArg, Positions, positions
from mixedgm.views.rings import RING_COLOUR, RING_WIDTH, draw_rings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NetworkDrawing", "legend_keys", "plot_network"]

_MARKERS = {"continuous": "o", "categorical": "s"}
_DASHES: dict[str | None, Any] = {"+": "solid", "-": (0, (4.0, 1.6)), None: "solid"}
_MODERATED = (0, (1.0, 1.6))
_THINNEST, _WIDEST = 0.5, 5.0
_KEYS_IN_A_ROW = 6


class NetworkDrawing(NamedTuple):
    """The axes of a drawn network, and where its nodes are.

    `positions` can be the `layout` of another picture, and so can the drawing itself.
    """

    ax: Axes
    positions: Positions

    def __repr__(self) -> str:
        return f"NetworkDrawing({len(self.positions)} nodes)"


def plot_network(
    fitted: FittedModel,
    *,
    layout: LayoutArg | NetworkDrawing = "spring",
    ax: Axes | None = None,
    labels: bool | Mapping[str, str] = True,
    max_edges: int | None = None,
    node_size: float | None = None,
    legend: bool = True,
    rings: Mapping[str, float] | None = None,
    heaviest: float | None = None,
) -> NetworkDrawing:
    """Draw the network: circles are continuous columns, squares categorical ones.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    layout : {"spring", "circle", "kamada-kawai"}, mapping of name to (x, y), or NetworkDrawing
        Where the nodes are. Give the positions of an earlier drawing to compare two models.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    labels : bool or mapping of name to text
        Whether to write the names, or what to write instead; names not in the mapping stay.
    max_edges : int, optional
        Draw this many of the heaviest edges only.
    node_size : float, optional
        Width of a node in points; by default it shrinks with the number of nodes.
    legend : bool
        Whether to explain shapes, colours and widths below the picture.
    rings : mapping of name to float, optional
        A ring around each of these nodes, filled to the share that is given; below 0 it is empty.
    heaviest : float, optional
        Weight of the widest line, the same for pictures that are to be compared; by default that of
        the heaviest edge.

    Returns
    -------
    NetworkDrawing
        `ax` and `positions`.

    Notes
    -----
    Width is the edge's weight. Positive edges are blue, negative ones vermilion and dashed; grey
    edges have no sign, because an end has three or more levels. Covariates are white, and arrows
    lead from them to what they predict. A dotted line on top of an edge, or in its place, tells
    that the edge varies with a moderator; its width is the weight of that.
    """
    edges = _drawn(fitted, max_edges)
    if heaviest is None:
        heaviest = max((edge.weight for edge in edges), default=1.0)
    elif not heaviest > 0.0:
        raise ParameterError.must_be("heaviest", "a number in (0, inf)", heaviest)
    if isinstance(layout, NetworkDrawing):
        layout = layout.positions
    places = positions(fitted, layout)
    count = max(len(places), 1)
    if node_size is None:
        node_size = float(np.clip(75.0 / np.sqrt(count), 8.0, 22.0)) * (0.75 if rings else 1.0)
    elif not node_size > 0.0:
        raise ParameterError.must_be("node_size", "a number in (0, inf)", node_size)
    reach = node_size * RING_WIDTH if rings else node_size
    texts = _texts(fitted, labels)
    size = float(np.clip(32.0 / count**0.37, 6.0, 11.0))
    widest = max(map(len, texts), default=0) * 0.5 * size
    margin = np.array([widest + reach, 2.0 * size + reach])
    below = (0.6 if rings else 0.5) if legend else 0.1
    ax = _network_axes(ax, places, margin, below)
    ax.set_axis_off()
    ax.set_aspect("equal")
    _set_limits(ax, places, margin)
    _draw_edges(ax, places, edges, heaviest)
    _draw_heads(ax, places, edges, heaviest, reach / 2.0)
    draw_rings(ax, places, rings or {}, node_size)
    _draw_nodes(ax, fitted, places, node_size)
    points = np.array(list(places.values())).reshape(-1, 2)
    label_nodes(ax, points, texts, reach / 2.0, _segments(places, edges), size)
    if legend and places:
        keys = legend_keys(fitted, edges, heaviest, rings=bool(rings))
        _draw_legend(ax, keys)
    return NetworkDrawing(ax, places)


def _network_axes(ax: Axes | None, places: Positions, margin: Floats, below: float) -> Axes:
    """Return axes shaped like the layout with its margins, with inches for the legend below."""
    if ax is not None:
        return axes(ax, (1.0, 1.0))
    width = float(np.clip(5.0 + 0.55 * np.sqrt(len(places)), 6.0, 12.0))
    extent = np.ptp(np.array(list(places.values()) or [(0.0, 0.0)]), axis=0)
    shape = float(extent[1] / extent[0]) if extent[0] > 0.0 else 1.0
    across, above = 2.0 * margin / 72.0
    height = float(np.clip(max(width - across, 1.0) * shape + above, 1.5, 0.95 * width))
    ax = axes(None, (width, height + below))
    ax.set_position((0.02, below / (height + below), 0.96, (height - 0.1) / (height + below)))
    return ax


def _drawn(fitted: FittedModel, max_edges: int | None) -> tuple[Edge, ...]:
    if max_edges is None:
        return fitted.edges
    if isinstance(max_edges, bool) or not isinstance(max_edges, int) or max_edges < 0:
        raise ParameterError.must_be("max_edges", "an integer of at least 0, or None", max_edges)
    return fitted.edges[:max_edges]


def _texts(fitted: FittedModel, labels: bool | Mapping[str, str]) -> list[str]:
    names = fitted.schema.names
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


def _segments(places: Positions, edges: Sequence[Edge]) -> Floats:
    ends = [(places[edge.source], places[edge.target]) for edge in edges]
    return np.array(ends, dtype=np.float64).reshape(-1, 2, 2)


def _line_width(weight: float, heaviest: float) -> float:
    return _THINNEST + (_WIDEST - _THINNEST) * weight / heaviest


def _draw_edges(ax: Axes, places: Positions, edges: Sequence[Edge], heaviest: float) -> None:
    """Draw one collection per sign, labelled by it; heavy edges on top of light ones."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    _draw_deviations(ax, places, [edge for edge in edges if edge.moderator], heaviest)
    for sign, colour in SIGN_COLOURS.items():
        chosen = [edge for edge in reversed(edges) if edge.sign == sign and not edge.moderator]
        if not chosen:
            continue
        shares = [edge.weight / heaviest for edge in chosen]
        lines = LineCollection(
            list(_segments(places, chosen)),
            linewidths=[_line_width(edge.weight, heaviest) for edge in chosen],
            colors=[to_rgba(colour, 0.55 + 0.4 * share) for share in shares],
            linestyles=[_DASHES[sign]],
            capstyle="round" if sign != "-" else "butt",
            zorder=1,
            label=SIGN_NAMES[sign],
        )
        ax.add_collection(lines, autolim=False)


def _draw_deviations(ax: Axes, places: Positions, edges: Sequence[Edge], heaviest: float) -> None:
    """Draw a dotted line for every edge that varies, on top of the edge itself."""
    from matplotlib.collections import LineCollection

    if not edges:
        return
    lines = LineCollection(
        list(_segments(places, edges)),
        linewidths=[max(1.2, 0.6 * _line_width(edge.weight, heaviest)) for edge in edges],
        colors=[INK],
        linestyles=[_MODERATED],
        zorder=2,
        label="moderated",
    )
    ax.add_collection(lines, autolim=False)


def _draw_heads(
    ax: Axes, places: Positions, edges: Sequence[Edge], heaviest: float, radius: float
) -> None:
    """Put an arrow head where an edge of a covariate meets the column that it predicts."""
    from matplotlib.patches import FancyArrowPatch

    for edge in edges:
        if edge.directed:
            head = FancyArrowPatch(
                places[edge.source],
                places[edge.target],
                arrowstyle="-|>,head_length=0.6,head_width=0.32",
                mutation_scale=9.0 + 2.6 * _line_width(edge.weight, heaviest),
                shrinkA=0.0,
                shrinkB=radius,
                linewidth=0.0,
                color=SIGN_COLOURS[edge.sign],
                zorder=1.5,
            )
            ax.add_patch(head)


def _draw_nodes(ax: Axes, fitted: FittedModel, places: Positions, size: float) -> None:
    for marker, name, colour, columns in _node_classes(fitted):
        x, y = zip(*(places[column] for column in columns), strict=True)
        # A square of the same width looks larger than a circle.
        ax.scatter(
            x,
            y,
            s=(size if marker == "o" else 0.9 * size) ** 2,
            marker=marker,
            facecolor=colour,
            edgecolor=INK,
            linewidth=float(np.clip(size / 18.0, 0.5, 1.2)),
            zorder=3,
            label=name,
        )


def _node_classes(fitted: FittedModel) -> list[tuple[str, str, str, list[str]]]:
    """Return marker, name, colour and columns of every class of nodes that there is."""
    found = []
    for role in ("target", "covariate"):
        for kind, marker in _MARKERS.items():
            columns = [c.name for c in fitted.schema.columns if (c.kind, c.role) == (kind, role)]
            name = kind if role == "target" else f"{kind} covariate"
            colour = NODE_COLOURS[kind] if role == "target" else "white"
            if columns:
                found.append((marker, name, colour, columns))
    return found


def _draw_legend(ax: Axes, keys: Sequence[Any]) -> None:
    # A long text takes the place of two.
    wide = sum(2 if len(key.get_label()) > 15 else 1 for key in keys)
    ax.legend(
        handles=list(keys),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=len(keys) if wide <= _KEYS_IN_A_ROW else -(-len(keys) // 2),
        frameon=False,
        fontsize=9,
        handlelength=1.8,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def legend_keys(
    fitted: FittedModel, edges: Sequence[Edge], heaviest: float, *, rings: bool = False
) -> list[Any]:
    """Return what the legend shows: kinds of columns, signs that occur, a width, a ring."""
    from matplotlib.lines import Line2D

    def node(marker: str, label: str, **colours: Any) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, markersize=9, label=label, **colours)

    keys = [
        node(marker, name, markerfacecolor=colour, markeredgecolor=INK)
        for marker, name, colour, _ in _node_classes(fitted)
    ]
    present = {edge.sign for edge in edges if not edge.moderator}
    keys += [
        Line2D([], [], color=colour, linewidth=2.2, linestyle=_DASHES[sign], label=SIGN_NAMES[sign])
        for sign, colour in SIGN_COLOURS.items()
        if sign in present
    ]
    if any(edge.moderator for edge in edges):
        names = sorted({edge.moderator for edge in edges if edge.moderator})
        text = label(f"varies with {', '.join(names)}", 40)
        keys.append(Line2D([], [], color=INK, linewidth=1.8, linestyle=_MODERATED, label=text))
    if edges:
        text = f"weight {heaviest:.2g}"
        keys.append(Line2D([], [], color=INK, linewidth=_WIDEST, label=text, solid_capstyle="butt"))
    if rings:
        line = {"markerfacecolor": "none", "markeredgecolor": RING_COLOUR, "markeredgewidth": 2.2}
        keys.append(node("o", "predicted share", **line))
    return keys
