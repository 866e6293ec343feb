"""Columns of any kind and the blocks of their edges -> rows of that model, by plain Gibbs sampling.

Nothing of the package is used here, so that what a fit finds in these rows is compared with a truth
of other origin.  The density is, up to its constant,

    exp( sum over u of own_u(value) + sum over edges u < v of T_u(value)' block T_v(value) )

with T_u what the other columns see of u: a number, a score, a root, indicators, or two numbers.
Every row is the end of a chain of its own, so that rows are independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lgamma
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Column(Protocol):
    """One column: its values given the others, and what these see of it."""

    @property
    def width(self) -> int:
        """Length of T."""

    def seen(self, values: Floats) -> Floats:
        """(n, width) T of n values."""

    def drawn(self, predictor: Floats, rng: np.random.Generator) -> Floats:
        """N values given the predictors (n, width), which multiply T."""

    def independent(self) -> tuple[Floats, float]:
        """Mean of T and the root of its total variance, if there were no edges."""


@dataclass(frozen=True)
class Finite:
    """The values 0, 1, ..., L - 1 with a table of T, (L, width), and own terms (L,)."""

    table: Floats
    own: Floats

    @property
    def width(self) -> int:
        """Columns of the table."""
        return self.table.shape[1]

    def seen(self, values: Floats) -> Floats:
        """Rows of the table."""
        return self.table[values.astype(np.int64)]

    def drawn(self, predictor: Floats, rng: np.random.Generator) -> Floats:
        """Where the cumulated weights pass a uniform number."""
        logits = self.own + predictor @ self.table.T
        weights = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        level = rng.random(len(weights)) * weights[:, -1]
        return (weights < level[:, None]).sum(axis=1).astype(np.float64)

    def independent(self) -> tuple[Floats, float]:
        """Sums over the values."""
        weights = np.exp(self.own - self.own.max())
        weights /= weights.sum()
        mean = weights @ self.table
        return mean, float(np.sqrt(weights @ ((self.table - mean) ** 2).sum(axis=1)))


@dataclass(frozen=True)
class Gaussian:
    """Any number x, with T = x and the own terms linear x - precision x^2 / 2."""

    linear: float = 0.0
    precision: float = 1.0

    @property
    def width(self) -> int:
        """One."""
        return 1

    def seen(self, values: Floats) -> Floats:
        """The numbers themselves."""
        return values[:, None]

    def drawn(self, predictor: Floats, rng: np.random.Generator) -> Floats:
        """Normal numbers."""
        mean = (self.linear + predictor[:, 0]) / self.precision
        return mean + rng.standard_normal(len(mean)) / np.sqrt(self.precision)

    def independent(self) -> tuple[Floats, float]:
        """Of a normal number."""
        return np.array([self.linear / self.precision]), float(self.precision**-0.5)


@dataclass(frozen=True)
class Hurdle:
    """Zero or any number: T = (1[x != 0], x); own terms there - precision x^2 / 2 + linear x."""

    there: float = 0.0
    linear: float = 0.0
    precision: float = 1.0

    @property
    def width(self) -> int:
        """Two: whether, and how much."""
        return 2

    def seen(self, values: Floats) -> Floats:
        """Whether it is zero, and the number."""
        return np.column_stack([values != 0, values])

    def _parts(self, predictor: Floats) -> tuple[Floats, Floats]:
        """Probability of not being zero, and the mean then."""
        slope = self.linear + predictor[:, 1]
        area = 0.5 * np.log(2 * np.pi / self.precision) + slope**2 / (2 * self.precision)
        share = 0.5 + 0.5 * np.tanh(0.5 * (self.there + predictor[:, 0] + area))
        return share, slope / self.precision

    def drawn(self, predictor: Floats, rng: np.random.Generator) -> Floats:
        """A coin, and a normal number where it says so."""
        share, mean = self._parts(predictor)
        there = rng.random(len(share)) < share
        return there * (mean + rng.standard_normal(len(share)) / np.sqrt(self.precision))

    def independent(self) -> tuple[Floats, float]:
        """Of the mixture of zero and a normal number."""
        share, centre = (float(part[0]) for part in self._parts(np.zeros((1, 2))))
        second = share * (1 / self.precision + centre**2)
        variance = share * (1 - share) + second - (share * centre) ** 2
        return np.array([share, share * centre]), float(np.sqrt(variance))


def categorical(own: ArrayLike) -> Finite:
    """Levels with an indicator and an own term each."""
    terms = np.asarray(own, dtype=np.float64)
    return Finite(np.eye(len(terms)), terms)


def ordinal(own: ArrayLike, scores: ArrayLike | None = None) -> Finite:
    """Levels with a threshold and a score each, which is 0, 1, 2, ... unless given."""
    terms = np.asarray(own, dtype=np.float64)
    values = np.arange(len(terms)) if scores is None else np.asarray(scores)
    return Finite(values.astype(np.float64)[:, None], terms)


def count(root: float, linear: float, largest: int, zero: float = 0.0) -> Finite:
    """Counts with own terms root sqrt(c) + linear c - log c!, and `zero` more where c = 0."""
    counts = np.arange(largest + 1)
    log_factorial = np.array([lgamma(c + 1) for c in counts])
    own = root * np.sqrt(counts) + linear * counts - log_factorial + zero * (counts == 0)
    return Finite(np.sqrt(counts)[:, None], own)


def rows(
    columns: Sequence[Column],
    blocks: Mapping[tuple[int, int], ArrayLike],
    n_rows: int,
    rng: np.random.Generator,
    sweeps: int = 100,
) -> Floats:
    """Draw (n_rows, columns) values, every row by a chain of its own.

    Parameters
    ----------
    columns : sequence of Column
    blocks : mapping
        From (u, v) to the block of that edge, (width of u, width of v).  T of all columns is taken
        less its mean without edges: that keeps the columns near where their own terms put them.
    n_rows : int
    rng : numpy.random.Generator
    sweeps : int
        Steps of every chain; each visits all columns.
    """
    start = np.concatenate([[0], np.cumsum([column.width for column in columns])])
    spans = [slice(a, b) for a, b in zip(start[:-1], start[1:], strict=True)]
    coef = np.zeros((start[-1], start[-1]))
    for (u, v), block in blocks.items():
        coef[spans[u], spans[v]] = block
        coef[spans[v], spans[u]] = np.transpose(block)
    centre = np.concatenate([column.independent()[0] for column in columns])
    values = np.zeros((n_rows, len(columns)))
    seen = np.zeros((n_rows, start[-1]))
    for sweep in range(sweeps + 1):
        for k, (column, span) in enumerate(zip(columns, spans, strict=True)):
            predictor = (seen @ coef[:, span]) * (sweep > 0)
            values[:, k] = column.drawn(predictor, rng)
            seen[:, span] = column.seen(values[:, k]) - centre[span]
    return values
