"""What every part of a run is given: its size, and where data and peers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")

Size = Literal["full", "quick", "smoke"]

THREADS = 2
"""Threads of everything that is timed; the goals are stated for two cores."""
TOL = 1e-5


@dataclass(frozen=True)
class Context:
    """Options of a run.

    Parameters
    ----------
    size : {"full", "quick", "smoke"}
        The stated size; one that takes minutes; one that takes seconds and times nothing.
    shared : Path or None
        Folder with ``data/`` (survey table, simulated sets) and ``tools/``.
    yardstick : Path or None
        A Python file with ``Problem(X, Y, levels)`` and ``fista(problem, theta, lam, tol, step)``.
    out : Path
        Folder for results.
    """

    size: Size
    shared: Path | None
    yardstick: Path | None
    out: Path

    def pick(self, choices: Mapping[str, T]) -> T:
        """What this size asks for."""
        return choices[self.size]

    def data(self, name: str) -> Path | None:
        """A file of the data folder, if it is there."""
        path = None if self.shared is None else self.shared / "data" / name
        return path if path is not None and path.exists() else None
