"""A model and the margins of a table -> node terms that give the joint distribution these margins.

With the edges held fixed, the mean log likelihood is concave in the node terms, and its gradient
is the table's mean of the node statistics (x, -x^2 / 2, indicators) less their expectation.  A
solution exists and is unique wherever every level has rows and every column varies.  Newton steps
take the covariance of x and the indicators exactly; that of the squares, which takes more than
pairs of columns, from states of y: all of them, or draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixedgm.errors import DistributionError, SamplingWarning, TooLargeError
from mixedgm.joint.plan import LIMIT
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.margins import MOST_COLUMNS, Margins, NodeTerms
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.objective.covariance import Covariance, distinct
from mixedgm.rows.threads import single_threaded_blas

if TYPE_CHECKING:
    from mixedgm.joint.exact import Exact
    from mixedgm.joint.field import Gaussian
    from mixedgm.joint.moments import Expectations
    from mixedgm.objective.sampled import GradientChains

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
_CHANCE = 4.0


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
    >>> from mixedgm.joint import expectations
    >>> expected = expectations(matched(params, margins).put_into(params).joint)
    >>> expected.mean.round(9), expected.covariance.round(9), expected.share.round(9)
    (array([2.]), array([[4.]]), array([0.75, 0.25]))
    """
    start = margins.units.to_standard(params)
    try:
        with single_threaded_blas():
            try:
                point = _by_newton(start.joint, margins.share, limit)
            except TooLargeError:
                point = _by_chains(start.joint, margins.share)
    except DistributionError:
        return None
    _warn_unless_reached(point)
    standard = replace(
        start,
        bias=np.concatenate([point.params.linear, point.params.bias]),
        diagonal=np.diagonal(point.params.precision).copy(),
    )
    terms = margins.units.to_own(standard)
    scale = np.concatenate([margins.units.scale, np.ones(len(margins.share))])
    small = len(scale) <= MOST_COLUMNS
    return NodeTerms(
        terms.bias,
        terms.diagonal,
        float((np.abs(point.off) + 2.0 * point.noise).max(initial=0.0)),
        point.sampled,
        point.covariance * np.outer(scale, scale) if small else None,
    )


@dataclass(frozen=True, eq=False)
class _Point:
    """Standardised parameters and what is expected of the node statistics there."""

    params: ConditionalGaussian
    given_y: Gaussian
    pairs: Floats
    """Probabilities of pairs of levels."""
    states: tuple[Ints, Floats]
    """States of y for the curvature, and what each counts."""
    share: Floats
    """The table's shares of the levels."""
    value: float = np.nan
    """Negative mean log likelihood; unknown where expectations are sampled."""
    noise: Floats | float = 0.0
    """Standard errors of `off`."""

    @cached_property
    def expected(self) -> Expectations:
        from mixedgm.joint.moments import moments_from

        return moments_from(self.given_y, self.pairs)

    @cached_property
    def off(self) -> Floats:
        """(p + K + p,) expectations of x, of levels and of x^2, less those of the table."""
        return _difference(self.expected, self.share)

    @property
    def n_columns(self) -> int:
        return len(self.expected.column_mean)

    @property
    def sampled(self) -> bool:
        return bool(np.isnan(self.value))

    @property
    def error(self) -> float:
        return float(np.abs(self.off).max(initial=0.0))

    @property
    def covariance(self) -> Floats:
        """(p + K, p + K) covariance of x and the indicators."""
        mean = self.expected.column_mean
        return self.expected.column_second - np.outer(mean, mean)

    def direction(self) -> Floats:
        """The Newton step, in the order of `off`; the last part is about the diagonal of B.

        The squares are split into what x and the indicators predict of them and a rest: the
        covariance of x and the indicators is exact, that of the rest comes from states of y.
        """
        linear, square = self.off[: self.n_columns], -0.5 * self.off[self.n_columns :]
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
        p = self.params.n_gaussian
        out = self.covariance
        table = np.concatenate([np.ones(p), self.share * (1.0 - self.share)])
        floor = np.maximum(table - np.diagonal(out), 0.0) + 1e-12
        floor[p:] += self.share == 0.0
        out[np.diag_indices(len(out))] += floor
        out[p:, p:] += _same_column(self.params)
        return out

    def _squares(self) -> tuple[Floats, Floats]:
        """What x and the indicators say about -x^2 / 2, and the covariance of what they do not."""
        p = self.params.n_gaussian
        nodes = Layout.without_edges(Nodes.mixed(p, self.params.n_levels))
        whole = Covariance.of(nodes, self.states, self.given_y, self.expected).dense()
        linear = np.r_[nodes.linear, nodes.biases]
        among, mixed = whole[np.ix_(linear, linear)], whole[nodes.diagonal, :][:, linear]
        among[p:, p:] += _same_column(self.params)
        among[np.diag_indices(len(among))] += 1e-9
        slope = _solved(among, mixed.T).T
        return slope, whole[nodes.diagonal, nodes.diagonal] - slope @ mixed.T

    def moved(self, step: Floats) -> ConditionalGaussian:
        """The parameters after a step."""
        p, d = self.params.n_gaussian, self.n_columns
        precision = self.params.precision.copy()
        precision[np.diag_indices(p)] += step[d:]
        linear, bias = self.params.linear + step[:p], self.params.bias + step[p:d]
        return replace(self.params, precision=precision, linear=linear, bias=bias)


def _difference(expected: Expectations, share: Floats) -> Floats:
    square = np.diagonal(expected.second)
    return np.concatenate([expected.mean, expected.share - share, square - 1.0])


def _same_column(params: ConditionalGaussian) -> Floats:
    """Ones where two levels belong to the same column."""
    column = np.repeat(np.arange(len(params.n_levels)), params.n_levels)
    return np.asarray(column[:, None] == column, dtype=np.float64)


def _solved(matrix: Floats, right: Floats) -> Floats:
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        raise DistributionError("margins so large or small cannot be matched")
    try:
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), right))
    except np.linalg.LinAlgError:  # numbers too far apart for double precision
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


# -- exact expectations ----------------------------------------------------------------------------


def _by_newton(start: ConditionalGaussian, share: Floats, limit: int) -> _Point:
    """Newton steps, each as long as the likelihood grows."""
    point = _exact(start, share, limit)
    for _ in range(_MOST_STEPS):
        if point.error <= _TARGET:
            break
        following = _step(point)
        if following is None:
            break
        point = following
    return point


def _exact(params: ConditionalGaussian, share: Floats, limit: int = LIMIT) -> _Point:
    from mixedgm.joint.exact import exact

    model = exact(params, limit=limit)
    possible = share > 0.0
    table = 0.5 * np.trace(params.precision) - params.bias[possible] @ share[possible]
    value = float(model.log_partition + table)
    return _Point(params, model.given_y, model.tree.pairs[0], _states(model), share, value)


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
    move = point.direction()
    d = point.n_columns
    slope = point.off[:d] @ move[:d] - 0.5 * point.off[d:] @ move[d:]
    length = 1.0
    while length > _SHORTEST:
        try:
            there = _exact(point.moved(length * move), point.share)
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


def _by_chains(start: ConditionalGaussian, share: Floats) -> _Point:
    """Newton steps by Gibbs chains that go on from step to step, longer where nothing is left."""
    from mixedgm.objective.sampled import GradientChains

    chains, sweeps, params = GradientChains(np.random.default_rng(0)), _FEWEST_SWEEPS, start
    while True:
        point = _estimated(params, share, chains, sweeps)
        # Whether all that is left may be chance.
        settled = np.all(np.abs(point.off) <= _CHANCE * point.noise + _TARGET)
        precise = np.max(point.noise, initial=0.0) <= ACCURACY
        if (settled and precise) or chains.sweeps >= _MOST_SWEEPS:
            return point
        if settled:
            sweeps *= 2
        params = _within_reach(point)


def _estimated(
    params: ConditionalGaussian, share: Floats, chains: GradientChains, sweeps: int
) -> _Point:
    from mixedgm.joint.field import gaussian
    from mixedgm.joint.moments import moments_from

    given_y = gaussian(params)
    pairs, states = chains.run(params, sweeps)
    batches = [_difference(moments_from(given_y, one), share) for one in pairs]
    noise = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    some = distinct(states, params.n_levels)
    return _Point(params, given_y, pairs.mean(axis=0), some, share, noise=noise)


def _within_reach(point: _Point) -> ConditionalGaussian:
    """The parameters after a step that is not too long for what is known here."""
    from mixedgm.joint.field import gaussian

    move = point.direction()
    length = min(1.0, 2.0 / max(float(np.abs(move).max(initial=0.0)), 1e-300))
    while length > _SHORTEST:
        there = point.moved(length * move)
        try:
            gaussian(there)
        except DistributionError:
            length *= 0.5
        else:
            return there
    return point.params


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
    place = worst % point.n_columns  # the squares come last, in the order of the numbers
    warnings.warn(SamplingWarning(message, (place,)), stacklevel=4)
