"""Kernels compiled ahead are those that a fit asks for, and nothing depends on them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mixedgm as mg
from mixedgm import precompile
from mixedgm.rows.curvature_kernels import curvature_sums
from mixedgm.solve.kernels import assemble, carry, descend, node_products


def machine(monkeypatch, cores, cached):
    """A machine that has so many cores, and compiled code or none."""
    monkeypatch.setattr(precompile, "n_cores", lambda: cores)
    monkeypatch.setattr(precompile, "_is_cached", lambda kernel: cached)
    precompile.compile_ahead.cache_clear()


@pytest.fixture
def started(monkeypatch):
    """Commands that would have been started, on a machine with two cores and an empty cache."""
    commands = []

    class Process:
        def __init__(self, command, **options):
            commands.append(command)

        def wait(self):
            pass

    monkeypatch.setattr(precompile.subprocess, "Popen", Process)
    machine(monkeypatch, cores=2, cached=False)
    yield commands
    precompile.compile_ahead.cache_clear()


def fit():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(300, 3))
    table = np.column_stack([codes[:, 0] + rng.normal(size=300), rng.normal(size=300), codes])
    types = ["continuous"] * 2 + ["categorical"] * 3
    return mg.MixedGraphicalModel(types=types).fit(table)


def test_a_fit_finds_what_was_compiled_ahead():
    """The cache goes by types: another type anywhere would be compiled again."""
    code = (
        "from mixedgm import precompile; precompile.main()\n"
        "from tests.unit import test_precompile as t\n"
        "before = {k: k.signatures for k in t.KERNELS}\n"
        "assert all(len(known) == 1 for known in before.values())\n"
        "t.fit()\n"
        "print([k.py_func.__name__ for k in t.KERNELS if k.signatures != before[k]])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


KERNELS = (curvature_sums, carry, assemble, descend, node_products)


def test_a_process_is_started_once(started):
    fit()
    fit()
    assert started == [[sys.executable, "-P", "-m", "mixedgm.precompile"]]


def test_none_is_started_without_need(started, monkeypatch):
    mg.MixedGraphicalModel().fit(np.random.default_rng(0).normal(size=(50, 2)))  # no levels
    machine(monkeypatch, cores=1, cached=False)
    fit()
    machine(monkeypatch, cores=2, cached=True)
    fit()
    assert started == []


def test_a_system_without_processes_does_without(started, monkeypatch):
    def refuse(*command, **options):
        raise OSError("not permitted")

    monkeypatch.setattr(precompile.subprocess, "Popen", refuse)
    assert fit().converged_


def test_an_older_source_does_not_count_as_cached(tmp_path, monkeypatch):
    source = tmp_path / "some_kernels.py"
    source.write_text("def some(x):\n    return x\n")
    names = {}
    exec(compile(source.read_text(), str(source), "exec"), names)

    class Kernel:
        py_func = staticmethod(names["some"])

        class stats:  # noqa: N801
            cache_path = str(tmp_path)

    assert not precompile._is_cached(Kernel)
    index = tmp_path / "some_kernels.some-1.py311.nbi"
    index.write_bytes(b"")
    assert precompile._is_cached(Kernel)
    os.utime(index, (1, 1))
    assert not precompile._is_cached(Kernel)
    assert precompile._is_cached(names["some"])  # the compiler is switched off


@pytest.mark.parametrize(
    ("executable", "frozen"), [("/opt/app/survey", False), ("/usr/bin/python3", True), ("", False)]
)
def test_programs_that_contain_python_are_not_started_again(
    started, monkeypatch, executable, frozen
):
    monkeypatch.setattr(precompile.sys, "executable", executable)
    monkeypatch.setattr(precompile.sys, "frozen", frozen, raising=False)
    precompile.compile_ahead()
    assert started == []


def test_without_a_source_nothing_is_started(tmp_path):
    names = {}
    exec(compile("def some(x):\n    return x\n", str(tmp_path / "gone.py"), "exec"), names)

    class Kernel:
        py_func = staticmethod(names["some"])

        class stats:  # noqa: N801
            cache_path = str(tmp_path)

    assert precompile._is_cached(Kernel)
