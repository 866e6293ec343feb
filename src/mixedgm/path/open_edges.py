"""A point and its edges -> those whose estimates the rows leave open, by the curvature there.

A cell without rows drives an interaction to minus infinity, a code that determines another column
makes both predict each other perfectly, a number that others determine has no variance left.  On
the way there the curvature vanishes: what is left of it is counted in rows, one row being worth
the curvature that it would add if the two columns were independent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Smooth
from mixedgm.path.task import Task
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.contrasts import Contrasts

__all__ = [
    "least_curvature",
    "open_edges",
    "open_numbers",
    "parameters",
    "worth_one_row",
]

# Beyond so many parameters in one conditional, its edges are judged one by one.
_LARGEST_INVERTED = 4000
_MOST_BYTES = 2.0**30


def parameters(task: Task, groups: Ints) -> Ints:
    """Identifiable parameters of each of these edges, over observed levels."""
    layout = task.layout
    return np.asarray(
        layout.nodes.freedom[layout.pairs[groups]].prod(axis=1) * layout.n_blocks[groups]
    )


def worth_one_row(task: Task, groups: Ints) -> Floats:
    """Mean curvature of each group's contrasts that one row adds, if all columns were independent.

    Zero for groups that are in the conditional of a number: means of a number are always finite.
    """
    layout, one_term = task.layout, task.smooth.terms_per_edge == 1
    ends = layout.pairs[groups]
    number = (layout.is_target & layout.nodes.gaussian_nodes)[ends]
    among = number[:, 1] if layout.nodewise else number.any(axis=1)
    times = layout.conditionals[groups]
    scale = task.yardstick[groups]
    if not one_term:
        scale = scale * layout.conditionals_at_most / times
    terms = np.minimum(times, task.smooth.terms_per_edge)
    level = terms * scale**2 / np.maximum(1, parameters(task, groups)) / task.total_weight
    return np.where(among, 0.0, level)


def open_numbers(task: Task, groups: Ints, theta: Floats, rows: float = 1.0) -> NDArray[np.bool_]:
    """Whether its neighbours leave less than rows / n of a number's variance."""
    layout = task.layout
    joined = np.zeros(layout.n_nodes, dtype=bool)
    joined[layout.pairs[groups]] = True
    explained = (joined & layout.is_target)[layout.nodes.gaussian]
    return np.asarray(explained & (theta[layout.diagonal] * rows > task.total_weight))


def open_edges(
    task: Task, groups: Ints, theta: Floats, *, rows: float, free: Ints | None = None
) -> Ints:
    """Groups of which some contrast has less curvature than so many rows would give.

    `groups` are all that are not zero at theta.  Only those that are `free` (all, by default) are
    asked about and can follow one another; what has a penalty stays where it is.
    """
    at = np.arange(len(groups)) if free is None else np.flatnonzero(np.isin(groups, free))
    level = worth_one_row(task, groups)
    asked = at[level[at] > 0.0]
    if len(asked) == 0:
        return groups[asked]
    small = task.smooth.restrict(groups)
    if small.curvature_rows == 0 or _too_large(small):
        return groups[asked]
    here = theta[task.layout.positions(groups)]
    with single_threaded_blas():  # its rounding must not depend on the threads
        least = least_curvature(small, here, asked, at, 1e-6 * float(level[asked].min()))
    return groups[asked[least < rows * level[asked]]]


def _too_large(smooth: Smooth) -> bool:
    """Whether no curvature can be kept, as with two columns of very many levels."""
    sizes = Contrasts(smooth.layout).runs.node_size
    return bool(smooth.by_nodes and 8.0 * float((sizes.astype(float) ** 2).sum()) > _MOST_BYTES)


def least_curvature(
    smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float = 0.0
) -> Floats:
    """Smallest curvature of the contrasts of each group, node terms and `free` groups following.

    By nodes it is a lower bound: every conditional follows on its own.  `ridge` is added to the
    curvature, so that it can be inverted.
    """
    contrasts = Contrasts(smooth.layout)
    if smooth.by_nodes:
        blocks = _by_nodes(contrasts, smooth, theta, asked, free, ridge)
    else:
        blocks = _of_whole(contrasts, smooth, theta, asked, free, ridge)
    return np.array([np.linalg.eigvalsh(blocks[g])[0] for g in asked.tolist()])


def _by_nodes(
    contrasts: Contrasts, smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float
) -> dict[int, Floats]:
    size, start, matrices = contrasts.curvature(smooth, theta, 1)
    runs, layout = contrasts.runs, smooth.layout
    group = np.maximum(runs.block - layout.n_node_blocks, -1)  # -1: a node term
    # Of node terms, which come last here, all follow and none is asked about.
    wanted = np.append(_among(layout.n_groups, asked), False)
    follows = np.append(_among(layout.n_groups, free), True)
    total: dict[int, Floats] = {}
    for v in range(layout.n_nodes):
        entries = np.arange(runs.ptr[v], runs.ptr[v + 1])
        entries = entries[follows[group[entries]]]
        if not size[v] or not wanted[group[entries]].any():
            continue
        kept = np.concatenate(
            [np.arange(runs.local[a], runs.local[a] + runs.length[a]) for a in entries.tolist()]
        )
        of = np.repeat(group[entries], runs.length[entries])
        matrix = matrices[start[v] : start[v + 1]].reshape(size[v], size[v])[np.ix_(kept, kept)]
        # A deviation has several runs.
        places = {g: np.flatnonzero(of == g) for g in np.unique(of).tolist() if wanted[g]}
        for g, part in _given_the_rest(matrix, places, ridge).items():
            total[g] = total[g] + part if g in total else part
    return total


def _of_whole(
    contrasts: Contrasts, smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float
) -> dict[int, Floats]:
    layout = contrasts.reduced
    kept = layout.positions(np.sort(free))
    matrix = contrasts.whole_curvature(smooth, theta, 1)[np.ix_(kept, kept)]
    ends = {g: (layout.starts[g], layout.starts[g + 1]) for g in asked.tolist()}
    places = {g: np.flatnonzero((kept >= a) & (kept < b)) for g, (a, b) in ends.items()}
    return _given_the_rest(matrix, places, ridge)


def _among(n: int, some: Ints) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=bool)
    mask[some] = True
    return mask


def _given_the_rest(matrix: Floats, places: dict[int, Ints], ridge: float) -> dict[int, Floats]:
    """Curvature at these places when everything else in the matrix follows: a Schur complement.

    That is the inverse of a part of the inverse.
    """
    if len(matrix) > _LARGEST_INVERTED:
        return {g: matrix[np.ix_(at, at)] for g, at in places.items()}
    ridge += 1e-14 * float(np.trace(matrix)) / len(matrix)
    inverse = _inverse(matrix, ridge)
    return {g: np.asarray(linalg.inv(inverse[np.ix_(at, at)])) for g, at in places.items()}


def _inverse(matrix: Floats, ridge: float) -> Floats:
    """Inverse of the matrix plus a ridge, from its triangular factor."""
    factor, failed = linalg.lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=1)
    if failed:  # rounding: no contrast is certain
        return np.eye(len(matrix)) / ridge
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
