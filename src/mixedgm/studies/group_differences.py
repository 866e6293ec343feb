"""Groups of rows -> tests of whether their edges differ, from estimates without shrinkage.

Every pair is estimated in every group, with the own terms of all columns beside it, so that groups
may have other means, variances and shares.  Edges are compared in the data's own units: numbers are
measured in standard deviations of the whole table, the same in all groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.inference.differences import Differences
from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.statistics import equivalent_z, pair_statistics
from mixedgm.inference.two_groups import TwoGroups
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.error_rates import LocalFDR
from mixedgm.path.graph_search import affordable, settled
from mixedgm.path.pair_tests import TOO_WIDE, pairs_given
from mixedgm.path.recipe import Recipe
from mixedgm.path.rounds import Incomplete
from mixedgm.path.task import Task, prepare
from mixedgm.printable import quoted
from mixedgm.studies.edge_tests import MOST_AT_ONCE, most_predictors
from mixedgm.studies.row_groups import Groups
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps

__all__ = ["DifferenceTests", "GroupTasks"]

_FEWEST_ROWS = 30
_ROWS_PER_PREDICTOR = 10.0
"""With fewer, tests of the whole graph's strength reject too often."""
_DRAWS = 1999
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class GroupTasks:
    """The pseudolikelihoods of all groups and of the whole table."""

    groups: Groups
    whole: Task
    tasks: tuple[Task, ...]

    @classmethod
    def of(
        cls, rows: Design | Gaps, recipe: Recipe, groups: Groups, n_threads: int = 1
    ) -> GroupTasks:
        """Prepare the groups; `recipe` says which pairs may have an edge.

        Rows with gaps are completed by a fit of their own group with little penalty.
        """
        plain = replace(recipe, loss="pseudolikelihood", weights="calibrated", refits=False)
        parts = [rows, *(rows.take(groups.rows(g)) for g in range(len(groups)))]
        tasks = []
        for part in parts:
            if isinstance(part, Gaps):
                tasks.append(Incomplete.of(part, plain, None, n_threads).weak().task)
            else:
                tasks.append(prepare(part, plain, n_threads=n_threads))
        return cls(groups, tasks[0], tuple(tasks[1:]))

    # -- whether groups can be compared ------------------------------------------------------------

    @property
    def obstacle(self) -> str:
        """Why the same pairs cannot be estimated in all groups; empty where they can."""
        if self.groups.blocks is not None:
            return "rows of a block belong together, and estimates of groups must be independent"
        if self.whole.beyond is not None:
            return TOO_WIDE
        if self.whole.layout.n_groups == 0:
            return "no pair of columns may have an edge"
        nodes = self.whole.schema.spans
        for label, task in zip(self.groups.labels, self.tasks, strict=True):
            if task.total_weight < _FEWEST_ROWS:
                return (
                    f"group {quoted(label)} has {task.total_weight:,.6g} rows, and estimates "
                    f"without shrinkage need at least {_FEWEST_ROWS}"
                )
            missing = self.whole.observed & ~task.observed
            for node in np.flatnonzero(~nodes.numeric_nodes).tolist():
                if missing[nodes.levels_of(nodes.place(node))].any():
                    name = self.whole.schema.nodes[node].name
                    return f"column {quoted(name)} lacks a level in group {quoted(label)}"
            if task.layout.n_groups < self.whole.layout.n_groups:
                here = {*map(tuple, task.layout.pairs.tolist())}
                lost = [p for p in map(tuple, self.whole.layout.pairs.tolist()) if p not in here]
                ends = [node for pair in lost for node in pair]
                name = self.whole.schema.nodes[max(ends, key=ends.count)].name
                return f"column {quoted(name)} does not vary in group {quoted(label)}"
        return ""

    @property
    def shortage(self) -> str:
        """Why not all pairs can be estimated at once in all groups; empty where they can."""
        layout, predictors = self.whole.layout, most_predictors(self.whole)
        n_parameters = int(layout.nodes.freedom[layout.pairs].prod(axis=1).sum())
        if n_parameters > MOST_AT_ONCE:
            return f"{n_parameters:,} parameters are too many to be estimated at once"
        for label, task in zip(self.groups.labels, self.tasks, strict=True):
            if task.total_weight < _ROWS_PER_PREDICTOR * predictors:
                return (
                    f"group {quoted(label)} has {task.total_weight:,.6g} rows, fewer than "
                    f"{_ROWS_PER_PREDICTOR:g} for each of the {predictors} predictors of a column"
                )
        return ""

    @property
    def enough(self) -> str:
        """Why all pairs can be estimated at once in all groups."""
        return (
            f"every group has at least {_ROWS_PER_PREDICTOR:g} rows for each of the "
            f"{most_predictors(self.whole)} predictors of a column"
        )

    # -- tests -------------------------------------------------------------------------------------

    def tested(self, seed: np.random.SeedSequence) -> DifferenceTests:
        """Estimate all pairs in all groups, given the same graph in all of them, and compare."""
        if self.obstacle:
            raise ParameterError(
                f"test='differences' cannot compare these groups: {self.obstacle}. To fix: "
                "test='permutation', or leave the column or the rows out."
            )
        graph = self._graph()
        estimates, errors, ridge = [], [], np.zeros(0, dtype=np.int64)
        for task, own in zip(self.tasks, seed.spawn(len(self.tasks)), strict=True):
            rng = np.random.default_rng(own)
            tests = pairs_given(task, graph, draws=(_DRAWS, rng))
            assert tests.estimates is not None
            assert tests.errors is not None
            scale = self._units(tests.task or task, tests.estimates)
            estimates.append(_scaled(tests.estimates, scale))
            errors.append(tests.errors * scale)
            ridge = np.union1d(ridge, tests.ridge)
        differences = Differences(tuple(estimates), self.whole.layout.nodes)
        return DifferenceTests.of(self.whole, differences, errors, graph, ridge)

    def _graph(self) -> Ints:
        """What stands beside every pair: all others, or what passes a test in some group."""
        everything = np.arange(self.whole.layout.n_groups)
        if not self.shortage:
            return everything
        nothing, limit = everything[:0], LocalFDR(_HALF).log_limit
        graph = nothing
        for task in self.tasks:
            graph = np.union1d(graph, settled(task, nothing, limit).graph)
        for task in self.tasks:
            graph = affordable(task, graph, np.ones(len(everything)))
        return graph

    def _units(self, task: Task, estimates: PairEstimates) -> Floats:
        """(edge parameters,) from the units of a group to those of the whole table."""
        layout = estimates.layout
        ratio = np.ones(layout.n_columns)
        ratio[layout.nodes.numeric] = self.whole.units.scale / task.units.scale
        row, column = layout.edge_position
        return np.asarray(ratio[row] * ratio[column])


def _scaled(estimates: PairEstimates, scale: Floats) -> PairEstimates:
    """The same estimates in other units."""
    covariance = np.empty_like(estimates.covariance)
    first = estimates.layout.starts - estimates.layout.n_node_terms
    for pairs, values, matrices in estimates.by_size():
        k = values.shape[1]
        unit = scale[first[pairs][:, None] + np.arange(k)]
        turned = matrices * unit[:, :, None] * unit[:, None, :]
        covariance[estimates.start[pairs][:, None] + np.arange(k * k)] = turned.reshape(-1, k * k)
    return replace(estimates, eta=estimates.eta * scale, covariance=covariance)


@dataclass(frozen=True, eq=False)
class DifferenceTests:
    """Tests of all pairs, and of all of them together.

    Pairs are those of `ends`; p-values of whole graphs, and those adjusted for the largest
    difference, come from errors that were drawn for all pairs together.
    """

    ends: Ints
    """(pairs, 2) nodes."""
    estimates: Floats
    """(groups, pairs) weights without shrinkage, in the same units in all groups; with their sign
    where they have one."""
    se: Floats
    """(groups, pairs) their standard errors; NaN for pairs with several parameters."""
    apart: Floats
    """(pairs of groups, pairs) lengths of the differences."""
    statistic: Floats
    """(pairs,) NaN where a pair is not tested: it needed a ridge in some group."""
    df: Ints
    log_p: Floats
    p_max: Floats
    tests: Floats
    """(3, 2) statistics of whole graphs, and their p-values."""
    graph: Ints
    """What stood beside every pair."""
    ridge: Ints
    """Pairs that needed a ridge in some group, as where a cell has no rows."""

    @classmethod
    def of(
        cls,
        whole: Task,
        differences: Differences,
        errors: Sequence[Floats],
        graph: Ints,
        ridge: Ints,
    ) -> DifferenceTests:
        """Compare the estimates, and the errors as if they were estimates."""
        share = whole.layout.conditionals / whole.layout.conditionals_at_most
        unit = whole.yardstick / share
        tested = ~np.isin(np.arange(whole.layout.n_groups), ridge)
        etas = [each.eta for each in differences.estimates]
        statistic, log_p = (np.where(tested, each, np.nan) for each in differences.tested(etas))
        by_chance, log_chance = (each[:, tested] for each in differences.tested(errors))
        smallest = _share_as_small(log_p, log_chance.min(axis=1, initial=0.0))
        p_max = np.minimum(smallest, np.minimum(tested.sum() * np.exp(log_p), 1.0))
        direction = _strength(differences, unit, tested)
        strength = np.ptp([eta @ direction for eta in etas])
        of_chance = np.ptp([each @ direction for each in errors], axis=0)
        df = differences.df[tested].sum() if tested.any() else 1
        total = statistic[tested].sum() / df
        z = equivalent_z(log_p[tested]).max(initial=0.0)
        tests = np.array(
            [
                [z, p_max[tested].min(initial=1.0)],
                [strength, _p(strength, of_chance)],
                [total, _p(total, by_chance.sum(axis=1) / df)],
            ]
        )
        estimates, se = _weights(whole, differences, unit)
        return cls(
            ends=whole.layout.pairs,
            estimates=estimates,
            se=se,
            apart=_lengths(differences, unit),
            statistic=statistic,
            df=differences.df,
            log_p=log_p,
            p_max=p_max,
            tests=tests,
            graph=graph,
            ridge=ridge,
        )

    @cached_property
    def p(self) -> Floats:
        """(pairs,) p-values."""
        return np.exp(self.log_p)

    @property
    def free(self) -> bool:
        """Whether all pairs stood beside each other."""
        return len(self.graph) == len(self.ends)


def _p(observed: float, by_chance: Floats) -> float:
    return float((1.0 + (by_chance >= observed).sum()) / (1.0 + len(by_chance)))


def _share_as_small(log_p: Floats, smallest: Floats) -> Floats:
    """(pairs,) share of the draws, these pairs among them, whose smallest value is as small."""
    below = np.searchsorted(np.sort(smallest), log_p, side="right")
    return np.asarray((1.0 + below) / (1.0 + len(smallest)))


def _strength(differences: Differences, unit: Floats, tested: NDArray[np.bool_]) -> Floats:
    """(edge parameters,) the direction along which the strength of a graph grows.

    It is that of the mean of the groups, over tested pairs that probably have an edge.  Its errors
    are uncorrelated with the differences, so that it is as good as given: strengths have no bias
    that would depend on the number of rows, as sums of absolute values do.
    """
    mean = differences.mean
    log_p = pair_statistics(mean, differences.full).log_p
    there = tested.copy()
    there[tested] = TwoGroups(equivalent_z(log_p[tested])).no_edge <= _HALF
    layout = mean.layout
    norm = np.sqrt(layout.group_sums(mean.eta**2))
    factor = np.where(there & (norm > 0.0), unit / np.where(norm > 0.0, norm, 1.0), 0.0)
    return np.asarray(mean.eta * layout.spread(factor))


def _lengths(differences: Differences, unit: Floats) -> Floats:
    """(pairs of groups, pairs) lengths of differences, as weights."""
    layout, couples = differences.layout, combinations(differences.estimates, 2)
    squares = [layout.group_sums((a.eta - b.eta) ** 2) for a, b in couples]
    return np.asarray(np.sqrt(squares) * unit)


def _weights(whole: Task, differences: Differences, unit: Floats) -> tuple[Floats, Floats]:
    """Weights of all groups, with signs, and standard errors of those with one parameter."""
    layout, nodes = differences.layout, whole.layout.nodes
    # The contrast of two levels falls from the first to the second.
    turn = np.where(nodes.numeric_nodes, 1.0, -1.0)[layout.pairs].prod(axis=1)
    shape = (len(differences.estimates), layout.n_groups)
    weights, se = np.zeros(shape), np.full(shape, np.nan)
    signed = np.asarray(nodes.signed[layout.pairs].all(axis=1))
    for row, error, each in zip(weights, se, differences.estimates, strict=True):
        row[:] = np.sqrt(layout.group_sums(each.eta**2)) * unit
        for pairs, values, covariance in each.by_size():
            if values.shape[1] == 1:
                error[pairs] = np.sqrt(covariance[:, 0, 0]) * unit[pairs]
                sign = np.where(signed[pairs], np.sign(turn[pairs] * values[:, 0]), 1.0)
                row[pairs] *= sign
    return weights, se
