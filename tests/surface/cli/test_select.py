"""`mixedgm select`: what it prints and writes is what the library chooses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import mixedgm, survey, write_csv

QUICK = ["--n-lams", "10", "--jobs", "1"]
SELECT = {
    "ebic": (["--gamma", "0.25"], mg.EBIC(gamma=0.25)),
    "bic": ([], mg.BIC()),
    "aic": ([], mg.AIC()),
    "cv": (["--folds", "3", "--lowest"], mg.CV(3, one_se=False)),
    "holdout": (["--fraction", "0.3"], mg.Holdout(fraction=0.3)),
    "stars": (["--beta", "0.1", "--subsamples", "4"], mg.StARS(beta=0.1, n_subsamples=4)),
    "stability": (
        ["--threshold", "0.8", "--max-false", "2", "--subsamples", "6"],
        mg.StabilitySelection(threshold=0.8, max_false=2.0, n_subsamples=6),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("select")
    columns = survey(120)
    write_csv(folder / "survey.csv", columns)
    write_csv(folder / "visits.csv", {**columns, "person": [f"p{k % 40}" for k in range(120)]})
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", SELECT)
def test_every_criterion_is_the_librarys(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words, criterion = SELECT[name]
    scores, model = tmp_path / "scores.csv", tmp_path / "chosen.mgm"
    files = ["--scores", str(scores), "-o", str(model)]
    command = ["select", "survey.csv", "--criterion", name, "--seed", "3", *words, *files, *QUICK]
    assert main(command) == 0
    twin = mg.MixedGraphicalModel(select=criterion, n_lams=10, random_state=3, n_jobs=1)
    twin.fit(pd.read_csv("survey.csv"))
    loaded = mg.load(model)
    assert loaded.lam_ == twin.lam_
    assert [edge[:2] for edge in loaded.edges_] == [edge[:2] for edge in twin.edges_]
    with scores.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["lam"]) for row in rows] == twin.path_.lams.tolist()
    assert [int(row["n_edges"]) for row in rows] == twin.path_.n_edges.tolist()
    assert [row["lam"] for row in rows if row["chosen"] == "True"] == [str(twin.lam_)]
    for score, values in twin.fitted_.scores.items():
        written = [float(row[score] or "nan") for row in rows]
        np.testing.assert_array_equal(written, np.where(np.isfinite(values), values, np.nan))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["lam", "n_edges", name]
    (marked,) = [line for line in lines if line.endswith("<--")]
    assert float(marked.split()[0]) == pytest.approx(twin.lam_, rel=1e-3)
    assert lines[-1].startswith(f"{twin.fitted_.report.criterion}: lam = ")


def test_select_draws_and_says_what_it_chose(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    done = mixedgm("select", "survey.csv", "--plot", picture, *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"<?xml")
    assert "local false discovery rate of at most 0.5: lam = " in done.stdout
    assert f"wrote {picture}" in done.stderr


def test_groups_are_a_column_that_is_not_modelled(here: Path, tmp_path: Path) -> None:
    model, scores = tmp_path / "m.mgm", tmp_path / "s.json"
    words = ["--criterion", "cv", "--folds", "4", "--groups", "person"]
    files = ["-o", str(model), "--scores", str(scores)]
    assert main(["select", "visits.csv", *words, *files, *QUICK]) == 0
    loaded = mg.load(model)
    assert "person" not in loaded.schema_.names
    groups = [f"p{k % 40}" for k in range(120)]
    twin = mg.MixedGraphicalModel(
        select=mg.CV(4, groups=groups), n_lams=10, random_state=0, n_jobs=1
    ).fit(pd.read_csv("survey.csv"))
    assert loaded.lam_ == twin.lam_
    found = [row["cv"] for row in json.loads(scores.read_text("utf-8"))]
    assert found == twin.fitted_.scores["cv"].tolist()


def test_fit_takes_every_name_and_a_seed(here: Path, tmp_path: Path) -> None:
    lams = []
    for seed in ("1", "1", "2"):
        out = tmp_path / "m.mgm"
        words = ["--select", "holdout", "--seed", seed, "--quiet", *QUICK]
        assert main(["fit", "survey.csv", "-o", str(out), *words]) == 0
        lams.append(mg.load(out).fitted_.scores["holdout"].tolist())
    assert lams[0] == lams[1] != lams[2]
    for name in ("cv", "stars", "bic", "aic"):
        words = ["--select", name, "--quiet", *QUICK]
        assert main(["fit", "survey.csv", "-o", str(tmp_path / "m.mgm"), *words]) == 0
        assert name in mg.load(tmp_path / "m.mgm").fitted_.scores


def test_a_checkpoint_is_asked_about_and_read(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["select", "survey.csv", "--criterion", "cv", "--checkpoint", str(tmp_path), *QUICK]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 2
    assert "already holds finished folds" in capsys.readouterr().err
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")}
    assert main([*words, "--resume"]) == 0
    assert capsys.readouterr().out == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")} == before


def test_a_saved_selection_can_be_drawn(here: Path, tmp_path: Path) -> None:
    model, picture = tmp_path / "m.mgm", tmp_path / "s.png"
    assert main(["select", "survey.csv", "-o", str(model), *QUICK]) == 0
    assert main(["plot", str(model), "-o", str(picture), "--kind", "selection"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--criterion", "luck"], "select must be one of 'local-fdr', 'fdr', 'ebic', 'bic', 'aic'"),
        (
            ["--criterion", "ebic", "--beta", "0.1"],
            "--beta belongs to --criterion stars, not to ebic.",
        ),
        (
            ["--gamma", "0.1", "--level", "0.1"],
            "--gamma belongs to --criterion ebic, not to fdr.",
        ),
        (
            ["--criterion", "cv", "--subsamples", "9"],
            "--subsamples belongs to --criterion stars or stability, not to cv.",
        ),
        (
            ["--criterion", "local-fdr", "--lowest"],
            "--lowest belongs to --criterion cv, not to local-fdr.",
        ),
        (["--fraction", "0"], "fraction must be a number in (0, 1). Got 0.0 instead."),
        (["--subsamples", "0"], "n_subsamples must be"),
        (
            ["--criterion", "ebic", "--beta", "0"],
            "--beta belongs to --criterion stars, not to ebic.",
        ),
        (["--criterion", "cv", "--groups", "person"], "--groups names 'person', which is not a"),
        (["--gamma", "2"], "gamma must be a number in [0, 1]. Got 2.0 instead."),
        (["--criterion", "cv", "--folds", "1"], "cv must be at least 2 folds. Got 1 instead."),
        (["--scores", "s.xls"], "the file of scores must be a file name that ends in .csv or"),
        (["--plot", "s.xls"], "the picture must be a file name that ends in"),
        (["-o", "survey.csv"], "is the input; give another name to write to"),
    ],
)
def test_mistakes_are_named(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["select", "survey.csv", *words, *QUICK]) == 2
    assert message in capsys.readouterr().err


def test_zero_is_a_value_of_an_option(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["select", "survey.csv", "--gamma", "0", "--lams", "0.3,0.25"]) == 0
    assert "EBIC (gamma = 0): lam" in capsys.readouterr().out


def test_the_end_of_the_path_is_noted_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--criterion", "ebic", "--lams", "0.3,0.25", "--jobs", "1"]
    assert main(["select", "survey.csv", *words]) == 0
    assert capsys.readouterr().err.count("near the end of the path") == 1
