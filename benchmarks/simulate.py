"""A shape and a sparse random graph -> rows of a mixed table, by Gibbs sampling."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.families import Scored

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shape:
    """Continuous columns, columns with finitely many values by their number, and rows."""

    n_gaussian: int
    n_levels: tuple[int, ...]
    n_rows: int
    scored: tuple[Scored, ...] = ()
    """Kinds of the first columns with finitely many values; all others are categorical."""

    @property
    def n_nodes(self) -> int:
        return self.n_gaussian + len(self.n_levels)

    @property
    def widths(self) -> tuple[int, ...]:
        """Design columns of every column that is not continuous."""
        return (1,) * len(self.scored) + self.n_levels[len(self.scored) :]

    @property
    def n_columns(self) -> int:
        """Design columns, d."""
        return self.n_gaussian + sum(self.widths)

    def __str__(self) -> str:
        by_kind = Counter(kind.name for kind in self.scored)
        scored = "".join(f" + {count} {kind}" for kind, count in by_kind.items())
        plain = self.n_levels[len(self.scored) :]
        levels = sorted(set(plain))
        kind = f" x {levels[0]} levels" if len(levels) == 1 else " categorical"
        discrete = f" + {len(plain)}{kind}" if levels else ""
        return f"{self.n_gaussian}{scored}{discrete}, {self.n_rows:,} rows"


def sparse_table(
    shape: Shape, rng: np.random.Generator, *, degree: float = 3.0, sweeps: int = 20
) -> tuple[Floats, NDArray[np.int64]]:
    """Continuous columns and level codes of a table whose nodes have `degree` edges on average.

    All rows are chains of their own and take every step together.  Without neighbours levels are
    equally likely, and counts are Poisson with mean 3.
    """
    start = np.concatenate([np.arange(shape.n_gaussian), _offsets(shape)])
    coupling, neighbours = _model(shape, start, rng, degree)
    diagonal = 1.0 + np.abs(coupling[: shape.n_gaussian, : shape.n_gaussian]).sum(axis=1)
    n = shape.n_rows
    Z = np.zeros((n, shape.n_columns))
    Z[:, : shape.n_gaussian] = rng.normal(size=(n, shape.n_gaussian)) / np.sqrt(diagonal)
    codes = np.column_stack(
        [rng.integers(0, m, size=n) for m in shape.n_levels] or [np.zeros((n, 0), dtype=np.int64)]
    )
    values = [_values(shape, j) for j in range(len(shape.n_levels))]
    for j, (columns, _) in enumerate(values):
        Z[:, start[shape.n_gaussian + j] : start[shape.n_gaussian + j + 1]] = columns[codes[:, j]]
    for _ in range(sweeps):
        for v, near in enumerate(neighbours):
            own = slice(start[v], start[v + 1])
            eta = Z[:, near] @ coupling[near, own]
            if v < shape.n_gaussian:
                Z[:, v] = eta[:, 0] / diagonal[v] + rng.normal(size=n) / np.sqrt(diagonal[v])
            else:
                columns, alone = values[v - shape.n_gaussian]
                logits = alone + eta @ columns.T
                drawn = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
                Z[:, own] = columns[drawn]
                codes[:, v - shape.n_gaussian] = drawn
    return Z[:, : shape.n_gaussian].copy(), codes


def _values(shape: Shape, j: int) -> tuple[Floats, Floats]:
    """Design columns at every value of a column, and the log probabilities without neighbours.

    Scores have mean 0 and variance 1 under these.
    """
    m = shape.n_levels[j]
    if j >= len(shape.scored):
        return np.eye(m), np.zeros(m)
    kind = shape.scored[j]
    logits = kind.base(m)
    if not kind.is_free:
        logits = logits + np.log(3.0) * np.arange(m)
    share = np.exp(logits) / np.exp(logits).sum()
    score = kind.own_scores(m)
    score = score - share @ score
    return (score / np.sqrt(share @ score**2))[:, None], logits


def _offsets(shape: Shape) -> NDArray[np.int64]:
    return shape.n_gaussian + np.concatenate([[0], np.cumsum(shape.widths)]).astype(np.int64)


def _model(
    shape: Shape, start: NDArray[np.int64], rng: np.random.Generator, degree: float
) -> tuple[Floats, list[NDArray[np.int64]]]:
    """The symmetric coupling of design columns, and the columns that each node depends on."""
    n_nodes = shape.n_nodes
    n_edges = min(round(degree * n_nodes / 2), n_nodes * (n_nodes - 1) // 2)
    u, v = np.triu_indices(n_nodes, 1)
    chosen = rng.choice(len(u), size=n_edges, replace=False)
    coupling = np.zeros((shape.n_columns, shape.n_columns))
    near: list[list[NDArray[np.int64]]] = [[] for _ in range(n_nodes)]
    for a, b in zip(u[chosen], v[chosen], strict=True):
        rows, columns = np.arange(*start[a : a + 2]), np.arange(*start[b : b + 2])
        block = _block(len(rows), len(columns), rng)
        coupling[np.ix_(rows, columns)] = block
        coupling[np.ix_(columns, rows)] = block.T
        near[a].append(columns)
        near[b].append(rows)
    none = np.zeros(0, dtype=np.int64)
    return coupling, [np.concatenate([none, *columns]) for columns in near]


def _block(n_rows: int, n_columns: int, rng: np.random.Generator) -> Floats:
    """Strong enough to be found in some thousand rows, zero sums over levels."""
    if n_rows == n_columns == 1:
        return rng.choice([-0.5, 0.5], size=(1, 1))
    block = rng.normal(size=(n_rows, n_columns))
    if n_rows > 1:
        block -= block.mean(axis=0)
    if n_columns > 1:
        block -= block.mean(axis=1, keepdims=True)
    strength = 0.6 if min(n_rows, n_columns) == 1 else 1.2
    size = strength * np.sqrt(max(n_rows, n_columns)) / np.linalg.norm(block)
    return np.asarray(size * block)
