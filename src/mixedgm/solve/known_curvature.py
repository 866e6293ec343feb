"""Curvature of one working set -> a rough one of another that shares most of its groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.solve.active_system import Blocks
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.problem import Problem

_MOST_NEW = 0.35


@dataclass(frozen=True, eq=False)
class KnownCurvature:
    """Curvature in contrasts that may serve several steps, and the next lam."""

    contrasts: Contrasts
    blocks: Blocks
    rough: bool = False
    """Good for the first step on a new working set, not for the last ones."""

    def extended(self, before: Ints, groups: Ints, problem: Problem) -> KnownCurvature | None:
        """What is known of the groups `before`, carried over to the problem on `groups`.

        A group that is new gets the mean curvature that independent columns would give it, and
        none together with others.  For a first step that serves as well as the curvature of a few
        hundred rows, and no row is visited; not where most groups are new (None).
        """
        if not problem.smooth.by_nodes:
            return None
        contrasts = Contrasts(problem.smooth.layout)
        known = np.full(len(groups), -1)
        if len(before):
            at = np.minimum(np.searchsorted(before, groups), len(before) - 1)
            known = np.where(before[at] == groups, at, -1)
        if np.count_nonzero(known < 0) > _MOST_NEW * len(groups):
            return None
        blocks = _carried(self.blocks, contrasts, known, problem.yardstick)
        return KnownCurvature(contrasts, blocks, rough=True)


def _carried(old: Blocks, contrasts: Contrasts, known: Ints, yardstick: Floats) -> Blocks:
    """Blocks on the layout of `contrasts`; `known` is every group's number among the old ones."""
    from mixedgm.solve.contrast_kernels import carry

    runs, ends = contrasts.runs, old.n_node_blocks
    start, size, touch_node, touch_at = contrasts.blocks
    block, side = contrasts.block_of_run
    source = np.concatenate([np.arange(ends), np.where(known >= 0, ends + known, -1)])
    level = np.zeros(len(size))
    level[ends:] = yardstick**2 / np.maximum(1, size[ends:])
    node_size = np.add.reduceat(runs.narrow, runs.ptr[:-1])
    matrix_start = np.concatenate([[0], np.cumsum(node_size**2)]).astype(np.int64)
    matrices = np.zeros(int(matrix_start[-1]))
    old_local = np.where(source[block] >= 0, old.touch_at[source[block], side], -1)
    new = (matrix_start, node_size, runs.ptr, runs.local, runs.narrow)
    carry(old.nodes, new, old_local, level[block], matrices)
    eigen_start, vectors, values = _eigen(old, start, size, source)
    fresh = np.flatnonzero(source < 0)
    values[ranges(start[fresh], size[fresh])] = np.repeat(
        level[fresh] * np.count_nonzero(touch_node[fresh] >= 0, axis=1), size[fresh]
    )
    return replace(
        old,
        start=start,
        size=size,
        touch_node=touch_node,
        touch_at=touch_at,
        matrix_start=matrix_start,
        node_size=node_size,
        node_start=np.concatenate([[0], np.cumsum(node_size)]).astype(np.int64),
        runs=(runs.ptr, runs.local, runs.position, runs.narrow),
        matrices=matrices,
        eigen_start=eigen_start,
        vectors=vectors,
        values=values,
    )


def _eigen(old: Blocks, start: Ints, size: Ints, source: Ints) -> tuple[Ints, Floats, Floats]:
    """Eigendecompositions of the blocks that were there; new ones have the identity's vectors."""
    eigen_start = np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64)
    vectors, values = np.zeros(int(eigen_start[-1])), np.empty(int(size.sum()))
    kept = np.flatnonzero(source >= 0)
    from_, n = source[kept], size[kept]
    values[ranges(start[kept], n)] = old.values[ranges(old.start[from_], n)]
    vectors[ranges(eigen_start[kept], n**2)] = old.vectors[ranges(old.eigen_start[from_], n**2)]
    fresh = np.flatnonzero(source < 0)
    within = ranges(np.zeros(len(fresh), dtype=np.int64), size[fresh])
    corner = np.repeat(eigen_start[fresh], size[fresh])
    vectors[corner + within * (np.repeat(size[fresh], size[fresh]) + 1)] = 1.0
    return eigen_start, vectors, values


def ranges(start: Ints, length: Ints) -> Ints:
    """start[0], start[0] + 1, ... for length[0] numbers, then the same for the others."""
    total = int(length.sum())
    before = np.concatenate([[0], np.cumsum(length)[:-1]]) if len(length) else np.zeros(0, np.int64)
    return np.repeat(start - before, length) + np.arange(total)
