"""Parameters, or a graph, in -> MixedGraphicalModel of which the truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixedgm.base.parallel import RandomState, seeds
from mixedgm.base.parameters import ensure
from mixedgm.estimator.model import MixedGraphicalModel
from mixedgm.fit.given_parameters import ColumnsArg, ParamsArg, given_model
from mixedgm.studies.edges.graphs import random_params, schema_of_graph
from mixedgm.table.read import frame_library


def from_params(
    schema: ColumnsArg, params: ParamsArg, *, frame: str = "auto"
) -> MixedGraphicalModel:
    """Make a model from given parameters; nothing is fitted.

    Parameters
    ----------
    schema : Schema or mapping
        The columns: ``model.schema_``, or a dict of name to "continuous", a number of levels, the
        levels, ``mg.Ordinal(levels=[...])`` or ``mg.Count(largest=...)``.
    params : Params or mapping
        The blocks, as in ``model.params_``; a mapping may leave some out, which then are those of
        independent standard normal and uniform columns, with own terms zero.  Blocks have
        continuous columns first, then ordinal ones, counts and categorical ones:

        - `precision` and `cont_bias` of the continuous columns;
        - `score_interaction` (numbers, numbers), with numbers the continuous, ordinal and count
          columns: one parameter for every pair in which one is ordinal or a count;
        - `category_shift` (numbers, levels) between numbers and levels of categorical columns;
        - `cat_interaction` (levels, levels) between levels of categorical columns;
        - `cat_bias`: one term for each level, or the linear and the quadratic one (and that of
          zero) of a count or of an ordinal column with quadratic thresholds.
    frame : {"auto", "pandas", "polars", "pyarrow", "numpy"}
        The library of the tables that the model returns; "auto" is the first that is installed.

    Returns
    -------
    MixedGraphicalModel
        Ready for `sample`, `edges`, `predict`, `save`, ...  It has no penalty and no certificate:
        `lam_`, `objective_` and `kkt_` are NaN, and the summary says "given, not fitted".

    Raises
    ------
    ParameterError
        Naming everything that is wrong: shapes, asymmetry, a precision matrix that is not
        positive definite, ...

    Notes
    -----
    `params_` holds the same distribution with blocks that sum to zero over levels, as fits have
    them.  Strengths are means over rows drawn from the model.

    Examples
    --------
    >>> import mixedgm as mg
    >>> truth = mg.from_params(
    ...     {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-0.5, 0.5]]}
    ... )
    >>> [(edge.source, edge.target, edge.sign) for edge in truth.edges_]
    [('height', 'sex', '+')]
    >>> columns = {"pain": mg.Ordinal(levels=["low", "high"]), "visits": mg.Count(largest=20)}
    >>> truth = mg.from_params(columns, {"score_interaction": [[0.0, 0.8], [0.8, 0.0]]})
    >>> [round(truth.mean({"pain": pain})["visits"], 2) for pain in ("low", "high")]
    [1.0, 1.48]
    """
    return MixedGraphicalModel()._adopt(given_model(schema, params, _library(frame)))


def random_model(
    graph: object,
    *,
    types: object = None,
    sizes: object = None,
    bias: float = 0.0,
    random_state: RandomState = None,
    frame: str = "auto",
) -> MixedGraphicalModel:
    """Make a model with a given graph and random parameters.

    Parameters
    ----------
    graph : networkx.Graph or sequence of pairs of names
        The edges that the model has, and no others.
    types : mapping of node, or sequence in the order of the nodes, optional
        "continuous", a number of levels, the levels of a node, ``mg.Ordinal(levels=[...])`` or
        ``mg.Count(largest=...)``.  By default what the attributes `kind`, `levels` and `largest` of
        the nodes say, as in ``model.to_networkx()``; without those, nodes are continuous and binary
        in turn.
    sizes : (low, high), or mapping of edge kind to (low, high), optional
        The size of an edge is uniform in this range: the root mean square of its parameters, which
        for two continuous columns is the partial correlation's size.  Default: 0.2 to 0.3 for
        "continuous-continuous", 0.4 to 0.6 for "continuous-categorical" and
        "categorical-categorical".  Directions are random, and so are signs.
    bias : float
        Linear terms and levels' own terms are uniform in [-bias, bias]; 0 makes levels about
        equally frequent.
    random_state : int, Generator, RandomState or None
        Equal numbers give equal models.
    frame : {"auto", "pandas", "polars", "pyarrow", "numpy"}
        The library of the tables that the model returns.

    Returns
    -------
    MixedGraphicalModel
        As from `from_params`.  The precision matrix has a unit diagonal.  Where it would not be
        positive definite (smallest eigenvalue below 0.25), all of its edges are made smaller by one
        factor, which is in the notes of the summary.

    Examples
    --------
    >>> import mixedgm as mg
    >>> truth = mg.random_model([("a", "b"), ("b", "c")], types={"c": 3}, random_state=0)
    >>> truth.schema_.n_levels, len(truth.edges_)
    ((2, 3), 2)
    """
    rng = np.random.default_rng(seeds(random_state, 1)[0])
    schema = schema_of_graph(graph, types)
    params, notes = random_params(graph, schema, rng, sizes=sizes, bias=bias)
    fitted = given_model(schema, params, _library(frame))
    report = replace(fitted.report, notes=(*notes, *fitted.report.notes))
    return MixedGraphicalModel()._adopt(replace(fitted, report=report))


def _library(frame: str) -> str:
    choices = ("auto", "pandas", "polars", "pyarrow", "numpy")
    ensure(frame in choices, "frame", f"one of {', '.join(map(repr, choices))}", frame)
    return frame_library("numpy") if frame == "auto" else frame
