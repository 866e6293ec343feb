"""A command's parser -> the same with the options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = [
    *("FORMATS", "add_at", "add_format", "add_model", "add_moderators", "add_output"),
    *("add_quiet", "add_table"),
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
        help="values of the moderators, such as age=40: the graph there",
    )


def add_output(command: argparse.ArgumentParser, metavar: str, text: str, **options: Any) -> None:
    """Where a command writes."""
    command.add_argument("-o", "--output", metavar=metavar, help=text, **options)


def add_format(command: argparse.ArgumentParser, default: str = "table") -> None:
    """How a command writes a table."""
    text = f"how to write (default: as the ending of the output says, else {default})"
    command.add_argument("--format", choices=FORMATS, help=text)
    command.set_defaults(default_format=default)


def add_quiet(command: argparse.ArgumentParser) -> None:
    """Whether a command keeps notes to itself."""
    command.add_argument("--quiet", action="store_true", help="no notes and no progress")
