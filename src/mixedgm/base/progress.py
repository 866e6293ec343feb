"""Steps of a long computation -> a warning before it, and a progress bar on the terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from mixedgm.base.errors import LongRunWarning, level_of_caller
from mixedgm.base.printable import cut, one_line

T = TypeVar("T")

LONG = 10.0
"""Seconds from which on a computation is announced and shows a progress bar."""

_LONGEST = 40
_DELAY = 3.0  # seconds
_announces = ContextVar("announces", default=True)
_bars: ContextVar[bool | None] = ContextVar("bars", default=None)


def announce(seconds: float, what: str, remedy: str, *, at_most: bool = False) -> None:
    """Warn of a computation that takes more than about ten seconds, before it begins.

    `what` is a noun phrase and `remedy` says what would make it shorter.
    """
    if seconds >= LONG and _announces.get():
        about = "up to about" if at_most else "about"
        message = f"{what} takes {about} {duration(seconds)}. To shorten it: {remedy}."
        warnings.warn(message, LongRunWarning, stacklevel=level_of_caller())


@contextmanager
def quietly() -> Iterator[None]:
    """Announce nothing: the whole was announced, of which this is a part."""
    token = _announces.set(False)
    try:
        yield
    finally:
        _announces.reset(token)


@contextmanager
def with_bars(show: bool) -> Iterator[None]:
    """Draw the progress bars of long computations, or none; by default where someone can see it."""
    token = _bars.set(show)
    try:
        yield
    finally:
        _bars.reset(token)


def _watched() -> bool:
    """Whether bars are seen: on a terminal, or in a notebook."""
    chosen = _bars.get()
    if chosen is not None:
        return chosen
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal or "ipykernel" in sys.modules


def track(
    items: Iterable[T],
    *,
    what: str,
    show: bool = False,
    seconds: float | None = 0.0,
    total: int | None = None,
) -> Iterator[T]:
    """Yield the items, drawing a bar with the time left on standard error.

    It is drawn when `show` is true.  Where someone can see it, it is also drawn when all items
    together take about `seconds`, and that is long, or when that is not known (None) and they have
    taken some seconds.

    Examples
    --------
    >>> list(track([1, 2], show=False, what="lam"))
    [1, 2]
    """
    long = seconds is None or seconds >= LONG
    if not show and not (long and _watched()):
        yield from items
        return
    from tqdm import tqdm

    what, delay = cut(one_line(what), _LONGEST), 0.0 if show or seconds is not None else _DELAY
    yield from tqdm(items, what, total, leave=False, dynamic_ncols=True, delay=delay)


def duration(seconds: float) -> str:
    """Return a length of time in round words.

    Examples
    --------
    >>> duration(23), duration(70), duration(400), duration(9000), duration(400_000)
    ('20 seconds', 'a minute', '7 minutes', '2.5 hours', '5 days')
    """
    if seconds < 45.0:
        return f"{max(1, round(seconds / 10)) * 10} seconds"
    minutes = seconds / 60.0
    if minutes < 1.5:
        return "a minute"
    if minutes < 60.0:
        return f"{_round(minutes):.0f} minutes"
    hours = minutes / 60.0
    if hours < 1.25:
        return "an hour"
    return f"{_round(hours):g} hours" if hours < 36.0 else f"{_round(hours / 24.0):.0f} days"


def _round(value: float) -> float:
    if value < 4.0:
        return round(value * 2) / 2
    return float(f"{value:.1g}") if value > 10 else round(value)
