"""A sign or a kind in -> its colour, the same in every view and safe for colour-blind readers."""

from __future__ import annotations

from mixedgm.model.kinds import edge_kinds, ends_of

__all__ = ["GROUP_COLOURS", "KIND_COLOURS", "MIXED", "SIGN_COLOURS", "SIGN_NAMES"]

SIGN_COLOURS: dict[str | None, str] = {"+": "#0072B2", "-": "#D55E00", None: "#8A8A8A"}
"""Blue, vermilion, and grey where there is no sign."""

SIGN_NAMES: dict[str | None, str] = {"+": "positive", "-": "negative", None: "no sign"}

MIXED = "different kinds"
"""What a legend says where columns of several different kinds have edges."""
_MIXED_COLOUR = "#E69F00"

KIND_COLOURS = {
    edge_kind: first.line if first is second else _MIXED_COLOUR
    for edge_kind, (first, second) in ((name, ends_of(name)) for name in edge_kinds())
}
"""Lines of edges: the colour of the kind of both ends, or one colour where these differ."""

GROUP_COLOURS = (
    *("#77AADD", "#EEDD88", "#44BB99", "#FFAABB", "#BBCC33", "#EE8866", "#99DDFF", "#AAAA00"),
)
"""Fills of groups of nodes: Paul Tol's light scheme, in an order that begins with contrast."""
