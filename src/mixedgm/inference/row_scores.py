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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mixedgm.families import Conditional, Family
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
        layout, reduced = self.layout, self.reduced
        columns, codes = self.columns(rows, part), rows.codes[part]
        residuals, n = columns @ self.coef, len(columns)
        own = np.zeros((n, reduced.n_node_terms))
        curvatures: list[ResidualSlopes] = []
        for run in self._runs:
            seen = columns[:, run.columns]
            given = run.family.given(run.own, run.by_node(residuals[:, run.columns]))
            code = layout.nodes.codes_of(run.nodes, codes)
            numbers = run.family.numbers(code, run.by_node(seen))
            run.write(given.scores(code, numbers), own)
            residuals[:, run.columns] = given.columns.reshape(-1, n).T
            if curved:
                slopes = zip(*given.covariances(), strict=True)
                curvatures += [ResidualSlopes(*(np.moveaxis(x, -1, 0) for x in y)) for y in slopes]
        residuals -= columns[:, : reduced.n_columns]
        for v in layout.covariates:
            residuals[:, reduced.nodes.columns_of(v)] = 0.0
            own[:, reduced.node_terms_of(v)] = 0.0
            if curved:
                curvatures[v] = ResidualSlopes(*(0.0 * part for part in curvatures[v]))
        return self.inflated(RowScores(columns, residuals, own, tuple(curvatures)))

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
        reduced, codes, seen = self.reduced, rows.codes[part], rows.numbers[part]
        out = np.zeros((len(codes), reduced.n_node_terms))
        for run in self._runs:
            code = self.layout.nodes.codes_of(run.nodes, codes)
            numbers = run.family.numbers(code, run.by_node(seen[:, run.columns]))
            run.write(run.family.statistics(code, numbers).swapaxes(0, 1), out)
        for v in self.layout.covariates:
            out[:, reduced.node_terms_of(v)] = 0.0
        return out

    @cached_property
    def _runs(self) -> list[_Run]:
        nodes, theta, layout = self.layout.nodes, self.theta, self.layout
        numbers = np.column_stack([theta[layout.linear], theta[layout.diagonal]])
        slots = nodes.own_slots(numbers, theta[layout.biases])
        return [
            _Run.of(self.reduced, run, family.in_basis(level_basis), own)
            for (run, family), own in zip(nodes.runs, slots, strict=True)
        ]

    def given(self, node: int, predictors: Floats) -> tuple[Family, Conditional]:
        """The family of one node, and its distribution in rows with these predictors (m, width)."""
        family = self.layout.nodes.families[node].in_basis(level_basis)
        run = next(run for run in self._runs if run.nodes.start <= node < run.nodes.stop)
        own = run.own[node - run.nodes.start]
        return family, family.given(own[None], predictors.T[None])

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
            at = nodes.columns_of(nodes.discrete_nodes[j])
            parts.append(design_column[at] @ level_basis(nodes.n_levels[j]))
        return np.concatenate(parts)


class _Run(NamedTuple):
    """Nodes whose conditionals are computed together."""

    nodes: slice
    columns: slice
    """Their design columns, in contrasts."""
    terms: list[slice]
    """For each own term, where it stands, node by node."""
    family: Family
    own: Floats

    @classmethod
    def of(cls, reduced: Layout, nodes: slice, family: Family, own: Floats) -> _Run:
        start = reduced.nodes.column_start
        at = np.array([reduced.node_terms_of(v) for v in range(nodes.start, nodes.stop)])
        step = at[1] - at[0] if len(at) > 1 else np.ones_like(at[0])
        ends = zip(at[0].tolist(), at[-1].tolist(), step.tolist(), strict=True)
        terms = [slice(first, last + 1, by) for first, last, by in ends]
        return cls(
            nodes, slice(int(start[nodes.start]), int(start[nodes.stop])), terms, family, own
        )

    def write(self, terms: Sequence[Floats] | Floats, out: Floats) -> None:
        """Put terms, (G, n) each, where they stand in `out` (n, n_node_terms)."""
        if isinstance(terms, np.ndarray) and len(self.own) == 1 and self.terms:
            out[:, self.terms[0].start : self.terms[-1].stop] = terms[:, 0].T
            return
        for at, values in zip(self.terms, terms, strict=True):
            out[:, at] = values.T

    def by_node(self, columns: Floats) -> Floats:
        """(G, width, n) columns (n, G * width) of the nodes."""
        n_nodes, (n, width) = len(self.own), columns.shape
        return columns.T.reshape(n_nodes, width // n_nodes, n)


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
    family, given = scorer.given(node, predictors)
    codes, numbers = given.drawn(rng)
    if not scorer.layout.nodes.is_gaussian(node):
        rows.codes[:, scorer.layout.nodes.place(node)] = codes[0]
    return np.asarray(family.columns(codes, numbers)[0].T)
