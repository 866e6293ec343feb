"""Fits of tables in parts: the same models as from the table in memory."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

import mixedgm as mg
from mixedgm.base.errors import NotYetError, ParameterError, TableError
from mixedgm.cli import main
from tests.support.command_line import environment
from tests.unit.table.parted.test_design import TYPES, as_parts, table, with_gaps

QUIET = {"wage": None, "debt": None}
MODELS = {
    "default": {},
    "ebic": {"select": "ebic"},
    "bic": {"select": "bic", "n_lams": 20},
    "aic": {"select": "aic", "lams": [0.3, 0.2, 0.1]},
    "fdr": {"select": "fdr"},
    "holdout": {"select": "holdout", "random_state": 0},
    "given-lam": {"lam": 0.1},
    "covariates": {"covariates": ["sex", "height"], "lam": 0.1},
    "nodewise": {"loss": "nodewise", "select": mg.EBIC(per_node=True)},
    "adaptive": {"penalty_weights": "adaptive", "select": "ebic"},
    "forbidden": {"forbid": [("height", "weight")], "require": [("sex", "region")], "lam": 0.2},
}


def plain(frame):
    """The table without what warnings are about."""
    frame = frame.assign(wage=np.log(frame["wage"]), stage=frame["stage"].astype(str))
    return frame.drop(columns=["visits"]).assign(visits=frame["visits"].astype(float))


def fitted(X, **options):
    given = {"types": TYPES, "tol": 1e-9} | options
    sample_weight = given.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.SelectionWarning)  # paths are short here
        return mg.MixedGraphicalModel(**given).fit(X, sample_weight=sample_weight)


def assert_same_model(whole, parts):
    assert parts.schema_.names == whole.schema_.names
    assert [(e.source, e.target) for e in parts.edges_] == [
        (e.source, e.target) for e in whole.edges_
    ]
    assert parts.objective_ == pytest.approx(whole.objective_, abs=1e-10)
    np.testing.assert_allclose(parts.params_.coef, whole.params_.coef, atol=1e-8)
    np.testing.assert_allclose(parts.params_.bias, whole.params_.bias, atol=1e-8)
    assert parts.lam_ == pytest.approx(whole.lam_, rel=1e-10)
    assert max(parts.kkt_, whole.kkt_) <= 1.001e-9
    assert parts.kkt_ == pytest.approx(whole.kkt_, abs=1e-12)
    assert parts.fitted_.report.n_rows == whole.fitted_.report.n_rows
    assert parts.fitted_.library == whole.fitted_.library


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_parts_is_that_of_the_table(tmp_path, model):
    frame = plain(table())
    X = as_parts(frame, tmp_path)
    assert_same_model(fitted(frame, **MODELS[model]), fitted(X, **MODELS[model]))


def test_the_exact_likelihood_of_parts(tmp_path):
    frame = plain(table())[["height", "weight", "sex", "region", "pain"]]
    X = as_parts(frame, tmp_path)
    options = {"types": {"pain": "ordinal"}, "loss": "likelihood", "lam": 0.1}
    assert_same_model(fitted(frame, **options), fitted(X, **options))
    options |= {"lam": None, "lams": [0.3, 0.1], "select": "holdout", "random_state": 0}
    assert_same_model(fitted(frame, **options), fitted(X, **options))


def test_weights_and_dropped_rows(tmp_path):
    frame = plain(with_gaps())
    weights = np.random.default_rng(1).integers(0, 3, len(frame)).astype(float)
    X = as_parts(frame.assign(w=weights), tmp_path)
    options = {"missing": "drop", "select": "ebic"}
    with pytest.warns(mg.TableWarning, match="dropped because of missing values"):
        whole = fitted(frame, sample_weight=weights, **options)
    with pytest.warns(mg.TableWarning, match="dropped because of missing values"):
        parts = fitted(X, sample_weight="w", **options)
    assert_same_model(whole, parts)
    with pytest.warns(mg.TableWarning, match="dropped because of missing values"):
        named = fitted(frame.assign(w=weights), sample_weight="w", **options)
    assert_same_model(whole, named)
    with pytest.raises(ParameterError, match="which is not a column"):
        fitted(frame, sample_weight="v")


def test_lazy_frames_of_polars(tmp_path):
    frame = plain(table()).drop(columns="size")
    as_parts(frame, tmp_path)
    whole, lazy = pl.read_parquet(tmp_path), pl.scan_parquet(tmp_path)
    model = fitted(lazy, select="ebic")
    # Tables in parts get no transforms.
    assert_same_model(fitted(whole, select="ebic", transforms=None), model)
    assert isinstance(model.predict(lazy, "region"), pl.Series)
    small = lazy.filter(pl.col("height") > 0.0).with_columns(pl.col("weight") * 2.0)
    whole = fitted(small.collect(), lam=0.1, transforms=None)
    assert_same_model(whole, fitted(small, lam=0.1))


def test_truth_values_and_categories_can_be_declared_to_be_numbers():
    rng = np.random.default_rng(0)
    truth = pd.DataFrame({"x": rng.normal(size=90), "y": rng.normal(size=90)})
    truth = truth.assign(smokes=rng.random(90) < 0.5, rooms=rng.integers(0, 5, 90))
    coded = [
        pa.table(part).set_column(3, "rooms", pa.array(part["rooms"]).dictionary_encode())
        for part in (truth[:30], truth[30:])
    ]
    options = {"lam": 0.05, "transforms": None}
    for types in ({"smokes": "continuous", "rooms": "continuous"}, {"rooms": "count"}):
        whole = fitted(pa.concat_tables(coded), types=types, **options)
        assert_same_model(whole, fitted(dataset.dataset(coded), types=types, **options))
    texts = [
        part.append_column("town", pa.array(["A", "B"] * (len(part) // 2)).dictionary_encode())
        for part in coded
    ]
    for types in ({"smokes": "count"}, {"smokes": "hurdle"}, {"town": "continuous"}):
        with pytest.raises(TableError) as of_whole:
            fitted(pa.concat_tables(texts), types=types)
        with pytest.raises(TableError) as of_parts:
            fitted(dataset.dataset(texts), types=types)
        name = next(iter(types))
        assert str(of_parts.value).startswith(f"column '{name}': ")
        assert str(of_parts.value).split(": ")[1][:30] == str(of_whole.value).split(": ")[1][:30]


def test_paths(tmp_path):
    frame = plain(table())
    X = as_parts(frame, tmp_path)
    whole, parts = (mg.fit_path(x, [0.3, 0.1], types=TYPES, tol=1e-9) for x in (frame, X))
    np.testing.assert_allclose(parts.objective, whole.objective, atol=1e-10)
    assert parts.n_edges.tolist() == whole.n_edges.tolist()


# -- rows that are scored and predicted ------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return fitted(plain(table()), select="ebic")


def test_scores_of_parts(tmp_path):
    # Without a hurdle column gaps have exact answers.
    model = fitted(
        plain(table()).drop(columns="debt"), types={"pain": "ordinal", "visits": "count"}, lam=0.1
    )
    frame = plain(with_gaps(3))
    weights = np.random.default_rng(1).integers(0, 3, len(frame)).astype(float)
    X = as_parts(frame.assign(w=weights), tmp_path)
    for given in (None, weights):
        whole = model.score(frame, sample_weight=given)
        assert model.score(X, sample_weight=given) == pytest.approx(whole, rel=1e-12)
        whole = model.node_scores(frame, sample_weight=given)
        assert model.node_scores(X, sample_weight=given) == pytest.approx(whole, rel=1e-12)
    assert model.score(X, sample_weight="w") == pytest.approx(
        model.score(frame.assign(w=weights), sample_weight="w"), rel=1e-12
    )
    with pytest.raises(TableError, match="has 3 entries, but the table has 500 rows"):
        model.score(X, sample_weight=np.ones(3))


def test_predictions_of_parts(tmp_path, model):
    frame = plain(table(3))
    X = as_parts(frame, tmp_path)
    pd.testing.assert_frame_equal(model.predict(X), model.predict(frame))
    pd.testing.assert_series_equal(model.predict(X, "region"), model.predict(frame, "region"))
    one, other = model.predict_proba(X, "region"), model.predict_proba(frame, "region")
    pd.testing.assert_frame_equal(one, other)
    assert model.predict_proba(X).keys() == model.predict_proba(frame).keys()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"missing": "model"}, "missing='model' needs all rows at once"),
        ({"transforms": "nonparanormal"}, "transforms rank all rows"),
        ({"moderators": ["sex"]}, "moderators are not available"),
        ({"select": "cv"}, "CV, which fits many subsets of the rows, is not available"),
        ({"select": "stars"}, "StARS, which fits many subsets"),
        ({"select": "stability"}, "use select='local-fdr', 'ebic' or 'holdout'"),
        ({"loss": "likelihood", "covariates": ["sex"]}, "use loss='pseudolikelihood'"),
    ],
)
def test_what_needs_all_rows(tmp_path, options, what):
    frame = plain(table())[["height", "sex", "region"]]
    with pytest.raises(NotYetError, match=what):
        fitted(as_parts(frame, tmp_path), types=None, **options)


def test_functions_that_need_all_rows(tmp_path, model):
    X = as_parts(plain(table()), tmp_path)
    with pytest.raises(TableError, match="needs all of its rows in memory at once"):
        model.check_fit(X)


# -- the command line ------------------------------------------------------------------------------


def test_the_command_line_reads_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = plain(table())
    as_parts(frame.assign(w=1.0, id=np.arange(len(frame))), tmp_path)
    X, kinds = "part-*.parquet", "--types=visits=count,pain=ordinal,debt=hurdle"
    more = ("--drop", "id", "--weights-column", "w", kinds)
    assert main(["fit", X, "-o", "m.mgm", "--select=ebic", "--tol=1e-9", *more]) == 0
    assert_same_model(fitted(frame, select="ebic"), mg.load("m.mgm"))
    assert main(["path", X, "--lams=0.3,0.2", "--select=bic", *more]) == 0
    capsys.readouterr()
    assert main(["check", X, *more]) == 0
    assert "500 rows" in capsys.readouterr().out
    assert main(["predict", "m.mgm", X, "--column", "region"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 501
    for words, what in (
        (["fit", X, "-o", "m.mgm", "--drop=nothing"], "--drop names 'nothing'"),
        (["test", "m.mgm", X], "needs all of its rows in memory at once"),
    ):
        assert main(words) == 2
        assert what in capsys.readouterr().err


# -- memory ----------------------------------------------------------------------------------------

MEMORY = """
import sys, resource, warnings
import numpy as np, pandas as pd, pyarrow as pa
from pyarrow import parquet
import mixedgm as mg
from mixedgm.fit.fitting import fit_table
from mixedgm.fit.options import Options
from mixedgm.table.parted.design import LocalReader
from mixedgm.table.parted.sources import source_of

folder, n_parts = sys.argv[1], int(sys.argv[2])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def fit(n_parts):
    files = [f"{folder}/{k:03}.parquet" for k in range(n_parts)]
    reader = LocalReader(source_of(files), limit=0)
    return fit_table(reader, reader.library, Options(lam=0.05, n_jobs=1))

fit(2)
before = peak()
fit(n_parts)
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_parts(tmp_path):
    rng, n = np.random.default_rng(0), 50_000
    for k in range(16):
        x = rng.normal(size=(n, 4))
        frame = pd.DataFrame(x, columns=list("abcd")).assign(e=(x[:, 0] > 0) * 1, f=x[:, 1] > 1)
        frame.to_parquet(tmp_path / f"{k:03}.parquet")
    command = [sys.executable, "-c", MEMORY, str(tmp_path), "16"]
    grown = float(
        subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment()
        ).stdout
    )
    # 14 more parts of 1.7 MB each would be 24 MB.
    assert grown < 15.0
