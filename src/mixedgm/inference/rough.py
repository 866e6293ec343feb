"""A refitted graph and the rows -> a rough test of every pair, in one pass and without inverses.

The derivative of the loss in a pair is z_u r_v + z_v r_u: columns of one end times residuals of the
other.  Here its variance is that of a pair whose ends have nothing to do with each other,

    S_u x O_v + O_u x S_v + C_u x C_v' + (C_u x C_v')',

with the second moments S of a node's columns, O of its residuals, and C of both.  Neighbours make
the true variance smaller, so a pair near the graph seems a little less certain than it is.  That
is enough to tell which pairs are worth a test.
"""

from __future__ import annotations

import numpy as np

from mixedgm.inference.held import by_size, square_starts
from mixedgm.inference.pairs import MOST_ROWS, PairEstimates, left_by_predictors
from mixedgm.inference.row_scores import Scorer
from mixedgm.model.layout import Floats, Ints, spans
from mixedgm.objective.contract import Smooth
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.contrasts import Contrasts
from mixedgm.threads import single_threaded_blas

_CELLS = 2**22
_FLAT = 1e-10


def rough_pairs(
    smooth: Smooth, rows: MemoryRows | PartedRows, theta: Floats, graph: Ints
) -> PairEstimates:
    """Score tests of all pairs, written as estimates: W is the squared score over its variance.

    The curvature of a pair counts as half its variance, which it is between independent columns;
    so an edge of the graph has half its refitted estimate here.  Arguments are those of
    `estimated_pairs`; there are no moderators.
    """
    contrasts = Contrasts(smooth.layout)
    reduced, n = contrasts.reduced, rows.total_weight
    left = left_by_predictors(reduced, graph, n)
    with single_threaded_blas():  # sums in a fixed order
        scorer = Scorer(smooth.layout, reduced, theta, contrasts.down(theta), left**-0.5)
        moments = _moments(rows, scorer, max(1, rows.n_rows // MOST_ROWS))
        gradient = contrasts.down(smooth.evaluate(theta).gradient)[reduced.edges]
        eta, start = np.zeros(len(gradient)), square_starts(reduced)
        covariance = np.empty(start[-1])
        (row, column), first = reduced.edge_position, reduced.column_start
        u, v = reduced.pairs.T
        for every, all_params in by_size(reduced):
            k = all_params.shape[1]
            step = max(1, _CELLS // k**2)
            for part in range(0, len(every), step):
                groups, at = every[part : part + step], all_params[part : part + step]
                ends = u[groups][:, None, None], v[groups][:, None, None]
                a, b = row[at] - first[u[groups]][:, None], column[at] - first[v[groups]][:, None]
                a, b = (a[:, :, None], a[:, None, :]), (b[:, :, None], b[:, None, :])
                s_u, o_u, c_u = (each[ends[0], a[0], a[1]] for each in moments)
                s_v, o_v, _ = (each[ends[1], b[0], b[1]] for each in moments)
                mixed = c_u * moments[2][ends[1], b[1], b[0]]
                variance = s_u * o_v + o_u * s_v + mixed + mixed.transpose(0, 2, 1)
                eta[at], inverse = _solved(variance, gradient[at])
                to = start[groups][:, None] + np.arange(k * k)
                covariance[to] = inverse.reshape(len(groups), -1) / n
    held = spans(reduced.starts[graph], reduced.sizes[graph])
    eta[held - reduced.n_node_terms] += 0.5 * contrasts.down(theta)[held]
    return PairEstimates(reduced, eta, covariance, n)


def _solved(variance: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """Minus V^-1 g, and V^-1, for every group; directions without variance count as certain."""
    if variance.shape[1] == 1:
        inverse = 1.0 / np.maximum(variance, _FLAT)
    else:
        values, vectors = np.linalg.eigh(variance)
        values = np.maximum(values, _FLAT * np.maximum(values[:, -1:], 1.0))
        inverse = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return -np.einsum("gab,gb->ga", inverse, gradient), inverse


def _moments(rows: MemoryRows | PartedRows, scorer: Scorer, stride: int) -> tuple[Floats, ...]:
    """(nodes, widest, widest) each: means of zz', rr' and zr', from every stride-th row."""
    if isinstance(rows, PartedRows):
        return tuple(rows.means(_all_moments, scorer, stride=stride))
    layout = scorer.reduced
    index = np.arange(0, rows.n_rows, stride)
    weights = np.ones(len(index)) if rows.weights is None else rows.weights[index]
    share, step = weights / weights.sum(), max(16, _CELLS // max(layout.n_columns, 1))
    widest = int(layout.width.max(initial=0))
    out = np.zeros((3, layout.n_nodes, widest, widest))
    for at in range(0, len(index), step):
        scores = scorer.score(rows, index[at : at + step])
        here = share[at : at + step]
        for w in np.unique(layout.width[layout.width > 0]).tolist():
            nodes = np.flatnonzero(layout.width == w)
            columns = layout.column_start[nodes][:, None] + np.arange(w)
            z, r = scores.columns[:, columns], scores.residuals[:, columns]
            for number, (one, other) in enumerate(((z, z), (r, r), (z, r))):
                sums = np.einsum("n,nmi,nmj->mij", here, one, other, optimize=True)
                out[number, nodes, :w, :w] += sums
    return tuple(out)


def _all_moments(rows: MemoryRows, scorer: Scorer) -> tuple[Floats, ...]:
    """`_moments` of some rows, all of which count."""
    return _moments(rows, scorer, 1)
