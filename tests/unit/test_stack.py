"""A function with room: the same results, and no new block of memory for every call below it."""

from __future__ import annotations

import resource
from collections.abc import Callable

from mixedgm.stack import with_room


def _small(x: int) -> int:
    return x + 1


def _calls_below(depth: int) -> int:
    """Page faults of many small calls from this depth."""
    if depth:
        return _calls_below(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for k in range(2000):
        _small(k)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _worst(run: Callable[[int], int]) -> int:
    return max(run(depth) for depth in range(200))


def test_no_depth_is_expensive() -> None:
    roomy = with_room(lambda depth: _calls_below(depth))
    assert _worst(roomy) < 200


def test_signature_and_result_stay() -> None:
    @with_room
    def together(a: int, *, b: int = 2) -> tuple[int, int]:
        """Doc."""
        return a, b

    assert together(1, b=3) == (1, 3)
    assert together.__doc__ == "Doc."
