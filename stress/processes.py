"""Processes of a case: started, watched through /proc, and ended with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def started(words: Sequence[object], **options: object) -> Iterator[subprocess.Popen[str]]:
    """`python WORDS` in a group of its own; whatever is left of the group at the end is ended."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "COLUMNS": "80"},
        start_new_session=True,
        **options,  # type: ignore[call-overload]
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def descendants(pid: int) -> list[int]:
    """Everything that a process has started and that lives."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def orphans(pids: Sequence[int], seconds: float = 60.0) -> list[int]:
    """Those that still run after so many seconds."""
    until = time.monotonic() + seconds
    left = [pid for pid in pids if is_running(pid)]
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [pid for pid in left if is_running(pid)]
    return left
