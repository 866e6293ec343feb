"""A Dask frame, or Parquet files and a Dask cluster -> a reader whose parts stay on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.parts.cluster import ClusterParts
from mixedgm.printable import quoted
from mixedgm.table.part_columns import PartPlan, PartSummary, RawPart, read_part
from mixedgm.table.parted import Reader, ReadParts, read_locally
from mixedgm.table.sources import ParquetFiles, file_part

__all__ = ["DaskFrame", "FilesOnWorkers", "connected", "current_client", "dask_reader"]


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


def dask_reader(X: Any) -> Reader:
    """Return the reader of a Dask frame: on the workers of a cluster, or one part after another.

    Without a cluster the partitions are computed and encoded in this process.
    """
    client = current_client()
    if client is None:
        return read_locally(_Partitions(X))
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
        for k, part in enumerate(self.frame.to_delayed()):
            yield f"partition {k}", part.compute()


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
        made = [delayed(read_part, pure=False)(part, plan) for part in self.frame.to_delayed()]
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


def _read_unit(
    unit: tuple[Path, int, int], library: str, without: tuple[str, ...], plan: PartPlan
) -> RawPart:
    return read_part(file_part(unit, library, without), plan)


def _read(parts: ClusterParts[RawPart], labels: Sequence[str]) -> ReadParts:
    summaries: list[PartSummary] = list(parts.map(_summary))
    return ReadParts(parts, summaries, labels)


def _summary(part: RawPart) -> PartSummary:
    return part.summary


def _refuse_arrays(weights: NDArray[np.float64] | None) -> None:
    if weights is not None:
        raise ParameterError(
            "rows of a table on a cluster have weights by a column: give sample_weight its name."
        )
