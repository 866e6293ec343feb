"""Parts on the workers of a Dask cluster: functions go to the parts, and sums come back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from mixedgm.base.errors import MixedGMError
from mixedgm.base.parts.contract import Parts, Sums, added

T = TypeVar("T")
U = TypeVar("U")

_LARGE = 2**18
"""Bytes of arguments from which on they are sent to every worker once, not with every task."""
_FAN_IN = 8
"""Number of sums that one task adds."""
_ATTEMPTS = 3


class ClusterParts(Generic[T]):
    """Parts that are results of tasks of a Dask cluster.

    A part that is lost with its worker is computed again from its source.  Sums are added in a
    tree whose shape follows from the number of parts, so that they do not depend on the workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    futures : sequence of distributed.Future
        The parts, one task each.
    """

    def __init__(self, client: Any, futures: Sequence[Any]) -> None:
        self.client, self.futures = client, list(futures)

    @property
    def nearby(self) -> bool:
        """Whether the parts are in this process: they are not."""
        return False

    def __len__(self) -> int:
        return len(self.futures)

    def _submitted(
        self, function: Callable[..., Any], common: tuple[Any, ...], each: Sequence[Any] | None
    ) -> list[Any]:
        """One task for every part; what they have in common is pickled once."""
        payload: Any = pickle.dumps((function, common), protocol=5)
        if len(payload) > _LARGE:
            payload = self.client.scatter(payload, broadcast=True, hash=False)
        more: list[tuple[Any, ...]] = [()] * len(self) if each is None else [(x,) for x in each]
        return [
            self.client.submit(call, future, payload, *one, pure=False)
            for future, one in zip(self.futures, more, strict=True)
        ]

    def _result(self, tasks: Callable[[], Any]) -> Any:
        """Results of tasks, which are sent again if their arguments are lost with a worker."""
        from distributed import KilledWorker

        for attempt in range(_ATTEMPTS):
            futures = tasks()
            try:
                return self.client.gather(futures)
            except KilledWorker as error:
                raise MixedGMError(
                    "workers of the cluster died again and again over the same part, most likely "
                    "for lack of memory. Give them more of it, or cut the table into smaller "
                    f"parts. What Dask says: {error}"
                ) from error
            except Exception as error:
                lost = type(error).__name__ in ("CancelledError", "FutureCancelledError")
                if not lost or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError  # the last attempt has returned or raised

    def map(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Iterator[U]:
        """Yield ``function(part, *common)`` of every part, in their order."""
        yield from self._result(lambda: self._submitted(function, common, each))

    def total(
        self, function: Callable[..., Sums | None], *common: Any, each: Sequence[Any] | None = None
    ) -> Sums:
        """Return the sums over parts, added up in a tree on the workers."""

        def tasks() -> Any:
            level = self._submitted(function, common, each)
            while len(level) > 1:
                level = [
                    self.client.submit(added, *level[at : at + _FAN_IN], pure=False)
                    for at in range(0, len(level), _FAN_IN)
                ]
            return level[0]

        return self._result(tasks) or () if len(self) else ()

    def combined(
        self,
        combine: Callable[[list[Any]], U],
        function: Callable[..., Any],
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> U:
        """Return ``combine([function(part, *common), ...])``, computed by one of the workers."""

        def task() -> Any:
            pieces = self._submitted(function, common, each)
            return self.client.submit(_combined, pickle.dumps(combine), pieces, pure=False)

        out: U = self._result(task)
        return out

    def replaced(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Parts[U]:
        """Return the parts that the function makes of these.

        Dask keeps in mind how these were made, not the parts themselves.
        """
        import distributed

        wait: Any = distributed.wait
        made: ClusterParts[U] = ClusterParts(self.client, self._submitted(function, common, each))
        wait(made.futures)
        self.futures = []
        return made

    def only(self, kept: Sequence[int]) -> Parts[T]:
        """Return some of the parts, by their numbers."""
        return ClusterParts(self.client, [self.futures[k] for k in kept])


def call(part: Any, payload: bytes, *each: Any) -> Any:
    """Call a pickled function of a part, on a worker."""
    function, common = pickle.loads(payload)
    return function(part, *common, *each)


def _combined(combine: bytes, pieces: list[Any]) -> Any:
    return pickle.loads(combine)(pieces)
