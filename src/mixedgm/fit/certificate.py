"""Rows and a returned estimate -> its KKT number, by code that shares nothing with the solvers.

Plain NumPy over blocks of rows and of columns: every conditional is written out, and of all pairs
only the largest violation is kept.  Along a path the solvers' own gradient certifies; here the
model that the user gets is looked at once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixedgm.base.threads import single_threaded_blas
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.pair_weights import PairWeights
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign

ROUNDING = 1e-12
"""Largest difference by rounding between two ways to add up the same gradient."""

_NARROW = 256
_ENTRIES = 8192
_DENSE = 0.1
"""Share of coefficients from which on a whole matrix is quicker than a sparse one."""


@dataclass(frozen=True, eq=False)
class Claim:
    """An estimate, and the problem that it is claimed to solve.

    Parameters
    ----------
    layout : Layout
    theta : ndarray
        The estimate, in standardised units and over observed levels.
    pull : ndarray (n_groups,)
        The penalty's derivative in the norm of every group.
    yardstick : ndarray (n_groups,)
        Violations of a group are divided by this.
    groups : ndarray of int or None
        The groups that are part of the problem; all others are held at zero.  None: all.
    ridge : ndarray (n_groups,) or None
        Half of this times the squared norm is added for every group.
    noise : ndarray (n_real,) or None
        Half of this times the precision is added for every number.
    beyond : tuple of PairWeights or None
        For a wide table, whose layout has candidates only: the penalty's derivative at zero and the
        yardstick of all pairs; inf for pairs that are not permitted.
    """

    layout: Layout
    theta: Floats
    pull: Floats
    yardstick: Floats
    groups: Ints | None = None
    ridge: Floats | None = None
    noise: Floats | None = None
    beyond: tuple[PairWeights, PairWeights] | None = None


@dataclass(frozen=True, eq=False)
class Standardised:
    """How rows of a table become those that theta speaks of.

    Parameters
    ----------
    centre, scale : ndarray
        Centre and scale of the numbers, and of the scores of values.
    observed : bool array
        Which declared values have rows, or can do without.
    features : ndarray (n, F) or None
        Features that deviations are multiplied by.
    middle : ndarray (d,) or None
        Numbers that are subtracted from design columns before.
    """

    centre: Floats
    scale: Floats
    observed: NDArray[np.bool_]
    features: Floats | None = None
    middle: Floats | None = None


def kkt(
    design: Design | PartedDesign,
    rows: Standardised,
    claim: Claim,
    *,
    columns: int = 2048,
    cells: int = 2**18,
) -> float:
    """Return the largest violation of the optimality conditions of a pseudolikelihood.

    Over edges: the distance from minus the gradient to the penalty's subdifferential, divided by
    the yardstick.  Over node terms: the absolute gradient.

    Parameters
    ----------
    design : Design or PartedDesign
        The rows; sums over parts are made where these are.
    rows : Standardised
        How they are standardised.
    claim : Claim
        The estimate, and the problem it solves.
    columns : int
        Design columns of a block; with those of all others they make the largest matrix.
    cells : int
        Cells of a block of rows.

    Returns
    -------
    float
        NaN where anything is.
    """
    conditionals, width = _Conditionals(design, rows, claim, cells), claim.layout.width
    is_wide = claim.layout.n_columns > columns
    if claim.beyond is not None:  # of all pairs in a block there are several matrices
        columns = min(columns, _NARROW)
    with single_threaded_blas(), np.errstate(all="ignore"):
        if claim.groups is not None and is_wide:
            return conditionals.worst_of_groups(claim.groups)
        worst = [conditionals.worst(nodes) for nodes in _blocks(width, columns)]
    return float(np.max(worst, initial=0.0))  # NaN stays NaN


class _Conditionals:
    """Predictors, residuals and products of both, block by block."""

    def __init__(
        self, design: Design | PartedDesign, rows: Standardised, claim: Claim, cells: int
    ) -> None:
        layout = claim.layout
        self.cells, self.total = cells, design.total_weight
        self.design, self.rows, self.claim, self.layout = design, rows, claim, layout
        self.p, self.d = layout.n_gaussian, layout.n_columns
        self.start = layout.column_start
        self.n_copies = 1 + sum(layout.n_features)
        self.coef = _coefficients(layout, claim.theta)
        self.norms = np.sqrt(layout.group_sums(np.square(claim.theta[layout.edges])))
        self.linear = claim.theta[layout.linear]
        self.logits = layout.nodes.own_logits(claim.theta[layout.biases])
        self.scores = layout.nodes.scores
        self.precision = claim.theta[layout.diagonal]
        self.target = np.repeat(layout.is_target, layout.width)
        self.code = _counted(rows.observed, design.schema.n_levels)

    @cached_property
    def share(self) -> Floats:
        """(n_rows,) weight of every row divided by the total weight."""
        weights = self._rows.weights
        return (np.ones(self._rows.n_rows) if weights is None else weights) / self.total

    @property
    def _rows(self) -> Design:
        """The rows, which are all here."""
        assert isinstance(self.design, Design)
        return self.design

    def _summed(self, question: str, *given: Any) -> tuple[Any, ...]:
        """Sums over all rows that a method of that name returns; over parts, where these are."""
        if isinstance(self.design, PartedDesign):
            how = (self.rows, self.claim, self.cells, self.total)
            return self.design.parts.total(_sums_of_part, *how, question, given)
        sums: tuple[Any, ...] = getattr(self, question)(*given)
        return sums

    def _parts(self) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Shares of rows, design columns with products, residuals; a row of a matrix per column.

        And the sums over the rows of the residuals of all values of scored nodes.
        """
        size = max(1, self.cells // max(self.d * self.n_copies, *self.layout.n_levels, 1))
        for at in range(0, self._rows.n_rows, size):
            part = slice(at, min(at + size, self._rows.n_rows))
            columns = self._columns(part)
            yield self.share[part], columns, *self._residuals(part, columns)

    def _codes(self, part: slice, discrete: int) -> Ints:
        """Values of a discrete column, counted over those that are observed."""
        return np.asarray(self.code[discrete][self._rows.codes[part, discrete]])

    def _columns(self, part: slice) -> Floats:
        nodes, p = self.layout.nodes, self.p
        real = self._rows.numbers[part]
        out = np.zeros((self.n_copies, self.d, len(real)))
        rows = np.arange(len(real))
        out[0, :p] = real[:, :p].T
        for j in range(nodes.n_spiked):
            there = real[:, p + j] != 0.0
            out[0, p + 2 * j] = there
            out[0, p + 2 * j + 1] = there * (real[:, p + j] - nodes.locations[p + j])
        real_columns = slice(p + 2 * nodes.n_spiked)
        out[0, real_columns] -= self.rows.centre[real_columns, None]
        out[0, real_columns] /= self.rows.scale[real_columns, None]
        for j in range(nodes.n_spiked, len(self.code)):
            if nodes.scored_nodes[p + j]:
                scores = self.scores[nodes.slots_of(j)]
                out[0, self.start[p + j]] = scores[self._codes(part, j)]
            else:
                out[0, self.start[p + j] + self._codes(part, j), rows] = 1.0
        if self.rows.features is not None and self.rows.middle is not None:
            moved = out[0] - self.rows.middle[:, None]
            out[1:] = self.rows.features[part].T[:, None, :] * moved
        return out.reshape(-1, len(real))

    def _residuals(self, part: slice, columns: Floats) -> tuple[Floats, Floats]:
        """Derivative of every conditional's loss in its linear predictors, and in scored values."""
        nodes, p, share = self.layout.nodes, self.p, self.share[part]
        out: Floats = self.coef @ columns
        out[:p] += self.linear[:, None]
        out[:p] /= self.precision[:, None]
        out[:p] -= columns[:p]
        by_slot = np.zeros(int(nodes.slot_start[nodes.first_indicator]))
        for j in range(len(self.code)):
            at, slots = nodes.columns_of(p + j), nodes.slots_of(j)
            if nodes.spiked_nodes[p + j]:
                self._spiked(part, j, out[at], by_slot[slots])
                continue
            scored, bias = bool(nodes.scored_nodes[p + j]), self.logits[slots, None]
            chance = bias + (np.outer(self.scores[slots], out[at]) if scored else out[at])
            chance -= chance.max(axis=0)
            np.exp(chance, out=chance)
            chance /= chance.sum(axis=0)
            out[at] = self.scores[slots] @ chance if scored else chance
            if scored:
                seen = np.bincount(self._codes(part, j), share, len(chance))
                by_slot[slots] = chance @ share - seen
        out[p:] -= columns[p : self.d]
        out[~self.target] = 0.0
        return out, by_slot

    def _spiked(self, part: slice, j: int, predictors: Floats, of_terms: Floats) -> None:
        """Expected design columns of a spiked node in place; what own terms would change."""
        column, real = int(self.start[self.p + j]), self._rows.numbers[part, self.p + j]
        centre, scale = self.rows.centre[column : column + 2], self.rows.scale[column : column + 2]
        odds, slope, precision = self.logits[self.layout.nodes.slots_of(j)]
        slope = slope + predictors[1]
        odds = odds + predictors[0] / scale[0] + 0.5 * slope**2 / precision
        odds = odds + 0.5 * np.log(2.0 * np.pi / precision)
        chance, mean = 1.0 / (1.0 + np.exp(-odds)), slope / precision
        x = (real != 0.0) * (real - self.layout.nodes.locations[self.p + j]) / scale[1]
        seen = (real != 0.0, x, -0.5 * x**2)
        expected = (chance, chance * mean, -0.5 * chance * (1.0 / precision + mean**2))
        of_terms[:] = [(a - b) @ self.share[part] for a, b in zip(expected, seen, strict=True)]
        predictors[0] = (chance - centre[0]) / scale[0]
        predictors[1] = chance * mean - centre[1] / scale[1]

    def worst(self, nodes: slice) -> float:
        """The largest violation of the own terms of these nodes, and of groups that end in one."""
        layout, claim = self.layout, self.claim
        block = slice(int(self.start[nodes.start]), int(self.start[nodes.stop]))
        gradient, node_terms = self._gradients(nodes, block)
        worst = float(np.abs(node_terms).max(initial=0.0))
        chosen = self._groups(nodes)
        if len(chosen) == 0 and claim.beyond is None:
            return worst
        self._add_pull(gradient, block)
        sums = np.add.reduceat(np.square(gradient), self.start[nodes] - block.start, axis=1)
        sums = np.add.reduceat(sums, self._node_starts(), axis=0)
        sums = sums.reshape(self.n_copies, layout.n_nodes, -1)
        ends = np.cumsum([0, 1, *layout.n_features]).tolist()
        squares = np.array([sums[a:b].sum(axis=0) for a, b in pairwise(ends)])
        u, v = layout.pairs[chosen].T
        distance = np.sqrt(squares[1 + layout.moderator[chosen], u, v - nodes.start])
        if claim.beyond is not None:
            squares[0, u, v - nodes.start] = 0.0
            others = self._beyond(claim.beyond, squares[0], nodes)
            worst = float(np.maximum(worst, others))  # NaN stays NaN
        return float(np.maximum(worst, self._violations(distance, chosen).max(initial=0.0)))

    def _violations(self, distance: Floats, groups: Ints) -> Floats:
        """Violations of groups, from norms of gradients (with pull, if a group is not zero)."""
        claim = self.claim
        beyond = np.maximum(distance - claim.pull[groups], 0.0)
        return np.where(self.norms[groups] > 0.0, distance, beyond) / claim.yardstick[groups]

    def _beyond(
        self, beyond: tuple[PairWeights, PairWeights], squares: Floats, nodes: slice
    ) -> float:
        """The largest violation of pairs that end in these nodes and are zero."""
        u, v = np.indices(squares.shape)
        v += nodes.start
        bound, yardstick = (each.of(u.ravel(), v.ravel()).reshape(u.shape) for each in beyond)
        asked = (u < v) & np.isfinite(bound)
        excess = np.maximum(np.sqrt(squares[asked]) - bound[asked], 0.0)
        return float((excess / yardstick[asked]).max(initial=0.0))

    def worst_of_groups(self, groups: Ints) -> float:
        """The largest violation of all node terms and of these groups, the only ones there are.

        Only their own gradients are added up: in a wide table that are few of all.
        """
        layout, claim = self.layout, self.claim
        small = layout.restrict(groups)
        gradient, *sums = self._summed("group_sums", groups)
        terms = _NodeTerms(self, sums)
        places = layout.positions(groups)[small.edges]
        gradient += small.spread(self._factor()[groups]) * claim.theta[places]
        distance = np.sqrt(small.group_sums(np.square(gradient)))
        worst = np.abs(terms.slopes(slice(0, layout.n_nodes))).max(initial=0.0)
        return float(np.maximum(worst, self._violations(distance, groups).max(initial=0.0)))

    def group_sums(self, groups: Ints) -> tuple[Floats, ...]:
        """Sums over rows of the derivatives in the coefficients of groups, and in node terms."""
        row, column = self.layout.restrict(groups).edge_position
        within = row % self.d
        turned = row - within + column
        gradient, terms = np.zeros(len(row)), _NodeTerms(self)
        for share, columns, residual, of_values in self._parts():
            terms.add(share, columns, residual, of_values)
            weighted = share * residual
            for at in range(0, len(row), _ENTRIES):
                part = slice(at, at + _ENTRIES)
                gradient[part] += _dots(columns, row[part], weighted, column[part])
                if not self.layout.nodewise:
                    gradient[part] += _dots(columns, turned[part], weighted, within[part])
        return gradient, *terms.sums

    def _groups(self, nodes: slice) -> Ints:
        claim, second = self.claim, self.layout.pairs[:, 1]
        chosen = np.flatnonzero((second >= nodes.start) & (second < nodes.stop))
        return chosen if claim.groups is None else np.intersect1d(chosen, claim.groups)

    def _gradients(self, nodes: slice, block: slice) -> tuple[Floats, Floats]:
        """Derivatives in the coefficients of all columns and products with columns of `nodes`.

        Both conditionals of an edge are in them.  And those in the own terms of these nodes.
        """
        width, whole = block.stop - block.start, block == slice(0, self.d)
        out, *sums = self._summed("block_sums", block)
        if whole and not self.layout.nodewise:
            out += out.reshape(self.n_copies, self.d, width).transpose(0, 2, 1).reshape(out.shape)
        return out, _NodeTerms(self, sums).slopes(nodes)

    def block_sums(self, block: slice) -> tuple[Floats, ...]:
        """Sums over rows of products with residuals of a block of columns; of node terms."""
        width, whole = block.stop - block.start, block == slice(0, self.d)
        out, terms = np.zeros((self.n_copies * self.d, width)), _NodeTerms(self)
        for share, columns, residual, of_values in self._parts():
            terms.add(share, columns, residual, of_values)
            weighted = share * residual
            out += columns @ weighted[block].T
            if not (self.layout.nodewise or whole):
                both = columns.reshape(self.n_copies, self.d, -1)[:, block]
                out += (weighted @ both.transpose(0, 2, 1)).reshape(out.shape)
        return out, *terms.sums

    def _own_terms(self, nodes: slice, by_value: Floats) -> Iterator[Floats]:
        """Derivatives in the own terms of those of these nodes that are scored and predicted."""
        of = self.layout.nodes
        for v in range(nodes.start, nodes.stop):
            if not self.layout.is_target[v]:
                continue
            j = v - self.p
            if of.spiked_nodes[v]:
                noise = 0.0 if self.claim.noise is None else self.claim.noise[v]
                yield by_value[of.slots_of(j)] + np.array([0.0, 0.0, 0.5 * noise])
            elif of.scored_nodes[v]:
                yield of.term_features(j).T @ by_value[of.slots_of(j)]

    def _add_pull(self, gradient: Floats, block: slice) -> None:
        """Add to the gradient how penalty and ridge pull groups that are not zero."""
        layout = self.layout
        row, column = layout.edge_position
        values = layout.spread(self._factor()) * self.claim.theta[layout.edges]
        here = np.flatnonzero((values != 0.0) & (column >= block.start) & (column < block.stop))
        gradient[row[here], column[here] - block.start] += values[here]

    def _factor(self) -> Floats:
        """(n_groups,) factors by which penalty and ridge multiply a group to give its pull."""
        claim = self.claim
        with np.errstate(divide="ignore"):
            factor = np.where(self.norms > 0.0, claim.pull / self.norms, 0.0)
        return np.asarray(factor + (0.0 if claim.ridge is None else claim.ridge))

    def _node_starts(self) -> Ints:
        copies = np.arange(self.n_copies)[:, None] * self.d
        return np.asarray((copies + self.start[:-1]).ravel())


def _sums_of_part(
    part: Design,
    rows: Standardised,
    claim: Claim,
    cells: int,
    total: float,
    question: str,
    given: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Sums over the rows of a part, as shares of the weight `total` of all rows."""
    conditionals = _Conditionals(part, rows, claim, cells)
    conditionals.total = total
    with single_threaded_blas(), np.errstate(all="ignore"):
        sums: tuple[Any, ...] = getattr(conditionals, question)(*given)
    return sums


class _NodeTerms:
    """Derivatives in node terms, added up over parts of the rows."""

    def __init__(self, conditionals: _Conditionals, sums: Sequence[Any] | None = None) -> None:
        self.of, p = conditionals, conditionals.p
        self.bias, self.precision = np.zeros(conditionals.d), np.zeros(p)
        self.varies, self.by_value = np.zeros(p, dtype=np.int64), np.zeros(0)
        if sums is not None:
            self.bias, self.precision, self.varies, self.by_value = sums

    @property
    def sums(self) -> tuple[Any, ...]:
        """All of them, to be added to those of other rows."""
        return self.bias, self.precision, self.varies, self.by_value

    def add(self, share: Floats, columns: Floats, residual: Floats, of_values: Floats) -> None:
        """A part of the rows, as `_parts` has it."""
        p = self.of.p
        self.by_value = of_values if len(self.by_value) == 0 else self.by_value + of_values
        self.bias += (share * residual).sum(axis=1)
        x = columns[:p]
        mean = residual[:p] + x  # of a number, given the others
        self.precision += 0.5 * ((x**2 - mean**2) @ share - share.sum() / self.of.precision)
        self.varies += x.any(axis=1)

    def slopes(self, nodes: slice) -> Floats:
        """Gradient in the own terms of these nodes: biases, precisions, terms of values."""
        of, layout, p = self.of, self.of.layout, self.of.p
        block = slice(int(of.start[nodes.start]), int(of.start[nodes.stop]))
        precision, bias = self.precision.copy(), self.bias[block]
        if of.claim.noise is not None:
            precision += 0.5 * of.claim.noise[:p]
        precision[~((self.varies > 0) & of.target[:p])] = (
            0.0  # a constant has a precision by custom
        )
        others = layout.nodes.numeric_nodes & ~layout.nodes.gaussian_nodes
        bias[others[layout.column_node[block]]] = 0.0
        own = of._own_terms(nodes, self.by_value)
        return np.concatenate([bias, precision[block.start : block.stop], *own])


def _dots(columns: Floats, rows: Ints, others: Floats, at: Ints) -> Floats:
    """Products of single rows of two matrices, added up."""
    return np.asarray(np.einsum("ki,ki->k", columns[rows], others[at]))


def _coefficients(layout: Layout, theta: Floats) -> sparse.csr_array | Floats:
    """(d, copies * d): a row per target, a column per predictor."""
    d, n_columns = layout.n_columns, layout.n_products
    there = np.flatnonzero(theta[layout.edges])
    row, column = (place[there] for place in layout.edge_position)
    values = theta[layout.edges][there]
    matrix = sparse.csr_array((values, (column, row)), shape=(d, n_columns))
    if not layout.nodewise:
        within = row % d
        matrix = matrix + sparse.csr_array((values, (within, row - within + column)), matrix.shape)
    return matrix.toarray() if matrix.nnz > _DENSE * n_columns * d else matrix


def _counted(observed: NDArray[np.bool_], n_values: tuple[int, ...]) -> list[Ints]:
    """Number of every declared value among the observed ones, an array per discrete column."""
    parts = np.split(observed, np.cumsum(n_values)[:-1]) if n_values else []
    return [np.cumsum(part) - 1 for part in parts]


def _blocks(width: Ints, most: int) -> Iterator[slice]:
    """Runs of nodes of at most so many columns together, if one node has not more."""
    first, total = 0, 0
    for node, columns in enumerate(width.tolist()):
        if total and total + columns > most:
            yield slice(first, node)
            first, total = node, 0
        total += columns
    if len(width):
        yield slice(first, len(width))
