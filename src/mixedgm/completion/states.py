"""Gaps -> for every row with gaps the states of its missing discrete columns that stand for it.

Where these have few states, all of them stand, and the model gives their weights.  Where there are
many, some are drawn by the model, and their weights follow the model from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints
from mixedgm.table.encode import code_dtype
from mixedgm.table.gaps import Gaps

Codes = NDArray[np.uint8 | np.uint16 | np.int32]
Mask = NDArray[np.bool_]
Small = NDArray[np.int32]
"""Numbers of rows, or of states: half the memory of usual ones."""

FEWEST_DRAWS, MOST_DRAWS = 20, 100
DRAWS_IN_ALL = 100_000
"""Draws for all rows together, as long as each row has enough of them."""
MOST_STATES = 4096
"""Largest number of states of a row that are written out in order to draw from them."""


@dataclass(frozen=True)
class CompletionLimits:
    """How many completions a row may have."""

    most: int = 64
    """Completions of a row up to which all states stand for it."""
    sigma: bool = False
    """Whether means and covariances of missing numbers are all that matters: so it is for the
    likelihood, whose statistics are quadratic in them."""
    seed: int = 0
    """Seed of everything that is drawn."""
    n_draws: int | None = None
    """States that are drawn for a row that has too many; by default the fewer, the more rows."""

    def draws_for(self, n_rows: int) -> int:
        """How many states are drawn for each of so many rows."""
        if self.n_draws is not None:
            return self.n_draws
        return int(np.clip(DRAWS_IN_ALL // max(n_rows, 1), FEWEST_DRAWS, MOST_DRAWS))

    def n_points(self, n_numbers: int, n_states: int) -> int:
        """Points for the missing numbers of a row, for each of its states."""
        if n_numbers == 0:
            return 1
        if self.sigma:
            return 2 * n_numbers
        if n_states == 1:
            return 7 if n_numbers == 1 else min(max(FEWEST_DRAWS, 2 * n_numbers), self.most)
        exactly = 3 if n_numbers == 1 else 2 * n_numbers
        return exactly if n_states * exactly <= self.most else 2


@dataclass(frozen=True, eq=False)
class RowStates:
    """Codes of all discrete columns, several for a row, in the order of the rows."""

    row: Small
    """(m,) the row that each belongs to."""
    codes: Codes
    """(m, q)"""
    log_drawn: NDArray[np.float32]
    """(m,) logarithm of what each was drawn by, and how often; zero where all states stand."""
    drawn: Mask
    """(m,) whether it is one of some that were drawn."""

    @property
    def starts(self) -> Ints:
        """Where every row begins."""
        return np.flatnonzero(np.diff(self.row, prepend=-1))

    def weighted(self, log_weight: Floats) -> Floats:
        """(m,) probabilities from what the model says, those of a row adding up to one."""
        return _shares(log_weight - self.log_drawn, self.starts)


def _shares(log_weight: Floats, starts: Ints) -> Floats:
    counts = np.diff(np.append(starts, len(log_weight)))
    top = np.repeat(np.maximum.reduceat(log_weight, starts), counts)
    out = np.exp(log_weight - top)
    return np.asarray(out / np.repeat(np.add.reduceat(out, starts), counts))


class MissingStates:
    """Which states the missing discrete columns of every row can be in.

    Values that nothing has been seen of, and that have terms of their own, cannot occur.
    """

    def __init__(self, gaps: Gaps, possible: list[Ints], limits: CompletionLimits) -> None:
        self.gaps, self.possible, self.limits = gaps, possible, limits
        self.dtype = code_dtype(gaps.schema)
        missing = gaps.codes < 0
        self.n_numbers = np.isnan(gaps.numbers).sum(axis=1)
        packed, group = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
        bits = np.unpackbits(packed, axis=1, count=missing.shape[1]).astype(bool)
        self.columns = [np.flatnonzero(each) for each in bits]
        self.group = group.ravel()
        sizes = [prod(len(possible[j]) for j in columns) for columns in self.columns]
        self.n_states = np.array(sizes, dtype=np.float64)[self.group]

    @cached_property
    def all_stand(self) -> Mask:
        """(rows,) whether all states of a row stand for it."""
        asked = np.column_stack([self.n_numbers, np.minimum(self.n_states, 2.0**31)])
        kinds, kind = np.unique(asked, axis=0, return_inverse=True)
        points = np.array([self.limits.n_points(int(k), int(n)) for k, n in kinds])
        return np.asarray(self.n_states * points[kind.ravel()] <= self.limits.most)

    @cached_property
    def too_many(self) -> Mask:
        """(rows,) whether a row has more states than can be written out."""
        return np.asarray(~self.all_stand & (self.n_states > MOST_STATES))

    def of(self, which: Mask) -> RowStates:
        """All states of some rows."""
        parts = [
            self._written_out(g, np.flatnonzero((self.group == g) & which))
            for g in np.unique(self.group[which]).tolist()
        ]
        row = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in parts)])
        none = np.zeros((0, self.gaps.codes.shape[1]), self.dtype)
        codes = np.vstack([none, *(part[1] for part in parts)])
        order = np.argsort(row, kind="stable")
        nothing = np.zeros(len(row), dtype=np.float32)
        return RowStates(row[order], codes[order], nothing, np.zeros(len(row), dtype=bool))

    def _written_out(self, group: int, members: Ints) -> tuple[Small, Codes]:
        columns = self.columns[group]
        grids = np.meshgrid(*(self.possible[j] for j in columns), indexing="ij")
        states = np.stack([grid.ravel() for grid in grids], axis=1) if len(columns) else None
        rows: Small = members.astype(np.int32)
        codes: Codes = np.asarray(np.maximum(self.gaps.codes[rows], 0), dtype=self.dtype)
        if states is None:
            return rows, codes
        codes = np.repeat(codes, len(states), axis=0)
        codes[:, columns] = np.tile(states, (len(rows), 1))
        return np.repeat(rows, len(states)), codes


def drawn(states: RowStates, chance: Floats, n_draws: int, uniforms: Floats) -> RowStates:
    """Some of all states of every row: systematic draws, a state that comes twice standing once.

    `chance` are their probabilities, `uniforms` one number for every row.
    """
    starts = states.starts
    counts = np.diff(np.append(starts, len(chance)))
    number = np.repeat(np.arange(len(starts)), counts)
    # Sums over all rows, in which row i covers the interval (i, i + 1).
    upper = np.cumsum(chance)
    before = np.repeat(np.concatenate([[0.0], upper[starts[1:] - 1]]), counts)
    upper = np.clip(upper - before, 0.0, 1.0)
    upper[np.append(starts[1:], len(chance)) - 1] = 1.0
    lower = np.concatenate([[0.0], upper[:-1]])
    lower[starts] = 0.0
    first = uniforms[number]
    times = np.ceil(n_draws * upper - first) - np.ceil(n_draws * lower - first)
    kept = np.flatnonzero(times > 0)
    log_drawn = np.log(np.maximum(chance[kept], 1e-300)) - np.log(times[kept])
    log_drawn = log_drawn.astype(np.float32)
    return RowStates(
        states.row[kept], states.codes[kept], log_drawn, np.ones(len(kept), dtype=bool)
    )
