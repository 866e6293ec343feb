"""The estimate and its replicates -> Bootstrap: tables, tests, pictures and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError, near_matches
from mixedgm.base.parameters import ensure, ensure_in
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.pictures.canvas import known_options
from mixedgm.studies.resampling.replicates import (
    MEASURES,
    Failure,
    PairReplicates,
    Replicates,
    edge_names,
    failure_lines,
    sign_names,
)
from mixedgm.table.read import Columns, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHOWN = 12
_BESIDE = {"free": "all others", "graph": "the edges that pass a test"}


class EdgeDifference(NamedTuple):
    """How much stronger the first edge is than the second, with its interval.

    `significant` means that the interval leaves zero out.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    difference: float
    lower: float
    upper: float
    significant: bool


def interval(samples: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentile interval of every column of the samples."""
    ensure_in("(0, 1)", level=level)
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


def _interval_columns(estimate: Floats, samples: Floats, level: float) -> dict[str, Floats]:
    low, high = interval(samples, level)
    return {"estimate": estimate, "mean": samples.mean(axis=0), "lower": low, "upper": high}


def _sign_columns(sign: Floats, samples: Floats, found: NDArray[np.bool_]) -> dict[str, Any]:
    """Signs, how often edges are found in the samples, and how often with the same sign."""
    agrees = (samples == sign).mean(axis=0)
    return {
        "sign": sign_names(sign),
        "inclusion": found.mean(axis=0),
        "same_sign": np.where(sign != 0.0, agrees, np.nan),
    }


def _correlation(here: Floats, samples: Floats) -> Floats:
    if len(here) < 3 or np.ptp(here) == 0.0:
        return np.full(len(samples), np.nan)
    x = here - here.mean()
    y = samples - samples.mean(axis=1, keepdims=True)
    scale = np.sqrt((x @ x) * (y**2).sum(axis=1))
    varies = np.ptp(samples, axis=1) > 0.0
    return np.where(varies, (y @ x) / np.where(varies, scale, 1.0), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """What resampling says about a model; `mixedgm.bootstrap` makes it.

    `intervals()` and `parameters()` say how large edges are: every pair that may have one is
    estimated without shrinkage.  `selection()` says how often the model finds them again.
    `centrality()` and `differences()` are about the graph as the model estimates it, with
    percentile intervals.  Tables are frames of the training table's library.

    Attributes
    ----------
    kind : {"nonparametric", "case-dropping"}
    select : {"fixed", "again"}
    n_boot : int
        Resamples asked for.
    n_done, n_failed, n_unconverged : int
        Resamples fitted, failed, and fitted but short of tol (they count as fitted).
    failures : tuple of Failure
        Number and message of every failed resample.
    replicates : Replicates
        The numbers themselves: `strengths` (resamples, pairs), `ends` (pairs, 2), `values`, ...
    dropped : ndarray (n_done,) or None
        Share of the rows (or clusters) that each resample of a case-dropping bootstrap left out.
    refit : bool
        Whether model and resamples were refitted without penalty.  Without it, strengths in
        `selection()`, `differences()` and `centrality()` are shrunken.
    pair_replicates : PairReplicates or None
        The numbers behind `intervals()` and `parameters()`.
    no_intervals : str
        Why there are none; empty if there are.
    fitted : FittedModel
        The model.
    """

    fitted: FittedModel
    kind: str
    select: str
    n_boot: int
    estimate: Replicates
    replicates: Replicates
    failures: tuple[Failure, ...] = ()
    dropped: Floats | None = None
    refit: bool = False
    pair_replicates: PairReplicates | None = None
    no_intervals: str = ""

    @property
    def n_done(self) -> int:
        """Resamples that were fitted."""
        return len(self.replicates)

    @property
    def n_failed(self) -> int:
        """Resamples that could not be fitted."""
        return len(self.failures)

    @property
    def n_unconverged(self) -> int:
        """Resamples that were fitted, but whose KKT number is above tol."""
        return int((~self.replicates.converged).sum())

    @property
    def nbytes(self) -> int:
        """Memory that the replicates take."""
        pairs = self.pair_replicates
        return self.replicates.nbytes + (0 if pairs is None else pairs.nbytes)

    def _frame(self, columns: Columns) -> Any:
        return frame(columns, self.fitted.library)

    def _only(self, kind: str, what: str) -> None:
        if self.kind == kind:
            return
        methods = {
            "case-dropping": "stability() and cs_coefficient()",
            "nonparametric": "strengths(), intervals(), selection(), differences() and "
            "centrality()",
        }[self.kind]
        raise ParameterError(
            f"{what} needs a bootstrap with kind={quoted(kind)}; this one is {self.kind}: use "
            f"{methods}."
        )

    # -- tables ------------------------------------------------------------------------------------

    def intervals(self, level: float = 0.95) -> Any:
        """How large every edge is: all pairs that may have one, without shrinkage.

        Parameters
        ----------
        level : float
            How often intervals are to cover true values.

        Returns
        -------
        frame of the training table's library
            The most certain pairs first.  Columns: source, target, kind; source_level and
            target_level; estimate, se (over resamples), lower and upper.  Numbers, scores and
            roots of counts count in their standard deviations.  A pair has one row, for two levels
            that of the second against the first (so for two such columns a log odds ratio); where
            a column has three or more levels one for each of them, against their mean; and one for
            each part of a hurdle column, "debt != 0" and "debt".  A pair of which some combination
            of levels has no rows has no interval.  `parameters()` has the same in the data's own
            units.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> age = rng.normal(size=400)
        >>> debt = np.where(rng.random(400) < 1 / (1 + np.exp(2 * age)), 5 + age, 0)
        >>> table = pd.DataFrame({"age": age, "debt": debt + rng.normal(size=400) * (debt != 0)})
        >>> model = mg.MixedGraphicalModel(types={"debt": "hurdle"}).fit(table)
        >>> result = mg.bootstrap(model, table, n_boot=50, random_state=0)
        >>> sizes = result.intervals()
        >>> sizes.assign(negative=sizes["upper"] < 0)[["source", "target_level", "negative"]]
          source target_level  negative
        0    age    debt != 0      True
        1    age         debt     False
        """
        return self._frame(self._pairs("intervals()").intervals(level))

    def strengths(self, level: float = 0.95) -> Any:
        """How strong every edge is: all pairs that may have one, without shrinkage.

        Columns: source, target, kind, strength, lower, upper; strongest first.  Intervals are those
        of `edge_tests`, with the covariance of the resamples.  A pair of which some combination of
        levels has no rows has no interval.
        """
        return self._frame(self._pairs("strengths()").strengths(level))

    def parameters(self, level: float = 0.95) -> Any:
        """Every coefficient of every pair without shrinkage, in the data's own units.

        Columns: source, target, parameter ("interaction" as the model's `interaction` shows it, or
        a column's own "bias" or "precision"), source_level, target_level, estimate, se, lower,
        upper.  Resamples in which a column is constant or lacks a level say nothing about it; where
        most do, there is no interval.
        """
        return self._frame(self._pairs("parameters()").parameters(level))

    def selection(self, *, parts: bool = False) -> Any:
        """How often edges are found again: those of the model and of any resample, strongest first.

        Parameters
        ----------
        parts : bool
            Whether an edge of a hurdle column has a row for each of its parts, whether and how
            much.

        Returns
        -------
        frame of the training table's library
            Columns: source, target, kind, strength and sign as in the model's own `edges()`
            (strength 0 where the model has no such edge); inclusion, the share of the resamples
            that have the edge; same_sign, the share in which it has the model's sign; mean, the
            mean strength over all resamples, 0 where the edge is missing, and negative where its
            sign is.  With `parts`, further source_part and
            target_part ("debt != 0" or "debt"; missing for all other kinds of columns), and norm,
            that of the part: the root of the sum of their squares is the norm of the edge.  Means
            are then those of norms.
        """
        self._only("nonparametric", "selection()")
        return self._frame(self._edge_parts() if parts else self._edges())

    def difference(
        self, first: tuple[str, str], second: tuple[str, str], level: float = 0.95
    ) -> EdgeDifference:
        """Test whether two edges differ in strength, each given by its two columns."""
        self._only("nonparametric", "difference()")
        a, b = (self._position(edge) for edge in (first, second))
        if a == b:
            raise ParameterError(f"a difference needs two edges. Got {quoted(first)} twice.")
        columns = self._strength_differences([(a, b)], level)
        here, low, high = (float(column[0]) for column in columns)
        edge, other = self._ends([a, b])
        return EdgeDifference(edge, other, here, low, high, not low <= 0.0 <= high)

    def differences(self, level: float = 0.95) -> Any:
        """Tests between every two edges of the model.

        Columns: first_source, first_target, second_source, second_target, difference of the
        strengths (without signs), lower, upper, significant.  Nothing is corrected for the number
        of tests.
        """
        self._only("nonparametric", "differences()")
        return self._frame(self._differences(level))

    def centrality(self, level: float = 0.95) -> Any:
        """Centrality of every column of the table.

        Columns: column, measure ("total_strength", "expected_influence", "closeness",
        "betweenness"), estimate, mean, lower, upper.  Expected influence is missing for a
        categorical column with three or more levels, and for one that has an edge to such a column.
        """
        self._only("nonparametric", "centrality()")
        return self._frame(self._centrality(level))

    def degenerate(self) -> Any:
        """Columns that were constant, or lacked one of the table's levels, in some resamples.

        Columns: column, constant and missing_levels, each the number of resamples.
        """
        return self._frame(self._degenerate)

    # -- columns of the tables ---------------------------------------------------------------------

    @cached_property
    def _strongest_first(self) -> Ints:
        """Positions of the pairs: by strength in the estimate, then by how often they are found."""
        inclusion = (self.replicates.norms > 0.0).mean(axis=0)
        return np.lexsort((-inclusion, -self.estimate.norms[0], -self.estimate.strengths[0]))

    def _edges(self) -> Columns:
        """One entry per pair that has an edge in the estimate or in any resample."""
        estimate, samples, order = self.estimate, self.replicates, self._strongest_first
        signed = samples.signed_strengths[:, order]
        found = samples.norms[:, order] > 0.0
        return {
            **edge_names(self.fitted.schema, samples.ends[order]),
            "strength": estimate.strengths[0, order],
            **_sign_columns(estimate.sign[0, order], samples.sign[:, order], found),
            "mean": signed.mean(axis=0),
        }

    def _edge_parts(self) -> Columns:
        """The same with an entry for every part."""
        estimate, samples = self.estimate.parts, self.replicates.parts
        order = np.argsort(np.argsort(self._strongest_first)[samples.pair], kind="stable")
        ends = self.replicates.ends[samples.pair[order]]
        names = self._part_names(ends, samples.ends[order])
        signed = np.where(samples.sign < 0.0, -samples.norms, samples.norms)
        return {
            **edge_names(self.fitted.schema, ends),
            "source_part": [source for source, _ in names],
            "target_part": [target for _, target in names],
            "strength": self.estimate.strengths[0, samples.pair[order]],
            "norm": estimate.norms[0, order],
            **_sign_columns(estimate.sign[0, order], samples.sign[:, order], signed[:, order] != 0),
            "mean": signed[:, order].mean(axis=0),
        }

    def _part_names(self, ends: Ints, parts: Ints) -> list[tuple[str | None, str | None]]:
        """Names of parts of pairs of nodes, by source and target; None for a node without parts."""
        schema, spans = self.fitted.schema, self.fitted.schema.spans
        has_parts = spans.numeric_nodes & (spans.width > 1)
        names = []
        for pair, at in zip(ends.tolist(), parts.tolist(), strict=True):
            part = {
                v: self.fitted.axis(v)[k] for v, k in zip(pair, at, strict=True) if has_parts[v]
            }
            source, target = schema.directed(*pair)
            names.append((part.get(source), part.get(target)))
        return names

    def _shown_selection(self) -> Columns:
        """Those of `_edge_parts` with the names of the parts in place of those of the columns."""
        columns = dict(self._edge_parts())
        for end in ("source", "target"):
            both = zip(columns[end], columns.pop(f"{end}_part"), strict=True)
            columns[end] = [part or name for name, part in both]
        return columns

    def _pairs(self, what: str) -> PairReplicates:
        self._only("nonparametric", what)
        if self.pair_replicates is None:
            raise ParameterError(f"this bootstrap has no {what}: {self.no_intervals}.")
        return self.pair_replicates

    def _position(self, edge: tuple[str, str]) -> int:
        """Where this pair is among the replicates; an error says which pairs there are."""
        if not (isinstance(edge, (tuple, list)) and len(edge) == 2):
            raise ParameterError.must_be("an edge", "a pair of column names", edge)
        wanted = sorted(self.fitted.schema.node_index(name) for name in edge)
        places = np.flatnonzero((self.replicates.ends == wanted).all(axis=1))
        if len(places) == 0:
            raise ParameterError(
                f"{quoted(edge[0])} and {quoted(edge[1])} have no edge, neither in the model nor "
                "in any resample; selection() lists those that there are."
            )
        return int(places[0])

    def _ends(self, positions: list[int]) -> list[tuple[str, str]]:
        nodes, ends = self.fitted.schema.nodes, self.replicates.ends
        return [(nodes[ends[k, 0]].name, nodes[ends[k, 1]].name) for k in positions]

    def _differences(self, level: float) -> Columns:
        """Every two edges of the estimate, strongest first."""
        present = self.estimate.norms[0] > 0.0
        pairs = list(combinations([k for k in self._strongest_first.tolist() if present[k]], 2))
        here, low, high = self._strength_differences(pairs, level)
        first, second = (self._ends([pair[side] for pair in pairs]) for side in (0, 1))
        return {
            "first_source": [source for source, _ in first],
            "first_target": [target for _, target in first],
            "second_source": [source for source, _ in second],
            "second_target": [target for _, target in second],
            "difference": here,
            "lower": low,
            "upper": high,
            "significant": (low > 0.0) | (high < 0.0),
        }

    def _strength_differences(
        self, pairs: list[tuple[int, int]], level: float
    ) -> tuple[Floats, Floats, Floats]:
        """Differences of strengths and their intervals, a few pairs at a time."""
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        strengths, here = self.replicates.strengths, self.estimate.strengths[0]
        low, high = np.empty(len(pairs)), np.empty(len(pairs))
        step = max(1, 2**22 // max(1, len(strengths)))
        for at in range(0, len(pairs), step):
            part = slice(at, at + step)
            gaps = strengths[:, first[part]] - strengths[:, second[part]]
            low[part], high[part] = interval(gaps, level)
        return here[first] - here[second], low, high

    @property
    def _has_influence(self) -> NDArray[np.bool_]:
        """Nodes whose edges all have a sign in the estimate: they have an expected influence."""
        estimate = self.estimate
        unsigned = (estimate.norms[0] > 0.0) & ~estimate.has_sign
        signed = estimate.layout.nodes.signed.copy()
        signed[estimate.ends[unsigned].ravel()] = False
        return signed

    def _centrality(self, level: float) -> Columns:
        """One entry per measure and column of the table."""
        schema = self.fitted.schema
        at = [schema.node_index(column.name) for column in schema.columns]
        here, samples = (
            np.hstack([part.centrality[measure].take(at, axis=1) for measure in MEASURES])
            for part in (self.estimate, self.replicates)
        )
        influence = [measure == "expected_influence" for measure in MEASURES]
        missing = np.outer(influence, ~self._has_influence[at]).ravel()
        columns = _interval_columns(here[0], samples, level)
        return {
            "column": list(schema.names) * len(MEASURES),
            "measure": [measure for measure in MEASURES for _ in at],
            **{name: np.where(missing, np.nan, values) for name, values in columns.items()},
        }

    @cached_property
    def _degenerate(self) -> Columns:
        estimate, samples = self.estimate, self.replicates
        constant = samples.constant(estimate.scales[0]).sum(axis=0)
        lacking = samples.lacking(~estimate.lost_levels[0]).sum(axis=0)
        nodes = np.flatnonzero(constant + lacking)
        return {
            "column": [self.fitted.schema.nodes[k].name for k in nodes],
            "constant": constant[nodes],
            "missing_levels": lacking[nodes],
        }

    # -- case-dropping -----------------------------------------------------------------------------

    def stability(self, level: float = 0.95) -> Any:
        """Correlation with the whole table's values after rows were dropped.

        Columns: statistic ("edge_strengths" or a measure of centrality), dropped (share of the
        rows), n_resamples, mean, lower, upper.  A resample whose values are all equal counts as 0.
        """
        return self._frame(self._stability(level))

    def _stability(self, level: float) -> Columns:
        self._only("case-dropping", "stability()")
        tail, cells = (1.0 - level) / 2.0, self._correlations
        return {
            "statistic": [statistic for statistic, _ in cells],
            "dropped": np.array([share for _, share in cells]),
            "n_resamples": np.array([len(values) for values in cells.values()], dtype=np.int64),
            "mean": np.array([values.mean() for values in cells.values()]),
            "lower": np.array([np.quantile(values, tail) for values in cells.values()]),
            "upper": np.array([np.quantile(values, 1.0 - tail) for values in cells.values()]),
        }

    @cached_property
    def _correlations(self) -> dict[tuple[str, float], Floats]:
        """Pearson correlations of resamples with the whole table, by statistic and share dropped.

        Strengths are compared over all pairs of columns, those without an edge included, and
        with their signs where they have one.  A correlation that does not exist, because all values
        of a resample are equal, counts as 0; where the whole table has none, or fewer than three
        values, it is NaN.
        """
        assert self.dropped is not None
        estimate, samples = self.estimate, self.replicates
        n_nodes = estimate.layout.n_nodes
        absent = n_nodes * (n_nodes - 1) // 2 - samples.strengths.shape[1]
        whole, signed = (
            np.pad(part.signed_strengths, ((0, 0), (0, absent))) for part in (estimate, samples)
        )
        by_statistic = {"edge_strengths": _correlation(whole[0], signed)}
        for measure in MEASURES:
            nodes = self._has_influence if measure == "expected_influence" else slice(None)
            by_statistic[measure] = _correlation(
                estimate.centrality[measure][0, nodes], samples.centrality[measure][:, nodes]
            )
        return {
            (name, share): values[self.dropped == share]
            for name, values in by_statistic.items()
            for share in np.unique(self.dropped).tolist()
        }

    def _cs_coefficients(self, correlation: float, probability: float) -> dict[str, float]:
        coefficients: dict[str, float] = {}
        for (name, share), values in self._correlations.items():
            high = (values >= correlation).mean() >= probability
            largest = max(coefficients.get(name, 0.0), share if high else 0.0)
            coefficients[name] = np.nan if np.isnan(values).any() else largest
        return coefficients

    def cs_coefficient(
        self, statistic: str | None = None, *, correlation: float = 0.7, probability: float = 0.95
    ) -> Any:
        """Largest share of rows that can be dropped without losing the picture.

        With `probability`, the correlation between the values of the resample and those of the
        whole table is at least `correlation` (Epskamp, Borsboom and Fried 2018, who ask for 0.25
        at least and better 0.5).  It is one of the shares that were tried, or 0.

        Parameters
        ----------
        statistic : str, optional
            "edge_strengths", "total_strength", "expected_influence", "closeness" or
            "betweenness".
        correlation, probability : float

        Returns
        -------
        float, or a frame with the columns statistic and cs_coefficient for all of them
            NaN where the whole table has fewer than three values, or all are the same.
        """
        self._only("case-dropping", "cs_coefficient()")
        for name, value in (("correlation", correlation), ("probability", probability)):
            ensure(0.0 < value <= 1.0, name, "a number in (0, 1]", value)
        cs = self._cs_coefficients(correlation, probability)
        if statistic is None:
            values = np.array(list(cs.values()))
            return self._frame({"statistic": list(cs), "cs_coefficient": values})
        if statistic not in cs:
            hint = near_matches(statistic, cs).replace("columns", "statistics")
            raise ParameterError(f"there is no statistic {quoted(statistic)}; {hint}")
        return cs[statistic]

    # -- pictures ----------------------------------------------------------------------------------

    @known_options
    def plot_intervals(
        self, *, level: float = 0.95, max_edges: int | None = 40, ax: Axes | None = None
    ) -> Axes:
        """Draw how large edges are: the rows of `intervals()`, most certain pairs first."""
        from mixedgm.pictures.bootstrap import plot_intervals

        columns = self._pairs("plot_intervals()").intervals(level)
        return plot_intervals(columns, max_edges=max_edges, ax=ax)

    @known_options
    def plot_selection(self, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
        """Draw how often edges are found again, the strongest on top.

        An edge of a hurdle column has a bar for whether ("debt != 0") and one for how much.
        """
        from mixedgm.pictures.bootstrap import plot_selection

        self._only("nonparametric", "plot_selection()")
        return plot_selection(self._shown_selection(), max_edges=max_edges, ax=ax)

    @known_options
    def plot_differences(
        self, *, level: float = 0.95, max_edges: int | None = 40, ax: Axes | None = None
    ) -> Axes:
        """Draw which edges of the model differ significantly in weight."""
        from mixedgm.pictures.bootstrap import plot_differences

        self._only("nonparametric", "plot_differences()")
        return plot_differences(self._edges(), self._differences(level), max_edges=max_edges, ax=ax)

    @known_options
    def plot_centrality(
        self, measure: str = "total_strength", *, level: float = 0.95, ax: Axes | None = None
    ) -> Axes:
        """Draw one measure of centrality with its intervals, largest estimate on top."""
        from mixedgm.pictures.bootstrap import plot_centrality

        self._only("nonparametric", "plot_centrality()")
        if measure not in MEASURES:
            hint = near_matches(measure, MEASURES, "measures")
            raise ParameterError(f"there is no measure {quoted(measure)}; {hint}")
        return plot_centrality(self._centrality(level), measure, ax=ax)

    @known_options
    def plot_stability(self, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the correlation with the whole table against the share of rows dropped."""
        from mixedgm.pictures.bootstrap import plot_stability

        return plot_stability(self._stability(level), ax=ax)

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Bootstrap: {self._counts()}>"

    def _counts(self) -> str:
        done = str(self.n_done) if self.n_done == self.n_boot else f"{self.n_done} of {self.n_boot}"
        failed = f", {self.n_failed} failed" if self.failures else ""
        return f"{done} resamples, {self.kind}, lam {self.select}{failed}"

    def summary(self) -> str:
        """What was done, what went wrong, and the main numbers, as text."""
        from mixedgm.results.text import table_text

        lines = [f"Bootstrap: {self._counts()}", *self._troubles()]
        if self.kind == "nonparametric":
            for title, columns in self._shown:
                lines += ["", title]
                n_rows, top = len(columns["source"]), dict[str, Any]()
                for name, values in columns.items():
                    numbers = isinstance(values, np.ndarray)
                    top[name] = [f"{x: .3f}" if numbers else x for x in values[:_SHOWN]]
                lines.append(table_text(top, 80) if n_rows else "none in any resample")
                lines += [f"... {_SHOWN} of {n_rows:,} rows"] * (n_rows > _SHOWN)
        else:
            lines += ["", "CS-coefficients (correlation 0.7, probability 0.95)"]
            for name, value in self._cs_coefficients(0.7, 0.95).items():
                text = "none: too few different values" if np.isnan(value) else f"{value:.2f}"
                lines.append(f"  {name:<20}{text}")
        return "\n".join(lines)

    @property
    def _shown(self) -> list[tuple[str, Columns]]:
        """Titles and leading columns of both tables, for text and notebooks."""
        shown = list[tuple[str, Columns]]()
        if self.pair_replicates is not None:
            beside = _BESIDE[self.pair_replicates.method]
            title = f"How large are edges? Without shrinkage, given {beside}; 95 % intervals"
            columns = self.pair_replicates.intervals(0.95)
            levels = ("source_level", "target_level")
            empty = {name for name in levels if not any(columns[name])}
            left_out = {"kind", "se", *empty}
            shown.append((title, {k: v for k, v in columns.items() if k not in left_out}))
        what = "strengths without penalty" if self.refit else "shrunken strengths"
        title = f"Are they found again? Share of resamples that have the edge; {what}"
        columns = self._shown_selection()
        names = ("source", "target", "inclusion", "strength")
        return [*shown, (title, {name: columns[name] for name in names})]

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from mixedgm.results.result import result_html

        if self.kind != "nonparametric":
            return f"<pre>{escape(self.summary())}</pre>"
        notes = [line.strip() for line in self._troubles()]
        whole = ["intervals()", "selection()"][-len(self._shown) :]
        tables = zip(self._shown, whole, strict=True)
        parts = [result_html(title, columns, (), name) for (title, columns), name in tables]
        head = escape("; ".join([f"Bootstrap: {self._counts()}", *notes]))
        return f"<div>{head}</div>{''.join(parts)}"

    def _troubles(self) -> list[str]:
        lines = []
        if self.no_intervals and self.kind == "nonparametric":
            lines.append(f"  no intervals of all pairs: {self.no_intervals}")
        pairs = self.pair_replicates
        if pairs is not None and pairs.is_open.any():
            what = "some combination of their levels has no rows"
            lines.append(f"  {int(pairs.is_open.sum())} pairs have no interval: {what}")
        completion = self.fitted.report.completion
        if completion is not None and completion.drawn:
            lines.append("  some missing cells are drawn in each resample; that adds to its error")
        if self.n_unconverged:
            lines.append(f"  {self.n_unconverged} did not reach tol; they are counted as fitted")
        odd = self._degenerate
        rows = zip(odd["column"], odd["constant"], odd["missing_levels"], strict=True)
        for name, constant, missing in rows:
            parts = [f"constant in {constant}"] * bool(constant)
            parts += [f"without one of its levels in {missing}"] * bool(missing)
            lines.append(f"  column {quoted(name)}: {' and '.join(parts)}")
        return [*lines, *failure_lines(self.failures)]
