"""`model.report` and `model.view`: what the file holds, what it refuses, how large it is."""

from __future__ import annotations

import html
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import survey
from tests.support.patients import TYPES, patients
from tests.support.report_page import content_of, read_content, sha256, table


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return patients(300)


@pytest.fixture(scope="module")
def model(rows: pd.DataFrame) -> mg.MixedGraphicalModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.TableWarning)
        return mg.MixedGraphicalModel(types=TYPES).fit(rows)


@pytest.fixture(scope="module")
def page(model: mg.MixedGraphicalModel, rows: pd.DataFrame, tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("report") / "report.html"
    tests = mg.edge_tests(model, rows, random_state=0)
    boot = mg.bootstrap(model, rows, n_boot=10, random_state=0, n_jobs=1)
    groups = mg.compare(rows, "smoker", types=TYPES, lam=0.2, n_jobs=1)
    checked = model.check_fit(rows, n_sim=40, random_state=0, n_jobs=1)
    model.report(file, rows, boot, tests, groups, check=checked, title="Patients")
    return file.read_text(encoding="utf-8")


def test_the_policy_allows_the_own_script_and_style_alone(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert policy
    assert script
    assert style
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'{sha256(script[1])}'"
    assert rules["style-src"] == f"'{sha256(style[1])}'"
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import|url\(", outside)
    assert not re.search(r"\b(src|href)=(?!\"#)", outside)


def test_edges_are_those_of_the_model(page: str, model: mg.MixedGraphicalModel) -> None:
    graph = content_of(page)["graph"]
    names = [node["name"] for node in graph["nodes"]]
    drawn = [(names[e["a"]], names[e["b"]], e["sign"]) for e in graph["edges"]]
    assert drawn == [(e.source, e.target, e.sign or "") for e in model.edges_]
    weights = [edge.norm for edge in model.edges_]
    np.testing.assert_allclose([e["norm"] for e in graph["edges"]], weights, rtol=1e-3)
    assert {node["kind"] for node in graph["nodes"]} == {kind["name"] for kind in graph["kinds"]}
    # A page counts from its top, a picture from its bottom.
    places = model.plot(layout="spring").positions
    for node in graph["nodes"]:
        x, y = places[node["name"]]
        assert (node["x"], node["y"]) == pytest.approx((x, -y), rel=1e-3, abs=1e-4)


def test_parameters_are_those_of_interaction(page: str, model: mg.MixedGraphicalModel) -> None:
    content = content_of(page)
    for edge, details in zip(model.edges_, content["edgeDetails"], strict=True):
        wanted = model.interaction(edge.source, edge.target).to_numpy()
        got = np.array(details["parameters"]["values"], dtype=float)
        np.testing.assert_allclose(got, wanted, rtol=5e-3, atol=1e-12)


def test_effects_are_averages_of_predictions(
    page: str, model: mg.MixedGraphicalModel, rows: pd.DataFrame
) -> None:
    content = content_of(page)
    names = [node["name"] for node in content["graph"]["nodes"]]
    effects = [e for d in content["edgeDetails"] for e in d["effects"]]
    seen = {(names[e["from"]], names[e["to"]]): e for e in effects}
    complete = rows.copy()
    effect = seen["pain", "dose"]
    for level, (mean,) in zip(effect["values"], effect["predicted"], strict=True):
        complete["pain"] = pd.Categorical([level] * len(rows), rows["pain"].cat.categories, True)
        assert mean == pytest.approx(model.predict(complete, "dose").mean(), rel=6e-3)
    complete = rows.copy()
    effect = seen["visits", "smoker"]
    for count, shares in zip(effect["values"], effect["predicted"], strict=True):
        complete["visits"] = int(count)
        wanted = model.predict_proba(complete, "smoker").mean().tolist()
        np.testing.assert_allclose(shares, wanted, atol=6e-3)


def test_effects_stand_beside_what_rows_of_the_table_have(page: str, rows: pd.DataFrame) -> None:
    content = content_of(page)
    names = [node["name"] for node in content["graph"]["nodes"]]
    effects = [e for d in content["edgeDetails"] for e in d["effects"]]
    shown = 0
    for effect in effects:
        source, target = names[effect["from"]], names[effect["to"]]
        if not all(isinstance(value, str) for value in effect["values"]):
            assert effect["observed"] == []
            continue
        for level, seen, n_rows in zip(
            effect["values"], effect["observed"], effect["rows"], strict=True
        ):
            there = rows[(rows[source].astype(str) == level) & rows[target].notna()][target]
            if len(there) < 30:
                assert n_rows is None
                continue
            if effect["levels"]:
                wanted = [(there.astype(str) == name).mean() for name in effect["levels"]]
            else:
                wanted = [there.astype(float).mean()]
            assert n_rows == len(there)
            np.testing.assert_allclose(seen, wanted, rtol=6e-3, atol=1e-3)
            shown += 1
    assert shown > 3


def test_tables_hold_what_the_results_hold(
    page: str, model: mg.MixedGraphicalModel, rows: pd.DataFrame
) -> None:
    content = content_of(page)
    keys = [each["key"] for each in content["tables"]]
    assert keys == [
        *("edges", "columns", "tests", "intervals", "selection", "groups", "graphs", "differences")
    ]
    explained = model.predictability(rows).set_index("column")
    columns = table(content, "columns")
    got = dict(zip(columns["column"], columns["r2"], strict=True))
    assert got["age"] == pytest.approx(explained["r2"]["age"], rel=1e-3)
    assert got["ward"] is None
    tests = table(content, "tests")
    assert set(tests["verdict"]) <= {"present", "absent", "undecided"}
    assert len(tests["p"]) == 9 * 8 // 2
    assert table(content, "groups")["group"] == ["False", "True"]
    assert "strength_True" in table(content, "differences")


def test_the_path_is_that_of_the_model(page: str, model: mg.MixedGraphicalModel) -> None:
    path = content_of(page)["path"]
    np.testing.assert_allclose(path["lams"], model.path_.lams, rtol=1e-3)
    for step in range(len(path["lams"])):
        lines = [line for line in path["lines"] if 0 <= step - line[4] < len(line[5])]
        there = [line for line in lines if line[5][step - line[4]] > 0]
        assert len(there) == model.path_.n_edges[step]
    assert path["lams"][path["chosen"]] == pytest.approx(model.lam_, rel=1e-3)


def test_trust_and_methods_speak_of_this_model(page: str, model: mg.MixedGraphicalModel) -> None:
    content = content_of(page)
    answers = {answer["key"]: answer for answer in content["trust"]}
    assert answers["certificate"]["status"] == "good"
    assert f"{model.kkt_:.2g}" in answers["certificate"]["summary"]
    assert answers["missing"]["summary"] == "No cell of the table is missing."
    assert "40 simulated tables" in answers["fit"]["summary"]
    said = " ".join(answers["assumptions"]["lines"])
    assert "square roots" in said
    assert "two parts" in said
    methods = content["methods"]
    assert "300 rows and 9 columns (2 continuous, 1 hurdle, 2 ordinal" in methods["text"]
    assert "local false discovery rate" in methods["text"]
    assert "10 resamples" in methods["text"]
    assert methods["bibtex"].count("@") == 2
    assert mg.__version__ in methods["bibtex"]


def test_an_unsigned_edge_has_no_sign(page: str, model: mg.MixedGraphicalModel) -> None:
    edges = content_of(page)["graph"]["edges"]
    unsigned = [e for e, known in zip(edges, model.edges_, strict=True) if known.sign is None]
    assert unsigned
    assert all(edge["sign"] == "" for edge in unsigned)


def test_gaps_are_told(tmp_path: Path) -> None:
    table_ = pd.DataFrame(survey(300))
    table_.loc[::7, "weight"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(table_)
    model.report(tmp_path / "gaps.html", table_, check=False)
    content = read_content(tmp_path / "gaps.html")
    (missing,) = (each for each in content["trust"] if each["key"] == "missing")
    assert missing["status"] == "look"
    assert "43 of 1,500 cells" in missing["summary"]
    columns = table(content, "columns")
    assert dict(zip(columns["column"], columns["missing"], strict=True))["weight"] == 43
    assert "missing at random" in content["methods"]["text"]


def test_moderated_models_and_covariates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 500)
    x = rng.normal(size=500)
    y = np.where(sex == 1, 0.9, -0.9) * x + rng.normal(size=500)
    rows = pd.DataFrame({"x": x, "y": y, "sex": np.array(["f", "m"])[sex]})
    model = mg.MixedGraphicalModel(lam=0.05, moderators=["sex"]).fit(rows)
    model.report(tmp_path / "a.html", rows)
    content = read_content(tmp_path / "a.html")
    varied = [edge for edge in content["graph"]["edges"] if "moderator" in edge]
    assert [(edge["a"], edge["b"], edge["moderator"]) for edge in varied] == [(0, 1, 2)]
    (fit,) = (each for each in content["trust"] if each["key"] == "fit")
    assert fit["status"] == "unknown"
    assert "vary" in fit["summary"]
    assert "sex" in content["methods"]["text"]


def test_a_model_alone_makes_a_report(model: mg.MixedGraphicalModel, tmp_path: Path) -> None:
    model.report(tmp_path / "a.html")
    content = read_content(tmp_path / "a.html")
    assert not content["hasTable"]
    assert all(node["ring"] is None for node in content["graph"]["nodes"])
    assert content["edgeDetails"][0]["effects"]
    given = mg.from_params({"x": "continuous", "y": "continuous"}, {"precision": np.eye(2)})
    given.report(tmp_path / "b.html")
    content = read_content(tmp_path / "b.html")
    assert content["path"] is None
    assert "given parameters" in content["methods"]["text"]


def test_separate_regressions_with_a_penalty_for_each(tmp_path: Path) -> None:
    rows = pd.DataFrame(survey(300))
    own = mg.MixedGraphicalModel(loss="nodewise", select=mg.EBIC(per_node=True)).fit(rows)
    own.report(tmp_path / "a.html", rows, check=False)
    content = read_content(tmp_path / "a.html")
    assert content["path"]["chosen"] is None
    assert content["path"]["scores"] is None
    assert "lam" in table(content, "columns")


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_libraries(library: str, tmp_path: Path) -> None:
    from tests.support.people import as_library, people

    frame = as_library(people(), library)
    model = mg.MixedGraphicalModel(lam=0.1).fit(frame)
    tests = mg.edge_tests(model, frame, random_state=0)
    model.report(tmp_path / "a.html", frame, tests=tests, check=False)
    assert len(table(read_content(tmp_path / "a.html"), "tests")["p"]) == 10


def test_fifty_columns_take_less_than_a_megabyte(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 25)) + 0.7 * rng.normal(size=(300, 1))
    levels = rng.integers(0, 4, (300, 25)) + (x > 1)
    columns = {f"number {k}": x[:, k] for k in range(25)}
    columns |= {f"category {k}": np.array(list("abcde"))[levels[:, k]] for k in range(25)}
    rows = pd.DataFrame(columns)
    model = mg.MixedGraphicalModel(lam=0.15).fit(rows)
    assert len(model.edges_) > 200
    model.report(tmp_path / "a.html", rows, check=False)
    assert (tmp_path / "a.html").stat().st_size < 1_000_000


def test_results_of_something_else_are_refused(
    model: mg.MixedGraphicalModel, rows: pd.DataFrame, tmp_path: Path
) -> None:
    file = tmp_path / "a.html"
    with pytest.raises(mg.ParameterError, match=r"tests must be the result of mixedgm.edge_tests"):
        model.report(file, rows, tests=rows)  # type: ignore[arg-type]
    other = mg.MixedGraphicalModel(lam=0.1).fit(pd.DataFrame(survey(200)))
    tests = mg.edge_tests(other, pd.DataFrame(survey(200)), random_state=0)
    with pytest.raises(mg.ParameterError, match="tests is about a model with other columns"):
        model.report(file, rows, tests=tests)
    groups = mg.compare(pd.DataFrame(survey(200)), "group", lam=0.2, n_perm=0, n_jobs=1)
    with pytest.raises(mg.ParameterError, match="comparison is about other columns, such as"):
        model.report(file, rows, comparison=groups)
    with pytest.raises(mg.ParameterError, match="check must be"):
        model.report(file, rows, check="yes")  # type: ignore[arg-type]
    with pytest.raises(mg.ParameterError, match="groups: 'agee' is not a column; did you mean"):
        model.report(file, rows, groups={"a": ["agee"]})
    with pytest.raises(mg.ParameterError, match="groups must be a mapping"):
        model.view(groups=["age"])  # type: ignore[arg-type]
    assert not file.exists()


def test_differences_that_could_not_be_tested_have_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    site = np.repeat(["north", "south"], 100)
    rows["job"] = np.where(site == "north", "a", rng.choice(["a", "b"], 200))
    rows["job"] = np.where(np.arange(200) % 10 == 0, "c", rows["job"])
    tables = {}
    for name, part in (("all", rows), ("two", rows[["x", "y"]])):
        model = mg.MixedGraphicalModel(lam=0.2).fit(part)
        compared = mg.compare(part, site, lam=0.2, random_state=0)
        model.report(tmp_path / "a.html", part, comparison=compared, check=False)
        found = {each["key"]: each for each in read_content(tmp_path / "a.html")["tables"]}
        tables[name] = found.get("untested")
    assert tables["two"] is None
    cells = {each["name"]: each["cells"] for each in tables["all"]["columns"]}
    assert cells["reason"] == ["job lacks a level in north"] * 2
    assert cells["target"] == ["job", "job"]


def test_groups_of_columns(model: mg.MixedGraphicalModel, tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    model.report(file, groups={"person": ["age", "smoker"], "money": "debt"})
    graph = read_content(file)["graph"]
    assert [group["name"] for group in graph["groups"]] == ["person", "money"]
    group_of = {node["name"]: node["group"] for node in graph["nodes"]}
    assert {name for name, group in group_of.items() if group == 0} == {"age", "smoker"}
    assert {name for name, group in group_of.items() if group == 1} == {"debt"}
    assert set(group_of.values()) == {-1, 0, 1}


def test_the_view_is_a_frame_that_reaches_nothing(
    model: mg.MixedGraphicalModel, rows: pd.DataFrame
) -> None:
    view = model.view(rows, height=400)
    shown = view._repr_html_()
    assert repr(view) == f"LiveGraph(9 columns, {len(model.edges_)} edges)"
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads" ')
    assert "allow-same-origin" not in shown.split("srcdoc")[0]
    source = re.fullmatch(r'<iframe [^>]*height:400px[^>]* srcdoc="([^"]*)"></iframe>', shown)
    assert source
    content = content_of(html.unescape(source[1]))
    assert "tables" not in content
    assert content["graph"]["nodes"][0]["ring"] is not None
    with pytest.raises(mg.ParameterError, match="height must be"):
        model.view(height=10)


def test_a_notebook_shows_a_model_in_little_room(model: mg.MixedGraphicalModel) -> None:
    assert len(model._repr_html_()) < 20_000


# -- command line ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pd.DataFrame(survey(200)).to_csv(tmp_path / "survey.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_command_fits_a_table_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "survey.csv", "-o", "report.html", "--no-check", "--drop", "luck"]
    assert main([*words, "--tests", "--groups", "group", "--jobs", "1"]) == 0
    content = read_content(folder / "report.html")
    assert content["title"] == "survey.csv"
    assert len(content["graph"]["nodes"]) == 4
    assert {each["key"] for each in content["tables"]} >= {"tests", "differences"}
    assert "wrote report.html" in capsys.readouterr().err


def test_command_takes_a_model_with_or_without_its_table(folder: Path) -> None:
    assert main(["fit", "survey.csv", "-o", "survey.mgm", "--lam", "0.1", "--quiet"]) == 0
    words = ["report", "survey.mgm", "-o", "a.html", "--title", "A & B"]
    assert main([*words, "--node-group", "body=x,y"]) == 2
    column = mg.load("survey.mgm").schema_.names[0]
    assert main([*words, "--node-group", f"first={column}"]) == 0
    assert read_content(Path("a.html"))["graph"]["nodes"][0]["group"] == 0
    assert main(words) == 0
    assert read_content(folder / "a.html")["title"] == "A & B"
    words = ["report", "survey.mgm", "survey.csv", "-o", "b.html", "--no-check"]
    assert main([*words, "--bootstrap", "5", "--jobs", "1"]) == 0
    assert table(read_content(folder / "b.html"), "selection")["inclusion"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["survey.csv", "survey.csv"], "two tables were given"),
        (["survey.mgm", "survey.csv", "--lam", "0.1"], "leave out --lam"),
        (["survey.mgm", "--tests"], "--tests needs the table"),
        (["survey.mgm", "-o", "survey.mgm"], "is the input"),
    ],
)
def test_command_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["fit", "survey.csv", "-o", "survey.mgm", "--lam", "0.1", "--quiet"]) == 0
    assert main(["report", "-o", "a.html", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "a.html").exists()


def test_the_check_of_the_fit_is_told_and_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, e = np.random.default_rng(0).normal(size=(2, 60))
    frame = pd.DataFrame({"x": x, "y": x + e})
    frame.to_csv("table.csv", index=False)
    mg.MixedGraphicalModel(lam=0.1).fit(frame).save("model.mgm")
    words = ["report", "model.mgm", "table.csv", "-o", "report.html", "--jobs", "1"]
    assert main(words) == 0
    assert "checking the fit with simulated tables; --no-check leaves" in capsys.readouterr().err
    assert main([*words, "--no-check"]) == 0
    assert "checking" not in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert not capsys.readouterr().err
