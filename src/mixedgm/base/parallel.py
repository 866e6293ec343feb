"""A function and a list of tasks -> their outcomes: in parallel, in order, kept if interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from mixedgm.base.checkpoint import Checkpoint, Outcome, Record
from mixedgm.base.errors import MixedGMError, ParameterError
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.base.progress import quietly, track, with_bars
from mixedgm.base.threads import single_threaded_blas

T = TypeVar("T")
RandomState = int | None | np.random.Generator | np.random.RandomState | np.random.SeedSequence
"""Types that the user may give as `random_state`."""

_MOST_TASKS = 10_000_000  # a larger number is taken for a mistake
_MOST_LOSSES = 3


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Runtime:
    """How a fit runs; it changes the time, never the outcome."""

    n_threads: int = 1
    """Threads for passes over the rows."""
    n_jobs: int | None = 1
    """Workers for folds and subsamples, as for `run`."""
    keep_interrupted: bool = False
    """Whether Ctrl-C leaves what is done, with a warning, or is passed on."""
    show: bool = False
    """Whether to draw progress bars."""


def seeds(random_state: RandomState, n: int) -> list[np.random.SeedSequence]:
    """Return one independent seed per task; the first k are the same for every n >= k.

    This is what every `random_state` means: None takes fresh entropy, an integer gives the same
    seeds every time, and generators advance, so that a second call gives other seeds.

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
    wanted = "None, an integer of at least 0, or a NumPy random generator"
    ensure(given is None or is_integer(given, 0), "random_state", wanted, given)
    return np.random.SeedSequence(None if given is None else int(given))


def check_n_jobs(n_jobs: object) -> None:
    """Raise ParameterError unless `n_jobs` is None or an integer other than 0."""
    wanted = "None, a positive integer, or -1 for all cores"
    ensure(n_jobs is None or (is_integer(n_jobs) and n_jobs != 0), "n_jobs", wanted, n_jobs)


def check_n_tasks(name: str, n_tasks: object, fewest: int) -> None:
    """Raise ParameterError unless this is a number of resamples, permutations or simulations."""
    wanted = f"an integer from {fewest} to {_MOST_TASKS:,}"
    ensure(is_integer(n_tasks, fewest, _MOST_TASKS), name, wanted, n_tasks)


def check_checkpoint(checkpoint: object, random_state: object, repeated: str) -> None:
    """Raise ParameterError where work that is resumed would not draw the same again."""
    if checkpoint is not None and random_state is None:
        raise ParameterError(
            f"a checkpoint needs random_state, so that {repeated} when the work goes on; give an "
            "integer, for example random_state=0."
        )


def n_workers(n_jobs: int | None) -> int:
    """Return how many threads or processes `n_jobs` stands for.

    None is what `joblib.parallel_config` says where one is active, else all cores; 1 within another
    parallel loop.  -1 is all cores, -2 all but one.

    Examples
    --------
    >>> import joblib
    >>> with joblib.parallel_config(n_jobs=3):
    ...     n_workers(None), n_workers(2)
    (3, 2)
    """
    n_jobs = _configured(n_jobs)
    return max(1, n_cores() + 1 + n_jobs) if n_jobs < 0 else n_jobs


def _configured(n_jobs: int | None) -> int:
    """Return the number that stands for None: joblib's context, else all cores that are free."""
    from joblib.parallel import get_active_backend

    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        if n_jobs is None:  # within another parallel loop the cores are taken already
            n_jobs = 1 if backend.nesting_level else -1
    return int(n_jobs)


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
    """Call the function for every task; outcomes come in the order of the tasks.

    The function turns a task into a dict of arrays and depends on nothing else; it is a module's
    own, or `functools.partial` of one, so that other processes can import it.  Tasks are small,
    best a seed each.  `n_jobs` processes, as in `n_workers`, never change the outcomes.  `what`
    names tasks on the progress bar, which is drawn if `show`, or after some seconds where someone
    can see it, and in messages.  Finished tasks are
    kept in the folder `checkpoint`, and read from it instead of done again; `identity`, a
    fingerprint of data and options, says which work the folder belongs to.

    A task that fails numerically, or by an error of this package, has an outcome with a message;
    any other exception is raised.  Ctrl-C keeps what is done, warns, and returns the finished
    outcomes; it is raised again only when there are none.
    """
    check_n_jobs(n_jobs)
    waiting = list(tasks)
    folder = None
    if checkpoint is not None:
        folder = Checkpoint.open(checkpoint, identity, len(waiting), what)
    done = {} if folder is None else folder.outcomes()
    left = {k: task for k, task in enumerate(waiting) if k not in done}
    n_left = len(left)
    # -1 stays as it is: joblib's backend knows how many workers that is.
    stream = _stream(partial(_attempt, function), left, _configured(n_jobs))
    try:
        with single_threaded_blas():
            shown = show and n_left > 0
            for outcome in track(stream, what=what, show=shown, seconds=None, total=n_left):
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


# -- other processes -------------------------------------------------------------------------------


def _stream(
    attempt: Callable[[tuple[int, Any]], Outcome], left: dict[int, Any], n_jobs: int
) -> Generator[Outcome, None, None]:
    """Outcomes as they finish, from this process or through joblib.

    Tasks that are lost with a process that dies are repeated by others.
    """
    if n_jobs == 1 or len(left) <= 1:
        yield from map(attempt, left.items())
        return
    from concurrent.futures.process import BrokenProcessPool

    import joblib

    losses = 0
    while left:
        parallel = joblib.Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", initializer=_begin_worker
        )
        try:
            with _held_back(signal.SIGINT):
                # One argument, a tuple: Dask would put a large argument on one worker only, and
                # lose it when that worker dies.
                stream = parallel(joblib.delayed(attempt)(task) for task in list(left.items()))
            for outcome in stream:
                losses = 0
                del left[outcome.index]
                yield outcome
        except BrokenProcessPool as error:
            losses += 1
            if losses == _MOST_LOSSES:
                raise MixedGMError(
                    f"worker processes died {losses} times in a row, most likely for lack of "
                    f"memory. Use fewer of them (n_jobs={max(n_jobs // 2, 1)}). "
                    f"What joblib says: {error}"
                ) from error


@contextmanager
def _held_back(signum: signal.Signals) -> Iterator[None]:
    """Hold the signal back, also in processes that are started here, until they can handle it."""
    from multiprocessing import resource_tracker

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would be started in between, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signum})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that started this worker, and end with that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _die_with_parent()


def _attempt(function: Callable[[Any], Record], task: tuple[int, Any]) -> Outcome:
    index, argument = task
    _die_with_parent()
    try:
        # The caller has announced all tasks together, and shows their progress.
        with single_threaded_blas(), quietly(), with_bars(False):
            return Outcome(index, function(argument))
    except MixedGMError as error:
        return Outcome(index, None, str(error))
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return Outcome(index, None, f"{type(error).__name__}: {error}")


@cache
def _die_with_parent() -> None:
    """End this worker process within seconds of the process that started it.

    A process that is killed cannot tell its workers, which would go on computing for nobody.
    """
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        end_with(parent.pid)


def end_with(pid: int | None) -> None:
    """End this process within seconds of that one, which has started it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and _exists(pid):
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="mixedgm-parent-watch", daemon=True).start()


def _exists(pid: int | None) -> bool:
    """Whether there is such a process; on Windows asking would end it."""
    if pid is None or os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
