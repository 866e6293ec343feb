"""A fitted model and its table -> EdgeTests: a test of every pair that may have an edge."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.errors import NotYetError, ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.inference.strength import RestRows
from mixedgm.model.layout import Ints
from mixedgm.options import Options
from mixedgm.parallel import RandomState, seeds
from mixedgm.parameters import ensure, is_real
from mixedgm.path.error_rates import FDR, LocalFDR, settled_from
from mixedgm.path.graph_search import affordable
from mixedgm.path.pair_tests import TOO_WIDE, PairTests, pairs_given, untestable, untested
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.rounds import FEWEST as FEWEST_DRAWN
from mixedgm.path.rounds import Incomplete
from mixedgm.path.selection import NAMED
from mixedgm.path.task import Task, prepare
from mixedgm.printable import quoted
from mixedgm.studies.edge_tests_result import EdgeTests
from mixedgm.studies.row_groups import row_labels
from mixedgm.table import as_frame
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps, read_rows
from mixedgm.table.labels import numbered
from mixedgm.table.read import Frame

__all__ = ["edge_tests"]

METHODS = ("graph", "free")
COVARIANCES = ("rows", "model")
ROWS_PER_PREDICTOR = 8.0
"""From so many rows for each predictor of every column on, a bootstrap adjusts for all pairs."""

FEWEST_ROWS = 30
MOST_AT_ONCE = 4000
"""Parameters that are estimated at once."""


def edge_tests(
    model: Any,
    X: Any,
    *,
    method: str = "graph",
    covariance: str = "rows",
    cluster: Any = None,
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
    ensure(is_real(level) and 0.0 < level < 1.0, "level", "a number in (0, 1)", level)
    fitted, options = _checked(model, n_jobs)
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


def _checked(model: Any, n_jobs: int | None) -> tuple[FittedModel, Options]:
    from sklearn.utils.validation import check_is_fitted

    estimator = hasattr(model, "get_params") and hasattr(model, "fit")
    ensure(estimator, "model", "a fitted MixedGraphicalModel", model)
    check_is_fitted(model, "fitted_")
    given = model.get_params(deep=False) | {"n_jobs": n_jobs, "verbose": 0}
    return model.fitted_, Options(**given)


def _clusters(cluster: Any, frame: Frame, design: Design | Gaps) -> Ints:
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
