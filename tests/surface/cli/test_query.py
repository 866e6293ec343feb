"""mixedgm query, sample and impute: the answers of the library, through files and options."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import mixedgm, survey, write_csv


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with survey.csv, gaps.csv and a model of the survey."""
    folder = tmp_path_factory.mktemp("query")
    columns = survey()
    write_csv(folder / "survey.csv", columns)
    mg.MixedGraphicalModel(lam=0.1).fit(folder / "survey.csv").save(folder / "survey.mgm")
    gaps = {name: list(values) for name, values in columns.items()}
    for at, name in enumerate(columns):
        for row in range(at, 60, 7):
            gaps[name][row] = ""
    write_csv(folder / "gaps.csv", {name: values[:60] for name, values in gaps.items()})
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(list(map(str, words))) == 0, capsys.readouterr().err
    return capsys.readouterr().out


# -- query -------------------------------------------------------------------------------------


def test_a_marginal_in_all_formats(folder: Path) -> None:
    words = ("query", "survey.mgm", "--marginal", "mood,height", "--given", "group=b,weight=1.5")
    model = mg.load(folder / "survey.mgm")
    expected = model.conditional(["mood", "height"], {"group": "b", "weight": 1.5})
    done = mixedgm(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{expected!r}\n"
    assert "Distribution of mood, height given weight = 1.5, group = b" in done.stdout
    records = json.loads(mixedgm(*words, "--format", "json", cwd=folder).stdout)
    assert [record["mood"] for record in records] == ["good", "größer ☃", "so, so"]
    frame = expected.frame()
    assert [r["probability"] for r in records] == pytest.approx(frame["probability"].to_list())
    assert [r["height_mean"] for r in records] == pytest.approx(frame["height_mean"].to_list())


def test_means(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = mg.load("survey.mgm")
    assert "(exact under the model; of a level: its probability)" in run(
        capsys, "query", "survey.mgm", "--mean"
    )
    given = ("--given", '"mood=so, so"', "--given", "luck=0.5")
    rows = rows_of(run(capsys, "query", "survey.mgm", "--mean", *given, "--format", "csv"))
    means = model.mean({"mood": "so, so", "luck": 0.5})
    found = {(row["column"], row["level"]): float(row["mean"]) for row in rows}
    assert found["height", ""] == means["height"]
    assert found["group", "a"] == means["group"]["a"]


def test_numbers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = mg.load("survey.mgm")
    out = run(capsys, "query", "survey.mgm", "--mutual-information", "height,group")
    value = model.mutual_information("height", "group").value
    assert out == f"mutual information: {value:.6g} nats (exact under the model)\n"
    out = run(capsys, "query", "survey.mgm", "--entropy", "mood", "--format", "json")
    assert json.loads(out) == [{"entropy": model.entropy("mood").value, "error": 0.0}]


def test_a_sampled_answer_has_errors(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("query", "survey.mgm", "--marginal", "mood", "--format", "csv")
    rows = rows_of(run(capsys, *words, "--method", "gibbs", "--seed", 3))
    expected = mg.load("survey.mgm").marginal("mood", method="gibbs", random_state=3).frame()
    assert [float(r["probability"]) for r in rows] == expected["probability"].to_list()
    assert all(float(row["probability_error"]) > 0 for row in rows)


# -- sample ------------------------------------------------------------------------------------


def test_a_dash_is_standard_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "survey.mgm", "-n", "3", "-o", "-", "--seed", "1"]) == 0
    assert len(rows_of(capsys.readouterr().out)) == 3
    assert not (here / "-").exists()


def test_rows_can_be_read_and_fitted_again(folder: Path) -> None:
    done = mixedgm("sample", "survey.mgm", "-n", 200, "-o", "rows.csv", "--seed", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "wrote rows.csv" in done.stderr
    model = mg.load(folder / "survey.mgm")
    rows = pd.read_csv(folder / "rows.csv")
    assert rows["mood"].to_list() == model.sample(200, random_state=1)["mood"].to_list()
    assert np.isfinite(model.score(rows))
    again = mixedgm("fit", "rows.csv", "-o", "again.mgm", "--lam", 0.2, cwd=folder)
    assert again.returncode == 0, again.stderr


def test_rows_given_values_and_seeds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("sample", "survey.mgm", "-n", 5, "--given", "group=b,height=2")
    rows = rows_of(run(capsys, *words))
    assert {(row["group"], row["height"]) for row in rows} == {("b", "2.0")}
    assert run(capsys, *words, "--seed", 2) == run(capsys, *words, "--seed", 2)
    assert run(capsys, *words, "--seed", 2) != run(capsys, *words, "--seed", 3)


def test_chains_report_how_they_went(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "survey.mgm", "-n", "3", "--method", "gibbs"]) == 0
    assert "note: Gibbs: 64 chains, 500 sweeps of burn-in" in capsys.readouterr().err


# -- impute ------------------------------------------------------------------------------------


def test_gaps_are_filled_and_all_else_is_kept(folder: Path) -> None:
    done = mixedgm("impute", "survey.mgm", "gaps.csv", "-o", "filled.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    before = rows_of((folder / "gaps.csv").read_text(encoding="utf-8"))
    after = rows_of((folder / "filled.csv").read_text(encoding="utf-8"))
    expected = mg.load(folder / "survey.mgm").impute(pd.read_csv(folder / "gaps.csv"))
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        assert list(old) == list(new)
        for name, cell in old.items():
            if cell == "":
                value = expected[name].to_list()[at]
                assert new[name] == value or float(new[name]) == pytest.approx(value)
            else:
                assert new[name] == cell or float(new[name]) == float(cell)


def test_draws_are_stacked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("impute", "survey.mgm", "gaps.csv", "--draws", 3, "--seed", 4)
    rows = rows_of(run(capsys, *words))
    assert [row["draw"] for row in rows] == ["1"] * 60 + ["2"] * 60 + ["3"] * 60
    tables = mg.load("survey.mgm").impute(pd.read_csv("gaps.csv"), 3, random_state=4)
    moods = [mood for table in tables for mood in table["mood"].to_list()]
    assert [row["mood"] for row in rows] == moods


# -- repair, errors ----------------------------------------------------------------------------


def test_a_model_without_distribution_is_refused_and_repaired_when_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = mg.load(folder / "survey.mgm")
    coef, precision = model.params_.coef, model.params_.precision
    coef[0, 1] = coef[1, 0] = 1.2 * np.sqrt(precision[0, 0] * precision[1, 1])
    model.save("bad.mgm")
    assert main(["sample", "bad.mgm", "-n", "2"]) == 2
    error = capsys.readouterr().err
    assert "'height', 'weight'" in error
    assert "To fix: --repair takes the nearest valid model" in error
    assert main(["sample", "bad.mgm", "-n", "2", "--repair"]) == 0
    done = capsys.readouterr()
    assert len(rows_of(done.out)) == 2
    assert "note: repaired, so that there is a joint distribution" in done.err
    assert main(["sample", str(folder / "survey.mgm"), "-n", "2", "--repair"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("query survey.mgm --marginal moood", "there is no column 'moood'; did you mean 'mood'?"),
        ("query survey.mgm --mean --given group=c", "column 'group' has no level 'c'; its levels"),
        ("query survey.mgm --mean --given luck=high", "must be a number. Got 'high' instead"),
        ("query survey.mgm --mean --given luck", "--given takes NAME=VALUE,... Got 'luck'"),
        ("query survey.mgm --mean --given luck=", "--given takes NAME=VALUE,... Got 'luck='"),
        ("query survey.mgm --mutual-information mood", "takes two columns as A,B. Got 'mood'"),
        ("query survey.mgm --marginal mood --method exact --limit 1", "or raise --limit"),
        ("sample survey.mgm -n 0", "n must be an integer of at least 1"),
        ("impute survey.mgm gaps.csv --draws 0", "n_draws must be an integer of at least 1"),
        ("impute survey.mgm gaps.csv -o gaps.csv", "is the input; give another name"),
    ],
)
def test_errors_are_one_message(
    here: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert main(words.split()) == 2
    done = capsys.readouterr()
    assert message in done.err
    assert done.out == ""


def test_a_query_needs_a_question(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["query", "survey.mgm"])
    assert ended.value.code == 2
    assert "one of the arguments --marginal --mean" in capsys.readouterr().err
