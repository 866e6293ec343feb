"""A model file and its table -> a folder with the tables and pictures of a bootstrap."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import read_columns
from mixedgm.cli.options import (
    add_checkpoint,
    add_choice,
    add_formulas,
    add_jobs,
    add_model,
    add_number,
    add_output,
    add_quiet,
    add_seed,
    add_table,
    check_checkpoint,
)
from mixedgm.cli.output import can_draw, make_folder, save_picture, write_tables

if TYPE_CHECKING:
    from mixedgm.studies.resampling.result import Bootstrap

USAGE = "MODEL TABLE -o FOLDER [options]"
SUMMARY = "resample the table of a model: sizes of edges, how often they are found, stability"
EXPLANATION = """
Fit the model again to many resamples of the table it was fitted to, and write tables and pictures
into a folder. The nonparametric bootstrap draws rows with replacement. How large each edge is, with
an interval for every pair of columns that may have one, is in intervals.csv (and in parameters.csv,
in the data's own units); how often the model finds each edge again is in selection.csv. Further
tests between edges, and intervals of centralities. The case-dropping bootstrap leaves rows out: how
many can be lost before the network looks different. With --checkpoint, finished resamples are kept,
and --resume continues after any interruption, with the same results.
"""
EXAMPLES = """
mixedgm bootstrap survey.mgm survey.csv -o boot
mixedgm bootstrap survey.mgm survey.csv -o stability --kind case-dropping
mixedgm bootstrap survey.mgm survey.csv -o boot --checkpoint kept --resume
"""

_SIZES = ("strengths", "intervals", "parameters")
_TABLES = {
    "nonparametric": (*_SIZES, "selection", "differences", "centrality"),
    "case-dropping": ("stability", "cs_coefficient"),
}


def add_arguments(parser: ArgumentParser) -> None:
    """The model, its table, how to resample, and where to write."""
    add_model(parser)
    add_table(parser)
    add_output(parser, "FOLDER", "where to write tables and pictures", required=True)
    add_number(parser, "--n-boot", default=1000, text="resamples")
    text = "draw rows with replacement (default), or leave more and more rows out"
    add_choice(parser, "--kind", *_TABLES, text=text)
    text = "keep the penalty of the model (default), or choose it again in every resample"
    add_choice(parser, "--select", "fixed", "again", text=text)
    text = "leave out the intervals of all pairs, which take half the time"
    parser.add_argument("--no-intervals", action="store_true", help=text)
    text = "column that says which rows belong together"
    parser.add_argument("--groups", metavar="NAME", help=text)
    text = "column with the weights of the fit"
    parser.add_argument("--weights-column", metavar="NAME", help=text)
    add_seed(parser, "which resamples are drawn")
    add_jobs(parser)
    add_checkpoint(parser, "where finished resamples are kept")
    parser.set_defaults(drop=None)
    add_formulas(parser)
    add_quiet(parser)


def run(args: Namespace, console: Console) -> None:
    """Resample, write everything, print the summary."""
    from mixedgm.estimator.model import load
    from mixedgm.studies.resampling.bootstrap import bootstrap

    check_checkpoint(args, "resamples")
    folder = make_folder(args.output)
    model = load(args.model)
    frame, weights = read_columns(args)
    console.keeps_partial = True
    with console.announcing_compilation():
        result = bootstrap(
            model,
            frame,
            args.n_boot,
            args.kind,
            args.select,
            args.groups,
            intervals=not args.no_intervals,
            sample_weight=weights,
            n_jobs=args.jobs,
            random_state=args.seed,
            checkpoint=args.checkpoint,
            verbose=int(console.shows_progress),
        )
    left_out = _SIZES if result.no_intervals else ()
    names = [name for name in (*_TABLES[args.kind], "degenerate") if name not in left_out]
    write_tables(result, names, folder, args.formulas)
    if can_draw(console):
        _draw(result, folder)
    if not args.quiet:
        console.out(result.summary())
    console.say(f"wrote {folder}")


def _draw(result: Bootstrap, folder: Path) -> None:
    if result.kind == "case-dropping":
        save_picture(result.plot_stability(), folder / "stability.png")
        return
    if not result.no_intervals:
        save_picture(result.plot_intervals(), folder / "intervals.png")
    save_picture(result.plot_selection(), folder / "selection.png")
    save_picture(result.plot_differences(), folder / "differences.png")
    for measure in ("total_strength", "closeness", "betweenness"):
        save_picture(result.plot_centrality(measure), folder / f"{measure}.png")
