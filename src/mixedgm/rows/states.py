"""Rows and some categorical columns -> rows in which the joint state of these is one column."""

from __future__ import annotations

from math import prod

import numpy as np

from mixedgm.model.layout import Ints
from mixedgm.rows.memory import MemoryRows


def with_joint_state(rows: MemoryRows, numbers: Ints, discrete: Ints, together: Ints) -> MemoryRows:
    """Keep the columns `numbers` and `discrete`, and put the joint state of others behind them.

    Parameters
    ----------
    rows : MemoryRows
        The rows.
    numbers, discrete : ndarray of int
        Positions of the continuous and the categorical columns to keep.
    together : ndarray of int
        Categorical columns that become one, which has a level for every combination of theirs;
        the level of the last of them changes fastest.

    Examples
    --------
    >>> codes = np.array([[1, 0, 2], [0, 1, 1]], dtype=np.uint8)
    >>> rows = MemoryRows(np.zeros((2, 0)), codes, (2, 2, 3))
    >>> found = with_joint_state(rows, np.arange(0), np.array([1]), np.array([0, 2]))
    >>> found.n_levels, found.codes.tolist()
    ((2, 6), [[0, 5], [1, 1]])
    """
    n_levels = [rows.n_levels[j] for j in together]
    state = np.zeros(rows.n_rows, dtype=np.int64)
    for j in together:
        state = state * rows.n_levels[j] + rows.codes[:, j]
    levels = (*(rows.n_levels[j] for j in discrete), prod(n_levels))
    codes = np.column_stack([rows.codes[:, discrete].astype(np.int64), state])
    if max(levels) <= 2**16:
        codes = codes.astype(np.uint8 if max(levels) <= 2**8 else np.uint16)
    kept = np.ascontiguousarray(rows.numbers[:, numbers])
    return MemoryRows(kept, codes, levels, rows.weights, rows.n_threads)
