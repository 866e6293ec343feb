"""Deviations of edges and the moderators of a path -> arrays of a model file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ModelFileError
from mixedgm.model.layout import Layout
from mixedgm.model.moderation import Moderation, Moderators
from mixedgm.model.params import Params
from mixedgm.path.path import Path
from mixedgm.store.archive import Archive, Arrays
from mixedgm.table.schema import Schema

__all__ = ["moderation_to_arrays", "moderators_to_arrays", "with_moderation", "with_moderators"]


def moderation_to_arrays(params: Params) -> Arrays:
    """Return the arrays of a model's deviations; none where it has no moderators."""
    own = params.moderation
    if own is None:
        return {}
    arrays: Arrays = {
        "moderators": np.array(own.nodes, dtype=np.int64),
        "moderation_middle": own.middle,
        "moderation_span": own.span,
    }
    return arrays | {f"deviation_{at}": part for at, part in enumerate(own.deviations)}


def with_moderation(archive: Archive, schema: Schema, params: Params) -> Params:
    """Return the parameters with the deviations of a model file, if it has some."""
    if "moderators" not in archive.document["arrays"]:
        return params
    nodes, d = _nodes(archive, schema, "moderators"), schema.n_cont + sum(schema.n_levels)
    deviations = []
    for at, node in enumerate(nodes):
        size = len(schema.nodes[node].levels) or 1
        part = archive.array(f"deviation_{at}", "float64", (size, d, d))
        if not np.isfinite(part).all():
            raise ModelFileError("a deviation holds impossible numbers")
        deviations.append(part)
    middle = archive.array("moderation_middle", "float64", (d,))
    span = archive.array("moderation_span", "float64", (len(nodes), 2))
    return replace(params, moderation=Moderation(nodes, middle, span, tuple(deviations)))


def moderators_to_arrays(path: Path) -> Arrays:
    """Return the arrays of a path's moderators; permitted deviations are one bit per pair."""
    own, layout = path.moderators, path.layout
    if own is None:
        return {}
    permitted = np.zeros((len(own.nodes), layout.n_nodes, layout.n_nodes), dtype=bool)
    which = np.flatnonzero(layout.moderator >= 0)
    permitted[layout.moderator[which], layout.pairs[which, 0], layout.pairs[which, 1]] = True
    return {
        "path_moderators": np.array(own.nodes, dtype=np.int64),
        "path_level_share": own.share,
        "path_moderator_span": own.span,
        "path_deviations": np.packbits(permitted),
    }


def with_moderators(
    archive: Archive, schema: Schema, layout: Layout
) -> tuple[Layout, Moderators | None]:
    """Return the layout with the deviations of a path, and its moderators, if it has some."""
    if "path_moderators" not in archive.document["arrays"]:
        return layout, None
    nodes, n = _nodes(archive, schema, "path_moderators"), layout.n_nodes
    size = len(nodes) * n * n
    bits = archive.array("path_deviations", "uint8", (-(-size // 8),))
    permitted: NDArray[np.bool_] = np.unpackbits(bits, count=size).reshape(-1, n, n) > 0
    moderators = Moderators(
        nodes,
        archive.array("path_level_share", "float64", (layout.n_cat_columns,)),
        archive.array("path_moderator_span", "float64", (len(nodes), 2)),
    )
    return layout.moderated(moderators.n_features(layout), ~permitted), moderators


def _nodes(archive: Archive, schema: Schema, name: str) -> tuple[int, ...]:
    nodes: Sequence[int] = archive.array(name, "int64", (None,)).tolist()
    if len(set(nodes)) != len(nodes) or not set(nodes) <= set(schema.covariates):
        raise ModelFileError("its moderators are no covariates of its schema")
    return tuple(nodes)
