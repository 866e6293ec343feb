"""Estimates of all pairs in contrasts -> coefficients of levels, in the data's own units."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.moderation import level_basis
from mixedgm.path.task import Task
from mixedgm.penalty.factors import edge_kind
from mixedgm.table.schema import Schema

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
