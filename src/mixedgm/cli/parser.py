"""The commands -> the parser of the command line, with the help that a newcomer reads."""

from __future__ import annotations

import argparse
import sys
from textwrap import fill, indent
from typing import Any, NoReturn

from mixedgm.cli.commands import command_modules
from mixedgm.printable import bounded, one_line

__all__ = ["build_parser"]

_WELCOME = """\
Find out which columns of a table are directly related: continuous and
categorical columns together, in one network, with the strength of each edge.

typical use:
  mixedgm demo                              the whole job on a bundled survey
  mixedgm check survey.csv                  how each column will be understood
  mixedgm fit survey.csv -o survey.mgm      learn the network, keep it in a file
  mixedgm edges survey.mgm                  which columns are related
  mixedgm plot survey.mgm -o network.png    the picture
  mixedgm report survey.csv -o report.html  all of it in one file

A table is a CSV, TSV (also .gz) or Parquet file with a line of column names."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and a hint, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(
            f"{self.prog}: error: {bounded(one_line(message))}\nTry: {self.prog} --help\n"
        )
        raise SystemExit(2)


class _Version(argparse.Action):
    """Print the version; it is looked up only when asked for."""

    def __init__(self, option_strings: Any, dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from mixedgm.store import library_version

        sys.stdout.write(f"mixedgm {library_version()}\n")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; of what it parses, `command` is the name and `run` does the work."""
    parser = _Parser(
        prog="mixedgm",
        description=_WELCOME,
        epilog="`mixedgm COMMAND --help` explains a command and its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, module in command_modules().items():
        command = commands.add_parser(
            name,
            usage=f"mixedgm {name} {module.USAGE}",
            help=module.SUMMARY,
            description=fill(module.EXPLANATION.strip(), 79),
            epilog=f"examples:\n{indent(module.EXAMPLES.strip(), '  ')}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
