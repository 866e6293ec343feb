"""One JSON document + named arrays -> a zip archive, and back with every size checked first.

`numpy.load` can open the archive: one .npy member per array, ``model.json``, and
``checksums.json`` with the SHA-256 of all other members.  Nothing is pickled and nothing in the
file is executed.  Members are not compressed, so a small file cannot claim a large size, and the
same content gives the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mixedgm.base.atomic import replacing
from mixedgm.base.errors import ModelFileError
from mixedgm.base.printable import quoted
from mixedgm.store.validation import SPARSE, WIDE, Sizes, array_spec

FORMAT = "mixedgm-model"
FORMAT_VERSION = 1

Arrays = dict[str, NDArray[Any]]
Header = tuple[tuple[tuple[int, ...], bool, np.dtype[Any]], int]

_DOCUMENT = "model.json"
_CHECKSUMS = "checksums.json"
_EARLIEST = (1980, 1, 1, 0, 0, 0)

_LARGEST_DIRECTORY = 2**20
_END = struct.Struct("<4s4H2LH")
_ZIP64, _ZIP64_FROM = b"PK\x06\x07", 2**31
_NPY_HEADER = 128
_SPARSE_SHARE = 0.25

# A document has few values beside those of its columns: the knots of a transform are the most that
# one of them has.  Settings may be long, too.
_MOST_VALUES, _MOST_PER_COLUMN, _BYTES_PER_VALUE = 400_000, 2_100, 64


class ForeignFileError(ModelFileError):
    """A file that is whole but cannot be read: not a model file, or one of a newer format."""


def library_version() -> str:
    """Return the version of this package, "0+unknown" where it is not installed."""
    try:
        return version("mixedgm")
    except PackageNotFoundError:
        return "0+unknown"


def write_archive(
    path: str | os.PathLike[str],
    document: Mapping[str, Any],
    arrays: Arrays,
    *,
    indent: int | None,
) -> None:
    """Write the document and the arrays to one file, completely or not at all."""
    names = sorted(arrays)
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": library_version(),
    }
    text = json.dumps({**head, **document, "arrays": names}, indent=indent, default=_plain)
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        sums = {_DOCUMENT: _add(archive, _DOCUMENT, text.encode("ascii"))}
        for name in names:
            sums[f"{name}.npy"] = _add(archive, f"{name}.npy", _npy_bytes(arrays[name]))
        _add(archive, _CHECKSUMS, json.dumps({"sha256": sums}, indent=1).encode("ascii"))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> str:
    """Write a member whose header depends on nothing but its name; return its checksum."""
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = zipfile.ZIP_STORED
    info.create_system = 3
    info.external_attr = 0o600 << 16
    archive.writestr(info, content)
    return hashlib.sha256(content).hexdigest()


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


def is_sparse(n_columns: int, array: NDArray[Any]) -> bool:
    """Return whether an array of a model with so many columns is stored by what is not zero."""
    return n_columns >= WIDE and bool(np.count_nonzero(array) <= _SPARSE_SHARE * array.size)


def to_sparse(name: str, array: NDArray[Any]) -> Arrays:
    """Return where an array is not zero, and its values there."""
    places = np.flatnonzero(array)
    return {f"{name}_places": places, f"{name}_entries": array.ravel()[places]}


class Archive:
    """A model file that is open for reading.

    `document` is what ``model.json`` says, of a format version that this library reads; its values
    are not checked yet.
    """

    def __init__(self, stream: BinaryIO) -> None:
        size = stream.seek(0, os.SEEK_END)
        _check_end(stream, size)
        self._archive = zipfile.ZipFile(stream)
        members = self._archive.infolist()
        self._members = {info.filename: info for info in members}
        if _DOCUMENT not in self._members:
            raise ForeignFileError("is a zip archive, but not a model file of mixedgm.")
        if len(self._members) < len(members):
            raise ModelFileError("two of its parts have the same name")
        for info in members:
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                name = quoted(info.filename)
                raise ModelFileError(f"its part {name} is compressed; model files are not")
        if sum(info.file_size for info in members) > size:
            raise ModelFileError("its parts claim to be larger than the file")
        self._headers: dict[str, Header] = {}
        self._sums = self._checksums()
        self.document = self._read_document()

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The names of the arrays."""
        names = (name for name in self._members if name.endswith(".npy"))
        return frozenset(name.removesuffix(".npy") for name in names)

    def check(self, names: Iterable[str], sizes: Sizes) -> None:
        """Compare the headers of all arrays with what is known of their shapes.

        Nothing is read beyond these, and nothing may be there that is not named.
        """
        self._compare({_DOCUMENT, *(f"{name}.npy" for name in names)})
        for name in names:
            if array_spec(name) is not None:
                self._header(name, sizes)

    def length(self, name: str) -> int:
        """The length that the header of an array claims; 0 where there is no such array."""
        return self._header(name, {})[0][0] if name in self.arrays else 0

    def array(self, name: str, sizes: Sizes) -> NDArray[Any]:
        """Read an array whose type, shape and values are those that `ARRAYS` states.

        `sizes` are the lengths that the letters of shapes stand for; any length if not given.
        """
        if name in SPARSE and f"{name}_places" in self.arrays:
            places, values = self.entries(name, sizes)
            dense = np.zeros(self._shape(name, sizes))
            dense.ravel()[places] = values
            return dense
        shape, start = self._header(name, sizes)
        spec, content = array_spec(name), self._content(f"{name}.npy")
        assert spec is not None
        dtype = np.dtype(spec.dtype).newbyteorder("<")
        if len(content) - start != math.prod(shape) * dtype.itemsize:
            raise ModelFileError(f"the array {name!r} is shorter or longer than it claims")
        values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
        spec.check_values(name, values)
        return values.astype(dtype.newbyteorder("="))

    def get(self, name: str, sizes: Sizes) -> NDArray[Any] | None:
        """Read an array as `array` does; None where there is no such array."""
        return self.array(name, sizes) if self.has(name) else None

    def has(self, name: str) -> bool:
        """Whether there is such an array, whole or by what is not zero in it."""
        return name in self.arrays or (name in SPARSE and f"{name}_places" in self.arrays)

    def entries(self, name: str, sizes: Sizes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Read where a sparse array is not zero, counted row by row, and its values there."""
        places = self.array(f"{name}_places", sizes)
        values = self.array(f"{name}_entries", {**sizes, "i": len(places)})
        last = math.prod(self._shape(name, sizes)) - 1
        if (np.diff(places) <= 0).any() or places.max(initial=0) > max(last, 0):
            raise ModelFileError(
                f"the places of {name!r} are in the wrong order, or beyond its end"
            )
        if np.count_nonzero(values) < len(values):
            raise ModelFileError(f"the entries of {name!r} hold zeros")
        return places, values

    def _shape(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        """The shape that the model's columns give a sparse array."""
        spec = array_spec(name)
        assert spec is not None
        if name in self.arrays:
            raise ModelFileError(f"the array {name!r} is there twice")
        return tuple(length or 0 for length in spec.lengths(sizes))

    def _header(self, name: str, sizes: Sizes) -> tuple[tuple[int, ...], int]:
        """The shape that the header of an array claims, and where its values start."""
        spec = array_spec(name)
        assert spec is not None
        if name not in self._headers:
            self._headers[name] = self._read_header(name)
        (shape, fortran, dtype), start = self._headers[name]
        spec.check_header(name, dtype, shape, sizes)
        if (fortran and len(shape) > 1) or dtype.str[0] == ">":
            raise ModelFileError(f"the array {name!r} has its numbers in another order")
        return shape, start

    def _read_header(self, name: str) -> Header:
        if f"{name}.npy" not in self._members:
            raise ModelFileError(f"its part {quoted(f'{name}.npy')} is missing")
        with self._archive.open(f"{name}.npy") as member:
            if npy.read_magic(member) != (1, 0):
                raise ModelFileError(f"the array {name!r} has an unknown version of .npy")
            return npy.read_array_header_1_0(member), member.tell()

    def _content(self, name: str) -> bytes:
        """The bytes of a member, as they were written."""
        content = self._archive.read(self._members[name])
        if self._sums is not None and hashlib.sha256(content).hexdigest() != self._sums[name]:
            raise ModelFileError(f"its part {name!r} has changed since it was written")
        return content

    def _checksums(self) -> Mapping[str, str] | None:
        """Checksums by member; None in a file without them, made by hand."""
        info = self._members.get(_CHECKSUMS)
        if info is None:
            return None
        if info.file_size > _LARGEST_DIRECTORY:
            raise ModelFileError(f"its part {_CHECKSUMS!r} has {info.file_size:,} bytes")
        stored = json.loads(self._archive.read(info))
        sums = stored.get("sha256") if isinstance(stored, dict) else None
        if not isinstance(sums, dict):
            raise ModelFileError("its checksums cannot be read")
        self._compare(set(sums))
        return sums

    def _compare(self, named: set[str]) -> None:
        """Refuse members that are not named, and names without members."""
        there = set(self._members) - {_CHECKSUMS}
        for name in sorted(named ^ there):
            what = "missing" if name in named else "unknown"
            raise ModelFileError(f"its part {quoted(name)} is {what}")

    def _read_document(self) -> dict[str, Any]:
        """Parse the document, if it has no more values than its square arrays justify.

        Parsed, many tiny values take thirty times the size of their text.  A wide model has no
        square arrays; its columns have at least one bias each.
        """
        square = ("coef", "nodewise_coef")
        columns = sum(self._length(name) for name in square)
        if columns == 0:
            columns = self._size("bias")
        most = _MOST_VALUES + _MOST_PER_COLUMN * columns
        n_bytes = self._members[_DOCUMENT].file_size
        if n_bytes > most * _BYTES_PER_VALUE:
            raise ModelFileError(f"its part {_DOCUMENT!r} has {n_bytes:,} bytes: too many")
        content = self._content(_DOCUMENT)
        n_values = count_values(content)
        if n_values > most:
            raise ModelFileError(f"its part {_DOCUMENT!r} has {n_values:,} values: too many")
        document = json.loads(content, object_pairs_hook=_unique)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ForeignFileError("is a zip archive, but not a model file of mixedgm.")
        stored = document["format_version"]
        if type(stored) is not int or not 0 < stored < 1000:
            raise ModelFileError(f"its format version is {quoted(stored)}")
        if stored > FORMAT_VERSION:
            raise ForeignFileError(
                f"was written by mixedgm {str(document.get('library_version'))[:40]} in format "
                f"{stored}; this is mixedgm {library_version()}, which reads formats up to "
                f"{FORMAT_VERSION}. To fix: open it with a newer version of mixedgm"
            )
        return document

    def _length(self, name: str) -> int:
        """How long the sides of a square array can be."""
        return math.isqrt(self._size(name))

    def _size(self, name: str) -> int:
        """How many numbers an array can hold."""
        info = self._members.get(f"{name}.npy")
        return 0 if info is None else max(0, info.file_size - _NPY_HEADER) // 8


def count_values(text: bytes) -> int:
    """Return the number of values in JSON, or more."""
    return sum(text.count(mark) for mark in (b",", b"[", b"{"))


def _check_end(stream: BinaryIO, size: int) -> None:
    """Refuse an archive whose end is not that of a model file, or that lists too many members."""
    stream.seek(max(0, size - _END.size - 20))
    tail = stream.read()
    mark, *_, n_bytes, _, comment = (
        _END.unpack(tail[-_END.size :]) if len(tail) >= _END.size else (b"", 0, 0, 0)
    )
    if mark != b"PK\x05\x06" or comment:
        raise ModelFileError("its end is missing")
    if n_bytes > _LARGEST_DIRECTORY or (tail.startswith(_ZIP64) and size < _ZIP64_FROM):
        raise ModelFileError("its list of parts is too long")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ModelFileError("its document has the same field twice")
    return fields
