"""Compiling kernels of this package leaves other people's alone."""

import gc

import pytest
from numba import njit
from numba.core.errors import TypingError

from mixedgm.compiled import kernel


def test_functions_without_a_home_are_compiled():
    names: dict = {}
    exec("def plus(x):\n    return x + 1", names)
    assert njit(names["plus"])(1) == 2


def test_garbage_is_collected_again_after_an_error():
    def wrong(x):
        return x + "one"

    wrong.__module__ = "mixedgm.somewhere"
    with pytest.raises(TypingError):
        kernel(wrong, no_cpython_wrapper=False)(1)
    assert gc.isenabled()
