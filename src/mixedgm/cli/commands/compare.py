"""A table and a column of groups -> a folder with models, tables and pictures of a comparison."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import add_fitting, fit_options, read_columns
from mixedgm.cli.options import (
    add_checkpoint,
    add_choice,
    add_formulas,
    add_network,
    add_number,
    add_output,
    add_table,
    check_checkpoint,
    network_options,
)
from mixedgm.cli.output import (
    can_draw,
    columns_of,
    make_folder,
    save_picture,
    write_columns,
    write_tables,
)

if TYPE_CHECKING:
    from mixedgm.results.export import Formulas
    from mixedgm.studies.groups.result import GroupComparison

USAGE = "TABLE --groups COLUMN -o FOLDER [options]"
SUMMARY = "learn one network per group of rows and test whether they differ"
EXPLANATION = """
Learn a network in each group of rows, and list the pairs of columns side by side. Where every
group has enough rows, each pair is estimated without shrinkage given the edges found in any group,
and the differences are tested: every pair gets a probability that it differs. Else the group labels
are shuffled many times and the networks learnt again. Groups may differ in means, units and shares;
the summary says which was done and why. Columns stay as they are unless --transform is given.
Models, tables and pictures go into a folder. With --checkpoint, finished shuffles are kept, and
--resume continues after any interruption, with the same results.
"""
EXAMPLES = """
mixedgm compare survey.csv --groups site -o sites
mixedgm compare survey.csv --groups site -o sites --permutations 2000
mixedgm compare survey.csv --groups wave -o waves --paired person
mixedgm compare survey.csv --groups site -o sites --checkpoint kept --resume
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The table, its groups, how to fit and shuffle, and where to write."""
    add_table(parser)
    add_output(parser, "FOLDER", "where to write models, tables and pictures", required=True)
    text = "column that says who is in which group"
    parser.add_argument("--groups", metavar="NAME", required=True, help=text)
    text = "test differences of estimates, or shuffle labels (default: by the number of rows)"
    add_choice(parser, "--test", "auto", "differences", "permutation", text=text)
    text = "shuffle labels so many times (default: 500 where they are shuffled)"
    parser.add_argument("--permutations", type=int, metavar="N", help=text)
    text = "one penalty for all groups (default), or one chosen in each, which takes longer"
    add_choice(parser, "--penalty", "common", "own", text=text)
    parser.add_argument("--lam", type=float, help="the penalty, instead of choosing it")
    text = "column of persons or other units that are in several groups"
    parser.add_argument("--paired", metavar="NAME", help=text)
    text = "column of rows that belong together, such as households"
    parser.add_argument("--cluster", metavar="NAME", help=text)
    add_number(parser, "--alpha", default=0.05, metavar="ALPHA", text="level of significance")
    text = "pairs differ if they are the same with at most this probability (default: where missed "
    text += "and false differences should balance best)"
    parser.add_argument("--limit", type=float, metavar="P", help=text)
    add_checkpoint(parser, "where finished shuffles are kept")
    add_formulas(parser)
    add_fitting(parser)
    add_network(parser)


def run(args: Namespace, console: Console) -> None:
    """Fit, shuffle, write everything, print the summary."""
    from mixedgm.estimator.groups import compare

    check_checkpoint(args, "permutations")
    folder = make_folder(args.output)
    frame, weights = read_columns(args)
    taken = (args.groups, args.paired, args.cluster)
    style = network_options(args, [name for name in frame.names if name not in taken])
    options = fit_options(args, frame)
    if not args.transform:
        del options["transforms"]  # the default of compare, which is not that of one model
    console.keeps_partial = True
    with console.announcing_compilation():
        comparison = compare(
            frame,
            args.groups,
            test=args.test,
            penalty=args.penalty,
            paired=args.paired,
            cluster=args.cluster,
            n_perm=args.permutations,
            alpha=args.alpha,
            limit=args.limit,
            sample_weight=weights,
            checkpoint=args.checkpoint,
            verbose=int(console.shows_progress),
            **options,
        )
    _write_tables(comparison, folder, args.formulas)
    if can_draw(console):
        _draw(comparison, folder, style, console)
    if not args.quiet:
        console.out(comparison.summary())
    console.say(f"wrote {folder}")


def _write_tables(comparison: GroupComparison, folder: Path, formulas: Formulas) -> None:
    # Labels may hold anything, so the files are numbered; groups.csv says which is which.
    files = [f"group{k + 1}.mgm" for k in range(len(comparison.groups))]
    for file, model in zip(files, comparison.models.values(), strict=True):
        model.save(folder / file)
    groups = columns_of(comparison.group_table())
    write_columns({**groups, "model": files}, folder / "groups.csv", formulas)
    write_tables(comparison, comparison.tables, folder, formulas)


def _draw(
    comparison: GroupComparison, folder: Path, style: dict[str, Any], console: Console
) -> None:
    save_picture(comparison.plot_differences(), folder / "differences.png")
    try:
        networks = comparison.plot(**style)
    except ParameterError as error:  # too many columns for one picture; all else is written
        console.note(f"no picture of the networks: {error}")
    else:
        save_picture(next(iter(networks.values())).ax, folder / "networks.png")
