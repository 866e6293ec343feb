"""What a store of rows offers: moments, softmax passes, softmax curvature.

A store knows nothing of theta, symmetry, roles or penalties: it is given coefficients of linear
predictors and returns sums over its rows.  Everything is a weighted mean over rows.

The columns of a linear predictor are the d design columns and, where the store has features, the
products of each feature with all design columns less their centre: d more columns per feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Incidence, Ints

Gradient = Literal["none", "support", "all"]
Shape = tuple[Ints, Ints, Floats, int, int, Ints, NDArray[np.bool_], NDArray[np.bool_]]
"""What kernels know of discrete columns: see `kernels`."""


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of the design columns Z (standardised columns, then levels).

    Products with features follow; without features, c = d.
    """

    total_weight: float
    mean: Floats
    """(c,) weighted column means."""
    second: Floats
    """(c, c) weighted mean of z z'."""
    shares: Floats
    """(sum of values,) weighted shares of the values of discrete nodes."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Linear predictors of discrete nodes, by blocks.

    `values` covers all entries of `incidence`; those whose target is discrete are used.
    """

    incidence: Incidence
    values: Floats
    bias: Floats
    """(sum of values,) logits without any neighbour."""
    nodes: Ints
    """Discrete nodes that are predicted; what is returned for the others means nothing."""


@dataclass(frozen=True, eq=False)
class SoftmaxSums:
    """What one pass returns."""

    loss: Floats
    """(q,) mean negative log probability of the observed level, per discrete node."""
    mean_terms: Floats | None
    """(own terms,) mean of what multiplies own terms: probabilities of values where these have own
    terms, else what is expected of the score, its square, and whether it is the first."""
    support: Floats | None
    """(entries,) mean of z_a E_t for every entry of the incidence (zero for other targets), with
    E_t the expected design column of the target: the probability of its level, or its score."""
    all_pairs: Floats | None
    """(c, softmax columns) mean of z E', products with features included."""


@dataclass(frozen=True, eq=False)
class NodeMatrices:
    """Second derivatives of some nodes' terms, one matrix after the other."""

    nodes: Ints
    start: Ints
    """Where every matrix begins in `matrices`, and the end."""
    matrices: Floats

    def __getitem__(self, at: int) -> Floats:
        flat = self.matrices[self.start[at] : self.start[at + 1]]
        size = round(len(flat) ** 0.5)
        return flat.reshape(size, size)

    def followed_by(self, others: NodeMatrices | None) -> NodeMatrices:
        """These and others behind them."""
        if others is None:
            return self
        return NodeMatrices(
            np.concatenate([self.nodes, others.nodes]),
            np.concatenate([self.start, self.start[-1] + others.start[1:]]),
            np.concatenate([self.matrices, others.matrices]),
        )


@dataclass(frozen=True, eq=False)
class SoftmaxCurvature(Sequence[Floats]):
    """Second derivatives of the mean losses of nodes with indicators: a sequence of matrices.

    They are kept as the sums that were made, which are smaller, until somebody takes one out.
    """

    sums: Floats
    """Of w (diag(p) - p p') x (z z'), node after node: (K, K, L (L - 1) / 2) with the intercept and
    the node's columns as z, and of the levels the lower triangle over 1 to L - 1 (rows of
    diag(p) - p p' sum to zero).  Only columns a <= b count."""
    start: Ints
    """Where every node begins in `sums`."""
    n_levels: Ints
    n_columns: Ints
    """The K of every node."""
    scale: float
    """What turns sums into means."""

    def __len__(self) -> int:
        return len(self.n_levels)

    @overload
    def __getitem__(self, at: int) -> Floats: ...
    @overload
    def __getitem__(self, at: slice) -> list[Floats]: ...
    def __getitem__(self, at: int | slice) -> Floats | list[Floats]:
        from mixedgm.rows.curvature_kernels import unpack_curvature

        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"no node {at} among {len(self)}")
        at %= len(self)
        size = int(self.n_levels[at] * self.n_columns[at])
        matrix = np.empty((size, size))
        packed = self.sums[self.start[at] : self.start[at + 1]]
        unpack_curvature(packed, self.n_levels[at], self.n_columns[at], self.scale, matrix)
        return matrix


class Counted(Protocol):
    """What has rows behind it, and counts the passes over them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def passes(self) -> float:
        """Passes so far: 1 for value and gradient, 0.5 for a value alone; 0 if it needs none."""

    @property
    def curvature_passes(self) -> float:
        """Share of the rows visited for curvature, summed over calls."""

    @property
    def part_seconds(self) -> tuple[float, float]:
        """Wall time so far in passes or evaluations, and in curvature."""


class Rows(Counted, Protocol):
    """A store of standardised rows."""

    def moments(self) -> Moments:
        """Weighted means and second moments of the design columns."""

    def softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        """Loss and, as asked, the mean of z E' on the support or for all pairs."""

    def softmax_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> SoftmaxCurvature:
        """Second derivative of the mean loss of each named discrete node that has indicators.

        Rows and columns of a node's matrix: its L biases, then its entries of the incidence in
        their order.  `stride` k takes every k-th row (their mean stands for the whole).
        """

    def scored_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """The same for discrete nodes that are scored: their own terms, then their entries."""
