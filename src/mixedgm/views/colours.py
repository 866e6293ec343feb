"""A sign or a kind in -> its colour, the same in every view and safe for colour-blind readers."""

from __future__ import annotations

from mixedgm.penalty.factors import EDGE_KINDS

__all__ = ["GROUP_COLOURS", "KIND_COLOURS", "NODE_COLOURS", "SIGN_COLOURS", "SIGN_NAMES"]

SIGN_COLOURS: dict[str | None, str] = {"+": "#0072B2", "-": "#D55E00", None: "#8A8A8A"}
"""Blue, vermilion, and grey where there is no sign."""

SIGN_NAMES: dict[str | None, str] = {"+": "positive", "-": "negative", None: "no sign"}

NODE_COLOURS = {"continuous": "#BFE5DC", "categorical": "#DDD0EC"}

KIND_COLOURS = dict(zip(EDGE_KINDS, ("#009E73", "#E69F00", "#7B4FA3"), strict=True))

GROUP_COLOURS = (
    *("#77AADD", "#EEDD88", "#44BB99", "#FFAABB", "#BBCC33", "#EE8866", "#99DDFF", "#AAAA00"),
)
"""Fills of groups of nodes: Paul Tol's light scheme, in an order that begins with contrast."""
