"""Numba kernels over the edge groups of a layout: norms, and the incidence of conditionals."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import kernel


@kernel(fastmath={"reassoc", "contract"})
def group_norms(starts, theta, first, last, out):  # type: ignore[no-untyped-def]
    """out[g] = norm of theta[starts[g]:starts[g + 1]], for the groups first:last."""
    for g in range(first, last):
        total = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += theta[k] * theta[k]
        out[g] = np.sqrt(total)


@kernel
def incidence(groups, nodes, sizes, out, at):  # type: ignore[no-untyped-def]
    """Fill an Incidence: out = (target_ptr, (predictor, group, feature), entry_ptr, entries).

    groups = (pairs, moderator, first feature, number of blocks, start) of each, and the order in
    which pairs are sorted; nodes = (width,
    first column, whether it is a target); sizes = (moderators, ends of a pair that it counts for);
    entries = (theta_index, entry_column, entry_target).  `at` is zero, one longer than the nodes.
    """
    pairs, moderator, first_feature, n_blocks, start, order = groups
    width, column, is_target = nodes
    n_moderators, n_ends = sizes
    target_ptr, blocks, entry_ptr, entries = out
    for g in range(pairs.shape[0]):
        for end in range(n_ends):
            if is_target[pairs[g, 1 - end]]:
                target_ptr[pairs[g, 1 - end] + 1] += n_blocks[g]
    for v in range(width.shape[0]):
        target_ptr[v + 1] += target_ptr[v]
        at[v] = target_ptr[v]
    # In sorted pairs those in which a node is the second come in the order of predictors, before
    # those in which it is the first.
    for m in range(-1, n_moderators):
        for end in range(n_ends):
            for g in order:
                u, v = pairs[g, end], pairs[g, 1 - end]
                if moderator[g] != m or not is_target[v]:
                    continue
                for k in range(n_blocks[g]):
                    blocks[0, at[v]], blocks[1, at[v]] = u, g
                    blocks[2, at[v]] = first_feature[g] + k
                    entry_ptr[at[v] + 1] = width[u] * width[v]
                    at[v] += 1
    e = 0
    for v in range(width.shape[0]):
        for k in range(target_ptr[v], target_ptr[v + 1]):
            u, g, feature = blocks[0, k], blocks[1, k], blocks[2, k]
            base = start[g] + (feature - first_feature[g]) * width[u] * width[v]
            # In theta the first node of a pair runs along the rows of the block.
            down, along = (width[v], 1) if u == pairs[g, 0] else (1, width[u])
            for a in range(width[u]):
                for b in range(width[v]):
                    entries[0, e] = base + a * down + b * along
                    entries[1, e] = column[u] + (1 + feature) * column[-1] + a
                    entries[2, e] = column[v] + b
                    e += 1
            entry_ptr[k + 1] = e
