"""A plan, groups and a seed -> the statistics of one shuffle of the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record
from mixedgm.fitting import fit_design
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.studies.bootstrap_replicates import Replicates
from mixedgm.studies.resampling import (
    ResamplingPlan,
    Seed,
    estimate_record,
    fitted_record,
    selecting,
)
from mixedgm.studies.row_groups import Groups
from mixedgm.table.encode import Design

TESTS = ("largest edge difference", "strength difference", "variance among groups", "Hamming")
"""Statistics of whole graphs, in the order in which they are kept."""


@dataclass(frozen=True, eq=False)
class Shuffle:
    """Everything that is the same for all shuffles.

    Parameters
    ----------
    plan : ResamplingPlan
        The whole table and its fit, from which all groups start.
    groups : Groups
        The labels that are shuffled.
    pairs : ndarray (U,)
        Pairs of columns that have an edge in some group, by number in ``plan.declared``.
    """

    plan: ResamplingPlan
    groups: Groups
    pairs: Ints

    @cached_property
    def members(self) -> list[Ints]:
        """Rows of every block."""
        blocks = self.groups.blocks
        if blocks is None:
            return [np.arange(len(self.groups.codes))]
        return [np.flatnonzero(blocks == block) for block in range(int(blocks.max()) + 1)]

    def draw(self, seed: Seed) -> list[Design]:
        """The rows of every group after one shuffle.

        Weights that are whole numbers count identical rows, which change places one by one.
        """
        rng = np.random.default_rng(seed)
        if self.plan.frequencies is not None:
            return self._dealt(rng, self.plan.frequencies)
        codes = self.groups.codes.copy()
        for rows in self.members:
            codes[rows] = codes[rng.permutation(rows)]
        shuffled = replace(self.groups, codes=codes)
        return [self.plan.design.take(shuffled.rows(g)) for g in range(len(self.groups))]

    def _dealt(self, rng: np.random.Generator, counts: NDArray[np.int64]) -> list[Design]:
        weights = np.zeros((len(self.groups), len(counts)), dtype=np.int64)
        for rows in self.members:
            left = counts[rows].copy()
            for group, part in enumerate(weights[:-1]):
                wanted = int(counts[rows][self.groups.codes[rows] == group].sum())
                part[rows] = rng.multivariate_hypergeometric(left, wanted, method="marginals")
                left -= part[rows]
            weights[-1, rows] = left
        return [self._weighted(part) for part in weights]

    def _weighted(self, weights: NDArray[np.int64]) -> Design:
        rows = np.flatnonzero(weights)
        return replace(self.plan.design.take(rows), weights=weights[rows].astype(np.float64))


def shuffled(shuffle: Shuffle, seed: Seed) -> Record:
    """Shuffle the labels, fit every group, and keep the statistics."""
    plan, designs = shuffle.plan, shuffle.draw(seed)
    if plan.options.lam is not None:
        records = [fitted_record(plan, design) for design in designs]
    else:
        options = selecting(plan, seed)
        fits = (fit_design(design, options, reference=plan.reference) for design in designs)
        records = [estimate_record(plan, fitted) for fitted in fits]
    return statistics(plan, records, shuffle.pairs)


def statistics(plan: ResamplingPlan, records: list[Record], pairs: Ints) -> Record:
    """What is kept of one set of groups.

    `edges` are the largest differences between two groups for these pairs; `tests` the statistics
    of the whole graphs, over all pairs; `constant` and `lacking` say which nodes are constant, or
    lack a level of the whole table, in how many groups; `converged` whether all groups are.
    """
    every = gathered(plan.declared, records)
    apart = differences(every).max(axis=0, initial=0.0)
    of_pair = np.zeros(plan.declared.n_groups)
    of_pair[every.pairs] = apart
    spread = every.standardised.var(axis=0).sum()
    strength = every.weights.sum(axis=1)
    present = every.weights > 0.0
    disagree = present.any(axis=0) & ~present.all(axis=0)
    tests = (apart.max(initial=0.0), np.ptp(strength), spread, disagree.sum())
    constant, lacking = _oddities(plan, every)
    return {
        "edges": of_pair[pairs],
        "tests": np.array(tests, dtype=np.float64),
        "constant": constant,
        "lacking": lacking,
        "converged": np.array([every.converged.all()]),
    }


def gathered(declared: Layout, records: list[Record]) -> Replicates:
    """One row per group, over all pairs that have an edge in some group."""
    pairs = np.concatenate([record["pairs"] for record in records])
    return Replicates.gather(declared, records, np.unique(pairs).astype(np.int64))


def differences(every: Replicates) -> Floats:
    """(pairs of groups, U): length of the difference of each edge's standardised parameters.

    For an edge that has a sign this is the difference of the signed weights; for others a change
    of direction counts as well as one of length.
    """
    values, start = every.standardised, every.starts[:-1]
    couples = list(combinations(range(len(values)), 2))
    if len(start) == 0:
        return np.zeros((len(couples), 0))
    squares = np.array([(values[a] - values[b]) ** 2 for a, b in couples])
    return np.asarray(np.sqrt(np.add.reduceat(squares, start, axis=1)))


def _oddities(plan: ResamplingPlan, every: Replicates) -> tuple[Ints, Ints]:
    """In how many groups each node is constant, or lacks a level that the whole table has."""
    constant = (every.scales == 0.0) & (plan.whole.node_scales > 0.0)
    lacking = every.lacking(plan.reference.observed)
    return constant.sum(axis=0, dtype=np.int64), lacking.sum(axis=0, dtype=np.int64)
