"""Columns that are missing where another has certain values: found, refused, and told."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mixedgm as mg
from mixedgm.cli.console import in_options
from mixedgm.table.checks.check import check_table

N = 300


def deaths(seed=0):
    """A cause of death, and an age at it, for those who died."""
    rng = np.random.default_rng(seed)
    died = rng.random(N) < 0.4
    return pd.DataFrame(
        {
            "x": rng.normal(size=N),
            "site": rng.choice(list("abcd"), N),
            "died": np.where(died, 1, 0),
            "cause": np.where(died, rng.choice(["heart", "lung"], N), None),
            "age": np.where(died, rng.normal(70, 9, N).round(1), np.nan),
        }
    )


def structural(frame, **options):
    return [f for f in check_table(frame, **options).findings if "to have no value there" in f.what]


def test_gaps_that_another_column_decides_about_are_counted():
    frame = deaths()
    n = int((frame["died"] == 0).sum())
    cause, age = structural(frame)
    assert (cause.column, age.column) == ("cause", "age")
    assert cause.what == (
        f"missing in all {n} rows with 'died' = 0 and in none of {N - n} other rows, so it "
        "seems to have no value there"
    )
    assert cause.severity == age.severity == "error"
    assert "leave column 'cause' out; or" in cause.remedy
    assert 'forbid=[("cause", "died")] with missing="model"' in cause.remedy
    (gaps,) = [f for f in check_table(frame).findings if f.what.startswith("missing values")]
    assert "once 'cause', 'age' are settled (see below)" in gaps.remedy


def test_the_lines_to_paste_settle_the_gaps():
    frame = deaths()
    filled = {"table": frame.copy(), "pd": pd}
    for finding in structural(frame):
        exec(finding.remedy.partition(" gives ")[0].partition(" with ")[0], filled)
    table = filled["table"]
    assert not table.isna().any().any()
    assert sorted(table["cause"].unique()) == ["heart", "lung", "none"]
    assert '.fillna(0) with types={"age": "hurdle"}; or' in structural(frame)[1].remedy
    checked = check_table(table, types={"age": "hurdle"})
    assert not [f for f in checked.findings if f.severity == "error"]
    line = structural(frame)[0].remedy.partition("rows alone: ")[2].partition("; or")[0]
    rest = eval(line, {"table": frame})
    assert len(rest) == (frame["died"] == 1).sum()
    assert not check_table(rest).findings


def test_the_lines_are_those_of_the_library():
    frame = pl.from_pandas(deaths().drop(columns="age"))
    (finding,) = structural(frame)
    world = {"table": frame, "pl": pl}
    exec(finding.remedy.partition(" gives ")[0], world)
    assert set(world["table"]["cause"]) == {"heart", "lung", "none"}
    line = finding.remedy.partition("rows alone: ")[2].partition("; or")[0]
    assert eval(line, {"table": frame, "pl": pl}).null_count().sum_horizontal()[0] == 0
    shown = in_options(str(finding))
    assert "table" not in shown
    assert "--forbid cause:died" in shown


def test_a_model_of_such_gaps_is_refused_unless_told():
    frame = deaths()[["x", "site", "died", "cause"]]
    model = mg.MixedGraphicalModel(lam=0.1, missing="model")
    with pytest.raises(mg.TableError, match=r"'cause': missing in all \d+ rows with 'died' = 0"):
        model.fit(frame)
    told = mg.MixedGraphicalModel(lam=0.02, missing="model", forbid=[("died", "cause")]).fit(frame)
    pairs = {
        frozenset(pair) for pair in zip(told.edges()["source"], told.edges()["target"], strict=True)
    }
    assert frozenset(("died", "cause")) not in pairs
    assert structural(frame, forbid=[("cause", "died")]) == []
    assert structural(frame, forbid=[("x", "died")]) != []


def test_exceptions_and_ordinary_gaps_beside_them():
    frame = deaths()
    rng = np.random.default_rng(3)
    frame = frame.mask((rng.random(frame.shape) < 0.2) & (frame.columns == "cause"))
    frame.loc[frame.index[frame["died"] == 0][0], "cause"] = "lung"
    n_dead, n_gaps = int((frame["died"] == 1).sum()), int(frame["cause"].isna().sum())
    cause = structural(frame)[0]
    n_else = n_gaps - (N - n_dead - 1)
    assert f"missing in {N - n_dead - 1} of {N - n_dead} rows" in cause.what
    assert f"and in {n_else} of {n_dead} other rows" in cause.what
    assert n_else > 10
    frame.loc[frame.index[frame["died"] == 0][:5], "cause"] = "lung"  # 5 of 180 are too many
    assert [f.column for f in structural(frame)] == ["age"]


@pytest.mark.parametrize(
    ("column", "where"),
    [
        (lambda rng: np.where(rng.random(N) < 0.5, 0.0, rng.normal(9, 1, N)), "'by' = 0 and"),
        (lambda rng: rng.choice(list("abc"), N), "'by' = \"a\" and"),
        (lambda rng: rng.choice([True, False], N), "'by' = False and"),
    ],
)
def test_values_of_numbers_and_of_categories(column, where):
    rng = np.random.default_rng(0)
    by = column(rng)
    gone = (
        np.isin(by, [0.0])
        if by.dtype.kind == "f"
        else by == ("a" if by.dtype.kind == "U" else False)
    )
    frame = pd.DataFrame({"by": by, "x": np.where(gone, np.nan, rng.normal(size=N))})
    frame["y"] = rng.normal(size=N)
    (finding,) = structural(frame)
    assert where in finding.what
    assert f"missing in all {gone.sum()} rows" in finding.what


def test_all_but_one_value_and_several_columns():
    rng = np.random.default_rng(0)
    spent = np.where(rng.random(N) < 0.5, 0.0, rng.normal(9, 1, N))
    frame = pd.DataFrame({"spent": spent, "y": rng.normal(size=N)})
    for name in ("why", "when"):
        frame[name] = np.where(spent == 0.0, rng.choice(list("ab"), N), None)
    (finding,) = structural(frame)
    assert finding.what.startswith("columns 'why', 'when': missing in all ")
    assert "with another 'spent' than 0 and" in finding.what
    assert 'forbid=[("why", "spent"), ("when", "spent")]' in finding.remedy


def test_gaps_at_random_and_few_rows_are_no_finding():
    rng = np.random.default_rng(0)
    for seed in range(20):
        frame = deaths(seed)[["x", "site", "died"]].astype({"died": float})
        frame["many"] = rng.choice([f"k{k}" for k in range(40)], N)
        frame = frame.mask(rng.random(frame.shape) < rng.choice([0.02, 0.3, 0.6]))
        assert structural(frame) == []
    halves = frame[["x"]].assign(y=np.where(np.arange(N) % 2, frame["x"] + 1, np.nan))
    halves.loc[1::2, "x"] = np.nan  # no row has both
    assert structural(halves) == []
    small = deaths().head(30)
    assert (small["died"] == 1).sum() < 20
    assert structural(small) == []


def test_tables_in_parts_and_dropped_rows(tmp_path):
    frame = deaths()
    frame.iloc[:100].to_parquet(tmp_path / "a.parquet")
    frame.iloc[100:].to_parquet(tmp_path / "b.parquet")
    whole = structural(frame)
    in_parts = structural(tmp_path)
    assert [f.what for f in in_parts] == [f.what for f in whole]
    assert structural(tmp_path, forbid=[("cause", "died"), ("age", "died")]) == []
    assert {f.severity for f in structural(tmp_path, missing="drop")} == {"warning"}
