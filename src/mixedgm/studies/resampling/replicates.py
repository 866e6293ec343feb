"""Records of resamples -> tables of edges and columns, centralities and intervals of pairs.

Every pair's estimates in a table and in its resamples -> intervals that cover true values.

An interval is the estimate plus or minus a multiple of its standard error, which is half the width
of the middle 68 % of the resamples: a resample in which a cell has hardly any rows does not count
for more than its share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mixedgm.base.checkpoint import Record
from mixedgm.base.compiled import inner, kernel
from mixedgm.base.parameters import ensure_in
from mixedgm.fit.fitted import FittedModel
from mixedgm.inference.strength import ConditionalInformation, RestRows
from mixedgm.inference.strength import freedom as pair_freedom
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.params import Params
from mixedgm.penalty.weights import edge_kind
from mixedgm.studies.edges.estimates import EstimatedPair
from mixedgm.table.read import Columns
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
        step = max(1, _AT_ONCE // max(1, self.layout.n_nodes**2))
        parts = [
            centrality(*self.matrices(slice(at, at + step))) for at in range(0, len(self), step)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in MEASURES}


# -- centrality ------------------------------------------------------------------------------------

_TIE = 1e-12
MEASURES = ("total_strength", "expected_influence", "closeness", "betweenness")


def centrality(strengths: Floats, signed: Floats) -> dict[str, Floats]:
    """Compute all measures, (B, n) each, of B graphs given by symmetric (B, n, n) strengths.

    Both strengths are 0 where there is no edge, the signed ones also where it has no sign.

    total_strength
        Sum of the strengths of the node's edges.
    expected_influence
        Sum of the signed strengths of the node's edges (Robinaugh, Millner and McNally 2016).
    closeness
        (r - 1) / (sum of distances) * (r - 1) / (n - 1), where r nodes can be reached and an edge
        is 1 / strength long; 0 for an isolated node.  As networkx's `closeness_centrality`.
    betweenness
        Share of the shortest paths between other nodes that lead through the node, as networkx's
        `betweenness_centrality` with the same lengths.

    Examples
    --------
    >>> chain = np.array([[[0.0, 0.5, 0.0], [0.5, 0.0, 0.25], [0.0, 0.25, 0.0]]])
    >>> measures = centrality(chain, -chain)
    >>> measures["total_strength"].tolist(), measures["betweenness"].tolist()
    ([[0.5, 0.75, 0.25]], [[0.0, 1.0, 0.0]])
    """
    shape = strengths.shape[:2]
    closeness, betweenness = np.zeros(shape), np.zeros(shape)
    _shortest_path_measures(np.ascontiguousarray(strengths), closeness, betweenness)
    return {
        "total_strength": strengths.sum(axis=2),
        "expected_influence": signed.sum(axis=2),
        "closeness": closeness,
        "betweenness": betweenness,
    }


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _shortest_path_measures(strengths, closeness, betweenness):
    """Fill (B, n) closeness and betweenness of B graphs given as (B, n, n) symmetric strengths.

    Brandes (2001) on dense graphs.  The length of an edge is 1 / strength; no strength, no edge.
    """
    n_graphs, n = strengths.shape[0], strengths.shape[1]
    length = np.empty((n, n))
    distance, paths, share = np.empty(n), np.empty(n), np.empty(n)
    order = np.empty(n, np.int64)
    for b in range(n_graphs):
        for u in range(n):
            for v in range(n):
                length[u, v] = 1.0 / strengths[b, u, v] if strengths[b, u, v] > 0.0 else np.inf
        betweenness[b] = 0.0
        for source in range(n):
            n_reached = _search(length, source, distance, paths, order)
            total = distance[order[:n_reached]].sum()
            closeness[b, source] = 0.0
            if n_reached > 1:
                others = n_reached - 1.0
                closeness[b, source] = others / total * others / (n - 1.0)
            share[:] = 0.0
            for k in range(n_reached - 1, 0, -1):
                w = order[k]
                for i in range(k):
                    u = order[i]
                    if abs(distance[u] + length[u, w] - distance[w]) <= _TIE * distance[w]:
                        share[u] += paths[u] / paths[w] * (1.0 + share[w])
                betweenness[b, w] += share[w]
        if n > 2:
            betweenness[b] /= (n - 1.0) * (n - 2.0)


@inner(allocates=True)
def _search(length, source, distance, paths, order):
    """Dijkstra: distances, numbers of shortest paths, nodes from near to far; how many."""
    n = length.shape[0]
    done = np.zeros(n, np.bool_)
    distance[:] = np.inf
    paths[:] = 0.0
    distance[source], paths[source] = 0.0, 1.0
    for k in range(n):
        u = -1
        for v in range(n):
            if not done[v] and distance[v] < np.inf and (u < 0 or distance[v] < distance[u]):
                u = v
        if u < 0:
            return k
        done[u] = True
        order[k] = u
        for v in range(n):
            if done[v] or length[u, v] == np.inf:
                continue
            there = distance[u] + length[u, v]
            if there < distance[v] * (1.0 - _TIE) or distance[v] == np.inf:
                distance[v], paths[v] = there, paths[u]
            elif there <= distance[v] * (1.0 + _TIE):
                paths[v] += paths[u]
    return n


# -- pair intervals --------------------------------------------------------------------------------

_MIDDLE = float(norm.cdf(1.0))
_LEAST_SHARE = 0.5
"""Of resamples that must have an estimate, for an interval."""


@dataclass(frozen=True, eq=False)
class PairReplicates:
    """Estimates of all pairs that may have an edge, without shrinkage, and of own terms.

    All are in the data's own units, over all declared levels, and not a number where a resample
    says nothing about them.
    """

    fitted: FittedModel
    rows: RestRows
    """The table's own, at which strengths are computed."""
    method: str
    """What stands beside every pair: "free", all other pairs; "graph", those that pass a test."""
    layout: Layout
    """Of pairs that may have an edge."""
    estimate: Floats
    """(K,) parameters of the pairs, one after the other."""
    values: Floats
    """(B, K) the same in the resamples."""
    own_estimate: Floats
    """(T,) own terms of all columns, as in the layout."""
    own_values: Floats
    """(B, T) the same in the resamples."""
    is_open: NDArray[np.bool_]
    """(pairs,) whether some combination of levels has no rows, so that there is no interval."""
    params: Params
    """Of the graph that stands beside every pair, without shrinkage."""
    left: Floats
    """(nodes,) the share of the rows that a column's predictors leave; estimates are less by it."""
    shares: dict[int, Floats]
    """Shares of the levels of every node that has some, in the table."""

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return self.values.nbytes + self.own_values.nbytes

    # -- tables ------------------------------------------------------------------------------------

    def intervals(self, level: float) -> Columns:
        """One entry per pair, or one per level where columns have three or more."""
        return self._edges(self._steps, level)

    def strengths(self, level: float) -> Columns:
        """One entry per pair, the strongest first."""
        fitted, layout = self.fitted, self.layout
        covariates = fitted.schema.covariates
        inside = ConditionalInformation(self.params, self.rows, covariates, self.shares)
        out = np.full((3, layout.n_groups), np.nan)
        for group in range(layout.n_groups):
            out[:, group] = self._pair_of(group).strength(inside, level)
        out[1:, self.is_open] = np.nan
        order = np.argsort(-out[0], kind="stable")
        names = edge_names(fitted.schema, layout.pairs[order])
        values = zip(("strength", "lower", "upper"), out[:, order], strict=True)
        return {**names, **dict(values)}

    def _pair_of(self, group: int) -> EstimatedPair:
        """Estimates of a pair, and their covariance over resamples."""
        layout, nodes = self.layout, self.layout.nodes
        (u, v), n = layout.pairs[group].tolist(), self.fitted.report.total_weight
        at = np.flatnonzero(self._pair == group)
        unit = np.ones(len(at))
        for node in {u, v} - set(self.fitted.schema.covariates):
            if not nodes.spiked_nodes[node]:
                unit /= np.sqrt(self.left[node])  # as of tests
        se, values = self._se[at] * unit, self.values[:, at]
        values = values[~np.isnan(values).any(axis=1)]
        spread = np.nan_to_num(np.atleast_2d(np.corrcoef(values.T))) * np.outer(se, se) * n
        block = (unit * self.estimate[at]).reshape(nodes.width[[u, v]])
        freedom = pair_freedom(self.params, *layout.pairs[[group]].T)
        return EstimatedPair(u, v, block, np.nan_to_num(spread), int(freedom[0]), n)

    def parameters(self, level: float) -> Columns:
        """One entry per coefficient, then one per own term, in the data's own units."""
        edges = self._edges(self._observed.astype(np.float64), level)
        terms = self._own_terms()
        at = [position for position, *_ in terms]
        se = _standard_errors(self.own_values[:, at])
        n_edges, none = len(edges["source"]), [None] * len(terms)
        numbers = _interval_columns(self.own_estimate[at], se, level)
        return {
            "source": edges["source"] + [name for _, name, _, _ in terms],
            "target": edges["target"] + none,
            "parameter": ["interaction"] * n_edges + [name for _, _, name, _ in terms],
            "source_level": edges["source_level"] + [label for *_, label in terms],
            "target_level": edges["target_level"] + none,
            **{name: np.concatenate([edges[name], own]) for name, own in numbers.items()},
        }

    def _edges(self, factor: Floats, level: float) -> dict[str, Any]:
        """Parameters whose factor is not zero, times that; the most certain pair comes first."""
        at = self._most_certain_first
        at = at[factor[at] != 0.0]
        estimate, se = factor[at] * self.estimate[at], np.abs(factor[at]) * self._se[at]
        return {**self._names(at), **_interval_columns(estimate, se, level)}

    def _names(self, at: Ints) -> dict[str, Any]:
        """Columns and levels of parameters."""
        schema, layout = self.fitted.schema, self.layout
        ends = layout.pairs[self._pair[at]]
        names: dict[str, Any] = dict(edge_names(schema, ends))
        labels = np.array(self._labels, dtype=object)
        first, second = (labels[position[at]] for position in layout.edge_position)
        covariate = np.array([node.role == "covariate" for node in schema.nodes])
        turned = covariate[ends[:, 1]] & ~covariate[ends[:, 0]]
        names["source_level"] = np.where(turned, second, first).tolist()
        names["target_level"] = np.where(turned, first, second).tolist()
        return names

    @cached_property
    def _labels(self) -> list[str | None]:
        """Of every design column: its level or part; None for a number or score."""
        nodes, labels = self.layout.nodes, list[str | None]()
        for node in range(len(nodes)):
            single = nodes.numeric_nodes[node] and nodes.width[node] == 1
            labels += [None] if single else self.fitted.axis(node)
        return labels

    @cached_property
    def _se(self) -> Floats:
        """(K,) standard errors."""
        return np.where(self.is_open[self._pair], np.nan, _standard_errors(self.values))

    @cached_property
    def _pair(self) -> Ints:
        """Of every parameter, its pair."""
        return np.repeat(np.arange(self.layout.n_groups), self.layout.sizes)

    @cached_property
    def _most_certain_first(self) -> Ints:
        """Parameters: pairs by the largest ratio of an estimate to its error, in their order."""
        ratio = np.zeros(len(self.estimate))
        np.divide(np.abs(self.estimate), self._se, out=ratio, where=self._se > 0.0)
        largest = np.zeros(self.layout.n_groups)
        np.maximum.at(largest, self._pair, ratio)
        rank = np.argsort(np.argsort(-largest, kind="stable"))
        return np.argsort(rank[self._pair], kind="stable")

    # -- levels ------------------------------------------------------------------------------------

    @cached_property
    def _has_rows(self) -> NDArray[np.bool_]:
        """(d,) design columns that are not levels without rows."""
        first, has = self.layout.nodes.n_numeric, np.ones(self.layout.n_columns, dtype=bool)
        levels = self.own_estimate[len(self.own_estimate) - len(has) + first :]  # these come last
        has[first:] = ~np.isneginf(levels)
        return has

    @cached_property
    def _observed(self) -> NDArray[np.bool_]:
        """(K,) parameters of levels that have rows."""
        row, column = self.layout.edge_position
        return self._has_rows[row] & self._has_rows[column]

    @cached_property
    def _steps(self) -> Floats:
        """(K,) what parameters are multiplied by; 0 for those that say the same as another.

        Numbers and scores by their standard deviations.  Of two levels only the second is kept, and
        counts twice: coefficients of levels sum to zero, and this is its distance from the first.
        """
        layout, nodes = self.layout, self.layout.nodes
        step = np.where(self._has_rows, 1.0, 0.0)
        step[nodes.numeric] = self.fitted.node_scales[nodes.column_scale[nodes.numeric]]
        count = np.add.reduceat(self._has_rows.astype(np.int64), layout.column_start[:-1])
        number = np.cumsum(self._has_rows) - np.repeat(
            np.cumsum(count) - count, np.diff(layout.column_start)
        )
        two = ~nodes.numeric_nodes[layout.column_node] & (count == 2)[layout.column_node]
        step[two] *= np.where(number[two] == 2, 2.0, 0.0)
        row, column = layout.edge_position
        return np.asarray(step[row] * step[column])

    def _own_terms(self) -> list[tuple[int, str, str, str | None]]:
        """Position, column, name and level of every term of a target (covariates have none).

        Levels without rows have no estimate and are left out.  So are all terms of a column that
        does not vary in the rows of the fit.
        """
        schema, terms = self.fitted.schema, list[tuple[int, str, str, str | None]]()
        for node, column in enumerate(schema.nodes):
            names = schema.spans.kinds[node].term_names(column.level_names)
            labels: list[tuple[str, str | None]] = [("bias", name) for name in names]
            if schema.spans.is_gaussian(node):
                labels.append(("precision", None))
            if node not in schema.covariates:
                at = self.layout.node_terms_of(node).tolist()
                terms += [(k, column.name, *label) for k, label in zip(at, labels, strict=True)]
        return sorted(term for term in terms if np.isfinite(self.own_estimate[term[0]]))


# -- intervals -------------------------------------------------------------------------------------


def _standard_errors(samples: Floats) -> Floats:
    """Half the width of the middle 68 % of every column; not a number where few rows have one."""
    probability = [1.0 - _MIDDLE, _MIDDLE]
    out, n_missing = np.full(samples.shape[1], np.nan), np.isnan(samples).sum(axis=0)
    complete = n_missing == 0
    low, high = np.quantile(samples[:, complete], probability, axis=0)
    out[complete] = 0.5 * (high - low)
    some = ~complete & (n_missing <= (1.0 - _LEAST_SHARE) * len(samples))
    if some.any():
        low, high = np.nanquantile(samples[:, some], probability, axis=0)
        out[some] = 0.5 * (high - low)
    return out


def _interval_columns(estimate: Floats, se: Floats, level: float) -> dict[str, Floats]:
    """Estimates, standard errors, and the ends of intervals."""
    ensure_in("(0, 1)", level=level)
    width = float(norm.isf(0.5 * (1.0 - level))) * se
    return {"estimate": estimate, "se": se, "lower": estimate - width, "upper": estimate + width}
