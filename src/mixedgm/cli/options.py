"""A command's parser -> the same with options that many commands share, and their values."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.cli.console import Console
from mixedgm.cli.lists import LIST_RULE, cut_items, cut_list, listed

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel
    from mixedgm.fit.fitted import FittedModel
    from mixedgm.table.schema import Schema


def add_choice(parser: _ActionsContainer, option: str, *choices: str, text: str) -> None:
    """An option with a few values, the first of them by default."""
    parser.add_argument(option, choices=choices, default=choices[0], help=text)


def add_list(parser: _ActionsContainer, option: str, metavar: str, text: str) -> None:
    """An option with a list (`mixedgm.cli.lists`), which may be given several times."""
    parser.add_argument(option, metavar=metavar, action="append", help=text)


def add_number(
    parser: _ActionsContainer, *options: str, default: float, text: str, metavar: str = "N"
) -> None:
    """An option with a number of the type of its default, which the help names."""
    text += f" (default: {default})"
    parser.add_argument(*options, type=type(default), default=default, metavar=metavar, help=text)


def add_table(parser: ArgumentParser) -> None:
    """The table that a command reads."""
    parser.add_argument("table", metavar="TABLE", help="a .csv, .tsv or .parquet file")


def add_output(parser: ArgumentParser, metavar: str, text: str, **options: Any) -> None:
    """Where a command writes."""
    parser.add_argument("-o", "--output", metavar=metavar, help=text, **options)


def add_result(parser: ArgumentParser, default: str = "table") -> None:
    """Where and how a command writes the table that is its result."""
    add_output(parser, "FILE", "where to write, instead of to the terminal")
    add_format(parser, default)


def add_format(parser: ArgumentParser, default: str = "table") -> None:
    """How a command writes a table."""
    text = f"how to write (default: as the ending of the output says, else {default})"
    parser.add_argument("--format", choices=("table", "csv", "json"), help=text)
    parser.set_defaults(default_format=default)
    add_formulas(parser)


def add_formulas(parser: ArgumentParser) -> None:
    """What becomes of text that a spreadsheet would run."""
    text = (
        "text in CSV that a spreadsheet would run, such as =1+2: as it is (default), or marked by "
    )
    add_choice(parser, "--formulas", "keep", "mark", text=f"{text}an apostrophe")


def add_quiet(parser: ArgumentParser) -> None:
    """Whether a command leaves out notes."""
    parser.add_argument("--quiet", action="store_true", help="no notes and no progress")


def add_jobs(parser: _ActionsContainer) -> None:
    """How many cores a command uses."""
    text = "processor cores to use (default: all)"
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help=text)


def add_seed(parser: _ActionsContainer, text: str) -> None:
    """Where random numbers start; `text` is what they decide."""
    add_number(parser, "--seed", default=0, text=text)


def add_checkpoint(parser: _ActionsContainer, text: str) -> None:
    """Where finished parts of long work are kept."""
    parser.add_argument("--checkpoint", metavar="FOLDER", help=text)
    parser.add_argument(
        "--resume", action="store_true", help="continue the work that --checkpoint holds"
    )


def check_checkpoint(args: Namespace, what: str) -> None:
    """Refuse --resume without a folder, and a folder with work without --resume."""
    from mixedgm.base.checkpoint import holds_work

    if args.checkpoint is None:
        if args.resume:
            raise ParameterError("--resume needs --checkpoint FOLDER, which says what to resume.")
        return
    if holds_work(args.checkpoint) and not args.resume:
        raise ParameterError(
            f"{quoted(args.checkpoint)} already holds finished {what}; "
            "add --resume to continue with them, or give another folder."
        )


# -- model options ---------------------------------------------------------------------------------

_QUOTES = "quotes keep a comma, as in 'city=\"Bath, UK\"'"


def add_model(parser: ArgumentParser, **options: Any) -> None:
    """The model that a command reads."""
    text = "a model file that `mixedgm fit` wrote"
    parser.add_argument("model", metavar="MODEL", help=text, **options)


def add_at(parser: ArgumentParser) -> None:
    """Where a model with moderated edges is looked at."""
    text = f"values of the moderators, such as age=40: the graph there; {_QUOTES}"
    add_list(parser, "--at", "NAME=VALUE,...", text)


def add_given(parser: ArgumentParser) -> None:
    """What is known about a row."""
    text = f"known values, such as sex=Female,age=40; {_QUOTES}"
    add_list(parser, "--given", "NAME=VALUE,...", text)


def add_unseen(parser: ArgumentParser) -> None:
    """Levels that a model does not have."""
    text = "levels that the model does not have: stop (default), or ignore such cells when the "
    add_choice(parser, "--unseen", "error", "ignore", text=f"{text}others of a row are predicted")


def add_repair(parser: _ActionsContainer) -> None:
    """The way out for a model without a joint distribution."""
    text = "take the nearest model that has a joint distribution, where the model has none"
    parser.add_argument("--repair", action="store_true", help=text)


def add_computation(parser: ArgumentParser, seeded: str) -> None:
    """How an answer from the joint distribution is computed; `seeded` is what --seed decides."""
    group = parser.add_argument_group("computation")
    text = "exactly, by Gibbs chains, or exactly where that fits the limit (default: auto)"
    add_choice(group, "--method", "auto", "exact", "gibbs", text=text)
    text = "most entries of the tables of an exact answer (default: 16777216)"
    group.add_argument("--limit", type=int, metavar="N", help=text)
    add_seed(group, seeded)
    add_repair(group)
    add_quiet(parser)


def model_at_values(args: Namespace) -> FittedModel:
    """Read the model; where --at names values of its moderators, return the model there."""
    from mixedgm.store import load

    fitted = load(args.model)[0]
    if args.at is None:
        return fitted
    from mixedgm.studies.queries.conditioned import model_at

    return model_at(fitted, known_values(args.at, fitted.schema, "--at"))


def usable_model(args: Namespace, console: Console) -> MixedGraphicalModel:
    """Read the model, repaired where that is asked for and needed."""
    from mixedgm.estimator.model import load

    model = load(args.model)
    if not args.repair:
        return model
    valid = model.repaired()
    for note in valid.fitted_.report.notes[len(model.fitted_.report.notes) :]:
        console.note(note)
    return valid


def known_values(
    texts: Sequence[str] | None, schema: Schema, option: str = "--given"
) -> dict[str, Any]:
    """Return NAME=VALUE,... as a mapping; without quotes, the cut is where a column name ends.

    Examples
    --------
    >>> from mixedgm.table.schema import Column, Schema
    >>> schema = Schema((Column("age", "continuous"), Column("a=b", "categorical", levels=("x",))))
    >>> known_values(["age=40,a=b=x"], schema)
    {'age': 40.0, 'a=b': 'x'}
    """
    pairs = cut_items(texts, "=", f"{option} takes NAME=VALUE,...", before=schema.names)
    numbers = {column.name for column in schema.columns if not column.has_levels}
    return {name: _number(value) if name in numbers else value for name, value in pairs}


def _number(text: str) -> float | str:
    """The number, or the text itself for the error to show."""
    try:
        return float(text)
    except ValueError:
        return text


# -- network options -------------------------------------------------------------------------------

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
    from mixedgm.pictures.network.appearance import known_columns

    if not args.node_group:
        return None
    wanted = "--node-group takes GROUP=A,B,..."
    pairs = [cut_list(text, wanted, set(names)) for text in args.node_group]
    return {group: known_columns("--node-group", members, names) for group, members in pairs}


def network_options(args: Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the options of `plot` that were given, with columns of `names`, checked."""
    from mixedgm.pictures.network.appearance import Appearance, known_columns

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
