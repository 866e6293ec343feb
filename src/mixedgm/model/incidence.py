"""Edge groups -> the same parameters seen from the conditional of each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

    def entries_of(self, node: int) -> slice:
        """Coefficients that belong to the conditional of `node`."""
        first, last = self.target_ptr[node], self.target_ptr[node + 1]
        return slice(int(self.entry_ptr[first]), int(self.entry_ptr[last]))


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
    return Incidence(target_ptr, predictor, group, entry_ptr, theta_index, column, target, feature)


def conditional_of(layout: Layout) -> tuple[Ints, Ints]:
    """(start, index): theta positions of everything in the conditional of every node."""
    p, incidence = layout.n_gaussian, layout.incidence
    n_own = np.where(np.arange(layout.n_nodes) < p, 2, 0)
    n_own[layout.nodes.discrete] = layout.n_levels
    n_entries = np.diff(incidence.entry_ptr[incidence.target_ptr])
    start = np.concatenate([[0], np.cumsum(n_own + n_entries)]).astype(np.int64)
    own = np.concatenate(
        [
            np.column_stack([np.arange(p), np.arange(p, 2 * p)]).ravel(),
            np.arange(2 * p, layout.n_node_terms),
        ]
    )
    index = np.empty(start[-1], dtype=np.int64)
    index[spans(start[:-1], n_own)] = own
    index[spans(start[:-1] + n_own, n_entries)] = incidence.theta_index
    return start, index


def spans(start: Ints, length: Ints) -> Ints:
    """The concatenation of the ranges ``start[k] : start[k] + length[k]``."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - ends + length, length) + np.arange(total)
