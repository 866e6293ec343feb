"""A model and a number of tables in -> statistics of tables drawn from it, in batches."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError, SamplingWarning, level_of_caller
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.parallel import RandomState, run, seeds
from mixedgm.studies.discrepancy import PairOrder, statistics
from mixedgm.studies.graph_refit import GraphRefit
from mixedgm.table.encode import Design
from mixedgm.table.naming import with_names

if TYPE_CHECKING:
    from mixedgm.joint.sampling import Draw

__all__ = ["Simulated", "simulate"]

_CELLS_PER_BATCH = 2**24
_TABLES_PER_BATCH = 25


@dataclass(frozen=True, eq=False)
class Simulated:
    """Statistics of S simulated tables; see `Statistics` for what they are.

    Parameters
    ----------
    association : float32 ndarray (S, p + q, p + q)
    relation, curve, uneven : float32 ndarray (S, k)
        Pair by pair, in the orders that were asked for.
    bend : ndarray (S, d)
    moments : ndarray (S, m, 6)
    shares, expected : ndarray (S, sum of values)
    dispersion : ndarray (S, q)
    """

    association: NDArray[np.float32]
    relation: NDArray[np.float32]
    curve: NDArray[np.float32]
    uneven: NDArray[np.float32]
    bend: Floats
    moments: Floats
    shares: Floats
    expected: Floats
    dispersion: Floats

    @property
    def n_tables(self) -> int:
        """Number of tables, S."""
        return len(self.shares)


def simulate(
    fitted: FittedModel,
    design: Design,
    n_rows: int,
    n_tables: int,
    orders: Mapping[str, PairOrder],
    *,
    refit: GraphRefit | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    show: bool = False,
) -> Simulated:
    """Draw tables of `n_rows` rows each and keep their statistics.

    With `refit` the graph is estimated anew in every table, which is compared with that estimate.
    Where the model has covariates, they are those of `design`, and the other columns are drawn
    given these.
    Tables are drawn in batches, whose size depends on shapes only: what is prepared for a draw is
    prepared once for a batch.
    """
    width = len(fitted.schema.columns) * n_rows
    size = int(np.clip(_CELLS_PER_BATCH // max(width, 1), 1, _TABLES_PER_BATCH))
    counts = [min(size, n_tables - first) for first in range(0, n_tables, size)]
    known = design if fitted.schema.covariates else None
    outcomes = run(
        partial(_batch, fitted, known, n_rows, refit, orders),
        list(zip(counts, seeds(random_state, len(counts)), strict=True)),
        n_jobs=n_jobs,
        what="batches of simulated tables",
        show=show,
    )
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    if not records:
        raise DistributionError(f"no table could be drawn and judged: {outcomes[0].error}")
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
    fitted: FittedModel,
    known: Design | None,
    n_rows: int,
    refit: GraphRefit | None,
    orders: Mapping[str, PairOrder],
    task: tuple[int, np.random.SeedSequence],
) -> dict[str, NDArray[np.generic]]:
    n_tables, seed = task
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        rows = _rows(fitted, known, (n_tables, n_rows), np.random.default_rng(seed))
    tables = []
    for first in range(0, n_rows * n_tables, n_rows):
        cut = slice(first, first + n_rows)
        table = Design(fitted.schema, rows.numbers[cut], rows.codes[cut])
        tables.append(statistics(*((fitted, table) if refit is None else refit.again(table))))
    return {
        "association": np.array([table.association for table in tables], dtype=np.float32),
        **{
            name: np.array(
                [getattr(table, name).ravel()[order.at] for table in tables], dtype=np.float32
            )
            for name, order in orders.items()
        },
        **{
            name: np.array([getattr(table, name) for table in tables])
            for name in ("bend", "moments", "shares", "expected", "dispersion")
        },
        "badly_mixed": np.array(any(issubclass(w.category, SamplingWarning) for w in caught)),
    }


def _rows(
    fitted: FittedModel, known: Design | None, shape: tuple[int, int], rng: np.random.Generator
) -> Draw | Design:
    """All rows of a batch, one table after the other."""
    n_tables, n_rows = shape
    if known is None:
        return fitted.draw(n_tables * n_rows, rng)
    if known.weights is None and known.n_rows == n_rows:
        rows = np.tile(np.arange(n_rows), n_tables)
    else:
        chance = None if known.weights is None else known.weights / known.total_weight
        rows = rng.choice(known.n_rows, n_tables * n_rows, p=chance)
    return _targets_drawn(fitted, known.take(rows), rng)


def _targets_drawn(fitted: FittedModel, design: Design, rng: np.random.Generator) -> Design:
    """The same rows with their targets drawn given their covariates."""
    from mixedgm.joint import KnownColumns, posterior_draw

    schema, places = fitted.schema, fitted.schema.spans.places
    drawn_numbers, drawn_discrete = places(set(range(len(schema.nodes))) - {*schema.covariates})
    numbers, codes = design.numbers.copy(), design.codes.copy()
    known = KnownColumns.among(places(schema.covariates), (numbers, codes))
    drawn = with_names(schema, posterior_draw, fitted.joint_form, known, rng=rng)
    numbers[:, drawn_numbers], codes[:, drawn_discrete] = drawn
    return Design(schema, numbers, codes)
