"""Columns that follow from others: linear functions, totals, nested categories, coded numbers."""

import numpy as np
import pandas as pd
import pytest

from mixedgm.table.checks.check import check_table
from tests.support.load import n_calls

N = 400


def table(**columns):
    rng = np.random.default_rng(1)
    base = {"u": rng.normal(size=N), "v": rng.normal(size=N), "w": rng.normal(size=N)}
    base["c"] = rng.choice(list("pqr"), N)
    return pd.DataFrame(base | columns)


def warnings_of(frame, **options):
    found = check_table(frame, **options).findings
    assert not [f for f in found if f.severity == "error"], found
    return [str(f) for f in found if f.severity == "warning"]


def test_independent_columns_give_no_finding():
    assert warnings_of(table()) == []


@pytest.mark.parametrize("slope", [2.0, -1e-9, 1e9])
def test_a_linear_function_of_one_column(slope):
    frame = table()
    frame["twice"] = slope * frame["u"] + 3
    (line,) = warnings_of(frame)
    assert line.startswith("'twice' follows from 'u' (R^2 above 0.99, of values or of ranks)")
    assert line.endswith("To change it: leave column 'twice' out")


@pytest.mark.parametrize(("noise", "found"), [(0.05, True), (0.2, False)])
def test_nearly_linear(noise, found):
    frame = table()
    frame["near"] = frame["u"] + noise * frame["v"]
    unexplained = 1 - frame["u"].corr(frame["near"]) ** 2  # pandas decides what near is
    assert bool(warnings_of(frame[["u", "near", "c"]])) == found == (unexplained < 0.01)


def test_several_copies_are_one_finding():
    frame = table()
    for k in range(8):
        frame[f"copy{k}"] = (k + 2) * frame["u"]
    (line,) = warnings_of(frame)
    assert "'copy0', 'copy1', 'copy2', 'copy3', 'copy4' and 3 more follow from 'u'" in line


def test_a_total_and_its_parts():
    frame = table()
    frame["total"] = frame["u"] + 2 * frame["v"] - frame["w"] + 7
    (line,) = warnings_of(frame)
    assert line.startswith("column 'total': it follows from 'u', 'v', 'w' (R^2 1)")
    assert warnings_of(frame.drop(columns="w")) == []


def test_only_the_columns_of_a_relation_are_named():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(N, 12)), columns=[f"x{k}" for k in range(12)])
    frame["sum"] = frame["x3"] + frame["x8"]
    (line,) = warnings_of(frame)
    assert line.startswith("column 'sum': it follows from 'x3', 'x8' (R^2 1)")


def test_fewer_rows_than_columns_say_nothing():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(25, 40)))
    assert warnings_of(frame) == []


def test_gaps_do_not_hide_a_dependence():
    frame = table()
    frame["twice"] = 2 * frame["u"]
    frame["total"] = frame["v"] + frame["w"]
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    lines = [str(f) for f in check_table(frame).findings if f.severity == "warning"]
    assert any("'twice' follows from 'u'" in line for line in lines)
    assert any("'total': it follows from 'v', 'w'" in line for line in lines)


def test_a_rising_function_is_found_by_ranks():
    frame = table()
    frame["exp"] = np.exp(3 * frame["u"])
    assert frame["u"].corr(frame["exp"]) ** 2 < 0.5
    for options in ({"types": {"exp": "continuous"}}, {"transforms": "nonparanormal"}):
        (line,) = warnings_of(frame, **options)
        assert line.startswith("'exp' follows from 'u'")


def with_exceptions(column, values):
    """Two of the 400 values are another one, far away."""
    column = np.array(column, dtype=float)
    column[150::150] = values
    return column


@pytest.mark.parametrize("far", [1e3, -1e9])
def test_few_rows_may_be_exceptions(far):
    copied, total, coded = table(), table(), table()
    copied["near"] = with_exceptions(2 * copied["u"] + 0.05 * copied["v"], far)
    total["sum"] = with_exceptions(total["u"] + total["v"] + 0.05 * total["w"], far)
    coded["code"] = with_exceptions(coded["c"].map({"p": 1.5, "q": 2.0, "r": 5.25}), far)
    for frame, start in (
        (copied, "'near' follows from 'u'"),
        (total, "column 'sum': it follows from 'u', 'v' (R^2 0.99"),
        (coded, "column 'c': its levels determine the value of 'code'"),
    ):
        (line,) = warnings_of(frame)
        assert line.startswith(start)
        noisy = frame.copy()  # one row in ten is too many
        noisy.iloc[::10, -1] = np.random.default_rng(0).normal(size=N // 10)
        assert warnings_of(noisy) == []


def test_one_extreme_row_does_not_make_a_dependence():
    frame = table()
    frame.loc[7, ["u", "v"]] = 1e6
    assert frame["u"].corr(frame["v"]) > 0.9999
    assert warnings_of(frame) == []


def test_ordinary_correlations_are_no_finding():
    rng = np.random.default_rng(5)
    length = rng.normal(size=N)
    width = 0.96 * length + np.sqrt(1 - 0.96**2) * rng.normal(size=N)
    assert warnings_of(table(length=length, width=width)) == []


def test_one_category_in_another():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 12, N)
    frame = table(city=[f"city{k}" for k in city], county=[f"county{k % 4}" for k in city])
    assert (frame.groupby("city")["county"].nunique() == 1).all()
    (line,) = warnings_of(frame)
    assert line == (
        "column 'city': each of its levels goes with one level of 'county', so it determines that "
        "column. To change it: leave column 'county' out, or leave column 'city' out"
    )
    frame.loc[0, "county"] = "county9"  # one exception in 400
    (line,) = warnings_of(frame)
    assert "one level of 'county' except in 1 of 400 rows, so it determines" in line
    shuffled = frame.assign(county=rng.permutation(frame["county"]))
    assert warnings_of(shuffled) == []


def test_the_same_category_twice():
    frame = table()
    frame["code"] = frame["c"].map({"p": "1", "q": "2", "r": "3"})
    (line,) = warnings_of(frame)
    assert line.startswith("'code' and 'c' carry the same information")
    assert line.endswith("leave column 'code' out")


def test_rare_levels_prove_nothing():
    rng = np.random.default_rng(0)
    frame = table(many=[f"k{k}" for k in rng.integers(0, 100, N)], coin=rng.choice(["h", "t"], N))
    assert warnings_of(frame, types={"many": "categorical"}) == []
    nearly = np.full(N, "no", dtype=object)
    nearly[:5] = "yes"
    lone = np.where(np.arange(N) < 5, "rare", np.where(np.arange(N) % 2, "a", "b"))
    assert warnings_of(table(nearly=nearly, lone=lone)) == []


def test_a_category_that_tells_a_number():
    frame = table()
    frame["rate"] = frame["c"].map({"p": 0.1, "q": 0.25, "r": 0.7})
    assert frame.groupby("c")["rate"].std().max() < 1e-12
    (line,) = warnings_of(frame)
    assert line == (
        "column 'c': its levels determine the value of 'rate', which hardly varies within one. "
        "To change it: leave column 'rate' out, or leave column 'c' out"
    )
    frame["rate"] += 0.05 * frame["u"]
    within = frame["rate"] - frame.groupby("c")["rate"].transform("mean")
    assert within.var() > 0.01 * frame["rate"].var()
    assert warnings_of(frame) == []


def test_rows_of_weight_zero_do_not_count():
    frame = table()
    frame["twice"] = 2 * frame["u"]
    frame.loc[:9, "twice"] = 50.0
    assert warnings_of(frame) == []  # 10 of 400 rows are exceptions
    weights = np.r_[np.zeros(10), np.ones(N - 10)]
    assert "'twice' follows from 'u'" in warnings_of(frame, sample_weight=weights)[0]


@pytest.mark.parametrize("period", [2, 3, 4, 5, 8])
def test_a_dependence_in_one_wave_of_a_panel_is_not_reported(period):
    """Every period-th row is a first visit, where the value is the one at the beginning."""
    rng = np.random.default_rng(0)
    begin, now = rng.normal(size=(2, 20_000))
    now[::period] = begin[::period]
    assert warnings_of(pd.DataFrame({"begin": begin, "now": now})) == []


def codes(n_rows=1000, n_codes=60, seed=0):
    """Occupations with effects that have no order, and an age with one."""
    rng = np.random.default_rng(seed)
    occupation = rng.integers(0, n_codes, n_rows)
    age = rng.integers(18, 70, n_rows)
    effects = rng.normal(size=n_codes)
    return pd.DataFrame(
        {
            "occupation": np.sort(rng.choice(9000, n_codes, replace=False))[occupation] + 100,
            "age": age,
            "wage": effects[occupation] + 0.002 * (age - 18) * (90 - age) + rng.normal(size=n_rows),
        }
    )


def test_numbers_without_an_order_look_like_codes():
    frame = codes()
    (line,) = warnings_of(frame)
    assert line.startswith("column 'occupation': its 60 whole numbers look like codes: as groups")
    assert 'types={"occupation": "categorical"}' in line
    assert warnings_of(frame, types={"occupation": "continuous"}) == []
    shuffled = frame.assign(wage=np.random.default_rng(1).permutation(frame["wage"]))
    assert warnings_of(shuffled) == []


def test_work_grows_with_columns_not_with_pairs_or_rows():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(100, 4000)))
    wide["copy"] = -3 * wide[17]
    assert any("'copy' follows from '17'" in line for line in warnings_of(wide))
    assert n_calls(lambda: warnings_of(wide)) < 2000 * wide.shape[1]
    long = pd.DataFrame(rng.normal(size=(40_000, 100)))
    for k in range(100):
        long[f"c{k}"] = pd.Categorical.from_codes(rng.integers(0, 9, len(long)), list("abcdefghi"))
    assert warnings_of(long) == []
    assert n_calls(lambda: warnings_of(long)) < 2000 * long.shape[1]


def test_copies_are_found_among_very_many_levels():
    rng = np.random.default_rng(0)
    columns = {f"c{k}": rng.integers(0, 40, 600).astype(str) for k in range(100)}
    frame = pd.DataFrame(columns)
    frame["again"] = "level " + frame["c7"]
    lines = [line for line in warnings_of(frame) if "carry the same information" in line]
    assert len(lines) == 1
    assert lines[0].startswith("'again' and 'c7' carry the same information")
