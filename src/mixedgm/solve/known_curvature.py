"""Curvature of one working set -> a rough one of another that shares most of its groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.solve.active_system import Blocks
from mixedgm.solve.contrasts import Contrasts, offsets
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

    runs, blocks, ends = contrasts.runs, contrasts.blocks, old.n_node_blocks
    size = blocks[1]
    source = np.concatenate([np.arange(ends), np.where(known >= 0, ends + known, -1)])
    level = np.zeros(len(size))
    level[ends:] = yardstick**2 / np.maximum(1, size[ends:])
    matrix_start, eigen_start = offsets(runs.node_size**2), offsets(size**2)
    matrices, vectors = np.zeros(int(matrix_start[-1])), np.zeros(int(eigen_start[-1]))
    values = np.empty(int(size.sum()))
    was = (old.matrices, old.vectors, old.values)
    carry(
        (old.blocks, (old.matrix_start, old.node_size), old.eigen_start, was),
        (blocks, (matrix_start, runs.node_size), eigen_start),
        (runs.ptr, runs.local, runs.length, runs.block, runs.side),
        source,
        level,
        (matrices, vectors, values),
    )
    return Blocks(
        *blocks,
        matrix_start=matrix_start,
        node_size=runs.node_size,
        node_start=offsets(runs.node_size),
        runs=(runs.ptr, runs.local, runs.position, runs.length),
        matrices=matrices,
        eigen_start=eigen_start,
        vectors=vectors,
        values=values,
        n_node_blocks=ends,
    )
