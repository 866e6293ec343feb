"""Estimates of pairs -> estimates in units of the residual standard deviations of numbers.

A number whose precision term is k has the residual standard deviation 1/sqrt(k), given all other
columns.  In these units the coefficient of two numbers is their partial correlation.  So units of
columns, and variances that differ between groups of rows, are taken out.  Precision terms are
estimated as well, and the errors of an edge of the graph include theirs.  A pair outside the graph
is near zero, where they hardly matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.inference.held import Held, square_starts
from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class ResidualSpread:
    """The change of units."""

    held: Held
    precision: Floats
    """(numbers,) precision terms; those of covariates, which have none, are not used."""
    left: Floats
    """(nodes,) by which precision terms are to be multiplied, as they are too large."""

    @cached_property
    def scale(self) -> Floats:
        """(edge parameters,) what coefficients are multiplied by."""
        layout, p = self.held.layout, len(self.precision)
        of_node = np.ones(layout.n_nodes)
        target = layout.is_target[:p]
        of_node[:p][target] = (self.precision * self.left[:p])[target] ** -0.5
        of_column = of_node[layout.column_node]
        row, column = layout.edge_position
        return np.asarray(of_column[row % layout.n_columns] * of_column[column])

    def covariance(self, eta: Floats, covariance: Floats, of_held: Floats) -> Floats:
        """Covariances of estimates, with what errors of precision terms add, before scaling.

        They are a matrix for every group, one after the other; `of_held` (held, held) is the
        covariance of all that is held.
        """
        layout, out = self.held.layout, covariance.copy()
        start, first = square_starts(layout), layout.starts - layout.n_node_terms
        for pairs, own, terms, slope in self._inside():
            k = own.shape[1]
            values = eta[first[pairs][:, None] + np.arange(k)]
            mixed = np.einsum("gkl,gl->gk", of_held[own[:, :, None], terms[:, None, :]], slope)
            both = of_held[terms[:, :, None], terms[:, None, :]]
            spread = np.einsum("gl,glm,gm->g", slope, both, slope)
            added = values[:, :, None] * mixed[:, None, :]
            added = added + added.transpose(0, 2, 1)
            added += (spread[:, None] * values)[:, :, None] * values[:, None, :]
            out[start[pairs][:, None] + np.arange(k * k)] += added.reshape(-1, k * k)
        return out

    def errors(self, errors: Floats, eta: Floats, of_held: Floats) -> Floats:
        """(draws, edge parameters) errors in these units.

        `of_held` (draws, held) are errors of all that is held, `eta` the estimates.
        """
        out, layout = errors.copy(), self.held.layout
        for pairs, own, terms, slope in self._inside():
            at = (layout.starts[pairs] - layout.n_node_terms)[:, None] + np.arange(own.shape[1])
            moved = np.einsum("dgl,gl->dg", of_held[:, terms], slope)
            out[:, at] += moved[:, :, None] * eta[at]
        return np.asarray(out * self.scale)

    def _inside(self) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
        """Edges of the graph of one size k with a number at an end, together.

        Which pairs; (m, k) where they are among all that is held; (m, 2) where the precision terms
        of both ends are; (m, 2) the derivatives of the logarithm of the scale in these.
        """
        layout, inside, p = self.held.layout, self.held.inside, len(self.precision)
        slopes = np.zeros(layout.n_nodes)
        slopes[:p] = np.where(layout.is_target[:p], -0.5 / self.precision, 0.0)
        numbers = np.flatnonzero((slopes[inside.pairs] != 0.0).any(axis=1))
        for k in np.unique(inside.sizes[numbers]).tolist():
            some = numbers[inside.sizes[numbers] == k]
            ends = inside.pairs[some]
            own = inside.starts[some][:, None] + np.arange(k)
            terms = inside.diagonal.start + np.minimum(ends, p - 1)
            yield self.held.graph[some], own, terms, slopes[ends]
