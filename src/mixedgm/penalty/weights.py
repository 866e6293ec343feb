"""Moments and the user's wishes, by names of columns -> one penalty weight per edge.

Calibrated weights make the expected squared gradient of every group equal under independence:
w_uv = (m_uv / m) sqrt(tr cov(z_u)) * sqrt(tr cov(z_v)), population moments, where the objective
has m_uv terms that contain the edge, at most m: two conditionals, or one with a covariate; in a
likelihood every edge is in its one term.  Adaptive weights divide these by the size that the edge
has in a pilot fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import quoted
from mixedgm.families import KINDS, edge_kinds, ends_of, pair_name
from mixedgm.model.layout import Floats, Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.pair_weights import PairWeights
from mixedgm.table.schema import Schema


def node_scales(nodes: Nodes, column_mean: Floats, varies: Floats) -> Floats:
    """sqrt(tr cov(z_v)) of every node: a standard deviation, or sqrt(sum p (1 - p)).

    `varies` is 1 for a number that varies and 0 for a constant.
    """
    variance = nodes.column_variance(column_mean, varies)
    return np.sqrt(np.add.reduceat(variance, nodes.column_start[:-1]))


def calibrated(layout: Layout, scales: Floats, *, one_term: bool = False) -> Floats:
    """c_g = (m_g / m) * scale_u * scale_v; m_g = m = 1 for objectives of `one_term`."""
    u, v = layout.pairs[:, 0], layout.pairs[:, 1]
    share = 1.0 if one_term else layout.conditionals / layout.conditionals_at_most
    return np.asarray(share * scales[u] * scales[v])


def uniform(layout: Layout, unit: Floats) -> Floats:
    """Weight 1 in the data's own units, as seen by standardised theta: 1 / (unit_u * unit_v).

    `unit` holds the standard deviation of every design column that is a number.  A hurdle column
    has the unit of how much it is.
    """
    return np.asarray(1.0 / _units(layout.nodes, unit)[layout.pairs].prod(axis=1))


def uniform_scales(nodes: Nodes, unit: Floats) -> Floats:
    """Factors of the weights of `uniform`, which are products over both ends: 1 / unit."""
    return 1.0 / _units(nodes, unit)


def _units(nodes: Nodes, unit: Floats) -> Floats:
    by_column = np.ones(nodes.n_columns)
    by_column[nodes.numeric] = unit
    return np.asarray(by_column[nodes.last_column])


def adaptive(sizes: Floats, total_weight: float) -> Floats:
    """1 / (size_g + 1/n), by which the weights are multiplied: n where the pilot has no edge.

    `sizes` are those of the edges in the pilot, on the calibrated scale: near the size of a partial
    correlation for two continuous columns.
    """
    return np.asarray(1.0 / (sizes + 1.0 / total_weight))


# -- penalty factors by names ----------------------------------------------------------------------

Pair = tuple[str, str]
FactorsArg = Mapping[Any, float] | None
PairsArg = Iterable[Any] | None

EDGE_KINDS = edge_kinds()
_EDGE_KIND = {(first, second): pair_name(first, second) for first in KINDS for second in KINDS}


def edge_kind(schema: Schema, u: int, v: int) -> str:
    """Name of the kind of edge between two nodes (positions in ``schema.nodes``)."""
    return _EDGE_KIND[schema.nodes[u].kind, schema.nodes[v].kind]


def pair_factors(
    schema: Schema,
    factors: FactorsArg = None,
    require: PairsArg = None,
    forbid: PairsArg = None,
    *,
    penalize_covariates: bool = True,
    moderated: bool = False,
) -> PairWeights:
    """Factors of pairs of nodes, by kinds of columns and by name: 1 by default, 0 free, inf absent.

    A pair of names overrides an edge kind, and both override `penalize_covariates`; `require` and
    `forbid` override all.  Where edges are `moderated`, names of deviations are left to
    `deviation_factors`.

    Examples
    --------
    >>> from mixedgm.table.schema import Column, Schema
    >>> schema = Schema((Column("age", "continuous"), Column("wage", "continuous")))
    >>> float(pair_factors(schema, forbid=[("age", "wage")]).matrix()[0, 1])
    inf
    """
    kinds, keys = _split(factors)
    pairs = [(key, factor) for key, factor in keys if not (moderated and _is_triple(key))]
    named: dict[tuple[int, int], float] = {}
    for pair, factor in pairs:
        u, v = _nodes(schema, pair, "penalty_factors")
        if named.setdefault((u, v), factor) != factor:
            raise ParameterError(
                f"penalty_factors names the pair {quoted(pair)} twice: {named[u, v]:g} "
                f"and {factor:g}."
            )
    wanted, unwanted = (
        {
            _nodes(schema, pair, name)
            for pair in _listed(given, name)
            if not (moderated and _is_triple(pair))
        }
        for given, name in ((require, "require"), (forbid, "forbid"))
    )
    if wanted & unwanted:
        u, v = min(wanted & unwanted)
        names = schema.nodes[u].name, schema.nodes[v].name
        raise ParameterError(f"the pair {names} is in both require and forbid; keep one of them.")
    named |= dict.fromkeys(wanted, 0.0) | dict.fromkeys(unwanted, np.inf)
    by_kind = _by_kind(schema, kinds, penalize_covariates=penalize_covariates)
    listed = np.array(list(named), dtype=np.int64).reshape(-1, 2)
    return by_kind.excepting(listed, np.array(list(named.values()), dtype=np.float64))


def _by_kind(schema: Schema, kinds: dict[str, float], *, penalize_covariates: bool) -> PairWeights:
    """Factors that do not depend on names; every kind of column is one for covariates, too."""
    number = {name: at for at, name in enumerate(KINDS)}
    kind = np.array([number[column.kind] for column in schema.nodes], dtype=np.int64)
    kind[list(schema.covariates)] += len(number)
    by_kind = np.ones((2 * len(number), 2 * len(number)))
    if not penalize_covariates:
        by_kind[len(number) :, :] = by_kind[:, len(number) :] = 0.0
    for name, factor in kinds.items():
        first, second = (
            [number[end.name], len(number) + number[end.name]] for end in ends_of(name)
        )
        by_kind[np.ix_(first, second)] = by_kind[np.ix_(second, first)] = factor
    return PairWeights.formula(np.ones(len(kind)), kind, by_kind)


def deviation_factors(
    schema: Schema,
    moderators: tuple[int, ...],
    factors: FactorsArg = None,
    require: PairsArg = None,
    forbid: PairsArg = None,
) -> Floats:
    """(moderators, nodes, nodes) factors of the deviations that each moderator causes.

    A deviation has the factor of its pair (which `require` leaves as it is), unless it is named
    itself, by two columns and the moderator.

    Examples
    --------
    >>> from mixedgm.table.schema import Column, Schema
    >>> schema = Schema(tuple(Column(name, "continuous") for name in ("age", "wage", "hours")))
    >>> float(deviation_factors(schema, (0,), {("wage", "hours", "age"): 0.5})[0, 1, 2])
    0.5
    """
    pair = pair_factors(schema, factors, forbid=forbid, moderated=True).matrix()
    matrices = np.array([pair] * len(moderators))
    named = [(key, factor, "penalty_factors") for key, factor in _split(factors)[1]]
    named += [(key, 0.0, "require") for key in _listed(require, "require")]
    named += [(key, np.inf, "forbid") for key in _listed(forbid, "forbid")]
    seen: dict[tuple[int, int, int], float] = {}
    for key, factor, option in named:
        if not _is_triple(key):
            continue
        u, v = _nodes(schema, key[:2], option)
        which = schema.node_index(key[2])
        if which not in moderators or {u, v} & set(schema.covariates):
            names = ", ".join(quoted(schema.nodes[m].name) for m in moderators)
            wanted = f"two columns that are modelled and a moderator ({names})"
            raise ParameterError.must_be(f"a deviation in {option}", wanted, tuple(key))
        if seen.setdefault((which, u, v), factor) != factor:
            raise ParameterError(
                f"the deviation {quoted(tuple(key))} is named twice, with the factors "
                f"{seen[which, u, v]:g} and {factor:g}."
            )
        at = moderators.index(which)
        matrices[at, u, v] = matrices[at, v, u] = factor
    return matrices


def _is_triple(key: object) -> bool:
    """Whether a key names a deviation: two columns and a moderator."""
    return isinstance(key, (tuple, list)) and len(key) == 3


def _split(factors: FactorsArg) -> tuple[dict[str, float], list[tuple[Any, float]]]:
    """Factors by edge kind, and by pair."""
    if factors is None:
        return {}, []
    if not isinstance(factors, Mapping):
        raise ParameterError.must_be(
            "penalty_factors", "a mapping from a pair of column names or an edge kind", factors
        )
    kinds: dict[str, float] = {}
    pairs: list[tuple[Any, float]] = []
    for key, value in factors.items():
        try:
            factor = float(value)
        except (TypeError, ValueError):
            factor = np.nan
        ensure(factor >= 0.0, f"penalty_factors[{quoted(key)}]", "a number in [0, inf]", value)
        if not isinstance(key, str):
            pairs.append((key, factor))
        elif key in EDGE_KINDS:
            kinds[key] = factor
        else:
            raise ParameterError(
                f"penalty_factors has the key {quoted(key)}, which is neither a pair of "
                f"column names nor "
                f"an edge kind ({', '.join(EDGE_KINDS)})."
            )
    return kinds, pairs


def _listed(pairs: PairsArg, option: str) -> list[Any]:
    if pairs is None:
        return []
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ParameterError.must_be(option, 'a list of pairs such as [("age", "wage")]', pairs)
    return list(pairs)


def _nodes(schema: Schema, pair: object, option: str) -> tuple[int, int]:
    """Positions of a pair of names, the lower first."""
    if isinstance(pair, str) or not isinstance(pair, Iterable):
        raise ParameterError.must_be(f"a pair in {option}", "two column names", pair)
    names = tuple(pair)
    if len(names) != 2 or names[0] == names[1]:
        raise ParameterError.must_be(f"a pair in {option}", "two different column names", pair)
    u, v = sorted(schema.node_index(name) for name in names)
    return u, v
