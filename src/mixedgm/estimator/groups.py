"""A table in groups -> GroupComparison, with an estimator for every group."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mixedgm.estimator.model import MixedGraphicalModel
from mixedgm.fit.options import Options

if TYPE_CHECKING:
    from mixedgm.base.parallel import RandomState
    from mixedgm.studies.groups.result import GroupComparison


def compare(
    X: object,
    groups: object,
    *,
    lam: float | ArrayLike | None = None,
    select: object = "local-fdr",
    test: str = "auto",
    penalty: str = "common",
    paired: object = None,
    cluster: object = None,
    n_perm: int | None = None,
    alpha: float = 0.05,
    limit: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
    **options: Any,
) -> GroupComparison:
    """Fit one graph per group of rows, and test whether the graphs differ.

    Parameters
    ----------
    X : data frame, 2-D array or path
        The table.  Kinds, levels and transforms are those of the whole table.
    groups : str or array (n,)
        A column of `X`, which is then not part of the graphs, or one label per row.  Two or more
        groups.
    lam : float, or one per column, optional
        The penalty of all groups; one per column for ``loss="nodewise"``.
    select : str or object
        How the penalty is chosen where `lam` is not given, as for `MixedGraphicalModel`.
    test : {"auto", "differences", "permutation"}
        How groups are compared.  "differences" finds a graph in every group, estimates every pair
        without shrinkage given the edges of all these graphs, and tests the differences;
        "permutation" shuffles the labels and fits all graphs again.  Groups may differ in means,
        variances and shares.  "auto" tests differences where every group has at least 60 rows;
        elsewhere, and where `n_perm` or `checkpoint` is given, labels are shuffled.  The result
        says which and why.  A pair with a column that lacks a level in some group has no test of
        its difference; `untested` lists these pairs.
    penalty : {"common", "own"}
        For permutations.  One penalty for all groups, chosen on the whole table, in which the
        groups' own means, variances and shares are taken out and which counts as much as a mean
        group.  Or chosen in every group for itself, and again after every shuffle of the labels,
        which takes long.
    paired : str or array (n,), optional
        The unit of every row, such as a person, where units are measured in several groups.
        Estimates of groups then depend on each other, which tests of differences take into
        account; labels are shuffled within units only.  A column of `X` is not part of the graphs.
    cluster : str or array (n,), optional
        Rows that belong together, such as households, within groups or across them, for tests of
        differences.  Weights then count as those of a survey's design.  A column of `X` is not part
        of the graphs.
    n_perm : int, optional
        How often labels are shuffled; 500 by default, 0 for graphs without tests.
    alpha : float
        Level of the test of whole graphs and, one minus it, of intervals; in permutations a pair
        differs if `p_max` is at most this.
    limit : float, optional
        In tests of differences a pair differs if the probability that it does not is at most this.
        By default, where some pair is more likely to differ than not, it is the limit with which
        missed and false differences are expected to balance best (the largest expected F1); else
        0.5.
    sample_weight : array (n,) or str, optional
        Frequencies of the rows, or the name of their column.  Whole numbers count identical rows,
        which change groups one by one; otherwise a row changes its group with its weight.
    n_jobs : int, optional
        Processes: all cores by default, or as `joblib.parallel_config` says.  It never changes a
        result.
    random_state : int, Generator, RandomState or None
        The same seed gives the same shuffles and the same p-values.
    checkpoint : path of a folder, optional
        Finished permutations are kept there.  The same call with the same folder continues
        where it stopped, however it was ended.
    verbose : int
        1 shows a progress bar.
    **options
        Other options of `MixedGraphicalModel`.

    Returns
    -------
    GroupComparison
        Models, tables, tests and pictures.

    Notes
    -----
    Differences are tested by W = d'(V1 + V2)^-1 d with Godambe's covariances of the estimates of
    two groups, and alike for more of them; a pair with many parameters also along the order of its
    levels.  Numbers are measured by their residual standard deviation in their group, so the
    estimate of two numbers is their partial correlation.  Tests of whole graphs draw errors of all
    pairs together, by random multipliers of the rows.  The probability that a pair differs comes
    from the patterns of all pairs: no edge, the same edge in all groups, an edge in some groups
    only, edges of different sizes (Efron and others 2001).

    Before a permutation, continuous columns are moved, and rows weighted by exponentials of their
    own terms, such that all groups have equal means, variances and shares: that changes no
    coefficient.  A p-value is (1 + number of shuffles at least as extreme) / (1 + shuffles).

    Examples
    --------
    >>> import numpy as np, pandas as pd, mixedgm as mg
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(["north", "south"], 200)
    >>> x, y, z = rng.normal(size=(3, 400))
    >>> y = np.where(site == "north", y + x, y)
    >>> table = pd.DataFrame({"x": x, "y": y, "z": z, "site": site})
    >>> comparison = mg.compare(table, "site", lam=0.1, random_state=0)
    >>> comparison
    <GroupComparison: 2 groups, tests of differences>
    >>> edge = comparison.edges().iloc[0]
    >>> edge["source"], edge["target"], bool(edge["differs"])
    ('x', 'y', True)
    >>> print(comparison.sentence)
    The graphs differ (p = 0.0005): 1 pair, of which 0.0 is expected to be false; most: x - y.
    >>> mg.compare(table, "site", lam=0.1, n_perm=49, random_state=0)
    <GroupComparison: 2 groups, 49 permutations, common penalty>
    """
    from mixedgm.studies.groups.compare import Request, compare_groups

    request = Request(
        groups,
        paired=paired,
        cluster=cluster,
        test=test,
        penalty=penalty,
        n_perm=n_perm,
        alpha=alpha,
        limit=limit,
        n_jobs=n_jobs,
        random_state=random_state,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    # The margin of all rows together is not normal where groups differ in means or variances.
    options = {"transforms": None, **options}
    chosen = Options(lam=lam, select=select, random_state=random_state, **options)
    comparison = compare_groups(X, chosen, request, sample_weight)
    given = {**options, "select": select, "n_jobs": n_jobs, "random_state": random_state}
    if penalty == "common":
        given["lams"] = None
    models = {}
    for label, fitted in zip(comparison.groups, comparison.fitted, strict=True):
        # The estimator that would fit this group: at its lam, or choosing it again.
        given["lam"] = fitted.report.lam if penalty == "common" else None
        models[label] = MixedGraphicalModel(**given)._adopt(fitted)
    return replace(comparison, models=models)
