"""A model and a number of tables -> statistics of tables drawn from it, and p-values by them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from mixedgm.base.errors import DistributionError, SamplingWarning, level_of_caller
from mixedgm.base.parallel import RandomState, run, seeds
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.studies.fit_check.discrepancy import PairOrder, statistics
from mixedgm.studies.fit_check.graph_refit import GraphRefit
from mixedgm.table.encode import Design
from mixedgm.table.schema import with_names

if TYPE_CHECKING:
    from mixedgm.joint.sampled import Draw


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
    from mixedgm.joint.conditioning import KnownColumns
    from mixedgm.joint.posteriors import posterior_draw

    schema, places = fitted.schema, fitted.schema.spans.places
    drawn_numbers, drawn_discrete = places(set(range(len(schema.nodes))) - {*schema.covariates})
    numbers, codes = design.numbers.copy(), design.codes.copy()
    known = KnownColumns.among(places(schema.covariates), (numbers, codes))
    drawn = with_names(schema, posterior_draw, fitted.joint_form, known, rng=rng)
    numbers[:, drawn_numbers], codes[:, drawn_discrete] = drawn
    return Design(schema, numbers, codes)


# -- p-values among simulated tables ---------------------------------------------------------------

_ENOUGH = 10  # simulated tables beyond the observed one, for their share to be the p-value
_CELLS_AT_ONCE = 2**23
_HARDLY_VARIES = 0.01
_TIE = 1.0 + 1e-6  # factor within which tails are equal, but for rounding


@dataclass(frozen=True, eq=False)
class Oddities:
    """How far k statistics of one table, in G groups, are from those of S simulated tables.

    `scaled` is observed minus simulated mean, in standard deviations of the simulation; `distance`
    its root mean square over a group: about 1 when the model is right.  `p` is the chance of
    a larger distance under the model, and `tail` the same by a formula that is smooth however few
    simulated tables there are.
    """

    scaled: Floats  # (k,)
    distance: Floats  # (G,)
    p: Floats  # (G,)
    tail: Floats  # (G,)
    least: Floats  # (S,) smallest tail of every simulated table over all groups


def oddities(
    observed: Floats,
    simulated: NDArray[Any],
    group: Ints,
    floor: float | Floats,
    *,
    cells_at_once: int = _CELLS_AT_ONCE,
) -> Oddities:
    """Compare k statistics with their values in S simulated tables, an (S, k) array.

    The statistics of a group stand side by side: `group` counts on from 0 to G - 1.  Every table,
    observed or simulated, is judged by all others, so that which one was observed makes no
    difference to the tails.  The p-value is the share of tables that are at least as far from the
    others; where fewer than ten are, the tail of an F distribution whose degrees of freedom follow
    from the spread of the distances.  `floor` is the smallest standard deviation to divide by: what
    varies far less under the model is odd only if it differs by more than that.
    """
    n_groups = int(group[-1]) + 1 if len(group) else 0
    start = np.searchsorted(group, np.arange(n_groups + 1))
    floors = np.broadcast_to(np.asarray(floor, dtype=np.float64), observed.shape)
    # Rounded like the simulated ones, so that equal tables are equal.
    observed = observed.astype(simulated.dtype).astype(np.float64)
    scaled, least = np.zeros(len(observed)), np.ones(len(simulated))
    distance, p, tail = np.ones((3, n_groups))
    # Groups side by side, as many as fit.
    per_chunk = max(1, cells_at_once // max(len(simulated), 1))
    first = 0
    while first < n_groups:
        end = int(np.searchsorted(start, start[first] + per_chunk, side="right")) - 1
        end = min(max(end, first + 1), n_groups)
        cut, groups = slice(start[first], start[end]), slice(first, end)
        of_group = start[first:end] - start[first]
        parts = observed[cut], simulated[:, cut].astype(np.float64), of_group, floors[cut]
        scaled[cut], distance[groups], p[groups], tail[groups], others = _judged(*parts)
        least = np.minimum(least, others)
        first = end
    return Oddities(scaled, distance, p, tail, least)


def _judged(
    observed: Floats, simulated: Floats, start: Ints, floor: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Scaled statistics; distances, p-values and tails by group; smallest tails by table."""
    n, k = len(simulated), np.diff(np.append(start, len(observed)))
    tables = np.vstack([observed, simulated])
    mean, variance = _of_others(tables)
    divisor = np.maximum(np.sqrt(variance), floor)
    scaled = (tables - mean) / (divisor * np.sqrt(1.0 + 1.0 / n))
    square = np.add.reduceat(scaled**2, start, axis=1) / k
    tails = _tail(square, *_of_others(square), k, n - 1.0)
    beyond = np.count_nonzero(square[1:] * _TIE >= square[0], axis=0)
    p = np.where(beyond >= _ENOUGH, (beyond + 1.0) / (n + 1.0), tails[0])
    expected = np.add.reduceat(variance[0] / divisor[0] ** 2, start) / k
    distance = np.sqrt(square[0] / np.where(expected < _HARDLY_VARIES, 1.0, expected))
    return scaled[0], distance, p, tails[0], tails[1:].min(axis=1)


def _of_others(tables: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of all other rows, for every row."""
    m, centre = len(tables), tables.mean(axis=0)
    gaps = tables - centre
    squares = gaps**2
    mean = centre - gaps / (m - 1)
    variance = np.maximum(squares.sum(axis=0) - squares * m / (m - 1), 0.0) / (m - 2)
    # The farthest row can be so far off that these differences have no digits left.
    farthest = squares.argmax(axis=0), np.arange(tables.shape[1])
    rest = tables.copy()
    rest[farthest] = 0.0
    mean[farthest] = rest.sum(axis=0) / (m - 1)
    rest[farthest] = mean[farthest]
    variance[farthest] = np.sum((rest - mean[farthest]) ** 2, axis=0) / (m - 2)
    return mean, variance


def _tail(square: Floats, mean: Floats, variance: Floats, k: Ints, n: float) -> Floats:
    """Chance of a larger mean square of k correlated statistics, scaled by n tables' spread.

    Degrees of freedom are those of mean and variance of such squares in the other tables; k
    independent normals have k, correlated ones fewer.  The mean itself is 1 by the scaling, and
    less only where statistics hardly vary: these shall not be magnified.
    """
    ratio = variance / np.maximum(mean, 1e-100) ** 2
    freedom = np.minimum(2.0 / np.maximum(ratio, 1e-100), k)
    return np.asarray(fdtrc(np.maximum(freedom, 1e-3), n, square))


def adjusted(tails: Floats, least: Floats) -> Floats:
    """P-values for all groups together: the share of tables that have any tail as small as this.

    A table that is exchangeable with the simulated ones has one of at most alpha with chance at
    most alpha, for every alpha from 1 / (S + 1) on.  Where no simulated table has such a tail, it
    is Bonferroni's, if that is smaller.

    Examples
    --------
    >>> adjusted(np.array([0.001, 0.4]), np.array([0.3, 0.2, 0.02, 0.5])).tolist()
    [0.002, 0.8]
    """
    beyond = np.searchsorted(np.sort(least), tails * _TIE, side="right")
    share = (beyond + 1.0) / (len(least) + 1.0)
    return np.where(beyond == 0, np.minimum(share, len(tails) * tails), share)
