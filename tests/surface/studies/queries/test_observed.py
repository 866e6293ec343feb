"""Answers of the joint distribution beside what matching rows of a table have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main

SURVIVED = {
    ("f", "top"): 90,
    ("f", "mid"): 80,
    ("f", "low"): 30,
    ("m", "top"): 40,
    ("m", "mid"): 20,
}
GIVEN = {"sex": "f", "class": "low"}


def table() -> pd.DataFrame:
    """Hundreds of rows in which the effect of sex depends on class, and a column of numbers."""
    rows = []
    for sex in "fm":
        for which in ("top", "mid", "low"):
            yes = SURVIVED.get((sex, which), 25)
            rows += [(sex, which, "yes")] * yes + [(sex, which, "no")] * (100 - yes)
    frame = pd.DataFrame(rows, columns=["sex", "class", "survived"])
    noise = np.random.default_rng(0).normal(size=len(frame))
    return frame.assign(fare=noise + (frame["survived"] == "yes"))


@pytest.fixture(scope="module")
def model() -> mg.MixedGraphicalModel:
    return mg.MixedGraphicalModel(lam=0.0).fit(table())


def shares(rows: pd.DataFrame, column: str) -> dict[str, float]:
    return dict(rows[column].value_counts(normalize=True))


def test_shares_of_matching_rows_stand_beside_probabilities(model) -> None:
    rows = table()
    answer = model.conditional("survived", GIVEN, data=rows)
    found = answer.frame().set_index("survived")
    assert found["observed"].to_dict() == pytest.approx({"yes": 0.3, "no": 0.7})
    plain = model.conditional("survived", GIVEN).frame().set_index("survived")
    assert found["probability"].equals(plain["probability"])
    assert "observed" not in plain
    text = " ".join(repr(answer).split())
    assert "(exact under the model; observed in 100 rows of the table that match;" in text
    assert 'fit with moderators=["sex"], or with "class"' in text


@pytest.mark.parametrize("moderator", ["sex", "class"])
def test_the_moderator_that_is_named_helps(moderator) -> None:
    rows = table()
    model = mg.MixedGraphicalModel(lam=0.0, moderators=[moderator]).fit(rows)
    answer = model.conditional("survived", GIVEN, data=rows)
    found = answer.frame().set_index("survived")
    assert found["probability"]["yes"] == pytest.approx(found["observed"]["yes"], abs=0.03)
    assert not answer.warnings


def test_no_difference_no_note(model) -> None:
    answer = model.marginal(["survived", "sex"], data=table())
    found, rows = answer.frame(), table()
    expected = [
        ((rows["survived"] == s) & (rows["sex"] == x)).mean()
        for s, x in zip(found["survived"], found["sex"], strict=True)
    ]
    assert found["observed"].tolist() == pytest.approx(expected)
    assert not answer.warnings


def test_means_in_states_of_matching_rows(model) -> None:
    rows = table()
    found = model.conditional(["survived", "fare"], {"sex": "f"}, data=rows).frame()
    women = rows[rows["sex"] == "f"].groupby("survived")["fare"].mean()
    seen = found.set_index("survived")["fare_observed"].to_dict()
    assert seen == pytest.approx(women.to_dict())
    few = model.conditional(["survived", "fare"], {"sex": "m", "class": "mid"}, data=rows).frame()
    assert few.set_index("survived")["fare_observed"].isna().to_dict() == {"no": False, "yes": True}


def test_means_of_all_columns(model) -> None:
    rows = table()
    rows.loc[:9, "fare"] = np.nan
    found = model.mean({"sex": "f"}, data=rows).frame()
    women = rows[rows["sex"] == "f"]
    fare = found[found["column"] == "fare"].iloc[0]
    assert (fare["observed"], fare["rows"]) == (pytest.approx(women["fare"].mean()), 290)
    levels = found[found["column"] == "survived"].set_index("level")["observed"]
    assert levels.to_dict() == pytest.approx(shares(women, "survived"))


def test_weights_count_rows(model) -> None:
    rows = table()
    weights = np.where(rows["survived"] == "yes", 3.0, 1.0)
    answer = model.conditional("survived", GIVEN, data=rows, sample_weight=weights)
    found = answer.frame().set_index("survived")["observed"]
    assert found["yes"] == pytest.approx(90 / 160)


@pytest.mark.parametrize("given", [{"fare": 0.25}, {"sex": "f", "fare": 1.0}])
def test_nothing_is_shown_of_few_rows(model, given) -> None:
    answer = model.conditional("survived", given, data=table())
    assert "observed" not in answer.frame()
    assert "0 rows of the table match, too few to compare" in " ".join(repr(answer).split())


def test_zeros_and_amounts_of_a_hurdle_column() -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=400)
    debt = np.where(rng.random(400) < 0.3 + 0.3 * group, 0.0, rng.normal(5 + group, size=400))
    rows = pd.DataFrame({"group": np.where(group, "b", "a"), "debt": debt})
    model = mg.MixedGraphicalModel(lam=0.0, types={"debt": "hurdle"}).fit(rows)
    there = rows[rows["group"] == "b"]["debt"]
    found = model.conditional("debt", {"group": "b"}, data=rows).frame().set_index("debt != 0")
    assert found["observed"][False] == pytest.approx((there == 0).mean())
    assert found["debt_observed"].to_dict() == pytest.approx(
        {False: 0.0, True: there[there != 0].mean()}
    )
    means = model.mean({"group": "b"}, data=rows)
    assert means.frame()["observed"].tolist() == pytest.approx([there.mean(), (there == 0).mean()])


def test_a_part_of_a_model_has_no_table(model) -> None:
    with pytest.raises(mg.ParameterError, match="ask the whole model, with given="):
        model.condition({"sex": "f"}).marginal("survived", data=table())
    with pytest.raises(mg.ParameterError, match="give data=, too"):
        model.marginal("survived", sample_weight=np.ones(600))


def test_the_command_line(
    model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model.save("model.mgm")
    table().to_csv("table.csv", index=False)
    words = ["query", "model.mgm", "--marginal", "survived", "--given", "sex=f,class=low"]
    assert main(words) == 0
    assert "observed" not in capsys.readouterr().out
    assert main([*words, "--data", "table.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "observed in 100 rows of the table that match" in said
    assert 'fit with --moderators sex, or with "class"' in said
    assert main(["query", "model.mgm", "--entropy", "survived", "--data", "table.csv"]) == 2
    assert "--data goes with --marginal and --mean" in capsys.readouterr().err
    assert main([*words, "--weights-column", "n"]) == 2
    assert "--data TABLE" in capsys.readouterr().err
