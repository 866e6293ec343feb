"""Every part of the benchmarks runs, certifies what it timed and finds its way into the table.

At a tiny size, where no time means anything: only the certificates are judged.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import certificate, cli, data, memory, product, report, simulate
from benchmarks.context import Context
from benchmarks.matrix_products import MatrixProducts
from benchmarks.timing import exponent
from tests.support import dense

CERTIFIED = {"path", "wide", "peers", "growth", "scale"}


@pytest.mark.parametrize("part", report.PARTS)
def test_a_part_runs_and_certifies_what_it_timed(part, tmp_path, monkeypatch, capsys):
    if part != "wide":  # one part shows that work can be sent to a new process; each takes seconds
        monkeypatch.setenv("MIXEDGM_BENCHMARK_HERE", "yes")
    cli.main(["--size", "smoke", "--only", part, "--out", str(tmp_path)])
    written = json.loads((tmp_path / f"{part}.json").read_text())
    rows = [report.Row(**row) for row in written["rows"]]
    certificates = [row for row in rows if "KKT, recomputed" in row.what]
    assert all(row.met for row in certificates)
    assert bool(certificates) == (part in CERTIFIED)
    printed = capsys.readouterr().out
    assert all(row.what in printed for row in rows)


def test_a_part_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(cli.MODULES, "pass", "no_such_module")
    with pytest.raises(SystemExit, match="pass"):
        cli.main(["--size", "smoke", "--only", "pass,path", "--out", str(tmp_path)])
    assert (tmp_path / "path.json").exists()
    assert "no_such_module" in capsys.readouterr().err


def test_an_unknown_part_is_named(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--only", "paths"])
    assert "unknown part 'paths'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def solved():
    design = data.simulated(simulate.Shape(3, (2, 4), 300))
    task = product.task_of(design)
    return design, task, product.solve(task, product.grid(task, 4, 0.1))


def test_the_certificate_agrees_with_the_one_of_the_tests(solved):
    design, task, found = solved
    for k, lam in enumerate(found.path.lams):
        ours = certificate.kkt(task, found.path.theta(k), lam)
        params = found.path.params(k)
        assert ours == pytest.approx(
            dense.kkt(params, design.numbers, design.codes, lam), abs=1e-10
        )


def test_the_certificate_sees_a_wrong_point(solved):
    _, task, found = solved
    wrong = found.path.theta(3) + 1e-3
    assert certificate.kkt(task, wrong, found.path.lams[3]) > 1e-4


def test_times_of_a_path_add_up(solved):
    found = solved[2]
    assert len(found.per_lam) == 4
    assert 0.0 < found.pass_seconds + found.curvature_seconds < found.seconds
    assert found.per_lam.sum() <= found.seconds


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_baseline_computes_both_products(threads, made):
    rng = np.random.default_rng(0)
    numbers, codes = rng.normal(size=(50, 2)), rng.integers(0, 3, size=(50, 2))
    products = MatrixProducts(numbers, codes, (3, 3), rng.normal(size=(8, 6)))
    Z = np.hstack([numbers, np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]])
    found = products.run(16, threads, made=made)
    np.testing.assert_allclose(found, Z.T @ (Z @ products.coef), rtol=1e-12)


def test_simulated_tables_have_the_edges_of_their_graph():
    shape = simulate.Shape(10, (3,) * 10, 4_000)
    design = data.simulated(shape, degree=2.0)
    task = product.task_of(design)
    path = product.solve(task, product.grid(task, 6, 0.1)).path
    assert path.n_edges[-1] >= 15
    assert design.codes.max() == 2


def test_peak_memory_is_seen():
    """In a process of its own: one that has freed as much before uses that again."""
    code = """
import numpy as np
from benchmarks import memory

print(memory.extra_resident(lambda: np.ones(4_000_000).sum()))
"""
    root = Path(memory.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    if memory.forget_peak():
        assert 31e6 < int(done.stdout) < 60e6


def test_exponents_are_slopes():
    sizes = np.array([1.0, 10.0, 100.0])
    assert exponent(sizes, 3.0 * sizes**1.5) == pytest.approx(1.5)


def test_data_that_is_not_there_is_replaced_and_said_so(tmp_path):
    context = Context("smoke", None, None, tmp_path)
    design, note = data.simulated_set(context, "a")
    assert design.schema.n_levels == (2,) * 10
    assert "not found" in note
    assert "bundled" in data.survey_note(context)
    assert data.survey(context, 500).n_rows == 500
