"""Command line arguments -> an exit code, with every error as one readable message.

Exit codes: 0 all went well; 2 the input is at fault; 1 memory ran out; 130 Ctrl-C; 141 whoever read
the output has gone away.  Python itself ends by the signal when Ctrl-C hits an import; to a shell
that is 130 as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from mixedgm.cli.arguments import build_parser
from mixedgm.cli.console import Console
from mixedgm.errors import MixedGMError
from mixedgm.printable import one_line

__all__ = ["main"]

BAD_INPUT, OUT_OF_MEMORY, INTERRUPTED, BROKEN_PIPE = 2, 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``mixedgm``; by default those of the terminal.

    Returns
    -------
    int
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that the terminal cannot show is escaped
            stream.reconfigure(errors="backslashreplace")
    parser = build_parser()
    try:
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help()
            return 0
        console = Console(args.command, getattr(args, "quiet", False))
        return _run(args.command, args, console)
    except BrokenPipeError:
        # Python would complain once more when it flushes the dead pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(command: str, args: object, console: Console) -> int:
    try:
        with console.notes():
            from mixedgm.cli import commands

            done = getattr(commands, command)(args, console)
        sys.stdout.flush()
    except KeyboardInterrupt:
        console.error("interrupted", kind="")
        return INTERRUPTED
    except MixedGMError as error:
        console.error(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{one_line(str(error.filename))}: " if error.filename else ""
        console.error(f"{where}{error.strerror or error}")
        return BAD_INPUT
    except MemoryError:
        console.error("out of memory: fit fewer columns or rows")
        return OUT_OF_MEMORY
    return int(done or 0)
