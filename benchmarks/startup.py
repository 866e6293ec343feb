"""Part "startup": imports, the command line's help, and the first fit ever."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import mixedgm
from benchmarks.context import Context
from benchmarks.report import Result, at_most, holds, shown
from benchmarks.timing import interleaved, seconds_of

REPEATS = {"full": 15, "quick": 5, "smoke": 1}
SOURCE = Path(mixedgm.__file__).resolve().parents[1]
COMPILING = "compiling"

FIT = """
import numpy as np
import mixedgm as mg

rng = np.random.default_rng(0)
codes = rng.integers(0, 3, size=(300, 3))
table = np.column_stack([codes[:, 0] + rng.normal(size=300), rng.normal(size=300), codes])
model = mg.MixedGraphicalModel(types=["continuous"] * 2 + ["categorical"] * 3).fit(table)
assert model.converged_ and model.kkt_ <= 1e-5, model.kkt_
"""


def run(context: Context) -> Result:
    result = Result("startup")
    if context.size == "smoke":
        _imports(result, context.pick(REPEATS), None)
        _call(("-c", FIT))
        return result
    with tempfile.TemporaryDirectory() as bytecode:
        _imports(result, context.pick(REPEATS), bytecode)
    _first_fit(result)
    return result


def _imports(result: Result, repeats: int, bytecode: str | None) -> None:
    """With compiled source files, as an installed package has them."""

    def python(*arguments: str) -> Callable[[], object]:
        if bytecode is not None:
            _call(arguments, bytecode=bytecode)
        return lambda: _call(arguments, bytecode=bytecode)

    times = interleaved(
        {
            "nothing": python("-c", "pass"),
            "sklearn.base": python("-c", "import sklearn.base"),
            "mixedgm": python("-c", "import mixedgm"),
            "the estimator": python("-c", "from mixedgm import MixedGraphicalModel"),
            "help": python("-m", "mixedgm", "--help"),
        },
        repeats,
    )
    result.figures.update({name: found.to_dict() for name, found in times.items()})
    base = times["sklearn.base"].median
    extra = times["mixedgm"].median - base
    result.add(at_most("import mixedgm, beyond import sklearn.base", extra, 0.2, "s"))
    # Loading the package loads nothing else; a class brings its modules and scikit-learn.
    extra = times["the estimator"].median - base
    result.add(shown("import the estimator, beyond import sklearn.base", f"{extra:.3g} s"))
    result.add(at_most("mixedgm --help", times["help"].median, 0.5, "s"))
    result.add(shown("import sklearn.base, interpreter included", f"{base:.3g} s"))


def _first_fit(result: Result) -> None:
    """With an empty cache, then with what that run has cached; the fastest of three each."""
    firsts, seconds, cpu = [], [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            before = _cpu_seconds()
            firsts.append(seconds_of(lambda: _call(("-c", FIT), cache)))
            cpu.append(_cpu_seconds() - before)
            seconds.append(seconds_of(lambda: _call(("-c", FIT), cache)))
            cached = sum(path.suffix == ".nbc" for path in Path(cache).rglob("*"))
    first, second = min(firsts), min(seconds)
    result.figures["first fit"] = {
        "empty cache": firsts,
        "processor": cpu,
        "cached": seconds,
        "files": cached,
    }
    result.add(shown("first fit ever, processor time of all processes", f"{min(cpu):.3g} s"))
    result.add(at_most("first fit ever, compilation", first - second, 10.0, "s"))
    result.add(shown("a fit with cached kernels, imports included", f"{second:.3g} s"))
    result.add(holds("kernels are cached on disk", "yes", cached > 0, f"{cached} files"))
    result.add(holds("the command line announces compilation", "yes", _announces()))


def _cpu_seconds() -> float:
    """Processor time of all processes that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _announces() -> bool:
    """Whether the first fit by the command line says so, and the next does not."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        lines = [f"{k * 7 % 11},{k % 3 + k * 5 % 7},{'ab'[k % 2]}" for k in range(60)]
        table.write_text("\n".join(["x,z,y", *lines]) + "\n")
        command = ("-m", "mixedgm", "fit", str(table), "-o", str(Path(folder) / "model.mgm"))
        said = [COMPILING in _call(command, folder) for _ in range(2)]
    return said == [True, False]


def _call(arguments: tuple[str, ...], cache: str | None = None, bytecode: str | None = None) -> str:
    """Run Python with this package; return what it printed."""
    known = os.environ.get("PYTHONPATH")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCE), known])))
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    if bytecode is not None:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = bytecode
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)[:200]} failed:\n{done.stderr}")
    return done.stdout + done.stderr
