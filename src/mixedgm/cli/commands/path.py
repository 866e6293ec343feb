"""A table -> the solutions of a whole path of penalties, one line each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import (
    add_fitting,
    add_scheduler,
    fit_options,
    fitted_model,
    read_any,
)
from mixedgm.cli.options import add_result, add_table
from mixedgm.cli.output import check_output, deliver

if TYPE_CHECKING:
    from mixedgm.fit.fitted import FittedModel

USAGE = "TABLE [-o FILE] [options]"
SUMMARY = "solve for many penalties and list how the network grows"
EXPLANATION = """
Solve for a whole path of penalties, from the smallest one without edges downwards, and list for
each the number of edges, the objective, how optimal the solution is, and the score by which
`mixedgm fit` would choose. Ctrl-C while solving keeps what is solved.
"""
EXAMPLES = """
mixedgm path survey.csv
mixedgm path survey.csv --n-lams 100 -o path.csv
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The table, how to fit, and where to write."""
    add_table(parser)
    add_result(parser)
    add_fitting(parser)
    add_scheduler(parser)


def run(args: Namespace, console: Console) -> None:
    """Solve a path and list it."""
    from mixedgm.results.tables import path_columns
    from mixedgm.results.text import lam_text
    from mixedgm.select.selection import NAMED, WholeGrid

    check_output(args.output, args.table)
    console.keeps_partial = True
    table, frame, weights = read_any(args)
    options = fit_options(args, frame)
    criterion = NAMED.get(options["select"], options["select"])
    if not isinstance(criterion, str):
        options["select"] = WholeGrid(criterion)
    fitted = fitted_model(table, weights, options, console).fitted_
    deliver(path_columns(fitted), args, console, lambda width: _text(fitted, width))
    console.note(f"{fitted.report.criterion} chooses lam = {lam_text(fitted.report.lam)}")


def _text(fitted: FittedModel, width: int) -> str:
    """The columns of a path that fit on a terminal, with an arrow at the chosen lam."""
    from mixedgm.results.tables import chosen_columns, path_columns
    from mixedgm.results.text import table_text

    columns = path_columns(fitted)
    short = {name: columns[name] for name in ("lam", "n_edges", "objective", "kkt", "seconds")}
    if isinstance(fitted.report.lam, tuple):
        return table_text({**short, "chosen for": chosen_columns(fitted)}, width)
    for name, scores in list(fitted.scores.items())[:1]:
        short[name] = [f"{score:.2f}" for score in scores]
    short["chosen"] = ["<--" if lam == fitted.report.lam else "" for lam in columns["lam"]]
    return table_text(short, width)
