"""`mixedgm compare`: files and checkpoints of the command."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import survey, write_csv


def words(folder: Path, *more: object) -> list[str]:
    base = [folder / "survey.csv", "--groups", "town", "-o", folder / "out", "--lam", 0.2]
    base += ["--permutations", 6, "--jobs", 1, "--seed", 3, *more]
    return ["compare", *map(str, base)]


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_compare_writes_models_tables_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = survey(200)
    town = np.repeat(["north/1", "south"], 100).tolist()
    write_csv(tmp_path / "survey.csv", {**columns, "town": town})
    kept = ("--checkpoint", tmp_path / "kept")
    assert main(words(tmp_path, *kept)) == 0
    assert "largest edge difference" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    tables = {"edges.csv", "tests.csv", "groups.csv", "degenerate.csv", "summary.txt"}
    assert names == tables | {"networks.png", "differences.png", "group1.mgm", "group2.mgm"}
    groups = rows_of(tmp_path / "out" / "groups.csv")
    assert [(g["group"], g["model"]) for g in groups] == [
        ("north/1", "group1.mgm"),
        ("south", "group2.mgm"),
    ]
    model = mg.load(tmp_path / "out" / "group2.mgm")
    assert "town" not in model.schema_.names
    assert model.fitted_.report.n_rows == 100
    edges = (tmp_path / "out" / "edges.csv").read_bytes()
    assert main(words(tmp_path, *kept)) == 2
    assert "add --resume" in capsys.readouterr().err
    assert main(words(tmp_path, *kept, "--resume", "--quiet")) == 0
    assert (tmp_path / "out" / "edges.csv").read_bytes() == edges


def test_compare_says_which_columns_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(tmp_path / "survey.csv", survey(50))
    assert main(words(tmp_path)) == 2
    assert "'town', which is not a column" in capsys.readouterr().err


def test_compare_tests_differences_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = np.repeat(["north", "south"], 100).tolist()
    write_csv(tmp_path / "survey.csv", {**survey(200), "town": town})
    given = [tmp_path / "survey.csv", "--groups", "town", "-o", tmp_path / "out", "--lam", 0.2]
    assert main(["compare", *map(str, [*given, "--jobs", 1, "--seed", 3])]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("There is no evidence that the graphs differ")
    assert "tested by differences, because every group has at least 60 rows" in shown
    edges = rows_of(tmp_path / "out" / "edges.csv")
    assert {"estimate_north", "lower_south", "statistic", "p_bh", "probability_differs"} <= edges[
        0
    ].keys()
    assert (tmp_path / "out" / "untested.csv").exists()
    assert main(["compare", *map(str, given), "--test", "differences", "--permutations", "9"]) == 2
    assert "n_perm and checkpoint are for permutations" in capsys.readouterr().err


def test_columns_stay_as_they_are_unless_a_transform_is_given(tmp_path: Path) -> None:
    """As in `mixedgm.compare`: margins of groups that differ are not normal together."""
    rng = np.random.default_rng(0)
    columns = {name: np.exp(2.0 * rng.normal(size=400)).tolist() for name in "xy"}
    write_csv(tmp_path / "survey.csv", {**columns, "town": np.repeat(["n", "s"], 200).tolist()})
    given = [tmp_path / "survey.csv", "--groups", "town", "-o", tmp_path / "out", "--jobs", 1]
    transforms = []
    for more in ([], ["--transform", "auto"]):
        assert main(["compare", *map(str, given), "--quiet", *more]) == 0
        model = mg.load(tmp_path / "out" / "group1.mgm")
        transforms.append([column.transform is None for column in model.schema_.columns])
    assert transforms == [[True, True], [False, False]]
