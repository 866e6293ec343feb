"""Long work: the same numbers for every number of jobs and backend, killed and started again."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import joblib
import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import people
from tests.support.solvers import Fatal, Faulty, nth, tables

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def table():
    return people(150)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=0.12).fit(table)


def same(one: mg.Bootstrap, two: mg.Bootstrap) -> bool:
    """Equal to the last bit."""
    names = ("pairs", "values", "node_terms", "scales", "account")
    pairs = one.pair_replicates, two.pair_replicates
    return all(
        np.array_equal(getattr(one.replicates, name), getattr(two.replicates, name))
        for name in names
    ) and all(
        np.array_equal(*(getattr(part, name) for part in pairs), equal_nan=True)
        for name in ("estimate", "values", "own_values")
    )


@pytest.fixture(scope="module")
def expected(model, table) -> mg.Bootstrap:
    return mg.bootstrap(model, table, n_boot=12, random_state=3, n_jobs=1)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_results_do_not_depend_on_jobs_and_backend(model, table, expected, backend) -> None:
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = mg.bootstrap(model, table, n_boot=12, random_state=3)
    assert same(found, expected)
    assert not same(mg.bootstrap(model, table, n_boot=12, random_state=4, n_jobs=1), expected)


def test_selection_in_resamples_does_not_depend_on_jobs_either(table) -> None:
    model = mg.MixedGraphicalModel(n_lams=6, lam_min_ratio=0.1).fit(table)
    runs = [
        mg.bootstrap(model, table, n_boot=4, select="again", random_state=3, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    ]
    assert same(*runs)


def test_the_first_resamples_are_the_same_when_more_are_asked_for(model, table, expected) -> None:
    fewer = mg.bootstrap(model, table, n_boot=5, random_state=3, n_jobs=1)
    np.testing.assert_array_equal(fewer.replicates.scales, expected.replicates.scales[:5])
    assert fewer.selection()["mean"].notna().all()


def test_a_checkpoint_is_read_and_refused_for_other_work(model, table, expected, tmp_path) -> None:
    folder = tmp_path / "kept"
    options = {"n_boot": 12, "n_jobs": 1, "checkpoint": folder}
    first = mg.bootstrap(model, table, random_state=3, **options)
    assert same(first, expected)
    for name in ("000004.npz", "000007.npz"):
        (folder / name).unlink()
    assert same(mg.bootstrap(model, table, random_state=3, **options), expected)
    other = mg.MixedGraphicalModel(lam=0.13).fit(table)
    for call in (
        lambda: mg.bootstrap(model, table, random_state=4, **options),
        lambda: mg.bootstrap(other, table, random_state=3, **options),
        lambda: mg.bootstrap(model, table, kind="case-dropping", random_state=3, **options),
        lambda: mg.bootstrap(model, table, groups="group", random_state=3, **options),
        lambda: mg.bootstrap(model, table, intervals=False, random_state=3, **options),
    ):
        with pytest.raises(mg.ParameterError, match="other data, options or seed"):
            call()


def test_an_interrupted_bootstrap_reports_what_is_done(table, expected) -> None:
    solver = Faulty(nth(tables, 9), KeyboardInterrupt)
    model = mg.MixedGraphicalModel(lam=0.12, solver=solver).fit(table)
    with pytest.warns(RuntimeWarning, match=r"interrupted: 5 of 12 \(resamples\)"):
        found = mg.bootstrap(model, table, n_boot=12, random_state=3, n_jobs=1)
    assert (found.n_done, found.n_boot) == (5, 12)
    np.testing.assert_array_equal(found.replicates.scales, expected.replicates.scales[:5])


# -- kill -9 ---------------------------------------------------------------------------------------

SCRIPT = """
    import os, signal, sys
    import mixedgm as mg
    from mixedgm.base.checkpoint import Checkpoint
    from tests.support.people import people

    keep = Checkpoint.keep

    def keep_five(folder, outcome):
        keep(folder, outcome)
        if len(list(folder.path.glob("0*.npz"))) == 5:
            os.killpg(0, signal.SIGKILL)

    if __name__ == "__main__":
        Checkpoint.keep = keep_five
        table = people(150)
        model = mg.MixedGraphicalModel(lam=0.12).fit(table)
        mg.bootstrap(model, table, n_boot=12, random_state=3, n_jobs=2, checkpoint=sys.argv[1])
"""


def test_a_killed_bootstrap_goes_on_and_ends_the_same(model, table, expected, tmp_path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(SCRIPT))
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    kept = {file.name: file.stat().st_mtime_ns for file in folder.glob("0*.npz")}
    assert len(kept) == 5
    options = {"n_boot": 12, "random_state": 3}
    again = mg.bootstrap(model, table, n_jobs=2, checkpoint=folder, **options)
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept, "not done again"
    assert len(list(folder.glob("0*.npz"))) == 12
    assert same(again, expected)


# -- a cluster -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # of Dask and its event loop, when a worker dies
def test_a_cluster_that_loses_a_worker_gives_the_same_numbers(table, tmp_path) -> None:
    distributed = pytest.importorskip("distributed")
    armed = tmp_path / "armed"
    model = mg.MixedGraphicalModel(lam=0.12, solver=Fatal(armed)).fit(table)
    options = {"n_boot": 12, "random_state": 3}
    undisturbed = mg.bootstrap(model, table, n_jobs=1, **options)
    armed.touch()
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
            env={"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        found = mg.bootstrap(model, table, **options)
    assert not armed.exists(), "no worker was killed"
    assert found.n_done == 12
    assert same(found, undisturbed)
