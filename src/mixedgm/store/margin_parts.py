"""Margins of a table, node terms of the joint distribution -> parts of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixedgm.errors import ModelFileError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.margins import MOST_COLUMNS, Margins, NodeTerms
from mixedgm.model.params import Params
from mixedgm.store.archive import Archive, Arrays
from mixedgm.table.schema import Schema

__all__ = ["margins_from_archive", "margins_to_parts", "terms_from_archive"]


def margins_to_parts(fitted: FittedModel) -> tuple[dict[str, Any] | None, Arrays]:
    """Return what the document says about the node terms, and the arrays of both.

    Node terms that were not needed yet are not there.
    """
    arrays: Arrays = {}
    if fitted.margins is not None:
        arrays = {"table_mean": fitted.margins.mean, "table_variance": fitted.margins.variance}
        if fitted.margins.covariance is not None:
            arrays["table_covariance"] = fitted.margins.covariance
    terms: NodeTerms | None = vars(fitted).get("joint_terms", fitted.known_terms)
    if terms is None:
        return None, arrays
    arrays["joint_cont_bias"], arrays["joint_cat_bias"] = terms.cont_bias, terms.cat_bias
    arrays["joint_diagonal"] = terms.diagonal
    if terms.covariance is not None:
        arrays["joint_covariance"] = terms.covariance
    return {"error": terms.error, "sampled": terms.sampled}, arrays


def margins_from_archive(archive: Archive, schema: Schema) -> Margins | None:
    """Return the margins of the table; None in a file without, such as an older one."""
    if "table_mean" not in archive.document["arrays"]:
        return None
    p, d = schema.n_cont, schema.n_cont + sum(schema.n_levels)
    found = Margins(
        archive.array("table_mean", "float64", (d,)),
        archive.array("table_variance", "float64", (p,)),
        _covariance(archive, "table_covariance", d),
    )
    if not (np.isfinite(found.mean).all() and np.isfinite(found.variance).all()):
        raise ModelFileError("the margins of the table hold impossible numbers")
    if not ((found.variance > 0.0).all() and ((found.share >= 0.0) & (found.share <= 1.0)).all()):
        raise ModelFileError("the margins of the table hold impossible variances or shares")
    return found


def terms_from_archive(archive: Archive, params: Params) -> NodeTerms | None:
    """Return the node terms of the joint distribution, where the file has them."""
    stored = archive.document.get("joint")
    if stored is None:
        return None
    p, levels = params.n_cont, sum(params.n_levels)
    found = NodeTerms(
        archive.array("joint_cont_bias", "float64", (p,)),
        archive.array("joint_diagonal", "float64", (p,)),
        archive.array("joint_cat_bias", "float64", (levels,)),
        float(stored["error"]),
        bool(stored["sampled"]),
        _covariance(archive, "joint_covariance", p + levels),
    )
    possible = np.isfinite(params.cat_bias)
    finite = np.isfinite(found.cont_bias).all() and np.isfinite(found.cat_bias[possible]).all()
    if not (finite and np.isneginf(found.cat_bias[~possible]).all()):
        raise ModelFileError("the node terms of the joint distribution are impossible numbers")
    if not (np.isfinite(found.diagonal) & (found.diagonal > 0.0)).all():
        raise ModelFileError("the precision of the joint distribution has an impossible diagonal")
    return found


def _covariance(archive: Archive, name: str, d: int) -> Floats | None:
    if d > MOST_COLUMNS or name not in archive.document["arrays"]:
        return None
    found: Floats = archive.array(name, "float64", (d, d))
    if not np.isfinite(found).all():
        raise ModelFileError(f"{name} holds impossible numbers")
    return found
