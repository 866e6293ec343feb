"""Kernels compiled ahead are those that a fit asks for, and nothing depends on them."""

import ast
import os
import subprocess
import sys

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit import precompile
from mixedgm.rows.curvature import curvature_sums
from mixedgm.solve.curvature import correct
from mixedgm.solve.subproblem import assemble, descend, node_products


def fit():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(300, 3))
    table = np.column_stack([codes[:, 0] + rng.normal(size=300), rng.normal(size=300), codes])
    types = ["continuous"] * 2 + ["categorical"] * 3
    return mg.MixedGraphicalModel(types=types).fit(table)


def test_a_fit_finds_what_was_compiled_ahead():
    """The cache goes by types: another type anywhere would be compiled again."""
    code = (
        "from mixedgm.fit import precompile; precompile.main()\n"
        "from tests.unit.fit import test_precompile as t\n"
        "before = {k: k.signatures for k in t.KERNELS}\n"
        "assert all(len(known) == 1 for known in before.values())\n"
        "t.fit()\n"
        "print([k.py_func.__name__ for k in t.KERNELS if k.signatures != before[k]])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


KERNELS = tuple(
    kernel.compiled for kernel in (curvature_sums, correct, assemble, descend, node_products)
)


TABLE = np.random.default_rng(0).integers(0, 3, size=(60, 2))


def starts() -> dict[str, int]:
    """How many processes are started in which situation, in one where nothing is compiled yet."""
    commands: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str], **options: object):
            if refuses:
                raise OSError("not permitted")
            commands.append(command)

        def wait(self) -> None:
            pass

    def begin(kind: str = "categorical", times: int = 1) -> int:
        """Begin fits that end before they compile anything: no column has that name."""
        commands.clear()
        precompile.compile_ahead.cache_clear()
        for _ in range(times):
            model = mg.MixedGraphicalModel(types=[kind] * 2, forbid=[("x0", "none")])
            with pytest.raises(mg.ParameterError, match="no column 'none'"):
                model.fit(TABLE)
        assert commands in ([], [[python, "-P", "-m", "mixedgm.fit.precompile"]])
        return len(commands)

    refuses, python, subprocess.Popen = False, sys.executable, Process
    cores = os.sched_getaffinity
    os.sched_getaffinity = lambda process: {0, 1}
    counts = {"twice": begin(times=2), "no levels": begin("continuous")}
    os.sched_getaffinity = lambda process: {0}
    counts["one core"] = begin()
    os.sched_getaffinity = lambda process: {0, 1}
    for name in ("/opt/app/survey", ""):
        sys.executable = name
        counts[f"within {name!r}"] = begin()
    sys.executable, sys.frozen = python, True
    counts["frozen"] = begin()
    del sys.frozen
    refuses = True
    counts["refused"] = begin()
    os.sched_getaffinity = cores
    return counts


def test_a_process_is_started_once_and_only_where_it_helps(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.unit.fit import test_precompile as t; print(t.starts())",
        ],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = ast.literal_eval(done.stdout)
    assert {situation for situation, n in counts.items() if n} == {"twice"}
    assert counts["twice"] == 1
    assert len(counts) == 7


def test_none_is_started_when_all_is_compiled(monkeypatch):
    fit()
    precompile.compile_ahead.cache_clear()
    monkeypatch.setattr(subprocess, "Popen", None)  # not to be called
    assert fit().converged_


def test_an_older_source_does_not_count_as_cached(tmp_path):
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


def test_without_a_source_nothing_is_started(tmp_path):
    names = {}
    exec(compile("def some(x):\n    return x\n", str(tmp_path / "gone.py"), "exec"), names)

    class Kernel:
        py_func = staticmethod(names["some"])

        class stats:  # noqa: N801
            cache_path = str(tmp_path)

    assert precompile._is_cached(Kernel)
