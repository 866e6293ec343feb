"""A model taken as the truth -> its distribution in standardised units, all states or draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.diagnostics.states import DIGITS, StateRows, axes_of, grid_size
from mixedgm.errors import DistributionError, ParameterError, TooLargeError
from mixedgm.fitted import FittedModel
from mixedgm.joint.field import Gaussian, gaussian
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.moments import moments_from
from mixedgm.joint.plan import LIMIT
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units, over_observed, to_theta
from mixedgm.penalty import weights as edge_weights
from mixedgm.printable import quoted
from mixedgm.rows.contract import Moments, Rows
from mixedgm.rows.memory import MemoryRows

if TYPE_CHECKING:
    from mixedgm.joint.exact import Exact
    from mixedgm.joint.sampling import Draw

__all__ = ["MOST_PARAMETERS", "MOST_ROWS", "Truth", "truth_of"]

MOST_ROWS = 2**20
"""States of y times points of x, for one categorical column, up to which expectations are exact."""
MOST_PARAMETERS = 6000
"""Parameters up to which their covariance is held as one matrix: 288 MB."""

N_BATCHES = 10


@dataclass(frozen=True, eq=False)
class Truth:
    """A distribution with everything in standardised units and over the levels that can occur.

    The layout has all pairs of columns that vary; edges in theta sum to zero over levels, and every
    pair has its penalty weight. Rows are all states, or draws, which are in `batches` again, in
    parts; `notes` say how expectations were found.
    """

    params: Params
    layout: Layout
    theta: Floats
    weights: Floats
    moments: Moments
    given_y: Gaussian
    rows: StateRows | MemoryRows
    batches: tuple[Rows, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether expectations are over all states."""
        return not self.batches


def truth_of(
    fitted: FittedModel,
    *,
    loss: str,
    weights: str,
    n_draws: int,
    rng: np.random.Generator,
    max_states: int = 2**16,
    limit: int = LIMIT,
) -> Truth:
    """Standardise a model by its own moments, and prepare expectations over its distribution.

    They are over all states of y up to `max_states`, else over draws; these are exact where the
    tables of elimination fit `limit`.

    It is a DistributionError for separate regressions and where the precision is not positive
    definite, and a TooLargeError where the likelihood has no exact distribution.
    """
    from mixedgm.joint.sampling import draw

    if fitted.schema.covariates:
        names = ", ".join(quoted(fitted.schema.nodes[k].name) for k in fitted.schema.covariates)
        raise ParameterError(
            f"consistency needs the distribution of all columns, and the model has none of its "
            f"covariates {names}; give their values first with model.condition({{...}}), or take a "
            "model without covariates."
        )
    if fitted.schema.spans.n_spiked:
        raise DistributionError(
            "consistency needs expectations of the joint distribution, and with hurdle columns "
            "it can only be sampled. To fix: take a model without {columns}, or one given their "
            "values with model.condition({...})",
            tuple(np.flatnonzero(fitted.schema.spans.spiked_nodes).tolist()),
        )
    original = fitted.joint_params
    if not original.levels_possible.all():
        original = over_observed(original, original.levels_possible)
    model, expected, drawn = _distribution(original, loss, n_draws, rng, limit)
    numeric, mean = original.nodes.numeric, expected.mean
    scale = np.sqrt(np.diagonal(expected.second - np.outer(mean, mean))[numeric])
    units = Units(mean[numeric], np.where(scale > 0.0, scale, 1.0))
    params = units.to_standard(original)
    moments = _standardised(expected, units, params.nodes)
    layout, edges = _layout(params, moments, units, weights)
    free = Layout(layout.nodes.contrasts, layout.pairs).n_theta
    if free > MOST_PARAMETERS:
        raise TooLargeError(
            f"the model has {free:,} free parameters, and their covariance would be a matrix of "
            f"{free**2 * 8 / 1e9:.1f} GB; the limit is {MOST_PARAMETERS:,}. To fix: take a model "
            "of fewer columns or levels"
        )
    theta = to_theta(layout, params)
    theta = layout.centred(theta, np.flatnonzero(layout.group_norms(theta)))
    truth = Truth(params, layout, theta, edges, moments, gaussian(params.joint), _NO_ROWS)
    if model is not None:
        states = _states(truth, model, max_states)
        if states is not None:
            how = f"{states.n_rows:,} states of y" if original.n_levels else "from moments"
            return replace(truth, rows=states, notes=(f"exact, {how}",))
    if drawn is None:
        drawn = draw(original.joint, n_draws, rng=rng, limit=limit)
    return _with_draws(truth, units, drawn)


_NO_ROWS = MemoryRows(np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64), Nodes.mixed(0, ()))


def _distribution(
    original: Params, loss: str, n_draws: int, rng: np.random.Generator, limit: int
) -> tuple[Exact | None, Moments, Draw | None]:
    """Moments of the design columns: exact where elimination fits its limit, else of draws."""
    from mixedgm.joint.exact import exact
    from mixedgm.joint.sampling import draw

    nodes, density = original.nodes, original.joint
    try:
        model = exact(density, limit=limit)
    except TooLargeError:
        if loss == "likelihood":
            raise
        drawn = draw(density, n_draws, rng=rng, method="gibbs")
        return None, _drawn_moments(nodes, density, drawn), drawn
    expected = moments_from(model.given_y, model.tree.pairs[0])
    d, share = nodes.n_columns, np.asarray(expected.share)
    mean, second = nodes.statistics.moments(expected.column_mean, expected.column_second)
    return model, Moments(1.0, mean[:d], second[:d, :d], share), None


def _drawn_moments(nodes: Nodes, density: ConditionalGaussian, drawn: Draw) -> Moments:
    """Moments of the design columns, with x averaged over its distribution given the states."""
    given_y, x = gaussian(density), np.tile(gaussian(density).start, (len(drawn.codes), 1))
    add_level_rows(x, drawn.codes, density.level_start, given_y.shift)
    numbers = np.ascontiguousarray(nodes.numbers(x, drawn.codes))
    moments = MemoryRows(numbers, drawn.codes, nodes).moments()
    moments.second[nodes.gaussian, nodes.gaussian] += given_y.covariance
    return moments


def _standardised(expected: Moments, units: Units, nodes: Nodes) -> Moments:
    """Moments of the design columns with numbers and scores centred and scaled."""
    scale, mean = units.of_columns(nodes), expected.mean
    centre = np.concatenate([units.centre, np.zeros(nodes.n_columns - nodes.n_numeric)])
    second = expected.second - np.outer(centre, mean) - np.outer(mean - centre, centre)
    return Moments(1.0, (mean - centre) / scale, second / np.outer(scale, scale), expected.shares)


def _layout(params: Params, moments: Moments, units: Units, weights: str) -> tuple[Layout, Floats]:
    """All pairs of columns that vary, and their penalty weights."""
    nodes = params.nodes
    scales = edge_weights.node_scales(nodes, moments.mean, np.ones(nodes.n_numeric))
    constant = (nodes.freedom == 0) | (np.array(nodes.n_values) == 1)
    layout = Layout.complete(nodes, np.logical_or.outer(constant, constant))
    if weights == "uniform":
        return layout, edge_weights.uniform(layout, units.scale)
    return layout, edge_weights.calibrated(layout, scales)


def _states(truth: Truth, model: Exact, max_states: int) -> StateRows | None:
    """All states of y with grids for x; None where that would be too many points."""
    from mixedgm.joint.exact import all_states

    n_states = prod(truth.layout.n_levels)
    if n_states > max_states:
        return None
    for digits in DIGITS:
        if n_states * _largest_grid(truth, digits) <= MOST_ROWS:
            codes, probability = all_states(model)
            nodes, moments = truth.params.nodes, truth.moments
            return StateRows(truth.given_y, codes, probability, nodes, moments, digits)
    return None


def _largest_grid(truth: Truth, digits: float) -> int:
    params, largest = truth.params, 1
    for discrete in range(len(params.n_levels)):
        slopes = params.joint.shift[:, params.levels_of(discrete)]
        slopes = slopes - slopes.mean(axis=1, keepdims=True)
        _, steps = axes_of(truth.given_y, slopes, digits)
        largest = max(largest, grid_size(steps, digits))
    return largest


def _with_draws(truth: Truth, units: Units, drawn: Draw) -> Truth:
    """Expectations over draws, in parts from which their error is estimated."""
    numbers = truth.params.nodes.in_own_units.numbers(drawn.numbers, drawn.codes)
    numbers = np.ascontiguousarray((numbers - units.centre) / units.scale)
    cuts = np.linspace(0, len(numbers), N_BATCHES + 1).astype(int)

    def part(first: int, last: int) -> MemoryRows:
        return MemoryRows(numbers[first:last], drawn.codes[first:last], truth.params.nodes)

    batches = tuple(part(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
    how = "exact" if drawn.method == "exact" else "Gibbs"
    notes = (f"over {len(numbers):,} {how} draws, since there are too many states for all of them",)
    return replace(truth, rows=part(0, len(numbers)), batches=batches, notes=(*notes, *drawn.notes))
