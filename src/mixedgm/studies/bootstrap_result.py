"""The estimate and its replicates -> Bootstrap: tables, tests, pictures and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.errors import ParameterError, near_matches
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.printable import quoted
from mixedgm.studies import bootstrap_tables as tables
from mixedgm.studies.bootstrap_replicates import Failure, Replicates, failure_lines
from mixedgm.studies.bootstrap_tables import EdgeDifference, Material
from mixedgm.studies.centrality import MEASURES
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Bootstrap", "Failure"]


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """What resampling says about a model; `mixedgm.bootstrap` makes it.

    Tables are frames of the training table's library.  Intervals are percentile intervals over the
    resamples that were fitted; `level` is their nominal coverage.

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
        The numbers themselves: `weights` (resamples, pairs), `ends` (pairs, 2), `values`, ...
    dropped : ndarray (n_done,) or None
        Share of the rows (or clusters) that each resample of a case-dropping bootstrap left out.
    refit : bool
        Whether model and resamples were refitted without shrinkage.  Without it, intervals are of
        shrunken values and hardly ever cover the true ones.
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
        return self.replicates.nbytes

    @cached_property
    def _material(self) -> Material:
        return Material(self.fitted.schema, self.estimate, self.replicates)

    def _frame(self, columns: Columns) -> Any:
        return frame(columns, self.fitted.library)

    def _only(self, kind: str, what: str) -> None:
        if self.kind == kind:
            return
        methods = {
            "case-dropping": "stability() and cs_coefficient()",
            "nonparametric": "edges(), parameters(), differences() and centrality()",
        }[self.kind]
        raise ParameterError(
            f"{what} needs a bootstrap with kind={quoted(kind)}; this one is {self.kind}: use "
            f"{methods}."
        )

    # -- tables ------------------------------------------------------------------------------------

    def edges(self, level: float = 0.95) -> Any:
        """Edges of the model and of any resample, heaviest first.

        Columns: source, target, kind, weight and sign as in the model's own `edges()` (weight 0
        where the model has no such edge); inclusion, the share of the resamples that have the edge;
        same_sign, the share in which it has the model's sign; then estimate, mean, lower and upper
        of the weight, which is negative where the sign is.  Where an edge has no sign, these are
        lengths, so that lower is never below zero.
        """
        self._only("nonparametric", "edges()")
        return self._frame(tables.edges_columns(self._material, level))

    def parameters(self, level: float = 0.95) -> Any:
        """Single parameters with their intervals, in the data's own units.

        Columns: source, target, parameter ("interaction", or a column's own "bias" or
        "precision"), source_level, target_level, estimate, mean, lower, upper.  A level that has no
        rows in a resample has interactions 0 and bias minus infinity there.
        """
        self._only("nonparametric", "parameters()")
        return self._frame(tables.parameters_columns(self._material, level))

    def difference(
        self, first: tuple[str, str], second: tuple[str, str], level: float = 0.95
    ) -> EdgeDifference:
        """Test whether two edges differ in weight, each given by its two columns."""
        self._only("nonparametric", "difference()")
        pair = tuple(tables.position(self._material, edge) for edge in (first, second))
        if pair[0] == pair[1]:
            raise ParameterError(f"a difference needs two edges. Got {quoted(first)} twice.")
        return tables.difference(self._material, (pair[0], pair[1]), level)

    def differences(self, level: float = 0.95) -> Any:
        """Tests between every two edges of the model.

        Columns: first_source, first_target, second_source, second_target, difference of the
        weights (without signs), lower, upper, significant.  Nothing is corrected for the number of
        tests.
        """
        self._only("nonparametric", "differences()")
        return self._frame(tables.differences_columns(self._material, level))

    def centrality(self, level: float = 0.95) -> Any:
        """Centrality of every column of the table.

        Columns: column, measure ("strength", "expected_influence", "closeness", "betweenness"),
        estimate, mean, lower, upper.  Expected influence is missing for a column with three or more
        levels, and for one that has an edge to such a column.
        """
        self._only("nonparametric", "centrality()")
        return self._frame(tables.centrality_columns(self._material, level))

    def degenerate(self) -> Any:
        """Columns that were constant, or lacked one of the table's levels, in some resamples.

        Columns: column, constant and missing_levels, each the number of resamples.
        """
        return self._frame(self._degenerate)

    @cached_property
    def _degenerate(self) -> Columns:
        return tables.degenerate_columns(self._material)

    # -- case-dropping -----------------------------------------------------------------------------

    def stability(self, level: float = 0.95) -> Any:
        """Correlation with the whole table's values after rows were dropped.

        Columns: statistic ("edge_weights" or a measure of centrality), dropped (share of the rows),
        n_resamples, mean, lower, upper.  A resample whose values are all equal counts as 0.
        """
        return self._frame(self._stability(level))

    def _stability(self, level: float) -> Columns:
        self._only("case-dropping", "stability()")
        assert self.dropped is not None
        return tables.stability_columns(self._material, self.dropped, level)

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
            "edge_weights", "strength", "expected_influence", "closeness" or "betweenness".
        correlation, probability : float

        Returns
        -------
        float, or a frame with the columns statistic and cs_coefficient for all of them
            NaN where the whole table has fewer than three values, or all are the same.
        """
        self._only("case-dropping", "cs_coefficient()")
        assert self.dropped is not None
        for name, value in (("correlation", correlation), ("probability", probability)):
            if not 0.0 < value <= 1.0:
                raise ParameterError.must_be(name, "a number in (0, 1]", value)
        cs = tables.cs_coefficients(self._material, self.dropped, correlation, probability)
        if statistic is None:
            values = np.array(list(cs.values()))
            return self._frame({"statistic": list(cs), "cs_coefficient": values})
        if statistic not in cs:
            hint = near_matches(statistic, cs).replace("columns", "statistics")
            raise ParameterError(f"there is no statistic {quoted(statistic)}; {hint}")
        return cs[statistic]

    # -- pictures ----------------------------------------------------------------------------------

    @known_options
    def plot_edges(
        self, *, level: float = 0.95, max_edges: int | None = 40, ax: Axes | None = None
    ) -> Axes:
        """Draw the weights of the edges with their intervals, largest estimate on top."""
        from mixedgm.views.plot_bootstrap import plot_edges

        self._only("nonparametric", "plot_edges()")
        return plot_edges(tables.edges_columns(self._material, level), max_edges=max_edges, ax=ax)

    @known_options
    def plot_differences(
        self, *, level: float = 0.95, max_edges: int | None = 40, ax: Axes | None = None
    ) -> Axes:
        """Draw which edges of the model differ significantly in weight."""
        from mixedgm.views.plot_bootstrap import plot_differences

        self._only("nonparametric", "plot_differences()")
        edges = tables.edges_columns(self._material, level)
        columns = tables.differences_columns(self._material, level)
        return plot_differences(edges, columns, max_edges=max_edges, ax=ax)

    @known_options
    def plot_centrality(
        self, measure: str = "strength", *, level: float = 0.95, ax: Axes | None = None
    ) -> Axes:
        """Draw one measure of centrality with its intervals, largest estimate on top."""
        from mixedgm.views.plot_bootstrap import plot_centrality

        self._only("nonparametric", "plot_centrality()")
        if measure not in MEASURES:
            hint = near_matches(measure, MEASURES, "measures")
            raise ParameterError(f"there is no measure {quoted(measure)}; {hint}")
        return plot_centrality(tables.centrality_columns(self._material, level), measure, ax=ax)

    @known_options
    def plot_stability(self, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the correlation with the whole table against the share of rows dropped."""
        from mixedgm.views.plot_bootstrap import plot_stability

        return plot_stability(self._stability(level), ax=ax)

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Bootstrap: {self._counts()}>"

    def _counts(self) -> str:
        done = f"{self.n_done} of {self.n_boot} resamples" if self._partial else str(self.n_done)
        text = f"{done}{'' if self._partial else ' resamples'}, {self.kind}, lam {self.select}"
        return text + (f", {self.n_failed} failed" if self.failures else "")

    @property
    def _partial(self) -> bool:
        return self.n_done < self.n_boot

    def summary(self) -> str:
        """What was done, what went wrong, and the main numbers, as text."""
        from mixedgm.views.text import table_text

        lines = [f"Bootstrap: {self._counts()}", *self._troubles()]
        if self.kind == "nonparametric":
            columns = tables.edges_columns(self._material, 0.95)
            top: dict[str, Any] = {name: columns[name][:12] for name in ("source", "target")}
            for name in ("inclusion", "estimate", "lower", "upper"):
                top[name] = [f"{value: .3f}" for value in columns[name][:12]]
            n_edges = len(columns["source"])
            what = "weights without shrinkage" if self.refit else "shrunken weights"
            shown = f" (12 of {n_edges})" if n_edges > 12 else ""
            lines += ["", f"Edges, 95 % intervals of {what}{shown}"]
            lines.append(table_text(top, 80) if n_edges else "none in any resample")
        else:
            assert self.dropped is not None
            cs = tables.cs_coefficients(self._material, self.dropped, 0.7, 0.95)
            lines += ["", "CS-coefficients (correlation 0.7, probability 0.95)"]
            for name, value in cs.items():
                text = "none: too few different values" if np.isnan(value) else f"{value:.2f}"
                lines.append(f"  {name:<20}{text}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _troubles(self) -> list[str]:
        lines = []
        if self.n_unconverged:
            lines.append(f"  {self.n_unconverged} did not reach tol; they are counted as fitted")
        odd = self._degenerate
        rows = zip(odd["column"], odd["constant"], odd["missing_levels"], strict=True)
        for name, constant, missing in rows:
            parts = [f"constant in {constant}"] * bool(constant)
            parts += [f"without one of its levels in {missing}"] * bool(missing)
            lines.append(f"  column {quoted(name)}: {' and '.join(parts)}")
        return [*lines, *failure_lines(self.failures)]
