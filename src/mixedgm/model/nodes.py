"""Kinds of columns and their numbers of values -> Nodes: where each stands, in one fixed order.

The nodes of a model are its columns in the order of `KINDS`: Gaussian ones first.  Node v is seen
by all others as the *design columns* ``column_start[v]:column_start[v + 1]``.  Because of the
order, the nodes with a Gaussian conditional are the first `n_gaussian`, all others have a softmax
over finitely many values, and the first `n_numeric` design columns are numbers, which have units,
while all others are indicators.  No other module relies on which kind comes where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.kinds import CATEGORICAL, CONTINUOUS, KINDS, Kind

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
        Of every node, in the order of `KINDS`.
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
        """Kinds travel by name; what is computed from them is not sent."""
        return _restored, (tuple(kind.name for kind in self.kinds), self.n_values)

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

    def place(self, node: int) -> int:
        """Its position among the Gaussian nodes, or among the discrete ones: its column of data."""
        return node if node < self.n_gaussian else node - self.n_gaussian

    @cached_property
    def gaussian_nodes(self) -> Mask:
        """Whether every node has a Gaussian conditional."""
        return np.array([kind.is_gaussian for kind in self.kinds], dtype=bool)

    @cached_property
    def node_place(self) -> Ints:
        """`place` of every node."""
        return np.concatenate([np.arange(self.n_gaussian), np.arange(len(self.n_levels))])

    def places(self, nodes: Iterable[int]) -> tuple[list[int], list[int]]:
        """Positions of some nodes among the Gaussian ones, and of the others among the discrete.

        Examples
        --------
        >>> Nodes.mixed(2, (2, 3)).places([3, 1, 2])
        ([1], [1, 0])
        """
        at = [int(node) for node in nodes]
        p = self.n_gaussian
        return [node for node in at if node < p], [node - p for node in at if node >= p]

    @cached_property
    def level_start(self) -> Ints:
        """First value of every discrete node among the values of all of them, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

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
    def softmax_column(self) -> Ints:
        """Position of every design column among those of discrete nodes; negative for others."""
        return np.arange(self.n_columns) - int(self.column_start[self.n_gaussian])

    def columns_of(self, node: int) -> slice:
        """Design columns of a node."""
        return slice(int(self.column_start[node]), int(self.column_start[node + 1]))

    def columns_kept(self, observed: Mask) -> Ints:
        """Design columns that are left when levels that are not observed go."""
        p = self.n_numeric
        return np.concatenate([np.arange(p), p + np.flatnonzero(observed)])

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
        for kind in set(self.kinds):
            columns = np.array([each is kind for each in self.kinds])[self.column_node]
            out[columns] = kind.variance(mean[: self.n_columns][columns], all_vary[columns])
        return out

    @cached_property
    def signed(self) -> Mask:
        """Whether "more" and "less" of every node have a meaning: its edges can have a sign."""
        return self._per_node("is_signed").astype(bool)

    @cached_property
    def contrasts(self) -> Nodes:
        """The same nodes with as many values as they have directions."""
        free = tuple(max(n - 1, 0) if n else 0 for n in self.n_values)
        return Nodes(self.kinds, free)

    def with_values(self, n_levels: Sequence[int]) -> Nodes:
        """The same nodes with other numbers of values of the discrete ones."""
        return Nodes(self.kinds, (0,) * self.n_gaussian + tuple(n_levels))

    def with_state(self, n_values: int) -> Nodes:
        """These nodes and a last one with so many values, without order."""
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


def _restored(kinds: tuple[str, ...], n_values: tuple[int, ...]) -> Nodes:
    return Nodes(tuple(KINDS[name] for name in kinds), n_values)
