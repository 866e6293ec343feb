"""A model and the margins of a table -> node terms that give the joint distribution these margins.

With the edges held fixed, the mean log likelihood is concave in the node terms, and its gradient
is the table's mean of the node statistics (x, -x^2 / 2, indicators; of a column whose own terms are
quadratic, its score and the square of that) less their expectation.  A solution exists and is
unique wherever every level has rows and every column varies.  Newton steps take the covariance of x
and the indicators exactly; that of the squares, which takes more than pairs of columns, from
states of y: all of them, or draws.

A model with spiked columns and the margins of a table -> node terms that have these, by chains.

As above, edges are fixed and the mean log likelihood is concave in the node terms.  Its
gradient and curvature, means and covariance of the node statistics, are those of rows that Gibbs
chains draw; the chains go on from step to step.  After some Newton steps the terms of the last ones
are averaged, which takes most of the noise out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mixedgm.base.errors import DistributionError, SamplingWarning, TooLargeError
from mixedgm.base.printable import number_of
from mixedgm.base.progress import announce, track
from mixedgm.base.threads import single_threaded_blas
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.covariance import Covariance, distinct
from mixedgm.joint.plan import LIMIT, chain_seconds, table_seconds
from mixedgm.joint.spiked import ChainState, SpikedColumns
from mixedgm.joint.validity import factor
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units

if TYPE_CHECKING:
    from mixedgm.joint.exact import Exact
    from mixedgm.joint.field import Gaussian
    from mixedgm.joint.gibbs import GradientChains


GOOD = 1e-6
"""Difference of exact margins up to which they count as equal."""
ACCURACY = 0.005
"""Standard error that sampled margins must not exceed."""

_TARGET = 1e-11
_MOST_STEPS = 200
_SHORTEST = 1e-12
_STATES = 2**12
_FEWEST_SWEEPS = 16
_MOST_SWEEPS = 8192
_EASY_SWEEPS = 1024  # most models are done by then; the others are announced
_CHANCE = 4.0
_STEP_TABLES = 48  # sets of tables that all Newton steps together are worth


def matched(params: Params, margins: Margins, *, limit: int = LIMIT) -> NodeTerms | None:
    """Node terms with which the joint distribution has the margins; None where there is none.

    Edges stay as they are; the node terms are where the search starts.  Margins are in the units
    of the parameters.  Beyond so many entries (`limit`) of the tables of exact expectations, these
    are sampled.  A SamplingWarning says where the margins could not be reached.

    Examples
    --------
    >>> params = Params.independent(Nodes.mixed(1, (2,)))
    >>> params.coef[0, 2] = params.coef[2, 0] = 1.0
    >>> margins = Margins(np.array([2.0, 0.75, 0.25]), np.array([4.0]))
    >>> from mixedgm.joint.exact import expectations
    >>> expected = expectations(matched(params, margins).put_into(params).joint)
    >>> expected.mean.round(9), expected.covariance.round(9), expected.share.round(9)
    (array([2.]), array([[4.]]), array([0.75, 0.25]))
    """
    if params.nodes.n_spiked:
        with single_threaded_blas():
            return matched_by_chains(params, margins)
    start = margins.units.to_standard(params)
    table = _Table(start.nodes, margins.share)
    try:
        with single_threaded_blas():
            try:
                point = _by_newton(start, table, limit)
            except TooLargeError:
                point = _by_chains(start, table)
    except DistributionError:
        return None
    _warn_unless_reached(point)
    terms = margins.units.to_own(
        replace(
            start,
            bias=np.concatenate([point.params.linear, point.terms]),
            diagonal=np.diagonal(point.params.precision).copy(),
        )
    )
    scale = margins.units.of_columns(start.nodes)
    small = len(scale) <= MOST_COLUMNS
    return NodeTerms(
        terms.bias,
        terms.diagonal,
        float((np.abs(point.off) + 2.0 * point.noise).max(initial=0.0)),
        point.sampled,
        point.covariance * np.outer(scale, scale) if small else None,
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """Means and variances of the node statistics in the table, in standardised units."""

    nodes: Nodes
    share: Floats
    """Shares of the values of discrete columns."""

    @cached_property
    def layout(self) -> Layout:
        """Node terms only."""
        return Layout.without_edges(self.nodes)

    @cached_property
    def mean(self) -> Floats:
        """(p + own terms,) means of x and of what multiplies the own terms of discrete columns."""
        return np.concatenate([np.zeros(self.nodes.n_gaussian), self.nodes.term_sums(self.share)])

    @cached_property
    def variance(self) -> Floats:
        """Variances of the statistics in `mean`."""
        nodes, p, share = self.nodes, self.nodes.n_gaussian, self.share
        if not nodes.n_scored:
            return np.concatenate([np.ones(p), share * (1.0 - share)])
        columns = nodes.statistics.columns[p:]
        variance = np.asarray(columns.multiply(columns).T @ share - (columns.T @ share) ** 2)
        variance[:p] = 1.0
        return np.asarray(variance[self.layout.term_column])

    @cached_property
    def absent(self) -> NDArray[np.bool_]:
        """(own terms,) whether each is of a level without rows."""
        out = np.zeros(len(self._is_free), dtype=bool)
        out[self._is_free] = self.share[self.nodes.free_values] == 0.0
        return out

    @cached_property
    def same_column(self) -> Floats:
        """Ones where two own terms are those of two levels of the same column."""
        nodes = self.nodes
        column = np.repeat(np.arange(len(nodes.n_levels)), nodes.n_biases[nodes.discrete])
        same = (column[:, None] == column) & self._is_free
        return np.asarray(same, dtype=np.float64)

    @cached_property
    def place(self) -> Ints:
        """Position of every x and own term among numbers and levels: its level, or the first."""
        nodes, free = self.nodes, self._is_free
        first = np.repeat(nodes.level_start[:-1], nodes.n_biases[nodes.discrete])
        first[free] = np.flatnonzero(nodes.free_values)
        return np.concatenate([np.arange(nodes.n_gaussian), nodes.n_gaussian + first])

    @cached_property
    def _is_free(self) -> NDArray[np.bool_]:
        """(own terms,) whether each is that of one level."""
        return np.repeat(self.nodes.free, self.nodes.n_biases[self.nodes.discrete])


@dataclass(frozen=True, eq=False)
class _Point:
    """Standardised parameters and what is expected of the node statistics there."""

    table: _Table
    terms: Floats
    """Own terms of discrete columns."""
    params: ConditionalGaussian
    given_y: Gaussian
    moments: tuple[Floats, Floats]
    """Means and second moments of the `statistics.columns`."""
    states: tuple[Ints, Floats]
    """States of y for the curvature, and what each counts."""
    value: float = np.nan
    """Negative mean log likelihood; unknown where expectations are sampled."""
    noise: Floats | float = 0.0
    """Standard errors of `off`."""
    entries: int = 0
    """Number of entries in the tables of exact expectations."""

    @cached_property
    def off(self) -> Floats:
        """(p + own terms + p,) expectations of the node statistics, less those of the table.

        The statistics are x, what multiplies own terms (indicators, for instance), and x^2.
        """
        return _difference(self.table, self.moments)

    @property
    def n_linear(self) -> int:
        """Number of x and of own terms of discrete columns."""
        return len(self.table.mean)

    @property
    def sampled(self) -> bool:
        return bool(np.isnan(self.value))

    @property
    def error(self) -> float:
        return float(np.abs(self.off).max(initial=0.0))

    @property
    def covariance(self) -> Floats:
        """(d, d) covariance of the design columns."""
        d = self.table.nodes.n_columns
        return self._covariance(np.arange(d))

    def _covariance(self, columns: Ints) -> Floats:
        mean, second = self.moments[0][columns], self.moments[1][np.ix_(columns, columns)]
        return np.asarray(second - np.outer(mean, mean))

    def direction(self) -> Floats:
        """The Newton step, in the order of `off`; the last part is about the diagonal of B.

        The squares are split into what x and the indicators predict of them and a rest: the
        covariance of x and the indicators is exact, that of the rest comes from states of y.
        """
        linear, square = self.off[: self.n_linear], -0.5 * self.off[self.n_linear :]
        first = -_solved(self._linear_curvature(), linear)
        if len(square) == 0:
            return first
        slope, rest = self._squares()
        last = -_solved(rest, square - slope @ linear)
        return np.concatenate([first - slope.T @ last, last])

    def _linear_curvature(self) -> Floats:
        """The covariance, where it is degenerate or far from the table's made larger.

        Indicators of one column sum to one, which leaves a direction without curvature and without
        gradient.  A level that is much rarer than in the table would ask for a huge step.
        """
        p, table = self.params.n_numbers, self.table
        out = self._covariance(table.layout.term_column)
        floor = np.maximum(table.variance - np.diagonal(out), 0.0) + 1e-12
        floor[p:] += table.absent
        out[np.diag_indices(len(out))] += floor
        out[p:, p:] += table.same_column
        return out

    def _squares(self) -> tuple[Floats, Floats]:
        """Slopes of -x^2 / 2 on x and the indicators, and the covariance of what is left."""
        p, layout = self.params.n_numbers, self.table.layout
        whole = Covariance.of(layout, self.states, self.given_y, self.moments).dense()
        linear = np.r_[layout.linear, layout.biases]
        among, mixed = whole[np.ix_(linear, linear)], whole[layout.diagonal, :][:, linear]
        among[p:, p:] += self.table.same_column
        among[np.diag_indices(len(among))] += 1e-9
        slope = _solved(among, mixed.T).T
        return slope, whole[layout.diagonal, layout.diagonal] - slope @ mixed.T

    def moved(self, step: Floats) -> tuple[Floats, ConditionalGaussian]:
        """The own terms and the parameters after a step."""
        p, m = self.params.n_numbers, self.n_linear
        precision = self.params.precision.copy()
        precision[np.diag_indices(p)] += step[m:]
        linear, terms = self.params.linear + step[:p], self.terms + step[p:m]
        bias = self.table.nodes.own_logits(terms)
        return terms, replace(self.params, precision=precision, linear=linear, bias=bias)


def _difference(table: _Table, moments: tuple[Floats, Floats]) -> Floats:
    mean, second = moments
    square = np.diagonal(second)[: table.nodes.n_gaussian]
    return np.concatenate([mean[table.layout.term_column] - table.mean, square - 1.0])


def _solved(matrix: Floats, right: Floats) -> Floats:
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        raise DistributionError("margins so large or small cannot be matched")
    try:
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), right))
    except np.linalg.LinAlgError:  # numbers too far apart for double precision
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


# -- exact expectations ----------------------------------------------------------------------------


def _by_newton(start: Params, table: _Table, limit: int) -> _Point:
    """Newton steps, each as long as the likelihood grows."""
    point = _exact(table, start.cat_bias, start.joint, limit)
    seconds = _STEP_TABLES * table_seconds(point.entries)
    announce_matching(seconds, f"from tables of {point.entries:,} entries")
    # An iterator has no length: how many steps there will be is not known.
    for _ in track(iter(range(_MOST_STEPS)), what=MATCHING, seconds=seconds):
        if point.error <= _TARGET:
            break
        following = _step(point)
        if following is None:
            break
        point = following
    return point


def _exact(table: _Table, terms: Floats, params: ConditionalGaussian, limit: int = LIMIT) -> _Point:
    from mixedgm.joint.exact import exact, moments_from

    model, share = exact(params, limit=limit), table.share
    possible = share > 0.0
    observed = 0.5 * np.trace(params.precision) - params.bias[possible] @ share[possible]
    value = float(model.log_partition + observed)
    expected = moments_from(model.given_y, model.tree.pairs[0])
    moments = table.nodes.statistics.moments(expected.column_mean, expected.column_second)
    states, entries = _states(model), model.tree.plan.entries
    return _Point(table, terms, params, model.given_y, moments, states, value, entries=entries)


def _states(model: Exact) -> tuple[Ints, Floats]:
    """All states of y and their probabilities, or draws where there are too many."""
    from mixedgm.joint.exact import all_states

    field = model.tree.field
    if prod(field.n_levels) > _STATES:
        drawn = model.tree.draw(_STATES, np.random.default_rng(0))
        return distinct(drawn, field.n_declared)
    codes, probability = all_states(model)
    for j, labels in enumerate(field.labels):
        codes[:, j] = labels[codes[:, j]]
    return codes, probability


def _step(point: _Point) -> _Point | None:
    """The next point; None where no step along the Newton direction is any better."""
    move, m = point.direction(), point.n_linear
    slope = point.off[:m] @ move[:m] - 0.5 * point.off[m:] @ move[m:]
    length = 1.0
    while length > _SHORTEST:
        try:
            there = _exact(point.table, *point.moved(length * move))
        except DistributionError:  # the precision is not positive definite there
            length *= 0.5
            continue
        if point.error < GOOD:  # the value has no digits left to judge by
            return there if there.error < 0.9 * point.error else None
        if there.value <= point.value + 1e-4 * length * slope:
            return there
        length *= 0.5
    return None


# -- sampled expectations --------------------------------------------------------------------------


def _by_chains(start: Params, table: _Table) -> _Point:
    """Newton steps by Gibbs chains that go on from step to step, longer where nothing is left."""
    from mixedgm.joint.gibbs import GradientChains

    chains, sweeps = GradientChains(np.random.default_rng(0)), _FEWEST_SWEEPS
    terms, params = start.cat_bias, start.joint
    size = params.n_levels, chains.n_chains, _MOST_SWEEPS - _EASY_SWEEPS
    seconds = chain_seconds(*size, by_scores=params.seen is not None)
    steps, easy = track(count(), what=MATCHING, seconds=seconds), True
    while True:
        next(steps)
        if easy and chains.sweeps >= _EASY_SWEEPS:
            easy = False
            announce_matching(seconds, chains_over(params.n_levels), at_most=True)
        point = _estimated(table, terms, params, chains, sweeps)
        # Whether all that is left may be chance.
        settled = np.all(np.abs(point.off) <= _CHANCE * point.noise + _TARGET)
        precise = np.max(point.noise, initial=0.0) <= ACCURACY
        if (settled and precise) or chains.sweeps >= _MOST_SWEEPS:
            return point
        if settled:
            sweeps *= 2
        terms, params = _within_reach(point)


def _estimated(
    table: _Table,
    terms: Floats,
    params: ConditionalGaussian,
    chains: GradientChains,
    sweeps: int,
) -> _Point:
    from mixedgm.joint.field import gaussian

    given_y = gaussian(params)
    by_batch, moments, states = chains.moments(table.nodes, params, given_y, sweeps)
    batches = [_difference(table, one) for one in by_batch]
    noise = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    some = distinct(states, params.n_levels)
    return _Point(table, terms, params, given_y, moments, some, noise=noise)


def _within_reach(point: _Point) -> tuple[Floats, ConditionalGaussian]:
    """Own terms and parameters after a step that is not too long for what is known here."""
    from mixedgm.joint.field import gaussian

    move = point.direction()
    length = min(1.0, 2.0 / max(float(np.abs(move).max(initial=0.0)), 1e-300))
    while length > _SHORTEST:
        there = point.moved(length * move)
        try:
            gaussian(there[1])
        except DistributionError:
            length *= 0.5
        else:
            return there
    return point.terms, point.params


def _warn_unless_reached(point: _Point) -> None:
    """Warn where the margins are further from the table's than they should be."""
    far = np.abs(point.off) > (_CHANCE * point.noise + _TARGET if point.sampled else GOOD)
    far |= point.noise > 4.0 * ACCURACY
    if not far.any():
        return
    size = np.where(far, np.abs(point.off), 0.0)
    worst = int(size.argmax())
    message = (
        "the joint distribution could not be given the margins of the table: it is off by up to "
        f"{size[worst]:.2g} at {{places}} (probabilities; means and variances of standardised "
        "columns), and so are its answers. To change it: a larger lam, which makes edges weaker"
    )
    place = worst % point.n_linear  # the squares come last, in the order of the numbers
    warnings.warn(SamplingWarning(message, (int(point.table.place[place]),)), stacklevel=4)


# -- margins of a table ----------------------------------------------------------------------------

MOST_COLUMNS = 200
"""Design columns up to which the moments of pairs of columns are kept: 320 kB."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Means and variances of a table's columns and, where it is small, covariances."""

    mean: Floats
    """(d,) means of the design columns: the numbers (normal scores where a column has a transform;
    scores of ordinal columns and counts), then all declared levels of categories, whose means are
    their shares of the rows."""
    variance: Floats
    """Variances of the numbers, scores included, with divisor n.  A constant column has that of its
    node term, as in the fit."""
    covariance: Floats | None = None
    """(d, d) covariance of the design columns; None for more than `MOST_COLUMNS` of them."""
    shares: Floats | None = None
    """(sum of values,) shares of the values of all discrete columns; None where these are the
    design columns that are not numbers."""

    @classmethod
    def of(
        cls,
        moments: tuple[Floats, Floats | None, Floats],
        units: Units,
        observed: NDArray[np.bool_],
        nodes: Nodes,
    ) -> Margins:
        """Compute margins from means of z (c,) and z z' (c, c), and shares, of standardised rows.

        The means of z z' may be left out where d is more than `MOST_COLUMNS`.

        The shares are of the observed values; `observed` says for all values of `nodes` which they
        are.
        """
        (mean, second, observed_shares), d = moments, nodes.n_columns
        kept, scale = nodes.columns_kept(observed), units.of_columns(nodes.kept(observed))
        columns, covariance, shares = np.zeros(d), None, None
        columns[kept] = scale * mean
        columns[nodes.numeric] += units.centre
        if d <= MOST_COLUMNS and second is not None:
            covariance = np.zeros((d, d))
            spread = (second - np.outer(mean, mean)) * np.outer(scale, scale)
            covariance[np.ix_(kept, kept)] = spread
        if nodes.first_indicator:
            there = columns[nodes.spiked_terms[1]]
            of_spiked = np.column_stack([1.0 - there, there]).ravel()
            shares = np.zeros(len(observed))
            shares[observed] = np.concatenate([of_spiked, observed_shares[3 * nodes.n_spiked :]])
        return cls(columns, units.scale**2, covariance, shares)

    @property
    def units(self) -> Units:
        """Units in which numbers and scores have mean 0 and variance 1."""
        return Units(self.mean[: len(self.variance)], np.sqrt(self.variance))

    @property
    def share(self) -> Floats:
        """(sum of values,) shares of the values of discrete columns."""
        return self.mean[len(self.variance) :] if self.shares is None else self.shares


@dataclass(frozen=True, eq=False)
class NodeTerms:
    """Node terms with which a joint distribution has the margins of a table."""

    bias: Floats
    """Linear terms and biases of levels, in place of those fitted."""
    diagonal: Floats
    """(p,) diagonal of the precision, in place of the one fitted."""
    error: float
    """Largest difference left between the margins: of probabilities, and of means and variances of
    standardised columns.  Sampled ones: the largest that is likely."""
    sampled: bool = False
    """Whether expectations came from Gibbs chains."""
    covariance: Floats | None = None
    """(d, d) covariance of the design columns under the joint distribution; None for more than
    `MOST_COLUMNS`."""

    def put_into(self, params: Params) -> Params:
        """Return parameters with these node terms and unchanged edges."""
        return replace(params, bias=self.bias, diagonal=self.diagonal)


# -- margins with spiked columns -------------------------------------------------------------------

MATCHING = "matching margins"
"""Name of the progress bar."""
MOST_TERMS = 1000
"""Node terms up to which margins are matched: their covariance is that of drawn rows."""

_CHAINS = 256
_BURN_IN = 100
_KEPT = 40
_THIN = 2
_STEPS = 6
_AVERAGED = 12
_LONGEST = 1.0
_FAR = 0.1


def matched_by_chains(
    params: Params, margins: Margins, *, limit: int = MOST_TERMS
) -> NodeTerms | None:
    """Node terms with which the joint distribution has the margins, nearly; None where it has none.

    Parameters and margins are in own units.  Beyond so many terms (`limit`) there is no search.
    """
    target = _target(params.nodes, margins)
    terms = _terms(params)
    if len(terms) > limit:
        return None
    rng, sweeps = np.random.default_rng(0), _BURN_IN + _THIN * _KEPT * (_STEPS + _AVERAGED + 5)
    seconds = chain_seconds(params.n_levels, _CHAINS, sweeps, by_scores=True)
    announce_matching(seconds, chains_over(params.n_levels))
    try:
        state = SpikedColumns.of(params, KnownColumns.none()).begin(_CHAINS, rng)
        rows = _drawn(params, state, rng, _BURN_IN)
        scale, free = rows.std(axis=0), np.isfinite(terms) & (rows.std(axis=0) > 0.0)
        kept = []
        for step in track(range(_STEPS + _AVERAGED), what=MATCHING, seconds=seconds):
            terms = _moved(params, terms, _newton(rows, target, scale, free))
            if step >= _STEPS:
                kept.append(terms)
            rows = _drawn(_with_terms(params, terms), state, rng)
        result = _with_terms(params, _possible(params, np.mean(kept, axis=0), terms))
        rows = np.vstack([_drawn(result, state, rng, _KEPT) for _ in range(4)])
    except DistributionError:
        return None
    off = (rows.mean(axis=0) - target) / np.where(scale > 0.0, scale, 1.0)
    by_chain = rows.reshape(-1, _CHAINS, len(target)).mean(axis=0)
    noise = by_chain.std(axis=0, ddof=1) / np.sqrt(_CHAINS) / np.where(scale > 0.0, scale, 1.0)
    error = float((np.abs(off) + 2.0 * noise)[free].max(initial=0.0))
    if error > _FAR:
        message = (
            "the joint distribution could not be given the margins of the table: it is off by up "
            f"to {error:.2g} standard deviations, and so are its answers. To change it: a larger "
            "lam, which makes edges weaker"
        )
        warnings.warn(SamplingWarning(message), stacklevel=4)
    return NodeTerms(result.bias, result.diagonal, error, sampled=True)


def announce_matching(seconds: float, how: str, *, at_most: bool = False) -> None:
    """Announce a search for node terms that takes long."""
    what = f"the first question to this model, which matches the table's margins {how},"
    remedy = (
        "save the model after it, with what was found; or a model with fewer edges or values (a "
        "larger lam, rare levels merged)"
    )
    announce(seconds, what, remedy, at_most=at_most)


def chains_over(n_levels: Sequence[int]) -> str:
    """Return what Gibbs chains have to redraw, as text."""
    columns = number_of(len(n_levels), "column")
    return f"by Gibbs chains ({sum(n_levels):,} values of {columns})"


def _terms(params: Params) -> Floats:
    """Own linear terms, with the diagonal of the precision at the end."""
    return np.concatenate([params.bias, params.diagonal])


def _with_terms(params: Params, terms: Floats) -> Params:
    n = len(params.bias)
    return replace(params, bias=terms[:n], diagonal=terms[n:])


def _target(nodes: Nodes, margins: Margins) -> Floats:
    """Means of what multiplies the terms, in the table."""
    p, mean, variance, share = nodes.n_gaussian, margins.mean, margins.variance, margins.share
    square = variance + mean[: len(variance)] ** 2
    parts = [mean[:p]]
    for column in nodes.spiked_terms[1].tolist():
        parts.append(np.array([mean[column], mean[column + 1], -0.5 * square[column + 1]]))
    for j in range(nodes.n_spiked, len(nodes.n_levels)):
        shares = share[nodes.levels_of(j)]
        scored = j < nodes.first_indicator and not nodes.free[j]
        parts.append(nodes.term_features(j).T @ shares if scored else shares)
    return np.concatenate([*parts, -0.5 * square[:p]])


def _drawn(params: Params, state: ChainState, rng: np.random.Generator, first: int = 0) -> Floats:
    """(rows, terms) statistics of the terms, in rows that the chains go on to draw."""
    model, nodes = SpikedColumns.of(params, KnownColumns.none()), params.nodes
    model.sweep(state, first, rng)
    blocks = []
    for _ in range(_KEPT):
        model.sweep(state, _THIN, rng)
        real, codes = model.drawn(state, rng), state.codes
        every = nodes.own_statistics(real, codes)
        squares = [every[0][:, 1]] if nodes.gaussian_nodes[0] else []
        parts = [every[0][:, 0], *every[1:]] if squares else every
        flat = [part.reshape(-1, len(codes)) for part in (*parts, *squares)]
        blocks.append(np.concatenate(flat).T)
    return np.vstack(blocks)


def _newton(rows: Floats, target: Floats, scale: Floats, free: NDArray[np.bool_]) -> Floats:
    """The Newton step of the free terms, no longer than the means move by one deviation."""
    units = scale[free]
    if not (np.isfinite(rows).all() and np.isfinite(target).all()):
        raise DistributionError("margins so large or small cannot be matched")
    z = (rows[:, free] - target[free]) / units
    off = z.mean(axis=0)
    covariance = np.cov(z.T).reshape(len(units), len(units))
    covariance[np.diag_indices(len(units))] += 1e-6
    step = np.linalg.lstsq(covariance, -off, rcond=1e-8)[0]
    size = float(np.abs(off).max(initial=0.0))
    out = np.zeros(len(scale))
    out[free] = min(1.0, _LONGEST / max(size, 1e-12)) * step / units
    return out


def _moved(params: Params, terms: Floats, step: Floats) -> Floats:
    """The terms after a step, or after a part of it: the first half that leaves a distribution."""
    return _possible(params, terms + step, terms)


def _possible(params: Params, wanted: Floats, terms: Floats) -> Floats:
    """Return the wanted terms, or a point on the way from `terms` that has a distribution."""
    finite = np.isfinite(terms)
    for _ in range(30):
        moved = _with_terms(params, wanted)
        if (moved.precisions > 0.0).all():
            try:
                factor(moved.real_precision)
            except DistributionError:
                pass
            else:
                return wanted
        wanted = np.where(finite, 0.5 * (wanted + np.where(finite, terms, 0.0)), terms)
    return terms
