"""The names of the commands -> their modules, one file per command.

A module is loaded for every `mixedgm --help`, so it imports what is heavy (NumPy and whatever
needs it) where `run` uses it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Protocol, cast

from mixedgm.cli.console import Console

__all__ = ["NAMES", "Command", "command_modules"]

# In the order of the help.
NAMES = (
    "check",
    "fit",
    "select",
    "path",
    "edges",
    "test",
    "plot",
    "report",
    "predict",
    "query",
    "sample",
    "impute",
    "missing",
    "bootstrap",
    "compare",
    "demo",
)


class Command(Protocol):
    """What the module of a command holds: its help, its arguments, its work."""

    USAGE: str  # what follows the name
    SUMMARY: str  # one line for the list of commands
    EXPLANATION: str  # one paragraph
    EXAMPLES: str  # one command per line

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add what the command takes."""

    def run(self, args: Namespace, console: Console) -> int | None:
        """Do the work; return an exit code other than 0, or None."""


def command_modules() -> dict[str, Command]:
    """Return the module of every command by the command's name."""
    return {name: cast(Command, import_module(f"{__name__}.{name}")) for name in NAMES}
