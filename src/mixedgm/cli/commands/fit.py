"""A table -> a model file, and a summary on the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import (
    add_fitting,
    add_scheduler,
    fit_options,
    fitted_model,
    read_any,
)
from mixedgm.cli.options import add_output, add_table
from mixedgm.cli.output import check_model_output

USAGE = "TABLE -o MODEL [options]"
SUMMARY = "learn the network of a table and write it to a model file"
EXPLANATION = """
Learn which columns are directly related, given all others. A whole path of penalties is solved and
the best one is chosen, unless --lam gives it: the larger the penalty, the fewer the edges. The
model goes to a file that the other commands read, a summary to the terminal.

TABLE may be a folder of Parquet files, or a pattern such as "part-*.parquet" (in quotes): it is
then read part by part, and may be larger than memory; --scheduler leaves its parts to the workers
of a Dask cluster.
"""
EXAMPLES = """
mixedgm fit survey.csv -o survey.mgm
mixedgm fit survey.csv -o survey.mgm --types stage=categorical --drop id
mixedgm fit survey.csv -o survey.mgm --lam 0.1 --forbid age:region
mixedgm fit survey.csv -o survey.mgm --missing model
mixedgm fit "part-*.parquet" -o survey.mgm --weights-column weight
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The table, the model file, and how to fit."""
    add_table(parser)
    add_output(parser, "MODEL", "the model file to write, usually ending in .mgm", required=True)
    parser.add_argument(
        "--lam",
        type=float,
        help="one penalty, instead of choosing among many (larger: fewer edges)",
    )
    add_fitting(parser, refit=True)
    add_scheduler(parser)


def run(args: Namespace, console: Console) -> None:
    """Fit a table and write the model."""
    check_model_output(args.output, args.table)
    table, frame, weights = read_any(args)
    model = fitted_model(table, weights, fit_options(args, frame), console)
    # First what may need the joint distribution: its node terms are then part of the file.
    summary = "" if args.quiet else model.summary()
    model.save(args.output)
    if summary:
        console.out(summary)
    console.say(f"wrote {args.output}")
