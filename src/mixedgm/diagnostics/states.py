"""States of y and the Gaussian of x given y -> Rows whose means are those of the distribution.

Everything that a conditional of y_r needs is a mean of P zz' or P P' zz', where P depends on x
through the logits of y_r only: L_r - 1 numbers, which are Gaussian given y.  So x is split into its
regression on them and a rest,

    x = m(y) + A xi + rest,    xi ~ N(0, I),    cov(rest) = C - AA',

the rest is integrated by hand, and xi on a grid.  All states of y times the points of the grid
are a weighted table, and the kernels for tables do the sums.

The rule of the grid is the trapezoidal one, which for analytic functions with a Gaussian factor
converges exponentially.  A softmax has its nearest pole where two of its terms differ in phase by
pi, so with t the range of the logits along an axis and a = min(pi / t, sqrt(2c)), the step
2 pi a / (c + a^2 / 2) leaves an error of about exp(-c).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.field import Gaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    NodeMatrices,
    Outside,
    Question,
    SoftmaxCurvature,
    SoftmaxSums,
)
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.outside import SlopesByMoments, nearest

DIGITS = (25.0, 20.0, 16.0, 12.0)
"""Values of c to choose from, the most accurate first: errors of 1e-11 to 6e-6."""

_CHUNK = 2**16


class _Split(NamedTuple):
    """x given y, split by what the logits of one column see of it: A (p, k), and a rest (p, p)."""

    axes: Floats
    steps: tuple[float, ...]
    rest: Floats


@dataclass(eq=False)
class StateRows:
    """All rows that a model can produce, as states of y (codes, with their probability) and of x.

    `expected` are the moments of the design columns; errors of integrals over x are about
    exp(-digits).
    """

    given_y: Gaussian
    codes: NDArray[np.integer]
    probability: Floats
    nodes: Nodes
    expected: Moments
    digits: float = DIGITS[0]
    passes: float = field(default=0.0, init=False)
    curvature_passes: float = field(default=0.0, init=False)
    part_seconds: tuple[float, float] = field(default=(0.0, 0.0), init=False)

    @property
    def n_rows(self) -> int:
        """Number of states of y."""
        return len(self.codes)

    def moments(self) -> Moments:
        """Exact expectations of the design columns."""
        return self.expected

    def column_moments(self) -> ColumnMoments:
        """Moments of single design columns."""
        return self.expected.columns

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Expectations of products of two design columns."""
        return np.asarray(self.expected.second[first, second])

    def outside(self, conditionals: Conditionals, question: Question) -> Outside:
        """Pairs, among those asked about, whose gradient is near its bound."""
        sums = self.softmax(conditionals.softmax, "all")
        assert sums.all_pairs is not None
        expected = np.ascontiguousarray(sums.all_pairs.T)
        slopes = SlopesByMoments(self.expected, conditionals, expected)
        return nearest(slopes, self.nodes, conditionals, question)

    def softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        """Loss per discrete node and the mean of z E' as asked, in the distribution."""
        clock = time.perf_counter()
        nodes, p = self.nodes, len(self.given_y.covariance)
        loss, mean_terms = np.zeros(len(nodes.n_levels)), np.zeros(int(nodes.term_start[-1]))
        support, all_pairs = np.zeros(len(coef.values)), np.zeros((nodes.n_columns,) * 2)[:, p:]
        for node in coef.nodes.tolist():
            alone = replace(coef, nodes=np.array([node]))
            block, entries = nodes.terms_of(node), coef.incidence.entries_of(p + node)
            columns = slice(*(nodes.column_start[p + node : p + node + 2] - p).tolist())
            for share, rows in self._tables(self._split(coef, node)):
                sums = rows.softmax(alone, gradient)
                loss[node] += share * sums.loss[node]
                # Only what belongs to the node: the other parts of these sums mean nothing.
                if sums.mean_terms is not None:
                    mean_terms[block] += share * sums.mean_terms[block]
                if sums.support is not None:
                    support[entries] += share * sums.support[entries]
                if sums.all_pairs is not None:
                    all_pairs[:, columns] += share * sums.all_pairs[:, columns]
        self.passes += 0.5 if gradient == "none" else 1.0
        self._spend(time.perf_counter() - clock, 0.0)
        return SoftmaxSums(
            loss,
            mean_terms if gradient != "none" else None,
            support if gradient == "support" else None,
            all_pairs if gradient == "all" else None,
        )

    def softmax_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> SoftmaxCurvature:
        """Second derivatives of the expected loss of nodes with indicators, from all states."""
        clock = time.perf_counter()
        sums, widths, n_columns = [], [], []
        for node in nodes.tolist():
            split = self._split(coef, node)
            parts = [
                (share, rows.softmax_curvature(coef, np.array([node]), 1))
                for share, rows in self._tables(split)
            ]
            total = np.sum([share * part.scale * part.sums for share, part in parts], axis=0)
            widths.append(self.nodes.n_levels[node])
            n_columns.append(int(parts[0][1].n_columns[0]))
            sums.append(self._with_rest(total, n_columns[-1], coef, node, split.rest))
        self._visited(len(nodes), clock)
        start = np.concatenate([[0], np.cumsum([len(each) for each in sums])]).astype(np.int64)
        sizes = np.array(widths, dtype=np.int64), np.array(n_columns, dtype=np.int64)
        return SoftmaxCurvature(np.concatenate([*sums, np.zeros(0)]), start, *sizes, 1.0)

    def scored_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Second derivatives of the mean loss of scored nodes, over all states."""
        clock, matrices = time.perf_counter(), [np.zeros(0)]
        for node in nodes.tolist():
            split = self._split(coef, node)
            parts = [
                share * rows.scored_curvature(coef, np.array([node]), 1)[0]
                for share, rows in self._tables(split)
            ]
            matrix = np.sum(parts, axis=0)
            # The mean variance of the score, times the covariance of what is not seen of x.
            moved, seen = self.nodes.moved_by_predictors(node), self._seen(coef, node)
            assert moved is not None
            own = len(moved)
            slopes = slice(own, own + len(seen))
            variance = float((moved.T @ matrix[:own, :own] @ moved).item())
            matrix[slopes, slopes] += variance * split.rest[np.ix_(seen, seen)]
            matrices.append(matrix.ravel())
        self._visited(len(nodes), clock)
        start = np.cumsum([len(each) for each in matrices]).astype(np.int64)
        return NodeMatrices(nodes, start, np.concatenate(matrices))

    def _visited(self, n_nodes: int, clock: float) -> None:
        self.curvature_passes += n_nodes / max(1, len(self.nodes.n_levels))
        self._spend(0.0, time.perf_counter() - clock)

    def _spend(self, passes: float, curvature: float) -> None:
        self.part_seconds = (self.part_seconds[0] + passes, self.part_seconds[1] + curvature)

    def _with_rest(
        self, sums: Floats, n_columns: int, coef: Coefficients, node: int, rest: Floats
    ) -> Floats:
        """Add E[diag(P) - PP'] times the covariance of what the logits do not see of x."""
        seen = self._seen(coef, node)
        by_level = sums.reshape(n_columns, n_columns, -1)
        slopes = slice(1, 1 + len(seen))
        by_level[slopes, slopes] += rest[np.ix_(seen, seen)][:, :, None] * by_level[0, 0]
        return by_level.ravel()

    def _seen(self, coef: Coefficients, node: int) -> Ints:
        """The numbers that predict a discrete node; they come first, after its own terms."""
        target, incidence = self.nodes.discrete_nodes[node], coef.incidence
        entries = slice(*incidence.target_ptr[target : target + 2].tolist())
        predictors = incidence.predictor[entries]
        return np.asarray(predictors[self.nodes.gaussian_nodes[predictors]])

    @cached_property
    def _means(self) -> Floats:
        """(n, p) mean of x in every state."""
        means = np.tile(self.given_y.start, (len(self.codes), 1))
        for j, begin in enumerate(self.nodes.level_start[:-1]):
            means += self.given_y.shift[begin + self.codes[:, j]]
        return means

    def _split(self, coef: Coefficients, node: int) -> _Split:
        """Split x into directions in which the logits of a discrete node vary, and a rest."""
        p, incidence = len(self.given_y.covariance), coef.incidence
        slopes = np.zeros((p, int(self.nodes.width[p + node])))
        entries = incidence.entries_of(p + node)
        column = incidence.entry_column[entries]
        is_number = column < p
        own = incidence.entry_target[entries][is_number] - self.nodes.column_start[p + node]
        slopes[column[is_number], own] = coef.values[entries][is_number]
        slopes = self.nodes.take([p + node]).statistics.over_values(slopes)
        slopes -= slopes.mean(axis=1, keepdims=True)
        axes, steps = axes_of(self.given_y, slopes, self.digits)
        return _Split(axes, steps, self.given_y.covariance - axes @ axes.T)

    def _tables(self, split: _Split) -> Iterator[tuple[float, MemoryRows]]:
        """The states times the grid as tables of bounded size, with their probabilities."""
        points, weights = _grid(split.steps, self.digits)
        moved = points @ split.axes.T
        size = max(1, _CHUNK // len(points))
        for at in range(0, len(self.codes), size):
            block = slice(at, at + size)
            codes = np.repeat(self.codes[block], len(points), axis=0)
            numbers = (self._means[block, None] + moved).reshape(len(codes), moved.shape[1])
            share = (self.probability[block, None] * weights).ravel()
            total = float(share.sum())
            if total > 0.0:
                numbers = np.ascontiguousarray(self.nodes.numbers(numbers, codes))
                yield total, MemoryRows(numbers, codes, self.nodes, share)


def axes_of(given_y: Gaussian, slopes: Floats, digits: float) -> tuple[Floats, tuple[float, ...]]:
    """Regression of x on the whitened logits ``slopes' x``, and the step along every axis."""
    root = given_y.factor.root
    left, deviation, right = np.linalg.svd(root @ slopes, full_matrices=False)
    real = deviation > 1e-10
    ranges = deviation[real] * np.ptp(right[real], axis=1)
    return root.T @ left[:, real], tuple(_step(float(t), digits) for t in ranges)


def _step(t: float, digits: float) -> float:
    """The step that leaves an error of exp(-digits) when logits move by t per deviation."""
    a = min(np.pi / t, np.sqrt(2.0 * digits))
    return float(2.0 * np.pi * a / (digits + 0.5 * a**2))


def axis_points(step: float, digits: float) -> Floats:
    """Points along one axis, in standard deviations.

    Examples
    --------
    >>> axis_points(1.0, 2.0)
    array([-2., -1.,  0.,  1.,  2.])
    """
    # The integrand grows like the square of x, so the cut is a little farther out than exp(-c).
    reach = int(np.ceil(np.sqrt(2.0 * digits) / step))
    return np.asarray(step * np.arange(-reach, reach + 1), dtype=np.float64)


def grid_size(steps: Sequence[float], digits: float) -> int:
    """Number of points of a grid before its corners are cut off."""
    return int(np.prod([len(axis_points(step, digits)) for step in steps]))


def _grid(steps: tuple[float, ...], digits: float) -> tuple[Floats, Floats]:
    """Points (n, k) of the product rule inside a ball, and their weights."""
    each = product(*(axis_points(step, digits) for step in steps))
    points = np.array(list(each)).reshape(grid_size(steps, digits), len(steps))
    square = 0.5 * np.sum(points**2, axis=1)
    inside = square <= digits + np.sqrt(2.0 * digits)
    weights = np.exp(-square[inside])
    return points[inside], weights / weights.sum()
