"""Gaps -> tests whether the cells of one column are missing by the values of another.

A test is that of a regression of "is missing" on the other column, over the rows that have the
latter: of ranks and their squares for numbers, of shares for levels.  The statistic is the number
of these rows times the squared correlation, and compared with a chi-square.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mixedgm.model.layout import Floats, Ints
from mixedgm.table.gaps import Gaps

__all__ = ["RANK_WORDS", "MissingnessTests", "missingness_tests"]

_FEWEST = 5.0
"""Rows that are missing, and that are not, from which on a chi-square holds; of a level likewise
the rows that are expected."""
RANK_WORDS = ("high values", "low values", "extreme values", "middle values")
"""Where cells of another column are missing more often, by the ranks of a column."""


@dataclass(frozen=True, eq=False)
class MissingnessTests:
    """Tests of columns with gaps (rows) against all columns; NaN where there are too few rows."""

    gappy: Ints
    """(G,) nodes with gaps."""
    statistic: Floats
    df: Floats
    correlation: Floats
    """(G, nodes) multiple correlation of being missing with the other column."""
    more_often: Ints
    """(G, nodes) where cells are missing more often: of levels a code, else of `RANK_WORDS`."""

    @cached_property
    def p(self) -> Floats:
        """(G, nodes) p-values."""
        return np.asarray(stats.chi2.sf(self.statistic, self.df))

    @cached_property
    def tested(self) -> NDArray[np.bool_]:
        """(G, nodes) whether there are rows enough."""
        return ~np.isnan(self.statistic)

    @cached_property
    def p_bh(self) -> Floats:
        """(G, nodes) adjusted for all tests by Benjamini and Hochberg."""
        out = np.full(self.p.shape, np.nan)
        if self.tested.any():
            out[self.tested] = stats.false_discovery_control(self.p[self.tested])
        return out


def missingness_tests(gaps: Gaps) -> MissingnessTests:
    """Test every column with gaps against every other column.

    Examples
    --------
    >>> from mixedgm.table import as_frame, learn
    >>> x = np.arange(200.0) % 21
    >>> table = np.column_stack([x, np.roll(x, 7) + x % 2])
    >>> schema = learn(table)[0].schema
    >>> table[x > 15, 1] = np.nan
    >>> from mixedgm.table.gaps import read_gaps
    >>> tests = missingness_tests(read_gaps(as_frame(table), schema))
    >>> tests.gappy.tolist(), tests.correlation[0].round(1).tolist()
    ([1], [0.9, nan])
    """
    missing = gaps.missing
    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    gappy = np.flatnonzero(missing.any(axis=0))
    weighted = missing[:, gappy].T * weights
    shape = (len(gappy), missing.shape[1])
    statistic, df = np.full(shape, np.nan), np.ones(shape)
    correlation, more_often = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    for node in range(missing.shape[1]):
        known = ~missing[:, node]
        counts = _Counts(weighted[:, known], weights[known])
        kind = gaps.schema.nodes[node].node_kind
        if kind.is_numeric:
            found = _by_ranks(counts, _values(gaps, node)[known])
        else:
            found = _by_levels(counts, gaps.codes[known, gaps.schema.spans.place(node)])
        square, df[:, node], more_often[:, node] = found
        tested = counts.enough & (df[:, node] > 0)
        statistic[tested, node] = (counts.total - 1.0) * square[tested]
        correlation[tested, node] = np.sqrt(square[tested])
    return MissingnessTests(gappy, statistic, np.maximum(df, 1.0), correlation, more_often)


def _values(gaps: Gaps, node: int) -> NDArray[np.float64]:
    spans = gaps.schema.spans
    if spans.is_real(node):
        return gaps.numbers[:, node]
    return gaps.codes[:, spans.place(node)].astype(np.float64)


class _Counts:
    """Rows that have a column, by weight, and how many of these lack each other column."""

    def __init__(self, weighted: Floats, weights: Floats) -> None:
        self.weighted, self.weights, self.total = weighted, weights, float(weights.sum())
        lacking = weighted.sum(axis=1)
        self.enough = np.minimum(lacking, self.total - lacking) >= _FEWEST
        self.share = np.where(self.enough, lacking / max(self.total, 1.0), 0.5)
        self.spread = self.share * (1.0 - self.share)


_Found = tuple[Floats, Floats, Ints]
"""Squared correlation, degrees of freedom, and where cells are missing more often: (G,) each."""


def _by_ranks(counts: _Counts, values: Floats) -> _Found:
    """Of ranks and their squares, so that a middle that is missing shows, too."""
    total, weights = counts.total, counts.weights
    _, group = np.unique(values, return_inverse=True)
    sums = np.bincount(group, weights) if len(group) else np.zeros(1)
    rank = (np.cumsum(sums) - 0.5 * sums)[group] / max(total, 1.0) - 0.5
    features: list[Floats] = []
    for score in (rank, rank**2):
        left = score - weights @ score / max(total, 1.0)
        for before in features:
            left = left - before * (weights @ (before * left) / total)
        square = float(weights @ left**2)
        if square > 1e-9 * total:
            features.append(left * np.sqrt(total / square))
    n = len(counts.weighted)
    if not features:
        return np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    means = counts.weighted @ np.array(features).T / total
    correlation = (means**2).sum(axis=1) / counts.spread
    largest = np.argmax(np.abs(means), axis=1)
    negative = means[np.arange(n), largest] < 0.0
    return correlation, np.full(n, float(len(features))), 2 * largest + negative


def _by_levels(counts: _Counts, codes: NDArray[np.int32]) -> _Found:
    """Of shares by level; levels with few rows count as one."""
    n_levels = int(codes.max(initial=0)) + 1
    has = (codes[:, None] == np.arange(n_levels)).astype(np.float64)
    rows = counts.weights @ has
    expected = counts.share[:, None] * rows
    excess = counts.weighted @ has - expected
    variance = expected * (1.0 - counts.share[:, None])
    large = np.minimum(expected, rows - expected) >= _FEWEST
    kept = np.where(large, excess**2 / np.maximum(variance, 1e-300), 0.0).sum(axis=1)
    pooled_rows = np.where(large, 0.0, rows).sum(axis=1)
    pooled = np.where(large, 0.0, excess).sum(axis=1)
    smaller = np.minimum(counts.share, 1.0 - counts.share)
    is_pooled = smaller * pooled_rows >= _FEWEST
    kept += np.where(is_pooled, pooled**2 / np.maximum(pooled_rows * counts.spread, 1e-300), 0.0)
    df = large.sum(axis=1) + is_pooled - 1.0
    far = np.where(large, excess / np.sqrt(np.maximum(variance, 1e-300)), -np.inf)
    return kept / max(counts.total, 1.0), df, np.argmax(far, axis=1)
