"""An installed mixedgm, away from its sources -> the whole job in short, or an error.

Runs in an environment of its own, with nothing but the package and its dependencies.  The first
argument is the version to expect, the second "plain" (no extras) or "extras".
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import entry_points, requires, version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mixedgm as mg


def main(expected: str, extent: str) -> None:
    """Check where the package lives, then use it."""
    installed = Path(mg.__file__).resolve()
    library = Path(sysconfig.get_path("purelib")).resolve()
    assert library in installed.parents, f"{installed} is not below {library}"
    assert (installed.parent / "py.typed").is_file()
    assert mg.__version__ == version("mixedgm") == expected
    assert requires("mixedgm")
    check_commands(expected)
    check_arrays()
    if extent == "extras":
        check_frames()
    else:
        assert find_spec("pandas") is None, "this environment was to have no data frames"


def check_commands(expected: str) -> None:
    """Both ways to start the command line say the version."""
    (script,) = entry_points(group="console_scripts", name="mixedgm")
    assert callable(script.load())
    path = Path(sysconfig.get_path("scripts")) / "mixedgm"
    for command in ([str(path)], [sys.executable, "-I", "-m", "mixedgm"]):
        said = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
        assert said.stdout == f"mixedgm {expected}\n", said.stdout


def check_arrays() -> None:
    """A fit to an array finds the two edges that are there."""
    rng = np.random.default_rng(0)
    a, b, c, d = rng.normal(size=(4, 500))
    group = (a + rng.normal(size=500) > 0).astype(float)
    table = np.column_stack([a, a + b, c, group, d])
    model = mg.MixedGraphicalModel().fit(table)
    assert model.converged_
    pairs = {(edge.source, edge.target) for edge in model.edges_}
    assert {("x0", "x1"), ("x0", "x3")} <= pairs, pairs
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mgm"
        model.save(path)
        again = mg.load(path)
    np.testing.assert_array_equal(again.params_.coef, model.params_.coef)


def check_frames() -> None:
    """The bundled survey: fit, tests, predictions, pictures, and the demo of the command line."""
    import matplotlib as mpl

    mpl.use("Agg")
    wage = mg.datasets.load_wage("pandas")
    model = mg.MixedGraphicalModel().fit(wage)
    assert model.converged_
    assert len(model.edges_) == 23, len(model.edges_)
    assert set(mg.edge_tests(model, wage, random_state=0).edges()["verdict"]) >= {"present"}
    assert model.predict_proba(wage.head(2), "jobclass").shape == (2, 2)
    assert mg.datasets.load_penguins("pandas").shape == (344, 8)
    boot = mg.bootstrap(model, wage, n_boot=4, random_state=0, n_jobs=2)
    assert boot.n_done == 4
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("png", "svg", "pdf"):
            picture = Path(folder) / f"network.{ending}"
            model.plot().ax.get_figure().savefig(picture)
            assert picture.stat().st_size > 1000
        command = [sys.executable, "-I", "-m", "mixedgm", "demo", "-o", "demo", "--quiet"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        assert (Path(folder) / "demo" / "network.png").is_file()


if __name__ == "__main__":
    main(*sys.argv[1:])
