"""A table with gaps, or a model file and its table -> what is missing, and what that means."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console, in_options
from mixedgm.cli.fitting_options import (
    add_columns,
    column_options,
    read_columns,
    refuse_column_options,
)
from mixedgm.cli.options import add_choice, add_jobs, add_model, add_number, add_result, add_table
from mixedgm.cli.output import (
    can_draw,
    check_output,
    check_picture,
    columns_of,
    deliver,
    save_picture,
)

if TYPE_CHECKING:
    from mixedgm.studies.missing.report import MissingReport

USAGE = "[MODEL] TABLE [--show WHAT] [--plot PICTURE] [-o FILE]"
SUMMARY = "show what is missing in a table, and what that means for a model"
EXPLANATION = """
Count the missing cells of a table by column and by pattern, and say whether gaps in one column go
with the values of another: if so, rows without gaps are not like all others, and a model of these
alone may be biased. Last comes what is assumed about why cells are missing. Nothing is fitted. With
a MODEL, say what share of the information about each edge the gaps have taken.
"""
EXAMPLES = """
mixedgm missing survey.csv
mixedgm missing survey.mgm survey.csv
mixedgm missing survey.mgm survey.csv --plot gaps.png
mixedgm missing survey.mgm survey.csv --show hints -o hints.csv
"""

_TABLES = ("columns", "patterns", "edges", "hints")


def add_arguments(parser: ArgumentParser) -> None:
    """The model, its table, which list to write, and where to."""
    add_model(parser, nargs="?")
    add_table(parser)
    add_columns(parser)
    text = "one list instead of the summary, which only fits a terminal"
    add_choice(parser, "--show", "summary", *_TABLES, text=text)
    text = "draw which columns are missing together: .png, .svg or .pdf"
    parser.add_argument("--plot", metavar="PICTURE", help=text)
    text = "limit of the adjusted p-values of columns that go with gaps in others"
    add_number(parser, "--alpha", default=0.05, metavar="ALPHA", text=text)
    add_jobs(parser)
    add_result(parser)


def run(args: Namespace, console: Console) -> None:
    """Report what is missing."""
    inputs = [path for path in (args.model, args.table) if path is not None]
    check_output(args.output, *inputs)
    if args.plot is not None:
        check_picture(args.plot)
        check_output(args.plot, *inputs)
    if args.show == "summary" and args.format in ("csv", "json"):
        raise ParameterError(
            f"--format {args.format} is for one list: add --show {', '.join(_TABLES[:-1])} or "
            f"{_TABLES[-1]}."
        )
    with console.announcing_compilation():
        report = _of_table(args) if args.model is None else _of_model(args)
    report = replace(report, structural=tuple(map(in_options, report.structural)))
    if args.show == "summary":
        args.format = "table"
        deliver({}, args, console, lambda width: _in_options(report.summary()))
    else:
        deliver(columns_of(getattr(report, args.show)()), args, console)
    if args.plot is not None and can_draw(console):
        save_picture(report.plot(), args.plot)
        console.say(f"wrote {args.plot}")


def _of_table(args: Namespace) -> MissingReport:
    """Count the gaps of a table before any fit."""
    from mixedgm.studies.missing.report import report_gaps
    from mixedgm.table.gaps import learn_gaps, read_gaps

    if args.show == "edges":
        raise ParameterError("--show edges needs a model: mixedgm missing MODEL TABLE.")
    if args.missing != "error":
        raise ParameterError("--missing is for fits: leave it out.")
    table, weights = read_columns(args)
    how = column_options(args)
    learnt, _ = learn_gaps(table, structural=True, sample_weight=weights, **how)
    # Rows without any value, which a fit leaves out, are counted here.
    gaps = read_gaps(table, learnt.schema, sample_weight=weights)
    return report_gaps(gaps, table.library, args.alpha)


def _of_model(args: Namespace) -> MissingReport:
    """Count the gaps of a table, and ask a model what they mean."""
    from mixedgm.estimator.model import load

    refuse_column_options(args)
    model = load(args.model)
    table, weights = read_columns(args)
    return model.missing_report(table, weights, alpha=args.alpha, n_jobs=args.jobs)


def _in_options(text: str) -> str:
    """The summary with options in place of methods."""
    for name in _TABLES:
        text = text.replace(f"; {name}() has all)", f"; --show {name} has all)")
    return in_options(text)
