"""A yardstick's file -> its path over the same grid, with its own KKT number at every lam."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.table.encode import Design

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Walked:
    """The yardstick's path."""

    seconds: float
    """Set-up included."""
    objective: Floats
    """In standardised units."""
    kkt: float


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("yardstick", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk(module: Any, design: Design, lams: Floats, tol: float) -> Walked:
    """Solve the grid with warm starts, as the yardstick itself does."""
    n_levels = np.array(design.schema.n_levels, dtype=np.int64)
    objective, kkt = [], 0.0
    clock = time.perf_counter()
    problem = module.Problem(design.numbers, design.codes.astype(np.int64), n_levels)
    seconds = time.perf_counter() - clock
    theta, step = problem.null(), 1.0
    for lam in lams:
        clock = time.perf_counter()
        theta, step, _ = module.fista(problem, theta, lam, tol, step)
        seconds += time.perf_counter() - clock
        value, grad = problem.evaluate(theta)
        objective.append(value + lam * problem.penalty(theta[3]))
        kkt = max(kkt, float(problem.kkt(theta, lam, grad)))
    return Walked(seconds, np.array(objective), kkt)
