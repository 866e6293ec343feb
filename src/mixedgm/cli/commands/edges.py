"""A model file -> its edges as a list, strongest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console
from mixedgm.cli.options import add_at, add_format, add_model, add_output, model_at_values
from mixedgm.cli.output import FORMAT_OF, check_output, deliver

if TYPE_CHECKING:
    from mixedgm.fit.fitted import FittedModel

USAGE = "MODEL [-o FILE] [--format FORMAT]"
SUMMARY = "list the edges of a model, strongest first"
EXPLANATION = """
List which columns are directly related. The strength says how much two columns say about each
other given all others, from 0 to 1; for two continuous columns it is their absolute partial
correlation. The sign is missing where a categorical column has three or more levels; a partial
correlation exists for two continuous columns only.
"""
EXAMPLES = """
mixedgm edges survey.mgm
mixedgm edges survey.mgm --format csv > edges.csv
mixedgm edges survey.mgm -o network.graphml
"""
_GRAPHML = ".graphml"


def add_arguments(parser: ArgumentParser) -> None:
    """The model, and where and how to write."""
    add_model(parser)
    add_at(parser)
    add_output(
        parser, "FILE", "where to write (.csv, .json, .txt, or .graphml for network programs)"
    )
    parser.add_argument(
        "--shrunken",
        action="store_true",
        help="show the norms of the penalised estimate beside those without penalty",
    )
    parser.add_argument("--say", action="store_true", help="say in words what every edge says")
    add_format(parser)


def run(args: Namespace, console: Console) -> None:
    """List the edges of a model."""
    from mixedgm.results.export import write
    from mixedgm.results.tables import edges_columns
    from mixedgm.results.text import estimates_text, lam_text
    from mixedgm.studies.edges.descriptions import describe

    check_output(args.output, args.model)
    ending = None if args.output is None else Path(args.output).suffix.lower()
    if args.format is None and ending not in (None, *FORMAT_OF, _GRAPHML):
        wanted = f"a file name that ends in {', '.join((*FORMAT_OF, _GRAPHML))} (or add --format)"
        raise ParameterError.must_be("the output", wanted, args.output)
    fitted = model_at_values(args)
    if not fitted.edges:
        where = fitted.report.at or f"lam = {lam_text(fitted.report.lam)}"
        console.note(f"no edges: at {where} all columns are independent")
    elif fitted.report.was_fitted:
        console.note(f"estimates are {estimates_text(fitted.report.refitted, fitted.report.lam)}")
    if ending == _GRAPHML:
        write(fitted, args.output)
        console.say(f"wrote {args.output}")
        return
    columns = dict(edges_columns(fitted, shrunken=args.shrunken))
    beside = columns["shrunken_norm"] if args.shrunken else None
    if args.say:
        columns["says"] = [
            describe(fitted, edge.source, edge.target, edge.moderator) for edge in fitted.edges
        ]
    deliver(columns, args, console, lambda width: _text(fitted, columns, width, beside))


def _text(fitted: FittedModel, columns: dict[str, Any], width: int, beside: Any) -> str:
    """The list of edges; with what they say, one sentence per edge below it."""
    from mixedgm.results.text import edges_text

    text = edges_text(fitted.edges, width, beside)
    if "says" not in columns:
        return text
    ends = zip(columns["source"], columns["target"], columns["says"], strict=True)
    lines = [f"{source} - {target}: {says}" for source, target, says in ends]
    return "\n".join([text, "", *lines])
