"""A model file and its table -> a test of every pair of columns that may have an edge."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import read_columns
from mixedgm.cli.options import (
    add_choice,
    add_format,
    add_jobs,
    add_model,
    add_output,
    add_seed,
    add_table,
)
from mixedgm.cli.output import check_output, columns_of, deliver

USAGE = "MODEL TABLE [-o FILE] [options]"
SUMMARY = "test every pair of columns for an edge: p-values, intervals, evidence"
EXPLANATION = """
Test every pair of columns that may have an edge, without shrinkage: its size and interval, a
p-value (and the same adjusted for all pairs, by Holm and by Benjamini and Hochberg), the
probability of an edge, a Bayes factor, and the verdict: present, absent or undecided. Rows that
belong together, such as those of a household, are named by --cluster.
"""
EXAMPLES = """
mixedgm test survey.mgm survey.csv
mixedgm test survey.mgm survey.csv -o tests.csv
mixedgm test survey.mgm survey.csv --cluster household
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, its table, how to test, and where to write."""
    add_model(parser)
    add_table(parser)
    add_output(parser, "FILE", "where to write (.csv, .json or .txt)")
    text = "adjust for the edges that pass their own tests (default), or for all pairs (free)"
    add_choice(parser, "--method", "graph", "free", text=text)
    text = "take variances from the rows (default), or from rows drawn from the model"
    add_choice(parser, "--covariance", "rows", "model", text=text)
    text = "column that says which rows belong together"
    parser.add_argument("--cluster", metavar="NAME", help=text)
    text = "column with the weights of the fit"
    parser.add_argument("--weights-column", metavar="NAME", help=text)
    text = "of the intervals (default: 0.95)"
    parser.add_argument("--level", type=float, default=0.95, metavar="SHARE", help=text)
    add_seed(parser, "which rows are drawn from the model")
    add_jobs(parser)
    parser.set_defaults(drop=None)
    add_format(parser)


def run(args: Namespace, console: Console) -> None:
    """Test all pairs and write the list."""
    from mixedgm.estimator.model import load
    from mixedgm.studies.edges.tests import edge_tests

    check_output(args.output, args.model, args.table)
    model = load(args.model)
    table, weights = read_columns(args)
    with console.announcing_compilation():
        tests = edge_tests(
            model,
            table,
            method=args.method,
            covariance=args.covariance,
            cluster=args.cluster,
            level=args.level,
            sample_weight=weights,
            random_state=args.seed,
            n_jobs=args.jobs,
        )
    deliver(columns_of(tests.edges()), args, console, lambda width: tests.summary())
