"""What a path of a wide table allocates: the formula of docs/scale.md, and how it grows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
# So few rows that a second matrix of all columns by all columns would not be overlooked.
N_ROWS, N_DISCRETE, N_LEVELS, N_THREADS = 120, 10, 3, 2
SIZES = (400, 800, 1600)
SCRIPT = """
import json, sys, tracemalloc
import numpy as np
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from tests.unit.path.test_wide_memory import N_THREADS, table

def work(n_columns):
    recipe, design = Recipe(most_parameters=0), table(n_columns)
    tracemalloc.start()
    task = prepare(design, recipe, n_threads=N_THREADS)
    path = solve_path(task, task.lam_max * np.geomspace(1.0, 0.55, 6), recipe)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    layout = path.layout
    active = layout.restrict(path.points[-1].groups)
    neighbours = np.diff(active.incidence.node_entries)
    return {
        "peak": peak,
        "d": layout.n_columns,
        "candidates": layout.n_theta - layout.n_node_terms,
        "neighbours": neighbours.tolist(),
        "n_edges": int(path.n_edges[-1]),
    }

work(60)  # compiles
print(json.dumps([work(int(size)) for size in sys.argv[1:]]))
"""


def table(n_columns):
    """Chains of five numbers, and categories that depend on one each."""
    from mixedgm.table.encode import learn

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_columns))
    for j in range(1, n_columns):
        if j % 5:
            x[:, j] += 0.8 * x[:, j - 1]
    columns = {f"x{j}": x[:, j] for j in range(n_columns)}
    for k in range(N_DISCRETE):
        noisy = x[:, 5 * k] + rng.normal(size=N_ROWS)
        columns[f"y{k}"] = np.array(["a", "b", "c"])[np.digitize(noisy, [-0.7, 0.7])]
    return learn(pd.DataFrame(columns))[0]


@pytest.fixture(scope="module")
def found():
    """In a process of its own, so that nothing is there already."""
    command = [sys.executable, "-c", SCRIPT, *map(str, SIZES)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def formula(one):
    """Bytes, as docs/scale.md states them."""
    d, q, n = one["d"], N_DISCRETE * N_LEVELS, N_ROWS
    blocks = np.sum((np.array(one["neighbours"]) + 2.0) ** 2)
    work = N_THREADS * (32 * d + 2**18)
    return 8.0 * (d * d + 4 * n * d + 8 * d * q + 40 * one["candidates"] + 6 * blocks + work)


def test_memory_is_within_the_formula(found):
    for one in found:
        assert one["n_edges"] >= 0.3 * one["d"]
        assert one["peak"] <= formula(one)
    largest = found[-1]
    assert formula(largest) < 2 * 8.0 * largest["d"] ** 2


def test_memory_beyond_the_moments_grows_about_as_the_columns(found):
    d = np.array([one["d"] for one in found], dtype=float)
    beyond = np.array([one["peak"] for one in found]) - 8.0 * d * d
    power = np.polyfit(np.log(d), np.log(beyond), 1)[0]
    assert power <= 1.3
