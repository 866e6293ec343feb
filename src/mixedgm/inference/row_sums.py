"""Rows that are scored, complete or with gaps -> sums from which curvature and variance are made.

The derivative of a row in a pair is z_r R_b + z_s R_a: a column of one end times the residual of
the other, twice.  Its square, and its products with what is held, are sums over rows of products of
four numbers, two of which belong to each end.  So they are matrix products of columns that belong
to single nodes, and what stands in memory does not grow with rows times pairs.

Completed rows and an estimate -> sums over the rows with gaps that they complete.

A row with gaps adds the mean of its gradient over its completions.  That mean moves with the
parameters in two ways: the gradient does, and so does the law of the completions (Louis 1982).  So
the curvature H of completed rows becomes H + C, with C the mean covariance, within rows, of
gradients and of the statistics that parameters multiply.  -C is what is missing of H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from mixedgm.base.threads import run_all
from mixedgm.inference.held import Batch, Held, PairPart
from mixedgm.inference.row_scores import RowScores, Scorer
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows

_PARTS = 4
_CLUSTERS_AT_ONCE = 512
_MIRRORED = 256
_CELLS = 2**22
"""Numbers in the largest matrix of a block of rows."""


class EndProducts:
    """Products of two columns, of a column and a residual, of two residuals, at one end of a pair.

    The predictors of a group at one end are the columns of a node or, for deviations, their
    products with the features of a moderator.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.width = layout, layout.width
        moderators = range(-1, int(layout.moderator.max(initial=-1)) + 1)
        n_features = np.array([1, *layout.n_features], dtype=np.int64)[: len(moderators)]
        self.first_block = np.cumsum([0, *n_features])[:-1]
        self.size = n_features[:, None] * self.width
        columns, residuals = [], []
        for first, count in zip(self.first_block, n_features, strict=True):
            down = layout.n_columns * (first + np.arange(count))
            for start, width in zip(layout.column_start, self.width, strict=False):
                residuals.append(start + np.arange(width))
                columns.append((down[:, None] + residuals[-1]).ravel())
        self.two_columns = _all_pairs(columns, columns)
        self.mixed = _all_pairs(columns, residuals)
        of_nodes = residuals[: layout.n_nodes]
        self.two_residuals = _all_pairs(of_nodes, of_nodes)
        self.columns_start = _starts(self.size**2)
        self.mixed_start = _starts(self.size * self.width)
        self.residuals_start = _starts(self.width**2)

    def blocks(self, batch: Batch, by_residuals: Floats, by_mixed: Floats | None) -> Floats:
        """(G, k, k) sums of squares of z_r R_b + z_s R_a, for every two parameters of a group.

        `by_residuals` are sums for two columns and two residuals (or what stands for these), and
        `by_mixed` for two mixed products; without these, products of both terms are left out.
        """
        layout = self.layout
        row, column = layout.edge_position
        kind = layout.moderator[batch.groups] + 1
        u, v = layout.pairs[batch.groups].T
        r, b = row[batch.params], column[batch.params]
        a = r % layout.n_columns
        number = r // layout.n_columns - self.first_block[kind][:, None]
        la, lb = (end - layout.column_start[node][:, None] for end, node in ((a, u), (b, v)))
        lr, ls = (number * self.width[node][:, None] + at for node, at in ((u, la), (v, lb)))
        out = by_residuals[self._columns(kind, u, lr), self._residuals(v, lb)]
        if layout.nodewise:
            return np.asarray(out)
        out = out + by_residuals[self._columns(kind, v, ls), self._residuals(u, la)]
        if by_mixed is not None:
            both = by_mixed[self._mixed(kind, u, lr, la), self._mixed(kind, v, ls, lb, turned=True)]
            out = out + both + both.transpose(0, 2, 1)
        return np.asarray(out)

    def _columns(self, kind: Ints, node: Ints, at: Ints) -> Ints:
        start, size = self.columns_start[kind, node], self.size[kind, node]
        return _square_index(start, size, at, at)

    def _residuals(self, node: Ints, at: Ints) -> Ints:
        return _square_index(self.residuals_start[node], self.width[node], at, at)

    def _mixed(
        self, kind: Ints, node: Ints, column: Ints, residual: Ints, *, turned: bool = False
    ) -> Ints:
        """(G, k, k) the column of one parameter with the residual of another; or turned around."""
        index = _square_index(self.mixed_start[kind, node], self.width[node], column, residual)
        return index.transpose(0, 2, 1) if turned else index


def _square_index(start: Ints, size: Ints, first: Ints, second: Ints) -> Ints:
    """(G, k, k) start + first * size + second, for every two parameters of a group."""
    return np.asarray(
        start[:, None, None] + first[:, :, None] * size[:, None, None] + second[:, None, :]
    )


def _all_pairs(first: list[Ints], second: list[Ints]) -> tuple[Ints, Ints]:
    """All pairs of entries of lists that belong together, the second one running faster."""
    both = zip(first, second, strict=True)
    parts = [(np.repeat(one, len(other)), np.tile(other, len(one))) for one, other in both]
    left, right = zip(*parts, strict=True)
    return np.concatenate(left), np.concatenate(right)


def _starts(sizes: Ints) -> Ints:
    """Sum of all sizes before each, in the same shape."""
    flat = np.concatenate([[0], np.cumsum(sizes.ravel())[:-1]])
    return np.asarray(flat.reshape(sizes.shape), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CurvatureSums:
    """What joins pairs outside the graph with what is held, and their own curvature."""

    across: Floats
    """As `Held.sum_start` orders them."""
    by_variances: Floats
    """(products of two columns, covariances of two columns of a node)."""


def curvature_sums(
    held: Held,
    ends: EndProducts,
    scorer: Scorer,
    rows: MemoryRows | PartedRows,
    stride: int,
    dtype: type[np.floating] = np.float64,
) -> CurvatureSums:
    """From every stride-th row.  Products within a block of rows have precision `dtype`."""
    if isinstance(rows, PartedRows):
        sums = rows.means(_curvature_means, held, ends, scorer, dtype, stride=stride)
        return CurvatureSums(*sums)
    across = np.zeros(int(held.sum_start[-1]))
    by_variances = np.zeros((len(ends.two_columns[0]), len(ends.two_residuals[0])))
    if not held.targets:
        return CurvatureSums(across, by_variances)
    for share, index in row_blocks(rows, np.arange(0, rows.n_rows, stride), held, ends):
        scores = scorer.score(rows, index, curved=True)
        columns, share = scores.columns.astype(dtype), share.astype(dtype)
        products = _multiplied(columns, columns, ends.two_columns)
        slopes = [each.predictors.reshape(len(index), -1) for each in scores.curvatures]
        variances, weighted = np.hstack(slopes).astype(dtype), columns * share[:, None]
        tasks = [partial(_add_product, products, variances, share, by_variances)]
        tasks += [partial(_add_across, held, scores, v, weighted, across) for v in held.targets]
        run_all(tasks, rows.n_threads)
    return CurvatureSums(across, by_variances)


def _add_across(held: Held, scores: RowScores, v: int, weighted: Floats, across: Floats) -> None:
    """Add curvature in all predictors of a node and what is held of its conditional.

    It is a sum over rows of products of three: a predictor, a held predictor, and the covariance of
    two columns of the node.  The two that have fewer products are multiplied first.
    """
    conditional, curvature = held.conditionals[v], scores.curvatures[v]
    columns, own, slopes = (
        part.astype(weighted.dtype)
        for part in (scores.columns, curvature.own, curvature.predictors)
    )
    n, width = slopes.shape[:2]
    others = held.predictors[v]
    predictors, number = np.unique(conditional.predictor, return_inverse=True)
    by_pairs = len(others) < width**2
    if not by_pairs:
        of_edges = slopes[:, :, conditional.target]
        of_edges *= columns[:, None, conditional.predictor]
        joined = np.concatenate([own, of_edges], axis=2).reshape(n, -1)
    sums = across[held.sum_start[v] : held.sum_start[v + 1]].reshape(weighted.shape[1], -1)
    for first in range(0, weighted.shape[1], held.layout.n_columns):
        wanted = weighted[:, first + others]
        if not by_pairs:
            sums[first + others] += wanted.T @ joined
            continue
        pairs = (wanted[:, :, None] * columns[:, None, predictors]).reshape(n, -1)
        by_slopes = (pairs.T @ slopes.reshape(n, -1)).reshape(len(others), -1, width, width)
        edges = by_slopes[:, number, :, conditional.target].transpose(1, 2, 0)
        of_own = (wanted.T @ own.reshape(n, -1)).reshape(len(others), width, -1)
        sums[first + others] += np.concatenate([of_own, edges], axis=2).reshape(len(others), -1)


@dataclass(frozen=True, eq=False)
class SquareSums:
    """Variances of the rows' derivatives, and covariances with how everything held follows."""

    followed: Floats
    """(held, held) mean squares of how estimates of what is held follow a row."""
    cross: Floats
    """Means of derivatives times that, as `Held.sum_start` orders them."""
    own: Floats
    """(sum of squared sizes of groups outside the graph,) mean squares of derivatives in pairs."""


def square_sums(
    held: Held,
    ends: EndProducts,
    scorer: Scorer,
    rows: MemoryRows | PartedRows,
    stride: int,
    inverse: Floats,
    dtype: type[np.floating] = np.float64,
) -> SquareSums:
    """From every stride-th row, which are independent; `inverse` is that of the held Hessian.

    Products within a block of rows have precision `dtype`.
    """
    if isinstance(rows, PartedRows):
        given = (held, ends, scorer, inverse, dtype)
        return SquareSums(*rows.means(_square_means, *given, stride=stride))
    cross, followed = np.zeros(int(held.sum_start[-1])), np.zeros_like(inverse)
    by_residuals = np.zeros((len(ends.two_columns[0]), len(ends.two_residuals[0])))
    by_mixed = np.zeros((len(ends.mixed[0]),) * 2)
    for share, index in row_blocks(rows, np.arange(0, rows.n_rows, stride), held, ends):
        scores, share = scorer.score(rows, index).as_type(dtype), share.astype(dtype)
        f = _followed(scores.all(held.inside), inverse.astype(dtype), rows.n_threads)
        tasks = [
            partial(_add_product, f[:, part], f[:, : part.stop], share, followed[part, : part.stop])
            for part in _parts(held.size)
        ]
        if held.targets:
            columns = _multiplied(scores.columns, scores.columns, ends.two_columns)
            residuals = _multiplied(scores.residuals, scores.residuals, ends.two_residuals)
            tasks.append(partial(_add_product, columns, residuals, share, by_residuals))
        if held.targets and not held.layout.nodewise:
            mixed = _multiplied(scores.columns, scores.residuals, ends.mixed)
            tasks.append(partial(_add_product, mixed, mixed, share, by_mixed))
        tasks += [partial(_add_cross, held, scores, v, f, share, cross) for v in held.targets]
        run_all(tasks, rows.n_threads)

    def blocks(part: PairPart) -> Floats:
        return ends.blocks(held.batch(part), by_residuals, by_mixed).ravel()

    own = run_all([partial(blocks, part) for part in held.parts], rows.n_threads)
    followed = mirrored(followed)  # parts reach to their last column
    return SquareSums(followed, cross, np.concatenate([np.zeros(0), *own]))


def mirrored(matrix: Floats) -> Floats:
    """The square matrix, whose upper half is overwritten by the lower one."""
    for at in range(0, len(matrix), _MIRRORED):
        end = at + _MIRRORED
        corner = matrix[at:end, at:end]
        matrix[at:end, at:end] = np.tril(corner) + np.tril(corner, -1).T
        matrix[at:end, end:] = matrix[end:, at:end].T
    return matrix


def _curvature_means(
    rows: MemoryRows, held: Held, ends: EndProducts, scorer: Scorer, dtype: type[np.floating]
) -> tuple[Floats, ...]:
    """`curvature_sums` of some rows, all of which count."""
    sums = curvature_sums(held, ends, scorer, rows, 1, dtype)
    return sums.across, sums.by_variances


def _square_means(
    rows: MemoryRows,
    held: Held,
    ends: EndProducts,
    scorer: Scorer,
    inverse: Floats,
    dtype: type[np.floating],
) -> tuple[Floats, ...]:
    """`square_sums` of some rows, all of which count."""
    sums = square_sums(held, ends, scorer, rows, 1, inverse, dtype)
    return sums.followed, sums.cross, sums.own


def clustered_square_sums(
    held: Held,
    ends: EndProducts,
    scorer: Scorer,
    rows: MemoryRows,
    clusters: Ints,
    inverse: Floats,
) -> SquareSums:
    """The same where derivatives are added up within clusters before they are squared.

    Weights are those of a design.  Sums over clusters are formed for some pairs at a time.
    """
    order, n_clusters = np.argsort(clusters, kind="stable"), int(clusters.max()) + 1
    scale = n_clusters / (n_clusters - 1.0) / rows.total_weight
    batches = list(held.batches())
    cross, followed = np.zeros(int(held.sum_start[-1])), np.zeros_like(inverse)
    own = [np.zeros((*batch.params.shape, batch.params.shape[1])) for batch in batches]
    for index in _whole_clusters(clusters[order], order, held, ends):
        scores = scorer.score(rows, index)
        weights = np.ones(len(index)) if rows.weights is None else rows.weights[index]
        change = np.diff(clusters[index], prepend=-1) != 0
        first, number = np.flatnonzero(change), np.cumsum(change) - 1
        of_held = scores.all(held.inside) * weights[:, None]
        f = np.add.reduceat(of_held, first, axis=0) @ inverse
        followed += scale * f.T @ f
        for v in held.targets:
            _add_cross(held, scores, v, f[number], scale * weights, cross)
        for batch, out in zip(batches, own, strict=True):
            k = batch.params.shape[1]
            step = max(1, _CELLS // (len(index) * k))
            for at in range(0, len(out), step):
                part = batch.params[at : at + step]
                values = scores.edges(held.layout, part.ravel()) * weights[:, None]
                sums = np.add.reduceat(values, first, axis=0).reshape(len(first), -1, k)
                sums = sums.transpose(1, 2, 0)
                out[at : at + step] += scale * (sums @ sums.transpose(0, 2, 1))
    return SquareSums(followed, cross, np.concatenate([np.zeros(0), *(o.ravel() for o in own)]))


def drawn_sums(
    held: Held,
    ends: EndProducts,
    scorer: Scorer,
    rows: MemoryRows,
    stride: int,
    draws: tuple[int, np.random.Generator],
) -> tuple[Floats, Floats]:
    """Sums over rows, times normal numbers, of derivatives in what is held and in all edges.

    draws = (how many sums, what draws the numbers); their variances are those of a single row.
    """
    n_draws, rng = draws
    n_edges = held.layout.n_theta - held.layout.n_node_terms
    of_held, of_edges = np.zeros((n_draws, held.size)), np.zeros((n_draws, n_edges))
    for share, index in row_blocks(rows, np.arange(0, rows.n_rows, stride), held, ends):
        scores = scorer.score(rows, index)
        normal = rng.standard_normal((n_draws, len(index))) * np.sqrt(share)
        of_held += normal @ scores.all(held.inside)
        step = max(1, _CELLS // len(index))
        for at in range(0, n_edges, step):
            params = np.arange(at, min(at + step, n_edges))
            of_edges[:, params] += normal @ scores.edges(held.layout, params)
    return of_held, of_edges


def clustered_drawn_sums(
    held: Held, scorer: Scorer, rows: MemoryRows, clusters: Ints, draws: tuple[int, int]
) -> tuple[Floats, Floats]:
    """`drawn_sums` where all rows of a cluster have the same normal number.

    draws = (how many sums, a seed).  The normal numbers of a cluster depend only on the seed and on
    the cluster's own number, so that tables that share clusters have dependent errors.
    """
    n_draws, seed = draws
    n_edges, n_clusters = held.layout.n_theta - held.layout.n_node_terms, len(np.unique(clusters))
    scale = np.sqrt(n_clusters / (n_clusters - 1.0) / rows.total_weight)
    of_held, of_edges = np.zeros((n_draws, held.size)), np.zeros((n_draws, n_edges))
    order = np.argsort(clusters, kind="stable")
    block = clusters[order] // _CLUSTERS_AT_ONCE
    for index in np.split(order, np.flatnonzero(np.diff(block)) + 1):
        weights = np.ones(len(index)) if rows.weights is None else rows.weights[index]
        normal = scale * weights * cluster_normals(clusters[index], n_draws, seed)
        scores = scorer.score(rows, index)
        of_held += normal @ scores.all(held.inside)
        step = max(1, _CELLS // len(index))
        for at in range(0, n_edges, step):
            params = np.arange(at, min(at + step, n_edges))
            of_edges[:, params] += normal @ scores.edges(held.layout, params)
    return of_held, of_edges


def cluster_normals(clusters: Ints, n_draws: int, seed: int) -> Floats:
    """(draws, clusters) normal numbers, each the same wherever its cluster is asked for."""
    out = np.empty((n_draws, len(clusters)))
    block = clusters // _CLUSTERS_AT_ONCE
    for number in np.unique(block).tolist():
        some, rng = block == number, np.random.default_rng([seed, number])
        drawn = rng.standard_normal((n_draws, _CLUSTERS_AT_ONCE))
        out[:, some] = drawn[:, clusters[some] % _CLUSTERS_AT_ONCE]
    return out


def _parts(size: int) -> list[slice]:
    """As many parts for any number of threads, so that sums have the same order."""
    cuts = np.unique(np.linspace(0, size, _PARTS + 1).astype(np.int64)).tolist()
    return [slice(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def _followed(scores: Floats, inverse: Floats, n_threads: int) -> Floats:
    """How estimates of what is held follow every row."""
    parts = _parts(len(inverse))
    return np.hstack(run_all([partial(np.matmul, scores, inverse[:, p]) for p in parts], n_threads))


def _multiplied(first: Floats, second: Floats, at: tuple[Ints, Ints]) -> Floats:
    return np.asarray(first[:, at[0]] * second[:, at[1]])


def _add_product(left: Floats, right: Floats, share: Floats, out: Floats) -> None:
    """Add the mean of left' right over rows with these shares."""
    out += left.T @ (right * share[:, None])


def _add_cross(
    held: Held, scores: RowScores, v: int, f: Floats, share: Floats, cross: Floats
) -> None:
    """Add derivatives in the pairs of a node times how what is held of its conditional follows.

    Either a pair's own products are made first, or those with what is held: whichever are fewer.
    """
    layout, z, residuals = held.layout, scores.columns, scores.residuals
    conditional, d = held.conditionals[v], layout.n_columns
    here = slice(int(layout.column_start[v]), int(layout.column_start[v + 1]))
    followed = f[:, np.concatenate([conditional.own, conditional.edges])] * share[:, None]
    others = held.predictors[v]
    by_pairs = len(others) < followed.shape[1]
    if not by_pairs:
        moved = (residuals[:, here, None] * followed[:, None, :]).reshape(len(z), -1)
    sums = cross[held.sum_start[v] : held.sum_start[v + 1]].reshape(z.shape[1], -1)
    for first in range(0, z.shape[1], d):
        other, column = z[:, first + others], z[:, first + here.start : first + here.stop]
        if by_pairs:
            pairs = other[:, :, None] * residuals[:, None, here]
            if not layout.nodewise:
                pairs += residuals[:, others, None] * column[:, None, :]
            both = pairs.reshape(len(z), -1).T @ followed
        else:
            both = other.T @ moved
            if not layout.nodewise:
                of_column = (column[:, :, None] * followed[:, None, :]).reshape(len(z), -1)
                both += residuals[:, others].T @ of_column
        sums[first + others] += both.reshape(len(others), -1)


def _rows_at_once(held: Held, ends: EndProducts) -> int:
    widest = max(int((held.layout.width * held.lengths).max(initial=1)), held.size)
    columns = held.n_predictors + len(ends.two_columns[0]) + len(ends.mixed[0]) + widest
    return max(16, _CELLS // columns)


def row_blocks(
    rows: MemoryRows, index: Ints, held: Held, ends: EndProducts
) -> Iterator[tuple[Floats, Ints]]:
    """Shares of rows, and their numbers, so many at a time that what they need stays small."""
    weights = np.ones(len(index)) if rows.weights is None else rows.weights[index]
    share, step = weights / weights.sum(), _rows_at_once(held, ends)
    for at in range(0, len(index), step):
        yield share[at : at + step], index[at : at + step]


def _whole_clusters(clusters: Ints, order: Ints, held: Held, ends: EndProducts) -> Iterator[Ints]:
    """Numbers of the rows of some clusters at a time; `clusters` are sorted, rows in `order`."""
    starts = np.append(np.flatnonzero(np.diff(clusters, prepend=-1)), len(clusters))
    step, first = _rows_at_once(held, ends), 0
    for here, after in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if after - first > step and here > first:
            yield order[first:here]
            first = here
    yield order[first:]


# -- rows with gaps --------------------------------------------------------------------------------

MOST_COMPLETIONS = 50_000
"""Sums are over rows, evenly spread, that have about so many completions together."""


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
