"""The estimate and its replicates -> columns of the tables that a bootstrap reports."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.printable import quoted
from mixedgm.studies.bootstrap_replicates import Replicates, edge_names, sign_names
from mixedgm.studies.centrality import MEASURES
from mixedgm.table.assemble import Columns
from mixedgm.table.schema import Schema


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
    return {
        **edge_names(material.schema, samples.ends[order]),
        "weight": estimate.weights[0, order],
        "sign": sign_names(sign),
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
    terms = _node_terms(material)
    rows += [(name, None, parameter, level, None) for _, name, parameter, level in terms]
    edge = np.concatenate(at) if at else np.zeros(0, dtype=np.int64)
    nodes = [k for k, *_ in terms]
    values = np.hstack([samples.values[:, edge], samples.node_terms[:, nodes]])
    here = np.hstack([estimate.values[0, edge], estimate.node_terms[0, nodes]])
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


def _node_terms(material: Material) -> list[tuple[int, str, str, str | None]]:
    """Position, column, name and level of every node term of a target, by position."""
    schema, terms = material.schema, list[tuple[int, str, str, str | None]]()
    for node, column in enumerate(schema.nodes):
        labels = [("bias", level) for level in column.level_names or (None,)]
        if schema.spans.is_gaussian(node):
            labels.append(("precision", None))
        if node not in schema.covariates:
            at = material.estimate.layout.node_terms_of(node).tolist()
            terms += [(k, column.name, *label) for k, label in zip(at, labels, strict=True)]
    return sorted(terms)


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
    places = np.flatnonzero((material.replicates.ends == wanted).all(axis=1))
    if len(places) == 0:
        raise ParameterError(
            f"{quoted(edge[0])} and {quoted(edge[1])} have no edge, neither in the model nor in "
            "any resample; edges() lists those that there are."
        )
    return int(places[0])


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
    unsigned = (estimate.weights[0] > 0.0) & ~estimate.has_sign
    signed = estimate.layout.nodes.signed.copy()
    signed[estimate.ends[unsigned].ravel()] = False
    return signed


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


def degenerate_columns(material: Material) -> Columns:
    """In how many resamples a column was constant, or lacked a level that the table has."""
    estimate, samples = material.estimate, material.replicates
    constant = ((samples.scales == 0.0) & (estimate.scales[0] > 0.0)).sum(axis=0)
    lacking = samples.lacking(~estimate.lost_levels[0]).sum(axis=0)
    nodes = np.flatnonzero(constant + lacking)
    return {
        "column": [material.names[k] for k in nodes],
        "constant": constant[nodes],
        "missing_levels": lacking[nodes],
    }


# -- case-dropping ---------------------------------------------------------------------------------


def correlations(material: Material) -> dict[str, Floats]:
    """(B,) Pearson correlation of every resample with the whole table, by statistic.

    Edge weights are compared over all pairs of columns, those without an edge included, and with
    their signs where they have one.  A correlation that does not exist, because all values of a
    resample are equal, counts as 0; where the whole table has none, or fewer than three values, it
    is NaN.
    """
    estimate, samples = material.estimate, material.replicates
    n_pairs = estimate.layout.n_groups
    absent = np.zeros((len(samples), n_pairs - samples.signed.shape[1]))
    by_statistic = {
        "edge_weights": _correlation(
            np.append(estimate.signed[0], absent[0] if len(absent) else []),
            np.hstack([samples.signed, absent]),
        )
    }
    known = has_influence(estimate)
    for measure in MEASURES:
        nodes = known if measure == "expected_influence" else slice(None)
        by_statistic[measure] = _correlation(
            estimate.centrality[measure][0, nodes], samples.centrality[measure][:, nodes]
        )
    return by_statistic


def _correlation(here: Floats, samples: Floats) -> Floats:
    if len(here) < 3 or np.ptp(here) == 0.0:
        return np.full(len(samples), np.nan)
    x = here - here.mean()
    y = samples - samples.mean(axis=1, keepdims=True)
    scale = np.sqrt((x @ x) * (y**2).sum(axis=1))
    varies = np.ptp(samples, axis=1) > 0.0
    return np.where(varies, (y @ x) / np.where(varies, scale, 1.0), 0.0)


def stability_columns(material: Material, dropped: Floats, level: float) -> Columns:
    """One entry per statistic and share of dropped rows."""
    tail = (1.0 - level) / 2.0
    rows = []
    for name, values in correlations(material).items():
        for share in np.unique(dropped):
            here = values[dropped == share]
            low, high = np.quantile(here, [tail, 1.0 - tail])
            rows.append((name, float(share), len(here), float(here.mean()), low, high))
    statistic, share_, count, mean, low_, high_ = zip(*rows, strict=True) if rows else [()] * 6
    return {
        "statistic": list(statistic),
        "dropped": np.array(share_, dtype=np.float64),
        "n_resamples": np.array(count, dtype=np.int64),
        "mean": np.array(mean, dtype=np.float64),
        "lower": np.array(low_, dtype=np.float64),
        "upper": np.array(high_, dtype=np.float64),
    }


def cs_coefficients(
    material: Material, dropped: Floats, correlation: float, probability: float
) -> dict[str, float]:
    """Largest share of rows whose loss leaves the correlation high with this probability.

    NaN where the statistic does not vary over the whole table's nodes or pairs.
    """
    coefficients = {}
    for name, values in correlations(material).items():
        shares = [
            float(share)
            for share in np.unique(dropped)
            if (values[dropped == share] >= correlation).mean() >= probability
        ]
        coefficients[name] = np.nan if np.isnan(values).any() else max(shares, default=0.0)
    return coefficients
