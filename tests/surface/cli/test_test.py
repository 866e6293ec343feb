"""`mixedgm test`: tests of all pairs as text and files, and what the command refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import survey, write_csv


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    columns = survey(200)
    write_csv(tmp_path / "survey.csv", columns)
    home = np.repeat(np.arange(50), 4).tolist()
    weight = np.tile([0.5, 1.0, 1.5, 1.0], 50).tolist()
    write_csv(tmp_path / "homes.csv", {**columns, "home": home, "w": weight})
    table = pd.read_csv(tmp_path / "survey.csv")
    mg.MixedGraphicalModel(lam=0.1).fit(table).save(tmp_path / "model.mgm")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def expected(folder: Path, **options: object) -> mg.EdgeTests:
    table = pd.read_csv(folder / "survey.csv")
    return mg.edge_tests(mg.load(folder / "model.mgm"), table, random_state=1, **options)


def test_text_is_the_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "model.mgm", "survey.csv", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert said.strip() == expected(folder).summary().strip()
    assert said.startswith("Tests of 10 pairs: 4 present")
    heading, first = (line.split() for line in said.splitlines()[1:3])
    value = expected(folder).edges()["statistic"].iloc[0]
    place = heading.index("statistic") - len(heading)  # many parameters leave no estimate
    assert float(first[place]) == pytest.approx(value, rel=1e-3)


def test_files_have_every_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["test", "model.mgm", "survey.csv", "--seed", "1", "--method", "graph"]
    assert main([*words, "-o", "tests.csv"]) == 0
    assert main([*words, "-o", "tests.json"]) == 0
    capsys.readouterr()
    frame = expected(folder, method="graph").edges()
    with (folder / "tests.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == frame.columns.tolist()
    assert [float(row["p"]) for row in rows] == pytest.approx(frame["p"].tolist())
    told = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
    assert [row["verdict"] for row in told] == frame["verdict"].tolist()
    assert [row["estimate"] for row in told if row["df"] > 1] == [None] * (frame["df"] > 1).sum()


def test_clusters_weights_and_levels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["test", "model.mgm", "homes.csv", "--cluster", "home", "--weights-column", "w"]
    assert main([*words, "--level", "0.9", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    table = pd.read_csv(folder / "homes.csv")
    given = {"cluster": "home", "sample_weight": table["w"].to_numpy(), "level": 0.9}
    frame = mg.edge_tests(mg.load(folder / "model.mgm"), table.drop(columns="w"), **given).edges()
    assert [row["p_clusters"] for row in told] == pytest.approx(frame["p_clusters"].tolist())
    for end in ("lower", "upper"):
        assert [row[end] for row in told] == pytest.approx(frame[end].tolist())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cluster", "house"], "cluster names 'house', which is not a column"),
        (["--cluster", "group"], "cluster has 2 different labels"),
        (["--cluster", "group", "--covariance", "model"], "knows nothing about clusters"),
        (["--level", "2"], "level must be a number in (0, 1)"),
        (["--method", "all"], "invalid choice: 'all'"),
        (["--weights-column", "w"], "--weights-column names 'w', which is not a column"),
        (["-o", "model.mgm"], "model.mgm"),
    ],
)
def test_errors_say_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    try:
        code = main(["test", "model.mgm", "survey.csv", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert message in capsys.readouterr().err
