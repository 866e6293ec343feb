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
from mixedgm.path.error_rates import LocalFDR
from mixedgm.path.graph_search import affordable, settled
from mixedgm.path.pair_tests import TOO_WIDE, pairs_given
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.rounds import Incomplete
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

METHODS = ("auto", "free", "graph")
COVARIANCES = ("auto", "model", "rows")
ROWS_PER_PREDICTOR = 8.0
"""From so many rows for each predictor of every column on, "auto" estimates all pairs at once."""

FEWEST_ROWS = 30
MOST_AT_ONCE = 4000
"""Parameters that are estimated at once."""


def edge_tests(
    model: Any,
    X: Any,
    *,
    method: str = "auto",
    covariance: str = "auto",
    cluster: Any = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
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
    method : {"auto", "free", "graph"}
        What stands beside a pair when it is tested: all other pairs ("free"), or the edges that
        pass a test themselves ("graph": more power, and the only way with few rows; pairs with a
        probability of at least one half pass).  "auto" takes all pairs where every column has at
        least eight rows for each of its predictors, and there are at most 4,000 parameters.
    covariance : {"auto", "model", "rows"}
        Where the variance of a row's gradient comes from: rows that are redrawn from the model
        without shrinkage, or the rows themselves.  The model's holds with few rows and rare levels,
        where that of the rows finds too much; that of the rows does not assume that conditionals
        have the right form.  "auto" is "rows" with clusters, which only the rows know about, and
        else "model".
    cluster : str or array (n,), optional
        Rows that belong together (households, patients), as a column of `X` or one label per row.
        With a label of its own for every row, weights count as those of a survey's design instead
        of as frequencies.
    level : float
        Of the intervals.
    sample_weight : array (n,) or str, optional
        Frequencies of the rows, or the name of their column.
    random_state : int, Generator, RandomState or None
        Which rows are drawn, for variances of the model.
    n_jobs : int, optional
        Threads; they change no result.

    Returns
    -------
    EdgeTests
        `edges()`: estimate, standard error, interval, statistic, p-values, probability, Bayes
        factor and verdict of every pair.  `parameters()`: all their coefficients.  `plot()`.

    Raises
    ------
    ParameterError
        Where no test can be trusted: fewer than 30 rows or clusters, or with ``method="free"``
        fewer than four rows for each predictor of a column.

    Notes
    -----
    W = n e'V^-1 e with Godambe's covariance V (Godambe 1960; Lindsay 1988) is compared with a
    chi-square.  A pair with many parameters is also tested along the order of its levels, and both
    p-values are combined (Liu and Xie 2020).  The probability of an edge and the Bayes factor come
    from a fit of two groups to the tests of all pairs (Efron and others 2001).

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
        covariance = _with_gaps(covariance, cluster)
        incomplete = Incomplete.of(design, recipe, n_threads=options.runtime.n_threads)
        _, task = incomplete.at(fitted.pairwise_params)
    else:
        task = prepare(design, recipe, n_threads=options.runtime.n_threads)
    clusters = None if cluster is None else _clusters(cluster, frame, design)
    _refuse(task, design, clusters)
    graph, chosen = held_graph(task, fitted, method)
    if covariance == "auto":
        covariance = "model" if clusters is None else "rows"
    rng = np.random.default_rng(seeds(random_state, 1)[0]) if covariance == "model" else None
    tests = pairs_given(task, graph, clusters=clusters, rng=rng)
    return EdgeTests(
        fitted,
        tests.task or task,
        tests,
        method=chosen,
        covariance=covariance,
        level=float(level),
        n_rows=design.n_rows,
        n_clusters=None if clusters is None else int(clusters.max()) + 1,
        effective_n=_effective(design, clusters),
        rows=fitted.rows if isinstance(design, Gaps) else RestRows.of(design),
    )


def _with_gaps(covariance: str, cluster: Any) -> str:
    """Raise NotYetError for what is not offered where cells are missing."""
    if cluster is not None:
        raise NotYetError(
            "tests with clusters are not available yet where missing cells are modelled; fit the "
            "model with missing='drop', or test without cluster=."
        )
    if covariance == "model":
        raise NotYetError(
            "covariance='model' is not available yet where missing cells are modelled; use "
            "covariance='rows'."
        )
    return "rows"


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
    if task.layout.n_groups == 0:
        why = "; ".join(("no pair of columns may have an edge", *task.without_edges))
        raise ParameterError(f"{why}. So there is nothing to test.")


def held_graph(task: Task, fitted: FittedModel, method: str) -> tuple[Ints, str]:
    """What stands beside every pair, and the method's name."""
    layout, everything = task.layout, np.arange(task.layout.n_groups)
    predictors = most_predictors(task)
    n_parameters = int((layout.nodes.freedom[layout.pairs].prod(axis=1) * layout.n_blocks).sum())
    roomy = task.total_weight >= ROWS_PER_PREDICTOR * predictors and n_parameters <= MOST_AT_ONCE
    if method == "free" and len(affordable(task, everything, np.ones(len(everything)))) < len(
        everything
    ):
        raise ParameterError(
            f"method='free' estimates all pairs at once: a column then has {predictors} "
            f"predictors, and {task.total_weight:,.6g} rows are too few for these. To fix: "
            "method='graph'."
        )
    if method == "free" or (method == "auto" and roomy):
        return everything, "free"
    weights = fitted.all_norms
    u, v = layout.pairs.T
    start = np.flatnonzero(weights[1 + layout.moderator, u, v] > 0.0)
    return settled(task, start, LocalFDR(0.5).log_limit).graph, "graph"


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
