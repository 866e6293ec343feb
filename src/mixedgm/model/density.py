"""Params and encoded rows -> the conditional of every column, and of every two columns.

The distribution of two columns given all others, and the information each has about the other.

Given the rest of a row, two columns u and v have the density

    p(u, v | rest) proportional to exp(own_u + own_v + T_u m_u + T_v m_v + T_u' theta T_v)

with their statistics T, and m_u, m_v what the rest predicts of them without the other end.  Every
kind of column has finitely many states, in at most one of which a real number follows that is
normal given all others (`Family.states`): a category, an ordinal column or a count has states
alone, a number has one state with a real number, a hurdle column has a state for zero and one with
a real number.  So one formula holds for all pairs of kinds: with states i, j and the real numbers
x, y of their last ones,

    I(u; v) = I(i; j) + p(i) I(x; j | i) + p(j) I(i; y | j) + p(i, j) I(x; y | i, j).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.families.contract import Conditional, Family, States
from mixedgm.families.finite import FiniteConditional, FiniteFamily
from mixedgm.families.gaussian import GaussianConditional, GaussianFamily, log_integral
from mixedgm.families.hurdle import HurdleConditional
from mixedgm.model.layout import Floats
from mixedgm.model.moderation import Moderation
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params

_SPARSE = 0.02
"""Share of the coefficients that are not zero, below which products skip the others."""


@dataclass(frozen=True, eq=False)
class RowConditionals:
    """Conditionals of a block of rows, run by run of the nodes."""

    nodes: Nodes
    n_rows: int
    parts: list[Conditional]

    @property
    def _real(self) -> list[GaussianConditional | HurdleConditional]:
        return [x for x in self.parts if isinstance(x, GaussianConditional | HurdleConditional)]

    @property
    def mean(self) -> Floats:
        """(n, n_real) means of Gaussian nodes, then of spiked ones where they are not zero."""
        mean = [part.mean for part in self._real] or [np.zeros((0, self.n_rows))]
        if not self.nodes.n_spiked:
            return np.asarray(mean[0].T)
        return np.concatenate(mean).T + self.nodes.locations

    @property
    def variance(self) -> Floats:
        """(n_real,) variances of the same."""
        return np.concatenate([np.zeros(0), *(part.variance[:, 0] for part in self._real)])

    @cached_property
    def log_prob(self) -> Floats:
        """(n, sum of levels) of discrete nodes; of a spiked one, zero or not."""
        n_values = int(self.nodes.level_start[-1])
        out, first = np.empty((n_values, self.n_rows)), 0
        for part in self.parts:
            if isinstance(part, FiniteConditional | HurdleConditional):
                table = part.log_prob.reshape(-1, self.n_rows)
                out[first : first + len(table)] = table
                first += len(table)
        return out.T

    @property
    def columns(self) -> Floats:
        """(n, d) expected design columns."""
        return np.concatenate([part.columns.reshape(-1, self.n_rows) for part in self.parts]).T


def conditionals(
    params: Params, numbers: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> RowConditionals:
    """Conditional of every column given all others.

    A level without training rows (bias ``-inf``) has no place in the fitted softmax; it gets the
    probability of half a row among `n_observed` rows, and the others share the rest.  A cell with a
    negative code says nothing about the other columns: it has no terms in their conditionals.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> params = Params.independent(Nodes.mixed(1, (2,)))
    >>> conditionals(params, np.array([[3.0]]), np.array([[0]])).mean
    array([[0.]])
    """
    linear, nodes, parts = predictors(params, numbers, codes).T, params.nodes, []
    for (run, family), own in zip(nodes.runs, params.own_slots, strict=True):
        part = linear[nodes.column_start[run.start] : nodes.column_start[run.stop]]
        if not isinstance(family, GaussianFamily):
            # Rows last: sums over a few neighbours in memory would be several times slower.
            part = np.ascontiguousarray(part)
        given = family.given(own, part.reshape(len(own), -1, len(codes)))
        if isinstance(given, FiniteConditional) and np.isneginf(own).any():
            share_with_unseen(given.log_prob[0], own[0], n_observed)
            given = FiniteConditional.of(given.family, given.log_prob)
        parts.append(given)
    return RowConditionals(nodes, len(codes), parts)


def predictors(params: Params, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) linear predictors of all design columns by the rest of each row, without own terms."""
    linear = _linear(params, params.coef, numbers, codes)
    if params.moderation is not None:
        _add_deviations(params, params.moderation, numbers, codes, linear)
    return linear


def share_with_unseen(log_prob: Floats, bias: Floats, n_observed: float) -> None:
    """Give levels without training rows half a row each, in place; `log_prob` is (levels, n)."""
    unseen = np.isneginf(bias)
    if unseen.any() and np.isfinite(n_observed):
        log_prob[~unseen] += np.log(n_observed / (n_observed + 0.5 * unseen.sum()))
        log_prob[unseen] = log_half_row(int(unseen.sum()), n_observed)


def log_half_row(n_unseen: int, n_observed: float) -> float:
    """Log probability of one of `n_unseen` levels that none of `n_observed` rows had."""
    return float(np.log(0.5 / (n_observed + 0.5 * n_unseen))) if n_observed < np.inf else -np.inf


def _linear(params: Params, coef: Floats, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) linear predictors of all design columns in every row, given coefficients."""
    nodes = params.nodes
    if coef is params.coef and len(params.places) < _SPARSE * coef.size:
        return _sparse_linear(params, numbers, codes)
    linear = nodes.numbers(numbers, codes) @ coef[nodes.numeric]
    first = nodes.column_start[:-1][nodes.discrete]
    for j in range(nodes.first_indicator, len(first)):
        start = first[j]
        terms = coef[start + np.maximum(codes[:, j], 0)]  # int64, whatever type codes have
        terms[codes[:, j] < 0] = 0.0
        linear += terms
    return np.asarray(linear)


def _sparse_linear(params: Params, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) predictions of `_linear` by a sparse product, for few nonzero coefficients."""
    from scipy import sparse

    at, d = params.places, len(params.coef)
    coef = sparse.csr_array((params.coef.ravel()[at], np.divmod(at, d)), shape=(d, d))
    return np.asarray((coef.T @ params.nodes.design_columns(numbers, codes).T).T)


def _add_deviations(
    params: Params,
    moderation: Moderation,
    numbers: Floats,
    codes: NDArray[np.integer],
    linear: Floats,
) -> None:
    """Add what every row's own deviations predict."""
    middle = moderation.middle
    for node, deviations in zip(moderation.nodes, moderation.deviations, strict=True):
        for level, deviation in enumerate(deviations):
            if not deviation.any():
                continue
            at = params.nodes.place(node)
            if params.nodes.numeric_nodes[node]:
                column = int(params.nodes.column_start[node]) + level
                seen = params.nodes.numbers(numbers, codes)[:, [column]]
                change = _linear(params, deviation, numbers, codes) - middle @ deviation
                linear += (seen - middle[column]) * change
            else:
                rows = np.flatnonzero(codes[:, at] == level)
                change = _linear(params, deviation, numbers[rows], codes[rows]) - middle @ deviation
                linear[rows] += change


def losses(
    params: Params, numbers: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Floats:
    """(n, p + q) negative log conditional of every cell, constant included.

    A cell with a negative code has a level that is not among the model's.  It counts as half a row,
    as if the level had been declared.
    """
    given, nodes, out = conditionals(params, numbers, codes, n_observed), params.nodes, []
    for (run, _), own, part in zip(nodes.runs, params.own_slots, given.parts, strict=True):
        real, code = nodes.real_of(run, numbers), nodes.codes_of(run, codes)
        loss = -part.log_density(np.maximum(code, 0).astype(np.intp), real)
        if (code < 0).any():
            n_unseen = 1 + int(np.isneginf(own).sum())
            loss[code < 0] = -log_half_row(n_unseen, n_observed)
        out.append(loss)
    return np.concatenate(out).T


# -- pair conditionals -----------------------------------------------------------------------------

MOST_STATES = 256
"""Counts with more values than this are computed from some of them."""
_STEP = 0.4
"""Step of the trapezoidal rule over standard normal numbers."""
_FAR = 7.0
"""Standard deviations beyond which nothing is left of a normal distribution."""
_SAME = 1e-9
"""Standard deviations by which normal distributions of two rows may differ and count as equal."""
_SMALLEST = 1e-200


@dataclass(frozen=True, eq=False)
class End:
    """One column of a pair: its family, and its own terms (1, slots)."""

    family: Family
    own: Floats

    @classmethod
    def of(cls, params: Params, node: int) -> End:
        """A node of a model; counts have at most `MOST_STATES` states."""
        family, own = params.nodes.families[node], params.own_of(node)
        if isinstance(family, FiniteFamily) and family.features is not None:
            return cls(*family.thinned(own, MOST_STATES))
        return cls(family, own)

    @cached_property
    def states(self) -> States:
        """The states that can occur."""
        return self.family.states(self.own[0])

    def given(self, predictors: Floats) -> Conditional:
        """The distribution in rows with these predictors (n, width)."""
        return self.family.given(self.own, predictors.T[None])

    @property
    def is_real(self) -> bool:
        """Whether the last state has a real number."""
        return self.states.number is not None

    @property
    def slope(self) -> float:
        """Own linear term of the real number."""
        assert self.states.number is not None
        return self.states.number[0]

    @property
    def precision(self) -> float:
        """Precision of the real number."""
        assert self.states.number is not None
        return self.states.number[1]

    @property
    def logits(self) -> Floats:
        """(states,) own terms of the states."""
        return self.states.logits

    @property
    def statistics(self) -> Floats:
        """(states, width) design columns in every state, the real number left out."""
        return self.states.columns


def information(u: End, v: End, of_u: Floats, of_v: Floats, theta: Floats) -> Floats:
    """(n,) mutual information of two columns given the rest of every row, in nats.

    Parameters
    ----------
    u, v : End
        The two columns.
    of_u, of_v : ndarray (n, width)
        Linear predictors of each by the rest of every row, without the other.
    theta : ndarray (width of u, width of v) or (n, width of u, width of v)
        Parameters of their edge: the same in all rows, or those of every row.

    Returns
    -------
    ndarray (n,)
        Infinite where two numbers determine each other, or their parameters are no distribution.

    Examples
    --------
    Of two numbers it is -log(1 - r^2) / 2, with their partial correlation r.

    >>> from mixedgm.families import CONTINUOUS
    >>> number = End(CONTINUOUS.family(0), np.array([[0.0, 1.0]]))
    >>> nothing = np.zeros((1, 1))
    >>> nats = information(number, number, nothing, nothing, np.array([[0.6]]))
    >>> np.sqrt(1.0 - np.exp(-2.0 * nats)).round(12)
    array([0.6])
    """
    theta = theta if theta.ndim == 3 else theta[None]
    if v.is_real and not u.is_real:
        return information(v, u, of_v, of_u, theta.transpose(0, 2, 1))
    if not u.is_real and len(theta) == 1:
        product = _of_states(u, v, of_u, of_v, theta[0])
        if product is not None:
            return product
    logits = (u.logits + of_u @ u.statistics.T)[:, :, None]
    logits = logits + (v.logits + of_v @ v.statistics.T)[:, None, :]
    logits += u.statistics @ theta @ v.statistics.T
    if not u.is_real:
        return _of_table(_normalised(logits))
    linear = u.slope + of_u[:, -1:] + theta[:, -1, :] @ v.statistics.T
    x = _Normals(linear / u.precision, np.full(linear.shape, 1.0 / u.precision))
    logits[:, -1, :] += log_integral(linear, u.precision)
    if not v.is_real:
        logits = _normalised(logits)
        there = np.exp(logits[:, -1, :])
        return np.asarray(_of_table(logits) + there.sum(axis=1) * x.information(there))
    other = v.slope + of_v[:, -1:] + (u.statistics @ theta[:, :, -1:])[:, :, 0]
    y = _Normals(other / v.precision, np.full(other.shape, 1.0 / v.precision))
    logits[:, :, -1] += log_integral(other, v.precision)
    square = theta[:, -1, -1] ** 2 / (u.precision * v.precision)
    if (square >= 1.0).any():
        return np.full(len(logits), np.inf)
    # In the last states x and y are normal together: each mean and variance is that without the
    # other, integrated out.
    a, b, left = linear[:, -1].copy(), other[:, -1].copy(), 1.0 - square
    x.mean[:, -1] = (a / u.precision + theta[:, -1, -1] * b / (u.precision * v.precision)) / left
    y.mean[:, -1] = (b / v.precision + theta[:, -1, -1] * a / (u.precision * v.precision)) / left
    x.variance[:, -1] /= left
    y.variance[:, -1] /= left
    more = a * (x.mean[:, -1] - a / u.precision) + b * (y.mean[:, -1] - b / v.precision)
    logits[:, -1, -1] += 0.5 * (more - np.log(left))
    logits = _normalised(logits)
    share = np.exp(logits)
    of_x, of_y, of_both = share[:, -1, :], share[:, :, -1], share[:, -1, -1]
    return np.asarray(
        _of_table(logits)
        + of_x.sum(axis=1) * x.information(of_x)
        + of_y.sum(axis=1) * y.information(of_y)
        + of_both * of_numbers(square)
    )


def of_numbers(square: Floats) -> Floats:
    """Information of two numbers, in nats, from the squares of their partial correlations."""
    with np.errstate(divide="ignore"):
        return np.asarray(-0.5 * np.log1p(-np.minimum(square, 1.0)))


@dataclass(frozen=True, eq=False)
class _Normals:
    """Normal distributions of a number in every state of another column, in every row."""

    mean: Floats
    """(n, states)."""
    variance: Floats
    """(n, states)."""

    def information(self, share: Floats) -> Floats:
        """(n,) information of number and state about each other, from unnormalised shares."""
        n_states = share.shape[1]
        if n_states == 1:
            return np.zeros(len(share))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(share / share.sum(axis=1, keepdims=True), nan=1.0 / n_states)
        away = (self.mean - self.mean[:, :1]) / np.sqrt(self.variance[:1, :1])
        is_same = np.ptp(away, axis=0).max() <= _SAME and np.ptp(self.variance) == 0.0
        return _evenly_spread(share, away[0]) if is_same else self._row_by_row(share)

    def _row_by_row(self, share: Floats) -> Floats:
        """Compute the information by quadrature about every mean."""
        z = np.arange(-_FAR, _FAR + 0.5 * _STEP, _STEP)
        weight = np.exp(-0.5 * z**2)
        weight /= weight.sum()
        scale, log_scale = np.sqrt(self.variance), 0.5 * np.log(self.variance)
        out = np.zeros(len(share))
        with np.errstate(divide="ignore"):
            log_share = np.log(share)
        for k in range(share.shape[1]):
            x = self.mean[:, k, None] + scale[:, k, None] * z
            away = (x[:, None, :] - self.mean[:, :, None]) / scale[:, :, None]
            parts = (log_share - log_scale)[:, :, None] - 0.5 * away**2
            ratio = -0.5 * z**2 - log_scale[:, k, None] - _log_sum(parts, axis=1)
            out += share[:, k] * (ratio @ weight)
        return out


def _evenly_spread(share: Floats, mean: Floats) -> Floats:
    """(n,) information of normal numbers of variance 1 about states, with the same means in rows.

    Normal distributions so far apart that they do not overlap are moved together.
    """
    order = np.argsort(mean)
    gaps = np.minimum(np.diff(mean[order]), 2.0 * _FAR)
    place = np.empty(len(mean))
    place[order] = np.concatenate([[0.0], np.cumsum(gaps)])
    x = np.arange(-_FAR, place.max() + _FAR + _STEP, _STEP)
    density = np.exp(-0.5 * (x - place[:, None]) ** 2)
    density /= density.sum(axis=1, keepdims=True)
    mixed = share @ density
    own = (density * np.log(np.maximum(density, _SMALLEST))).sum(axis=1)
    return np.asarray(
        np.maximum(share @ own - (mixed * np.log(np.maximum(mixed, _SMALLEST))).sum(axis=1), 0.0)
    )


def _of_states(u: End, v: End, of_u: Floats, of_v: Floats, theta: Floats) -> Floats | None:
    """Information of two columns of states, by products of matrices; None where these underflow."""
    terms = u.statistics @ theta @ v.statistics.T
    terms = terms - terms.max()
    factor = np.exp(terms)
    finite = np.where(factor > 0.0, terms, 0.0)  # levels without rows have no probability
    logits = [u.logits + of_u @ u.statistics.T, v.logits + of_v @ v.statistics.T]
    logits = [each - each.max(axis=1, keepdims=True) for each in logits]
    first, second = (np.exp(each) for each in logits)
    to_first = second @ factor.T
    total = np.einsum("ni,ni->n", first, to_first)
    if not total.min(initial=1.0) > _SMALLEST:
        return None
    share = first * to_first / total[:, None]
    other = second * (first @ factor) / total[:, None]
    mixed = np.einsum("ni,ni->n", first, second @ (factor * finite).T) / total
    out = mixed - np.log(total)
    for each, own in ((share, logits[0]), (other, logits[1])):
        own = np.where(each > 0.0, own, 0.0)
        out += (each * (own - np.log(np.maximum(each, _SMALLEST)))).sum(axis=1)
    return np.asarray(np.maximum(out, 0.0))


def _of_table(logits: Floats) -> Floats:
    """(n,) information of tables (n, rows, columns) of log probabilities."""
    rows, columns = _log_sum(logits, axis=2), _log_sum(logits, axis=1)
    share = np.exp(logits)
    with np.errstate(invalid="ignore"):
        ratio = logits - rows[:, :, None] - columns[:, None, :]
    return np.asarray(np.maximum((share * np.where(share > 0.0, ratio, 0.0)).sum(axis=(1, 2)), 0.0))


def _normalised(logits: Floats) -> Floats:
    """Tables (n, rows, columns) of logits as log probabilities."""
    flat = logits.reshape(len(logits), -1)
    return np.asarray(logits - _log_sum(flat)[:, None, None])


def _log_sum(logits: Floats, axis: int = 1) -> Floats:
    """Logarithms of sums of exponentials along an axis."""
    top = logits.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)  # levels without rows have no probability
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logits - top).sum(axis=axis)) + np.squeeze(top, axis))
