"""A fitted model in -> Summary: everything that its text and HTML show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from mixedgm.base.printable import few, quoted
from mixedgm.families import edge_kinds, ends_of
from mixedgm.fit.fitted import Edge, FittedModel
from mixedgm.fit.report import Completion
from mixedgm.path.recipe import Lam
from mixedgm.solve.loop import Account
from mixedgm.table.schema import Schema

FEWEST_FOR_RATE = 100.0
"""Rows from which on the number of false edges is stated: it was tried with 100 to 5,000."""


@dataclass(frozen=True)
class Summary(Account):
    """Everything that the text and the HTML of a fitted model show, as plain values.

    ``str(summary)`` is text for a terminal; notebooks show it as HTML.

    Parameters
    ----------
    certificate : Certificate
        Objective and KKT number at the parameters, and how the solver ended. Its parts are
        attributes, too: `objective`, `kkt`, `converged`, `message`, and the Monte Carlo standard
        errors `objective_error` and `kkt_error`.
    cost : Cost
        What the estimate took: `n_iter`, `passes`, `seconds`, ...
    n_rows : int
        Rows of the training table.
    total_weight : float
        Sum of the sample weights; the number of rows without weights.
    columns : mapping of str to mapping of str to int
        Names of the columns of every kind that occurs, and their numbers of levels.
    covariates : tuple of str
        Columns that predict but are not predicted.
    transformed : tuple of str
        Continuous columns that are normal scores of ranks in the model.
    lam : float or tuple of float
        The penalty, or one per column of the table (NaN for covariates).
    lam_max : float or None
        Smallest lam without edges, where a path is known.
    criterion : str or None
        How lam was chosen; None for a given lam.
    n_lams : int
        Number of lam values solved.
    tol : float
        The tolerance of `kkt`.
    n_possible : int
        Pairs of columns that may have an edge.
    edges : tuple of Edge
        All edges, strongest first.
    notes : tuple of str
        Notes of the fit, and columns that were left out.
    loss : str
        What was minimised, besides the penalty.
    moderators : tuple of str
        Columns that edges vary with.
    n_possible_deviations : int
        Edges that may vary, counted for each moderator.
    refitted : bool
        Whether the estimates are those of the chosen graph without penalty.
    shrunken : bool
        Whether edges of several parameters are shrunken, each by its own variance.
    ridge : tuple of pairs of str
        Edges that have a ridge worth one row.
    noisy : tuple of str
        Numbers that have noise worth one row.
    expected_false : float or None
        How many of the edges are expected to be false, where tests of all pairs chose them.
    completion : Completion or None
        How missing cells were modelled, where there were some.
    """

    n_rows: int
    total_weight: float
    columns: Mapping[str, Mapping[str, int]]
    covariates: tuple[str, ...]
    lam: Lam
    lam_max: float | None
    criterion: str | None
    n_lams: int
    tol: float
    n_possible: int
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    loss: str = "pseudolikelihood"
    moderators: tuple[str, ...] = ()
    transformed: tuple[str, ...] = ()
    n_possible_deviations: int = 0
    refitted: bool = False
    shrunken: bool = False
    ridge: tuple[tuple[str, str], ...] = ()
    noisy: tuple[str, ...] = ()
    expected_false: float | None = None
    completion: Completion | None = None

    @property
    def continuous(self) -> tuple[str, ...]:
        """Names of the continuous columns."""
        return tuple(self.columns.get("continuous", ()))

    @property
    def categorical(self) -> tuple[tuple[str, int], ...]:
        """Names of the categorical columns and their numbers of levels."""
        return tuple(self.columns.get("categorical", {}).items())

    @property
    def edges_by_kind(self) -> dict[str, int]:
        """Number of edges of each kind; deviations do not count as edges.

        Zeros are included: for continuous and categorical columns, and for other kinds that occur.
        """
        count = Counter(edge.kind for edge in self.edges if edge.moderator is None)
        shown = {"continuous", "categorical", *self.columns}
        kinds = [kind for kind in edge_kinds() if {end.name for end in ends_of(kind)} <= shown]
        return {kind: count[kind] for kind in kinds}

    @property
    def n_deviations(self) -> int:
        """Number of edges that vary, counted for each moderator."""
        return sum(edge.moderator is not None for edge in self.edges)

    @property
    def rate_known(self) -> bool:
        """Whether the rows suffice to say how many of the edges that tests chose are false."""
        return self.total_weight >= FEWEST_FOR_RATE

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return sum(map(len, self.columns.values()))

    def __repr__(self) -> str:
        from mixedgm.results.text import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        """Return the summary as HTML for a notebook."""
        from mixedgm.results.result import html

        return html(self)


class SummaryText(str):
    """The text of a summary; notebooks show it as HTML, and `values` holds what it tells.

    Examples
    --------
    >>> import mixedgm as mg
    >>> text = mg.from_params({"x": "continuous", "y": "continuous"}, {}).summary()
    >>> text.splitlines()[0], text.values.n_columns
    ('Mixed graphical model', 2)
    """

    values: Summary

    def __new__(cls, values: Summary) -> Self:
        """Write the text."""
        text = super().__new__(cls, repr(values))
        text.values = values
        return text

    def __getnewargs__(self) -> tuple[Summary]:  # type: ignore[override]
        """Return what a copy is made of."""
        return (self.values,)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the summary as HTML for a notebook."""
        return self.values._repr_html_()


def summarise(fitted: FittedModel, notes: tuple[str, ...] = ()) -> Summary:
    """Gather what the text and the HTML of a model show; `notes` follow those of the fit."""
    schema, report, path = fitted.schema, fitted.report, fitted.path
    return Summary(
        certificate=report.certificate,
        cost=report.cost,
        n_rows=report.n_rows,
        total_weight=report.total_weight,
        columns={
            kind: {column.name: len(column.levels) for column in columns}
            for kind, columns in groupby(schema.nodes, key=lambda column: column.kind)
        },
        covariates=tuple(c.name for c in schema.columns if c.role == "covariate"),
        lam=report.lam,
        lam_max=None if path is None else path.lam_max,
        criterion=report.criterion,
        n_lams=1 if path is None else len(path),
        tol=report.tol,
        n_possible=_possible(fitted),
        edges=fitted.edges,
        notes=(*_left_out(schema), *report.notes, *_determined(fitted), *notes),
        loss=report.loss,
        moderators=tuple(schema.nodes[node].name for node in fitted.moderators),
        transformed=tuple(c.name for c in schema.columns if c.transform is not None),
        n_possible_deviations=_possible_deviations(fitted),
        refitted=report.refitted,
        shrunken=report.shrunken,
        ridge=report.ridge,
        expected_false=fitted.expected_false,
        noisy=report.noisy,
        completion=report.completion,
    )


def _left_out(schema: Schema) -> tuple[str, ...]:
    """Return a note about columns of the table that the model does without."""
    if not schema.left_out:
        return ()
    named = few(schema.left_out, 5, lambda column: f"{quoted(column.name)} ({column.reason})")
    return (f"left out: {named}",)


def _determined(fitted: FittedModel) -> tuple[str, ...]:
    """Return a note about pairs of numbers whose estimates are no distribution."""
    pairs = [
        f"{edge.source} - {edge.target}"
        for edge in fitted.edges
        if edge.partial_correlation is not None and abs(edge.partial_correlation) >= 1.0
    ]
    if not pairs:
        return ()
    named = few(pairs, 5, str)
    return (
        f"a partial correlation of 1 or more, so no distribution; strength shown as 1: {named}",
    )


def _possible_deviations(fitted: FittedModel) -> int:
    if fitted.path is not None:
        layout = fitted.path.layout
        return int((layout.moderator >= 0).sum()) // (2 if layout.nodewise else 1)
    n = len(fitted.schema.targets)
    return len(fitted.moderators) * n * (n - 1) // 2


def _possible(fitted: FittedModel) -> int:
    """Return the pairs that may have an edge; the layout of a path leaves forbidden ones out."""
    n = len(fitted.schema.columns)
    if fitted.path is not None:
        return fitted.path.n_possible
    fixed = sum(column.role == "covariate" for column in fitted.schema.columns)
    return n * (n - 1) // 2 - fixed * (fixed - 1) // 2
