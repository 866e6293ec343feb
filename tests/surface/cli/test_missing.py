"""`mixedgm missing`: lists, a picture, and what the command refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import survey


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = pd.DataFrame(survey(200))
    late = table["height"] > table["height"].quantile(0.7)
    table.loc[late & (np.arange(200) % 3 > 0), "weight"] = np.nan
    table.loc[::9, "group"] = None
    table.to_csv(tmp_path / "survey.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    words = ["fit", "survey.csv", "-o", "model.mgm", "--lam", "0.1", "--missing", "model"]
    assert main([*words, "--quiet"]) == 0
    return tmp_path


def report(folder: Path) -> mg.MissingReport:
    return mg.load(folder / "model.mgm").missing_report(pd.read_csv(folder / "survey.csv"))


def test_text_is_the_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["missing", "model.mgm", "survey.csv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Missing: ")
    assert "weight  height     high values" in said
    assert " ".join(report(folder).assumption.split()) in " ".join(said.split())
    assert main(["missing", "model.mgm", "survey.csv", "-o", "report.txt"]) == 0
    assert (folder / "report.txt").read_text(encoding="utf-8").strip() == said.strip()


@pytest.mark.parametrize("name", ["columns", "patterns", "edges", "hints"])
def test_lists(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    frame = getattr(report(folder), name)()
    words = ["missing", "model.mgm", "survey.csv", "--show", name]
    assert main([*words, "-o", "list.csv"]) == 0
    with (folder / "list.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == frame.columns.tolist()
    assert len(rows) == len(frame)
    capsys.readouterr()
    assert main([*words, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(frame)


def test_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing", "model.mgm", "survey.csv", "--plot", "gaps.png"]) == 0
    assert (folder / "gaps.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote gaps.png" in capsys.readouterr().err


def test_the_fit_says_how_gaps_were_modelled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", "survey.csv", "-o", "again.mgm", "--lam", "0.1"]
    assert main([*words, "--missing", "model"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    n_cells = int(pd.read_csv(folder / "survey.csv").isna().sum().sum())
    assert f"missing {n_cells} missing cells in" in said
    assert "weighted by the model itself in" in said
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "--missing model uses all 200 rows, --missing drop the" in told


def test_draws_by_parameters_that_vary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["impute", "model.mgm", "survey.csv", "--parameters", "resampled", "--seed", "1"]
    assert main([*words, "--draws", "2", "--jobs", "1", "-o", "filled.csv"]) == 0
    model, table = mg.load(folder / "model.mgm"), pd.read_csv(folder / "survey.csv")
    drawn = model.impute(table, 2, parameters="resampled", random_state=1)
    filled = pd.read_csv(folder / "filled.csv")
    wanted = pd.concat(drawn)["weight"].to_numpy()
    np.testing.assert_allclose(filled["weight"], wanted)
    capsys.readouterr()
    assert main(words) == 2
    assert "say how many with --draws" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "csv"], "--format csv is for one list: add --show columns, patterns"),
        (["--plot", "gaps.txt"], "the picture must be a file name that ends in .png"),
        (["--alpha", "2"], "alpha must be a number in [0, 1]"),
        (["-o", "survey.csv"], "'survey.csv' is the input"),
        (["--show", "cells"], "invalid choice: 'cells'"),
    ],
)
def test_errors_say_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    try:
        code = main(["missing", "model.mgm", "survey.csv", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_table_needs_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.mgm").unlink()
    table = pd.read_csv(folder / "survey.csv")
    capsys.readouterr()
    assert main(["missing", "survey.csv", "--show", "columns", "-o", "gaps.csv"]) == 0
    found = pd.read_csv(folder / "gaps.csv").set_index("column")["missing"]
    assert found.to_dict() == table.isna().sum().to_dict()
    assert main(["missing", "survey.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Missing: {int(table.isna().sum().sum())} of {table.size:,} cells" in said
    assert "weight height high values" in said
    assert "no model was given" in said
    assert "A fit with --missing drop assumes" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["survey.csv", "--show", "edges"], "needs a model"),
        (["survey.csv", "--missing", "drop"], "leave it out"),
        (["model.mgm", "survey.csv", "--types", "group=categorical"], "leave out --types"),
    ],
)
def test_options_that_do_not_go_together(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["missing", *words]) == 2
    assert message in capsys.readouterr().err


def test_empty_rows_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(folder / "survey.csv")
    table.loc[:3] = None
    table.to_csv(folder / "empty.csv", index=False)
    capsys.readouterr()
    assert main(["missing", "empty.csv"]) == 0
    assert f"of {table.size:,} cells" in capsys.readouterr().out


def test_gaps_that_another_column_decides_about_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rng = np.random.default_rng(0)
    dead, visits = rng.random(300) < 0.5, rng.poisson(1.0, 300)
    cost = np.where(visits > 0, rng.exponential(50.0, 300).round(2), np.nan)
    cause = np.where(dead, rng.choice(["heart", "lung"], 300), None)
    age = rng.normal(60.0, 9.0, 300).round(1)
    died = np.where(dead, "yes", "no")
    table = pd.DataFrame({"died": died, "cause": cause, "visits": visits, "cost": cost, "age": age})
    table.to_csv("deaths.csv", index=False)
    alive, never = int((~dead).sum()), int((visits == 0).sum())
    causes = f"column 'cause': missing in all {alive} rows with 'died' = \"no\" and in none of"
    costs = f"column 'cost': missing in all {never} rows with 'visits' = 0 and in none of"
    assert main(["missing", "deaths.csv", "--types", "visits=count"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert causes in said
    assert costs in said
    assert "a word such as none in the empty fields of the file gives a level of its own" in said
    words = ["fit", "deaths.csv", "-o", "model.mgm", "--lam", "0.1", "--missing", "model"]
    words += ["--types", "visits=count", "--forbid", "cause:died,cost:visits"]
    assert main([*words, "--quiet"]) == 0
    assert main(["missing", "model.mgm", "deaths.csv"]) == 0  # the fit was told
    said = " ".join(capsys.readouterr().out.split())
    assert "to have no value there" not in said
    model = mg.MixedGraphicalModel(lam=0.1, missing="drop", types={"visits": "count"})
    with pytest.warns(mg.TableWarning):
        model.fit(table.drop(columns="cause"))
    assert model.missing_report(table).notes[0].startswith(costs)
