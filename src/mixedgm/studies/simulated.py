"""A model and a number of tables in -> statistics of tables drawn from it, in batches."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import SamplingWarning
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.parallel import RandomState, run, seeds
from mixedgm.studies.discrepancy import statistics
from mixedgm.table.check import level_of_caller
from mixedgm.table.encode import Design

__all__ = ["Simulated", "simulate"]

_CELLS_PER_BATCH = 2**24
_TABLES_PER_BATCH = 25


@dataclass(frozen=True, eq=False)
class Simulated:
    """Statistics of S simulated tables; see `Statistics` for what they are.

    Parameters
    ----------
    pairs : float32 ndarray (S, d * (d - 1) / 2)
        Covariances above the diagonal, row by row.
    moments : ndarray (S, p, 6)
    shares : ndarray (S, sum of levels)
    dispersion : ndarray (S, q)
    """

    pairs: NDArray[np.float32]
    moments: Floats
    shares: Floats
    dispersion: Floats

    @property
    def n_tables(self) -> int:
        """Number of tables, S."""
        return len(self.shares)

    def block(self, rows: slice, columns: slice) -> Floats:
        """(S, a, b) covariances of two columns, the first of them left of the second."""
        d = round((1.0 + np.sqrt(1.0 + 8.0 * self.pairs.shape[1])) / 2.0)
        u: Ints = np.arange(rows.start, rows.stop)
        v: Ints = np.arange(columns.start, columns.stop)
        at = (u * (2 * d - u - 1) // 2)[:, None] + v - u[:, None] - 1
        return self.pairs[:, at].astype(np.float64)


def simulate(
    fitted: FittedModel,
    n_rows: int,
    n_tables: int,
    *,
    random_state: RandomState = None,
    n_jobs: int | None = 1,
    show: bool = False,
) -> Simulated:
    """Draw tables of `n_rows` rows each and keep their statistics.

    Tables are drawn in batches, whose size depends on shapes only: what is prepared for a draw is
    prepared once for a batch.
    """
    width = len(fitted.schema.columns) * n_rows
    size = int(np.clip(_CELLS_PER_BATCH // max(width, 1), 1, _TABLES_PER_BATCH))
    counts = [min(size, n_tables - first) for first in range(0, n_tables, size)]
    outcomes = run(
        partial(_batch, fitted, n_rows),
        list(zip(counts, seeds(random_state, len(counts)), strict=True)),
        n_jobs=n_jobs,
        what="batches of simulated tables",
        show=show,
    )
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    bad = sum(bool(record.pop("badly_mixed")) for record in records)
    if bad:
        warnings.warn(
            "the simulated tables come from Gibbs chains that have not mixed well in "
            f"{bad} of {len(records)} batches, so distances and p-values are rough",
            SamplingWarning,
            stacklevel=level_of_caller(),
        )
    return Simulated(**{name: np.concatenate([r[name] for r in records]) for name in records[0]})


def _batch(
    fitted: FittedModel, n_rows: int, task: tuple[int, np.random.SeedSequence]
) -> dict[str, NDArray[np.generic]]:
    n_tables, seed = task
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        rows = fitted.draw(n_rows * n_tables, np.random.default_rng(seed))
    found = []
    for first in range(0, n_rows * n_tables, n_rows):
        cut = slice(first, first + n_rows)
        found.append(statistics(fitted, Design(fitted.schema, rows.cont[cut], rows.codes[cut])))
    d = len(found[0].covariance)
    above = np.triu_indices(d, 1)
    return {
        "pairs": np.array([own.covariance[above] for own in found], dtype=np.float32),
        "moments": np.array([own.moments for own in found]),
        "shares": np.array([own.shares for own in found]),
        "dispersion": np.array([own.dispersion for own in found]),
        "badly_mixed": np.array(any(issubclass(w.category, SamplingWarning) for w in caught)),
    }
