"""Rows with gaps and parameters -> observed-data likelihood and expected losses, by enumeration.

Every state of the discrete columns is visited, missing numbers are integrated out in closed form,
and all derivatives are differences.  Everything is in the units of the table.  Of the package
only the names of the parameter blocks are known: `bias`, `diagonal`, `coef`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_LOG_2PI = float(np.log(2 * np.pi))


class Values(NamedTuple):
    """The values of a discrete column."""

    columns: Floats
    """(values, design columns) what the other columns see of every value."""
    terms: Floats
    """(values, own terms) what multiplies the own terms."""
    base: Floats
    """(values,) the known part of the logits."""


def levels(m: int) -> Values:
    """A categorical column."""
    return Values(np.eye(m), np.eye(m), np.zeros(m))


def ordinal(m: int) -> Values:
    """An ordinal column with a term for every level, seen as 0, 1, 2, ..."""
    return Values(np.arange(m)[:, None].astype(float), np.eye(m), np.zeros(m))


def count(largest: int) -> Values:
    """A count up to the largest, seen as its root."""
    c = np.arange(largest + 1.0)
    return Values(np.sqrt(c)[:, None], np.column_stack([np.sqrt(c), c]), -gammaln(c + 1))


class Parts(NamedTuple):
    """Parameters by name."""

    linear: Floats
    own: Floats
    precision: Floats
    shift: Floats
    """(numbers, design columns of discrete columns)"""
    coupling: Floats


class Completions(NamedTuple):
    """Completed rows."""

    row: Ints
    numbers: Floats
    state: Ints
    share: Floats
    """What each counts: those of a row add up to the row's share of all rows."""


class _Pattern(NamedTuple):
    """Rows in which the same numbers are missing."""

    rows: Ints
    missing: Ints
    log_joint: Floats
    """(rows, states) log density of what is observed, with every state."""
    mean: Floats
    """(rows, states, missing) of the missing numbers given all else."""
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with gaps: numbers come first, then discrete columns in the order of a model."""

    numbers: Floats
    """(n, p) NaN where missing."""
    codes: Ints
    """(n, q) -1 where missing."""
    values: tuple[Values, ...]
    weights: Floats | None = None

    @property
    def p(self) -> int:
        return self.numbers.shape[1]

    @cached_property
    def share(self) -> Floats:
        weights = np.ones(len(self.numbers)) if self.weights is None else self.weights
        return weights / weights.sum()

    @cached_property
    def states(self) -> Ints:
        """(states, q) all of them."""
        every = list(itertools.product(*(range(len(v.base)) for v in self.values)))
        return np.array(every, dtype=np.int64).reshape(len(every), len(self.values))

    @cached_property
    def columns(self) -> Floats:
        """(states, design columns) of the discrete columns."""
        return self._stacked([v.columns for v in self.values])

    @cached_property
    def terms(self) -> Floats:
        """(states, own terms)"""
        return self._stacked([v.terms for v in self.values])

    def _stacked(self, parts: list[Floats]) -> Floats:
        each = [part[self.states[:, j]] for j, part in enumerate(parts)]
        return np.hstack([np.zeros((len(self.states), 0)), *each])

    # -- parameters as one vector ------------------------------------------------------------------

    @cached_property
    def spans(self) -> list[slice]:
        """Design columns of every node."""
        ends = np.cumsum([0, *[1] * self.p, *(v.columns.shape[1] for v in self.values)])
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.spans)), 2))

    @cached_property
    def n_own(self) -> int:
        """Number of linear terms, own terms and diagonal entries, which stand first."""
        return 2 * self.p + self.terms.shape[1]

    @cached_property
    def blocks(self) -> dict[tuple[int, int], slice]:
        """Where the block of every pair stands in the vector."""
        out, first = {}, self.n_own
        for u, v in self.pairs:
            size = self._width(u) * self._width(v)
            out[u, v] = slice(first, first + size)
            first += size
        return out

    def _width(self, node: int) -> int:
        return self.spans[node].stop - self.spans[node].start

    def vector(self, params) -> Floats:
        """Parameters of the package -> one vector."""
        edges = [params.coef[self.spans[u], self.spans[v]].ravel() for u, v in self.pairs]
        return np.concatenate([params.bias, params.diagonal, *edges])

    def parts(self, theta: Floats) -> Parts:
        p, d = self.p, self.spans[-1].stop
        coef = np.zeros((d, d))
        for (u, v), at in self.blocks.items():
            block = theta[at].reshape(self._width(u), self._width(v))
            coef[self.spans[u], self.spans[v]], coef[self.spans[v], self.spans[u]] = block, block.T
        precision = np.diag(theta[self.n_own - p : self.n_own]) - coef[:p, :p]
        own = theta[p : self.n_own - p]
        return Parts(theta[:p], own, precision, coef[:p, p:], coef[p:, p:])

    # -- the likelihood of what is observed --------------------------------------------------------

    def _weighed(self, parts: Parts) -> tuple[Floats, Floats]:
        """Terms of the states alone, and linear terms of the numbers in each."""
        base = sum((v.base[self.states[:, j]] for j, v in enumerate(self.values)), np.zeros(1))
        own = base + self.terms @ parts.own
        own = own + 0.5 * np.einsum("sa,ab,sb->s", self.columns, parts.coupling, self.columns)
        return own, parts.linear + self.columns @ parts.shift.T

    def log_z(self, theta: Floats) -> float:
        parts = self.parts(theta)
        own, linear = self._weighed(parts)
        return float(logsumexp(own + _gaussian_integral(linear, parts.precision)))

    def _patterns(self, theta: Floats) -> Iterator[_Pattern]:
        parts = self.parts(theta)
        own, linear = self._weighed(parts)
        fits = np.all(
            (self.codes[:, None, :] == self.states) | (self.codes[:, None, :] < 0), axis=2
        )
        gaps = np.isnan(self.numbers)
        kinds, kind = np.unique(gaps, axis=0, return_inverse=True)
        for number, gap in enumerate(kinds):
            rows = np.flatnonzero(kind.ravel() == number)
            m, o = np.flatnonzero(gap), np.flatnonzero(~gap)
            x, B = self.numbers[np.ix_(rows, o)], parts.precision
            pull = linear[None][:, :, m] - (x @ B[np.ix_(o, m)])[:, None, :]
            log_joint = own + x @ linear[:, o].T + _gaussian_integral(pull, B[np.ix_(m, m)])
            log_joint -= 0.5 * np.einsum("ra,ab,rb->r", x, B[np.ix_(o, o)], x)[:, None]
            log_joint[~fits[rows]] = -np.inf
            covariance = np.linalg.inv(B[np.ix_(m, m)])
            yield _Pattern(rows, m, log_joint, pull @ covariance, covariance)

    def loss(self, theta: Floats) -> float:
        """Mean negative log likelihood of what is observed."""
        total = sum(
            self.share[p.rows] @ logsumexp(p.log_joint, axis=1) for p in self._patterns(theta)
        )
        return self.log_z(theta) - float(total)

    # -- completions -------------------------------------------------------------------------------

    def completions(self, theta: Floats, n_points: int = 200) -> Completions:
        """Every state with its probability given what is observed.

        One missing number stands at points that are evenly spread over eight standard deviations
        either way: for smooth functions, the most accurate rule there is.
        """
        out = []
        for rows, missing, log_joint, mean, covariance in self._patterns(theta):
            chance = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
            r, s = np.nonzero(chance)
            share = self.share[rows[r]] * chance[r, s]
            numbers = self.numbers[rows[r]]
            if not len(missing):
                out.append((rows[r], numbers, s, share))
                continue
            assert len(missing) == 1, "points are for one number"
            at = np.linspace(-8.0, 8.0, n_points)
            height = np.exp(-0.5 * at**2)
            numbers = np.repeat(numbers, n_points, axis=0)
            points = mean[r, s, 0][:, None] + np.sqrt(covariance[0, 0]) * at
            numbers[:, missing[0]] = points.ravel()
            share = (share[:, None] * height / height.sum()).ravel()
            out.append((np.repeat(rows[r], n_points), numbers, np.repeat(s, n_points), share))
        return Completions(*(np.concatenate(part) for part in zip(*out, strict=True)))

    def conditional_losses(self, theta: Floats, numbers: Floats, state: Ints) -> Floats:
        """(m, nodes) minus the log of every column of complete rows, given the others."""
        parts, p, z = self.parts(theta), self.p, self.columns[state]
        b = np.diag(parts.precision)
        mean = (parts.linear + z @ parts.shift.T - numbers @ parts.precision) / b + numbers
        out = [0.5 * b * (numbers - mean) ** 2 - 0.5 * np.log(b) + 0.5 * _LOG_2PI]
        predictors = numbers @ parts.shift + z @ parts.coupling
        first = 0
        for j, v in enumerate(self.values):
            own = parts.own[first : first + v.terms.shape[1]]
            first += v.terms.shape[1]
            at = slice(self.spans[p + j].start - p, self.spans[p + j].stop - p)
            logits = v.base + v.terms @ own + predictors[:, at] @ v.columns.T
            chosen = logits[np.arange(len(state)), self.states[state, j]]
            out.append((logsumexp(logits, axis=1) - chosen)[:, None])
        return np.hstack(out)

    def expected_loss(self, theta: Floats, completions: Completions) -> float:
        """Mean negative log pseudolikelihood of completed rows."""
        losses = self.conditional_losses(theta, completions.numbers, completions.state)
        return float(completions.share @ losses.sum(axis=1))

    # -- optimality --------------------------------------------------------------------------------

    def scales(self, theta: Floats) -> Floats:
        """Of every node the root of the trace of its covariance, rows completed by the model."""
        d, p = self.spans[-1].stop, self.p
        first, second = np.zeros(d), np.zeros(d)
        for rows, missing, log_joint, mean, covariance in self._patterns(theta):
            chance = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
            share = self.share[rows][:, None] * chance
            x = np.repeat(self.numbers[rows][:, None, :], chance.shape[1], axis=1)
            x[:, :, missing] = mean
            first[:p] += np.einsum("rs,rsa->a", share, x)
            second[:p] += np.einsum("rs,rsa->a", share, x**2)
            second[missing] += share.sum() * np.diag(covariance)
            first[p:] += share.sum(axis=0) @ self.columns
            second[p:] += share.sum(axis=0) @ self.columns**2
        variance = second - first**2
        return np.sqrt([variance[span].sum() for span in self.spans])

    def kkt(
        self, theta: Floats, gradient: Floats, lam: float, weights: str = "calibrated"
    ) -> float:
        """How far the conditions of a minimum are from being met."""
        scales = self.scales(theta)
        distances = [np.abs(gradient[: self.n_own]).max()]
        for (u, v), at in self.blocks.items():
            unit = scales[u] * scales[v]
            pull = lam * (unit if weights == "calibrated" else 1.0)
            length = np.linalg.norm(theta[at])
            if length > 0:
                away = np.linalg.norm(gradient[at] + pull * theta[at] / length)
            else:
                away = max(0.0, np.linalg.norm(gradient[at]) - pull)
            distances.append(away / unit)
        return float(max(distances))


def _gaussian_integral(linear: Floats, precision: Floats) -> Floats:
    """Log of the integral of exp(-x'Bx/2 + linear'x), for every vector of linear terms."""
    covariance = np.linalg.inv(precision)
    half = 0.5 * np.einsum("...a,ab,...b->...", linear, covariance, linear)
    return half - 0.5 * np.linalg.slogdet(precision)[1] + 0.5 * len(precision) * _LOG_2PI


def derivative(function: Callable[[Floats], object], at: Floats, step: float = 1e-3) -> Floats:
    """(..., parameters) by differences whose error is of the fourth order in the step."""
    out = []
    for k in range(len(at)):
        move = np.zeros(len(at))
        move[k] = step
        near = np.asarray(function(at + move)) - np.asarray(function(at - move))
        far = np.asarray(function(at + 2 * move)) - np.asarray(function(at - 2 * move))
        out.append((8 * near - far) / (12 * step))
    return np.stack(out, axis=-1)
