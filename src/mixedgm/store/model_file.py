"""FittedModel -> a model file, and back; any other file -> a clear error."""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields, replace
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ModelFileError
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options, from_plain
from mixedgm.fit.report import Completion, FitReport
from mixedgm.joint.margins import MOST_COLUMNS, Margins, NodeTerms
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.model.moderation import Moderation, Moderators
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units
from mixedgm.path.path import Path, PathPoint
from mixedgm.solve.loop import Certificate, Cost, Status, TraceRow
from mixedgm.store.archive import (
    Archive,
    Arrays,
    ForeignFileError,
    count_values,
    is_sparse,
    to_sparse,
    write_archive,
)
from mixedgm.store.validation import (
    COST,
    DOCUMENT,
    LARGEST,
    SHARES,
    SPARSE,
    WIDE,
    Sizes,
    check_array,
    check_certificate,
)
from mixedgm.table.schema import Schema

_COEF = {False: "coef", True: "nodewise_coef"}
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
    joint_document, joint_arrays = _margins_to_parts(fitted)
    path_document, path_arrays = path_to_parts(fitted.path)
    scores = {f"scores_{at}": np.asarray(s, float) for at, s in enumerate(fitted.scores.values())}
    parts = {
        "bias": params.bias,
        "diagonal": params.diagonal,
        _COEF[params.nodewise]: params.coef,
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
        if array is not None and name in SPARSE and is_sparse(len(params.nodes), array):
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
    # Lines for readers; with very many columns, nobody reads them and they take their time.
    write_archive(path, document, arrays, indent=None if len(params.nodes) >= WIDE else 1)


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
        "p": int(np.count_nonzero(nodes.gaussian_nodes)),
        "q": nodes.n_numeric,
        "t": sum(nodes.n_levels),
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


def _params(archive: Archive, schema: Schema, sizes: Sizes) -> Params:
    nodewise, plain = archive.has(_COEF[True]), archive.has(_COEF[False])
    if nodewise and plain:
        raise ModelFileError("its coefficients are there twice")
    bias, diagonal = (archive.array(name, sizes) for name in ("bias", "diagonal"))
    name = _COEF[nodewise]
    if f"{name}_places" in archive.arrays:
        entries = archive.entries(name, sizes)
        return Params.of_entries(schema.spans, bias, diagonal, entries, nodewise)
    return Params(schema.spans, bias, diagonal, archive.array(name, sizes), nodewise)


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
    if not (params.precisions > 0.0).all():
        raise ModelFileError("the precision of a hurdle column is not positive")
    # By what is not zero: of very many columns the rest is neither in the file nor in memory.
    nodes, (row, column) = params.nodes, np.divmod(params.places, max(len(params.coef), 1))
    deviations = () if params.moderation is None else params.moderation.deviations
    for at, block in enumerate(deviations) if not params.nodewise else ():
        if not np.array_equal(block, block.swapaxes(-1, -2)):
            raise ModelFileError(f"deviation_{at} is not symmetric")
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
    arrays |= {
        "joint_bias": terms.bias,
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
        archive.array("joint_bias", sizes),
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


# -- path and moderators ---------------------------------------------------------------------------

_POINT = ("objective", "kkt", "kkt_error", "objective_error")


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
    for name in ("lam", *_POINT, *COST):
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

    numbers, costs = rows(*_POINT), rows("n_iter", *COST)
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
