"""A fitted model and its table -> EdgeTests: a test of every pair that may have an edge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from mixedgm.base.errors import NotYetError, ParameterError
from mixedgm.base.parallel import RandomState, seeds
from mixedgm.base.parameters import ensure, ensure_in
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options, of_estimator
from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.statistics import adjusted
from mixedgm.inference.strength import RestRows
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.rounds import FEWEST as FEWEST_DRAWN
from mixedgm.path.rounds import Incomplete
from mixedgm.path.task import Task, prepare
from mixedgm.select.error_rates import FDR, LocalFDR, settled_from
from mixedgm.select.graph_search import affordable
from mixedgm.select.pair_tests import TOO_WIDE, PairTests, pairs_given, untestable, untested
from mixedgm.select.selection import NAMED
from mixedgm.studies.edges.estimates import PairStrengths, named_pairs, pair_coefficients
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps, read_rows
from mixedgm.table.labels import numbered, row_labels
from mixedgm.table.read import Columns, Frame, as_frame, frame

METHODS = ("graph", "free")
COVARIANCES = ("rows", "model")
ROWS_PER_PREDICTOR = 8.0
"""From so many rows for each predictor of every column on, a bootstrap adjusts for all pairs."""

FEWEST_ROWS = 30
MOST_AT_ONCE = 4000
"""Parameters that are estimated at once."""


def edge_tests(
    model: object,
    X: object,
    *,
    method: str = "graph",
    covariance: str = "rows",
    cluster: object = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> EdgeTests:
    """Test every pair of columns that may have an edge, without shrinkage.

    Parameters
    ----------
    model : MixedGraphicalModel
        A fitted model.  Its schema, covariates, moderators and forbidden pairs apply; its loss and
        its penalty do not: tests are those of the pseudolikelihood.
    X : data frame, 2-D array or path
        The table that the model was fitted to, or another one with the same columns.
    method : {"graph", "free"}
        Which other pairs are adjusted for when a pair is tested: the edges that pass their own
        tests ("graph"), or all pairs ("free").
    covariance : {"rows", "model"}
        Where the variance of a row's gradient comes from: the rows themselves, or rows that are
        drawn from the model without shrinkage ("model").  The first does not assume that
        conditionals have the right form, the second varies less where cells have few rows.
    cluster : str or array (n,), optional
        Rows that belong together (households, patients), as a column of `X` or one label per row.
        With a label of its own for every row, weights count as those of a survey's design instead
        of as frequencies.
    level : float
        Of the intervals.
    sample_weight : array (n,) or str, optional
        Frequencies of the rows, or the name of their column.
    random_state : int, Generator, RandomState or None
        Which rows are drawn for ``covariance="model"``; the same in every call by default.
    n_jobs : int, optional
        Threads; they change no result.

    Returns
    -------
    EdgeTests
        `edges()`: estimate, standard error, interval, statistic, p-values, probability, Bayes
        factor and verdict of every pair.  `parameters()`: all their coefficients.  `plot()`.
        Columns with what was concluded by other options than the default have names of their own,
        such as `p_free`, `probability_drawn` or `verdict_clusters`.

    Raises
    ------
    ParameterError
        Where no test can be trusted: fewer than 30 rows or clusters, or with ``method="free"``
        fewer than four rows for each predictor of a column.

    Notes
    -----
    W = n e'V^-1 e with Godambe's covariance V (Godambe 1960; Lindsay 1988) is compared with a
    chi-square.  A pair with many parameters is also tested along the order of its levels, and the
    smaller p-value counts, calibrated (Tippett 1931).  The probability of an edge and the Bayes
    factor come from a fit of two groups to the tests of all pairs (Efron and others 2001).

    By default, the tests are those by which `select="local-fdr"` and ``"fdr"`` choose a graph: with
    the rows of the fit, `probability` is that of the model's own `edges()`.  The search for the
    graph begins at the model's graph and goes on until tests and graph agree.

    Examples
    --------
    >>> import numpy as np, pandas as pd, mixedgm as mg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> table = pd.DataFrame({"x": x, "y": x + rng.normal(size=300), "z": rng.normal(size=300)})
    >>> tests = mg.edge_tests(mg.MixedGraphicalModel().fit(table), table)
    >>> tests.edges()[["source", "target", "verdict"]].values.tolist()[0]
    ['x', 'y', 'present']
    """
    for name, value, allowed in (
        ("method", method, METHODS),
        ("covariance", covariance, COVARIANCES),
    ):
        ensure(value in allowed, name, " or ".join(map(quoted, allowed)), value)
    if covariance == "model" and cluster is not None:
        raise ParameterError(
            "covariance='model' knows nothing about clusters. To fix: covariance='rows'."
        )
    ensure_in("(0, 1)", level=level)
    fitted, options = of_estimator(model, n_jobs=n_jobs, verbose=0)
    frame = as_frame(X)
    design = read_rows(frame, fitted.schema, options.missing, sample_weight=sample_weight)
    recipe = by_conditionals(options.recipe(design.schema))
    if isinstance(design, Gaps):
        _refuse_with_gaps(covariance)
        threads = options.runtime.n_threads
        incomplete = Incomplete.of(design, recipe, n_threads=threads, n_draws=FEWEST_DRAWN)
        complete, task = incomplete.at(fitted.completing_params)
    else:
        complete = design
        task = prepare(design, recipe, n_threads=options.runtime.n_threads)
    clusters = None if cluster is None else _clusters(cluster, frame, design)
    _refuse(task, design, clusters)
    free = method == "free"
    if free:
        _refuse_free(task)
    tests = None if free else by_passing(task, fitted, options)
    if tests is None or covariance == "model" or clusters is not None:
        graph, start = (_every(task), None) if tests is None else (tests.graph, tests.theta)
        rng = np.random.default_rng(seeds(random_state, 1)[0]) if covariance == "model" else None
        apart = untested(task)
        tests = pairs_given(task, graph, start, clusters=clusters, rng=rng, apart=apart)
    return EdgeTests(
        fitted,
        tests.task or task,
        tests,
        method=method,
        covariance=covariance,
        level=float(level),
        n_rows=design.n_rows,
        n_clusters=None if clusters is None else int(clusters.max()) + 1,
        effective_n=_effective(design, clusters),
        rows=RestRows.of(complete),
    )


def _refuse_with_gaps(covariance: str) -> None:
    """Raise NotYetError for what is not offered where cells are missing."""
    if covariance == "model":
        raise NotYetError(
            "covariance='model' is not available yet where missing cells are modelled; use "
            "covariance='rows'."
        )


def _clusters(cluster: object, frame: Frame, design: Design | Gaps) -> Ints:
    """Number of the cluster of every row of the design."""
    return numbered(row_labels("cluster", cluster, frame, design))[1]


def _refuse(task: Task, design: Design | Gaps, clusters: Ints | None) -> None:
    """Raise ParameterError where no test can be trusted."""
    if design.total_weight < FEWEST_ROWS:
        raise ParameterError(
            f"tests of edges need at least {FEWEST_ROWS} rows, and there are "
            f"{design.total_weight:,.6g}. To fix: collect more rows; the graph of a penalised fit "
            "says which edges are worth looking at."
        )
    if clusters is not None and clusters.max() + 1 < FEWEST_ROWS:
        raise ParameterError(
            f"cluster has {int(clusters.max()) + 1} different labels, and variances between fewer "
            f"than {FEWEST_ROWS} clusters cannot be trusted. To fix: test without clusters, or "
            "make the cluster a column of the model."
        )
    if task.beyond is not None:
        raise ParameterError(
            f"edges cannot be tested: {TOO_WIDE}. To fix: fit and test some of the columns, such "
            "as those that have an edge; or ask by a bootstrap how often edges are found again."
        )
    nothing = np.zeros(0, dtype=np.int64)
    reason = untestable(task, nothing)
    if reason:
        raise ParameterError(f"edges cannot be tested: {reason}.")
    if task.layout.n_groups == 0:
        why = "; ".join(("no pair of columns may have an edge", *task.without_edges))
        raise ParameterError(f"{why}. So there is nothing to test.")


def _refuse_free(task: Task) -> None:
    """Raise ParameterError where all pairs cannot be estimated at once."""
    every = _every(task)
    if len(affordable(task, every, np.ones(len(every)))) < len(every):
        raise ParameterError(
            f"method='free' estimates all pairs at once: a column then has {most_predictors(task)} "
            f"predictors, and {task.total_weight:,.6g} rows are too few for these. To fix: "
            "method='graph'."
        )


def by_passing(task: Task, fitted: FittedModel, options: Options) -> PairTests:
    """Tests of all pairs given the edges that pass, as the model's own criterion chooses them.

    Models that were chosen in another way are tested by the default criterion.
    """
    select = options.select
    criterion = NAMED.get(select) if isinstance(select, str) else select
    if not isinstance(criterion, LocalFDR | FDR):
        criterion = LocalFDR()
    layout, weights = task.layout, fitted.all_norms
    u, v = layout.pairs.T
    start = np.flatnonzero(weights[1 + layout.moderator, u, v] > 0.0)
    return settled_from(task, start, criterion.log_limit).tests


def held_graph(task: Task, fitted: FittedModel, options: Options) -> tuple[Ints, str]:
    """The pairs that a bootstrap adjusts for, and the method's name."""
    layout = task.layout
    n_parameters = int((layout.nodes.freedom[layout.pairs].prod(axis=1) * layout.n_blocks).sum())
    enough = task.total_weight >= ROWS_PER_PREDICTOR * most_predictors(task)
    if enough and n_parameters <= MOST_AT_ONCE:
        return _every(task), "free"
    return by_passing(task, fitted, options).graph, "graph"


def _every(task: Task) -> Ints:
    return np.arange(task.layout.n_groups)


def most_predictors(task: Task) -> int:
    """Predictors of the column that has most of them, if all pairs had an edge."""
    layout, freedom = task.layout, task.layout.nodes.freedom
    u, v = layout.pairs.T
    count = np.bincount(v, freedom[u] * layout.n_blocks, layout.n_nodes)
    count = count + np.bincount(u, freedom[v] * layout.n_blocks, layout.n_nodes)
    return int(count[layout.is_target].max(initial=0))


def _effective(design: Design | Gaps, clusters: Ints | None) -> float:
    """Number of independent observations, as Kish counts them: fewer than rows with clusters."""
    if clusters is None:
        return design.total_weight
    weights = np.ones(design.n_rows) if design.weights is None else design.weights
    sums = np.bincount(clusters, weights)
    return float(sums.sum() ** 2 / (sums**2).sum())


# -- EdgeTests -------------------------------------------------------------------------------------

STRONG = float(np.log(10.0))
"""Log Bayes factor from which on an edge counts as present, and below minus which as absent."""

_UNDECIDED_BELOW = 0.05
VERDICTS = ("present", "undecided", "absent")
_LEADING = (
    *("source", "target", "moderator", "strength", "lower", "upper"),
    *("statistic", "df", "p", "probability", "verdict"),
)
"""Columns of `edges()` that the text shows."""


@dataclass(frozen=True, eq=False)
class EdgeTests:
    """Tests of every pair of columns that may have an edge.

    ``print(tests)`` says what was tested and what was found.
    """

    fitted: FittedModel
    task: Task
    tests: PairTests
    method: str
    """Which other pairs are adjusted for: "graph", those that pass their tests; "free", all."""
    covariance: str
    level: float
    n_rows: int
    n_clusters: int | None
    effective_n: float
    rows: RestRows
    """Rows at which strengths are computed."""

    @property
    def share(self) -> float:
        """The share of pairs that have an edge, as estimated from the tests of all."""
        return self.tests.two_groups.share

    # -- frames ------------------------------------------------------------------------------------

    def edges(self) -> Any:
        """Every pair that may have an edge, the most certain first.

        Columns: source, target, kind (and moderator, where edges vary: the row is then about how
        the edge varies with it); strength, as in the model's own `edges()` but without shrinkage
        and given the edges that stand beside the pair, with lower and upper, the ends of its
        interval; for pairs with one parameter estimate and se, in standard deviations of numbers
        and scores and from the first to the second of two levels (for two such columns a log odds
        ratio); norm, that of the parameters; statistic (W, or the likelihood ratio where the notes
        say so) and df; p; p_holm and p_bh, adjusted for all pairs; probability of an edge; log_bf,
        the log Bayes factor for an edge at the spread of effects in this table, and log_bf_unit,
        that of unit information; verdict; in_model, whether the fitted model has it.
        Where some pairs have no test, also untested: why an information criterion judges them.

        Names of columns from statistic to verdict, df apart, end in "_free" after
        ``method="free"``, in "_drawn" after ``covariance="model"``, and in "_clusters" after
        ``cluster=``.
        """
        return frame(self._edges, self.fitted.library)

    def parameters(self) -> Any:
        """Every coefficient of every pair, in the data's own units, as `interaction` shows them.

        Columns: source, target, source_level, target_level, estimate, se, lower, upper.  Where
        edges vary, also moderator and moderator_level: how the coefficient differs at that level
        from its mean over the rows, or how it changes with one unit of a moderator of numbers.
        """
        return frame(self._parameters, self.fitted.library)

    @cached_property
    def _estimates(self) -> PairEstimates:
        assert self.tests.estimates is not None
        return self.tests.estimates

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.tests.statistics.log_p, kind="stable")  # NaN comes last

    def _placed(self, values: Floats) -> Floats:
        """(n_groups,) values of the groups that were estimated; NaN for all others."""
        out = np.full(self.task.layout.n_groups, np.nan)
        out[self.tests.estimated] = values
        return out

    @cached_property
    def log_bf(self) -> Floats:
        """(pairs,) log Bayes factors at the spread of this table's effects; NaN without a test."""
        z = self.tests.statistics.z
        there = ~np.isnan(z)
        out = np.full(len(z), np.nan)
        out[there] = self.tests.two_groups.log_bayes_factor(z[there])
        return out

    @cached_property
    def verdicts(self) -> list[str]:
        """Of every pair: "present", "absent" or "undecided".

        Present or absent from a Bayes factor of 10 on, if an edge is also more, or less, probable
        than not, since one of many pairs has a large Bayes factor by chance; and never absent where
        p is below 0.05.
        """
        log_bf, probable = self.log_bf, self.tests.no_edge < 0.5
        absent = (log_bf <= -STRONG) & ~probable & (self.tests.statistics.p >= _UNDECIDED_BELOW)
        words = np.select(
            [(log_bf >= STRONG) & probable, absent], ["present", "absent"], "undecided"
        )
        return [str(word) for word in words]

    @cached_property
    def _edges(self) -> Columns:
        layout, statistics, n = self.task.layout, self.tests.statistics, self.effective_n
        estimate, se = self._single
        p, df, decisive = statistics.p, statistics.df, self.tests.decisive
        unit = 0.5 * (decisive * n / (1.0 + n) - df * np.log1p(n))
        columns, _ = named_pairs(self.task.schema, layout.pairs)
        if self.task.moderators is not None:
            names = [self.task.schema.nodes[m].name for m in self.task.moderators.nodes]
            columns["moderator"] = np.array([*names, None], dtype=object)[layout.moderator]
        columns |= self._strengths
        columns |= {
            "estimate": estimate,
            "se": se,
            "norm": self._norms,
            self.named("statistic"): decisive,
            "df": df,
            self.named("p"): p,
            **{self.named(name): values for name, values in adjusted(p).items()},
            self.named("probability"): 1.0 - self.tests.no_edge,
            self.named("log_bf"): self.log_bf,
            self.named("log_bf_unit"): unit,
            self.named("verdict"): np.array(self.verdicts, dtype=object),
            "in_model": self._in_model,
        }
        if self.tests.untested:
            columns["untested"] = np.full(layout.n_groups, None, dtype=object)
            for group, reason in self.tests.untested.items():
                columns["untested"][group] = reason
        return {name: values[self._order] for name, values in columns.items()}

    @property
    def option(self) -> str:
        """The end of the names of columns that options other than the default decide."""
        return (
            ("_free" if self.method == "free" else "")
            + ("_drawn" if self.covariance == "model" else "")
            + ("_clusters" if self.n_clusters is not None else "")
        )

    def named(self, column: str) -> str:
        """The name of a column of `edges()` that depends on the options."""
        return f"{column}{self.option}"

    @property
    def _in_model(self) -> Any:
        layout = self.task.layout
        u, v = layout.pairs.T
        return self.fitted.all_norms[1 + layout.moderator, u, v] > 0.0

    @cached_property
    def _strengths(self) -> dict[str, Floats]:
        """Strengths of all pairs with their intervals, which hold zero where the test does."""
        if self.rows is None:
            none = np.full(self.task.layout.n_groups, np.nan)
            return dict.fromkeys(("strength", "lower", "upper"), none)
        tests = self.tests
        inside = PairStrengths(self.task, tests.theta, self._estimates, tests.estimated, self.rows)
        columns = inside.columns(self.level)
        open_to_zero = self.tests.statistics.p > 1.0 - self.level
        known = np.isfinite(columns["lower"])
        columns["lower"] = np.where(open_to_zero & known, 0.0, columns["lower"])
        return columns

    @cached_property
    def _norms(self) -> Floats:
        """Norms of the estimates on the scale of the penalty."""
        layout = self._estimates.layout
        norms = np.sqrt(layout.group_sums(self._estimates.eta**2))
        share = self.task.layout.conditionals / self.task.layout.conditionals_at_most
        return np.asarray(self._placed(norms) * self.task.yardstick / share)

    @cached_property
    def _single(self) -> tuple[Floats, Floats]:
        """Estimates of pairs with one parameter, and their standard errors; NaN for others."""
        layout, moderators = self.task.layout, self.task.moderators
        steps = np.where(layout.nodes.numeric_nodes, 1.0, -np.sqrt(2.0))  # to the other level
        by_node = () if moderators is None else moderators.nodes
        of_moderator = np.append(steps[list(by_node)], 1.0)[layout.moderator]
        estimate, se = np.full((2, layout.n_groups), np.nan)
        for places, values, covariance in self._estimates.by_size():
            if values.shape[1] == 1:
                groups = self.tests.estimated[places]
                unit = steps[layout.pairs[groups]].prod(axis=1) * of_moderator[groups]
                estimate[groups] = unit * values[:, 0]
                se[groups] = np.abs(unit) * np.sqrt(covariance[:, 0, 0])
        return estimate, se

    @cached_property
    def _parameters(self) -> Columns:
        axes = [self._axis(v) for v in range(self.task.layout.n_nodes)]
        rank = np.empty_like(self._order)
        rank[self._order] = np.arange(len(rank))
        small = replace(self.task, smooth=self.task.smooth.restrict(self.tests.estimated))
        columns = pair_coefficients(small, self._estimates, axes, rank[self.tests.estimated])
        return columns | self._interval(columns["estimate"], columns["se"])

    def _interval(self, estimate: Floats, se: Floats) -> dict[str, Floats]:
        step = float(norm.isf(0.5 * (1.0 - self.level))) * se
        return {"lower": estimate - step, "upper": estimate + step}

    def _axis(self, node: int) -> tuple[str | None, ...]:
        """Names of a node's observed levels; of one of numbers, nothing, or its two parts."""
        nodes = self.task.layout.nodes
        if nodes.width[node] == 1 and nodes.numeric_nodes[node]:
            return (None,)
        names = self.fitted.axis(node)
        if nodes.numeric_nodes[node]:
            return names
        start = self.task.schema.spans.level_start
        place = self.task.schema.spans.place(node)
        seen = self.task.observed[start[place] : start[place + 1]]
        return tuple(name for name, there in zip(names, seen, strict=True) if there)

    # -- text and picture --------------------------------------------------------------------------

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done, in words."""
        given = {
            "free": "each given all other pairs",
            "graph": "each given the edges that pass their own tests",
        }[self.method]
        drawn = "rows drawn from the model" if self.covariance == "model" else "the rows"
        rows = f"{self.n_rows:,} rows"
        if self.n_clusters is not None:
            rows += f" in {self.n_clusters:,} clusters"
        lines = [
            f"{rows}; {given}; variances from {drawn}",
            f"about {self.share:.2g} of all pairs have an edge; evidence for or against one counts "
            "as strong from a Bayes factor of 10 on",
        ]
        if len(self.tests.ridge):
            have = "pair has" if len(self.tests.ridge) == 1 else "pairs have"
            lines.append(f"{len(self.tests.ridge)} {have} a ridge worth one row")
        if self.tests.ratios:
            lines.append(
                f"{len(self.tests.ratios)} pairs have the likelihood ratio as their statistic, "
                "because their estimates are too uncertain for W"
            )
        if self.tests.untested:
            lines.append(
                f"{len(self.tests.untested)} pairs are judged by an information criterion instead "
                "of a test: the column `untested` says why"
            )
        return (*lines, *self.task.without_edges)

    @property
    def _title(self) -> str:
        count = Counter(self.verdicts)
        parts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS)
        return f"Tests of {len(self.verdicts):,} pairs: {parts}"

    def summary(self) -> str:
        """Return what was found as text."""
        from mixedgm.results.result import result_text

        return result_text(self._title, self._leading, self.notes, "edges()")

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from mixedgm.results.result import result_html

        return result_html(self._title, self._leading, self.notes, "edges()")

    @property
    def _leading(self) -> Columns:
        wanted = {*_LEADING, *map(self.named, _LEADING)}
        return {name: self._edges[name] for name in self._edges if name in wanted}

    def plot(self, *, ax: Any = None) -> Any:
        """Draw how probable an edge is for every pair of columns, with the verdicts.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from mixedgm.pictures.matrices import plot_tests

        layout = self.task.layout
        plain = layout.moderator < 0
        names = [node.name for node in self.task.schema.nodes]
        chance = 1.0 - self.tests.no_edge[plain]
        verdicts = [v for v, keep in zip(self.verdicts, plain, strict=True) if keep]
        return plot_tests(names, layout.pairs[plain], chance, verdicts, ax=ax)
