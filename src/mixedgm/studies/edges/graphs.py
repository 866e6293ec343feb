"""Two graphs -> the edges they share; a graph and ranges -> parameters drawn at random."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixedgm.base.errors import ParameterError, near_matches
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import quoted
from mixedgm.families import KINDS, indicator_ends
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.given_parameters import IN_TURN, schema_of
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.penalty.weights import EDGE_KINDS, edge_kind
from mixedgm.table.declarations import declared
from mixedgm.table.schema import Schema

Pair = tuple[str, str]
_SHOWN = 10


@dataclass(frozen=True)
class GraphComparison:
    """How an estimated graph differs from the true one.

    Parameters
    ----------
    true_edges : tuple of (str, str)
        Edges that both have.
    false_edges : tuple of (str, str)
        Edges of the estimate that the truth does not have.
    missed_edges : tuple of (str, str)
        Edges of the truth that the estimate does not have.
    """

    true_edges: tuple[Pair, ...]
    false_edges: tuple[Pair, ...]
    missed_edges: tuple[Pair, ...]

    @property
    def precision(self) -> float:
        """Share of the estimated edges that are true; NaN when none was estimated."""
        return _share(len(self.true_edges), len(self.true_edges) + len(self.false_edges))

    @property
    def recall(self) -> float:
        """Share of the true edges that were found; NaN when the truth has none."""
        return _share(len(self.true_edges), len(self.true_edges) + len(self.missed_edges))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN when both graphs are empty."""
        return _share(2 * len(self.true_edges), 2 * len(self.true_edges) + self.hamming)

    @property
    def hamming(self) -> int:
        """Hamming distance: pairs of columns on which the graphs disagree."""
        return len(self.false_edges) + len(self.missed_edges)

    def __repr__(self) -> str:
        lines = [
            f"{len(self.true_edges)} true, {len(self.false_edges)} false, "
            f"{len(self.missed_edges)} missed edges: precision {self.precision:.3g}, recall "
            f"{self.recall:.3g}, F1 {self.f1:.3g}, Hamming distance {self.hamming}"
        ]
        for name, pairs in (("false", self.false_edges), ("missed", self.missed_edges)):
            if pairs:
                lines.append(f"  {name:<6}  {_listed(pairs)}")
        return "\n".join(lines)


def compare_graphs(truth: object, estimate: Any) -> GraphComparison:
    """Compare an estimated graph with the true one, edge by edge.

    Parameters
    ----------
    truth, estimate : MixedGraphicalModel, networkx.Graph, or sequence of pairs of names
        Only the pairs count; weights, signs and the order within a pair do not.  Names that are
        not text, such as the numbers of a networkx graph, stand for the text they print as.

    Returns
    -------
    GraphComparison
        `precision`, `recall`, `f1`, `hamming`, `true_edges`, `false_edges`, `missed_edges`.

    Examples
    --------
    >>> compare_graphs([("a", "b"), ("b", "c")], [("b", "a"), ("a", "c")])
    1 true, 1 false, 1 missed edges: precision 0.5, recall 0.5, F1 0.5, Hamming distance 2
      false   a - c
      missed  b - c
    """
    true_pairs, true_nodes = read_graph(truth, "truth")
    pairs, nodes = read_graph(estimate, "estimate")
    _check_names(true_nodes or _names(true_pairs), nodes, "estimate")
    _check_names(nodes or _names(pairs), true_nodes, "truth")
    return GraphComparison(
        tuple(pair for key, pair in true_pairs.items() if key in pairs),
        tuple(pair for key, pair in pairs.items() if key not in true_pairs),
        tuple(pair for key, pair in true_pairs.items() if key not in pairs),
    )


def read_graph(graph: Any, what: str) -> tuple[dict[frozenset[str], Pair], tuple[str, ...] | None]:
    """Return the edges by their set of ends, and the nodes where the graph says which it has."""
    model = getattr(graph, "fitted_", graph)
    if isinstance(model, FittedModel):
        pairs: Iterable[Any] = [
            (edge.source, edge.target) for edge in model.edges if edge.moderator is None
        ]
        nodes: tuple[str, ...] | None = model.schema.names
    elif hasattr(graph, "edges") and hasattr(graph, "nodes") and hasattr(graph, "adj"):
        if graph.is_directed():
            raise ParameterError(f"{what} is a directed graph; pass {what}.to_undirected().")
        pairs, nodes = list(graph.edges()), tuple(str(node) for node in graph.nodes())
    elif isinstance(graph, Iterable) and not isinstance(graph, str):
        pairs, nodes = list(graph), None
    else:
        raise ParameterError.must_be(
            what, "a fitted model, a networkx graph, or a sequence of pairs of names", graph
        )
    by_ends: dict[frozenset[str], Pair] = {}
    for pair in pairs:
        a, b = _ends(pair, what)
        by_ends.setdefault(frozenset((a, b)), (a, b))
    return by_ends, nodes


def _ends(pair: object, what: str) -> Pair:
    """Return the two names; an `Edge` of a model is a longer tuple that starts with them."""
    if isinstance(pair, (tuple, list, np.ndarray)) and len(pair) >= 2:
        a, b = str(pair[0]), str(pair[1])
        if a != b:
            return a, b
    raise ParameterError.must_be(f"an edge of {what}", "a pair of two different names", pair)


def _names(pairs: dict[frozenset[str], Pair]) -> tuple[str, ...]:
    return tuple(end for pair in pairs.values() for end in pair)


def _check_names(names: tuple[str, ...], nodes: tuple[str, ...] | None, graph: str) -> None:
    """Raise where a column of one graph is not one of the other's: a typo or another table."""
    for name in names:
        if nodes is not None and name not in nodes:
            raise ParameterError(
                f"{graph} has no column {quoted(name)}; {near_matches(name, nodes)}"
            )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _listed(pairs: tuple[Pair, ...]) -> str:
    shown = ", ".join(f"{a} - {b}" for a, b in pairs[:_SHOWN])
    return shown if len(pairs) <= _SHOWN else f"{shown} and {len(pairs) - _SHOWN} more"


# -- random graph ----------------------------------------------------------------------------------

Range = tuple[float, float]

SIZES: Mapping[str, Range] = {
    kind: (0.4, 0.6) if indicator_ends(kind) else (0.2, 0.3) for kind in EDGE_KINDS
}
"""By default around the values of the ladder of Lee and Hastie: 0.25, 0.5 and 0.5."""

_SMALLEST = 0.25  # eigenvalue of a random precision matrix with a unit diagonal


def schema_of_graph(graph: object, types: Any = None) -> Schema:
    """Return one column per node, named by the text that it prints as.

    Nodes that `types` does not name have what their attributes `kind` and `levels` say, as in
    ``model.to_networkx()``; where a graph has none, its nodes are continuous and binary in turn.
    """
    pairs, nodes = read_graph(graph, "graph")
    names = list(nodes or dict.fromkeys(end for pair in pairs.values() for end in pair))
    if not names:
        raise ParameterError.must_be("graph", "a graph with at least one node", graph)
    columns = _by_attribute(graph) or {name: IN_TURN[at % 2] for at, name in enumerate(names)}
    if isinstance(types, Mapping):
        given = {str(name): what for name, what in types.items()}
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ParameterError(
                f"types names {quoted(unknown[0])}, which is not a node of the graph."
            )
    elif types is None:
        given = {}
    elif isinstance(types, Sequence) and not isinstance(types, str) and len(types) == len(names):
        given = dict(zip(names, types, strict=True))
    else:
        raise ParameterError.must_be(
            "types", f"a dict by node, or a sequence with one entry for each of {len(names)}", types
        )
    return schema_of({name: given.get(name, columns[name]) for name in names})


def _by_attribute(graph: object) -> dict[str, Any]:
    """Return what the nodes say about themselves, nothing unless all of them do."""
    if not hasattr(graph, "nodes") or not hasattr(graph, "adj"):
        return {}
    columns: dict[str, Any] = {}
    for node, attributes in graph.nodes(data=True):
        levels, kind = attributes.get("levels", 2), attributes.get("kind")
        if kind not in KINDS:
            return {}
        levels = json.loads(levels) if isinstance(levels, str) else levels
        columns[str(node)] = declared(kind, levels, attributes.get("largest", 10))
    return columns


def random_params(
    graph: object, schema: Schema, rng: np.random.Generator, *, sizes: Any = None, bias: float = 0.0
) -> tuple[Params, tuple[str, ...]]:
    """Return parameters with exactly these edges, and what had to be changed.

    The precision matrix has a unit diagonal.  Where it would not be positive definite enough
    (smallest eigenvalue below 0.25), all of its off-diagonal entries are made smaller alike.
    """
    ranges = _ranges(sizes)
    ensure(np.isfinite(bias) and bias >= 0.0, "bias", "a number in [0, inf)", bias)
    params = Params.independent(schema.spans)
    for a, b in read_graph(graph, "graph")[0].values():
        u, v = sorted((schema.node_index(a), schema.node_index(b)))
        size = rng.uniform(*ranges[edge_kind(schema, u, v)])
        _put(params, u, v, size, rng)
    precision, notes = _definite(params.precision)
    # Every block is drawn from the same stream, so a graph with one edge more differs after it.
    biases = rng.uniform(-bias, bias, size=len(params.bias))
    return replace(params.with_precision(precision), bias=biases), notes


def _ranges(sizes: Any) -> dict[str, Range]:
    """Return low and high by kind of edge."""
    given: Mapping[Any, Any] = {}
    if sizes is not None:
        named = isinstance(sizes, Mapping)
        given = sizes if named else dict.fromkeys(EDGE_KINDS, sizes)
    ranges = dict(SIZES)
    for kind, value in given.items():
        ensure(kind in EDGE_KINDS, "a kind in sizes", f"one of {EDGE_KINDS}", kind)
        try:
            low, high = (float(end) for end in (value if np.iterable(value) else (value, value)))
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not 0.0 < low <= high < np.inf:
            raise ParameterError.must_be(
                "sizes", "positive numbers (low, high), or a dict of them by kind", sizes
            )
        ranges[kind] = low, high
    return ranges


def _put(params: Params, u: int, v: int, size: float, rng: np.random.Generator) -> None:
    """Write a random block whose entries have this root mean square into the blank parameters."""
    nodes = params.nodes
    sides = nodes.columns_of(u), nodes.columns_of(v)
    indicators = [not nodes.kinds[node].is_numeric for node in (u, v)]
    if any(indicators):
        block = _contrast((int(nodes.width[u]), int(nodes.width[v])), indicators, size, rng)
    else:
        block = np.array([[-size * rng.choice([-1.0, 1.0])]])
    params.coef[sides[0], sides[1]] = block
    params.coef[sides[1], sides[0]] = block.T


def _contrast(
    shape: tuple[int, int], indicators: Sequence[bool], size: float, rng: np.random.Generator
) -> Floats:
    """A random block that sums to zero over the levels of each side that has some."""
    block = rng.normal(size=shape)
    for axis in (1, 0):
        if indicators[axis]:
            block -= block.mean(axis=axis, keepdims=True)
    return np.asarray(size * block / np.sqrt(np.mean(block**2)))


def _definite(precision: Floats) -> tuple[Floats, tuple[str, ...]]:
    from mixedgm.joint.validity import smallest_eigenvalue

    smallest = smallest_eigenvalue(precision)
    if smallest >= _SMALLEST:
        return precision, ()
    factor = (1.0 - _SMALLEST) / (1.0 - smallest)
    shrunk = factor * precision
    np.fill_diagonal(shrunk, 1.0)
    note = (
        f"continuous edges were multiplied by {factor:.3g}, so that the precision matrix is "
        "positive definite"
    )
    return shrunk, (note,)
