"""Completed rows and an estimate -> sums over the rows with gaps that they complete.

A row with gaps adds the mean of its gradient over its completions.  That mean moves with the
parameters in two ways: the gradient does, and so does the law of the completions (Louis 1982).  So
the curvature H of completed rows becomes H + C, with C the mean covariance, within rows, of
gradients and of the statistics that parameters multiply.  -C is what is missing of H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixedgm.inference.held import Batch, Held
from mixedgm.inference.row_scores import RowScores, Scorer
from mixedgm.inference.row_sums import cluster_normals
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.rows.memory import MemoryRows

MOST_COMPLETIONS = 50_000
"""Sums are over rows, evenly spread, that have about so many completions together."""
_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Completions:
    """Which row every completion belongs to.

    Parameters
    ----------
    rows : MemoryRows
        The completions, with weights.
    row : ndarray of int
        The row of each.
    clusters : ndarray of int, optional
        The cluster of every row.
    """

    rows: MemoryRows
    row: Ints
    clusters: Ints | None = None

    @cached_property
    def unit(self) -> Ints:
        """The row of every completion, or its cluster: units do not depend on each other."""
        return self.row if self.clusters is None else self.clusters[self.row]

    @cached_property
    def weights(self) -> Floats:
        """Of all completions."""
        weights = self.rows.weights
        return np.ones(len(self.row)) if weights is None else weights

    @cached_property
    def chosen(self) -> Ints:
        """Completions of units that are evenly spread, those of a row one after the other."""
        stride = max(1, len(self.row) // MOST_COMPLETIONS)
        names = np.unique(self.unit)[::stride]
        some = np.flatnonzero(np.isin(self.unit, names))
        return np.asarray(some[np.lexsort((self.row[some], self.unit[some]))])

    @cached_property
    def scale(self) -> float:
        """Number of observations, as a sum over clusters of squares of shares counts them."""
        n_units = len(np.unique(self.unit[self.chosen]))
        return float(self.weights[self.chosen].sum() * n_units / (n_units - 1.0))

    def blocks(self, n_columns: int) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield completions of whole units, where each row begins, and shares of the whole."""
        index = self.chosen
        share = self.weights[index] / self.weights[index].sum()
        starts = np.flatnonzero(np.diff(self.row[index], prepend=-1))
        most = max(64, _CELLS // max(n_columns, 1))
        first = 0
        ends = np.append(np.flatnonzero(np.diff(self.unit[index])) + 1, len(index))
        while first < len(index):
            number = int(np.searchsorted(ends, first + most, "right")) - 1
            if number < 0 or ends[number] <= first:  # one unit with very many
                number = int(np.searchsorted(ends, first, "right"))
            last = int(ends[number])
            inside = starts[(starts >= first) & (starts < last)] - first
            yield index[first:last], inside, share[first:last]
            first = last

    def scored(
        self, scores: RowScores, statistics: Floats, index: Ints, starts: Ints, share: Floats
    ) -> _ScoredRows:
        """The rows of a block."""
        clusters = None
        if self.clusters is not None:
            clusters = np.flatnonzero(np.diff(self.unit[index[starts]], prepend=-1))
        return _ScoredRows(scores, statistics, starts, share, clusters, self.scale)


@dataclass(frozen=True, eq=False)
class _ScoredRows:
    """Gradients and statistics of some completions, and the means of these over rows."""

    scores: RowScores
    own_statistics: Floats
    starts: Ints
    share: Floats
    clusters: Ints | None = None
    """Where clusters begin among the rows."""
    scale: float = 1.0
    """By which squares of sums over clusters are multiplied."""

    @cached_property
    def of_rows(self) -> Floats:
        """Shares of the rows."""
        return np.add.reduceat(self.share, self.starts)

    def means(self, values: Floats) -> Floats:
        """(rows, columns) over the completions of every row."""
        sums = np.add.reduceat(values * self.share[:, None], self.starts, axis=0)
        return np.asarray(sums / self.of_rows[:, None])

    def summed(self, means: Floats) -> Floats:
        """(units, columns) what rows contribute, or clusters of rows together."""
        if self.clusters is None:
            return means
        return np.asarray(np.add.reduceat(means * self.of_rows[:, None], self.clusters, axis=0))

    @cached_property
    def counts(self) -> Floats:
        """(units,) by which products of what units contribute are multiplied."""
        return self.of_rows if self.clusters is None else np.full(len(self.clusters), self.scale)

    def edge_statistics(self, layout: Layout, params: Ints | None = None) -> Floats:
        """(m, parameters) products of the columns at both ends."""
        row, column = layout.edge_position
        if params is not None:
            row, column = row[params], column[params]
        return np.asarray(self.scores.columns[:, row] * self.scores.columns[:, column])


@dataclass(frozen=True, eq=False)
class MissingSums:
    """Sums over rows with gaps; those of pairs are for the groups outside a graph."""

    missing: Floats
    """(held, held) C of what is held."""
    squares: Floats
    """(held, held) mean squares of the rows' gradients."""
    missing_down: Floats
    """(edge parameters outside, held) C, gradients of pairs with statistics of what is held."""
    missing_across: Floats
    """(edge parameters outside, held) C, statistics of pairs with gradients of what is held."""
    products: Floats
    """(edge parameters outside, held) means of products of the rows' gradients."""
    own_missing: list[Floats]
    own_squares: list[Floats]
    """(G, k, k) of every part of `Held.parts`."""


def missing_sums(held: Held, scorer: Scorer, completions: Completions) -> MissingSums:
    """Sums over rows of products of gradients, and within rows with statistics.

    Squares are those of inflated gradients; C belongs to the curvature, which is not inflated.
    """
    plain = replace(scorer, inflation=None)
    size, layout = held.size, held.layout
    params = [held.batch(part).params for part in held.parts]
    counts = np.cumsum([0, *(each.size for each in params)])
    of_held, of_pairs = (size, size), (int(counts[-1]), size)
    own = [(*each.shape, each.shape[1]) for each in params]
    out = MissingSums(
        missing=np.zeros(of_held),
        squares=np.zeros(of_held),
        missing_down=np.zeros(of_pairs),
        missing_across=np.zeros(of_pairs),
        products=np.zeros(of_pairs),
        own_missing=[np.zeros(shape) for shape in own],
        own_squares=[np.zeros(shape) for shape in own],
    )
    widest = size + max((each.size for each in params), default=0)
    for index, starts, share in completions.blocks(widest):
        scores = plain.score(completions.rows, index)
        inflated = scorer.inflated(scores)
        terms = scorer.own_statistics(completions.rows, index)
        block = completions.scored(scores, terms, index, starts, share)
        s = scores.all(held.inside)
        t = np.hstack([terms, block.edge_statistics(held.inside)])
        s_mean, t_mean = block.means(s), block.means(t)
        s_weighed, t_weighed = s * share[:, None], t * share[:, None]
        s_means, t_means = s_mean * block.of_rows[:, None], t_mean * block.of_rows[:, None]
        g = block.summed(block.means(inflated.all(held.inside)))
        g_counted = g * block.counts[:, None]
        out.missing[:] += s.T @ t_weighed - s_mean.T @ t_means
        out.squares[:] += g.T @ g_counted
        for number, each in enumerate(params):
            at = slice(int(counts[number]), int(counts[number + 1]))
            s_pair = scores.edges(layout, each.ravel())
            t_pair = block.edge_statistics(layout, each.ravel())
            s_pair_mean, t_pair_mean = block.means(s_pair), block.means(t_pair)
            g_pair = block.summed(block.means(inflated.edges(layout, each.ravel())))
            out.missing_down[at] += s_pair.T @ t_weighed - s_pair_mean.T @ t_means
            out.missing_across[at] += t_pair.T @ s_weighed - t_pair_mean.T @ s_means
            out.products[at] += g_pair.T @ g_counted
            shape = (-1, *each.shape)
            out.own_missing[number][:] += _blockwise(s_pair, t_pair, share, shape)
            out.own_missing[number][:] -= _blockwise(s_pair_mean, t_pair_mean, block.of_rows, shape)
            out.own_squares[number][:] += _blockwise(g_pair, g_pair, block.counts, shape)
    return out


def drawn_means(
    held: Held, scorer: Scorer, completions: Completions, draws: tuple[int, np.random.Generator]
) -> tuple[Floats, Floats]:
    """Sums over rows of mean gradients, times normal numbers, in what is held and in all edges.

    draws = (how many sums, what draws the numbers).  With clusters, those of a cluster depend on
    its own number and on the first draw only, so that tables that share clusters have dependent
    errors.
    """
    n_draws, rng = draws
    seed = None if completions.clusters is None else int(rng.integers(2**63))
    n_edges = held.layout.n_theta - held.layout.n_node_terms
    of_held, of_edges = np.zeros((n_draws, held.size)), np.zeros((n_draws, n_edges))
    for index, starts, share in completions.blocks(held.size + n_edges):
        scores = scorer.score(completions.rows, index)
        block = completions.scored(scores, np.zeros((0, 0)), index, starts, share)
        if seed is None:
            normal = rng.standard_normal((n_draws, len(starts)))
        else:
            assert block.clusters is not None
            units = completions.unit[index[starts[block.clusters]]]
            normal = cluster_normals(units, n_draws, seed)
        normal = normal * np.sqrt(block.counts)
        of_held += normal @ block.summed(block.means(scores.all(held.inside)))
        of_edges += normal @ block.summed(block.means(scores.edges(held.layout)))
    return of_held, of_edges


def _blockwise(first: Floats, second: Floats, share: Floats, shape: tuple[int, ...]) -> Floats:
    """(G, k, k) weighed sums over rows of products within every group."""
    one = (first * share[:, None]).reshape(shape).transpose(1, 2, 0)
    other = second.reshape(shape).transpose(1, 0, 2)
    return np.asarray(one @ other)


def spread_out(batch: Batch, across: Floats, size: int) -> Floats:
    """(G k, held) what a batch has by its lists, as rows over all that is held."""
    n_groups, k, _ = across.shape
    out = np.zeros((n_groups, k, size + 1))
    rows = np.arange(n_groups)[:, None, None], np.arange(k)[None, :, None]
    np.add.at(out, (*rows, batch.held[:, None, :]), across)
    return out[:, :, :size].reshape(n_groups * k, size)
