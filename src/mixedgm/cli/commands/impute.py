"""A model file and a table with gaps -> the completed table, once or many times."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from mixedgm.cli.console import Console
from mixedgm.cli.options import (
    add_choice,
    add_computation,
    add_jobs,
    add_model,
    add_result,
    add_table,
    add_unseen,
    usable_model,
)
from mixedgm.cli.output import check_output, columns_of, deliver

USAGE = "MODEL TABLE [-o FILE] [--draws N]"
SUMMARY = "fill the missing cells of a table"
EXPLANATION = """
Fill each missing cell of a table from what its row has: with the expected value of a continuous
column, the most probable level of a categorical or an ordinal one, the median of a count, zero or
the expected amount of a hurdle column (whichever is likelier), or with draws from their
distribution (--draws, for multiple imputation). Everything else stays as it is. To have a whole
column filled, add it to the table without values.
"""
EXAMPLES = """
mixedgm impute survey.mgm new.csv -o filled.csv
mixedgm impute survey.mgm new.csv -o filled.csv --draws 20 --seed 1
mixedgm impute survey.mgm survey.csv --draws 20 --parameters resampled
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, the table, how to fill it, and where to write."""
    add_model(parser)
    add_table(parser)
    add_result(parser, "csv")
    parser.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="fill each cell with a draw, N times; a first column `draw` counts them "
        "(default: means, most probable levels and median counts, once)",
    )
    text = "parameters of the draws: those of the model (default), or for each draw those of a "
    text += "resample of the table, so that draws have the uncertainty of the fit, too"
    add_choice(parser, "--parameters", "fixed", "resampled", text=text)
    add_unseen(parser)
    add_jobs(parser)
    add_computation(parser, "which draws")


def run(args: Namespace, console: Console) -> None:
    """Fill the missing cells of a table."""
    from mixedgm.table.files import read_table
    from mixedgm.table.read import unused_name

    check_output(args.output, args.model, args.table)
    model, frame = usable_model(args, console), read_table(args.table)
    how: dict[str, Any] = {"random_state": args.seed, "method": args.method, "limit": args.limit}
    how |= {"unseen": args.unseen, "parameters": args.parameters}
    how |= {"n_jobs": args.jobs, "verbose": int(console.shows_progress)}
    if args.draws is None:
        deliver(columns_of(model.impute(frame, **how)), args, console)
        return
    drawn = [columns_of(table) for table in model.impute(frame, args.draws, **how)]
    n_rows = len(next(iter(drawn[0].values())))
    name = unused_name("draw", list(drawn[0]))
    stacked: dict[str, list[Any]] = {
        name: [number for number in range(1, len(drawn) + 1) for _ in range(n_rows)]
    }
    for column in drawn[0]:
        stacked[column] = [cell for table in drawn for cell in table[column]]
    deliver(stacked, args, console)
