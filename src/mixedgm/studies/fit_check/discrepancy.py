"""Rows and a model in -> statistics of columns and pairs: what one table looks like to a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.fit.fitted import FittedModel
from mixedgm.model.density import RowConditionals, conditionals
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.table.encode import Design
from mixedgm.table.schema import Schema

MOMENTS = ("mean", "sd", "residual mean", "residual sd", "skewness", "kurtosis")
"""Of a column of numbers; the last four are those of residuals, standardised by the model."""

OUTLIER = 4.0
_CELLS_PER_BLOCK = 2**20
_CERTAIN = 1e-12  # variance of a value that is all but certain, against its squared range
_CONSTANT = 1e-12  # variance of predictions that do not vary, in units of the column's own


@dataclass(frozen=True, eq=False)
class Statistics:
    """What one table looks like to a model.

    A residual is a design column less its mean given all other columns, so that its product with
    anything these say is zero on average when the model is right.  `relation` multiplies residuals
    with the design columns of the others (zero in sum for an edge that is estimated freely),
    `curve` with their squares, less what is linear in them; `bend` with the square of its own
    prediction.  `uneven` multiplies squared standardised residuals, less 1, with the others' design
    columns.  Numbers are in standard units of this table, and everything is centred.

    Moments are those of the m columns of numbers: Gaussian ones, then hurdle ones where they are
    not zero, ordinal ones by their scores, and counts.  The q discrete columns are hurdle ones
    (zero or not), ordinal, counts and categorical.
    """

    association: Floats  # (p + q, p + q) correlations, correlation ratios, Cramer's V
    relation: Floats  # (d, d) residuals by design columns
    curve: Floats  # (d, m) residuals by squares of numbers
    uneven: Floats  # (m, d) squared residuals by design columns
    bend: Floats  # (d,) residuals by squares of their predictions
    moments: Floats  # (m, 6), the `MOMENTS`
    largest: Floats  # (m,) standardised residual, in size
    n_outliers: Floats  # (m,) total weight of rows whose residual is beyond `OUTLIER`
    shares: Floats  # (sum of values,)
    expected: Floats  # (sum of values,) mean probability given the other columns
    spread: Floats  # (sum of values,) mean of p(1 - p) over those probabilities
    dispersion: Floats  # (q,) mean squared Pearson residual, 1 when the model is right


@dataclass(frozen=True, eq=False)
class PairOrder:
    """Which entries of a matrix of `Statistics` belong to which pair, pair by pair.

    `at` are places in the flattened matrix, `pair` the number of each one's pair.
    """

    at: Ints
    pair: Ints

    @classmethod
    def of(cls, rows: Ints, columns: Ints, numbers: Ints) -> PairOrder:
        """From the node of every row and column, and (nodes, nodes) numbers of pairs, -1: none."""
        pair = numbers[np.ix_(rows, columns)].ravel()
        at = np.argsort(pair, kind="stable")
        at = at[np.count_nonzero(pair < 0) :]
        return cls(at, pair[at])


def judged_pairs(schema: Schema) -> tuple[Ints, Ints]:
    """Nodes u < v of every pair that is judged: at least one of them is a target."""
    u, v = np.triu_indices(len(schema.nodes), 1)
    target = ~np.isin(np.arange(len(schema.nodes)), schema.covariates)
    judged = target[u] | target[v]
    return u[judged], v[judged]


def pair_orders(schema: Schema) -> dict[str, PairOrder]:
    """Statistics of the judged pairs, by name; covariates have no residuals."""
    spans, (u, v) = schema.spans, judged_pairs(schema)
    number = np.full((len(spans), len(spans)), -1)
    number[u, v] = number[v, u] = np.arange(len(u))
    number[list(schema.covariates)] = -1
    node, numeric = spans.column_node, np.flatnonzero(spans.numeric_nodes)
    return {
        "relation": PairOrder.of(node, node, number),
        "curve": PairOrder.of(node, numeric, number),
        "uneven": PairOrder.of(numeric, node, number),
    }


def statistics(fitted: FittedModel, design: Design) -> Statistics:
    """Look at the rows in blocks; only sums are kept."""
    params, nodes, total = fitted.params, fitted.params.nodes, design.total_weight
    weights = np.ones(design.n_rows) if design.weights is None else design.weights
    scores = nodes.numbers(design.numbers, design.codes)
    centre, scale = _centre_and_scale(scores, weights)
    n_values = int(nodes.level_start[-1])
    d, m = nodes.n_columns, int(np.count_nonzero(nodes.numeric_nodes))
    last = nodes.last_column[:m]
    covariates = np.isin(np.arange(len(nodes)), fitted.schema.covariates)
    unpredicted, given_numbers = covariates[nodes.column_node], covariates[:m]
    zz, rz, mean = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    rq, uz, cubes = np.zeros((d, m)), np.zeros((m, d)), np.zeros(m)
    r_sum, u_sum = np.zeros(d), np.zeros(m)
    by_prediction, predicted = np.zeros((3, d)), np.zeros((4, d))
    powers, outliers, largest = np.zeros((4, m)), np.zeros(m), np.zeros(m)
    shares, expected, spread = np.zeros((3, n_values))
    pearson = np.zeros(len(nodes.n_levels))
    values, judged = _values(fitted, design), _judged(fitted, design) * weights[:, None]
    first_level = int(nodes.level_start[nodes.first_indicator])
    size = max(1, _CELLS_PER_BLOCK // max(d, len(nodes) + n_values, 1))
    for first in range(0, design.n_rows, size):
        cut = slice(first, first + size)
        numbers, codes, w = design.numbers[cut], design.codes[cut], weights[cut]
        given = conditionals(params, numbers, codes, fitted.n_observed)
        chance = np.exp(given.log_prob)
        hot = _indicators(codes, params.level_start)
        z = np.hstack([(scores[cut] - centre) / scale, hot[:, first_level:]])
        seen = given.columns
        seen[:, nodes.numeric] = (seen[:, nodes.numeric] - centre) / scale
        r = np.where(unpredicted, 0.0, z - seen)
        middle, variance = _expected(fitted, given, chance)
        residual = np.where(judged[cut] > 0.0, (values[cut] - middle) / np.sqrt(variance), 0.0)
        u = np.where(given_numbers, 0.0, judged[cut] * (residual**2 - 1.0))
        wz, wr, squares = w[:, None] * z, w[:, None] * r, z[:, last] ** 2
        zz += z.T @ wz
        rz += r.T @ wz
        rq += wr.T @ squares
        uz += u.T @ z
        mean += wz.sum(axis=0)
        cubes += w @ (squares * z[:, last])
        r_sum += wr.sum(axis=0)
        u_sum += u.sum(axis=0)
        by_prediction += [np.sum(wr * seen**k, axis=0) for k in (0, 1, 2)]
        predicted += [w @ seen**k for k in (0, 1, 2, 3)]
        powers += [np.sum(judged[cut] * residual**k, axis=0) for k in (1, 2, 3, 4)]
        outliers += w @ (np.abs(residual) > OUTLIER)
        largest = np.maximum(largest, np.abs(residual).max(axis=0, initial=0.0))
        shares += w @ hot
        expected += w @ chance
        spread += w @ (chance * (1.0 - chance))
        for j in (*range(nodes.n_spiked), *range(nodes.first_indicator, len(nodes.n_levels))):
            levels = params.levels_of(j)
            chosen = np.maximum((hot[:, levels] * chance[:, levels]).sum(axis=1), 1e-300)
            # sum over levels of (indicator - p)^2 / p, over its expectation L - 1
            pearson[j] += w @ (1.0 / chosen - 1.0) / max(nodes.n_levels[j] - 1, 1)
    powers /= np.maximum(judged.sum(axis=0), 1e-300)
    pearson /= total
    pearson[nodes.n_spiked : nodes.first_indicator] = powers[1, nodes.n_real :]
    mean, r_mean, cubes, by_squares = mean / total, r_sum / total, cubes / total, rq / total
    relation = rz / total - np.outer(r_mean, mean)
    unit = np.diag(zz)[last] / total  # 1, or 0 of a constant column
    slope = cubes / np.where(unit > 0.0, unit, 1.0)
    return Statistics(
        _associations(nodes, zz / total - np.outer(mean, mean), shares / total),
        relation,
        by_squares - np.outer(r_mean, unit) - relation[:, last] * slope,
        uz / total - np.outer(u_sum / total, mean),
        _bends(by_prediction / total, predicted / total),
        _moments(*_centre_and_scale(values, judged), powers),
        largest,
        outliers,
        shares / total,
        expected / total,
        spread / total,
        pearson,
    )


def _centre_and_scale(columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Of every column; weights are those of rows (n,), or of cells."""
    if weights.ndim == 1:
        centre = weights @ columns / weights.sum()
        scale = np.sqrt(weights @ (columns - centre) ** 2 / weights.sum())
    else:
        total = np.maximum(weights.sum(axis=0), 1e-300)
        centre = np.sum(weights * columns, axis=0) / total
        scale = np.sqrt(np.sum(weights * (columns - centre) ** 2, axis=0) / total)
    return centre, np.where(scale == 0.0, 1.0, scale)


def _values(fitted: FittedModel, design: Design) -> Floats:
    """(n, m) what residuals are about: numbers, scores of levels, counts."""
    nodes = fitted.params.nodes
    scored, codes = range(nodes.n_spiked, nodes.first_indicator), design.codes.astype(np.intp)
    return np.column_stack([design.numbers, *(nodes.amounts(j)[codes[:, j]] for j in scored)])


def _judged(fitted: FittedModel, design: Design) -> Floats:
    """(n, m) 1 where there is a residual: in a hurdle column, where it is not zero."""
    nodes = fitted.params.nodes
    there = np.ones((design.n_rows, int(np.count_nonzero(nodes.numeric_nodes))))
    there[:, nodes.spiked_nodes[: there.shape[1]]] = design.codes[:, : nodes.n_spiked]
    return there


def _expected(fitted: FittedModel, given: RowConditionals, chance: Floats) -> tuple[Floats, Floats]:
    """(n, m) means and variances of the same given the other columns."""
    nodes = fitted.params.nodes
    means, variances = [given.mean], [np.broadcast_to(given.variance, given.mean.shape)]
    for j in range(nodes.n_spiked, nodes.first_indicator):
        numbers, prob = nodes.amounts(j), chance[:, nodes.levels_of(j)]
        mean = prob @ numbers
        means.append(mean[:, None])
        variance = np.sum(prob * (numbers - mean[:, None]) ** 2, axis=1, keepdims=True)
        variances.append(np.maximum(variance, _CERTAIN * np.ptp(numbers) ** 2))
    return np.hstack(means), np.hstack(variances)


def _associations(nodes: Nodes, covariance: Floats, shares: Floats) -> Floats:
    """(p + q, p + q) correlations, correlation ratios or Cramer's V, from those of design columns.

    Of a hurdle column, the multiple correlation with its two parts.
    """
    share = shares[int(nodes.level_start[nodes.first_indicator]) :]
    # A level without rows has covariance zero.
    unit = np.concatenate([np.ones(nodes.n_numeric), np.where(share > 0.0, share, 1.0)])
    starts = nodes.column_start[:-1]
    squares = covariance**2 / np.multiply.outer(unit, unit)
    total = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
    freedom = np.maximum(np.minimum.outer(nodes.freedom, nodes.freedom), 1)
    single = np.multiply.outer(nodes.width, nodes.width) == 1
    return np.where(single, covariance[np.ix_(starts, starts)], np.sqrt(total / freedom))


def _bends(by_prediction: Floats, predicted: Floats) -> Floats:
    """(d,) mean of residuals times squared predictions, less what is linear in these.

    From means of residuals times powers 0 to 2 of predictions, and of powers 0 to 3 of these.
    """
    _, first, second, third = predicted
    variance = second - first**2
    square = by_prediction[2] - 2.0 * first * by_prediction[1] + first**2 * by_prediction[0]
    linear = by_prediction[1] - first * by_prediction[0]
    cube = third - 3.0 * first * second + 2.0 * first**3
    flat = variance <= _CONSTANT
    unit = np.where(flat, 1.0, variance)
    bend = square / unit - by_prediction[0] - cube / unit**2 * linear
    return np.where(flat, 0.0, bend)


def _indicators(codes: np.ndarray, level_start: np.ndarray) -> Floats:
    hot = np.zeros((len(codes), int(level_start[-1])))
    rows = np.arange(len(codes))
    for j in range(codes.shape[1]):
        hot[rows, level_start[j] + codes[:, j]] = 1.0
    return hot


def _moments(centre: Floats, scale: Floats, powers: Floats) -> Floats:
    first, second, third, fourth = powers
    variance = np.maximum(second - first**2, 0.0)
    flat = variance <= _CONSTANT
    unit = np.where(flat, 1.0, variance)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / unit**1.5
    central = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
    kurtosis = np.where(flat, 0.0, central / unit**2 - 3.0)
    return np.column_stack([centre, scale, first, np.sqrt(variance), skewness, kurtosis])
