"""Command line arguments -> an exit code, with every error as one readable message.

Exit codes: 0 all went well; 2 the input is at fault; 1 memory ran out; 130 it was interrupted, by
Ctrl-C or, where the process says so (`mixedgm.__main__`), SIGTERM; 141 the reader of the output has
gone away.
"""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from io import TextIOWrapper
from textwrap import fill, indent
from typing import Any, NoReturn

from mixedgm.base.errors import MixedGMError
from mixedgm.base.printable import bounded, one_line
from mixedgm.base.progress import with_bars
from mixedgm.cli.commands import command_modules
from mixedgm.cli.console import Console

BAD_INPUT, OUT_OF_MEMORY, INTERRUPTED, BROKEN_PIPE = 2, 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default the one that was typed; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that the terminal cannot show is escaped
            stream.reconfigure(errors="backslashreplace")
    console = Console("")
    try:
        parser = build_parser()
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help()
            return 0
        console = Console(args.command, getattr(args, "quiet", False))
        return _run(args, console)
    except KeyboardInterrupt:
        console.error("interrupted", kind="")
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    finally:
        _close_output()


def _close_output() -> None:
    """Flush; Python would complain once more at exit about a dead pipe or a full disk."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: Namespace, console: Console) -> int:
    try:
        with console.notes(), with_bars(console.shows_progress):
            code = args.run(args, console)
        sys.stdout.flush()
    except MemoryError as error:
        ours = isinstance(error, MixedGMError)
        console.error(str(error) if ours else "there is not enough memory")
        return OUT_OF_MEMORY
    except MixedGMError as error:
        console.error(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{one_line(str(error.filename))}: " if error.filename else ""
        console.error(f"{where}{error.strerror or error}")
        return BAD_INPUT
    return INTERRUPTED if console.interrupted else int(code or 0)


# -- the parser ------------------------------------------------------------------------------------

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
