"""Marginals of the cliques of a tree -> the marginal of every pair of columns, in one sweep.

Two columns in one clique are summed out of its table.  Two columns further apart are independent
given any separator between them.  So the joint table of every column with every separator is
carried along the tree, first from the leaves to the roots, then back; a matrix product at the
clique of the second column finishes the pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.joint.discrete import Discrete
from mixedgm.joint.plan import Plan
from mixedgm.joint.tables import marginal, pair_sums
from mixedgm.model.layout import Floats, Ints

# Numbers carried along the tree at one time; more columns than fit go in several sweeps.
CARRIED = 2**24

Columns = tuple[int, ...]


def all_pairs(field: Discrete, plan: Plan, cliques: list[Floats], carried: int = CARRIED) -> Floats:
    """(b, K, K) probability of every pair of levels, from the marginals of the cliques.

    These are (b, one axis per column).  About `carried` numbers are carried along the tree at once.
    """
    within = []
    single = np.empty((field.n_fields, field.start[-1]))
    for clique, table in zip(plan.cliques, cliques, strict=True):
        n_levels = [field.n_levels[j] for j in clique.columns]
        sums = pair_sums(table.reshape(len(table), -1), n_levels, len(clique.separator))
        inner = _levels(field, clique.residual)
        single[:, inner] = np.diagonal(sums, axis1=1, axis2=2)[:, -len(inner) :]
        within.append((_levels(field, clique.columns), len(inner), sums))
    # Columns without a path between them are independent; the others are overwritten.
    out = single[:, :, None] * single[:, None, :]
    sweep = _Sweep(field, plan, cliques, out)
    for sources in _chunks(field, plan, carried):
        sweep.run(sources)
    for levels, n_inner, sums in within:
        inner = levels[-n_inner:]
        out[:, inner[:, None], levels] = sums[:, -n_inner:]
        out[:, levels[:, None], inner] = sums[:, :, -n_inner:]
    return out


def _levels(field: Discrete, columns: Columns) -> Ints:
    spans = [np.arange(field.start[j], field.start[j + 1]) for j in columns]
    return np.concatenate([*spans, np.zeros(0, dtype=np.int64)])


def _chunks(field: Discrete, plan: Plan, carried: int) -> Iterator[set[int]]:
    """Sets of columns whose tables can be carried together; none when there are no separators."""
    separators = [clique.separator for clique in plan.cliques if clique.separator]
    per_level = field.n_fields * sum(plan.size(separator) for separator in separators)
    if per_level == 0:
        return
    chunk: set[int] = set()
    n_rows = 0
    for j, n_levels in enumerate(field.n_levels):
        if chunk and (n_rows + n_levels) * per_level > carried:
            yield chunk
            chunk, n_rows = set(), 0
        chunk.add(j)
        n_rows += n_levels
    yield chunk


@dataclass(frozen=True, eq=False)
class _Rows:
    """Joint probabilities of some levels, `who`, with the states of one set of columns."""

    who: Ints
    values: Floats  # (b, len(who), states)


@dataclass(frozen=True, eq=False)
class _Sweep:
    field: Discrete
    plan: Plan
    cliques: list[Floats]
    out: Floats

    @cached_property
    def groups(self) -> list[dict[Columns, list[int]]]:
        """The children of every clique by their separator: equals are carried together."""
        groups: list[dict[Columns, list[int]]] = [{} for _ in self.plan.cliques]
        for c, clique in enumerate(self.plan.cliques):
            if clique.separator:
                groups[clique.parent].setdefault(clique.separator, []).append(c)
        return groups

    def run(self, sources: set[int]) -> None:
        """Fill the rows and columns of the sources in `out`, for pairs in different cliques."""
        below = self._upwards(sources)
        outside: dict[int, _Rows] = {}
        for d, clique in enumerate(self.plan.cliques):
            if clique.separator:
                self._write(d, outside[d])
            arrived = [(clique.separator, outside.pop(d))] if clique.separator else []
            arrived += [(s, _stack([below[c] for c in cs])) for s, cs in self.groups[d].items()]
            for separator, children in self.groups[d].items():
                parts = [self._own(d, separator, sources)]
                parts += [self._shift(rows, d, at, separator) for at, rows in arrived]
                everyone = _stack(parts)
                for c in children:
                    outside[c] = self._without(everyone, below[c].who)

    def _upwards(self, sources: set[int]) -> dict[int, _Rows]:
        """Columns in each clique's part of the tree, with the clique's separator."""
        below: dict[int, _Rows] = {}
        for c in reversed(range(len(self.plan.cliques))):
            separator = self.plan.cliques[c].separator
            if separator:
                parts = [self._own(c, separator, sources)]
                for at, children in self.groups[c].items():
                    rows = _stack([below[child] for child in children])
                    parts.append(self._shift(rows, c, at, separator))
                below[c] = _stack(parts)
        return below

    def _without(self, rows: _Rows, who: Ints) -> _Rows:
        leave = np.zeros(int(self.field.start[-1]), dtype=bool)
        leave[who] = True
        keep = ~leave[rows.who]
        return _Rows(rows.who[keep], rows.values[:, keep])

    def _write(self, c: int, rows: _Rows) -> None:
        """Pairs of a column from outside with a residual column of clique c."""
        clique, table = self.plan.cliques[c], self.cliques[c]
        levels = _levels(self.field, clique.residual)
        parts = []
        for r in clique.residual:
            joint = marginal(table, clique.columns, (*clique.separator, r))
            parts.append(joint.reshape(len(joint), -1, self.field.n_levels[r]))
        weight = marginal(table, clique.columns, clique.separator)
        given = _divide(np.concatenate(parts, axis=2), weight.reshape(len(weight), -1, 1))
        probability = rows.values @ given
        self.out[:, rows.who[:, None], levels] = probability
        self.out[:, levels[:, None], rows.who] = probability.transpose(0, 2, 1)

    def _own(self, c: int, at: Columns, sources: set[int]) -> _Rows:
        """The residual columns of clique c with the states of the columns `at`."""
        clique, table = self.plan.cliques[c], self.cliques[c]
        mine = tuple(j for j in clique.residual if j in sources)
        parts = []
        for j in mine:
            n = self.field.n_levels[j]
            if j in at:
                joint = marginal(table, clique.columns, at)
                shape = [n if k == j else 1 for k in at]
                same = np.eye(n).reshape(1, n, *shape)
                joint = joint[:, None] * same
            else:
                joint = marginal(table, clique.columns, (*at, j))
                axis = [k for k in clique.columns if k in at or k == j].index(j)
                joint = np.moveaxis(joint, 1 + axis, 1)
            parts.append(joint.reshape(len(joint), n, -1))
        empty = np.zeros((len(table), 0, self.plan.size(at)))
        return _Rows(_levels(self.field, mine), np.concatenate([empty, *parts], axis=1))

    def _shift(self, rows: _Rows, c: int, at: Columns, to: Columns) -> _Rows:
        """Carry rows from one set of columns of clique c to another."""
        if at == to:
            return rows
        n_levels = self.field.n_levels
        b, n = rows.values.shape[:2]
        common = [j for j in at if j in to]
        lost = [j for j in at if j not in to]
        new = [j for j in to if j not in at]
        size_common, size_lost, size_new = (self.plan.size(tuple(s)) for s in (common, lost, new))
        # How likely the new columns are, given those the rows are known with.
        columns = self.plan.cliques[c].columns
        union = [j for j in columns if j in at or j in to]
        joint = marginal(self.cliques[c], columns, union)
        joint = joint.transpose(0, *(1 + union.index(j) for j in (*common, *lost, *new)))
        joint = joint.reshape(b, size_common, size_lost, size_new)
        given = _divide(joint, joint.sum(axis=3, keepdims=True))
        values = rows.values.reshape(b, n, *(n_levels[j] for j in at))
        forward = (*(2 + at.index(j) for j in common), 1, *(2 + at.index(j) for j in lost))
        values = values.transpose(0, *forward).reshape(b, size_common, n, size_lost)
        moved = (values @ given).reshape(
            b, *(n_levels[j] for j in common), n, *(n_levels[j] for j in new)
        )
        axes = {j: 1 + k for k, j in enumerate(common)}
        axes |= {j: 2 + len(common) + k for k, j in enumerate(new)}
        moved = moved.transpose(0, 1 + len(common), *(axes[j] for j in to))
        return _Rows(rows.who, moved.reshape(b, n, self.plan.size(to)))


def _stack(parts: list[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    return _Rows(
        np.concatenate([part.who for part in parts]),
        np.concatenate([part.values for part in parts], axis=1),
    )


def _divide(joint: Floats, weight: Floats) -> Floats:
    """Conditional probabilities; zero where the condition itself has underflowed to zero."""
    return np.divide(joint, weight, out=np.zeros_like(joint), where=weight > 0)
