"""Tasks of one pass over the rows -> their results: threads, and BLAS with only one."""

from __future__ import annotations

from mixedgm.blas import single_threaded_blas
from mixedgm.threads import run_all, threads_for

__all__ = ["run_all", "single_threaded_blas", "threads_for"]
