"""Parameters and rows -> the strength of every edge, and its interval.

The strength of an edge is sqrt(1 - exp(-2 I)), with the mutual information I of its two columns
given all others, in nats, as a mean over rows (`mixedgm.model.density`).  For two numbers
it is the absolute partial correlation.  Estimates have too much information: d / 2n on average,
where an edge has d parameters and n rows determine them.  So unshrunken ones are corrected by it.
Edges of several parameters that are shrunken in proportion to what the data say need none.

Information of a pair, and the covariance of its estimates -> an interval for its strength.

With theta the d parameters of a pair, F what a row says about them at the estimate and V / n the
covariance of the estimate, 2 n I is about theta' (n F) theta: c times a noncentral chi-square with
d degrees of freedom, c = tr(F V) / d.  That holds near zero.  Farther out the information is no
longer quadratic in theta.  It is the mean of a log density ratio, and the variance of this ratio
over n, times c, is its variance: where all of p(u, v | rest) is estimated, the ratio less its mean
is the influence of a row on the information.  Deviations of the root of the noncentrality are
shortened to have this variance.  For two numbers the root is Fisher's z.

A noncentrality near zero cannot be too small for the rows, so that all errors are on one side there
and the interval begins at zero unless a test at its level rejects zero.  Farther out both sides
have half of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chndtr, ndtri

from mixedgm.model.density import (
    End,
    Uncertainty,
    information,
    of_numbers,
    predictors,
    uncertainty,
    with_shares,
)
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign

MOST_ROWS = 2_000
"""Rows over which the information is a mean: at most so many, evenly spread."""
_LEAST_ROWS = 200
_MOST_NUMBERS = 8e6
"""Design columns times rows: 64 MB."""
_MOST_CELLS = 2e6
"""Numbers that stand in memory for one pair."""
_FEW_ROWS = 30, 400
"""Rows over which the uncertainty of a pair is a mean: fewest and most."""
_NUMBERS_AS_STATES = 36
_MOST_FOLLOWING = 400
"""Parameters that follow when the edge of a covariate is taken away."""


def strength(nats: Floats, excess: Floats | float = 0.0) -> Floats:
    """Strengths from information, less what estimates have in excess.

    Examples
    --------
    >>> strength(np.array([0.0, 0.1, np.inf])).round(3)
    array([0.   , 0.426, 1.   ])
    """
    left = np.maximum(np.asarray(nats) - excess, 0.0)
    return np.asarray(np.sqrt(-np.expm1(-2.0 * left)))


@dataclass(frozen=True, eq=False)
class RestRows:
    """Rows whose pairs of columns are looked at, the other columns given."""

    numbers: Floats
    codes: NDArray[np.integer]
    weights: Floats | None = None

    @classmethod
    def of(cls, design: Design | PartedDesign, most: int = MOST_ROWS) -> RestRows:
        """Evenly spread rows of a table."""
        d = max(design.schema.spans.n_columns, 1)
        most = int(min(most, max(_MOST_NUMBERS / d, _LEAST_ROWS)))
        some = np.arange(0, design.n_rows, -(-design.n_rows // most))
        if isinstance(design, PartedDesign):
            parts = [
                (part.numbers, part.codes, part.weights)
                for part in design.take(some).parts.map(_itself)
            ]
            numbers, codes = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
            own = [part[2] for part in parts if part[2] is not None]
            return cls(numbers, codes, np.concatenate(own) if own else None)
        weights = None if design.weights is None else design.weights[some]
        return cls(design.numbers[some], design.codes[some], weights)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def some(self, most: int) -> RestRows:
        """At most so many of them, evenly spread."""
        at = slice(None, None, -(-self.n_rows // most))
        weights = None if self.weights is None else self.weights[at]
        return RestRows(self.numbers[at], self.codes[at], weights)

    def without(self, numbers: Sequence[int], codes: Sequence[int]) -> RestRows:
        """The same rows without some columns of numbers and of codes."""
        left = np.delete(self.numbers, numbers, axis=1), np.delete(self.codes, codes, axis=1)
        return RestRows(*left, self.weights)

    def mean(self, values: Floats) -> Floats:
        """Mean over rows."""
        return np.asarray(np.average(values, axis=0, weights=self.weights))


def _itself(part: Design) -> Design:
    return part


_Pair = tuple[End, End, Floats, Floats, Floats]


def _rows_of(pair: _Pair, some: slice | Ints) -> _Pair:
    """A pair in some rows."""
    u, v, of_u, of_v, theta = pair
    return u, v, of_u[some], of_v[some], theta[some] if theta.ndim == 3 else theta


@dataclass(frozen=True, eq=False)
class ConditionalInformation:
    """Information of pairs of columns under a model, as means over rows.

    Parameters
    ----------
    params : Params
        In the data's own units.
    rows : RestRows or None
        Rows of the same columns.  Without them, all but pairs of two numbers are NaN.
    covariates : tuple of int
        Nodes that are given and have no distribution of their own.
    shares : dict, optional
        Of nodes with levels: shares of all levels with rows.  Own terms of a column beside one of
        numbers follow, so that it has them: where both nearly determine each other, conditionals
        say little about its shares.
    """

    params: Params
    rows: RestRows | None
    covariates: tuple[int, ...] = ()
    shares: dict[int, Floats] = field(default_factory=dict)

    def of(self, u: Ints, v: Ints, coef: Floats) -> Floats:
        """(pairs,) information of pairs of nodes with these coefficients (d, d), in nats.

        Other coefficients of a pair, which the model may have, take no part.
        """
        nodes = self.params.nodes
        out = np.zeros(len(u))
        plain = nodes.gaussian_nodes.copy()
        plain[list(self.covariates)] = False
        numbers = plain[u] & plain[v]
        if self.params.moderation is not None:
            numbers &= False
        a, b = u[numbers], v[numbers]
        start, diagonal = nodes.column_start, self.params.diagonal
        out[numbers] = of_numbers(coef[start[a], start[b]] ** 2 / (diagonal[a] * diagonal[b]))
        for at in np.flatnonzero(~numbers).tolist():
            out[at] = self._of_pair(int(u[at]), int(v[at]), coef)
        return out

    def _of_pair(self, u: int, v: int, coef: Floats) -> float:
        if self.rows is None:
            return np.nan
        columns = self.params.nodes.columns_of
        return self.of_block(u, v, coef[columns(u), columns(v)])

    def of_block(self, u: int, v: int, block: Floats) -> float:
        """Information of one pair of nodes with these parameters (width of u, width of v).

        Own terms follow parameters that are not the model's, so that a number's origin is no part
        of the answer.
        """
        if u in self.covariates or v in self.covariates:
            return (
                self._of_covariate(u, v, block)
                if u in self.covariates
                else (self._of_covariate(v, u, block.T))
            )
        pair = self._pair(u, v, block)
        theta, out = pair[-1], np.empty(self._some.n_rows)
        for some in self._runs(pair[:2], theta.ndim == 3):
            out[some] = information(*_rows_of(pair, some))
        return max(float(self._some.mean(out)), 0.0)  # rounding may leave less

    def uncertainty(self, u: int, v: int, block: Floats) -> Uncertainty:
        """What rows say about a pair, none of whose nodes is a covariate; few are enough."""
        pair, per_row = self._pair(u, v, block), 1
        for end in pair[:2]:
            per_row *= max(len(end.logits), _NUMBERS_AS_STATES * end.is_real)
        most = int(np.clip(_MOST_CELLS / per_row, *_FEW_ROWS))
        # At even steps of the weights, so that repeated rows are weights; no step is at a border.
        steps = (np.arange(most) + 0.381966) / most
        some = np.minimum(np.searchsorted(np.cumsum(self._weights), steps), self._some.n_rows - 1)
        return uncertainty(*_rows_of(pair, some), np.full(most, 1.0 / most))

    def _pair(self, u: int, v: int, block: Floats) -> _Pair:
        """Both ends, what the rest of every row predicts of each, and the parameters."""
        theta = block + self._deviations(u, v)
        of_u = self._rest(u, v) + self._following_terms(v, u, block.T)
        of_v = self._rest(v, u) + self._following_terms(u, v, block)
        first, second = self._ends[u], self._ends[v]
        if first.is_real and self._has_shares(v):
            arguments = first, second, of_u, of_v, theta
            second = with_shares(*arguments, self._weights, self.shares[v])
        elif second.is_real and self._has_shares(u):
            turned = theta.swapaxes(-1, -2)
            arguments = second, first, of_v, of_u, turned
            first = with_shares(*arguments, self._weights, self.shares[u])
        return first, second, of_u, of_v, theta

    def _has_shares(self, node: int) -> bool:
        """Whether shares of all states of a node are known."""
        return node in self.shares and len(self.shares[node]) == len(self._ends[node].logits)

    def _runs(self, ends: tuple[End, End], varies: bool) -> Iterator[slice]:
        """Rows a few at a time, so that few numbers stand in memory."""
        n, sizes = self._some.n_rows, [len(end.logits) for end in ends]
        per_row = sizes[0] * sizes[1] * (max(sizes) if varies else 1)
        step = max(1, int(_MOST_CELLS / per_row))
        return (slice(first, first + step) for first in range(0, n, step))

    def cells(self, u: int, v: int, block: Floats) -> tuple[Floats, Floats]:
        """(values of u, values of v) expected shares of all combinations, and without the edge.

        Both columns have values without real numbers; values that cannot occur have share 0.
        Without the edge, each column keeps the distribution that it has in every row.
        """
        ends = self._ends[u], self._ends[v]
        logits = [
            end.logits + self._rest(*at) @ end.statistics.T
            for end, at in zip(ends, ((u, v), (v, u)), strict=True)
        ]
        terms = ends[0].statistics @ block @ ends[1].statistics.T
        both = logits[0][:, :, None] + logits[1][:, None, :] + terms
        share = np.exp(both - both.max(axis=(1, 2), keepdims=True))
        share /= share.sum(axis=(1, 2), keepdims=True)
        apart = share.sum(axis=2)[:, :, None] * share.sum(axis=1)[:, None, :]
        at = np.ix_(self._possible(u), self._possible(v))
        out = np.zeros((2, *(self.params.nodes.n_values[node] for node in (u, v))))
        for kept, values in zip(out, (share, apart), strict=True):
            kept[at] = self._some.mean(values)
        return out[0], out[1]

    def _possible(self, node: int) -> Ints:
        """Values of a node that can occur."""
        nodes = self.params.nodes
        return np.flatnonzero(self.params.levels_possible[nodes.levels_of(nodes.place(node))])

    # -- covariates --------------------------------------------------------------------------------

    def _of_covariate(self, u: int, v: int, theta: Floats) -> float:
        """Likelihood ratio, per row, of v with its edge to the covariate u and without.

        Without it, what else predicts v follows by one step.
        """
        end, full = self._ends[v], self._linear[:, self.params.nodes.columns_of(v)]
        gone = self._said(u, v, theta)
        others = self._following(u, v)
        if end.is_real and len(end.logits) == 1:  # a number: a regression, variance included
            weight = np.sqrt(self._weights)[:, None]
            fitted = np.linalg.lstsq(weight * others, weight * gone, rcond=None)[0]
            left = self._some.mean((gone - others @ fitted)[:, 0] ** 2)
            return float(0.5 * np.log1p(left / end.precision))
        given, width = end.given(full), gone.shape[1]
        size = others.shape[1] * width
        weighted = np.einsum("wxn,n->nwx", given.covariances()[0][0], self._weights)
        hessian = np.einsum("nr,nwx,ns->rwsx", others, weighted, others, optimize=True)
        pull = np.einsum("nr,nwx,nx->rw", others, weighted, gone, optimize=True).ravel()
        hessian = hessian.reshape(size, size)
        hessian += 1e-9 * np.trace(hessian) / size * np.eye(size)
        follow = np.linalg.solve(hessian, pull).reshape(-1, width)
        change = others @ follow - gone
        more = (end.given(full + change).log_normaliser - given.log_normaliser)[0]
        return float(self._some.mean(more - (change * given.columns[0].T).sum(axis=1)))

    def _following(self, u: int, v: int) -> Floats:
        """(n, 1 + columns) what else predicts node v, and a constant."""
        nodes, parts = self.params.nodes, [np.ones((self._some.n_rows, 1))]
        room = _MOST_FOLLOWING // max(int(nodes.width[v]), 1)
        says = self.params.coef[:, nodes.columns_of(v)].any(axis=1)
        for node in np.unique(nodes.column_node[says]).tolist():
            if node not in (u, v) and room >= nodes.width[node]:
                room -= int(nodes.width[node])
                parts.append(self._seen(node))
        return np.hstack(parts)

    # -- deviations --------------------------------------------------------------------------------

    def of_deviation(self, which: int, u: int, v: int, blocks: Floats) -> float:
        """Information that rows have about how an edge varies with a moderator, in nats.

        `blocks` (columns of the moderator, width of u, width of v) are its deviations D.  To second
        order in these it is half the mean over rows of tr(D S_v D' S_u), with the covariances S of
        both ends: for two numbers, half the variance of their partial correlation.
        """
        if self.rows is None:
            return np.nan
        change = np.tensordot(self._features(which), blocks, 1)
        first = np.einsum("nab,nbc,ndc->nad", change, self._spread(v), change)
        return float(0.5 * self._some.mean(np.einsum("nad,nda->n", first, self._spread(u))))

    def _spread(self, node: int) -> Floats:
        """(n, width, width) covariance of what others see of a node; of a covariate, its square."""
        if node not in self.covariates:
            full = self._linear[:, self.params.nodes.columns_of(node)]
            return np.moveaxis(self._ends[node].given(full).covariances()[0][0], -1, 0)
        assert self.params.moderation is not None
        middle = self.params.moderation.middle[self.params.nodes.columns_of(node)]
        away = self._seen(node) - middle
        return np.asarray(away[:, :, None] * away[:, None, :])

    def _features(self, which: int) -> Floats:
        """(n, columns) of a moderator: numbers less their means, or indicators of levels."""
        moderation = self.params.moderation
        assert moderation is not None
        node = moderation.nodes[which]
        if not self.params.nodes.numeric_nodes[node]:
            return self._seen(node)
        return self._seen(node) - moderation.middle[self.params.nodes.columns_of(node)]

    def _deviations(self, u: int, v: int) -> Floats | float:
        """(n, width of u, width of v) by how much the parameters of a pair differ in every row."""
        moderation = self.params.moderation
        if moderation is None:
            return 0.0
        columns = self.params.nodes.columns_of
        out: Floats | float = 0.0
        for which, deviation in enumerate(moderation.deviations):
            block = deviation[:, columns(u), columns(v)]
            if self.params.nodewise:
                other = deviation[:, columns(v), columns(u)].swapaxes(1, 2)
                block = 0.5 * (block + other)
            if block.any():
                out = out + np.tensordot(self._features(which), block, 1)
        return out

    # -- rows --------------------------------------------------------------------------------------

    def _rest(self, v: int, u: int) -> Floats:
        """(n, width of v) what the rest of every row predicts of node v without node u."""
        columns = self.params.nodes.columns_of
        said = self.params.coef[columns(u), columns(v)]
        moderation = self.params.moderation
        if moderation is not None:
            for which, deviation in enumerate(moderation.deviations):
                block = deviation[:, columns(u), columns(v)]
                if block.any():
                    said = said + np.tensordot(self._features(which), block, 1)
        linear = self._linear[:, columns(v)]
        return linear - self._said(u, v, said) if said.any() else linear

    def _following_terms(self, u: int, v: int, block: Floats) -> Floats:
        """(width of v,) change of own terms that keeps the mean of what predicts v.

        Node u says something else to v than in the model: this block.
        """
        columns = self.params.nodes.columns_of
        change = self.params.coef[columns(u), columns(v)] - block
        return np.asarray(self._weights @ self._seen(u) @ change)

    def _said(self, u: int, v: int, theta: Floats) -> Floats:
        """(n, width of v) what node u says to node v with these parameters."""
        if theta.ndim == 3:
            return np.asarray(np.einsum("nu,nuv->nv", self._seen(u), theta))
        if self.params.nodes.numeric_nodes[u]:
            return np.asarray(self._seen(u) @ theta)
        return np.asarray(theta[self._some.codes[:, self.params.nodes.place(u)]])

    def _seen(self, node: int) -> Floats:
        """(n, width) what others see of a node."""
        nodes = self.params.nodes
        if nodes.numeric_nodes[node]:
            return self._numbers[:, nodes.columns_of(node)]
        return np.asarray(np.eye(int(nodes.width[node]))[self._some.codes[:, nodes.place(node)]])

    @property
    def _some(self) -> RestRows:
        assert self.rows is not None
        return self.rows

    @cached_property
    def _numbers(self) -> Floats:
        return self.params.nodes.numbers(self._some.numbers, self._some.codes)

    @cached_property
    def _linear(self) -> Floats:
        """(n, d) what the rest of every row predicts of all design columns."""
        return predictors(self.params, self._some.numbers, self._some.codes)

    @cached_property
    def _weights(self) -> Floats:
        """(n,) of the rows, adding up to 1."""
        given = self._some.weights
        weights = np.ones(self._some.n_rows) if given is None else given
        return np.asarray(weights / weights.sum())

    @cached_property
    def _ends(self) -> _Ends:
        return _Ends(self.params)


class _Ends(dict[int, End]):
    """All nodes of a model as ends of pairs, made when they are asked for."""

    def __init__(self, params: Params) -> None:
        self.params = params

    def __missing__(self, node: int) -> End:
        self[node] = End.of(self.params, node)
        return self[node]


def freedom(params: Params, u: Ints, v: Ints) -> Ints:
    """(pairs,) parameters of the edges of pairs of nodes, over levels that can occur."""
    observed = params.levels_possible
    each = params.nodes.kept(observed).freedom if len(observed) else params.nodes.freedom
    return np.asarray(each[u] * each[v])


# -- strength intervals ----------------------------------------------------------------------------

_HALVINGS = 45
_LARGEST = 0.999999
_MOST_SPREAD = 2.0
"""An eigenvalue of F V above so many middle ones is of parameters without rows."""
_LEAST_SPREAD, _MOST_STRETCH = 0.01, 1e6
"""Eigenvalues far from 1, and variances far from their size in a right model, are of columns that
are nearly determined: the first have at least so much, the interval is at most so much longer."""


@dataclass(frozen=True, eq=False)
class PairUncertainty:
    """What the interval of one pair is made of."""

    nats: float
    """Information at the estimate, not corrected."""
    freedom: int
    trace: float
    """tr(F V), by `determined_trace`."""
    variance: float
    """n times that of the information far from zero."""


def determined_trace(information: Floats, spread: Floats, freedom: int) -> float:
    """tr(F V) over the directions of the parameters, none above twice the middle one or 2.

    In a right model all eigenvalues of F V are about 1, or the size of clusters.  Where a cell has
    hardly any rows an estimate runs far out and its variance says nothing about information there.

    Examples
    --------
    >>> determined_trace(np.eye(3), np.diag([1.0, 1.2, 30.0]), 3)
    4.6
    """
    size, axes = np.linalg.eigh(spread)
    root = (np.sqrt(np.maximum(size, 0.0)) * axes)[:, -freedom:]
    found = np.linalg.eigvalsh(root.T @ information @ root)
    limit = _MOST_SPREAD * max(float(found[(freedom - 1) // 2]), 1.0)
    return float(np.clip(found, 0.0, limit).sum())


def excess(trace: Floats | float, n: float) -> Floats:
    """Information that estimates have in excess on average, in nats."""
    return np.asarray(0.5 * np.asarray(trace) / n)


def interval(pair: PairUncertainty, n: float, level: float) -> tuple[float, float]:
    """Lower and upper end of the interval for the strength of a pair.

    Examples
    --------
    >>> pair = PairUncertainty(nats=0.02, freedom=4, trace=4.0, variance=0.04)
    >>> [round(end, 2) for end in interval(pair, 1000.0, 0.95)]
    [0.13, 0.25]
    """
    scale = max(pair.trace / pair.freedom, _LEAST_SPREAD)
    statistic = 2.0 * n * pair.nats / scale
    noncentrality = max(statistic - pair.freedom, 0.0)
    middle = np.sqrt(noncentrality)
    ends = np.sqrt(noncentralities(statistic, pair.freedom, level))
    # A noncentral chi-square has the variance 4 times noncentrality + 2 times degrees of freedom.
    # The first part is that of an information whose variance is twice the scale times itself / n.
    usual = 2.0 * scale * pair.nats
    most = _MOST_STRETCH * usual
    found = min(pair.variance, most) / usual if most > 0.0 else 1.0
    both = 2.0 * noncentrality + pair.freedom
    stretch = np.sqrt((2.0 * noncentrality * found + pair.freedom) / both)
    moved = np.maximum(middle + stretch * (ends - middle), 0.0)
    low, high = strength(0.5 * scale * moved**2 / n).tolist()
    return (low if ends[0] > 0.0 else 0.0), high


def interval_of_numbers(
    correlation: float, scale: float, n: float, level: float
) -> tuple[float, float]:
    """The interval of two numbers, by Fisher's z, whose variance is scale / n.

    Examples
    --------
    >>> [round(end, 2) for end in interval_of_numbers(0.3, 1.0, 400.0, 0.95)]
    [0.21, 0.39]
    """
    z = np.arctanh(min(abs(correlation), _LARGEST))
    ends = noncentralities(float(z**2 * n / scale), 1, level)
    low, high = np.tanh(np.sqrt(ends * scale / n)).tolist()
    return low, high


def noncentralities(statistic: float, freedom: int, level: float) -> Floats:
    """The smallest and the largest noncentrality that a chi-square statistic does not reject.

    Examples
    --------
    >>> noncentralities(100.0, 1, 0.95).round(1)
    array([ 64.7, 143. ])
    """
    error = 1.0 - level
    one_sided = max(ndtri(level), 0.0) ** 2 * np.sqrt(freedom)

    def too_small(noncentrality: float) -> float:
        """Probability that a statistic is too small for this noncentrality."""
        if noncentrality <= one_sided:
            return 0.0
        return float(0.5 * error * (1.0 - (one_sided / noncentrality) ** 2))

    def end(chance: float) -> float:
        """Where statistics up to this one have this probability and that of too small ones."""

        def more(at: float) -> float:
            return float(chndtr(statistic, freedom, at)) - chance - too_small(at)

        low, high = 0.0, 4.0 * (statistic + 10.0 * np.sqrt(statistic) + 50.0)
        if more(low) < 0.0:
            return low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if more(middle) >= 0.0 else (low, middle)
        return low

    return np.array([end(level), end(0.0)])
