"""Ordinal and count columns from the table to the file: estimator, model files and commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import mixedgm as mg
from mixedgm.cli import main

PAIN = ["none", "mild", "severe", "worst"]
TYPES: dict[str, Any] = {
    "pain": mg.Ordinal(levels=PAIN, scores=[0, 1, 4, 5], thresholds="quadratic"),
    "stage": "ordinal",
    "visits": mg.Count(zero_term=True),
}


def clinic(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.normal(size=n)
    pain = np.clip(np.round(1.5 + 0.6 * age + rng.normal(0.0, 0.7, n)), 0, 3).astype(int)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "visits": rng.poisson(np.exp(0.8 * pain)),
            "pain": [PAIN[k] for k in pain],
            "age": age,
            "stage": 1 + (rng.integers(0, 3, n) + pain) // 2,
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {"lam": 0.05},
        {"n_lams": 10},
        {"lam": 0.05, "loss": "nodewise"},
        {"lam": 0.05, "covariates": ["pain", "age"]},
        {"lam": 0.05, "moderators": ["visits", "sex"]},
    ],
    ids=str,
)
def test_a_model_comes_back_from_its_file(options: dict[str, Any], tmp_path: Path) -> None:
    table = clinic()
    model = clone(mg.MixedGraphicalModel(types=TYPES, **options)).fit(table)
    assert model.converged_
    assert {edge.kind for edge in model.edges_} & {"continuous-ordinal", "ordinal-count"}
    model.summary()  # the node terms of the joint distribution are then in the file, too
    model.save(tmp_path / "a.mgm")
    back = mg.load(tmp_path / "a.mgm")
    assert back.types == TYPES
    assert back.schema_ == model.schema_
    assert back.edges_ == model.edges_
    np.testing.assert_array_equal(back.params_.bias, model.params_.bias)
    np.testing.assert_array_equal(back.params_.coef, model.params_.coef)
    for at in range(len(model.path_)):
        before, after = model.path_.params(at), back.path_.params(at)
        np.testing.assert_array_equal(after.bias, before.bias)
        np.testing.assert_array_equal(after.coef, before.coef)
    back.save(tmp_path / "b.mgm")
    assert (tmp_path / "b.mgm").read_bytes() == (tmp_path / "a.mgm").read_bytes()
    np.testing.assert_array_equal(back.node_scores(table), model.node_scores(table))


def test_scikit_learn_copies_changes_and_crosses_them() -> None:
    model = mg.MixedGraphicalModel(lam=0.05, types=TYPES)
    assert clone(model).get_params()["types"] == TYPES
    schema = mg.check_table(clinic(), types=TYPES).schema
    model.set_params(types=schema)
    assert clone(model).get_params()["types"] == schema
    assert np.isfinite(cross_val_score(model, clinic(), cv=3)).all()
    assert model.fit(clinic()).schema_ == schema


# -- the command line ------------------------------------------------------------------------------

OPTIONS = [
    *("--types", "stage=ordinal", "--levels", "pain=none,mild,severe,worst"),
    *("--level-scores", "pain=0,1,4,5", "--thresholds", "pain=quadratic"),
    *("--largest", "visits=60", "--zero-term", "visits"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    clinic().to_csv("clinic.csv", index=False)
    return tmp_path


def test_the_commands_take_the_same_kinds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "clinic.csv", *OPTIONS]) == 0
    shown = capsys.readouterr().out
    for line in ("4: none (0) < mild (1) < severe (4) < worst (5)  quadratic", "0 to 60 "):
        assert line in shown
    assert "nothing wrong" in shown
    assert main(["fit", "clinic.csv", "-o", "m.mgm", "--lam", "0.05", "--quiet", *OPTIONS]) == 0
    model = mg.load("m.mgm")
    types = {**TYPES, "visits": mg.Count(largest=60, zero_term=True)}
    again = mg.MixedGraphicalModel(lam=0.05, types=types).fit(clinic())
    assert [c.to_dict() for c in model.schema_.nodes] == [c.to_dict() for c in again.schema_.nodes]
    np.testing.assert_array_equal(model.params_.coef, again.params_.coef)


def test_check_proposes_options(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "clinic.csv", "--types", "pain=ordinal"]) == 2
    shown = capsys.readouterr().out
    assert "--levels pain=mild,none,severe,worst, with the levels from the lowest" in shown
    assert "--types stage=ordinal if their order has a meaning, --types stage=categorical" in shown
    assert "looks like a count" in shown
    assert "--types visits=count" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--types", "pain=likert"],
            "must be 'continuous', 'hurdle', 'ordinal', 'count' or 'categorical'. Got",
        ),
        (["--levels", "pain"], "--levels takes NAME=A,B,... Got 'pain' instead"),
        (
            ["--level-scores", "pain=a,b"],
            "--level-scores takes numbers as NAME=0,1,4. Got 'pain=a,b'",
        ),
        (["--level-scores", "stage=2,1"], "scores must increase"),
        (["--thresholds", "stage=none"], "thresholds must be 'free' or 'quadratic'"),
        (
            ["--largest", "visits=many"],
            "--largest takes whole numbers as NAME=200. Got 'visits=many'",
        ),
        (["--largest", "visits=2.5"], "largest must be a whole number"),
        (["--zero-term", "age"], "values are not whole"),
        (["--types", "pain=count", "--levels", "pain=a,b"], "--levels is for ordinal columns, and"),
        (["--largest", "pain=9", "--levels", "pain=a,b"], "--largest is for count columns, and"),
    ],
)
def test_options_that_cannot_be(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["fit", "clinic.csv", "-o", "x.mgm", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "x.mgm").exists()
