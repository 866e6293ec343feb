"""Deviations of edges and the moderators of a path -> arrays of a model file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ModelFileError
from mixedgm.model.layout import Floats, Layout
from mixedgm.model.moderation import Moderation, Moderators
from mixedgm.model.params import Params
from mixedgm.path.path import Path
from mixedgm.store.archive import Archive, Arrays
from mixedgm.store.validation import Sizes
from mixedgm.table.schema import Schema

__all__ = ["moderation_to_arrays", "moderators_to_arrays", "with_moderation", "with_moderators"]


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
