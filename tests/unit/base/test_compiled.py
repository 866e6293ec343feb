"""Kernels are compiled when they are first called, and other people's are left alone."""

import copy
import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba import njit
from numba.core import event
from numba.core.errors import TypingError

from mixedgm.base.compiled import inner, kernel


def test_nothing_loads_the_compiler_before_it_is_needed():
    """Though all kernels are in files that are imported."""
    code = (
        "import sys, mixedgm.fit.fitting, mixedgm.joint, mixedgm.studies.resampling.bootstrap\n"
        "assert 'mixedgm.rows.kernels' in sys.modules and 'mixedgm.joint.kernels' in sys.modules\n"
        "assert 'numba' not in sys.modules, 'Numba was loaded'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@inner
def _plus_one(x):
    return x + 1


@kernel
def _twice_more(x):
    return 2 * _plus_one(x)


def test_many_threads_compile_a_kernel_once():
    with ThreadPoolExecutor(8) as pool:
        compiled = list(pool.map(lambda _: _twice_more.compiled, range(32)))
        assert all(one is compiled[0] for one in compiled)
        assert list(pool.map(_twice_more, [1, 2, 3] * 8)) == [4, 6, 8] * 8
    assert len(compiled[0].signatures) == 1
    assert _twice_more.__name__ == "_twice_more"


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(_twice_more)) is _twice_more
    assert copy.deepcopy({"kernel": _plus_one})["kernel"] is _plus_one
    assert repr(_twice_more) == "<kernel tests.unit.base.test_compiled._twice_more>"


def test_python_may_call_what_is_compiled_for_kernels_only():
    """There is no entry for it into the compiled function: calling that would end the process."""
    assert _twice_more(1) == 4
    assert _plus_one(1) == 2
    assert _twice_more.py_func(1.5) == 5.0


def test_functions_without_a_home_are_compiled():
    names: dict = {}
    exec("def plus(x):\n    return x + 1", names)
    assert njit(names["plus"])(1) == 2


def test_garbage_is_not_collected_while_a_kernel_is_compiled():
    class Watch(event.Listener):
        def on_start(self, event):
            collects.append(gc.isenabled())

        def on_end(self, event):
            pass

    def plus(x):
        return x + 1

    collects: list[bool] = []
    plus.__module__ = "mixedgm.rows.somewhere"
    with event.install_listener("numba:compile", Watch()):
        assert kernel(plus)(1) == 2
    assert collects == [False]
    assert gc.isenabled()


def test_garbage_is_collected_again_after_an_error():
    def wrong(x):
        return x + "one"

    wrong.__module__ = "mixedgm.somewhere"
    with pytest.raises(TypingError):
        kernel(wrong, no_cpython_wrapper=False)(1)
    assert gc.isenabled()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for compiled code."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_is_optional(cache):
    """A damaged index, and a folder that cannot be written to: functions are compiled again."""

    def twice(x):
        return 2 * x

    assert kernel(twice)(3) == 6
    (index,) = cache.rglob("*.nbi")
    index.write_bytes(b"damaged")
    assert kernel(twice)(3) == 6
    assert index.read_bytes() != b"damaged"
    again = kernel(twice)
    assert again(3) == 6
    assert sum(again.compiled.stats.cache_hits.values()) == 1


def test_without_any_place_for_a_cache():
    """Code that is in no file has none."""
    names = {}
    exec(compile("def plus(x):\n    return x + 1\n", "<nowhere>", "exec"), names)
    assert kernel(names["plus"])(1) == 2


@pytest.mark.parametrize("damage", ["a byte", "half of the file", "another function's code"])
def test_code_that_is_not_what_was_kept_is_compiled_again(damage, cache):
    def twice(x):
        return 2 * x

    def thrice(x):
        return 3 * x

    assert (kernel(twice)(3), kernel(thrice)(3)) == (6, 9)
    file, other = (next(cache.rglob(f"*{name}*.nbc")) for name in ("twice", "thrice"))
    content = bytearray(file.read_bytes())
    if damage == "a byte":
        content[-len(content) // 3] ^= 1
    elif damage == "half of the file":
        del content[len(content) // 2 :]
    else:  # as when two processes keep code under one name at once
        content = other.read_bytes()
    file.write_bytes(content)
    again = kernel(twice)
    assert again(3) == 6
    assert sum(again.compiled.stats.cache_hits.values()) == 0


@pytest.mark.usefixtures("cache")
def test_code_of_an_older_inner_function_is_compiled_again(tmp_path, monkeypatch):
    """The function that changed is in another file than the kernel."""
    import importlib
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))
    part, whole = tmp_path / "the_part.py", tmp_path / "the_whole.py"
    part.write_text(
        "from mixedgm.base.compiled import inner\n@inner\ndef f(x):\n    return x + 1\n"
    )
    whole.write_text(
        "from mixedgm.base.compiled import kernel\nfrom the_part import f\n"
        "@kernel\ndef g(x):\n    return f(x)\n"
    )
    assert importlib.import_module("the_whole").g(1) == 2
    for name in ("the_part", "the_whole"):
        sys.modules.pop(name)
    part.write_text(part.read_text().replace("x + 1", "x + 100"))
    importlib.invalidate_caches()
    assert importlib.import_module("the_whole").g(1) == 101
