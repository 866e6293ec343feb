"""What a user may give as a table that is read part by part -> its frames, one after the other."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw

from mixedgm.base.errors import Finding, TableError
from mixedgm.base.printable import few
from mixedgm.table.files import path_name, reading
from mixedgm.table.read import Frame, as_frame, without_column

_MOST_ROWS = 2**19
_FEWEST_ROWS = 2**12
_CELLS = 2**24


class Source(Protocol):
    """A table that is read once, part by part."""

    @property
    def library(self) -> str:
        """The frame library of its parts."""

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield the parts in order, each with the name that messages call it by."""


def source_of(X: object, most_rows: int | None = None) -> Source | None:
    """Return the source behind a table that is given in parts; None for any other table.

    That is a folder of Parquet files, a pattern of file names such as "part-*.parquet", a list of
    such files, a lazy frame of polars, or a dataset of pyarrow.  Parts have at most `most_rows`
    rows, by default as many as fit into memory many times.

    Examples
    --------
    >>> source_of([[1.0, 2.0]]) is None
    True
    """
    if isinstance(X, str | os.PathLike):
        return _of_path(os.fspath(X), most_rows)
    if isinstance(X, list | tuple) and X and all(isinstance(each, str | os.PathLike) for each in X):
        return _parquet_files([Path(each) for each in X], most_rows)
    native = nw.to_native(X, pass_through=True)
    if nw.dependencies.is_polars_lazyframe(native):
        return LazyTable(native, most_rows)
    if type(native).__module__ == "pyarrow._dataset" and hasattr(native, "to_batches"):
        return ArrowDataset(native, "pyarrow", most_rows)
    return None


def is_dask(X: object) -> bool:
    """Return whether a table is a Dask frame."""
    return bool(nw.dependencies.is_dask_dataframe(nw.to_native(X, pass_through=True)))


def rows_at_once(n_columns: int, most_rows: int | None = None) -> int:
    """Return how many rows of a table with so many columns make a part."""
    if most_rows is not None:
        return most_rows
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _CELLS // max(1, n_columns)))


def _of_path(path: str, most_rows: int | None) -> Source | None:
    folder = Path(path)
    with reading(f"the path {path_name(path)}"):
        if folder.is_dir():
            return _of_folder(folder, most_rows)
        if folder.exists() or not glob.has_magic(path):
            return None
        files = [Path(name) for name in sorted(glob.glob(path, recursive=True))]
    if not files:
        raise TableError(
            f"no file fits the pattern {path_name(path)}. Check the path; it is relative to "
            f"{path_name(Path.cwd())}."
        )
    return _parquet_files(files, most_rows)


def _of_folder(folder: Path, most_rows: int | None) -> Source:
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        what = f"the folder {path_name(folder)} has no Parquet files"
        raise TableError(
            [
                Finding(
                    None, what, "give the path of a file, or a folder of files ending in .parquet"
                )
            ]
        )
    if any("=" in part for part in files[0].relative_to(folder).parts[:-1]):
        _check_hive(folder, files)
        from pyarrow import dataset

        by_value = dataset.HivePartitioning.discover(infer_dictionary=True)
        whole = dataset.dataset(folder, format="parquet", partitioning=by_value)
        return ArrowDataset(whole, _arrow_library(), most_rows)
    return _parquet_files(files, most_rows)


def _check_hive(folder: Path, files: Sequence[Path]) -> None:
    """Raise TableError where a column is both in the files and in the names of their folders."""
    where: dict[str, list[str]] = {}
    for file in files:
        folders = file.relative_to(folder).parts[:-1]
        in_names = {name.partition("=")[0] for name in folders if "=" in name}
        with reading(f"the file {path_name(file)}"), _opened(file) as opened:
            for name in in_names.intersection(opened.schema_arrow.names):
                where.setdefault(name, []).append(path_name(file))
    if where:
        what, remedy = "it is in the names of folders, and also in", "leave it out of the files"
        raise TableError(
            Finding(name, f"{what} {part_names(inside)}", remedy) for name, inside in where.items()
        )


def _parquet_files(files: Sequence[Path], most_rows: int | None) -> ParquetFiles:
    """Return the files as parts; TableError where one is not there, or is there twice."""
    counts = Counter(_parquet(file).resolve() for file in files)
    twice = [path_name(file) for file, count in counts.items() if count > 1]
    if twice:
        what = f"the same file more than once: {few(twice, 3, str)}"
        raise TableError([Finding(None, what, "list every file once: its rows would count twice")])
    return ParquetFiles(files, most_rows)


def _parquet(file: Path) -> Path:
    name = path_name(file)
    if file.suffix.lower() != ".parquet":
        what = (
            f"{name} is not a Parquet file; a table in parts consists of files ending in .parquet"
        )
        raise TableError(
            [Finding(None, what, "convert it, or read the files and put them together")]
        )
    with reading(f"the file {name}"):
        if not file.is_file():
            raise TableError(f"there is no file {name}.")
    return file


def _need_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise TableError(
            "reading Parquet files part by part needs pyarrow, which is not installed. "
            'Install it with: pip install "mixedgm[frames]"'
        )


def _arrow_library() -> str:
    return "pandas" if find_spec("pandas") is not None else "pyarrow"


def _as_frame(table: Any, library: str) -> Any:
    return table.to_pandas() if library == "pandas" else table


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files, which are the parts of a table; large ones are several parts.

    Parameters
    ----------
    files : sequence of Path
        In the order of the rows.
    most_rows : int, optional
        Of one part.
    """

    files: Sequence[Path]
    most_rows: int | None = None
    library: str = field(default_factory=_arrow_library)
    """As for a single file: pandas where it is installed."""

    def units(self) -> list[tuple[Path, int, int]]:
        """Return parts that can be read one by one: the file, its first row group, and the end.

        Row groups are put together as long as they are small.
        """
        units = []
        for file in self.files:
            with reading(f"the file {path_name(file)}"), _opened(file) as opened:
                most = rows_at_once(len(opened.schema_arrow.names), self.most_rows)
                metadata = opened.metadata
                sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
            first, n_rows = 0, 0
            for k, size in enumerate(sizes):
                if n_rows and n_rows + size > most:
                    units.append((file.absolute(), first, k))
                    first, n_rows = k, 0
                n_rows += size
            units.append((file.absolute(), first, len(sizes)))
        return units

    def empty(self) -> Any:
        """Return a frame without rows that has the columns of the first file."""
        file = self.files[0]
        with reading(f"the file {path_name(file)}"), _opened(file) as opened:
            return _as_frame(opened.schema_arrow.empty_table(), self.library)

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield the parts of all files."""
        for file in self.files:
            label = path_name(file)
            for frame in _guarded(self._frames_of(file), f"the file {label}"):
                yield label, frame

    def _frames_of(self, file: Path) -> Iterator[Any]:
        from pyarrow import Table

        with _opened(file) as opened:
            rows, n = rows_at_once(len(opened.schema_arrow.names), self.most_rows), 0
            for batch in opened.iter_batches(batch_size=rows):
                n += 1
                yield _as_frame(Table.from_batches([batch]), self.library)
            if not n:
                yield _as_frame(opened.schema_arrow.empty_table(), self.library)


def file_part(unit: tuple[Path, int, int], library: str, without: Sequence[str]) -> Any:
    """Return the rows of some row groups of a file, less some columns."""
    file, first, last = unit
    with reading(f"the file {path_name(file)}"), _opened(file) as opened:
        if first == last:
            table = opened.schema_arrow.empty_table()
        else:
            table = opened.read_row_groups(list(range(first, last)))
        frame = as_frame(_as_frame(table, library))
    return _without(frame, without)


def _without(frame: Frame, names: Sequence[str]) -> Frame:
    """Return the frame without those of these columns that it has."""
    for name in names:
        frame = without_column(frame, name) if name in frame.positions else frame
    return frame


def _opened(file: Path) -> Any:
    _need_pyarrow()
    from pyarrow import parquet

    return parquet.ParquetFile(file)


def _guarded(frames: Iterator[Any], source: str, *, numbered: bool = False) -> Iterator[Any]:
    """Yield the frames of a source; TableError says what cannot be read (which part), and why."""
    for n in count(1):
        with reading(f"part {n} of {source}" if numbered else source):
            frame = next(frames, None)
        if frame is None:
            return
        yield frame


@dataclass(frozen=True)
class ArrowDataset:
    """A dataset of pyarrow."""

    dataset: Any
    library: str
    most_rows: int | None = None

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield its batches; one is read while another is encoded."""
        frames = _guarded(self._batches(), "the dataset", numbered=True)
        for n, frame in enumerate(frames, 1):
            yield f"part {n}", frame

    def _batches(self) -> Iterator[Any]:
        from pyarrow import Table

        rows, n = rows_at_once(len(self.dataset.schema.names), self.most_rows), 0
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}
        for batch in self.dataset.to_batches(batch_size=rows, **ahead):
            if batch.num_rows:
                n += 1
                yield _as_frame(Table.from_batches([batch]), self.library)
        if not n:
            yield _as_frame(self.dataset.schema.empty_table(), self.library)


@dataclass(frozen=True)
class LazyTable:
    """A lazy frame of polars, whose query runs once."""

    frame: Any
    most_rows: int | None = None
    library: str = "polars"

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield batches of rows in their order.

        Errors do not number them: polars reads ahead.
        """
        for n, frame in enumerate(_guarded(self._some(), "the lazy frame"), 1):
            yield f"part {n}", frame

    def _some(self) -> Iterator[Any]:
        """Yield batches that have rows, or else one without."""
        schema, n = self.frame.collect_schema(), 0
        for batch in self._batches(rows_at_once(len(schema), self.most_rows)):
            if len(batch):
                n += 1
                yield batch
        if not n:
            yield schema.to_frame()

    def _batches(self, rows: int) -> Iterator[Any]:
        if hasattr(self.frame, "collect_batches"):
            yield from self.frame.collect_batches(chunk_size=rows, maintain_order=True)
            return
        # Older versions: one query for every part.
        for first in range(0, 2**62, rows):
            batch = self.frame.slice(first, rows).collect()
            yield batch
            if len(batch) < rows:
                return


@dataclass(frozen=True)
class WithoutColumns:
    """A source of which some columns are left out."""

    source: Source
    names: tuple[str, ...]

    @property
    def library(self) -> str:
        """As of the source."""
        return self.source.library

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield the parts without these columns."""
        for label, native in self.source.frames():
            yield label, _without(as_frame(native), self.names)


def part_names(labels: Sequence[str]) -> str:
    """Return some labels of parts, each once, for a message."""
    return few(list(dict.fromkeys(labels)), 3, str)
