"""A solve that ended -> the account of it: how optimal its point is, and what it took."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

import numpy as np

from mixedgm.objective.contract import Smooth
from mixedgm.solve.loop import Status

T = TypeVar("T")


@dataclass(frozen=True)
class Certificate:
    """How optimal a point is, and how the solve that led there ended."""

    objective: float
    kkt: float
    converged: bool
    """Whether `kkt` is within tol, or within its sampling error."""
    message: str
    kkt_error: float = 0.0
    """Monte Carlo standard error of `kkt`; zero unless gradients were sampled."""
    objective_error: float = 0.0

    @classmethod
    def of(cls, status: Status, objective: float, kkt: float, *errors: float) -> Certificate:
        """The certificate of a solve with this status."""
        return cls(objective, kkt, status.good, status.value, *errors)

    def but(self, status: Status) -> Certificate:
        """The same numbers with another status."""
        return replace(self, converged=status.good, message=status.value)

    @classmethod
    def none(cls, message: str) -> Certificate:
        """For parameters that minimise nothing."""
        return cls(np.nan, np.nan, converged=False, message=message)


@dataclass(frozen=True)
class Cost:
    """What a solve took: steps, passes over the rows, seconds."""

    n_iter: int = 0
    passes: float = 0.0
    curvature_passes: float = 0.0
    seconds: float = field(default=0.0, compare=False)
    """Wall time, of which the next two are parts; the rest is the solver's own."""
    pass_seconds: float = field(default=0.0, compare=False)
    curvature_seconds: float = field(default=0.0, compare=False)

    @classmethod
    def until_now(cls, smooth: Smooth) -> Cost:
        """The counters and the clock, of which only differences mean anything."""
        passes = smooth.passes, smooth.curvature_passes
        return cls(0, *passes, time.perf_counter(), *smooth.part_seconds)

    def since(self, before: Cost, n_iter: int = 0) -> Cost:
        """What was added to the counters after `before`, in so many steps."""
        counters = zip(vars(self).values(), vars(before).values(), strict=True)
        return Cost(n_iter, *[now - then for now, then in counters][1:])

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """Of several solves."""
        return cls(*map(sum, zip(*(vars(cost).values() for cost in costs), strict=True)))


class _Part(Generic[T]):
    """An attribute that is one of the certificate or of the cost."""

    def __init__(self, holder: Literal["certificate", "cost"]) -> None:
        self.holder = holder

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, account: Account, owner: type) -> T:
        part: T = getattr(getattr(account, self.holder), self.name)
        return part


@dataclass(frozen=True, eq=False)
class Account:
    """Whatever holds a certificate and a cost shows their parts as its own."""

    certificate: Certificate
    cost: Cost

    objective = _Part[float]("certificate")
    objective_error = _Part[float]("certificate")
    kkt = _Part[float]("certificate")
    kkt_error = _Part[float]("certificate")
    converged = _Part[bool]("certificate")
    message = _Part[str]("certificate")
    n_iter = _Part[int]("cost")
    passes = _Part[float]("cost")
    curvature_passes = _Part[float]("cost")
    seconds = _Part[float]("cost")
    pass_seconds = _Part[float]("cost")
    curvature_seconds = _Part[float]("cost")

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return Status(self.message)
