"""Contract of a store of rows: moments, softmax passes, softmax curvature, pairs near their bound.

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

from mixedgm.base.compiled import inner, kernel
from mixedgm.model.layout import Floats, Incidence, Ints
from mixedgm.model.pair_weights import PairWeights

Gradient = Literal["none", "support", "all"]
Shape = tuple[Ints, Ints, Floats, int, int, Ints, NDArray[np.bool_], NDArray[np.bool_], Ints]
"""Description of discrete columns for kernels: see `kernels`."""


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Moments of single columns: nothing of size d x d."""

    total_weight: float
    mean: Floats
    """(c,) weighted column means."""
    squares: Floats
    """(c,) weighted means of squares: the diagonal of `Moments.second`."""
    shares: Floats
    """(sum of values,) weighted shares of the values of discrete nodes."""


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

    @property
    def columns(self) -> ColumnMoments:
        """Moments of single columns."""
        squares = np.diagonal(self.second).copy()
        return ColumnMoments(self.total_weight, self.mean, squares, self.shares)


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
class Conditionals:
    """Linear predictors of all nodes, Gaussian ones included, by blocks.

    With z the design columns of a row and c_s the coefficients of `softmax.incidence` that have the
    target s, the residual r of a row has one entry per design column:

        Gaussian node s      (linear[s] + z'c_s) / precision[s] - z_s
        discrete node        its expected design columns E (as in `SoftmaxSums`) less its own z
        not predicted        0
    """

    softmax: Coefficients
    """Predictors of discrete nodes; incidence and values include the coefficients of Gaussian
    nodes."""
    linear: Floats
    """(p,) linear terms of Gaussian nodes."""
    precision: Floats
    """(p,) their precisions given the other columns."""
    predicted: NDArray[np.bool_]
    """(n_nodes,) whether a node has a conditional."""
    shared: bool
    """Whether both conditionals of a pair share its coefficients; else pairs are ordered, and
    (u, v) is what u says in the conditional of v."""


@dataclass(frozen=True, eq=False)
class Question:
    """Which pairs of nodes are asked about, and how many are wanted."""

    weights: PairWeights
    """Weights of all pairs, positive.  Those that are infinite are not asked about."""
    floor: float
    """Pairs are wanted whose entry is at least this."""
    most: int
    """How many at most: those with the largest entries."""


@dataclass(frozen=True, eq=False)
class Outside:
    """Pairs with a large gradient, among all pairs asked about.

    The gradient of a pair is the (width_u, width_v) matrix mean(z_u r_v') + mean(r_u z_v'), with z
    and r as in `Conditionals`; of ordered pairs mean(z_u r_v').  The entry of a pair is the
    Euclidean norm of its gradient divided by its weight: the penalty below which it has an edge.
    """

    largest: float
    """Largest entry of all pairs asked about; 0 if there are none, NaN if any gradient is NaN."""
    count: int
    """Number of pairs with an entry of at least `floor`."""
    pairs: Ints
    """(k, 2) these pairs, or `most` of them: by falling entry, equal ones in the order of the
    pairs. u < v, unless pairs are ordered."""
    entries: Floats
    """(k,) entries of these pairs."""


@dataclass(frozen=True, eq=False)
class SoftmaxSums:
    """Means over rows from one softmax pass."""

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
        """Return these matrices with others behind them."""
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
    """Sums of w (diag(p) - p p') x (z z'), node after node: (K, K, L (L - 1) / 2) with the
    intercept and the node's columns as z, and of the levels the lower triangle over 1 to L - 1
    (rows of diag(p) - p p' sum to zero).  Only columns a <= b count."""
    start: Ints
    """Where every node begins in `sums`."""
    n_levels: Ints
    n_columns: Ints
    """The K of every node."""
    scale: float
    """Factor that turns sums into means."""

    def __len__(self) -> int:
        return len(self.n_levels)

    @overload
    def __getitem__(self, at: int) -> Floats: ...
    @overload
    def __getitem__(self, at: slice) -> list[Floats]: ...
    def __getitem__(self, at: int | slice) -> Floats | list[Floats]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"no node {at} among {len(self)}")
        at %= len(self)
        size = int(self.n_levels[at] * self.n_columns[at])
        matrix = np.empty((size, size))
        packed = self.sums[self.start[at] : self.start[at + 1]]
        _unpack_all(packed, self.n_levels[at], self.n_columns[at], self.scale, matrix)
        return matrix


class Counted(Protocol):
    """Contract of an object that passes over rows and counts the passes."""

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
        """Second derivative of the mean loss of each scored node: own terms, then entries."""

    def column_moments(self) -> ColumnMoments:
        """Weighted means of the design columns and of their squares, shares of values.

        The same numbers as in `moments`, without anything of size d x d.
        """

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Entries of `Moments.second`: the mean of z_a z_b for every pair of columns listed.

        `first` and `second` are of equal length and hold columns a and b.  A store that keeps the
        whole matrix, wherever that is, picks from it; others compute what is asked for.
        """

    def outside(self, conditionals: Conditionals, question: Question) -> Outside:
        """Pairs of nodes, among those asked about, whose gradient is near its bound.

        It counts as one pass.  No array over all pairs of nodes or of columns is made for it where
        the caller is (the matrix of second moments may exist): pairs are taken in blocks, and of
        a block what is wanted is kept.  The answer has the same bits for every number of threads.
        Stores with features are not asked.
        """


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _unpack_all(packed, levels, n_columns, scale, matrix):
    """Packed (K, K, L (L - 1) / 2) sums of one node -> its symmetric (K L, K L) matrix."""
    source, block = np.int64(0), np.zeros((levels, levels))  # a literal 0 is compiled for apart
    for a in range(n_columns):
        for b in range(n_columns):
            if a <= b:
                _unpack(packed, source, levels, scale, block)
                for k in range(levels):
                    for m in range(levels):
                        matrix[a * levels + k, b * levels + m] = block[k, m]
                        matrix[b * levels + k, a * levels + m] = block[k, m]
            source += levels * (levels - 1) // 2


@inner
def _unpack(packed, source, levels, scale, block):
    """The triangle over levels 1 to L - 1 -> all levels; rows and columns sum to zero."""
    for k in range(1, levels):
        for m in range(1, k + 1):
            x = packed[source] * scale
            block[k, m] = x
            block[m, k] = x
            source += 1
    block[0, 0] = 0.0
    for k in range(1, levels):
        x = 0.0
        for m in range(1, levels):
            x -= block[k, m]
        block[k, 0] = x
        block[0, k] = x
        block[0, 0] -= x
