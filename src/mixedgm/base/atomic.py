"""Bytes or text + path -> a file that is either complete or not there."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mixedgm.base.errors import OutputError, ParameterError
from mixedgm.base.printable import quoted

_ABANDONED = 600.0
"""Seconds after which nobody is taken to be still writing a file."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_LONGEST_PATH = 300


@contextmanager
def replacing(path: str | os.PathLike[str], *, tidy: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; it takes the path's place only if all goes well.

    A link stays a link: the file that it leads to is replaced.  A file keeps its permissions and
    its owner.  A device or a pipe is written to, and stays what it is.  With `tidy`, what a killed
    process left of the same file is removed.
    """
    target = _target(path)
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        temporary = _temporary(target)
        try:
            with _created(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _take_over(target, temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(target, error) from error
    if tidy:
        remove_abandoned(target.parent, _leftovers(target))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise what writing to `path` would raise, before the work begins."""
    target = _target(path)
    try:
        if target.exists() and not target.is_file():
            return
        temporary = _temporary(target)
        try:
            _created(temporary).close()
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(target, error) from error


def remove_abandoned(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed process left; another process may be writing what is new."""
    for name in names:
        file = folder / name
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    """A name that nobody else has."""
    return target.with_name(f".{target.name[:100]}.{os.urandom(8).hex()}.part")


def _leftovers(target: Path) -> list[str]:
    pattern = re.compile(rf"\.{re.escape(target.name[:100])}\.[0-9a-f]{{16}}\.part")
    with suppress(OSError):  # a folder may be written to and yet not be listed
        return [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]
    return []


def _created(temporary: Path) -> BinaryIO:
    """A new file that only its owner can read."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(temporary, flags, 0o600), "wb")


def _target(path: str | os.PathLike[str]) -> Path:
    """The file to be written: that at the end of a link."""
    try:
        target = Path(path)
        if "\0" in str(target):
            raise ValueError("it contains a NUL character")
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


def _unwritable(target: Path, error: OSError) -> OutputError:
    why = error.strerror or str(error)
    what = "Make room, or choose" if error.errno in _FULL else "Choose"
    return OutputError(f"{str(target)!r} cannot be written: {why}. {what} another folder.")


def _take_over(target: Path, temporary: Path) -> None:
    """Give a new file the permissions and the owner of the one it replaces.

    Where there is none, it gets the permissions that a plain open gives; it was made private.
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


def write_bytes(path: str | os.PathLike[str], content: bytes, *, tidy: bool = True) -> None:
    """Write all of `content`, or nothing."""
    with replacing(path, tidy=tidy) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write all of `content` as UTF-8, or nothing."""
    write_bytes(path, content.encode("utf-8"))
