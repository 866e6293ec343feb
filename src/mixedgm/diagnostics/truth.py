"""A model taken as the truth -> its distribution in standardised units, all states or draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.diagnostics.states import DIGITS, StateRows, axes_of, grid_size
from mixedgm.errors import ParameterError, TooLargeError
from mixedgm.fitted import FittedModel
from mixedgm.joint.field import Gaussian, gaussian
from mixedgm.joint.moments import Expectations, moments_from
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

__all__ = ["MOST_PARAMETERS", "MOST_ROWS", "MOST_STATES", "Truth", "truth_of"]

MOST_STATES = 2**16
"""States of y up to which all of them are visited."""
MOST_ROWS = 2**20
"""States of y times points of x, for one categorical column, up to which expectations are exact."""
MOST_PARAMETERS = 6000
"""Parameters up to which their covariance is held as one matrix: 288 MB."""

N_BATCHES = 10


@dataclass(frozen=True, eq=False)
class Truth:
    """A distribution with everything in standardised units and over the levels that can occur.

    The layout has all pairs of columns that vary; edges in theta sum to zero over levels, and every
    pair has its penalty weight. `statistics` are means and second moments of the nodes'
    `statistic_columns`. Rows are all states, or draws, which are in `batches` again, in parts;
    `notes` say how expectations were found.
    """

    params: Params
    layout: Layout
    theta: Floats
    weights: Floats
    moments: Moments
    statistics: tuple[Floats, Floats]
    given_y: Gaussian
    rows: StateRows | MemoryRows
    batches: tuple[Rows, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether expectations are over all states."""
        return not self.batches


def truth_of(
    fitted: FittedModel, *, loss: str, weights: str, n_draws: int, rng: np.random.Generator
) -> Truth:
    """Standardise a model by its own moments, and prepare expectations over its distribution.

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
    original = fitted.joint_params
    if not original.levels_possible.all():
        original = over_observed(original, original.levels_possible)
    model, expected, drawn = _distribution(original, loss, n_draws, rng)
    units = _units(original.nodes, expected)
    params = units.to_standard(original)
    statistics = _standardised(expected, units, params.nodes)
    d = params.nodes.n_columns
    moments = Moments(1.0, statistics[0][:d], statistics[1][:d, :d], np.asarray(expected.share))
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
    given_y = gaussian(params.joint)
    truth = Truth(params, layout, theta, edges, moments, statistics, given_y, _NO_ROWS)
    if model is not None and not params.nodes.n_scored:
        states = _states(truth, model)
        if states is not None:
            how = f"{states.n_rows:,} states of y" if original.n_levels else "from moments"
            return replace(truth, rows=states, notes=(f"exact, {how}",))
    if drawn is None:
        drawn = draw(original.joint, n_draws, rng=rng)
    return _with_draws(truth, units, drawn)


_NO_ROWS = MemoryRows(np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64), Nodes.mixed(0, ()))


def _distribution(
    original: Params, loss: str, n_draws: int, rng: np.random.Generator
) -> tuple[Exact | None, Expectations, Draw | None]:
    """Exact expectations where elimination fits its limit, else those of draws."""
    from mixedgm.joint.exact import exact
    from mixedgm.joint.sampling import draw

    try:
        model = exact(original.joint)
    except TooLargeError:
        if loss == "likelihood":
            raise
        drawn = draw(original.joint, n_draws, rng=rng, method="gibbs")
        pairs = (
            MemoryRows(drawn.numbers[:, :0], drawn.codes, Nodes.mixed(0, original.n_levels))
            .moments()
            .second
        )
        return None, moments_from(gaussian(original.joint), pairs), drawn
    return model, moments_from(model.given_y, model.tree.pairs[0]), None


def _units(nodes: Nodes, expected: Expectations) -> Units:
    """Means and standard deviations of numbers and scores."""
    numeric = nodes.numeric
    mean, second = nodes.statistic_moments(expected.column_mean, expected.column_second)
    covariance = second[numeric, numeric] - np.outer(mean[numeric], mean[numeric])
    return Units(mean[numeric], np.sqrt(np.diagonal(covariance)))


def _standardised(expected: Expectations, units: Units, nodes: Nodes) -> tuple[Floats, Floats]:
    """Moments of the `statistic_columns` of standardised nodes."""
    p, others = nodes.n_gaussian, len(expected.share)
    scale = np.concatenate([units.scale[:p], np.ones(others)])
    centre = np.concatenate([units.centre[:p], np.zeros(others)])
    mean = expected.column_mean
    second = expected.column_second - np.outer(centre, mean) - np.outer(mean - centre, centre)
    return nodes.statistic_moments((mean - centre) / scale, second / np.outer(scale, scale))


def _layout(params: Params, moments: Moments, units: Units, weights: str) -> tuple[Layout, Floats]:
    """All pairs of columns that vary, and their penalty weights."""
    nodes = params.nodes
    scales = edge_weights.node_scales(nodes, moments.mean, np.ones(nodes.n_numeric))
    constant = nodes.freedom == 0
    layout = Layout.complete(nodes, np.logical_or.outer(constant, constant))
    if weights == "uniform":
        return layout, edge_weights.uniform(layout, units.scale)
    return layout, edge_weights.calibrated(layout, scales)


def _states(truth: Truth, model: Exact) -> StateRows | None:
    """All states of y with grids for x; None where that would be too many points."""
    from mixedgm.joint.exact import all_states

    n_states = prod(truth.layout.n_levels)
    if n_states > MOST_STATES:
        return None
    for digits in DIGITS:
        if n_states * _largest_grid(truth, digits) <= MOST_ROWS:
            codes, probability = all_states(model)
            levels, moments = truth.params.n_levels, truth.moments
            return StateRows(truth.given_y, codes, probability, levels, moments, digits)
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
    p, nodes = truth.params.nodes.n_gaussian, truth.params.nodes
    gaussian = (drawn.numbers - units.centre[:p]) / units.scale[:p]
    numbers = np.ascontiguousarray(nodes.numbers(gaussian, drawn.codes))
    cuts = np.linspace(0, len(numbers), N_BATCHES + 1).astype(int)

    def part(first: int, last: int) -> MemoryRows:
        return MemoryRows(numbers[first:last], drawn.codes[first:last], nodes)

    batches = tuple(part(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
    how = "exact" if drawn.method == "exact" else "Gibbs"
    scored = nodes.n_scored > 0
    many = "there are too many states for all of them"
    why = "some columns are ordinal or counts" if scored else many
    notes = (f"over {len(numbers):,} {how} draws, since {why}",)
    return replace(truth, rows=part(0, len(numbers)), batches=batches, notes=(*notes, *drawn.notes))
