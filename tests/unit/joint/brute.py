"""The joint distribution by enumeration of all states and plain Gaussian algebra.

Nothing of the package is used but the blocks of ConditionalGaussian (and, in `conditioned`, what
is tested there); every state of the
categorical columns is visited in a Python loop, and the formula of the density is written out
term by term.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.moderation import without
from mixedgm.model.params import Params


def random_params(
    seed: int,
    n_gaussian: int,
    n_levels: tuple[int, ...],
    density: float = 1.0,
    strength: float = 1.0,
    dead_level: bool = False,
) -> ConditionalGaussian:
    """A random valid model; each edge is there with probability `density`."""
    rng = np.random.default_rng(seed)
    total = sum(n_levels)
    column = np.repeat(np.arange(len(n_levels)), n_levels)
    edge = np.triu(rng.random((n_gaussian, n_gaussian)) < density, 1)
    off = np.triu(rng.normal(size=(n_gaussian, n_gaussian)), 1) * edge
    precision = off + off.T
    # Diagonally dominant, so positive definite; and units that differ.
    np.fill_diagonal(precision, np.abs(precision).sum(axis=0) + rng.uniform(0.3, 1.5, n_gaussian))
    units = rng.uniform(0.3, 3.0, n_gaussian)
    precision *= np.outer(units, units)
    touches = rng.random((n_gaussian, len(n_levels))) < density
    shift = strength * rng.normal(size=(n_gaussian, total)) * touches[:, column] * units[:, None]
    joined = np.triu(rng.random((len(n_levels), len(n_levels))) < density, 1)
    phi = strength * rng.normal(size=(total, total)) * joined[np.ix_(column, column)]
    bias = rng.normal(size=total)
    params = ConditionalGaussian(
        tuple(n_levels), precision, rng.normal(size=n_gaussian), shift, phi + phi.T, bias
    )
    if dead_level and n_levels and max(n_levels) > 1:
        j = int(np.argmax(n_levels))
        bias[params.level_start[j] + rng.integers(n_levels[j])] = -np.inf
    return params


def exponent(params: ConditionalGaussian, x: np.ndarray, y: tuple[int, ...]) -> float:
    """The unnormalised log density of one row, term by term."""
    at = [int(params.level_start[j]) + y[j] for j in range(len(y))]
    value = -0.5 * x @ params.precision @ x + params.linear @ x
    for position, a in enumerate(at):
        value += params.shift[:, a] @ x + params.bias[a]
        for b in at[:position]:
            value += params.interaction[a, b]
    return float(value)


@dataclass
class States:
    """All states of y: codes, log weights with x integrated out, means of x."""

    codes: np.ndarray
    log_weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @property
    def log_z(self) -> float:
        top = self.log_weight.max()
        return float(top + np.log(np.exp(self.log_weight - top).sum()))

    @property
    def prob(self) -> np.ndarray:
        return np.exp(self.log_weight - self.log_z)


def enumerate_states(params: ConditionalGaussian) -> States:
    p = params.n_numbers
    covariance = np.linalg.inv(params.precision) if p else np.zeros((0, 0))
    _, log_det = np.linalg.slogdet(params.precision) if p else (1, 0.0)
    codes, weights, means = [], [], []
    for y in itertools.product(*(range(n) for n in params.n_levels)):
        at = [int(params.level_start[j]) + y[j] for j in range(len(y))]
        linear = params.linear + sum((params.shift[:, a] for a in at), np.zeros(p))
        mean = covariance @ linear
        # The exponent at its peak over x is linear'mean / 2 plus the terms of y alone.
        peak = exponent(params, mean, y)
        codes.append(y)
        means.append(mean)
        weights.append(peak + 0.5 * p * np.log(2 * np.pi) - 0.5 * log_det)
    return States(
        np.array(codes, dtype=int).reshape(len(codes), len(params.n_levels)),
        np.array(weights),
        np.array(means).reshape(len(codes), p),
        covariance,
    )


def table(states: States, n_levels: tuple[int, ...], columns: list[int]) -> np.ndarray:
    """Probabilities of all states of some categorical columns."""
    out = np.zeros([n_levels[j] for j in columns])
    for y, prob in zip(states.codes, states.prob, strict=True):
        out[tuple(y[columns])] += prob
    return out


def conditioned(
    params: ConditionalGaussian, values: dict[int, float], levels: dict[int, int]
) -> ConditionalGaussian:
    """The package's model of the other columns, given numbers and states by position."""
    nodes = [*values, *(params.n_numbers + j for j in levels)]
    return without(Params.of_joint(params), nodes, [*values.values(), *levels.values()]).joint
