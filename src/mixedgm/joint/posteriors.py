"""Rows with the same columns known -> the distribution of their other columns, row by row.

A model and rows with the same columns known -> the fields of their unknown states.

Knowing some columns leaves the family: the interactions among the others stay as they are, and
every known value adds its terms to their biases.  The rows' models share all interactions, so
their trees are worked through side by side, and so are their Gibbs chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from mixedgm.base.errors import DistributionError
from mixedgm.base.progress import track
from mixedgm.families.gaussian import LOG_TWO_PI, log_normal
from mixedgm.joint.conditioning import KnownColumns, among, columns_of, levels_of, log_weight
from mixedgm.joint.exact import exact, log_partition, renumbered, side_by_side
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.gibbs import Codes, random_start, runs_of, sweep
from mixedgm.joint.kernels import add_level_rows, count_levels
from mixedgm.joint.plan import LIMIT, begin_chains
from mixedgm.joint.sampled import Method, check_method, exact_if_possible, refuse_exact
from mixedgm.joint.spiked import SpikedColumns
from mixedgm.joint.tree import Tree
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Posterior:
    """The unknown numbers and states of n rows."""

    numbers: Ints
    discrete: Ints
    """Positions of the unknown numbers and states."""
    mean: Floats
    """(n, p') means of the unknown numbers."""
    variance: Floats
    """(n, p') variances of the unknown numbers, including the spread of the unknown states."""
    levels: Floats
    """(n, sum of unknown levels) probabilities of the levels of the unknown states."""
    log_weight: Floats
    """(n,) log density of the known values, up to the log partition function of the whole model:
    subtract that to have the density.  NaN when sampled."""
    exact: bool
    """False when it was sampled."""
    levels_error: Floats
    """(n, sum of unknown levels) standard errors of the probabilities; zero when exact."""


def posterior(
    params: ConditionalGaussian | Params,
    known: KnownColumns,
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Posterior:
    """Means, variances and level probabilities of the unknown columns of every row.

    The precision of the unknown numbers must be positive definite.  Method "auto" is exact when
    the tables of one row have at most `limit` entries, else sampled; `rng` is used when sampling,
    by default with a fixed seed.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 2))
    >>> params.shift[0] = [0.0, 4.0, 0.0, 0.0]
    >>> found = posterior(params, KnownColumns([], [1], np.zeros((1, 0)), np.array([[0]])))
    >>> found.mean.round(3), found.levels.round(2)
    (array([[3.999]]), array([[0., 1.]]))
    """
    check_method(method)
    if isinstance(params, Params):
        return _spiked_posterior(params, known, method, rng or np.random.default_rng(0))
    unknown = UnknownColumns.of(params, known)
    answer = exact_if_possible(method, lambda: _exact(unknown, limit))
    if answer is not None:
        return answer
    levels, error, spread = unknown.sample(rng or np.random.default_rng(0))
    return _posterior(unknown, levels, spread, np.full(len(levels), np.nan), error)


def _spiked_posterior(
    params: Params, known: KnownColumns, method: Method, rng: np.random.Generator
) -> Posterior:
    refuse_exact(params, method)
    unknown = SpikedColumns.of(params, known)
    mean, variance, levels, error = unknown.moments(rng)
    nodes = params.nodes
    given = nodes.nodes_at(known.numbers, known.discrete)
    places = nodes.places(np.setdiff1d(np.arange(len(nodes)), given))
    numbers, discrete = (np.array(part, dtype=np.int64) for part in places)
    weight = np.full(len(levels), np.nan)
    return Posterior(numbers, discrete, mean, variance, levels, weight, False, error)


def _exact(unknown: UnknownColumns, limit: int) -> Posterior:
    levels, log_z = np.empty(unknown.unary.shape), np.empty(len(unknown.unary))
    spread = np.zeros(unknown.start.shape)
    shift = unknown.given_y.shift
    for block, tree in unknown.trees(limit, pairs=spread.size > 0):
        levels[block], log_z[block] = tree.levels, tree.log_z
        if spread.size:
            spread[block] = tree.variance_of(shift)
    return _posterior(unknown, levels, spread, unknown.log_constant + log_z)


def _posterior(
    unknown: UnknownColumns,
    levels: Floats,
    spread: Floats,
    log_weight: Floats,
    levels_error: Floats | None = None,
) -> Posterior:
    """The result from level probabilities and the variance of E[x | y]; exact without errors."""
    return Posterior(
        unknown.numbers,
        unknown.discrete,
        unknown.start + levels @ unknown.given_y.shift,
        np.diagonal(unknown.given_y.covariance) + np.maximum(spread, 0.0),
        levels,
        log_weight,
        levels_error is None,
        np.zeros_like(levels) if levels_error is None else levels_error,
    )


def log_marginal(params: ConditionalGaussian, known: KnownColumns, *, limit: int = LIMIT) -> Floats:
    """(n,) log density of the known columns, the others integrated and summed out.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 4))
    >>> np.exp(log_marginal(params, KnownColumns([], [1], np.zeros((1, 0)), np.array([[3]]))))
    array([0.25])
    """
    log_weight = UnknownColumns.of(params, known).log_weight(limit)
    return np.asarray(log_weight - exact(params, limit=limit).log_partition)


def posterior_draw(
    params: ConditionalGaussian | Params,
    known: KnownColumns,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    sweeps: int = 200,
    limit: int = LIMIT,
) -> tuple[Floats, NDArray[np.int32]]:
    """One draw of the unknown numbers and codes of every row, in the order of their positions.

    Method "auto" is exact when the tables of one row have at most `limit` entries; else each row
    ends a Gibbs chain of `sweeps`.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> known = KnownColumns([0], [0], np.zeros((5, 1)), np.zeros((5, 1), int))
    >>> x, y = posterior_draw(params, known, rng=np.random.default_rng(0))
    >>> x.shape, y.shape
    ((5, 0), (5, 1))
    """
    check_method(method)
    if isinstance(params, Params):
        refuse_exact(params, method)
        return SpikedColumns.of(params, known).draw(sweeps, rng)
    unknown = UnknownColumns.of(params, known)
    codes = exact_if_possible(method, lambda: unknown.draw_exactly(rng, limit))
    if codes is None:
        codes = unknown.draw_by_gibbs(sweeps, rng)
    values = rng.standard_normal(unknown.start.shape) @ unknown.given_y.factor.root
    values += unknown.start
    add_level_rows(values, codes, unknown.field.level_start, unknown.given_y.shift)
    return np.asarray(values), codes


def log_density_of(
    params: ConditionalGaussian | Params,
    number: int,
    values: Floats,
    known: KnownColumns,
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> tuple[Floats, bool]:
    """(n,) log density of an unknown number at `values`, and whether it is exact.

    All other unknown columns are integrated out; where states are unknown, it is a mixture of
    normal densities, which Gibbs chains average over.  `method`, `rng` and `limit` are as for
    `posterior`.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2,))
    >>> params.shift[0] = [-1.0, 1.0]
    >>> nothing = KnownColumns.none(2)
    >>> found, exact = log_density_of(params, 0, np.array([0.0, 1.0]), nothing)
    >>> np.exp(found).round(3), exact
    (array([0.242, 0.226]), True)
    """
    check_method(method)
    if isinstance(params, Params):
        refuse_exact(params, method)
        return _spiked_log_density(params, number, values, known, rng), False
    without = UnknownColumns.of(params, known, known_terms=False)
    at = int(np.flatnonzero(without.numbers == number)[0])

    def exactly() -> Floats:
        extended = KnownColumns(
            [*known.numbers, number],
            known.discrete,
            np.column_stack([known.values, values]),
            known.codes,
        )
        having = UnknownColumns.of(params, extended, known_terms=False)
        linear = without.linear[:, at] - 0.5 * params.precision[number, number] * values
        density = having.log_weight(limit) - without.log_weight(limit) + linear * values
        return np.asarray(density)

    density = exact_if_possible(method, exactly)
    if density is not None:
        return density, True
    return without.sample_log_density(at, values, rng or np.random.default_rng(0)), False


def _spiked_log_density(
    params: Params,
    number: int,
    values: Floats,
    known: KnownColumns,
    rng: np.random.Generator | None,
) -> Floats:
    given = params.nodes.nodes_at(known.numbers, known.discrete)
    at = number - int(np.searchsorted(given, number))
    unknown = SpikedColumns.of(params, known)
    return unknown.log_density(at, values, rng or np.random.default_rng(0))


# -- unknown columns -------------------------------------------------------------------------------

# Chains of every row, their sweeps before and while they are counted, and rows worked on at once.
_CHAINS = 16
_BURN_IN = 100
_KEPT = 100
_BLOCK = 2**12
_ENTRIES = 2**22
# Counts of values in all chains of a block: 128 MiB.
_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class LoneState:
    """A single state of b rows, from the biases (b, levels): what a tree says, without tables."""

    unary: Floats

    @cached_property
    def log_z(self) -> Floats:
        """(b,) logarithms of the partition functions."""
        return np.asarray(logsumexp(self.unary, axis=1))

    @cached_property
    def levels(self) -> Floats:
        """(b, levels) probabilities."""
        return np.exp(self.unary - self.log_z[:, None])

    def variance_of(self, shift: Floats) -> Floats:
        """(b, k) variances of what each level adds, (levels, k)."""
        return self.levels @ shift**2 - (self.levels @ shift) ** 2

    def covariance_of(self, shift: Floats) -> Floats:
        """(b, k, k) covariances of the same."""
        mean = self.levels @ shift
        second = np.einsum("bl,lj,lk->bjk", self.levels, shift, shift)
        return np.asarray(second - mean[:, :, None] * mean[:, None, :])

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """(n, 1) one exact draw for every row."""
        below = self.levels.cumsum(axis=1)
        passed = below < rng.random(n)[:, None] * below[:, -1:]
        return np.asarray(np.count_nonzero(passed, axis=1), dtype=np.int32)[:, None]


@dataclass(frozen=True, eq=False)
class UnknownColumns:
    """The unknown numbers and states of n rows, the numbers integrated out row by row."""

    numbers: Ints
    discrete: Ints
    """Positions of the unknown numbers and states in the whole model."""
    n_numbers: int
    """Numbers of the whole model."""
    linear: Floats
    """(n, p') linear terms of the unknown numbers."""
    given_y: Gaussian
    """Unknown numbers given the unknown states; its `start` is not used."""
    field: ConditionalGaussian
    """Parameters that the rows share: interactions, and which levels can occur."""
    start: Floats
    """(n, p') mean of x without the shift of any unknown level."""
    unary: Floats
    """(n, levels) biases of the unknown levels."""
    log_constant: Floats
    """(n,) constants from integration, and the terms of the known columns."""

    @classmethod
    def of(
        cls, params: ConditionalGaussian, known: KnownColumns, known_terms: bool = True
    ) -> UnknownColumns:
        """Condition on the known columns and integrate the unknown numbers out.

        Without `known_terms`, what the known ones say about each other is left out.

        Examples
        --------
        >>> params = ConditionalGaussian.independent(n_numbers=2, n_levels=(2,))
        >>> params.precision[0, 1] = params.precision[1, 0] = 0.5
        >>> known = KnownColumns([0], [], np.array([[2.0], [4.0]]), np.zeros((2, 0), int))
        >>> UnknownColumns.of(params, known).linear
        array([[-1.],
               [-2.]])
        """
        if params.seen is not None:
            known = known.in_order
        numbers, discrete = (np.asarray(k, np.int64) for k in (known.numbers, known.discrete))
        rest = np.setdiff1d(np.arange(params.n_numbers), numbers)
        left = np.setdiff1d(np.arange(len(params.n_levels)), discrete)
        inside, outside = levels_of(params, discrete), levels_of(params, left)
        values = np.ascontiguousarray(known.values, dtype=np.float64)
        inner, model = among(params, numbers, discrete), among(params, rest, left)
        linear = params.linear[rest] - values @ params.precision[np.ix_(numbers, rest)]
        shift = np.ascontiguousarray(params.shift[np.ix_(rest, inside)].T)
        add_level_rows(linear, known.codes, inner.level_start, shift)
        bias = params.bias[outside] + values @ params.shift[np.ix_(numbers, outside)]
        between = params.coupling[np.ix_(columns_of(params, discrete), columns_of(params, left))]
        if inner.seen is None or model.seen is None:
            add_level_rows(bias, known.codes, inner.level_start, between)
        else:
            seen = inner.seen.design_columns(np.zeros((len(bias), 0)), known.codes)
            bias += model.seen.statistics.over_values(seen @ between)
        try:
            given_y = gaussian(model)
        except DistributionError as error:  # about what is left of the whole model
            raise renumbered(error, rest) from None
        field, _ = integrate_out(model, range(model.n_numbers))
        root = given_y.factor.root
        rho, alpha = root @ model.shift, linear @ root.T
        weight = log_weight(inner, values, known.codes) if known_terms else np.zeros(len(values))
        constant = 0.5 * (model.n_numbers * LOG_TWO_PI - given_y.factor.log_det)
        return cls(
            rest,
            left,
            params.n_numbers,
            linear,
            given_y,
            field,
            alpha @ root,
            bias + alpha @ rho + 0.5 * (rho**2).sum(axis=0),
            weight + constant + 0.5 * (alpha**2).sum(axis=1),
        )

    def trees(self, limit: int, *, pairs: bool = False) -> Iterator[tuple[slice, Tree | LoneState]]:
        """Trees of the rows, block by block; errors have the node numbers of the whole model.

        With `pairs`, all pairs of their levels will be asked for.  A single state with very many
        values needs none of them, and so no tree.
        """
        if self.field.seen is not None and len(self.discrete) == 1:
            size = max(1, _ENTRIES // self.unary.shape[1])
            for first in range(0, len(self.unary), size):
                block = slice(first, min(first + size, len(self.unary)))
                yield block, LoneState(self.unary[block])
            return
        try:
            yield from side_by_side(self.field, self.unary, limit=limit, pairs=pairs)
        except DistributionError as error:
            raise renumbered(error, self.n_numbers + self.discrete) from None

    def log_weight(self, limit: int) -> Floats:
        """(n,) log density of the known values, plus the whole model's log partition function."""
        out = self.log_constant.copy()
        for block, tree in self.trees(limit):
            out[block] += tree.log_z
        return out

    def draw_exactly(self, rng: np.random.Generator, limit: int) -> NDArray[np.int32]:
        """Codes of the unknown states."""
        codes = np.empty((len(self.unary), len(self.discrete)), dtype=np.int32)
        for block, tree in self.trees(limit):
            codes[block] = tree.draw(block.stop - block.start, rng)
        return codes

    def draw_by_gibbs(self, sweeps: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Codes of the unknown states, each row the end of a chain of its own."""
        codes = random_start(self.field, len(self.unary), rng)
        seconds = self._begin(len(codes), sweeps)
        for _ in self._sweeps(codes, sweeps, self.unary, seconds, rng):
            pass
        return codes.astype(np.int32)

    def _begin(self, n_chains: int, sweeps: int) -> float:
        """Announce chains; return about how many seconds they take."""
        by_scores = self.field.seen is not None
        return begin_chains(self.field.n_levels, n_chains, sweeps, by_scores=by_scores)

    def _sweeps(
        self,
        codes: Codes,
        times: int,
        unary: Floats,
        seconds: float,
        rng: np.random.Generator,
    ) -> Iterator[int]:
        """Redraw the chains of some rows so many times, and yield after every sweep."""
        runs = runs_of(self.field) if codes.size else None
        for k in track(range(times), what="Gibbs chains", seconds=seconds):
            sweep(self.field, codes, 1, rng, unary, runs)
            yield k

    def sample(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Level probabilities of every row, their standard errors, and the spread of E[x | y].

        The last, (n, p'), is the variance of the mean of x over the states of y.
        """
        n, total = self.unary.shape
        levels, error = np.empty((n, total)), np.empty((n, total))
        spread, size = np.empty(self.start.shape), self._block
        seconds = self._begin(n * _CHAINS, _BURN_IN + _KEPT)
        for first in range(0, n, size):
            block = slice(first, min(first + size, n))
            m = block.stop - block.start
            counts, squares = self._count(self.unary[block], seconds, rng)
            share = (counts / _KEPT).reshape(m, _CHAINS, total)
            levels[block] = share.mean(axis=1)
            error[block] = share.std(axis=1, ddof=1) / np.sqrt(_CHAINS)
            second = (squares / _KEPT).reshape(m, _CHAINS, -1).mean(axis=1)
            spread[block] = second - (levels[block] @ self.given_y.shift) ** 2
        return levels, error, spread

    def sample_log_density(self, at: int, values: Floats, rng: np.random.Generator) -> Floats:
        """(n,) log density of unknown number `at`, averaged over the chains."""
        variance = self.given_y.covariance[at, at]
        shift = np.ascontiguousarray(self.given_y.shift[:, [at]])
        out, size = np.empty(len(values)), self._block
        seconds = self._begin(len(out) * _CHAINS, _BURN_IN + _KEPT)
        for first in range(0, len(values), size):
            block = slice(first, min(first + size, len(values)))
            codes = random_start(self.field, (block.stop - first) * _CHAINS, rng)
            start = np.repeat(self.start[block, at] - values[block], _CHAINS)[:, None]
            total = np.full(len(codes), -np.inf)
            for k in self._sweeps(codes, _BURN_IN + _KEPT, self.unary[block], seconds, rng):
                if k < _BURN_IN:
                    continue
                off = start.copy()
                add_level_rows(off, codes, self.field.level_start, shift)
                total = np.logaddexp(total, log_normal(off[:, 0], 0.0, variance))
            out[block] = np.logaddexp.reduce(total.reshape(-1, _CHAINS), axis=1)
        return np.asarray(out - np.log(_CHAINS * _KEPT))

    @property
    def _block(self) -> int:
        """Rows that are worked on at once: fewer where every row has very many values."""
        if self.field.seen is None:
            return _BLOCK
        return int(np.clip(_CELLS // (_CHAINS * self.unary.shape[1]), 1, _BLOCK))

    def _count(
        self, unary: Floats, seconds: float, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Counts of levels, and sums of squared shifts of the mean of x, chain by chain."""
        codes = random_start(self.field, len(unary) * _CHAINS, rng)
        counts = np.zeros((len(codes), unary.shape[1]))
        squares = np.zeros((len(codes), self.start.shape[1]))
        for k in self._sweeps(codes, _BURN_IN + _KEPT, unary, seconds, rng):
            if k < _BURN_IN:
                continue
            count_levels(codes, self.field.level_start, counts)
            moved = np.zeros(squares.shape)
            add_level_rows(moved, codes, self.field.level_start, self.given_y.shift)
            squares += moved**2
        return counts, squares


# -- scoring ---------------------------------------------------------------------------------------


def log_likelihood(
    params: ConditionalGaussian,
    numbers: Floats,
    codes: NDArray[np.integer],
    n_observed: float = np.inf,
    covariates: Sequence[int] = (),
    *,
    limit: int = LIMIT,
) -> Floats:
    """(n,) log density of rows, some of which may have levels that no training row had.

    As for the conditionals, a level with bias ``-inf`` gets the probability of half a row among
    `n_observed` rows, and the other levels of its column share the rest.  It says nothing about
    the other columns: these keep their joint distribution with that column left out.  By default
    such a level has no probability.

    Covariates are nodes that are given: the density is that of the others, whose precision must
    be positive definite.  A level of theirs without rows says nothing.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=0, n_levels=(3,))
    >>> params.bias[2] = -np.inf
    >>> np.exp(log_likelihood(params, np.zeros((3, 0)), np.array([[0], [1], [2]]), 9.5))
    array([0.475, 0.475, 0.05 ])
    """
    places = params.nodes.places(covariates)
    params = _without_own_levels(params, places[1])
    log_z: Floats | float
    if covariates:
        given = KnownColumns.among(places, (numbers, codes))
        log_z = UnknownColumns.of(params, given).log_weight(limit)
    else:
        log_z = log_partition(params, limit=limit)
    unseen = np.isneginf(params.bias)
    if not unseen.any() or not np.isfinite(n_observed):
        return log_weight(params, numbers, codes) - log_z
    met = unseen[params.level_start[:-1] + codes]
    out = _shares(params, met, n_observed) - log_z
    for pattern in np.unique(met, axis=0):
        rows = np.flatnonzero((met == pattern).all(axis=1))
        if pattern.any():
            seen = range(params.n_numbers), np.flatnonzero(~pattern).tolist()
            given = KnownColumns.among(seen, (numbers[rows], codes[rows]))
            out[rows] += UnknownColumns.of(params, given).log_weight(limit)
        else:
            out[rows] += log_weight(params, numbers[rows], codes[rows])
    return out


def _without_own_levels(params: ConditionalGaussian, columns: Sequence[int]) -> ConditionalGaussian:
    """Zero biases of columns that are always known, so that levels without rows do no harm."""
    bias = params.bias.copy()
    for j in columns:
        bias[params.levels_of(j)] = 0.0
    return replace(params, bias=bias)


def _shares(params: ConditionalGaussian, met: NDArray[np.bool_], n_observed: float) -> Floats:
    """Log probability of being among the levels with rows, or of the one without."""
    out = np.zeros(len(met))
    unseen = np.isneginf(params.bias)
    for j in range(len(params.n_levels)):
        n_unseen = int(unseen[params.levels_of(j)].sum())
        if n_unseen:
            total = n_observed + 0.5 * n_unseen
            out += np.log(np.where(met[:, j], 0.5, n_observed) / total)
    return out


def mean_loss(
    params: ConditionalGaussian,
    numbers: Floats,
    codes: NDArray[np.integer],
    weights: Floats | None = None,
    n_observed: float = np.inf,
    covariates: Sequence[int] = (),
) -> float:
    """Weighted mean of the negative log likelihood of rows."""
    log_density = log_likelihood(params, numbers, codes, n_observed, covariates)
    return -float(np.average(log_density, weights=weights))
