"""Encoded rows and an estimate -> what every row adds to the gradient, in contrasts of levels.

The derivative of a row's loss in the coefficient of two design columns, one at each end of an
edge, is the sum of two products: each column times the residual of the other.  So a row is known by
its design columns, its residuals and its derivatives in own terms; derivatives in edges are made of
these where somebody asks for them.

Rows and an estimate -> rows of the estimate's own distribution, by Gibbs steps from the rows.

The rows themselves are a sample of nearly that distribution, so a few steps are enough to forget
what is particular to them.  Covariates stay as they are, and so do the moderators, which are
covariates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.rows.memory import MemoryRows


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
        w, o = values.shape[1], other.shape[1]  # none, where a column has one level only
        products = (values[:, :, None] * other[:, None, :]).reshape(len(values), w * o)
        second = (chance.T @ products).reshape(len(expected), w, o)
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


# -- redrawn rows ----------------------------------------------------------------------------------

_STEPS = 4
_ROWS = 4_000, 20_000
_NUMBERS = 2e8


def redrawn(scorer: Scorer, rows: MemoryRows, rng: np.random.Generator) -> MemoryRows:
    """Redraw all columns of copies of the rows, or of some of them.

    There are about 20,000 of them, with which variances have an error of one per cent; fewer where
    there are very many parameters.
    """
    n_rows = int(np.clip(_NUMBERS / scorer.reduced.n_theta, *_ROWS))
    copies = -(-n_rows // rows.n_rows)
    index = np.tile(np.arange(rows.n_rows), copies)
    if copies == 1:
        index = index[:: max(1, rows.n_rows // n_rows)]
    products = rows.products
    if products is not None:
        products = replace(products, features=products.features[index])
    new = replace(
        rows,
        numbers=rows.numbers[index],
        codes=rows.codes[index],
        weights=None if rows.weights is None else rows.weights[index],
        products=products,
    )
    columns = scorer.columns(new)
    for _ in range(_STEPS):
        _step(scorer, new, columns, rng)
    return new


def _step(scorer: Scorer, rows: MemoryRows, columns: Floats, rng: np.random.Generator) -> None:
    """Redraw every column that has a conditional, in place."""
    layout, reduced, coef = scorer.layout, scorer.reduced, scorer.coef
    for v in np.flatnonzero(layout.is_target).tolist():
        at = reduced.nodes.columns_of(v)
        seen = _drawn(scorer, rows, v, columns @ coef[:, at], rng)
        if layout.nodes.numeric_nodes[v]:
            rows.numbers[:, at] = seen
        columns[:, at] = seen
        if rows.products is not None:
            centred = seen - scorer.contrasts_of(rows.products.centre)[at]
            for k, feature in enumerate(rows.products.features.T):
                first = (1 + k) * reduced.n_columns
                columns[:, first + at.start : first + at.stop] = feature[:, None] * centred


def _drawn(
    scorer: Scorer, rows: MemoryRows, node: int, predictors: Floats, rng: np.random.Generator
) -> Floats:
    """(m, columns) what others see of a node, drawn given its predictors; codes are set."""
    layout, nodes, n = scorer.layout, scorer.layout.nodes, len(predictors)
    if nodes.is_gaussian(node):
        precision = float(scorer.theta[layout.diagonal][node])
        mean = (predictors + scorer.theta[layout.linear][node]) / precision
        return np.asarray(mean + rng.standard_normal((n, 1)) / np.sqrt(precision))
    j = nodes.place(node)
    if nodes.spiked_nodes[node]:
        chance, mean, precision = scorer.spiked_parts(j, predictors)
        unit, middle, share = nodes.scores[nodes.slots_of(j)]
        there = rng.random(n) < chance
        amount = np.where(there, mean + rng.standard_normal(n) / np.sqrt(precision), 0.0)
        rows.codes[:, j] = there
        return np.column_stack([unit * there - share, amount - middle])
    odds = scorer.odds(j, predictors).cumsum(axis=0)
    code = (odds[:-1] < rng.random(n) * odds[-1]).sum(axis=0)
    rows.codes[:, j] = code
    return np.asarray(scorer.seen_values(j)[code])
