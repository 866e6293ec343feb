"""Columns and parameters in -> a checked FittedModel of which the truth is known."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from mixedgm.base.errors import ParameterError, SamplingWarning, TooLargeError
from mixedgm.base.printable import quoted
from mixedgm.families import KINDS
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.report import FitReport
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.table.declarations import Count, Ordinal
from mixedgm.table.schema import Column, Kind, Schema
from mixedgm.table.values import as_doubles

ColumnsArg = Schema | Mapping[Any, Any]
ParamsArg = Params | Mapping[str, Any]

_BLOCKS = (
    "precision",
    "cont_bias",
    "category_shift",
    "cat_interaction",
    "cat_bias",
    "score_interaction",
)
_ROUNDING = 1e-10
_MOST = 1e100
"""Sizes whose squares, and ratios of these, have room in double precision."""

IN_TURN = ("continuous", 2)
"""Columns of a graph whose nodes do not say what they are."""


def schema_of(columns: ColumnsArg) -> Schema:
    """Return the schema that a mapping of column names describes; numbers count levels.

    Examples
    --------
    >>> from mixedgm.table.declarations import Count, Ordinal
    >>> columns = {"age": "continuous", "sex": ["F", "M"], "stage": 3}
    >>> columns |= {"pain": Ordinal(["low", "high"]), "visits": Count(largest=9)}
    >>> print(schema_of(columns))
    column  kind         role    levels         note
    age     continuous   target
    sex     categorical  target  2: F, M
    stage   categorical  target  3: a, b, c
    pain    ordinal      target  2: low < high
    visits  count        target  0 to 9
    """
    if isinstance(columns, Schema):
        return columns
    if not isinstance(columns, Mapping) or not columns:
        wanted = "a Schema, or a dict such as {'age': 'continuous', 'sex': ['F', 'M']}"
        raise ParameterError.must_be("schema", wanted, columns)
    return Schema(tuple(_column(str(name), what) for name, what in columns.items()))


def _column(name: str, what: object) -> Column:
    if isinstance(what, str) and what in KINDS and KINDS[what].is_gaussian:
        return Column(name, cast(Kind, what))
    if isinstance(what, Ordinal) and what.levels is not None:
        return Column(
            name,
            what.kind,
            levels=tuple(what.levels),
            scores=tuple(what.scores or ()),
            thresholds=what.thresholds,
        )
    if isinstance(what, Count) and what.largest is not None:
        return Column(
            name, what.kind, dtype="int64", largest=what.largest, zero_term=what.zero_term
        )
    levels: tuple[Any, ...] = ()
    if isinstance(what, (int, np.integer)) and not isinstance(what, bool):
        levels = _level_names(int(what))
    elif isinstance(what, Sequence) and not isinstance(what, str):
        levels = tuple(what)
    if len(levels) < 2 or not all(isinstance(level, (str, bool, int, float)) for level in levels):
        wanted = (
            "'continuous', a number of levels, at least two levels, mg.Ordinal(levels=[...]) or "
            "mg.Count(largest=...)"
        )
        raise ParameterError.must_be(f"column {quoted(name)}", wanted, what)
    return Column(name, "categorical", levels=levels)


def _level_names(n_levels: int) -> tuple[str, ...]:
    if n_levels <= 26:
        return tuple("abcdefghijklmnopqrstuvwxyz"[: max(n_levels, 0)])
    digits = len(str(n_levels - 1))  # equal lengths, so that sorting keeps the order
    return tuple(f"l{at:0{digits}d}" for at in range(n_levels))


def given_model(columns: ColumnsArg, params: ParamsArg, library: str) -> FittedModel:
    """Return a model with these parameters; nothing is fitted, and its report says so.

    Norms of edges are on the scale of the model's own distribution.
    """
    schema = schema_of(columns)
    identified = centred(checked_params(schema, params))
    scales, notes = node_scales(identified)
    return FittedModel(schema, identified, scales, FitReport.given(notes), library)


def node_scales(params: Params) -> tuple[Floats, tuple[str, ...]]:
    """Return the scales of all columns under the model, and what to know about the numbers."""
    from mixedgm.joint.exact import expectations
    from mixedgm.joint.sampled import sampled_margins

    moments, notes = None, tuple[str, ...]()
    form = params if params.nodes.n_spiked else params.joint
    if isinstance(form, ConditionalGaussian):
        with suppress(TooLargeError):
            moments = expectations(form)
    if moments is not None:
        mean, variance, share = moments.mean, np.diagonal(moments.covariance), moments.share
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SamplingWarning)
            sampled = sampled_margins(form, rng=np.random.default_rng(0))
        mean, variance, share = sampled.mean, sampled.variance, sampled.share
        bad = any(issubclass(warning.category, SamplingWarning) for warning in caught)
        rough = ", roughly: the chains that drew them have not mixed well" if bad else ""
        notes = (f"norms of edges are on the scale of simulated rows{rough}",)
    nodes = params.nodes
    by_column = nodes.column_variance(*nodes.statistics.column_moments(mean, variance, share))
    first = np.searchsorted(nodes.column_scale, np.arange(len(nodes.scale_node)))
    return np.sqrt(np.add.reduceat(by_column, first)), notes


def checked_params(schema: Schema, params: ParamsArg) -> Params:
    """Return the blocks as Params, or raise one ParameterError with everything that is wrong.

    Blocks that a mapping leaves out are those of independent standard normal and uniform columns.
    """
    blocks, plain = _blocks(schema, params), Params.independent(schema.spans)
    shapes = {name: getattr(plain, name).shape for name in _BLOCKS}
    wrong = [
        f"{name} has shape {blocks[name].shape}, but the columns need {shape}"
        for name, shape in shapes.items()
        if blocks[name].shape != shape
    ]
    if not wrong:
        given = _assembled(plain, blocks)
        wrong = _spiked_precisions(schema, given) or _not_finite(given)
        wrong = wrong or [
            *_asymmetric(schema, given, blocks),
            *_diagonal(schema, given),
            *_self_interactions(schema, given, blocks["score_interaction"]),
        ]
        wrong = wrong or _indefinite(given)
    if wrong:
        raise ParameterError("these parameters do not make a model: " + "; ".join(wrong) + ".")
    return replace(given, coef=_symmetric(given.coef))


def _assembled(plain: Params, blocks: Mapping[str, Floats]) -> Params:
    """Parameters with these blocks."""
    numeric, coef = plain.nodes.n_numeric, plain.coef.copy()
    coef[:numeric, :numeric] = blocks["score_interaction"]
    coef[:numeric, numeric:] = blocks["category_shift"]
    coef[numeric:, :numeric] = blocks["category_shift"].T
    coef[numeric:, numeric:] = blocks["cat_interaction"]
    bias = np.concatenate([blocks["cont_bias"], blocks["cat_bias"]])
    return replace(plain, bias=bias, coef=coef).with_precision(blocks["precision"])


def _blocks(schema: Schema, params: ParamsArg) -> dict[str, Floats]:
    if isinstance(params, Params):
        if params.n_levels != schema.n_levels:
            raise ParameterError(
                f"params has n_levels {params.n_levels}, but the categorical columns of the "
                f"schema have {schema.n_levels} levels."
            )
        if params.nodes.in_own_units != schema.spans:
            raise ParameterError("params has other kinds of columns than the schema.")
        given: Mapping[str, Any] = {name: getattr(params, name) for name in _BLOCKS}
    elif isinstance(params, Mapping):
        given = params
    else:
        raise ParameterError.must_be("params", "Params or a dict of its blocks", params)
    unknown = [name for name in given if name not in (*_BLOCKS, "n_levels")]
    if unknown:
        raise ParameterError(
            f"params has no block {quoted(unknown[0])}; the blocks are {', '.join(_BLOCKS)}."
        )
    plain = Params.independent(schema.spans)
    blocks = {}
    for name in _BLOCKS:
        try:
            blocks[name] = as_doubles(given.get(name, getattr(plain, name))).copy()
        except (TypeError, ValueError):
            raise ParameterError.must_be(name, "an array of numbers", given[name]) from None
    return blocks


def _not_finite(params: Params) -> list[str]:
    wrong = []
    for name in _BLOCKS:
        block = getattr(params, name)
        bad = ~(np.abs(block) < _MOST)
        if name == "cat_bias":  # -inf: a level that cannot occur
            bad &= ~np.isneginf(block)
        if bad.any():
            n_bad = np.count_nonzero(bad)
            wrong.append(f"{name} holds {n_bad} values that are not finite numbers below {_MOST:g}")
    for discrete in range(len(params.n_levels)):
        if np.isneginf(params.logits[params.levels_of(discrete)]).all():
            wrong.append(f"cat_bias leaves categorical column number {discrete} without any level")
    quadratic = np.repeat(~params.nodes.free, params.nodes.n_biases[params.nodes.discrete])
    if np.isinf(params.cat_bias[quadratic]).any():
        wrong.append("cat_bias is infinite for a column whose values have no terms of their own")
    return wrong


def _asymmetric(schema: Schema, params: Params, blocks: Mapping[str, Floats]) -> list[str]:
    spans = schema.spans
    columns = schema.nodes[: int(np.count_nonzero(spans.numeric_nodes))]
    numbers = [name for c in columns for name in c.node_kind.axis(c.name, ())]
    levels = [f"{c.name}={x}" for c in schema.nodes[len(columns) :] for x in c.level_names]
    names = {
        "precision": [c.name for c in schema.gaussian],
        "cat_interaction": levels,
        "score_interaction": numbers,
    }
    wrong = []
    for name, axis in names.items():
        block = blocks[name]
        gap = np.abs(block - block.T)
        if gap.size and gap.max() > _ROUNDING * max(1.0, float(np.abs(block).max())):
            u, v = np.unravel_index(gap.argmax(), gap.shape)
            wrong.append(
                f"{name} is not symmetric: {block[u, v]:g} at ({quoted(axis[u])}, "
                f"{quoted(axis[v])}), {block[v, u]:g} at ({quoted(axis[v])}, {quoted(axis[u])})"
            )
    return wrong


def _spiked_precisions(schema: Schema, params: Params) -> list[str]:
    return [
        f"the third of the terms in cat_bias of a hurdle column must be positive, and is {value:g} "
        f"at {quoted(column.name)}"
        for column, value in zip(schema.real, params.precisions, strict=True)
        if column.node_kind.has_spike and not value > 1.0 / _MOST
    ]


def _diagonal(schema: Schema, params: Params) -> list[str]:
    return [
        f"the diagonal of precision must be positive, above {1.0 / _MOST:g}, and is {value:g} at "
        f"{quoted(column.name)}"
        for column, value in zip(schema.gaussian, params.diagonal, strict=True)
        if value <= 1.0 / _MOST
    ]


def _self_interactions(schema: Schema, params: Params, between_scores: Floats) -> list[str]:
    spans, wrong = schema.spans, []
    for node, column in enumerate(schema.nodes):
        own = params.coef[spans.columns_of(node), spans.columns_of(node)]
        if own.any() and not spans.is_gaussian(node):
            what = "the scores" if len(own) == 1 else "levels"
            what = "both parts" if spans.spiked_nodes[node] else what
            block = "score_interaction" if spans.numeric_nodes[node] else "cat_interaction"
            wrong.append(
                f"{block} has values between {what} of {quoted(column.name)} itself, where only "
                "zeros belong (its own terms are in cat_bias)"
            )
    if between_scores[spans.gaussian, spans.gaussian].any():
        wrong.append(
            "score_interaction has values between continuous columns, where only zeros belong "
            "(these are in precision)"
        )
    return wrong


def _indefinite(params: Params) -> list[str]:
    from mixedgm.joint.validity import SMALLEST_PIVOT, smallest_eigenvalue

    if not params.nodes.n_real:
        return []
    smallest = smallest_eigenvalue(_symmetric(params.real_precision))
    if smallest > SMALLEST_PIVOT:
        return []
    what = (
        "the precision of continuous and hurdle columns" if params.nodes.n_spiked else "precision"
    )
    return [
        f"{what} is not positive definite, so there is no joint distribution: with a unit "
        f"diagonal its smallest eigenvalue is {smallest:.3g}; make its off-diagonal entries smaller"
    ]


def _symmetric(block: Floats) -> Floats:
    return np.asarray((block + block.T) / 2.0)


# -- the identified form: every block of an edge sums to zero over levels --------------------------


def centred(params: Params) -> Params:
    """Return the same distribution with blocks that sum to zero over levels, as fits have them.

    What the centring takes from an edge goes to the node terms, so that a block which does not
    change with the level is no edge.  Levels that cannot occur have no edge parameters.
    """
    nodes, coef, moved = params.nodes, params.coef.copy(), np.zeros(params.nodes.n_columns)
    p, first = nodes.n_numeric, nodes.level_start[nodes.first_indicator]
    possible = params.levels_possible[first:]
    impossible = p + np.flatnonzero(~possible)
    coef[impossible] = coef[:, impossible] = 0.0
    level_columns = [
        p + at + np.flatnonzero(possible[at:end])
        for at, end in pairwise((nodes.level_start[nodes.first_indicator :] - first).tolist())
    ]
    for r, rows in enumerate(level_columns):
        mean = _mean(coef[:p, rows])
        coef[:p, rows] = _without(coef[:p, rows], mean[:, None])
        coef[rows, :p] = coef[:p, rows].T
        moved[:p] += mean
        for columns in level_columns[:r]:
            block = coef[np.ix_(rows, columns)]
            by_row, by_column = _mean(block), _mean(block.T)
            middle = float(by_row.mean())
            moved[rows] += by_row
            moved[columns] += by_column - middle
            block = _without(block, by_row[:, None] + (by_column - middle))
            coef[np.ix_(rows, columns)] = block
            coef[np.ix_(columns, rows)] = block.T
    return replace(params, bias=params.bias + nodes.moved_terms(moved), coef=coef)


def _mean(block: Floats) -> Floats:
    """Row means, exactly zero where they are rounding: a centred block stays as it is."""
    size = float(np.abs(block).max(initial=0.0))
    mean = block.mean(axis=1)
    return np.where(np.abs(mean) <= 1e-12 * size, 0.0, mean)


def _without(block: Floats, part: Floats) -> Floats:
    """The block less a part of it, exactly zero where only rounding is left."""
    if not part.any():
        return block
    left = block - part
    return np.where(np.abs(left).max() <= 1e-12 * np.abs(block).max(), 0.0, left)
