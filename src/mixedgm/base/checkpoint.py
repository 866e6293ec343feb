"""Outcomes of tasks -> a folder with one file each, and back; damaged files count as absent.

A file is an archive of arrays that NumPy can read, followed by a checksum of it and of the work
that it belongs to.  Nothing is parsed before the checksum has been verified.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.atomic import remove_abandoned, write_bytes, write_text
from mixedgm.base.errors import ParameterError

Record = dict[str, NDArray[Any]]

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 100_000
_VERSION = 1
_ERROR = "error"
_FILE = re.compile(r"\d{6,}\.npz")
_LEFTOVER = re.compile(r"\.(\d{6,}\.npz|manifest\.json)\..*")
_CHECKSUM = 64


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of one task: a record of arrays, or the message of its failure."""

    index: int
    record: Record | None
    error: str | None = None


def fingerprint(*parts: object) -> str:
    """Return a hash of arrays (by value) and other things (by what they print).

    Examples
    --------
    >>> fingerprint("a", np.zeros(2)) == fingerprint("a", np.zeros(2))
    True
    >>> fingerprint("a", np.zeros(2)) == fingerprint("a", np.zeros(3))
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            head, body = f"{part.dtype.str}{part.shape}", np.ascontiguousarray(part).tobytes()
        else:
            head, body = type(part).__name__, repr(part).encode()
        digest.update(f"{head}:{len(body)}:".encode())
        digest.update(body)
    return digest.hexdigest()


def flattened(value: object) -> Iterator[object]:
    """Yield what a fingerprint needs of nested dataclasses, lists and tuples.

    Examples
    --------
    >>> list(flattened(Outcome(3, None, "singular")))
    ['Outcome', 3, None, 'singular']
    """
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__
        for each in fields(value):
            yield from flattened(getattr(value, each.name))
    elif isinstance(value, list | tuple):
        yield len(value)
        for item in value:
            yield from flattened(item)
    else:
        yield value


def holds_work(folder: str | os.PathLike[str]) -> bool:
    """Return whether the folder, or one in it, is a checkpoint with at least one finished task."""
    path = Path(folder)
    if not path.is_dir():
        return False
    if (path / _MANIFEST).is_file():
        return any(_FILE.fullmatch(name) for name in os.listdir(path))
    return any(holds_work(inner) for inner in path.glob("*-*/"))


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a manifest that says what work this is, and a file per finished task.

    Parameters
    ----------
    path : Path
        The folder.
    identity : str
        A fingerprint of data and options.
    n_tasks : int
        Number of all tasks.
    """

    path: Path
    identity: str
    n_tasks: int

    @classmethod
    def open(
        cls, given: str | os.PathLike[str], identity: str, n_tasks: int, what: str
    ) -> Checkpoint:
        """Make the folder, or continue with an existing one if it belongs to the same work."""
        path = Path(given)
        names = _opened(path)
        remove_abandoned(path, [name for name in names if _LEFTOVER.fullmatch(name)])
        manifest = {"format": "mixedgm checkpoint", "version": _VERSION, "work": what}
        manifest |= {"identity": identity, "tasks": n_tasks}
        # Checked after listing: another process that works here wrote it before any other file.
        begun = (path / _MANIFEST).exists()
        if begun:
            _refuse_other_work(path, manifest)
        foreign = [
            name
            for name in names
            if not (name == _MANIFEST or _LEFTOVER.fullmatch(name))
            and not (begun and _FILE.fullmatch(name))
        ]
        if foreign:
            raise ParameterError(
                f"checkpoint {str(path)!r} holds files that do not belong to a checkpoint, such as "
                f"{min(foreign)!r}; give an empty folder or a new one."
            )
        if not begun:
            write_text(path / _MANIFEST, json.dumps(manifest, indent=1) + "\n")
        return cls(path, identity, n_tasks)

    def outcomes(self) -> dict[int, Outcome]:
        """Everything that was finished; a file that is damaged counts as not finished."""
        outcomes = {}
        for name in os.listdir(self.path):
            if _FILE.fullmatch(name) and int(name[:-4]) < self.n_tasks:
                outcome = self._read(int(name[:-4]))
                if outcome is not None:
                    outcomes[outcome.index] = outcome
        return outcomes

    def keep(self, outcome: Outcome) -> None:
        """Write one finished task, completely or not at all."""
        arrays = outcome.record
        if arrays is None:
            arrays = {_ERROR: np.array(outcome.error)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        content = buffer.getvalue()
        content += self._checksum(outcome.index, content)
        write_bytes(self._file(outcome.index), content, tidy=False)

    def _read(self, index: int) -> Outcome | None:
        file = self._file(index)
        try:
            content = file.read_bytes() if file.is_file() else b""
        except OSError:
            return None
        body, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
        if checksum != self._checksum(index, body):
            return None
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            record = {name: arrays[name] for name in arrays.files}
        if set(record) == {_ERROR}:
            return Outcome(index, None, str(record[_ERROR]))
        return Outcome(index, record)

    def _file(self, index: int) -> Path:
        return self.path / f"{index:06d}.npz"

    def _checksum(self, index: int, content: bytes) -> bytes:
        """Checksum of a file's content and place: one that belongs elsewhere is not taken."""
        digest = hashlib.sha256(f"{self.identity}:{index}:".encode())
        digest.update(content)
        return digest.hexdigest().encode()


def _opened(path: Path) -> list[str]:
    """Make the folder, unless it is there; return the names in it."""
    if os.path.isfile(path):
        raise ParameterError(f"checkpoint {str(path)!r} is a file; give a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        return os.listdir(path)
    except (OSError, ValueError) as error:
        raise ParameterError(f"checkpoint {str(path)!r} cannot be used: {error}") from error


def _refuse_other_work(path: Path, manifest: dict[str, Any]) -> None:
    try:
        with (path / _MANIFEST).open("rb") as file:
            stored = json.loads(file.read(_LARGEST_MANIFEST))
    except (ValueError, OSError, RecursionError) as error:
        raise ParameterError(
            f"checkpoint {str(path)!r}: its {_MANIFEST} cannot be read ({error}); "
            "give a new folder."
        ) from error
    if not isinstance(stored, dict) or stored.get("format") != manifest["format"]:
        raise ParameterError(
            f"checkpoint {str(path)!r} is not a checkpoint of mixedgm; give a new folder."
        )
    n_tasks = manifest["tasks"]
    mismatches = {
        "version": "it has another format version",
        "work": f"it holds other work ({_short(stored.get('work'))}, not {manifest['work']!r})",
        "tasks": f"it was started with {_short(stored.get('tasks'))} tasks, not {n_tasks}",
        "identity": "it was made from other data, options or seed",
    }
    differs = [text for key, text in mismatches.items() if stored.get(key) != manifest[key]]
    if differs:
        raise ParameterError(
            f"checkpoint {str(path)!r} belongs to something else: {'; '.join(differs)}. "
            "Repeat the call exactly as it was started, or give a new folder."
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
