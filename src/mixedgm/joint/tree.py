"""A discrete field -> its clique tree with probabilities: constant, marginals, pairs, draws.

From the leaves to the root every clique's table is summed over its residual, in log space, which
leaves the probabilities of the residual given the separator.  From the root to the leaves these
are multiplied into the probabilities of whole cliques.  The second pass has probabilities only,
so there is nothing to overflow and nothing to cancel.

Tables over the states of a few columns -> sums, products and pair sums of them.

Every table has one leading axis for the fields side by side, and the columns' axes after it in
the order of their clique, the last running fastest.

Marginals of the cliques of a tree -> the marginal of every pair of columns, in one sweep.

Two columns in one clique are summed out of its table.  Two columns further apart are independent
given any separator between them.  So the joint table of every column with every separator is
carried along the tree, first from the leaves to the roots, then back; a matrix product at the
clique of the second column finishes the pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError
from mixedgm.joint.kernels import add_column, draw_residual, grow, row_sums, split_sums
from mixedgm.joint.plan import LIMIT, Plan, make_plan
from mixedgm.joint.validity import allowed_levels
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints

# Cliques up to this many entries are joined: a step costs about as much as this many numbers.
SMALL = 2**8


@dataclass(frozen=True, eq=False)
class Tree:
    """One or many fields with their plan and, for every clique, probabilities."""

    field: Discrete
    plan: Plan
    log_z: Floats
    """(b,) logarithm of the partition function."""
    given: list[Floats]
    """Probabilities (b, |S|, |R|) of the residual given the separator, for every clique."""

    @cached_property
    def cliques(self) -> list[Floats]:
        """Marginals of the cliques, (b, one axis per column)."""
        out: list[Floats] = []
        for clique, given in zip(self.plan.cliques, self.given, strict=True):
            table = given
            if clique.separator:
                parent = self.plan.cliques[clique.parent].columns
                outer = marginal(out[clique.parent], parent, clique.separator)
                table = outer.reshape(len(outer), -1, 1) * given
            shape = [self.field.n_levels[j] for j in clique.columns]
            out.append(table.reshape(len(table), *shape))
        return out

    @cached_property
    def levels(self) -> Floats:
        """(b, sum of levels) probability of every level of every column."""
        out = np.zeros((self.field.n_fields, sum(self.field.n_declared)))
        kept = self.field.kept
        for clique, table in zip(self.plan.cliques, self.cliques, strict=True):
            for j in clique.residual:
                out[:, kept[self.field.span(j)]] = marginal(table, clique.columns, (j,))
        return out

    @cached_property
    def pairs(self) -> Floats:
        """(b, sum of levels, sum of levels) probability of every pair of levels.

        The block of a column with itself is diagonal and holds the probabilities of its levels.
        """
        total = sum(self.field.n_declared)
        out = np.zeros((self.field.n_fields, total, total))
        kept = self.field.kept
        out[:, kept[:, None], kept] = all_pairs(self.field, self.plan, self.cliques)
        return out

    @property
    def level_covariance(self) -> Floats:
        """(b, sum of levels, sum of levels) covariance of the indicators of the levels."""
        return self.pairs - self.levels[:, :, None] * self.levels[:, None, :]

    def variance_of(self, shift: Floats) -> Floats:
        """(b, k) variances of sums over the states of what each level adds, (sum of levels, k)."""
        return np.asarray(((self.level_covariance @ shift) * shift).sum(axis=1))

    def covariance_of(self, shift: Floats) -> Floats:
        """(b, k, k) covariances of the same sums."""
        return np.asarray(shift.T @ self.level_covariance @ shift)

    def table(self, columns: Sequence[int]) -> Floats:
        """(b, levels of the columns in the given order) probabilities of their states.

        The columns must be in one clique of the plan: see `calibrate` with `together`.
        """
        if len(columns) == 0:
            return np.ones(self.field.n_fields)
        holder = self.plan.holder(tuple(columns))
        if holder is None:
            raise ValueError(f"no clique of this plan holds columns {tuple(columns)}")
        held = self.plan.cliques[holder].columns
        part = marginal(self.cliques[holder], held, columns)
        order = [j for j in held if j in set(columns)]
        part = part.transpose(0, *(1 + order.index(j) for j in columns))
        out = np.zeros((len(part), *(self.field.n_declared[j] for j in columns)))
        out[np.ix_(np.arange(len(part)), *(self.field.labels[j] for j in columns))] = part
        return out

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """(n, q) exact draws, clique by clique from the roots; one row per field if many."""
        codes = np.zeros((n, len(self.field.labels)), dtype=np.int32)
        n_levels = np.array(self.field.n_levels, dtype=np.int64)
        for clique, given in zip(self.plan.cliques, self.given, strict=True):
            separator = np.array(clique.separator, dtype=np.int64)
            residual = np.array(clique.residual, dtype=np.int64)
            uniforms = rng.random(n)
            draw_residual(codes, given.cumsum(axis=2), separator, residual, n_levels, uniforms)
        for j, labels in enumerate(self.field.labels):
            if len(labels) < self.field.n_declared[j]:
                codes[:, j] = labels[codes[:, j]]
        return codes


def calibrate(
    model: ConditionalGaussian | Discrete,
    *,
    together: Sequence[int] = (),
    limit: int = LIMIT,
    small: int = SMALL,
) -> Tree:
    """Build the clique tree of a model without numbers, or of the field made of it.

    The columns `together` must be in one clique, so that `Tree.table` can give their joint table;
    all tables together have at most `limit` entries.  Cliques up to `small` entries are joined.

    Examples
    --------
    >>> tree = calibrate(ConditionalGaussian.independent(n_numbers=0, n_levels=(2, 4)))
    >>> tree.log_z.round(6), tree.levels[0]
    (array([2.079442]), array([0.5 , 0.5 , 0.25, 0.25, 0.25, 0.25]))
    """
    field = discrete(model) if isinstance(model, ConditionalGaussian) else model
    # With many fields the work is in the tables, not in the steps.
    plan = plan_for(field, together, limit, small // max(1, field.n_fields))
    waiting: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in plan.cliques]
    given: list[Floats] = []
    log_z = field.log_constant.copy()
    for c in reversed(range(len(plan.cliques))):
        clique = plan.cliques[c]
        table = log_potential(field, clique.separator, clique.residual)
        for separator, message in waiting[c]:
            table = _add(table, plan, clique.columns, separator, message)
        message = normalise(table)
        given.append(table)
        if clique.separator:
            waiting[clique.parent].append((clique.separator, message))
        else:
            log_z += message[:, 0]
    return Tree(field, plan, log_z, given[::-1])


def plan_for(
    field: Discrete, together: Sequence[int] = (), limit: int = LIMIT, small: int = SMALL
) -> Plan:
    """Plan the elimination of a field; the columns `together` are kept in one clique."""
    masks = list(field.masks)
    kept = {int(j) for j in together}
    inside = sum(1 << j for j in kept)
    for j in kept:
        masks[j] |= inside & ~(1 << j)
    return make_plan(tuple(masks), field.n_levels, limit, small)


def _add(
    table: Floats,
    plan: Plan,
    columns: tuple[int, ...],
    separator: tuple[int, ...],
    message: Floats,
) -> Floats:
    """Add a message over some columns of a clique to its table."""
    inside = set(separator)
    full = [plan.n_levels[j] for j in columns]
    thin = [n if j in inside else 1 for n, j in zip(full, columns, strict=True)]
    grown = table.reshape(len(table), *full) + message.reshape(len(message), *thin)
    return np.asarray(grown.reshape(len(grown), *table.shape[1:]))


# -- models of states only -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Discrete:
    """A pairwise field over the levels that can occur, one or many of them side by side.

    Levels of probability zero are taken out and columns with a single level left are folded into
    the others, so that all numbers are finite and such columns have no neighbours.  Fields side
    by side share the interactions and differ in their biases: rows with the same columns known.
    A column is a state of the model.
    """

    n_declared: tuple[int, ...]
    """Levels of every column in the model."""
    labels: tuple[Ints, ...]
    """Codes that are left for every column."""
    unary: Floats
    """(b, K) biases of the K levels that are left, one row per field."""
    pairwise: Floats
    """(K, K) interactions, symmetric, zero within a column."""
    log_constant: Floats
    """(b,) constants that folding took out."""

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Levels left in every column."""
        return tuple(len(each) for each in self.labels)

    @cached_property
    def start(self) -> Ints:
        """First level of every column among those left, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    @cached_property
    def kept(self) -> Ints:
        """Positions of the levels left among all declared ones."""
        first = np.concatenate([[0], np.cumsum(self.n_declared)]).astype(np.int64)
        parts = [first[j] + labels for j, labels in enumerate(self.labels)]
        return np.concatenate([*parts, np.zeros(0, dtype=np.int64)])

    @property
    def n_fields(self) -> int:
        """Number of fields side by side."""
        return len(self.unary)

    def span(self, column: int) -> slice:
        """Levels of a column among those left."""
        return slice(int(self.start[column]), int(self.start[column + 1]))

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Neighbours of every column as the bits of an integer."""
        if not self.labels:
            return ()
        first = self.start[:-1]
        touched = np.logical_or.reduceat(self.pairwise != 0, first, axis=1)
        joined = np.logical_or.reduceat(touched, first, axis=0)
        return tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined)


def discrete(model: ConditionalGaussian, unary: Floats | None = None) -> Discrete:
    """Keep the levels that can occur in a model without numbers, as `integrate_out` leaves it.

    `unary` (b, sum of levels) are biases of b fields with the same interactions, in place of the
    model's.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_numbers=0, n_levels=(2, 3))
    >>> model.bias[2] = -np.inf
    >>> discrete(model).n_levels
    (2, 2)
    """
    labels = tuple(allowed_levels(model))
    empty = [model.n_numbers + j for j, left in enumerate(labels) if len(left) == 0]
    if empty:
        raise DistributionError(
            "no level of {columns} has a chance: every bias is -inf", tuple(empty)
        )
    bias = (model.bias[None] if unary is None else unary).astype(np.float64)
    field = Discrete(model.n_levels, labels, bias, model.interaction, np.zeros(len(bias)))
    single = np.repeat(np.array([len(left) == 1 for left in labels], bool), field.n_levels)
    if field.n_levels == field.n_declared and not single.any():
        return field
    bias, pairwise = bias[:, field.kept], model.interaction[np.ix_(field.kept, field.kept)]
    constant = bias[:, single].sum(axis=1) + 0.5 * pairwise[np.ix_(single, single)].sum()
    bias = np.where(single, 0.0, bias + pairwise[single].sum(axis=0))
    pairwise = np.where(single | single[:, None], 0.0, pairwise)
    return Discrete(model.n_levels, labels, bias, pairwise, constant)


# -- tables of states ------------------------------------------------------------------------------


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


# -- all pairs of columns --------------------------------------------------------------------------

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
