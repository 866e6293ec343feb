"""Edge groups -> the same parameters seen from the conditional of each node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.nodes import Nodes

if TYPE_CHECKING:
    from mixedgm.model.layout import Layout

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Incidence:
    """The same parameters seen from the conditional of each node.

    Target node v has the predictor nodes ``predictor[target_ptr[v]:target_ptr[v + 1]]``.  The
    k-th predictor, u, is joined to v by the edge ``group[k]`` and contributes the coefficients
    ``entry_ptr[k]:entry_ptr[k + 1]``: a ``width[u] x width[v]`` block, row-major.  Coefficient e
    equals ``theta[theta_index[e]]`` and stands at ``(entry_column[e], entry_target[e])`` of the
    symmetric matrix of design columns.

    A block of a deviation multiplies the columns of u by the moderators' feature ``feature[k]``
    (-1: by nothing).  Its columns come after all plain ones: ``entry_column`` is
    ``(1 + feature) * n_columns`` further on.
    """

    target_ptr: Ints
    predictor: Ints
    group: Ints
    entry_ptr: Ints
    theta_index: Ints
    entry_column: Ints
    entry_target: Ints
    feature: Ints
    nodes: Nodes

    @cached_property
    def node_entries(self) -> Ints:
        """First coefficient of every node's conditional, and the end."""
        return self.entry_ptr[self.target_ptr]

    @property
    def gaussian_entries(self) -> slice:
        """Coefficients of Gaussian conditionals, which come first."""
        return slice(0, int(self.node_entries[self.nodes.n_gaussian]))

    @property
    def softmax_entries(self) -> slice:
        """Coefficients of softmax conditionals."""
        return slice(self.gaussian_entries.stop, len(self.theta_index))

    def entries_of(self, node: int) -> slice:
        """Coefficients that belong to the conditional of `node`."""
        return slice(int(self.node_entries[node]), int(self.node_entries[node + 1]))


def incidence_of(layout: Layout) -> Incidence:
    """Every coefficient of every conditional: by target, then predictor, base edges first.

    The blocks of a deviation that has several features stand together.
    """
    from mixedgm.model.kernels import incidence

    times = layout.conditionals
    target_ptr = np.zeros(layout.n_nodes + 1, dtype=np.int64)
    blocks = np.empty((3, int(times @ layout.n_blocks)), dtype=np.int64)
    entry_ptr = np.zeros(blocks.shape[1] + 1, dtype=np.int64)
    entries = np.empty((3, int(times @ layout.sizes)), dtype=np.int64)
    incidence(
        (layout.pairs, layout.moderator, layout.first_feature, layout.n_blocks, layout.starts),
        (layout.width, layout.column_start, layout.is_target),
        (len(layout.n_features), layout.conditionals_at_most),
        (target_ptr, blocks, entry_ptr, entries),
        np.zeros_like(target_ptr),
    )
    predictor, group, feature = blocks
    theta_index, column, target = entries
    return Incidence(
        target_ptr,
        predictor,
        group,
        entry_ptr,
        theta_index,
        column,
        target,
        feature,
        layout.nodes,
    )


def spans(start: Ints, length: Ints) -> Ints:
    """The concatenation of the ranges ``start[k] : start[k] + length[k]``."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - ends + length, length) + np.arange(total)
