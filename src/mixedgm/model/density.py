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

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

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
_GRID = 30, 300
"""Fewest and most values on a grid."""
_SAME = 1e-9
"""Standard deviations by which normal distributions of two rows may differ and count as equal."""
_SMALLEST = 1e-200
_MOST_ROUNDS, _CLOSE = 20, 1e-6
"""Of own terms that follow shares, and the step in their logarithms at which they end."""
_FREE = 1e-9
"""Relative ridge: a constant is a function of either column."""


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

    def values(self, predictors: Floats, number: _Normals | None) -> _EndValues:
        """Values in rows with these predictors (n, width): states, or numbers on a grid."""
        n = len(predictors)
        columns = np.broadcast_to(self.statistics, (n, *self.statistics.shape))
        own = np.broadcast_to(self.logits, columns.shape[:2])
        if number is not None:
            x = number.grid()
            last = np.repeat(columns[:, -1:], x.shape[1], axis=1)
            last[:, :, -1] = x
            height = own[:, -1:] + self.slope * x - 0.5 * self.precision * x**2
            height += np.log(x[:, 1:2] - x[:, :1])
            columns = np.concatenate([columns[:, :-1], last], axis=1)
            own = np.concatenate([own[:, :-1], height], axis=1)
        return _EndValues(own + np.einsum("nsw,nw->ns", columns, predictors), columns)

    @property
    def logits(self) -> Floats:
        """(states,) own terms of the states."""
        return self.states.logits

    @property
    def statistics(self) -> Floats:
        """(states, width) design columns in every state, the real number left out."""
        return self.states.columns


class _EndValues(NamedTuple):
    """Values of a column in every row."""

    logits: Floats
    """(n, values)."""
    columns: Floats
    """(n, values, width) design columns."""


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
    joint = _Joint.of(u, v, of_u, of_v, theta)
    if joint is None:
        return np.full(len(of_u), np.inf)
    out, share = _of_table(joint.logits), np.exp(joint.logits)
    for numbers, there in ((joint.x, share[:, -1, :]), (joint.y, share[:, :, -1])):
        if numbers is not None:
            out = out + there.sum(axis=1) * numbers.information(there)
    if joint.y is None:
        return np.asarray(out)
    return np.asarray(out + share[:, -1, -1] * of_numbers(np.square(joint.correlation)))


def with_shares(
    u: End, v: End, of_u: Floats, of_v: Floats, theta: Floats, weights: Floats, shares: Floats
) -> End:
    """The end v with own terms by which its values have these shares; u has a real number, v none.

    Arguments are those of `information`; the weights (n,) of rows add up to 1.
    """
    theta = theta if theta.ndim == 3 else theta[None]
    for _ in range(_MOST_ROUNDS):
        joint = _Joint.of(u, v, of_u, of_v, theta)
        assert joint is not None
        expected = weights @ np.exp(_log_sum(joint.logits, axis=1))
        step = np.log(shares / np.maximum(expected, _SMALLEST))
        own = v.own.copy()
        own[np.isfinite(own)] += step
        v = replace(v, own=own)
        if np.abs(step).max() < _CLOSE:
            break
    return v


class Uncertainty(NamedTuple):
    """What rows say about a pair, both columns being free otherwise."""

    variance: float
    """Of the log density ratio p(u, v) / p(u) p(v) given the rest; the information is its mean."""
    fisher: Floats
    """(parameters, parameters) Fisher information about theta."""


def uncertainty(
    u: End, v: End, of_u: Floats, of_v: Floats, theta: Floats, weights: Floats
) -> Uncertainty:
    """Variance of the log density ratio, and Fisher information, over rows and over all values.

    Arguments are those of `information`; the weights (n,) of rows add up to 1.  Real numbers have
    values on a grid.

    Examples
    --------
    The variance of two numbers' log density ratio is their squared correlation.

    >>> from mixedgm.families import CONTINUOUS
    >>> number = End(CONTINUOUS.family(0), np.array([[0.0, 1.0]]))
    >>> nothing, one = np.zeros((1, 1)), np.ones(1)
    >>> found = uncertainty(number, number, nothing, nothing, np.array([[0.6]]), one)
    >>> round(found.variance, 9)
    0.36
    """
    theta = theta if theta.ndim == 3 else theta[None]
    if v.is_real and not u.is_real:
        size = theta[0].size
        turned = uncertainty(v, u, of_v, of_u, theta.transpose(0, 2, 1), weights)
        order = np.arange(size).reshape(theta.shape[2], theta.shape[1]).T.ravel()
        return Uncertainty(turned.variance, turned.fisher[np.ix_(order, order)])
    joint = _Joint.of(u, v, of_u, of_v, theta)
    if joint is None:
        return Uncertainty(np.nan, np.full((theta[0].size,) * 2, np.nan))
    first, second = u.values(of_u, joint.x), v.values(of_v, joint.y)
    logits = first.logits[:, :, None] + second.logits[:, None, :]
    logits = _normalised(logits + first.columns @ theta @ second.columns.transpose(0, 2, 1))
    share = np.exp(logits)
    with np.errstate(invalid="ignore"):
        ratio = logits - _log_sum(logits, axis=2)[:, :, None] - _log_sum(logits, axis=1)[:, None]
    ratio = np.where(share > 0.0, ratio, 0.0)
    mean, square = (np.einsum("n,nst,nst->", weights, share, ratio**k) for k in (1, 2))
    fisher = _fisher(share, first.columns, second.columns, weights)
    return Uncertainty(float(square - mean**2), fisher)


def _fisher(share: Floats, first: Floats, second: Floats, weights: Floats) -> Floats:
    """(parameters, parameters) of products of columns (n, values, width), by shares of values.

    Functions of either value are taken out of the products, in every row.
    """
    n, n_values = len(share), share.shape[2]
    to_first = np.einsum("nsa,nsb->nsab", first, share @ second).reshape(n, share.shape[1], -1)
    to_second = np.einsum("nta,ntb->ntab", share.transpose(0, 2, 1) @ first, second)
    given = (share / np.maximum(share.sum(axis=2, keepdims=True), _SMALLEST)).transpose(0, 2, 1)
    left = to_second.reshape(n, n_values, -1) - given @ to_first
    alone = (share.sum(axis=1) * (1.0 + _FREE) + _SMALLEST)[:, :, None] * np.eye(n_values)
    explained = np.einsum(
        "ntk,ntl,n->kl", left, np.linalg.solve(alone - given @ share, left), weights
    )
    inverse = weights[:, None] / np.maximum(share.sum(axis=2), _SMALLEST)
    explained += np.einsum("nsk,nsl,ns->kl", to_first, to_first, inverse, optimize=True)
    squares = [np.einsum("nsa,nsb->nsab", each, each) for each in (first, second)]
    square = np.einsum("n,nst,nsac,ntbd->abcd", weights, share, *squares, optimize=True)
    return np.asarray(square.reshape(explained.shape) - explained)


@dataclass(frozen=True, eq=False)
class _Joint:
    """The distribution of two columns in every row: of their states, and of numbers given these."""

    logits: Floats
    """(n, states of u, states of v) log probabilities."""
    x: _Normals | None = None
    """The number of u in its last state, in every state of v."""
    y: _Normals | None = None
    """The number of v in its last state, in every state of u."""
    correlation: Floats | float = 0.0
    """(n,) or (1,) of both numbers."""

    @classmethod
    def of(cls, u: End, v: End, of_u: Floats, of_v: Floats, theta: Floats) -> _Joint | None:
        """Multiply out; None where two numbers have no distribution.  If only one is real, u is."""
        logits = (u.logits + of_u @ u.statistics.T)[:, :, None]
        logits = logits + (v.logits + of_v @ v.statistics.T)[:, None, :]
        logits += u.statistics @ theta @ v.statistics.T
        if not u.is_real:
            return cls(_normalised(logits))
        linear = u.slope + of_u[:, -1:] + theta[:, -1, :] @ v.statistics.T
        x = _Normals(linear / u.precision, np.full(linear.shape, 1.0 / u.precision))
        logits[:, -1, :] += log_integral(linear, u.precision)
        if not v.is_real:
            return cls(_normalised(logits), x)
        other = v.slope + of_v[:, -1:] + (u.statistics @ theta[:, :, -1:])[:, :, 0]
        y = _Normals(other / v.precision, np.full(other.shape, 1.0 / v.precision))
        logits[:, :, -1] += log_integral(other, v.precision)
        correlation = theta[:, -1, -1] / np.sqrt(u.precision * v.precision)
        if (np.abs(correlation) >= 1.0).any():
            return None
        # In the last states x and y are normal together: each mean and variance is that without the
        # other, integrated out.
        a, b, left = linear[:, -1].copy(), other[:, -1].copy(), 1.0 - correlation**2
        across = theta[:, -1, -1] / (u.precision * v.precision)
        x.mean[:, -1] = (a / u.precision + across * b) / left
        y.mean[:, -1] = (b / v.precision + across * a) / left
        x.variance[:, -1] /= left
        y.variance[:, -1] /= left
        more = a * (x.mean[:, -1] - a / u.precision) + b * (y.mean[:, -1] - b / v.precision)
        logits[:, -1, -1] += 0.5 * (more - np.log(left))
        return cls(_normalised(logits), x, y, correlation)


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

    def grid(self) -> Floats:
        """(n, values) values that cover all of the distributions of every row, evenly spaced."""
        scale = np.sqrt(self.variance)
        low = (self.mean - _FAR * scale).min(axis=1)
        width = (self.mean + _FAR * scale).max(axis=1) - low
        steps = np.clip((width / scale.min()).max() / _STEP, *_GRID)
        return np.asarray(low[:, None] + width[:, None] * np.linspace(0.0, 1.0, int(steps)))


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
