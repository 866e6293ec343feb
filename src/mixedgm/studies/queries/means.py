"""Expected values, or drawn rows and their chains -> Means and SampleReport: text and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.model.layout import Floats
from mixedgm.results.result import how_found, result_html, result_text
from mixedgm.studies.queries.conditioned import KnownValues
from mixedgm.studies.queries.observed import (
    ColumnMargin,
    Comparison,
    mean_comparison,
    share_comparison,
)
from mixedgm.table.read import Columns, frame
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from mixedgm.joint.sampled import Draw


@dataclass(frozen=True, eq=False, repr=False)
class Means:
    """Mean of every column of numbers and count, and probability of every level, and of zero.

    ``means["age"]`` is a number, ``means["sex"]`` a dictionary of levels.  ``means.score("pain")``
    is the mean of the scores of an ordinal column.

    Parameters
    ----------
    schema : Schema
        The columns.
    given : KnownValues
        The known values that they depend on.
    mean, mean_error : ndarray (p,)
        Means of the continuous and hurdle columns, normal scores where a column has a transform,
        and their standard errors.
    levels, levels_error : ndarray (sum of levels,)
        Probabilities of the levels, and of all values of counts, and their standard errors; errors
        are zero when exact.
    score_error : ndarray (discrete columns,)
        Standard errors of mean counts and mean scores.
    exact : bool
        False when they were sampled.
    library : str
        Library of the frame.
    warnings : tuple of str
        Where the joint distribution is known to be far from the table of the fit.
    observed : mapping of column name to ColumnMargin or None
        What matching rows of a table have; None where fewer than 30 rows have the column.
    """

    schema: Schema
    given: KnownValues
    mean: Floats
    levels: Floats
    mean_error: Floats
    levels_error: Floats
    score_error: Floats
    exact: bool
    library: str
    warnings: tuple[str, ...] = ()
    observed: Mapping[str, ColumnMargin | None] = field(default_factory=dict)

    def __getitem__(self, name: object) -> float | dict[Any, float]:
        """Return the mean of a column of numbers or count, or the probabilities of levels."""
        node = self.schema.node_index(name)
        column, span = self.schema.nodes[node], self._span(node)
        if self.schema.spans.is_real(node):
            return float(column.decoded(self.mean[node]))
        if not column.has_levels:
            return self.score(name)
        return dict(zip(column.levels, self.levels[span].tolist(), strict=True))

    def score(self, name: object) -> float:
        """Return the mean of the scores of an ordinal column, or the mean count.

        Examples
        --------
        >>> import mixedgm as mg
        >>> pain = mg.Column("pain", "ordinal", levels=("none", "some", "much"))
        >>> truth = mg.from_params(mg.Schema((pain,)), {"cat_bias": [0.0, 0.0, 0.0]})
        >>> truth.mean().score("pain")
        1.0
        """
        node = self.schema.node_index(name)
        column, spans = self.schema.nodes[node], self.schema.spans
        if not spans.scored_nodes[node]:
            raise ParameterError(f"{quoted(column.name)} is {column.kind}, so it has no scores.")
        return float(self.levels[self._span(node)] @ spans.amounts(spans.place(node)))

    def _span(self, node: int) -> slice:
        """Where a node is in `mean`, or in `levels`."""
        spans = self.schema.spans
        return slice(node, node + 1) if spans.is_real(node) else spans.levels_of(spans.place(node))

    def frame(self) -> Any:
        """One row for every column of numbers, every count and every level, as a frame.

        Returns
        -------
        frame of the library of the training table
            `column`, `level` (missing for a number), `mean` (of a level: its probability), and
            `error`, the standard error, where it was sampled.  The mean of a
            column with a transform is that of its normal scores, put back into the data's own
            units; its error is in normal scores.  With `data`, `observed` has the same of the
            `rows` that match and have the column, where these are at least 30.
        """
        return frame(self._columns(), self.library)

    def _columns(self) -> Columns:
        rows = list[tuple[str, str | None, float, float]]()
        for column in self.schema.columns:
            node = self.schema.node_index(column.name)
            span = self._span(node)
            names = column.level_names or (None,)
            if self.schema.spans.is_real(node):
                means, errors = column.decoded(self.mean[span]), self.mean_error[span]
            elif not column.has_levels:
                at = self.schema.spans.place(node)
                means, errors = [self[column.name]], self.score_error[at : at + 1]
            else:
                means, errors = self.levels[span], self.levels_error[span]
            rows += zip([column.name] * len(names), names, means, errors, strict=True)
            if self.schema.spans.spiked_nodes[node]:
                zero = self.schema.spans.levels_of(self.schema.spans.place(node)).start
                chance = float(self.levels[zero]), float(self.levels_error[zero])
                rows.append((column.name, column.value_names[0], *chance))
        headings = ("column", "level", "mean", "error")[: 3 + (not self.exact)]
        out: dict[str, list[Any]] = {
            name: [row[k] for row in rows] for k, name in enumerate(headings)
        }
        if self.observed:
            seen = [self._seen(name, level) for name, level, *_ in rows]
            out["observed"], out["rows"] = (list(part) for part in zip(*seen, strict=True))
        return out

    def _seen(self, name: str, level: str | None) -> tuple[float, float]:
        """Mean, or share of a value, in matching rows, and the number of these."""
        margin, column = self.observed[name], self.schema.nodes[self.schema.node_index(name)]
        if margin is None:
            return np.nan, np.nan
        if level is None:
            return float(column.decoded(margin.mean)), margin.n_rows
        return float(margin.share[column.value_names.index(level)]), margin.n_rows

    def comparisons(self) -> Iterator[Comparison]:
        """Yield every number of the model beside that of matching rows."""
        spans = self.schema.spans
        for name, margin in self.observed.items():
            node = self.schema.node_index(name)
            column, span = self.schema.nodes[node], self._span(node)
            if margin is None:
                continue
            seen = margin.mean, margin.variance
            if spans.is_real(node):
                model = float(self.mean[node]), 0.0, float(self.mean_error[node])
                yield mean_comparison(column, model, seen, margin.n_rows)
            elif not column.has_levels:
                model = self.score(name), 0.0, float(self.score_error[spans.place(node)])
                yield mean_comparison(column, model, seen, margin.n_rows)
            if column.has_levels or spans.spiked_nodes[node]:
                levels = spans.levels_of(spans.place(node)) if not column.has_levels else span
                chances = zip(self.levels[levels], self.levels_error[levels], strict=True)
                values = list(zip(column.value_names, margin.share, chances, strict=True))
                for value, share, (chance, error) in values[len(values) == 2 :]:
                    what = f"the share of {name} = {value}"
                    numbers = float(chance), float(share), margin.n_rows, float(error)
                    yield share_comparison(what, *numbers)

    def _title(self) -> str:
        return f"Means given {self.given}" if self.given.values else "Means"

    def _notes(self) -> list[str]:
        notes = [how_found(self.exact), "of a level: its probability"]
        if self.observed:
            notes.append("observed in rows of the table that match")
        return [*notes, *self.warnings]

    def __repr__(self) -> str:
        return result_text(self._title(), self._columns(), self._notes())

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        return result_html(self._title(), self._columns(), self._notes())


# -- SampleReport ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SampleReport:
    """How rows were drawn.

    Parameters
    ----------
    method : {"exact", "gibbs"}
        Exact draws are independent of each other and have nothing to diagnose.
    notes : tuple of str
        Why not exact; the chains and their worst numbers.
    columns : mapping of str to list
        For every continuous column and every level of a column: `r_hat`, 1 when all chains agree,
        and `ess`, the effective number of independent states.  Empty for exact draws.
    good : bool
        Whether no R-hat exceeds 1.01 and every effective sample size is at least 400.
    library : str
        Library of the frame.
    """

    method: Literal["exact", "gibbs"]
    notes: tuple[str, ...]
    columns: Columns
    good: bool
    library: str

    @classmethod
    def of(cls, schema: Schema, draw: Draw, library: str) -> SampleReport:
        """Put names to the diagnostics of chains."""
        chains = draw.diagnostics
        names: list[tuple[str, str | None]] = [(c.name, None) for c in schema.real]
        by_score = chains is not None and chains.by_score
        scored = schema.spans.scored_nodes[schema.spans.discrete]
        for column, whole in zip(schema.discrete, scored & by_score, strict=True):
            names += [(column.name, v) for v in ([None] if whole else column.value_names)]
        columns: Columns = {
            "column": [name for name, _ in names if chains is not None],
            "level": [level for _, level in names if chains is not None],
            "r_hat": [] if chains is None else chains.r_hat,
            "ess": [] if chains is None else chains.ess,
        }
        return cls(draw.method, draw.notes, columns, chains is None or chains.good, library)

    def frame(self) -> Any:
        """R-hat and effective sample size of every column and level, as a frame."""
        return frame(self.columns, self.library)

    def _title(self) -> str:
        return "Exact draws" if self.method == "exact" else "Draws by Gibbs chains"

    def __repr__(self) -> str:
        return result_text(self._title(), self.columns, self.notes or ("independent rows",))

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        return result_html(self._title(), self.columns, self.notes or ("independent rows",))
