"""A fitted model in -> a picture of its network, with a layout that can be used again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import number_of
from mixedgm.families import KINDS, Kind
from mixedgm.fit.fitted import Edge, FittedModel
from mixedgm.model.layout import Floats
from mixedgm.pictures.canvas import (
    axes,
    close,
    label,
    pixel_in_points,
    require_matplotlib,
    save_figure,
)
from mixedgm.pictures.network.appearance import Appearance
from mixedgm.pictures.network.labels import (
    AREA_PAD,
    Obstacles,
    draw_areas,
    draw_name,
    label_edges,
    name_places,
    text_halves,
)
from mixedgm.pictures.network.positions import LayoutArg, Positions, bends, positions
from mixedgm.pictures.network.sizes import (
    MOST_INSIDE,
    WIDEST,
    Room,
    Scale,
    size_text,
    text_ems,
)
from mixedgm.results.colours import SIGN_NAMES, mixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path


_WIDTHS = {"column": 3.5, "page": 7.2}
"""Inches of a column and of a page of most journals."""
_NEGATIVE = (0, (4.0, 1.6))
_UNDETERMINED = (0, (0.7, 0.9))
_MODERATED = (0, (1.0, 1.6))
_HEAD_LENGTH, _HEAD_WIDTH = 0.6, 0.32
_INNER, _RING_WIDTH = 1.22, 1.42
"""Diameters of the ring in widths of the node; corners of nodes stay inside."""
_WIDEST = 0.1
"""Width of the widest line where neighbouring nodes are 1 apart."""
_POINTS = np.linspace(0.0, 1.0, 17)[:, None]
_EDGE = 3.0
"""Points between a name and the border of the picture."""
_SIZE = "strength "
_FITS = 6
"""Times that a layout is made anew for a picture of a given width."""
_GROWTH = (1.0, 1.15, 1.3, 1.5, 1.75)
"""How much larger a picture may become until every name is clear."""


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
    layout: LayoutArg | NetworkDrawing | Sequence[Any] = "spring",
    ax: Axes | None = None,
    size: str | None = None,
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
    Lines are wider and more solid the stronger the edge. Positive edges are blue, negative ones
    vermilion. Green edges have no single sign, because an end is categorical with three or more
    levels, or a hurdle column with one sign for whether and another for how much. The data do not
    determine the size of dotted edges. Covariates are white, and arrows lead from them to what they
    predict. Dark dots on top of an edge, or in its place, mean that it varies with a moderator.
    """
    picture = draw_network(
        fitted, layout=layout, ax=ax, size=size, legend=legend, rings=rings, **options
    )
    return NetworkDrawing(picture.sheet.ax, picture.sheet.positions)


def draw_network(
    fitted: FittedModel,
    *,
    layout: Any,
    ax: Axes | None,
    size: str | None = None,
    legend: bool,
    rings: Mapping[str, float] | None = None,
    **options: Any,
) -> Picture:
    """Draw the network, and return all that was drawn."""
    require_matplotlib()
    style = Appearance.of(options, ("layout", "ax", "size", "predictability", "legend"))
    _check_size(size, ax)
    names = style.names(fitted.schema)
    edges = style.edges(fitted)
    written = style.edge_texts(edges, fitted.schema)
    style.node_colours(fitted.schema)  # what is wrong is said before anything is drawn
    rings = {name: share for name, share in (rings or {}).items() if name in names}
    texts = style.texts(names, fitted.schema)
    room = Room.of(texts, rings=bool(rings), node=style.node_size)
    places = place_nodes([fitted], layout, style, room)
    keys = legend_keys([fitted], style, rings=bool(rings)) if legend and names else []
    notes = _abbreviations(texts) if legend and style.labels == "short" else []
    around = AREA_PAD + room.font if style.areas and style.groups else 0.0
    around += 0.5 * (_RING_WIDTH - 1.0) * room.node if rings else 0.0
    sheet = _Sheet(ax, size, places, room, keys, notes, around)
    fitting = partial(Room.of, texts, rings=bool(rings), node=style.node_size, smallest=6.0)
    if size is not None and isinstance(layout, str):
        # Type keeps its size in a small picture, so that names need more room there.
        for _ in range(_FITS):
            room = Room.of(
                texts, sheet.point, rings=bool(rings), node=style.node_size, smallest=6.0
            )
            places = place_nodes([fitted], layout, style, room)
            sheet.take(places, room)
            if sheet.point > 0.98 * room.unit:
                break
    elif ax is not None or size is not None:
        room = fitting(sheet.unit)
        sheet.take(places, room)
    picture = Picture.of(sheet, fitted, edges, style, bool(rings))
    offsets, clear = picture.place_names()
    few = len(texts) <= MOST_INSIDE
    if few and not clear and size is not None and legend and style.labels is True:
        close(sheet.ax)
        options["labels"] = "short"  # names have no room in this width: the key below has them
        return draw_network(
            fitted, layout=layout, ax=None, size=size, legend=True, rings=rings, **options
        )
    picture.draw(offsets, rings, written)
    return picture


def place_nodes(
    fitted: Sequence[FittedModel], layout: Any, style: Appearance, room: Room | None = None
) -> Positions:
    """Return the places of the columns that are drawn, for any layout that `plot` takes."""
    schema = fitted[0].schema
    names = style.names(schema)
    if isinstance(layout, NetworkDrawing):
        layout = layout.positions
    elif isinstance(layout, Sequence) and not isinstance(layout, str):
        fitted = [_model_of(model) for model in layout]
        layout = "spring"
    if room is None:
        room = Room.of(style.texts(names, schema))
    groups = style.group_of_columns(schema)
    return positions(fitted, layout, names, groups=groups, room=room.boxes())


def _model_of(model: Any) -> FittedModel:
    fitted = getattr(model, "fitted_", model)
    if not isinstance(fitted, FittedModel):
        raise ParameterError.must_be("layout", "a list of fitted models", model)
    return fitted


def _check_size(size: str | None, ax: Axes | None) -> None:
    if size is not None and size not in _WIDTHS:
        raise ParameterError.must_be("size", "'column', 'page' or None", size)
    if size is not None and ax is not None:
        raise ParameterError("size is that of a new figure; leave it out, or leave ax out.")


def _abbreviations(texts: Mapping[str, str]) -> list[str]:
    return [f"{short}  {label(name, 30)}" for name, short in texts.items() if name != short]


class _Sheet:
    """Axes shaped like the layout with its margins, with inches for the legend below.

    Where the figure is our own it can grow: type and nodes keep their size, so that there is more
    room between lines.
    """

    def __init__(
        self,
        ax: Axes | None,
        size: str | None,
        places: Positions,
        room: Room,
        keys: Sequence[Any],
        notes: Sequence[str],
        around: float,
    ) -> None:
        self.around = around
        self.own, self.inches = ax is None, _WIDTHS.get(size or "")
        self.keys, self.notes = keys, notes
        self.ax = axes(ax, (6.0, 4.0))
        self.ax.set_axis_off()
        self.ax.set_aspect("equal")
        self.take(places, room)

    @property
    def can_grow(self) -> bool:
        """Whether the figure may become larger."""
        return self.own and self.inches is None

    @property
    def places(self) -> Floats:
        """(n, 2) places of the nodes."""
        return np.array(list(self.positions.values())).reshape(-1, 2)

    def take(self, places: Positions, room: Room, growth: float = 1.0) -> None:
        """Set the figure and the limits of the axes for these places."""
        self.positions, self.room = places, room
        boxes = np.array(list(room.boxes().values())).reshape(-1, 2) * room.unit
        tall = 0.0 if room.inside else 1.4 * room.font
        # Room below the nodes for their names; beside the nodes for those at the border.
        self.margin = np.array([boxes[:, 0].max(initial=0.0) / 2.0, room.node / 2.0 + tall])
        self.margin += 6.0 + self.around
        points = self.places if len(places) else np.zeros((1, 2))
        extent = np.ptp(points, axis=0)
        if self.own:
            across = room.unit * growth * extent + 2.0 * self.margin
            width = self.inches or max(float(across[0]) / 72.0, 4.5)
            self._lay_out(width, across, extent)
        self._limit(points)
        self._measure(extent)

    def _lay_out(self, width: float, across: Floats, extent: Floats) -> None:
        """Set the size of our own figure, with the legend below."""
        small = self.inches is not None and self.inches < 5.0
        self.type = 7.0 if small else 9.0
        line = 1.75 * self.type / 72.0
        self.legend, self.in_a_row = legend_columns(self.keys, 72.0 * width, self.type)
        self.notes_in_a_row = max(int(width / (1.9 * self.type / 9.0)), 1)
        rows = len(self.legend) // self.in_a_row
        note_rows = -(-len(self.notes) // self.notes_in_a_row)
        self.below = 0.08 + line * (rows + 0.4 * bool(rows) + 0.85 * note_rows)
        self.legend_inches = line * (rows + 0.4)
        if self.inches is None:
            height = float(across[1]) / 72.0
        else:
            inner = max(width - 2.0 * self.margin[0] / 72.0, 0.5)
            height = inner * extent[1] / max(extent[0], 1e-9) + 2.0 * self.margin[1] / 72.0
        height = float(np.clip(height, 1.2, 1.3 * width if self.inches else 40.0))
        figure: Any = self.ax.get_figure(root=True)
        figure.set_size_inches(width, height + self.below)
        self.ax.set_position(
            (0.0, self.below / (height + self.below), 1.0, height / (height + self.below))
        )

    def _limit(self, points: Floats) -> None:
        """Leave the margin around the outermost nodes, and fill the axes."""
        box = self.ax.get_window_extent()
        sides = np.array([box.width, box.height]) * pixel_in_points(self.ax)
        inner = np.maximum(sides - 2.0 * self.margin, 0.3 * sides)
        extent = np.ptp(points, axis=0)
        unit = float((extent / inner).max()) or 1.0 / self.room.unit
        middle = (points.max(axis=0) + points.min(axis=0)) / 2.0
        reach = unit * sides / 2.0
        self.ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
        self.ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])

    def _measure(self, extent: Floats) -> None:
        """Find how many points one unit of these places is, where nodes are about 1 apart."""
        self.ax.apply_aspect()
        ends = self.ax.transData.transform([(0.0, 0.0), (1.0, 0.0)])
        self.point = float(ends[1, 0] - ends[0, 0]) * pixel_in_points(self.ax)
        nodes = self.in_points()
        gaps = np.linalg.norm(nodes[:, None] - nodes[None], axis=2)
        np.fill_diagonal(gaps, np.inf)
        near = float(gaps.min(initial=np.inf))
        self.unit = float(np.clip(near if np.isfinite(near) else self.room.unit, 8.0, 120.0))

    def in_points(self, places: Floats | None = None) -> Floats:
        """Return places in points of the figure."""
        places = self.places if places is None else places
        if not len(places):
            return places
        return np.asarray(self.ax.transData.transform(places) * pixel_in_points(self.ax))


@dataclass
class Picture:
    """All that is drawn on a sheet."""

    sheet: _Sheet
    fitted: FittedModel
    edges: Sequence[Edge]
    style: Appearance
    scale: Scale
    reach: float
    """Diameter of a node with its ring in points."""
    lines: list[Floats]
    """Points of every edge in data coordinates."""

    @classmethod
    def of(
        cls,
        sheet: _Sheet,
        fitted: FittedModel,
        edges: Sequence[Edge],
        style: Appearance,
        rings: bool,
    ) -> Picture:
        """Lay out what is drawn on a sheet."""
        room, places = sheet.room, sheet.positions
        scale = style.scale(edges, len(places))
        scale = replace(scale, widest=float(np.clip(_WIDEST * room.unit, 2.0, WIDEST)))
        reach = room.node * (_RING_WIDTH if rings else 1.0)
        clearance = (0.5 * reach + 0.5 * scale.widest + 1.0) / sheet.point
        bent = bends(places, edges, clearance, scale.cut)
        lines = [
            _line(np.array(places[edge.source]), np.array(places[edge.target]), bend)
            for edge, bend in zip(edges, bent, strict=True)
        ]
        return cls(sheet, fitted, edges, style, scale, reach, lines)

    def place_names(self) -> tuple[dict[int, Floats], bool]:
        """Return where names stand from their nodes, and whether all are clear.

        Our own figure grows until they are. Of very many columns only names that are clear stand.
        """
        sheet, room = self.sheet, self.sheet.room
        if room.inside:
            return {at: np.zeros(2) for at, text in enumerate(room.texts.values()) if text}, True
        from matplotlib.lines import Line2D

        own = np.array([at for at, text in enumerate(room.texts.values()) if text], dtype=np.intp)
        shown = [label(text, 60) for text in room.texts.values() if text]
        halves = text_halves(sheet.ax, shown, room.font)
        found: list[tuple[int, float, Floats]] = []
        for growth in _GROWTH if sheet.can_grow else _GROWTH[:1]:
            if growth > 1.0:
                sheet.take(sheet.positions, room, growth)
            offsets, wrong = name_places(own, halves, self._obstacles())
            found.append((int(wrong.sum()), growth, offsets))
            if not wrong.any():
                break
        n_wrong, growth, offsets = min(found, key=lambda each: each[:2])
        if growth != found[-1][1]:
            sheet.take(sheet.positions, room, growth)
        if n_wrong and len(own) > MOST_INSIDE:
            own, offsets = self._clear_names(own, halves)
            if sheet.keys:
                note = f"{number_of(len(halves) - len(own), 'name')} without room"
                sheet.keys = [*sheet.keys, Line2D([], [], linestyle="", label=note)]
                sheet.take(sheet.positions, room, growth)
        return dict(zip(own.tolist(), offsets, strict=True)), n_wrong == 0

    def _clear_names(
        self, own: NDArray[np.intp], halves: Floats
    ) -> tuple[NDArray[np.intp], Floats]:
        """Return the nodes whose names have room, and where these stand.

        Names of columns with weak edges are left out first.
        """
        weight = dict.fromkeys(self.sheet.positions, 0.0)
        for edge in self.edges:
            weight[edge.source] += edge.strength
            weight[edge.target] += edge.strength
        order = np.argsort(-np.array(list(weight.values()))[own], kind="stable")
        own, halves = own[order], halves[order]
        while True:
            offsets, wrong = name_places(own, halves, self._obstacles())
            if not wrong.any():
                return own, offsets
            weaker = np.flatnonzero(wrong)[3 * wrong.sum() // 4 :]
            own, halves = np.delete(own, weaker), np.delete(halves, weaker, axis=0)

    def _obstacles(self) -> Obstacles:
        sheet, sizes = self.sheet, [edge.strength for edge in self.edges]
        pieces = [
            np.stack([line[:-1:4], line[4::4]], axis=1) if len(line) > 2 else line[None]
            for line in self.lines
        ]
        counts = [len(piece) for piece in pieces]
        ends = np.concatenate(pieces) if pieces else np.zeros((0, 2, 2))
        widths = np.repeat([self.scale.width(size) / 2.0 for size in sizes], counts)
        solid = np.repeat([self.scale.opacity(size) for size in sizes], counts)
        frame = np.array(sheet.ax.get_window_extent().extents).reshape(2, 2)
        return Obstacles(
            sheet.in_points(),
            self.reach / 2.0,
            sheet.in_points(ends.reshape(-1, 2)).reshape(-1, 2, 2),
            widths,
            solid,
            frame * pixel_in_points(sheet.ax) + [[_EDGE], [-_EDGE]],
        )

    def draw(
        self,
        offsets: Mapping[int, Floats],
        rings: Mapping[str, float],
        written: Mapping[tuple[str, str], str],
    ) -> None:
        """Draw areas, lines, nodes, names and the legend."""
        sheet, room, theme = self.sheet, self.sheet.room, self.style.colours
        ax, node = sheet.ax, room.node
        if sheet.own:
            ax.get_figure(root=True).set_facecolor(theme.surface)  # type: ignore[union-attr]
        self._draw_edges()
        self._draw_heads()
        _draw_rings(ax, sheet.positions, rings, node, self.style)
        _draw_nodes(
            ax,
            _node_classes(self.fitted, sheet.positions, self.style),
            sheet.positions,
            node,
            self.style,
        )
        names, texts = [], list(room.texts.values())
        lonely = _lonely(sheet.positions, self.fitted)
        for at, offset in offsets.items():
            halo = None if room.inside else theme.surface
            names.append(
                draw_name(
                    ax,
                    label(texts[at], 60),
                    sheet.places[at],
                    offset,
                    room.font,
                    ink=theme.muted if at in lonely and not room.inside else theme.ink,
                    halo=halo,
                )
            )
        pairs = [(edge.source, edge.target) for edge in self.edges]
        label_edges(
            ax,
            {pairs.index(pair): text for pair, text in written.items()},
            self.lines,
            sheet.places,
            self.reach / 2.0,
            names,
            size=0.85 * room.font,
            ink=theme.ink,
            surface=theme.surface,
        )
        grouped = self.style.group_of_columns(self.fitted.schema)
        if grouped and self.style.areas:
            members = {
                group: [at for at, name in enumerate(sheet.positions) if grouped.get(name) == group]
                for group in dict.fromkeys(grouped.values())
            }
            colours = self.style.group_colours(self.fitted.schema)
            draw_areas(ax, sheet.places, members, colours, theme, self.reach, room.font, names)
        if sheet.keys:
            self._draw_legend()

    def _draw_edges(self) -> None:
        """Draw all edges, strong ones on top, and dark dots where edges vary."""
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgba

        theme, sizes = self.style.colours, [edge.strength for edge in self.edges]
        dashed = self.style.dashed(len(self.edges))
        plain = [at for at, edge in enumerate(self.edges) if not edge.moderator][::-1]
        if plain:
            lines = LineCollection(
                [self.lines[at] for at in plain],
                linewidths=[self.scale.width(sizes[at]) for at in plain],
                colors=[
                    to_rgba(theme.sign(self.edges[at].sign), self.scale.opacity(sizes[at]))
                    for at in plain
                ],
                linestyles=[_dashes(self.edges[at], dashed) for at in plain],
                capstyle="butt",
                zorder=1,
                gid="edges",
            )
            self.sheet.ax.add_collection(lines, autolim=False)
        varying = [at for at, edge in enumerate(self.edges) if edge.moderator]
        if varying:
            dots = LineCollection(
                [self.lines[at] for at in varying],
                linewidths=[max(1.2, 0.6 * self.scale.width(sizes[at])) for at in varying],
                colors=[theme.ink],
                linestyles=[_MODERATED],
                zorder=2,
                gid="moderated",
                label="moderated",
            )
            self.sheet.ax.add_collection(dots, autolim=False)

    def _draw_heads(self) -> None:
        """Put an arrow head where an edge of a covariate meets the column that it predicts."""
        from matplotlib.patches import FancyArrowPatch

        for edge, line in zip(self.edges, self.lines, strict=True):
            if edge.directed:
                size = edge.strength
                head = FancyArrowPatch(
                    tuple(_towards(line)),
                    tuple(line[-1]),
                    arrowstyle=f"-|>,head_length={_HEAD_LENGTH},head_width={_HEAD_WIDTH}",
                    mutation_scale=8.0 + 2.4 * self.scale.width(size),
                    shrinkA=0.0,
                    shrinkB=self.reach / 2.0,
                    linewidth=0.0,
                    color=self.style.colours.sign(edge.sign),
                    alpha=max(self.scale.opacity(size), 0.5),
                    zorder=1.5,
                )
                self.sheet.ax.add_patch(head)

    def _draw_legend(self) -> None:
        sheet, theme = self.sheet, self.style.colours
        if not sheet.own:
            sheet.type = 8.0
            wide = sheet.ax.get_window_extent().width * pixel_in_points(sheet.ax)
            sheet.legend, sheet.in_a_row = legend_columns(sheet.keys, wide, sheet.type)
        show_widths(sheet.keys, self.scale)
        legend = sheet.ax.legend(
            handles=sheet.legend,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=sheet.in_a_row,
            frameon=False,
            fontsize=sheet.type,
            labelcolor=theme.ink,
            handlelength=1.8,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
        legend.set_zorder(5)
        if sheet.notes and sheet.own:
            self._draw_notes()

    def _draw_notes(self) -> None:
        """Write the key of abbreviations below the legend, in columns."""
        sheet = self.sheet
        figure: Any = sheet.ax.get_figure(root=True)
        wide, tall = figure.get_size_inches()
        down = -(-len(sheet.notes) // sheet.notes_in_a_row)
        for at, text in enumerate(sheet.notes):
            column, row = divmod(at, down)
            y = sheet.below - sheet.legend_inches - 0.85 * row * 1.75 * sheet.type / 72.0
            figure.text(
                (0.12 + column * (wide - 0.2) / sheet.notes_in_a_row) / wide,
                y / tall,
                text,
                fontsize=0.88 * sheet.type,
                color=self.style.colours.ink,
                va="top",
                gid="abbreviation",
            )


def _lonely(names: Iterable[str], fitted: FittedModel) -> set[int]:
    """Return the columns without any edge to another that is drawn, by position."""
    shown = set(names)
    ends = {
        name
        for edge in fitted.edges
        if edge.source in shown and edge.target in shown
        for name in (edge.source, edge.target)
    }
    return {at for at, name in enumerate(names) if name not in ends}


def _line(start: Floats, end: Floats, bend: float) -> Floats:
    """Return points from one node to the other: two, or more along a bend."""
    if bend == 0.0:
        return np.array([start, end])
    step = end - start
    normal = np.array([-step[1], step[0]])
    return np.asarray(start + _POINTS * step + 4.0 * _POINTS * (1.0 - _POINTS) * bend * normal)


def _towards(line: Floats) -> Floats:
    """Return a point from which the last piece of a line is seen in its own direction."""
    return np.asarray(line[0] if len(line) == 2 else line[-1] + 6.0 * (line[-2] - line[-1]))


def _dashes(edge: Edge, dashed: bool) -> Any:
    if edge.ridge:
        return _UNDETERMINED
    return _NEGATIVE if dashed and edge.sign == "-" else "solid"


class _NodeClass(NamedTuple):
    """Nodes that are drawn alike except for their fill."""

    kind: Kind
    name: str
    colour: str
    columns: list[str]
    fills: list[str]


def _node_classes(fitted: FittedModel, names: Iterable[str], style: Appearance) -> list[_NodeClass]:
    """Return the kinds and roles of nodes that occur."""
    colours, shown, theme = style.node_colours(fitted.schema), set(names), style.colours
    classes = []
    for role in ("target", "covariate"):
        for kind in KINDS.values():
            name = kind.name if role == "target" else f"{kind.name} covariate"
            colour = theme.fill(kind) if role == "target" else theme.surface
            columns = [
                column.name
                for column in fitted.schema.columns
                if (column.kind, column.role) == (kind.name, role) and column.name in shown
            ]
            if columns:
                fills = [
                    theme.group(colours[column]) if column in colours else colour
                    for column in columns
                ]
                # Where every node has the colour of its group, only the shape tells the kind.
                key = colour if colour in fills or role == "covariate" else theme.surface
                classes.append(_NodeClass(kind, name, key, columns, fills))
    return classes


def _draw_nodes(
    ax: Axes, classes: Sequence[_NodeClass], places: Positions, size: float, style: Appearance
) -> None:
    theme = style.colours
    for each in classes:
        x, y = zip(*(places[column] for column in each.columns), strict=True)
        ax.scatter(
            x,
            y,
            s=(each.kind.marker_size * size) ** 2,
            marker=each.kind.marker,
            facecolors=each.fills if len(set(each.fills)) > 1 else each.fills[0],
            edgecolor=theme.outline(each.kind)
            if each.colour in each.fills
            else [mixed(fill[:7], theme.ink, 0.6) for fill in each.fills],
            linewidth=float(np.clip(size / 24.0, 0.6, 1.4)),
            zorder=3,
            label=each.name,
        )


def _draw_rings(
    ax: Axes, places: Positions, shares: Mapping[str, float], size: float, style: Appearance
) -> None:
    """Draw a ring around each node that has a share of up to 1; below 0 it is empty.

    It is filled clockwise from the top to the share. `size` is the width of a node in points.
    """
    theme = style.colours
    drawn: dict[str, Any] = {"s": (_RING_WIDTH * size) ** 2, "linewidths": 0.0}
    for name, share in shares.items():
        x, y = places[name]
        # Edges end at the ring, not in it.
        ax.scatter(x, y, marker="o", facecolor=theme.surface, zorder=2.0, **drawn)
        ax.scatter(x, y, marker=_arc(1.0), facecolor=theme.track, zorder=2.1, **drawn)
        if share > 0.0:
            arc = ax.scatter(
                x, y, marker=_arc(float(share)), facecolor=theme.ring, zorder=2.2, **drawn
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


def legend_columns(keys: Sequence[Any], width: float, size: float) -> tuple[list[Any], int]:
    """Return keys for a legend, and how many columns of them fit into a width, both in points.

    Keys go down first. Empty ones fill columns up, so that strengths stand in one column or row.
    """
    from matplotlib.lines import Line2D

    strengths = [at for at, key in enumerate(keys) if key.get_label().startswith(_SIZE)]
    columns: list[list[Any]] = []
    for rows in [1, *range(max(2, len(strengths)), len(keys) + 1)]:
        columns = [[]]
        for at, key in enumerate(keys):
            together = min(len(strengths), rows) if strengths[:1] == [at] else 1
            if len(columns[-1]) + together > rows:
                columns.append([])
            columns[-1].append(key)
        wide = [
            max([size * (4.0 + text_ems(k.get_label())) for k in part], default=0.0)
            for part in columns
        ]
        if sum(wide) <= width:
            break
    tall = max(map(len, columns))
    empty = [Line2D([], [], linestyle="", label="") for _ in range(tall)]
    return [key for part in columns for key in [*part, *empty][:tall]], len(columns)


def legend_keys(
    models: Sequence[FittedModel], style: Appearance, *, rings: bool = False
) -> list[Any]:
    """Return what the legend of these models shows: nodes, signs that occur, widths, a ring."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def node(marker: str, size: float, label: str, **colours: Any) -> Line2D:
        look: dict[str, Any] = {"linestyle": "", "marker": marker, "markersize": 9.0 * size}
        return Line2D([], [], label=label, **look, **colours)

    fitted, theme = models[0], style.colours
    edges = [edge for model in models for edge in style.edges(model)]
    names = style.names(fitted.schema)
    keys: list[Any] = [
        node(kind.marker, kind.marker_size, name, markerfacecolor=colour, markeredgecolor=theme.ink)
        for kind, name, colour, *_ in _node_classes(fitted, names, style)
    ]
    grouped = style.group_of_columns(fitted.schema)
    seen = {grouped[name] for name in names if name in grouped}
    keys += [
        Patch(facecolor=theme.group(colour), edgecolor=theme.ink, linewidth=0.6, label=label(group))
        for group, colour in style.group_colours(fitted.schema).items()
        if group in seen
    ]
    plain = [edge for edge in edges if not edge.moderator]
    dashed = style.dashed(max((len(style.edges(model)) for model in models), default=0))
    keys += [
        Line2D(
            [],
            [],
            color=theme.sign(sign),
            linewidth=2.2,
            linestyle=_NEGATIVE if dashed and sign == "-" else "solid",
            label=SIGN_NAMES[sign],
        )
        for sign in SIGN_NAMES
        if sign in {edge.sign for edge in plain}
    ]
    if any(edge.ridge for edge in plain):
        text = "size not determined"
        keys.append(
            Line2D([], [], color=theme.ink, linewidth=2.2, linestyle=_UNDETERMINED, label=text)
        )
    moderators = sorted({edge.moderator for edge in edges if edge.moderator})
    if moderators:
        text = label(f"varies with {', '.join(moderators)}", 40)
        keys.append(
            Line2D([], [], color=theme.ink, linewidth=1.8, linestyle=_MODERATED, label=text)
        )
    if edges:
        keys += _width_keys(edges, style.scale(edges, len(names)), style)
    hidden = sum(style.n_hidden(model) for model in models)
    if hidden:
        text = f"{hidden:,} weaker {'edge' if hidden == 1 else 'edges'} not drawn"
        keys.append(Line2D([], [], linestyle="", label=text))
    if rings:
        line = {"markerfacecolor": "none", "markeredgecolor": theme.ring, "markeredgewidth": 2.2}
        keys.append(node("o", 1.0, "predicted share", **line))
    return keys


def show_widths(keys: Sequence[Any], scale: Scale) -> None:
    """Give the lines of a legend the widths that lines of their strengths have in the picture."""
    for key in keys:
        name = key.get_gid() or ""
        if name.startswith(_SIZE):
            key.set_linewidth(scale.width(float(name.removeprefix(_SIZE))))


def _width_keys(edges: Sequence[Edge], scale: Scale, style: Appearance) -> list[Any]:
    """Return up to three widths, and how many edges recede."""
    from matplotlib.lines import Line2D

    ink, sizes = style.colours.ink, [edge.strength for edge in edges]
    keys = [
        Line2D(
            [],
            [],
            color=ink,
            linewidth=scale.width(size),
            alpha=scale.opacity(size),
            label=f"strength {size_text(size)}",
            solid_capstyle="butt",
            gid=f"{_SIZE}{size}",
        )
        for size in scale.keys(sizes)
    ]
    faint = sum(scale.recedes(size) for size in sizes)
    if faint and scale.cut is not None:
        usual = 0.8 * scale.cut
        text = f"{faint:,} edge{'s' * (faint != 1)} below {size_text(scale.cut)}"
        line = Line2D([], [], color=ink, label=text, linewidth=scale.width(usual))
        line.set(alpha=scale.opacity(usual), gid=f"{_SIZE}{usual}")
        keys.append(line)
    return keys
