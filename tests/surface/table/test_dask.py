"""Dask frames: fitted on the workers as in memory, whatever happens to a worker."""

import os
import signal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, default_client

import mixedgm as mg
from mixedgm.base.errors import NotYetError, ParameterError, TableError
from mixedgm.cli import main
from tests.support.solvers import NEWTON, Faulty
from tests.surface.table.test_parts import assert_same_model, fitted, plain
from tests.unit.table.parted.test_design import as_parts, table, with_gaps


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, for all that needs no process of its own."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


def parted(frame, n=3):
    return dd.from_pandas(frame, npartitions=n, sort=False)


MODELS = {
    "default": {},
    "ebic": {"select": "ebic"},
    "holdout": {"select": "holdout", "random_state": 0, "lams": [0.3, 0.2, 0.1]},
    "given-lam": {"lam": 0.1, "covariates": ["sex"]},
}


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_a_dask_frame_is_that_of_the_table(client, model):
    frame = plain(table())
    whole = fitted(frame, **MODELS[model])
    found = fitted(parted(frame), **MODELS[model])
    assert_same_model(whole, found)
    assert [str(note) for note in found.fitted_.report.notes] == [
        str(note) for note in whole.fitted_.report.notes
    ]


def test_weights_gaps_and_empty_partitions(client):
    frame = plain(with_gaps())
    frame["w"] = np.random.default_rng(1).integers(0, 3, len(frame)).astype(float)
    frame.loc[:150, "w"] = 0.0
    options = {"missing": "drop", "lam": 0.1, "sample_weight": "w"}
    models = []
    for X in (frame, parted(frame, 4)):
        with pytest.warns(mg.TableWarning, match="dropped because of missing values"):
            models.append(fitted(X, **options))
    assert_same_model(*models)


def test_without_a_cluster_partitions_are_read_one_after_the_other():
    frame = plain(table())
    assert_same_model(fitted(frame, lam=0.1), fitted(parted(frame), lam=0.1))


def test_the_number_of_workers_does_not_matter(client):
    frame = plain(table())
    one = fitted(parted(frame, 11), lam=0.05)
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=5, **options) as cluster, Client(cluster, set_as_default=True):
        other = fitted(parted(frame, 11), lam=0.05)
    np.testing.assert_array_equal(other.params_.coef, one.params_.coef)
    assert other.objective_ == one.objective_


def test_findings_and_paths(client):
    frame = plain(table())
    whole, found = mg.check_table(frame), mg.check_table(parted(frame))
    assert found.findings == whole.findings
    assert found.schema.names == whole.schema.names
    broken = frame.assign(one=1.0)
    broken.loc[7, "height"] = np.inf
    with pytest.raises(TableError, match=r"(?s)constant.*infinite|infinite.*constant"):
        fitted(parted(broken))
    one, other = (
        mg.fit_path(X, [0.3, 0.1], types={"pain": "ordinal", "visits": "count"}, tol=1e-9)
        for X in (frame.drop(columns="debt"), parted(frame.drop(columns="debt")))
    )
    np.testing.assert_allclose(other.objective, one.objective, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"missing": "model"}, NotYetError, "needs all rows at once"),
        ({"select": "cv"}, NotYetError, "use select='local-fdr', 'ebic' or 'holdout'"),
        ({"sample_weight": np.ones(500)}, ParameterError, "weights by a column"),
    ],
)
def test_what_is_refused(client, options, error, what):
    with pytest.raises(error, match=what):
        fitted(parted(plain(table())), **options)


def broken(part, partition_info=None):
    """A function that fails in the second partition."""
    if partition_info is not None and partition_info["number"] == 1:
        raise ZeroDivisionError("a user's function")
    return part


def test_partitions_that_fail_on_a_worker_are_named(client):
    frame = plain(table())
    failing = parted(frame).map_partitions(broken, meta=frame.iloc[:0])
    with pytest.raises(TableError, match="partition 1 cannot be read: ZeroDivisionError: a user"):
        fitted(failing, lam=0.1)
    model = fitted(frame, lam=0.1)
    with pytest.raises(TableError, match="the Dask frame cannot be read: ZeroDivisionError"):
        model.score(failing)
    lying = parted(frame).map_partitions(
        lambda part: part.drop(columns="height"), meta=frame.iloc[:0], enforce_metadata=False
    )
    with pytest.raises(TableError, match="does not have the columns .* it lacks 'height'"):
        fitted(lying, lam=0.1)


def test_scores_and_predictions_are_made_on_the_workers(client):
    model, frame = fitted(plain(table()), lam=0.1), plain(table(3))
    frame["w"] = np.r_[np.zeros(170), np.ones(330)]
    X = parted(frame)
    for weights in (None, "w"):
        whole = model.score(frame, sample_weight=weights)
        assert model.score(X, sample_weight=weights) == pytest.approx(whole, rel=1e-12)
        whole = model.node_scores(frame, sample_weight=weights)
        assert model.node_scores(X, sample_weight=weights) == pytest.approx(whole, rel=1e-12)
    with pytest.raises(ParameterError, match="weights by a column"):
        model.score(X, sample_weight=np.ones(500))
    every = model.predict(X)
    assert isinstance(every, dd.DataFrame)
    pd.testing.assert_frame_equal(every.compute(), model.predict(frame))
    assert every.dtypes.equals(model.predict(frame).dtypes)
    one = model.predict(X, "visits", value="median")
    assert isinstance(one, dd.Series)
    expected = model.predict(frame, "visits", value="median")
    pd.testing.assert_series_equal(one.compute(), expected)
    chances = model.predict_proba(X, "region")
    pd.testing.assert_frame_equal(chances.compute(), model.predict_proba(frame, "region"))


def test_the_command_line_leaves_parts_to_a_cluster(client, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = plain(table())
    as_parts(frame.assign(w=1.0, id=np.arange(len(frame))), tmp_path)
    kinds = "--types=visits=count,pain=ordinal,debt=hurdle"
    words = ["-o", "m.mgm", "--lam=0.1", "--tol=1e-9", "--drop=id", "--weights-column=w", kinds]
    address = f"--scheduler={client.scheduler.address}"
    assert main(["fit", "part-*.parquet", address, *words]) == 0
    assert_same_model(fitted(frame, lam=0.1), mg.load("m.mgm"))
    capsys.readouterr()
    frame.to_csv("whole.csv")
    for table_name, where, what in (
        ("whole.csv", address, "--scheduler is for a table in parts"),
        ("part-*.parquet", "--scheduler=127.0.0.1:9", "there is no Dask scheduler at"),
    ):
        assert main(["fit", table_name, where, *words]) == 2
        assert what in capsys.readouterr().err


# -- workers that die ------------------------------------------------------------------------------


def killed_once(frame, flag):
    """On a worker: die while the first partition is read; the flag says that this was done."""
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


class WorkersKilled:
    """A condition of a solver: kills all workers before the first step, and is never true."""

    def __init__(self):
        self.pids = []

    def __call__(self, problem):
        if not self.pids:
            self.pids = list(default_client().run(os.getpid).values())
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)
        return False


@pytest.mark.filterwarnings("ignore")  # a worker that is killed cannot close what it has open
def test_a_fit_survives_the_loss_of_its_workers(tmp_path):
    """One dies while it reads; all of them, with all parts, between two passes over the rows."""
    frame, killed = plain(table()), WorkersKilled()
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster):
        flag = tmp_path / "killed"
        X = parted(frame, 4).map_partitions(killed_once, flag, meta=frame.iloc[:0])
        found = fitted(X, lam=0.1, solver=Faulty(killed, KeyboardInterrupt))
    assert flag.exists()
    assert len(killed.pids) == 2
    assert_same_model(fitted(frame, lam=0.1, solver=NEWTON), found)
