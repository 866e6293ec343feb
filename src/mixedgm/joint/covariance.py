"""States of y and the Gaussian of x given y -> the covariance of all sufficient statistics.

It is the second derivative of the log partition function.  Every statistic is a constant times
the product of two entries of v = (1, x, indicators).  Given y, v is Gaussian with mean m(y) and a
covariance C that is the same for all y, so that

    cov(v_a v_b, v_c v_d) = cov(m_a m_b, m_c m_d) + C_ac E_bd + C_ad E_bc + C_bc E_ad + C_bd E_ac
                            + C_ac C_bd + C_ad C_bc,        E = E[m m'].

Only the first term needs more than pairs of columns; it is a sum over states of y, all of them or
a sample.  A sample of n draws knows the variance of a cell of probability p to about sqrt(p / n).
That much is added: a cell that was never drawn would seem to have no curvature at all, and steps
would go astray.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.model.nodes import Nodes

if TYPE_CHECKING:
    from mixedgm.joint.field import Gaussian

_CELLS_PER_BLOCK = 2**21


@dataclass(eq=False)
class CovarianceCost:
    """Cost of evaluations so far; shared by all restrictions of one function."""

    seconds: float = 0.0
    curvature_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Whole(ABC):
    """One dense matrix over all parameters, given by what it is for other design columns."""

    layout: Layout

    @abstractmethod
    def on(self, layout: Layout, columns: Floats) -> Floats:
        """The matrix for other design columns, ``z @ columns``, laid out as `layout`."""

    def dense(self) -> Floats:
        """The matrix in theta's coordinates."""
        return self.on(self.layout, np.eye(self.layout.n_columns))

    @cached_property
    def _dense(self) -> Floats:
        return self.dense()

    def product(self, delta: Floats) -> Floats:
        """Matrix times `delta`."""
        return np.asarray(self._dense @ delta)


@dataclass(frozen=True, eq=False)
class Covariance(Whole):
    """Second derivative of the log partition function at one point."""

    codes: NDArray[np.integer]
    """(n, q) states of the discrete columns."""
    probability: Floats
    """(n,) weights of the states, which sum to one."""
    start: Floats
    """(p,) mean of x without any level's shift."""
    shift: Floats
    """(sum of levels, p) shift of the mean of x by each level."""
    spread: Floats
    """(p, p) covariance of x given y."""
    mean: Floats
    second: Floats
    """(c,), (c, c) E[m] and E[m m'] over the `statistics.columns` of the nodes, exactly."""
    n_draws: int = 0
    """Size of the sample of states; 0 when they are all there."""
    effort: CovarianceCost = field(default_factory=CovarianceCost)

    @classmethod
    def of(
        cls,
        layout: Layout,
        states: tuple[NDArray[np.integer], Floats],
        given_y: Gaussian,
        expected: tuple[Floats, Floats],
        *,
        n_draws: int = 0,
        effort: CovarianceCost | None = None,
    ) -> Covariance:
        """Build the covariance from states of y with their weights, x given y, and moments.

        `expected` are the means and the second moments of the `statistics.columns`.
        """
        mean, second, p = expected[0], expected[1].copy(), len(given_y.start)
        second[:p, :p] -= given_y.covariance
        return cls(
            layout,
            *states,
            given_y.start,
            given_y.shift,
            given_y.covariance,
            mean,
            second,
            n_draws,
            effort or CovarianceCost(),
        )

    def variance_of(self, delta: Floats) -> float:
        """``delta @ matrix @ delta``, the variance of one combination of the statistics.

        It is a quadratic function of v, for which no matrix over pairs of statistics is needed.
        """
        layout, p = self.layout, self.layout.n_gaussian
        d, n_columns = layout.n_columns, len(self.mean)
        quadratic, linear = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        quadratic[:d, :d] = layout.to_matrix(delta)
        numbers = np.arange(p)
        quadratic[numbers, numbers] = -delta[layout.diagonal]
        linear[layout.term_column] = delta[layout.bias_terms]
        inner = quadratic[:p, :p] @ self.spread
        total, square, given_y = 0.0, 0.0, 0.5 * float(np.sum(inner * inner.T))
        for means, probability in self._means(np.eye(n_columns), n_columns):
            slope = means[:, 1:] @ quadratic
            value = means[:, 1:] @ linear + 0.5 * np.sum(slope * means[:, 1:], axis=1)
            total += float(probability @ value)
            square += float(probability @ value**2)
            moving = slope[:, :p] + linear[:p]
            given_y += float(probability @ np.sum((moving @ self.spread) * moving, axis=1))
        return max(0.0, square - total**2) + given_y

    def on(self, layout: Layout, columns: Floats) -> Floats:
        """The matrix for other design columns, ``z @ columns``, laid out as `layout`."""
        clock = time.perf_counter()
        first, second, factor = factors(layout)
        columns = with_own_terms(self.layout.nodes, layout.nodes, columns)
        moments = with_one(self.mean @ columns, columns.T @ self.second @ columns)
        out = np.zeros((layout.n_theta, layout.n_theta))
        expected = moments[first, second]
        for means, probability in self._means(columns, layout.n_theta):
            products = means[:, first]
            products *= means[:, second]
            products -= expected
            products *= np.sqrt(probability)[:, None]
            out += products.T @ products  # a product with itself costs half of another
        out += covariance_given_y(moments, first, second, self.spread)
        out *= factor
        out *= factor[:, None]
        if self.n_draws:
            self._add_uncertainty(out, layout, columns)
        self.effort.curvature_seconds += time.perf_counter() - clock
        return out

    def _means(self, columns: Floats, n_theta: int) -> Iterator[tuple[Floats, Floats]]:
        """(1, m) in the new columns for a block of states, and the states' probabilities."""
        p, nodes = self.layout.n_gaussian, self.layout.nodes
        level_start = nodes.level_start[:-1]
        if nodes.n_scored:
            columns = nodes.statistics.columns @ columns
        # Numbers stay as they are; levels become contrasts or stay, too.
        by_level = np.hstack([self.shift, columns[p:, p:]])
        size = max(1, _CELLS_PER_BLOCK // max(1, n_theta))
        for at in range(0, len(self.codes), size):
            codes = self.codes[at : at + size]
            means = np.zeros((len(codes), 1 + columns.shape[1]))
            means[:, 0] = 1.0
            means[:, 1 : 1 + p] = self.start
            for j, begin in enumerate(level_start):  # int64, whatever type codes have
                means[:, 1:] += by_level[begin + codes[:, j]]
            yield means, self.probability[at : at + size]

    def _add_uncertainty(self, out: Floats, layout: Layout, columns: Floats) -> None:
        """Add to each block of two discrete nodes the error of its cells' variances.

        To others a scored node is a single number of size one, which every state has.
        """
        old, new = self.layout.nodes, layout.nodes
        square, d, scored = self.second, self.layout.n_columns, slice(old.n_gaussian, old.n_numeric)
        if old.n_scored:
            square = square.copy()
            square[scored, :d] = self.mean[:d]
            square[:d, scored] = self.mean[:d, None]
            square[scored, scored] = 1.0
        error = np.sqrt(np.maximum(square, 0.0) / self.n_draws)
        for g in np.flatnonzero(~new.gaussian_nodes[layout.pairs].any(axis=1)):
            u, v = layout.pairs[g]
            rows, cols = old.columns_of(u), old.columns_of(v)
            basis = np.kron(columns[rows, new.columns_of(u)], columns[cols, new.columns_of(v)])
            here = slice(layout.starts[g], layout.starts[g + 1])
            out[here, here] += basis.T @ (error[rows, cols].ravel()[:, None] * basis)


def with_one(mean: Floats, second: Floats) -> Floats:
    """Second moments of (1, m) from the first and second moments of m."""
    return np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], second]])


def covariance_given_y(moments: Floats, first: Ints, second: Ints, spread: Floats) -> Floats:
    """Mean covariance, given y, of the products of two entries of v = (1, x, ...).

    `moments` (1 + d, 1 + d) is E[m m'], `first` and `second` are the two entries of every product,
    and `spread` (p, p) is the covariance of x given y.
    """
    p = len(spread)
    out = np.zeros((len(first), len(first)))
    moving = np.flatnonzero(((first > 0) & (first <= p)) | ((second > 0) & (second <= p)))
    if len(moving) == 0:
        return out
    noise = np.zeros_like(moments)
    noise[1 : 1 + p, 1 : 1 + p] = spread
    a, b = first[moving], second[moving]
    c_aa, c_ab, c_bb = noise[np.ix_(a, a)], noise[np.ix_(a, b)], noise[np.ix_(b, b)]
    part = c_aa * (moments[np.ix_(b, b)] + c_bb)
    part += c_ab * (moments[np.ix_(b, a)] + c_ab.T)
    part += c_ab.T * moments[np.ix_(a, b)]
    part += c_bb * moments[np.ix_(a, a)]
    out[np.ix_(moving, moving)] = part
    return out


def with_own_terms(full: Nodes, small: Nodes, columns: Floats) -> Floats:
    """A change of design columns -> that of `statistics.columns`, free own terms as contrasts."""
    if not full.n_scored:
        return columns
    sizes = (nodes.n_biases[nodes.scored_nodes].tolist() for nodes in (full, small))
    bases = [np.eye(n) if n == m else level_basis(n) for n, m in zip(*sizes, strict=True)]
    return np.asarray(block_diag(columns, *bases))


def factors(layout: Layout) -> tuple[Ints, Ints, Floats]:
    """Every statistic as a constant times two entries of (1, `statistics.columns`)."""
    pair, factor = np.zeros((2, layout.n_theta), dtype=np.int64), np.ones(layout.n_theta)
    pair[1, layout.bias_terms] = 1 + layout.term_column
    pair[:, layout.diagonal] = 1 + np.arange(layout.n_gaussian)
    pair[:, layout.edges] = 1 + np.array(layout.edge_position)
    factor[layout.diagonal] = -0.5
    return pair[0], pair[1], factor


def distinct(codes: NDArray[np.integer], n_levels: tuple[int, ...]) -> tuple[Ints, Floats]:
    """The distinct states among draws, and their shares.

    Examples
    --------
    >>> distinct(np.array([[0, 1], [1, 0], [0, 1]]), (2, 2))
    (array([[0, 1], [1, 0]]), array([0.66666667, 0.33333333]))
    """
    number = np.zeros(len(codes), dtype=np.uint64)
    for j, n in enumerate(n_levels):
        # Beyond 64 bits the numbers wrap around: equal states stay equal, others hardly ever meet.
        number = number * np.uint64(2 * n + 1) + codes[:, j].astype(np.uint64)
    _, first, count = np.unique(number, return_index=True, return_counts=True)
    return codes[first].astype(np.int64), count / len(codes)
