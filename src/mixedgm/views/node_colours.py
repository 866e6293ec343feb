"""Groups of columns and colours in -> the colour of every node, and what a legend says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixedgm.errors import ParameterError
from mixedgm.printable import quoted
from mixedgm.table.schema import Schema
from mixedgm.views.appearance import Appearance, known_columns
from mixedgm.views.colours import GROUP_COLOURS

__all__ = ["group_colours", "group_of_columns", "node_colours"]


def group_of_columns(groups: Mapping[Any, Any] | None, schema: Schema) -> dict[str, str]:
    """Return the group of every column that has one.

    Parameters
    ----------
    groups : mapping, optional
        Group to columns, ``{"health": ["bmi", "smoker"]}``, or column to group,
        ``{"bmi": "health", "smoker": "health"}``.
    schema : Schema
        The columns.

    Raises
    ------
    ParameterError
        For a name that is not a column, or one in two groups.
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        wanted = "a mapping of group to columns, or of column to group"
        raise ParameterError.must_be("groups", wanted, groups)
    if not any(isinstance(members, list | tuple | set | frozenset) for members in groups.values()):
        names = known_columns("groups", groups, schema.names)
        pairs = zip(names, groups.values(), strict=True)
        return {name: str(group) for name, group in pairs if group is not None}
    found: dict[str, str] = {}
    for group, given in groups.items():
        members = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
        for name in known_columns("groups", members, schema.names):
            if found.get(name, str(group)) != str(group):
                raise ParameterError(
                    f"groups: column {quoted(name)} is in {quoted(found[name])} and in "
                    f"{quoted(str(group))}; "
                    "a node has one colour, so give it one group."
                )
            found[name] = str(group)
    return found


def group_colours(style: Appearance, schema: Schema) -> dict[str, str]:
    """Return the colour of every group, in the order in which they are named."""
    if style.groups is None:
        return {}
    names = list(dict.fromkeys(group_of_columns(style.groups, schema).values()))
    if isinstance(style.colors, Mapping):
        given = {str(name): colour for name, colour in style.colors.items()}
        wrong = [
            f"has no colour for the group {quoted(name)}" for name in names if name not in given
        ]
        wrong += [
            f"names {quoted(name)}, which is not a group" for name in given if name not in names
        ]
        if wrong:
            raise ParameterError(f"colors {' and '.join(wrong)}.")
        return {name: _colour(name, given[name]) for name in names}
    own = list(GROUP_COLOURS if style.colors is None else style.colors)
    if len(own) < len(names):
        source = "there are" if style.colors is None else "colors has"
        raise ParameterError(
            f"groups names {len(names)} groups, and {source} {len(own)} colours. "
            "To fix: merge groups, or give colors={group: colour, ...}."
        )
    return {name: _colour(name, own[at]) for at, name in enumerate(names)}


def node_colours(style: Appearance, schema: Schema) -> dict[str, str]:
    """Return the colours of the nodes that have one of their own or of their group."""
    if style.groups is not None:
        by_group = group_colours(style, schema)
        return {n: by_group[group] for n, group in group_of_columns(style.groups, schema).items()}
    if style.colors is None:
        return {}
    if not isinstance(style.colors, Mapping):
        wanted = "a mapping of column to colour where there are no groups"
        raise ParameterError.must_be("colors", wanted, style.colors)
    names = known_columns("colors", style.colors, schema.names)
    colours = zip(names, style.colors.values(), strict=True)
    return {name: _colour(name, colour) for name, colour in colours}


def _colour(name: str, given: Any) -> str:
    from matplotlib.colors import is_color_like, to_hex

    if not is_color_like(given):
        wanted = "a colour that matplotlib knows, such as '#77AADD' or 'gold'"
        raise ParameterError.must_be(f"the colour of {quoted(name)}", wanted, given)
    return to_hex(given, keep_alpha=True)
