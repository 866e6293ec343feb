"""A path and moderators -> arrays and JSON of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ModelFileError
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.model.moderation import Moderation, Moderators
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units
from mixedgm.path.path import Path, PathPoint
from mixedgm.solve.loop import Certificate, Cost, Status, TraceRow
from mixedgm.store.archive import Archive, Arrays
from mixedgm.store.validation import COST, WIDE, Sizes, check_certificate
from mixedgm.table.schema import Schema

# Zero except for sampled likelihoods, and absent from the first files.
_ERRORS = ("kkt_error", "objective_error")


def path_to_parts(path: Path | None) -> tuple[dict[str, Any] | None, Arrays]:
    """Return what JSON holds of a path, and its arrays.

    Groups and values of all points follow one another; ``path_group_ends`` says where each ends.
    The permitted edges are one bit per pair of nodes; of very many columns only the pairs that are
    active somewhere are stored, and how many may be.
    """
    if path is None:
        return None, {}
    has_some = path.layout.n_nodes >= WIDE or path.n_permitted is not None
    is_wide = has_some and path.moderators is None
    path = _on_active_pairs(path) if is_wide else path
    points = path.points
    node_terms = np.array([point.node_terms for point in points], dtype=np.float64)
    arrays: Arrays = {
        "path_centre": path.units.centre,
        "path_scale": path.units.scale,
        "path_observed": path.observed,
        **({"path_pairs": path.layout.pairs} if is_wide else _permitted(path.layout)),
        "path_n_iter": np.array([point.n_iter for point in points], dtype=np.int64),
        "path_node_terms": node_terms.reshape(len(points), path.layout.n_node_terms),
        "path_groups": _joined([point.groups for point in points], np.int64),
        "path_group_ends": _ends([point.groups for point in points]),
        "path_values": _joined([point.values for point in points], np.float64),
    }
    arrays |= moderators_to_arrays(path)
    for name in ("lam", "objective", "kkt", *COST, *_ERRORS):
        arrays[f"path_{name}"] = np.array([getattr(point, name) for point in points], np.float64)
    traced = any(point.trace for point in points)
    if traced:
        rows = [astuple(row) for point in points for row in point.trace]
        arrays["path_trace"] = np.array(rows, dtype=np.float64)
        arrays["path_trace_ends"] = _ends([point.trace for point in points])
    document = {
        "lam_max": float(path.lam_max),
        "total_weight": float(path.total_weight),
        "loss": path.loss,
        "rule": path.rule,
        "status": [point.status.name for point in points],
        "notes": [list(point.notes) for point in points],
        "traced": traced,
        "n_possible": path.n_possible if is_wide else None,
    }
    return document, arrays


def _permitted(layout: Layout) -> Arrays:
    """Return one bit per pair of nodes: whether it may have an edge."""
    n_nodes = layout.n_nodes
    permitted = np.zeros((n_nodes, n_nodes), dtype=bool)
    u, v = layout.pairs.T
    permitted[u, v] = permitted[v, u] = True
    return {"path_permitted": np.packbits(permitted[np.triu_indices(n_nodes, 1)])}


def _on_active_pairs(path: Path) -> Path:
    """Return the path with a layout of the pairs that are active at some lam, sorted."""
    layout, n_possible = path.layout, path.n_possible
    active = np.unique(_joined([point.groups for point in path.points], np.int64))
    order = np.lexsort(layout.pairs[active].T[::-1])
    number = np.empty(len(active), dtype=np.int64)
    number[order] = np.arange(len(active))
    points = []
    for point in path.points:
        groups = number[np.searchsorted(active, point.groups)]
        by_pair = np.argsort(groups)
        sizes = layout.sizes[point.groups]
        at = spans((np.cumsum(sizes) - sizes)[by_pair], sizes[by_pair])
        points.append(replace(point, groups=groups[by_pair], values=point.values[at]))
    small = Layout(layout.nodes, layout.pairs[active[order]], layout.covariates, layout.nodewise)
    return replace(path, points=tuple(points), layout=small, n_permitted=n_possible)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype)


def _ends(parts: Sequence[Sequence[Any] | NDArray[Any]]) -> Ints:
    return np.cumsum([len(part) for part in parts], dtype=np.int64)


def path_from_archive(
    archive: Archive, stored: Mapping[str, Any] | None, schema: Schema, tol: float, sizes: Sizes
) -> Path | None:
    """Return the path of a model file, checked against the model's schema; None without one."""
    if stored is None:
        return None
    observed = archive.array("path_observed", sizes)
    units = Units(archive.array("path_centre", sizes), archive.array("path_scale", sizes))
    nodes = schema.spans.kept(observed).standardised(units.centre, units.scale)
    nodewise = stored["loss"] == "nodewise"
    is_wide = "path_pairs" in archive.arrays
    read = _active_layout if is_wide else _layout
    plain = read(archive, schema, nodes, nodewise)
    if is_wide:
        _check_possible(stored["n_possible"], plain)
    layout, moderators = with_moderators(archive, schema, plain, sizes)
    sizes = {**sizes, "w": layout.n_node_terms}
    return Path(
        _points(archive, stored, layout, tol, sizes),
        lam_max=stored["lam_max"],
        schema=schema,
        layout=layout,
        units=units,
        observed=observed,
        total_weight=stored["total_weight"],
        loss=stored["loss"],
        rule=stored["rule"],
        moderators=moderators,
        n_permitted=stored["n_possible"] if is_wide else None,
    )


def path_strengths_to_arrays(strengths: Sequence[Floats] | None) -> Arrays:
    """Return the strengths of the edges at all lam, one after the other, and where they end."""
    if strengths is None:
        return {}
    ends = np.cumsum([len(each) for each in strengths], dtype=np.int64)
    return {"path_strengths": np.concatenate([np.zeros(0), *strengths]), "path_strength_ends": ends}


def path_strengths_from(
    archive: Archive, path: Path | None, sizes: Sizes
) -> tuple[Floats, ...] | None:
    """Return them by lam, checked against the edges of the path; None in a file without them."""
    if path is None or "path_strengths" not in archive.arrays:
        return None
    strengths = archive.array("path_strengths", sizes)
    ends = archive.array("path_strength_ends", sizes)
    counts = [len(path.triples(k)) for k in range(len(path))]
    if not np.array_equal(ends, np.cumsum(counts)) or ends[-1:].sum() != len(strengths):
        raise ModelFileError("the number of strengths is not that of the edges of its path")
    return tuple(np.split(strengths, ends[:-1]))


def _points(
    archive: Archive, stored: Mapping[str, Any], layout: Layout, tol: float, sizes: Sizes
) -> tuple[PathPoint, ...]:
    def rows(*names: str) -> list[tuple[Any, ...]]:
        columns = [archive.array(f"path_{name}", sizes).tolist() for name in names]
        return list(zip(*columns, strict=True))

    errors = [name for name in _ERRORS if f"path_{name}" in archive.arrays]
    numbers, costs = rows("objective", "kkt", *errors), rows("n_iter", *COST)
    lams = archive.array("path_lam", sizes).tolist()
    node_terms = archive.array("path_node_terms", sizes)
    groups, values = _groups(archive, layout, sizes)
    n_points = sizes["k"]
    traces = _traces(archive, sizes) if stored["traced"] else [()] * n_points
    points = tuple(
        PathPoint(
            Certificate.of(Status[stored["status"][k]], *numbers[k]),
            Cost(*costs[k]),
            lams[k],
            node_terms[k].copy(),
            groups[k],
            values[k],
            tuple(stored["notes"][k]),
            traces[k],
        )
        for k in range(n_points)
    )
    for point in points:
        what = f"the solution at lam = {point.lam:g}"
        check_certificate(what, point.certificate, tol)
    return points


def _layout(archive: Archive, schema: Schema, nodes: Nodes, nodewise: bool) -> Layout:
    n_nodes = len(schema.nodes)
    n_pairs = n_nodes * (n_nodes - 1) // 2
    bits = archive.array("path_permitted", {"e": -(-n_pairs // 8)})
    absent = np.zeros((n_nodes, n_nodes), dtype=bool)
    absent[np.triu_indices(n_nodes, 1)] = np.unpackbits(bits, count=n_pairs) == 0
    return Layout.complete(nodes, absent | absent.T, schema.covariates, nodewise=nodewise)


def _active_layout(archive: Archive, schema: Schema, nodes: Nodes, nodewise: bool) -> Layout:
    """Return the layout of the pairs that are active at some lam."""
    if {"path_permitted", "path_moderators"} & archive.arrays:
        raise ModelFileError("the pairs of its path are there twice")
    pairs, n = archive.array("path_pairs", {}), len(schema.nodes)
    layout = Layout(nodes, pairs, schema.covariates, nodewise)
    u, v = pairs.T
    there = (u < n) & (v < n) & ((u != v) if nodewise else (u < v))
    if not there.all() or (np.diff(u * n + v) <= 0).any():
        raise ModelFileError("its path has pairs that are impossible or in the wrong order")
    used = np.unique(archive.array("path_groups", {}))
    if (layout.conditionals == 0).any() or not np.array_equal(used, np.arange(len(pairs))):
        raise ModelFileError("its path has pairs that no solution has, or that cannot have an edge")
    return layout


def _check_possible(n_possible: int | None, layout: Layout) -> None:
    """Refuse a number of pairs that cannot be that of the pairs that may have an edge."""
    n = layout.n_nodes
    keys = np.unique(layout.pairs.min(axis=1) * n + layout.pairs.max(axis=1))
    if n_possible is None or not len(keys) <= n_possible <= n * (n - 1) // 2:
        raise ModelFileError("the number of its possible edges does not match its columns")


def _groups(
    archive: Archive, layout: Layout, sizes: Sizes
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Active groups and their values for each point."""
    groups = archive.array("path_groups", sizes)
    if groups.max(initial=-1) >= layout.n_groups:
        raise ModelFileError("its path has edges that the model does not have")
    by_point = _split(archive, "path_group_ends", groups, sizes)
    if any((np.diff(part) <= 0).any() for part in by_point):
        raise ModelFileError("its path has edges in the wrong order")
    lengths = [int(layout.sizes[part].sum()) for part in by_point]
    values = archive.array("path_values", {"v": sum(lengths)})
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    return by_point, [values[a:b].copy() for a, b in pairwise(starts)]


def _traces(archive: Archive, sizes: Sizes) -> list[tuple[TraceRow, ...]]:
    rows = archive.array("path_trace", sizes)
    by_point = _split(archive, "path_trace_ends", rows, sizes)
    return [tuple(TraceRow(*row) for row in part.tolist()) for part in by_point]


def _split(archive: Archive, name: str, joined: NDArray[Any], sizes: Sizes) -> list[NDArray[Any]]:
    """Cut a long array at the stored ends."""
    bounds = np.concatenate([[0], archive.array(name, sizes)]).astype(np.int64)
    if (np.diff(bounds) < 0).any() or bounds[-1] != len(joined):
        raise ModelFileError(f"the array {name!r} does not split the path into points")
    return [joined[a:b].copy() for a, b in pairwise(bounds)]


# -- moderation parts ------------------------------------------------------------------------------


def moderation_to_arrays(params: Params) -> Arrays:
    """Return the arrays of a model's deviations; none where it has no moderators."""
    moderation = params.moderation
    if moderation is None:
        return {}
    arrays: Arrays = {
        "moderators": np.array(moderation.nodes, dtype=np.int64),
        "moderation_middle": moderation.middle,
        "moderation_span": moderation.span,
    }
    return arrays | {f"deviation_{at}": part for at, part in enumerate(moderation.deviations)}


def with_moderation(archive: Archive, schema: Schema, params: Params, sizes: Sizes) -> Params:
    """Return the parameters with the deviations of a model file, if it has some."""
    if "moderators" not in archive.arrays:
        return params
    nodes = _nodes(archive, schema, "moderators", sizes)
    features = schema.spans.width[list(nodes)].tolist()
    deviations = tuple(
        archive.array(f"deviation_{at}", {**sizes, "f": size}) for at, size in enumerate(features)
    )
    middle = archive.array("moderation_middle", sizes)
    span = _span(archive, schema, "moderation_span", nodes)
    return replace(params, moderation=Moderation(nodes, middle, span, deviations))


def moderators_to_arrays(path: Path) -> Arrays:
    """Return the arrays of a path's moderators; permitted deviations are one bit per pair."""
    moderators, layout = path.moderators, path.layout
    if moderators is None:
        return {}
    permitted = np.zeros((len(moderators.nodes), layout.n_nodes, layout.n_nodes), dtype=bool)
    which = np.flatnonzero(layout.moderator >= 0)
    permitted[layout.moderator[which], layout.pairs[which, 0], layout.pairs[which, 1]] = True
    return {
        "path_moderators": np.array(moderators.nodes, dtype=np.int64),
        "path_level_share": moderators.share,
        "path_moderator_span": moderators.span,
        "path_deviations": np.packbits(permitted),
    }


def with_moderators(
    archive: Archive, schema: Schema, layout: Layout, sizes: Sizes
) -> tuple[Layout, Moderators | None]:
    """Return the layout with the deviations of a path, and its moderators, if it has some."""
    if "path_moderators" not in archive.arrays:
        return layout, None
    nodes, n = _nodes(archive, schema, "path_moderators", sizes), layout.n_nodes
    size = len(nodes) * n * n
    bits = archive.array("path_deviations", {"b": -(-size // 8)})
    permitted: NDArray[np.bool_] = np.unpackbits(bits, count=size).reshape(-1, n, n) > 0
    moderators = Moderators(
        nodes,
        archive.array("path_level_share", {"u": layout.n_columns - layout.nodes.n_numeric}),
        _span(archive, schema, "path_moderator_span", nodes),
    )
    return layout.moderated(moderators.n_features(layout), ~permitted), moderators


def _nodes(archive: Archive, schema: Schema, name: str, sizes: Sizes) -> tuple[int, ...]:
    nodes: Sequence[int] = archive.array(name, sizes).tolist()
    if not nodes or len(set(nodes)) != len(nodes) or not set(nodes) <= set(schema.covariates):
        raise ModelFileError("its moderators are not covariates of its schema")
    return tuple(nodes)


def _span(archive: Archive, schema: Schema, name: str, nodes: Sequence[int]) -> Floats:
    """Lowest and highest value of every moderator; NaN for a categorical one."""
    span: Floats = archive.array(name, {"m": len(nodes)})
    numbers = schema.spans.numeric_nodes[list(nodes)]
    ordered = np.isfinite(span).all(axis=1) & (span[:, 0] <= span[:, 1])
    if not np.where(numbers, ordered, np.isnan(span).all(axis=1)).all():
        raise ModelFileError(f"{name} holds impossible ranges")
    return span
