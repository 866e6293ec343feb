"""Bytes or text + path -> a file that is either complete or not there."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mixedgm.errors import ParameterError
from mixedgm.printable import quoted

__all__ = ["check_writable", "replacing", "write_bytes", "write_text"]

_LONGEST_PATH = 300


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; it takes the path's place only if all goes well.

    A link stays a link: the file that it leads to is replaced.  A file keeps its permissions and
    its owner.  A device or a pipe is written to, and stays what it is.
    """
    target = _target(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _take_over(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now what writing to `path` would raise after all the work."""
    target = _target(path)
    if target.exists() and not target.is_file():
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error
    os.close(handle)
    Path(name).unlink()


def _target(path: str | os.PathLike[str]) -> Path:
    """The file to be written: that at the end of a link."""
    try:
        target = Path(path)
        if "\0" in str(target):
            raise ValueError("a name holds no NUL")
        target = target.resolve() if target.is_symlink() else target
        if not target.parent.is_dir():
            raise ParameterError(
                f"there is no folder {str(target.parent)!r} to write {target.name!r} in."
            )
        if target.is_dir():
            raise ParameterError(f"{str(target)!r} is a folder; give the name of a file.")
    except ParameterError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, a name too long, links in circles
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        name = quoted(os.fspath(path), _LONGEST_PATH)
        raise ParameterError(f"{name} is not the name of a file: {why}.") from error
    return target


def _unwritable(target: Path, error: OSError) -> ParameterError:
    why = error.strerror or str(error)
    return ParameterError(f"{str(target)!r} cannot be written: {why}. Choose another folder.")


def _take_over(target: Path, temporary: Path) -> None:
    """Give a new file the permissions and the owner of the one it replaces.

    Where there is none, the permissions that a plain open would have given: mkstemp's are private.
    """
    if not target.exists():
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        return
    before = target.stat()
    temporary.chmod(stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may give files away
            os.chown(temporary, before.st_uid, before.st_gid)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write all of `content`, or nothing."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write all of `content` as UTF-8, or nothing."""
    write_bytes(path, content.encode("utf-8"))
