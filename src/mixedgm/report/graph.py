"""Material in -> nodes and edges of the live graph as plain values."""

from __future__ import annotations

from mixedgm.families import KINDS
from mixedgm.fit.fitted import Edge
from mixedgm.pictures.network.appearance import Appearance
from mixedgm.pictures.network.positions import Positions, bends, positions
from mixedgm.pictures.network.sizes import Room
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, number, shown
from mixedgm.studies.edges.descriptions import describe

_SHAPES = {"o": "circle", "s": "square", "D": "diamond", "h": "hexagon", "p": "pentagon"}
_MOST_SAID = 300
"""Edges of a report that are put in words, and characters of each."""
_LONGEST = 400
_MEASURES = {"r2": "R²", "normalised_accuracy": "normalised accuracy"}


def graph_content(material: Material) -> Json:
    """Return the columns with their places, the edges, and what widths mean."""
    fitted, style = material.fitted, Appearance(groups=material.groups)
    names = fitted.schema.names
    room = Room.of(style.texts(names, fitted.schema), rings=bool(material.shares))
    places = positions(fitted, room=room.boxes())
    sizes = [edge.strength for edge in fitted.edges]
    scale = style.scale(fitted.edges, len(names))
    clearance = 0.5 * room.node / room.unit + 0.1
    bent = bends(places, fitted.edges, clearance, scale.cut)
    return {
        "nodes": _nodes(material, places, style),
        "groups": [
            {"name": shown(name), "colour": colour}
            for name, colour in style.group_colours(fitted.schema).items()
        ],
        "kinds": _kinds(material),
        "edges": [
            {**edge_content(material, edge), **({"bend": number(bend)} if bend else {})}
            for edge, bend in zip(fitted.edges, bent.tolist(), strict=True)
        ],
        "scale": {
            **{name: number(value) for name, value in scale.look().items()},
            "keys": scale.keys(sizes),
        },
        "refitted": fitted.report.refitted,
    }


def _nodes(material: Material, places: Positions, style: Appearance) -> list[Json]:
    fitted = material.fitted
    group_of = style.group_of_columns(fitted.schema)
    order = {group: at for at, group in enumerate(style.group_colours(fitted.schema))}
    predicted = {node.column: node for node in material.predictability}
    found: list[Json] = []
    for column in fitted.schema.columns:
        x, y = places[column.name]
        measures = predicted.get(column.name)
        found.append(
            {
                "name": shown(column.name),
                "kind": column.kind,
                "role": column.role,
                "x": number(x),
                "y": number(-y),
                "values": column.n_values if column.is_discrete else 0,
                "transformed": column.transform is not None,
                "group": order[group_of[column.name]] if column.name in group_of else -1,
                "ring": number(material.shares.get(column.name)),
                "measures": {}
                if measures is None
                else {
                    name: number(getattr(measures, name))
                    for name in measures._fields[2:]
                    if number(getattr(measures, name)) is not None
                },
            }
        )
    return found


def _kinds(material: Material) -> list[Json]:
    """Return the kinds that occur, with what tells them apart."""
    present = {column.kind for column in material.fitted.schema.columns}
    return [
        {
            "name": name,
            "shape": _SHAPES[kind.marker],
            "size": kind.marker_size,
            "fill": kind.fill,
            "line": kind.line,
            "measure": _MEASURES[kind.measure],
        }
        for name, kind in KINDS.items()
        if name in present
    ]


def edge_content(material: Material, edge: Edge) -> dict[str, Json]:
    """Return an edge, or how one varies with a moderator; what it does not have is left out."""
    fitted, place = material.fitted, material.place
    content: dict[str, Json] = {
        "a": place[edge.source],
        "b": place[edge.target],
        "strength": number(edge.strength),
        "norm": number(edge.norm),
        "sign": edge.sign or "",
    }
    if edge.moderator is None and len(fitted.edges) <= _MOST_SAID:
        content["says"] = shown(describe(fitted, edge.source, edge.target), _LONGEST)
    if edge.partial_correlation is not None:
        content["partial"] = number(edge.partial_correlation)
    if edge.directed:
        content["directed"] = True
    if edge.moderator is not None:
        content["moderator"] = place[edge.moderator]
    if edge.ridge:
        content["ridge"] = True
    if fitted.edge_probability is not None:
        content["probability"] = number(fitted.probability_of(edge))
    if fitted.selection_frequency is not None:
        content["frequency"] = number(fitted.frequency_of(edge))
    return content
