"""A Dask frame, or Parquet files and a Dask cluster -> a reader whose parts stay on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding, MixedGMError, ParameterError, TableError
from mixedgm.base.parts.cluster import ClusterParts
from mixedgm.base.printable import few, quoted
from mixedgm.table.files import reading
from mixedgm.table.parted.columns import PartPlan, PartSummary, RawPart, read_part
from mixedgm.table.parted.design import LocalReader, Reader, ReadParts
from mixedgm.table.parted.sources import ParquetFiles, file_part


def current_client() -> Any | None:
    """Return the client of the Dask cluster that is in use, None if there is none."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def connected(address: str) -> Any:
    """Return the client of the Dask cluster at an address."""
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            "a cluster needs Dask, which is not installed. "
            'Install it with: pip install "mixedgm[cluster]"'
        ) from None
    client: Any = distributed.Client
    try:
        return client(address, timeout="5s")
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ParameterError(
            f"there is no Dask scheduler at {quoted(address)}: {reason}"
        ) from error


def dask_reader(X: object) -> Reader:
    """Return the reader of a Dask frame: on the workers of a cluster, or one part after another.

    Without a cluster the partitions are computed and encoded in this process.
    """
    client = current_client()
    if client is None:
        return LocalReader(_Partitions(X))
    return DaskFrame(X, client)


@dataclass(frozen=True)
class _Partitions:
    """A Dask frame whose partitions are computed one after the other."""

    frame: Any

    @property
    def library(self) -> str:
        """The frame library of its partitions."""
        return "pandas"

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Yield its partitions."""
        with reading("the Dask frame"):
            partitions = self.frame.to_delayed()
        for k, part in enumerate(partitions):
            with reading(f"partition {k}"):
                frame = part.compute()
            yield f"partition {k}", _as_promised(frame, _names(self.frame), k)


@dataclass(frozen=True, eq=False)
class DaskFrame:
    """A Dask frame that is read by the workers of a cluster."""

    frame: Any
    client: Any

    @property
    def library(self) -> str:
        """The frame library of its partitions."""
        return "pandas"

    def first(self) -> Any:
        """Return a frame without rows that has its columns."""
        return self.frame._meta

    def read(self, plan: PartPlan, weights: NDArray[np.float64] | None) -> ReadParts:
        """Return all partitions by this plan, one task each."""
        from dask.delayed import delayed

        _refuse_arrays(weights)
        task, names = delayed(_read_partition, pure=False), _names(self.frame)
        made = [task(part, plan, names, k) for k, part in enumerate(self.frame.to_delayed())]
        parts: ClusterParts[RawPart] = ClusterParts(self.client, self.client.compute(made))
        return _read(parts, [f"partition {k}" for k in range(len(parts))])


@dataclass(frozen=True, eq=False)
class FilesOnWorkers:
    """Parquet files that the workers of a cluster read; they see them under the same names."""

    source: ParquetFiles
    client: Any
    without: tuple[str, ...] = ()
    """Columns that are left out."""

    @property
    def library(self) -> str:
        """The frame library of the parts."""
        return self.source.library

    def first(self) -> Any:
        """Return a frame without rows that has the columns of the first file."""
        frame = self.source.empty()
        return frame.drop(columns=list(self.without)) if self.library == "pandas" else frame

    def read(self, plan: PartPlan, weights: NDArray[np.float64] | None) -> ReadParts:
        """Return all parts by this plan, one task each."""
        _refuse_arrays(weights)
        units = self.source.units()
        futures = [
            self.client.submit(_read_unit, unit, self.library, self.without, plan, pure=False)
            for unit in units
        ]
        parts: ClusterParts[RawPart] = ClusterParts(self.client, futures)
        return _read(parts, [str(unit[0]) for unit in units])


def _names(frame: Any) -> tuple[str, ...]:
    return tuple(map(str, frame.columns))


def _as_promised(part: object, names: tuple[str, ...], k: int) -> Any:
    """Return a partition; TableError where it is not what the metadata of the Dask frame say."""
    if not hasattr(part, "columns"):
        what = f"is of type {type(part).__name__}, not a frame"
    else:
        found, wanted = set(_names(part)), set(names)
        if found == wanted:
            return part
        what = "does not have the columns of the Dask frame: "
        what += ", ".join(
            f"{word} {few(sorted(columns))}"
            for word, columns in (("it lacks", wanted - found), ("it adds", found - wanted))
            if columns
        )
    remedy = "correct meta= of the call that made the partitions"
    raise TableError([Finding(None, f"partition {k} {what}", remedy)])


def _read_partition(part: object, plan: PartPlan, names: tuple[str, ...], k: int) -> RawPart:
    return read_part(_as_promised(part, names, k), plan)


def _read_unit(
    unit: tuple[Path, int, int], library: str, without: tuple[str, ...], plan: PartPlan
) -> RawPart:
    return read_part(file_part(unit, library, without), plan)


def _read(parts: ClusterParts[RawPart], labels: Sequence[str]) -> ReadParts:
    try:
        summaries: list[PartSummary] = list(parts.map(_summary))
    except MixedGMError:
        raise
    except Exception:
        for label, future in zip(labels, parts.futures, strict=True):
            if future.status == "error":
                with reading(label):
                    raise future.exception() from None
        raise
    return ReadParts(parts, summaries, labels)


def _summary(part: RawPart) -> PartSummary:
    return part.summary


def _refuse_arrays(weights: NDArray[np.float64] | None) -> None:
    if weights is not None:
        raise ParameterError(
            "rows of a table on a cluster have weights by a column: give sample_weight its name."
        )
