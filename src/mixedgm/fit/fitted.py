"""Params + schema + certificate -> FittedModel: what can be asked of a model, as plain values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError, ParameterError, SamplingWarning
from mixedgm.base.printable import quoted
from mixedgm.families import Point
from mixedgm.fit.report import FitReport as FitReport
from mixedgm.inference.strength import ConditionalInformation, RestRows, freedom, strength
from mixedgm.joint.margins import Margins, NodeTerms
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params, joined
from mixedgm.path.path import Path
from mixedgm.penalty.weights import edge_kind
from mixedgm.rows.predict import mean_losses, predictions, probabilities
from mixedgm.table.encode import Design
from mixedgm.table.schema import Schema, with_names

if TYPE_CHECKING:
    from mixedgm.joint.sampled import Draw, Method

_N_DRAWN = 2_000
_N_ON_PATH = 300
"""Rows at which strengths along a path are computed."""

Points = Mapping[int, Callable[[Floats], NDArray[Any]]]
"""Functions by node: conditionals (means, or log probabilities of values) -> predictions."""


class Edge(NamedTuple):
    """One edge of a graph: two columns that are related given all others.

    ``model.edges_`` holds the edges of a model, strongest first.

    Attributes
    ----------
    source, target : str
        Names of the two columns.
    kind : str
        Kinds of the two columns, such as "continuous-categorical" or "ordinal-count".
    strength : float
        How much the two columns say about each other given all others, from 0 to 1: the absolute
        partial correlation of two numbers, and its counterpart for all other kinds,
        sqrt(1 - exp(-2 I)) with their conditional mutual information I.
    sign : {"+", "-"} or None
        None where the edge has no single sign: one of its columns is categorical with three or
        more levels, or a hurdle column of which "whether" and "how much" have different signs.
    partial_correlation : float or None
        For two continuous columns only.
    norm : float
        Norm of the edge's parameters on the scale of the penalty.
    directed : bool
        Whether `source` is a covariate, which predicts `target` and is not predicted.
    moderator : str or None
        With a moderator this is not an edge, but how an edge varies with that column: `strength`
        and `norm` are those of the deviations, and `sign` says what more of the moderator (the
        second of two levels) does to the entry that gives the edge its sign.
    ridge : bool
        Whether the rows alone leave the edge open, so that its estimate has a small ridge.

    Examples
    --------
    >>> import mixedgm as mg
    >>> columns = {"x": "continuous", "y": "continuous"}
    >>> edge = mg.from_params(columns, {"precision": [[2, 1], [1, 2]]}).edges_[0]
    >>> edge.source, edge.target, edge.sign, round(edge.partial_correlation, 3)
    ('x', 'y', '-', -0.5)
    """

    source: str
    target: str
    kind: str
    strength: float
    sign: str | None
    partial_correlation: float | None
    norm: float
    directed: bool = False
    moderator: str | None = None
    ridge: bool = False


class Interaction(NamedTuple):
    """Parameters of one pair of columns with the names on both axes.

    A categorical column has the names of its levels on its axis, any other its own name only.  For
    two continuous columns the value is minus the precision entry, so positive means positively
    related; an ordinal column counts by the scores of its levels, a count by its square root.  A
    hurdle column has two entries: whether it is not zero (where it is not, as much as usual), and
    how much it is.
    """

    row: str
    column: str
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model in hand.

    Parameters
    ----------
    schema : Schema
        Columns, kinds and levels.
    params : Params
        In the data's own units (normal scores where a column has a transform).
    node_scales : ndarray (p + q,)
        sqrt(tr cov) of every column in the training data; the penalty weighs an edge by the
        product of two of them.  Of a hurdle column two: of whether it is zero, and of how much.
    report : FitReport
    library : str
        Frame library of the training table: "pandas", "polars", "pyarrow" or "numpy".
    path : Path or None
        The whole path when one was solved.
    scores : mapping of str to ndarray
        Selection scores per lam of the path, by name.
    selection_frequency : ndarray (p + q, p + q) or None
        Share of the subsamples that have each edge at the chosen lam, where subsamples chose it;
        where edges are moderated, one such matrix for edges and one for each moderator.
    edge_probability : ndarray, of the same shape, or None
        How probable each edge is, where tests of all pairs chose the graph.
    margins : Margins or None
        Margins of the training table; None if no table gave the joint distribution of all columns.
    known_terms : NodeTerms or None
        `joint_terms`, where a file had them.
    shrunken_norms : ndarray (1 + moderators, p + q, p + q) or None
        Norms of edges and deviations in the penalised estimate, where the graph was refitted.
    known_strengths : ndarray (edges + deviations,) or None
        `strengths`, where they are known.
    known_path_strengths : tuple of ndarray or None
        Strengths at every lam of the path, where they are known.
    rows : RestRows or None
        Some rows of the training table, at which strengths are computed; not kept in files.
    """

    schema: Schema
    params: Params
    node_scales: Floats
    report: FitReport
    library: str
    path: Path | None = None
    scores: Mapping[str, Floats] = field(default_factory=dict)
    selection_frequency: Floats | None = None
    edge_probability: Floats | None = None
    margins: Margins | None = None
    known_terms: NodeTerms | None = None
    shrunken_norms: Floats | None = None
    known_strengths: Floats | None = None
    known_path_strengths: tuple[Floats, ...] | None = None
    rows: RestRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without rows: a copy in another process has the strengths that they give."""
        if self.rows is None:
            return vars(self)
        return {**vars(self), "known_strengths": self.strengths, "rows": None}

    # -- graph -------------------------------------------------------------------------------------

    @property
    def column_scales(self) -> Floats:
        """(d,) scale of every design column: the norm of an edge is that of its scaled block."""
        return self.node_scales[self.params.nodes.column_scale]

    @cached_property
    def edge_coef(self) -> Floats:
        """Symmetric matrix of the parameters of all edges, as ``params.coef`` has them."""
        return self.params.edge_coef(self.report.rule)

    @cached_property
    def edge_norms(self) -> Floats:
        """(p + q, p + q) symmetric matrix of the norms of edges, zero where there is no edge.

        Separate regressions have two copies of an edge; this is the norm of their mean, where
        the rule finds an edge at all.
        """
        return self._as_matrix(self._pairs_with_norms[2])

    @cached_property
    def edge_strengths(self) -> Floats:
        """(p + q, p + q) symmetric matrix of the strengths of edges."""
        return self._as_matrix(self.strengths[: len(self._pairs_with_norms[2])])

    def _as_matrix(self, values: Floats) -> Floats:
        u, v, _ = self._pairs_with_norms
        matrix = np.zeros((len(self.schema.nodes), len(self.schema.nodes)))
        matrix[u, v] = matrix[v, u] = values
        return matrix

    @property
    def varying(self) -> tuple[Ints, Ints, Ints]:
        """Moderators and nodes u < v of every deviation."""
        m, u, v = np.nonzero(np.triu(self.deviation_norms, 1))
        return m, u, v

    @cached_property
    def strengths(self) -> Floats:
        """(edges + deviations,) strengths, of edges in the order of their nodes.

        They are means over rows of the training table.  A model that has none, such as one with
        given parameters, takes rows drawn from it.
        """
        if self.known_strengths is not None:
            return self.known_strengths
        return self.strengths_from(self.rows or self.drawn_rows(), self._n_behind)

    @property
    def is_free(self) -> bool:
        """Whether these are estimates without penalty, which have an excess of information."""
        return self.report.was_fitted and (self.report.refitted or self.report.lam == 0.0)

    @property
    def _n_behind(self) -> float:
        """Observations behind estimates that have an excess of information."""
        return self.report.total_weight if self.is_free else np.inf

    def strengths_from(self, rows: RestRows | None, n: Floats | float) -> Floats:
        """(edges + deviations,) strengths as means over these rows.

        Estimates that come from n observations, a number or a matrix over pairs of nodes, have
        d / 2n nats too much on average, with the d parameters of an edge; shrunken ones do not.
        Without rows, strengths that need some are NaN.
        """
        (u, v, _), (m, a, b) = self._pairs_with_norms, self.varying
        inside = ConditionalInformation(self.params, rows, self.schema.covariates)
        of_edges, of_deviations = inside.of(u, v, self.edge_coef), np.zeros(len(m))
        parameters = freedom(self.params, u, v)
        varying = freedom(self.params, a, b)
        for k, at in enumerate(zip(m.tolist(), a.tolist(), b.tolist(), strict=True)):
            varying[k] *= self.params.nodes.freedom[self.moderators[at[0]]]
            parameters[(u == at[1]) & (v == at[2])] += varying[k]
            of_deviations[k] = inside.of_deviation(*at, self._deviation(*at))
        nats = np.concatenate([of_edges, of_deviations])
        left, right = np.concatenate([u, a]), np.concatenate([v, b])
        observations = n if isinstance(n, float) else n[left, right]
        count = np.concatenate([parameters, varying])
        if self.report.shrunken:
            count = np.where(count > 1, 0, count)
        return strength(nats, 0.5 * count / observations)

    def drawn_rows(self) -> RestRows | None:
        """Rows drawn from the model; None where it has no joint distribution, or needs no rows."""
        u, v, _ = self._pairs_with_norms
        if self.params.nodes.gaussian_nodes[np.union1d(u, v)].all() or self.schema.covariates:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            try:
                drawn = self.draw(_N_DRAWN, np.random.default_rng(0))
            except (DistributionError, ParameterError):
                return None
        return RestRows(drawn.numbers, drawn.codes)

    @cached_property
    def _pairs_with_norms(self) -> tuple[Ints, Ints, Floats]:
        """Nodes u < v of every edge, sorted, and its norm."""
        (u, v), scale = self._pairs, self.column_scales
        norm = np.zeros(len(u))
        for at, (rows, columns) in self._blocks_of(u, v):
            # Scaled first: in units that are very large or small the square of a coefficient has
            # no place in double precision.
            scaled = scale[rows] * self.edge_coef[rows, columns] * scale[columns]
            norm[at] = np.sqrt((scaled**2).sum(axis=1).sum(axis=1))
        there = norm != 0.0
        return u[there], v[there], norm[there]

    @property
    def pair_norms(self) -> Floats:
        """Norms of the edges, in the order of their nodes."""
        return self._pairs_with_norms[2]

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """Nodes u < v of every block of `edge_coef` that is not zero, sorted."""
        node, n = self.params.nodes.column_node, len(self.params.nodes)
        places = np.flatnonzero(self.edge_coef) if self.params.nodewise else self.params.places
        row, column = np.divmod(places, len(node))
        u, v = node[row], node[column]
        u, v = np.divmod(np.unique((u * n + v)[u < v]), max(n, 1))
        return u, v

    def _blocks_of(self, u: Ints, v: Ints) -> Iterator[tuple[Ints, tuple[Ints, Ints]]]:
        """Pairs of nodes, those whose blocks have one shape together.

        Positions among the pairs, and (pairs, width_u, 1) rows and (pairs, 1, width_v) columns of
        their blocks.
        """
        nodes = self.params.nodes
        shapes, which = np.unique(
            np.column_stack([nodes.width[u], nodes.width[v]]), axis=0, return_inverse=True
        )
        start = nodes.column_start
        for shape, (height, width) in enumerate(shapes.tolist()):
            at = np.flatnonzero(which.ravel() == shape)
            rows = start[u[at], None, None] + np.arange(height)[:, None]
            yield at, (rows, start[v[at], None, None] + np.arange(width))

    @property
    def n_predictors(self) -> dict[str, int]:
        """Number of predictors in the conditional of every target column, in the table's order."""
        node, n = self.params.nodes.column_node, len(self.params.nodes)
        row, column = np.divmod(self.params.places, len(node))
        blocks = np.unique(node[row] * n + node[column])
        count = np.bincount(blocks % max(n, 1), minlength=n)
        return {name: int(count[self.schema.node_index(name)]) for name in self.schema.targets}

    @property
    def moderators(self) -> tuple[int, ...]:
        """Positions of the columns that edges vary with."""
        return () if self.params.moderation is None else self.params.moderation.nodes

    @cached_property
    def deviation_norms(self) -> Floats:
        """(moderators, p + q, p + q) norms of the deviations of every edge."""
        n_nodes = len(self.schema.nodes)
        if self.params.moderation is None:
            return np.zeros((0, n_nodes, n_nodes))
        moderation = self.params.moderation
        norms = moderation.norms(self.params, self.column_scales)
        if self.params.nodewise:
            there = [joined(part > 0.0, self.report.rule) for part in norms]
            mean = [0.5 * (part + part.swapaxes(1, 2)) for part in moderation.deviations]
            both = replace(moderation, deviations=tuple(mean))
            norms = np.where(there, both.norms(self.params, self.column_scales), 0.0)
        upper = np.triu(norms, 1)
        return np.asarray(upper + upper.swapaxes(1, 2))

    @property
    def all_norms(self) -> Floats:
        """(1 + moderators, p + q, p + q) norms of edges, and of their deviations."""
        return np.concatenate([self.edge_norms[None], self.deviation_norms])

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Edges and their deviations, strongest first; of equal ones the larger norm."""
        plain, strengths = list(self._plain_edges()), self.strengths
        places = zip(*(part.tolist() for part in self.varying), strict=True)
        of_deviations = strengths[len(plain) :].tolist()
        deviations = zip(places, of_deviations, strict=True)
        both = [*plain, *(self._deviation_edge(place, size) for place, size in deviations)]
        order = np.lexsort((-np.array([edge.norm for edge in both]), -strengths))
        return tuple(both[at] for at in order.tolist())

    def edges_at(self, k: int) -> tuple[Edge, ...]:
        """Edges and deviations of the k-th lam of the path, as penalised there, strongest first."""
        known = self.path_strengths
        return replace(self._at_lam(k), known_strengths=None if known is None else known[k]).edges

    @cached_property
    def path_strengths(self) -> tuple[Floats, ...] | None:
        """`strengths` at every lam of the path, from fewer rows; None where no rows are known."""
        if self.known_path_strengths is not None or self.rows is None or self.path is None:
            return self.known_path_strengths
        return tuple(self._at_lam(k).strengths for k in range(len(self.path)))

    def _at_lam(self, k: int) -> FittedModel:
        """The penalised model at the k-th lam of the path."""
        assert self.path is not None
        report = replace(self.report, ridge=(), refitted=False, lam=self.path.points[k].lam)
        rows = None if self.rows is None else self.rows.some(_N_ON_PATH)
        params = self.path.params(k)
        return replace(self, params=params, report=report, known_strengths=None, rows=rows)

    def frequency_of(self, edge: Edge) -> float:
        """Share of the subsamples that have this edge or deviation."""
        assert self.selection_frequency is not None
        return self._of_pair(self.selection_frequency, edge)

    def probability_of(self, edge: Edge) -> float:
        """How probable this edge or deviation is; NaN where it has no test."""
        assert self.edge_probability is not None
        return self._of_pair(self.edge_probability, edge)

    def untested(self, edge: Edge) -> str | None:
        """Why an edge was chosen without a test; None where it has one."""
        ends = {edge.source, edge.target}
        whys = [why for source, target, why in self.report.untested if {source, target} == ends]
        return whys[0] if whys else None

    @property
    def expected_false(self) -> float | None:
        """How many of the edges are expected to be false; None where no tests chose them."""
        if self.edge_probability is None:
            return None
        chances = [self.probability_of(edge) for edge in self.edges]
        return float(np.nansum(1.0 - np.array(chances)))

    def _of_pair(self, values: Floats, edge: Edge) -> float:
        m, u, v = self._place(edge)
        return float(values[(m, u, v) if self.moderators else (u, v)])

    def shrunken_norm_of(self, edge: Edge) -> float:
        """Norm of an edge before the refit; NaN if the refit was stored without these norms."""
        if not self.report.refitted:
            return edge.norm
        if self.shrunken_norms is None:
            return np.nan
        return float(self.shrunken_norms[self._place(edge)])

    def _place(self, edge: Edge) -> tuple[int, int, int]:
        names = [None, *(self.schema.nodes[node].name for node in self.moderators)]
        ends = self.schema.node_index(edge.source), self.schema.node_index(edge.target)
        return names.index(edge.moderator), *ends

    def _deviation_edge(self, place: tuple[int, int, int], size: float) -> Edge:
        m, u, v = place
        nodes, node = self.schema.nodes, self.moderators[m]
        return Edge(
            nodes[u].name,
            nodes[v].name,
            edge_kind(self.schema, u, v),
            size,
            self._sign_of(self._deviation(m, u, v), node, u, v),
            None,
            float(self.deviation_norms[m, u, v]),
            moderator=nodes[node].name,
            ridge=self._has_ridge(u, v),
        )

    def _has_ridge(self, u: int, v: int) -> bool:
        return frozenset((self.schema.nodes[u].name, self.schema.nodes[v].name)) in self._ridges

    @cached_property
    def _ridges(self) -> frozenset[frozenset[str]]:
        return frozenset(frozenset(pair) for pair in self.report.ridge)

    def _deviation(self, which: int, u: int, v: int) -> Floats:
        """(1 or levels of the moderator, levels of u, levels of v) deviations of one edge."""
        assert self.params.moderation is not None
        rows, columns = self.params.nodes.columns_of(u), self.params.nodes.columns_of(v)
        whole = self.params.moderation.deviations[which]
        deviation = whole[:, rows, columns]
        if self.params.nodewise:
            deviation = 0.5 * (deviation + whole[:, columns, rows].swapaxes(1, 2))
        return np.asarray(deviation)

    def _plain_edges(self) -> Iterator[Edge]:
        """The edges themselves, without deviations, in the order of their nodes."""
        nodes, (u, v, norm) = self.schema.nodes, self._pairs_with_norms
        is_fixed = np.isin(np.arange(len(nodes)), self.schema.covariates)
        pairs = zip(u.tolist(), v.tolist(), strict=True)
        strengths = self.strengths[: len(norm)].tolist()
        values = (strengths, self._signs, self._partial_correlations, norm.tolist())
        directed = (is_fixed[u] | is_fixed[v]).tolist()
        for (a, b), size, sign, relation, norm_of, fixed in zip(
            pairs, *values, directed, strict=True
        ):
            source, target = self.schema.directed(a, b) if fixed else (a, b)
            kind, ridge = edge_kind(self.schema, a, b), self._has_ridge(a, b)
            names = nodes[source].name, nodes[target].name
            yield Edge(*names, kind, size, sign, relation, norm_of, fixed, ridge=ridge)

    @property
    def _partial_correlations(self) -> list[float | None]:
        """Partial correlations of all edges; None unless both ends are Gaussian and predicted."""
        params, (u, v, _) = self.params, self._pairs_with_norms
        inner = params.nodes.gaussian_nodes.copy()
        inner[list(self.schema.covariates)] = False
        both = np.flatnonzero(inner[u] & inner[v])
        u, v, out = u[both], v[both], np.full(len(u), None, dtype=object)
        start, root = params.nodes.column_start, np.sqrt(params.diagonal)
        out[both] = (self.edge_coef[start[u], start[v]] / (root[u] * root[v])).tolist()
        return list(out)

    @property
    def _signs(self) -> list[str | None]:
        """Signs of all edges, "+" or "-"; None where an edge has no sign: see `_sign_of`."""
        spans, (u, v, _) = self.schema.spans, self._pairs_with_norms
        has_sign = spans.signed | spans.spiked_nodes
        out = np.full(len(u), None, dtype=object)
        signed = np.flatnonzero(has_sign[u] & has_sign[v])
        u, v = u[signed], v[signed]
        for at, (rows, columns) in self._blocks_of(u, v):
            # Of two levels the second one counts; one shape may be that of several kinds.
            first = np.where(spans.numeric_nodes, 0, spans.width - 1)
            counts = (rows >= (spans.column_start[u[at]] + first[u[at]])[:, None, None]) & (
                columns >= (spans.column_start[v[at]] + first[v[at]])[:, None, None]
            )
            sign = np.sign(self.edge_coef[rows, columns])
            for mark, value in (("+", 1.0), ("-", -1.0)):
                same = ((sign == value) | ~counts).all(axis=(1, 2))
                out[signed[at[same]]] = mark
        return list(out)

    def _sign_of(self, block: Floats, *nodes: int) -> str | None:
        """Sign of a block with an axis for each of these nodes, where it has one.

        That is the sign of what the second level of binary ends does, and of both parts of a hurdle
        column.
        """
        spans = self.schema.spans
        if not all(spans.signed[node] or spans.spiked_nodes[node] for node in nodes):
            return None
        last = (slice(None) if spans.numeric_nodes[node] else slice(-1, None) for node in nodes)
        signs = np.unique(np.sign(block[tuple(last)]))
        return {1.0: "+", -1.0: "-"}.get(float(signs[0])) if len(signs) == 1 else None

    def interaction(
        self, a: str, b: str, moderator: str | None = None, *, standardised: bool = False
    ) -> Interaction:
        """Parameters between two columns, with level names; with a moderator, their deviations.

        Deviations by a categorical moderator come level by level, one table below the other.
        Standardised: with numbers and scores, moderators too, in standard deviations.
        """
        u, v = self.schema.node_index(a), self.schema.node_index(b)
        if u == v:
            raise ParameterError(
                f"an interaction needs two different columns. Got {quoted(a)} twice."
            )
        rows, columns = self.axis(u), self.axis(v)
        if moderator is None:
            nodes = self.params.nodes
            block = self.edge_coef[nodes.columns_of(u), nodes.columns_of(v)]
            unit = np.outer(self.units_of(u), self.units_of(v)) if standardised else 1.0
            return Interaction(a, b, rows, columns, block * unit)
        node = self.schema.node_index(moderator)
        if node not in self.moderators:
            names = [quoted(self.schema.nodes[m].name) for m in self.moderators]
            raise ParameterError(
                f"{quoted(moderator)} is not a moderator of this model; "
                + (f"its moderators are {', '.join(names)}." if names else "it has none.")
            )
        values = self._deviation(self.moderators.index(node), u, v)
        parts = self.axis(node)
        if not self.schema.spans.numeric_nodes[node]:
            parts = tuple(f"{moderator} = {level}" for level in self.schema.nodes[node].level_names)
        if len(parts) > 1 or not self.schema.spans.numeric_nodes[node]:
            rows = tuple(f"{row} | {part}" for part in parts for row in rows)
        if standardised:
            unit = np.outer(self.units_of(u), self.units_of(v))
            values = values * unit * self.units_of(node)[: len(values), None, None]
        return Interaction(a, b, rows, columns, values.reshape(len(rows), len(columns)))

    def units_of(self, node: int) -> Floats:
        """Standard deviations of the design columns of a node; 1 for indicators."""
        nodes = self.params.nodes
        columns, width = nodes.columns_of(node), int(nodes.width[node])
        if not nodes.numeric_nodes[node]:
            return np.ones(width)
        return np.asarray(self.column_scales[columns] / np.sqrt(width))

    def axis(self, node: int) -> tuple[str, ...]:
        """Names of what the other columns see of a node: its own, or those of its levels."""
        column = self.schema.nodes[node]
        return self.schema.spans.kinds[node].axis(column.name, column.level_names)

    # -- new data ----------------------------------------------------------------------------------

    @property
    def n_observed(self) -> float:
        """Rows behind the model; a given one is exact, so an impossible level stays impossible."""
        return self.report.total_weight if self.report.was_fitted else np.inf

    def node_losses(self, design: Design) -> dict[str, float]:
        """Mean negative log conditional likelihood per column, in the table's order."""
        loss = mean_losses(
            self.params, design.numbers, design.codes, design.weights, self.n_observed
        )
        named = {node.name: float(x) for node, x in zip(self.schema.nodes, loss, strict=True)}
        return {name: named[name] for name in self.schema.targets}

    def points(self, value: Point | None = None) -> Points:
        """Functions that turn the conditional of every node into predictions.

        `value` names the number that predicts ordered values; by default, that of their kind.
        """
        kinds, columns = self.schema.spans.kinds, self.schema.nodes
        return {
            node: partial(kind.point, which=value or kind.predicted_by, numbers=column.numbers)
            for node, (kind, column) in enumerate(zip(kinds, columns, strict=True))
        }

    def predict(self, design: Design, points: Points | None = None) -> dict[int, NDArray[Any]]:
        """Nodes given all others: numbers, or codes of values, as `points` say; all by default."""
        points = self.points() if points is None else points
        return predictions(self.params, design.numbers, design.codes, points, self.n_observed)

    def predict_proba(self, design: Design, column: str) -> Floats:
        """(n, values) probabilities of the values of one column given all others."""
        node = self.schema.node_index(column)
        if self.schema.spans.is_gaussian(node):
            raise ParameterError(
                f"{quoted(column)} is {self.schema.nodes[node].kind}, so it has no level "
                "probabilities; use predict."
            )
        at = self.schema.spans.place(node)
        return probabilities(self.params, design.numbers, design.codes, at, self.n_observed)

    # -- the joint distribution --------------------------------------------------------------------

    @property
    def pairwise_params(self) -> Params:
        """The parameters of one density, valid or not; separate regressions have none.

        Nor has a model whose edges vary, but at given values of its moderators.
        """
        self.require_joint()
        self.require_fixed_edges()
        return self.params

    @property
    def completing_params(self) -> Params:
        """What rows with gaps are completed by: separate regressions agree on each edge for it."""
        self.require_fixed_edges()
        return self.params.pairwise

    def require_fixed_edges(self) -> None:
        """Raise ParameterError where edges vary with moderators."""
        if self.moderators:
            names = [self.schema.nodes[node].name for node in self.moderators]
            values = ", ".join(f"{quoted(name)}: ..." for name in names)
            raise ParameterError(
                "the edges vary with moderators, so that there is a joint distribution only at "
                f"given values of these: use model.at({{{values}}})."
            )

    def require_joint(self) -> None:
        """Raise DistributionError for separate regressions."""
        if self.params.nodewise:
            raise DistributionError(
                "separate regressions have no joint distribution: what two columns say about each "
                "other need not agree. Predictions and scores of complete rows need none. To "
                "fix: fit with another loss, such as 'pseudolikelihood'"
            )

    @cached_property
    def joint_terms(self) -> NodeTerms | None:
        """Node terms that give the joint distribution the table's margins; None: those fitted."""
        from mixedgm.joint.margins import matched

        if self.known_terms is not None or self.margins is None:
            return self.known_terms
        return with_names(self.schema, matched, self.pairwise_params, self.margins)

    @cached_property
    def matched_params(self) -> Params:
        """The parameters of the joint distribution, valid or not."""
        terms = self.joint_terms
        return self.pairwise_params if terms is None else terms.put_into(self.pairwise_params)

    @property
    def joint_params(self) -> Params:
        """Parameters of the joint distribution, checked if moderators were given values."""
        if self.report.at:
            self._refuse_indefinite()
        return self.matched_params

    @property
    def joint_density(self) -> ConditionalGaussian:
        """Joint density in the form of exact answers; DistributionError where there is none."""
        params = self.joint_params
        return with_names(self.schema, lambda: params.joint)

    @property
    def joint_form(self) -> ConditionalGaussian | Params:
        """Joint distribution to sample from: parameters with hurdle columns, else the density."""
        params = self.joint_params
        return params if params.nodes.n_spiked else params.joint

    def _refuse_indefinite(self) -> None:
        """Raise where the precision is not positive definite at these values of the moderators."""
        from mixedgm.joint.validity import factor

        inside = self.schema.real_targets
        try:
            factor(self.params.real_precision[np.ix_(inside, inside)])
        except DistributionError as error:
            named = error.named([self.schema.nodes[s].name for s in inside])
            raise DistributionError(f"at {self.report.at}, {named}") from None

    def draw(self, n: int, rng: np.random.Generator, method: Method = "auto") -> Draw:
        """Draw rows: continuous columns, and level codes of the categorical ones."""
        from mixedgm.joint.sampled import draw

        if self.schema.covariates:
            raise ParameterError(
                "the model has no distribution of its covariates, so that rows can only be drawn "
                "given their values."
            )
        return with_names(self.schema, draw, self.joint_form, n, rng=rng, method=method)
