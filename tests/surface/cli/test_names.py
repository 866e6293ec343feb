"""Names with commas, equals signs and colons on the command line; pictures with options."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import write_csv

HEIGHT, RATIO, TIME = "height, cm", "a=b", "time: 1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(3, 200))
    city = np.where(x + z > 0.0, "Bath, UK", "x=y")
    columns = {HEIGHT: x, RATIO: x + y, TIME: z, "city": city, "site": np.tile(["n", "s"], 100)}
    write_csv(tmp_path / "t.csv", {name: values.tolist() for name, values in columns.items()})
    return tmp_path


def test_names_with_commas_go_through_every_list(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "t.csv", "-o", "t.mgm", "--lam", "0.1", "--drop", "site", "--quiet"]
    fit += ["--forbid", '"time: 1":city,"height, cm":"time: 1"', "--types", "a=b=continuous"]
    fit += ["--transform", '"height, cm"=nonparanormal']
    assert main(fit) == 0
    model = mg.load("t.mgm")
    assert set(model.forbid) == {(TIME, "city"), (HEIGHT, TIME)}
    assert model.types == {RATIO: "continuous"}
    assert model.get_params()["transforms"] == {HEIGHT: "nonparanormal"}
    ask = ["query", "t.mgm", "--marginal", '"height, cm"', "--marginal", "city"]
    assert main([*ask, "--given", 'a=b=0.5,"time: 1"=0', "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert '"Bath, UK"' in shown
    assert "height, cm_" in shown
    assert main(["query", "t.mgm", "--mean", "--given", 'city="Bath, UK"']) == 0
    assert "city = Bath, UK" in capsys.readouterr().out
    covariates = ["fit", "t.csv", "-o", "c.mgm", "--lam", "0.1", "--quiet"]
    assert main([*covariates, "--covariates", '"height, cm",site']) == 0
    roles = {column.name: column.role for column in mg.load("c.mgm").schema_.columns}
    assert [name for name, role in roles.items() if role == "covariate"] == [HEIGHT, "site"]


def png(model: mg.MixedGraphicalModel, **options: object) -> bytes:
    """The picture that Python draws."""
    buffer, figure = io.BytesIO(), model.plot(**options).ax.figure
    figure.savefig(buffer, format="png", dpi=160)
    plt.close(figure)
    return buffer.getvalue()


@pytest.mark.parametrize(("few", "value"), [("minimum", 0.6), ("max_edges", 3)])
def test_plot_takes_the_options_of_the_picture(
    here: Path, capsys: pytest.CaptureFixture[str], few: str, value: float
) -> None:
    """It is the picture with these options, and each of them makes a difference."""
    assert main(["fit", "t.csv", "-o", "t.mgm", "--lam", "0.05", "--quiet"]) == 0
    plot = ["plot", "t.mgm", "-o", "t.png"]
    options = ["--node-group", 'body="height, cm",a=b', "--node-group", "place=city"]
    options += [
        "--node-color",
        "body=gold,place=#44BB99",
        "--columns",
        '"height, cm",a=b,"time: 1",city',
    ]
    options += [f"--{few.replace('_', '-')}", str(value), "--maximum", "0.9", "--cut", "0.85"]
    assert (
        main(
            [
                *plot,
                *options,
                "--edge-labels",
                "--no-labels",
                "--layout",
                "circle",
                "--theme",
                "dark",
            ]
        )
        == 0
    )
    drawn, model = (here / "t.png").read_bytes(), mg.load("t.mgm")
    asked = {
        "groups": {"body": [HEIGHT, RATIO], "place": ["city"]},
        "colors": {"body": "gold", "place": "#44BB99"},
        "columns": [HEIGHT, RATIO, TIME, "city"],
        few: value,
        "maximum": 0.9,
        "cut": 0.85,
        "edge_labels": True,
        "labels": False,
        "layout": "circle",
        "theme": "dark",
    }
    assert png(model, **asked) == drawn
    for name in asked.keys() - {"groups"}:  # without which there are no colors
        others = {key: value for key, value in asked.items() if key != name}
        assert png(model, **others) != drawn, name
    capsys.readouterr()
    bad = {
        "--columns cty": "--columns: 'cty' is not a column; did you mean 'city'?",
        "--node-group city": "--node-group takes GROUP=A,B,... Got 'city' instead.",
        "--node-group a=cty": "--node-group: 'cty' is not a column",
        "--node-color a=red": "--node-color needs --node-group",
        "--kind path --cut 1": "belong to --kind network, not to path",
        "--minimum 0.5 --maximum 0.2": "minimum must not exceed maximum",
    }
    for words, message in bad.items():
        assert main([*plot, *words.split()]) == 2
        assert message in capsys.readouterr().err


def test_compare_draws_with_options_and_says_why_it_does_not(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare = ["compare", "t.csv", "--groups", "site", "--lam", "0.1", "--permutations", "2"]
    compare += ["--jobs", "1"]
    assert main([*compare, "-o", "no", "--columns", "site"]) == 2
    assert "--columns: 'site' is not a column" in capsys.readouterr().err
    assert main([*compare, "-o", "some", "--columns", "a=b,city", "--minimum", "0.1"]) == 0
    assert (here / "some" / "networks.png").exists()
    capsys.readouterr()
    rng = np.random.default_rng(0)
    numbers = {f"x{k}": rng.normal(size=40).tolist() for k in range(101)}
    write_csv(here / "wide.csv", {"site": ["N", "S"] * 20, **numbers})
    assert main([compare[0], "wide.csv", *compare[2:], "--lam", "0.5", "-o", "crowd"]) == 0
    said = capsys.readouterr().err
    assert "note: no picture of the networks: 101 columns in each of 2 networks" in said
    assert "choose some with --columns" in said
    assert not (here / "crowd" / "networks.png").exists()
    assert (here / "crowd" / "differences.png").exists()
