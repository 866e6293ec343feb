"""A table -> its schema and everything that is wrong with it, or where a model does not fit it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.base.errors import ParameterError, finding_lines
from mixedgm.base.printable import number_of, rows
from mixedgm.cli.console import Console, in_options
from mixedgm.cli.fitting_options import (
    add_columns,
    column_options,
    pairs_of,
    read_any,
    read_columns,
    refuse_column_options,
)
from mixedgm.cli.options import (
    add_jobs,
    add_list,
    add_model,
    add_number,
    add_quiet,
    add_result,
    add_seed,
    add_table,
)
from mixedgm.cli.output import check_output, columns_of, deliver

USAGE = "[MODEL] TABLE [options]"
SUMMARY = "show how a table will be understood, or where a model does not fit it"
EXPLANATION = """
Show each column of a table as continuous, hurdle, ordinal, count or categorical, with its levels,
and list everything that is wrong or doubtful: missing values and the columns that cost most rows,
identifiers (which are left out), columns that follow from others, skewed columns, columns with many
zeros (which may be hurdle columns), numbers that may be ordinal, counts or codes. Nothing is
fitted. The exit code is 2 if the table cannot be fitted as it is.

With a MODEL, compare the table with tables drawn from its graph, estimated on this table without
shrinkage, and say which columns and pairs are not as the model says, what that means and what to
do: a missing edge, a transform, another kind. The right graph is flagged in at most about 5 of 100
tables.
"""
EXAMPLES = """
mixedgm check survey.csv
mixedgm check survey.csv --types stage=categorical --missing drop
mixedgm check survey.csv --types pain=ordinal,visits=count,debt=hurdle
mixedgm check survey.mgm survey.csv
mixedgm check survey.mgm new.csv --as-is -o flags.csv
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The table, and how its columns are understood; the model, and how it is judged."""
    add_model(parser, nargs="?")
    add_table(parser)
    add_columns(parser)
    add_list(parser, "--forbid", "A:B,...", "edges that may not be there, as for `mixedgm fit`")
    group = parser.add_argument_group("does the model fit")
    text = "judge the model with its own parameters, shrunken or from other rows; no refit"
    group.add_argument("--as-is", action="store_true", help=text)
    add_number(group, "--simulations", default=200, text="simulated tables")
    text = "chance that a right model is flagged anywhere"
    add_number(group, "--alpha", default=0.05, metavar="ALPHA", text=text)
    add_seed(group, "the simulated tables")
    add_jobs(group)
    add_result(parser)
    add_quiet(parser)


def run(args: Namespace, console: Console) -> int:
    """Print the schema and the findings of a table, or the flags of a model."""
    if args.model is not None:
        return _check_fit(args, console)
    if args.as_is or args.output is not None or args.format is not None:
        raise ParameterError(
            "--as-is, --output and --format go with a model: mixedgm check MODEL TABLE."
        )
    return _check_table(args, console)


def _check_fit(args: Namespace, console: Console) -> int:
    """Print where the model does not fit the table."""
    from mixedgm.estimator.model import load
    from mixedgm.studies.fit_check.result import check_text

    refuse_column_options(args)
    check_output(args.output, args.model, args.table)
    model = load(args.model)
    frame, weights = read_columns(args)
    with console.announcing_compilation():
        checked = model.check_fit(
            frame,
            sample_weight=weights,
            refit=not args.as_is,
            n_sim=args.simulations,
            alpha=args.alpha,
            random_state=args.seed,
            n_jobs=args.jobs,
            verbose=int(console.shows_progress),
        )
    flags = columns_of(checked.flags())
    flags["advice"] = [in_options(each) for each in flags["advice"]]
    deliver(flags, args, console, lambda width: check_text(checked, in_options))
    return 0


def _check_table(args: Namespace, console: Console) -> int:
    """Print the schema and the findings of a table; 2 when it cannot be fitted."""
    from mixedgm.table.checks.check import check_table

    table, frame, weights = read_any(args)
    forbid = pairs_of(args, "forbid", frame)
    checked = check_table(table, sample_weight=weights, forbid=forbid, **column_options(args))
    n_rows, n_columns = checked.frame.n_rows, len(frame.names)
    console.out(f"{rows(n_rows)}, {number_of(n_columns, 'column')}\n")
    if checked.schema.columns:
        console.out(f"{checked.schema}\n")
    errors = [finding for finding in checked.findings if finding.severity == "error"]
    for line in finding_lines(checked.findings, lambda each: f"{each.severity}: {each}"):
        console.out(in_options(line))
    if all(finding.severity == "note" for finding in checked.findings):
        console.out("nothing wrong: ready to fit")
    if errors:
        things = "1 error has" if len(errors) == 1 else f"{len(errors):,} errors have"
        console.error(f"{things} to be fixed before this table can be fitted", kind="")
    return 2 if errors else 0
