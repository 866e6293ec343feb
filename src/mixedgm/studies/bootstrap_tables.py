"""The estimate and its replicates -> columns of the tables that a bootstrap reports."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.penalty.factors import edge_kind
from mixedgm.printable import quoted
from mixedgm.studies.bootstrap_replicates import Replicates
from mixedgm.studies.centrality import MEASURES
from mixedgm.table.assemble import Columns
from mixedgm.table.schema import Schema

_SIGNS = {1.0: "+", -1.0: "-"}


class Material(NamedTuple):
    """What all tables are made from: the whole table's estimate (one row) and the resamples."""

    schema: Schema
    estimate: Replicates
    replicates: Replicates

    @property
    def names(self) -> list[str]:
        """Of the nodes."""
        return [node.name for node in self.schema.nodes]


def interval(samples: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentile interval of every column of the samples."""
    if not (isinstance(level, (float, int)) and 0.0 < level < 1.0):
        raise ParameterError.must_be("level", "a number in (0, 1)", level)
    tail = (1.0 - level) / 2.0
    # "lower" and "higher" take values as they are, so that -inf does not become NaN.
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0)
    if np.isnan(low).any() or np.isnan(high).any():
        low = np.where(np.isnan(low), np.quantile(samples, tail, axis=0, method="lower"), low)
        high = np.where(
            np.isnan(high), np.quantile(samples, 1.0 - tail, axis=0, method="higher"), high
        )
    return low, high


def strongest_first(material: Material) -> Ints:
    """Positions of the pairs: by weight in the estimate, then by how often they are found."""
    inclusion = (material.replicates.weights > 0.0).mean(axis=0)
    return np.lexsort((-inclusion, -material.estimate.weights[0]))


def edges_columns(material: Material, level: float) -> Columns:
    """One entry per pair that has an edge in the estimate or in any resample."""
    estimate, samples = material.estimate, material.replicates
    order = strongest_first(material)
    signed, here = samples.signed[:, order], estimate.signed[0, order]
    low, high = interval(signed, level)
    sign = np.where(samples.has_sign[order], np.sign(here), 0.0)
    agrees = (np.sign(signed) == sign).mean(axis=0)
    names, ends = material.names, [material.schema.directed(*pair) for pair in samples.ends[order]]
    return {
        "source": [names[u] for u, _ in ends],
        "target": [names[v] for _, v in ends],
        "kind": [edge_kind(material.schema, int(u), int(v)) for u, v in ends],
        "weight": estimate.weights[0, order],
        "sign": [_SIGNS.get(s) for s in sign.tolist()],
        "inclusion": (signed != 0.0).mean(axis=0),
        "same_sign": np.where(sign != 0.0, agrees, np.nan),
        "estimate": here,
        "mean": signed.mean(axis=0),
        "lower": low,
        "upper": high,
    }


# -- single parameters -----------------------------------------------------------------------------


def parameters_columns(material: Material, level: float) -> Columns:
    """One entry per parameter: edges as in `edges_columns`, then biases and precisions.

    Covariates have no terms of their own.
    """
    estimate, samples = material.estimate, material.replicates
    names, levels = material.names, [node.level_names for node in material.schema.nodes]
    rows: list[tuple[str, str | None, str, str | None, str | None]] = []
    at: list[NDArray[np.int64]] = []
    for k in strongest_first(material):
        u, v = (int(end) for end in samples.ends[k])
        rows += [
            (names[u], names[v], "interaction", a, b)
            for a in levels[u] or (None,)
            for b in levels[v] or (None,)
        ]
        span = samples.columns_of(int(k))
        at.append(np.arange(span.start, span.stop))
    terms = _node_terms(material.schema)
    own = [k for k, (node, *_) in enumerate(terms) if node not in material.schema.covariates]
    rows += [(names[terms[k][0]], None, terms[k][1], terms[k][2], None) for k in own]
    edge = np.concatenate(at) if at else np.zeros(0, dtype=np.int64)
    values = np.hstack([samples.values[:, edge], samples.node_terms[:, own]])
    here = np.hstack([estimate.values[0, edge], estimate.node_terms[0, own]])
    low, high = interval(values, level)
    return {
        "source": [row[0] for row in rows],
        "target": [row[1] for row in rows],
        "parameter": [row[2] for row in rows],
        "source_level": [row[3] for row in rows],
        "target_level": [row[4] for row in rows],
        "estimate": here,
        "mean": values.mean(axis=0),
        "lower": low,
        "upper": high,
    }


def _node_terms(schema: Schema) -> list[tuple[int, str, str | None]]:
    """Node, name and level of every node term, in the order of the replicates."""
    p, nodes = schema.n_gaussian, schema.nodes
    terms: list[tuple[int, str, str | None]] = []
    terms += [(s, "bias", None) for s in range(p)]
    terms += [(s, "precision", None) for s in range(p)]
    terms += [(v, "bias", name) for v in range(p, len(nodes)) for name in nodes[v].level_names]
    return terms


# -- differences -----------------------------------------------------------------------------------


class EdgeDifference(NamedTuple):
    """How much heavier the first edge is than the second, with its interval.

    `significant` means that the interval leaves zero out.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    difference: float
    lower: float
    upper: float
    significant: bool


def position(material: Material, edge: tuple[str, str]) -> int:
    """Where this pair is among the replicates; an error says which pairs there are."""
    if not (isinstance(edge, (tuple, list)) and len(edge) == 2):
        raise ParameterError.must_be("an edge", "a pair of column names", edge)
    wanted = sorted(material.schema.node_index(name) for name in edge)
    found = np.flatnonzero((material.replicates.ends == wanted).all(axis=1))
    if len(found) == 0:
        raise ParameterError(
            f"{quoted(edge[0])} and {quoted(edge[1])} have no edge, neither in the "
            f"model nor in any resample; "
            "edges() lists those that there are."
        )
    return int(found[0])


def difference(material: Material, pair: tuple[int, int], level: float) -> EdgeDifference:
    """Compare the weights of two pairs, given by position."""
    columns = _differences(material, [pair], level)
    names = material.names
    first, second = (
        (names[material.replicates.ends[k, 0]], names[material.replicates.ends[k, 1]]) for k in pair
    )
    here, low, high = (float(column[0]) for column in columns)
    return EdgeDifference(first, second, here, low, high, not low <= 0.0 <= high)


def differences_columns(material: Material, level: float) -> Columns:
    """Every two edges of the estimate, heaviest first."""
    order = [int(k) for k in strongest_first(material) if material.estimate.weights[0, k] > 0.0]
    pairs = list(combinations(order, 2))
    here, low, high = _differences(material, pairs, level)
    names, ends = material.names, material.replicates.ends
    return {
        "first_source": [names[ends[a, 0]] for a, _ in pairs],
        "first_target": [names[ends[a, 1]] for a, _ in pairs],
        "second_source": [names[ends[b, 0]] for _, b in pairs],
        "second_target": [names[ends[b, 1]] for _, b in pairs],
        "difference": here,
        "lower": low,
        "upper": high,
        "significant": (low > 0.0) | (high < 0.0),
    }


def _differences(
    material: Material, pairs: list[tuple[int, int]], level: float
) -> tuple[Floats, Floats, Floats]:
    """Differences of weights and their intervals, a few pairs at a time."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    weights, here = material.replicates.weights, material.estimate.weights[0]
    low, high = np.empty(len(pairs)), np.empty(len(pairs))
    step = max(1, 2**22 // max(1, len(weights)))
    for at in range(0, len(pairs), step):
        part = slice(at, at + step)
        low[part], high[part] = interval(weights[:, first[part]] - weights[:, second[part]], level)
    return here[first] - here[second], low, high


# -- nodes -----------------------------------------------------------------------------------------


def has_influence(estimate: Replicates) -> NDArray[np.bool_]:
    """Nodes whose edges all have a sign in the estimate: they have an expected influence."""
    width = estimate.layout.width
    unsigned = (estimate.weights[0] > 0.0) & ~estimate.has_sign
    found = width <= 2
    found[estimate.ends[unsigned].ravel()] = False
    return np.asarray(found)


def centrality_columns(material: Material, level: float) -> Columns:
    """One entry per measure and column of the table."""
    names = material.names
    here, samples = material.estimate.centrality, material.replicates.centrality
    at = [names.index(column.name) for column in material.schema.columns]
    missing = ~has_influence(material.estimate)
    columns: dict[str, list[Floats]] = {"estimate": [], "mean": [], "lower": [], "upper": []}
    for measure in MEASURES:
        low, high = interval(samples[measure], level)
        parts = (here[measure][0], samples[measure].mean(axis=0), low, high)
        for name, part in zip(columns, parts, strict=True):
            part = np.where(missing, np.nan, part) if measure == "expected_influence" else part
            columns[name].append(part[at])
    return {
        "column": [names[v] for v in at] * len(MEASURES),
        "measure": [measure for measure in MEASURES for _ in at],
        **{name: np.concatenate(parts) for name, parts in columns.items()},
    }


def degenerate_columns(material: Material, observed: NDArray[np.bool_]) -> Columns:
    """In how many resamples a column was constant, or lacked a level that the table has."""
    schema, samples = material.schema, material.replicates
    constant = (samples.scales == 0.0) & (material.estimate.scales[0] > 0.0)
    bias = samples.node_terms[:, 2 * schema.n_gaussian :]
    lost = np.isneginf(bias) & observed
    start = np.concatenate([[0], np.cumsum(schema.n_levels)])
    counts = [0] * schema.n_gaussian + [
        int(lost[:, start[j] : start[j + 1]].any(axis=1).sum()) for j in range(schema.n_discrete)
    ]
    found = [k for k in range(len(counts)) if counts[k] or constant[:, k].any()]
    return {
        "column": [material.names[k] for k in found],
        "constant": np.array([constant[:, k].sum() for k in found], dtype=np.int64),
        "missing_levels": np.array([counts[k] for k in found], dtype=np.int64),
    }
