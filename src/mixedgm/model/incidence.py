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
    group, feature = layout.block_group, layout.block_feature
    u, v = layout.pairs[group, 0], layout.pairs[group, 1]
    block = np.arange(len(group))
    target, predictor = v, u
    if not layout.nodewise:
        target, predictor = np.concatenate([v, u]), np.concatenate([u, v])
        block = np.concatenate([block] * 2)
    order = np.lexsort((predictor, target))
    if layout.n_features:
        order = np.lexsort((feature[block], predictor, layout.moderator[group[block]], target))
    order = order[layout.is_target[target[order]]]
    target, predictor, block = target[order], predictor[order], block[order]
    group, feature = group[block], feature[block]
    rows, columns = layout.width[predictor], layout.width[target]
    sizes = rows * columns
    entry_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(entry_ptr[-1]) - np.repeat(entry_ptr[:-1], sizes)
    row, column = within // np.repeat(columns, sizes), within % np.repeat(columns, sizes)
    # In theta the first node of a pair runs along the rows of the block.
    first = np.repeat(predictor == layout.pairs[group, 0], sizes)
    offset = np.where(first, within, column * np.repeat(rows, sizes) + row)
    start = layout.column_start[predictor] + (1 + feature) * layout.n_columns
    return Incidence(
        target_ptr=np.searchsorted(target, np.arange(layout.n_nodes + 1)).astype(np.int64),
        predictor=predictor,
        group=group,
        entry_ptr=entry_ptr,
        theta_index=np.repeat(layout.block_start[block], sizes) + offset,
        entry_column=np.repeat(start, sizes) + row,
        entry_target=np.repeat(layout.column_start[target], sizes) + column,
        feature=feature,
    )


def conditional_of(layout: Layout) -> tuple[Ints, Ints]:
    """(start, index): theta positions of everything in the conditional of every node."""
    p, incidence = layout.n_cont, layout.incidence
    n_own = np.where(np.arange(layout.n_nodes) < p, 2, layout.width)
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
