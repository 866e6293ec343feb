"""Rows with the same columns known -> the fields of their unknown categorical columns.

The rows' models share all interactions, so their trees are worked through side by side, and so
are their Gibbs chains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError
from mixedgm.joint.conditioning import Given
from mixedgm.joint.exact import renumbered, side_by_side
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.gibbs import random_start, sweep
from mixedgm.joint.kernels import add_level_rows, count_levels
from mixedgm.joint.tree import Tree
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.density import LOG_TWO_PI
from mixedgm.model.layout import Floats

# Chains of every row, their sweeps before and while they are counted, and rows worked on at once.
_CHAINS = 16
_BURN_IN = 100
_KEPT = 100
_BLOCK = 2**12


@dataclass(frozen=True, eq=False)
class Rest:
    """The unknown columns with the continuous ones integrated out, row by row.

    Parameters
    ----------
    given : Given
        The models of the rows.
    given_y : Gaussian
        Unknown continuous columns given the unknown categorical ones; its `start` is not used.
    field : ConditionalGaussian
        What the rows share: interactions, and which levels can occur.
    start : ndarray (n, p')
        Mean of x without the shift of any unknown level.
    unary : ndarray (n, levels)
        Biases of the unknown levels.
    log_constant : ndarray (n,)
        What was integrated out, and the terms of the known columns.
    """

    given: Given
    given_y: Gaussian
    field: ConditionalGaussian
    start: Floats
    unary: Floats
    log_constant: Floats

    @classmethod
    def of(cls, given: Given) -> Rest:
        """Integrate the unknown continuous columns out."""
        model = given.model
        try:
            given_y = gaussian(model)
        except DistributionError as error:  # about what is left of the whole model
            raise renumbered(error, given.numbers) from None
        field, _ = integrate_out(model, range(model.n_gaussian))
        root = given_y.factor.root
        rho, alpha = root @ model.shift, given.linear @ root.T
        constant = 0.5 * (model.n_gaussian * LOG_TWO_PI - given_y.factor.log_det)
        return cls(
            given,
            given_y,
            field,
            alpha @ root,
            given.bias + alpha @ rho + 0.5 * (rho**2).sum(axis=0),
            given.log_constant + constant + 0.5 * (alpha**2).sum(axis=1),
        )

    def trees(self, params: ConditionalGaussian, limit: int) -> Iterator[tuple[slice, Tree]]:
        """Trees of the rows, block by block; errors have the node numbers of `params`."""
        try:
            yield from side_by_side(self.field, self.unary, limit=limit)
        except DistributionError as error:
            raise renumbered(error, params.n_gaussian + self.given.discrete) from None

    def draw_by_gibbs(self, sweeps: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Codes of the unknown categorical columns, each row the end of a chain of its own."""
        codes = random_start(self.field, len(self.unary), rng)
        sweep(self.field, codes, sweeps, rng, self.unary)
        return codes.astype(np.int32)

    def sample(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Level probabilities of every row, their standard errors, and the spread of E[x | y].

        The last, (n, p'), is the variance of the mean of x over the states of y.
        """
        n, total = self.unary.shape
        levels, error = np.empty((n, total)), np.empty((n, total))
        spread = np.empty(self.start.shape)
        for first in range(0, n, _BLOCK):
            block = slice(first, min(first + _BLOCK, n))
            m = block.stop - block.start
            counts, squares = self._count(self.unary[block], rng)
            share = (counts / _KEPT).reshape(m, _CHAINS, total)
            levels[block] = share.mean(axis=1)
            error[block] = share.std(axis=1, ddof=1) / np.sqrt(_CHAINS)
            second = (squares / _KEPT).reshape(m, _CHAINS, -1).mean(axis=1)
            spread[block] = second - (levels[block] @ self.given_y.shift) ** 2
        return levels, error, spread

    def sample_log_density(self, at: int, values: Floats, rng: np.random.Generator) -> Floats:
        """(n,) log density of unknown continuous column number `at`, averaged over the chains."""
        variance = self.given_y.covariance[at, at]
        shift = np.ascontiguousarray(self.given_y.shift[:, [at]])
        out = np.empty(len(values))
        for first in range(0, len(values), _BLOCK):
            block = slice(first, min(first + _BLOCK, len(values)))
            codes = random_start(self.field, (block.stop - first) * _CHAINS, rng)
            sweep(self.field, codes, _BURN_IN, rng, self.unary[block])
            start = np.repeat(self.start[block, at] - values[block], _CHAINS)[:, None]
            total = np.full(len(codes), -np.inf)
            for _ in range(_KEPT):
                sweep(self.field, codes, 1, rng, self.unary[block])
                off = start.copy()
                add_level_rows(off, codes, self.field.level_start, shift)
                total = np.logaddexp(total, -0.5 * off[:, 0] ** 2 / variance)
            out[block] = np.logaddexp.reduce(total.reshape(-1, _CHAINS), axis=1)
        scale = np.log(_CHAINS * _KEPT) + 0.5 * (np.log(variance) + LOG_TWO_PI)
        return np.asarray(out - scale)

    def _count(self, unary: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Counts of levels, and sums of squared shifts of the mean of x, chain by chain."""
        codes = random_start(self.field, len(unary) * _CHAINS, rng)
        sweep(self.field, codes, _BURN_IN, rng, unary)
        counts = np.zeros((len(codes), unary.shape[1]))
        squares = np.zeros((len(codes), self.start.shape[1]))
        for _ in range(_KEPT):
            sweep(self.field, codes, 1, rng, unary)
            count_levels(codes, self.field.level_start, counts)
            moved = np.zeros(squares.shape)
            add_level_rows(moved, codes, self.field.level_start, self.given_y.shift)
            squares += moved**2
        return counts, squares
