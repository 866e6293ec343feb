"""One JSON document + named arrays -> a zip archive, and back with every size checked first.

`numpy.load` can open the archive: one .npy member per array, and ``model.json``.  Nothing is
pickled and nothing in the file is executed.  Members are not compressed, so a small file cannot
claim a large size, and the same content gives the same bytes everywhere.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mixedgm.atomic import replacing
from mixedgm.errors import ModelFileError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Archive",
    "Arrays",
    "ForeignFileError",
    "library_version",
    "write_archive",
]

FORMAT = "mixedgm-model"
FORMAT_VERSION = 1

Arrays = dict[str, NDArray[Any]]
Shape = tuple[int | None, ...]

_DOCUMENT = "model.json"
_LARGEST_DOCUMENT = 2**28
_EARLIEST = (1980, 1, 1, 0, 0, 0)


class ForeignFileError(ModelFileError):
    """A file that is whole but cannot be read: no model file, or one of a newer format."""


def library_version() -> str:
    """Return the version of this package, "0+unknown" where it is not installed."""
    try:
        return version("mixedgm")
    except PackageNotFoundError:
        return "0+unknown"


def write_archive(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write the document and the arrays to one file, completely or not at all."""
    names = sorted(arrays)
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": library_version(),
    }
    text = json.dumps({**head, **document, "arrays": names}, indent=1, default=_plain)
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_member(_DOCUMENT), text.encode("ascii"))
        for name in names:
            archive.writestr(_member(f"{name}.npy"), _npy_bytes(arrays[name]))


def _member(name: str) -> zipfile.ZipInfo:
    """A member whose header depends on nothing but its name."""
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = zipfile.ZIP_STORED
    info.create_system = 3
    info.external_attr = 0o600 << 16
    return info


def _npy_bytes(array: NDArray[Any]) -> bytes:
    buffer = BytesIO()
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    npy.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _plain(value: object) -> object:
    """NumPy numbers and arrays as what JSON knows."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ModelFileError(f"a setting of type {type(value).__name__} cannot be stored in a file.")


class Archive:
    """A model file that is open for reading.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The open file.

    Attributes
    ----------
    document : dict
        What ``model.json`` says, of a format version that this library reads.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.document = self._read_document()

    def array(self, name: str, dtype: str, shape: Shape) -> NDArray[Any]:
        """Read an array that must have this type and shape; None leaves a length open.

        The size that the array's header claims is compared with the size of its member before
        anything is allocated.
        """
        info = self._info(f"{name}.npy")
        with self._archive.open(info) as member:
            if npy.read_magic(member) != (1, 0):
                raise ModelFileError(f"the array {name!r} has an unknown version of .npy")
            found_shape, fortran, found = npy.read_array_header_1_0(member)
            expected = np.dtype(dtype).newbyteorder("<")
            if found != expected or fortran or not _fits(found_shape, shape):
                wanted = f"{expected.name} {_shown(shape)}"
                got = f"{found.name} {_shown(found_shape)}"
                raise ModelFileError(f"the array {name!r} is {got} where the model needs {wanted}")
            size = math.prod(found_shape) * expected.itemsize
            if info.file_size - member.tell() != size:
                raise ModelFileError(f"the array {name!r} is shorter or longer than it claims")
            content = member.read()
        values = np.frombuffer(content, dtype=expected).reshape(found_shape)
        return values.astype(expected.newbyteorder("="))

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            raise ModelFileError(f"its part {name!r} is missing") from None
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"its part {name!r} is compressed, which no model file is")
        return info

    def _read_document(self) -> dict[str, Any]:
        if _DOCUMENT not in self._archive.namelist():
            raise ForeignFileError("is a zip archive, but not a model file of mixedgm.")
        info = self._info(_DOCUMENT)
        if info.file_size > _LARGEST_DOCUMENT:
            raise ModelFileError(f"its part {_DOCUMENT!r} has {info.file_size:,} bytes")
        document = json.loads(self._archive.read(info).decode("ascii"))
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ForeignFileError("is a zip archive, but not a model file of mixedgm.")
        found = document["format_version"]
        if type(found) is not int or found < 1:
            raise ModelFileError(f"its format version is {found!r}")
        if found > FORMAT_VERSION:
            raise ForeignFileError(
                f"was written by mixedgm {document.get('library_version')} in format {found}; "
                f"this is mixedgm {library_version()}, which reads formats up to "
                f"{FORMAT_VERSION}. To fix: open it with a newer version of mixedgm"
            )
        return document


def _fits(found: tuple[int, ...], wanted: Shape) -> bool:
    return len(found) == len(wanted) and all(
        length >= 0 and want in (None, length) for length, want in zip(found, wanted, strict=True)
    )


def _shown(shape: Shape) -> str:
    return " x ".join("n" if length is None else str(length) for length in shape) or "number"
