"""A command's parser -> the same with options that many commands share."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from typing import Any

from mixedgm.errors import ParameterError
from mixedgm.printable import quoted

__all__ = [
    "add_checkpoint",
    "add_choice",
    "add_format",
    "add_formulas",
    "add_jobs",
    "add_list",
    "add_number",
    "add_output",
    "add_quiet",
    "add_result",
    "add_seed",
    "add_table",
    "check_checkpoint",
]


def add_choice(parser: _ActionsContainer, option: str, *choices: str, text: str) -> None:
    """An option with a few values, the first of them by default."""
    parser.add_argument(option, choices=choices, default=choices[0], help=text)


def add_list(parser: _ActionsContainer, option: str, metavar: str, text: str) -> None:
    """An option with a list (`mixedgm.cli.lists`), which may be given several times."""
    parser.add_argument(option, metavar=metavar, action="append", help=text)


def add_number(
    parser: _ActionsContainer, *options: str, default: float, text: str, metavar: str = "N"
) -> None:
    """An option with a number of the type of its default, which the help names."""
    text += f" (default: {default})"
    parser.add_argument(*options, type=type(default), default=default, metavar=metavar, help=text)


def add_table(parser: ArgumentParser) -> None:
    """The table that a command reads."""
    parser.add_argument("table", metavar="TABLE", help="a .csv, .tsv or .parquet file")


def add_output(parser: ArgumentParser, metavar: str, text: str, **options: Any) -> None:
    """Where a command writes."""
    parser.add_argument("-o", "--output", metavar=metavar, help=text, **options)


def add_result(parser: ArgumentParser, default: str = "table") -> None:
    """Where and how a command writes the table that is its result."""
    add_output(parser, "FILE", "where to write, instead of to the terminal")
    add_format(parser, default)


def add_format(parser: ArgumentParser, default: str = "table") -> None:
    """How a command writes a table."""
    text = f"how to write (default: as the ending of the output says, else {default})"
    parser.add_argument("--format", choices=("table", "csv", "json"), help=text)
    parser.set_defaults(default_format=default)
    add_formulas(parser)


def add_formulas(parser: ArgumentParser) -> None:
    """What becomes of text that a spreadsheet would run."""
    text = (
        "text in CSV that a spreadsheet would run, such as =1+2: as it is (default), or marked by "
    )
    add_choice(parser, "--formulas", "keep", "mark", text=f"{text}an apostrophe")


def add_quiet(parser: ArgumentParser) -> None:
    """Whether a command leaves out notes."""
    parser.add_argument("--quiet", action="store_true", help="no notes and no progress")


def add_jobs(parser: _ActionsContainer) -> None:
    """How many cores a command uses."""
    text = "processor cores to use (default: all)"
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help=text)


def add_seed(parser: _ActionsContainer, text: str) -> None:
    """Where random numbers start; `text` is what they decide."""
    add_number(parser, "--seed", default=0, text=text)


def add_checkpoint(parser: _ActionsContainer, text: str) -> None:
    """Where finished parts of long work are kept."""
    parser.add_argument("--checkpoint", metavar="FOLDER", help=text)
    parser.add_argument(
        "--resume", action="store_true", help="continue the work that --checkpoint holds"
    )


def check_checkpoint(args: Namespace, what: str) -> None:
    """Refuse --resume without a folder, and a folder with work without --resume."""
    from mixedgm.checkpoint import holds_work

    if args.checkpoint is None:
        if args.resume:
            raise ParameterError("--resume needs --checkpoint FOLDER, which says what to resume.")
        return
    if holds_work(args.checkpoint) and not args.resume:
        raise ParameterError(
            f"{quoted(args.checkpoint)} already holds finished {what}; "
            "add --resume to continue with them, or give another folder."
        )
