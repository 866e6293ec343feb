"""Rows and coefficients -> the losses of all softmax conditionals and their derivatives.

Nodes with finitely many values take a pass over the rows: mean losses, mean probabilities, and
means of design columns times probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixedgm.model.layout import Floats, Incidence, Ints, Layout
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Gradient,
    Moments,
    NodeMatrices,
    Rows,
    SoftmaxCurvature,
)


@dataclass(frozen=True, eq=False)
class SoftmaxValues:
    """Sum of the softmax terms and, where it was asked for, its derivatives."""

    value: float
    node_slopes: Floats = field(default_factory=lambda: np.zeros(0))
    """Derivatives in the own terms."""
    slopes: Floats = field(default_factory=lambda: np.zeros(0))
    """Derivatives in the coefficients of softmax conditionals, in the incidence's order."""
    all_pairs: Floats | None = None
    """(c, softmax columns) mean of z E', where derivatives for all pairs were asked for."""


@dataclass(frozen=True, eq=False)
class SoftmaxTerms:
    """Sum over nodes of finitely many values of -log p(node | all others), averaged over rows."""

    rows: Rows
    moments: Moments | ColumnMoments

    def at(
        self, layout: Layout, theta: Floats, values: Floats, gradient: Gradient
    ) -> SoftmaxValues:
        """All terms, in one pass; `values` are theta's in the order of the layout's incidence."""
        if not len(layout.softmax_nodes):
            none = np.zeros((layout.n_products, 0))
            return SoftmaxValues(0.0, np.zeros(layout.n_level_terms), all_pairs=none)
        sums = self.rows.softmax(softmax_coefficients(layout, theta, values), gradient)
        value = float(sums.loss.sum())
        if sums.mean_terms is None:
            return SoftmaxValues(value)
        biases = sums.mean_terms - layout.nodes.term_sums(self.moments.shares)
        if layout.covariates:
            unpredicted = ~layout.is_target[layout.nodes.discrete]
            biases[np.repeat(unpredicted, layout.nodes.n_biases[layout.nodes.discrete])] = 0.0
        if sums.support is None:
            return SoftmaxValues(value, biases, all_pairs=sums.all_pairs)
        entries = layout.incidence.softmax_entries
        return SoftmaxValues(value, biases, sums.support[entries] - self._seen(layout.incidence))

    def _seen(self, incidence: Incidence) -> Floats:
        """Mean of z_a z_t for every coefficient of softmax conditionals."""
        entries = incidence.softmax_entries
        column, target = incidence.entry_column[entries], incidence.entry_target[entries]
        if isinstance(self.moments, ColumnMoments):
            return self.rows.second_moments(column, target)
        return np.asarray(self.moments.second[column, target])

    def curvature(
        self, layout: Layout, theta: Floats, values: Floats, nodes: Ints, stride: int
    ) -> SoftmaxCurvature | None:
        """Second derivative of the terms of these nodes with indicators."""
        if not len(nodes):
            return None
        places = layout.nodes.node_place[nodes]
        return self.rows.softmax_curvature(
            softmax_coefficients(layout, theta, values), places, stride
        )

    def scored_curvature(
        self, layout: Layout, theta: Floats, values: Floats, nodes: Ints, stride: int
    ) -> NodeMatrices | None:
        """The same of these nodes that are scored, from every `stride`-th row."""
        if not len(nodes):
            return None
        places = layout.nodes.node_place[nodes]
        coef = softmax_coefficients(layout, theta, values)
        return replace(self.rows.scored_curvature(coef, places, stride), nodes=nodes)


def softmax_coefficients(layout: Layout, theta: Floats, values: Floats) -> Coefficients:
    """What rows are told; `values` are theta's in the order of the layout's incidence."""
    logits = layout.nodes.own_logits(theta[layout.biases])
    return Coefficients(layout.incidence, values, logits, layout.softmax_targets)
