"""A solve that ended -> the account of it: how optimal its point is, and what it took."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from mixedgm.objective.contract import Smooth
from mixedgm.solve.loop import Status

__all__ = ["Account", "Certificate", "Cost"]


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
        spent = (now - then for now, then in zip(astuple(self), astuple(before), strict=True))
        return Cost(n_iter, *list(spent)[1:])

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """Of several solves."""
        return cls(*map(sum, zip(*map(astuple, costs), strict=True)))


@dataclass(frozen=True, eq=False)
class Account:
    """Whatever holds a certificate and a cost shows their parts as its own."""

    certificate: Certificate
    cost: Cost

    @property
    def objective(self) -> float:
        """Smooth value plus penalty."""
        return self.certificate.objective

    @property
    def objective_error(self) -> float:
        """Monte Carlo standard error of `objective`; zero unless gradients were sampled."""
        return self.certificate.objective_error

    @property
    def kkt(self) -> float:
        """The largest violation of an optimality condition."""
        return self.certificate.kkt

    @property
    def kkt_error(self) -> float:
        """Monte Carlo standard error of `kkt`; zero unless gradients were sampled."""
        return self.certificate.kkt_error

    @property
    def converged(self) -> bool:
        """Whether `kkt` is within tol, or within its sampling error."""
        return self.certificate.converged

    @property
    def message(self) -> str:
        """How the solve ended, in words."""
        return self.certificate.message

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return Status(self.certificate.message)

    @property
    def n_iter(self) -> int:
        """Steps of the solver."""
        return self.cost.n_iter

    @property
    def passes(self) -> float:
        """Passes over the rows."""
        return self.cost.passes

    @property
    def curvature_passes(self) -> float:
        """Passes over the rows for curvature."""
        return self.cost.curvature_passes

    @property
    def seconds(self) -> float:
        """Wall time."""
        return self.cost.seconds

    @property
    def pass_seconds(self) -> float:
        """Part of `seconds` spent in passes over the rows."""
        return self.cost.pass_seconds

    @property
    def curvature_seconds(self) -> float:
        """Part of `seconds` spent in curvature from the rows."""
        return self.cost.curvature_seconds
