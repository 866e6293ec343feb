"""A fitted model and a table with gaps -> MissingReport: what is missing, where, and what of it.

A fitted model and rows with gaps -> the share of every pair's information that gaps have taken.

The rows are completed by the model itself.  What completions of a row differ in is not known about
it, and what the model would learn from that is missing (Louis 1982).

Gaps -> tests whether the cells of one column are missing by the values of another.

A test is that of a regression of "is missing" on the other column, over the rows that have the
latter: of ranks and their squares for numbers, of shares for levels.  The statistic is the number
of these rows times the squared correlation, and compared with a chi-square.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mixedgm.base.errors import DistributionError, Finding, MixedGMError
from mixedgm.base.parameters import ensure_in
from mixedgm.base.printable import few, number_of, quoted, rows
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options
from mixedgm.inference.pairs import estimated_pairs
from mixedgm.inference.statistics import adjusted
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.refits import parameters
from mixedgm.path.rounds import ROUGH, Incomplete, Unpenalised
from mixedgm.select.pair_tests import MOST_PARAMETERS, rows_of, untestable
from mixedgm.studies.edges.estimates import named_pairs
from mixedgm.table.gaps import Gaps
from mixedgm.table.read import Columns, frame
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHOWN = 8
_ASSUMED = {
    "model": (
        "Assumed: whether a cell is missing depends on values that its row has, and not, beyond "
        "these, on its own value (missing at random). Where cells are missing because of their own "
        "values, as when high incomes are kept secret, estimates are biased, and no test of this "
        "table can tell."
    ),
    "drop": (
        "Assumed: rows that lack something are like all others (missing completely at random), as "
        "the model was fitted to rows without gaps. missing='model' uses every row and assumes "
        "less: that a gap depends on values that its row has, and not on its own value beyond "
        "these."
    ),
    "table": (
        "A fit with missing='drop' assumes that rows with gaps are like all others (missing "
        "completely at random). missing='model' uses every row and assumes less: that a gap "
        "depends on values that its row has, and not on its own value beyond these."
    ),
}


@dataclass(frozen=True, eq=False)
class MissingReport:
    """What is missing in a table, and what that means for a model.

    ``print(report)`` says it in words.  Rows are counted by their weights where there are some.
    """

    schema: Schema
    library: str
    pattern_gaps: NDArray[np.bool_]
    """(patterns, columns) which columns a pattern lacks, in the order of the schema's nodes."""
    pattern_rows: Floats
    """(patterns,) rows that have the pattern, most first."""
    together: Floats
    """(columns, columns) rows that have both values."""
    information: PairInformation
    tests: MissingnessTests
    edge: NDArray[np.bool_]
    """(columns, columns) whether the model has an edge."""
    structural: tuple[str, ...]
    """Columns that are missing where another has certain values, a sentence for each finding."""
    assumption: str
    """What is assumed about why cells are missing, in words."""
    alpha: float = 0.05
    """Limit of the adjusted p-values of `hints`."""

    # -- numbers -----------------------------------------------------------------------------------

    @property
    def n_rows(self) -> float:
        """Rows."""
        return float(self.pattern_rows.sum())

    @property
    def n_incomplete(self) -> float:
        """Rows that lack something."""
        return float(self.pattern_rows[self.pattern_gaps.any(axis=1)].sum())

    @property
    def n_cells(self) -> float:
        """Missing cells."""
        return float(self._missing.sum())

    @cached_property
    def _missing(self) -> Floats:
        """(columns,) missing cells of every column."""
        return np.asarray(self.pattern_rows @ self.pattern_gaps)

    @property
    def _names(self) -> NDArray[np.object_]:
        return np.array([node.name for node in self.schema.nodes], dtype=object)

    # -- frames ------------------------------------------------------------------------------------

    def columns(self) -> Any:
        """One row per column, the one with most gaps first.

        Columns: column; missing, the cells that are missing, and their share; only_gap, the rows
        that lack nothing else; patterns, how many different sets of columns it is missing with.
        """
        return frame(self._columns, self.library)

    def patterns(self) -> Any:
        """Which columns are missing together, the most frequent pattern first.

        Columns: rows, share; n_missing, the number of columns that are missing; missing, their
        names (nothing for rows without gaps).
        """
        return frame(self._patterns, self.library)

    def edges(self) -> Any:
        """Every pair of columns that may have an edge, the one that lacks most information first.

        Columns: source, target, kind; edge, whether the model has one; rows, those that have both
        values; missing_information, the share of the information about the pair that gaps have
        taken, as the model itself completes the rows: standard errors are 1 / sqrt(1 - share) times
        as large as without gaps.  It is NaN where the model has no distribution to complete by;
        `notes` say why.
        """
        return frame(self._edges, self.library)

    def hints(self, alpha: float | None = None) -> Any:
        """Columns whose values go with gaps in another column.

        Every column with gaps is tested against every other column, over the rows that have the
        latter.  A pair that is listed speaks against cells that are missing completely at random,
        so that dropping rows may bias a model; it does not speak against ``missing="model"``.

        Parameters
        ----------
        alpha : float, optional
            List what has an adjusted p-value of at most this; by default that of the report, and 1
            lists all tests.

        Returns
        -------
        frame
            Columns: column, whose cells are missing; predictor; more_often, the values of the
            predictor with which cells are missing more often; correlation, the multiple correlation
            of being missing with ranks or levels of the predictor; statistic, df, p, and p_bh
            adjusted for all tests by Benjamini and Hochberg.
        """
        limit = self.alpha if alpha is None else alpha
        ensure_in("[0, 1]", alpha=limit)
        return frame(self._hints(limit), self.library)

    @property
    def _columns(self) -> Columns:
        alone = self.pattern_gaps.sum(axis=1) == 1
        only = (self.pattern_rows * alone) @ self.pattern_gaps
        order = np.argsort(-self._missing, kind="stable")
        order = order[np.lexsort((self._places[order], -self._missing[order]))]
        return {
            "column": self._names[order],
            "missing": _counts(self._missing[order]),
            "share": self._missing[order] / max(self.n_rows, 1.0),
            "only_gap": _counts(only[order]),
            "patterns": self.pattern_gaps.sum(axis=0)[order],
        }

    @property
    def _places(self) -> Ints:
        """(columns,) where each stands in the table."""
        at = {name: k for k, name in enumerate(self.schema.names)}
        return np.array([at[node.name] for node in self.schema.nodes], dtype=np.int64)

    @property
    def _patterns(self) -> Columns:
        order = np.argsort(self._places, kind="stable")
        names = self._names[order]
        return {
            "rows": _counts(self.pattern_rows),
            "share": self.pattern_rows / max(self.n_rows, 1.0),
            "n_missing": self.pattern_gaps.sum(axis=1),
            "missing": [", ".join(names[gap]) for gap in self.pattern_gaps[:, order]],
        }

    @cached_property
    def _edges(self) -> Columns:
        pairs, missing = self.information.pairs, self.information.missing
        u, v = pairs.T
        both = self.together[u, v]
        order = np.lexsort((both, -np.nan_to_num(missing, nan=-1.0)))
        columns, _ = named_pairs(self.schema, pairs)
        columns |= {"edge": self.edge[u, v], "rows": _counts(both), "missing_information": missing}
        return {name: values[order] for name, values in columns.items()}

    def _hints(self, alpha: float) -> Columns:
        tests, names = self.tests, self._names
        listed = tests.tested & (np.nan_to_num(tests.p_bh, nan=2.0) <= alpha)
        gap, other = np.nonzero(listed)
        order = np.argsort(-tests.correlation[gap, other], kind="stable")
        gap, other = gap[order], other[order]
        return {
            "column": names[tests.gappy[gap]],
            "predictor": names[other],
            "more_often": [
                self._where(node, tests.more_often[at, node])
                for at, node in zip(gap.tolist(), other.tolist(), strict=True)
            ],
            "correlation": tests.correlation[gap, other],
            "statistic": tests.statistic[gap, other],
            "df": tests.df[gap, other].astype(np.int64),
            "p": tests.p[gap, other],
            "p_bh": tests.p_bh[gap, other],
        }

    def _where(self, node: int, at: int) -> str:
        column = self.schema.nodes[node]
        return RANK_WORDS[at] if column.node_kind.is_numeric else column.value_names[at]

    # -- text and picture --------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """How much is missing, in a sentence."""
        n_cells, n_columns = self.n_rows * len(self.schema.nodes), len(self.schema.nodes)
        if not self.n_cells:
            return f"No cell is missing: {rows(self.n_rows)}, {number_of(n_columns, 'column')}."
        n_patterns = int(self.pattern_gaps.any(axis=1).sum())
        return (
            f"Missing: {self.n_cells:,.6g} of {n_cells:,.6g} cells ({self.n_cells / n_cells:.1%}), "
            f"in {self.n_incomplete:,.6g} of {rows(self.n_rows)} "
            f"({self.n_incomplete / self.n_rows:.1%}), in "
            f"{number_of(n_patterns, 'pattern')}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know besides the tables, one sentence each."""
        if not self.n_cells:
            return ()
        found = list(self.structural)
        n_hints, n_tests = len(self._hints(self.alpha)["column"]), int(self.tests.tested.sum())
        if n_hints:
            found.append(
                f"{n_hints} of {number_of(n_tests, 'test')} find that gaps go with the values of "
                "another column: they are not missing completely at random, and a fit to complete "
                "rows may be biased."
            )
        elif n_tests:
            found.append(
                f"None of {number_of(n_tests, 'test')} finds that gaps go with the values of "
                "another column."
            )
        u, v = self.information.pairs.T
        never = np.flatnonzero(self.together[u, v] == 0.0)
        if len(never):
            ends = self._names[self.information.pairs[never]].tolist()
            named = few(ends, 3, lambda pair: f"{pair[0]} - {pair[1]}")
            found.append(
                f"{number_of(len(never), 'pair of columns is', 'pairs of columns are')} never "
                f"observed together ({named}): the table says nothing about "
                f"{'its edge' if len(never) == 1 else 'their edges'} given the others."
            )
        if self.information.unknown:
            why = self.information.unknown
            found.append(f"The share of information that is missing is not known: {why}.")
        return tuple(found)

    @property
    def _parts(self) -> list[tuple[str, dict[str, list[Any]], str]]:
        """Headings, tables to read, and the methods that have all of each."""
        n_gappy = int((self._missing > 0.0).sum())
        columns = {name: list(values)[:n_gappy] for name, values in self._columns.items()}
        columns["share"] = _percents(columns["share"])
        patterns = {name: list(values) for name, values in self._patterns.items()}
        del patterns["n_missing"]
        patterns["share"] = _percents(patterns["share"])
        patterns["missing"] = [text or "(nothing)" for text in patterns["missing"]]
        parts = [("Columns", columns, "columns()"), ("Patterns", patterns, "patterns()")]
        if not self.information.unknown:
            at = np.flatnonzero(self._edges["edge"]).tolist()
            fields = ["source", "target", "rows", "missing_information"]
            edges = {name: [self._edges[name][k] for k in at] for name in fields}
            edges["missing_information"] = _percents(edges["missing_information"])
            parts.append(("Edges of the model, and what is missing of each", edges, "edges()"))
        fields = ["column", "predictor", "more_often", "correlation", "p_bh"]
        hints = {name: list(self._hints(self.alpha)[name]) for name in fields}
        parts.append(("Gaps that go with the values of other columns", hints, "hints()"))
        return [part for part in parts if any(part[1].values())]

    def summary(self) -> str:
        """Return what is missing, and what that means, as text."""
        from mixedgm.results.text import table_text

        lines = [textwrap.fill(self.title, 80, subsequent_indent="  ")]
        if not self.n_cells:
            return lines[0]
        for heading, table, whole in self._parts:
            n = len(next(iter(table.values())))
            cut = f" ({_SHOWN} of {n:,}; {whole} has all)" if n > _SHOWN else ""
            shown = {name: values[:_SHOWN] for name, values in table.items()}
            lines += ["", f"{heading}{cut}", table_text(shown)]
        lines += ["", *(textwrap.fill(note, 80) for note in (*self.notes, self.assumption))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from mixedgm.results.result import result_html

        if not self.n_cells:
            return result_html(self.title, {"column": []}, ())
        parts = [result_html(self.title, {"column": []}, ())]
        parts += [result_html(heading, table, (), whole) for heading, table, whole in self._parts]
        parts.append(result_html("", {"column": []}, (*self.notes, self.assumption)))
        return "".join(parts)

    def plot(self, *, n_patterns: int | None = 20, ax: Axes | None = None) -> Axes:
        """Draw which columns are missing together, and how often.

        Parameters
        ----------
        n_patterns : int, optional
            Draw the most frequent patterns, at most this many; None draws all.
        ax : matplotlib Axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib Axes
            Of the patterns; bars above are shares of missing cells, bars beside them rows.
        """
        from mixedgm.pictures.matrices import MissingPicture, plot_missing

        order = np.argsort(self._places, kind="stable")
        picture = MissingPicture(
            names=self._names[order].tolist(),
            share=self._missing[order] / max(self.n_rows, 1.0),
            gaps=self.pattern_gaps[:, order],
            rows=self.pattern_rows,
        )
        return plot_missing(picture, n_patterns=n_patterns, ax=ax)


def _counts(values: Floats) -> NDArray[Any]:
    """Numbers of rows: whole ones, unless weights are not."""
    whole = np.rint(values)
    return whole.astype(np.int64) if np.allclose(values, whole, rtol=0.0, atol=1e-9) else values


def _percents(shares: list[float]) -> list[str]:
    return [f"{share:6.1%}" for share in shares]


def report_missing(
    fitted: FittedModel, options: Options, gaps: Gaps, alpha: float = 0.05
) -> MissingReport:
    """Count what is missing, and ask the model what that means."""
    return _report(
        gaps,
        fitted.library,
        missing_information(fitted, options, gaps),
        fitted.edge_norms > 0.0,
        "model" if options.missing == "model" else "drop",
        alpha,
        gaps.structural(fitted.library, options.forbid),
    )


def report_gaps(gaps: Gaps, library: str, alpha: float = 0.05) -> MissingReport:
    """Count what is missing in a table that no model was fitted to."""
    n = len(gaps.schema.nodes)
    pairs = np.column_stack(np.triu_indices(n, 1))
    information = PairInformation(pairs, np.full(len(pairs), np.nan), "no model was given")
    edges, structural = np.zeros((n, n), dtype=bool), gaps.structural(library)
    return _report(gaps, library, information, edges, "table", alpha, structural)


def _report(
    gaps: Gaps,
    library: str,
    information: PairInformation,
    edge: NDArray[np.bool_],
    assumed: str,
    alpha: float,
    structural: Sequence[Finding],
) -> MissingReport:
    ensure_in("[0, 1]", alpha=alpha)
    missing = gaps.missing
    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    packed, group = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
    patterns = np.unpackbits(packed, axis=1, count=missing.shape[1]).astype(bool)
    counts = np.asarray(np.bincount(group.ravel(), weights, len(patterns)), dtype=np.float64)
    order = np.argsort(-counts, kind="stable")
    return MissingReport(
        schema=gaps.schema,
        library=library,
        pattern_gaps=patterns[order],
        pattern_rows=counts[order],
        together=gaps.known_together * gaps.total_weight,
        information=information,
        tests=missingness_tests(gaps),
        edge=edge,
        structural=tuple(map(str, structural)),
        assumption=_ASSUMED[assumed],
        alpha=float(alpha),
    )


# -- missing information ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairInformation:
    """Pairs of nodes that may have an edge, and what is missing of each."""

    pairs: Ints
    missing: Floats
    """(pairs,) shares from 0 to 1; NaN where they are not known."""
    unknown: str = ""
    """Why they are not."""


def missing_information(fitted: FittedModel, options: Options, gaps: Gaps) -> PairInformation:
    """The share of the information about every pair that is missing, given the model's edges."""
    if not gaps.missing.any():
        pairs = _pairs(fitted)
        return PairInformation(pairs, np.zeros(len(pairs)))
    try:
        return _computed(fitted, options, gaps)
    except (MixedGMError, np.linalg.LinAlgError) as error:
        pairs = _pairs(fitted)
        return PairInformation(pairs, np.full(len(pairs), np.nan), str(error).rstrip("."))


def _computed(fitted: FittedModel, options: Options, gaps: Gaps) -> PairInformation:
    if fitted.moderators:
        raise DistributionError("edges vary with moderators, and every row has its own model")
    if gaps.missing[:, list(fitted.schema.covariates)].any():
        raise DistributionError("covariates are missing, and the model has no distribution of them")
    empty = np.flatnonzero(gaps.missing.all(axis=0))
    if len(empty):
        name = quoted(fitted.schema.nodes[int(empty[0])].name)
        raise DistributionError(f"{name} has no values in this table")
    some = gaps.take(np.flatnonzero(~gaps.missing.all(axis=1)))
    recipe = by_conditionals(options.recipe(fitted.schema))
    incomplete = Incomplete.of(some, recipe, n_threads=options.runtime.n_threads)
    params = None if fitted.params.nodewise else fitted.params
    task = incomplete.at(params)[1]
    u, v = task.layout.pairs.T
    graph = np.flatnonzero(fitted.edge_norms[u, v] > 0.0)
    reason = untestable(task, graph)
    if parameters(task, np.arange(task.layout.n_groups)).max(initial=0) > MOST_PARAMETERS:
        reason = reason or f"a pair has more than {MOST_PARAMETERS} parameters"
    if reason:
        raise DistributionError(reason)
    if params is None:  # regressions have no joint distribution: that of their graph stands in
        tol = ROUGH / np.sqrt(task.total_weight)
        goal = Unpenalised(task.layout.triples[graph])
        ends = incomplete.settle(goal, None, tol=tol, most=25)
        params, task, graph = ends.params, ends.task, goal.groups(ends.task)
    layout = task.layout
    theta = layout.centred(task.theta_of(params), graph)
    estimates = estimated_pairs(task.smooth, rows_of(task), theta, graph, row=task.row)
    assert estimates.missing is not None
    return PairInformation(layout.pairs, estimates.missing)


def _pairs(fitted: FittedModel) -> Ints:
    """All pairs but those of two covariates."""
    n, covariates = len(fitted.schema.nodes), list(fitted.schema.covariates)
    pairs = np.column_stack(np.triu_indices(n, 1))
    return np.asarray(pairs[~np.isin(pairs, covariates).all(axis=1)])


# -- missingness -----------------------------------------------------------------------------------

_FEWEST = 5.0
"""Rows that are missing, and that are not, from which on a chi-square holds; of a level likewise
the rows that are expected."""
RANK_WORDS = ("high values", "low values", "extreme values", "middle values")
"""Where cells of another column are missing more often, by the ranks of a column."""


@dataclass(frozen=True, eq=False)
class MissingnessTests:
    """Tests of columns with gaps (rows) against all columns; NaN where there are too few rows."""

    gappy: Ints
    """(G,) nodes with gaps."""
    statistic: Floats
    df: Floats
    correlation: Floats
    """(G, nodes) multiple correlation of being missing with the other column."""
    more_often: Ints
    """(G, nodes) where cells are missing more often: of levels a code, else of `RANK_WORDS`."""

    @cached_property
    def p(self) -> Floats:
        """(G, nodes) p-values."""
        return np.asarray(stats.chi2.sf(self.statistic, self.df))

    @cached_property
    def tested(self) -> NDArray[np.bool_]:
        """(G, nodes) whether there are rows enough."""
        return ~np.isnan(self.statistic)

    @cached_property
    def p_bh(self) -> Floats:
        """(G, nodes) adjusted for all tests by Benjamini and Hochberg."""
        out = np.full(self.p.shape, np.nan)
        out[self.tested] = adjusted(self.p[self.tested])["p_bh"]
        return out


def missingness_tests(gaps: Gaps) -> MissingnessTests:
    """Test every column with gaps against every other column.

    Examples
    --------
    >>> from mixedgm.table.encode import learn
    >>> from mixedgm.table.read import as_frame
    >>> x = np.arange(200.0) % 21
    >>> table = np.column_stack([x, np.roll(x, 7) + x % 2])
    >>> schema = learn(table)[0].schema
    >>> table[x > 15, 1] = np.nan
    >>> from mixedgm.table.gaps import read_gaps
    >>> tests = missingness_tests(read_gaps(as_frame(table), schema))
    >>> tests.gappy.tolist(), tests.correlation[0].round(1).tolist()
    ([1], [0.9, nan])
    """
    missing = gaps.missing
    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    gappy = np.flatnonzero(missing.any(axis=0))
    weighted = missing[:, gappy].T * weights
    shape = (len(gappy), missing.shape[1])
    statistic, df = np.full(shape, np.nan), np.ones(shape)
    correlation, more_often = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    for node in range(missing.shape[1]):
        known = ~missing[:, node]
        counts = _Counts(weighted[:, known], weights[known])
        kind = gaps.schema.nodes[node].node_kind
        if kind.is_numeric:
            found = _by_ranks(counts, _values(gaps, node)[known])
        else:
            found = _by_levels(counts, gaps.codes[known, gaps.schema.spans.place(node)])
        square, df[:, node], more_often[:, node] = found
        tested = counts.enough & (df[:, node] > 0)
        statistic[tested, node] = (counts.total - 1.0) * square[tested]
        correlation[tested, node] = np.sqrt(square[tested])
    return MissingnessTests(gappy, statistic, np.maximum(df, 1.0), correlation, more_often)


def _values(gaps: Gaps, node: int) -> NDArray[np.float64]:
    spans = gaps.schema.spans
    if spans.is_real(node):
        return gaps.numbers[:, node]
    return gaps.codes[:, spans.place(node)].astype(np.float64)


class _Counts:
    """Rows that have a column, by weight, and how many of these lack each other column."""

    def __init__(self, weighted: Floats, weights: Floats) -> None:
        self.weighted, self.weights, self.total = weighted, weights, float(weights.sum())
        lacking = weighted.sum(axis=1)
        self.enough = np.minimum(lacking, self.total - lacking) >= _FEWEST
        self.share = np.where(self.enough, lacking / max(self.total, 1.0), 0.5)
        self.spread = self.share * (1.0 - self.share)


_Found = tuple[Floats, Floats, Ints]
"""Squared correlation, degrees of freedom, and where cells are missing more often: (G,) each."""


def _by_ranks(counts: _Counts, values: Floats) -> _Found:
    """Of ranks and their squares, so that a middle that is missing shows, too."""
    total, weights = counts.total, counts.weights
    _, group = np.unique(values, return_inverse=True)
    sums = np.bincount(group, weights) if len(group) else np.zeros(1)
    rank = (np.cumsum(sums) - 0.5 * sums)[group] / max(total, 1.0) - 0.5
    features: list[Floats] = []
    for score in (rank, rank**2):
        left = score - weights @ score / max(total, 1.0)
        for before in features:
            left = left - before * (weights @ (before * left) / total)
        square = float(weights @ left**2)
        if square > 1e-9 * total:
            features.append(left * np.sqrt(total / square))
    n = len(counts.weighted)
    if not features:
        return np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    means = counts.weighted @ np.array(features).T / total
    correlation = (means**2).sum(axis=1) / counts.spread
    largest = np.argmax(np.abs(means), axis=1)
    negative = means[np.arange(n), largest] < 0.0
    return correlation, np.full(n, float(len(features))), 2 * largest + negative


def _by_levels(counts: _Counts, codes: NDArray[np.int32]) -> _Found:
    """Of shares by level; levels with few rows count as one."""
    n_levels = int(codes.max(initial=0)) + 1
    has = (codes[:, None] == np.arange(n_levels)).astype(np.float64)
    rows = counts.weights @ has
    expected = counts.share[:, None] * rows
    excess = counts.weighted @ has - expected
    variance = expected * (1.0 - counts.share[:, None])
    large = np.minimum(expected, rows - expected) >= _FEWEST
    kept = np.where(large, excess**2 / np.maximum(variance, 1e-300), 0.0).sum(axis=1)
    pooled_rows = np.where(large, 0.0, rows).sum(axis=1)
    pooled = np.where(large, 0.0, excess).sum(axis=1)
    smaller = np.minimum(counts.share, 1.0 - counts.share)
    is_pooled = smaller * pooled_rows >= _FEWEST
    kept += np.where(is_pooled, pooled**2 / np.maximum(pooled_rows * counts.spread, 1e-300), 0.0)
    df = large.sum(axis=1) + is_pooled - 1.0
    far = np.where(large, excess / np.sqrt(np.maximum(variance, 1e-300)), -np.inf)
    return kept / max(counts.total, 1.0), df, np.argmax(far, axis=1)
