"""Two graphs over the same columns in -> the edges that both have, or only one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError, near_matches
from mixedgm.fitted import FittedModel
from mixedgm.printable import quoted

__all__ = ["GraphComparison", "compare_graphs", "read_graph"]

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


def compare_graphs(truth: Any, estimate: Any) -> GraphComparison:
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


def _ends(pair: Any, what: str) -> Pair:
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
