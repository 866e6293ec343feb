"""A model file and a table with gaps -> what is missing, and what that means for the model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.cli.console import Console, in_options
from mixedgm.cli.fitting_options import read_columns
from mixedgm.cli.model_options import add_model
from mixedgm.cli.options import add_choice, add_jobs, add_number, add_result, add_table
from mixedgm.cli.output import (
    can_draw,
    check_output,
    check_picture,
    columns_of,
    deliver,
    save_picture,
)
from mixedgm.errors import ParameterError

USAGE = "MODEL TABLE [--show WHAT] [--plot PICTURE] [-o FILE]"
SUMMARY = "show what is missing in a table, and what that means for a model"
EXPLANATION = """
Count the missing cells of a table by column and by pattern, say what share of the information about
each edge they have taken, and whether gaps in one column go with the values of another: if so, rows
without gaps are not like all others, and a model of these alone may be biased. Last comes what is
assumed about why cells are missing.
"""
EXAMPLES = """
mixedgm missing survey.mgm survey.csv
mixedgm missing survey.mgm survey.csv --plot gaps.png
mixedgm missing survey.mgm survey.csv --show hints -o hints.csv
"""

_TABLES = ("columns", "patterns", "edges", "hints")


def add_arguments(parser: ArgumentParser) -> None:
    """The model, its table, which list to write, and where to."""
    add_model(parser)
    add_table(parser)
    text = "one list instead of the summary, which only fits a terminal"
    add_choice(parser, "--show", "summary", *_TABLES, text=text)
    text = "draw which columns are missing together: .png, .svg or .pdf"
    parser.add_argument("--plot", metavar="PICTURE", help=text)
    text = "column with the weights of the fit"
    parser.add_argument("--weights-column", metavar="NAME", help=text)
    text = "limit of the adjusted p-values of columns that go with gaps in others"
    add_number(parser, "--alpha", default=0.05, metavar="ALPHA", text=text)
    add_jobs(parser)
    parser.set_defaults(drop=None)
    add_result(parser)


def run(args: Namespace, console: Console) -> None:
    """Report what is missing."""
    from mixedgm.estimator.model import load

    check_output(args.output, args.model, args.table)
    if args.plot is not None:
        check_picture(args.plot)
        check_output(args.plot, args.model, args.table)
    if args.show == "summary" and args.format in ("csv", "json"):
        raise ParameterError(
            f"--format {args.format} is for one list: add --show {', '.join(_TABLES[:-1])} or "
            f"{_TABLES[-1]}."
        )
    model = load(args.model)
    table, weights = read_columns(args)
    with console.announcing_compilation():
        report = model.missing_report(table, weights, alpha=args.alpha, n_jobs=args.jobs)
    if args.show == "summary":
        args.format = "table"
        deliver({}, args, console, lambda width: _in_options(report.summary()))
    else:
        deliver(columns_of(getattr(report, args.show)()), args, console)
    if args.plot is not None and can_draw(console):
        save_picture(report.plot(), args.plot)
        console.say(f"wrote {args.plot}")


def _in_options(text: str) -> str:
    """The summary with options in place of methods."""
    for name in _TABLES:
        text = text.replace(f"; {name}() has all)", f"; --show {name} has all)")
    return in_options(text)
