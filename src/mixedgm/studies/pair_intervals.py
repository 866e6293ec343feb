"""Every pair's estimates in a table and in its resamples -> intervals that cover true values.

An interval is the estimate plus or minus a multiple of its standard error, which is half the width
of the middle 68 % of the resamples: a resample in which a cell has hardly any rows does not count
for more than its share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.inference.strength import ConditionalInformation, RestRows
from mixedgm.inference.strength import freedom as pair_freedom
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.params import Params
from mixedgm.studies.bootstrap_replicates import edge_names
from mixedgm.studies.edge_strengths import EstimatedPair
from mixedgm.table.assemble import Columns

__all__ = ["PairReplicates"]

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
        inside = ConditionalInformation(self.params, self.rows, fitted.schema.covariates)
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
            if nodes.is_gaussian(node):
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
    if not (isinstance(level, (float, int)) and 0.0 < level < 1.0):
        raise ParameterError.must_be("level", "a number in (0, 1)", level)
    width = float(norm.isf(0.5 * (1.0 - level))) * se
    return {"estimate": estimate, "se": se, "lower": estimate - width, "upper": estimate + width}
