"""Records of resamples -> Replicates: the same numbers as arrays, one row per resample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.penalty.factors import edge_kind
from mixedgm.table.schema import Schema

_AT_ONCE = 2**24  # numbers in a stack of graphs
_SIGNS = {1.0: "+", -1.0: "-"}


def edge_names(schema: Schema, ends: Iterable[Sequence[int]]) -> dict[str, list[str]]:
    """Source, target and kind of edges between these nodes, as columns."""
    directed = [schema.directed(*pair) for pair in ends]
    return {
        "source": [schema.nodes[u].name for u, _ in directed],
        "target": [schema.nodes[v].name for _, v in directed],
        "kind": [edge_kind(schema, u, v) for u, v in directed],
    }


def sign_names(signs: Floats) -> list[str | None]:
    """1, -1 and 0 as "+", "-" and None."""
    return [_SIGNS.get(sign) for sign in signs.tolist()]


def all_pairs(records: Iterable[Record]) -> Ints:
    """Numbers of the pairs that have an edge in some record."""
    return np.unique(np.concatenate([record["pairs"] for record in records])).astype(np.int64)


def failure_lines(failures: Iterable[Failure]) -> list[str]:
    """What went wrong and how often, as lines of a summary."""
    counted = Counter(failure.message for failure in failures)
    return [f"  failed, {count} times: {text}" for text, count in counted.most_common()]


class Failure(NamedTuple):
    """A resample that could not be fitted, and why."""

    resample: int
    message: str


class EdgeParts(NamedTuple):
    """What edges consist of: an edge of a hurdle column has two parts, all others one.

    `pair` (P,) and `ends` (P, 2) say which part of which pair it is, counted for both ends;
    `norms` (B, P) are the norms of the parts, and `sign` (B, P) is 0 where there is none.
    """

    pair: Ints
    ends: Ints
    norms: Floats
    sign: Floats


@dataclass(frozen=True, eq=False)
class Replicates:
    """What is kept of the resamples.

    Parameters
    ----------
    layout : Layout
        Of the columns with all declared levels; which pairs it has does not matter.
    pairs : ndarray (U,)
        Numbers of the pairs, among all, that have an edge in the estimate or in any resample.
    values : ndarray (B, K)
        Parameters of these pairs, one after the other, in the data's own units; zero where there
        is no edge.
    node_terms : ndarray (B, T)
        Linear terms, diagonal of the precision, own terms of discrete columns (the bias of a level
        without rows is -inf).
    scales : ndarray (B, n)
        Of every column, in the order of the nodes; zero where it is constant.  A hurdle column has
        two.
    account : ndarray (B, 3)
        lam (NaN where every column has its own), KKT number, whether it is within tol.
    strengths : ndarray (B, U)
        Strengths of edges, zero where there is none; NaN where they were not computed.
    """

    layout: Layout
    pairs: Ints
    values: Floats
    node_terms: Floats
    scales: Floats
    account: Floats
    strengths: Floats

    @classmethod
    def gather(
        cls, layout: Layout, records: Sequence[Record], pairs: Ints | None = None
    ) -> Replicates:
        """Lay the records out over these pairs, which must cover theirs; by default just theirs."""
        pairs = all_pairs(records) if pairs is None else pairs
        small = Layout.part_of_complete(layout.nodes, pairs)
        first = layout.n_node_terms
        values = np.zeros((len(records), small.n_theta - first))
        strengths = np.zeros((len(records), len(pairs)))
        for row, sizes_of, record in zip(values, strengths, records, strict=True):
            groups = np.searchsorted(pairs, record["pairs"])
            row[small.positions(groups)[first:] - first] = record["values"]
            sizes_of[groups] = record.get("strengths", np.nan)
        sizes = {"node_terms": first, "scales": len(layout.nodes.scale_node), "account": 3}
        parts = {
            name: np.array([r[name] for r in records]).reshape(-1, n) for name, n in sizes.items()
        }
        return cls(layout, pairs, values, strengths=strengths, **parts)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take, with the norms and centralities made from them."""
        kept = sum(a.nbytes for a in (self.values, self.node_terms, self.scales, self.account))
        return kept + 8 * len(self) * (2 * len(self.pairs) + 4 * self.layout.n_nodes)

    @property
    def lam(self) -> Floats:
        """The penalty of every resample."""
        return self.account[:, 0]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether the KKT number of every resample is within tol."""
        return self.account[:, 2] > 0.0

    @cached_property
    def small(self) -> Layout:
        """The layout of `values`."""
        return Layout.part_of_complete(self.layout.nodes, self.pairs)

    @property
    def ends(self) -> Ints:
        """(U, 2) nodes of the pairs."""
        return self.small.pairs

    @cached_property
    def starts(self) -> Ints:
        """Where the parameters of every pair begin in `values`; one more entry marks the end."""
        return self.small.starts - self.small.n_node_terms

    @cached_property
    def standardised(self) -> Floats:
        """`values` times the scales of both ends, as in the norms of edges."""
        u, v = map(self.layout.nodes.column_scale.take, self.small.edge_position)
        return np.asarray(self.values * self.scales[:, u] * self.scales[:, v])

    def constant(self, whole: Floats) -> NDArray[np.bool_]:
        """(B, n) nodes that are constant, though they vary in the table that has these scales."""
        first = self.layout.nodes.column_scale[self.layout.column_start[:-1]]
        return np.asarray(((self.scales == 0.0) & (whole > 0.0))[:, first])

    @cached_property
    def lost_levels(self) -> NDArray[np.bool_]:
        """(B, sum of values) values that cannot occur, because they have no rows."""
        nodes = self.layout.nodes
        lost = np.isneginf(nodes.own_logits(self.node_terms[:, self.layout.biases]))
        possible = np.zeros((len(self), int(nodes.level_start[nodes.n_spiked])), dtype=bool)
        return np.hstack([possible, lost[:, nodes.slot_start[nodes.n_spiked] :]])

    def lacking(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(B, n) nodes that lack a level which the whole table has."""
        nodes, lost = self.layout.nodes, self.lost_levels & observed
        lacks = np.zeros((len(self), len(nodes)), dtype=bool)
        for at, column in enumerate(lacks[:, nodes.discrete].T):
            column[:] = lost[:, nodes.levels_of(at)].any(axis=1)
        return lacks

    @cached_property
    def norms(self) -> Floats:
        """(B, U) norms of edges on the scale of the penalty, zero where there is no edge."""
        if len(self.pairs) == 0:
            return np.zeros((len(self), 0))
        return np.sqrt(np.add.reduceat(self.standardised**2, self.starts[:-1], axis=1))

    @cached_property
    def parts(self) -> EdgeParts:
        """The parts of every pair: whether and how much for a hurdle column, else one."""
        nodes, (u, v) = self.layout.nodes, self.ends.T
        count = np.where(nodes.numeric_nodes, nodes.width, 1)
        n_parts = count[u] * count[v]
        pair = np.repeat(np.arange(len(u)), n_parts)
        at = np.arange(len(pair)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
        size = (np.diff(self.starts) // n_parts)[pair]
        first = self.starts[pair] + at * size
        if len(pair) == 0:
            return EdgeParts(pair, np.zeros((0, 2), dtype=np.int64), *np.zeros((2, len(self), 0)))
        # Levels of categories stand last in a block, so that a part is one run of parameters.
        norms = np.sqrt(np.add.reduceat(self.standardised**2, first, axis=1))
        can = (nodes.signed | nodes.numeric_nodes)[self.ends[pair]].all(axis=1)
        sign = np.where(can, np.sign(self.values[:, first + size - 1]), 0.0)
        return EdgeParts(pair, np.column_stack(np.divmod(at, count[v][pair])), norms, sign)

    @cached_property
    def sign(self) -> Floats:
        """(B, U) sign of every edge: 1 or -1 where all of its parts have it, else 0."""
        pair, sign = self.parts.pair, self.parts.sign
        if len(pair) == 0:
            return sign
        total = np.add.reduceat(sign, np.searchsorted(pair, np.arange(len(self.pairs))), axis=1)
        return np.asarray(np.where(np.abs(total) == np.bincount(pair), np.sign(total), 0.0))

    @cached_property
    def has_sign(self) -> NDArray[np.bool_]:
        """(U,) whether an edge of this pair is one signed number.

        No end has three or more categories, or two parts.
        """
        return np.asarray(self.layout.nodes.signed[self.ends].all(axis=1))

    @property
    def _own_sign(self) -> Floats:
        return np.where(self.has_sign, np.sign(self.values[:, self.starts[1:] - 1]), 1.0)

    @cached_property
    def signed(self) -> Floats:
        """(B, U) norms times the sign where there is one, else the norms."""
        return np.asarray(self.norms * self._own_sign)

    @cached_property
    def signed_strengths(self) -> Floats:
        """(B, U) strengths times the sign where there is one, else the strengths."""
        return np.asarray(self.strengths * self._own_sign)

    def matrices(self, rows: slice) -> tuple[Floats, Floats]:
        """(B, n, n) strengths, and signed strengths with zeros where there is no sign."""
        n = self.layout.n_nodes
        u, v = self.ends.T
        strengths = np.zeros((len(self.strengths[rows]), n, n))
        signed = np.zeros_like(strengths)
        strengths[:, u, v] = strengths[:, v, u] = self.strengths[rows]
        own = np.where(self.has_sign, self.signed_strengths[rows], 0.0)
        signed[:, u, v] = signed[:, v, u] = own
        return strengths, signed

    @cached_property
    def centrality(self) -> dict[str, Floats]:
        """(B, n) by measure; graphs are laid out a few at a time."""
        from mixedgm.studies.centrality import MEASURES, centrality

        step = max(1, _AT_ONCE // max(1, self.layout.n_nodes**2))
        parts = [
            centrality(*self.matrices(slice(at, at + step))) for at in range(0, len(self), step)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in MEASURES}
