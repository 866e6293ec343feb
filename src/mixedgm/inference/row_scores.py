"""Encoded rows and an estimate -> what rows add to the gradient, and sums of products of that.

The derivative of a row's loss in the coefficient of two design columns, one at each end of an
edge, is the sum of two products: each column times the residual of the other.  So a row is known by
its design columns, its residuals and its derivatives in own terms; derivatives in edges are made of
these where somebody asks for them.

The square of a derivative in a pair, and its products with what is held, are sums over rows of
products of four numbers, two of which belong to each end.  So they are matrix products of columns
that belong to single nodes, and what stands in memory does not grow with rows times pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.inference.held import Batch, Held, PairPart
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.threads import run_all


class ResidualSlopes(NamedTuple):
    """How the residuals of one node change."""

    predictors: Floats
    """(m, w, w) with its predictors: the covariance of what others see of it."""
    own: Floats
    """(m, w, own terms) with its own terms."""


@dataclass(frozen=True, eq=False)
class RowScores:
    """Parts of the derivatives of some rows' losses in contrasts.

    Layouts are those of contrasts: one level fewer everywhere.
    """

    columns: Floats
    """(m, c) design columns; their products with features follow."""
    residuals: Floats
    """(m, d) derivatives in the predictors; zero for covariates, which have none."""
    node_terms: Floats
    """(m, n_node_terms) derivatives in own terms."""
    curvatures: tuple[ResidualSlopes, ...] = ()
    """Of every node, where asked for; those of covariates are zero."""

    def edges(self, layout: Layout, params: Ints | None = None) -> Floats:
        """(m, parameters) derivatives in the edges of a layout, from both their conditionals.

        Of some parameters only, where these are given by their numbers among those of all edges.
        """
        row, column = layout.edge_position
        if params is not None:
            row, column = row[params], column[params]
        out = self.columns[:, row]
        out *= self.residuals[:, column]
        if not layout.nodewise:
            within = row % layout.n_columns
            other = self.columns[:, row - within + column]
            other *= self.residuals[:, within]
            out += other
        return out

    def all(self, layout: Layout) -> Floats:
        """(m, n_theta) derivatives in own terms and edges."""
        return np.hstack([self.node_terms, self.edges(layout)])

    def as_type(self, dtype: type[np.floating]) -> RowScores:
        """The same numbers in another precision, without curvatures."""
        return RowScores(
            self.columns.astype(dtype, copy=False),
            self.residuals.astype(dtype, copy=False),
            self.node_terms.astype(dtype, copy=False),
        )


@dataclass(frozen=True, eq=False)
class Scorer:
    """An estimate, ready to score rows.

    Parameters
    ----------
    layout, reduced : Layout
        Of theta, and of its contrasts.
    theta : ndarray
        The estimate, with contrasts only in edges between levels.
    eta : ndarray
        Its contrasts.
    inflation : ndarray (nodes,), optional
        What the derivatives of every node's conditional are multiplied by.
    """

    layout: Layout
    reduced: Layout
    theta: Floats
    eta: Floats
    inflation: Floats | None = None

    def score(self, rows: MemoryRows, part: slice | Ints, *, curved: bool = False) -> RowScores:
        """Score these rows; `curved` asks for curvatures, too."""
        layout, reduced, nodes = self.layout, self.reduced, self.layout.nodes
        p, codes = nodes.n_gaussian, rows.codes[part]
        columns = self.columns(rows, part)
        d = reduced.n_columns
        seen, predictors = columns[:, :d], columns @ self.coef
        own = np.zeros((len(codes), reduced.n_node_terms))
        precision = self.theta[layout.diagonal]
        mean = (predictors[:, :p] + self.theta[layout.linear]) / precision
        own[:, reduced.linear] = mean - seen[:, :p]
        own[:, reduced.diagonal] = 0.5 * (seen[:, :p] ** 2 - mean**2 - 1.0 / precision)
        predictors[:, :p] = mean
        curvatures = [_gaussian_curvature(*each) for each in zip(mean.T, precision, strict=True)]
        for j in range(len(nodes.n_levels)):
            at = reduced.nodes.columns_of(p + j)
            given = predictors[:, at], codes[:, j]
            if nodes.spiked_nodes[p + j]:
                expected, terms, curvature = self._spiked_score(j, *given, seen[:, at])
            else:
                expected, terms, curvature = self._softmax_score(j, *given, curved)
            predictors[:, at] = expected
            own[:, reduced.node_terms_of(p + j)] = terms
            curvatures.append(curvature)
        residuals = predictors - seen
        if layout.covariates:
            for v in layout.covariates:
                residuals[:, reduced.nodes.columns_of(v)] = 0.0
                own[:, reduced.node_terms_of(v)] = 0.0
                curvatures[v] = ResidualSlopes(*(0.0 * part for part in curvatures[v]))
        return self.inflated(
            RowScores(columns, residuals, own, tuple(curvatures) if curved else ())
        )

    def inflated(self, scores: RowScores) -> RowScores:
        """Scores without inflation -> with it."""
        if self.inflation is None:
            return scores
        reduced = self.reduced
        own = scores.node_terms.copy()
        for v, times in enumerate(self.inflation.tolist()):
            own[:, reduced.node_terms_of(v)] *= times
        residuals = scores.residuals * self.inflation[reduced.column_node]
        return replace(scores, residuals=residuals, node_terms=own)

    def own_statistics(self, rows: MemoryRows, part: slice | Ints) -> Floats:
        """(m, n_node_terms) what own terms multiply in the log density."""
        reduced, nodes = self.reduced, self.layout.nodes
        p, codes = nodes.n_gaussian, rows.codes[part]
        numbers = rows.numbers[part]
        out = np.zeros((len(codes), reduced.n_node_terms))
        out[:, reduced.linear] = numbers[:, :p]
        out[:, reduced.diagonal] = -0.5 * numbers[:, :p] ** 2
        for j in range(len(nodes.n_levels)):
            to = reduced.node_terms_of(p + j)
            if nodes.spiked_nodes[p + j]:
                _, middle, _ = nodes.scores[nodes.slots_of(j)]
                there = codes[:, j] > 0
                seen = numbers[:, reduced.nodes.columns_of(p + j)]
                x = np.where(there, seen[:, 1] + middle, 0.0)
                out[:, to] = np.column_stack([there, x, -0.5 * x**2])
            else:
                out[:, to] = self._features(j)[codes[:, j]]
        for v in self.layout.covariates:
            out[:, reduced.node_terms_of(v)] = 0.0
        return out

    def _features(self, j: int) -> Floats:
        """(values, own terms) what the own terms of a node with finitely many values multiply."""
        nodes = self.layout.nodes
        return level_basis(nodes.n_levels[j]) if nodes.free[j] else nodes.term_features(j)

    @cached_property
    def coef(self) -> Floats:
        """(c, d) what contrasts of design columns, and their products, add to every predictor."""
        return self.reduced.to_matrix(self.eta)

    def columns(self, rows: MemoryRows, part: slice | Ints = slice(None)) -> Floats:
        """(m, c) contrasts of the design columns, and their products with features."""
        nodes, codes = self.layout.nodes, rows.codes[part]
        parts = [rows.numbers[part]]
        for j in range(nodes.first_indicator, len(nodes.n_levels)):
            parts.append(level_basis(nodes.n_levels[j])[codes[:, j]])
        columns = np.hstack(parts)
        if rows.products is None:
            return columns
        centred = columns - self.contrasts_of(rows.products.centre)
        features = rows.products.features[part]
        by_feature = features[:, :, None] * centred[:, None, :]
        return np.hstack([columns, by_feature.reshape(len(columns), -1)])

    def contrasts_of(self, design_column: Floats) -> Floats:
        """(d,) a value per design column -> one per contrast."""
        nodes = self.layout.nodes
        parts = [design_column[nodes.numeric]]
        for j in range(nodes.first_indicator, len(nodes.n_levels)):
            at = nodes.columns_of(nodes.n_gaussian + j)
            parts.append(design_column[at] @ level_basis(nodes.n_levels[j]))
        return np.concatenate(parts)

    # -- conditionals of discrete nodes, by their numbers ------------------------------------------

    @cached_property
    def _own_logits(self) -> Floats:
        return self.layout.nodes.own_logits(self.theta[self.layout.biases])

    def seen_values(self, j: int) -> Floats:
        """(values, columns) what others see of every value of a node with finitely many."""
        nodes = self.layout.nodes
        if nodes.scored_nodes[nodes.n_gaussian + j]:
            return nodes.scores[nodes.slots_of(j)][:, None]
        return level_basis(nodes.n_levels[j])

    def odds(self, j: int, predictors: Floats) -> Floats:
        """(values, m) in proportion to the chances of the values of a node with finitely many.

        Values by rows: sums over a few neighbours in memory would be several times slower.
        """
        out: Floats = self.seen_values(j) @ predictors.T
        out += self._own_logits[self.layout.nodes.slots_of(j)][:, None]
        out -= out.max(axis=0)
        return np.exp(out, out=out)

    def spiked_parts(self, j: int, predictors: Floats) -> tuple[Floats, Floats, float]:
        """(m,) of a node that is zero or any number: chance of a number; its mean and precision."""
        nodes = self.layout.nodes
        unit, _, _ = nodes.scores[nodes.slots_of(j)]
        height, slope, precision = self._own_logits[nodes.slots_of(j)]
        slope = slope + predictors[:, 1]
        odds = height + unit * predictors[:, 0] + 0.5 * slope**2 / precision
        odds += 0.5 * np.log(2.0 * np.pi / precision)
        return 0.5 + 0.5 * np.tanh(0.5 * odds), slope / precision, float(precision)

    def _softmax_score(
        self, j: int, predictors: Floats, codes: NDArray[np.integer], curved: bool
    ) -> tuple[Floats, Floats, ResidualSlopes]:
        """Expected design columns of a node with finitely many values; derivatives in own terms."""
        chance = self.odds(j, predictors)
        chance /= chance.sum(axis=0)
        values = self.seen_values(j)
        features = self._features(j)
        expected = chance.T @ values
        curvature = _finite_curvature(chance, values, features, expected) if curved else _FLAT
        chance[codes, np.arange(len(codes))] -= 1.0
        return expected, chance.T @ features, curvature

    def _spiked_score(
        self, j: int, predictors: Floats, codes: NDArray[np.integer], seen: Floats
    ) -> tuple[Floats, Floats, ResidualSlopes]:
        """The same of a node that is zero or any real number."""
        unit, middle, share = self.layout.nodes.scores[self.layout.nodes.slots_of(j)]
        chance, mean, precision = self.spiked_parts(j, predictors)
        there = codes > 0
        x = np.where(there, seen[:, 1] + middle, 0.0)
        square = chance * (1.0 / precision + mean**2)
        own = np.column_stack([chance - there, chance * mean - x, 0.5 * (x**2 - square)])
        expected = np.column_stack([unit * chance - share, chance * mean - middle])
        return expected, own, _spiked_curvature(unit, chance, mean, 1.0 / precision)


_FLAT = ResidualSlopes(np.zeros((0, 0, 0)), np.zeros((0, 0, 0)))


def _gaussian_curvature(mean: Floats, precision: float) -> ResidualSlopes:
    """Of (predictor + linear term) / precision."""
    own = np.column_stack([np.ones(len(mean)), -mean]) / precision
    return ResidualSlopes(np.full((len(mean), 1, 1), 1.0 / precision), own[:, None, :])


def _finite_curvature(
    chance: Floats, values: Floats, features: Floats, expected: Floats
) -> ResidualSlopes:
    """Covariances of values (n, w) with themselves and with features, under chances (n, m)."""

    def covariance(other: Floats, mean: Floats) -> Floats:
        products = (values[:, :, None] * other[:, None, :]).reshape(len(values), -1)
        second = (chance.T @ products).reshape(-1, values.shape[1], other.shape[1])
        return np.asarray(second - expected[:, :, None] * mean[:, None, :])

    return ResidualSlopes(covariance(values, expected), covariance(features, chance.T @ features))


def _spiked_curvature(unit: float, chance: Floats, mean: Floats, variance: float) -> ResidualSlopes:
    """Covariances of unit b and bx with themselves, and with b, bx and -bx^2 / 2; b is 0 or 1."""
    first, second = chance * mean, chance * (mean**2 + variance)
    third = chance * (mean**3 + 3.0 * mean * variance)
    rest = 1.0 - chance
    of_b = np.stack([chance * rest, first * rest, -0.5 * second * rest], axis=1)
    of_x = np.stack([first * rest, second - first**2, 0.5 * (first * second - third)], axis=1)
    own = np.stack([unit * of_b, of_x], axis=1)
    return ResidualSlopes(own[:, :, :2] * np.array([unit, 1.0]), own)


_PARTS = 4
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
    followed = np.tril(followed) + np.tril(followed, -1).T  # parts reach to their last column
    return SquareSums(followed, cross, np.concatenate([np.zeros(0), *own]))


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
