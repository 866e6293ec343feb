"""A sign, a kind or a theme in -> its colours, safe for colour-blind readers."""

from __future__ import annotations

from dataclasses import dataclass

from mixedgm.families import edge_kinds, ends_of, indicator_ends
from mixedgm.families.contract import Kind


def mixed(one: str, other: str, share: float) -> str:
    """Return a colour between two, both as #rrggbb; `share` is that of the other.

    Examples
    --------
    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    parts = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (one, other)]
    mean = [round((1.0 - share) * a + share * b) for a, b in zip(*parts, strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mean)


@dataclass(frozen=True)
class Theme:
    """Colours of a picture on a light or a dark ground."""

    ink: str
    muted: str
    surface: str
    positive: str
    negative: str
    unsigned: str
    ring: str
    track: str
    tint: float
    """Share of its colour that the fill of a node has, over the surface."""
    area: float
    """Share of its colour that the area of a group has, over the surface."""

    def sign(self, sign: str | None) -> str:
        """Return the colour of edges of this sign."""
        return {"+": self.positive, "-": self.negative}.get(sign or "", self.unsigned)

    def fill(self, kind: Kind) -> str:
        """Return the fill of nodes of this kind."""
        return kind.fill if self.tint == 1.0 else mixed(self.surface, kind.line, self.tint)

    def group(self, colour: str) -> str:
        """Return the fill of nodes that have a colour of their own or of their group."""
        return colour if self.tint == 1.0 else mixed(self.surface, colour[:7], self.tint)

    def name(self, colour: str) -> str:
        """Return the colour of the name of a group that has this colour."""
        return mixed(colour[:7], self.ink, 0.65)

    def outline(self, kind: Kind) -> str:
        """Return the outline of nodes of this kind."""
        return kind.line if self.tint == 1.0 else kind.fill


THEMES = {
    "light": Theme(
        ink="#1b2227",
        muted="#566069",
        surface="#ffffff",
        positive="#0072b2",
        negative="#d55e00",
        unsigned="#009e73",
        ring="#44505a",
        track="#dfe3e6",
        tint=1.0,
        area=0.28,
    ),
    "dark": Theme(
        ink="#e9edf0",
        muted="#a3aeb7",
        surface="#171d21",
        positive="#58b4f0",
        negative="#ff9248",
        unsigned="#4cc79b",
        ring="#dfe6eb",
        track="#39444c",
        tint=0.38,
        area=0.2,
    ),
}
"""The colours of static pictures; the page of the report has the same ones in its style sheet."""

_LIGHT = THEMES["light"]

SIGN_COLOURS: dict[str | None, str] = {sign: _LIGHT.sign(sign) for sign in ("+", "-", None)}
"""Blue, vermilion, and green where there is no single sign."""

UNCERTAIN = "#8A8A8A"
"""Grey, where the sign of an interval is not certain."""

SIGN_NAMES: dict[str | None, str] = {"+": "positive", "-": "negative", None: "no single sign"}

_MIXED = "#56B4E9", "#E69F00"

KIND_COLOURS = {
    edge_kind: first.line if first is second else _MIXED[indicator_ends(edge_kind)]
    for edge_kind, (first, second) in ((name, ends_of(name)) for name in edge_kinds())
}
"""Lines of edges: the colour of the kind of both ends; where these differ, whether one of them is
categorical."""

GROUP_COLOURS = (
    *("#77AADD", "#EEDD88", "#44BB99", "#FFAABB", "#BBCC33", "#EE8866", "#99DDFF", "#AAAA00"),
)
"""Fills of groups of nodes: Paul Tol's light scheme, in an order that begins with contrast."""
