"""Curvature that is known -> what other steps make of it: for another working set, or damped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.solve.active_system import Blocks
from mixedgm.solve.contrasts import Contrasts, offsets
from mixedgm.solve.problem import Problem

_MOST_NEW = 0.35
_OF_NODE_TERMS = 0.25


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

    def damped(self, amount: float, yardstick: Floats) -> Blocks:
        """The curvature plus `amount` times that of independent columns, in every conditional.

        Where fitted probabilities are 0 or 1 there is next to no curvature, and a model without
        any takes steps that are far too long.
        """
        old, ends = self.blocks, self.blocks.n_node_blocks
        level = np.full(len(old.size), amount * _OF_NODE_TERMS)
        level[ends:] = amount * _independent(yardstick, old.size[ends:])
        at = np.zeros(int(old.size.sum()))
        at[_stretches(old.start, old.size)] = np.repeat(level, old.size)
        ptr, local, position, length = old.runs
        node = np.repeat(np.arange(len(old.node_size)), np.diff(ptr))
        row, size = _stretches(local, length), np.repeat(old.node_size[node], length)
        matrices, values = old.matrices.copy(), old.values.copy()
        of_run = np.repeat(old.matrix_start[node], length)
        matrices[of_run + row * (size + 1)] += at[_stretches(position, length)]
        touches = np.count_nonzero(old.touch_node >= 0, axis=1)
        values[_stretches(old.start, old.size)] += np.repeat(touches * level, old.size)
        return replace(old, matrices=matrices, values=values)


def _independent(yardstick: Floats, size: Ints) -> Floats:
    """Mean curvature of groups in each of their conditionals, if all columns were independent."""
    return np.asarray(yardstick**2 / np.maximum(1, size))


def _stretches(first: Ints, length: Ints) -> Ints:
    """first[0], first[0] + 1, ... (length[0] numbers), then those from first[1] on, and so on."""
    begin = offsets(length)
    return np.asarray(np.repeat(first - begin[:-1], length) + np.arange(begin[-1]))


def _carried(old: Blocks, contrasts: Contrasts, known: Ints, yardstick: Floats) -> Blocks:
    """Blocks on the layout of `contrasts`; `known` is every group's number among the old ones."""
    from mixedgm.solve.contrast_kernels import carry

    runs, blocks, ends = contrasts.runs, contrasts.blocks, old.n_node_blocks
    size = blocks[1]
    source = np.concatenate([np.arange(ends), np.where(known >= 0, ends + known, -1)])
    level = np.zeros(len(size))
    level[ends:] = _independent(yardstick, size[ends:])
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
