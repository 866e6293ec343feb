"""Groups of rows -> tests of whether their edges differ, from estimates without shrinkage.

A graph is searched for in every group, by tests.  The edges of all these graphs are held in all
groups, and every pair is estimated given them.  Numbers are measured by their residual standard
deviation in their own group, so that groups may have different means, variances and units, and the
estimate of two numbers is their partial correlation.

Estimates of all pairs in several groups of rows -> tests of whether each pair differs.

With the differences D of all groups from the first one and their covariance S, the statistic is
W = D'S^-1 D, which for two independent groups is d'(V1 + V2)^-1 d.  A pair of many parameters is
also tested along the order of its levels, and both p-values are combined as in `statistics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.statistics import (
    combined,
    equivalent_z,
    log_tail,
    ordered_directions,
    pair_statistics,
)
from mixedgm.inference.strength import RestRows
from mixedgm.inference.two_groups import GroupPatterns, TwoGroups, sets_of
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.nodes import Nodes
from mixedgm.path.recipe import Recipe, by_conditionals
from mixedgm.path.rounds import Incomplete
from mixedgm.path.task import Task, prepare
from mixedgm.select.error_rates import LocalFDR
from mixedgm.select.graph_search import affordable, settled
from mixedgm.select.pair_tests import TOO_WIDE, pairs_given
from mixedgm.studies.edges.estimates import PairStrengths
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.labels import Groups

_FEWEST_ROWS = 30
FEWEST_BY_ITSELF = 60
"""In smaller groups, labels are shuffled unless tests of differences are asked for."""
_FEWEST_CLUSTERS = 30
_DRAWS = 1999
_HALF = 0.5
DIFFERENCE_TESTS = (
    "any difference",
    "largest edge difference",
    "strength difference",
    "variance among groups",
)
"""Tests of whole graphs, in their order."""

Mask = NDArray[np.bool_]


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
        plain = replace(by_conditionals(recipe), refits=False)
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
        if self.whole.beyond is not None:
            return TOO_WIDE
        if self.whole.layout.n_groups == 0:
            return "no pair of columns may have an edge"
        dependent = self.groups.dependent
        for group, (label, task) in enumerate(zip(self.groups.labels, self.tasks, strict=True)):
            name = quoted(label)
            if task.total_weight < _FEWEST_ROWS:
                return (
                    f"group {name} has {task.total_weight:,.6g} rows, and estimates without "
                    f"shrinkage need at least {_FEWEST_ROWS}"
                )
            if dependent is not None:
                n_labels = len(np.unique(dependent[self.groups.rows(group)]))
                if n_labels < _FEWEST_CLUSTERS:
                    return (
                        f"group {name} has rows of {n_labels} independent units, and variances "
                        f"between fewer than {_FEWEST_CLUSTERS} cannot be trusted"
                    )
            if task.layout.n_groups < self.whole.layout.n_groups:
                here = {*map(tuple, task.layout.pairs.tolist())}
                lost = [p for p in map(tuple, self.whole.layout.pairs.tolist()) if p not in here]
                ends = [node for pair in lost for node in pair]
                column = self.whole.schema.nodes[max(ends, key=ends.count)].name
                return f"column {quoted(column)} does not vary in group {name}"
        if not len(self.comparable):
            return "of every pair, a column lacks a level in some group"
        return ""

    @cached_property
    def lacking(self) -> Mask:
        """(groups, nodes) whether a column lacks a level that another group has."""
        nodes = self.whole.schema.spans
        out = np.zeros((len(self.tasks), len(self.whole.schema.nodes)), dtype=bool)
        for lacks, task in zip(out, self.tasks, strict=True):
            missing = self.whole.observed & ~task.observed
            for node in np.flatnonzero(~nodes.numeric_nodes).tolist():
                lacks[node] = missing[nodes.levels_of(nodes.place(node))].any()
        return out

    @property
    def comparable(self) -> Ints:
        """Pairs that have the same parameters in all groups: no end lacks a level in one."""
        lacking = self.lacking[:, self.whole.layout.pairs]
        return np.flatnonzero(~lacking.any(axis=(0, 2)))

    @property
    def shortage(self) -> str:
        """Why permutations are the better choice; empty where every group has rows enough."""
        rows = [task.total_weight for task in self.tasks]
        if min(rows) >= FEWEST_BY_ITSELF:
            return ""
        name = quoted(self.groups.labels[int(np.argmin(rows))])
        return f"group {name} has {min(rows):,.6g} rows, fewer than {FEWEST_BY_ITSELF}"

    def require_no_obstacle(self) -> None:
        """Raise ParameterError where the groups cannot be compared."""
        if self.obstacle:
            raise ParameterError(
                f"test='differences' cannot compare these groups: {self.obstacle}. To fix: "
                "test='permutation', or leave the column or the rows out."
            )

    # -- tests -------------------------------------------------------------------------------------

    def tested(
        self, seed: np.random.SeedSequence, rows: Sequence[RestRows], level: float
    ) -> DifferenceTests:
        """Find the graphs, estimate all pairs given them in all groups, and compare.

        Strengths are means over `rows` of every group; their intervals have this level.
        """
        graphs = self._graphs()
        held = np.flatnonzero(graphs.any(axis=0))
        for task in self.tasks:
            held = affordable(task, held, graphs.sum(axis=0))
        dependent, n_groups = self.groups.dependent, len(self.tasks)
        pairs, layout = self.comparable, self.tasks[0].layout
        # Groups whose rows depend on each other have the same normal number for the same unit.
        seeds = [seed] * n_groups if dependent is not None else seed.spawn(n_groups)
        estimates, errors, strengths = [], [], []
        ridge = np.zeros_like(graphs)
        for group, (task, own) in enumerate(zip(self.tasks, seeds, strict=True)):
            clusters = None if dependent is None else dependent[self.groups.rows(group)]
            draws = _DRAWS, np.random.default_rng(own)
            tests = pairs_given(task, held, clusters=clusters, draws=draws)
            assert tests.estimates is not None
            assert tests.errors is not None
            unit = self._units(tests.task or task, tests.estimates)
            kept = tests.estimates.layout.edge_places(pairs)
            estimates.append(tests.estimates.rescaled(unit).among(pairs))
            errors.append((tests.errors * unit)[:, kept])
            ridge[group, tests.ridge] = True
            plain = pairs_given(task, held, tests.theta, clusters=clusters)
            assert plain.estimates is not None
            inside = PairStrengths(
                plain.task or task, plain.theta, plain.estimates, plain.estimated, rows[group]
            )
            strengths.append(list(inside.columns(level).values()))
        differences = Differences(
            tuple(estimates),
            layout.nodes,
            errors if dependent is not None else None,
        )
        of_groups = np.array(strengths).swapaxes(0, 1)
        return DifferenceTests.of(self, differences, errors, of_groups, graphs, ridge)

    def _graphs(self) -> Mask:
        """(groups, pairs) the graph of every group, as tests find it."""
        nothing, limit = np.zeros(0, dtype=np.int64), LocalFDR().log_limit
        out = np.zeros((len(self.tasks), self.whole.layout.n_groups), dtype=bool)
        for row, task in zip(out, self.tasks, strict=True):
            row[settled(task, nothing, limit).graph] = True
        return out

    def _units(self, task: Task, estimates: PairEstimates) -> Floats:
        """(edge parameters,) from the units of a group to those of all.

        Numbers in units of their residual spread have none; scores, and columns without a
        conditional, are measured in standard deviations of the whole table.
        """
        layout = estimates.layout
        ratio = np.ones(layout.n_columns)
        ratio[layout.nodes.numeric] = self.whole.units.scale / task.units.scale
        ratio[_without_units(self.whole)[layout.column_node]] = 1.0
        row, column = layout.edge_position
        return np.asarray(ratio[row] * ratio[column])


def _without_units(task: Task) -> Mask:
    """(nodes,) numbers that are measured by their residual spread."""
    return np.asarray(task.layout.nodes.gaussian_nodes & task.layout.is_target)


@dataclass(frozen=True, eq=False)
class DifferenceTests:
    """Tests of all pairs, and of all of them together.

    Pairs are those of `ends`; p-values of whole graphs, and those adjusted for the largest
    difference, come from errors that were drawn for all pairs together.
    """

    ends: Ints
    """(pairs, 2) nodes."""
    strengths: Floats
    """(3, groups, pairs) strengths, and the ends of their intervals."""
    estimates: Floats
    """(groups, pairs) the parameter of pairs that have one; NaN for others."""
    se: Floats
    """(groups, pairs) their standard errors."""
    apart: Floats
    """(pairs of groups, pairs) lengths of the differences."""
    statistic: Floats
    """(pairs,) NaN where a pair is not tested: a group lacks a level of it, or needed a ridge."""
    df: Ints
    log_p: Floats
    p_max: Floats
    same: Floats
    """(pairs,) probability that a pair does not differ between the groups; NaN if not tested."""
    tests: Floats
    """(4, 2) statistics of whole graphs, and their p-values."""
    graphs: Mask
    """(groups, pairs) the graphs that were found; their union was held in all groups."""
    ridge: Mask
    """(groups, pairs) where a ridge was needed, as where a cell has no rows."""
    lacking: Mask
    """(groups, nodes) columns that lack a level which another group has."""

    @classmethod
    def of(
        cls,
        tasks: GroupTasks,
        differences: Differences,
        errors: Sequence[Floats],
        strengths: Floats,
        graphs: Mask,
        ridge: Mask,
    ) -> DifferenceTests:
        """Compare the estimates of pairs that are comparable, and the errors as if estimates."""
        whole, pairs = tasks.whole, tasks.comparable
        steps, tested = _steps(whole)[pairs], np.asarray(~ridge[:, pairs].any(axis=0))
        statistic, log_p = (
            np.where(tested, each, np.nan)
            for each in differences.tested([each.eta for each in differences.estimates])
        )
        tests, p_max = _whole_graphs(differences, errors, statistic, log_p, steps)
        estimates, se = _single(differences.estimates, steps)
        same = np.full(len(tested), np.nan)
        same[tested] = _patterns(differences, log_p, tested).same

        def among_all(values: NDArray[np.floating]) -> Floats:
            out = np.full((*values.shape[:-1], whole.layout.n_groups), np.nan)
            out[..., pairs] = values
            return out

        return cls(
            ends=whole.layout.pairs,
            strengths=strengths,
            estimates=among_all(estimates),
            se=among_all(se),
            apart=among_all(_lengths(differences, steps)),
            statistic=among_all(statistic),
            df=np.nan_to_num(among_all(1.0 * differences.df)).astype(np.int64),
            log_p=among_all(log_p),
            p_max=among_all(p_max),
            same=among_all(same),
            tests=tests,
            graphs=graphs,
            ridge=ridge,
            lacking=tasks.lacking,
        )

    @cached_property
    def p(self) -> Floats:
        """(pairs,) p-values."""
        return np.exp(self.log_p)


def _patterns(differences: Differences, log_p: Floats, tested: Mask) -> GroupPatterns:
    """Which groups share an edge, from the tests of pairs that could be made."""
    sets = sets_of(len(differences.estimates))
    together = [
        pair_statistics(differences.together(each), differences.full).z[tested] for each in sets
    ]
    return GroupPatterns(np.array(together), equivalent_z(log_p[tested]))


def _whole_graphs(
    differences: Differences,
    errors: Sequence[Floats],
    statistic: Floats,
    log_p: Floats,
    steps: Floats,
) -> tuple[Floats, Floats]:
    """(4, 2) tests of whole graphs and their p-values; (pairs,) p-values of largest differences."""
    tested = ~np.isnan(log_p)
    by_chance, log_chance = (each[:, tested] for each in differences.tested(errors))
    smallest_chance = log_chance.min(axis=1, initial=0.0)
    p_max = np.where(tested, _share_as_small(log_p, smallest_chance), np.nan)
    p_max = np.minimum(p_max, np.minimum(tested.sum() * np.exp(log_p), 1.0))
    direction = _strength(differences, steps, tested)
    strength = np.ptp([each.eta @ direction for each in differences.estimates])
    of_chance = np.ptp([each @ direction for each in errors], axis=0)
    df = differences.df[tested].sum() if tested.any() else 1
    total, totals = statistic[tested].sum() / df, by_chance.sum(axis=1) / df
    largest = log_p[tested].min(initial=0.0)
    any_difference = _either(np.append(largest, smallest_chance), np.append(-total, -totals))
    tests = [
        any_difference,
        (equivalent_z(np.array([largest]))[0], p_max[tested].min(initial=1.0)),
        (strength, _p(strength, of_chance)),
        (total, _p(total, totals)),
    ]
    return np.array(tests), p_max


def _either(first: Floats, second: Floats) -> tuple[float, float]:
    """The smaller p-value of two tests, and its own p-value.

    Small values are extreme; the first of each is observed, and the others are by chance.
    """
    count = len(first)
    smaller = np.minimum(rankdata(first, "max"), rankdata(second, "max")) / count
    return float(smaller[0]), float((smaller <= smaller[0]).mean())


def _p(observed: float, by_chance: Floats) -> float:
    return float((1.0 + (by_chance >= observed).sum()) / (1.0 + len(by_chance)))


def _share_as_small(log_p: Floats, smallest: Floats) -> Floats:
    """(pairs,) share of the draws, these pairs among them, whose smallest value is as small."""
    below = np.searchsorted(np.sort(smallest), log_p, side="right")
    return np.asarray((1.0 + below) / (1.0 + len(smallest)))


def _strength(differences: Differences, unit: Floats, tested: Mask) -> Floats:
    """(edge parameters,) the direction along which the strength of a graph grows.

    It is that of the mean of the groups, over tested pairs that probably have an edge.  Its errors
    are uncorrelated with the differences, so that it is as good as given: strengths have no bias
    that would depend on the number of rows, as sums of absolute values do.
    """
    mean = differences.together(range(len(differences.estimates)))
    log_p = pair_statistics(mean, differences.full).log_p
    there = tested.copy()
    there[tested] = TwoGroups(equivalent_z(log_p[tested])).no_edge <= _HALF
    layout = mean.layout
    size = np.sqrt(layout.group_sums(mean.eta**2))
    factor = np.where(there & (size > 0.0), np.abs(unit) / np.where(size > 0.0, size, 1.0), 0.0)
    return np.asarray(mean.eta * layout.spread(factor))


# -- sizes of edges --------------------------------------------------------------------------------


def _single(estimates: Sequence[PairEstimates], unit: Floats) -> tuple[Floats, Floats]:
    """(groups, pairs) the parameter of pairs that have one, and its standard error."""
    shape = len(estimates), estimates[0].layout.n_groups
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    for group, each in enumerate(estimates):
        for pairs, value, covariance in each.by_size():
            if value.shape[1] == 1:
                values[group, pairs] = value[:, 0] * unit[pairs]
                se[group, pairs] = np.sqrt(covariance[:, 0, 0]) * np.abs(unit[pairs])
    return values, se


def _steps(whole: Task) -> Floats:
    """(pairs,) what parameters are multiplied by: for two levels, the step to the second one."""
    nodes, layout = whole.layout.nodes, whole.layout
    steps = np.where(nodes.numeric_nodes, 1.0, -np.sqrt(2.0))[layout.pairs].prod(axis=1)
    single = nodes.freedom[layout.pairs].prod(axis=1) == 1
    return np.where(single, steps, 1.0)


def _lengths(differences: Differences, unit: Floats) -> Floats:
    """(pairs of groups, pairs) lengths of differences, in units of sizes."""
    layout, couples = differences.layout, combinations(differences.estimates, 2)
    squares = [layout.group_sums((a.eta - b.eta) ** 2) for a, b in couples]
    return np.asarray(np.sqrt(squares) * np.abs(unit))


# -- differences of estimates ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Differences:
    """Estimates of groups that all have the same pairs, in the same units."""

    estimates: tuple[PairEstimates, ...]
    full: Nodes
    """With all their levels."""
    errors: Sequence[Floats] | None = None
    """(draws, edge parameters) of every group, drawn together, where groups depend on each other;
    covariances between groups come from them."""

    @property
    def layout(self) -> Layout:
        """Of the contrasts."""
        return self.estimates[0].layout

    @property
    def df(self) -> Ints:
        """(pairs,) degrees of freedom of the statistics."""
        return self.layout.sizes * (len(self.estimates) - 1)

    @cached_property
    def _whitened(self) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Pairs of one size k together, with K = (number of groups - 1) k differences each.

        Which pairs; (m, k) where their parameters are; (m, K, K) what makes their differences
        uncorrelated; (m, K, number of groups - 1) an orthonormal basis of the ordered directions
        then.
        """
        directions, n_others = ordered_directions(self.layout, self.full), len(self.estimates) - 1
        contrast = np.hstack([-np.ones((n_others, 1)), np.eye(n_others)])
        out = []
        for pairs, at, covariance in self._joint:
            m, k = at.shape
            apart = np.kron(contrast, np.eye(k))
            root = np.linalg.cholesky(apart @ covariance @ apart.T)
            whiten: Floats = np.asarray(np.linalg.inv(root), dtype=np.float64)
            along = np.kron(np.eye(n_others), directions[at][:, :, None])
            basis: Floats = np.linalg.qr(whiten @ along.reshape(m, n_others * k, n_others))[0]
            out.append((pairs, at, whiten, basis))
        return out

    @cached_property
    def _joint(self) -> list[tuple[Ints, Ints, Floats]]:
        """Pairs of one size k together.

        Which pairs; (m, k) where their parameters are; (m, groups k, groups k) the covariance of
        the estimates of all groups.
        """
        n_groups, out = len(self.estimates), []
        for (pairs, at), covariances in self._by_size():
            m, k = at.shape
            joint = np.zeros((m, n_groups, k, n_groups, k))
            for g, matrix in enumerate(covariances):
                joint[:, g, :, g] = matrix
                for h in range(g if self.errors is not None else 0):
                    assert self.errors is not None
                    between = [each[:, at] for each in (self.errors[g], self.errors[h])]
                    joint[:, g, :, h] = np.einsum("dma,dmb->mab", *between) / len(between[0])
                    joint[:, h, :, g] = joint[:, g, :, h].transpose(0, 2, 1)
            out.append((pairs, at, joint.reshape(m, n_groups * k, n_groups * k)))
        return out

    def _by_size(self) -> Iterator[tuple[tuple[Ints, Ints], list[Floats]]]:
        first = self.layout.starts - self.layout.n_node_terms
        for parts in zip(*(each.by_size() for each in self.estimates), strict=True):
            pairs, values, _ = parts[0]
            at = first[pairs][:, None] + np.arange(values.shape[1])
            yield (pairs, at), [covariance for _, _, covariance in parts]

    def tested(self, values: Sequence[Floats]) -> tuple[Floats, Floats]:
        """(..., pairs) statistics, and logarithms of p-values, of (..., edge parameters) per group.

        The covariances are those of the estimates, whatever the values.
        """
        shape = (*values[0].shape[:-1], self.layout.n_groups)
        statistic, log_p = np.zeros(shape), np.zeros(shape)
        for pairs, at, whiten, basis in self._whitened:
            apart = [other[..., at] - values[0][..., at] for other in values[1:]]
            whitened = np.einsum("mab,...mb->...ma", whiten, np.concatenate(apart, axis=-1))
            statistic[..., pairs] = (whitened**2).sum(axis=-1)
            log_p[..., pairs] = log_tail(statistic[..., pairs], whiten.shape[1])
            if at.shape[1] > 1:
                ordered = (np.einsum("mab,...ma->...mb", basis, whitened) ** 2).sum(axis=-1)
                df, along = basis.shape[1:]
                by_order = log_tail(ordered, along)
                log_p[..., pairs] = combined(log_p[..., pairs], by_order, df, along)
        return statistic, log_p

    def together(self, groups: Sequence[int]) -> PairEstimates:
        """Estimates of the parameters that these groups share, if the others have none.

        Errors of those of all groups are uncorrelated with the differences.
        """
        first = self.estimates[0]
        eta, covariance = np.empty_like(first.eta), np.empty_like(first.covariance)
        here = np.isin(np.arange(len(self.estimates)), groups).astype(np.float64)[:, None]
        for pairs, at, joint in self._joint:
            k = at.shape[1]
            spread = np.kron(here, np.eye(k))
            solved = np.linalg.solve(joint, spread[None])
            whole = np.linalg.inv(spread.T @ solved)
            values = np.hstack([each.eta[at] for each in self.estimates])
            eta[at] = np.einsum("mab,mcb,mc->ma", whole, solved, values)
            square = first.start[pairs][:, None] + np.arange(k * k)
            covariance[square] = whole.reshape(len(pairs), -1)
        return replace(first, eta=eta, covariance=covariance, n=sum(e.n for e in self.estimates))
