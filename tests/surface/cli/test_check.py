"""`mixedgm check MODEL TABLE`: where a model does not fit, with options as remedies."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import mixedgm

QUICK = ("--simulations", 40, "--jobs", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a skewed column, and a model that lacks an edge and a transform."""
    where = tmp_path_factory.mktemp("check")
    rng = np.random.default_rng(0)
    x, e, z = rng.normal(size=(3, 500))
    table = pd.DataFrame({"x": x, "y": x + e, "height, cm": np.exp(0.7 * z)})
    table.to_csv(where / "survey.csv", index=False)
    table.assign(n=2).to_csv(where / "weighted.csv", index=False)
    model = mg.MixedGraphicalModel(lam=0.1, forbid=[("x", "y")], transforms=None).fit(table)
    model.save(where / "survey.mgm")
    return where


def said(words: tuple[object, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["check", *map(str, words)]) == 0, capsys.readouterr().err
    return " ".join(capsys.readouterr().out.split())


def test_flags_are_explained_with_options(folder: Path) -> None:
    done = mixedgm("check", "survey.mgm", "survey.csv", *QUICK, cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("Model check: 2 of 6 columns and pairs flagged")
    assert max(map(len, done.stdout.splitlines())) <= 80
    text = " ".join(done.stdout.split())
    assert "fit with --require x:y (and not in --forbid)" in text
    assert "fit with --transform '\"height, cm\"=nonparanormal', or take logarithms" in text
    assert "transforms=" not in text


def test_what_is_proposed_is_taken_by_fit(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    better = tmp_path / "better.mgm"
    words = ["fit", folder / "survey.csv", "-o", better, "--lam", 0.1, "--require", "x:y"]
    words += ["--transform", '"height, cm"=nonparanormal', "--quiet"]
    assert main(list(map(str, words))) == 0
    capsys.readouterr()
    text = said((better, folder / "survey.csv", *QUICK), capsys)
    assert text.startswith("Model check: 0 of 6 columns and pairs flagged")


def test_flags_are_written_to_files(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = (folder / "survey.mgm", folder / "survey.csv", *QUICK)
    said((*base, "-o", tmp_path / "flags.csv"), capsys)
    with (tmp_path / "flags.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["column"], row["other"], row["meaning"]) for row in rows] == [
        ("height, cm", "", "skewed"),
        ("x", "y", "missing edge"),
    ]
    assert "--require x:y" in rows[1]["advice"]
    assert main(["check", *map(str, base), "--format", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["meaning"] for record in records] == ["skewed", "missing edge"]
    assert records[0]["other"] is None


def test_options_are_those_of_the_method(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = (folder / "survey.mgm", folder / "survey.csv")
    one = said((*files, *QUICK, "--seed", 3), capsys)
    assert one == said((*files, *QUICK, "--seed", 3), capsys)
    assert "the model as it is, against 40 simulated tables of 500 rows" in said(
        (*files, *QUICK, "--as-is"), capsys
    )
    assert "chance 0.001)" in said((*files, *QUICK, "--alpha", 0.001), capsys)
    weighted = (folder / "survey.mgm", folder / "weighted.csv", "--weights-column", "n", *QUICK)
    assert "simulated tables of 1,000 rows" in said(weighted, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["survey.csv", "--as-is"], "go with a model: mixedgm check MODEL TABLE"),
        (["survey.csv", "-o", "flags.csv"], "go with a model: mixedgm check MODEL TABLE"),
        (
            ["survey.mgm", "survey.csv", "--types", "x=ordinal", "--missing", "drop"],
            "the model knows its columns: leave out --types, --missing.",
        ),
        (["survey.mgm", "survey.csv", "--simulations", "3"], "from 20 to"),
        (["survey.mgm", "survey.csv", "--alpha", "2"], "alpha must be a number in (0, 1)"),
        (["survey.csv", "survey.csv"], "survey.csv"),
        (["none.mgm", "survey.csv"], "none.mgm"),
        (["survey.mgm", "survey.csv", "-o", "survey.csv"], "is the input"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    assert main(["check", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("mixedgm check: error: ")


def test_notes_can_be_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = ["check", "survey.mgm", "survey.csv", "--simulations", "20", "--jobs", "1"]
    assert main([*words, "--quiet"]) == 0
    assert not capsys.readouterr().err
