"""A name and a folder for its checkpoint -> a digest of the result: `python -m stress.jobs`."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

N_TASKS = 60


@cache
def table() -> Any:
    """Six mixed columns, some of them related."""
    import pandas as pd

    rng = np.random.default_rng(0)
    group, mood = rng.integers(0, 3, 160), rng.integers(0, 2, 160)
    x = rng.normal(size=160) + group
    return pd.DataFrame(
        {
            "x": x,
            "y": x + rng.normal(size=160),
            "z": rng.normal(size=160) + mood,
            "group": np.array(["a", "b", "c"])[group],
            "mood": np.array(["good", "bad"])[mood],
            "coin": np.array(["head", "tail"])[rng.integers(0, 2, 160)],
        }
    )


@cache
def model() -> Any:
    import mixedgm as mg

    return mg.MixedGraphicalModel(lam=0.12, n_jobs=1).fit(table())


def bootstrap(folder: Path | None, n_jobs: int | None) -> list[Any]:
    import mixedgm as mg

    found = mg.bootstrap(
        model(), table(), N_TASKS, random_state=1, n_jobs=n_jobs, checkpoint=folder
    )
    return [*vars(found.replicates).values(), found.summary()]


def compare(folder: Path | None, n_jobs: int | None) -> list[Any]:
    import mixedgm as mg

    found = mg.compare(
        table(), "coin", lam=0.15, n_perm=N_TASKS, random_state=1, n_jobs=n_jobs, checkpoint=folder
    )
    return [*found.permutations.values(), found.summary()]


def cross_validation(folder: Path | None, n_jobs: int | None) -> list[Any]:
    import mixedgm as mg

    return _selection(mg.CV(12, checkpoint=folder), n_jobs)


def stability(folder: Path | None, n_jobs: int | None) -> list[Any]:
    import mixedgm as mg

    return _selection(mg.StabilitySelection(n_subsamples=40, checkpoint=folder), n_jobs)


def _selection(criterion: Any, n_jobs: int | None) -> list[Any]:
    import mixedgm as mg

    fit = mg.MixedGraphicalModel(select=criterion, random_state=1, n_jobs=n_jobs).fit(table())
    return [*fit.fitted_.scores.values(), fit.fitted_.params.coef, fit.lam_]


JOBS = {
    "bootstrap": bootstrap,
    "compare": compare,
    "cv": cross_validation,
    "stability": stability,
}


def digest(name: str, folder: Path | None, n_jobs: int | None) -> str:
    """Of every bit of the result."""
    found = hashlib.sha256()
    for part in JOBS[name](folder, n_jobs):
        if isinstance(part, np.ndarray):
            found.update(
                f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes()
            )
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


@cache
def undisturbed(name: str) -> str:
    """The digest without a checkpoint, in one process."""
    return digest(name, None, 1)


if __name__ == "__main__":
    print(digest(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])), flush=True)
