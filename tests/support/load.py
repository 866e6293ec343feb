"""Checks that hold however busy the machine is: patience, and work counted instead of timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

PATIENCE = 900.0
"""Seconds after which something hangs; no working machine is that slow."""


def n_calls(work: Callable[[], Any]) -> int:
    """Count the calls of Python and C functions that the work makes."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
