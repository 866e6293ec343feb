"""A model taken as the truth -> Consistency: whether its graph can be found from enough rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.diagnostics.result import Consistency, MissingEdge
from mixedgm.diagnostics.theorem import Constants
from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.parallel import RandomState, seeds
from mixedgm.parameters import ensure, is_integer
from mixedgm.penalty.factors import edge_kind
from mixedgm.studies.queries import How
from mixedgm.table.naming import with_names

if TYPE_CHECKING:
    from mixedgm.diagnostics.curvature import ContrastCoordinates
    from mixedgm.diagnostics.irrepresentable import Irrepresentable

__all__ = ["consistency"]

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


def _check(fitted: Any, loss: str, weights: str, n_draws: int) -> None:
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
    from mixedgm.diagnostics.curvature import ContrastCoordinates, smooth_of
    from mixedgm.diagnostics.lipschitz import curvature_change, gradient_change
    from mixedgm.diagnostics.truth import truth_of

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
    from mixedgm.diagnostics.curvature import expected_curvature
    from mixedgm.diagnostics.irrepresentable import irrepresentable

    batches = coordinates.truth.batches
    if not batches:
        return irrepresentable(coordinates, expected_curvature(coordinates, loss)), np.zeros(4)
    parts = [expected_curvature(coordinates, loss, rows) for rows in batches]
    total, n = np.sum(parts, axis=0), len(parts)
    others = [irrepresentable(coordinates, (total - part) / (n - 1)) for part in parts]
    left = np.array([numbers.worst for numbers in others])
    errors = np.sqrt((n - 1) / n * np.sum((left - left.mean(axis=0)) ** 2, axis=0))
    return irrepresentable(coordinates, total / n), errors
