"""A table -> the two matrix products of a pass and nothing else: the floor a pass stands on.

For every block of rows, `M = Z_block @ C` and `G += Z_block.T @ M` in float64 by BLAS, called from
compiled code without the interpreter lock.  Z is either there already (all of it, dense) or made
block by block from the level codes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(eq=False)
class MatrixProducts:
    """The products over the rows of one table.

    Parameters
    ----------
    numbers, codes : ndarray
        Standardised columns (n, p) and level codes (n, q).
    n_levels : tuple of int
    coef : ndarray (d, sum of levels)
    """

    numbers: Floats
    codes: NDArray[np.integer]
    n_levels: tuple[int, ...]
    coef: Floats

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First design column of every categorical column."""
        first = np.concatenate([[0], np.cumsum(self.n_levels)[:-1]])
        return np.asarray(self.numbers.shape[1] + first, dtype=np.int64)

    @cached_property
    def Z(self) -> Floats:  # noqa: N802
        """The dense design."""
        whole = np.empty((len(self.codes), self.coef.shape[0]))
        _kernels()[0](self.numbers, self.codes, self.starts, 0, whole)
        return whole

    def run(self, block: int, n_threads: int, *, made: bool) -> Floats:
        """Both products over all rows; `made` forms Z per block."""
        loop = _kernels()[1]
        Z = np.zeros((0, self.coef.shape[0])) if made else self.Z
        sums = np.zeros((n_threads, *self.coef.shape))
        cuts = np.linspace(0, len(self.codes), n_threads + 1).astype(np.int64)

        def share(k: int) -> None:
            rows = (int(cuts[k]), int(cuts[k + 1]), block)
            loop(self.numbers, self.codes, self.starts, Z, self.coef, rows, sums[k])

        if n_threads == 1:
            share(0)
        else:
            list(_pool(n_threads).map(share, range(n_threads)))
        return np.asarray(sums.sum(axis=0))


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads)


def _dgemm() -> Any:
    """BLAS's own entry point, callable from compiled code."""
    from numba.extending import get_cython_function_address

    address = get_cython_function_address("scipy.linalg.cython_blas", "dgemm")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)


@cache
def _kernels() -> tuple[Callable[..., None], Callable[..., None]]:
    from numba import njit

    dgemm = _dgemm()
    plain, turned = np.array([ord("N")], np.uint8), np.array([ord("T")], np.uint8)
    zero, one = np.zeros(1), np.ones(1)

    @njit(nogil=True)
    def fill(numbers, codes, starts, first, Z):
        for i in range(Z.shape[0]):
            for k in range(Z.shape[1]):
                Z[i, k] = 0.0
            for s in range(numbers.shape[1]):
                Z[i, s] = numbers[first + i, s]
            for j in range(codes.shape[1]):
                Z[i, starts[j] + codes[first + i, j]] = 1.0

    @njit(nogil=True)
    def loop(numbers, codes, starts, whole, coef, rows, out):
        d, width = coef.shape
        made = whole.shape[0] == 0
        first, last, block = rows
        buffer = np.empty((block if made else 0, d))
        M = np.empty((block, width))
        size_d, size_w = np.array([d], np.int32), np.array([width], np.int32)
        for at in range(first, last, block):
            n = min(block, last - at)
            if made:
                fill(numbers, codes, starts, at, buffer[:n])
                Z = buffer[:n]
            else:
                Z = whole[at : at + n]
            size_n = np.array([n], np.int32)
            # BLAS counts columns first: M' = C' Z', then G' += M' Z.
            dgemm(
                plain.ctypes, plain.ctypes, size_w.ctypes, size_n.ctypes, size_d.ctypes,
                one.ctypes, coef.ctypes, size_w.ctypes, Z.ctypes, size_d.ctypes,
                zero.ctypes, M.ctypes, size_w.ctypes,
            )  # fmt: skip
            dgemm(
                plain.ctypes, turned.ctypes, size_w.ctypes, size_d.ctypes, size_n.ctypes,
                one.ctypes, M.ctypes, size_w.ctypes, Z.ctypes, size_d.ctypes,
                one.ctypes, out.ctypes, size_w.ctypes,
            )  # fmt: skip

    return fill, loop
