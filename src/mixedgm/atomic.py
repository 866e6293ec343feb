"""Bytes or text + path -> a file that is either complete or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mixedgm.errors import ParameterError

__all__ = ["replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; it takes the path's place only if all goes well."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ParameterError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} in."
        )
    if target.is_dir():
        raise ParameterError(f"{str(target)!r} is a folder; give the name of a file.")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; give it the permissions a plain open would have given.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write all of `content`, or nothing."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write all of `content` as UTF-8, or nothing."""
    write_bytes(path, content.encode("utf-8"))
