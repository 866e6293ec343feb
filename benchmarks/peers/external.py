"""A standardised table and a grid -> seconds of peers that run outside this interpreter.

Each peer is skipped, with the reason, where it is not installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.certificate import indicators
from benchmarks.peers.adelie_env import PYTHON
from mixedgm.path.task import Task

HERE = Path(__file__).parent
TIME_LIMIT = 1800


class UnavailableError(Exception):
    """A peer that cannot run here; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Table:
    """What a nodewise peer is given."""

    cont: NDArray[np.float64]
    codes: NDArray[np.int64]
    n_levels: tuple[int, ...]
    scale: NDArray[np.float64]
    """Calibrated scale of every node: the weight of a pair is the product of its two."""
    lams: NDArray[np.float64]

    @classmethod
    def of(cls, task: Task, lams: NDArray[np.float64]) -> Table:
        rows: Any = task.smooth.rows  # type: ignore[attr-defined]
        p = task.layout.n_gaussian
        share = np.bincount(
            (rows.codes + (task.layout.column_start[p:-1] - p)).ravel().astype(np.int64),
            minlength=sum(task.layout.n_levels),
        ) / len(rows.codes)
        trace = np.add.reduceat(share * (1.0 - share), task.layout.column_start[p:-1] - p)
        scale = np.concatenate([np.ones(p), np.sqrt(trace)])
        return cls(rows.numbers, rows.codes.astype(np.int64), task.layout.n_levels, scale, lams)


def adelie(table: Table) -> dict[str, Any]:
    """Nodewise group lasso by adelie in its own environment."""
    if not PYTHON.exists():
        raise UnavailableError(
            "adelie has no environment yet: python benchmarks/peers/adelie_env.py"
        )

    def command(folder: Path) -> list[str]:
        np.savez(
            folder / "problem.npz",
            cont=table.cont,
            codes=table.codes,
            levels=np.array(table.n_levels),
            scale=table.scale,
            lams=table.lams,
        )
        return [str(PYTHON), str(HERE / "adelie_nodewise.py"), str(folder / "problem.npz")]

    return _run(command)


def glmnet(table: Table) -> dict[str, Any]:
    """Nodewise regressions by R's glmnet."""
    rscript = _with_glmnet()

    def command(folder: Path) -> list[str]:
        _write_for_r(table, folder)
        return [rscript, str(HERE / "glmnet_nodewise.R"), str(folder)]

    return _run(command)


def glmnet_columns(table: Table, columns: NDArray[np.int64]) -> dict[str, Any]:
    """Mean seconds of R's glmnet for the regression of one of these continuous columns."""
    rscript = _with_glmnet()

    def command(folder: Path) -> list[str]:
        _write_for_r(table, folder)
        columns.astype(np.float64).tofile(folder / "columns.bin")
        return [rscript, str(HERE / "glmnet_columns.R"), str(folder)]

    return _run(command)


def _with_glmnet() -> str:
    """R's interpreter, if it has glmnet."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise UnavailableError(
            "Rscript was not found; on Debian: apt-get install r-base-core r-cran-glmnet"
        )
    asked = [rscript, "-e", "quit(status = !requireNamespace('glmnet', quietly = TRUE))"]
    if subprocess.run(asked, capture_output=True).returncode != 0:
        raise UnavailableError("R has no glmnet; Debian: apt-get install r-cran-glmnet")
    return rscript


def _write_for_r(table: Table, folder: Path) -> None:
    p = table.cont.shape[1]
    starts = p + np.concatenate([[0], np.cumsum(table.n_levels)]).astype(np.int64)
    # R counts columns first.
    indicators(table.cont, table.codes, starts).T.tofile(folder / "design.bin")
    table.lams.tofile(folder / "lams.bin")
    table.scale.tofile(folder / "scale.bin")
    shape = [*table.cont.shape, *table.n_levels]
    (folder / "shape.txt").write_text(" ".join(map(str, shape)))


def _run(command: Callable[[Path], list[str]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command(Path(folder)), capture_output=True, text=True, timeout=TIME_LIMIT
        )
    if done.returncode != 0:
        raise UnavailableError(f"it failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
