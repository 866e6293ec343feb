"""A name and a function of a seed -> Campaign; what became of one seed -> Case."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MODULES = {
    "tables": "stress.tables",
    "model-files": "stress.model_files",
    "checkpoints": "stress.checkpoints",
    "outputs": "stress.outputs",
    "dask": "stress.dask_workers",
    "command-lines": "stress.command_lines",
    "studies": "stress.studies",
    "parts": "stress.parts",
    "pooling": "stress.pooling",
    "reports": "stress.reports",
}


@dataclass(frozen=True)
class Campaign:
    """Many cases of one kind, each made from its seed alone.

    `attempt` gets the seed and an empty folder; it returns what it found, or raises: an exception
    that it lets through is a finding itself.
    """

    what: str
    cases: int
    seconds: float
    """Of the processor: a case that takes more is a finding.  One that has not ended in ten times
    as long by the clock is one, too, and its process is ended."""
    attempt: Callable[[int, Path], Found]
    most_mb: float | None = None
    """Memory that a case may take beyond what its process had before."""
    prepare: Callable[[], object] = lambda: None
    """What all cases of a process need, made before the first."""


@dataclass
class Found:
    """What one case showed: `findings` is empty when all is well.

    `kind` says what was tried and how it ended, for the counts in the record, such as
    "polars: error of the family".
    """

    kind: str
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One line of the results."""

    seed: int
    kind: str
    findings: list[str]
    seconds: float
    """Of the processor."""
    mb: float
    code: str


def load(name: str) -> Campaign:
    """Return the campaign of that name, or of that module."""
    campaign: Campaign = importlib.import_module(MODULES.get(name, name)).CAMPAIGN
    return campaign
