"""Margins of a table, node terms of the joint distribution -> parts of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixedgm.errors import ModelFileError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.margins import MOST_COLUMNS, Margins, NodeTerms
from mixedgm.model.params import Params
from mixedgm.store.archive import Archive, Arrays
from mixedgm.store.validation import SHARES, Sizes

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
    joint = terms.put_into(fitted.params)
    arrays["joint_cont_bias"], arrays["joint_cat_bias"] = joint.cont_bias, joint.cat_bias
    arrays["joint_diagonal"] = terms.diagonal
    if terms.covariance is not None:
        arrays["joint_covariance"] = terms.covariance
    return {"error": terms.error, "sampled": terms.sampled}, arrays


def margins_from_archive(archive: Archive, sizes: Sizes) -> Margins | None:
    """Return the margins of the table; None in a file without, such as an older one."""
    if "table_mean" not in archive.arrays:
        return None
    found = Margins(
        archive.array("table_mean", sizes),
        archive.array("table_variance", sizes),
        _covariance(archive, "table_covariance", sizes),
    )
    SHARES.check_values("table_mean", found.share)
    return found


def terms_from_archive(
    archive: Archive, stored: Mapping[str, Any] | None, params: Params, sizes: Sizes
) -> NodeTerms | None:
    """Return the node terms of the joint distribution, where the file has them."""
    if stored is None:
        return None
    found = NodeTerms(
        np.concatenate([archive.array(f"joint_{name}_bias", sizes) for name in ("cont", "cat")]),
        archive.array("joint_diagonal", sizes),
        stored["error"],
        stored["sampled"],
        _covariance(archive, "joint_covariance", sizes),
    )
    if not np.array_equal(np.isfinite(found.bias), np.isfinite(params.bias)):
        raise ModelFileError("the node terms of the joint distribution are impossible numbers")
    return found


def _covariance(archive: Archive, name: str, sizes: Sizes) -> Floats | None:
    if sizes["d"] > MOST_COLUMNS or name not in archive.arrays:
        return None
    return archive.array(name, sizes)
