"""The parsers of query, sample and impute -> the same with what these commands take."""

from __future__ import annotations

import argparse
from textwrap import fill

from mixedgm.cli.common_arguments import (
    add_format,
    add_model,
    add_output,
    add_quiet,
    add_repair,
    add_table,
    add_unseen,
)
from mixedgm.cli.lists import LIST_RULE

__all__ = ["add_impute", "add_query", "add_sample"]


def add_query(command: argparse.ArgumentParser) -> None:
    """Questions about the distribution of columns."""
    add_model(command)
    question = command.add_argument_group("question", fill(f"One of these. {LIST_RULE}", 76))
    either = question.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "--marginal", metavar="A,B,...", action="append", help="the distribution of these columns"
    )
    either.add_argument(
        "--mean",
        action="store_true",
        help="means of all continuous columns, probabilities of all levels",
    )
    either.add_argument(
        "--entropy",
        metavar="A,B,...",
        action="append",
        help="the entropy of these columns, in nats",
    )
    either.add_argument(
        "--mutual-information",
        metavar="A,B",
        action="append",
        help="what two columns say about each other, in nats",
    )
    either.add_argument(
        "--discrepancy",
        action="store_true",
        help="how far pairs of columns are from the table of the fit, the worst first",
    )
    _given(command)
    add_output(command, "FILE", "where to write, instead of to the terminal")
    add_format(command)
    _how(command, "the chains where an answer is sampled")


def add_sample(command: argparse.ArgumentParser) -> None:
    """New rows."""
    add_model(command)
    command.add_argument(
        "-n", "--rows", type=int, default=1000, metavar="N", help="how many (default: 1000)"
    )
    _given(command)
    add_output(command, "FILE", "where to write, instead of to the terminal")
    add_format(command, default="csv")
    command.add_argument(
        "--burn-in",
        type=int,
        default=500,
        metavar="N",
        help="sweeps of Gibbs chains before a row is kept (default: 500)",
    )
    command.add_argument(
        "--thin", type=int, default=5, metavar="N", help="sweeps between kept rows (default: 5)"
    )
    _how(command, "which rows are drawn")


def add_impute(command: argparse.ArgumentParser) -> None:
    """Missing cells."""
    add_model(command)
    add_table(command)
    add_output(command, "FILE", "where to write, instead of to the terminal")
    add_format(command, default="csv")
    command.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="fill each cell with a draw, N times; a first column `draw` counts them "
        "(default: means and most probable levels, once)",
    )
    add_unseen(command)
    _how(command, "which draws")


def _given(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--given",
        metavar="NAME=VALUE,...",
        action="append",
        help="known values, such as sex=Female,age=40, or 'city=\"Bath, UK\"': quotes keep a comma",
    )


def _how(command: argparse.ArgumentParser, seeded: str) -> None:
    group = command.add_argument_group("computation")
    group.add_argument(
        "--method",
        choices=("auto", "exact", "gibbs"),
        default="auto",
        help="exactly, by Gibbs chains, or exactly where that fits the limit (default: auto)",
    )
    group.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="most entries of the tables of an exact answer (default: 16777216)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help=f"{seeded} (default: 0)")
    add_repair(group)
    add_quiet(command)
