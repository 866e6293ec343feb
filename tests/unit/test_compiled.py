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


def test_the_cache_is_optional(tmp_path, monkeypatch):
    """A damaged index, and a folder that cannot be written to: functions are compiled again."""
    import numba

    from mixedgm.compiled import kernel

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def twice(x):
        return 2 * x

    assert kernel(twice)(3) == 6
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(b"damaged")
    assert kernel(twice)(3) == 6
    assert index.read_bytes() != b"damaged"
    again = kernel(twice)
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1


def test_without_any_place_for_a_cache(monkeypatch):
    from mixedgm import compiled

    def nowhere(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compiled, "_OptionalCache", nowhere)
    assert compiled.kernel(lambda x: x + 1)(1) == 2
