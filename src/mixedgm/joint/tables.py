"""Tables over the states of a few columns -> sums, products and pair sums of them.

Every table has one leading axis for the fields side by side, and the columns' axes after it in
the order of their clique, the last running fastest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixedgm.joint.discrete import Discrete
from mixedgm.joint.kernels import add_column, grow, row_sums, split_sums
from mixedgm.model.layout import Floats


def log_potential(field: Discrete, separator: Sequence[int], residual: Sequence[int]) -> Floats:
    """(b, |S|, |R|) all terms of the log density that involve a column of the residual.

    Columns are added one by one: each step costs as much as the table it makes, so the whole
    costs little more than writing the last one.
    """
    columns = list(separator)
    n_separator = int(np.prod([field.n_levels[j] for j in separator], dtype=np.int64))
    table = np.zeros((1, n_separator))
    for column in residual:
        span = field.span(column)
        table = grow(table, _additive(field, columns, span), field.unary[:, span])
        columns.append(column)
    return table.reshape(len(table), n_separator, -1)


def _additive(field: Discrete, columns: Sequence[int], span: slice) -> Floats:
    """(states of the columns, levels of the span) sums of their interactions with the span."""
    width = span.stop - span.start
    total = np.zeros((1, width))
    for column in columns:
        total = add_column(total, field.pairwise[field.span(column), span])
    return total


def normalise(table: Floats) -> Floats:
    """Turn log weights (b, |S|, |R|) into probabilities given S, in place; return log sums."""
    top = table.max(axis=2, keepdims=True)
    table -= top
    np.exp(table, out=table)
    total = table.sum(axis=2, keepdims=True)
    table /= total
    return np.asarray((top + np.log(total))[:, :, 0])


def marginal(table: Floats, columns: Sequence[int], keep: Sequence[int]) -> Floats:
    """Sum a table with one axis per column over the columns that are not in `keep`.

    The axes that stay keep their order.
    """
    kept = set(keep)
    drop = tuple(1 + axis for axis, column in enumerate(columns) if column not in kept)
    return np.asarray(table.sum(axis=drop)) if drop else table


def pair_sums(table: Floats, n_levels: Sequence[int], first: int) -> Floats:
    """Marginals of every pair of columns of a table (b, states), as (b, K, K) over their levels.

    Symmetric; the block of a column with itself holds its marginal on the diagonal.  Pairs of two
    columns before `first` are left out.
    """
    b = len(table)
    start = np.concatenate([[0], np.cumsum(n_levels)])
    out = np.zeros((b, start[-1], start[-1]))
    rest = np.ascontiguousarray(table)
    for m in reversed(range(first, len(n_levels))):
        here, width = slice(start[m], start[m + 1]), n_levels[m]
        peeled = rest.reshape(b, -1, width)
        rest = row_sums(peeled)
        for j in reversed(range(m)):
            there = slice(start[j], start[j + 1])
            pair, peeled = split_sums(peeled.reshape(b, -1, n_levels[j], width))
            out[:, there, here] = pair
            out[:, here, there] = pair.transpose(0, 2, 1)
        diagonal = np.arange(start[m], start[m + 1])
        out[:, diagonal, diagonal] = peeled[:, 0]
    return out
