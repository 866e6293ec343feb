"""A column that looks like an identifier is left out, and everything goes on without it."""

import re

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main

N = 200


def survey():
    rng = np.random.default_rng(5)
    x = rng.normal(size=N)
    return pd.DataFrame(
        {
            "x": x,
            "id": [f"person {k}" for k in range(N)],
            "y": x + rng.normal(size=N),
            "c": rng.choice(["u", "v"], N),
        }
    )


@pytest.fixture(scope="module")
def model():
    with pytest.warns(mg.TableWarning, match="column 'id': looks like an identifier"):
        return mg.MixedGraphicalModel(lam=0.1).fit(survey())


def test_the_fit_is_that_without_the_column(model):
    alone = mg.MixedGraphicalModel(lam=0.1).fit(survey().drop(columns="id"))
    assert model.edges_ == alone.edges_
    assert model.schema_.columns == alone.schema_.columns
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["x", "id", "y", "c"]


def test_the_summary_says_so(model):
    note = "left out: 'id' (identifier or free text: 200 levels in 200 rows)"
    assert note in str(model.summary())
    assert "left out" in str(model.schema_)


def test_new_rows_may_have_or_lack_it(model):
    table = survey()
    without = table.drop(columns="id")
    assert model.score(table) == model.score(without)
    pd.testing.assert_frame_equal(model.predict(table), model.predict(without))
    assert list(model.predict(table)) == ["x", "y", "c"]
    assert list(model.sample(3, random_state=0)) == ["x", "y", "c"]


def test_gaps_are_filled_around_it(model):
    table = survey().head(5)
    table.loc[1, "y"] = np.nan
    table.loc[2, "id"] = None
    filled = model.impute(table)
    assert list(filled) == list(table)
    assert filled["y"].notna().all()
    assert filled["id"].isna().tolist() == [False, False, True, False, False]


def test_model_files_keep_it(model, tmp_path):
    model.save(tmp_path / "m.mgm")
    again = mg.load(tmp_path / "m.mgm")
    assert again.schema_ == model.schema_
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_asking_for_it_says_how_to_keep_it(model):
    with pytest.raises(mg.ParameterError, match=r"'id' is left out of the model .* types=\{\"id\""):
        model.predict(survey(), "id")


def test_an_array_has_all_columns_or_those_of_the_model():
    array = survey().to_numpy()
    with pytest.warns(mg.TableWarning, match="column 'x1': looks like an identifier"):
        model = mg.MixedGraphicalModel(lam=0.1).fit(array)
    assert model.n_features_in_ == 4
    assert model.score(array) == model.score(array[:, [0, 2, 3]])
    with pytest.raises(mg.TableError, match="X has 2 features, .* expecting 4 features"):
        model.score(array[:, :2])


def test_the_imputer_returns_the_columns_of_the_model():
    table = survey()
    table.loc[::10, "y"] = np.nan
    for data in (table, table.to_numpy()):
        with pytest.warns(mg.TableWarning, match="looks like an identifier"):
            imputer = mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1)).fit(data)
        done = imputer.transform(data)
        assert done.shape == (N, 3)
        assert len(imputer.get_feature_names_out()) == 3
        assert imputer.n_features_in_ == 4
    with pytest.raises(ValueError, match="input_features"):
        imputer.get_feature_names_out(["x", "y", "c"])


def test_it_can_be_kept():
    table = survey().head(40)
    model = mg.MixedGraphicalModel(lam=5.0, types={"id": "categorical"}).fit(table)
    assert model.schema_.names == ("x", "id", "y", "c")


def test_the_command_line_says_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = survey()
    table["income"] = [f"{value:.3f}" for value in np.random.default_rng(0).normal(size=N)]
    table.loc[3, "income"] = "n.a."
    table["twice"] = 2 * table["x"]
    table["alley"] = np.where(np.arange(N) < 190, None, "yes")
    table.loc[0, "alley"] = "no"
    table.to_csv("survey.csv", index=False)
    assert main(["check", "survey.csv"]) == 2
    shown = capsys.readouterr().out
    assert re.search(r"^id +left out ", shown, re.MULTILINE)
    assert "error: column 'alley': 189 missing values (NaN or null). To fix: " in shown
    assert "--missing model uses all 200 rows, --missing drop the 11 complete ones" in shown
    assert "; or --drop alley: " in shown
    assert "To change it: --types id=categorical keeps it as a category (--drop id to" in shown
    assert "'n.a.' (1 row)" in shown
    assert "an empty field in the file in place of each word turns it into numbers" in shown
    assert "--drop twice" in shown
    assert main(["check", "survey.csv", "--drop", "alley,id,income,twice"]) == 0
    assert capsys.readouterr().out.endswith("nothing wrong: ready to fit\n")


def test_the_command_line_writes_transforms_as_options(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"wage": rng.lognormal(0, 0.7, N), "rent": rng.lognormal(0, 0.9, N)})
    table.to_csv("skewed.csv", index=False)
    assert main(["check", "skewed.csv"]) == 0
    shown = capsys.readouterr().out
    assert "note: 2 columns are far from normal, so normal scores of their ranks" in shown
    assert "--transform wage=none,rent=none keeps the numbers" in shown
    assert main(["check", "skewed.csv", "--transform", "none"]) == 0
    shown = capsys.readouterr().out
    assert "note: 2 columns are skewed, not normal: 'rent' (skewness" in shown
    option = "--transform wage=nonparanormal,rent=nonparanormal"
    assert option in shown
    assert main(["check", "skewed.csv", *option.split()]) == 0
    assert "skewed, not" not in capsys.readouterr().out
    assert main(["check", "skewed.csv", "--transform", "wage=none,rent=none"]) == 0
    assert "skewed, not" not in capsys.readouterr().out
    for how in ("nonparanormal-extrapolated", "wage=nonparanormal-extrapolated"):
        assert main(["check", "skewed.csv", "--transform", how]) == 0
