"""Gibbs chains over the discrete columns -> expectations under a model, by batches of chains.

For fields that are too large to eliminate.  Only the discrete columns are sampled; given them,
the moments of the Gaussian ones are known.  The chains persist: a small change of the parameters
moves them little, so few sweeps bring them up to date.  They are independent of each other, and
the spread between batches of them is the error, whatever the correlation along a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixedgm.joint.field import Gaussian, integrate_out
from mixedgm.joint.gibbs import Codes, random_start, runs_of, sweep
from mixedgm.joint.kernels import add_level_rows, count_pairs
from mixedgm.joint.moments import moments_from
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats
from mixedgm.model.nodes import Nodes

BATCHES = 64
# States that are kept: curvature is estimated from them.
KEPT = 4096


@dataclass(eq=False)
class GradientChains:
    """Gibbs chains over the discrete columns, which go on from wherever they are.

    Parameters
    ----------
    rng : numpy.random.Generator
    per_batch : int
        Chains in each of the 64 batches.
    """

    rng: np.random.Generator
    per_batch: int = 8
    codes: Codes | None = None
    sweeps: int = 0

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return BATCHES * self.per_batch

    def run(self, params: ConditionalGaussian, sweeps: int) -> tuple[Floats, Codes]:
        """Frequencies of pairs of levels in every batch, and some of the states visited."""
        total, start = sum(params.n_levels), params.level_start
        counts = np.zeros((BATCHES, total, total))

        def count(codes: Codes) -> None:
            for b in range(BATCHES):
                count_pairs(codes[b * self.per_batch : (b + 1) * self.per_batch], start, counts[b])

        states = self._visit(params, sweeps, count)
        counts /= sweeps * self.per_batch
        return counts, states

    def moments(
        self, nodes: Nodes, params: ConditionalGaussian, given_y: Gaussian, sweeps: int
    ) -> tuple[list[tuple[Floats, Floats]], tuple[Floats, Floats], Codes]:
        """Moments of the `statistics.columns` by every batch and by all, and states visited.

        The parameters are those of a model with these nodes, and x is Gaussian `given_y`.
        """
        if not nodes.n_scored:
            pairs, states = self.run(params, sweeps)
            expected = [moments_from(given_y, one) for one in (*pairs, pairs.mean(axis=0))]
            *by_batch, overall = ((one.column_mean, one.column_second) for one in expected)
            return by_batch, overall, states
        # Values may be too many for tables of pairs of them.
        width, p = nodes.n_columns + nodes.n_scored_terms, nodes.n_gaussian
        mean, second = np.zeros((BATCHES, width)), np.zeros((BATCHES, width, width))

        def add(codes: Codes) -> None:
            x = np.tile(given_y.start, (len(codes), 1))
            add_level_rows(x, codes, params.level_start, given_y.shift)
            rows = nodes.statistics.rows(x, codes).reshape(BATCHES, -1, width)
            mean[:] += rows.sum(axis=1)
            second[:] += rows.transpose(0, 2, 1) @ rows

        states = self._visit(params, sweeps, add)
        mean /= sweeps * self.per_batch
        second /= sweeps * self.per_batch
        second[:, :p, :p] += given_y.covariance
        return (
            list(zip(mean, second, strict=True)),
            (mean.mean(axis=0), second.mean(axis=0)),
            states,
        )

    def _visit(
        self, params: ConditionalGaussian, sweeps: int, count: Callable[[Codes], None]
    ) -> Codes:
        """Let all chains go on, show their states after every sweep, and return some of them."""
        field, _ = integrate_out(params, range(params.n_gaussian))
        burn_in = max(2, sweeps // 4)
        if self.codes is None:
            self.codes = random_start(field, self.n_chains, self.rng)
            burn_in += 100
        runs = runs_of(field) if self.codes.size else None
        sweep(field, self.codes, burn_in, self.rng, runs=runs)
        every = max(1, (sweeps * self.n_chains) // KEPT)
        kept = []
        for k in range(sweeps):
            sweep(field, self.codes, 1, self.rng, runs=runs)
            count(self.codes)
            if (k + 1) % every == 0:
                kept.append(self.codes.copy())
        self.sweeps += burn_in + sweeps
        return np.concatenate(kept)
