"""Kinds of columns and their numbers of values -> Nodes: their places, and their statistics.

The nodes of a model are its columns in the order of `KINDS`: Gaussian ones first, then scored ones,
then those with indicators.  Node v is seen by all others as the *design columns*
``column_start[v]:column_start[v + 1]``.  Because of the order, the nodes with a Gaussian
conditional are the first `n_gaussian`, all others have a softmax over finitely many values, and the
first `n_numeric` design columns are numbers, which have units, while all others are indicators.
No other module relies on which kind comes where.

The own terms of discrete nodes stand one after the other (`term_start`); where every value has a
term of its own they are the logits of the values, elsewhere `own_logits` makes logits of them.

Nodes -> the columns whose means and products are the sufficient statistics, and their moments.

Only what works with the whole joint distribution needs them: there every discrete node has one
indicator for each value.  Such columns are *over values*: the Gaussian nodes, then all values of
all discrete nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.families import CATEGORICAL, CONTINUOUS, KINDS, Family, HurdleKind, Kind, Scored

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Item = TypeVar("Item")


def in_node_order(items: Iterable[Item], kind_name: Callable[[Item], str]) -> tuple[Item, ...]:
    """Columns, or whatever has a kind, in the order of nodes; of one kind as they come."""
    order = list(KINDS)
    return tuple(sorted(items, key=lambda item: order.index(kind_name(item))))


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a model and the design columns that they cover.

    Parameters
    ----------
    kinds : tuple of Kind
        Kind of every node, in the order of `KINDS`.
    n_values : tuple of int
        Number of values of every node; 0 for any real number.

    Examples
    --------
    >>> nodes = Nodes.mixed(1, (2, 3))
    >>> nodes.column_start.tolist(), nodes.n_gaussian, nodes.n_levels
    ([0, 1, 3, 6], 1, (2, 3))
    """

    kinds: tuple[Kind, ...]
    n_values: tuple[int, ...]

    @classmethod
    def mixed(cls, n_continuous: int, n_levels: Sequence[int]) -> Nodes:
        """Continuous columns, then categorical ones with these numbers of levels."""
        kinds = (CONTINUOUS,) * n_continuous + (CATEGORICAL,) * len(n_levels)
        return cls(kinds, (0,) * n_continuous + tuple(n_levels))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nodes):
            return NotImplemented
        return self is other or (self.kinds == other.kinds and self.n_values == other.n_values)

    def __hash__(self) -> int:
        return hash(self.n_values)

    def __len__(self) -> int:
        return len(self.kinds)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle kinds and numbers of values only, from which everything else is computed."""
        return Nodes, (self.kinds, self.n_values)

    # -- what has a Gaussian conditional, and what has a softmax -----------------------------------

    @cached_property
    def n_gaussian(self) -> int:
        """Number of nodes with a Gaussian conditional."""
        return sum(kind.is_gaussian for kind in self.kinds)

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Number of values of every node that has finitely many: of every softmax."""
        return self.n_values[self.n_gaussian :]

    @cached_property
    def gaussian(self) -> slice:
        """The nodes with a Gaussian conditional."""
        return slice(0, self.n_gaussian)

    @cached_property
    def discrete(self) -> slice:
        """The nodes with finitely many values."""
        return slice(self.n_gaussian, len(self))

    def is_gaussian(self, node: int) -> bool:
        """Whether a node has a Gaussian conditional."""
        return node < self.n_gaussian

    def is_real(self, node: int) -> bool:
        """Whether the values of a node are real numbers: it is Gaussian, or spiked."""
        return node < self.n_real

    def place(self, node: int) -> int:
        """Position among the Gaussian nodes, or among the discrete ones: the column of data."""
        return node if node < self.n_gaussian else node - self.n_gaussian

    @cached_property
    def discrete_nodes(self) -> Ints:
        """Numbers of the nodes that have codes: of all but Gaussian ones."""
        return np.arange(self.n_gaussian, len(self))

    @cached_property
    def gaussian_nodes(self) -> Mask:
        """Whether every node has a Gaussian conditional."""
        return np.array([kind.is_gaussian for kind in self.kinds], dtype=bool)

    @cached_property
    def node_place(self) -> Ints:
        """`place` of every node."""
        return np.concatenate([np.arange(self.n_gaussian), np.arange(len(self.n_levels))])

    def places(self, nodes: Iterable[int]) -> tuple[list[int], list[int]]:
        """Columns of numbers and columns of codes that hold some nodes; a spiked one has both.

        Examples
        --------
        >>> Nodes.mixed(2, (2, 3)).places([3, 1, 2])
        ([1], [1, 0])
        """
        at = [int(node) for node in nodes]
        p, n = self.n_gaussian, self.n_real
        return [node for node in at if node < n], [node - p for node in at if node >= p]

    def nodes_at(self, numbers: Sequence[int], codes: Sequence[int]) -> Ints:
        """The nodes of which these columns of numbers and of codes hold the values, in order."""
        return np.union1d(numbers, np.add(codes, self.n_gaussian)).astype(np.int64)

    @cached_property
    def spiked_nodes(self) -> Mask:
        """Whether every node is zero or any real number."""
        return np.array([kind.has_spike for kind in self.kinds], dtype=bool)

    @cached_property
    def n_spiked(self) -> int:
        """How many these are: they follow the Gaussian nodes."""
        return int(np.count_nonzero(self.spiked_nodes))

    @cached_property
    def scored_nodes(self) -> Mask:
        """Whether every node has finitely many values that are numbers to the others."""
        return self.numeric_nodes & ~self.gaussian_nodes & ~self.spiked_nodes

    @cached_property
    def n_scored(self) -> int:
        """How many these are: they come before those with indicators."""
        return int(np.count_nonzero(self.scored_nodes))

    @cached_property
    def first_indicator(self) -> int:
        """The first of the discrete nodes that has indicators."""
        return self.n_spiked + self.n_scored

    @cached_property
    def spiked(self) -> list[tuple[int, HurdleKind]]:
        """Number among the discrete nodes, and kind, of every spiked node."""
        kinds = enumerate(self.kinds[self.discrete])
        return [(j, kind) for j, kind in kinds if isinstance(kind, HurdleKind)]

    @cached_property
    def scored(self) -> list[tuple[int, Scored, int]]:
        """Number among the discrete nodes, kind, and number of values of every scored node."""
        pairs = zip(self.kinds[self.discrete], self.n_levels, strict=True)
        return [(j, kind, n) for j, (kind, n) in enumerate(pairs) if isinstance(kind, Scored)]

    @cached_property
    def level_start(self) -> Ints:
        """First value of every discrete node among the values of all of them, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    # -- families ----------------------------------------------------------------------------------

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Distribution of every node given all others."""
        pairs = zip(self.kinds, self.n_values, strict=True)
        return tuple(kind.family(n) for kind, n in pairs)

    @cached_property
    def runs(self) -> tuple[tuple[slice, Family], ...]:
        """Nodes whose conditionals are computed together, and their family.

        All Gaussian nodes, all with a spike, and every other node alone.
        """
        p, out = self.n_gaussian, []
        ends = [0, *([p] if p else []), *([self.n_real] if self.n_spiked else [])]
        for first, last in pairwise([*ends, *range(self.n_real + 1, len(self) + 1)]):
            families = self.families[first:last]
            out.append((slice(first, last), type(families[0]).stacked(families)))
        return tuple(out)

    def own_slots(self, numbers: Floats, terms: Floats) -> list[Floats]:
        """(G, slots) own terms of every run, as its family takes them.

        From linear terms and precisions of Gaussian nodes (p, 2), and own terms of the others.
        """
        p, slots, out = self.n_gaussian, self.own_logits(terms), []
        for nodes, _ in self.runs:
            first, last = self.slot_start[np.maximum([nodes.start - p, nodes.stop - p], 0)]
            part = slots[first:last].reshape(nodes.stop - nodes.start, -1)
            out.append(numbers if nodes.stop <= p else part)
        return out

    def codes_of(self, nodes: slice, codes: NDArray[np.integer]) -> NDArray[np.integer]:
        """(G, n) codes of a run of nodes; zeros where it has none."""
        p = self.n_gaussian
        if nodes.stop <= p:
            return np.broadcast_to(np.int64(0), (nodes.stop - nodes.start, len(codes)))
        return codes[:, nodes.start - p : nodes.stop - p].T

    def real_of(self, nodes: slice, real: Floats) -> Floats:
        """(G, n) numbers of a run of nodes, less their locations; zeros where it has none."""
        if nodes.stop > self.n_real:
            return np.broadcast_to(0.0, (nodes.stop - nodes.start, len(real)))
        numbers = real[:, nodes].T
        return numbers if nodes.stop <= self.n_gaussian else numbers - self.locations[nodes, None]

    def own_statistics(self, real: Floats, codes: NDArray[np.integer]) -> list[Floats]:
        """(G, terms, n) what multiplies the own terms, of every run."""
        return [
            family.statistics(self.codes_of(run, codes), self.real_of(run, real))
            for run, family in self.runs
        ]

    # -- values and own terms ----------------------------------------------------------------------

    @cached_property
    def term_start(self) -> Ints:
        """First own term of every discrete node among those of all of them, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_biases[self.discrete])]).astype(np.int64)

    def terms_of(self, discrete: int) -> slice:
        """Own terms of the discrete node number `discrete` among those of all of them."""
        return slice(int(self.term_start[discrete]), int(self.term_start[discrete + 1]))

    @cached_property
    def free(self) -> Mask:
        """Whether every value of every discrete node has a term of its own."""
        kinds = self.kinds[self.discrete]
        return np.array([not kind.is_numeric or kind.is_free for kind in kinds], dtype=bool)

    @cached_property
    def free_values(self) -> Mask:
        """(sum of values,) mask of values with own terms: one without rows cannot occur."""
        return np.repeat(self.free, self.n_levels)

    @cached_property
    def free_terms(self) -> Mask:
        """Whether every own linear term belongs to one value, so that it may be -inf."""
        per_node = np.concatenate([np.zeros(self.n_gaussian, dtype=bool), self.free])
        return np.repeat(per_node, self.n_biases)

    @cached_property
    def slot_start(self) -> Ints:
        """First slot of every discrete node: a value, or an own term of a spiked node."""
        if not self.n_spiked:
            return self.level_start
        count = np.where(self.spiked_nodes[self.discrete], 3, self.n_levels)
        return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)

    def slots_of(self, discrete: int) -> slice:
        """Slots of the discrete node number `discrete`."""
        return slice(int(self.slot_start[discrete]), int(self.slot_start[discrete + 1]))

    @cached_property
    def scores(self) -> Floats:
        """(sum of slots,) score of every value of every scored node; zero for indicators.

        A spiked node has `HurdleKind.constants` instead.
        """
        out = np.zeros(int(self.slot_start[-1]))
        for j, kind, n in self.scored:
            out[self.slots_of(j)] = kind.scores(n)
        for j, spiked in self.spiked:
            out[self.slots_of(j)] = spiked.constants
        return out

    @cached_property
    def evenly_scored(self) -> Mask:
        """Whether a discrete node has values with own terms and scores at equal distances."""
        out = np.zeros(len(self.n_levels), dtype=bool)
        for j, kind, n in self.scored:
            scores = kind.scores(n)
            steps = np.diff(scores)
            out[j] = kind.is_free and n > 1 and np.ptp(steps) <= 2e-15 * np.abs(scores).max()
        return out

    @cached_property
    def _features(self) -> tuple[Any, Any, Floats] | None:
        """Own terms to logits and its transpose, and what is added; None where all are free."""
        if self.free.all():
            return None
        from scipy import sparse

        scored = {j: kind for j, kind, _ in self.scored if not kind.is_free}
        base, entries, columns, length = np.zeros(int(self.slot_start[-1])), [], [], []
        for j, n in enumerate(np.diff(self.slot_start).tolist()):
            table = scored[j].features(n) if j in scored else np.ones((n, 1))
            if j in scored:
                base[self.slots_of(j)] = scored[j].base(n)
            terms = np.arange(self.term_start[j], self.term_start[j + 1])
            entries.append(table.ravel())
            columns.append(np.tile(terms, n) if j in scored else terms)
            length.append(np.full(n, table.shape[1]))
        ends = np.concatenate([[0], np.cumsum(np.concatenate(length))])
        # Made at once: putting matrices together takes longer than a pass over some hundred rows.
        parts = (np.concatenate(entries), np.concatenate(columns), ends)
        matrix: Any = sparse.csr_array(parts, shape=(len(base), int(self.term_start[-1])))
        return matrix, matrix.T.tocsr(), base

    def own_logits(self, terms: Floats) -> Floats:
        """(..., sum of slots) logits of every value without neighbours, from (..., own terms).

        For a spiked node these are the own terms themselves.
        """
        if self._features is None:
            return terms
        matrix, _, base = self._features
        return np.asarray((matrix @ terms.T).T + base)

    def term_sums(self, per_value: Floats) -> Floats:
        """(own terms,) the transpose: sums over values of what multiplies every own term."""
        return per_value if self._features is None else np.asarray(self._features[1] @ per_value)

    @cached_property
    def _scored_features(self) -> dict[int, Floats]:
        return {j: kind.features(n) for j, kind, n in self.scored}

    def term_features(self, discrete: int) -> Floats:
        """(values, own terms) statistics of the own terms of scored node number `discrete`."""
        return self._scored_features[discrete]

    def marginal_terms(self, shares: Floats) -> Floats:
        """(own terms,) terms of discrete nodes without neighbours that have these shares of values.

        For a spiked node the shares are the means of its statistics.
        """
        if self._features is None:
            return np.log(shares)
        kinds: dict[int, Scored | HurdleKind] = {j: kind for j, kind, _ in self.scored}
        kinds |= dict(self.spiked)
        parts = [shares[self.slots_of(j)] for j in range(len(self.n_levels))]
        terms = [kinds[j].marginal(x) if j in kinds else np.log(x) for j, x in enumerate(parts)]
        return np.concatenate(terms)

    def moved_terms(self, predictors: Floats) -> Floats:
        """(own linear terms,) rise of own terms when predictors of design columns (d,) rise.

        Own linear terms are those of Gaussian nodes, then those of discrete ones.
        """
        if not self.first_indicator:
            return predictors
        p, first = self.n_gaussian, self.column_start
        parts = [predictors[:p]]
        parts += [kind.moved(predictors[self.columns_of(p + j)]) for j, kind in self.spiked]
        parts += [kind.moved(n) * predictors[first[p + j]] for j, kind, n in self.scored]
        return np.concatenate([*parts, predictors[self.indicators]])

    def moved_by_predictors(self, discrete: int) -> Floats | None:
        """(own terms, width) rise of own terms per predictor; None for indicators."""
        kind, n = self.kinds[self.n_gaussian + discrete], self.n_levels[discrete]
        if isinstance(kind, HurdleKind):
            return np.column_stack([kind.moved(one) for one in np.eye(2)])
        return kind.moved(n)[:, None] if isinstance(kind, Scored) else None

    @cached_property
    def quadratic_terms(self) -> tuple[Ints, Ints]:
        """Own linear term, and design column, of every node whose own terms are quadratic.

        The term of the square stands behind the linear one.
        """
        at = [(j, kind) for j, kind, _ in self.scored if not kind.is_free]
        terms = [self.n_gaussian + int(self.term_start[j]) for j, _ in at]
        columns = [int(self.column_start[self.n_gaussian + j]) for j, _ in at]
        return np.array(terms, dtype=np.int64), np.array(columns, dtype=np.int64)

    def amounts(self, discrete: int) -> Floats:
        """(values,) numbers whose mean is that of a discrete node: scores or counts, else zeros."""
        n = self.n_levels[discrete]
        scored = {j: kind for j, kind, _ in self.scored}
        return scored[discrete].amounts(n) if discrete in scored else np.zeros(n)

    def score_of(self, node: int, value: float) -> float:
        """Number that a numeric node has in other conditionals: its value, or a value's score."""
        if self.is_real(node):
            return value
        return float(self.scores[self.slots_of(self.place(node))][int(value)])

    def numbers_of(self, node: int, value: float) -> Floats:
        """(width,) design columns of a numeric node at one of its values."""
        kind = self.kinds[node]
        if isinstance(kind, HurdleKind):
            return np.asarray(kind.columns(np.array([value]))[0])
        return np.array([self.score_of(node, value)])

    def value_at(self, node: int, score: float) -> float:
        """The value of a numeric node whose score is nearest: the number itself, or a code."""
        if self.is_real(node):
            return float(score + self.locations[node])
        return float(np.abs(self.scores[self.slots_of(self.place(node))] - score).argmin())

    def with_unknown(self, more: Mask) -> Nodes:
        """The nodes with one more value of some discrete ones, which stands for unknown ones."""
        kinds, count = list(self.kinds), np.array(self.n_values)
        for j, kind, n in self.scored:
            if more[j]:
                kinds[self.n_gaussian + j] = kind.with_unknown(n)
        count[self.discrete] += more
        return Nodes(tuple(kinds), tuple(count.tolist()))

    @cached_property
    def spiked_terms(self) -> tuple[Ints, Ints]:
        """First own linear term, and design column of b, of every spiked node."""
        p = self.n_gaussian
        terms = [p + int(self.term_start[j]) for j, _ in self.spiked]
        columns = [int(self.column_start[p + j]) for j, _ in self.spiked]
        return np.array(terms, dtype=np.int64), np.array(columns, dtype=np.int64)

    @cached_property
    def real_columns(self) -> Ints:
        """Design columns of the real numbers: of Gaussian nodes, then of spiked ones."""
        return np.concatenate([np.arange(self.n_gaussian), self.spiked_terms[1] + 1])

    @cached_property
    def locations(self) -> Floats:
        """(n_real,) locations: subtracted from the numbers of spiked nodes that are not zero."""
        return np.concatenate([np.zeros(self.n_gaussian), [k.location for _, k in self.spiked]])

    @cached_property
    def unlocated(self) -> Nodes:
        """Nodes whose hurdle columns have location zero: nothing is subtracted from them."""
        kinds = [replace(k, location=0.0) if isinstance(k, HurdleKind) else k for k in self.kinds]
        return Nodes(tuple(kinds), self.n_values)

    @property
    def n_real(self) -> int:
        """Number of nodes whose values are real numbers: Gaussian and spiked ones."""
        return self.n_gaussian + self.n_spiked

    def numbers(self, real: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, n_numeric) design columns that are numbers, from real values and value codes.

        A code that is negative, of no value that is known, has the score of the middle.
        """
        if not self.first_indicator:
            return real
        p = self.n_gaussian
        columns = [real[:, :p]]
        columns += [kind.columns(real[:, p + j]) for j, kind in self.spiked]
        for j, kind, n in self.scored:
            scores = kind.scores(n)
            column = scores[np.maximum(codes[:, j], 0)]
            unknown = codes[:, j] < 0
            if unknown.any():
                column[unknown] = kind.unknown_score(n)
            columns.append(column[:, None])
        return np.hstack(columns)

    def spiked_statistics(self, real: Floats) -> list[Floats]:
        """(n, 3) what multiplies the own terms of every spiked node."""
        return [
            each.T
            for (run, family) in self.runs
            if self.spiked_nodes[run.start]
            for each in family.statistics(real[:, run].T != 0.0, self.real_of(run, real))
        ]

    def standardised(self, centre: Floats, scale: Floats) -> Nodes:
        """Return nodes with scores in these units, given for all design columns with numbers."""
        if not self.first_indicator:
            return self
        kinds, p = list(self.kinds), self.n_gaussian
        for j, kind, _ in self.scored:
            at = int(self.column_start[p + j])
            kinds[p + j] = kind.standardised(centre[at], scale[at])
        for j, spiked in self.spiked:
            columns = self.columns_of(p + j)
            kinds[p + j] = spiked.standardised(centre[columns], scale[columns])
        return Nodes(tuple(kinds), self.n_values)

    @cached_property
    def in_own_units(self) -> Nodes:
        """Nodes with scores in the units of the table."""
        return self.standardised(np.zeros(self.n_numeric), np.ones(self.n_numeric))

    @cached_property
    def last_column(self) -> Ints:
        """The last design column of every node: of a spiked one, how much."""
        return self.column_start[1:] - 1

    def levels_of(self, discrete: int) -> slice:
        """Values of the discrete node number `discrete` among those of all of them."""
        return slice(int(self.level_start[discrete]), int(self.level_start[discrete + 1]))

    # -- design columns ----------------------------------------------------------------------------

    @cached_property
    def width(self) -> Ints:
        """Design columns per node."""
        return self._per_node("width")

    @cached_property
    def column_start(self) -> Ints:
        """First design column of every node, and the end."""
        return np.concatenate([[0], np.cumsum(self.width)]).astype(np.int64)

    @cached_property
    def column_node(self) -> Ints:
        """Node of every design column."""
        return np.repeat(np.arange(len(self)), self.width)

    @cached_property
    def n_columns(self) -> int:
        """Number of design columns, d."""
        return int(self.column_start[-1])

    @cached_property
    def n_numeric(self) -> int:
        """Number of design columns that are numbers."""
        return int(self.width[self.numeric_nodes].sum())

    @cached_property
    def numeric_nodes(self) -> Mask:
        """Whether the design columns of every node are numbers; else they are indicators."""
        return np.array([kind.is_numeric for kind in self.kinds], dtype=bool)

    @cached_property
    def sums_to_one(self) -> Mask:
        """Nodes of several columns that always add up to one: edges need contrasts of them only."""
        return np.asarray((self.freedom < self.width) & (self.width > 1))

    @cached_property
    def numeric(self) -> slice:
        """The design columns that are numbers."""
        return slice(0, self.n_numeric)

    @cached_property
    def indicators(self) -> slice:
        """The design columns that are indicators."""
        return slice(self.n_numeric, self.n_columns)

    @cached_property
    def source(self) -> Ints:
        """Where the rows have what every node says: its first column of numbers, or its codes.

        The columns of codes are counted from the number of columns of numbers on.
        """
        codes = self.n_numeric + self.node_place
        return np.where(self.numeric_nodes, self.column_start[:-1], codes)

    @cached_property
    def softmax_column(self) -> Ints:
        """Position of every design column among those of discrete nodes; negative for others."""
        return np.arange(self.n_columns) - int(self.column_start[self.n_gaussian])

    def columns_of(self, node: int) -> slice:
        """Design columns of a node."""
        return slice(int(self.column_start[node]), int(self.column_start[node + 1]))

    def columns_kept(self, observed: Mask) -> Ints:
        """Design columns that are left when values that are not observed go."""
        p = self.n_numeric
        of_indicators = observed[int(self.level_start[self.first_indicator]) :]
        return np.concatenate([np.arange(p), p + np.flatnonzero(of_indicators)])

    def terms_kept(self, observed: Mask) -> Ints:
        """Own terms of discrete nodes that are left then."""
        kept = np.ones(int(self.term_start[-1]), dtype=bool)
        kept[np.repeat(self.free, self.n_biases[self.discrete])] = observed[self.free_values]
        return np.flatnonzero(kept)

    def kept(self, observed: Mask) -> Nodes:
        """The nodes with only those values that are observed; all, where values are not free."""
        if observed.all():
            return self
        kinds, count, p = list(self.kinds), [], self.n_gaussian
        for j, kind in enumerate(self.kinds[self.discrete]):
            there = observed[self.levels_of(j)]
            count.append(int(there.sum()) if kind.is_free else len(there))
            if isinstance(kind, Scored) and kind.is_free:
                kinds[p + j] = kind.kept(there)
        return Nodes(tuple(kinds), (0,) * p + tuple(count))

    @cached_property
    def scale_node(self) -> Ints:
        """Node of every scale: every column of numbers has one, and every node of indicators."""
        indicators = np.flatnonzero(~self.numeric_nodes)
        return np.concatenate([self.column_node[self.numeric], indicators])

    @cached_property
    def column_scale(self) -> Ints:
        """(d,) number of the scale that belongs to each design column."""
        first = self.n_numeric - int(np.count_nonzero(self.numeric_nodes))
        of_indicators = first + self.column_node[self.indicators]
        return np.concatenate([np.arange(self.n_numeric), of_indicators])

    # -- counts ------------------------------------------------------------------------------------

    @cached_property
    def freedom(self) -> Ints:
        """Directions of every node in which an edge can differ."""
        return self._per_node("freedom")

    @cached_property
    def n_biases(self) -> Ints:
        """Linear terms of every node's own."""
        return self._per_node("n_biases")

    def column_variance(self, mean: Floats, varies: Floats) -> Floats:
        """Variances of the standardised design columns, from their means.

        `varies` is 1 for a number that varies and 0 for a constant.
        """
        all_vary = np.concatenate([varies, np.ones(self.n_columns - self.n_numeric)])
        out = np.empty(self.n_columns)
        for kind in {type(each): each for each in self.kinds}.values():
            columns = np.array([type(each) is type(kind) for each in self.kinds])[self.column_node]
            out[columns] = kind.variance(mean[: self.n_columns][columns], all_vary[columns])
        return out

    @cached_property
    def signed(self) -> Mask:
        """Whether "more" and "less" of every node have a meaning: its edges can have a sign."""
        return self._per_node("is_signed").astype(bool)

    @cached_property
    def contrasted(self) -> tuple[int, ...]:
        """Numbers of values of the nodes whose values have terms of their own."""
        return tuple(n for n, is_free in zip(self.n_levels, self.free, strict=True) if is_free)

    @cached_property
    def contrasts(self) -> Nodes:
        """Nodes with one value less for every discrete column: the number of its contrasts."""
        free = tuple(max(n - 1, 0) if n else 0 for n in self.n_values)
        return Nodes(self.kinds, free)

    @cached_property
    def n_scored_terms(self) -> int:
        """Number of own terms of scored nodes: the first of those of discrete nodes."""
        return int(self.term_start[self.n_scored])

    def design_columns(self, gaussian: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, d) all design columns, from values and value codes."""
        out = np.zeros((len(codes), self.n_columns))
        out[:, self.numeric] = self.numbers(gaussian, codes)
        rows = np.arange(len(codes))
        for j in range(self.first_indicator, len(self.n_levels)):
            known = codes[:, j] >= 0
            at = self.column_start[self.n_gaussian + j] + codes[known, j].astype(np.int64)
            out[rows[known], at] = 1.0
        return out

    @cached_property
    def statistics(self) -> SufficientStatistics:
        """Sufficient statistics: the columns that parameters multiply in the log density."""
        return SufficientStatistics(self)

    def with_state(self, n_values: int) -> Nodes:
        """Return these nodes and a last one with so many values, without order."""
        return Nodes((*self.kinds, CATEGORICAL), (*self.n_values, n_values))

    def take(self, nodes: Iterable[int]) -> Nodes:
        """Some of the nodes, in their order."""
        at = sorted(int(node) for node in nodes)
        return Nodes(tuple(self.kinds[v] for v in at), tuple(self.n_values[v] for v in at))

    def _per_node(self, quantity: str) -> Ints:
        count = [
            getattr(kind, quantity)(n) for kind, n in zip(self.kinds, self.n_values, strict=True)
        ]
        return np.array(count, dtype=np.int64)


# -- statistics of the nodes -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Columns that the parameters of some nodes multiply in the log density.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> Nodes.mixed(1, (2,)).statistics.columns.toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    nodes: Nodes

    @cached_property
    def expansion(self) -> Any:
        """(columns over values, d): design columns as sums over those over values."""
        from scipy import sparse

        nodes = self.nodes
        tables: list[Any] = [sparse.eye_array(nodes.n_gaussian)]
        tables += [sparse.csr_array(kind.scores(n)[:, None]) for _, kind, n in nodes.scored]
        tables.append(sparse.eye_array(nodes.n_columns - nodes.n_numeric))
        return sparse.block_diag(tables, format="csr")

    def over_values(self, predictors: Floats) -> Floats:
        """(n, columns over values) predictors of values, from those of design columns (n, d)."""
        if not self.nodes.n_scored:
            return predictors
        return np.ascontiguousarray((self.expansion @ predictors.T).T)

    def of_columns(self, over_values: Floats) -> Floats:
        """(n, d) the predictors of design columns behind what `over_values` makes of them."""
        nodes = self.nodes
        if not nodes.n_scored:
            return over_values
        p, at = nodes.n_gaussian, np.arange(over_values.shape[1])
        scores = np.concatenate([np.ones(p), nodes.scores])
        scores[p + nodes.level_start[nodes.n_scored] :] = 1.0
        for j in range(nodes.n_scored):  # one value tells: that with the largest score
            values = p + np.arange(nodes.level_start[j], nodes.level_start[j + 1])
            at[values[0]] = values[np.abs(scores[values]).argmax()]
        first = np.concatenate([np.arange(p), p + nodes.level_start[: nodes.n_scored]])
        kept = np.concatenate([first, np.arange(p + nodes.level_start[nodes.n_scored], len(at))])
        unit = np.where(scores[at[kept]] == 0.0, 1.0, scores[at[kept]])
        return np.asarray(over_values[:, at[kept]] / unit)

    @cached_property
    def columns(self) -> Any:
        """(columns over values, d + own terms of scored nodes): all that parameters multiply.

        The design columns, then what multiplies the own terms of scored nodes, as sums over the
        columns over values.  A statistic is one of them, or the product of two.
        """
        from scipy import sparse

        nodes, wide = self.nodes, self.expansion
        if not nodes.n_scored:
            return wide
        tables = [nodes.term_features(j) for j, _, _ in nodes.scored]
        terms: Any = sparse.block_diag(tables, format="csr")
        p = nodes.n_gaussian
        above = sparse.csr_array((p, terms.shape[1]))
        below = sparse.csr_array((wide.shape[0] - p - terms.shape[0], terms.shape[1]))
        return sparse.hstack([wide, sparse.vstack([above, terms, below])], format="csr")

    @cached_property
    def _from_values(self) -> Any:
        return self.columns.T.tocsr()

    def moments(self, mean: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Means and second moments of `columns`, from those of the columns over values."""
        if not self.nodes.n_scored:
            return mean, second
        wide = self._from_values
        return np.asarray(wide @ mean), np.asarray(wide @ np.asarray(wide @ second).T)

    def means(self, mean: Floats, shares: Floats) -> Floats:
        """Means of `columns`, from those of design columns and shares of values."""
        if not self.nodes.n_scored:
            return mean
        return np.concatenate([mean, self.nodes.term_sums(shares)[: self.nodes.n_scored_terms]])

    def rows(self, gaussian: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, d + own terms of scored nodes) `columns` of rows with these values."""
        terms = [self.nodes.term_features(j)[codes[:, j]] for j, _, _ in self.nodes.scored]
        return np.hstack([self.nodes.design_columns(gaussian, codes), *terms])

    def base_mean(self, shares: Floats) -> float:
        """Mean of the part of the log density that is known, from shares of values."""
        return float(self._base @ shares)

    @cached_property
    def _base(self) -> Floats:
        """Logits of all values where every own term is zero."""
        return self.nodes.own_logits(np.zeros(int(self.nodes.term_start[-1])))

    def column_moments(
        self, mean: Floats, variance: Floats, shares: Floats
    ) -> tuple[Floats, Floats]:
        """Means of all design columns, and variances of those that are numbers.

        From the moments of the real numbers and shares of values, all in own units.
        """
        nodes = self.nodes
        p, of_values = nodes.n_gaussian, np.split(shares, nodes.level_start[1:-1])
        means, variances = [mean[:p]], [variance[:p]]
        for j, spiked in nodes.spiked:
            there, middle, at = of_values[j][1], mean[p + j], spiked.location
            means.append(np.array([there, middle - at * there]))
            of_b, mixed = there * (1.0 - there), middle * (1.0 - there)
            of_x = variance[p + j] - 2.0 * at * mixed + at**2 * of_b
            variances.append(np.array([of_b, of_x]))
        for j, kind, n in nodes.scored:
            scores, share = kind.scores(n), of_values[j]
            means.append(np.array([share @ scores]))
            variances.append(np.array([share @ scores**2 - (share @ scores) ** 2]))
        of_indicators = shares[nodes.level_start[nodes.first_indicator] :]
        return np.concatenate([*means, of_indicators]), np.concatenate(variances)
