"""A graph and its refit -> pairs outside it that could take the place of one of its edges.

Where two columns are close to each other, a third one that is related to one of them is seen to be
related to either: the edge that was found may stand for its rival.  If a rival f takes the place of
an edge e, everything else following, the log pseudolikelihood rises by

    gain of f given the graph - loss of e given the graph and f,

both to second order at the graph's own refit, so that nothing is refitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixedgm.inference.held import Batch, Held
from mixedgm.inference.pairs import MOST_ROWS, Steps, hessian_of, inverse_of, left_by_predictors
from mixedgm.inference.row_scores import Scorer
from mixedgm.inference.row_sums import EndProducts, curvature_sums
from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Smooth
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.contrasts import Contrasts
from mixedgm.threads import single_threaded_blas


@dataclass(frozen=True, eq=False)
class Rivals:
    """Edges of a graph, and pairs outside it with which they have a column in common."""

    edge: Ints
    """(S,) groups of the graph."""
    rival: Ints
    """(S,) groups outside."""
    rise: Floats
    """(S,) by how much the mean log pseudolikelihood is higher with the rival instead."""
    loss: Floats
    """(S,) by how much it is lower without the edge."""


def rivals(smooth: Smooth, rows: MemoryRows | PartedRows, theta: Floats, graph: Ints) -> Rivals:
    """Look at all pairs outside the graph that share a column with an edge.

    The arguments are those of `pairs.estimated_pairs`.
    """
    contrasts = Contrasts(smooth.layout)
    reduced = contrasts.reduced
    stride = max(1, rows.n_rows // MOST_ROWS)
    with single_threaded_blas():  # sums in a fixed order
        held, ends = Held(reduced, graph), EndProducts(reduced)
        left, eta = left_by_predictors(reduced, graph, rows.total_weight), contrasts.down(theta)
        scorer = Scorer(smooth.layout, reduced, theta, eta, left**-0.5)
        curvature = curvature_sums(held, ends, scorer, rows, stride, np.float32)
        gradient = contrasts.down(smooth.evaluate(theta).gradient)
        inverse = inverse_of(hessian_of(smooth, theta, graph, stride))
        steps = _Swaps(held, Steps(held, ends, inverse, gradient, curvature), eta)
        parts = [part for batch in held.batches() for part in steps.of(batch)]
    if not parts:
        nothing = np.zeros(0)
        return Rivals(graph[:0], graph[:0], nothing, nothing)
    edge, rival, rise, loss = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((rival, edge))
    return Rivals(edge[order], rival[order], rise[order], loss[order])


class _Swaps:
    """What follows when an edge of the graph leaves for a pair outside."""

    def __init__(self, held: Held, steps: Steps, eta: Floats) -> None:
        self.held, self.steps = held, steps
        self.theta = eta[held.layout.positions(held.graph)]
        self.size = held.inside.sizes
        self.pairs = held.layout.pairs[held.graph]

    def of(self, batch: Batch) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Edges, pairs of a batch that share a column with them, rise and loss."""
        across, root, estimates = self.steps.of(batch)
        inverse, layout = self.steps.inverse, self.held.layout
        gain = 0.5 * np.square(_solved(root, estimates)).sum(axis=1)
        first, second = _sharing(layout.pairs[batch.groups], self.pairs, layout.n_nodes)
        out = []
        for size in np.unique(self.size).tolist():
            some = self.size[second] == size
            f, e = first[some], second[some]
            if not size or not len(e):
                continue
            at = self.held.inside.starts[e][:, None] + np.arange(size)
            theta = self.theta[at]
            shared = across[f] @ inverse[batch.held[f][:, :, None], at[:, None, :]]
            own = inverse[at[:, :, None], at[:, None, :]]
            lean = root[f] @ shared
            wider = own + lean.transpose(0, 2, 1) @ lean
            moved = theta - np.einsum("ska,sk->sa", shared, estimates[f])
            loss = 0.5 * np.einsum("sa,sa->s", theta, _solved(own, theta))
            after = 0.5 * np.einsum("sa,sa->s", moved, _solved(wider, moved))
            out.append((self.held.graph[e], batch.groups[f], gain[f] - after, loss))
        return out


def _solved(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0])


def _sharing(pairs: Ints, others: Ints, n_nodes: int) -> tuple[Ints, Ints]:
    """Numbers of pairs, and of others that have a column in common with them."""

    def incidence(ends: Ints) -> sparse.csr_array:
        rows = np.repeat(np.arange(len(ends)), 2)
        return sparse.csr_array(
            (np.ones(2 * len(ends)), (rows, ends.ravel())), (len(ends), n_nodes)
        )

    common = (incidence(pairs) @ incidence(others).T).tocoo()
    apart = common.data == 1.0  # of moderated pairs, both columns may be in common
    return common.row[apart].astype(np.int64), common.col[apart].astype(np.int64)
