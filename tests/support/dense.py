"""Standardised columns and named blocks -> moments, softmax and optimality by whole matrices.

Every formula is written once more, with the indicator matrix formed and no block skipped, so that
large tables can be checked without loops over rows. Nothing of the package is used.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Values(NamedTuple):
    """The values of a discrete node."""

    columns: Floats
    """(values, design columns) what the others see of every value."""
    terms: Floats
    """(values, own terms) what multiplies the own terms."""
    base: Floats
    """(values,) the part of the logits that is known."""
    unit: float = 1.0
    """Standard deviation of the scores, where there are some."""

    @property
    def n_terms(self) -> int:
        return self.terms.shape[1]

    @property
    def n_slots(self) -> int:
        return len(self.base)

    @property
    def width(self) -> int:
        return self.columns.shape[1]

    def logits(self, terms: Floats, predictors: Floats) -> Floats:
        """(n, values) from own terms and the predictors (n, design columns) of the others."""
        return self.base + self.terms @ terms + predictors @ self.columns.T

    @property
    def column_units(self) -> Floats:
        return np.full(self.width, self.unit)

    def slots(self, terms: Floats) -> Floats:
        """What a pass gets of the own terms: logits of all values."""
        return self.base + self.terms @ terms

    def loss(self, terms: Floats, predictors: Floats, y) -> Floats:
        """(n,) minus the log conditional."""
        return -log_softmax(self.logits(terms, predictors))[np.arange(len(y)), y]

    def chances(self, terms: Floats, predictors: Floats) -> tuple[Floats, Floats]:
        """(n, values) probabilities, and (values, own terms + design columns) what is summed."""
        prob = np.exp(log_softmax(self.logits(terms, predictors)))
        return prob, np.hstack([self.terms, self.columns])

    def observed_slots(self, y) -> Floats:
        return np.eye(len(self.base))[y]

    def observed(self, y) -> Floats:
        """(n, own terms + design columns) what is multiplied by parameters and predictors."""
        return np.hstack([self.terms, self.columns])[y]


_POINTS, _POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(8)


class Spiked(NamedTuple):
    """A node that is zero or any number: parts b = (x != 0) and y = b (x - location).

    Given that it is not zero it is normal, and expectations of polynomials are sums over eight
    points of Gauss and Hermite: exact up to degree 15, and x^4 is the highest power in use.
    """

    there: Floats
    """(n,) b."""
    y: Floats
    """(n,) in units of its standard deviation, zeros included."""
    centre: Floats
    """Of b and y, the latter in the same units."""
    spread: float
    """Standard deviation of b."""
    unit: float
    """Standard deviation of y in the units of the table."""

    n_terms = n_slots = 3
    width = 2

    @property
    def column_units(self) -> Floats:
        return np.array([self.spread, self.unit])

    def slots(self, terms: Floats) -> Floats:
        return terms

    def _features(self, b: Floats, y: Floats) -> Floats:
        """(..., 5) b, y, -y^2 / 2 and the two standardised design columns."""
        columns = (b - self.centre[0]) / self.spread, y - self.centre[1]
        return np.stack([b, y, -0.5 * y**2, *columns], axis=-1)

    def _normaliser(self, terms: Floats, predictors: Floats) -> tuple[Floats, Floats, Floats]:
        """Log of the integral where it is not zero, against one where it is; mean; variance."""
        a, alpha, beta = terms
        height = a + predictors[:, 0] / self.spread
        slope = alpha + predictors[:, 1]
        area = slope**2 / (2 * beta) + 0.5 * np.log(2 * np.pi / beta)
        return height + area, slope / beta, 1 / beta

    def loss(self, terms: Floats, predictors: Floats, y) -> Floats:
        a, alpha, beta = terms
        log_integral = self._normaliser(terms, predictors)[0]
        height = a + predictors[:, 0] / self.spread
        exponent = height + (alpha + predictors[:, 1]) * self.y - 0.5 * beta * self.y**2
        return np.logaddexp(0.0, log_integral) - self.there * exponent

    def chances(self, terms: Floats, predictors: Floats) -> tuple[Floats, Floats]:
        """(n, points) probabilities, and (n, points, own terms + design columns)."""
        odds, mean, variance = self._normaliser(terms, predictors)
        there = np.exp(-np.logaddexp(0.0, -odds))
        points = mean[:, None] + np.sqrt(variance) * _POINTS
        prob = there[:, None] * _POINT_WEIGHTS / _POINT_WEIGHTS.sum()
        prob = np.column_stack([np.exp(-np.logaddexp(0.0, odds)), prob])
        there = np.broadcast_to(np.arange(prob.shape[1]) > 0, prob.shape).astype(float)
        return prob, self._features(there, np.column_stack([np.zeros(len(mean)), points]))

    def observed_slots(self, y) -> Floats:
        return self._features(self.there, self.y)[:, :3]

    def observed(self, y) -> Floats:
        return self._features(self.there, self.y)


def expected(prob: Floats, features: Floats) -> Floats:
    """(n, features) from the chances of a node."""
    return np.einsum("nk,nkf->nf" if features.ndim == 3 else "nk,kf->nf", prob, features)


def spiked_of(x: Floats, share: Floats, location: float) -> Spiked:
    """A hurdle column in the units of the table."""
    there = (x != 0.0).astype(float)
    both = np.column_stack([there, there * (x - location)])
    centre = share @ both
    spread, unit = np.sqrt(share @ (both - centre) ** 2)
    standard = np.array([centre[0], centre[1] / unit])
    return Spiked(there, both[:, 1] / unit, standard, float(spread), float(unit))


def values_of(table, share: Floats) -> list[Values | Spiked]:
    """Of every discrete node of a table; scores have mean 0 and variance 1 over the rows."""
    amounts = zip(table.X[:, table.n_gaussian :].T, table.locations, strict=True)
    out = [spiked_of(x, share, location) for x, location in amounts]
    for j, m in list(enumerate(table.n_levels))[table.n_spiked :]:
        if j >= table.n_spiked + len(table.scored):
            out.append(Values(np.eye(m), np.eye(m), np.zeros(m)))
            continue
        kind, base = table.scored[j - table.n_spiked], np.zeros(m)
        if kind.name == "count":
            score = np.sqrt(np.arange(m))
            base = np.array([-math.log(math.factorial(c)) for c in range(m)])
        else:
            score = np.array(kind.level_scores or range(m), dtype=float)
        seen = score[table.Y[:, j]]
        mean = share @ seen
        unit = np.sqrt(share @ (seen - mean) ** 2)
        score = (score - mean) / unit
        terms = np.column_stack([score, score**2])
        if kind.name == "count" and kind.zero_term:
            terms = np.column_stack([terms, np.arange(m) == 0])
        if kind.name == "ordinal" and kind.thresholds == "free":
            terms = np.eye(m)
        out.append(Values(score[:, None], terms, base, float(unit)))
    return out


def log_softmax(logits: Floats) -> Floats:
    """Logarithms of probabilities, by rows."""
    logs = logits - logits.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def indicators(Y, n_levels) -> Floats:
    """(n, sum of levels) one-hot block."""
    parts = [np.eye(m)[Y[:, r]] for r, m in enumerate(n_levels)]
    return np.hstack(parts) if parts else np.zeros((len(Y), 0))


def level_slices(n_levels) -> list[slice]:
    ends = np.cumsum([0, *n_levels])
    return [slice(int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def shares(n_rows: int, row_weights) -> Floats:
    weights = np.ones(n_rows) if row_weights is None else np.asarray(row_weights, dtype=float)
    return weights / weights.sum()


def probabilities(logits: Floats, n_levels) -> tuple[Floats, Floats]:
    """Softmax by node, and its logarithm."""
    logs = logits.copy()
    for part in level_slices(n_levels):
        block = logs[:, part]
        block -= block.max(axis=1, keepdims=True)
        block -= np.log(np.exp(block).sum(axis=1, keepdims=True))
    return np.exp(logs), logs


def gradient(params, X, Y, row_weights=None):
    """(bias, diagonal, matrix): of the biases, of beta_ss, and of the symmetric edge matrix.

    The matrix has an entry for each pair of design columns; that of a continuous pair is the
    derivative in minus the precision.
    """
    p, share = X.shape[1], shares(len(Y), row_weights)
    D = indicators(Y, params.n_levels)
    Z = np.hstack([X, D])
    diagonal = np.diag(params.precision)
    coupling = np.diag(diagonal) - params.precision
    eta = params.cont_bias + X @ coupling + D @ params.category_shift.T
    E = (eta - diagonal * X) / diagonal
    logits = params.cat_bias + X @ params.category_shift + D @ params.cat_interaction
    residual = np.hstack([E, probabilities(logits, params.n_levels)[0] - D])
    cross = Z.T @ (share[:, None] * residual)
    slope = share @ (-0.5 / diagonal - X * E - 0.5 * E**2) if p else np.zeros(0)
    return share @ residual, slope, cross + cross.T


def kkt(params, X, Y, lam, row_weights=None, edge_weights=None) -> float:
    """Distance from optimality in standardised coordinates; `edge_weights` are the own units'.

    They are calibrated when not given.
    """
    share = shares(len(Y), row_weights)
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)
    frequency = share @ indicators(Y, params.n_levels)
    levels = level_slices(params.n_levels)
    size = [*scale, *(np.sqrt(frequency[s] @ (1 - frequency[s])) for s in levels)]
    bias, slope, matrix = gradient(params, X, Y, row_weights)
    p = len(scale)
    # Biases at the mean of x, in standardised units: the chain rule of x = mean + scale * x~.
    pulled = matrix - np.outer(np.r_[mean, np.zeros(len(bias) - p)], bias)
    pulled -= np.outer(bias, np.r_[mean, np.zeros(len(bias) - p)])
    slope = slope + mean * bias[:p]
    nodes = np.r_[bias[:p] / scale, slope / scale**2, bias[p:]]
    places = [slice(s, s + 1) for s in range(p)]
    places += [slice(p + s.start, p + s.stop) for s in levels]
    theta = np.block(
        [
            [-params.precision, params.category_shift],
            [params.category_shift.T, params.cat_interaction],
        ]
    )
    worst = np.abs(nodes).max()
    for u in range(len(places)):
        for v in range(u + 1, len(places)):
            own = size[u] * size[v] if edge_weights is None else edge_weights[u][v]
            if np.isinf(own):
                continue
            block, grad = theta[places[u], places[v]], pulled[places[u], places[v]]
            length = np.linalg.norm(block)
            if length == 0:
                distance = max(0.0, np.linalg.norm(grad) - lam * own)
            else:
                distance = np.linalg.norm(grad + lam * own * block / length)
            worst = max(worst, distance / (size[u] * size[v]))
    return float(worst)


def conditionals(
    layout, theta: Floats, C: Floats, Y, share: Floats, values: list[Values | Spiked]
) -> tuple[float, Floats]:
    """Sum of -log p(column | others) over the targets, constants left out, and its gradient.

    Theta is read by the definition of a layout.  `C` has the design columns, and behind them their
    products with every feature of moderators.
    """
    p, d = layout.n_gaussian, layout.n_columns
    spans = [slice(a, a + w) for a, w in zip(layout.column_start, layout.width, strict=False)]
    terms = []  # (positions in theta, predicting columns, predicted columns)
    for g, (u, v) in enumerate(layout.pairs.tolist()):
        block = np.arange(layout.starts[g], layout.starts[g + 1])
        block = block.reshape(layout.n_blocks[g], layout.width[u], layout.width[v])
        for k, at in enumerate(block):
            down = d * (1 + layout.first_feature[g] + k)
            ways = [(at, u, v)] if layout.nodewise else [(at, u, v), (at.T, v, u)]
            for index, a, b in ways:
                if b not in layout.covariates:
                    here = np.arange(d)[spans[a]] + down
                    terms.append((index, here, np.arange(d)[spans[b]]))
    coef = np.zeros((C.shape[1], d))
    for index, columns, target in terms:
        coef[np.ix_(columns, target)] = theta[index]
    is_target = np.array([v not in layout.covariates for v in range(layout.n_nodes)])
    eta, grad, first = C @ coef, np.zeros(len(theta)), 2 * p
    x, b = C[:, :p], theta[p:first]
    mean = (theta[:p] + eta[:, :p]) / b
    normal = share @ (0.5 * b * (x - mean) ** 2) - 0.5 * np.log(b)
    value, residual = normal[is_target[:p]].sum(), np.zeros_like(eta)
    residual[:, :p] = np.where(is_target[:p], mean - x, 0.0)
    grad[:p] = share @ residual[:, :p]
    slope = share @ (0.5 * x**2 - 0.5 * mean**2) - 0.5 / b
    grad[p:first] = np.where(is_target[:p], slope, 0.0)
    for j, node in enumerate(values):
        own = slice(first, first + node.n_terms)
        first = own.stop
        if not is_target[p + j]:
            continue
        at = theta[own], eta[:, spans[p + j]]
        value += share @ node.loss(*at, Y[:, j])
        wrong = expected(*node.chances(*at)) - node.observed(Y[:, j])
        grad[own] = share @ wrong[:, : node.n_terms]
        residual[:, spans[p + j]] = wrong[:, node.n_terms :]
    cross = C.T @ (share[:, None] * residual)
    for index, columns, target in terms:
        grad[index] += cross[np.ix_(columns, target)]
    return float(value), grad


def joint(layout, theta: Floats, C: Floats, Y, share: Floats, values: list[Values]) -> float:
    """Mean of -log p(targets | covariates), its 2 pi left out, by all states of the targets.

    `C` has the design columns of the rows; theta is read by the definition of a layout.
    """
    p, d = layout.n_gaussian, layout.n_columns
    spans = [slice(a, a + w) for a, w in zip(layout.column_start, layout.width, strict=False)]
    coef, first, own = np.zeros((d, d)), 2 * p, []
    for g, (u, v) in enumerate(layout.pairs.tolist()):
        block = theta[layout.starts[g] : layout.starts[g + 1]]
        coef[spans[u], spans[v]] = block.reshape(layout.width[u], layout.width[v])
        coef[spans[v], spans[u]] = coef[spans[u], spans[v]].T
    for node in values:
        own.append(node.base + node.terms @ theta[first : first + node.terms.shape[1]])
        first += node.terms.shape[1]
    x = [s for s in range(p) if s not in layout.covariates]
    y = [j for j in range(len(values)) if p + j not in layout.covariates]
    precision = np.diag(theta[p : 2 * p][x]) - coef[np.ix_(x, x)]
    covariance, log_det = np.linalg.inv(precision), np.linalg.slogdet(precision)[1]
    logs = []
    for codes in itertools.product(*(range(len(own[j])) for j in y)):
        Z = C.copy()
        Z[:, x] = 0.0
        for j, code in zip(y, codes, strict=True):
            Z[:, spans[p + j]] = values[j].columns[code]
        linear = theta[x] + Z @ coef[:, x]
        weight = 0.5 * np.sum((Z @ coef) * Z, axis=1) - 0.5 * log_det
        weight += 0.5 * np.sum((linear @ covariance) * linear, axis=1)
        logs.append(weight + sum(own[j][code] for j, code in zip(y, codes, strict=True)))
    rows = 0.5 * np.sum((C @ coef) * C, axis=1) + C[:, x] @ theta[x]
    rows += sum((own[j][Y[:, j]] for j in y), np.zeros(len(Y)))
    rows -= 0.5 * C[:, x] ** 2 @ theta[p : 2 * p][x]
    return float(share @ (np.logaddexp.reduce(logs, axis=0) - rows))
