"""A command's parser -> the same with the options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = [
    *(
        "FORMATS",
        "add_at",
        "add_format",
        "add_formulas",
        "add_model",
        "add_model_form",
        "add_moderators",
        "add_output",
    ),
    *("add_quiet", "add_repair", "add_table", "add_unseen"),
]

FORMATS = ("table", "csv", "json")


def add_table(command: argparse.ArgumentParser) -> None:
    """The table that a command reads."""
    command.add_argument("table", metavar="TABLE", help="a .csv, .tsv or .parquet file")


def add_model(command: argparse.ArgumentParser) -> None:
    """The model that a command reads."""
    command.add_argument("model", metavar="MODEL", help="a model file that `mixedgm fit` wrote")


def add_moderators(group: argparse._ArgumentGroup) -> None:
    """Columns that the edges vary with."""
    group.add_argument(
        "--moderators",
        metavar="NAME,...",
        action="append",
        help="columns that the edges between all others vary with; covariates as well",
    )


def add_at(command: argparse.ArgumentParser) -> None:
    """Where a model with moderated edges is looked at."""
    command.add_argument(
        "--at",
        metavar="NAME=VALUE,...",
        action="append",
        help="values of the moderators, such as age=40: the graph there; quotes keep a comma, "
        "as in 'city=\"Bath, UK\"'",
    )


def add_unseen(command: argparse.ArgumentParser) -> None:
    """Levels that a model does not have."""
    command.add_argument(
        "--unseen",
        choices=("error", "ignore"),
        default="error",
        help="levels that the model does not have: stop (default), or let such a cell say nothing "
        "about the others of its row",
    )


def add_repair(command: argparse._ActionsContainer) -> None:
    """The way out for a model without a joint distribution."""
    command.add_argument(
        "--repair",
        action="store_true",
        help="take the nearest model that has a joint distribution, where the model has none",
    )


def add_output(command: argparse.ArgumentParser, metavar: str, text: str, **options: Any) -> None:
    """Where a command writes."""
    command.add_argument("-o", "--output", metavar=metavar, help=text, **options)


def add_format(command: argparse.ArgumentParser, default: str = "table") -> None:
    """How a command writes a table."""
    text = f"how to write (default: as the ending of the output says, else {default})"
    command.add_argument("--format", choices=FORMATS, help=text)
    command.set_defaults(default_format=default)
    add_formulas(command)


def add_formulas(command: argparse.ArgumentParser) -> None:
    """What becomes of text that a spreadsheet would run."""
    command.add_argument(
        "--formulas",
        choices=("keep", "mark"),
        default="keep",
        help="text in CSV that a spreadsheet would run, such as =1+2: as it is (default), or "
        "marked by an apostrophe",
    )


def add_quiet(command: argparse.ArgumentParser) -> None:
    """Whether a command keeps notes to itself."""
    command.add_argument("--quiet", action="store_true", help="no notes and no progress")


def add_model_form(group: argparse._ArgumentGroup) -> None:
    """Add what may have an edge, and what is minimised."""
    group.add_argument(
        "--covariates",
        metavar="NAME,...",
        action="append",
        help="columns that predict the others and are not predicted themselves",
    )
    add_moderators(group)
    group.add_argument(
        "--require",
        metavar="A:B,...",
        action="append",
        help="edges that are not penalised, so that they are always there",
    )
    group.add_argument(
        "--forbid", metavar="A:B,...", action="append", help="edges that may not be there"
    )
    group.add_argument(
        "--loss",
        default="pseudolikelihood",
        metavar="NAME",
        help="pseudolikelihood (default), likelihood, likelihood-mc (sampled, for dense graphs) or "
        "nodewise (a separate regression for every column)",
    )
    group.add_argument(
        "--rule",
        choices=("and", "or"),
        default="and",
        help="edges of --loss nodewise: those in both regressions (default), or in either",
    )
    group.add_argument(
        "--per-node",
        action="store_true",
        help="--loss nodewise: one penalty per column, by the ebic, bic or aic of its regression",
    )
    group.add_argument(
        "--weights",
        dest="penalty_weights",
        choices=("calibrated", "uniform"),
        default="calibrated",
        help="penalty weights of the edges: fair to every kind of edge (default), or all the same",
    )
    _add_solver(group)


def _add_solver(group: argparse._ArgumentGroup) -> None:
    """Add how it is minimised."""
    group.add_argument(
        "--solver", default="auto", help="auto (default), proximal-newton or proximal-gradient"
    )
    group.add_argument(
        "--tol",
        type=float,
        default=1e-5,
        help="how far from optimal a solution may be (default: 1e-5)",
    )
    group.add_argument(
        "--max-iter",
        type=int,
        default=1000,
        metavar="N",
        help="most iterations of the solver at each penalty (default: 1000)",
    )
    group.add_argument(
        "--jobs", type=int, metavar="N", help="processor cores to use (default: all)"
    )
