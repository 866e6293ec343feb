"""Parts in this process: in memory as long as there is enough of it, in files from then on."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from mixedgm.base.parts.contract import Parts

T = TypeVar("T")
U = TypeVar("U")

_SHARE = 0.5
"""Share of the memory that is free when the first part comes: so much is filled with parts."""


class LocalParts(Parts[T]):
    """Parts in memory, and in files of a temporary folder beyond a limit.

    A file is read anew whenever its part is asked for, so that no more than one such part is in
    memory at a time.  The folder is deleted with the list.

    Parameters
    ----------
    parts : iterable
        Values that can be pickled, and have a size in bytes as `size_of` counts it.
    limit : int, optional
        Bytes of parts that are kept in memory; by default half of the memory that is free.

    Examples
    --------
    >>> import numpy as np
    >>> parts = LocalParts((np.arange(k) for k in range(4)), limit=20)
    >>> list(parts.map(np.sum)), parts.n_files
    ([np.int64(0), np.int64(0), np.int64(1), np.int64(3)], 2)
    """

    def __init__(self, parts: Iterable[T] = (), limit: int | None = None) -> None:
        self.limit = _free_memory() if limit is None else limit
        self._parts: list[T | Path | None] = []
        self._used = 0
        self._folder: _Folder | None = None
        for part in parts:
            self.append(part)

    @property
    def nearby(self) -> bool:
        """Whether the parts are in this process: they are."""
        return True

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def n_files(self) -> int:
        """How many parts are in files."""
        return sum(isinstance(part, Path) for part in self._parts)

    def append(self, part: T) -> None:
        """Add a part at the end."""
        self._parts.append(self._kept(part))

    def _kept(self, part: T) -> T | Path:
        size = size_of(part)
        if self._used + size <= self.limit:
            self._used += size
            return part
        if self._folder is None:
            self._folder = _Folder()
        descriptor, name = tempfile.mkstemp(dir=self._folder.path)
        with os.fdopen(descriptor, "wb") as file:
            pickle.dump(part, file, protocol=5)
        return Path(name)

    def _stored(self, at: int) -> T:
        part = self._parts[at]
        if not isinstance(part, Path):
            return part  # type: ignore[return-value]
        with part.open("rb") as file:
            loaded: T = pickle.load(file)
        return loaded

    def map(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Iterator[U]:
        """Yield ``function(part, *common)`` of every part, in their order."""
        for at in range(len(self)):
            more = () if each is None else (each[at],)
            yield function(self._stored(at), *common, *more)

    def replaced(
        self, function: Callable[..., U], *common: Any, each: Sequence[Any] | None = None
    ) -> Parts[U]:
        """Return the parts that the function makes of these, one after the other.

        Every part is given up as soon as its successor is there.
        """
        out: LocalParts[U] = LocalParts(limit=self.limit)
        for at in range(len(self)):
            more = () if each is None else (each[at],)
            part, old = self._stored(at), self._parts[at]
            self._parts[at] = None
            made = function(part, *common, *more)
            if isinstance(old, Path):
                old.unlink()
            else:
                self._used -= size_of(old)
            del part, old
            out.limit = self.limit - self._used
            out.append(made)
        out.limit = self.limit
        self._parts.clear()
        return out

    def joined(
        self, join: Callable[[list[T]], T], size: Callable[[T], int], most: int
    ) -> LocalParts[T]:
        """Put neighbours together as long as their sizes add up to no more than `most`.

        The parts are given up one after the other.
        """
        sizes = list(self.map(size))
        if all(a + b > most for a, b in pairwise(sizes)):
            return self
        out: LocalParts[T] = LocalParts(limit=self.limit)
        waiting: list[T] = []
        n = 0
        for at in range(len(self)):
            if waiting and n + sizes[at] > most:
                out.append(join(waiting))
                waiting, n = [], 0
            waiting.append(self._stored(at))
            n += sizes[at]
            self._parts[at] = None
        if waiting:
            out.append(join(waiting))
        self._parts.clear()
        return out

    def only(self, kept: Sequence[int]) -> Parts[T]:
        """Return some of the parts, by their numbers."""
        out: LocalParts[T] = LocalParts(limit=self.limit)
        out._parts, out._folder = [self._parts[k] for k in kept], self._folder
        out._used = sum(size_of(part) for part in out._parts if not isinstance(part, Path))
        return out


class _Folder:
    """A temporary folder that goes with the last list that uses it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="mixedgm-parts-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def size_of(part: object) -> int:
    """Return the bytes of a part: its own number `nbytes` if it has one, else nothing."""
    return int(getattr(part, "nbytes", 0))


def _free_memory() -> int:
    """Return a share of the memory that no process uses; 4 GB where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(_SHARE * 1024 * int(line.split()[1]))
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 4 * 2**30
    return int(_SHARE * free)
