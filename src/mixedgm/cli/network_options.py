"""Options about the picture of a network -> the options of `plot`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from mixedgm.cli.lists import LIST_RULE, cut_items, cut_list, listed
from mixedgm.cli.options import add_list
from mixedgm.errors import ParameterError

__all__ = ["add_network", "network_options"]

_NUMBERS = {
    "--minimum": "no edges with a smaller strength",
    "--maximum": "strength of the widest line; stronger edges are just as wide (default: the "
    "largest, but not more than three times the largest outside the top tenth)",
    "--cut": "lighter edges are thin and faint, the others solid",
}


def add_network(parser: ArgumentParser) -> None:
    """How a network is drawn."""
    group = parser.add_argument_group("picture of the network", fill(LIST_RULE, 76))
    group.add_argument(
        "--layout",
        choices=("spring", "circle", "kamada-kawai"),
        help="where the network has its nodes (default: spring)",
    )
    text = "draw only these columns and the edges between them"
    add_list(group, "--columns", "A,B,...", text)
    group.add_argument("--max-edges", type=int, metavar="N", help="only the N strongest edges")
    for option, text in _NUMBERS.items():
        group.add_argument(option, type=float, metavar="W", help=text)
    group.add_argument(
        "--edge-labels", action="store_true", help="write the strengths on the lines"
    )
    group.add_argument("--no-labels", action="store_true", help="no names at the nodes")
    text = "columns that get a colour of their own; once for each group"
    add_list(group, "--node-group", "GROUP=A,B,...", text)
    text = "colors of groups instead of the usual ones, such as health=gold"
    add_list(group, "--node-color", "GROUP=COLOR,...", text)


def network_options(args: Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the options of `plot` that were given, with columns of `names`, checked."""
    from mixedgm.views.appearance import Appearance, known_columns

    given: dict[str, Any] = {
        name: getattr(args, name)
        for name in ("max_edges", "minimum", "maximum", "cut")
        if getattr(args, name) is not None
    }
    if args.columns:
        given["columns"] = known_columns("--columns", listed(args.columns), names)
    if args.edge_labels:
        given["edge_labels"] = True
    if args.no_labels:
        given["labels"] = False
    if args.node_group:
        wanted = "--node-group takes GROUP=A,B,..."
        pairs = [cut_list(text, wanted, set(names)) for text in args.node_group]
        given["groups"] = {
            group: known_columns("--node-group", members, names) for group, members in pairs
        }
    if args.node_color:
        if not args.node_group:
            raise ParameterError("--node-color needs --node-group, which says what is in a group.")
        colours = cut_items(args.node_color, "=", "--node-color takes GROUP=COLOR.", last=True)
        given["colors"] = dict(colours)
    Appearance.of(given)
    if args.layout is not None:
        given["layout"] = args.layout
    return given
