"""Estimates of all pairs -> strengths with intervals, and coefficients in the data's units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.strength import (
    ConditionalInformation,
    PairUncertainty,
    RestRows,
    determined_trace,
    excess,
    interval,
    interval_of_numbers,
    strength,
)
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.moderation import level_basis
from mixedgm.model.params import Params
from mixedgm.path.task import Task
from mixedgm.penalty.weights import edge_kind
from mixedgm.table.schema import Schema


@dataclass(frozen=True, eq=False)
class EstimatedPair:
    """Estimates of a pair of nodes in the data's own units, over all declared levels.

    Parameters
    ----------
    u, v : int
    block : ndarray (width of u, width of v)
    spread : ndarray
        n times the covariance of its parameters, row by row.
    freedom : int
        Free parameters.
    n : float
        Number of observations.
    """

    u: int
    v: int
    block: Floats
    spread: Floats
    freedom: int
    n: float

    def strength(self, inside: ConditionalInformation, level: float) -> tuple[float, float, float]:
        """Return the strength, and the ends of its interval."""
        u, v, n = self.u, self.v, self.n
        nats, nodes = inside.of_block(u, v, self.block), inside.params.nodes
        if not np.isfinite(nats):
            return 1.0, np.nan, np.nan
        is_fixed = bool({u, v} & set(inside.covariates))
        if nodes.gaussian_nodes[u] and nodes.gaussian_nodes[v] and not is_fixed:
            unit = float(inside.params.diagonal[[u, v]].prod())
            scale = float(self.spread[0, 0] / (unit + self.block[0, 0] ** 2))
            low, high = interval_of_numbers(np.sqrt(-np.expm1(-2.0 * nats)), scale, n, level)
            return float(strength(np.array(nats), excess(scale, n))), low, high
        trace, variance = float(self.freedom), 2.0 * nats
        if not is_fixed:
            found, own = inside.uncertainty(u, v, self.block), self.block.ravel()
            trace = determined_trace(found.fisher, self.spread, self.freedom)
            pull = found.fisher @ own
            excess_spread = float(pull @ self.spread @ pull) / max(float(own @ pull), 1e-300)
            variance = max(excess_spread, 1.0) * found.variance
        low, high = interval(PairUncertainty(nats, self.freedom, trace, variance), n, level)
        return float(strength(np.array(nats), excess(trace, n))), low, high


def shares_of(task: Task) -> dict[int, Floats]:
    """Shares of the levels of every node that has an own term for each of them."""
    nodes, moments, out = task.layout.nodes, task.moments, dict[int, Floats]()
    if moments is None:
        return out
    for j, node in enumerate(nodes.discrete_nodes.tolist()):
        shares = moments.shares[nodes.slots_of(j)]
        if nodes.n_biases[node] == nodes.n_values[node] and shares.all():
            out[node] = shares
    return out


@dataclass(frozen=True, eq=False)
class PairStrengths:
    """Strengths of all pairs, each given the edges of a graph.

    Parameters
    ----------
    task : Task
        The rows that were tested.
    theta : ndarray
        The refit of the graph.
    estimates : PairEstimates
        Pairs given the graph, and their covariances.
    estimated : ndarray of int
        Which groups these are.
    rows : RestRows
        Rows of the table, at which information is computed.
    """

    task: Task
    theta: Floats
    estimates: PairEstimates
    estimated: Ints
    rows: RestRows

    def columns(self, level: float) -> dict[str, Floats]:
        """Strength, lower and upper of every group.

        Not a number for deviations of edges, and for pairs that were not estimated.
        """
        out = np.full((3, self.task.layout.n_groups), np.nan)
        for places, values, covariances in self.estimates.by_size():
            for at, group in enumerate(self.estimated[places].tolist()):
                if self.task.layout.moderator[group] < 0:
                    pair = self._pair(group, values[at], covariances[at])
                    out[:, group] = pair.strength(self._inside, level)
        return dict(zip(("strength", "lower", "upper"), out, strict=True))

    def _pair(self, group: int, eta: Floats, covariance: Floats) -> EstimatedPair:
        u, v = self.task.layout.pairs[group].tolist()
        turn, n = self._turn(u, v), self.estimates.n
        block = np.zeros(tuple(self.task.schema.spans.width[[u, v]].tolist()))
        spread, at = np.zeros((block.size, block.size)), self._among_declared(u, v)
        block.ravel()[at] = turn @ eta
        spread[np.ix_(at, at)] = n * turn @ covariance @ turn.T
        return EstimatedPair(u, v, block, spread, len(eta), n)

    # -- levels and units --------------------------------------------------------------------------

    @cached_property
    def _params(self) -> Params:
        return self.task.params(self.theta)

    @cached_property
    def _inside(self) -> ConditionalInformation:
        covariates, shares = self.task.schema.covariates, shares_of(self.task)
        return ConditionalInformation(self._params, self.rows, covariates, shares)

    def _turn(self, u: int, v: int) -> Floats:
        """What takes contrasts of a pair to its parameters in the data's own units.

        Estimates are less by the share of the rows that predictors take, because unshrunken ones
        are too large by it.  The precisions here are, and the information is corrected otherwise:
        so it is given back, a root at either end.
        """
        nodes, left = self.task.layout.nodes, self.estimates.left
        units, bases = self.task.units.of_columns(nodes), []
        for node in (u, v):
            width = int(nodes.width[node])
            basis = np.eye(width) if nodes.numeric_nodes[node] else level_basis(width)
            unit = units[nodes.columns_of(node)]
            if left is not None and self.task.layout.is_target[node]:
                unit[-1 if nodes.is_real(node) else slice(None)] *= np.sqrt(left[node])
            bases.append(basis / unit[:, None])
        return np.asarray(np.kron(*bases))

    def _observed(self, node: int) -> Ints:
        """Design columns of a node that have rows, among all that are declared."""
        nodes, declared = self.task.layout.nodes, self.task.schema.spans
        if nodes.numeric_nodes[node]:
            return np.arange(int(nodes.width[node]))
        return np.flatnonzero(self.task.observed[declared.levels_of(declared.place(node))])

    def _among_declared(self, u: int, v: int) -> Ints:
        """Parameters of levels that have rows, among those of all that are declared."""
        width = int(self.task.schema.spans.width[v])
        return np.asarray((self._observed(u)[:, None] * width + self._observed(v)).ravel())


# -- pair coefficients -----------------------------------------------------------------------------

Named = dict[str, Any]


def named_pairs(schema: Schema, pairs: Ints) -> tuple[Named, Ints]:
    """Source, target and kind of all pairs, as arrays; and the pairs, source first."""
    is_covariate = np.array([node.role == "covariate" for node in schema.nodes], dtype=bool)
    swapped = ~is_covariate[pairs[:, 0]] & is_covariate[pairs[:, 1]]
    directed = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    names = np.array([node.name for node in schema.nodes], dtype=object)
    kinds, kind = np.unique([node.kind for node in schema.nodes], return_inverse=True)
    first = [int(np.argmax(kind == at)) for at in range(len(kinds))]
    table = np.array([[edge_kind(schema, u, v) for v in first] for u in first], dtype=object)
    source, target = directed.T
    columns = {"source": names[source], "target": names[target]}
    return columns | {"kind": table[kind[source], kind[target]]}, directed


def pair_coefficients(
    task: Task, estimates: PairEstimates, axes: list[tuple[str | None, ...]], rank: Ints
) -> Named:
    """Every coefficient of every pair, as columns.

    Parameters
    ----------
    task, estimates
        What was estimated.
    axes : list
        Names of what others see of every node.
    rank : ndarray (n_groups,)
        The place of every group among all, in the order of the columns that are returned.
    """
    layout = task.layout
    like, parts = _alike(task), []
    for kind in range(int(like.max(initial=-1)) + 1):
        parts.append(_of_one_shape(task, estimates, np.flatnonzero(like == kind)))
    group, row, column, feature, value, error = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    named, directed = named_pairs(task.schema, layout.pairs)
    swapped = (directed[:, 0] != layout.pairs[:, 0])[group]
    source, target = np.where(swapped, (column, row), (row, column))
    order = np.lexsort((target, source, feature, rank[group]))
    group, source, target, feature = (each[order] for each in (group, source, target, feature))
    labels = np.array([*(label for axis in axes for label in axis), None], dtype=object)
    out: Named = {"source": named["source"][group], "target": named["target"][group]}
    out |= {"source_level": labels[source], "target_level": labels[target]}
    if task.moderators is not None:
        names = [task.schema.nodes[m].name for m in task.moderators.nodes]
        out["moderator"] = np.array([*names, None], dtype=object)[layout.moderator[group]]
        out["moderator_level"] = labels[feature]
    return out | {"estimate": value[order], "se": error[order]}


def _alike(task: Task) -> Ints:
    """(n_groups,) numbers that are the same for groups whose coefficients are made alike."""
    layout, nodes = task.layout, task.layout.nodes
    u, v = layout.pairs.T
    shape = nodes.width * np.where(nodes.numeric_nodes, -1, 1)
    keys = np.column_stack([shape[u], shape[v], layout.moderator])
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).reshape(-1)


def _of_one_shape(
    task: Task, estimates: PairEstimates, groups: Ints
) -> tuple[Ints, Ints, Ints, Ints, Floats, Floats]:
    """Of each coefficient: group, design columns of both ends and the moderator, value, error."""
    layout, nodes = task.layout, task.layout.nodes
    u, v = layout.pairs[groups[0]].tolist()
    by_feature, of_moderator = _over_features(task, int(layout.moderator[groups[0]]))
    turn = np.kron(by_feature, np.kron(_basis(task, u), _basis(task, v)))
    k = turn.shape[1]
    first = (estimates.layout.starts - estimates.layout.n_node_terms)[groups]
    values = estimates.eta[first[:, None] + np.arange(k)] @ turn.T
    square = estimates.start[groups][:, None] + np.arange(k * k)
    matrices = estimates.covariance[square].reshape(-1, k, k)
    errors = np.sqrt(np.einsum("ia,gab,ib->gi", turn, matrices, turn, optimize=True))
    # Groups, values of the moderator, design columns of both ends.
    shape = (len(groups), len(of_moderator), int(nodes.width[u]), int(nodes.width[v]))
    starts = nodes.column_start[layout.pairs[groups]]
    row = starts[:, 0, None, None, None] + np.arange(shape[2])[:, None]
    column = starts[:, 1, None, None, None] + np.arange(shape[3])
    units = task.units.of_columns(nodes)
    scale = units[row] * units[column]
    each = (groups[:, None, None, None], row, column, of_moderator[:, None, None])
    group, row, column, feature = (np.broadcast_to(part, shape).ravel() for part in each)
    scaled = [(part.reshape(shape) / scale).ravel() for part in (values, errors)]
    return group, row, column, feature, scaled[0], scaled[1]


def _basis(task: Task, node: int) -> Floats:
    """What takes contrasts of a node to its design columns."""
    nodes, width = task.layout.nodes, int(task.layout.nodes.width[node])
    return np.eye(width) if nodes.numeric_nodes[node] else level_basis(width)


def _over_features(task: Task, moderator: int) -> tuple[Floats, Ints]:
    """What takes features of a moderator to its design columns, and which these are."""
    layout, nodes = task.layout, task.layout.nodes
    if moderator < 0 or task.moderators is None:
        return np.ones((1, 1)), np.full(1, -1)
    node = task.moderators.nodes[moderator]
    columns = nodes.columns_of(node)
    which = np.arange(columns.start, columns.stop)
    if nodes.numeric_nodes[node]:
        return np.diag(1.0 / task.units.of_columns(nodes)[columns]), which
    basis = _basis(task, node)
    return basis - task.moderators.centre(layout)[columns] @ basis, which
