"""Contract of a list of parts: a function of every part, sums over parts, other parts.

A part is any value, as a rule some rows of a table.  Functions that are mapped are a module's own,
or `functools.partial` of one, so that other processes can import them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
U = TypeVar("U")
Sums = tuple[Any, ...]
"""Arrays and numbers that are added up, or None, one after the other."""


class Same:
    """A value that is equal for all parts, among sums: of two that are added, the first stays."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __add__(self, other: Same) -> Same:
        return self


class Parts(Protocol[T]):
    """A list of values of type T, each of which can be in another place.

    Results depend on the parts and on their order, never on where they are or who computes.
    """

    @property
    def nearby(self) -> bool:
        """Whether the parts are in this process, so that reaching for one costs nothing."""

    def __len__(self) -> int: ...

    def map(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Iterator[U]:
        """Yield ``function(part, *common)`` of every part, in their order.

        With `each`, its entry of that part is one more argument, the last.
        """

    def total(
        self, function: Callable[..., Sums | None], *common: Any, each: Sequence[Any] | None = None
    ) -> Sums:
        """Return the sums of what the function returns, added up in a fixed order.

        A part without anything to add returns None.
        """
        sums: Sums | None = None
        for one in self.map(function, *common, each=each):
            sums = added(sums, one)
        return sums or ()

    def combined(
        self,
        combine: Callable[[list[Any]], U],
        function: Callable[..., Any],
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> U:
        """Return ``combine([function(part, *common), ...])``, computed where the parts are."""
        return combine(list(self.map(function, *common, each=each)))

    def replaced(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Parts[U]:
        """Return the parts that the function makes of these, which are given up."""

    def only(self, kept: Sequence[int]) -> Parts[T]:
        """Return some of the parts, by their numbers."""


class View(Generic[U]):
    """Parts as a function sees them; it is computed again whenever a part is asked for.

    Examples
    --------
    >>> from mixedgm.base.parts.local import LocalParts
    >>> halves = View(LocalParts([2, 4]), divmod, (2,), each=None)
    >>> list(halves.map(max))
    [1, 2]
    """

    def __init__(
        self,
        parts: Parts[Any],
        function: Callable[..., U],
        common: tuple[Any, ...] = (),
        each: Sequence[Any] | None = None,
    ) -> None:
        self.parts, self.function, self.common = parts, function, common
        self.each: list[tuple[Any, ...]] = _tuples(each, len(parts))

    @property
    def nearby(self) -> bool:
        """Whether the parts behind are in this process."""
        return self.parts.nearby

    def __len__(self) -> int:
        return len(self.parts)

    def _seen(self, function: Callable[..., Any], common: tuple[Any, ...]) -> tuple[Any, ...]:
        return seen, function, self.function, self.common, common

    def _arguments(self, each: Sequence[Any] | None) -> list[tuple[Any, Any]]:
        return list(zip(self.each, _tuples(each, len(self)), strict=True))

    def map(
        self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield a function of every part as it is seen here."""
        return self.parts.map(*self._seen(function, common), each=self._arguments(each))

    def total(
        self, function: Callable[..., Sums | None], *common: Any, each: Sequence[Any] | None = None
    ) -> Sums:
        """Return the sums over parts, as they are seen here."""
        return self.parts.total(*self._seen(function, common), each=self._arguments(each))

    def combined(
        self,
        combine: Callable[[list[Any]], Any],
        function: Callable[..., Any],
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """Return what is combined of all parts, as they are seen here."""
        given = self._seen(function, common)
        return self.parts.combined(combine, *given, each=self._arguments(each))

    def replaced(
        self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None
    ) -> Parts[Any]:
        """Return the parts that a function makes of these; those behind are given up."""
        return self.parts.replaced(*self._seen(function, common), each=self._arguments(each))

    def only(self, kept: Sequence[int]) -> View[U]:
        """Return some of the parts."""
        view = View(self.parts.only(kept), self.function, self.common)
        view.each = [self.each[k] for k in kept]
        return view


def seen(
    part: object,
    function: Callable[..., Any],
    view: Callable[..., Any],
    of_view: tuple[Any, ...],
    common: tuple[Any, ...],
    each: tuple[tuple[Any, ...], tuple[Any, ...]],
) -> Any:
    """Return a function of what a view makes of a part."""
    return function(view(part, *of_view, *each[0]), *common, *each[1])


def _tuples(each: Sequence[Any] | None, n_parts: int) -> list[tuple[Any, ...]]:
    return [()] * n_parts if each is None else [(one,) for one in each]


def added(*sums: Sums | None) -> Sums:
    """Return the sums of tuples, entry by entry, from the first to the last; None counts nothing.

    Examples
    --------
    >>> added((1, None), None, (2, None))
    (3, None)
    """
    some = [each for each in sums if each is not None]
    if not some:
        return ()
    out = list(some[0])
    for other in some[1:]:
        for at, value in enumerate(other):
            out[at] = value if out[at] is None else (out[at] if value is None else out[at] + value)
    return tuple(out)
