"""Solvers that fail on purpose: one raises an error, one ends its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

import mixedgm as mg

NEWTON = mg.ProximalNewton()


class Faulty:
    """Newton steps, until a problem comes for which `when` is true: then `error` is raised."""

    def __init__(self, when: Callable[[Any], bool], error: BaseException | type[BaseException]):
        self.when, self.error = when, error

    def init(self, problem: Any, *start: Any) -> Any:
        if self.when(problem):
            raise self.error
        return NEWTON.init(problem, *start)

    def step(self, problem: Any, state: Any) -> Any:
        return NEWTON.step(problem, state)


class Fatal:
    """Newton steps; the first worker process that finds the file removes it and is killed."""

    def __init__(self, file: Path):
        self.file, self.parent = file, os.getpid()

    def init(self, problem: Any, *start: Any) -> Any:
        if os.getpid() != self.parent:
            with suppress(FileNotFoundError):
                self.file.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return NEWTON.init(problem, *start)

    def step(self, problem: Any, state: Any) -> Any:
        return NEWTON.step(problem, state)


def nth(what: Callable[[Any], Hashable], *numbers: int) -> Callable[[Any], bool]:
    """Whether this is the n-th problem (counted from 1) in which `what` has a new value."""
    seen: list[Hashable] = []

    def when(problem: Any) -> bool:
        value = what(problem)
        if value not in seen:
            seen.append(value)
        return seen.index(value) + 1 in numbers

    return when


def interrupted_at(number: int) -> Faulty:
    """Ctrl-C while the n-th lam is being solved."""
    return Faulty(nth(lambda problem: problem.lam, number), KeyboardInterrupt)


def tables(problem: Any) -> Hashable:
    """What differs from one table to the next, however long it takes to solve."""
    return problem.smooth.moments
