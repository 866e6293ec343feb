"""A model with columns that may be zero, and a seed -> what Gibbs chains say about it.

Which columns are zero decides which numbers are Gaussian, so there is no exact form.  But those
that are Gaussian whatever the others are can be integrated out: with C the inverse of B_GG and r
what the design columns T of all others add to the linear terms of these, pairs of T gain r' C r.
The square of 1[x != 0] and its product with x are 1[x != 0] and x again, so that the family is not
left.  The chains redraw all others in turn, a spiked column from both of its parts at once, and the
Gaussian ones are drawn at the end in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError
from mixedgm.base.progress import track
from mixedgm.families.gaussian import log_normal
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import renumbered
from mixedgm.joint.gibbs import Chains, diagnose
from mixedgm.joint.kernels import spiked_sweep
from mixedgm.joint.plan import FEWER_ROWS, FEWER_SWEEPS, begin_chains
from mixedgm.joint.validity import TriangularFactor, factor
from mixedgm.model.conditional_gaussian import MOST_VALUES
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params

# Chains of every row, their sweeps before and while they are averaged, and rows worked on at once.
_CHAINS = 16
_BURN_IN = 100
_KEPT = 100
_BLOCK = 2**12


@dataclass(frozen=True, eq=False)
class ChainState:
    """Chains side by side: values of spiked columns (n, h), codes of all but Gaussian ones."""

    numbers: Floats
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SpikedColumns:
    """The unknown columns of m rows with the same columns known, Gaussian ones integrated out."""

    unknown: Nodes
    """All unknown columns."""
    nodes: Nodes
    """Unknown columns that are not Gaussian."""
    bias: Floats
    """(slots,) own terms of these columns."""
    coupling: Floats
    """(d, d) terms of pairs of the design columns of these columns."""
    said: Floats
    """(m, d) linear predictors of these design columns by the known columns of every row."""
    gaussian: TriangularFactor
    """Factor of the precision of the unknown Gaussian columns, given all others."""
    start: Floats
    """(m, p) mean of the Gaussian columns where all design columns of the others are zero."""
    shift: Floats
    """(d, p) shift of this mean by each design column."""

    @classmethod
    def of(cls, params: Params, known: KnownColumns) -> SpikedColumns:
        """Condition on the known columns, and integrate the unknown Gaussian ones out.

        The parameters are in the units of the table.
        """
        params = params.unlocated
        whole = params.nodes
        given = whole.nodes_at(known.numbers, known.discrete)
        rest = np.setdiff1d(np.arange(len(whole)), given)
        unknown, model = whole.take(rest), params.take(rest)
        try:
            factor(model.real_precision)
        except DistributionError as error:
            raise renumbered(error, rest) from None
        outside = _columns(whole, rest)
        told = _seen(whole, given, known) @ params.coef[np.ix_(_columns(whole, given), outside)]
        p, nodes = len(model.diagonal), unknown.take(unknown.discrete_nodes)
        made, between = factor(model.precision), model.coef[:p, p:]
        linear = told[:, :p] + model.bias[:p]
        # Everything is a product with the root: symmetry is kept.
        rho, alpha = made.root @ between, linear @ made.root.T
        own, coupling = _split(nodes, model.coef[p:, p:] + rho.T @ rho)
        bias = nodes.own_logits(model.bias[p:]) + own
        shift = rho.T @ made.root
        return cls(
            unknown,
            nodes,
            bias,
            coupling,
            told[:, p:] + alpha @ rho,
            made,
            alpha @ made.root,
            shift,
        )

    # -- chains ------------------------------------------------------------------------------------

    def begin(self, n: int, rng: np.random.Generator) -> ChainState:
        """Chains with codes drawn uniformly among those that can occur, spiked columns at zero."""
        codes = np.zeros((n, len(self.nodes)), dtype=np.int32)
        for j in range(self.nodes.n_spiked, len(self.nodes)):
            possible = np.flatnonzero(~np.isneginf(self.bias[self.nodes.slots_of(j)]))
            if len(possible) == 0:
                raise DistributionError(
                    "no level of {columns} has a chance: every bias is -inf",
                    (int(self.unknown.discrete_nodes[j]),),
                )
            codes[:, j] = possible[rng.integers(len(possible), size=n)]
        return ChainState(np.zeros((n, self.nodes.n_spiked)), codes)

    def sweep(
        self, state: ChainState, times: int, rng: np.random.Generator, rows: slice = slice(None)
    ) -> None:
        """Redraw everything `times` times, in place; chains are equal blocks for these rows."""
        nodes, said = self.nodes, self.said[rows]
        where = (nodes.slot_start, nodes.column_start, nodes.scores)
        places = (*where, nodes.n_spiked, nodes.first_indicator)
        for _ in range(times if state.codes.size else 0):
            uniforms, normals = (
                rng.random(state.codes.shape),
                rng.standard_normal(state.numbers.shape),
            )
            chains = (state.numbers, state.codes)
            spiked_sweep(*chains, said, self.bias, self.coupling, places, uniforms, normals)

    def means(self, state: ChainState, rows: slice = slice(None)) -> Floats:
        """(n, n_real) means of Gaussian columns given the others, then the spiked ones' values."""
        seen = self.nodes.design_columns(state.numbers, state.codes)
        start = np.repeat(self.start[rows], len(seen) // len(self.start[rows]), axis=0)
        return np.hstack([start + seen @ self.shift, state.numbers])

    def drawn(self, state: ChainState, rng: np.random.Generator) -> Floats:
        """(n, n_real) values of Gaussian columns, drawn given the others, then of spiked ones."""
        out, p = self.means(state), self.start.shape[1]
        out[:, :p] += rng.standard_normal((len(out), p)) @ self.gaussian.root
        return out

    @cached_property
    def covariance(self) -> Floats:
        """(n_real, n_real) covariance about `means`: zero in the spiked columns."""
        n, p = self.unknown.n_real, self.start.shape[1]
        out = np.zeros((n, n))
        out[:p, :p] = self.gaussian.inverse
        return out

    def announced(self, n_chains: int, sweeps: int, remedy: str = FEWER_ROWS) -> float:
        """Announce chains; return about how many seconds they take."""
        return begin_chains(self.nodes.n_levels, n_chains, sweeps, remedy, by_scores=True)

    # -- rows with gaps ----------------------------------------------------------------------------

    def draw(self, sweeps: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int32]]:
        """One draw of the unknown columns of every row: numbers, and codes."""
        state = self.begin(len(self.said), rng)
        seconds = self.announced(len(state.codes), sweeps)
        for _ in track(range(sweeps), what="Gibbs chains", seconds=seconds):
            self.sweep(state, 1, rng)
        return self.drawn(state, rng), state.codes

    def moments(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
        """Means and variances of numbers, shares of values and their standard errors, by row."""
        m, levels = len(self.said), int(self.nodes.level_start[-1])
        mean, square = np.empty((m, self.unknown.n_real)), np.empty((m, self.unknown.n_real))
        share, error = np.empty((m, levels)), np.empty((m, levels))
        for rows, state in self._blocks(rng):
            size = rows.stop - rows.start
            first, second = np.zeros((2, len(state.codes), self.unknown.n_real))
            counts = np.zeros((len(state.codes), levels))
            chain = np.arange(len(state.codes))[:, None]
            for _ in range(_KEPT):
                self.sweep(state, 1, rng, rows)
                means = self.means(state, rows)
                first += means
                second += means**2
                counts[chain, self.nodes.level_start[:-1] + state.codes] += 1.0
            by_chain = (counts / _KEPT).reshape(size, _CHAINS, levels)
            share[rows] = by_chain.mean(axis=1)
            error[rows] = by_chain.std(axis=1, ddof=1) / np.sqrt(_CHAINS)
            mean[rows] = first.reshape(size, _CHAINS, -1).mean(axis=1) / _KEPT
            square[rows] = second.reshape(size, _CHAINS, -1).mean(axis=1) / _KEPT
        variance = np.diagonal(self.covariance) + np.maximum(square - mean**2, 0.0)
        return mean, variance, share, error

    def log_density(self, node: int, values: Floats, rng: np.random.Generator) -> Floats:
        """(m,) log density of one unknown column with real values, averaged over the chains.

        For a spiked column at zero, it is the log probability of zero.
        """
        out = np.empty(len(values))
        for rows, state in self._blocks(rng):
            at = np.repeat(values[rows], _CHAINS)
            total = np.full(len(at), -np.inf)
            for _ in range(_KEPT):
                self.sweep(state, 1, rng, rows)
                if self.unknown.is_gaussian(node):
                    variance = self.covariance[node, node]
                    each = log_normal(at, self.means(state, rows)[:, node], variance)
                else:
                    each = self._log_spiked(self.unknown.place(node), at, state, rows)
                total = np.logaddexp(total, each)
            out[rows] = np.logaddexp.reduce(total.reshape(-1, _CHAINS), axis=1)
        return np.asarray(out - np.log(_CHAINS * _KEPT))

    def _log_spiked(self, j: int, values: Floats, state: ChainState, rows: slice) -> Floats:
        """Log density of a spiked column given all others of a chain."""
        nodes, both = self.nodes, self.nodes.columns_of(j)
        seen = nodes.design_columns(state.numbers, state.codes)
        told = seen @ self.coupling[:, both] + np.repeat(self.said[rows, both], _CHAINS, axis=0)
        given = nodes.families[j].given(self.bias[None, nodes.slots_of(j)], told.T[None])
        return np.asarray(given.log_density(values[None] != 0.0, values[None])[0])

    def _blocks(self, rng: np.random.Generator) -> Iterator[tuple[slice, ChainState]]:
        """Rows to work on at once, and several chains of each after their burn-in."""
        size = max(1, _BLOCK // max(1, int(self.nodes.level_start[-1]) // 64))
        seconds = self.announced(len(self.said) * _CHAINS, _BURN_IN + _KEPT)
        blocks = range(0, len(self.said), size)
        for first in track(blocks, what="Gibbs chains", seconds=seconds):
            rows = slice(first, min(first + size, len(self.said)))
            state = self.begin((rows.stop - first) * _CHAINS, rng)
            self.sweep(state, _BURN_IN, rng, rows)
            yield rows, state


def _columns(nodes: Nodes, some: Ints) -> Ints:
    """Design columns of some nodes."""
    return np.flatnonzero(np.isin(nodes.column_node, some))


def _seen(whole: Nodes, given: Ints, known: KnownColumns) -> Floats:
    """(m, d) design columns of the known nodes."""
    nodes, (numbers, codes) = whole.take(given), whole.places(given)
    real, values = np.zeros((len(known.values), len(numbers))), known.values
    real[:, np.searchsorted(numbers, known.numbers)] = values
    states = np.zeros((len(known.codes), len(codes)), dtype=np.int64)
    states[:, np.searchsorted(codes, known.discrete)] = known.codes
    return nodes.design_columns(real, states)


def _split(nodes: Nodes, pairs: Floats) -> tuple[Floats, Floats]:
    """Terms of pairs of design columns -> what stays with each node, and what is between two."""
    own = np.empty(int(nodes.slot_start[-1]))
    for j in range(len(nodes)):
        block, slots = pairs[nodes.columns_of(j), nodes.columns_of(j)], nodes.slots_of(j)
        if j < nodes.n_spiked:
            own[slots] = 0.5 * block[0, 0], block[0, 1], -block[1, 1]
        elif j < nodes.first_indicator:
            own[slots] = 0.5 * block[0, 0] * nodes.scores[slots] ** 2
        else:
            own[slots] = 0.5 * np.diagonal(block)
    same = nodes.column_node[:, None] == nodes.column_node
    return own, np.where(same, 0.0, pairs)


def spiked_chains(
    params: Params,
    n_chains: int,
    n_keep: int,
    *,
    rng: np.random.Generator,
    burn_in: int = 200,
    thin: int = 1,
) -> Chains:
    """Run chains side by side and keep several states of each, as `gibbs.chains` does."""
    whole = SpikedColumns.of(params, KnownColumns.none())
    state, n_sweeps = whole.begin(n_chains, rng), burn_in + thin * n_keep
    seconds = whole.announced(n_chains, n_sweeps, FEWER_SWEEPS)
    whole.sweep(state, max(0, burn_in - thin), rng)
    codes = np.empty((n_keep, *state.codes.shape), dtype=np.int32)
    numbers = np.empty((n_keep, n_chains, params.nodes.n_real))
    for kept in track(range(n_keep), what="Gibbs chains", seconds=seconds):
        whole.sweep(state, thin, rng)
        numbers[kept], codes[kept] = whole.drawn(state, rng), state.codes
    by_score = len(whole.bias) > MOST_VALUES
    return Chains(numbers, codes, diagnose(numbers, codes, whole.nodes, by_score))
