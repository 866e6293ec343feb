"""The first fit ever -> a second process that compiles what the fit will need last.

Kernels are compiled in the order in which a fit calls them, on one core.  Those of the Newton step
come last and take almost half of the time.  A second process compiles them in parallel and leaves
them in the cache on disk, where the fit looks before it compiles.  Where the two collide,
or there is no second process, a kernel is compiled where it is needed.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mixedgm.base.errors import level_of_caller
from mixedgm.base.parallel import end_with, n_cores


@cache
def compile_ahead() -> None:
    """Start the other process, if the kernels are not in the cache yet; do not wait for it."""
    worker = multiprocessing.parent_process() is not None
    if not worker and not _can_be_kept():
        warnings.warn(
            "there is no folder in which compiled kernels could be kept, so every process compiles "
            "them (about 10 s); the environment variable NUMBA_CACHE_DIR can name one.",
            stacklevel=level_of_caller(),
        )
        return
    if worker or not _has_interpreter() or n_cores() < 2 or has_kernels():
        return
    try:
        process = subprocess.Popen(
            # -P: a module that happens to be in the working folder is not ours.
            [sys.executable, "-P", "-m", "mixedgm.fit.precompile"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left
    atexit.register(process.wait)


def _can_be_kept() -> bool:
    return not hasattr(_last(), "stats") or _last().stats.cache_path is not None


def has_kernels() -> bool:
    """Whether the cache holds what a fit needs: it does when it has the kernels that come last."""
    return _is_cached(_last())


def _last() -> Any:
    from mixedgm.rows.curvature import curvature_sums

    return curvature_sums.compiled


def _has_interpreter() -> bool:
    """Whether there is a Python to start: a program that embeds Python would start itself."""
    name = Path(sys.executable or "").name.lower()
    return not getattr(sys, "frozen", False) and name.startswith(("python", "pypy"))


def _is_cached(kernel: Any) -> bool:
    """Whether the cache has this kernel, and not of an older source."""
    if not hasattr(kernel, "stats"):  # a plain function, where the compiler is switched off
        return True
    if kernel.stats.cache_path is None:  # there is no folder to keep it in
        return True
    source = Path(kernel.py_func.__code__.co_filename)
    name = f"{source.stem}.{kernel.py_func.__name__}-*.nbi"
    try:
        written = source.stat().st_mtime
        compiled = [index.stat().st_mtime for index in Path(kernel.stats.cache_path).glob(name)]
    except OSError:  # no source, or a folder that may not be read
        return True
    return any(time >= written for time in compiled)


def main() -> None:
    """Call every kernel once, on tiny arrays; compilation depends on types only."""
    from mixedgm.model.layout import Incidence
    from mixedgm.model.nodes import Nodes
    from mixedgm.rows.contract import Coefficients
    from mixedgm.rows.memory import MemoryRows
    from mixedgm.solve.curvature import correct
    from mixedgm.solve.subproblem import assemble, descend, node_products

    nothing, zero, one = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(1)
    alone = Incidence(
        np.zeros(3, dtype=np.int64), nothing, nothing, zero, nothing, nothing, nothing, nothing,
        Nodes.mixed(1, (2,)),
    )  # fmt: skip
    rows = MemoryRows(np.zeros((2, 1)), np.array([[0], [1]], dtype=np.uint8), Nodes.mixed(1, (2,)))
    rows.softmax_curvature(Coefficients(alone, np.zeros(0), np.zeros(2), zero), zero, 1)

    pair, start = np.array([[0, -1]]), np.array([0, 1])
    blocks, nodes, runs = (zero, zero + 1, pair, abs(pair)), (zero, zero + 1), (start, zero, zero)
    model, eigen, out = (*nodes, one), (start, one, one), [np.zeros(1) for _ in range(4)]
    limits, scratch = (1e-5, 5, 0, 1), (zero, np.zeros((4, 1)))
    descend(blocks, model, eigen, start, (one, one), limits, scratch, *out[:3])
    node_products(model, (*runs, zero + 1), one, out[0])
    assemble(model, (*runs, zero + 1), zero, np.zeros((1, 1)))
    places, none = (start, zero, zero, zero + 1, zero + 1, zero + 1, zero), np.zeros(2, np.int64)
    widths, lines = (zero + 1, zero + 1), (one, np.zeros((3, 1)))
    correct(places, (none, zero), widths, (zero, one), one, (one, one), model, lines)


if __name__ == "__main__":
    end_with(os.getppid())
    main()
