"""Options about the picture of a network -> the options of `plot`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from mixedgm.cli.lists import LIST_RULE, cut_items, cut_list, listed
from mixedgm.cli.options import add_list
from mixedgm.errors import ParameterError

__all__ = ["add_network", "add_node_group", "network_options", "node_groups"]

_NUMBERS = {
    "--minimum": "no edges with a smaller strength",
    "--maximum": "strength of the widest line (default: the largest strength)",
    "--cut": "weaker edges are thin and faint (default: from 20 columns on all but the "
    "strongest two per column; 0 for none)",
}


def add_network(parser: ArgumentParser) -> None:
    """How a network is drawn."""
    group = parser.add_argument_group("picture of the network", fill(LIST_RULE, 76))
    group.add_argument(
        "--layout",
        choices=("spring", "kamada-kawai", "circle", "groups"),
        help="where the network has its nodes (default: spring)",
    )
    text = "draw only these columns and the edges between them"
    add_list(group, "--columns", "A,B,...", text)
    group.add_argument("--max-edges", type=int, metavar="N", help="only the N strongest edges")
    for option, text in _NUMBERS.items():
        group.add_argument(option, type=float, metavar="S", help=text)
    text = "write the signed strengths on the lines"
    group.add_argument("--edge-labels", action="store_true", help=text)
    names = group.add_mutually_exclusive_group()
    names.add_argument("--no-labels", action="store_true", help="no names at the nodes")
    text = "abbreviations inside the nodes, with a key below"
    names.add_argument("--short-labels", action="store_true", help=text)
    group.add_argument("--theme", choices=("light", "dark"), help="light (default) or dark")
    add_node_group(group)
    text = "colors of groups instead of the usual ones, such as health=gold"
    add_list(group, "--node-color", "GROUP=COLOR,...", text)


def add_node_group(group: _ActionsContainer) -> None:
    """Groups of columns that have a colour each."""
    text = "columns that get a colour of their own; once for each group"
    add_list(group, "--node-group", "GROUP=A,B,...", text)


def node_groups(args: Namespace, names: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the columns of every group that was given, checked; None without any."""
    from mixedgm.views.appearance import known_columns

    if not args.node_group:
        return None
    wanted = "--node-group takes GROUP=A,B,..."
    pairs = [cut_list(text, wanted, set(names)) for text in args.node_group]
    return {group: known_columns("--node-group", members, names) for group, members in pairs}


def network_options(args: Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the options of `plot` that were given, with columns of `names`, checked."""
    from mixedgm.views.appearance import Appearance, known_columns

    given: dict[str, Any] = {
        name: getattr(args, name)
        for name in ("max_edges", "minimum", "maximum", "cut", "theme")
        if getattr(args, name) is not None
    }
    if args.columns:
        given["columns"] = known_columns("--columns", listed(args.columns), names)
    if args.edge_labels:
        given["edge_labels"] = True
    if args.no_labels:
        given["labels"] = False
    if args.short_labels:
        given["labels"] = "short"
    groups = node_groups(args, names)
    if groups is not None:
        given["groups"] = groups
    if args.node_color:
        if not args.node_group:
            raise ParameterError("--node-color needs --node-group, which says what is in a group.")
        colours = cut_items(args.node_color, "=", "--node-color takes GROUP=COLOR.", last=True)
        given["colors"] = dict(colours)
    Appearance.of(given)
    if args.layout is not None:
        given["layout"] = args.layout
    return given
