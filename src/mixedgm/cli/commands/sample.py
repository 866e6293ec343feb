"""A model file -> new rows drawn from it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.cli.console import Console
from mixedgm.cli.options import (
    add_computation,
    add_given,
    add_model,
    add_number,
    add_result,
    known_values,
    usable_model,
)
from mixedgm.cli.output import check_output, columns_of, deliver

USAGE = "MODEL [-n N] [-o FILE] [--given A=X,...]"
SUMMARY = "draw new rows from a model"
EXPLANATION = """
Draw rows from the joint distribution of all columns, with the names and levels of the table that
the model was fitted to. Columns that --given names hold these values, and the others are drawn
given them. The same --seed gives the same rows.
"""
EXAMPLES = """
mixedgm sample survey.mgm -n 1000 -o rows.csv
mixedgm sample survey.mgm -n 10 --given sex=Female --seed 7
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, how many rows, given what, and where to write."""
    add_model(parser)
    add_number(parser, "-n", "--rows", default=1000, text="how many")
    add_given(parser)
    add_result(parser, "csv")
    text = "sweeps of Gibbs chains before a row is kept"
    add_number(parser, "--burn-in", default=500, text=text)
    add_number(parser, "--thin", default=5, text="sweeps between kept rows")
    add_computation(parser, "which rows are drawn")


def run(args: Namespace, console: Console) -> None:
    """Draw new rows."""
    check_output(args.output, args.model)
    model = usable_model(args, console)
    rows, report = model.sample(
        args.rows,
        known_values(args.given, model.schema_),
        method=args.method,
        random_state=args.seed,
        limit=args.limit,
        burn_in=args.burn_in,
        thin=args.thin,
        report=True,
    )
    for note in report.notes:
        console.note(note)
    deliver(columns_of(rows), args, console)
