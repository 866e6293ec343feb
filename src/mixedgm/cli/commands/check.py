"""A table -> its schema and everything that is wrong with it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.cli.console import Console, in_options
from mixedgm.cli.fitting_options import add_columns, column_options, read_columns
from mixedgm.cli.options import add_table
from mixedgm.errors import finding_lines
from mixedgm.printable import number_of, rows

USAGE = "TABLE [options]"
SUMMARY = "show how a table will be understood, and what is wrong with it"
EXPLANATION = """
Show each column of a table as continuous, hurdle, ordinal, count or categorical, with its levels,
and list everything that is wrong or doubtful: missing values and the columns that cost most rows,
identifiers (which are left out), columns that follow from others, skewed columns, columns with many
zeros (which may be hurdle columns), numbers that may be ordinal, counts or codes. Nothing is
fitted. The exit code is 2 if the table cannot be fitted as it is.
"""
EXAMPLES = """
mixedgm check survey.csv
mixedgm check survey.csv --types stage=categorical --missing drop
mixedgm check survey.csv --types pain=ordinal,visits=count,debt=hurdle
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The table, and how its columns are understood."""
    add_table(parser)
    add_columns(parser)


def run(args: Namespace, console: Console) -> int:
    """Print the schema and the findings of a table; 2 when it cannot be fitted."""
    from mixedgm.table import check_table

    frame, weights = read_columns(args)
    checked = check_table(frame, sample_weight=weights, **column_options(args))
    n_rows, n_columns = frame.shape
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
