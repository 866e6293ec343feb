"""A model file and a table -> its columns, each predicted from all others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console
from mixedgm.cli.options import (
    add_model,
    add_repair,
    add_result,
    add_table,
    add_unseen,
    usable_model,
)
from mixedgm.cli.output import check_output, columns_of, deliver

USAGE = "MODEL TABLE [--column NAME] [options]"
SUMMARY = "predict columns of a table from all its other columns"
EXPLANATION = """
Predict each column of every row from the row's other columns: the expected value of a continuous,
hurdle or count column, the most probable level of a categorical or an ordinal one (--value asks for
another value of ordinal, hurdle and count columns). A column that --column names need not be in the
table; --proba gives the probability of each of its levels, of each count, or of zero. Rows may have
missing cells: a column is then predicted from what its row has.
"""
EXAMPLES = """
mixedgm predict survey.mgm new.csv --column jobclass
mixedgm predict survey.mgm new.csv --column jobclass --proba -o chances.csv
mixedgm predict survey.mgm new.csv --column visits --value median
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, the table, what to predict, and where to write."""
    add_model(parser)
    add_table(parser)
    parser.add_argument("--column", metavar="NAME", help="the column to predict (default: all)")
    parser.add_argument(
        "--proba", action="store_true", help="probabilities of the levels, or counts, of --column"
    )
    parser.add_argument(
        "--value",
        choices=("mode", "median", "mean"),
        help="what predicts ordinal columns and counts (default: the mode of ordinal columns, the "
        "mean of counts)",
    )
    add_unseen(parser)
    add_repair(parser)
    add_result(parser, "csv")


def run(args: Namespace, console: Console) -> None:
    """Predict columns of a table."""
    from mixedgm.table.files import read_table
    from mixedgm.table.parted.sources import source_of

    check_output(args.output, args.model, args.table)
    model = usable_model(args, console)
    frame: Any = args.table if source_of(args.table) is not None else read_table(args.table)
    if args.proba:
        if args.column is None:
            raise ParameterError("--proba needs a column: add --column NAME.")
        if args.value is not None:
            raise ParameterError(
                "--value is not for --proba, which gives all values: leave it out."
            )
        predicted = model.predict_proba(frame, args.column, unseen=args.unseen)
    else:
        columns = None if args.column is None else [args.column]
        predicted = model.predict(frame, columns, value=args.value, unseen=args.unseen)
    deliver(columns_of(predicted), args, console)
