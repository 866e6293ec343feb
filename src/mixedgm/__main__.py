"""`python -m mixedgm`, and the command `mixedgm` -> the process of a command line, and its end.

Ctrl-C and SIGTERM end it with the exit codes 130 and 143 and one line of text.  While a command
runs they are raised as KeyboardInterrupt, so that files are tidied up and what is solved is kept;
before and after that the process ends at once.
"""

import os
import signal
import sys
import threading
from typing import Any, NoReturn

_INTERRUPTED = 130


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    A class of its own, because Python ends by SIGINT, whatever the exit code, once it has seen the
    exception of Ctrl-C in some places, such as the import of a module in C.
    """


class _Stop:
    """Handler of Ctrl-C and SIGTERM: raises `Stopped` in a command, and else ends the process."""

    def __init__(self) -> None:
        self.signum = 0
        self.raises = False

    def install(self) -> None:
        for signum in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(signum) != signal.SIG_IGN:  # as under nohup, or in the background
                signal.signal(signum, self)
        sys.unraisablehook = self.again

    def __call__(self, signum: int, _: object) -> None:
        self.signum = signum
        if self.raises:
            raise Stopped
        self.leave()

    def again(self, ignored: Any) -> None:
        """Send a signal again that came where Python cannot raise, as when an object is freed."""
        if not self.signum or not issubclass(ignored.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)
            return
        timer = threading.Timer(0.02, signal.raise_signal, [self.signum])
        timer.daemon = True
        timer.start()

    def leave(self) -> NoReturn:
        """End now, whatever else is going on."""
        try:
            os.write(2, b"mixedgm: interrupted\n")
        finally:
            os._exit(128 + self.signum)


def main() -> int:
    """Run the command that was typed; return the exit code."""
    stop = _Stop()
    stop.install()
    from mixedgm.cli import main as run

    try:
        stop.raises = True
        code = run()
        stop.raises = False
    except BaseException:
        if stop.signum:
            stop.leave()
        raise
    return 128 + stop.signum if stop.signum and code == _INTERRUPTED else code


if __name__ == "__main__":
    sys.exit(main())
