"""Steps of a long computation -> a progress bar on the terminal, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from mixedgm.printable import cut, one_line

T = TypeVar("T")

_LONGEST = 40


def track(items: Iterable[T], *, show: bool, what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, drawing a bar with the time left on standard error when `show` is true.

    Examples
    --------
    >>> list(track([1, 2], show=False, what="lam"))
    [1, 2]
    """
    if not show:
        yield from items
        return
    from tqdm import tqdm

    what = cut(one_line(what), _LONGEST)
    yield from tqdm(items, desc=what, total=total, leave=False, dynamic_ncols=True)
