"""A model taken as the truth -> Consistency: whether its graph can be found from enough rows.

Curvature on the model subspace -> how well missing edges are explained by those that exist.

With Q the curvature in coordinates where the penalty is a plain sum of norms, and M the node terms
and edges of the truth, K = Q_gM (Q_MM)^-1 maps a change of the edges' subgradients to what it does
to the gradient of a missing edge g.  The number of g is

    max over unit z_a, one per edge a, of ||sum_a K_ga z_a||  =  max_|u|=1 sum_a ||K_ga'u||.

Turn by turn the best z for a u and the best u for a z never lower the sum: a lower bound, attained.
From above, sum_a ||K_ga||_2; and by ||v|| <= (t + ||v||^2 / t) / 2, for any t_a > 0,

    (sum_a t_a + largest eigenvalue of sum_a K_ga K_ga' / t_a) / 2,

which with t_a = ||K_ga'u|| equals the lower bound where u is the best there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve

from mixedgm.base.errors import ParameterError
from mixedgm.base.parallel import RandomState, seeds
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.diagnostics.result import Consistency, MissingEdge
from mixedgm.diagnostics.theorem import Constants
from mixedgm.diagnostics.truth import ContrastCoordinates
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.penalty.weights import edge_kind
from mixedgm.studies.queries.queries import How
from mixedgm.table.schema import with_names

if TYPE_CHECKING:
    from mixedgm.diagnostics.truth import ContrastCoordinates


_FEWEST_DRAWS = 1000
_TIES = 8


def consistency(
    model: Any,
    *,
    loss: str = "pseudolikelihood",
    penalty_weights: str = "calibrated",
    n_draws: int = 50_000,
    random_state: RandomState = 0,
    max_states: int = 65_536,
    limit: int | None = None,
) -> Consistency:
    """Say whether the graph of a known model can be found from enough rows drawn from it.

    Parameters
    ----------
    model : MixedGraphicalModel
        The truth, as of `from_params`, `random_model` or `datasets.make_ladder`.  A fitted model
        is taken as the truth, too: would it be found again?
    loss : {"pseudolikelihood", "likelihood"}
        Loss that the estimator minimises.
    penalty_weights : {"calibrated", "uniform"}
        The estimator's penalty weights.
    n_draws : int
        Rows drawn where the model has too many states for exact expectations.
    random_state : int, Generator, RandomState or None
        For these rows.
    max_states : int
        States of the columns that are not continuous up to which expectations are exact.
    limit : int, optional
        Entries of the tables up to which the distribution is exact, 2**24 by default; beyond it the
        rows come from Gibbs chains.

    Returns
    -------
    Consistency
        The irrepresentability number between its bounds, restricted convexity, the constants of
        the theorem, and a number for every pair without an edge.

    Raises
    ------
    DistributionError
        When the model has no joint distribution.
    TooLargeError
        With more than 6,000 free parameters, and for a likelihood that is not exact.

    Notes
    -----
    Expectations are over the distribution of the model itself: exact up to `max_states` states of
    the columns that are not continuous and about a million points per column, else from draws.  See
    "Consistency" in the page on mathematics for what the numbers mean.

    References
    ----------
    Lee and Hastie, "Learning the structure of mixed graphical models", Journal of Computational
    and Graphical Statistics 24 (2015), section 6.

    Examples
    --------
    >>> import mixedgm as mg
    >>> truth = mg.from_params(
    ...     {"a": "continuous", "b": "continuous", "c": "continuous"},
    ...     {"precision": [[1.0, 0.3, 0.0], [0.3, 1.0, 0.3], [0.0, 0.3, 1.0]]},
    ... )
    >>> answer = mg.diagnostics.consistency(truth)
    >>> answer.verdict, round(answer.upper, 3), answer.pairs[0][:2]
    ('holds', 0.34, ('a', 'c'))
    """
    fitted = getattr(model, "fitted_", model)
    _check(fitted, loss, penalty_weights, n_draws)
    ensure(is_integer(max_states, 1), "max_states", "a positive integer", max_states)
    rng = np.random.default_rng(seeds(random_state, 1)[0])
    sizes = {"n_draws": int(n_draws), "max_states": int(max_states)}
    entries = How(limit=limit).entries
    return with_names(
        fitted.schema, _measured, fitted, loss, penalty_weights, rng=rng, limit=entries, **sizes
    )


def _check(fitted: object, loss: str, weights: str, n_draws: int) -> None:
    if not isinstance(fitted, FittedModel):
        raise ParameterError.must_be(
            "model", "a fitted MixedGraphicalModel, or one of from_params", fitted
        )
    if loss not in ("pseudolikelihood", "likelihood"):
        raise ParameterError.must_be("loss", "'pseudolikelihood' or 'likelihood'", loss)
    if weights not in ("calibrated", "uniform"):
        raise ParameterError.must_be("penalty_weights", "'calibrated' or 'uniform'", weights)
    if not is_integer(n_draws, _FEWEST_DRAWS):
        raise ParameterError.must_be(
            "n_draws", f"an integer of at least {_FEWEST_DRAWS:,}", n_draws
        )


def _measured(fitted: FittedModel, loss: str, weights: str, **options: Any) -> Consistency:
    from mixedgm.diagnostics.theorem import curvature_change, gradient_change
    from mixedgm.diagnostics.truth import ContrastCoordinates, smooth_of, truth_of

    truth = truth_of(fitted, loss=loss, weights=weights, **options)
    coordinates = ContrastCoordinates(truth)
    layout = coordinates.layout
    bounds, errors = _numbers(coordinates, loss)
    constants = Constants(
        tau=1.0 - float(bounds.worst[3]),
        tau_bar=max(1.0, float(bounds.worst[3])),
        convexity=bounds.convexity,
        gradient_change=gradient_change(coordinates),
        curvature_change=curvature_change(coordinates, loss),
        largest_group=int(layout.sizes.max(initial=0)),
        n_pairs=layout.n_groups,
        n_edges=len(coordinates.active),
        loss=loss,
    )
    gradient = coordinates.down(smooth_of(truth, loss).evaluate(truth.theta).gradient)
    # Rounded, so that equal pairs of a symmetric model keep their order on every machine.
    order = np.lexsort((-bounds.at_truth.round(_TIES), -bounds.upper.round(_TIES)))
    nodes, ends = fitted.schema.nodes, layout.pairs[coordinates.inactive]
    pairs = tuple(
        MissingEdge(
            nodes[u].name,
            nodes[v].name,
            edge_kind(fitted.schema, u, v),
            *(float(part[k]) for part in (bounds.at_truth, bounds.lower, bounds.upper)),
        )
        for k, (u, v) in ((k, ends[k].tolist()) for k in order.tolist())
    )
    return Consistency(
        loss,
        weights,
        pairs,
        constants,
        float(errors[1:].max(initial=0.0)),
        float(errors[0]),
        float(np.abs(gradient).max(initial=0.0)),
        truth.exact,
        truth.notes,
        fitted.library,
    )


def _numbers(coordinates: ContrastCoordinates, loss: str) -> tuple[Irrepresentable, Floats]:
    """The numbers from all rows, and standard errors of the worst ones by leaving batches out."""
    from mixedgm.diagnostics.truth import expected_curvature

    batches = coordinates.truth.batches
    if not batches:
        return irrepresentable(coordinates, expected_curvature(coordinates, loss)), np.zeros(4)
    parts = [expected_curvature(coordinates, loss, rows) for rows in batches]
    total, n = np.sum(parts, axis=0), len(parts)
    others = [irrepresentable(coordinates, (total - part) / (n - 1)) for part in parts]
    left = np.array([numbers.worst for numbers in others])
    errors = np.sqrt((n - 1) / n * np.sum((left - left.mean(axis=0)) ** 2, axis=0))
    return irrepresentable(coordinates, total / n), errors


# -- irrepresentable -------------------------------------------------------------------------------

_TURNS = 500
_SETTLED = 1e-13
_CLOSED = 1e-9
_STARTS = 8


@dataclass(frozen=True, eq=False)
class Irrepresentable:
    """Convexity and irrepresentability numbers of a truth, from its curvature.

    Convexity is the smallest eigenvalue on M. Every missing edge has a number with the directions
    of the true edges, and bounds of the largest over all directions; all infinite without convexity
    on M.
    """

    convexity: float
    at_truth: Floats
    lower: Floats
    upper: Floats

    @property
    def worst(self) -> Floats:
        """(4,) convexity and the largest of each kind of number."""
        largest = [float(part.max(initial=0.0)) for part in (self.at_truth, self.lower, self.upper)]
        return np.array([self.convexity, *largest])


def irrepresentable(coordinates: ContrastCoordinates, columns: Floats) -> Irrepresentable:
    """Find the numbers of all missing edges.

    Columns (n, |M|) are the curvature of every coordinate with those of M.
    """
    layout, model, inactive = coordinates.layout, coordinates.model, coordinates.inactive
    inside = 0.5 * (columns[model] + columns[model].T)
    convexity = float(np.linalg.eigvalsh(inside)[0]) if len(model) else np.inf
    numbers = np.full((3, len(inactive)), np.inf)
    if convexity <= 1e-12 * float(np.abs(np.diagonal(inside)).max(initial=0.0)):
        return Irrepresentable(convexity, *numbers)
    edges = np.zeros((len(model), len(model) - layout.n_node_terms))
    edges[layout.n_node_terms :] = np.eye(edges.shape[1])
    by_edge = solve(inside, edges, assume_a="pos") if edges.size else edges
    sizes = layout.sizes[coordinates.active]
    for at, g in enumerate(inactive.tolist()):
        block = columns[layout.starts[g] : layout.starts[g + 1]] @ by_edge
        numbers[0, at] = np.linalg.norm(block @ coordinates.directions)
        numbers[1:, at] = largest_sum(block, sizes)
    return Irrepresentable(convexity, *numbers)


def largest_sum(block: Floats, sizes: Ints) -> tuple[float, float]:
    """Bounds of ``max ||sum_a block_a z_a||`` over unit vectors z_a.

    `sizes` are the widths of the parts of a block (k, n). The bounds are equal when it has one row
    or one part, and mostly otherwise.

    Examples
    --------
    >>> largest_sum(np.array([[3.0, 4.0, -2.0]]), np.array([2, 1]))
    (7.0, 7.0)
    """
    if len(sizes) == 0 or not block.any():
        return 0.0, 0.0
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    if len(block) == 1:
        exact = float(np.sqrt(np.add.reduceat(block[0] ** 2, first)).sum())
        return exact, exact
    parts = np.split(block, first[1:], axis=1)
    singular = [np.linalg.svd(part, full_matrices=False)[:2] for part in parts]
    norms = np.array([values[0] for _, values in singular])
    heavy = np.argsort(-norms)[:_STARTS]
    whole = np.linalg.svd(block, full_matrices=False)[0]
    starts = np.column_stack([whole[:, 0], *(singular[a][0][:, 0] for a in heavy), whole[:, 1:]])
    lower, upper = 0.0, float(norms.sum())
    for start in starts.T:
        u, value = _ascent(block, first, start)
        lower = max(lower, value)
        upper = min(upper, _dual(block, sizes, first, u))
        if upper <= lower * (1.0 + _CLOSED):
            break
    return lower, max(lower, upper)


def _ascent(block: Floats, first: Ints, u: Floats) -> tuple[Floats, float]:
    """Improve a unit vector u turn by turn; return it and its sum of norms."""
    sizes = np.diff(np.append(first, block.shape[1]))
    value = -1.0
    for _ in range(_TURNS):
        pulled = block.T @ u
        norms = np.sqrt(np.add.reduceat(pulled**2, first))
        if norms.sum() <= value * (1.0 + _SETTLED):
            break
        value = float(norms.sum())
        moved = block @ (pulled / np.repeat(np.where(norms > 0.0, norms, 1.0), sizes))
        u = moved / np.linalg.norm(moved)
    return u, value


def _dual(block: Floats, sizes: Ints, first: Ints, u: Floats) -> float:
    """The upper bound with t_a = ||block_a' u||."""
    t = np.sqrt(np.add.reduceat((block.T @ u) ** 2, first))
    t = np.maximum(t, 1e-12 * t.max())
    scaled = block / np.sqrt(np.repeat(t, sizes))
    return 0.5 * float(t.sum() + np.linalg.norm(scaled, 2) ** 2)
