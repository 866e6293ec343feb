"""Options of a picture of a network in -> Appearance, checked: what is drawn, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Self

from mixedgm.base.errors import ParameterError, near_matches
from mixedgm.base.parameters import is_integer
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import Edge, FittedModel
from mixedgm.pictures.canvas import check_options
from mixedgm.pictures.network.sizes import Scale, abbreviated, automatic_cut, shown_name, size_text
from mixedgm.results.colours import GROUP_COLOURS, THEMES, Theme
from mixedgm.table.schema import Schema

_MINUS = "\N{MINUS SIGN}"
_MOST_DASHED = 40
"""Edges up to which negative ones are dashed; among more, dashes only add noise."""

EdgeLabels = bool | Mapping[tuple[str, str], str] | Callable[[str, str], str | None]


@dataclass(frozen=True)
class Appearance:
    """What pictures of networks have in common: the options of `MixedGraphicalModel.plot`."""

    columns: Sequence[str] | None = None
    labels: bool | str | Mapping[str, str] = True
    edge_labels: EdgeLabels = False
    max_edges: int | None = None
    minimum: float = 0.0
    maximum: float | None = None
    cut: float | None = None
    groups: Mapping[Any, Any] | None = None
    colors: Mapping[Any, Any] | Sequence[Any] | None = None
    node_size: float | None = None
    areas: bool = True
    dashes: bool | None = None
    theme: str = "light"

    @classmethod
    def of(cls, options: Mapping[str, Any], others: Sequence[str] = (), name: str = "plot") -> Self:
        """Check the names and values of options; `others` are further ones that the picture has."""
        known = [field.name for field in fields(cls)]
        check_options(name, options, [*others, *known])
        made = cls(**options)
        made._check()
        return made

    def _check(self) -> None:
        most = self.max_edges
        if most is not None and not is_integer(most, 0):
            raise ParameterError.must_be("max_edges", "an integer of at least 0, or None", most)
        for name in ("minimum", "cut"):
            value = getattr(self, name)
            if value is not None and not (_number(value) and 0.0 <= value <= 1.0):
                raise ParameterError.must_be(name, "a number in [0, 1]", value)
        if self.maximum is not None and not (_number(self.maximum) and 0.0 < self.maximum <= 1.0):
            raise ParameterError.must_be("maximum", "a number in (0, 1]", self.maximum)
        if self.node_size is not None and not (_number(self.node_size) and self.node_size > 0.0):
            raise ParameterError.must_be("node_size", "a number in (0, inf)", self.node_size)
        if self.theme not in THEMES:
            raise ParameterError.must_be("theme", "'light' or 'dark'", self.theme)
        if isinstance(self.labels, str) and self.labels != "short":
            wanted = "True, False, 'short' or a mapping of column to text"
            raise ParameterError.must_be("labels", wanted, self.labels)
        bounds = [(n, getattr(self, n)) for n in ("minimum", "cut", "maximum")]
        stated = [(name, value) for name, value in bounds if value]
        for (low, small), (high, large) in zip(stated, stated[1:], strict=False):
            if small > large:
                raise ParameterError(
                    f"{low} must not exceed {high}. Got {quoted(small)} and {quoted(large)}."
                )

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that are drawn, in the table's order."""
        if self.columns is None:
            return schema.names
        if isinstance(self.columns, str):
            raise ParameterError.must_be("columns", "a list of column names", self.columns)
        wanted = set(known_columns("columns", self.columns, schema.names))
        return tuple(name for name in schema.names if name in wanted)

    def edges(self, fitted: FittedModel) -> tuple[Edge, ...]:
        """Return the edges that are drawn, strongest first."""
        edges = fitted.edges
        if self.columns is not None or self.minimum > 0.0:
            names = set(self.names(fitted.schema))
            edges = tuple(
                edge
                for edge in edges
                if edge.strength >= self.minimum and edge.source in names and edge.target in names
            )
        return edges[: self.max_edges]

    def n_hidden(self, fitted: FittedModel) -> int:
        """Return how many edges between the columns are too weak to be drawn."""
        every = replace(self, max_edges=None, minimum=0.0)
        return len(every.edges(fitted)) - len(self.edges(fitted))

    @property
    def colours(self) -> Theme:
        """The colours of the theme."""
        return THEMES[self.theme]

    def dashed(self, n_edges: int) -> bool:
        """Return whether negative edges are dashed in a picture of so many edges."""
        return n_edges <= _MOST_DASHED if self.dashes is None else self.dashes

    def scale(self, edges: Sequence[Edge], n_columns: int) -> Scale:
        """Return what the widths of these edges mean in a picture of so many columns."""
        sizes = [edge.strength for edge in edges]
        cut = automatic_cut(sizes, n_columns) if self.cut is None else self.cut or None
        largest = max(sizes, default=1.0) if self.maximum is None else float(self.maximum)
        return Scale(max(largest, cut or 0.0), cut)

    def texts(self, names: Sequence[str], schema: Schema) -> dict[str, str]:
        """Return what is written at every column; nothing without labels."""
        if self.labels is False:
            return dict.fromkeys(names, "")
        if self.labels == "short":
            return abbreviated(names)
        given = self.labels if isinstance(self.labels, Mapping) else {}
        for name in given:
            schema.node_index(name)
        return {
            name: shown_name(str(given[name]), 60) if name in given else shown_name(name)
            for name in names
        }

    def edge_texts(self, edges: Sequence[Edge], schema: Schema) -> dict[tuple[str, str], str]:
        """Return what is written on which edges; nothing on the others."""
        if self.edge_labels is False or self.edge_labels is None:
            return {}
        labels = self.edge_labels
        by_pair = _pairs(labels, schema) if isinstance(labels, Mapping) else {}
        if labels is not True and not isinstance(labels, Mapping) and not callable(labels):
            wanted = "True, a mapping of (name, name) to text, or a callable"
            raise ParameterError.must_be("edge_labels", wanted, labels)
        texts: dict[tuple[str, str], str] = {}
        # Where a pair has several lines, the text is that of the edge, not of how it varies.
        for edge in sorted(edges, key=lambda edge: edge.moderator is not None):
            pair = (edge.source, edge.target)
            if pair in texts or pair[::-1] in texts:
                continue
            if labels is True:
                text: Any = _MINUS * (edge.sign == "-") + size_text(edge.strength)
            else:
                text = labels(*pair) if callable(labels) else by_pair.get(frozenset(pair))
            texts[pair] = "" if text is None else str(text)
        return {pair: text for pair, text in texts.items() if text}

    def group_of_columns(self, schema: Schema) -> dict[str, str]:
        """Return the group of every column that has one."""
        if self.groups is None:
            return {}
        if not isinstance(self.groups, Mapping):
            wanted = "a mapping of group to columns, or of column to group"
            raise ParameterError.must_be("groups", wanted, self.groups)
        several = (list, tuple, set, frozenset)
        if not any(isinstance(members, several) for members in self.groups.values()):
            names = known_columns("groups", self.groups, schema.names)
            pairs = zip(names, self.groups.values(), strict=True)
            return {name: str(group) for name, group in pairs if group is not None}
        group_of: dict[str, str] = {}
        for group, given in self.groups.items():
            members = list(given) if isinstance(given, several) else [given]
            for name in known_columns("groups", members, schema.names):
                if group_of.setdefault(name, str(group)) != str(group):
                    raise ParameterError(
                        f"groups: column {quoted(name)} is in {quoted(group_of[name])} and in "
                        f"{quoted(str(group))}; a node has one colour, so give it one group."
                    )
        return group_of

    def group_colours(self, schema: Schema) -> dict[str, str]:
        """Return the colour of every group, in the order in which they are named."""
        if self.groups is None:
            return {}
        names = list(dict.fromkeys(self.group_of_columns(schema).values()))
        if isinstance(self.colors, Mapping):
            given = {str(name): colour for name, colour in self.colors.items()}
            wrong = [f"has no colour for the group {quoted(n)}" for n in names if n not in given]
            wrong += [f"names {quoted(n)}, which is not a group" for n in given if n not in names]
            if wrong:
                raise ParameterError(f"colors {' and '.join(wrong)}.")
            return {name: _colour(name, given[name]) for name in names}
        colours = list(GROUP_COLOURS if self.colors is None else self.colors)
        if len(colours) < len(names):
            source = "there are" if self.colors is None else "colors has"
            raise ParameterError(
                f"groups names {len(names)} groups, but {source} {len(colours)} colours. "
                "To fix: merge groups, or give colors={group: colour, ...}."
            )
        return {name: _colour(name, colours[at]) for at, name in enumerate(names)}

    def node_colours(self, schema: Schema) -> dict[str, str]:
        """Return the colours of the nodes that have one of their own or of their group."""
        if self.groups is not None:
            by_group = self.group_colours(schema)
            return {n: by_group[group] for n, group in self.group_of_columns(schema).items()}
        if self.colors is None:
            return {}
        if not isinstance(self.colors, Mapping):
            wanted = "a mapping of column to colour where there are no groups"
            raise ParameterError.must_be("colors", wanted, self.colors)
        names = known_columns("colors", self.colors, schema.names)
        colours = zip(names, self.colors.values(), strict=True)
        return {name: _colour(name, colour) for name, colour in colours}


def known_columns(option: str, names: Iterable[Any], columns: Sequence[str]) -> list[str]:
    """Return the names as text; ParameterError for those that are not columns, all at once."""
    texts, known = [str(name) for name in names], set(columns)
    unknown = [name for name in texts if name not in known]
    if unknown:
        hints = [f"{quoted(n)} is not a column; {near_matches(n, columns)}" for n in unknown[:5]]
        more = f" (and {len(unknown) - 5} more)" if len(unknown) > 5 else ""
        raise ParameterError(f"{option}: {', and '.join(hints)}{more}")
    return texts


def _pairs(labels: Mapping[Any, Any], schema: Schema) -> dict[frozenset[str], Any]:
    """Texts by the two columns of an edge, in whichever order these were given."""
    for pair in labels:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ParameterError.must_be("a key of edge_labels", "two names (a, b)", pair)
    known_columns("edge_labels", [name for pair in labels for name in pair], schema.names)
    return {frozenset(map(str, pair)): text for pair, text in labels.items()}


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _colour(name: str, given: Any) -> str:
    from matplotlib.colors import is_color_like, to_hex

    if not is_color_like(given):
        wanted = "a colour that matplotlib knows, such as '#77AADD' or 'gold'"
        raise ParameterError.must_be(f"the colour of {quoted(name)}", wanted, given)
    return to_hex(given, keep_alpha=True)
