"""Names with commas, equals signs and colons on the command line; pictures with options."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg
import mixedgm.views.plot as picture
from mixedgm.cli import main
from mixedgm.cli.console import in_options
from mixedgm.cli.lists import cut_items, list_item, listed
from tests.support.command_line import write_csv

HEIGHT, RATIO, TIME = "height, cm", "a=b", "time: 1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        ('c, "a,b"', ["c", "a,b"]),
        ('" a "', [" a "]),
        ('"say ""hi"""', ['say "hi"']),
        ('5" pipe,b', ['5" pipe', "b"]),
        ("a=b,c:d", ["a=b", "c:d"]),
    ],
)
def test_lists_are_split_at_commas_outside_quotes(text: str, expected: list[str]) -> None:
    assert listed([text]) == expected


@pytest.mark.parametrize("name", ["a", "a,b", '"a', ' a"b ', 'a,"b"', "a=b", "x y", '5"'])
def test_a_quoted_name_is_read_back(name: str) -> None:
    assert listed([f"first,{list_item(name)},last"]) == ["first", name, "last"]
    assert in_options(f"leave column '{name}' out").startswith("--drop ")
    (_, word) = shlex.split(in_options(f"leave column '{name}' out"))
    assert listed([word]) == [name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,b=2", [("a", "1"), ("b", "2")]),
        ('city="Bath, UK"', [("city", "Bath, UK")]),
        ('"city=Bath, UK"', [("city", "Bath, UK")]),
        ('"a=b"=x=y', [("a=b", "x=y")]),
        ('"a=b"="x=y"', [("a=b", "x=y")]),
        ("known=k=x", [("known=k", "x")]),
        ('"known"=k=x', [("known", "k=x")]),
    ],
)
def test_values_are_cut_where_quotes_or_known_names_say(
    text: str, expected: list[tuple[str, str]]
) -> None:
    found = cut_items([text], "=", "--given takes NAME=VALUE.", before={"known=k"})
    assert found == expected


@pytest.mark.parametrize("text", ['"a', 'a="b', '"a""'])
def test_a_quote_that_does_not_close_is_an_error(text: str) -> None:
    with pytest.raises(mg.ParameterError, match="do not close"):
        cut_items([text], "=", "--given takes NAME=VALUE.")


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


def test_plot_takes_the_options_of_the_picture(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "t.csv", "-o", "t.mgm", "--lam", "0.05", "--quiet"]) == 0
    asked: dict[str, object] = {}
    drawn = picture.plot_network

    def spy(fitted: object, **options: object) -> object:
        asked.update(options)
        return drawn(fitted, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(picture, "plot_network", spy)
    plot = ["plot", "t.mgm", "-o", "t.png"]
    options = ["--node-group", 'body="height, cm",a=b', "--node-group", "place=city"]
    options += ["--node-color", "body=gold,place=#44BB99", "--columns", '"height, cm",a=b,city']
    options += ["--minimum", "0.01", "--maximum", "0.5", "--cut", "0.2", "--max-edges", "4"]
    assert main([*plot, *options, "--edge-labels", "--no-labels", "--layout", "circle"]) == 0
    assert (here / "t.png").read_bytes().startswith(b"\x89PNG")
    assert asked == {
        "groups": {"body": [HEIGHT, RATIO], "place": ["city"]},
        "colors": {"body": "gold", "place": "#44BB99"},
        "columns": [HEIGHT, RATIO, "city"],
        "minimum": 0.01,
        "maximum": 0.5,
        "cut": 0.2,
        "max_edges": 4,
        "edge_labels": True,
        "labels": False,
        "layout": "circle",
    }
    capsys.readouterr()
    bad = {
        "--columns cty": "--columns: 'cty' is not a column; did you mean 'city'?",
        "--node-group city": "--node-group takes GROUP=A,B,... Got 'city' instead.",
        "--node-group a=cty": "--node-group: 'cty' is not a column",
        "--node-color a=red": "--node-color needs --node-group",
        "--kind path --cut 1": "belong to --kind network, not to path",
        "--minimum 2 --maximum 1": "minimum must not exceed maximum",
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
