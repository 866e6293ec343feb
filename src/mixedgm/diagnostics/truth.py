"""A model taken as the truth -> its distribution in standardised units, and its curvature.

A truth and a loss -> the loss's expected curvature on contrasts, as the penalty sees them.

Coordinates: contrasts over levels (orthonormal vectors that sum to zero), node terms of
standardised columns, and edges times their penalty weight, so that the penalty is the plain sum of
norms.  M is the model subspace: node terms and the edges of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError, ParameterError, TooLargeError
from mixedgm.base.printable import quoted
from mixedgm.diagnostics.states import DIGITS, StateRows, axes_of, grid_size
from mixedgm.fit.fitted import FittedModel
from mixedgm.joint.covariance import Covariance, distinct
from mixedgm.joint.exact import moments_from
from mixedgm.joint.field import Gaussian, gaussian
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units, over_observed, to_theta
from mixedgm.objective.contract import Smooth
from mixedgm.objective.likelihood import Likelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.penalty import weights as edge_weights
from mixedgm.rows.contract import Moments, Rows
from mixedgm.rows.memory import MemoryRows
from mixedgm.solve.contrasts import Contrasts

if TYPE_CHECKING:
    from mixedgm.joint.exact import Exact
    from mixedgm.joint.sampled import Draw


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
    from mixedgm.joint.sampled import draw

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
    from mixedgm.joint.sampled import draw

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


# -- curvature -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ContrastCoordinates:
    """Contrasts of theta, edges times their weight."""

    truth: Truth

    @cached_property
    def contrasts(self) -> Contrasts:
        """The change from theta to contrasts."""
        return Contrasts(self.truth.layout)

    @property
    def layout(self) -> Layout:
        """Where contrasts are: one level fewer everywhere."""
        return self.contrasts.reduced

    @cached_property
    def scale(self) -> Floats:
        """Factors that contrasts are multiplied by: 1 for node terms, the weight for edges."""
        nodes = np.ones(self.layout.n_node_terms)
        return np.concatenate([nodes, self.layout.spread(self.truth.weights)])

    @cached_property
    def active(self) -> Ints:
        """Edges of the truth."""
        return np.flatnonzero(self.truth.layout.group_norms(self.truth.theta))

    @cached_property
    def inactive(self) -> Ints:
        """Pairs without an edge."""
        return np.setdiff1d(np.arange(self.layout.n_groups), self.active)

    @cached_property
    def model(self) -> Ints:
        """Positions of M: node terms, then edges of the truth."""
        return self.layout.positions(self.active)

    @cached_property
    def directions(self) -> Floats:
        """The edges of the truth, each as a vector of length 1, in a row."""
        edges = self.contrasts.down(self.truth.theta)[self.model][self.layout.n_node_terms :]
        small = self.layout.restrict(self.active)
        return edges / small.spread(np.sqrt(small.group_sums(edges**2)))

    def up(self, delta: Floats) -> Floats:
        """A step in these coordinates -> a step of theta."""
        return self.contrasts.up(delta / self.scale)

    def down(self, grad: Floats) -> Floats:
        """A gradient by theta -> the gradient by these coordinates."""
        return self.contrasts.down(grad) / self.scale


def smooth_of(truth: Truth, loss: str, rows: Rows | None = None) -> Smooth:
    """The expected loss as a function of theta, over all rows of the truth or some draws."""
    if loss == "likelihood":
        return Likelihood(truth.layout, truth.moments, truth.rows.n_rows)
    return Pseudolikelihood(truth.rows if rows is None else rows, truth.layout, truth.moments)


def expected_curvature(
    coordinates: ContrastCoordinates, loss: str, rows: Rows | None = None
) -> Floats:
    """(n, |M|) the columns of the expected curvature that belong to M.

    `rows` is a part of the truth's draws; by default all rows of the truth.
    """
    truth, model = coordinates.truth, coordinates.model
    if loss == "likelihood":
        return statistics_covariance(coordinates, rows)[:, model]
    contrasts, theta = coordinates.contrasts, truth.theta
    size, start, packed = contrasts.curvature(smooth_of(truth, loss, rows), theta, 1)
    at = np.full(coordinates.layout.n_theta, -1)
    at[model] = np.arange(len(model))
    out = np.zeros((coordinates.layout.n_theta, len(model)))
    runs = contrasts.runs
    for v in range(truth.layout.n_nodes):
        run = slice(runs.ptr[v], runs.ptr[v + 1])
        index = spans(runs.position[run], runs.length[run])
        matrix = packed[start[v] : start[v + 1]].reshape(size[v], size[v])
        inside = at[index] >= 0
        out[np.ix_(index, at[index][inside])] += matrix[:, inside]
    out /= coordinates.scale[:, None]
    return out / coordinates.scale[model]


def statistics_covariance(coordinates: ContrastCoordinates, rows: Rows | None = None) -> Floats:
    """(n, n) covariance of the sufficient statistics: curvature of the log partition function."""
    truth = coordinates.truth
    codes, probability = _states_of(truth.rows if rows is None else rows, truth.params.n_levels)
    moments, nodes = truth.moments, truth.layout.nodes
    mean = nodes.statistics.means(moments.mean, moments.shares)
    second = np.zeros((len(mean), len(mean)))  # no statistic is a product with an own term
    second[: nodes.n_columns, : nodes.n_columns] = moments.second
    states = codes, probability
    covariance = Covariance.of(truth.layout, states, truth.given_y, (mean, second))
    out = covariance.on(coordinates.layout, coordinates.contrasts.columns)
    out /= coordinates.scale
    return out / coordinates.scale[:, None]


def _states_of(rows: Rows, n_levels: tuple[int, ...]) -> tuple[NDArray[np.integer], Floats]:
    """States of y and what each counts."""
    if isinstance(rows, StateRows):
        return rows.codes, rows.probability
    assert isinstance(rows, MemoryRows)
    return distinct(rows.codes, n_levels)
