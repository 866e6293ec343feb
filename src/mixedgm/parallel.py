"""A function and a list of tasks -> their outcomes: in parallel, in order, and kept when killed."""

from __future__ import annotations

import hashlib
import io
import json
import numbers
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mixedgm.atomic import write_bytes, write_text
from mixedgm.errors import MixedGMError, ParameterError
from mixedgm.progress import track

__all__ = [
    "MOST_TASKS",
    "Outcome",
    "Record",
    "check_n_jobs",
    "fingerprint",
    "holds_work",
    "n_cores",
    "run",
    "seeds",
    "single_threaded_blas",
]

T = TypeVar("T")
Record = dict[str, NDArray[Any]]
RandomState = (
    int | None | np.random.Generator | np.random.RandomState | np.random.SeedSequence
)  # what the user may give as `random_state`

MOST_TASKS = 10_000_000
"""Resamples, permutations or simulations beyond which a number is taken for a slip."""

_MANIFEST = "manifest.json"
_VERSION = 1
_ERROR = "error"
_FILE = re.compile(r"\d{6,}\.npz")
_LEFTOVER = re.compile(r"\.(\d{6,}\.npz|manifest\.json)\..*")
_ABANDONED = 600.0
"""Seconds after which a file that is still being written belongs to nobody any more."""


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one task: a record of arrays, or the message of its failure."""

    index: int
    record: Record | None
    error: str | None = None


def seeds(random_state: RandomState, n: int) -> list[np.random.SeedSequence]:
    """Return one independent seed per task; the first k are the same for every n >= k.

    Parameters
    ----------
    random_state : int, None, Generator, RandomState or SeedSequence
        None takes fresh entropy.  Generators advance, so that a second call gives other seeds.
    n : int
        How many.

    Returns
    -------
    list of SeedSequence
        One per task.

    Examples
    --------
    >>> import numpy as np
    >>> [int(np.random.default_rng(seed).integers(100)) for seed in seeds(0, 2)]
    [80, 66]
    """
    root = _root(random_state)
    return [
        np.random.SeedSequence(
            root.entropy, spawn_key=(*root.spawn_key, k), pool_size=root.pool_size
        )
        for k in range(n)
    ]


def _root(given: RandomState) -> np.random.SeedSequence:
    if isinstance(given, np.random.SeedSequence):
        return given
    if isinstance(given, np.random.Generator):
        return np.random.SeedSequence(given.integers(2**32, size=4).tolist())
    if isinstance(given, np.random.RandomState):
        return np.random.SeedSequence(given.randint(2**32, size=4, dtype=np.uint64).tolist())
    whole = isinstance(given, numbers.Integral) and not isinstance(given, (bool, np.bool_))
    if given is not None and not (whole and int(given) >= 0):
        raise ParameterError.must_be(
            "random_state", "None, an integer of at least 0, or a NumPy random generator", given
        )
    return np.random.SeedSequence(None if given is None else int(given))


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


def check_n_jobs(n_jobs: object) -> None:
    """Raise ParameterError unless `n_jobs` is None or an integer other than 0."""
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, (bool, np.bool_))
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ParameterError.must_be(
            "n_jobs", "None, a positive integer, or -1 for all cores", n_jobs
        )


def run(
    function: Callable[[T], Record],
    tasks: Iterable[T],
    *,
    n_jobs: int | None = None,
    what: str,
    show: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    identity: str = "",
) -> list[Outcome]:
    """Call the function for every task.

    Parameters
    ----------
    function : callable
        Task -> dict of arrays.  A module's function, or `functools.partial` of one, so that other
        processes can import it.  It must depend on its task alone.
    tasks : iterable
        Small things, best a seed each.
    n_jobs : int, optional
        By default as `joblib.parallel_config` says where one is active, else all cores.  1 stays in
        this process; -1 is all cores.  It changes the time, never the outcomes.
    what : str
        What a task is called on the progress bar and in messages.
    show : bool
        Whether to draw the bar.
    checkpoint : path of a folder, optional
        Keep finished tasks there.  Given the same folder again, they are read, not done again.
    identity : str
        Says which work the folder belongs to: a fingerprint of data and options.

    Returns
    -------
    list of Outcome
        In the order of the tasks.  A task that fails numerically, or by an error of this package,
        has an outcome with a message; any other exception is raised.

    Notes
    -----
    Ctrl-C keeps what is done, warns, and returns the finished outcomes; it is raised again only
    when there are none.
    """
    check_n_jobs(n_jobs)
    waiting = list(tasks)
    folder = None if checkpoint is None else _Folder.open(checkpoint, identity, len(waiting), what)
    done = {} if folder is None else folder.outcomes()
    left = [(k, task) for k, task in enumerate(waiting) if k not in done]
    stream = _stream(partial(_attempt, function), left, n_jobs)
    try:
        with single_threaded_blas():
            for outcome in track(stream, show=show and bool(left), what=what, total=len(left)):
                if folder is not None:
                    folder.keep(outcome)
                done[outcome.index] = outcome
    except KeyboardInterrupt:
        if not done:
            raise
        kept = f" They are kept in {os.fspath(folder.path)!r}." if folder is not None else ""
        warnings.warn(
            f"interrupted: {len(done)} of {len(waiting)} ({what}) are done.{kept}",
            RuntimeWarning,
            stacklevel=2,
        )
    finally:
        with warnings.catch_warnings():
            # joblib says what it has cancelled; our own message says what is done.
            warnings.simplefilter("ignore", UserWarning)
            stream.close()
    return [done[k] for k in sorted(done)]


def _stream(
    attempt: Callable[[tuple[int, Any]], Outcome], left: Sequence[tuple[int, Any]], n_jobs: Any
) -> Generator[Outcome, None, None]:
    """Outcomes as they finish, from this process or through joblib."""
    import joblib
    from joblib.parallel import get_active_backend

    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        if n_jobs is None:  # within another parallel loop the cores are taken already
            n_jobs = 1 if backend.nesting_level else -1
    if n_jobs == 1 or len(left) <= 1:
        yield from map(attempt, left)
        return
    parallel = joblib.Parallel(n_jobs=int(n_jobs), return_as="generator_unordered")
    # One argument, a tuple: Dask would put a large argument on one worker only, and lose it when
    # that worker dies.
    yield from parallel(joblib.delayed(attempt)(task) for task in left)


def _attempt(function: Callable[[Any], Record], task: tuple[int, Any]) -> Outcome:
    index, own = task
    _die_with_parent()
    try:
        with single_threaded_blas():
            return Outcome(index, function(own))
    except MixedGMError as error:
        return Outcome(index, None, str(error))
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return Outcome(index, None, f"{type(error).__name__}: {error}")


@cache
def _die_with_parent() -> None:
    """In a worker process: end within seconds of the process that wants its results.

    Whoever is killed cannot tell its workers, which would go on computing for nobody.
    """
    import multiprocessing

    if multiprocessing.parent_process() is None:
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="mixedgm-parent-watch", daemon=True).start()


# -- BLAS with one thread ------------------------------------------

_lock = threading.Lock()
_holders: list[Any] = []
_count = 0


@cache
def _controller() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401  (Numba multiplies by this one; load it first)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread: its own would fight over the cores, and add in another order.

    The limit is the whole process's.  The first thread to come sets it, the last to leave lifts it.
    """
    global _count
    with _lock:
        _count += 1
        if _count == 1:
            _holders.append(_controller().limit(limits=1, user_api="blas"))
            _holders[-1].__enter__()
    try:
        yield
    finally:
        with _lock:
            _count -= 1
            if _count == 0:
                _holders.pop().__exit__(None, None, None)


# -- checkpoints ------------------------------------------


def holds_work(folder: str | os.PathLike[str]) -> bool:
    """Return whether the folder is a checkpoint with at least one finished task."""
    path = Path(folder)
    if not (path / _MANIFEST).is_file():
        return False
    return any(_FILE.fullmatch(name) for name in os.listdir(path))


@dataclass(frozen=True)
class _Folder:
    """A manifest that says what work this is, and one file of arrays per finished task."""

    path: Path
    n_tasks: int

    @classmethod
    def open(cls, given: str | os.PathLike[str], identity: str, n_tasks: int, what: str) -> _Folder:
        path = Path(given)
        if path.exists() and not path.is_dir():
            raise ParameterError(f"checkpoint {str(path)!r} is a file; give a folder.")
        path.mkdir(parents=True, exist_ok=True)
        names = os.listdir(path)
        for name in names:
            if _LEFTOVER.fullmatch(name):
                _remove_abandoned(path / name)
        own = {"format": "mixedgm checkpoint", "version": _VERSION, "work": what}
        own |= {"identity": identity, "tasks": n_tasks}
        if _MANIFEST in names:
            _refuse_other_work(path, own)
        foreign = [n for n in names if n != _MANIFEST and not _LEFTOVER.fullmatch(n)]
        if _MANIFEST in names:
            foreign = [n for n in foreign if not _FILE.fullmatch(n)]
        if foreign:
            raise ParameterError(
                f"checkpoint {str(path)!r} holds files that are no part of a checkpoint, such as "
                f"{min(foreign)!r}; give an empty folder or a new one."
            )
        if _MANIFEST not in names:
            write_text(path / _MANIFEST, json.dumps(own, indent=1) + "\n")
        return cls(path, n_tasks)

    def outcomes(self) -> dict[int, Outcome]:
        """Everything that was finished; a file that cannot be read counts as not finished."""
        found = {}
        for name in os.listdir(self.path):
            if _FILE.fullmatch(name) and int(name[:-4]) < self.n_tasks:
                outcome = _read(self.path / name)
                if outcome is not None:
                    found[outcome.index] = outcome
        return found

    def keep(self, outcome: Outcome) -> None:
        """Write one finished task, completely or not at all."""
        arrays = outcome.record
        if arrays is None:
            arrays = {_ERROR: np.array(outcome.error)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_bytes(self.path / f"{outcome.index:06d}.npz", buffer.getvalue())


def _remove_abandoned(file: Path) -> None:
    """Remove what a killed process left; another process may be writing what is new."""
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > _ABANDONED:
            file.unlink(missing_ok=True)


def _refuse_other_work(path: Path, own: dict[str, Any]) -> None:
    try:
        found = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ParameterError(
            f"checkpoint {str(path)!r}: its {_MANIFEST} cannot be read ({error}); "
            "give a new folder."
        ) from error
    if not isinstance(found, dict) or found.get("format") != own["format"]:
        raise ParameterError(
            f"checkpoint {str(path)!r} is not a checkpoint of mixedgm; give a new folder."
        )
    says = {
        "version": "its format is of another version",
        "work": f"it holds other work ({found.get('work')!r}, not {own['work']!r})",
        "tasks": f"it was started with {found.get('tasks')} tasks, not {own['tasks']}",
        "identity": "it was made from other data, options or seed",
    }
    differs = [text for key, text in says.items() if found.get(key) != own[key]]
    if differs:
        raise ParameterError(
            f"checkpoint {str(path)!r} belongs to something else: {'; '.join(differs)}. "
            "Repeat the call exactly as it was started, or give a new folder."
        )


def _read(file: Path) -> Outcome | None:
    index = int(file.stem)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            record = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    if set(record) == {_ERROR}:
        return Outcome(index, None, str(record[_ERROR]))
    return Outcome(index, record)
