"""What a user gives as a table -> a reader of its parts, where it comes in parts."""

from __future__ import annotations

from typing import Any

from mixedgm.table.parted import Reader, read_locally
from mixedgm.table.sources import is_dask, source_of

__all__ = ["parts_of"]


def parts_of(X: Any) -> Reader | None:
    """Return the reader of a table in parts; None for a table that is read whole.

    Examples
    --------
    >>> parts_of([[1.0, 2.0]]) is None
    True
    """
    if isinstance(X, Reader):
        return X
    if is_dask(X):
        from mixedgm.table.dask_tables import dask_reader

        return dask_reader(X)
    source = source_of(X)
    return None if source is None else read_locally(source)
