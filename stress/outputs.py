"""Files that are being written, and a kill, a full disk, a second writer or a signal -> old or new.

Never neither, never half of one, never a temporary file for ever.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from stress.campaign import Campaign, Found
from stress.interrupted import interrupted

_OLD, _NEW = 0.3, 0.1
_NOBODY = 65534


def attempt(seed: int, folder: Path) -> Found:
    rng = random.Random(seed)
    if seed % 11 < 6:
        return interrupted(rng, folder)
    trouble = _TROUBLES[seed % 11 - 6]
    name = sorted(_WRITERS)[rng.randrange(len(_WRITERS))]
    target = folder / "place" / name
    target.parent.mkdir()
    target.write_bytes(_content(name, _OLD))
    found = Found(f"{name}: {trouble.__name__.strip('_').replace('_', ' ')}")
    trouble(found, target, rng)
    _check_tidy(found, target)
    return found


# -- what is written -------------------------------------------------------------------------------


@cache
def _model(lam: float) -> Any:
    import mixedgm as mg
    from stress.jobs import table

    return mg.MixedGraphicalModel(lam=lam, n_jobs=1).fit(table())


def _picture(model: Any, path: Path) -> None:
    from mixedgm.cli.output import draw
    from mixedgm.pictures.canvas import draw_without_window

    draw_without_window()
    draw(model.fitted_, "network", path)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "model.mgm": lambda model, path: model.save(path),
    "graph.graphml": lambda model, path: model.export(path),
    "graph.json": lambda model, path: model.export(path),
    "edges.csv": lambda model, path: model.export(path),
    "network.png": _picture,
}


@cache
def _content(name: str, lam: float) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        _WRITERS[name](_model(lam), Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def _write_for_ever(target: Path, first: float = _NEW) -> None:
    other = _OLD if first == _NEW else _NEW
    for lam in itertools.cycle([first, other]):
        _WRITERS[target.name](_model(lam), target)


# -- what may happen -------------------------------------------------------------------------------


def _kill(found: Found, target: Path, rng: random.Random) -> None:
    child = _forked(lambda: _write_for_ever(target))
    time.sleep(rng.uniform(0.0, 0.3))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _check_whole(found, target)


def _two_writers(found: Found, target: Path, rng: random.Random) -> None:
    children = [_forked(lambda lam=lam: _write_for_ever(target, lam)) for lam in (_OLD, _NEW)]
    until = time.monotonic() + rng.uniform(0.1, 0.5)
    while time.monotonic() < until and not found.findings:
        _check_whole(found, target)
    for child in children:
        if os.waitpid(child, os.WNOHANG)[0]:
            found.findings.append("a writer died of the other")
            continue
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    _check_whole(found, target)


def _file_too_large(found: Found, target: Path, rng: random.Random) -> None:
    most = rng.randrange(len(_content(target.name, _NEW)))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        _WRITERS[target.name](_model(_NEW), target)

    _check_refused(found, target, limited)


def _full_disk(found: Found, target: Path, rng: random.Random) -> None:
    """A disk with room for the old file and part of the new one."""
    pages = -(-len(_content(target.name, _OLD)) // 4096)
    more = rng.randrange(max(len(_content(target.name, _NEW)) // 4096, 1))
    with _small_disk(target.parent, (pages + more) * 4096) as mounted:
        if not mounted:
            _file_too_large(found, target, rng)
            return
        target.write_bytes(_content(target.name, _OLD))
        with _up_to_the_brim(), (target.parent / "filler").open("wb", 0) as filler:
            for _ in range(1000):  # what rounding has left
                filler.write(bytes(4096 if more == 0 else 512))
                if more:
                    break
        _check_refused(found, target, lambda: _WRITERS[target.name](_model(_NEW), target))
        (target.parent / "filler").unlink()
        content = target.read_bytes()
    target.write_bytes(content)


def _read_only_folder(found: Found, target: Path, _: random.Random) -> None:
    target.parent.chmod(0o555)
    target.parent.parent.chmod(0o755)

    def as_nobody() -> None:
        if os.getuid() == 0:  # to whom all folders are open
            os.setuid(_NOBODY)
        _WRITERS[target.name](_model(_NEW), target)

    _check_refused(found, target, as_nobody)
    target.parent.chmod(0o755)


_TROUBLES = (_kill, _two_writers, _file_too_large, _full_disk, _read_only_folder)


@contextmanager
def _up_to_the_brim():  # type: ignore[no-untyped-def]
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def _small_disk(folder: Path, size: int):  # type: ignore[no-untyped-def]
    """A disk in memory, where that is allowed."""
    mount = shutil.which("mount")
    words = [mount or "", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = mount is not None and subprocess.run(words, capture_output=True).returncode == 0
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _forked(work: Callable[[], None], answer: int | None = None) -> int:
    """A copy of this process that does the work and answers with its error; its number."""
    for name in _WRITERS:  # nothing is left to be loaded or fitted
        _content(name, _OLD), _content(name, _NEW)
    child = os.fork()
    if child:
        return child
    code = 0
    try:
        work()
    except BaseException as error:
        from mixedgm import MixedGMError

        code = 2 if isinstance(error, MixedGMError) else 1
        text = str(error) if code == 2 else traceback.format_exc()
        if answer is not None:
            os.write(answer, text.encode())
    finally:
        os._exit(code)


# -- what must be true -----------------------------------------------------------------------------


def _check_whole(found: Found, target: Path) -> None:
    try:
        content = target.read_bytes()
    except FileNotFoundError:
        found.findings.append("neither the old file nor the new one is there")
        return
    if content not in (_content(target.name, _OLD), _content(target.name, _NEW)):
        found.findings.append(f"{len(content)} bytes that are neither the old file nor the new one")


def _check_refused(found: Found, target: Path, work: Callable[[], None]) -> None:
    """An error of the family, the old file, and nothing else."""
    before = sorted(os.listdir(target.parent))
    read, write = os.pipe()
    child = _forked(work, write)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 2 or target.name not in text or "\n" in text or len(text) > 500:
        found.findings.append(f"exit {code}: {text}")
    if target.read_bytes() != _content(target.name, _OLD):
        found.findings.append("the old file has changed")
    left = sorted(os.listdir(target.parent))
    if left != before:
        found.findings.append(f"left behind: {set(left) - set(before)}")


def _check_tidy(found: Found, target: Path) -> None:
    """Whoever writes the file the next time removes what a kill has left, once it is old."""
    others = [file for file in target.parent.iterdir() if file != target]
    for file in others:
        os.utime(file, (0, 0))
    _WRITERS[target.name](_model(_NEW), target)
    if target.read_bytes() != _content(target.name, _NEW):
        found.findings.append("the file cannot be written afterwards")
    left = [file.name for file in target.parent.iterdir() if file != target]
    if left:
        found.findings.append(f"temporary files stay for ever: {left}")


CAMPAIGN = Campaign("files being written, and signals to commands", 220, 200.0, attempt)
