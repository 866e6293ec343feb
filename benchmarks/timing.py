"""Callables -> seconds: candidates take turns, so that all meet the same weather."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.threads import single_threaded_blas
from mixedgm.solve.subproblem import QuadraticModel

Floats = NDArray[np.float64]


def seconds_of(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def interleaved(candidates: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Times]:
    """Run every candidate in turn, `repeats` rounds after one round that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 1):
        for name, work in candidates.items():
            seconds = seconds_of(work)
            if turn > 0:
                found[name].append(seconds)
    return {name: Times(np.array(seconds)) for name, seconds in found.items()}


@dataclass(frozen=True, eq=False)
class Times:
    """Repeats of one candidate.

    Other work on the machine only ever adds time, so ratios are taken between the fastest
    repeats; medians are kept beside them.
    """

    seconds: Floats

    @property
    def best(self) -> float:
        return float(self.seconds.min())

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    def to_dict(self) -> dict[str, float]:
        return {"best": self.best, "median": self.median, "repeats": len(self.seconds)}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, as inside the passes: a path sets that once for all of its own."""
    with single_threaded_blas():
        yield


class TimedRows:
    """A store of rows that notes the seconds of its passes and of its curvature.

    Everything else is handed on to the store itself.
    """

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.pass_seconds = 0.0
        self.curvature_seconds = 0.0

    def softmax(self, *args: Any, **options: Any) -> Any:
        clock = time.perf_counter()
        try:
            return self._rows.softmax(*args, **options)
        finally:
            self.pass_seconds += time.perf_counter() - clock

    def softmax_curvature(self, *args: Any, **options: Any) -> Any:
        clock = time.perf_counter()
        try:
            return self._rows.softmax_curvature(*args, **options)
        finally:
            self.curvature_seconds += time.perf_counter() - clock

    def scored_curvature(self, *args: Any, **options: Any) -> Any:
        clock = time.perf_counter()
        try:
            return self._rows.scored_curvature(*args, **options)
        finally:
            self.curvature_seconds += time.perf_counter() - clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


class TimedModels:
    """Within it, seconds of minimising quadratic models are noted, and when each was done.

    Their steps depend on each other, so that they take as long on any number of cores.
    """

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.seconds: list[float] = []
        self._minimise = QuadraticModel.minimise

    def __enter__(self) -> Self:
        plain = self._minimise

        def timed(model: QuadraticModel, *args: Any, **options: Any) -> Any:
            clock = time.perf_counter()
            try:
                return plain(model, *args, **options)
            finally:
                self.ends.append(time.perf_counter())
                self.seconds.append(self.ends[-1] - clock)

        QuadraticModel.minimise = timed  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        QuadraticModel.minimise = self._minimise  # type: ignore[method-assign]

    def between(self, stamps: list[float]) -> Floats:
        """Seconds from each stamp to the next."""
        return np.histogram(self.ends, stamps, weights=self.seconds)[0]


class Stamped:
    """A grid that notes when each of its values is taken: the wall time of every lam."""

    def __init__(self, lams: Floats) -> None:
        self._lams = lams
        self.stamps: list[float] = []

    def __len__(self) -> int:
        return len(self._lams)

    def __iter__(self) -> Iterator[float]:
        self.stamps = []
        for lam in self._lams:
            self.stamps.append(time.perf_counter())
            yield float(lam)
        self.stamps.append(time.perf_counter())

    @property
    def seconds(self) -> Floats:
        """From taking one value to taking the next, everything included."""
        return np.diff(self.stamps)


def exponent(sizes: Floats, values: Floats) -> float:
    """The power b of the least-squares line log(value) = a + b log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
