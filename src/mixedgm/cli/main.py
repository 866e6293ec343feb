"""Command line arguments -> an exit code, with every error as one readable message.

Exit codes: 0 all went well; 2 the input is at fault; 1 memory ran out; 130 it was interrupted, by
Ctrl-C or, where the process says so (`mixedgm.__main__`), SIGTERM; 141 the reader of the output has
gone away.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from io import TextIOWrapper

from mixedgm.cli.console import Console
from mixedgm.cli.parser import build_parser
from mixedgm.errors import MixedGMError
from mixedgm.printable import one_line
from mixedgm.progress import with_bars

__all__ = ["main"]

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
