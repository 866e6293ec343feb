"""FittedModel -> a model file, and back; a file that is no such thing -> a clear error."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any, BinaryIO, TypeVar

import numpy as np

from mixedgm.errors import ModelFileError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.params import NodewiseParams, Params
from mixedgm.path.task import Lam
from mixedgm.report import FitReport
from mixedgm.store.archive import Archive, Arrays, ForeignFileError, write_archive
from mixedgm.store.margin_parts import (
    margins_from_archive,
    margins_to_parts,
    terms_from_archive,
)
from mixedgm.store.moderation_parts import moderation_to_arrays, with_moderation
from mixedgm.store.path_parts import path_from_archive, path_to_parts
from mixedgm.table.schema import Schema

__all__ = ["load", "save"]

T = TypeVar("T")

_REFIT_NOTE = "the chosen graph was refitted without shrinkage"

_ZIP_START = b"PK\x03\x04"
_WRITTEN_BY = (
    'Model files are written by model.save("file.mgm") or `mixedgm fit TABLE -o file.mgm`.'
)
_AGAIN = "Save the model again, or get an undamaged copy of the file."
# What zipfile, json and numpy's header reader raise for bytes that make no sense to them.
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
    fitted: FittedModel,
    path: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to one file, completely or not at all.

    Parameters
    ----------
    fitted : FittedModel
        The model. Its path, when it has one, shares its schema.
    path : str or path
        The file; any ending, by custom ``.mgm``. An existing file is replaced.
    settings : mapping of str, optional
        The options of the fit, as values that JSON can hold; tuples come back as lists.

    Raises
    ------
    ModelFileError
        When the blocks do not fit the schema or hold numbers that no model has, so that `load`
        would refuse them.
    """
    params = fitted.params
    _check_params(fitted.schema, params)
    nodewise = isinstance(params, NodewiseParams)
    arrays: Arrays = {name: getattr(params, name) for name in _shapes(fitted.schema, nodewise)}
    arrays |= moderation_to_arrays(params)
    arrays["node_scales"] = fitted.node_scales
    for at, scores in enumerate(fitted.scores.values()):
        arrays[f"scores_{at}"] = np.asarray(scores, dtype=np.float64)
    if fitted.selection_frequency is not None:
        arrays["selection_frequency"] = fitted.selection_frequency
    joint_document, joint_arrays = margins_to_parts(fitted)
    arrays |= joint_arrays
    if fitted.shrunken_weights is not None:
        arrays["shrunken_weights"] = fitted.shrunken_weights
    path_document = None
    if fitted.path is not None:
        path_document, path_arrays = path_to_parts(fitted.path)
        arrays |= path_arrays
    document = {
        "schema": fitted.schema.to_dict(),
        "library": fitted.library,
        "report": asdict(fitted.report),
        "settings": dict(settings or {}),
        "scores": list(fitted.scores),
        "path": path_document,
        "joint": joint_document,
    }
    write_archive(path, document, arrays)


def load(path: str | os.PathLike[str]) -> tuple[FittedModel, dict[str, Any]]:
    """Read a model that `save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    FittedModel
        Equal to the one that was saved.
    dict
        The settings that were saved with it.

    Raises
    ------
    ModelFileError
        When there is no such file, or it is not a model file, is damaged, or has a newer format.
    """
    file = FilePath(path)
    name = repr(str(file))
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        here = repr(str(FilePath.cwd()))
        raise ModelFileError(
            f"there is no file {name}. Check the path; it is relative to {here}."
        ) from None
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read: {error.strerror}.") from error
    with stream:
        try:
            return _read(stream)
        except ForeignFileError as error:
            raise ModelFileError(f"{name} {error}") from None
        except _DAMAGE as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ModelFileError(f"{name} is damaged or incomplete: {reason}. {_AGAIN}") from error


def _read(stream: BinaryIO) -> tuple[FittedModel, dict[str, Any]]:
    start = stream.read(len(_ZIP_START))
    if start != _ZIP_START:
        what = "is not a model file of mixedgm" if start else "is empty"
        raise ForeignFileError(f"{what}. {_WRITTEN_BY}")
    with zipfile.ZipFile(stream) as opened:
        archive = Archive(opened)
        document = archive.document
        schema = Schema.from_dict(document["schema"])
        nodewise = "level_effect" in document["arrays"]
        blocks = {
            name: archive.array(name, "float64", shape)
            for name, shape in _shapes(schema, nodewise).items()
        }
        if nodewise:
            effect = blocks.pop("level_effect")
            params: Params = NodewiseParams(schema.n_levels, *[*blocks.values(), effect])
        else:
            params = Params(schema.n_levels, *blocks.values())
        _check_params(schema, params)
        params = with_moderation(archive, schema, params)
        report = _report(document["report"])
        # One lam per column has scores of every column.
        per_lam = (None, len(schema.columns)) if isinstance(report.lam, tuple) else (None,)
        scores = {
            name: archive.array(f"scores_{at}", "float64", per_lam)
            for at, name in enumerate(_list_of(str, document["scores"]))
        }
        n_nodes = len(schema.nodes)
        moderators = 0 if params.moderation is None else len(params.moderation.nodes)
        every = (1 + moderators, n_nodes, n_nodes)
        edges_alone = every if moderators else every[1:]
        fitted = FittedModel(
            schema=schema,
            params=params,
            node_scales=archive.array("node_scales", "float64", (n_nodes,)),
            report=report,
            library=_typed(str, document["library"]),
            path=path_from_archive(archive, schema),
            scores=scores,
            selection_frequency=_if_stored(archive, "selection_frequency", edges_alone),
            shrunken_weights=_if_stored(archive, "shrunken_weights", every),
            margins=margins_from_archive(archive, schema),
            known_terms=terms_from_archive(archive, params),
        )
        return fitted, _typed(dict, document["settings"])


def _if_stored(archive: Archive, name: str, shape: tuple[int, ...]) -> Floats | None:
    return archive.array(name, "float64", shape) if name in archive.document["arrays"] else None


def _shapes(schema: Schema, nodewise: bool) -> dict[str, tuple[int, ...]]:
    """The fields of Params that are arrays, and the shapes that a schema gives them."""
    n_cont, n_level_columns = schema.n_cont, sum(schema.n_levels)
    own = {"level_effect": (n_level_columns, n_cont)} if nodewise else {}
    return own | {
        "precision": (n_cont, n_cont),
        "cont_bias": (n_cont,),
        "category_shift": (n_cont, n_level_columns),
        "cat_interaction": (n_level_columns, n_level_columns),
        "cat_bias": (n_level_columns,),
    }


def _check_params(schema: Schema, params: Params) -> None:
    """Refuse blocks that no fit returns; only a bias may be infinite, and only downwards."""
    nodewise = isinstance(params, NodewiseParams)
    for name, shape in _shapes(schema, nodewise).items():
        block = getattr(params, name)
        if block.shape != shape:
            raise ModelFileError(f"{name} has shape {block.shape} where its schema needs {shape}")
        allowed = np.isfinite(block)
        if name == "cat_bias":
            allowed |= np.isneginf(block)
        if not allowed.all():
            raise ModelFileError(f"{name} holds {np.count_nonzero(~allowed)} impossible numbers")
    if not (np.diagonal(params.precision) > 0.0).all():
        raise ModelFileError("the diagonal of precision is not positive")
    for name in () if nodewise else ("precision", "cat_interaction"):
        if not np.array_equal(getattr(params, name), getattr(params, name).T):
            raise ModelFileError(f"{name} is not symmetric")


def _report(stored: Mapping[str, Any]) -> FitReport:
    criterion = stored["criterion"]
    return FitReport(
        lam=_lam(stored["lam"]),
        objective=_typed(float, stored["objective"]),
        kkt=_typed(float, stored["kkt"]),
        tol=_typed(float, stored["tol"]),
        converged=_typed(bool, stored["converged"]),
        message=_typed(str, stored["message"]),
        n_iter=_typed(int, stored["n_iter"]),
        n_rows=_typed(int, stored["n_rows"]),
        total_weight=_typed(float, stored["total_weight"]),
        notes=tuple(_list_of(str, stored["notes"])),
        criterion=None if criterion is None else _typed(str, criterion),
        rule=_typed(str, stored.get("rule", "and")),
        # Files from before there was a choice do not name it.
        loss=_typed(str, stored.get("loss", "pseudolikelihood")),
        kkt_error=_typed(float, stored.get("kkt_error", 0.0)),
        objective_error=_typed(float, stored.get("objective_error", 0.0)),
        at=_typed(str, stored.get("at", "")),
        # Files from before had no field for it, but said so in a note.
        refitted=_typed(bool, stored.get("refitted", _REFIT_NOTE in stored["notes"])),
        ridge=tuple(_pair(names) for names in stored.get("ridge", [])),
        noisy=tuple(_list_of(str, stored.get("noisy", []))),
        unbounded=tuple(_list_of(str, stored.get("unbounded", []))),
        open_end=_typed(str, stored.get("open_end", "")),
        not_considered=tuple(_list_of(str, stored.get("not_considered", []))),
    )


def _pair(stored: object) -> tuple[str, str]:
    names = _list_of(str, stored)
    if len(names) != 2:
        raise ModelFileError(f"it has {names!r} where two names belong")
    return names[0], names[1]


def _lam(stored: object) -> Lam:
    return tuple(_list_of(float, stored)) if isinstance(stored, list) else _typed(float, stored)


def _typed(kind: type[T], value: object) -> T:
    """The value, if it is of this very type; JSON's whole numbers also do for float."""
    if kind is float and type(value) is int:
        return kind(value)  # type: ignore[call-arg]
    if type(value) is not kind:
        raise ModelFileError(f"it has {value!r} where a {kind.__name__} belongs")
    return value


def _list_of(kind: type[T], values: object) -> list[T]:
    return [_typed(kind, value) for value in _typed(list, values)]
