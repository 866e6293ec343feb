"""FittedModel -> a model file, and back; any other file -> a clear error."""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import numpy as np

from mixedgm.base.errors import ModelFileError
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options, from_plain
from mixedgm.fit.report import Completion, FitReport
from mixedgm.joint.margins import MOST_COLUMNS, Margins, NodeTerms
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params, Units
from mixedgm.solve.loop import Certificate, Cost
from mixedgm.store.archive import (
    Archive,
    Arrays,
    ForeignFileError,
    count_values,
    is_sparse,
    to_sparse,
    write_archive,
)
from mixedgm.store.parts import (
    moderation_to_arrays,
    path_from_archive,
    path_strengths_from,
    path_strengths_to_arrays,
    path_to_parts,
    with_moderation,
)
from mixedgm.store.validation import (
    DOCUMENT,
    LARGEST,
    SHARES,
    WIDE,
    Sizes,
    check_array,
    check_certificate,
)
from mixedgm.table.schema import Schema

_BLOCKS = (
    "precision",
    "cont_bias",
    "category_shift",
    "cat_interaction",
    "cat_bias",
)
_COEF = {False: "coef", True: "nodewise_coef"}
_ALL_PAIRS = ("selection_frequency", "edge_probability", "shrunken_norms")
_MOST_COUNTS = 10_000_000
_OPTIONS = frozenset(field.name for field in fields(Options))
_LONGEST_SETTING = 100_000  # values

_ZIP_START = b"PK\x03\x04"
_LONGEST_REASON = 300
_WRITTEN_BY = (
    'Model files are written by model.save("file.mgm") or `mixedgm fit TABLE -o file.mgm`.'
)
_AGAIN = "Save the model again, or get an undamaged copy of the file."
# What zipfile, json and numpy's header reader raise for damaged bytes.
_DAMAGE = (
    zipfile.BadZipFile,
    OSError,
    struct.error,
    EOFError,
    SyntaxError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)


def save(
    fitted: FittedModel, path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None
) -> None:
    """Write a model to one file, completely or not at all; `settings` are the options of its fit.

    A model that `load` would refuse is a ModelFileError: blocks that do not fit the schema, or
    impossible numbers. Tuples in settings come back as lists.
    """
    params, given = fitted.params, _shortened(settings or {})
    n_columns, params_arrays = len(params.nodes), _params_to_arrays(params)
    joint_document, joint_arrays = _margins_to_parts(fitted)
    path_document, path_arrays = path_to_parts(fitted.path)
    scores = {f"scores_{at}": np.asarray(s, float) for at, s in enumerate(fitted.scores.values())}
    parts = {
        **params_arrays,
        **moderation_to_arrays(params),
        "node_scales": fitted.node_scales,
        "selection_frequency": fitted.selection_frequency,
        "edge_probability": fitted.edge_probability,
        "shrunken_norms": fitted.shrunken_norms,
        "strengths": fitted.known_strengths if fitted.rows is None else fitted.strengths,
        **path_strengths_to_arrays(fitted.path_strengths),
        **scores,
        **joint_arrays,
        **path_arrays,
    }
    arrays: Arrays = {}
    for name, array in parts.items():
        if array is not None and name in _ALL_PAIRS and is_sparse(n_columns, array):
            arrays |= to_sparse(name, array)
        elif array is not None:
            arrays[name] = array
    document = {
        "schema": fitted.schema.to_dict(),
        "library": fitted.library,
        "report": _report_to_dict(fitted.report),
        "settings": given,
        "scores": list(fitted.scores),
        "path": path_document,
        "joint": joint_document,
    }
    sizes = _sizes(fitted.schema, document, len(fitted.moderators))
    for name, array in arrays.items():
        check_array(name, array, sizes)
    _check_schema(fitted.schema)
    _check_report(fitted.schema, fitted.report)
    _check_params(params)
    _check_sizes(fitted)
    _check_norms(fitted)
    _check_settings(given, fitted)
    is_new = fitted.schema.spans.first_indicator or fitted.edge_probability is not None
    is_wide = "path_pairs" in arrays or any(name.endswith("_places") for name in arrays)
    format_version = 3 if is_wide else 2 if is_new else 1
    write_archive(path, document, arrays, format_version=format_version)


def load(path: str | os.PathLike[str]) -> tuple[FittedModel, dict[str, Any]]:
    """Return the model that `save` wrote and its settings; nothing in the file is executed.

    It is a ModelFileError when there is no such file, or it is not a model file, is damaged, or has
    a newer format.
    """
    file = FilePath(path)
    name = repr(str(file))
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise ModelFileError(f"{name} cannot be read: it is {what}, not a file.")
        stream = file.open("rb")
    except FileNotFoundError:
        here = repr(str(FilePath.cwd()))
        raise ModelFileError(
            f"there is no file {name}. Check the path; it is relative to {here}."
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        why = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{name} cannot be read: {why}.") from error
    with stream:
        try:
            return _read(stream)
        except ForeignFileError as error:
            raise ModelFileError(f"{name} {error}") from None
        except _DAMAGE as error:
            reason = str(error).partition("\n")[0][:_LONGEST_REASON] or type(error).__name__
            raise ModelFileError(
                f"{name} is damaged or incomplete: {reason.rstrip('.')}. {_AGAIN}"
            ) from error


def _read(stream: BinaryIO) -> tuple[FittedModel, dict[str, Any]]:
    start = stream.read(len(_ZIP_START))
    if start != _ZIP_START:
        what = "is not a model file of mixedgm" if start else "is empty"
        raise ForeignFileError(f"{what}. {_WRITTEN_BY}")
    archive = Archive(stream)
    document = DOCUMENT(archive.document, "document")
    schema, report = Schema.from_dict(document["schema"]), _report(document["report"])
    _check_schema(schema)
    sizes = _sizes(schema, document, archive.length("moderators"))
    archive.check(document["arrays"], sizes)
    _check_report(schema, report)
    params = with_moderation(archive, schema, _params(archive, schema, sizes), sizes)
    _check_params(params)
    path = path_from_archive(archive, document["path"], schema, report.tol, sizes)
    fitted = FittedModel(
        schema=schema,
        params=params,
        node_scales=archive.array("node_scales", sizes),
        report=report,
        library=document["library"],
        path=path,
        scores={
            name: archive.array(f"scores_{at}", sizes) for at, name in enumerate(document["scores"])
        },
        selection_frequency=archive.get("selection_frequency", sizes),
        edge_probability=archive.get("edge_probability", sizes),
        shrunken_norms=archive.get("shrunken_norms", sizes),
        known_strengths=archive.get("strengths", sizes),
        known_path_strengths=path_strengths_from(archive, path, sizes),
        margins=_margins(archive, sizes),
        known_terms=_node_terms(archive, document["joint"], params, sizes),
    )
    _check_sizes(fitted)
    _check_norms(fitted)
    _check_settings(document["settings"], fitted)
    return fitted, document["settings"]


def _sizes(schema: Schema, document: Mapping[str, Any], n_moderators: int) -> dict[str, int]:
    """Sizes that the letters in the shapes of arrays stand for."""
    nodes, path = schema.spans, document["path"]
    sizes = {
        "p": nodes.n_gaussian,
        "q": nodes.n_numeric,
        "t": sum(nodes.n_levels),
        "o": int(nodes.term_start[-1]),
        "l": int(nodes.n_biases.sum()),
        "d": nodes.n_columns,
        "n": len(nodes),
        "s": len(nodes.scale_node),
        "g": 1 + n_moderators,
    }
    if path is not None:
        sizes["k"] = len(path["status"])
        if len(path["notes"]) != sizes["k"]:
            raise ModelFileError("its path has notes and statuses for different numbers of points")
    if isinstance(document["report"]["lam"], tuple):  # scores of every column
        sizes["c"] = len(nodes)
    if n_moderators:
        sizes |= {"m": n_moderators, "h": 1 + n_moderators}
    return sizes


def _params_to_arrays(params: Params) -> Arrays:
    """Named blocks of continuous and categorical columns; with others, one matrix of all edges.

    So it is with very many columns, of which only coefficients that are not zero are stored.
    """
    terms, coef = {"bias": params.bias, "diagonal": params.diagonal}, _COEF[params.nodewise]
    if is_sparse(len(params.nodes), params.coef):
        entries = params.coef.ravel()[params.places]
        return {**terms, f"{coef}_places": params.places, f"{coef}_entries": entries}
    if params.nodes.first_indicator:
        return {**terms, coef: params.coef}
    names = (*_BLOCKS, "level_effect") if params.nodewise else _BLOCKS
    return {name: getattr(params, name) for name in names}


def _params(archive: Archive, schema: Schema, sizes: Sizes) -> Params:
    forms = [name for name in _COEF.values() if archive.has(name)]
    if len(forms) > 1:
        raise ModelFileError("its coefficients are there twice")
    for nodewise, name in _COEF.items():
        if f"{name}_places" in archive.arrays:
            bias, diagonal = (archive.array(each, sizes) for each in ("bias", "diagonal"))
            entries = archive.entries(name, sizes)
            return Params.of_entries(schema.spans, bias, diagonal, entries, nodewise)
    if schema.spans.first_indicator:
        nodewise = _COEF[True] in archive.arrays
        bias, diagonal = (archive.array(name, sizes) for name in ("bias", "diagonal"))
        coef = archive.array(_COEF[nodewise], sizes)
        return Params(schema.spans, bias, diagonal, coef, nodewise)
    names = (*_BLOCKS, "level_effect") if "level_effect" in archive.arrays else _BLOCKS
    return Params.of_blocks(schema.n_levels, *(archive.array(name, sizes) for name in names))


def _report_to_dict(report: FitReport) -> dict[str, Any]:
    """All values of the report side by side: those of its certificate and cost, too."""
    values = asdict(report)
    return {**values.pop("certificate"), **values.pop("cost"), **values}


def _report(stored: Mapping[str, Any]) -> FitReport:
    listed = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
    listed["ridge"] = tuple((a, b) for a, b in stored["ridge"])
    listed["untested"] = tuple((a, b, why) for a, b, why in stored["untested"])
    values = {**stored, **listed}
    if stored["completion"] is not None:
        values["completion"] = Completion(**stored["completion"])
    certificate = Certificate(**{part.name: values.pop(part.name) for part in fields(Certificate)})
    cost = Cost(**{part.name: values.pop(part.name) for part in fields(Cost)})
    return FitReport(certificate, cost, **values)


def _check_params(params: Params) -> None:
    is_wide = len(params.nodes) >= WIDE
    if not ((params.diagonal if is_wide else np.diagonal(params.precision)) > 0.0).all():
        raise ModelFileError("the diagonal of precision is not positive")
    if not (params.precisions > 0.0).all():
        raise ModelFileError("the precision of a hurdle column is not positive")
    # By what is not zero: of very many columns the rest is neither in the file nor in memory.
    nodes, (row, column) = params.nodes, np.divmod(params.places, max(len(params.coef), 1))
    blocks: dict[str, Floats] = {}
    if not (is_wide or nodes.first_indicator):
        blocks = {"precision": params.precision, "cat_interaction": params.cat_interaction}
    deviations = () if params.moderation is None else params.moderation.deviations
    blocks |= {f"deviation_{at}": part for at, part in enumerate(deviations)}
    for name, block in blocks.items() if not params.nodewise else ():
        if not np.array_equal(block, block.swapaxes(-1, -2)):
            raise ModelFileError(f"{name} is not symmetric")
    same = np.array_equal(params.coef[row, column], params.coef[column, row])
    if not (same or params.nodewise):
        raise ModelFileError("coef is not symmetric")
    if not (np.isfinite(params.bias) | nodes.free_terms).all():
        raise ModelFileError("bias holds impossible numbers")
    if (nodes.column_node[row] == nodes.column_node[column]).any() or any(
        part[:, nodes.column_node[:, None] == nodes.column_node].any() for part in deviations
    ):
        raise ModelFileError("a column has an edge to itself")
    impossible = np.isneginf(params.logits)
    if np.isneginf(params.cont_bias).any() or (
        len(impossible) and np.logical_and.reduceat(impossible, nodes.level_start[:-1]).any()
    ):
        raise ModelFileError("a column has no possible level")


def _check_sizes(fitted: FittedModel) -> None:
    """Refuse finite numbers by which answers would not be finite.

    They are looked at in standard units, in which a fit finds none that are extreme.
    """
    params, nodes, margins = fitted.params, fitted.params.nodes, fitted.margins
    names = [column.name for column in fitted.schema.nodes]
    scale = fitted.node_scales[: nodes.n_numeric]
    unit = Units(np.zeros_like(scale), np.where(scale > 0.0, scale, 1.0))
    real, terms, columns = nodes.real_columns, unit.of_terms(nodes), unit.of_columns(nodes)
    row, column = np.divmod(params.places, max(len(params.coef), 1))
    coef = params.coef[row, column]

    def bounded(what: str, values: Floats, *ends: Ints, low: float = 0.0) -> None:
        """Refuse sizes below `low` or above the largest of a fit; `ends` are nodes of each."""
        size = np.abs(values)
        bad = np.flatnonzero(~((size <= LARGEST) & (size >= low)))
        if bad.size:
            at = " - ".join(quoted(names[end.flat[bad[0]]]) for end in ends)
            value = f"{values.flat[bad[0]]:g} standard units"
            raise ModelFileError(f"{what} of {value} at {at} is not one that a fit finds")

    with np.errstate(over="ignore", under="ignore"):
        owner, least = nodes.column_node, 1.0 / LARGEST
        bounded("a coefficient", coef * columns[row] * columns[column], owner[row], owner[column])
        if params.moderation is not None:
            bounded("a middle", params.moderation.middle / columns, owner)
            pair = np.meshgrid(owner, owner, indexing="ij")
            for part in params.moderation.deviations:
                bounded("a deviation", part * np.multiply.outer(columns, columns), *pair)
        if margins is not None:
            bounded("a mean", margins.mean / columns, owner)
            bounded("a variance", margins.variance / unit.scale**2, owner, low=least)
        bounded("a location", nodes.locations / columns[real], owner[real])
        joint = () if fitted.known_terms is None else (fitted.known_terms.put_into(params),)
        biases = np.repeat(np.arange(len(nodes)), nodes.n_biases)
        for each in (params, *joint):
            some = np.isfinite(each.bias)
            bounded("an own term", each.bias[some] * terms[some], biases[some])
            bounded("a precision", each.precisions * columns[real] ** 2, owner[real], low=least)


def _check_norms(fitted: FittedModel) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = fitted.pair_norms, fitted.deviation_norms
        if not all(np.isfinite(each).all() for each in norms):
            raise ModelFileError("the norms of its edges are not finite")
    known, n_edges = fitted.known_strengths, len(fitted.pair_norms)
    if known is not None and len(known) != n_edges + len(fitted.varying[0]):
        raise ModelFileError("the number of strengths is not that of its edges")


def _check_schema(schema: Schema) -> None:
    if not schema.targets or 0 in schema.n_levels:
        raise ModelFileError("its schema has no column to predict, or a category without levels")
    if sum(column.n_values for column in schema.columns if not column.has_levels) > _MOST_COUNTS:
        raise ModelFileError("the counts of its columns have too many values")
    for column in schema.columns:
        if column.label is not None and column.name != str(column.label):
            raise ModelFileError(f"column {quoted(column.name)} has the label {column.label}")
    if any(column.position >= len(schema.table_names) for column in schema.left_out):
        raise ModelFileError("its schema leaves out a column beyond the last")


def _check_report(schema: Schema, report: FitReport) -> None:
    by_column = isinstance(report.lam, tuple)
    wanted = [column.role == "target" for column in schema.columns] if by_column else [True]
    given = np.logical_not(np.isnan(np.atleast_1d(report.lam))).tolist()
    if given != wanted and (by_column or report.was_fitted):
        raise ModelFileError("lam does not match its columns")
    if report.was_fitted and not (report.tol > 0.0 and report.total_weight > 0.0):
        raise ModelFileError("a fit needs rows of positive weight and a positive tol")
    if report.converged and not report.was_fitted:
        raise ModelFileError("nothing was fitted, so nothing can have converged")
    check_certificate("the fit", report.certificate, report.tol)


# -- settings --------------------------------------------------------------------------------------


def _check_settings(settings: Mapping[str, Any], fitted: FittedModel) -> None:
    """Refuse settings that no fit of these columns could have had.

    An object that is kept as its text only (a generator, a criterion of the user's own) cannot be
    checked, nor can a setting of a later version.  A model that was not fitted, such as one given
    known values, has the settings of the fit that it came from, which may name other columns.
    """
    given = {
        name: from_plain(value)
        for name, value in settings.items()
        if name in _OPTIONS and not (isinstance(value, dict) and "text" in value)
    }
    options = Options(**given)
    if fitted.report.was_fitted:
        options.check_against(fitted.schema, fitted.library)


def _shortened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, with only the text of a very long one, such as lists of rows for every fold."""
    stored = {}
    for name, value in settings.items():
        too_long = count_values(json.dumps(value, default=str).encode()) > _LONGEST_SETTING
        stored[name] = {"text": quoted(value)} if too_long else value
    return stored


# -- margins of the table, node terms of the joint distribution ------------------------------------


def _margins_to_parts(
    fitted: FittedModel,
) -> tuple[dict[str, Any] | None, dict[str, Floats | None]]:
    """Return what the document says about the node terms, and the arrays of both.

    Node terms that were not needed yet are not there.
    """
    margins, arrays = fitted.margins, {}
    if margins is not None:
        names = ("mean", "variance", "covariance", "shares")
        arrays = {f"table_{name}": getattr(margins, name) for name in names}
    terms: NodeTerms | None = vars(fitted).get("joint_terms", fitted.known_terms)
    if terms is None:
        return None, arrays
    joint = terms.put_into(fitted.params)
    arrays |= {
        "joint_cont_bias": joint.cont_bias,
        "joint_cat_bias": joint.cat_bias,
        "joint_diagonal": terms.diagonal,
        "joint_covariance": terms.covariance,
    }
    return {"error": terms.error, "sampled": terms.sampled}, arrays


def _margins(archive: Archive, sizes: Sizes) -> Margins | None:
    """Return the margins of the table; None in a file without them."""
    if "table_mean" not in archive.arrays:
        return None
    margins = Margins(
        archive.array("table_mean", sizes),
        archive.array("table_variance", sizes),
        _covariance(archive, "table_covariance", sizes),
        archive.array("table_shares", sizes) if sizes["p"] < sizes["q"] else None,
    )
    SHARES.check_values("table_mean", margins.mean[sizes["q"] :])
    return margins


def _node_terms(
    archive: Archive, stored: Mapping[str, Any] | None, params: Params, sizes: Sizes
) -> NodeTerms | None:
    """Return the node terms of the joint distribution, where the file has them."""
    if stored is None:
        return None
    terms = NodeTerms(
        np.concatenate([archive.array(f"joint_{name}_bias", sizes) for name in ("cont", "cat")]),
        archive.array("joint_diagonal", sizes),
        stored["error"],
        stored["sampled"],
        _covariance(archive, "joint_covariance", sizes),
    )
    if not np.array_equal(np.isfinite(terms.bias), np.isfinite(params.bias)):
        raise ModelFileError("the node terms of the joint distribution are impossible")
    return terms


def _covariance(archive: Archive, name: str, sizes: Sizes) -> Floats | None:
    return None if sizes["d"] > MOST_COLUMNS else archive.get(name, sizes)
